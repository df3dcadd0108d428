"""The sends between two pipeline stages are crossed: each data shard goes on as the other one's.

Two stages of two data-parallel devices; microbatches flow through in the usual schedule of fill, work and drain.
Devices 0 and 1 should send to 2 and 3.
Origin: seen in hand-written pipeline parallelism, where ranks of the next stage are computed from the position in the
mesh; a wrong communication plan such as TrainVerify (SOSP 2025) looks for.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"stage": 2, "data": 2}
IN = (P(None, "data"), P("stage"))
OUT = P(None, "data")
ARGUMENTS = (("f32", (3, 8, 16)), ("f32", (2, 16, 16)))
CODE = "HV003"


def layer(x: jax.Array, w: jax.Array) -> jax.Array:
    return x + jnp.tanh(x @ w)


def pipeline(x: jax.Array, w: jax.Array, send: Callable[[jax.Array], jax.Array]) -> jax.Array:
    """The microbatches x[m] through the layers of both stages; the last stage's outputs are handed to all."""
    stage, microbatches = lax.axis_index("stage"), x.shape[0]
    received, outputs = jnp.zeros_like(x[0]), []
    for turn in range(microbatches + 1):
        computed = layer(jnp.where(stage == 0, x[min(turn, microbatches - 1)], received), w[0])
        outputs.append(computed)
        received = send(computed)
    finished = jnp.stack(outputs[1:])
    return lax.psum(jnp.where(stage == 1, finished, 0.0), "stage")


def reference(x: jax.Array, w: jax.Array) -> jax.Array:
    return layer(layer(x, w[0]), w[1])


def right(x: jax.Array, w: jax.Array) -> jax.Array:
    def send(computed: jax.Array) -> jax.Array:
        return lax.ppermute(computed, ("stage", "data"), [(0, 2), (1, 3)])

    return pipeline(x, w, send)


def wrong(x: jax.Array, w: jax.Array) -> jax.Array:
    def send(computed: jax.Array) -> jax.Array:
        return lax.ppermute(computed, ("stage", "data"), [(0, 3), (1, 2)])  # BUG

    return pipeline(x, w, send)
