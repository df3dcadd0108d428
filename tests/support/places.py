"""Tables of places, and the parts that devices have of them."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict

DEVICES, PLACES = 4, 64
MESH = AbstractMesh((DEVICES,), ("d",), axis_types=(AxisType.Auto,))
GIVEN = jax.ShapeDtypeStruct((PLACES,), jnp.float32)


def verdict(
    whole: Callable[[], jax.Array], local: Callable[[], jax.Array], shape: tuple[int, ...] = (PLACES,)
) -> Verdict:
    """Of a program that scales its argument by a table, and one in which each device makes its own part of it."""
    mapped = jax.shard_map(lambda x: x * local(), mesh=MESH, in_specs=P("d"), out_specs=P("d"), check_vma=False)
    given = jax.ShapeDtypeStruct(shape, jnp.float32)
    return hlo_verify.check(lambda x: x * whole(), mapped, given, refute=False).verdict


def places() -> jax.Array:
    return jnp.arange(float(PLACES))


def own(table: jax.Array) -> jax.Array:
    """The part of a device, which is cut out."""
    return lax.dynamic_slice_in_dim(table, lax.axis_index("d") * (PLACES // DEVICES), PLACES // DEVICES)


def own_places() -> jax.Array:
    """The places of a device, which it counts itself."""
    return (lax.axis_index("d") * (PLACES // DEVICES) + jnp.arange(PLACES // DEVICES)).astype(jnp.float32)
