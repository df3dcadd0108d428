"""Verify a step of decoding whose cache is split over the sequence, and its gradients: `python examples/kv_cache.py`.

Each of 8 devices holds the keys and values of 64 positions. The one that holds the new position writes to it; all look
at what they hold, and put their parts of the softmax together. The question is about positions that are in the cache,
which `assume` says. One wrong version compares positions with what a device holds as if all held the first 64; in the
other one the devices agree on no largest score, which the gradient does not forgive either.
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

DEVICES, LENGTH, WIDTH = 8, 512, 32
SPLIT, WHOLE = P("sequence"), P()


def reference(keys: jax.Array, values: jax.Array, q: jax.Array, k: jax.Array, v: jax.Array, position: jax.Array):
    keys = lax.dynamic_update_index_in_dim(keys, k, position, 0)
    values = lax.dynamic_update_index_in_dim(values, v, position, 0)
    scores = jnp.where(jnp.arange(LENGTH) <= position, keys @ q, -jnp.inf)
    return keys, values, jax.nn.softmax(scores) @ values


def on_a_device(
    mistake: str, keys: jax.Array, values: jax.Array, q: jax.Array, k: jax.Array, v: jax.Array, position: jax.Array
):
    held = jnp.arange(LENGTH // DEVICES)
    held += lax.axis_index("sequence") * len(held)
    here = (held == position)[:, None]
    keys, values = jnp.where(here, k, keys), jnp.where(here, v, values)
    seen = jnp.arange(LENGTH // DEVICES) if mistake == "as if all held the first positions" else held
    scores = jnp.where(seen <= position, keys @ q, -jnp.inf)
    most = lax.stop_gradient(scores).max()  # any number would do, if it is the same on all devices
    if mistake != "no largest score of all":
        most = lax.pmax(most, "sequence")
    weights = jnp.exp(scores - jnp.maximum(most, -1e30))
    found, total = lax.psum((weights @ values, weights.sum()), "sequence")
    return keys, values, found / total


def on_devices(mistake: str = "") -> Any:
    specs = {"in_specs": (SPLIT, SPLIT, *[WHOLE] * 4), "out_specs": (SPLIT, SPLIT, WHOLE), "check_vma": False}
    return jax.shard_map(partial(on_a_device, mistake), mesh=mesh(sequence=DEVICES), **specs)


def gradients(step: Any) -> Any:
    """By the cache and by the new token's query, key and value."""

    def loss(keys: jax.Array, values: jax.Array, q: jax.Array, k: jax.Array, v: jax.Array, position: jax.Array):
        return jnp.sum(step(keys, values, q, k, v, position)[2] ** 2)

    return jax.grad(loss, argnums=(0, 1, 2, 3, 4))


def main() -> None:
    cache, one = floats(LENGTH, WIDTH), floats(WIDTH)
    args = cache, cache, one, one, one, jax.ShapeDtypeStruct((), jnp.int32)
    check = partial(hlo_verify.check, assume={"position": (0, LENGTH)})
    expect("PROVED", check(reference, on_devices(), *args), "A step")
    expect("PROVED", check(gradients(reference), gradients(on_devices()), *args), "Its gradients")
    for mistake in ("as if all held the first positions", "no largest score of all"):
        expect("REFUTED", check(reference, on_devices(mistake), *args), f"Wrong: {mistake}")
    wrong = gradients(on_devices("no largest score of all"))
    expect("REFUTED", check(gradients(reference), wrong, *args), "Wrong gradients: no largest score of all")


if __name__ == "__main__":
    main()
