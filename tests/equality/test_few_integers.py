"""Extrema of few integers as truth values, and counts that ask the same: by numbers, and as programs."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.equality.few_integers import in_steps, with_truths_for_counts
from hlo_verify.equality.prefixes import by_parts
from hlo_verify.index import expr
from hlo_verify.memory import Memory
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.extrema import reduce_boolean, reduce_extremum
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import number
from tests.support.expressions import Data, Space
from tests.support.lowering import Placed

Program = Callable[..., Any]
SIZE = 12


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("seed", range(20))
def test_steps_by_numbers(seed: int, kind: str) -> None:
    """Of what a flag and a place choose from three numbers."""
    draw = random.Random(seed)
    with Memory().on():
        known = Data({}, np.random.default_rng(seed))
        x = known.make((SIZE,), "i1")
        i, v = expr.var("i", "", SIZE), expr.fresh("v", SIZE)
        low, middle, high = (draw.choice((-128, -3, 0, 1, 2, 127)) for _ in range(3))
        held = guards.interval(expr.subtract(expr.of_var(v), expr.of_var(i)), None, draw.randint(-2, 2))
        flag = algebra.read(x, (expr.of_var(v),))
        inside = algebra.select(flag, number(high), number(middle))
        whole = reduce_extremum(kind, [v], algebra.select(held, inside, number(low)))
        found, space = in_steps(whole), Space((i,))
        if found is not None:
            one, other = (space.spread(known.evaluator.poly(p, space.grid)) for p in (whole, found))
            assert np.array_equal(one, other)


@pytest.mark.parametrize("ahead", [-1, 0, 1])
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("begins_early", [False, True])
def test_whether_any_holds_part_by_part(seed: int, ahead: int, begins_early: bool) -> None:
    with Memory().on():
        known = Data({}, np.random.default_rng(seed))
        x = known.make((SIZE,), "i1")
        d, i, v = expr.var("d", "", 3), expr.var("i", "", 4), expr.fresh("v", SIZE)
        last = expr.shift(expr.add(expr.scale(expr.of_var(d), 4), expr.of_var(i)), ahead)
        where = expr.shift(expr.add(expr.of_var(v), last), 1 - SIZE) if begins_early else expr.of_var(v)
        held = guards.interval(where, 0, None) if begins_early else guards.interval(expr.subtract(where, last), None, 0)
        inside, flag = guards.interval(last, 0, SIZE - 1), algebra.read(x, (where,))
        space, values = Space((d, i)), known.tensors[x]
        any_of = algebra.multiply(inside, reduce_boolean("or", [v], algebra.multiply(held, flag)))
        all_of = algebra.multiply(inside, reduce_boolean("and", [v], algebra.select(held, flag, number(1))))
        for whole, reduce in ((any_of, any), (all_of, all)):
            wanted = [
                [int(reduce(values[: end + 1])) if 0 <= (end := 4 * a + b + ahead) < SIZE else 0 for b in range(4)]
                for a in range(3)
            ]
            for p in (whole, by_parts(whole) or whole):
                found = space.spread(known.evaluator.poly(p, space.grid))
                assert np.array_equal(found.astype(int), np.asarray(wanted))


@pytest.mark.parametrize("least", [1, 2])
def test_only_the_count_that_is_asked_for_is_replaced(least: int) -> None:
    """That two hold is not that any does."""
    with Memory().on():
        known = Data({}, np.random.default_rng(0))
        x, v = known.make((SIZE,), "i1"), expr.fresh("v", SIZE)
        i = expr.var("i", "", SIZE)
        body = algebra.multiply(
            algebra.read(x, (expr.of_var(v),)), guards.interval(expr.subtract(expr.of_var(v), expr.of_var(i)), None, 0)
        )
        count = algebra.as_index(reduce_sum([v], body), -expr.UNBOUNDED, expr.UNBOUNDED)
        asked, any_of = guards.interval(count, least, None), reduce_boolean("or", [v], body)
        p = algebra.subtract(algebra.scale(asked, 2), any_of)
        found = with_truths_for_counts(p, lambda rest: rest is number(0))
        assert found is (any_of if least == 1 and asked is not any_of else None)


def gathered(x: jax.Array) -> jax.Array:
    return lax.all_gather(x, "x", tiled=True)


def mine() -> jax.Array:
    return 4 * lax.axis_index("x") + jnp.arange(4)


def before(x: jax.Array, other: Any) -> jax.Array:
    """What devices before this one have, and something else of the others."""
    return jnp.where(jnp.arange(4) < lax.axis_index("x"), lax.all_gather(x, "x"), other)


def so_far(m: jax.Array) -> jax.Array:
    return lax.cummax(m.astype(jnp.int32))


def all_so_far(m: jax.Array) -> jax.Array:
    return jnp.cumprod(m.astype(jnp.int32))


def equal_before(x: jax.Array, place: jax.Array, y: jax.Array) -> jax.Array:
    return (x[None] == y[:, None]) & (jnp.arange(16)[None] < place[:, None])


SAME: dict[str, tuple[Program, Program]] = {
    "any so far": (so_far, lambda m: jnp.maximum(so_far(m), before(m.any(), False).any().astype(jnp.int32))),
    "any so far, as a count": (so_far, lambda m: (jnp.cumsum(m) + before(m.sum(), 0).sum() > 0).astype(jnp.int32)),
    "any so far, of all": (
        so_far,
        lambda m: (gathered(m) & (jnp.arange(16) <= mine()[:, None])).any(1).astype(jnp.int32),
    ),
    "all so far": (
        all_so_far,
        lambda m: (jnp.cumsum(~m) + before((~m).sum(), 0).sum() == 0).astype(jnp.int32),
    ),
    "all so far, by their number": (
        all_so_far,
        lambda m: (jnp.cumsum(m) + before(m.sum(), 0).sum() == mine() + 1).astype(jnp.int32),
    ),
}
OTHER: dict[str, tuple[Program, Program]] = {
    "of whole devices": (so_far, lambda m: jnp.maximum(so_far(m), before(m.all(), False).any().astype(jnp.int32))),
    "two so far": (so_far, lambda m: (jnp.cumsum(m) + before(m.sum(), 0).sum() > 1).astype(jnp.int32)),
    "without its own": (
        so_far,
        lambda m: (gathered(m) & (jnp.arange(16) < mine()[:, None])).any(1).astype(jnp.int32),
    ),
    "all but one": (
        all_so_far,
        lambda m: (jnp.cumsum(~m) + before((~m).sum(), 0).sum() <= 1).astype(jnp.int32),
    ),
    "another number": (
        all_so_far,
        lambda m: (jnp.cumsum(m) + before(m.sum(), 0).sum() == mine()).astype(jnp.int32),
    ),
    "none so far": (all_so_far, lambda m: (jnp.cumsum(m) + before(m.sum(), 0).sum() == 0).astype(jnp.int32)),
}


def verdict(reference: Program, local: Program, dtype: Any = jnp.bool_) -> Verdict:
    placed = Placed(AbstractMesh((4,), ("x",)), P("x"), P("x"), [jax.ShapeDtypeStruct((16,), dtype)])
    return hlo_verify.verify(*placed.pair(reference, local), refute=False).verdict


@pytest.mark.usefixtures("prover_alone")
@pytest.mark.parametrize("name", SAME)
def test_what_holds_up_to_a_place(name: str) -> None:
    assert verdict(*SAME[name]) is Verdict.PROVED


@pytest.mark.usefixtures("prover_alone")
@pytest.mark.parametrize("name", OTHER)
def test_what_holds_up_to_another(name: str) -> None:
    assert verdict(*OTHER[name]) is not Verdict.PROVED


@pytest.mark.usefixtures("prover_alone")
@pytest.mark.parametrize("most", [0, 1])
def test_whether_an_element_is_the_first_of_its_kind(most: int) -> None:
    def reference(x: jax.Array) -> jax.Array:
        return ~equal_before(x, jnp.arange(16), x).any(1)

    def local(x: jax.Array) -> jax.Array:
        return equal_before(gathered(x), mine(), x).sum(1) <= most

    assert (verdict(reference, local, jnp.int32) is Verdict.PROVED) is (most == 0)
