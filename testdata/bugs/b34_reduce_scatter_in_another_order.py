"""A hierarchical reduce_scatter, first inside a node and then across nodes, of shards that are numbered the other way.

Shards are numbered node by node. Scattering inside the node first makes the device within the node the outer digit of
the shard's number: every device but the first and the last updates its parameters with the gradients of others.

Origin: seen in hand-written hierarchical ZeRO, whose two stages give shards in the order of the nodes only if the
stage across nodes comes first.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"node": 2, "device": 4}
BATCH = P(("node", "device"), None)
IN = (P(("node", "device"), None), BATCH, BATCH)
OUT = P(("node", "device"), None)
ARGUMENTS = (("f32", (16, 8)), ("f32", (16, 16)), ("f32", (16, 8)))
CODE = "HV005"

RATE = 0.1


def loss(w: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.sum((jnp.tanh(x @ w) - y) ** 2)


def reference(w: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    return w - RATE * jax.grad(loss)(w, x, y)


def right(shard: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    w = lax.all_gather(shard, ("node", "device"), tiled=True)
    gradient = jax.grad(loss)(w, x, y)
    across = lax.psum_scatter(gradient, "node", tiled=True)
    return shard - RATE * lax.psum_scatter(across, "device", tiled=True)


def wrong(shard: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    w = lax.all_gather(shard, ("node", "device"), tiled=True)
    gradient = jax.grad(loss)(w, x, y)
    inside = lax.psum_scatter(gradient, "device", tiled=True)  # BUG
    return shard - RATE * lax.psum_scatter(inside, "node", tiled=True)
