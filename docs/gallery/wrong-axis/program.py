"""Megatron's MLP on 2 x 4 devices: the batch over "data", weights over "model". One sum is over the wrong axis."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((2, 4), ("data", "model"))


def whole(x, w1, w2):
    return jnp.tanh(x @ w1) @ w2


@partial(
    jax.shard_map,
    mesh=mesh,
    in_specs=(P("data"), P(None, "model"), P("model")),
    out_specs=P("data"),
    check_vma=False,
)
def sharded(x, w1, w2):
    hidden = jnp.tanh(x @ w1)
    return jax.lax.psum(hidden @ w2, "data")


args = tuple(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((16, 32), (32, 64), (64, 32)))
