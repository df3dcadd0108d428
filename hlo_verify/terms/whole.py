"""Numbers that are whole and lie between bounds: what is rounded of what is no greater than a maximum.

    -127 <= round(127 * x[i] / max v. |x[v]|) <= 127          clip(round(t), 0, 255)

So a quantised number is the same as an integer of 8 bits and as a float. What divides by 0 has no value; otherwise
nothing here may be no number, of which an integer could be made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from math import ceil, floor

from hlo_verify.memory import once_a_session
from hlo_verify.program.allowed_values import Values
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms import signs
from hlo_verify.terms.assumed_bounds import of_sum
from hlo_verify.terms.conditions import numbers_of
from hlo_verify.terms.counts import range_of_count
from hlo_verify.terms.functions import INVERSE, MAXIMUM, MINIMUM, Function, real
from hlo_verify.terms.rounding_laws import ROUNDED
from hlo_verify.terms.roundings import off_by_rounding
from hlo_verify.terms.shares import share
from hlo_verify.terms.term import Apply, Atom, Ix, Monomial, Poly, of_atom
from hlo_verify.terms.used import used

Ends = tuple[Fraction | None, Fraction | None]
"""The least and the greatest of some numbers; None where there may be none."""

FLOOR = real("floor")
ROUNDING = {real(name): rule for name, rule in ROUNDED.items()}
WITHIN_ONE = frozenset(map(real, ("tanh", "erf", "sine", "cosine")))
"""Functions whose values lie between -1 and 1."""


def range_of(p: Poly) -> tuple[int, int] | None:
    """The least and the greatest whole number that a term may be; None where it may be none, or others."""
    least, greatest = ends(p) if is_whole(p) else (None, None)
    if least is None or greatest is None:
        return None
    return ceil(least), floor(greatest)


def range_of_whole(atom: Apply) -> tuple[int, int] | None:
    """The least and the greatest of a function that surely is a whole number."""
    return None if atom.doubt else range_of(of_atom(atom))


def bounds_of_number(p: Poly) -> Ends:
    """The least and the greatest that a term may be, of one that is a number but where it divides by 0."""
    return ends(p) if _only_divides(p) else (None, None)


@once_a_session
def is_whole(p: Poly) -> bool:
    """Whether a term is a whole number where it is one at all, and is none at most where it divides by 0."""
    return all(
        isinstance(c, int) and all(isinstance(n, int) and n > 0 and _is_whole(atom) for atom, n in mono)
        for mono, c in p.items
    )


def _is_whole(atom: Atom) -> bool:
    if atom.boolean or isinstance(atom, Ix):
        return not atom.doubt
    if isinstance(atom, Apply):
        if atom.function in ROUNDING:
            return _only_divides(atom.args[0])
        if atom.function in (MAXIMUM, MINIMUM):
            return all(map(is_whole, atom.args))
        return atom.function.name == "truncate"
    return range_of_count(atom) is not None


@once_a_session
def _only_divides(p: Poly) -> bool:
    """Whether a term is a number but where it divides by 0, or by what does."""
    return all(not atom.doubt or _is_quotient(atom) for mono, _ in p.items for atom, _ in mono)


def _is_quotient(atom: Atom) -> bool:
    if not isinstance(atom, Apply):
        return False
    return atom.function in {INVERSE, MAXIMUM, MINIMUM} | ROUNDING.keys() and all(map(_only_divides, atom.args))


@once_a_session
def ends(p: Poly) -> Ends:
    """Bounds of a term where it is a number."""
    return _added(tuple(_scaled(_of_product(mono), Fraction(c)) for mono, c in p.items))


def _added(parts: Iterable[Ends]) -> Ends:
    low: Fraction | None = Fraction(0)
    high: Fraction | None = Fraction(0)
    for least, greatest in parts:
        low = None if low is None or least is None else low + least
        high = None if high is None or greatest is None else high + greatest
    return low, high


def _scaled(found: Ends, c: Fraction) -> Ends:
    low, high = (None if end is None else c * end for end in found)
    return (low, high) if c > 0 else (high, low)


def _of_product(mono: Monomial) -> Ends:
    numbers = numbers_of(mono)
    found = _of_numbers(numbers)
    if len(numbers) == len(mono):
        return found
    low, high = found  # times a truth value
    return None if low is None else min(low, Fraction(0)), None if high is None else max(high, Fraction(0))


def _of_numbers(numbers: Monomial) -> Ends:
    if not numbers:
        return Fraction(1), Fraction(1)
    if len(numbers) == 1 and numbers[0][1] == 1:
        return _of_atom(numbers[0][0])
    if len(numbers) == 2 and all(n == 1 for _, n in numbers):
        for (part, _), (other, _) in (numbers, numbers[::-1]):
            found = _times(part, other)
            if found is not None:
                return found
    return None, None


def _times(part: Atom, other: Atom) -> Ends | None:
    """Bounds of a product that is a quotient by what the dividend is a share of."""
    if not isinstance(other, Apply) or other.function != INVERSE:
        return None
    most = share(part, other.args[0])
    if most is None:
        return None
    is_unsigned = not (signs.of_atom(part) | signs.of(other.args[0])) & signs.NEGATIVE
    return Fraction(0) if is_unsigned else -most, most


@once_a_session
def _of_atom(atom: Atom) -> Ends:
    if isinstance(atom, Ix):
        return Fraction(atom.index.lo), Fraction(atom.index.hi)
    if not isinstance(atom, Apply):
        count = range_of_count(atom)
        return (None, None) if count is None else (Fraction(count[0]), Fraction(count[1]))
    if atom.function == FLOOR and (known := of_sum(atom.args[0])) is not None:
        return _whole_below(known)
    parts = [ends(arg) for arg in atom.args]
    if atom.function in ROUNDING:
        rule, (low, high) = partial(_rounded, ROUNDING[atom.function], is_computed=_divides(atom.args[0])), parts[0]
        return None if low is None else rule(low)[0], None if high is None else rule(high)[1]
    if atom.function in (MAXIMUM, MINIMUM):
        return _of_extremum(atom.function, parts)
    if atom.function in WITHIN_ONE:
        return Fraction(-1), Fraction(1)
    if atom.function.name == "truncate":
        least, greatest = INTEGER_RANGES[atom.function.gives]
        return Fraction(least), Fraction(greatest)
    return None, None


def _whole_below(values: Values) -> Ends:
    """The least and the greatest of what numbers are rounded down to."""
    least, greatest = values.least, values.greatest
    is_excluded = values.excluded[1] and greatest is not None and floor(greatest) == greatest
    high = None if greatest is None else _rounded(floor, greatest)[1] - is_excluded
    return None if least is None else _rounded(floor, least)[0], high


def _divides(p: Poly) -> bool:
    """Whether a term has quotients: `x / (max|x| / 127)` is at most 127, and a float above that."""
    return any(isinstance(a, Apply) and a.function == INVERSE for mono, _ in p.items for a, _ in mono)


def _rounded(
    function: Callable[[Fraction], int], end: int | Fraction, *, is_computed: bool = False
) -> tuple[Fraction, Fraction]:
    """The least and the greatest whole number that a number is rounded to, by floats too."""
    off = off_by_rounding(end, is_computed=is_computed)
    found = [Fraction(function(Fraction(end) + each)) for each in (-off, 0, off)]
    return min(found), max(found)


def _of_extremum(function: Function, parts: list[Ends]) -> Ends:
    pick = max if function == MAXIMUM else min
    known = [[end for end in each if end is not None] for each in zip(*parts, strict=True)]
    one = 0 if function == MAXIMUM else 1  # the end for which one part is enough
    return tuple(  # type: ignore[return-value]
        pick(each) if each and (n == one or len(each) == len(parts)) else None for n, each in enumerate(known)
    )


def truncated(function: Function, args: tuple[Poly, ...]) -> Poly | None:
    """The integer that a number is converted to, where it is one that the type has; of what is never negative, what it
    is rounded down to."""
    if function.name != "truncate":
        return None
    if _is_within(args[0], function.gives):
        used("integer of what is rounded")
        return args[0]
    if signs.of(args[0]) & ~(signs.ZERO | signs.POSITIVE) or not _only_divides(args[0]):
        return None
    from hlo_verify.terms.laws import apply  # the table that this is a law of

    below = apply(FLOOR, args)
    if not _is_within(below, function.gives):
        return None
    used("integer of what is not negative")
    return below


def _is_within(p: Poly, dtype: str) -> bool:
    """Whether a term is a whole number that an integer type has."""
    found, (lo, hi) = range_of(p), INTEGER_RANGES[dtype]
    return found is not None and lo <= found[0] and found[1] <= hi
