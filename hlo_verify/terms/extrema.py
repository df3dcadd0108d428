"""Greatest and least values over index variables, and products, in canonical form.

The rules for sums (`sums`) hold here as far as they hold for any associative, commutative reducer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from math import prod

import numpy as np

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Var
from hlo_verify.limits import allows
from hlo_verify.terms import algebra, guards, truths
from hlo_verify.terms.counts import holds_at, multiple_of, solved
from hlo_verify.terms.definitions import define, unfold
from hlo_verify.terms.exponents import product_of_exponentials
from hlo_verify.terms.functions import EXTREMA, POSITIVE, POWER, Function
from hlo_verify.terms.laws import apply
from hlo_verify.terms.merging import merge_in
from hlo_verify.terms.order_keys import outside
from hlo_verify.terms.steps import Piece, pieces, steps
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ONE, ZERO, Apply, Guard, Monomial, Number, Poly, Read, make_poly
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
            or _one_place(live, bodies[0])
            or any(_choices(live, bodies[0]))
            or outside(bodies[0], live).term is not bodies[0]
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
    if all(c < 0 for _, c in p.items):
        used("extremum of what is negated")
        return algebra.scale(reduce_extremum(_OTHER[reducer], live, algebra.scale(p, -1)), -1)
    key = outside(p, live)
    if key.term is not p:
        used("extremum of an increasing function")
        return key.again(reduce_extremum(reducer, live, key.term))
    merged = merge_in(live, (p,))
    if merged is not None:
        return reduce_extremum(reducer, merged[0], merged[1][0])
    place = _one_place(live, p)
    if place is not None:
        used("extremum of what is at one place")
        there = apply(EXTREMA[reducer], (ZERO, reduce_sum([place], p)))
        return reduce_extremum(reducer, [v for v in live if v is not place], there)
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
    each = truths.each_of(reducer, p)
    if len(each) > 1:
        used("extremum of truth values over variables")
        return apply(EXTREMA[reducer], tuple(reduce_extremum(reducer, bound, one) for one in each))
    if reducer == "max" and any(holds_at(p, v) for v in bound) and truths.is_truth(p):
        used("one of those that are asked")
        return ONE
    asked = _of_guard(reducer, bound, p)
    if asked is not None:
        return asked
    signed = truths.sign_of(p)
    if signed is not None:
        used("sign of an extremum")
        return apply(POSITIVE, (reduce_extremum(reducer, bound, signed),))
    return None


def _of_guard(reducer: str, bound: list[Var], p: Poly) -> Poly | None:
    """Whether a form lies between two ends for some values, or for all values, of a variable that is an addend of it:
    `max k<4. [1 <= n - k]` is `[1 <= n]`."""
    if not truths.is_product(p):
        return None
    for v in bound:
        asked = [atom for atom, _ in p.items[0][0] if v in atom.free]
        if len(asked) != 1 or not isinstance(asked[0], Guard) or v.size < 2:
            continue
        form, lo, hi = asked[0].form, asked[0].lo, asked[0].hi
        c = multiple_of(v, form)
        rest = expr.subtract(form, expr.scale(expr.of_var(v), c))
        if not c or v in rest.free or (reducer == "max" and abs(c) > 1 and lo is not None and hi is not None):
            continue
        used("condition for some of a range")
        ends = sorted((0, c * (v.size - 1)), reverse=reducer == "max")
        there = guards.interval(rest, None if lo is None else lo - ends[0], None if hi is None else hi - ends[1])
        others = make_poly(((tuple(item for item in p.items[0][0] if item[0] is not asked[0]), 1),))
        return reduce_extremum(reducer, [w for w in bound if w is not v], algebra.multiply(others, there))
    return None


def _one_place(bound: Sequence[Var], p: Poly) -> Var | None:
    """A bound variable of several values at one of which at the most a term is not 0: `[v = t] * f(v)`."""
    if not p.items:
        return None
    common = [a for a, _ in p.items[0][0] if isinstance(a, Guard) and all((a, 1) in mono for mono, _ in p.items)]
    for guard in common:
        for v in bound:
            if guard.lo == guard.hi is not None and solved(guard.form, expr.constant(guard.hi), v) is not None:
                return v
    return None


def _without_common(reducer: str, bound: list[Var], p: Poly) -> Poly | None:
    """The extremum of a choice by bound variables, with the operands that all choices have taken out of it: with `x`
    on the first device only, `max d. [d = 0] maximum(x, y[d]) + [d > 0] y[d]` is `maximum(x, max d. y[d])`."""
    function = EXTREMA[reducer]
    for choices in _choices(bound, p):
        common, others = _shared(function, [choice.term for choice in choices])
        if not common:
            continue
        rest = [(bound, each) for each in common]
        there = [_at(bound, choice, _of(function, own)) for choice, own in zip(choices, others, strict=True) if own]
        if None not in there:
            used("extremum of what all choices have")
            parts = [*rest, *(part for part in there if part is not None)]
            return _of(function, [reduce_extremum(reducer, *part) for part in parts])
    return None


def _shared(function: Function, terms: Sequence[Poly]) -> tuple[list[Poly], list[list[Poly]]]:
    """The operands that all of some extrema have, and the others that each of them has; none if they share none. What
    one of them is may be an operand of all."""
    operands = [_operands(function, term) for term in terms]
    common = [each for each in operands[0] if all(each in others for others in operands)]
    if common:
        return common, [[each for each in own if each not in common] for own in operands]
    for whole in terms:
        beside = [_beside(function, term, whole) for term in terms]
        if None not in beside:
            return [whole], [own for own in beside if own is not None]
    return [], []


def _choices(bound: list[Var], p: Poly) -> Iterator[list[Piece]]:
    """What a term is by the value of a bound variable, or of a number that several of them make (of a device, by the
    axes of its mesh)."""
    for v in bound:
        choices = pieces(p, [w for w in p.free if w is not v])
        if choices and choices[0].form is expr.of_var(v):
            yield choices
    if len(bound) > 1:
        choices = pieces(p, [w for w in p.free if w not in bound])
        if choices and choices[0].form.free <= set(bound) and len(choices[0].form.free) > 1:
            yield choices


def _at(bound: list[Var], choice: Piece, p: Poly) -> tuple[list[Var], Poly] | None:
    """A term where a choice holds, and what it is bound by there; None where that is no part of one variable's range,
    unless the term hangs on none and the choice does hold somewhere."""
    part = choice.form.items[0][0] if len(choice.form.items) == 1 else None
    if isinstance(part, Digit) and choice.form is expr.of_var(part.var):
        return _part(bound, part.var, choice, p)
    if not p.free.isdisjoint(bound):
        return None
    return ([], p) if _times(choice) else None


def _times(choice: Piece) -> int:
    """For how many values of its variables a choice holds; 0 where these are too many to be counted."""
    variables = sorted(choice.form.free, key=lambda v: v.uid)
    if any(not isinstance(a, Digit) for a, _ in choice.form.items):
        return 0
    if not allows("scattered_places", prod(v.size for v in variables)):
        return 0
    axes = dict(zip(variables, np.ogrid[tuple(slice(v.size) for v in variables)], strict=True))
    values = choice.form.const + sum(
        c * (axes[a.var] // a.low % a.radix) for a, c in choice.form.items if isinstance(a, Digit)
    )
    holds = np.ones(np.shape(values), dtype=bool)
    holds &= True if choice.lo is None else values >= choice.lo
    holds &= True if choice.hi is None else values <= choice.hi
    return int(holds.sum())


def _beside(function: Function, p: Poly, whole: Poly) -> list[Poly] | None:
    """What operands an extremum has beside another term; None where that is not one of its operands. It may have been
    told apart by cases: `[c]*minimum(x, y) + [not c]*x` is `minimum(x, [c]*y + [not c]*infinity)`."""
    if p is whole:
        return []
    return next(([each] for each in dict.fromkeys(_leaves(p)) if apply(function, (each, whole)) is p), None)


def _leaves(p: Poly) -> Iterator[Poly]:
    """What a choice is, in each of its cases, without operands of their own."""
    parts = steps(p)
    for _, piece in parts:
        yield from _leaves(piece)
    if not parts:
        yield p


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
    found = (ranges(bound, v, (p,)) for v in bound)
    return next(([(own, body) for own, (body,) in parts] for parts in found if parts), [])


def ranges(bound: Sequence[Var], v: Var, terms: Sequence[Poly]) -> list[tuple[list[Var], tuple[Poly, ...]]]:
    """Terms over parts of a bound variable's range, between the ends of guards on it; empty if they have none."""
    form = expr.of_var(v)
    guarded = [a for p in terms for mono, _ in p.items for a, _ in mono if isinstance(a, Guard) and a.form is form]
    ends = {end for a in guarded for end in (a.lo, None if a.hi is None else a.hi + 1) if end is not None}
    if not ends or not allows("extremum_ranges", len(ends) + 1):
        return []
    parts = []
    for start, end in pairwise([0, *sorted(ends), v.size]):
        part = expr.fresh("f", end - start)
        there = {v: expr.shift(expr.of_var(part), start)}
        own = [part if b is v else b for b in bound]
        parts.append((own, tuple(algebra.substitute(p, there) for p in terms)))
    return parts


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
    split = product_of_exponentials(live, p)
    if split is not None:
        return algebra.power(algebra.multiply(split[0], reduce_product(live, split[1])), count)
    merged = merge_in(live, (p,))
    if merged is not None:
        return algebra.power(reduce_product(merged[0], merged[1][0]), count)
    inside = unfold(atom)[1][0] if isinstance(atom, Read) and atom.tensor.kind == "term" else p
    factors = _factors(live, inside)
    if factors:
        return algebra.power(reduce(algebra.multiply, (reduce_product(own, part) for own, part in factors)), count)
    return algebra.power(define("product", live, (p,)), count)


