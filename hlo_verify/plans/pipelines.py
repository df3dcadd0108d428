"""Plans of pipelines: stages one behind the other, microbatches, a schedule, and gradients that are accumulated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate as running
from itertools import pairwise
from typing import Any, Literal

import jax

from hlo_verify.diagnostics.errors import InputError
from hlo_verify.plans import parameters
from hlo_verify.plans.kinds import call, wrong
from hlo_verify.plans.plan import Plan
from hlo_verify.plans.steps import Accumulate, How, Join, Receive, Run, Send, Step, name_of
from hlo_verify.schedules.checks import check
from hlo_verify.schedules.published import gpipe, one_f_one_b, zb_h1
from hlo_verify.schedules.schedule import Action, Kind, Schedule, of, parse
from hlo_verify.schedules.transfers import homes, with_transfers

PUBLISHED: Mapping[str, Callable[[int, int], Schedule]] = {"gpipe": gpipe, "1f1b": one_f_one_b, "zb_h1": zb_h1}
"""Schedules with one stage a rank, by name; others are had of `hlo_verify.schedules`."""

SHOWN = 3
"""Faults of a schedule that a message names."""

Function = Callable[..., Any]
F, B, I, W, U = Kind.FORWARD, Kind.BACKWARD, Kind.BACKWARD_INPUT, Kind.BACKWARD_WEIGHT, Kind.UPDATE  # noqa: E741


def pipeline(
    stages: Sequence[Function],
    *,
    microbatches: int | Sequence[int],
    schedule: str | Schedule = "gpipe",
    loss: Function | None = None,
    accumulate: Literal["sum", "mean"] | None = None,
    update: Function | None = None,
    state: bool = False,
    buffered_sends: bool = False,
) -> Plan:
    """A pipeline as a plan. Stages are functions `stage(weights, x)`, each of which gives what the next one takes.

    The plan takes `params`, with the weights of each stage, and `x`, of which microbatches are parts of the first
    dimension: so many equal ones, or their sizes. It returns the last stage's results, side by side.

    With a `loss(y, target)` it is training: it takes `target` as well, cut like `x`, and returns the loss and the
    gradients of each stage's weights, as a list. Over microbatches both are accumulated by "sum" or "mean", which has
    to be said. With `update(weights, gradients)` it returns the loss and a list of what that gives for each stage; with
    `state`, it takes `state` too, a part a stage: `update(weights, gradients, state)`.

    `schedule` is "gpipe", "1f1b", "zb_h1", a text (`hlo_verify.schedules.parse`) or a `Schedule`, such as
    `interleaved_1f1b`; its sends and receives are written out unless it has some. A backward differentiates its
    stage at what its forward was given, by `jax.vjp`, and with the weights that the plan takes.

    Raises `InputError` for a schedule that leaves something out, does it twice, hangs, or does not fit.
    """
    stages = parameters.stages(stages)
    count, sizes = parameters.microbatches(microbatches)
    parameters.check_functions(loss=loss, update=update)
    parameters.check_scheduled(schedule, ", ".join(PUBLISHED))
    parameters.check_flag(parameters.PIPELINE, "state", state)
    parameters.check_flag(parameters.PIPELINE, "buffered_sends", buffered_sends)
    if count < 1 or not stages or (sizes is not None and min(sizes) < 1):
        raise wrong(f"a pipeline has stages and microbatches of rows, not {len(stages)} and {microbatches}")
    if (loss is None) is not (accumulate is None) or (loss is None and (update is not None or state)):
        raise wrong(
            "a pipeline that trains says loss= and how losses and gradients of microbatches are accumulated: "
            "accumulate='sum' or 'mean'"
        )
    made = _scheduled(schedule, len(stages), count, trains=loss is not None, buffered=buffered_sends)
    rows = [f"[{m}/{count}]" for m in range(count)]
    if sizes is not None:
        ends = [0, *running(sizes)]
        rows = [f"[{low}:{high}]" for low, high in pairwise(ends)]
    programs = _Programs(stages, loss, tuple(rows))
    homes = _homes(made, trains=loss is not None)
    finish = _Finish(accumulate, update, state, count, len(stages))
    ranks = []
    for number, steps in enumerate(made.ranks):
        mine = [each for step in steps for each in _steps(step, programs, finish, homes)]
        updated = {action.stage for step in steps for action in step if action.kind is U}
        here = sorted({stage for (stage, _), rank in homes.items() if rank == number})
        ranks.append(mine + [each for stage in here if stage not in updated for each in finish.steps(stage)])
    returns: Any = "y"
    if loss is not None:
        returns = ("loss", [("new_{}" if update else "gradient_{}").format(stage) for stage in range(len(stages))])
    takes = ("params", "x", *["target"] * (loss is not None), *["state"] * state)
    return Plan(takes=takes, ranks=ranks, returns=returns, buffered_sends=buffered_sends, schedule=made)


def _scheduled(given: str | Schedule, stages: int, count: int, *, trains: bool, buffered: bool) -> Schedule:
    """The schedule with its sends and receives. Raises `InputError` for one that is wrong."""
    if isinstance(given, str) and given in PUBLISHED:
        made = PUBLISHED[given](stages, count)
        if not trains:
            made = of([[a for step in steps for a in step if a.kind is F] for steps in made.ranks])
    elif isinstance(given, str):
        try:
            made = parse(given)
        except InputError as error:
            where = call(parameters.PIPELINE, schedule=given)
            raise wrong(f"{where}: {error}; schedules that have a name are {', '.join(PUBLISHED)}") from error
    else:
        made = given
    has_backward = any(action.kind in (B, I, W) for _, _, action in made.actions())
    if has_backward is not trains:
        raise wrong(
            "the schedule has backwards, and there is no loss to differentiate: give loss= and accumulate="
            if has_backward
            else "the schedule goes forward alone, and a loss is to be differentiated: it has no backward (B)"
        )
    if (made.stages, made.microbatches) != (stages, count):
        raise wrong(
            f"the schedule is of {made.stages} stages and {made.microbatches} microbatches, and the pipeline of "
            f"{stages} and {count}"
        )
    faults = check(made, buffered=buffered)
    if not faults and not made.has_transfers:
        made = with_transfers(made)
        faults = check(made, buffered=buffered)
    if faults:
        said = [
            f"{fault.action} of rank {fault.rank}, step {fault.place + 1}, {fault.message}"
            if fault.action
            else fault.message
            for fault in faults[:SHOWN]
        ]
        more = f"; and {len(faults) - SHOWN} more" if len(faults) > SHOWN else ""
        raise wrong(f"the schedule cannot be run: {'; '.join(said)}{more}")
    return made


Homes = Mapping[tuple[int, int], int]
"""By stage and microbatch, the rank of its forward."""


def _homes(schedule: Schedule, *, trains: bool) -> Homes:
    found = homes(schedule)
    for stage, _ in found:
        ranks = sorted({found[stage, m] for m in range(schedule.microbatches)})
        if len(ranks) > 1 and (trains or stage == schedule.stages - 1):
            raise wrong(
                f"stage {stage} is on ranks {', '.join(map(str, ranks))}, which have to bring together what is "
                "accumulated, and a schedule does not say how: write the plan out, Plan(takes=, ranks=, returns=)"
            )
    return found


def _steps(step: tuple[Action, ...], programs: _Programs, finish: _Finish, home: Homes) -> Iterator[Step]:
    """What a step of a schedule is in a plan: transfers that are joined are posted at once."""
    posted = [_transfer(action, home) for action in step if action.kind.is_transfer]
    if posted:
        yield posted[0] if len(posted) == 1 else tuple(posted)
    for action in step:
        if action.kind is U:
            yield from finish.steps(action.stage)
        elif not action.kind.is_transfer and not (action.kind is I and action.stage == 0):
            yield programs.run(action)


def _transfer(action: Action, home: Homes) -> Send | Receive:
    stage, m = action.stage, action.microbatch
    if action.kind is Kind.SEND_FORWARD:
        return Send(f"h{stage + 1}_{m}", home[stage + 1, m])
    if action.kind is Kind.RECV_FORWARD:
        return Receive(f"h{stage}_{m}", home[stage - 1, m])
    if action.kind is Kind.SEND_BACKWARD:
        return Send(f"d{stage}_{m}", home[stage - 1, m])
    return Receive(f"d{stage + 1}_{m}", home[stage + 1, m])


class _Programs:
    """The programs of a pipeline: `h2_0` is what stage 2 is given of microbatch 0, `d2_0` the gradient of that, `g2_0`
    that of its weights."""

    def __init__(self, stages: tuple[Function, ...], loss: Function | None, rows: tuple[str, ...]) -> None:
        self.stages, self.loss, self.rows = stages, loss, rows
        self.made: dict[tuple[int, Kind], Function] = {}

    def run(self, action: Action) -> Run:
        stage, m = action.stage, action.microbatch
        is_last = stage == len(self.stages) - 1 and self.loss is not None
        takes = [f"params/{stage}", f"h{stage}_{m}" if stage else f"x{self.rows[m]}"]
        takes += [f"target{self.rows[m]}"] * is_last
        if action.kind is not F and not is_last:
            takes.append(f"d{stage + 1}_{m}")
        gives: Any = {
            F: f"loss_{m}" if is_last else f"h{stage + 1}_{m}",
            B: (f"g{stage}_{m}", f"d{stage}_{m}") if stage else f"g{stage}_{m}",
            I: f"d{stage}_{m}",
            W: f"g{stage}_{m}",
        }[action.kind]
        key = stage, action.kind
        if key not in self.made:
            self.made[key] = self._function(stage, action.kind, is_last=is_last)
        return Run(self.made[key], takes, gives)

    def _function(self, stage: int, kind: Kind, *, is_last: bool) -> Function:
        function, loss = self.stages[stage], self.loss
        name = name_of(function)

        def lost(weights: Any, x: Any, target: Any) -> Any:
            assert loss is not None
            return loss(function(weights, x), target)

        def forward(weights: Any, x: Any) -> Any:
            return function(weights, x)

        def backward(weights: Any, x: Any, other: Any) -> Any:
            wanted = {B: (weights, x), I: (x,), W: (weights,)}[kind] if stage else (weights,)

            def whole(*some: Any) -> Any:
                own = some[0] if some and kind is not I else weights
                given = some[-1] if stage and kind is not W else x
                return lost(own, given, other) if is_last else function(own, given)

            value, pull = jax.vjp(whole, *wanted)
            found = pull(jax.numpy.ones_like(value) if is_last else other)
            return found if len(found) > 1 else found[0]

        made = (lost if is_last else forward) if kind is F else backward
        made.__name__ = made.__qualname__ = name + {F: "_loss" if is_last else "", B: "_backward"}.get(
            kind, "_backward_inputs" if kind is I else "_backward_weights"
        )
        return made


class _Finish:
    """What comes behind the last microbatch of a stage."""

    def __init__(self, how: How | None, update: Function | None, state: bool, count: int, stages: int) -> None:
        self.how, self.update, self.state, self.count, self.stages = how, update, state, count, stages

    def steps(self, stage: int) -> Iterator[Step]:
        is_last = stage == self.stages - 1
        if self.how is None:
            if is_last:
                yield Join([f"h{stage + 1}_{m}" for m in range(self.count)], "y")
            return
        if is_last:
            yield Accumulate(self.how, [f"loss_{m}" for m in range(self.count)], "loss")
        yield Accumulate(self.how, [f"g{stage}_{m}" for m in range(self.count)], f"gradient_{stage}")
        if self.update is not None:
            takes = [f"params/{stage}", f"gradient_{stage}", *[f"state/{stage}"] * self.state]
            yield Run(self.update, takes, f"new_{stage}")
