"""LayerNorm's epsilon is another one on all devices of one data-parallel replica: they agree with each other.

A pre-norm perceptron block with its hidden dimension over model.
Origin: as for one rank, but no comparison between tensor-parallel ranks shows it; a replica restarted with another
version of the configuration (https://github.com/nomic-ai/gpt4all/pull/1946 has the effect of such an epsilon).
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"data": 2, "model": 4}
IN = (P("data"), P(), P(None, "model"), P("model", None))
OUT = P("data")
ARGUMENTS = (("f32", (8, 16)), ("f32", (16,)), ("f32", (16, 32)), ("f32", (32, 16)))
CODE = "HV001"


def normalize(x: jax.Array, scale: jax.Array, epsilon: float | jax.Array) -> jax.Array:
    centered = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(centered**2, axis=-1, keepdims=True)
    return centered * lax.rsqrt(variance + epsilon) * scale


def block(x: jax.Array, normal: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
    hidden = jax.nn.gelu(normal @ w1)
    return x + lax.psum(hidden @ w2, "model")


def reference(x: jax.Array, scale: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
    hidden = jax.nn.gelu(normalize(x, scale, 1e-5) @ w1)
    return x + hidden @ w2


def right(x: jax.Array, scale: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
    normal = normalize(x, scale, 1e-5)
    return block(x, normal, w1, w2)


def wrong(x: jax.Array, scale: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
    epsilon = jnp.where(lax.axis_index("data") == 1, 1e-2, 1e-5)  # BUG
    return block(x, normalize(x, scale, epsilon), w1, w2)
