"""Sums up to a place, shared out: those of earlier parts and a part's own. Against adding up, and as programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.equality.prefixes import by_parts
from hlo_verify.index import expr
from hlo_verify.memory import Memory
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.sums import reduce_sum
from tests.support.expressions import Data, Space
from tests.support.lowering import Placed

Program = Callable[..., Any]


@given(
    part=st.sampled_from((2, 3, 4)),
    ahead=st.integers(-2, 2),
    begins_early=st.booleans(),
    negative=st.booleans(),
    seed=st.integers(0, 99),
)
def test_parts_add_up_to_the_whole(part: int, ahead: int, begins_early: bool, negative: bool, seed: int) -> None:
    with Memory().on():
        known, size = Data({}, np.random.default_rng(seed)), 4 * part
        x = known.make((size,), "f32")
        d, i, v = expr.var("d", "", 4), expr.var("i", "", part), expr.fresh("v", size)
        last = expr.shift(expr.add(expr.scale(expr.of_var(d), part), expr.of_var(i)), ahead)
        space, where = Space((d, i)), expr.of_var(v)
        if begins_early:  # the window that ends at the place
            where = expr.shift(expr.add(where, last), 1 - size)
            held = guards.interval(where, 0, None)
        else:
            held = guards.interval(expr.subtract(where, last), None, 0)
        if negative:
            held = guards.interval(expr.scale(expr.subtract(where, last), -1), 0, None) if not begins_early else held
        inside = guards.interval(last, 0, size - 1)
        whole = algebra.multiply(inside, reduce_sum([v], algebra.multiply(held, algebra.read(x, (where,)))))
        found = by_parts(whole)
        values = known.tensors[x]
        wanted = [
            [sum(values[: part * a + b + ahead + 1]) if 0 <= part * a + b + ahead < size else 0 for b in range(part)]
            for a in range(4)
        ]
        for p in (whole, whole if found is None else found):
            assert np.array_equal(space.spread(known.evaluator.poly(p, space.grid)), np.asarray(wanted, dtype=object))


@given(part=st.sampled_from((2, 3, 4)), ahead=st.integers(-2, 2), ends_late=st.booleans(), seed=st.integers(0, 99))
def test_later_parts_add_up_to_the_whole(part: int, ahead: int, ends_late: bool, seed: int) -> None:
    with Memory().on():
        known, size = Data({}, np.random.default_rng(seed)), 4 * part
        x = known.make((size,), "f32")
        d, i, v = expr.var("d", "", 4), expr.var("i", "", part), expr.fresh("v", size)
        start = expr.shift(expr.add(expr.scale(expr.of_var(d), part), expr.of_var(i)), ahead)
        space, where = Space((d, i)), expr.of_var(v)
        if ends_late:  # the window that begins at the place
            where = expr.add(where, start)
            held = guards.interval(where, None, size - 1)
        else:
            held = guards.interval(expr.subtract(where, start), 0, None)
        inside = guards.interval(start, 0, size - 1)
        whole = algebra.multiply(inside, reduce_sum([v], algebra.multiply(held, algebra.read(x, (where,)))))
        found = by_parts(whole)
        values = known.tensors[x]
        wanted = [
            [sum(values[part * a + b + ahead :]) if 0 <= part * a + b + ahead < size else 0 for b in range(part)]
            for a in range(4)
        ]
        for p in (whole, whole if found is None else found):
            assert np.array_equal(space.spread(known.evaluator.poly(p, space.grid)), np.asarray(wanted, dtype=object))


def verdict(program: Program, local: Program, size: int = 16, dtype: Any = jnp.float32) -> Verdict:
    placed = Placed(AbstractMesh((4,), ("x",)), P("x"), P("x"), [jax.ShapeDtypeStruct((size, 3), dtype)])
    return hlo_verify.verify(*placed.pair(program, local), refute=False).verdict


def earlier(total: jax.Array, is_earlier: Program = lambda j, d: j < d) -> jax.Array:
    """The sum of what earlier devices have."""
    held = is_earlier(jnp.arange(4), lax.axis_index("x"))
    return jnp.sum(jnp.where(held[:, None], lax.all_gather(total, "x"), 0), 0)


def running(x: jax.Array) -> jax.Array:
    return jnp.cumsum(x, 0)


def backwards(x: jax.Array) -> jax.Array:
    return lax.cumsum(x, 0, reverse=True)


def later(total: jax.Array) -> jax.Array:
    return earlier(total, lambda j, d: j > d)


RIGHT: dict[str, tuple[Program, Program]] = {
    "later ones": (backwards, lambda x: backwards(x) + later(x.sum(0))),
    "turned round": (lambda x: jnp.flip(running(jnp.flip(x, 0)), 0), lambda x: backwards(x) + later(x.sum(0))),
    "later ones, without its own": (lambda x: backwards(x) - x, lambda x: backwards(x) - x + later(backwards(x)[0])),
    "totals": (running, lambda x: running(x) + earlier(x.sum(0))),
    "the last of each": (running, lambda x: running(x) + earlier(running(x)[-1])),
    "without its own": (lambda x: running(x) - x, lambda x: running(x) - x + earlier(x.sum(0))),
    "by a contraction": (
        running,
        lambda x: (
            running(x)
            + jnp.einsum("n,nc->c", (jnp.arange(4) < lax.axis_index("x")) * 1.0, lax.all_gather(x.sum(0), "x"))
        ),
    ),
    "of functions": (lambda x: running(jnp.tanh(x)), lambda x: running(jnp.tanh(x)) + earlier(jnp.tanh(x).sum(0))),
}


@pytest.mark.parametrize("name", RIGHT)
def test_prefix_sums_across_devices(name: str) -> None:
    assert verdict(*RIGHT[name]) is Verdict.PROVED


@pytest.mark.parametrize(("size", "dtype"), [(4, jnp.float32), (8, jnp.float32), (24, jnp.float32), (16, jnp.int32)])
def test_of_other_sizes_and_types(size: int, dtype: Any) -> None:
    assert verdict(*RIGHT["totals"], size=size, dtype=dtype) is Verdict.PROVED


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: running(x),
        lambda x: running(x) + earlier(x.sum(0), lambda j, d: j <= d),
        lambda x: running(x) + earlier(x.sum(0), lambda j, d: j > d),
        lambda x: running(x) + earlier(x[0]),
        lambda x: running(x) - x + earlier(x.sum(0)),
    ],
    ids=["its own alone", "its own twice", "later ones", "the first of each", "without its own"],
)
def test_other_sums_are_not(wrong: Program) -> None:
    assert verdict(running, wrong) is Verdict.UNKNOWN


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: backwards(x),
        lambda x: backwards(x) + earlier(x.sum(0), lambda j, d: j >= d),
        lambda x: backwards(x) + earlier(x.sum(0)),
        lambda x: running(x) + later(x.sum(0)),
        lambda x: backwards(x) - x + later(x.sum(0)),
    ],
    ids=["its own alone", "its own twice", "earlier ones", "up to the place", "without its own"],
)
def test_other_sums_from_a_place_on_are_not(wrong: Program) -> None:
    assert verdict(backwards, wrong) is Verdict.UNKNOWN
