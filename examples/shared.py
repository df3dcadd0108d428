"""What the other examples share: meshes of devices that need not be there, shapes for arrays, and the verdict to come.

It is no example itself, and nothing of hlo-verify: `hlo_verify.check` takes meshes and shapes as JAX has them.
"""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType

from hlo_verify import Report


def mesh(**axes: int) -> AbstractMesh:
    """A mesh with axes of those sizes."""
    return AbstractMesh(tuple(axes.values()), tuple(axes), axis_types=(AxisType.Auto,) * len(axes))


def floats(*shape: int) -> jax.ShapeDtypeStruct:
    """What stands for an array of floats in the place of an argument: nothing is computed."""
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def expect(verdict: str, report: Report, title: str = "") -> None:
    """Print a report. A verdict that is not the expected one ends the example with status 1."""
    print(f"{title}:\n{report}\n" if title else f"{report}\n", flush=True)
    if report.verdict != verdict:
        sys.exit(f"{verdict} was expected, not {report.verdict}")
