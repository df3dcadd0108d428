"""Where a number is left of what infinities mask, and what is asked of an infinity.

    [max a. (m[a] ? x[a] : -inf) > -inf]  =  any a. m[a]        is_finite(m ? x : inf)  =  m

Segments without elements have a maximum of minus infinity, which people ask in place of a count. What is computed may
be too large for its type, which such a question may be about: the answer is that of real numbers for elements of
arguments, which are finite, and where a choice takes the number itself (`isfinite(y) ? y : 0`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from hlo_verify.equality.where_numbers import is_truth, where_number
from hlo_verify.program.element_types import COMPARED, DTYPES, finfo, is_float
from hlo_verify.terms import algebra
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.functions import ABS, EQUAL, INFINITY, IS_FINITE, IS_ZERO, LESS_OR_EQUAL, POSITIVE, Function
from hlo_verify.terms.term import ONE, ZERO, Apply, Monomial, Number, Poly, Read, Tensor

ASKING: Mapping[Function, Callable[..., bool]] = {
    IS_FINITE: math.isfinite,
    EQUAL: operator.eq,
    LESS_OR_EQUAL: operator.le,
    IS_ZERO: lambda x: x == 0,
    POSITIVE: lambda x: x > 0,
}
"""Questions by which a choice tells an infinity from a number."""


def is_of_argument(p: Poly, dtype: str) -> bool:
    """Whether a term is one element of an argument, or 0 where conditions do not hold, whose type has no number that is
    too large for a type on the way to where it is asked: a conversion leaves no mark in a term."""
    of = {atom for mono, _ in p.items for atom, _ in mono if not atom.boolean}
    if len(of) > 1 or not all(isinstance(atom, Read) and _is_held(atom.tensor, dtype) for atom in of):
        return False
    held = {tuple(item for item in mono if item[0].boolean): c for mono, c in p.items}
    powers = {n for mono, _ in p.items for atom, n in mono if not atom.boolean}
    return len(held) == len(p.items) and powers <= {1} and is_truth(algebra.build(held))


def _is_held(argument: Tensor, dtype: str) -> bool:
    if argument.kind != "argument" or not is_float(argument.dtype) or dtype not in DTYPES:
        return False
    return float(finfo(argument.dtype).max) <= float(finfo(dtype).max)


def compared(direction: str, a: Poly, b: Poly, dtype: str, known: Sequence[Number | float | None]) -> Poly | None:
    """A comparison of what infinities mask with an infinity; None where it is none. Some of the two are known."""
    for n, p in ((0, b), (1, a)):
        most = known[n]
        found = where_number(p, partial(is_of_argument, dtype=dtype)) if most is not None and math.isinf(most) else None
        if found is None:
            continue
        is_number, sign = found
        pairs = ((most, each) if n == 0 else (each, most) for each in (0.0, sign * math.inf))
        if_number, otherwise = (COMPARED[direction](*pair) for pair in pairs)
        return algebra.select(is_number, ONE if if_number else ZERO, ONE if otherwise else ZERO)
    return None


def chosen_number(condition: Poly, a: Poly, b: Poly) -> Poly | None:
    """`isfinite(y) ? y : b` for a y that infinities mask, and `y == -inf ? b : y`, however a condition asks that."""
    for asked, number, otherwise in ((condition, a, b), (algebra.logical_not(condition), b, a)):
        atom = asked.atom or algebra.logical_not(asked).atom
        if not isinstance(atom, Apply) or atom.function not in ASKING or not number.doubt & INFINITE:
            continue
        found = where_number(number)
        if found is None:
            continue
        is_number, sign = found
        holds = [_holds(atom, number, there) for there in (0.0, sign * math.inf)]
        if asked.atom is None:
            holds = [None if each is None else not each for each in holds]
        if holds == [True, False]:
            return algebra.select(is_number, number, otherwise)
    return None


def _holds(asked: Apply, number: Poly, is_: float) -> bool | None:
    """What a question about a term, which compares it with an infinity, says where that is as large as given: a finite
    number, whichever, or an infinity; None of other questions."""
    if asked.function == IS_FINITE:
        return ASKING[IS_FINITE](is_) if asked.args[0] is number else None
    if asked.function in (EQUAL, LESS_OR_EQUAL):
        sizes = [_size(p, number, is_) for p in asked.args]
        bounds = [_infinity(p) for p in asked.args]
        return _compared(asked.function, sizes, bounds)
    for sign in (1, -1):
        beyond = _infinity(algebra.build(_less(asked.args[0], algebra.scale(number, sign))))
        if beyond is not None:
            return ASKING[asked.function](sign * is_ + beyond)
    return None


def _compared(asked: Function, sizes: Sequence[float | None], bounds: Sequence[float | None]) -> bool | None:
    """What a comparison says of the size of a term on one side, and an infinity on the other."""
    for n, size in enumerate(sizes):
        bound = bounds[1 - n]
        if size is not None and bound is not None:
            return ASKING[asked](*((size, bound) if n == 0 else (bound, size)))
    return None


def _size(p: Poly, number: Poly, is_: float) -> float | None:
    """How large another term is, or its absolute value; None of others."""
    if p is number:
        return is_
    atom = p.atom
    return abs(is_) if isinstance(atom, Apply) and atom.function == ABS and atom.args[0] is number else None


def _infinity(p: Poly) -> float | None:
    """The infinity that a term is; None of others."""
    known = known_number(p)
    return None if known is None or not math.isinf(known) else float(known)


def _less(p: Poly, other: Poly) -> dict[Monomial, Number]:
    """The addends of a term but for those of another one, if all of these are among them."""
    left = dict(p.items)
    return {} if any(left.pop(mono, None) != c for mono, c in other.items) else left


def known_number(p: Poly) -> Number | float | None:
    """A number that a program writes, or an infinity."""
    atom, c = algebra.multiple_of_one(p)
    return math.copysign(math.inf, c) if isinstance(atom, Apply) and atom.function == INFINITY else p.constant
