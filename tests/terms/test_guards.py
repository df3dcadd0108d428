"""Guards hold where their interval does, and their sums are the step functions that they were."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.term import ZERO, Guard, tensor
from tests.support.expressions import Space, affine, assert_equal, data, each, evaluated, index, many, space, truth

BOUND = st.none() | st.integers(-12, 24)


@many
@given(draws=st.data())
def test_interval(draws: st.DataObject) -> None:
    where = space(draws.draw)
    e, lo, hi = index(draws.draw, where), draws.draw(BOUND), draws.draw(BOUND)
    holds = each(lambda x: int((lo is None or lo <= x) and (hi is None or x <= hi)), e.values)
    assert_equal(evaluated(guards.interval(e.it, lo, hi), where), holds, (e.it, lo, hi))


def test_what_only_the_high_part_of_a_variable_decides() -> None:
    """Three quarters and the last one are told by its upper digit, though 192 does not divide 256."""
    v = expr.of_var(expr.var("d", "", 256))
    quarter = expr.floor_div(v, 64)
    assert guards.interval(v, 192, None) is guards.interval(quarter, 3, None)
    assert guards.interval(v, None, 191) is guards.interval(quarter, None, 2)
    assert guards.interval(v, 64, 191) is guards.interval(quarter, 1, 2)
    assert guards.interval(v, 192, None) is not guards.interval(v, 193, None)


def test_high_parts_of_a_variable_are_asked_about_together() -> None:
    """[d = 1] and [d div 2 >= 1] exclude each other, and products and sums of such steps are steps of d."""
    for size in (6, 7, 8):
        _check_steps(expr.var("d", "", size))


def _check_steps(variable: Var) -> None:
    d, where = expr.of_var(variable), Space((variable,))
    parts = [expr.floor_div(d, m) for m in (1, 2, 3, 4)]
    steps = [guards.interval(e, lo, hi) for e in parts for lo in range(3) for hi in (lo, lo + 2, None)]
    for a in steps:
        for b in steps:
            both = algebra.multiply(a, b)
            values = evaluated(a, where) * evaluated(b, where)
            assert (both is ZERO) == (not values.any())
            assert both is algebra.multiply(b, a)
            for mono, _ in both.items:
                assert len(guards.guards_of(mono)) <= 1, both


def test_a_sum_of_steps_is_built_once_and_for_all() -> None:
    """What is never computed, as its conditions exclude each other, does not change a sum whenever it is built anew."""
    d = expr.of_var(expr.var("d", "", 4))
    high = guards.interval(expr.floor_div(d, 2), 1, None)
    x = algebra.read(tensor("argument", "x", "i32", (4,)), (d,))
    term = algebra.add(
        algebra.scale(algebra.multiply(guards.interval(d, None, 0), x), 4),
        algebra.scale(algebra.multiply(high, x), 4),
        algebra.scale(algebra.multiply(algebra.multiply(guards.interval(d, 1, 1), high), x), 5),
    )
    assert algebra.build(dict(term.items)) is term
    assert len(term.items) == 2


def test_bounds_where_a_form_has_no_values() -> None:
    """4*i + j with j < 2 is 0, 1, 4, 5, 8 or 9: any bound is one on i, or splits a pair."""
    i, j = (expr.of_var(expr.var(name, "", size)) for name, size in (("i", 3), ("j", 2)))
    form = expr.add(expr.scale(i, 4), j)
    values = {4 * a + b for a in range(3) for b in range(2)}
    for lo in range(-1, 12):
        for hi in range(lo, 12):
            held = {x for x in values if lo <= x <= hi}
            found = guards.interval(form, lo, hi)
            assert (found is ZERO) == (not held), (lo, hi)
            if held and all((x ^ 1) in held for x in held):
                assert found is guards.interval(i, min(held) // 4, max(held) // 4), (lo, hi)


@many
@given(draws=st.data())
def test_intersection_and_complement(draws: st.DataObject) -> None:
    where = space(draws.draw)
    e = affine(draws.draw, where)
    parts = [guards.interval(e.it, draws.draw(BOUND), draws.draw(BOUND)) for _ in range(2)]
    numbers = [evaluated(p, where) for p in parts]
    assert_equal(evaluated(algebra.multiply(*parts), where), numbers[0] * numbers[1], parts)
    g = parts[0].atom
    if isinstance(g, Guard):
        outside = [guards.interval(g.form, lo, hi) for lo, hi in guards.complement(g)]
        assert_equal(evaluated(algebra.add(*outside), where), 1 - numbers[0], parts)


@many
@given(draws=st.data())
def test_sums_of_guarded_monomials(draws: st.DataObject) -> None:
    """Step functions over few forms, brought to canonical form, are the same functions."""
    where, known = space(draws.draw, 2), data(draws.draw)
    forms = [affine(draws.draw, where) for _ in range(2)]
    total, numbers = ZERO, where.spread(0)
    for _ in range(draws.draw(st.integers(1, 6))):
        piece, values = algebra.ONE, where.spread(1)
        for e in draws.draw(st.lists(st.sampled_from(forms), max_size=2)):
            lo, hi = draws.draw(BOUND), draws.draw(BOUND)
            piece = algebra.multiply(piece, guards.interval(e.it, lo, hi))
            holds = each(lambda x, lo=lo, hi=hi: int((lo is None or lo <= x) and (hi is None or x <= hi)), e.values)
            values = values * holds
        c = Fraction(draws.draw(st.integers(-3, 3)), draws.draw(st.integers(1, 2)))
        total, numbers = algebra.add(total, algebra.scale(piece, c)), numbers + c * values
    assert_equal(evaluated(total, where, known.evaluator), numbers, total)
    for mono, _ in total.items:
        forms_of_one = [g.form for g in guards.guards_of(mono)]
        assert len(set(forms_of_one)) == len(forms_of_one), total


@many
@given(draws=st.data())
def test_one_form_has_one_canonical_sum(draws: st.DataObject) -> None:
    """Intervals of one form in any order: equal step functions are one object, as long as no bound changes the form."""
    where = space(draws.draw, 1)
    e = affine(draws.draw, where)
    pieces, numbers = [], where.spread(0)
    for _ in range(4):
        c = draws.draw(st.integers(-3, 3))
        pieces.append(algebra.scale(guards.interval(e.it, draws.draw(BOUND), draws.draw(BOUND)), c))
        numbers = numbers + evaluated(pieces[-1], where)
    one, other = algebra.add(*pieces), algebra.add(*draws.draw(st.permutations(pieces)))
    assert_equal(evaluated(one, where), numbers, pieces)
    assert_equal(evaluated(other, where), numbers, pieces)
    forms = {g.form for p in (*pieces, one, other) for mono, _ in p.items for g in guards.guards_of(mono)}
    if len(forms) <= 1:
        assert one is other


@many
@given(draws=st.data())
def test_products_of_truth_values_are_truth_values(draws: st.DataObject) -> None:
    where, known = space(draws.draw, 2), data(draws.draw)
    parts = [truth(draws.draw, where, known) for _ in range(3)]
    product, numbers = algebra.ONE, where.spread(1)
    for p in [*parts, *parts]:
        product, numbers = algebra.multiply(product, p.it), numbers * p.values
    assert_equal(evaluated(product, where, known.evaluator), numbers, product)
