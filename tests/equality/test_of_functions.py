"""Functions of what is equal, spelled otherwise, inside of one another."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.equality import of_functions
from hlo_verify.passes.diagnose import examine

Body = Callable[[jax.Array, jax.Array], jax.Array]
ARGUMENTS = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((6, 8), (8, 8))]


def logistic(x: jax.Array) -> jax.Array:
    return 0.5 * (jnp.tanh(x / 2) + 1)


def greater(x: jax.Array) -> jax.Array:
    return jnp.where(x > 0, x, jnp.zeros_like(x))


def silu(x: jax.Array) -> jax.Array:
    return x - x / (1 + jnp.exp(x))


RIGHT: dict[str, tuple[Body, Body]] = {
    "tanh of logistic": (lambda x, w: jnp.tanh(jax.nn.sigmoid(x) @ w), lambda x, w: jnp.tanh(logistic(x) @ w)),
    "three layers": (
        lambda x, w: jnp.sin(jnp.tanh(jax.nn.sigmoid(x) @ w)),
        lambda x, w: jnp.sin(jnp.tanh(logistic(x) @ w)),
    ),
    "exponentials": (lambda x, w: jnp.exp(2 * jax.nn.silu(x) @ w), lambda x, w: jnp.exp(silu(x) @ w) ** 2),
    "beside another": (
        lambda x, w: jnp.tanh(jax.nn.sigmoid(x) @ w) * jnp.sin(jax.nn.silu(x) @ w),
        lambda x, w: jnp.tanh(logistic(x) @ w) * jnp.sin(silu(x) @ w),
    ),
}

WRONG: dict[str, tuple[Body, Body]] = {
    "another slope": (lambda x, w: jnp.tanh(jax.nn.sigmoid(x) @ w), lambda x, w: jnp.tanh(logistic(2 * x) @ w)),
    "another power": (lambda x, w: jnp.exp(2 * jax.nn.silu(x) @ w), lambda x, w: jnp.exp(silu(x) @ w) ** 3),
    "a factor outside": (lambda x, w: jnp.tanh(jax.nn.sigmoid(x) @ w), lambda x, w: 2 * jnp.tanh(logistic(x) @ w)),
    "one for another": (
        lambda x, w: jnp.tanh(jax.nn.sigmoid(x) @ w) * jnp.sin(jax.nn.silu(x) @ w),
        lambda x, w: jnp.tanh(silu(x) @ w) * jnp.sin(logistic(x) @ w),
    ),
    "0 times a logarithm": (lambda x, w: jnp.tanh(x @ w), lambda x, w: jnp.tanh((x + 0 * jnp.log(x)) @ w)),
    "moved": (
        lambda x, w: jnp.tanh(jax.nn.sigmoid(x) @ w),
        lambda x, w: lax.ppermute(jnp.tanh(logistic(x) @ w), "x", [(0, 1), (1, 0)]),
    ),
}


def verdict(reference: Body, distributed: Body) -> Verdict:
    mesh = AbstractMesh((2,), ("x",))
    split = jax.shard_map(distributed, mesh=mesh, in_specs=(P(), P(None, "x")), out_specs=P(None, "x"), check_vma=False)
    return hlo_verify.check(reference, split, *ARGUMENTS, refute=False).verdict


@pytest.mark.parametrize("name", RIGHT)
def test_functions_of_what_is_equal(name: str) -> None:
    assert verdict(*RIGHT[name]) is Verdict.PROVED


@pytest.mark.parametrize("name", WRONG)
def test_functions_of_other_things(name: str) -> None:
    assert verdict(*WRONG[name]) is Verdict.UNKNOWN


@pytest.mark.usefixtures("prover_alone")
@pytest.mark.parametrize("name", ["another slope", "another power", "moved"])
def test_what_they_are_of_decides(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without asking that, all of these would be equal, where nothing is known of values on the way."""
    monkeypatch.setattr(examine, "guessed", lambda *_: {})
    monkeypatch.setattr(of_functions, "_compared", lambda one, other: [])
    assert verdict(*WRONG[name]) is Verdict.PROVED
