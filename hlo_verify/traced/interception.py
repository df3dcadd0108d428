"""A function under `jax.jit` that says so before it runs an executable for the first time, and costs nothing later.

A jitted function is an object of C++ that looks its arguments up in a cache, and calls a function of Python where it
finds nothing. Another such object is made here, with another function of Python in that place: calls that find
something never see it. All that is private of it is in this file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.traced.arguments import Given


@dataclass(frozen=True, slots=True)
class Executable:
    """What became of a function for its arguments, step by step."""

    given: Given
    traced: jax.stages.Traced
    lowered: jax.stages.Lowered
    compiled: jax.stages.Compiled


Told: TypeAlias = "Callable[[Executable], None]"
"""What is called with an executable before it runs."""


def executable_of(jitted: Any, given: Given) -> Executable:
    """What becomes of a jitted function for arguments, or for the shapes of these. JAX keeps all of it: to run it does
    not compile again."""
    args, kwargs = given
    traced = jitted.trace(*args, **kwargs)
    lowered = traced.lower()
    return Executable(given, traced, lowered, lowered.compile())


def intercepted(jitted: Any, told: Told) -> Any:
    """The function of a `jax.jit`, once more, that calls `told` before an executable runs that is not in its cache.

    It may call it again for the same executable, where JAX does not keep one in its cache: functions with effects.
    Calls by other transformations (`grad`, `vmap`, an outer `jit`) are theirs, and nothing is compiled for them alone.
    """
    try:
        state = dict(jitted.__getstate__())
        missed, common = state["cache_miss"], state["global_cache_key"]
    except (AttributeError, KeyError, TypeError) as error:
        raise InputError(
            f"{type(jitted).__name__} of this version of JAX cannot be wrapped ({error}); jax.jit and "
            "hlo_verify.check can be used",
            Input.USAGE,
        ) from error

    def first(*args: Any, **kwargs: Any) -> Any:
        if not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((args, kwargs))):
            told(executable_of(jitted, (args, kwargs)))
        return missed(*args, **kwargs)

    kind: Any = type(jitted)
    found = kind.__new__(kind)
    # What `jax.jit` of the same function has in the common cache was not told of.
    found.__setstate__({**state, "cache_miss": first, "global_cache_key": (common, object())})
    # Nothing else may stand here: an outer `jit` takes it over.
    found.__dict__.update(jitted.__dict__)
    return found
