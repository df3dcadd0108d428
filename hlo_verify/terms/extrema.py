"""Greatest and least values over index variables, and products, in canonical form.

The rules for sums (`sums`) hold here as far as they hold for any associative, commutative reducer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise

from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.limits import allows
from hlo_verify.terms import algebra, truths
from hlo_verify.terms.definitions import define, unfold
from hlo_verify.terms.functions import EXTREMA, POSITIVE, POWER, Function
from hlo_verify.terms.laws import apply
from hlo_verify.terms.merging import merge_in
from hlo_verify.terms.steps import Piece, pieces, steps
from hlo_verify.terms.term import ONE, Apply, Guard, Poly, Read, make_poly
from hlo_verify.terms.used import used

_OTHER = {"max": "min", "min": "max"}


def reduce_extremum(reducer: str, bound: Sequence[Var], p: Poly) -> Poly:
    """The greatest (`max`) or least (`min`) value of p over the bound variables."""
    live = [v for v in bound if v in p.free]
    if not live:
        return p
    truth = _of_truths(reducer, live, p)
    if truth is not None:
        return truth
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
    apart = _without_common(reducer, live, p)
    if apart is not None:
        return apart
    parts = _ranges(live, p)
    if parts:
        used("extremum over parts of a range")
        return apply(EXTREMA[reducer], tuple(reduce_extremum(reducer, own, part) for own, part in parts))
    return define(reducer, live, (p,), dtype="i1" if truths.is_truth(p) else "")


def _of_truths(reducer: str, bound: list[Var], p: Poly) -> Poly | None:
    """The extremum of what is 1 where a product of conditions is 0, and of signs of numbers."""
    none = truths.opposite(p)
    if none is not None:
        used("extremum of opposites")
        return algebra.subtract(ONE, reduce_extremum(_OTHER[reducer], bound, none))
    signed = truths.sign_of(p)
    if signed is not None:
        used("sign of an extremum")
        return apply(POSITIVE, (reduce_extremum(reducer, bound, signed),))
    return None


def _without_common(reducer: str, bound: list[Var], p: Poly) -> Poly | None:
    """The extremum of a choice by a bound variable, with the operands that all choices have taken out of it: with `x`
    on the first device only, `max d. [d = 0] maximum(x, y[d]) + [d > 0] y[d]` is `maximum(x, max d. y[d])`."""
    function = EXTREMA[reducer]
    for v in bound:
        choices = pieces(p, [w for w in p.free if w is not v])
        if not choices or choices[0].form is not expr.of_var(v):
            continue
        operands = [_operands(function, choice.term) for choice in choices]
        common = [each for each in operands[0] if all(each in others for others in operands)]
        if common:
            used("extremum of what all choices have")
            rest = [reduce_extremum(reducer, bound, each) for each in common]
            for choice, own in zip(choices, operands, strict=True):
                others = [each for each in own if each not in common]
                if others:
                    rest.append(reduce_extremum(reducer, *_part(bound, v, choice, _of(function, others))))
            return _of(function, rest)
    return None


def _operands(function: Function, p: Poly) -> tuple[Poly, ...]:
    atom = p.atom
    return atom.args if isinstance(atom, Apply) and atom.function == function else (p,)


def _of(function: Function, operands: Sequence[Poly]) -> Poly:
    return operands[0] if len(operands) == 1 else apply(function, tuple(operands))


def _part(bound: list[Var], v: Var, choice: Piece, p: Poly) -> tuple[list[Var], Poly]:
    """A term where a bound variable is one of those of a choice, and what it is bound by there."""
    start = max(choice.lo or 0, 0)
    part = expr.fresh("f", (v.size if choice.hi is None else min(choice.hi + 1, v.size)) - start)
    body = algebra.substitute(p, {v: expr.shift(expr.of_var(part), start)})
    return [part if b is v else b for b in bound], body


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
    if truths.is_truth(p):
        used("product of truth values")
        return reduce_extremum("min", live, p)
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
    inside = unfold(atom)[1][0] if isinstance(atom, Read) and atom.tensor.kind == "term" else p
    factors = _factors(live, inside)
    if factors:
        return algebra.power(reduce(algebra.multiply, (reduce_product(own, part) for own, part in factors)), count)
    return algebra.power(define("product", live, (p,)), count)


def _factors(bound: list[Var], p: Poly) -> list[tuple[list[Var], Poly]]:
    """What all choices by a bound variable have as a factor, and what is left of each; empty if there is nothing: with
    `x` on the first device only, `[d = 0] x*y[d] + [d > 0] y[d]` is made of `y[d]`, `x`, and ones."""
    for v in bound:
        choices = pieces(p, [w for w in p.free if w is not v])
        if not choices or choices[0].form is not expr.of_var(v) or any(len(each.term.items) != 1 for each in choices):
            continue
        first, *others = [each.term.items[0][0] for each in choices]
        common = tuple(item for item in first if all(item in other for other in others))
        if common:
            used("product of what all choices have")
            left = [
                make_poly(((tuple(item for item in mono if item not in common), c),))
                for ((mono, c),) in (each.term.items for each in choices)
            ]
            parts = [_part(bound, v, choice, own) for choice, own in zip(choices, left, strict=True)]
            return [(bound, make_poly(((common, 1),))), *parts]
    return []
