"""Every data shard draws the same dropout mask: the key is not folded with the shard's number.

Origin: tenstorrent/tt-metal issue 55947 (equal masks on all data ranks), PaddlePaddle/PaddleFleetX pull request 1005.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"data": 4, "model": 2}
IN = (P("data", None), P(None, "model"), P("model", None), P())
OUT = P("data", None)
ARGUMENTS = (("f32", (16, 8)), ("f32", (8, 16)), ("f32", (16, 8)), ("ui32", (2,), 1000))
CODE = "HV001"

KEEP = 0.75


def kept(key: jax.Array, shards: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """The mask for rows that are those of some data shards; each shard has a key of its own."""

    def of_shard(shard: jax.Array) -> jax.Array:
        mine = jax.random.fold_in(jax.random.wrap_key_data(key), shard)
        return jax.random.bernoulli(mine, KEEP, (shape[0] // len(shards), shape[1]))

    return jax.vmap(of_shard)(shards).reshape(shape)


def reference(x: jax.Array, up: jax.Array, down: jax.Array, key: jax.Array) -> jax.Array:
    output = jax.nn.gelu(x @ up) @ down
    shards = jnp.arange(MESH["data"])
    return x + jnp.where(kept(key, shards, output.shape), output / KEEP, 0.0)


def right(x: jax.Array, up: jax.Array, down: jax.Array, key: jax.Array) -> jax.Array:
    output = lax.psum(jax.nn.gelu(x @ up) @ down, "model")
    shards = lax.axis_index("data")[None]
    return x + jnp.where(kept(key, shards, output.shape), output / KEEP, 0.0)


def wrong(x: jax.Array, up: jax.Array, down: jax.Array, key: jax.Array) -> jax.Array:
    output = lax.psum(jax.nn.gelu(x @ up) @ down, "model")
    shards = jnp.zeros(1, jnp.int32)
    return x + jnp.where(kept(key, shards, output.shape), output / KEEP, 0.0)  # BUG
