"""Where a number is left of what infinities mask, and what is asked of an infinity.

    [max a. (m[a] ? x[a] : -inf) > -inf]  =  any a. m[a]        is_finite(m ? x : inf)  =  m

Segments without elements have a maximum of minus infinity, which people ask in place of a count. What is computed may
be too large for its type, which such a question may be about: the answer is that of real numbers for elements of
arguments, which are finite, and where a choice takes the number itself (`isfinite(y) ? y : 0`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hlo_verify.equality import opening
from hlo_verify.limits import allows
from hlo_verify.program.element_types import COMPARED, DTYPES, finfo, is_float
from hlo_verify.terms import algebra, extrema
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.functions import ABS, INFINITY, IS_FINITE
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import ONE, ZERO, Apply, Number, Poly, Read, Tensor

MASKS = {"max": -1, "min": 1}
"""The sign of the infinity that an extremum is over where all elements are masked."""


def where_number(p: Poly, dtype: str, computed: bool = False) -> tuple[Poly, int] | None:
    """Where a term is a finite number, and the sign of the infinity that it is anywhere else; None of other terms, and
    of computed numbers unless these are asked for. The type is the one that holds least on the way to the question."""
    plain = opening.with_infinities(p)
    if plain is None:
        return None
    atom = plain.atom
    if isinstance(atom, Apply) and atom.function == ABS:
        found = where_number(atom.args[0], dtype, computed)
        return None if found is None else (found[0], 1)
    if isinstance(atom, Read) and atom.tensor.kind in MASKS:
        bound, (body,) = unfold(atom)
        element, sign = opening.with_infinities(body), MASKS[atom.tensor.kind]
        is_number = None if element is None else _where_number(element, sign, dtype, computed)
        return None if is_number is None else (extrema.reduce_boolean("or", bound, is_number), sign)
    for sign in (-1, 1):
        is_number = _where_number(plain, sign, dtype, computed)
        if is_number is not None:
            return is_number, sign
    return None


def _where_number(p: Poly, sign: int, dtype: str, computed: bool) -> Poly | None:
    """Where a choice between numbers and an infinity of a sign is a number."""
    infinity = apply(INFINITY, ()).atom
    assert infinity is not None
    infinite = {mono: c for mono, c in p.items if (infinity, 1) in mono}
    numbers = algebra.build({mono: c for mono, c in p.items if mono not in infinite})
    chosen = {tuple(item for item in mono if item[0] is not infinity): sign * c for mono, c in infinite.items()}
    are_conditions = all(atom.boolean for mono in chosen for atom, _ in mono)
    if not infinite or numbers.doubt or not are_conditions or not (computed or _is_of_argument(numbers, dtype)):
        return None
    is_infinite = algebra.build(chosen)
    return algebra.logical_not(is_infinite) if _is_truth(is_infinite) else None


def _is_truth(p: Poly) -> bool:
    """Whether a sum of conditions is 0 or 1 in each case."""
    return allows("expanded_terms", len(p.items) ** 2) and algebra.multiply(p, p) is p


def _is_of_argument(p: Poly, dtype: str) -> bool:
    """Whether a term is one element of an argument, or 0 where conditions do not hold, whose type has no number that is
    too large for a type on the way to where it is asked: a conversion leaves no mark in a term."""
    of = {atom for mono, _ in p.items for atom, _ in mono if not atom.boolean}
    if len(of) > 1 or not all(isinstance(atom, Read) and _is_held(atom.tensor, dtype) for atom in of):
        return False
    held = {tuple(item for item in mono if item[0].boolean): c for mono, c in p.items}
    powers = {n for mono, _ in p.items for atom, n in mono if not atom.boolean}
    return len(held) == len(p.items) and powers <= {1} and _is_truth(algebra.build(held))


def _is_held(argument: Tensor, dtype: str) -> bool:
    if argument.kind != "argument" or not is_float(argument.dtype) or dtype not in DTYPES:
        return False
    return float(finfo(argument.dtype).max) <= float(finfo(dtype).max)


def compared(direction: str, a: Poly, b: Poly, dtype: str, known: Sequence[Number | float | None]) -> Poly | None:
    """A comparison of what infinities mask with an infinity; None where it is none. Some of the two are known."""
    for n, p in ((0, b), (1, a)):
        most = known[n]
        found = where_number(p, dtype) if most is not None and math.isinf(most) else None
        if found is None:
            continue
        is_number, sign = found
        pairs = ((most, each) if n == 0 else (each, most) for each in (0.0, sign * math.inf))
        if_number, otherwise = (COMPARED[direction](*pair) for pair in pairs)
        return algebra.select(is_number, ONE if if_number else ZERO, ONE if otherwise else ZERO)
    return None


def chosen_number(condition: Poly, a: Poly, b: Poly) -> Poly | None:
    """`isfinite(y) ? y : b` for a y that infinities mask."""
    for asked, number, otherwise in ((condition, a, b), (algebra.logical_not(condition), b, a)):
        atom = asked.atom
        if isinstance(atom, Apply) and atom.function == IS_FINITE and atom.args[0] is number:
            found = where_number(number, "f64", computed=True)
            return None if found is None else algebra.select(found[0], number, otherwise)
    return None
