"""Greatest and least values over index variables, and products, in canonical form.

The rules for sums (`sums`) hold here as far as they hold for any associative, commutative reducer.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.limits import allows
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import define, unfold
from hlo_verify.terms.functions import EXTREMA, POWER
from hlo_verify.terms.laws import apply
from hlo_verify.terms.merging import merge_in
from hlo_verify.terms.steps import steps
from hlo_verify.terms.term import ONE, Apply, Guard, Poly, Read, make_poly
from hlo_verify.terms.used import used


def reduce_extremum(reducer: str, bound: Sequence[Var], p: Poly) -> Poly:
    """The greatest (`max`) or least (`min`) value of p over the bound variables."""
    live = [v for v in bound if v in p.free]
    if not live:
        return p
    pieces = steps(p, live)
    if pieces:  # what does not depend on the bound variables decides for all of them
        used("extremum of a choice")
        return algebra.add(*(algebra.multiply(on, reduce_extremum(reducer, live, piece)) for on, piece in pieces))
    atom = p.atom
    if isinstance(atom, Read) and atom.tensor.kind in (reducer, "term"):
        more, bodies = unfold(atom)
        if (
            atom.tensor.kind == reducer
            or bodies[0].atom is not None
            or steps(bodies[0], live)
            or _ranges(live, bodies[0])
        ):
            used("extrema over variables")
            return reduce_extremum(reducer, [*live, *more], bodies[0])
    if isinstance(atom, Apply) and atom.function == EXTREMA[reducer]:
        used("extremum over elements of several")
        return apply(EXTREMA[reducer], tuple(reduce_extremum(reducer, live, arg) for arg in atom.args))
    if len(p.items) == 1 and p.items[0][1] != 1 and p.items[0][1] > 0:
        used("multiple in an extremum")
        mono, c = p.items[0]
        return algebra.scale(reduce_extremum(reducer, live, make_poly(((mono, 1),))), c)
    merged = merge_in(live, (p,))
    if merged is not None:
        return reduce_extremum(reducer, merged[0], merged[1][0])
    parts = _ranges(live, p)
    if parts:
        used("extremum over parts of a range")
        return apply(EXTREMA[reducer], tuple(reduce_extremum(reducer, own, part) for own, part in parts))
    return define(reducer, live, (p,))


def _ranges(bound: list[Var], p: Poly) -> list[tuple[list[Var], Poly]]:
    """The term over parts of one bound variable's range, between the ends of guards on it; empty if it has none."""
    for v in bound:
        form = expr.of_var(v)
        guarded = [a for mono, _ in p.items for a, _ in mono if isinstance(a, Guard) and a.form is form]
        ends = {end for a in guarded for end in (a.lo, None if a.hi is None else a.hi + 1) if end is not None}
        if ends and allows("extremum_ranges", len(ends) + 1):
            parts = []
            for start, end in pairwise([0, *sorted(ends), v.size]):
                part = expr.fresh("f", end - start)
                body = algebra.substitute(p, {v: expr.shift(expr.of_var(part), start)})
                parts.append(([part if b is v else b for b in bound], body))
            return parts
    return []


def reduce_boolean(reducer: str, bound: Sequence[Var], p: Poly) -> Poly:
    """`and` is the least and `or` the greatest truth value."""
    return reduce_extremum("min" if reducer == "and" else "max", bound, p)


def reduce_product(bound: Sequence[Var], p: Poly) -> Poly:
    """The product of p over the bound variables."""
    live = [v for v in bound if v in p.free]
    count = 1
    for v in bound:
        if v not in p.free:
            used("product of one factor")
            count *= v.size
    if count > 64:
        return apply(POWER, (reduce_product(live, p), algebra.scale(ONE, count)))
    if not live:
        return algebra.power(p, count)
    atom = p.atom
    if isinstance(atom, Read) and atom.tensor.kind == "product":
        used("product of products")
        more, bodies = unfold(atom)
        return algebra.power(reduce_product([*live, *more], bodies[0]), count)
    merged = merge_in(live, (p,))
    if merged is not None:
        return algebra.power(reduce_product(merged[0], merged[1][0]), count)
    return algebra.power(define("product", live, (p,)), count)
