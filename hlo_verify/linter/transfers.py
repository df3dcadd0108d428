"""Asynchronous operations: what is started is waited for, once, by its own done, and read behind it; and nothing runs
before what it depends on.

In a scheduled module the order of instructions is the order in which they run. A start gives a tuple: of a copy the
copied value, the operand and a context; of any other the operands, the result and a context. Contexts of send and recv
may travel through tuples and around loops, and are followed no further.

Source: XLA's hlo_verifier.cc, docs/async_ops.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hlo_verify.diagnostics import Schedule
from hlo_verify.hlo.module import Computation, HloModule, Instruction, parts
from hlo_verify.hlo.shapes import Path, Shape, Tuple, leaves, same
from hlo_verify.linter.finding import Finding, at

PASSED_ON = frozenset("tuple while conditional call optimization-barrier opt-barrier domain".split())
"""Operations that hand a start's value on as it is."""

TAKEN_FROM = frozenset("parameter get-tuple-element tuple while conditional call optimization-barrier".split())
"""Where a done may find the context of a start that is elsewhere."""

KINDS = {
    "async-start": "async-done",
    "send": "send-done",
    "recv": "recv-done",
    **{
        f"{name}-start": f"{name}-done"
        for name in ("all-gather", "all-reduce", "collective-permute", "copy", "slice", "fusion", "custom-call")
    },
}
"""The done of each start. An async-start may be written as what it starts: `custom-call-start`."""


def is_start(instruction: Instruction) -> bool:
    return instruction.opcode in KINDS or instruction.opcode.endswith("-start")


def is_done(instruction: Instruction) -> bool:
    return instruction.opcode.endswith("-done")


def is_update(instruction: Instruction) -> bool:
    return instruction.opcode.endswith("-update")


def done_of(start: Instruction) -> str:
    """The opcode of a start's done."""
    return KINDS.get(start.opcode, f"{start.opcode.removesuffix('-start')}-done")


def check(module: HloModule) -> Iterator[Finding]:
    """What is wrong with the order of a module, computation by computation."""
    for computation in module.computations.values():
        if module.is_scheduled:
            yield from _order(computation)
        yield from _transfers(computation)


def _order(computation: Computation) -> Iterator[Finding]:
    for instruction in computation.instructions:
        by_name = computation.by_name
        control = [by_name[name] for name in instruction.control_predecessors if name in by_name]
        for before, what in ((instruction.sources, "its operand"), (control, "its control predecessor")):
            for other in before:
                if other.number >= instruction.number:
                    yield at(instruction, Schedule.DEPENDENCY_VIOLATION, f"runs before {what} {other}", other)


@dataclass(eq=False)
class Flight:
    """A start, and who uses it: dones (behind its updates too), readers of its result; whether it goes on elsewhere.
    Where there is no done, handing its result on is reading it."""

    start: Instruction
    dones: list[Instruction] = field(default_factory=list)
    updates: list[Instruction] = field(default_factory=list)
    readers: list[Instruction] = field(default_factory=list)
    handing_on: list[Instruction] = field(default_factory=list)
    escapes: bool = False


def flight(start: Instruction) -> Flight:
    """What becomes of a start in its computation."""
    found = Flight(start, escapes=_is_handed_out(start))
    pending: list[tuple[Instruction, Path]] = [(start, ())]
    while pending:
        value, path = pending.pop()
        for user in value.computation.users.get(value.name, ()):
            for operand in user.operands:
                if operand.name == value.name:
                    _use(found, value, user, (*path, *operand.path), pending)
    found.dones = list(dict.fromkeys(found.dones))
    found.escapes |= bool(found.dones and found.handing_on)
    found.readers += [] if found.dones else found.handing_on
    found.readers = list(dict.fromkeys(found.readers))
    return found


def _is_handed_out(instruction: Instruction) -> bool:
    """Whether it goes on to whoever called its computation; behind the entry nobody waits any more."""
    return instruction is instruction.computation.root and not instruction.computation.is_entry


def _use(
    found: Flight, value: Instruction, user: Instruction, path: Path, pending: list[tuple[Instruction, Path]]
) -> None:
    if not path and is_done(user):
        found.dones.append(user)
    elif not path and is_update(user):
        pending.append((user, ()))
        found.updates.append(user)
        found.escapes |= _is_handed_out(user)
    elif user.opcode in PASSED_ON and path and found.start.opcode != "recv" and _is_result(found.start, path):
        found.handing_on.append(user)
    elif user.opcode in PASSED_ON:
        found.escapes = True
    elif user.opcode == "get-tuple-element":
        deeper = (*path, int(user.attributes.get("index", "0")))
        if _is_result(found.start, deeper):
            found.readers.append(user)
    elif not path or _is_result(found.start, path):
        found.readers.append(user)


def _is_result(start: Instruction, path: Path) -> bool:
    """Whether a part of a start's tuple is what it is still writing."""
    if start.opcode in ("send", "recv"):
        return start.opcode == "recv" and path[:1] == (0,)
    return path[:1] == ((0,) if start.opcode in ("copy-start", "slice-start") else (1,))


def _transfers(computation: Computation) -> Iterator[Finding]:
    flights = [flight(instruction) for instruction in computation.instructions if is_start(instruction)]
    waiting = [one for one in flights if not one.dones and not one.readers and not one.escapes]
    for one in flights:
        yield from _shapes(one)
        if len(one.dones) > 1:
            yield from _several_dones(one, waiting)
        elif one.dones or one.escapes:
            yield from _read_early(one)
        elif one.readers:
            reader = one.readers[0]
            yield at(
                one.start,
                Schedule.MISSING_DONE,
                f"there is no {done_of(one.start)}, and {reader} reads its result",
                *one.readers,
            )
    for one in waiting:
        yield at(one.start, Schedule.ORPHAN_START, f"no {done_of(one.start)} waits for it")
    yield from _dones(computation)


