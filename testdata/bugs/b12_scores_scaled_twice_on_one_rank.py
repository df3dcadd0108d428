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


def attend(params: Params, x: jax.Array, scale: float | jax.Array) -> jax.Array:
    """The attention of as many heads as the weights hold, their outputs projected and summed."""
    query, key, value = (jnp.einsum("bsm,mhd->bshd", x, params[name]) for name in ("wq", "wk", "wv"))
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) * scale
    causal = jnp.arange(x.shape[1])[:, None] >= jnp.arange(x.shape[1])
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e30), axis=-1)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, value)
    return jnp.einsum("bqhd,hdm->bqm", mixed, params["wo"])


def reference(params: Params, x: jax.Array) -> jax.Array:
    return attend(params, x, 1 / HEAD**0.5)


def right(params: Params, x: jax.Array) -> jax.Array:
    return lax.psum(attend(params, x, 1 / HEAD**0.5), "model")


def wrong(params: Params, x: jax.Array) -> jax.Array:
    scale = 1 / jnp.where(lax.axis_index("model") == 2, 2 * HEAD**0.5, HEAD**0.5)  # BUG
    return lax.psum(attend(params, x, scale), "model")
