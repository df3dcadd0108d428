"""What is normalized is multiplied by weights and normalized again, by columns that are split: as latent attention and
norms of queries and keys do, layer by layer. The mean is over a number of columns whose root is no fraction."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.prove import prove_at_once
from tests.ops.test_matching import COLUMNS, lowered, regional

Total = Callable[[jax.Array], jax.Array]
Step = Callable[..., jax.Array]

SHAPES = (2, 28), (5, 28, 12), (5, 12, 28)
GIVEN = COLUMNS, P(None, None, "x"), P(None, "x", None)


def normalized(x: jax.Array, total: Total, count: int) -> jax.Array:
    return x * lax.rsqrt(total(jnp.sum(x * x, axis=1, keepdims=True)) / count + 1e-6)


def whole(h: jax.Array, w: jax.Array, v: jax.Array) -> jax.Array:
    def layer(h: jax.Array, wv: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        inner = normalized(h, lambda t: t, 28) @ wv[0]
        return h + normalized(inner, lambda t: t, 12) @ wv[1], None

    return lax.scan(layer, h, (w, v))[0]


def added_up(t: jax.Array) -> jax.Array:
    return lax.psum(t, "x")


def local(total: Total = added_up, count: int = 12) -> Step:
    def layer(h: jax.Array, wv: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        inner = lax.all_gather(normalized(h, added_up, 28), "x", axis=1, tiled=True) @ wv[0]
        return h + lax.psum_scatter(normalized(inner, total, count) @ wv[1], "x", scatter_dimension=1, tiled=True), None

    return lambda h, w, v: lax.scan(layer, h, (w, v))[0]


def gradient(function: Step) -> Step:
    return jax.grad(lambda h, w, v: jnp.sum(jnp.tanh(function(h, w, v))), argnums=1)


def pair(reference: Step, distributed: Step) -> tuple[str, str]:
    return lowered(reference, SHAPES), lowered(distributed, SHAPES)


@pytest.mark.parametrize("of", [lambda f: f, gradient], ids=["forward", "backward"])
def test_normalized_twice(of: Callable[[Step], Step]) -> None:
    modules = pair(of(whole), of(regional(local(), GIVEN, COLUMNS)))
    assert prove_at_once(*map(load, modules)).verdict is Verdict.PROVED


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("total", "count"),
    [(lambda t: t, 12), (added_up, 3), (lambda t: lax.pmean(t, "x"), 12)],
    ids=["not added up", "another count", "mean"],
)
def test_otherwise(total: Total, count: int) -> None:
    modules = pair(whole, regional(local(total, count), GIVEN, COLUMNS))
    assert hlo_verify.verify(*modules).verdict is Verdict.REFUTED
