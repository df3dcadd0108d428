"""What HLO text says: computations of instructions, in the order in which they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.hlo.shapes import Array, Path, Shape, Tuple, at, parse_shape, split

ENTERED = {
    "while": ("condition", "body"),
    "call": ("to_apply",),
    "conditional": ("branch_computations", "true_computation", "false_computation"),
}
"""Operations that a device goes into, and the attributes that name where."""


@dataclass(frozen=True, slots=True)
class Operand:
    """What an instruction reads: another one's value, or a part of it (`%while.11#2`)."""

    name: str
    path: Path = ()


@dataclass(eq=False)
class Instruction:
    """One instruction: `given` is what stands between its parentheses, `rest` its attributes as text, `line` where in
    the file, `number` where in its computation."""

    name: str
    shape_text: str
    opcode: str
    given: str
    rest: str
    line: int
    number: int
    computation: Computation = field(repr=False)

    @cached_property
    def shape(self) -> Shape:
        """What it gives; where the text leaves that out, as people do, what follows from its operands.

        Raises InputError where the text says something that is no shape: the module is damaged.
        """
        if not self.shape_text:
            return _inferred(self)
        try:
            return parse_shape(self.shape_text)
        except ValueError as error:
            where = f"line {self.line}: {self.name} has no shape that can be read"
            raise InputError(f"{where}; fetch or make the module again", Input.DAMAGED) from error

    @cached_property
    def attributes(self) -> dict[str, str]:
        """By name, as text."""
        found: dict[str, str] = {}
        for piece in split(self.rest):
            key, _, value = map(str.strip, piece.partition("="))
            if key == "device_ids" and "replica_groups" in found:  # of that mesh, though a comma stands between them
                found["replica_groups"] += f", {piece.strip()}"
            else:
                found[key] = value
        return found

    @cached_property
    def operands(self) -> tuple[Operand, ...]:
        if self.opcode in ("parameter", "constant", "iota"):
            return ()
        return tuple(map(_operand, split(_without_comments(self.given))))

    @cached_property
    def given_shapes(self) -> tuple[Shape, ...]:
        """The shapes of its operands, those that the computation has."""
        by_name = self.computation.by_name
        shapes = (at(by_name[operand.name].shape, operand.path) for operand in self.operands if operand.name in by_name)
        return tuple(shape for shape in shapes if shape is not None)

    @property
    def sources(self) -> Iterator[Instruction]:
        """The instructions whose values it reads, as far as the computation has them."""
        by_name = self.computation.by_name
        return (by_name[operand.name] for operand in self.operands if operand.name in by_name)

    @cached_property
    def called(self) -> tuple[str, ...]:
        """The computations that it names: bodies, branches, what it fuses, reducers."""
        if "%" not in self.rest and "=" not in self.rest:
            return ()
        plain = _STRING.sub("", self.rest)
        names = (
            name.strip().lstrip("%") for found in _CALLING.finditer(plain) for name in found[1].strip("{}").split(",")
        )
        return tuple(filter(None, names))

    @cached_property
    def control_predecessors(self) -> tuple[str, ...]:
        return self._named("control-predecessors")

    @cached_property
    def entered(self) -> tuple[Computation, ...]:
        """The computations that a device goes through as it comes to the instruction: a loop's condition and body, the
        branches of a conditional, what is called."""
        computations = self.computation.module.computations
        names = (name for key in ENTERED.get(self.opcode, ()) for name in self._named(key))
        return tuple(computations[name] for name in names if name in computations)

    @cached_property
    def applied(self) -> tuple[Computation, ...]:
        """The first computation that it names, if the module has that: what a fusion, a reduction or a start runs."""
        computations = self.computation.module.computations
        return tuple(computations[name] for name in self.called[:1] if name in computations)

    def _named(self, key: str) -> tuple[str, ...]:
        """The names that an attribute lists."""
        pieces = self.attributes.get(key, "").strip("{}").split(",")
        return tuple(name.strip().lstrip("%") for name in pieces if name.strip())

    @property
    def channel(self) -> int | None:
        text = self.attributes.get("channel_id")
        return int(text) if text else None

    @property
    def thread(self) -> str:
        """The thread of execution that an asynchronous operation names; nothing for the main one."""
        name = self.attributes.get("async_execution_thread", "").strip('"')
        return "" if name == "main" else name

    @cached_property
    def op_name(self) -> str:
        """What JAX calls it: `jit(step)/jvp()/dot_general`. What stands in a computation that is called has a name from
        there on, until XLA inlines the call: that of the call stands before it."""
        found = re.search(r'op_name="((?:[^"\\]|\\.)*)"', self.attributes.get("metadata", ""))
        name, around = found[1] if found else "", self.computation.called_as
        is_whole = not around or name.split("/")[0] == around.split("/")[0]
        return name if is_whole or not name else f"{around}/{name}"

    @property
    def location(self) -> str:
        """The user's source line, `FILE:LINE`, or nothing."""
        metadata = self.attributes.get("metadata", "")
        file, line = re.search(r'source_file="([^"]*)"', metadata), re.search(r"source_line=(\d+)", metadata)
        if file and line:
            return f"{file[1]}:{line[1]}"
        frame = re.search(r"stack_frame_id=(\d+)", metadata)
        return self.computation.module.frames.get(int(frame[1]), "") if frame else ""

    def frontend(self, name: str) -> str:
        """A frontend attribute, without its quotes; nothing if there is none."""
        for piece in split(self.attributes.get("frontend_attributes", "").strip()[1:-1]):
            key, _, value = piece.partition("=")
            if key.strip() == name:
                return value.strip().strip('"')
        return ""

    def __str__(self) -> str:
        return f"%{self.name}"


