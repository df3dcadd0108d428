"""What a GPU is told to launch, against itself and against the module: each asynchronous thunk is waited for once,
behind it; and what the module computes from something is launched behind it.

Starts, dones, collectives, loops and conditionals of a computation are found among its thunks by their kind, in order,
where there are as many of the kind; kernels by the name of their instruction, where it is there once (instructions
with the same code share a kernel, which has the name of one of them). What cannot be told is left alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hlo_verify.diagnostics import Code, Schedule
from hlo_verify.hlo.groups import COLLECTIVES, kind
from hlo_verify.hlo.module import Computation, HloModule, Instruction
from hlo_verify.hlo.thunks import Thunk
from hlo_verify.linter import finding
from hlo_verify.linter.course import entered
from hlo_verify.linter.finding import Finding
from hlo_verify.linter.transfers import flight, is_done, is_start

BY_KIND = {
    "AllReduce": "all-reduce",
    "CollectiveKernel": "all-reduce",
    "AllGather": "all-gather",
    "ReduceScatter": "reduce-scatter",
    "AllToAll": "all-to-all",
    "RaggedAllToAll": "ragged-all-to-all",
    "CollectivePermute": "collective-permute",
    "Send": "send",
    "Recv": "recv",
    "While": "while",
    "Conditional": "conditional",
}
"""The operations that thunks of a kind are launched for. Others are launched for operations of many kinds."""

START = "start"


def check(module: HloModule, thunks: Sequence[Thunk]) -> tuple[list[Finding], dict[str, int]]:
    """What is wrong with a sequence of thunks, and what was looked at: `thunks`, and those `thunks placed`, of which it
    is known for which instruction they are launched."""
    launched = [one for top in thunks for one in top.within()]
    found = _Found(_known(launched))
    found.go(module.entry, thunks)
    return found.findings, {"thunks": len(launched), "thunks placed": found.placed}


@dataclass(frozen=True, slots=True)
class _Known:
    """Of a whole file: how often each kernel is launched, and the numbers that are started and waited for."""

    kernels: Mapping[str, int]
    starts: frozenset[int | None]
    dones: frozenset[int | None]


def _known(launched: Sequence[Thunk]) -> _Known:
    starts, dones = (
        frozenset(one.async_id for one in launched if one.kind == f"Async{end}") for end in ("Start", "Done")
    )
    return _Known(Counter(one.kernel for one in launched), starts, dones)


@dataclass(eq=False)
class _Found:
    known: _Known
    placed: int = 0
    findings: list[Finding] = field(default_factory=list)

    def go(self, computation: Computation, sequence: Sequence[Thunk]) -> None:
        """Look at what is launched for a computation, and for those that it enters."""
        launched = list(_flat(sequence))
        at = _placed(computation, launched, self.known.kernels)
        self.placed += len(at)
        by_thunk = {launched[place]: instruction for instruction, place in at.items()}
        self.findings += _waits(launched, by_thunk, self.known)
        self.findings += _dependencies(computation, launched, at)
        for thunk in launched:
            instruction = by_thunk.get(thunk)
            inner = _inner(instruction, thunk) if instruction is not None else []
            for called, below in inner:
                self.go(called, below)
            if not inner:
                for _, below in thunk.inner:
                    self.findings += _waits(list(_flat(below)), {}, self.known)


def _flat(sequence: Sequence[Thunk]) -> Iterator[Thunk]:
    """The thunks of a sequence, those of command buffers in their place."""
    for thunk in sequence:
        if thunk.kind == "CommandBuffer":
            for _, inner in thunk.inner:
                yield from _flat(inner)
        else:
            yield thunk


def _waits(launched: Sequence[Thunk], by_thunk: Mapping[Thunk, Instruction], known: _Known) -> Iterator[Finding]:
    """Each start has one done of its number, behind it; and no thunk runs behind a later one. What is started in one
    sequence may be waited for in another, around a loop: that is not looked at."""
    flying: dict[int, Thunk] = {}
    done: dict[int, Thunk] = {}
    numbered = {thunk.number: place for place, thunk in enumerate(launched) if thunk.number}
    for place, thunk in enumerate(launched):
        if thunk.behind is not None and numbered.get(thunk.behind, -1) > place:
            said = f"is launched before {thunk.behind:03}, behind which it has to run"
            yield _of(thunk, by_thunk, Schedule.DEPENDENCY_VIOLATION, said)
        number = thunk.async_id
        if number is not None and thunk.kind == "AsyncStart":
            if number in flying:
                said = f"is started as number {number}, as which {flying[number]} still runs"
                yield _of(thunk, by_thunk, Schedule.ORPHAN_START, said)
            elif number not in known.dones:
                yield _of(thunk, by_thunk, Schedule.ORPHAN_START, f"runs as number {number}, which nothing waits for")
            flying[number] = thunk
        elif number is not None and thunk.kind == "AsyncDone":
            if flying.pop(number, None) is None:
                yield from _astray(thunk, number, launched[place:], done.get(number), by_thunk, known)
            done[number] = thunk


def _astray(
    thunk: Thunk,
    number: int,
    rest: Sequence[Thunk],
    before: Thunk | None,
    by_thunk: Mapping[Thunk, Instruction],
    known: _Known,
) -> Iterator[Finding]:
    """A done for which nothing runs when it is come to."""
    later = next((one for one in rest if one.kind == "AsyncStart" and one.async_id == number), None)
    if later is not None:
        said = f"waits for number {number}, which {later} starts behind it"
        yield _of(thunk, by_thunk, Schedule.DEPENDENCY_VIOLATION, said)
    elif before is not None:
        yield _of(thunk, by_thunk, Schedule.DONE_TWICE, f"waits for number {number}, as {before} has")
    elif number not in known.starts:
        yield _of(thunk, by_thunk, Schedule.DONE_KIND_MISMATCH, f"waits for number {number}, which nothing starts")


def _of(thunk: Thunk, by_thunk: Mapping[Thunk, Instruction], code: Code, message: str) -> Finding:
    said = f"thunk {thunk} {message}"
    instruction = by_thunk.get(thunk)
    return Finding(code, said, f"thunk {thunk}") if instruction is None else finding.at(instruction, code, said)


def _placed(computation: Computation, launched: Sequence[Thunk], kernels: Mapping[str, int]) -> dict[Instruction, int]:
    """By instruction, the place of what is launched for it; of a start and its done, of those."""
    found: dict[Instruction, int] = {}
    ours: dict[tuple[str, ...], list[Instruction]] = {}
    theirs: dict[tuple[str, ...], list[int]] = {}
    names: dict[str, list[Instruction]] = {}
    for instruction in computation.instructions:
        what = _what(instruction)
        if what is not None:
            ours.setdefault(what, []).append(instruction)
        names.setdefault(re.sub(r"[^\w]", "_", instruction.name), []).append(instruction)
    for place, thunk in enumerate(launched):
        launches = _launches(thunk)
        if launches is not None:
            theirs.setdefault(launches, []).append(place)
        alike = names.get(thunk.kernel, ()) if kernels.get(thunk.kernel) == 1 else ()
        if len(alike) == 1 and _what(alike[0]) is None:
            found[alike[0]] = place
    dones: dict[int | None, int] = {}
    for place, thunk in enumerate(launched):
        if thunk.kind == "AsyncDone":
            dones.setdefault(thunk.async_id, place)
    for key, instructions in ours.items():
        places = theirs.get(key, [])
        if len(places) != len(instructions):
            continue
        for instruction, place in zip(instructions, places, strict=True):
            found[instruction] = place
            done = dones.get(launched[place].async_id) if key[0] == START else None
            waiting = flight(instruction).dones if done is not None else ()
            if done is not None and len(waiting) == 1:
                found[waiting[0]] = done
    return found


def _what(instruction: Instruction) -> tuple[str, ...] | None:
    """What an instruction is launched as; None of what may be launched in several ways, or not at all."""
    within = sorted({kind(one) for one in _within(instruction)})
    if is_start(instruction):
        return (START, *within)
    if is_done(instruction):
        return None
    if instruction.opcode in ("while", "conditional"):
        return (instruction.opcode,)
    return tuple(within) or None


def _within(instruction: Instruction) -> Iterator[Instruction]:
    """The collectives that an instruction is, or runs."""
    if instruction.opcode in COLLECTIVES or instruction.opcode in ("send", "recv"):
        yield instruction
    elif instruction.opcode not in ("while", "conditional"):
        for computation in entered(instruction):
            for inner in computation.instructions:
                yield from _within(inner)


def _launches(thunk: Thunk) -> tuple[str, ...] | None:
    within = sorted({BY_KIND[one.kind] for one in thunk.within() if one.kind in BY_KIND})
    if thunk.kind == "AsyncStart":
        return (START, *within)
    return (BY_KIND[thunk.kind],) if thunk.kind in BY_KIND else None


def _dependencies(
    computation: Computation, launched: Sequence[Thunk], at: Mapping[Instruction, int]
) -> Iterator[Finding]:
    """What is launched before something that its instruction is computed from."""
    behind: dict[Instruction, Instruction | None] = {}
    for instruction in computation.instructions:
        last: Instruction | None = None
        for source in instruction.sources:
            other = source if source in at else behind.get(source)
            if other is not None and (last is None or at[other] > at[last]):
                last = other
        behind[instruction] = last
        if last is None or instruction not in at or (is_done(instruction) and is_start(last)):
            continue  # a start and its done are looked at by their number
        if at[instruction] < at[last]:
            code = Schedule.USE_BEFORE_DONE if is_done(last) else Schedule.DEPENDENCY_VIOLATION
            said = f"thunk {launched[at[instruction]]} is launched before thunk {launched[at[last]]} of {last}"
            yield finding.at(instruction, code, f"{said}, from which it is computed", last)


def _inner(instruction: Instruction, thunk: Thunk) -> list[tuple[Computation, Sequence[Thunk]]]:
    """The computations that a loop or a conditional enters, each with what is launched for it."""
    labels = [label for label, _ in thunk.inner]
    attributes = {"condition": "condition", "body": "body"}
    attributes |= {"true_branch": "true_computation", "false_branch": "false_computation"}
    computations = instruction.computation.module.computations
    found: list[tuple[Computation, Sequence[Thunk]]] = []
    for label, sequence in thunk.inner:
        name = instruction.attributes.get(attributes.get(label, ""), "").lstrip("%")
        if name in computations:
            found.append((computations[name], sequence))
    return found if len(found) == len(labels) else []
