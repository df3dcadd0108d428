"""Sums and multiples of terms, with index values joined and step functions in canonical form."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import gcd, lcm

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms import guards, soft_maximum
from hlo_verify.terms.functions import wrap
from hlo_verify.terms.term import (
    ZERO,
    Apply,
    Atom,
    Ix,
    Monomial,
    Number,
    Poly,
    Read,
    make_apply,
    make_ix,
    make_poly,
    value_of,
)
from hlo_verify.terms.used import used
from hlo_verify.terms.widening import widened


def plain(value: Number) -> Number:
    """The number, as an int if it is whole."""
    return value.numerator if value.__class__ is Fraction and value.denominator == 1 else value


def build(terms: dict[Monomial, Number]) -> Poly:
    """The polynomial of those monomials (normalised on their own), with like terms joined."""
    live = {mono: plain(c) for mono, c in terms.items() if c}
    if len(live) > 1:
        if sum(1 for mono in live if len(mono) == 1 and isinstance(mono[0][0], Ix) and mono[0][1] == 1) > 1:
            live = _join_indices(live)
        live = widened(guards.merge_steps(live))
        live = soft_maximum.joined(live)
    return make_poly(tuple(live.items()))


def either(*polys: Poly) -> Poly:
    """The sum of terms of which no two are computed at one place: they do not cancel, whatever they are."""
    terms: dict[Monomial, Number] = {}
    for p in polys:
        for mono, c in p.items:
            terms[mono] = terms.get(mono, 0) + c
    return build(terms)


def _join_indices(terms: dict[Monomial, Number]) -> dict[Monomial, Number]:
    """Linear index values are one index value: `Ix(a) + 2*Ix(b)` is `Ix(a + 2b)`."""
    linear = [
        (mono[0][0], c)
        for mono, c in terms.items()
        if len(mono) == 1 and isinstance(mono[0][0], Ix) and mono[0][1] == 1
    ]
    rest = {m: c for m, c in terms.items() if not (len(m) == 1 and isinstance(m[0][0], Ix) and m[0][1] == 1)}
    used("indices added")
    denominator = lcm(*(Fraction(c).denominator for _, c in linear))
    parts = [expr.scale(a.index, int(c * denominator)) for a, c in linear if isinstance(a, Ix)]
    joined = _index_monomials(expr.add(*parts), Fraction(1, denominator))
    for mono, c in joined.items():
        rest[mono] = plain(rest.get(mono, 0) + c)
        if not rest[mono]:
            del rest[mono]
    return rest


def _index_monomials(e: Index, factor: Number) -> dict[Monomial, Number]:
    """`factor * e` as monomials: a constant, terms of `value` items, and one index value."""
    terms: dict[Monomial, Number] = {}
    if e.const:
        terms[()] = plain(e.const * factor)
    items = []
    for atom, c in e.items:
        if isinstance(atom, Opaque) and atom.operator == "value":
            for mono, k in machine_value(atom).items:
                terms[mono] = plain(terms.get(mono, 0) + k * c * factor)
        else:
            items.append((atom, c))
    if items:
        g = gcd(*(c for _, c in items)) * (1 if items[0][1] > 0 else -1)
        mono = ((make_ix(expr.build(0, [(a, c // g) for a, c in items])), 1),)
        terms[mono] = plain(g * factor)
    return {mono: c for mono, c in terms.items() if c}


_TYPES = {bounds: dtype for dtype, bounds in INTEGER_RANGES.items()}


def machine_value(atom: Opaque) -> Poly:
    """The number that an opaque machine value is. What may have wrapped is a function of the term: that term itself
    stands for the value in types that are no wider alone, and a place does not say in which it will count."""
    p = value_of(atom)
    dtype = _TYPES.get((atom.lo, atom.hi))
    if dtype is None or _is_exact(atom, p):
        return p
    return make_poly(((((make_apply(wrap(dtype), (p,)), 1),), 1),))


def _is_exact(value: Opaque, p: Poly) -> bool:
    """Whether the machine value of a term surely is the term, as nothing of it wraps."""
    from hlo_verify.terms.bounds import within  # which adds

    atom = p.atom
    if atom is None:
        return (len(p.items) == 1 and _is_quotient(value, *p.items[0])) or within(p, value.lo, value.hi, sums=True)
    if isinstance(atom, Read):
        from hlo_verify.terms.machine import own_value  # which adds

        return own_value(value) is not None or within(p, value.lo, value.hi, sums=True)
    if isinstance(atom, Apply) and atom.function.gives in INTEGER_RANGES:
        least, greatest = INTEGER_RANGES[atom.function.gives]
        return value.lo <= least and greatest <= value.hi
    return atom.boolean or within(p, value.lo, value.hi, sums=True)


def _is_quotient(value: Opaque, mono: Monomial, c: Number) -> bool:
    """Whether it is an element that a user says to be a multiple, divided so that it is an integer that fits."""
    source = mono[0][0].tensor if len(mono) == 1 and mono[0][1] == 1 and isinstance(mono[0][0], Read) else None
    if source is None or source.assumed is None or source.dtype not in INTEGER_RANGES or c <= 0:
        return False
    (least, greatest), whole = source.assumed.integers, c * source.assumed.multiple
    return value.lo <= c * least and c * greatest <= value.hi and whole == int(whole)


def of_index(e: Index) -> Poly:
    """An index expression as a number."""
    return build(_index_monomials(e, 1))


def difference(a: Poly, b: Poly) -> Poly:
    """What is in one term and not in another: 0 where they are the same, whether they are numbers or not."""
    terms = dict(a.items)
    for mono, c in b.items:
        terms[mono] = terms.get(mono, 0) - c
    return build(terms)


def scale(p: Poly, factor: Number) -> Poly:
    """`factor * p`."""
    if factor == 1:
        return p
    if factor == 0:
        return ZERO
    return make_poly(tuple((mono, plain(c * factor)) for mono, c in p.items))


def longest(p: Poly) -> int:
    """How many bits the longest coefficient of a term has, above the line or below it."""
    return max((max(c.numerator.bit_length(), c.denominator.bit_length()) for _, c in p.items), default=0)


def multiple_of_one(p: Poly) -> tuple[Atom | None, Number]:
    """The one atom of which a term is a multiple, and by what."""
    if len(p.items) != 1 or len(p.items[0][0]) != 1 or p.items[0][0][0][1] != 1:
        return None, 1
    (((atom, _),), c) = p.items[0]
    return atom, c


def content(p: Poly) -> Number:
    """The greatest positive number that leaves whole coefficients when they are divided by it; p is not zero."""
    parts = [Fraction(c) for _, c in p.items]
    return plain(Fraction(gcd(*(c.numerator for c in parts)), lcm(*(c.denominator for c in parts))))


def up_to_scale(p: Poly, function: Callable[[Poly], Poly]) -> Poly:
    """What a function makes of a term without its content, times that, so that it is asked one term of all that differ
    in scale; p is not zero."""
    amount = content(p)
    return scale(function(scale(p, 1 / Fraction(amount))), amount)
