"""A row-parallel projection whose GELU is taken of each rank's partial sums, which are summed afterwards.

Origin: Megatron-LM (Shoeybi et al. 2019, section 3) splits the first matrix by columns because GeLU(a + b) is not
GeLU(a) + GeLU(b); code that splits it by rows meets this bug.
"""

import jax
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"data": 2, "model": 4}
IN = (P("data", "model"), P("model", None), P(), P(None, "model"))
OUT = P("data", "model")
ARGUMENTS = (("f32", (8, 16)), ("f32", (16, 8)), ("f32", (8,)), ("f32", (8, 16)))
CODE = "HV002"


def reference(x: jax.Array, up: jax.Array, bias: jax.Array, down: jax.Array) -> jax.Array:
    return jax.nn.gelu(x @ up + bias) @ down


def right(x: jax.Array, up: jax.Array, bias: jax.Array, down: jax.Array) -> jax.Array:
    hidden = lax.psum(x @ up, "model")
    return jax.nn.gelu(hidden + bias) @ down


def wrong(x: jax.Array, up: jax.Array, bias: jax.Array, down: jax.Array) -> jax.Array:
    hidden = x @ up  # BUG
    return lax.psum(jax.nn.gelu(hidden + bias), "model") @ down
