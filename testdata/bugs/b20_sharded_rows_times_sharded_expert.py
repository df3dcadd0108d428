"""Tokens that are still split over the sequence meet expert weights that are still split over tensor parallelism.

Rank i computes X_i · A_i · B_i: the rows are its own, and only its slice of the expert's hidden units takes part. The
shapes are those of the right program, which gathers the tokens first and scatters the sum of the partial outputs.

Origin: sequence parallelism together with sharded experts is among the bugs that GraphGuard (arXiv 2508.09505) was
tried on; the gather of the input is missing, and the product is block-diagonal.
"""

import jax
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"data": 2, "model": 4}
IN = (P("data", "model", None), P(None, "model"), P("model", None))
OUT = P("data", "model", None)
ARGUMENTS = (("f32", (2, 16, 8)), ("f32", (8, 32)), ("f32", (32, 8)))
CODE = "HV002"


def reference(x: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    return x + jax.nn.gelu(x @ up) @ down


def right(x: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    tokens = lax.all_gather(x, "model", axis=1, tiled=True)
    partial = jax.nn.gelu(tokens @ up) @ down
    return x + lax.psum_scatter(partial, "model", scatter_dimension=1, tiled=True)


def wrong(x: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    return x + jax.nn.gelu(x @ up) @ down  # BUG
