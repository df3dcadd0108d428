"""Partial products over model are summed over data: groups of the right form, along the wrong axis of the mesh.

Devices of one data rank keep their own part, and mix in the other half of the batch.
Origin: modules built with another process group than the one that splits their weights, among the bugs of
https://github.com/NVIDIA/Megatron-LM/issues/7452; groups ignored in https://github.com/aws-neuron/aws-neuron-sdk/issues/1107.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"data": 2, "model": 4}
IN = (P("data"), P("data"), P(None, "model"), P("model", None))
OUT = P()
ARGUMENTS = (("f32", (8, 16)), ("f32", (8, 16)), ("f32", (16, 32)), ("f32", (32, 16)))
CODE = "HV003"


def loss(output: jax.Array, y: jax.Array) -> jax.Array:
    return lax.pmean(jnp.mean((output - y) ** 2), "data")


def reference(x: jax.Array, y: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
    hidden = jax.nn.gelu(x @ w1)
    return jnp.mean((hidden @ w2 - y) ** 2)


def right(x: jax.Array, y: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
    hidden = jax.nn.gelu(x @ w1)
    output = lax.psum(hidden @ w2, "model")
    return loss(output, y)


def wrong(x: jax.Array, y: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
    hidden = jax.nn.gelu(x @ w1)
    output = lax.psum(hidden @ w2, "data")  # BUG
    return loss(output, y)
