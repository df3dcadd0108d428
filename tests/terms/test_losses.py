"""What sums and products keep of what may be no number."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hlo_verify.index import expr
from hlo_verify.terms import algebra, guards, losses, signs, sums
from hlo_verify.terms.attained import counts_the_best
from hlo_verify.terms.extrema import reduce_extremum
from hlo_verify.terms.functions import EXPONENTIAL, INFINITY, IS_ZERO, LOG, MAXIMUM, MINIMUM, real, typed
from hlo_verify.terms.laws import apply, divide
from hlo_verify.terms.losses import zero_times
from hlo_verify.terms.renaming import Leaves, Renaming
from hlo_verify.terms.restriction import where
from hlo_verify.terms.term import ONE, ZERO, Poly, Tensor, number, tensor

SIZE = 4
ROW = expr.var("x", 0, SIZE)


def argument(name: str, dtype: str = "f32") -> Tensor:
    return tensor("argument", name, dtype, (SIZE,))


COMPLEX = "complex<f32>"
A, B, C, Z = argument("a"), argument("b"), argument("c", "i1"), argument("z", COMPLEX)


def at(source: Tensor, place: expr.Index | None = None) -> Poly:
    return algebra.read(source, (expr.of_var(ROW) if place is None else place,))


def first() -> Poly:
    """Whether the row is the first. Made anew: a verification that runs before a test forgets all terms."""
    return guards.interval(expr.of_var(ROW), None, 0)


def log(p: Poly) -> Poly:
    return apply(LOG, (p,))


def test_numbers_vanish() -> None:
    assert algebra.subtract(at(A), at(A)) is ZERO
    assert algebra.times(ZERO, at(A)) is ZERO
    assert zero_times(at(A)) is ZERO


def test_what_may_be_no_number_does_not() -> None:
    t = log(at(A))
    lost = zero_times(t)
    assert lost is not ZERO
    assert algebra.subtract(t, t) is lost
    assert algebra.times(ZERO, t) is lost
    assert algebra.add(t, lost, lost, algebra.scale(t, -1)) is lost
    assert algebra.times(lost, at(B)) is lost


def test_a_selection_loses_what_it_leaves_out() -> None:
    t = log(at(A))
    selected = algebra.select(first(), t, ZERO)
    assert selected is algebra.multiply(first(), t)
    masked = algebra.times(first(), t)
    assert algebra.subtract(masked, selected) is algebra.add(
        algebra.multiply(algebra.logical_not(first()), zero_times(t)), algebra.multiply(first(), zero_times(t))
    )


def test_the_parts_of_a_selection_make_it_whole() -> None:
    t, c = log(at(A)), at(C)
    assert algebra.add(algebra.select(c, t, ZERO), algebra.select(c, ZERO, t)) is t
    assert algebra.add(algebra.select(first(), t, ZERO), algebra.select(first(), ZERO, t)) is t


def test_what_is_implied_is_left_out() -> None:
    """The greatest of some logarithms is undefined only where a sum of them is."""
    v = expr.fresh("v", SIZE)
    t = log(at(A, expr.of_var(v)))
    greatest, total = reduce_extremum("max", [v], t), sums.reduce_sum([v], t)
    assert algebra.subtract(algebra.add(total, greatest), greatest) is total
    one = log(at(A, expr.constant(0)))
    assert algebra.subtract(algebra.add(one, greatest), greatest) is not one


def test_one_element_is_implied_by_all() -> None:
    """An element of a sum is undefined only where the sum is: one that is surely among them, of the same tensor."""
    v, w = expr.fresh("v", SIZE), expr.fresh("w", SIZE - 1)
    total = sums.reduce_sum([v], log(at(A, expr.of_var(v))))
    after = expr.add(expr.of_var(w), expr.constant(1))
    inner = [log(at(A)), log(at(A, expr.constant(2))), reduce_extremum("max", [w], log(at(A, after)))]
    for part in inner:
        assert algebra.subtract(algebra.add(total, part), part) is total
    some = sums.reduce_sum([w], log(at(A, after)))
    later = algebra.multiply(guards.interval(expr.of_var(v), 1, None), log(at(A, expr.of_var(v))))
    for known, part in [
        (total, log(at(B))),
        (total, log(algebra.add(at(A), ONE))),
        (total, log(algebra.add(at(A), at(A, expr.constant(0))))),
        (some, log(at(A, expr.constant(0)))),
        (some, log(at(A))),
        (some, total),
        (sums.reduce_sum([v], later), log(at(A, expr.constant(0)))),
        (sums.reduce_sum([v], later), log(at(A))),
    ]:
        assert algebra.subtract(algebra.add(known, part), part) is not known


def test_how_often_something_is_the_best_is_a_number_of_numbers() -> None:
    v = expr.fresh("v", SIZE)
    t, other = (log(at(source, expr.of_var(v))) for source in (A, B))
    total = sums.reduce_sum([v], t)
    best = reduce_extremum("max", [v], t)
    for element, of, is_implied in [(t, best, True), (other, best, False), (t, at(B), False)]:
        count = sums.reduce_sum([v], apply(IS_ZERO, (algebra.subtract(of, element),)))
        for beside, never_negative in [(ZERO, True), (number(-1), False), (at(B), False)]:
            part = divide(ONE, algebra.add(count, beside))
            is_total = algebra.subtract(algebra.add(total, part), part) is total
            assert is_total is (is_implied and never_negative)


def test_infinities_are_added_with_their_signs() -> None:
    inf = apply(INFINITY, ())
    assert algebra.add(inf, inf) is algebra.scale(inf, 2)
    assert algebra.subtract(algebra.scale(inf, 3), inf) is not algebra.scale(inf, 2)
    assert algebra.times(algebra.add(at(A), at(B)), inf).atom is not None
    assert algebra.add(algebra.subtract(inf, inf), inf) is not inf


@pytest.mark.parametrize("count", [1, 2])
def test_a_product_that_is_known_by_its_factors_is_the_same_anywhere(count: int) -> None:
    """A choice is taken first, be it as the product is made or where it is read at another place."""
    inf = apply(INFINITY, ())
    chosen_one = algebra.select(first(), algebra.add(at(A), at(B)), algebra.add(at(B), inf))
    other = algebra.add(at(B), inf) if count == 1 else algebra.select(first(), algebra.add(at(B), inf), at(A))
    made = algebra.times(chosen_one, other)
    elsewhere = expr.var("y", 0, SIZE)
    there = algebra.substitute(made, {ROW: expr.of_var(elsewhere)})
    assert there is not made
    assert algebra.substitute(there, {elsewhere: expr.of_var(ROW)}) is made


def test_a_factor_stays_in_a_sum_of_selected_elements() -> None:
    v = expr.fresh("v", SIZE)
    element, t = at(A, expr.of_var(v)), log(at(B))
    later = guards.interval(expr.subtract(expr.of_var(v), expr.of_var(ROW)), 1, None)
    total = sums.reduce_sum([v], algebra.multiply(later, algebra.times(t, element)))
    assert total is not algebra.times(t, sums.reduce_sum([v], algebra.multiply(later, element)))
    assert sums.reduce_sum([v], algebra.times(t, element)) is algebra.times(t, sums.reduce_sum([v], element))


@pytest.mark.parametrize(
    ("make", "is_number"),
    [
        (lambda: divide(ONE, apply(EXPONENTIAL, (at(A),))), True),
        (lambda: divide(ONE, at(A)), False),
        (lambda: divide(ONE, algebra.add(ONE, algebra.power(at(A), 2))), True),
        (lambda: divide(ONE, algebra.add(number(-1), algebra.power(at(A), 2))), False),
        (lambda: divide(ONE, ZERO), False),
        (lambda: log(apply(MAXIMUM, (ONE, at(A)))), True),
        (lambda: log(apply(MINIMUM, (ONE, at(A)))), False),
        (lambda: apply(real("rsqrt"), (apply(real("logistic"), (at(A),)),)), True),
        (lambda: apply(typed("multiply", (COMPLEX, COMPLEX), COMPLEX), (at(Z), at(Z))), True),
        (lambda: apply(typed("divide", (COMPLEX, COMPLEX), COMPLEX), (at(Z), at(Z))), False),
    ],
)
def test_domains(make: Callable[[], Poly], is_number: bool) -> None:
    assert (not make().doubt) is is_number


@pytest.mark.parametrize("kind", ["max", "min"])
def test_one_element_is_the_best(kind: str) -> None:
    v = expr.fresh("v", SIZE)
    element = at(A, expr.of_var(v))
    best = reduce_extremum(kind, [v], element)
    count = sums.reduce_sum([v], apply(IS_ZERO, (algebra.subtract(element, best),)))
    assert counts_the_best(count)
    assert signs.of(count) == signs.POSITIVE
    other = sums.reduce_sum([v], apply(IS_ZERO, (algebra.subtract(at(B, expr.of_var(v)), best),)))
    assert signs.of(other) == signs.ZERO | signs.POSITIVE


def test_what_conditions_leave_of_a_number_is_one_selection_elsewhere_too() -> None:
    """`t - c*t` computes no t where c holds, and does not at other places or of other tensors."""
    place = {ROW: expr.constant(0)}
    for condition in (first(), at(C)):
        left = algebra.select(condition, ZERO, log(at(A)))
        there = algebra.select(algebra.substitute(condition, place), ZERO, log(at(A, expr.constant(0))))
        assert algebra.substitute(left, place) is there
        renamed = Renaming({A: B}, Leaves()).poly(left)
        assert renamed is algebra.select(condition, ZERO, log(at(B)))


def test_what_becomes_the_same_elsewhere_is_lost() -> None:
    v = expr.var("x", 1, SIZE)
    t, same = log(at(A)), {v: expr.of_var(ROW)}
    there = log(at(A, expr.of_var(v)))
    assert algebra.substitute(algebra.subtract(t, there), same) is zero_times(t)
    masked = algebra.subtract(algebra.multiply(at(C), t), algebra.multiply(at(C, expr.of_var(v)), t))
    assert algebra.substitute(masked, same) is algebra.multiply(at(C), zero_times(t))


def test_a_case_of_a_selection_is_one_selection() -> None:
    """`t - [c]*t`, which computes no t where c holds: of its parts added up, t would be computed there."""
    t = log(at(A))
    selected = algebra.select(at(C), ZERO, t)
    term = algebra.add(algebra.multiply(first(), at(B)), selected)
    row = expr.of_var(ROW)
    assert where(term, row, 1, None) is selected
    assert where(term, row, None, 0) is algebra.add(at(B), selected)


def test_what_is_selected_is_so_of_those_that_are_asked_about() -> None:
    """Whether it is implied by what else is computed is worked out of these alone, and no other answer for it."""
    second = guards.interval(expr.of_var(ROW), 1, 1)
    of_place, of_all = log(at(A)), log(at(B, expr.constant(0)))
    inverse = divide(ONE, at(B, expr.constant(1)))
    for p in (
        algebra.add(algebra.multiply(first(), of_place), algebra.multiply(second, of_all), inverse),
        algebra.add(algebra.multiply(first(), algebra.multiply(of_place, inverse)), of_all),
        algebra.add(algebra.multiply(first(), of_all), algebra.multiply(of_all, inverse)),
        algebra.add(algebra.multiply(first(), log(algebra.add(of_all, ONE))), of_all),
    ):
        atoms = {atom for mono, _ in p.items for atom, _ in mono}
        for bound in (None, [ROW], []):
            every = losses.selected_by(p, bound)
            assert every <= atoms
            for few in ([], *([atom] for atom in atoms), atoms):
                assert losses.selected_by(p, bound, set(few)) == every.intersection(few)
    assert losses.selected_by(algebra.multiply(first(), of_all)) == {of_all.atom}