_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_CALLING = re.compile(
    r"(?:to_apply|calls|body|condition|branch_computations|true_computation|false_computation|called_computations"
    r"|async_execution_computation|select|scatter|comparator)=(\{[^}]*\}|%?[\w.-]+)"
)


def _inferred(instruction: Instruction) -> Shape:
    given = instruction.given_shapes
    if instruction.opcode == "tuple":
        return Tuple(given)
    if not given:
        return Array("opaque")
    if instruction.opcode == "get-tuple-element":
        return at(given[0], (int(instruction.attributes.get("index", "0")),)) or Array("opaque")
    return given[0]


def _without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", "", text) if "/*" in text else text


def _operand(text: str) -> Operand:
    name, _, path = text.split()[-1].lstrip("%").partition("#")
    return Operand(name, tuple(int(number) for number in path.split(".")) if path else ())


@dataclass(eq=False)
class Computation:
    """Instructions in the order of the text, which is the schedule of a scheduled module."""

    name: str
    module: HloModule = field(repr=False)
    is_entry: bool = False
    instructions: list[Instruction] = field(default_factory=list)
    root: Instruction | None = None

    @cached_property
    def by_name(self) -> dict[str, Instruction]:
        return {instruction.name: instruction for instruction in self.instructions}

    @cached_property
    def users(self) -> dict[str, list[Instruction]]:
        """By name of an instruction, those that read its value, in order, each once."""
        found: dict[str, list[Instruction]] = {}
        for instruction in self.instructions:
            for name in dict.fromkeys(operand.name for operand in instruction.operands):
                found.setdefault(name, []).append(instruction)
        return found

    @cached_property
    def called_as(self) -> str:
        """The name of the call that it is entered by, itself or around a loop or conditional; nothing of one that is
        entered in several ways."""
        self.__dict__["called_as"] = ""  # what enters itself is no HLO
        found = set()
        for caller in self.module.callers.get(self.name, ()):
            if caller.opcode in ENTERED:
                found.add(caller.op_name if caller.opcode == "call" else caller.computation.called_as)
        return found.pop() if len(found) == 1 else ""

    @cached_property
    def parameters(self) -> dict[int, Instruction]:
        """By number."""
        return {int(i.given): i for i in self.instructions if i.opcode == "parameter"}


@dataclass(eq=False)
class HloModule:
    """A module; `header` holds the attributes of its first line as text, `frames` each stack frame's source line."""

    name: str
    header: dict[str, str]
    computations: dict[str, Computation] = field(default_factory=dict)
    frames: dict[int, str] = field(default_factory=dict)

    @cached_property
    def entry(self) -> Computation:
        """The computation that runs; the last one where none is marked."""
        return next((c for c in self.computations.values() if c.is_entry), list(self.computations.values())[-1])

    @cached_property
    def is_scheduled(self) -> bool:
        return self.header.get("is_scheduled") == "true"

    @property
    def replicas(self) -> int:
        return int(self.header.get("replica_count", "1"))

    @property
    def partitions(self) -> int:
        return int(self.header.get("num_partitions", "1"))

    @property
    def says_devices(self) -> bool:
        """Whether the text says for how many devices it is."""
        return "replica_count" in self.header or "num_partitions" in self.header

    def instructions(self) -> Iterator[Instruction]:
        for computation in self.computations.values():
            yield from computation.instructions

    def in_turn(self) -> Iterator[Instruction]:
        """The instructions in the order in which a device comes to them: those of a computation behind the one that
        enters or starts it, once."""
        seen: set[str] = set()

        def within(computation: Computation) -> Iterator[Instruction]:
            if computation.name in seen:
                return
            seen.add(computation.name)
            for instruction in computation.instructions:
                yield instruction
                started = instruction.applied if instruction.opcode == "async-start" else ()
                for inner in (*instruction.entered, *started):
                    yield from within(inner)

        return within(self.entry)

    @cached_property
    def callers(self) -> dict[str, list[Instruction]]:
        """By name of a computation, the instructions that call it."""
        found: dict[str, list[Instruction]] = {}
        for instruction in self.instructions():
            for name in instruction.called:
                found.setdefault(name, []).append(instruction)
        return found


def parts(shape: Shape) -> tuple[Shape, ...]:
    """The parts of a tuple; of another shape, itself alone."""
    return shape.parts if isinstance(shape, Tuple) else (shape,)
