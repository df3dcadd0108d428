"""A LayerNorm over a hidden dimension that is split takes mean and variance of its own part.

Origin: seen in hand-written tensor parallelism (2-D and sequence-to-hidden resharding): the statistics of a part look
so much like those of the whole that training goes on.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"data": 2, "model": 4}
IN = (P("data", "model"), P("model"), P("model"), P("model", None))
OUT = P("data", None)
ARGUMENTS = (("f32", (8, 32)), ("f32", (32,)), ("f32", (32,)), ("f32", (32, 8)))
CODE = "HV002"


def normalize(x: jax.Array, scale: jax.Array, bias: jax.Array, mean: jax.Array, variance: jax.Array) -> jax.Array:
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + bias


def reference(x: jax.Array, scale: jax.Array, bias: jax.Array, w: jax.Array) -> jax.Array:
    mean = jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean((x - mean) ** 2, axis=-1, keepdims=True)
    return normalize(x, scale, bias, mean, variance) @ w


def right(x: jax.Array, scale: jax.Array, bias: jax.Array, w: jax.Array) -> jax.Array:
    mean = lax.pmean(jnp.mean(x, axis=-1, keepdims=True), "model")
    variance = lax.pmean(jnp.mean((x - mean) ** 2, axis=-1, keepdims=True), "model")
    return lax.psum(normalize(x, scale, bias, mean, variance) @ w, "model")


def wrong(x: jax.Array, scale: jax.Array, bias: jax.Array, w: jax.Array) -> jax.Array:
    mean = jnp.mean(x, axis=-1, keepdims=True)  # BUG
    variance = jnp.mean((x - mean) ** 2, axis=-1, keepdims=True)
    return lax.psum(normalize(x, scale, bias, mean, variance) @ w, "model")