def _read_early(one: Flight) -> Iterator[Finding]:
    is_scheduled = one.start.computation.module.is_scheduled
    for reader in one.readers:
        done = str(one.dones[0]) if one.dones else f"its {done_of(one.start)}"
        for user in _real_readers(reader):
            if not one.dones or not is_scheduled or user.number < one.dones[0].number:
                said = f"reads the result of {one.start} before {done}"
                yield at(user, Schedule.USE_BEFORE_DONE, said, one.start, reader)


def _real_readers(reader: Instruction) -> list[Instruction]:
    """Who reads a value: of one that is only taken out of a tuple, those that read it then."""
    if reader.opcode != "get-tuple-element":
        return [reader]
    return reader.computation.users.get(reader.name, []) or [reader]


def _several_dones(one: Flight, waiting: list[Flight]) -> Iterator[Finding]:
    """One start with two dones: the second is another start's, where one of its kind has none."""
    last = one.dones[-1]
    alike = [other for other in waiting if other.start.opcode == one.start.opcode and done_of(one.start) == last.opcode]
    for other in alike:
        astray = [done for done in one.dones if _suffix(done) == _suffix(other.start)] or one.dones[-1:]
        if not same(other.start.shape, one.start.shape):
            continue
        waiting.remove(other)
        yield at(
            astray[0],
            Schedule.DONE_OF_ANOTHER_START,
            f"waits for {one.start}, which has a done of its own; nothing waits for {other.start}",
            one.start,
            other.start,
            *(done for done in one.dones if done is not astray[0]),
        )
        return
    names = " and ".join(map(str, one.dones))
    yield at(last, Schedule.DONE_TWICE, f"{one.start} is waited for twice, by {names}", one.start, *one.dones[:-1])


def _suffix(instruction: Instruction) -> str:
    """What is left of a name without its opcode: `.12` of `copy-done.12`."""
    _, dot, number = instruction.name.partition(".")
    return dot + number


def _dones(computation: Computation) -> Iterator[Finding]:
    """Each done of the kind of its start."""
    for done in filter(is_done, computation.instructions):
        for source in done.sources:
            start = _started(source)
            if start is None or (start.opcode in TAKEN_FROM and done.opcode in ("send-done", "recv-done")):
                continue
            if not is_start(start):
                yield at(done, Schedule.DONE_KIND_MISMATCH, f"waits for {start}, which starts nothing", start)
            elif done_of(start) != done.opcode and not _is_wrapped(start, done):
                yield at(done, Schedule.DONE_KIND_MISMATCH, f"a {done.opcode} of a {start.opcode}", start)


def _started(value: Instruction) -> Instruction | None:
    """The start behind updates."""
    seen = 0
    while is_update(value) and seen < len(value.computation.instructions):
        source = next(value.sources, None)
        if source is None:
            return None
        value, seen = source, seen + 1
    return value


def _is_wrapped(start: Instruction, done: Instruction) -> bool:
    """Whether both are written as parts of an asynchronous call, one by the name of what is called."""
    return bool(start.called) and (start.opcode == "async-start" or done.opcode == "async-done")


def _shapes(one: Flight) -> Iterator[Finding]:
    """A start's tuple against its operands and its computation, and its done against both."""
    start = one.start
    pieces = parts(start.shape)
    if start.opcode in ("copy-start", "slice-start", "send", "recv", "all-reduce-start"):
        return
    if start.opcode == "async-start" and (len(pieces) < 2 or not isinstance(pieces[0], Tuple)):
        yield at(start, Schedule.ASYNC_ILLEGAL, f"its shape {start.shape} is not ((operands), result, …)")
        return
    if len(pieces) < 2 or not start.operands:  # what has no operands carries its shapes in its computation alone
        return
    if start.opcode == "async-start":
        yield from _called_shapes(start)
    for done in one.dones:
        if done.shape_text and not same(done.shape, pieces[1]):
            yield at(
                done,
                Schedule.ASYNC_ILLEGAL,
                f"gives {done.shape}, and {start} started what gives {pieces[1]}",
                start,
            )


def _laid_out_alike(a: Shape, b: Shape) -> bool:
    """Whether two shapes of one structure have the same order of dimensions, wherever both name one."""
    pairs = zip((leaf for _, leaf in leaves(a)), (leaf for _, leaf in leaves(b)), strict=True)
    return all(None in (x.order, y.order) or x.order == y.order for x, y in pairs)


def _called_shapes(start: Instruction) -> Iterator[Finding]:
    operands, result = parts(start.shape)[:2]
    given = Tuple(start.given_shapes)
    if len(given.parts) == len(start.operands) and not same(operands, given):
        yield at(start, Schedule.ASYNC_ILLEGAL, f"its operands are {given}, and its shape says {operands}")
    for called in start.applied:
        if called.root is None:
            continue
        taken = Tuple(tuple(p.shape for _, p in sorted(called.parameters.items())))
        if not same(operands, taken) or not _laid_out_alike(operands, taken):
            yield at(start, Schedule.ASYNC_ILLEGAL, f"{called.name} takes {taken}, and its shape says {operands}")
        root = called.root.shape
        if not same(result, root):
            yield at(start, Schedule.ASYNC_ILLEGAL, f"{called.name} gives {root}, and its shape says {result}")
