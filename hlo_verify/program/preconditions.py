"""Preconditions: what a user says of the values of arguments. `tokens in [0, 32000)`.

They are about the arguments of the logical module. A device's shard holds some of the same values, so that both modules
are looked at under them; what lies past the end of a shard is arbitrary as ever.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, TypeAlias

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.program.allowed_values import Number, Values
from hlo_verify.program.element_types import INTEGER_RANGES, is_float
from hlo_verify.program.ir import Module, TensorType

FORMS = (
    "write 'NAME in [LOW, HIGH)', or 'NAME is' and positive, nonnegative, sorted, distinct, a permutation, or a "
    "multiple of 8; 'and' joins several"
)
"""How a precondition is written."""

_OF_MANY = f"{FORMS}, or give a mapping from arguments to values"

SHOWN = 6
"""Arguments of one precondition that a report names."""


Assumed: TypeAlias = "Mapping[str, Any] | Sequence[str | Precondition] | str"
"""Preconditions as they are given: a table from arguments to values, or texts."""

KNOWN = {
    "positive": Values(0, None, (True, False)),
    "nonnegative": Values(0),
    "sorted": Values(ascending=True),
    "distinct": Values(distinct=True),
    "permutation": Values(permutation=True),
    "a permutation": Values(permutation=True),
}
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
    found = re.fullmatch(r"\s*(\S.*?)\s+((?:in\s+[\[(]|is\s+\w).*?)\s*", text)
    if found is None:
        raise _unreadable(text, FORMS)
    return Precondition(found[1], _joined(found[2], text))


def read(given: Assumed | None) -> tuple[Precondition, ...]:
    """Preconditions as Python, TOML or a command line has them: a table from arguments to values, or texts.

    Values are a pair (low, high) of which the second is no value any more, `range(low, high)`, a word such as
    `"positive"` or `"sorted"`, `{"multiple_of": 8}`, the text of an interval, or a list of several of these. Raises
    `InputError` for what is none.
    """
    if isinstance(given, str):
        return (parse(given),)
    if given is None:
        return ()
    if not isinstance(given, Iterable):
        raise _unreadable(repr(given), _OF_MANY)
    if not isinstance(given, Mapping):
        return tuple(each if isinstance(each, Precondition) else _parsed(each) for each in given)
    return tuple(Precondition(str(name), _values(said, f"{name}: {said!r}")) for name, said in given.items())


def _parsed(each: object) -> Precondition:
    if isinstance(each, str):
        return parse(each)
    raise _unreadable(repr(each), _OF_MANY)


def _unreadable(what: str, advice: str) -> InputError:
    return InputError(f"not a precondition: {what}; {advice}", Input.PRECONDITION)


def _values(said: Any, what: str) -> Values:
    if isinstance(said, Values):
        return said
    if isinstance(said, str):
        return _joined(said, what)
    if isinstance(said, Mapping):
        return _all_of([_keyed(str(key), value, what) for key, value in said.items()], what)
    if isinstance(said, tuple | list) and any(isinstance(each, tuple | list | Mapping | range) for each in said):
        return _all_of([_values(each, what) for each in said], what)
    if isinstance(said, tuple | list) and any(isinstance(each, str) and each in KNOWN for each in said):
        return _all_of([_values(each, what) for each in said], what)
    if isinstance(said, range):
        if said.step != 1:
            raise _unreadable(what, "a range has step 1")
        said = (said.start, said.stop)
    if isinstance(said, tuple | list) and len(said) == 2:
        least, greatest = (_number(bound, what) for bound in said)
        return _checked(Values(least, greatest, (False, greatest is not None)), what)
    raise _unreadable(
        what,
        "values are a pair (low, high), 'positive', 'sorted', 'permutation', {'multiple_of': 8} or a list of these",
    )


def _joined(text: str, what: str) -> Values:
    return _all_of([_written(each, what) for each in re.split(r"\s+and\s+", text.strip())], what)


def _all_of(parts: Sequence[Values], what: str) -> Values:
    found = Values()
    for part in parts:
        found = found.both(part)
    return _checked(found, what)


def _keyed(key: str, said: Any, what: str) -> Values:
    """What an entry of a table says: `range = [0, 64]`, `multiple_of = 8`, `sorted = true`."""
    if key == "range":
        return _values(said, what)
    if key == "multiple_of":
        if not isinstance(said, int) or isinstance(said, bool) or said < 1:
            raise _unreadable(what, f"elements are multiples of a positive integer, not of {said!r}")
        return Values(multiple=said)
    if key not in KNOWN or said is not True:
        raise _unreadable(what, f"a table has range, multiple_of, or {', '.join(KNOWN)} = true; not {key} = {said!r}")
    return KNOWN[key]


def _written(text: str, what: str) -> Values:
    found = re.fullmatch(r"\s*(?:in\s+)?([\[(])\s*([^,\s]+)\s*,\s*([^,\s]+)\s*([\])])\s*", text)
    if found is None:
        word = " ".join(text.split()).removeprefix("is ")
        multiple = re.fullmatch(r"(?:a )?multiple of (0*[1-9]\d*)", word)
        if multiple is not None:
            return Values(multiple=int(multiple[1]))
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
            type_ = module.main.argument_types[n]
            found[n] = both = own if before is None else before.both(own).of_type(type_.dtype)
            if both.is_empty or not both.has_enough(type_.shape[-1] if type_.shape else 0, type_.dtype):
                raise InputError(
                    f"no input satisfies all that is assumed of argument {module.argument_names[n]}", Input.PRECONDITION
                )
    return replace(module, assumed=tuple(found)) if any(found) else module


def _of_argument(precondition: Precondition, name: str, type_: TensorType) -> Values:
    dtype = type_.dtype
    values = precondition.values
    if values.says_more and is_float(dtype) and (values.multiple != 1 or values.permutation):
        raise InputError(f"{precondition}: argument {name} is {type_}; only integers are that", Input.PRECONDITION)
    if not type_.shape and (values.ascending or values.distinct or values.permutation):
        raise InputError(
            f"{precondition}: argument {name} is one number; that is said of elements along a last dimension",
            Input.PRECONDITION,
        )
    if not (is_float(dtype) or (dtype in INTEGER_RANGES and dtype != "i1")):
        raise InputError(
            f"{precondition}: argument {name} is {type_}, whose elements are in no order", Input.PRECONDITION
        )
    values = values.of_dimension(type_.shape[-1] if type_.shape else None).of_type(dtype)
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


def hardly_used(module: Module) -> tuple[str, ...]:
    """What to say of preconditions that a proof uses in some places alone, where nothing was proved."""
    names = [
        name for name, values in zip(module.argument_names, assumed(module), strict=True) if values and values.says_more
    ]
    if not names:
        return ()
    shown = ", ".join(names[:SHOWN]) + " …" * (len(names) > SHOWN)
    return (
        f"of what is said of {shown}, the order and divisors enter proofs in the places alone that "
        "docs/decisions/preconditions.md names; elsewhere they keep the search for witnesses to such inputs",
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
