"""What conditions ask of extrema, of places too, of sizes and logarithms, asked of what these are of.

    [u < minimum(1, p/q)]  =  [u < 1] [u < p/q]
    [abs(x) < c]  =  [x < c] [-c < x]
    [log(u) < d]  =  [u < exp(d)]
    [min v. (v where m(v), else 16) >= n]  =  not any v. m(v) [v < n]

Terms keep a condition as a program asks it, since operations on what is compared are recognised by that (`a > b ? a :
b`); here, where two terms are compared, it is taken apart. An extremum may stand in a sum, beside positive factors, and
in an exponential: what grows with it is positive where all, or one, of what it is of makes it so.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod
from typing import TypeGuard

from hlo_verify.limits import allows, limit_of
from hlo_verify.terms import algebra, extreme_places, signs
from hlo_verify.terms.functions import ABS, EXPONENTIAL, LOG, MAXIMUM, MINIMUM, POSITIVE
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import ONE, Apply, Atom, Guard, Monomial, Poly, atoms, make_poly


def taken_apart(p: Poly) -> Poly:
    """The term with each condition on its surface taken apart that can be; itself where that gives too much."""
    return _apart(p, [limit_of("told_apart")])


def _apart(p: Poly, left: list[int]) -> Poly:
    """The same, of so many conditions that are left to be taken apart, those that this gives among them."""
    conditions = dict.fromkeys(atom for mono, _ in p.items for atom, _ in mono if _is_condition(atom))
    found = {atom: image for atom in conditions if (image := _image(atom, left)) is not None}
    sizes = (prod(len(found[atom].items) for atom, _ in mono if atom in found) for mono, _ in p.items)
    if not found or not allows("expanded_products", sum(sizes)):
        return p
    return algebra.with_atoms(p, found.get)


def _is_condition(atom: Atom) -> TypeGuard[Apply | Guard]:
    return isinstance(atom, Guard) or (isinstance(atom, Apply) and atom.function == POSITIVE)


def _image(atom: Atom, left: list[int]) -> Poly | None:
    if not _is_condition(atom) or left[0] <= 0:
        return None
    found = extreme_places.asked_of_places(atom) if isinstance(atom, Guard) else _of_number(atom.args[0])
    if found is None:
        return None
    left[0] -= 1
    return _apart(found, left)


def _of_number(q: Poly) -> Poly | None:
    """`[q > 0]` taken apart."""
    if not allows("question_terms", len(q.items)) or not allows("expanded_products", _ways(q)):
        return None
    found = _of_extremum(q)
    return _of_logarithm(q) if found is None else found


# Extrema


def _ways(q: Poly) -> int:
    """How many conditions ask of a term, once each of its extrema is taken apart."""
    found = dict.fromkeys(atom for mono, _ in q.items for atom, _ in mono)
    return prod(len(extremum[1]) for atom in found if (extremum := _extremum(atom)) is not None)


def _of_extremum(q: Poly) -> Poly | None:
    """`[k*f(maximum(a, b)) + c > 0]` as `[k*f(a) + c > 0] or [k*f(b) + c > 0]`, where f grows and k is positive; of the
    least, and of an opposite, as both."""
    for n, (mono, c) in enumerate(q.items):
        for each, (atom, power) in enumerate(mono):
            found = _extremum(atom) if power == 1 else None
            if found is None:
                continue
            rest = make_poly(q.items[:n] + q.items[n + 1 :])
            beside = make_poly(((mono[:each] + mono[each + 1 :], c),))
            if not _is_plain_positive(beside.items[0][0]) or _occurs(found[0], rest, beside):
                continue
            _, parts, is_greatest = found
            if not allows("expanded_terms", len(parts)):
                continue
            is_any = is_greatest == (c > 0)
            asked = [algebra.add(algebra.multiply(beside, part), rest) for part in parts]
            if not _are_none_alike(asked, (rest, *parts), is_any):
                continue
            held = [apply(POSITIVE, (p,)) for p in asked]
            if not is_any:
                return reduce(algebra.multiply, held, ONE)
            none = reduce(algebra.multiply, (algebra.subtract(ONE, p) for p in held), ONE)
            return algebra.subtract(ONE, none)
    return None


def _extremum(atom: Atom) -> tuple[Apply, list[Poly], bool] | None:
    """The extremum that an atom is, or an exponential grows with, what the atom is for each that this is of, and
    whether it is the greatest of these."""
    if not isinstance(atom, Apply):
        return None
    if atom.function in (MAXIMUM, MINIMUM):
        return atom, list(atom.args), atom.function == MAXIMUM
    if atom.function == ABS:
        return atom, [atom.args[0], algebra.scale(atom.args[0], -1)], True
    if atom.function != EXPONENTIAL:
        return None
    exponent = atom.args[0]
    for n, (mono, c) in enumerate(exponent.items):
        found = _extremum(mono[0][0]) if len(mono) == 1 and mono[0][1] == 1 else None
        rest = make_poly(exponent.items[:n] + exponent.items[n + 1 :])
        if found is not None and not _occurs(found[0], rest):
            parts = [apply(EXPONENTIAL, (algebra.add(algebra.scale(part, c), rest),)) for part in found[1]]
            return found[0], parts, found[2] == (c > 0)
    return None


def _is_plain_positive(mono: Monomial) -> bool:
    return all(not atom.doubt and signs.of_product(((atom, n),)) == signs.POSITIVE for atom, n in mono)


def _occurs(atom: Atom, *terms: Poly) -> bool:
    return any(atom in atoms(p) for p in terms)


def _are_none_alike(asked: Sequence[Poly], of: Sequence[Poly], is_any: bool) -> bool:
    """Whether what is asked is no number where the whole is none, and so does not hold there either."""
    unknown = _unknown(of)
    return all(unknown <= _unknown((p,)) for p in asked) if is_any else unknown <= _unknown(asked)


def _unknown(terms: Sequence[Poly]) -> set[Atom]:
    return {atom for p in terms for atom in atoms(p) if atom.doubt}


# Logarithms


def _of_logarithm(q: Poly) -> Poly | None:
    """`[c - n*log(a) > 0]` as `[exp(c) - a**n > 0]`, and the opposite, where a is not negative; at 0 too, where the
    logarithm is minus infinity."""
    for n, (mono, c) in enumerate(q.items):
        (atom, power), *others = mono or ((None, 0),)
        if others or power != 1 or not isinstance(atom, Apply) or atom.function != LOG or not isinstance(c, int):
            continue
        a, rest = atom.args[0], make_poly(q.items[:n] + q.items[n + 1 :])
        if (
            a.doubt
            or rest.doubt
            or signs.of(a) & ~(signs.ZERO | signs.POSITIVE)
            or not allows("expanded_power", abs(c))
        ):
            continue
        other = apply(EXPONENTIAL, (rest if c < 0 else algebra.scale(rest, -1),))
        own = algebra.power_of(a, abs(c))
        return apply(POSITIVE, (algebra.subtract(other, own) if c < 0 else algebra.subtract(own, other),))
    return None
