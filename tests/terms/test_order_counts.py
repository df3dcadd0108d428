"""Rows whose label says to ignore them, in losses that smooth labels over a vocabulary that is split."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict

MESH = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
ROWS, WIDTH, WORDS = 3, 2, 4


def loss(w: jax.Array, h: jax.Array, labels: jax.Array) -> jax.Array:
    smooth = 0.875 * jax.nn.one_hot(labels, WORDS) + 0.125 / WORDS
    each = -jnp.sum(smooth * jax.nn.log_softmax(h @ w), axis=-1)
    return jnp.sum((labels >= 0).astype(jnp.float32) * each) / jnp.maximum(jnp.sum(labels >= 0), 1)


def split_loss(wrong: str | None, w: jax.Array, h: jax.Array, labels: jax.Array) -> jax.Array:
    own = WORDS // 2
    scores = h @ w
    greatest = lax.stop_gradient(lax.pmax(lax.stop_gradient(scores.max(-1)), "x"))
    total = jnp.log(lax.psum(jnp.exp(scores - greatest[:, None]).sum(-1), "x")) + greatest
    hit = labels[:, None] == lax.axis_index("x") * own + jnp.arange(own) + (wrong == "next word")
    chosen = lax.psum(jnp.where(hit, scores, 0).sum(-1), "x")
    mean = lax.psum(scores.sum(-1), "x") / (own if wrong == "a device's words" else WORDS)
    kept = labels > 0 if wrong == "the first word, too" else labels >= 0
    each = total - 0.875 * chosen - 0.125 * mean
    return jnp.sum(jnp.where(kept, each, 0)) / jnp.maximum(jnp.sum(labels >= 0), 1)


@pytest.mark.parametrize("wrong", [None, "next word", "a device's words", "the first word, too"])
@pytest.mark.parametrize("ignored", [-1, -100])
def test_gradients_of_smoothed_labels_of_which_some_are_ignored(wrong: str | None, ignored: int) -> None:
    def local(w: jax.Array, h: jax.Array, labels: jax.Array) -> jax.Array:
        return split_loss(wrong, w, h, labels)

    distributed = jax.shard_map(local, mesh=MESH, in_specs=(P(None, "x"), P(), P()), out_specs=P(), check_vma=False)
    shapes = (
        jax.ShapeDtypeStruct((WIDTH, WORDS), jnp.float32),
        jax.ShapeDtypeStruct((ROWS, WIDTH), jnp.float32),
        jax.ShapeDtypeStruct((ROWS,), jnp.int32),
    )
    reference, device = (jax.grad(f, argnums=(0, 1)) for f in (loss, distributed))
    found = hlo_verify.check(reference, device, *shapes, assume={"labels": (ignored, WORDS)})
    assert found.verdict is (Verdict.REFUTED if wrong else Verdict.PROVED)
