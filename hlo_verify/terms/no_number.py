"""NaN that a program writes: what is made of it is NaN as well.

[p] nan + f           is  [p] nan + [not p] f
([p] nan + f) * g     is  [p] nan + [not p] f g
h([p] nan + f)        is  [p] h(nan) + [not p] h(f)        where `h(nan)` is nan, or 0 (`laws`)

A sum of NaN under conditions is 0 where none of them holds, and else NaN: so is any multiple of it. Of a sum of terms
that are NaN under different conditions, each keeps its own: they are the elements of what will be one sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from hlo_verify.limits import allows
from hlo_verify.memory import once_a_session
from hlo_verify.terms.addition import build, difference, plain, scale
from hlo_verify.terms.conditions import Conditions, is_side
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.functions import INFINITY, INVERSE, LOG, NAN, ZERO_TIMES, Function
from hlo_verify.terms.term import (
    ZERO,
    Apply,
    Atom,
    Monomial,
    Number,
    Poly,
    Read,
    Tensor,
    make_apply,
    make_poly,
    of_atom,
)
from hlo_verify.terms.used import used

Items = list[tuple[Monomial, Number]]


def nan() -> Poly:
    """NaN as a term."""
    return of_atom(make_apply(NAN, ()))


def infinity(sign: int) -> Poly:
    """An infinity of a sign as a term."""
    return scale(of_atom(make_apply(INFINITY, ())), sign)


def is_nan(p: Poly) -> bool:
    """Whether a term is NaN, whatever its variables are."""
    return p.atom is not None and _is_nan(p.atom)


def _is_nan(atom: Atom) -> bool:
    return isinstance(atom, Apply) and atom.function == NAN


def is_infinity(atom: Atom) -> bool:
    """Whether an atom is infinite, so that 0 times it is NaN: an infinity, 1/0, or the logarithm of 0."""
    if not isinstance(atom, Apply):
        return False
    return atom.function == INFINITY or (atom.function in (INVERSE, LOG) and atom.args[0] is ZERO)


def with_nan(p: Poly) -> Poly:
    """A term with NaN in the place of 0 times an infinity, in what functions are of too. It absorbs there, where that
    has been one more addend."""
    from hlo_verify.terms.products import with_atoms  # products ask for what is found here

    return with_atoms(p, _of_infinity) if p.doubt & INFINITE else p


def _of_infinity(atom: Atom) -> Poly | None:
    if not isinstance(atom, Apply) or not atom.doubt & INFINITE:
        return None
    of = atom.args[0].atom if atom.function == ZERO_TIMES else None
    if of is not None and is_infinity(of):
        return nan()
    args = tuple(map(with_nan, atom.args))
    if args == atom.args:
        return None
    from hlo_verify.terms.laws import apply  # laws are made of this

    return apply(atom.function, args)


def occurs_in(p: Poly) -> bool:
    """Whether NaN is written out in a term."""
    return bool(p.doubt & INFINITE) and any(_is_nan(atom) for mono, _ in p.items for atom, _ in mono)


@once_a_session
def apart(p: Poly) -> tuple[Poly, Poly] | None:
    """Where a term is NaN, as a truth value, and what it is elsewhere; None where no NaN is written out in it, or it is
    under too many conditions."""
    own: Items = [item for item in p.items if any(_is_nan(atom) for atom, _ in item[0])]
    if not own or any(is_side(atom) for mono, _ in p.items for atom, _ in mono):
        return None
    where = _where(own)
    rest = build(dict(item for item in p.items if item not in own))
    return None if where is None or not _is_short(where, rest) else (where, elsewhere(where, rest))


def _is_short(where: Poly, p: Poly) -> bool:
    return allows("told_apart", len(where.items) * len(p.items))


def elsewhere(where: Poly, p: Poly) -> Poly:
    """A term where a truth value does not hold."""
    from hlo_verify.terms.algebra import logical_not, multiply  # sums and products ask for what is found here
    from hlo_verify.terms.products import with_atoms

    if where.items and p.items and where.atom is not None:
        p = with_atoms(p, {where.atom: ZERO}.get)
    return multiply(logical_not(where), p) if where.items else p


def cases(p: Poly) -> list[tuple[Poly, Poly]]:
    """NaN and what a term is elsewhere, each with where it is that; empty where it is the same everywhere."""
    found = apart(p) if p.doubt & INFINITE and not is_nan(p) else None
    if found is None:
        return []
    from hlo_verify.terms.algebra import logical_not

    where, rest = found
    return [(where, nan()), (logical_not(where), rest)]


def compared(function: Function, args: tuple[Poly, ...]) -> Poly | None:
    """What is said of NaN where it is compared: that it is not so."""
    return ZERO if any(map(is_nan, args)) else None


def multiplied(a: Poly, b: Poly, times: Callable[[Poly, Poly], Poly]) -> Poly | None:
    """The product of two terms, of which one is NaN somewhere; None where none is."""
    parts = [apart(p) if p.doubt & INFINITE else None for p in (a, b)]
    where = _any_of([found[0] for found in parts if found is not None])
    if where is None or where is ZERO:
        return None
    from hlo_verify.terms.algebra import either, expanded

    used("product with no number")
    first, second = (p if found is None else found[1] for p, found in zip((a, b), parts, strict=True))
    return either(expanded(where, nan()), elsewhere(where, times(first, second)))


def beside(terms: Sequence[Poly]) -> list[Poly]:
    """What is added up: where some terms are NaN, those that never are need not be added."""
    terms = [once(p) for p in terms]
    parts = [apart(p) if p.doubt & INFINITE else None for p in terms]
    own = [p for p, found in zip(terms, parts, strict=True) if found is not None]
    if not own or len(own) == len(terms):
        return terms
    from hlo_verify.terms.products import total  # sums ask for what is found here

    others = total(*(p for p, found in zip(terms, parts, strict=True) if found is None))
    where = None if others is ZERO else _any_of([found[0] for found in parts if found is not None])
    if where is None or not _is_short(where, others):
        return terms
    used("sum with no number")
    return [p for p in (*own, elsewhere(where, others)) if p.items]


def what_is_added(whole: Poly, part: Poly) -> Poly:
    """What is in a sum beside one of its terms: where the rest is NaN, that term is not there."""
    found = apart(whole) if whole.doubt & INFINITE else None
    if found is None:
        return difference(whole, part)
    where, rest = found
    from hlo_verify.terms.algebra import either, expanded

    return either(expanded(where, nan()), difference(rest, elsewhere(where, part)))


def _any_of(truths: Sequence[Poly]) -> Poly | None:
    """Whether any of some truth values holds; None where these are too many."""
    from hlo_verify.terms.algebra import either, logical_not, multiply

    different = dict.fromkeys(truths)
    if not allows("told_apart", prod(1 + len(p.items) for p in different)):
        return None
    found = ZERO
    for p in different:
        found = either(found, multiply(logical_not(found), p))
    return found


def once(p: Poly) -> Poly:
    """A term with NaN, and what is 0 or NaN, in place of multiples of it by numbers."""
    return _once(p) if p.doubt & INFINITE else p


@once_a_session
def _once(p: Poly) -> Poly:
    groups: dict[Atom, Items] = {}
    for mono, c in p.items:
        own = _zero_or_nan(mono)
        if own is not None:
            groups.setdefault(own, []).append((mono, c))
    kept = dict(p.items)
    for own, items in groups.items():
        if all(c == 1 and (own, 1) in mono and len(mono) == 1 + len(_conditions(mono)) for mono, c in items):
            continue
        where = _where(items)
        if where is None:
            continue
        used("multiple of what is 0 or no number")
        for mono, _ in items:
            del kept[mono]
        for held, c in where.items:
            mono = tuple(sorted((*held, (own, 1)), key=lambda item: item[0].uid))
            kept[mono] = kept.get(mono, 0) + c
    return build(kept)


def _zero_or_nan(mono: Monomial) -> Atom | None:
    """The factor by which a product is NaN, or 0 or NaN; None where it may be anything else."""
    none = next((atom for atom, _ in mono if _is_nan(atom)), None)
    if none is not None:
        return none
    doubted = [atom for atom, _ in mono if atom.doubt]
    return doubted[0] if len(doubted) == 1 and _is_zero_or_nan(doubted[0]) else None


def _is_zero_or_nan(atom: Atom) -> bool:
    return isinstance(atom, Read) and _is_of_nan(atom.tensor)


@once_a_session
def _is_of_nan(source: Tensor) -> bool:
    """Whether an element of a definition is a sum of NaN under conditions."""
    bodies = source.bodies if source.kind in ("sum", "term") else ()
    return bool(bodies) and all(
        any(_is_nan(atom) or _is_zero_or_nan(atom) for atom, _ in mono)
        and all(atom.boolean or _is_nan(atom) or _is_zero_or_nan(atom) for atom, _ in mono)
        for body in bodies
        for mono, _ in body.items
    )


def _where(items: Items) -> Poly | None:
    """Where any of some products is computed, as a truth value; None where that is not told."""
    if len(items) == 1:
        return make_poly(((_conditions(items[0][0]), 1),))
    conditions = Conditions.of([mono for mono, _ in items])
    if not allows("told_apart", conditions.count):
        return None
    found: dict[Monomial, Number] = {}
    for case in conditions.cases():
        if case.coefficients(items):
            for mono, c in case.condition().items:
                found[mono] = plain(found.get(mono, 0) + c)
    return build(found)


def _conditions(mono: Monomial) -> Monomial:
    return tuple(item for item in mono if item[0].boolean)
