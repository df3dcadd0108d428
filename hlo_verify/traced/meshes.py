"""The mesh under which functions are traced that name its axes alone: all that JAX calls it is here."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeAlias

import jax
from jax.sharding import AbstractMesh, AxisType

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError

AnyMesh: TypeAlias = "jax.sharding.Mesh | AbstractMesh | Mapping[str, int] | None"


def under(mesh: AnyMesh) -> AbstractContextManager[Any]:
    """A context in which a mesh is the one that functions are traced for; without one, the caller's stays.

    `{"data": 2, "model": 4}` is a mesh of devices that need not be there.
    """
    if mesh is None:
        return nullcontext()
    if isinstance(mesh, Mapping):
        wrong = [axis for axis, size in mesh.items() if not (isinstance(axis, str) and type(size) is int and size > 0)]
        if wrong or not mesh:
            said = f"{wrong[0]!r} has size {mesh[wrong[0]]!r}" if wrong else "it has no axes"
            raise InputError(f'mesh gives axes their sizes, as {{"data": 2, "model": 4}}, and {said}', Input.USAGE)
        mesh = AbstractMesh(tuple(mesh.values()), tuple(mesh), axis_types=(AxisType.Auto,) * len(mesh))
    if isinstance(mesh, AbstractMesh):
        return jax.sharding.use_abstract_mesh(mesh)
    if isinstance(mesh, jax.sharding.Mesh):
        return jax.set_mesh(mesh)
    raise InputError(
        f"mesh is a {type(mesh).__name__}; pass a jax.sharding.Mesh, an AbstractMesh, or axes with their sizes, "
        'as {"data": 2, "model": 4}',
        Input.USAGE,
    )
