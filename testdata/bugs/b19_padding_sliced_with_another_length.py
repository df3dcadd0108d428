"""Every shard is padded to the kernel's tile before an all_gather; afterwards all padding is cut off the end.

Two rows are padded on each of four devices, so each device's rows have two rows of zeros behind them. The code that
takes the padding away slices eight rows off the end of the gathered sequence, and keeps zeros in its middle.

Origin: mismatched padding and slicing around a collective is among the bugs that GraphGuard (arXiv 2508.09505) was
tried on.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"data": 2, "sequence": 4}
IN = (P("data", "sequence", None), P())
OUT = P("data", None, None)
ARGUMENTS = (("f32", (2, 24, 8)), ("f32", (8, 16)))
CODE = "HV005"

TILE = 8


def project(x: jax.Array, w: jax.Array) -> jax.Array:
    """The rows of a tile-shaped kernel."""
    return jax.nn.silu(x @ w)


def gather_padded(x: jax.Array, w: jax.Array) -> jax.Array:
    """The projected rows of every shard, each padded to whole tiles: [batch, shards, rows, width]."""
    missing = -x.shape[1] % TILE
    padded = jnp.pad(x, ((0, 0), (0, missing), (0, 0)))
    return lax.all_gather(project(padded, w), "sequence", axis=1)


def reference(x: jax.Array, w: jax.Array) -> jax.Array:
    return project(x, w)


def right(x: jax.Array, w: jax.Array) -> jax.Array:
    gathered = gather_padded(x, w)
    rows = gathered[:, :, : x.shape[1]]
    return rows.reshape(x.shape[0], -1, w.shape[1])


def wrong(x: jax.Array, w: jax.Array) -> jax.Array:
    gathered = gather_padded(x, w)
    rows = gathered.reshape(x.shape[0], -1, w.shape[1])
    return rows[:, : lax.axis_size("sequence") * x.shape[1]]  # BUG
