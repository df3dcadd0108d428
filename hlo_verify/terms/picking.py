"""What an integer picks, where it is written one choice after another.

    [e = 0] f(0) + [e = 1] f(1)            = [0 <= e <= 1] f(e)
    [a <= e <= b] f(e) + [e = b + 1] f(b + 1) = [a <= e <= b + 1] f(e)

So experts that are asked one by one, each for the tokens that picked it, are what each token reads at its own expert.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.memory import once_a_session
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.at_constants import at_constants
from hlo_verify.terms.places import values_in_places
from hlo_verify.terms.rebuilding import rebuilt
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Apply, Atom, Guard, Monomial, Number, Poly, Read, asked, make_poly, mix
from hlo_verify.terms.used import used

LOOKED_UP = 32
"""Constants by which terms are sorted that pick something by integers."""

Choice = tuple[Index, int, int, Poly]
"""A product with a condition on an integer: the integer, its least and its greatest value there, and the rest."""
Spread = Callable[[Sequence[Poly], Var], Poly | None]


def bounds_of(atom: Atom) -> tuple[int, int] | None:
    """Between what integers a condition asks an integer that is not told by places alone to be; None of others."""
    return guards.ends(atom) if isinstance(atom, Guard) and asked(atom.form) else None


def structure(atom: Atom, power: Number) -> int:
    """What a factor of a product is, the same whatever a condition of that kind picks."""
    picks = asked(atom.form) if isinstance(atom, Guard) else ()
    return mix("picks", *picks) if picks else mix(atom.skey, power)


def choices(p: Poly) -> Iterator[Choice]:
    """The choices that one product makes."""
    ((mono, c),) = p.items
    for atom, n in mono:
        bounds = bounds_of(atom)
        if bounds is not None and isinstance(atom, Guard):
            rest = tuple(item for item in mono if item != (atom, n))
            yield atom.form, *bounds, make_poly(((rest, c),))


def distance(one: Monomial, other: Monomial) -> int | None:
    """How far apart two products choose by one integer: 1 if side by side; None if by none."""
    found = None
    for atom, _ in one:
        first = bounds_of(atom)
        for beside, _ in other if first else ():
            if isinstance(atom, Guard) and isinstance(beside, Guard) and beside.form is atom.form:
                second = bounds_of(beside)
                if first and second:
                    apart = max(first[0], second[0]) - min(first[1], second[1])
                    found = apart if found is None else min(found, apart)
    return found


def picked(bound: Sequence[Var], one: Poly, other: Poly, spread: Spread) -> Iterator[Poly]:
    """The sum, over some variables, of two products that choose side by side, as that of one choice."""
    whole = algebra.add(one, other)
    if bound and len(whole.items) == 1:
        yield reduce_sum(bound, whole)
    for first in choices(one):
        for second in choices(other):
            if first[0] is second[0]:
                one_first = first[1] <= second[1]
                found = _both(bound, *((first, second) if one_first else (second, first)), spread)
                if found is not None:
                    used("what is picked one by one")
                    yield found
    if bound and looked_up(one) != looked_up(other):
        v = expr.fresh("f", 2)
        both = spread(sorted((one, other), key=looked_up), v)
        if both is not None:
            yield reduce_sum([v, *bound], both)


def _both(bound: Sequence[Var], one: Choice, other: Choice, spread: Spread) -> Poly | None:
    """The sum of two choices, the second of which begins where the first ends."""
    (form, first, last, p), (_, start, end, q) = one, other
    if start != last + 1 or p.doubt or q.doubt:
        return None
    if first == last and start == end:
        v = expr.fresh("f", 2)
        both = spread((p, q), v)
        at = guards.interval(expr.subtract(form, expr.shift(expr.of_var(v), first)), 0, 0)
        return None if both is None else reduce_sum([*bound, v], algebra.multiply(at, both))
    if start == end and _becomes(p, form, start, q):
        return reduce_sum(bound, algebra.multiply(guards.interval(form, first, end), p))
    if first == last and _becomes(q, form, first, p):
        return reduce_sum(bound, algebra.multiply(guards.interval(form, first, end), q))
    return None


def _becomes(p: Poly, form: Index, value: int, other: Poly) -> bool:
    """Whether a term is another one where an integer is that number."""
    return at_constants(rebuilt(p, {}, {form: expr.constant(value)})) is at_constants(other)


@once_a_session
def looked_up(p: Poly) -> tuple[tuple[int, ...], ...]:
    """The constants at which integers are read that pick something in a term, however deep. Terms in this order are in
    that of what they are picked by: by the first and the second best of `top_k`, whose values a sort has last."""
    found: list[tuple[int, ...]] = []
    for mono, _ in p.items:
        for atom, _ in mono:
            for value in values_in_places(atom):
                found += [
                    (own.skey, *(e.const for e in own.indices))
                    for part, _ in value.items
                    for own, _ in part
                    if isinstance(own, Read)
                ]
            inner = atom.args if isinstance(atom, Apply) else atom.tensor.bodies if isinstance(atom, Read) else ()
            found += [constants for part in inner for constants in looked_up(part)]
    return tuple(sorted(found)[:LOOKED_UP])
