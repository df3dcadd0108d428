"""Integers that conditions tell, and products that are 0 on a boundary."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.equality.told_integers import with_told
from hlo_verify.index import expr
from hlo_verify.memory import Memory
from hlo_verify.terms import algebra
from hlo_verify.terms.term import ONE, Guard, make_guard, number
from tests.support.lowering import Placed
from tests.support.structural_laws import Case, at

MESH = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
INTEGERS = [jax.ShapeDtypeStruct((4,), jnp.int32)] * 2
Body = Callable[[jax.Array, jax.Array], jax.Array]


def verdict(reference: Body, local: Body) -> Verdict:
    pair = Placed(MESH, (P("x"), P("x")), P("x"), INTEGERS).pair(reference, local)
    return hlo_verify.verify(*pair, refute=False, assume={"x": (0, 9), "y": (0, 9)}).verdict


SAME: dict[str, tuple[Body, Body]] = {
    "by the sign": (lambda x, y: jnp.abs(x - 3), lambda x, y: (x - 3) * jnp.sign(x - 3)),
    "0 on either side": (lambda x, y: jnp.where(x > y, x - y, y - x), lambda x, y: jnp.where(x < y, y - x, x - y)),
    "the greater less the other": (lambda x, y: jnp.abs(x - y), lambda x, y: jnp.where(x > y, x - y, y - x)),
    "read as the other": (lambda x, y: jnp.where(x == y, x * x, 0), lambda x, y: jnp.where(x == y, x * y, 0)),
    "at its end": (lambda x, y: jnp.where(x < 1, x * y, y), lambda x, y: jnp.where(x < 1, 0, y)),
    "at the other end": (lambda x, y: jnp.where(x > 7, x * y, y), lambda x, y: jnp.where(x > 7, 8 * y, y)),
    "at one value": (lambda x, y: jnp.where(x == 2, x * y, y), lambda x, y: jnp.where(x == 2, 2 * y, y)),
}

OTHERS: dict[str, tuple[Body, Body]] = {
    "no 0 there": (lambda x, y: jnp.where(x > y, x * y, 0), lambda x, y: jnp.where(x >= y, x * y, 0)),
    "one beyond": (lambda x, y: jnp.where(x > y, x - y, 0), lambda x, y: jnp.where(x >= y - 1, x - y, 0)),
    "at another value": (lambda x, y: jnp.where(x == 2, x * y, y), lambda x, y: jnp.where(x == 2, 3 * y, y)),
    "twice the one": (lambda x, y: jnp.where(2 * x == y, x, 0), lambda x, y: jnp.where(2 * x == y, y, 0)),
}


@pytest.mark.parametrize("name", SAME)
def test_what_is_0_on_a_boundary_counts_on_neither_side(name: str) -> None:
    assert verdict(*SAME[name]) is Verdict.PROVED


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_another_number_there(name: str) -> None:
    assert verdict(*OTHERS[name]) is not Verdict.PROVED


@pytest.mark.parametrize("seed", range(60))
def test_the_value_is_kept_where_the_conditions_hold(seed: int) -> None:
    """With three integers, of which up to three conditions tell some, each other ones or none."""
    with Memory().on():
        case = Case(seed)
        tensors = [case.make(6, dtype="i8")[0] for _ in range(3)]
        for x in tensors:
            case.known.tensors[x] = np.array([case.random.randint(0, 2) for _ in range(6)], dtype=object)
        elements = [at(x, case.i) for x in tensors]
        p, known = number(0), [algebra.as_index(element, -128, 127) for element in elements]
        for _ in range(4):
            factors = [case.random.choice(elements) for _ in range(case.random.randint(1, 3))]
            part = ONE
            for factor in factors:
                part = algebra.multiply(part, factor)
            p = algebra.add(p, algebra.scale(part, case.random.randint(-2, 2)))
        conditions: list[Guard] = []
        for _ in range(case.random.randint(1, 3)):
            form = expr.add(
                case.j, *(expr.scale(e, case.random.randint(-1, 1) * case.random.choice((1, 1, 2))) for e in known)
            )
            form = expr.shift(form, -form.const)
            least = case.random.randint(-1, 3)
            conditions.append(make_guard(form, least, case.random.choice((least, least, least + 1))))
        found = with_told(p, conditions)
        hold = ONE
        for condition in conditions:
            hold = algebra.multiply(hold, algebra.build({((condition, 1),): 1}))
        is_there = case.value(hold) == 1
        assert (case.value(found)[is_there] == case.value(p)[is_there]).all()


def test_conditions_are_used_together() -> None:
    with Memory().on():
        case = Case(0)
        x, y = (at(case.make(6, dtype="i8")[0], case.i) for _ in range(2))
        one, other = (algebra.as_index(p, -128, 127) for p in (x, y))
        e = expr.subtract(one, other)
        assert with_told(algebra.subtract(x, y), [make_guard(e, 0, 0)]) is number(0)
        assert with_told(algebra.subtract(x, y), [make_guard(e, 0, 1)]) is algebra.subtract(x, y)
        for told in ((make_guard(e, 0, 0), make_guard(other, 2, 2)), (make_guard(other, 2, 2), make_guard(e, 0, 0))):
            assert with_told(algebra.multiply(x, y), told) is number(4)
