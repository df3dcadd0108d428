"""Where what infinities mask is a number.

m ? x : inf    where m        max a. (m[a] ? x[a] : -inf)    where m[a] for any a
"""

from __future__ import annotations

from collections.abc import Callable

from hlo_verify.equality import opening
from hlo_verify.limits import allows
from hlo_verify.terms import algebra, extrema
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.functions import ABS, INFINITY
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Apply, Monomial, Number, Poly, Read, of_atom

MASKS = {"max": -1, "min": 1}
"""The sign of the infinity that an extremum is over where all elements are masked."""


def where_number(p: Poly, is_taken: Callable[[Poly], bool] = lambda _: True) -> tuple[Poly, int] | None:
    """Where a term is a finite number, and the sign of the infinity that it is anywhere else; None of other terms, and
    where what it is but for infinities is not taken for a number."""
    plain = opening.with_infinities(p)
    if plain is None:
        return None
    atom = plain.atom
    if isinstance(atom, Apply) and atom.function == ABS:
        found = where_number(atom.args[0], is_taken)
        return None if found is None else (found[0], 1)
    of, k = algebra.multiple_of_one(plain)
    if atom is None and of is not None:
        found = where_number(of_atom(of), is_taken) if is_taken(plain) else None
        return None if found is None else (found[0], found[1] if k > 0 else -found[1])
    if isinstance(atom, Read) and atom.tensor.kind in MASKS:
        bound, (body,) = unfold(atom)
        element, sign = opening.with_infinities(body), MASKS[atom.tensor.kind]
        is_number = None if element is None else _where_number(element, sign, is_taken)
        return None if is_number is None else (extrema.reduce_boolean("or", bound, is_number), sign)
    for sign in (-1, 1):
        is_number = _where_number(plain, sign, is_taken)
        if is_number is not None:
            return is_number, sign
    return None


def _where_number(p: Poly, sign: int, is_taken: Callable[[Poly], bool]) -> Poly | None:
    """Where a choice between numbers and an infinity of a sign is a number."""
    infinity = apply(INFINITY, ()).atom
    assert infinity is not None
    infinite = {mono: c for mono, c in p.items if (infinity, 1) in mono}
    numbers = algebra.build({mono: c for mono, c in p.items if mono not in infinite})
    chosen: dict[Monomial, Number] = {}
    for mono, c in infinite.items():  # of which 2*inf is one too
        chosen[tuple(item for item in mono if item[0] is not infinity)] = sign if c > 0 else -sign
    is_one_size = len({*map(abs, infinite.values())}) == 1
    are_conditions = is_one_size and all(atom.boolean for mono in chosen for atom, _ in mono)
    if numbers.doubt or not are_conditions or not is_taken(numbers):
        return None
    is_infinite = algebra.build(chosen)
    return algebra.logical_not(is_infinite) if is_truth(is_infinite) else None


def is_truth(p: Poly) -> bool:
    """Whether a sum of conditions is 0 or 1 in each case."""
    return allows("expanded_terms", len(p.items) ** 2) and algebra.multiply(p, p) is p
