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
