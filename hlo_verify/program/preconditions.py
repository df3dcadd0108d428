"""Preconditions: what a user says of the values of arguments. `tokens in [0, 32000)`.

They are about the arguments of the logical module. A device's shard holds some of the same values, so that both modules
are looked at under them; what lies past the end of a shard is arbitrary as ever.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, TypeAlias

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.program.element_types import INTEGER_RANGES, is_float
from hlo_verify.program.ir import Module, TensorType

Number = int | Fraction
"""An exact number."""

FORMS = "write 'NAME in [LOW, HIGH)', 'NAME is positive' or 'NAME is nonnegative'"
"""How a precondition is written."""

SHOWN = 6
"""Arguments of one precondition that a report names."""


@dataclass(frozen=True, slots=True)
class Values:
    """The values that an argument's elements may have: those from `least` to `greatest`; None is no bound.

    A bound that is `excluded` is no such value itself. Those of an integer type are half-open, as ranges are: [0, 64).
    """

    least: Number | None = None
    greatest: Number | None = None
    excluded: tuple[bool, bool] = (False, False)

    def __str__(self) -> str:
        if self.greatest is None and self.least == 0:
            return "is positive" if self.excluded[0] else "is nonnegative"
        opening = "(" if self.excluded[0] or self.least is None else "["
        least, greatest = (_said(bound, end) for bound, end in ((self.least, "-inf"), (self.greatest, "inf")))
        closing = ")" if self.excluded[1] or self.greatest is None else "]"
        return f"in {opening}{least}, {greatest}{closing}"

    @property
    def integers(self) -> tuple[int, int]:
        """The least and the greatest, of integers."""
        assert isinstance(self.least, int) and isinstance(self.greatest, int)
        return self.least, self.greatest - 1

    def admits(self, least: float, greatest: float) -> bool:
        """Whether all numbers between two that are values of an argument may be values of this one."""
        low, high = (Fraction(x) if math.isfinite(x) else None for x in (least, greatest))
        if low is None or high is None:
            return False
        above = self.least is None or low > self.least or (low == self.least and not self.excluded[0])
        below = self.greatest is None or high < self.greatest or (high == self.greatest and not self.excluded[1])
        return above and below

    def both(self, other: Values) -> Values:
        """The values that both allow."""
        least, no_least = _tighter((self.least, self.excluded[0]), (other.least, other.excluded[0]), 1)
        greatest, no_greatest = _tighter((self.greatest, self.excluded[1]), (other.greatest, other.excluded[1]), -1)
        return Values(least, greatest, (no_least, no_greatest))

    def of_type(self, dtype: str) -> Values:
        """Those that are values of an element type."""
        if dtype not in INTEGER_RANGES:
            return self
        low, high = INTEGER_RANGES[dtype]
        least = low if self.least is None else math.ceil(self.least)
        greatest = high if self.greatest is None else math.floor(self.greatest)
        least += self.excluded[0] and least == self.least
        greatest -= self.excluded[1] and greatest == self.greatest
        return Values(max(least, low), min(greatest, high) + 1, (False, True))

    @property
    def is_empty(self) -> bool:
        """Whether there are no such values."""
        if self.least is None or self.greatest is None:
            return False
        return self.least > self.greatest or (self.least == self.greatest and any(self.excluded))


def _said(bound: Number | None, otherwise: str) -> str:
    return otherwise if bound is None else str(bound) if isinstance(bound, int) else f"{float(bound):g}"


def _tighter(a: tuple[Number | None, bool], b: tuple[Number | None, bool], sign: int) -> tuple[Number | None, bool]:
    """The bound that leaves fewer values; with `sign` 1 the greater one."""
    if a[0] is None or b[0] is None:
        return b if a[0] is None else a
    return max(a, b, key=lambda bound: (sign * (bound[0] or 0), bound[1]))


Assumed: TypeAlias = "Mapping[str, Any] | Sequence[str | Precondition] | str"
"""Preconditions as they are given: a table from arguments to values, or texts."""

KNOWN = {"positive": Values(0, None, (True, False)), "nonnegative": Values(0)}
"""Preconditions that are a word."""


@dataclass(frozen=True, slots=True)
class Precondition:
    """What is said of the arguments of a name: `argument` is one as reports have it (`batch['tokens']`), its path
    (`batch/tokens`), or such a path with `*` for anything in it."""

    argument: str
    values: Values

    def __str__(self) -> str:
        return f"{self.argument} {self.values}"

    def matches(self, name: str) -> bool:
        """Whether it is about the argument of that name."""
        if name == self.argument:
            return True
        pattern = "".join(
            ".*" if part == "*" else re.escape(part) for part in re.split(r"(\*)", path_of(self.argument))
        )
        return re.fullmatch(pattern, path_of(name)) is not None


def path_of(name: str) -> str:
    """The path of an argument: `batch/tokens` of `batch['tokens']` or `batch.tokens`."""
    return re.sub(r"\[\s*['\"]?([^\]'\"]*)['\"]?\s*\]|\.(?=[^\W\d])", lambda found: f"/{found[1] or ''}", name)


def parse(text: str) -> Precondition:
    """A precondition as it is written. Raises `InputError`."""
    found = re.fullmatch(r"\s*(\S.*?)\s+(?:in\s+([\[(].*[\])])|is\s+(\w+))\s*", text)
    if found is None:
        raise _unreadable(text, FORMS)
    name, interval, word = found.groups()
    return Precondition(name, _values(interval or word, text))


def read(given: Assumed) -> tuple[Precondition, ...]:
    """Preconditions as Python, TOML or a command line has them: a table from arguments to values, or texts.

    Values are a pair (low, high) of which the second is no value any more, `range(low, high)`, a word such as
    `"positive"`, or the text of an interval. Raises `InputError` for what is none.
    """
    if isinstance(given, str):
        return (parse(given),)
    if not isinstance(given, Mapping):
        return tuple(each if isinstance(each, Precondition) else _parsed(each) for each in given)
    return tuple(Precondition(str(name), _values(said, f"{name}: {said!r}")) for name, said in given.items())


def _parsed(each: object) -> Precondition:
    if isinstance(each, str):
        return parse(each)
    raise _unreadable(repr(each), f"{FORMS}, or give a mapping from arguments to values")


def _unreadable(what: str, advice: str) -> InputError:
    return InputError(f"not a precondition: {what}; {advice}", Input.PRECONDITION)


def _values(said: Any, what: str) -> Values:
    if isinstance(said, Values):
        return said
    if isinstance(said, str):
        return _written(said, what)
    if isinstance(said, range):
        if said.step != 1:
            raise _unreadable(what, "a range has step 1")
        said = (said.start, said.stop)
    if isinstance(said, tuple | list) and len(said) == 2:
        least, greatest = (_number(bound, what) for bound in said)
        return _checked(Values(least, greatest, (False, greatest is not None)), what)
    raise _unreadable(what, "values are a pair (low, high), 'positive' or 'nonnegative'")


def _written(text: str, what: str) -> Values:
    found = re.fullmatch(r"\s*(?:in\s+)?([\[(])\s*([^,\s]+)\s*,\s*([^,\s]+)\s*([\])])\s*", text)
    if found is None:
        word = text.strip().removeprefix("is ").strip()
        if word not in KNOWN:
            raise _unreadable(what, FORMS)
        return KNOWN[word]
    opening, low, high, closing = found.groups()
    least, greatest = (_number(bound, what) for bound in (low, high))
    excluded = opening == "(" and least is not None, closing == ")" and greatest is not None
    return _checked(Values(least, greatest, excluded), what)


def _number(bound: Any, what: str) -> Number | None:
    """A bound as an exact number; None for an infinite one."""
    try:
        if isinstance(bound, str):
            bound = int(bound) if re.fullmatch(r"[+-]?\d+", bound) else float(bound)
        if isinstance(bound, bool) or math.isnan(bound):
            raise ValueError("no number")
        if math.isinf(bound):
            return None
        exact = Fraction(bound.__index__() if hasattr(bound, "__index__") else bound)  # numpy's integers too
    except (TypeError, ValueError, OverflowError) as error:
        raise _unreadable(what, f"{bound!r} is no number") from error
    return exact.numerator if exact.denominator == 1 else exact


def _checked(values: Values, what: str) -> Values:
    if values.is_empty:
        raise InputError(f"no number lies in the range of {what}; its end is not part of it", Input.PRECONDITION)
    return values


def apply(module: Module, given: Sequence[Precondition]) -> Module:
    """The module under these preconditions as well.

    Raises `InputError` for one that matches no argument, or that no input satisfies.
    """
    found = list(assumed(module))
    for precondition in given:
        positions = [n for n, name in enumerate(module.argument_names) if precondition.matches(name)]
        if not positions:
            raise InputError(_no_such(precondition, module.argument_names), Input.PRECONDITION)
        for n in positions:
            own = _of_argument(precondition, module.argument_names[n], module.main.argument_types[n])
            before = found[n]
            found[n] = both = own if before is None else before.both(own)
            if both.is_empty:
                raise InputError(
                    f"no input satisfies all that is assumed of argument {module.argument_names[n]}", Input.PRECONDITION
                )
    return replace(module, assumed=tuple(found)) if any(found) else module


def _of_argument(precondition: Precondition, name: str, type_: TensorType) -> Values:
    dtype = type_.dtype
    if not (is_float(dtype) or (dtype in INTEGER_RANGES and dtype != "i1")):
        raise InputError(
            f"{precondition}: argument {name} is {type_}, whose elements are in no order", Input.PRECONDITION
        )
    values = precondition.values.of_type(dtype)
    if values.is_empty:
        raise InputError(f"{precondition}: no number of argument {name}, {type_}, lies there", Input.PRECONDITION)
    return values


def _no_such(precondition: Precondition, names: Sequence[str]) -> str:
    paths = [path_of(name) for name in names]
    asked = path_of(precondition.argument)
    alike = get_close_matches(asked, paths) or [path for path in paths if asked in path.split("/")][:3]
    hint = (
        f"did you mean {' or '.join(alike)}?" if alike else f"they are {', '.join(paths[:8])}" + " …" * (len(paths) > 8)
    )
    return f"assumed: {precondition}: there is no such argument; {hint}"


def assumed(module: Module) -> tuple[Values | None, ...]:
    """What is assumed of each argument."""
    return module.assumed or (None,) * len(module.argument_names)


def said(module: Module) -> tuple[str, ...]:
    """The preconditions of a module in words, those of many arguments once."""
    together: dict[Values, list[str]] = {}
    for name, values in zip(module.argument_names, assumed(module), strict=True):
        if values is not None:
            together.setdefault(values, []).append(name)
    return tuple(
        f"{', '.join(names[:SHOWN])}{f' and {len(names) - SHOWN} more' if len(names) > SHOWN else ''} {values}"
        for values, names in together.items()
    )


def like(module: Module, other: Module) -> Module:
    """A module that takes the other one's arguments, under its preconditions."""
    types, others = module.main.argument_types, other.main.argument_types
    if not other.assumed or [t.shape for t in types] != [t.shape for t in others]:
        return module
    same = (values if a.dtype == b.dtype else None for a, b, values in zip(types, others, other.assumed, strict=True))
    return replace(module, assumed=tuple(same))


def of_both(given: Sequence[Precondition], module: Module, reference: Module | None) -> tuple[Module, Module | None]:
    """A module and the one that it is to compute, if that is another, under what is said of the latter."""
    if reference is None:
        return apply(module, given), None
    reference = apply(reference, given)
    return like(module, reference), reference
