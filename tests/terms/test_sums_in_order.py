"""Sums of elements in order, in other spellings."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed

MESH = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
COUNT = 6
Body = Callable[[jax.Array], jax.Array]


def in_order(x: jax.Array) -> jax.Array:
    return jnp.sort(x, axis=0)


def total(x: jax.Array) -> jax.Array:
    return lax.psum(x.sum(0), "x")


def greatest(x: jax.Array) -> jax.Array:
    return lax.pmax(x.max(0), "x")


def least(x: jax.Array) -> jax.Array:
    return lax.pmin(x.min(0), "x")


SAME: dict[str, tuple[Body, Body]] = {
    "all": (lambda x: in_order(x).sum(0), total),
    "mean": (lambda x: in_order(x).mean(0), lambda x: total(x) / COUNT),
    "downwards": (lambda x: in_order(x)[::-1].sum(0), total),
    "without ends": (lambda x: in_order(x)[1:-1].sum(0), lambda x: total(x) - greatest(x) - least(x)),
    "without the least": (lambda x: in_order(x)[1:].mean(0), lambda x: (total(x) - least(x)) / (COUNT - 1)),
    "without the greatest": (lambda x: in_order(x)[:-1].sum(0), lambda x: total(x) - greatest(x)),
    "of all": (lambda x: in_order(x).sum(), lambda x: total(x).sum()),
}
OTHER: dict[str, tuple[Body, Body]] = {
    "one left out": (SAME["all"][0], lambda x: total(x) - least(x)),
    "the other end": (SAME["without the least"][0], lambda x: (total(x) - greatest(x)) / (COUNT - 1)),
    "twice": (SAME["without ends"][0], lambda x: total(x) - 2 * greatest(x)),
    "all of them": (SAME["without ends"][0], total),
    "squares": (lambda x: jnp.square(in_order(x))[1:].sum(0), lambda x: total(x * x) - least(x * x)),
    "each beside its place": (lambda x: (in_order(x) * jnp.arange(COUNT)[:, None]).sum(0), lambda x: total(x) * 2.5),
    "in order beside itself": (lambda x: (in_order(x) * x).sum(0), lambda x: total(x * x)),
}


def verdict(whole: Body, local: Body, dtype: str = "float32") -> Verdict:
    pair = Placed(MESH, (P("x"),), P(), [jax.ShapeDtypeStruct((COUNT, 2), dtype)]).pair(whole, local)
    return hlo_verify.verify(*pair, refute=False).verdict


@pytest.mark.parametrize("name", SAME)
def test_a_sum_in_order_is_one_of_elements(name: str) -> None:
    assert verdict(*SAME[name]) is Verdict.PROVED


@pytest.mark.parametrize("name", OTHER)
def test_other_sums_are_not(name: str) -> None:
    whole, local = OTHER[name]
    mapped = jax.vmap(local, axis_name="x")
    xs = jnp.asarray(np.random.default_rng(0).standard_normal((2, COUNT // 2, 2)), jnp.float32)
    assert not jnp.allclose(whole(xs.reshape(COUNT, 2)), mapped(xs)[0])
    assert verdict(whole, local) is not Verdict.PROVED


def test_integers_add_up_in_any_order() -> None:
    assert verdict(*SAME["all"], dtype="int8") is Verdict.PROVED


@pytest.mark.parametrize("name", ["all", "without ends"])
def test_what_may_be_no_number_is_not_left_out(name: str) -> None:
    """`log(x)` is NaN for negative ones, which come last in order: the greatest of all is NaN then too."""

    def of_logs(body: Body) -> Body:
        return lambda x: body(jnp.log(x))

    whole, local = map(of_logs, SAME[name])
    assert (verdict(whole, local) is Verdict.PROVED) is (name == "all")
