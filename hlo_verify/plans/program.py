"""A program of a rank, traced with the axes of the plan's mesh."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import jax

from hlo_verify.diagnostics.errors import InputError
from hlo_verify.plans.collectives import Meeting, Ranks, programs
from hlo_verify.plans.kinds import wrong
from hlo_verify.plans.steps import Run, name_of
from hlo_verify.traced.arguments import is_array, jitted
from hlo_verify.traced.functions import own_line

CASTS = ("ManualAxisType", "pcast", "inputs that are varying")
"""Words of JAX about values that are said to vary over ranks, which none is outside of `check_vma=True`."""


class Program:
    """A program of a rank on its way: called as it is, or, where there is a mesh, traced with its axes and taken apart
    at its collectives. What knows of an axis need not meet anybody: `lax.psum(1, axis)` leaves nothing in the trace."""

    def __init__(self, step: Run, called: str, mesh: Ranks) -> None:
        self.step, self.called, self.mesh = step, called, mesh
        self.traced: Any = None
        self.tree: Any = None

    def begin(self, inputs: list[Any]) -> Any:
        """What it returns; nothing yet where there is a mesh, whose axes it is traced with."""
        try:
            given = self.step.function
            if all(is_array(leaf) for leaf in jax.tree.leaves(inputs)):  # JAX traces what it knows only once
                function, some = given if hasattr(given, "trace") else jax.jit(given), tuple(inputs)
            else:
                function, some, _ = jitted(given, tuple(inputs), {}, False)
            if not self.mesh.axes:
                return function(*some)
            trace = jax.make_jaxpr(function, axis_env=self.mesh.environment, return_shape=True)
            self.traced, shapes = trace(*some)
            self.inputs, self.tree = jax.tree.leaves(some), jax.tree.structure(shapes)
            return None
        except InputError:
            raise
        except Exception as error:
            raise wrong(f"{self.called}: {self._said(error)}") from error

    def _said(self, error: Exception) -> str:
        words = " ".join(str(error).split())[:500]
        if "unbound axis" in words and self.mesh.axes:
            words += f"; the plan's mesh has the axes {', '.join(self.mesh.axes)}"
        elif "unbound axis" in words:
            words += "; the axes along which ranks meet are those of the plan: Plan(..., mesh={'model': 4})"
        elif self.mesh.axes and any(word in words for word in CASTS):
            line = own_line(error)
            where = f" (at {line[0]}:{line[1]})" if line is not None else ""
            return (
                f"it says which values vary over ranks{where}, by lax.pcast or to= of a collective, and programs of a "
                "plan are traced as under jax.shard_map(..., check_vma=False), where that has no meaning: leave it "
                "out; it changes no value, but gradients within the program are others under check_vma=True"
            )
        return f"{type(error).__name__}: {words}"

    def through(self, rank: int) -> Generator[Meeting, Any, Any]:
        """What it returns, by way of its meetings."""
        leaves = yield from programs(self.traced, self.inputs, rank, self.mesh, name_of(self.step.function))
        return jax.tree.unflatten(self.tree, leaves)
