"""Weights of tokens, each moved to the next one: a pad that shifts. They come whole, and leave split."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("sequence",))
whole, split = NamedSharding(mesh, P()), NamedSharding(mesh, P(None, "sequence"))


def shifted(weights):
    """The weights of the tokens before, and none of the first."""
    return lax.pad(weights, jnp.float32(0), [(0, 0, 0), (1, -1, 0)])


sharded = jax.jit(shifted, in_shardings=whole, out_shardings=split)
args = (jax.ShapeDtypeStruct((2, 16), jnp.float32),)
