"""Sums over a span that begins where a place says, as sums over as many terms from 0 on.

    sum t<71. [0 <= t - d < 8] * x[t - d]   =   sum n<8. x[n]       for a d of 0 to 63

Turns of a loop are such a span where a device works in some of them alone. Where conditions hold places between bounds,
a sum is taken apart first where these are reached.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise, permutations

from hlo_verify.equality.rounds_of_turns import round_by_round
from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque, Var
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.counts import multiple_of
from hlo_verify.terms.definitions import at_places
from hlo_verify.terms.laws import apply
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Apply, Atom, Guard, Poly, Read, make_poly


def shifted(p: Poly, known: dict[Atom, Poly | None]) -> Poly:
    """The term with such sums shifted, those that it is made of too; what is `known` of atoms is kept there."""
    return algebra.with_atoms(p, lambda atom: _anew(atom, known))


def _anew(atom: Atom, known: dict[Atom, Poly | None]) -> Poly | None:
    if atom not in known:
        known[atom] = _made(atom, known)
    return known[atom]


def _made(atom: Atom, known: dict[Atom, Poly | None]) -> Poly | None:
    if isinstance(atom, Apply):
        return apply(atom.function, tuple(shifted(arg, known) for arg in atom.args))
    if not isinstance(atom, Read) or atom.tensor.kind not in ("sum", "term") or atom.tensor.seal is not None:
        return None
    bound, there = at_places(atom.tensor, atom.indices)
    body = shifted(there.poly(atom.tensor.bodies[0]), known)
    return algebra.add(*(_summed(bound, make_poly((item,)), known) for item in body.items)) if bound else body


def _summed(bound: Sequence[Var], p: Poly, known: dict[Atom, Poly | None]) -> Poly:
    """The sum of a product, shifted where it is over a span: what is read then is read at other places. Where turns are
    counted by two digits, as conditions may ask for one of them, it may be over a span of what these count together."""
    found = _over_a_span(bound, p, known)
    for high, low in permutations([v for v in bound if v.size > 1], 2) if found is None else ():
        joint = _counted_together(high, low, p)
        if joint is not None:
            v, there = joint
            found = _each_over_a_span([v, *(w for w in bound if w not in (high, low))], there, known)
            if found is not None:
                break
    if found is None:
        found = _each_round(bound, p, known)
    return reduce_sum(bound, p) if found is None else found


def _each_round(bound: Sequence[Var], p: Poly, known: dict[Atom, Poly | None]) -> Poly | None:
    """The sum of one product, each round of turns by itself, where a place says when rounds begin."""
    for t in bound:
        found = round_by_round(t, p)
        if found is not None:
            b, each = found
            mine = [b if w is t else w for w in bound]
            there = (shifted(product, known) for product in each)
            return algebra.add(*(_summed(mine, make_poly((item,)), known) for total in there for item in total.items))
    return None


def _each_over_a_span(bound: Sequence[Var], p: Poly, known: dict[Atom, Poly | None]) -> Poly | None:
    """The sum of each product by itself, as its conditions are its own; None where none is over a span."""
    each = [make_poly((item,)) for item in p.items]
    found = [_over_a_span(bound, product, known) for product in each]
    if all(there is None for there in found):
        return None
    pairs = zip(each, found, strict=True)
    return algebra.add(*(reduce_sum(bound, product) if there is None else there for product, there in pairs))


def _over_a_span(bound: Sequence[Var], p: Poly, known: dict[Atom, Poly | None]) -> Poly | None:
    """The sum of one product where a variable counts a span; None where none does."""
    for v in bound:
        ends = sorted({0, v.size} | {end for end in _ends(p, v) if 0 < end < v.size})
        if len(ends) > 2:
            parts = []
            for first, end in pairwise(ends):
                n = expr.fresh("f", end - first)
                there = shifted(algebra.substitute(p, {v: expr.shift(expr.of_var(n), first)}), known)
                mine = [n if w is v else w for w in bound]
                parts += [_summed(mine, make_poly((item,)), known) for item in there.items]
            return algebra.add(*parts)
        for guard in (a for mono, _ in p.items for a in guards.guards_of(mono)):
            start = _start(guard, v)
            if start is not None:
                assert guard.lo is not None
                assert guard.hi is not None
                n = expr.fresh("f", guard.hi - guard.lo + 1)
                there = shifted(algebra.substitute(p, {v: expr.add(start, expr.of_var(n))}), known)
                mine = [n if w is v else w for w in bound]
                return algebra.add(*(_summed(mine, make_poly((item,)), known) for item in there.items))
    return None


def turned_over(p: Poly, sizes: Collection[int], known: dict[Atom, Poly | None]) -> Poly:
    """The term with its sums over variables of those sizes taken in one of two directions, whatever they were made in:
    `sum n<4. x[n]*y[3-n]` and `sum n<4. x[3-n]*y[n]` are one then, however deep in it n is."""

    def anew(atom: Atom) -> Poly | None:
        if atom not in known:
            known[atom] = made(atom)
        return known[atom]

    def made(atom: Atom) -> Poly | None:
        if isinstance(atom, Apply):
            return apply(atom.function, tuple(algebra.with_atoms(arg, anew) for arg in atom.args))
        if not isinstance(atom, Read) or atom.tensor.kind not in ("sum", "term") or atom.tensor.seal is not None:
            return None
        bound, there = at_places(atom.tensor, atom.indices)
        body = there.poly(atom.tensor.bodies[0])
        if not bound:
            return algebra.with_atoms(body, anew)
        return algebra.add(*(either_way(bound, make_poly((item,))) for item in body.items))

    def either_way(bound: Sequence[Var], product: Poly) -> Poly:
        ways = [product]
        for v in bound:
            if v.size in sizes:
                back = {v: expr.subtract(expr.constant(v.size - 1), expr.of_var(v))}
                ways += [algebra.substitute(way, back) for way in ways]
        return min((reduce_sum(bound, algebra.with_atoms(way, anew)) for way in ways), key=lambda total: total.skey)

    return algebra.with_atoms(p, anew)


def _counted_together(high: Var, low: Var, p: Poly) -> tuple[Var, Poly] | None:
    """A variable of which two others are the digits in something that is held between bounds, and the term by it: the
    lower digit may go the other way."""
    for form in _held(p):
        c, d = multiple_of(high, form), multiple_of(low, form)
        if d and abs(c) == abs(d) * low.size:
            v = expr.fresh("f", high.size * low.size)
            whole = expr.of_var(v)
            first, own = expr.floor_divmod(whole, low.size)
            own = own if c * d > 0 else expr.subtract(expr.constant(low.size - 1), own)
            return v, algebra.substitute(p, {high: first, low: own})
    return None


def _held(p: Poly) -> Iterator[Index]:
    """What conditions hold between bounds, and what is held between them there."""
    for guard in (a for mono, _ in p.items for a in guards.guards_of(mono)):
        yield guard.form
        for atom, _ in guard.form.items:
            if isinstance(atom, Opaque) and atom.operator == "clamp":
                yield atom.exprs[0]


def _ends(p: Poly, v: Var) -> Iterator[int]:
    """Where a place that is held between bounds, and goes up with a variable or down, reaches one of them."""
    for form in (a.form for mono, _ in p.items for a in guards.guards_of(mono)):
        for atom, _ in form.items:
            if isinstance(atom, Opaque) and atom.operator == "clamp":
                lo, hi = atom.args
                whole = expr.of_var(v)
                up, down = expr.subtract(atom.exprs[0], whole), expr.add(atom.exprs[0], whole)
                if not up.items:
                    yield from (lo - up.const, hi + 1 - up.const)
                elif not down.items:
                    yield from (down.const - hi, down.const + 1 - lo)


def _start(guard: Guard, v: Var) -> Index | None:
    """Where a guard's span of a variable begins, if the variable may be all of that, and more."""
    if guard.lo is None or guard.hi is None or guard.hi - guard.lo + 1 >= v.size:
        return None
    (whole, _), *_ = expr.of_var(v).items
    factor = dict(guard.form.items).get(whole)
    if factor not in (1, -1):
        return None
    rest = expr.subtract(guard.form, expr.scale(expr.of_var(v), factor))
    start = expr.shift(expr.scale(rest, -factor), guard.lo if factor == 1 else -guard.hi)
    if v in start.free:
        return None
    return start if start.lo >= 0 and start.hi + guard.hi - guard.lo < v.size else None
