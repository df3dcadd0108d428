"""Verify DeepSpeed-Ulysses attention, loss and gradients: `python examples/ulysses.py`.

The sequence is split over 4 devices. An all-to-all gives each device all tokens of two heads, which attends to them;
another one gives the tokens back. The second version exchanges heads and tokens in the wrong order on the way back.
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

LENGTH, HEADS, WIDTH = 32, 8, 16
MESH = mesh(sequence=4)


def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Causal, of all tokens: (tokens, heads, width)."""
    places = jnp.arange(LENGTH)
    scores = jnp.einsum("ihw,jhw->hij", q, k) / WIDTH**0.5
    scores = jnp.where(places[:, None] >= places, scores, -1e9)
    return jnp.einsum("hij,jhw->ihw", jax.nn.softmax(scores), v)


def on_a_device(right: bool, q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    exchange = partial(lax.all_to_all, axis_name="sequence", tiled=True)
    found = attention(*(exchange(each, split_axis=1, concat_axis=0) for each in (q, k, v)))
    if right:
        return exchange(found, split_axis=0, concat_axis=1)
    parts = found.reshape(-1, 4, *found.shape[1:]).swapaxes(0, 1).reshape(found.shape)
    return exchange(parts, split_axis=0, concat_axis=1)


def step(layer: Any, *args: jax.Array) -> Any:
    return jax.value_and_grad(lambda *args: jnp.mean((layer(*args) - args[0]) ** 2), argnums=(0, 1, 2))(*args)


def main() -> None:
    shapes = [floats(LENGTH, HEADS, WIDTH)] * 3
    split = P("sequence")
    for right in (True, False):
        layer = jax.shard_map(partial(on_a_device, right), mesh=MESH, in_specs=split, out_specs=split)
        report = hlo_verify.check(partial(step, attention), partial(step, layer), *shapes)
        expect("PROVED" if right else "REFUTED", report)


if __name__ == "__main__":
    main()
