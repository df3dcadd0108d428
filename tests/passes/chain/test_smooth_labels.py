"""Losses with smooth labels over classes that devices split, spelled by weights of each class or by sums of scores."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict

MESH = jax.sharding.AbstractMesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
CLASSES = 16

Loss = Callable[[jax.Array, jax.Array], jax.Array]


def whole(z: jax.Array, y: jax.Array) -> jax.Array:
    smooth = jax.nn.one_hot(y, CLASSES) * 0.9 + 0.1 / CLASSES
    return -jnp.mean(jnp.sum(smooth * jax.nn.log_softmax(z, -1), -1))


def of_split_classes(each: float, true: float = 0.9) -> Loss:
    def local(z: jax.Array, y: jax.Array) -> jax.Array:
        own = y - z.shape[1] * lax.axis_index("d")
        top = lax.pmax(z.max(-1), "d")
        total = top + jnp.log(lax.psum(jnp.exp(z - top[:, None]).sum(-1), "d"))
        is_here = (own >= 0) & (own < z.shape[1])
        score = jnp.take_along_axis(z, jnp.clip(own, 0, z.shape[1] - 1)[:, None], 1)[:, 0]
        picked, added = lax.psum((jnp.where(is_here, score, 0), z.sum(-1)), "d")
        return jnp.mean(total - true * picked - each * added)

    return jax.shard_map(local, mesh=MESH, in_specs=(P(None, "d"), P()), out_specs=P(), check_vma=False)


@pytest.mark.parametrize(
    ("local", "is_right"),
    [
        (of_split_classes(0.1 / CLASSES), True),
        (of_split_classes(0.1 / CLASSES * 1.001), False),
        (of_split_classes(0.1 / 4), False),
        (of_split_classes(0.1 / CLASSES, 0.901), False),
    ],
)
def test_what_is_smoothed_over_classes(local: Loss, is_right: bool) -> None:
    arguments = jax.ShapeDtypeStruct((4, CLASSES), jnp.float32), jax.ShapeDtypeStruct((4,), jnp.int32)
    report = hlo_verify.check(whole, local, *arguments, assume={"y": (0, CLASSES)}, refute=False)
    assert (report.verdict is Verdict.PROVED) is is_right, report


@pytest.mark.parametrize(
    ("each", "true", "is_right"),
    [(0.1 / CLASSES, 0.9, True), (0.1 / CLASSES * 1.001, 0.9, False), (0.1 / CLASSES, 0.901, False)],
)
def test_the_gradient_of_what_is_smoothed(each: float, true: float, is_right: bool) -> None:
    """The way forward hands the way back its numbers, one a device: there they were no constants any more, and 0.9 was
    what 0.1 leaves of 1 in the whole alone."""
    arguments = jax.ShapeDtypeStruct((4, CLASSES), jnp.float32), jax.ShapeDtypeStruct((4,), jnp.int32)

    def local(z: jax.Array, y: jax.Array) -> jax.Array:
        own = jnp.arange(z.shape[1]) + z.shape[1] * lax.axis_index("d")
        top = lax.pmax(lax.stop_gradient(z).max(-1), "d")
        total = top + jnp.log(lax.psum(jnp.exp(z - top[:, None]).sum(-1), "d"))
        picked = lax.psum(jnp.where(own == y[:, None], z, 0).sum(-1), "d")
        return jnp.mean(total - true * picked - each * CLASSES * (lax.psum(z.sum(-1), "d") / CLASSES))

    split = jax.shard_map(local, mesh=MESH, in_specs=(P(None, "d"), P()), out_specs=P(), check_vma=False)

    def smoothed(z: jax.Array, y: jax.Array) -> jax.Array:
        scores = jax.nn.log_softmax(z, -1)
        return -jnp.mean(0.9 * jnp.take_along_axis(scores, y[:, None], 1)[:, 0] + 0.1 * scores.mean(-1))

    report = hlo_verify.check(jax.grad(smoothed), jax.grad(split), *arguments, assume={"y": (0, CLASSES)}, refute=False)
    assert (report.verdict is Verdict.PROVED) is is_right, report
