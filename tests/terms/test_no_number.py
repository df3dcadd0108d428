"""What is made of NaN that a program writes is what IEEE arithmetic makes of it, in whatever order it is made."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hlo_verify.memory import Memory
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import ABS, EXPONENTIAL, MAXIMUM, MINIMUM, POSITIVE, real
from hlo_verify.terms.laws import apply
from hlo_verify.terms.losses import separated
from hlo_verify.terms.no_number import apart, nan, occurs_in, once, what_is_added
from hlo_verify.terms.term import ONE, Apply, Poly, atoms, make_poly, number, reads
from tests.support.expressions import Array
from tests.support.nan_laws import condition, nan_somewhere
from tests.support.structural_laws import Case, at

SEEDS = 300
Made = tuple[Poly, Array]


def numbers(case: Case) -> Made:
    x, xs = case.make(6, 3)
    return at(x, case.i, case.j), case.each(lambda i, j: float(xs[i, j]))


def constant(case: Case) -> Made:
    k = case.random.choice((-1, 0, 1, 3))
    return number(k), case.each(lambda i, j: k)


LEAVES = (numbers, constant, nan_somewhere, nan_somewhere, condition)


def each(function: Callable[..., float], *args: Array) -> Array:
    return np.vectorize(function, otypes=[object])(*(a.astype(float) for a in args))


def of_one(function: Any, meaning: Callable[[float], float]) -> Callable[[Case, Made, Made], Made]:
    return lambda case, a, b: (apply(function, (a[0],)), each(meaning, a[1]))


def added(case: Case, a: Made, b: Made) -> Made:
    return algebra.add(a[0], b[0]), each(lambda x, y: x + y, a[1], b[1])


def subtracted(case: Case, a: Made, b: Made) -> Made:
    return algebra.subtract(a[0], b[0]), each(lambda x, y: x - y, a[1], b[1])


def multiplied(case: Case, a: Made, b: Made) -> Made:
    return algebra.times(a[0], b[0]), each(lambda x, y: x * y, a[1], b[1])


def negated(case: Case, a: Made, b: Made) -> Made:
    return once(algebra.scale(a[0], -1)), each(lambda x: -x, a[1])


def selected(case: Case, a: Made, b: Made) -> Made:
    p, ps = condition(case)
    return algebra.select(p, a[0], b[0]), np.where(ps.astype(bool), a[1], b[1])


def least(case: Case, a: Made, b: Made) -> Made:
    return apply(MINIMUM, (a[0], b[0])), each(lambda x, y: float(np.minimum(x, y)), a[1], b[1])


def greatest(case: Case, a: Made, b: Made) -> Made:
    return apply(MAXIMUM, (b[0], a[0])), each(lambda x, y: float(np.maximum(x, y)), a[1], b[1])


MADE = (added, added, subtracted, multiplied, multiplied, negated, selected, selected, least, greatest)
MADE += (
    of_one(POSITIVE, lambda x: float(x > 0)),
    of_one(real("tanh"), math.tanh),
    of_one(ABS, abs),
    of_one(real("atan"), math.atan),
)


def random_term(case: Case, depth: int) -> Made:
    if not depth:
        return case.random.choice(LEAVES)(case)
    make = case.random.choice(MADE)
    return make(case, random_term(case, depth - 1), random_term(case, case.random.randrange(depth)))


def is_same(x: Any, y: Any) -> bool:
    x, y = float(x), float(y)
    return math.isnan(x) == math.isnan(y) and (math.isnan(x) or abs(x - y) <= 1e-6 * max(1, abs(y)))


def is_unknown(p: Poly) -> bool:
    """Whether a term has too many conditions, so that nothing is known of it, or functions of what is NaN somewhere."""
    inside = (arg for atom in atoms(p) if isinstance(atom, Apply) for arg in atom.args)
    return any(read.tensor.kind == "opaque" for read in reads(p)) or any(map(occurs_in, inside))


def value(case: Case, p: Poly) -> Array:
    """What a term is, each product of which is computed where its conditions leave a coefficient that is not 0."""
    return case.value(make_poly(tuple(separated(p))))


def test_random_terms() -> None:
    count = 0
    for seed in range(SEEDS):
        with Memory().on(), np.errstate(invalid="ignore"):
            case = Case(seed)
            term, wanted = random_term(case, case.random.choice((2, 3)))
            if any(isinstance(x, float) and math.isinf(x) for x in wanted.flat) or is_unknown(term):
                continue
            found = value(case, term)
            assert all(map(is_same, found.flat, wanted.flat)), (seed, term)
            count += any(isinstance(x, float) and math.isnan(x) for x in wanted.flat)
    assert count > SEEDS / 4


@pytest.mark.parametrize("seed", range(20))
def test_what_is_added_to_a_part_of_a_sum(seed: int) -> None:
    case = Case(seed)
    (x, _), (added_one, _) = case.make(6, 3), nan_somewhere(case)
    part = at(x, case.i, case.j)
    whole = algebra.add(part, added_one)
    found = what_is_added(whole, part)
    assert algebra.add(part, found) is whole
    assert apart(whole) is None or x not in {read.tensor for read in reads(found)}


@pytest.mark.parametrize("function", [real("tanh"), ABS, EXPONENTIAL, real("log_plus_one"), real("logistic")])
def test_functions_commute_with_selections_of_nan(function: Any) -> None:
    case = Case(0)
    x, _ = case.make(6, 3)
    p, _ = condition(case)
    term = at(x, case.i, case.j)
    inside = apply(function, (algebra.select(p, term, nan()),))
    assert inside is algebra.select(p, apply(function, (term,)), nan())


def test_what_forgets_nan() -> None:
    assert apply(real("power"), (nan(), number(0))) is not nan()
    assert apply(POSITIVE, (nan(),)).constant == 0
    assert apply(MAXIMUM, (nan(), ONE)) is nan()
    assert algebra.subtract(nan(), nan()) is nan()
    assert algebra.times(number(0), nan()) is nan()
