"""Functions of whole arrays and functions of each device's shards, lowered to pairs of modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

Specs = PartitionSpec | tuple[PartitionSpec, ...]
"""Of each argument or result, or the one of all."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Arguments and results on a mesh: what functions of them are lowered with."""

    mesh: AbstractMesh
    given: Specs
    wanted: Specs
    arguments: Sequence[jax.ShapeDtypeStruct]

    def lowered(self, function: Callable[..., Any], platform: str = "cpu") -> str:
        """The module of a function of whole arrays, with its source lines."""
        shardings = {"in_shardings": self._on(self.given), "out_shardings": self._on(self.wanted)}
        jitted = jax.jit(function, keep_unused=True, **shardings)
        return str(jitted.trace(*self.arguments).lower(lowering_platforms=(platform,)).as_text(debug_info=True))

    def mapped(self, local: Callable[..., Any]) -> Callable[..., Any]:
        """A function of each device's shards as one of whole arrays."""
        return jax.shard_map(local, mesh=self.mesh, in_specs=self.given, out_specs=self.wanted, check_vma=False)

    def pair(self, whole: Callable[..., Any], local: Callable[..., Any]) -> tuple[str, str]:
        """The modules of a function of whole arrays and of one of each device's shards."""
        return self.lowered(whole), self.lowered(self.mapped(local))

    def _on(self, specs: Specs) -> Any:
        if isinstance(specs, PartitionSpec):
            return NamedSharding(self.mesh, specs)
        return tuple(NamedSharding(self.mesh, spec) for spec in specs)


def floats(*shapes: tuple[int, ...]) -> list[jax.ShapeDtypeStruct]:
    """Arguments of those shapes."""
    return [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
