"""Verify a mixture of experts over devices, loss and gradients: `python examples/mixture_of_experts.py`.

Each of 4 devices has a quarter of the tokens and one expert. A router gives each token its weights for the experts.
Tokens go to the experts' devices in slots, a group a device, by an all-to-all, and come back by another one. The second
version averages the auxiliary loss, a product of two means, over the devices, where it is of the means over all tokens.
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

EXPERTS, WIDTH, TOKENS = 4, 8, 16
MESH = mesh(expert=EXPERTS)
SPECS = {"router": P(), "up": P("expert"), "down": P("expert")}


def routed(router: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Each token's weight for each expert, 0 for all but the best one, and the weights before that."""
    weights = jax.nn.softmax(x @ router)
    return jnp.where(weights >= weights.max(axis=1, keepdims=True), weights, 0.0), weights


def expert(up: jax.Array, down: jax.Array, x: jax.Array) -> jax.Array:
    return jax.nn.relu(x @ up) @ down


def reference(weights: Any, x: jax.Array) -> jax.Array:
    chosen, soft = routed(weights["router"], x)
    found = jax.vmap(expert)(weights["up"], weights["down"], jnp.einsum("te,td->etd", chosen, x))
    balance = jnp.sum(jnp.mean(chosen, axis=0) * jnp.mean(soft, axis=0))
    return jnp.mean(found.sum(axis=0) ** 2) + balance


def on_a_device(right: bool, weights: Any, x: jax.Array) -> jax.Array:
    chosen, soft = routed(weights["router"], x)
    slots = jnp.einsum("te,td->etd", chosen, x)
    mine = lax.all_to_all(slots, "expert", 0, 1, tiled=True)
    found = expert(weights["up"][0], weights["down"][0], mine[0])
    back = lax.all_to_all(found[None], "expert", 1, 0, tiled=True)
    ones, others = jnp.mean(chosen, axis=0), jnp.mean(soft, axis=0)
    if right:
        ones, others = lax.pmean((ones, others), "expert")
    balance = jnp.sum(ones * others)
    balance = balance if right else lax.pmean(balance, "expert")
    return lax.pmean(jnp.mean(back.sum(axis=0) ** 2), "expert") + balance


def main() -> None:
    shapes = {"router": (WIDTH, EXPERTS), "up": (EXPERTS, WIDTH, 32), "down": (EXPERTS, 32, WIDTH)}
    weights = {name: floats(*shape) for name, shape in shapes.items()}
    x = floats(TOKENS, WIDTH)
    for right in (True, False):
        loss = jax.shard_map(partial(on_a_device, right), mesh=MESH, in_specs=(SPECS, P("expert")), out_specs=P())
        step = jax.value_and_grad if right else jax.jit  # of the wrong one, the loss says enough
        report = hlo_verify.check(step(reference), step(loss), weights, x)
        expect("PROVED" if right else "REFUTED", report)


if __name__ == "__main__":
    main()
