"""The parameters of `Plan` and `Plan.pipeline`: as they are kept, or the error that says what they have to be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hlo_verify.diagnostics.errors import InputError
from hlo_verify.plans.kinds import call, check_name, is_number, listed, shown, wrong
from hlo_verify.plans.steps import Accumulate, Join, Receive, Run, Send, names
from hlo_verify.schedules.schedule import Schedule

PLAN, PIPELINE = "Plan", "Plan.pipeline"


def arguments(takes: object) -> tuple[str, ...]:
    """The names of the arguments."""
    if isinstance(takes, str):
        return (takes,)
    said, found = call(PLAN, takes=takes), listed(takes)
    if found is None:
        raise wrong(f"{said}: takes has the names of the arguments, in their order: takes=('params', 'x')")
    for name in found:
        check_name(name, said)
    return found


def ranks(given: object) -> tuple[tuple[Any, ...], ...]:
    """The steps of each rank; what is no step among them is not looked for."""
    said, rows = call(PLAN, ranks=given), listed(given)
    has = "ranks has a list of steps for each rank"
    if rows is None:
        raise wrong(f"{said}: {has}: ranks=[[Run(...), Send(...)], [Receive(...), Run(...)]]")
    found = []
    for number, row in enumerate(rows):
        steps = listed(row)
        if steps is None:
            what = shown(row)
            if isinstance(row, Run | Send | Receive | Accumulate | Join):
                what = f"a {type(row).__name__}, {row}"
            raise wrong(f"{said}: rank {number} is {what}, and {has}: ranks=[[...]] where there is one")
        found.append(steps)
    return tuple(found)


def check_returns(returns: Any) -> None:
    """Raise `InputError` unless it is a tree of names."""
    try:
        list(names(returns))
    except InputError as error:
        raise error.within(call(PLAN, returns=returns)) from None


def mesh(given: object) -> dict[str, int]:
    """The axes and their sizes."""
    said = "mesh has the sizes of axes by their names: mesh={'model': 4}"
    if not isinstance(given, Mapping):
        of_jax = isinstance(getattr(given, "shape", None), Mapping)
        raise wrong(f"{call(PLAN, mesh=given)}: {said}{', or of a mesh of JAX mesh=dict(mesh.shape)' * of_jax}")
    for axis, size in given.items():
        if not isinstance(axis, str) or not is_number(size) or size < 1:
            raise wrong(f"{call(PLAN, mesh=given)}: {shown(axis)} of {shown(size)} ranks is no axis; {said}")
    return {axis: int(size) for axis, size in given.items()}


def check_flag(function: str, name: str, given: object) -> None:
    """Raise `InputError` unless it is one of two."""
    if not isinstance(given, bool):
        raise wrong(f"{call(function, **{name: given})}: it is True or False")


def check_schedule(given: object) -> None:
    """Raise `InputError` unless it may be what a plan was made of."""
    if given is not None and not isinstance(given, Schedule):
        raise wrong(
            f"{call(PLAN, schedule=given)}: it is the Schedule that Plan.pipeline has made a plan of; to make one of a "
            "schedule, Plan.pipeline(stages, microbatches=..., schedule=...)"
        )


def microbatches(given: object) -> tuple[int, tuple[int, ...] | None]:
    """How many there are, and their sizes where they were given."""
    if is_number(given):
        return int(given), None
    found = listed(given)
    if found is None or not all(map(is_number, found)):
        raise wrong(
            f"{call(PIPELINE, microbatches=given)}: it is how many equal microbatches there are, or a list of how many "
            "rows each has"
        )
    return len(found), tuple(map(int, found))


def stages(given: object) -> tuple[Any, ...]:
    """The functions of the stages."""
    said, found = call(PIPELINE, stages=given), listed(given)
    if found is None:
        raise wrong(f"{said}: it is a list of functions, stage(weights, x), one for each stage")
    for stage in found:
        if not callable(stage):
            raise wrong(f"{said}: {shown(stage)} is no function; a stage is stage(weights, x)")
    return found


def check_functions(**functions: object) -> None:
    """Raise `InputError` unless what is given for training are functions."""
    shapes = {"loss": "loss(y, target)", "update": "update(weights, gradients)"}
    for name, given in functions.items():
        if given is not None and not callable(given):
            raise wrong(f"{call(PIPELINE, **{name: given})}: it is a function, {shapes[name]}")


def check_scheduled(given: object, published: str) -> None:
    """Raise `InputError` unless it may be a schedule of a pipeline."""
    if not isinstance(given, str | Schedule):
        raise wrong(
            f"{call(PIPELINE, schedule=given)}: it is one of {published}, a text, or a Schedule of hlo_verify.schedules"
        )
