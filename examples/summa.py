"""Verify SUMMA, a product of matrices that are split in both dimensions, and its gradients: `python examples/summa.py`.

On a mesh of 2 by 4 devices each has a block of both matrices. In each of 4 turns the devices that have the turn's
columns of the first matrix send them along their row of the mesh, and those that have its rows of the second along
their column. The second version takes these rows from the wrong devices: in another order than they lie in.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P
from shared import expect, floats, mesh

import hlo_verify

ROWS, COLUMNS = 2, 4
MESH = mesh(row=ROWS, column=COLUMNS)


def sent(block: jax.Array, owner: int, axis: str) -> jax.Array:
    """The block of one device along an axis, on all of them."""
    return lax.psum(jnp.where(lax.axis_index(axis) == owner, block, 0), axis)


def on_a_device(right: bool, a: jax.Array, b: jax.Array) -> jax.Array:
    found, width = jnp.zeros((a.shape[0], b.shape[1]), a.dtype), a.shape[1]
    for turn in range(COLUMNS):
        owner, part = divmod(turn, ROWS) if right else divmod(turn, ROWS)[::-1]
        rows = sent(b[part * width : (part + 1) * width], owner, "row")
        found += sent(a, turn, "column") @ rows
    return found


def step(product: Any, a: jax.Array, b: jax.Array) -> Any:
    return jax.value_and_grad(lambda a, b: jnp.sum(jnp.tanh(product(a, b))), argnums=(0, 1))(a, b)


def main() -> None:
    a, b = floats(32, 64), floats(64, 48)
    blocks = P("row", "column")
    for right in (True, False):
        product = jax.shard_map(partial(on_a_device, right), mesh=MESH, in_specs=blocks, out_specs=blocks)
        report = hlo_verify.check(partial(step, jnp.matmul), partial(step, product), a, b)
        expect("PROVED" if right else "REFUTED", report)


if __name__ == "__main__":
    main()
