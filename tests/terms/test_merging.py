"""Variables that count on in one another, where integers are looked up at places of both."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed

MESH = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))
ARGUMENTS = [jax.ShapeDtypeStruct((8,), jnp.int32), jax.ShapeDtypeStruct((3,), jnp.int32)]
Body = Callable[[jax.Array, jax.Array], jax.Array]


def equal(k: jax.Array, q: jax.Array) -> jax.Array:
    return k[:, None] == q[None]


def anywhere(held: jax.Array) -> jax.Array:
    """Whether something holds for any row of any device."""
    return lax.psum(held.any(0).astype(jnp.int32), "x") > 0


SAME: dict[str, tuple[Body, Body]] = {
    "any is equal": (lambda k, q: equal(k, q).any(0), lambda k, q: anywhere(equal(k, q))),
    "any is equal, the other way": (lambda k, q: (q == k[:, None]).any(0), lambda k, q: anywhere(equal(k, q))),
    "any is less": (lambda k, q: (k[:, None] < q).any(0), lambda k, q: anywhere(q[None] > k[:, None])),
    "none is equal": (lambda k, q: (~equal(k, q)).all(0), lambda k, q: ~anywhere(equal(k, q))),
}
OTHER: dict[str, tuple[Body, Body]] = {
    "own ones": (SAME["any is equal"][0], lambda k, q: equal(k, q).any(0)),
    "two devices": (SAME["any is equal"][0], lambda k, q: lax.psum(equal(k, q).any(0).astype(jnp.int32), "x") > 1),
    "the first rows": (SAME["any is equal"][0], lambda k, q: anywhere(equal(k[:1], q))),
    "greater ones": (SAME["any is less"][0], lambda k, q: anywhere(q[None] < k[:, None])),
    "all": (SAME["any is equal"][0], lambda k, q: lax.psum(equal(k, q).all(0).astype(jnp.int32), "x") > 3),
}


def verdict(whole: Body, local: Body) -> Verdict:
    return hlo_verify.verify(*Placed(MESH, (P("x"), P()), P(), ARGUMENTS).pair(whole, local), refute=False).verdict


@pytest.mark.parametrize("name", SAME)
def test_whether_any_integer_is_the_one_that_is_looked_for(name: str) -> None:
    assert verdict(*SAME[name]) is Verdict.PROVED


@pytest.mark.parametrize("name", OTHER)
def test_other_questions(name: str) -> None:
    assert verdict(*OTHER[name]) is not Verdict.PROVED
