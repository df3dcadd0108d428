"""`check`: two functions of JAX, or one that XLA distributes, in one line (docs/decisions/functions.md)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlo_verify.api import check_options, verify
from hlo_verify.asked import Progress
from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.limits import TIME_LIMIT, Effort
from hlo_verify.shown import Report
from hlo_verify.tracebacks import told_at_the_call

if TYPE_CHECKING:
    from hlo_verify.plans import Plan
    from hlo_verify.program.approximations import Declared
    from hlo_verify.program.preconditions import Assumed
    from hlo_verify.traced.distribution import Distribution
    from hlo_verify.traced.functions import Function
    from hlo_verify.traced.meshes import AnyMesh
    from hlo_verify.traced.stages import Stage

AS_WRITTEN = "the reference with the second function as it is written: its manual regions leave nothing to XLA"
PLAN_FIRST = "a plan comes second, behind the function that it is to compute: check(f, plan, ...)"
ALONE = "; what comes second is no function, so that there is none to compare with: check(f, g, x) compares f and g"
DISTRIBUTE = (
    "every device would compute all of it, and a proof would say nothing. Give it shardings over a mesh "
    "(jax.jit(g, in_shardings=..., out_shardings=...), or arguments that lie on several devices), or write it with "
    "jax.shard_map"
)


@told_at_the_call
def check(
    function: Any,
    /,
    *args: Any,
    mesh: AnyMesh = None,
    keep: str | Path | None = None,
    assume: Assumed | None = None,
    approximations: Declared | None = None,
    refute: bool = True,
    recheck: bool = False,
    effort: Effort = "normal",
    time_limit: float | None = TIME_LIMIT,
    progress: Progress | None = None,
    **kwargs: Any,
) -> Report:
    """Prove that a distributed function computes what a plain one does: `check(f, g, x, y)`, with the reference first.

    `g` is distributed by `jax.shard_map` or `jax.pmap`, or XLA is to distribute it: by the shardings of a `jax.jit`, of
    values or of its arguments. With one function, `check(g, x, y)`, what XLA makes of it is compared with the function
    itself. A second positional argument that is a function makes it two; a model that can be called (an equinox or
    flax module) is an argument.

    `g` may also be a `Plan`, of several programs that together make one (docs/usage.md).

    Functions may be plain, jitted by JAX, equinox or flax (nnx), lowered or compiled, or a `functools.partial`.
    Arguments, by position or name, are arrays, `jax.ShapeDtypeStruct`s and trees of them; nothing is computed, and the
    devices of a mesh need not be there. `mesh` is one that functions are traced under: a mesh of JAX, or the sizes of
    its axes, `{"data": 8}`. For how many devices it is says the mesh of `g`.

    `assume` says of which values arguments are, by their names in the reference or their paths:
    `{"tokens": (0, 32000)}`.

    `approximations` says which values of `g` stand for which of the reference, though they are others:
    `{"batch_stats/mean": "stats/mean"}`, by what `jax.named_scope` calls them, or by source lines (`"g.py:41"`). What
    is around them is compared, and the first line of the report lists them.

    All else is as for `verify`: `keep` names a folder for the modules that are compared. These names are taken: an
    argument of a function that is called like one of them goes by position.

    Raises `InputError` for what cannot be verified as it stands: functions that cannot be traced for these arguments,
    or do not return the same, and a `g` that nothing distributes.
    """
    from hlo_verify.plans import Plan
    from hlo_verify.traced import functions, meshes, stages
    from hlo_verify.traced.agreement import check_agreement, check_fits
    from hlo_verify.traced.arguments import shapes
    from hlo_verify.traced.distribution import Distribution, devices_of_meshes

    options: dict[str, Any] = {"assume": assume, "approximations": approximations, "refute": refute, "recheck": recheck}
    options |= {"effort": effort, "time_limit": time_limit, "progress": progress}
    check_options(progress, keep=keep)
    if isinstance(function, Plan) and not isinstance(next(iter(args), None), Plan):
        raise InputError(PLAN_FIRST, Input.USAGE)
    with meshes.under(mesh):
        if not (args and functions.is_function(args[0])):
            only = functions.Function(function, "the function")
            stage = functions.traced(only, *shapes((args, kwargs), distributed=True), alone=ALONE if args else "")
            check_fits(only, stage, (args, kwargs))
            contents, who = _distributed(only, stage)
            if who is Distribution.DONE:
                raise InputError(
                    "a compiled function alone: pass the function that it was compiled from too, as the first one",
                    Input.USAGE,
                )
            return verify(contents, keep=keep, devices=devices_of_meshes(contents), **options)
        first = functions.Function(function, "the first function")
        plan = args[0] if isinstance(args[0], Plan) else None
        if plan is not None:
            first = functions.Function(plan.like(function), "the first function")
        second = functions.Function(args[0], "the plan" if plan else "the second function")
        first = functions.alike(first, second)
        second = second if second.is_of_nnx else functions.alike(second, first)
        static = first.is_of_equinox or second.is_of_equinox
        given = args[1:], kwargs
        reference = functions.traced(first, *shapes(given, distributed=False), static_numbers=static)
        stage = functions.traced(second, *shapes(given, distributed=True), static_numbers=static)
        check_agreement((first, reference), (second, stage))
        check_fits(second, stage, given)
        reference, stage = stages.with_equal_arguments(reference, stage)
        contents, who = _distributed(second, stage, first, reference, is_plan=plan is not None)
        logical = functions.contents(first, reference)
    if who is Distribution.XLA:
        devices = devices_of_meshes(contents)
        return verify(logical, contents, partition=True, keep=keep, devices=devices, **options)
    if keep is not None:
        _keep(Path(keep), logical, contents)
    return _as_written(logical, contents, who, stages.devices_of(stage), plan, options)


def _as_written(
    logical: str | bytes,
    contents: str | bytes,
    who: Distribution,
    devices: int | None,
    plan: Plan | None,
    options: dict[str, Any],
) -> Report:
    """The report of a pair of which XLA has nothing to distribute."""
    from hlo_verify.traced.distribution import Distribution

    if plan is not None and who is Distribution.NOBODY:
        report = verify(logical, contents, devices=1, **options)
        return replace(report, compared=plan.summary)
    report = verify(logical, contents, devices=devices, **options)
    return replace(report, compared=AS_WRITTEN) if who is Distribution.AUTHOR else report


def _distributed(
    function: Function,
    stage: Stage,
    reference: Function | None = None,
    other: Stage | None = None,
    *,
    is_plan: bool = False,
) -> tuple[str | bytes, Distribution]:
    """The module of the function that is distributed, and who distributes it. Raises `InputError` where nobody does."""
    from hlo_verify.traced import functions, stages
    from hlo_verify.traced.agreement import check_returns
    from hlo_verify.traced.distribution import Distribution, distribution_of

    check_returns(function, stage)
    contents = functions.contents(function, stage)
    who = distribution_of(contents, stages.devices_of(stage))
    if who is not Distribution.NOBODY or is_plan:
        return contents, who
    swapped = other is not None and distribution_of(stages.contents(other), stages.devices_of(other))
    if swapped and swapped is not Distribution.NOBODY:
        raise InputError(
            f"{reference} is distributed and {function} is not: the reference comes first, check(f, g, ...)",
            Input.NOTHING_TO_PARTITION,
        )
    raise InputError(f"{function} is not distributed: {DISTRIBUTE}", Input.NOTHING_TO_PARTITION)


def _keep(folder: Path, logical: str | bytes, partitioned: str | bytes) -> None:
    """Leave behind both modules of a pair."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, contents in (("logical", logical), ("partitioned", partitioned)):
            if isinstance(contents, str):
                (folder / f"{name}.mlir").write_text(contents)
            else:
                (folder / f"{name}.hlo.pb").write_bytes(contents)
    except OSError as error:
        raise InputError(f"cannot keep the modules in {folder}: {error.strerror}", Input.UNWRITABLE) from error
