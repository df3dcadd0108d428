"""Every device of a group comes to its collectives, in one order: through loops and conditionals that devices may leave
or take differently.

Two devices of one group that may choose differently are compared: what they do together in the one branch and in the
other, or in one turn more. Such a difference is an error if devices surely wait for one another when they are followed
(`replay`): for every input where the choice hangs on the device's number alone, for some where it is a function of each
device's own data. Otherwise, where devices may as well always agree, it is a warning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice

from hlo_verify.diagnostics import Code, Collective, Ranks, Severity
from hlo_verify.hlo.meetings import Meetings
from hlo_verify.hlo.module import Instruction
from hlo_verify.hlo.shapes import Shape, Tuple, leaves
from hlo_verify.hlo.shardings import of_leaves, shards
from hlo_verify.linter.agreement import Labels, Tree, Value, numbered
from hlo_verify.linter.course import Courses, Step
from hlo_verify.linter.finding import Finding, at
from hlo_verify.linter.flow import Choice, Flow
from hlo_verify.linter.limits import LintLimits
from hlo_verify.linter.replay import Replay


@dataclass(frozen=True, slots=True)
class Doubt:
    """Devices `a` and `b` meet within a choice, and may choose differently: `a` the first of `ways`, `b` the second."""

    choice: Choice
    a: int
    b: int
    ways: tuple[int, int]
    code: Code
    collective: Instruction
    are_alike: bool = False
    """Whether both have the same collectives in one order, on other channels."""


def check(
    meetings: Meetings, shardings: Sequence[str] | None = None, among: Collection[int] | None = None
) -> Iterator[Finding]:
    """What is wrong with who enters the collectives of a module. `shardings` are those of its parameters, leaf by leaf,
    over the partitions. `among` are the devices that run it, where not all do: what the others do is not known here, so
    that nothing is an error then."""
    module, limits = meetings.module, LintLimits()
    courses = Courses(meetings)
    choosing = [one for one in module.instructions() if one.opcode in ("while", "conditional")]
    in_all = courses.within(module.entry)
    is_asked = any(courses.within(inner) for one in choosing for inner in one.entered)
    if meetings.devices < 2 or not in_all or not is_asked or courses.is_cyclic:
        return
    flow = Flow(module, meetings, limits)
    arguments = _arguments(flow, shardings)
    flow.run(arguments)
    run_by = range(meetings.devices) if among is None else among
    doubts = [doubt for choice in flow.choices.values() for doubt in _doubts(choice, courses, limits, run_by)]
    doubtful = frozenset(doubt.choice.instruction for doubt in doubts)
    for doubt in doubts:
        if not set(range(meetings.devices)) <= set(run_by):
            yield _finding(doubt, hangs=False)
            continue
        aim = doubt.choice.instruction
        ways = _ways(doubt, [one.choice for one in doubts if one is not doubt], courses, limits)
        hangs = bool(ways) and all(
            Replay(module, meetings, limits, doubtful=doubtful, aim=aim, decided=decided).hangs(arguments)
            for decided in ways
        )
        yield _finding(doubt, hangs=hangs)


def _arguments(flow: Flow, shardings: Sequence[str] | None) -> list[Tree]:
    """The parameters of the entry computation: where a sharding says it, each device's own shard."""
    given = iter(shardings or ())
    parameters = flow.module.entry.parameters
    found: list[Tree] = []
    for number in range(max(parameters, default=-1) + 1):
        parameter = parameters.get(number)
        if parameter is None:
            found.append(flow.agreements.unknown)
            continue
        said = parameter.attributes.get("sharding")
        texts = given if shardings is not None else iter(of_leaves(said or "", len(list(leaves(parameter.shape)))))
        found.append(_argument(flow, parameter.shape, texts))
    return found


def _argument(flow: Flow, shape: Shape, texts: Iterator[str]) -> Tree:
    if isinstance(shape, Tuple):
        return tuple(_argument(flow, part, texts) for part in shape.parts)
    replicas, partitions = flow.meetings.size
    held = shards(next(texts, ""), partitions)
    if held is None:
        return flow.agreements.unknown
    return Value(numbered((r, shard) for r in range(replicas) for shard in held), own=True)


def _doubts(choice: Choice, courses: Courses, limits: LintLimits, among: Collection[int]) -> Iterator[Doubt]:
    """The first pair of devices that a loop or conditional may part; none where what they do together is the same."""
    collectives = [one for inner in choice.instruction.entered for one in courses.within(inner)]
    tables = [taken for taken in choice.tables if taken is not None]
    is_known = choice.is_known
    labels: Labels = numbered(zip(*tables, strict=True)) if is_known else choice.labels
    for a, b, collective in islice(_pairs(choice, labels, collectives, courses, among), limits.pairs):
        if choice.instruction.opcode == "while":
            yield Doubt(choice, a, b, (1, 0), Collective.DEVICE_DEPENDENT_TRIP_COUNT, collective)
            return
        branches = choice.instruction.entered
        ways = {(t[a], t[b]) for t in tables if t[a] != t[b]} if is_known else combinations(range(len(branches)), 2)
        for way in sorted(ways):
            here, there = (courses.steps(branches[number], a, b) for number in way)
            if here != there:
                yield _of_branches(choice, (a, b), way, (here, there), collective, courses)
                return
            channels = [courses.channels(branches[number], a, b) for number in way]
            if channels[0] != channels[1]:
                yield Doubt(choice, a, b, way, Ranks.COLLECTIVE_ORDER, collective, are_alike=True)
                return


