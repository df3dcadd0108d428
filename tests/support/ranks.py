"""Pairs of modules as AWS Neuron's tools write them: for one device, and for a rank of several, without shardings."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

Shapes = Sequence[tuple[int, ...]]


def psum(x: Any) -> Any:
    """Stands for the sum over all ranks in what `rank` lowers."""
    return jax.lax.optimization_barrier(x)


def rank_number() -> Any:
    """Stands for the number of the rank."""
    return jax.lax.population_count(jnp.uint32(0))


def whole(function: Callable[..., Any], shapes: Shapes) -> str:
    """The module for one device."""
    return _text(function, shapes)


def rank(function: Callable[..., Any], shapes: Shapes, devices: int) -> str:
    """The module that every one of the ranks runs."""
    groups = f"dense<[{list(range(devices))}]> : tensor<1x{devices}xi64>"
    text = re.sub(
        r"(%\S+) = stablehlo.optimization_barrier (%\S+) : tensor<(\S+x)?(\w+)>",
        rf"""\1 = "stablehlo.all_reduce"(\2) <{{replica_groups = {groups}}}> ({{
    ^bb0(%p: tensor<\4>, %q: tensor<\4>):
      %r = stablehlo.add %p, %q : tensor<\4>
      stablehlo.return %r : tensor<\4>
    }}) : (tensor<\3\4>) -> tensor<\3\4>""",
        _text(function, shapes),
    )
    text = re.sub(r"= stablehlo.popcnt %\S+ : tensor<ui32>", "= stablehlo.replica_id : tensor<ui32>", text)
    return text.replace("mhlo.num_replicas = 1", f"mhlo.num_replicas = {devices}")


def _text(function: Callable[..., Any], shapes: Shapes) -> str:
    given = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    return str(jax.jit(function, keep_unused=True).lower(*given).as_text(debug_info=True))
