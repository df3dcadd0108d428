"""Verify a loss over a vocabulary that is split, and its gradients: `python examples/vocabulary_loss.py`.

Each of 8 devices has the logits of 64 words. The devices agree on the largest logit and on the sum of exponentials; the
one that has the right word tells the others its logit. The question is about words that there are, which `assume` says.
The second version looks up the word without asking whether it is the device's own.
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

DEVICES, WORDS, WIDTH, TOKENS = 8, 512, 32, 16
MESH = mesh(model=DEVICES)


def reference(head: jax.Array, x: jax.Array, words: jax.Array) -> jax.Array:
    logits = x @ head
    right = jnp.take_along_axis(logits, words[:, None], axis=1)[:, 0]
    return jnp.mean(jax.nn.logsumexp(logits, axis=1) - right)


def on_a_device(asks: bool, head: jax.Array, x: jax.Array, words: jax.Array) -> jax.Array:
    logits = x @ head
    most = lax.pmax(lax.stop_gradient(logits).max(axis=1), "model")
    total = lax.psum(jnp.exp(logits - most[:, None]).sum(axis=1), "model")
    own = words - lax.axis_index("model") * head.shape[1]
    here = (own >= 0) & (own < head.shape[1])
    right = jnp.take_along_axis(logits, jnp.clip(own, 0, head.shape[1] - 1)[:, None], axis=1)[:, 0]
    right = lax.psum(jnp.where(here, right, 0.0) if asks else right, "model")
    return jnp.mean(jnp.log(total) + most - right)


def step(loss: Any, head: jax.Array, x: jax.Array, words: jax.Array) -> Any:
    return jax.value_and_grad(loss, argnums=(0, 1))(head, x, words)


def main() -> None:
    args = (
        floats(WIDTH, WORDS),
        floats(TOKENS, WIDTH),
        jax.ShapeDtypeStruct((TOKENS,), jnp.int32),
    )
    for asks in (True, False):
        specs = {"in_specs": (P(None, "model"), P(), P()), "out_specs": P()}
        loss = jax.shard_map(partial(on_a_device, asks), mesh=MESH, **specs)
        report = hlo_verify.check(partial(step, reference), partial(step, loss), *args, assume={"words": (0, WORDS)})
        expect("PROVED" if asks else "REFUTED", report)


if __name__ == "__main__":
    main()
