"""What the programs share: a mesh, arguments, a plain function and one for each device."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

Program = Callable[[Path], object]
"""A mistake: what it returns is printed."""

MESH = AbstractMesh((4,), ("d",), axis_types=(AxisType.Auto,))
WHOLE = P()
X, W = jax.ShapeDtypeStruct((16, 6), jnp.float32), jax.ShapeDtypeStruct((6, 8), jnp.float32)


def loss(x: Any, w: Any) -> Any:
    """What is meant."""
    return jnp.tanh(x @ w).sum()


def parallel(x: Any, w: Any) -> Any:
    """The same, each device with a part of the batch."""
    return over_batch(lambda x, w: lax.psum(loss(x, w), "d"))(x, w)


def over_batch(local: Callable[..., Any], out: Any = WHOLE, check: bool = True) -> Callable[..., Any]:
    """A function for each device, with the batch split."""
    return jax.shard_map(local, mesh=MESH, in_specs=(P("d"), P()), out_specs=out, check_vma=check)
