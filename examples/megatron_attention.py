"""Verify attention whose heads are split over devices, loss and gradients: `python examples/megatron_attention.py`.

Each of 4 devices has two of the eight heads: its columns of the projections to queries, keys and values, and its rows
of the one back. The second version scales scores by the width of all its heads together, and not by that of one.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P
from shared import expect, floats, mesh

import hlo_verify

HEADS, WIDTH, LENGTH = 8, 16, 32
MESH = mesh(model=4)


def attention(scale: float, weights: Any, x: jax.Array) -> jax.Array:
    """What some heads give, causally."""
    q, k, v = (jnp.einsum("ld,dhw->hlw", x, weights[name]) for name in "qkv")
    scores = jnp.einsum("hiw,hjw->hij", q, k) / scale
    places = jnp.arange(LENGTH)
    scores = jnp.where(places[:, None] >= places, scores, -1e9)
    found = jnp.einsum("hij,hjw->hiw", jax.nn.softmax(scores), v)
    return jnp.einsum("hlw,hwd->ld", found, weights["out"])


def on_a_device(right: bool, weights: Any, x: jax.Array) -> jax.Array:
    heads = weights["q"].shape[1]
    return lax.psum(attention((WIDTH if right else WIDTH * heads) ** 0.5, weights, x), "model")


def step(layer: Any, weights: Any, x: jax.Array) -> Any:
    return jax.value_and_grad(lambda weights, x: jnp.mean((x + layer(weights, x)) ** 2), argnums=(0, 1))(weights, x)


def main() -> None:
    width = HEADS * WIDTH
    weights = {name: floats(width, HEADS, WIDTH) for name in "qkv"}
    weights["out"] = floats(HEADS, WIDTH, width)
    x = floats(LENGTH, width)
    specs = {**dict.fromkeys("qkv", P(None, "model")), "out": P("model")}
    plain = partial(step, partial(attention, WIDTH**0.5))
    for right in (True, False):
        layer = jax.shard_map(partial(on_a_device, right), mesh=MESH, in_specs=(specs, P()), out_specs=P())
        report = hlo_verify.check(plain, partial(step, layer), weights, x)
        expect("PROVED" if right else "REFUTED", report)


if __name__ == "__main__":
    main()
