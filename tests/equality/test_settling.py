"""Definitions made anew where they are read at constants have the values that they had."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.equality import cases
from hlo_verify.equality.effort import Effort
from hlo_verify.equality.settling import settled
from hlo_verify.index import expr
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.definitions import named
from hlo_verify.terms.extrema import reduce_extremum
from hlo_verify.terms.functions import Function, real
from hlo_verify.terms.laws import apply
from hlo_verify.terms.machine import as_index
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Poly, number, tensor
from tests.support.expressions import Space, data, evaluated, many, poly, space


@many
@given(draws=st.data())
def test_values_stay(draws: st.DataObject) -> None:
    """Of a sum, an extremum or a name, and of a definition that reads it, at a constant."""
    draw = draws.draw
    whole = Space((*space(draw, 2).variables, expr.var("y", 0, 3), expr.var("y", 1, 2)))
    known = data(draw)
    *_, bound, fixed = whole.variables
    first, second = poly(draw, whole, known), poly(draw, whole, known, 1)
    kind = draw(st.sampled_from(("sum", "max", "term")))
    inner = named(first.it)
    if kind != "term":
        inner = reduce_sum([bound], inner) if kind == "sum" else reduce_extremum("max", [bound], inner)
    outer = reduce_sum([bound], algebra.multiply(named(apply(Function("abs"), (inner,))), second.it))
    at = draw(st.integers(0, fixed.size - 1))
    here = algebra.substitute(outer, {fixed: expr.constant(at)})
    values = first.values[..., at]
    if kind != "term":
        values = (values.sum if kind == "sum" else values.max)(axis=-1, keepdims=True)
    wanted = (abs(values) * second.values[..., at]).sum(axis=-1)
    if draw(st.booleans()):  # the constant is inside of a definition
        here, wanted = reduce_sum([whole.variables[0]], here), wanted.sum(axis=0, keepdims=True)
        wanted = np.broadcast_to(wanted, tuple(v.size for v in whole.variables[:-2]))
    found = evaluated(settled(here, Effort(1000)), Space(whole.variables[:-2]), known.evaluator)
    assert np.all(np.vectorize(lambda a, b: abs(Fraction(a) - Fraction(b)) < Fraction(1, 10**6))(found, wanted))


def staged(device: expr.Index, turns: int) -> Poly:
    """What a device has after some turns of a pipeline: the first starts anew in each, the other goes on."""
    i, k = (expr.of_var(expr.var("x", n, 8)) for n in range(2))
    x, w = tensor("argument", "x", "f32", (9, 8)), tensor("argument", "w", "f32", (2, 8, 8))
    first = guards.interval(device, 0, 0)
    held = number(0)
    for turn in range(turns):
        given = algebra.read(x, [expr.constant(turn), k])
        product = algebra.multiply(named(algebra.select(first, given, held)), algebra.read(w, [device, k, i]))
        held = apply(real("tanh"), (reduce_sum([expr.var("x", 1, 8)], product),))
        held = algebra.substitute(held, {expr.var("x", 0, 8): k})
    return held


def reads(p: Poly) -> str:
    """The text of a term and of every definition in it."""
    return repr(p) + "".join(
        reads(body) for mono, _ in p.items for atom, _ in mono for arg in getattr(atom, "args", ()) for body in _in(arg)
    )


def _in(p: Poly) -> list[Poly]:
    return [p, *(body for mono, _ in p.items for atom, _ in mono for body in _bodies(atom))]


def _bodies(atom: object) -> list[Poly]:
    bodies = getattr(getattr(atom, "tensor", None), "bodies", ())
    return [inner for body in bodies for inner in _in(body)]


def test_nothing_of_other_devices_is_left() -> None:
    d = expr.var("d", "", 2)
    several = staged(expr.of_var(d), 3)
    assert "<=" in reads(several)
    one = algebra.substitute(several, {d: expr.constant(0)})
    first = settled(one, Effort(100))
    assert "<=" not in reads(first)
    assert settled(first, Effort(100)) is first
    assert settled(several, Effort(100)) is several
    assert settled(one, Effort(0)) is one


def test_places_that_data_say_decide_nothing() -> None:
    """No effort is taken where nothing is decided."""
    y, d, i = tensor("argument", "y", "i32", ()), expr.var("d", "", 2), expr.var("x", 1, 8)
    data = as_index(algebra.read(y, ()), 0, 1)
    total = reduce_sum([i], algebra.substitute(staged(expr.of_var(d), 2), {d: data}))
    effort = Effort(100)
    assert settled(total, effort) is total
    assert effort.left == 100


def test_a_constant_inside_decides() -> None:
    """Of `sum i. log(s[0, i])`, s the sum of exp(h[0, i, k]): where little is left of h, that is a product. It is made
    anew once the sum over i is opened."""
    d, i, k = expr.var("d", "", 2), expr.var("x", 0, 8), expr.var("x", 1, 8)
    own = algebra.read(tensor("argument", "x", "f32", (8, 8)), [expr.of_var(i), expr.of_var(k)])
    less = algebra.subtract(own, algebra.read(tensor("argument", "m", "f32", (8,)), [expr.of_var(i)]))
    first = guards.interval(expr.of_var(d), 0, 0)

    def logarithms(h: Poly) -> Poly:
        return apply(real("log"), (reduce_sum([k], apply(real("exponential"), (h,))),))

    every = logarithms(named(algebra.select(first, less, apply(real("tanh"), (own,)))))
    total = reduce_sum([i], algebra.substitute(every, {d: expr.constant(0)}))
    wanted = reduce_sum([i], logarithms(less))
    assert total is not wanted
    assert settled(total, Effort(100)) is total
    assert cases.equal(total, wanted, total=Effort(100))


def test_a_constant_far_inside_decides() -> None:
    """Of rows of rows, each the logarithms of sums, where the first device has other ones than the others."""
    d, i, k = expr.var("d", "", 2), expr.var("x", 0, 8), expr.var("x", 1, 8)
    own = algebra.read(tensor("argument", "x", "f32", (8, 8)), [expr.of_var(i), expr.of_var(k)])
    first, steps = guards.interval(expr.of_var(d), 0, 0), Effort(1000)

    def deep(choose: Callable[[Poly, Poly], Poly]) -> Poly:
        held = own
        for _ in range(7):
            chosen = named(choose(algebra.add(held, number(1)), algebra.scale(held, 2)))
            row = apply(real("log"), (reduce_sum([k], apply(real("exponential"), (algebra.multiply(chosen, own),))),))
            held = algebra.multiply(row, own)
        return reduce_sum([i, k], held)

    every = deep(lambda one, other: algebra.select(first, one, other))
    found = algebra.substitute(every, {d: expr.constant(0)})
    right, wrong = deep(lambda one, other: one), deep(lambda one, other: other)
    assert found is not right
    assert cases.equal(found, right, total=steps)
    assert not cases.equal(found, wrong, total=steps)
