"""Declared approximations: a value of the partitioned module, and the value of the logical one that it stands for.

`batch_stats/mean = stats/mean`: the statistics of a device's own part of a batch, in the place of those of all of it.
What is asked then is whether everything around the two is right (docs/decisions/approximations.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError

FORMS = (
    "write 'VALUE = VALUE', first the partitioned module's and then the one of the logical module that it stands for, "
    "each a named scope (stats/mean) or a source line (train.py:41); \" at P('data')\" behind them says where it lies"
)
"""How an approximation is written."""

_SPLIT = re.compile(r"\s+at\s+(?=P\(|PartitionSpec\(|\{)")
_LINE = re.compile(r"(?P<file>[^=]*?\.?[^/\\=:]+):(?P<line>[1-9]\d*)")
_NAME = re.compile(r"(?P<back>transpose\()?(?P<inner>[^()\[\]]+)(?(back)\))(?:\[(?P<which>\d{1,6})\])?")


@dataclass(frozen=True, slots=True)
class Named:
    """What a user calls a value: by a named scope that it leaves, or by the source line that computes it.

    `backward` is the value that gradients have there: `transpose(stats/mean)`. `which` is the number of one of several
    values: `stats[1]`.
    """

    text: str
    scope: tuple[str, ...] = ()
    file: str = ""
    line: int = 0
    backward: bool = False
    which: int | None = None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Approximation:
    """A value of the partitioned module that stands for one of the logical module.

    `placement` says how the devices' values make up the logical one, as a partition spec or an HloSharding; empty where
    shapes say it.
    """

    partitioned: Named
    logical: Named
    placement: str = ""

    def __str__(self) -> str:
        where = f" at {self.placement}" if self.placement else ""
        return f"{self.partitioned} = {self.logical}{where}"


Declared: TypeAlias = "Mapping[str, Any] | Sequence[str | Approximation] | str"
"""Approximations as they are given: a table from values of the partitioned module to what they stand for, or texts."""


def read(given: Declared | None) -> tuple[Approximation, ...]:
    """Approximations as Python, or a command line, has them. Raises `InputError` for what is none.

    In a table, a value is the name of the logical module's value, or a pair of it and where it lies: a `PartitionSpec`
    of JAX, or its text.
    """
    if isinstance(given, str):
        return (parse(given),)
    if given is None:
        return ()
    if not isinstance(given, Iterable):
        raise _unreadable(repr(given))
    if not isinstance(given, Mapping):
        return tuple(each if isinstance(each, Approximation) else parse(_text(each)) for each in given)
    return tuple(_entry(_text(name), said) for name, said in given.items())


def parse(text: str) -> Approximation:
    """An approximation as it is written. Raises `InputError`."""
    names, *placement = _SPLIT.split(text.strip(), maxsplit=1)
    parts = names.split("=")
    if len(parts) != 2:
        raise _unreadable(text)
    return Approximation(named(parts[0]), named(parts[1]), placement[0].strip() if placement else "")


def _entry(name: str, said: Any) -> Approximation:
    if isinstance(said, tuple | list) and len(said) == 2 and isinstance(said[0], str):
        return Approximation(named(name), named(said[0]), _placement(said[1], name))
    found = parse(f"{name} = {_text(said)}")
    return found


def _placement(said: Any, name: str) -> str:
    text = said if isinstance(said, str) else _of_spec(said)
    if text is None:
        raise _unreadable(f"{name}: {said!r} is no placement")
    return text.strip()


def _of_spec(said: Any) -> str | None:
    """The text of a `PartitionSpec` of JAX, which is a sequence of axes, tuples of axes and None."""
    if type(said).__name__ not in ("PartitionSpec", "P") or getattr(said, "unreduced", None):
        return None
    return f"P({', '.join(map(repr, tuple(said)))})"


def _text(given: object) -> str:
    if isinstance(given, str):
        return given
    raise _unreadable(repr(given))


def named(text: str) -> Named:
    """What a name means. Raises `InputError`."""
    text = text.strip()
    found = _NAME.fullmatch(text)
    if found is None:
        raise _unreadable(text)
    inner, backward = found["inner"].strip(), found["back"] is not None
    which = None if found["which"] is None else int(found["which"])
    line = _LINE.fullmatch(inner)
    if line is not None:
        return Named(text, (), line["file"].strip(), int(line["line"]), backward, which)
    scope = tuple(part for part in inner.split("/") if part)
    if not scope:
        raise _unreadable(text)
    return Named(text, scope, backward=backward, which=which)


def _unreadable(what: str) -> InputError:
    return InputError(f"not an approximation: {what}; {FORMS}", Input.APPROXIMATION)
