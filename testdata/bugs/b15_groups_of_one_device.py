"""An all_reduce whose replica groups hold one device each: it runs, and communicates nothing.

No JAX program has such groups, so the replica groups of the right program's all_reduce are edited.
Origin: https://github.com/ByteDance-Seed/VeOmni/pull/1115 (gradients are reduced over a group that has shrunk to one
device); XLA's auto-sharding printed such groups too: https://github.com/openxla/xla/issues/5655.
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
PARTITIONED_EDIT = (
    (
        "replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>",
        "replica_groups = dense<[[0], [1], [2], [3], [4], [5], [6], [7]]> : tensor<8x1xi64>",
    ),
)


def reference(x: jax.Array, y: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
    hidden = jax.nn.gelu(x @ w1)
    return jnp.mean((hidden @ w2 - y) ** 2)


def right(x: jax.Array, y: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
    hidden = jax.nn.gelu(x @ w1)
    output = lax.psum(hidden @ w2, "model")  # BUG
    return lax.pmean(jnp.mean((output - y) ** 2), "data")
