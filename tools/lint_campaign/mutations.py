"""One change of a scheduled module or of its buffer assignment.

Each gives a module, allocations and uses that stand for themselves: what a compiler with such a defect would have
written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random

from hlo_verify.hlo.buffers import Allocation, Lifetime, Placed
from hlo_verify.hlo.module import Computation, HloModule, Instruction, Operand


@dataclass(eq=False)
class Scheduled:
    """A scheduled module with its buffers, and who makes and reads each of its values."""

    module: HloModule
    allocations: list[Allocation]
    lifetimes: dict[int, Lifetime]

    @property
    def shared(self) -> list[Allocation]:
        return [one for one in self.allocations if one.is_shared and len(one.values) > 1]


Mutation = Callable[[Scheduled, Random], str]
"""Changes what it is given, and says what it did; nothing where it found nothing to change."""


def move(given: Scheduled, random: Random) -> str:
    """An instruction runs earlier or later, as far as its operands and its users let it."""
    instruction = random.choice(_scheduled(given.module))
    computation = instruction.computation
    low = max((other.number for other in _before(instruction)), default=-1) + 1
    high = min((other.number for other in _behind(instruction)), default=len(computation.instructions)) - 1
    places = [place for place in range(low, high + 1) if place != instruction.number]
    if not places:
        return ""
    place = random.choice(places)
    said = f"{instruction} from {instruction.number} to {place}"
    _put_at(instruction, place)
    return said


def early(given: Scheduled, random: Random) -> str:
    """An instruction runs before an operand or a control predecessor."""
    instruction = random.choice(_scheduled(given.module))
    before = _before(instruction)
    if not before:
        return ""
    other = random.choice(before)
    place = random.randrange(other.number + 1)
    _put_at(instruction, place)
    return f"{instruction} to {place}, before {other}"


def undone(given: Scheduled, random: Random) -> str:
    """Nobody waits for what was started: who read the result behind the done reads it in flight."""
    pair = _transfer(given.module, random)
    if pair is None:
        return ""
    start, done = pair
    computation = done.computation
    part = (0,) if start.opcode in ("copy-start", "recv") else (1,)
    for user in computation.users.get(done.name, ()):
        _reads(user, {done.name: Operand(start.name, part)})
    computation.instructions.remove(done)
    _changed(computation)
    return f"without {done}"


def redone(given: Scheduled, random: Random) -> str:
    """A done waits for another start of its kind."""
    pair = _transfer(given.module, random)
    if pair is None:
        return ""
    start, done = pair
    shape = str(start.shape)
    alike = [
        one
        for one in done.computation.instructions[: done.number]
        if one is not start and one.opcode == start.opcode and str(one.shape) == shape
    ]
    if not alike:
        return ""
    other = random.choice(alike)
    _reads(done, {start.name: Operand(other.name)})
    _changed(done.computation)
    return f"{done} waits for {other}"


def swap(given: Scheduled, random: Random) -> str:
    """Two instructions next to each other change places."""
    instruction = random.choice(_scheduled(given.module))
    computation = instruction.computation
    following = computation.instructions[instruction.number + 1 :][:1]
    if not following or following[0].opcode == "parameter" or instruction in _before(following[0]):
        return ""
    other = following[0]
    at = instruction.number
    computation.instructions[at : at + 2] = [other, instruction]
    other.number, instruction.number = at, at + 1
    return f"{instruction} and {other}"


def shift(given: Scheduled, random: Random) -> str:
    """A value begins at another offset: that of another value, or some bytes off."""
    if not given.shared:
        return ""
    allocation = random.choice(given.shared)
    value = random.choice(allocation.values)
    step = random.choice((64, 512, max(1, value.size // 2), value.size))
    offsets = {other.offset for other in allocation.values} | {value.offset + step, max(0, value.offset - step)}
    fits = sorted(offset for offset in offsets - {value.offset} if offset + value.size <= allocation.size)
    if not fits:
        return ""
    return _put(given, value, allocation, allocation, random.choice(fits))


def reassign(given: Scheduled, random: Random) -> str:
    """A value lies in another allocation of its memory."""
    if not given.shared:
        return ""
    source = random.choice(given.shared)
    value = random.choice(source.values)
    others = [
        one
        for one in given.shared
        if one is not source and one.size >= value.size and one.values[0].space == value.space
    ]
    if not others:
        return ""
    target = random.choice(others)
    return _put(given, value, source, target, random.choice([v.offset for v in target.values]))


def reread(given: Scheduled, random: Random) -> str:
    """An instruction reads another value of the shape of its operand, made before it."""
    reader = random.choice(_scheduled(given.module))
    if not reader.operands or reader.opcode in ("while", "call", "conditional", "tuple", "get-tuple-element"):
        return ""
    number = random.randrange(len(reader.operands))
    operand = reader.operands[number]
    held = {position: n for n, lifetime in given.lifetimes.items() for position in lifetime.positions}
    source = reader.computation.by_name.get(operand.name)
    if source is None or operand.path or not _is_array(source) or reader.opcode.endswith(("-done", "-update")):
        return ""
    others = [
        one
        for one in reader.computation.instructions[: reader.number]
        if one is not source and str(one.shape) == str(source.shape) and _is_array(one) and (one.name, ()) in held
    ]
    own = {n for n, one in _values(given).items() if one.name == reader.name}
    if (source.name, ()) not in held or not others or held.get((reader.name, ())) not in own:
        return ""  # what hands a value on as it is makes none
    other = random.choice(others)
    operands = list(reader.operands)
    operands[number] = Operand(other.name)
    reader.__dict__["operands"] = tuple(operands)
    _changed(reader.computation)
    _drop_use(given.lifetimes, held[source.name, ()], reader.name, number)
    lifetime = given.lifetimes[held[other.name, ()]]
    uses = (*lifetime.uses, (reader.name, number, ()))
    given.lifetimes[held[other.name, ()]] = replace(lifetime, uses=uses)
    return f"{reader} reads {other} for {source}"


OF_BYTES: Mapping[str, Mutation] = {one.__name__: one for one in (move, swap, shift, reassign, reread)}
"""What these do to the bytes of values the machine finds out."""

OF_ORDER: Mapping[str, Mutation] = {one.__name__: one for one in (early, undone, redone)}
"""These are always wrong."""


def _transfer(module: HloModule, random: Random) -> tuple[Instruction, Instruction] | None:
    """A start and its done."""
    pairs = [
        (source, one)
        for one in _scheduled(module)
        if one.opcode.endswith("-done")
        for source in one.sources
        if source.opcode in ("send", "recv") or source.opcode.endswith("-start")
    ]
    return random.choice(pairs) if pairs else None


def _reads(reader: Instruction, instead: Mapping[str, Operand]) -> None:
    """Let an instruction read other values."""
    given = (
        replace(instead[one.name], path=(*instead[one.name].path, *one.path)) if one.name in instead else one
        for one in reader.operands
    )
    reader.__dict__["operands"] = tuple(given)


def _put_at(instruction: Instruction, place: int) -> None:
    computation = instruction.computation
    computation.instructions.insert(place, computation.instructions.pop(instruction.number))
    _changed(computation)


def _changed(computation: Computation) -> None:
    """Number the instructions of a computation anew, and forget who reads what."""
    for number, one in enumerate(computation.instructions):
        one.number = number
    for name in ("users", "by_name"):
        computation.__dict__.pop(name, None)


def _scheduled(module: HloModule) -> list[Instruction]:
    """The instructions that have a time of their own: not those of fusions and reducers."""
    found = [one for one in module.in_turn() if one.opcode != "parameter"]
    return [one for one in found if not one.computation.name.startswith("async")] or found


def _before(instruction: Instruction) -> list[Instruction]:
    """What an instruction may not run before."""
    by_name = instruction.computation.by_name
    control = [by_name[name] for name in instruction.control_predecessors if name in by_name]
    return [*instruction.sources, *control]


def _behind(instruction: Instruction) -> list[Instruction]:
    """What may not run before an instruction, the end of its computation included."""
    computation = instruction.computation
    users = computation.users.get(instruction.name, [])
    return [*users, *(one for one in computation.instructions if instruction.name in one.control_predecessors)]


def _put(given: Scheduled, value: Placed, source: Allocation, target: Allocation, offset: int) -> str:
    source.values.remove(value)
    target.values.append(replace(value, offset=offset))
    return f"{value} from {value.offset} of {source.number} to {offset} of {target.number}"


def _values(given: Scheduled) -> dict[int, Placed]:
    return {value.number: value for one in given.allocations for value in one.values}


def _is_array(instruction: Instruction) -> bool:
    return instruction.shape_text[:1] != "("


def _drop_use(lifetimes: dict[int, Lifetime], value: int, reader: str, operand: int) -> None:
    lifetime = lifetimes[value]
    uses = tuple(use for use in lifetime.uses if use[:2] != (reader, operand))
    lifetimes[value] = replace(lifetime, uses=uses)
