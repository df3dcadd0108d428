"""Control flow, with all devices in lockstep: a device that a loop has ended for keeps what it has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlo_verify.evaluate.blocks import Blocks, compact
from hlo_verify.evaluate.movement import chosen
from hlo_verify.evaluate.state import PartialRule, Place, Run
from hlo_verify.evaluate.unknown import FollowsError, UnknownError
from hlo_verify.program.ir import Op
from hlo_verify.program.op_families import communicates


def _known(values: Sequence[Blocks | None]) -> list[Blocks]:
    known = [v for v in values if v is not None]
    if len(known) < len(values):
        raise FollowsError("what decides is unknown")
    return known


def _mask(a: Blocks, like: Blocks, run: Run) -> Blocks:
    """A truth value of each device, in the shape of a tensor."""
    values = a.values.reshape((-1,) + (1,) * len(like.shape))
    return Blocks((a.classes[0], *(run.maps.constant(n) for n in like.shape)), values)


def _merged(mask: Blocks, a: Blocks | None, b: Blocks | None, run: Run) -> Blocks | None:
    if a is None or b is None:
        return None
    return a if a is b else compact(chosen(_mask(mask, a, run), a, b, run), run.maps)


def loop(op: Op, state: list[Blocks | None], run: Run, place: Place) -> list[Blocks | None]:
    """while: turns until no device's condition holds. What is carried may be unknown, the condition not."""
    condition, body = op.regions
    for _ in range(run.limits.turns):
        (test,) = _known(run.run(run, condition, state, place))
        if not test.values.any():
            return state
        run.toil(0)
        after = run.run(run, body, state, place)
        if test.values.all():
            state = list(after)
            continue
        if communicates(body) or communicates(condition):
            raise UnknownError("devices that communicate in a loop that has ended for others")
        state = [_merged(test, new, old, run) for new, old in zip(after, state, strict=True)]
    raise UnknownError(f"a loop of more than {run.limits.turns} turns")


def branch(op: Op, args: list[Blocks | None], run: Run, place: Place) -> list[Blocks | None]:
    """case and if: the branches that any device takes; the last one for a number out of range."""
    (index,) = _known(args[:1])
    numbers = index.values.reshape(-1)
    if op.name == "if":
        numbers = np.where(numbers, 0, 1)
    last = len(op.regions) - 1
    numbers = np.where((numbers < 0) | (numbers > last), last, numbers).astype(np.int64)
    taken = np.unique(numbers)
    if len(taken) > 1 and any(communicates(op.regions[n]) for n in taken):
        raise UnknownError("devices that communicate in a branch that others do not take")
    results = list(run.run(run, op.regions[taken[0]], args[1:], place))
    for n in taken[1:]:
        other = run.run(run, op.regions[n], args[1:], place)
        mask = Blocks(index.classes, numbers == n)
        results = [_merged(mask, new, old, run) for new, old in zip(other, results, strict=True)]
    return results


RULES: dict[str, PartialRule] = {"while": loop, "case": branch, "if": branch}
