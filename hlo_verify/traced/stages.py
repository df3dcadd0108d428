"""A function of JAX on its way to an executable: traced, lowered, compiled. What is private of them is read here alone.

Flax and equinox have such stages of their own, around those of JAX.
"""

from __future__ import annotations

from copy import copy
from typing import Any, TypeAlias, cast

import jax

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError

Stage: TypeAlias = jax.stages.Traced | jax.stages.Lowered | jax.stages.Compiled

_STAGES = (jax.stages.Traced, jax.stages.Lowered, jax.stages.Compiled)
_INNER = ("traced", "lowered", "compiled")
"""What flax and equinox call the stage of JAX within theirs."""

PLATFORM = ("cpu",)
"""The XLA in jaxlib partitions for CPUs."""


def stage_of(source: object) -> Stage | None:
    """The stage of JAX that something is, or that is within it; None for anything else."""
    for name in _INNER:
        inner = getattr(source, name, None)
        if isinstance(inner, _STAGES):
            return inner
    return source if isinstance(source, _STAGES) else None


def contents(stage: Stage) -> str | bytes:
    """The module of a stage as the contents of a file: StableHLO, or what XLA compiled as a proto."""
    if isinstance(stage, jax.stages.Traced):
        stage = stage.lower(lowering_platforms=PLATFORM)
    if isinstance(stage, jax.stages.Lowered):
        return str(stage.as_text(debug_info=True))
    assert isinstance(stage, jax.stages.Compiled)
    executable = stage.runtime_executable()
    modules = [] if executable is None else executable.hlo_modules()
    if len(modules) != 1:
        raise InputError(
            f"the compiled function holds {len(modules)} HLO modules; pass jax.jit(f) or its lowered form instead",
            Input.USAGE,
        )
    return bytes(modules[0].as_serialized_hlo_module_proto())


def devices_of(stage: object) -> int | None:
    """For how many devices a compiled function is: the proto of its module does not say it."""
    found = stage_of(stage)
    if not isinstance(found, jax.stages.Compiled):
        return None
    placed = jax.tree.leaves((found.input_shardings, found.output_shardings))
    return max((sharding.num_devices for sharding in placed), default=None)


def with_all_arguments(traced: jax.stages.Traced) -> jax.stages.Traced:
    """A traced function with `keep_unused`, which there is no other way to say once it is traced."""
    inner: Any = traced
    parameters = getattr(inner, "_params", None)
    if not isinstance(parameters, dict) or "keep_unused" not in parameters:
        return traced
    copied = copy(inner)
    copied._params, copied._lojax = {**parameters, "keep_unused": True}, None
    return copied  # type: ignore[no-any-return]


def with_equal_arguments(first: Stage, second: Stage) -> tuple[Stage, Stage]:
    """Both, with the same arguments in their modules: `jax.jit` leaves out those that a function does not use, and the
    one may use others than the other.

    What is only traced keeps all. What is lowered may have lost some for good: then the other has to lose the same.
    Raises `InputError` where it does not.
    """
    if isinstance(first, jax.stages.Traced) and isinstance(second, jax.stages.Traced):
        return with_all_arguments(first), with_all_arguments(second)
    first, second = _like(first, second), _like(second, first)
    kept, others = _kept(first), _kept(second)
    if kept != others:
        raise InputError(
            "the functions were lowered without the arguments that they do not use, and these are not the same: of one "
            f"the positions {_listed(kept)} are left, of the other {_listed(others)}; pass what jax.jit(f).trace(...) "
            "returns, or lower jax.jit(f, keep_unused=True)",
            Input.NOT_A_PAIR,
        )
    return first, second


def _like(stage: Stage, other: Stage) -> jax.stages.Lowered | jax.stages.Compiled:
    """A stage beyond tracing, with all its arguments if the other one has."""
    if not isinstance(stage, jax.stages.Traced):
        return stage
    has_all = isinstance(other, jax.stages.Traced) or _kept(other) == frozenset(range(arguments(other)))
    traced = with_all_arguments(stage) if has_all else stage
    return cast(jax.stages.Lowered, traced.lower(lowering_platforms=PLATFORM))


def arguments(stage: Stage) -> int:
    """How many arguments the function has, used or not."""
    return len(jax.tree.leaves(stage.args_info))


def _listed(kept: frozenset[int]) -> str:
    return f"[{', '.join(map(str, sorted(kept)))}]"


def _kept(stage: jax.stages.Lowered | jax.stages.Compiled) -> frozenset[int]:
    """The positions of the arguments that are in the module of what is lowered or compiled."""
    inner: Any = stage
    if isinstance(stage, jax.stages.Lowered):
        return frozenset(inner._lowering.compile_args["kept_var_idx"])
    return frozenset(inner._executable._kept_var_idx)
