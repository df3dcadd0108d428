"""Attention scores are divided by 2√d instead of √d on one tensor-parallel rank.

Causal attention with its heads over model and a row-parallel output projection.
Origin: a scale folded into a fused kernel on some devices only; wrong scales of attention under tensor parallelism are
known (https://github.com/huggingface/transformers/pull/43481, https://github.com/NVIDIA/Megatron-LM/pull/848).
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"data": 2, "model": 4}
SPECS = {"wq": P(None, "model"), "wk": P(None, "model"), "wv": P(None, "model"), "wo": P("model")}
IN = (SPECS, P("data"))
OUT = P("data")
HEAD = 4
PROJECTION = ("f32", (16, 8, HEAD))
ARGUMENTS = ({"wq": PROJECTION, "wk": PROJECTION, "wv": PROJECTION, "wo": ("f32", (8, HEAD, 16))}, ("f32", (4, 6, 16)))
CODE = "HV006"

Params = dict[str, jax.Array]


def projected(params: Params, x: jax.Array) -> list[jax.Array]:
    """Query, key and value of as many heads as the weights hold."""
    return [jnp.einsum("bsm,mhd->bshd", x, params[name]) for name in ("wq", "wk", "wv")]


def mixed(params: Params, scores: jax.Array, value: jax.Array) -> jax.Array:
    """The values as causal scores weigh them, projected and summed over heads."""
    length = scores.shape[-1]
    causal = jnp.arange(length)[:, None] >= jnp.arange(length)
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e30), axis=-1)
    return jnp.einsum("bqhd,hdm->bqm", jnp.einsum("bhqk,bkhd->bqhd", weights, value), params["wo"])


def reference(params: Params, x: jax.Array) -> jax.Array:
    query, key, value = projected(params, x)
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / HEAD**0.5
    return mixed(params, scores, value)


def right(params: Params, x: jax.Array) -> jax.Array:
    query, key, value = projected(params, x)
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / HEAD**0.5
    return lax.psum(mixed(params, scores, value), "model")


def wrong(params: Params, x: jax.Array) -> jax.Array:
    query, key, value = projected(params, x)
    divisor = jnp.where(lax.axis_index("model") == 2, 2 * HEAD**0.5, HEAD**0.5)  # BUG
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / divisor
    return lax.psum(mixed(params, scores, value), "model")
