"""The loss of a pipeline's last stage, with labels looked up: what other devices compute in its place is not in it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import Array, lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.limits import Limits

BATCHES, ROWS, WIDE, WORDS = 4, 2, 4, 5


def loss(h: Array, head: Array, labels: Array) -> Array:
    """A label that is no word makes it NaN."""
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(h @ head, -1), labels[..., None], -1))


def whole(ws: Array, words: Array, head: Array, given: Array, labels: Array) -> Array:
    return loss(lax.scan(lambda h, w: (jnp.tanh(h @ w), None), words[given], ws)[0], head, labels)


def verdict(n: int, form: str = "where", wrong: str = "") -> Verdict:
    def local(ws: Array, words: Array, head: Array, given: Array, labels: Array) -> Array:
        me, x = lax.axis_index("s"), words[given]

        def turn(state: Array, t: Array) -> tuple[Array, Array]:
            made = jnp.tanh(jnp.where(me == 0, x[jnp.clip(t, 0, BATCHES - 1)], state) @ ws[0])
            if wrong == "odd_turn":
                made = jnp.where(t == n, 2 * made, made)
            return lax.ppermute(made, "s", [(k, (k + 1) % n) for k in range(n)]), made

        _, every = lax.scan(turn, jnp.zeros_like(x[0]), jnp.arange(BATCHES + n - 1))
        last, late = n - 1 - (wrong == "stage"), n - 1 - (wrong == "early")
        own = loss(every[late:][:BATCHES], head, labels[::-1] if wrong == "labels" else labels)
        if form == "cond":
            own = lax.cond(me == last, lambda: own, lambda: jnp.zeros(()))
        else:
            own = jnp.where(me == last, own, 0)
        return lax.pmean(own, "s") if wrong == "mean" else lax.psum(own, "s")

    mesh = AbstractMesh((n,), ("s",), axis_types=(AxisType.Auto,))
    mapped = jax.shard_map(local, mesh=mesh, in_specs=(P("s"), P(), P(), P(), P()), out_specs=P(), check_vma=False)
    floats = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((n, WIDE, WIDE), (WORDS, WIDE), (WIDE, WORDS))]
    integers = [jax.ShapeDtypeStruct((BATCHES, ROWS), jnp.int32)] * 2
    pair = (jax.jit(function).trace(*floats, *integers) for function in (whole, mapped))
    limits = Limits(devices_apart=1, unrolled_turns=1)
    return hlo_verify.verify(*pair, refute=False, limits=limits).verdict


@pytest.mark.parametrize(("stages", "form"), [(2, "where"), (64, "cond")])
def test_losses(stages: int, form: str) -> None:
    assert verdict(stages, form) is Verdict.PROVED


@pytest.mark.drawn(1)
@pytest.mark.parametrize("wrong", "stage early labels mean odd_turn".split())
@pytest.mark.parametrize("stages", [2, 4])
def test_wrong_losses(stages: int, wrong: str) -> None:
    assert verdict(stages, wrong=wrong) is Verdict.UNKNOWN