def _pairs(
    choice: Choice, labels: Labels, collectives: Sequence[Instruction], courses: Courses, among: Collection[int]
) -> Iterator[tuple[int, int, Instruction]]:
    """Devices of one group that have other labels, and where they meet: each pair once."""
    seen = set()
    for collective in collectives:
        for group in courses.groups(collective):
            first: dict[int, int] = {}
            for device in group:
                if choice.reached[device] and device in among:
                    first.setdefault(labels[device], device)
            for a, b in combinations(sorted(first.values()), 2):
                if (a, b) not in seen:
                    seen.add((a, b))
                    yield a, b, collective


def _of_branches(
    choice: Choice,
    devices: tuple[int, int],
    ways: tuple[int, int],
    steps: tuple[tuple[Step, ...], tuple[Step, ...]],
    collective: Instruction,
    courses: Courses,
) -> Doubt:
    """Whether one branch has other collectives than another, or the same in another order."""
    counts = [Counter(_flat(one)) for one in steps]
    if counts[0] == counts[1] and _flat(steps[0]) != _flat(steps[1]):
        return Doubt(choice, *devices, ways, Ranks.COLLECTIVE_ORDER, collective)
    if not counts[0] - counts[1]:  # say it of the branch that has more
        ways, devices = (ways[1], ways[0]), (devices[1], devices[0])
    shared = courses.within(choice.instruction.entered[ways[0]])
    met = [one for one in shared if any(set(devices) <= set(group) for group in courses.groups(one))]
    return Doubt(choice, *devices, ways, Collective.COLLECTIVE_NOT_ENTERED_BY_ALL, (met or [collective])[0])


def _flat(steps: Sequence[Step]) -> list[Step]:
    """The collectives of some steps, those within loops and branches once."""
    found: list[Step] = []
    for step in steps:
        assert isinstance(step, tuple)
        if step[0] == "meet":
            found.append(step)
        else:
            found += [each for inner in step[2] for each in _flat(inner)]
    return found


def _ways(
    doubt: Doubt, others: Sequence[Choice], courses: Courses, limits: LintLimits
) -> list[dict[Instruction, list[int]]]:
    """How devices may choose, of which each way has to hang: none where none is known to be possible.

    The data of `a` are one value, and those of all other labels another, for which the predicate is different. What the
    other choices, functions of each device's own data too, then are hangs on whether a device's data hold those of `a`:
    each of them may be anything in both cases, and all that is gone through."""
    choice, devices = doubt.choice, range(courses.meetings.devices)
    instruction = choice.instruction
    decided: dict[Instruction, list[int]] = {}
    mine = [False] * len(devices)
    labels = _own(doubt)
    if labels is not None:
        if not _differ(instruction, doubt, courses):
            return []
        mine = [label == labels[doubt.a] for label in labels]
        decided[instruction] = [doubt.ways[0] if one else doubt.ways[1] for one in mine]
    ways = [decided]
    for other in others:
        if other.is_known or not other.own or other.instruction.opcode == "while":
            continue  # followed, or what makes the replay inexact
        holding = {other.own[0][device] for device in devices if mine[device]}
        bits = [label in holding for label in other.own[0]]
        branches = range(len(other.instruction.entered))
        pairs = [(yes, no) for yes in (branches if any(bits) else [0]) for no in (branches if not all(bits) else [0])]
        ways = [way | {other.instruction: [yes if bit else no for bit in bits]} for way in ways for yes, no in pairs]
        if len(ways) > limits.replays:
            return []
    return ways


def _own(doubt: Doubt) -> Labels | None:
    """Labels of the data by which the devices of a doubt choose, each by its own; None where that is not known."""
    return next((one for one in doubt.choice.own if one[doubt.a] != one[doubt.b]), None)


def _differ(instruction: Instruction, doubt: Doubt, courses: Courses) -> bool:
    """Whether any two branches differ in what the devices of a doubt do together: of a number, more than two of which
    name branches, it is not known which it can be."""
    steps = [courses.steps(branch, doubt.a, doubt.b) for branch in instruction.entered]
    return instruction.opcode == "while" or len(steps) == 2 or len(set(steps)) == len(steps)


def _finding(doubt: Doubt, *, hangs: bool) -> Finding:
    """What is said of a doubt."""
    choice, a, b = doubt.choice.instruction, doubt.a, doubt.b
    is_sure = hangs and _own(doubt) is None
    why = "" if is_sure else ", each by its own data" if hangs else ": nothing says that they agree"
    if doubt.code is Collective.DEVICE_DEPENDENT_TRIP_COUNT:
        message = f"devices {a} and {b} meet in {doubt.collective} of its turns, and {'' if is_sure else 'may '}take "
        found = at(choice, doubt.code, f"{message}another number of them{why}", doubt.collective)
    elif doubt.code is Ranks.COLLECTIVE_ORDER:
        message = f"devices {a} and {b} {'' if is_sure else 'may '}take branches {doubt.ways[0]} and {doubt.ways[1]}"
        order = "on other channels, by which TPUs match them" if doubt.are_alike else "in another order"
        message += f"{why}; they have the same collectives {order}, as {doubt.collective}"
        found = at(choice, doubt.code, message, doubt.collective)
    else:
        come, take = ("comes", "takes") if is_sure else ("may come", "may take")
        message = f"device {a} {come} to it in branch {doubt.ways[0]} of {choice}, and device {b}, which it meets"
        message += f" there, {take} branch {doubt.ways[1]}{why}"
        found = at(doubt.collective, doubt.code, message, choice)
    return found if hangs else replace(found, severity=Severity.WARNING)
