"""Tables of places, and the parts that devices have of them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType

DEVICES, PLACES = 4, 64
MESH = AbstractMesh((DEVICES,), ("d",), axis_types=(AxisType.Auto,))
GIVEN = jax.ShapeDtypeStruct((PLACES,), jnp.float32)


def places() -> jax.Array:
    return jnp.arange(float(PLACES))


def own(table: jax.Array) -> jax.Array:
    """The part of a device, which is cut out."""
    return lax.dynamic_slice_in_dim(table, lax.axis_index("d") * (PLACES // DEVICES), PLACES // DEVICES)


def own_places() -> jax.Array:
    """The places of a device, which it counts itself."""
    return (lax.axis_index("d") * (PLACES // DEVICES) + jnp.arange(PLACES // DEVICES)).astype(jnp.float32)