def _factors(bound: list[Var], p: Poly) -> list[tuple[list[Var], Poly]]:
    """What all choices by bound variables have as a factor, and what is left of each; empty if there is nothing: with
    `x` on the first device only, `[d = 0] x*y[d] + [d > 0] y[d]` is made of `y[d]`, `x`, and ones."""
    for choices in _choices(bound, p):
        if not all(choice.term.items for choice in choices):
            continue
        split = [_content(choice.term) for choice in choices]
        (first, _, rest), *others = split
        if any(other is not rest for _, _, other in others):
            continue
        common = tuple(item for item in first if all(item in mono for mono, _, _ in others))
        if not common and rest.constant is not None:
            continue
        left = [make_poly(((tuple(item for item in mono if item not in common), c),)) for mono, c, _ in split]
        parts = [_raised(bound, choice, own) for choice, own in zip(choices, left, strict=True)]
        if None in parts:
            continue
        used("product of what all choices have")
        whole = algebra.expanded(make_poly(((common, 1),)), rest)
        return [(bound, whole), *(part for part in parts if part is not None)]
    return []


def _content(p: Poly) -> tuple[Monomial, Number, Poly]:
    """The factors that all products of a term have, a number, and the rest, whose first number is 1."""
    (first, c), *others = p.items
    common = tuple(item for item in first if all(item in mono for mono, _ in others))
    rest: dict[Monomial, Number] = {
        tuple(item for item in mono if item not in common): Fraction(k) / Fraction(c) for mono, k in p.items
    }
    return common, c, algebra.build(rest)


def _raised(bound: list[Var], choice: Piece, p: Poly) -> tuple[list[Var], Poly] | None:
    """A factor where a choice holds, as `_at`, as often as it is there."""
    part = _at(bound, choice, p)
    if part is None or part[0]:
        return part
    others = prod(v.size for v in bound if v not in choice.form.free)
    times = _times(choice) * others
    return ([], algebra.power(p, times)) if allows("expanded_products", times) else None
