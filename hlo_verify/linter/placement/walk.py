"""Find out what is known of each value of a module, from what is known of its parameters: run it on `values`, through
fusions, calls, branches, loops and what is asynchronous."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from hlo_verify.hlo.meetings import Meetings
from hlo_verify.hlo.module import Computation, Instruction, Operand
from hlo_verify.hlo.shapes import Array, Shape, Tuple
from hlo_verify.linter.placement import opcodes
from hlo_verify.linter.placement.communication import exchange, handed_out, reduces
from hlo_verify.linter.placement.constants import constant
from hlo_verify.linter.placement.contractions import convolution, dot, reduction
from hlo_verify.linter.placement.devices import Devices
from hlo_verify.linter.placement.elementwise import Place, bent, elementwise
from hlo_verify.linter.placement.movement import move
from hlo_verify.linter.placement.values import FREE, NOTHING, Term, Tree, Value, join, together, unknown
from hlo_verify.linter.reducers import reducer_of

Seen = Callable[[Instruction, Sequence[Tree], Tree, Place], None]

_TURNS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_STAYS = frozenset(("optimization-barrier", "domain", "async-update", "opt-barrier", "add-dependency"))
ROUNDS = 12
"""How often the body of a loop is looked at until no more is learnt: one round for each step that a value falls."""


class Walk:
    """A module's values. `seen` is called for each instruction when what it gives is settled."""

    def __init__(self, meetings: Meetings, devices: Devices, seen: Seen | None = None) -> None:
        self.module = meetings.module
        self._meetings = meetings
        self.devices = devices
        self._seen = seen
        self._settled = True
        self._order = 0
        self._values: dict[str, Tree] = {}

    def run(self, computation: Computation, arguments: Sequence[Tree], place: Place | None = None) -> Tree:
        """What a computation gives. `place` is the instruction that findings name, if it is one for all of it."""
        outer, self._values = self._values, {}
        values = self._values
        result: Tree = ()
        for instruction in computation.instructions:
            here = place
            if here is None:
                self._order += 1
                here = Place(instruction.name, self._order)
            given = [self._operand(operand, values) for operand in instruction.operands]
            if instruction.opcode == "parameter":
                number = int(instruction.given)
                found = self._named(arguments[number] if number < len(arguments) else (), instruction, ())
            else:
                found = self._named(self._value(instruction, given, here, fused=place is not None), instruction, given)
            values[instruction.name] = found
            if self._seen is not None and self._settled:
                self._seen(instruction, given, found, here)
            if instruction is computation.root or computation.root is None:
                result = found
        self._values = outer
        return result

    def _named(self, value: Tree, instruction: Instruction, given: Sequence[Tree]) -> Tree:
        """A value of an instruction's shape, as a term of its own where it is no sum of others."""
        roots = frozenset[str]()
        if not opcodes.is_bent(instruction.opcode) and not self._takes_extremes(instruction):
            arrays = [one for one in _flat(given) if one.terms]
            if len(arrays) < 2 or instruction.opcode not in ("dot", "convolution", "multiply"):
                roots = roots.union(*(term.roots for one in arrays for term in one.terms))
        fitting = self._fitting(value, instruction.shape)
        return self._with_terms(fitting, instruction.name, roots or frozenset((instruction.name,)))

    def _takes_extremes(self, instruction: Instruction) -> bool:
        """Whether it is a reduction of several elements that is no sum."""
        if instruction.opcode != "reduce" and not reduces(instruction):
            return False
        (before, *_), after = instruction.given_shapes or (instruction.shape,), instruction.shape
        if instruction.opcode == "reduce" and isinstance(before, Array) and isinstance(after, Array):
            return reducer_of(instruction) in ("maximum", "minimum") and before.count > after.count
        return reducer_of(instruction) in ("maximum", "minimum")

    def _with_terms(self, value: Tree, name: str, roots: frozenset[str]) -> Tree:
        if isinstance(value, tuple):
            return tuple(self._with_terms(part, f"{name}.{number}", roots) for number, part in enumerate(value))
        if value.terms or value.is_constant or value.number is not None:
            return value
        return replace(value, terms=(Term(name, Fraction(1), value.whole, value.some, roots),))

    def _operand(self, operand: Operand, values: dict[str, Tree]) -> Tree:
        value = values.get(operand.name, unknown(self.devices))
        for number in operand.path:
            value = value[number] if isinstance(value, tuple) and number < len(value) else unknown(self.devices)
        return value

    def _unknown(self, shape: Shape) -> Tree:
        if isinstance(shape, Tuple):
            return tuple(map(self._unknown, shape.parts))
        return unknown(self.devices, len(shape.sizes))

    def _fitting(self, value: Tree, shape: Shape) -> Tree:
        """A value of a shape; unknown where it has another one."""
        if isinstance(shape, Tuple):
            if not isinstance(value, tuple) or len(value) != len(shape.parts):
                return self._unknown(shape)
            return tuple(map(self._fitting, value, shape.parts))
        if isinstance(value, tuple):
            return self._unknown(shape)
        if shape.count == 0 and (value.whole or value.some):
            value = replace(value, whole=NOTHING, some=NOTHING, terms=())
        if len(value.dimensions) != len(shape.sizes):
            value = replace(value, dimensions=(None,) * len(shape.sizes))
        return self._settle(value)

    def _settle(self, value: Value) -> Value:
        """With what follows from the rest: devices that hold the same may be taken to compute it by one function."""
        devices = self.devices
        alike = value.alike if value.number is None else devices.label(value.number)
        method = devices.coarser(value.method, alike)
        if (alike, method) == (value.alike, value.method):
            return value
        return replace(value, alike=alike, method=method)

    def _value(self, instruction: Instruction, given: Sequence[Tree], here: Place, *, fused: bool) -> Tree:
        opcode = instruction.opcode
        if opcode == "tuple":
            return tuple(given)
        if opcode == "get-tuple-element":
            number = int(instruction.attributes.get("index", "0"))
            whole = given[0] if given else ()
            return whole[number] if isinstance(whole, tuple) and number < len(whole) else ()
        if opcode in _STAYS:
            return given[0] if given else ()
        if opcode in ("fusion", "call", "async-start", "while", "conditional"):
            return self._called(instruction, given, here, fused=fused)
        if opcode.endswith("-done"):
            return self._done(instruction, given)
        if opcodes.is_collective(opcode):
            return self._collective(instruction, given, here)
        arrays = [value for value in given if isinstance(value, Value)]
        if len(arrays) != len(given):
            return self._unknown(instruction.shape)
        return self._computed(instruction, arrays, here)

    def _computed(self, instruction: Instruction, given: Sequence[Value], here: Place) -> Tree:
        opcode, devices, shape = instruction.opcode, self.devices, instruction.shape
        if opcode == "constant":
            return constant(instruction, shape, devices) if isinstance(shape, Array) else self._unknown(shape)
        if opcode == "iota" and isinstance(shape, Array):
            one = devices.one
            return Value(NOTHING, NOTHING, one, one, (FREE,) * len(shape.sizes), is_constant=shape.count > 1)
        if opcode in ("partition-id", "replica-id"):
            return self._device_number(opcode)
        if opcode == "copy-start" and isinstance(shape, Tuple):
            return (given[0], *map(self._unknown, shape.parts[1:]))
        if opcode == "dot" and len(given) == 2:
            return dot(instruction, given[0], given[1], devices, here)
        if opcode == "convolution" and len(given) == 2:
            return convolution(instruction, given[0], given[1], devices, here)
        if opcode == "reduce":
            return self._reduced(instruction, given, here)
        if opcode == "custom-call":
            return self._custom(instruction, given)
        if (moved := move(instruction, given, devices, here)) is not None:
            return moved
        if given and opcodes.is_elementwise(opcode):
            return elementwise(instruction, given, devices, here)
        if given and opcode in ("sort", "reduce-window", "select-and-scatter", "rng-bit-generator", "cholesky", "fft"):
            return self._some_function(shape, given, here)
        return self._unknown(shape)

    def _device_number(self, opcode: str) -> Value:
        """The number of the partition or of the replica."""
        _, partitions = self._meetings.size
        numbers = (divmod(device, partitions)[opcode == "partition-id"] for device in range(self.devices.count))
        return Value(NOTHING, NOTHING, self.devices.each, self.devices.each, number=tuple(map(Fraction, numbers)))

    def _some_function(self, shape: Shape, given: Sequence[Value], here: Place) -> Tree:
        """Results of which nothing is known but that they come from the operands."""
        devices = self.devices
        value = Value(
            NOTHING,
            NOTHING,
            devices.finer(*(one.method for one in given)),
            devices.finer(*(one.alike for one in given)),
            partials=together(*(bent(one.partials, here) for one in given)),
        )
        if isinstance(shape, Tuple):
            return tuple(replace(value, dimensions=(None,) * len(parts_of(part))) for part in shape.parts)
        return replace(value, dimensions=(None,) * len(shape.sizes))

    def _reduced(self, instruction: Instruction, given: Sequence[Value], here: Place) -> Tree:
        adds = reducer_of(instruction) == "add"
        half = len(given) // 2
        if half == 1:
            return reduction(instruction, given, self.devices, here, adds)
        if not adds:
            return self._some_function(instruction.shape, given, here)
        pairs = zip(given[:half], given[half:], strict=False)
        return tuple(reduction(instruction, pair, self.devices, here, adds) for pair in pairs)

    def _custom(self, instruction: Instruction, given: Sequence[Value]) -> Tree:
        """Calls of libraries: none is known to compute what its operands depend on."""
        target = instruction.attributes.get("custom_call_target", "").strip('"')
        if target == "AllocateBuffer" and isinstance(instruction.shape, Array):
            one, each = self.devices.one, self.devices.each
            return Value(NOTHING, NOTHING, one, each, (FREE,) * len(instruction.shape.sizes))
        if target in ("AssumeGatherIndicesInBound", "ZeroCrop", "Sharding") and len(given) == 1:
            return given[0]
        if target == "ConcatBitcast" and given:
            return _pieces(given, self.devices)
        if target == "AsyncCollectiveStart" and isinstance(instruction.shape, Tuple):
            started = next(instruction.sources, None)
            if started is not None and len(started.operands) == 1:
                operand = self._operand(started.operands[0], self._values)
                return (operand, *map(self._unknown, instruction.shape.parts[1:]))
        if target == "AsyncCollectiveDone":
            for value, source in zip(given, instruction.sources, strict=False):
                if (
                    opcodes.is_collective(source.opcode)
                    and source.shape_text.split("{")[0] == (instruction.shape_text.split("{")[0])
                ):
                    return value
        return self._unknown(instruction.shape)

    def _collective(self, instruction: Instruction, given: Sequence[Tree], here: Place) -> Tree:
        reducer = reducer_of(instruction) if instruction.called else ""
        if instruction.opcode == "all-to-all" and len(given) > 1:
            arrays = [value for value in given if isinstance(value, Value)]
            pieces = (
                handed_out(instruction, arrays, self.devices, self._meetings) if len(arrays) == len(given) else None
            )
            return self._unknown(instruction.shape) if pieces is None else pieces
        results = []
        for value in given:
            if isinstance(value, tuple):
                return self._unknown(instruction.shape)
            results.append(exchange(instruction, value, self.devices, self._meetings, here, reducer))
        if not results or "slice_sizes" in instruction.attributes:
            return self._unknown(instruction.shape)
        found: Tree = results[0] if len(results) == 1 else tuple(results)
        if len(results) == 1 and isinstance(instruction.shape, Tuple) and len(instruction.shape.parts) == 1:
            found = (found,)
        if instruction.opcode.endswith("-start") and instruction.opcode != "all-reduce-start":
            shape = instruction.shape
            if not isinstance(shape, Tuple) or len(shape.parts) < 2:
                return self._unknown(shape)
            operand = given[0] if len(given) == 1 else tuple(given)
            return (operand, found, *map(self._unknown, shape.parts[2:]))
        return found

    def _done(self, instruction: Instruction, given: Sequence[Tree]) -> Tree:
        """What a transfer gives when it is done."""
        started = given[0] if given else ()
        if instruction.opcode == "all-reduce-done":
            return started
        if instruction.opcode == "copy-done":
            return started[0] if isinstance(started, tuple) and started else ()
        known = ("async-done", "all-gather-done", "collective-permute-done")
        if instruction.opcode not in known or not isinstance(started, tuple) or len(started) < 2:
            return self._unknown(instruction.shape)
        return started[1]

    def _called(self, instruction: Instruction, given: Sequence[Tree], here: Place, *, fused: bool) -> Tree:
        called = [self.module.computations[name] for name in instruction.called if name in self.module.computations]
        shape = instruction.shape
        inside = here if fused or instruction.opcode in ("fusion", "async-start") else None
        if instruction.opcode == "while":
            body = self.module.computations.get(instruction.attributes.get("body", "").lstrip("%"))
            if body is None or len(given) != 1:
                return self._unknown(shape)
            return self._loop(instruction, body, self._fitting(given[0], shape), inside)
        if instruction.opcode == "conditional":
            if len(called) != len(given) - 1 or not called:
                return self._unknown(shape)
            return self._branches(given, called, inside)
        if len(called) != 1:
            return self._unknown(shape)
        result = self.run(called[0], given, inside)
        if instruction.opcode != "async-start":
            return result
        if not isinstance(shape, Tuple) or len(shape.parts) < 2:
            return self._unknown(shape)
        return (tuple(given), self._fitting(result, shape.parts[1]), *map(self._unknown, shape.parts[2:]))

    def _branches(self, given: Sequence[Tree], called: Sequence[Computation], inside: Place | None) -> Tree:
        results = [self.run(branch, [argument], inside) for branch, argument in zip(called, given[1:], strict=True)]
        found = results[0]
        for other in results[1:]:
            found = join(found, other, self.devices)
        chosen = given[0] if isinstance(given[0], Value) else unknown(self.devices)
        return _chosen_by(found, chosen, self.devices)

    def _loop(self, instruction: Instruction, body: Computation, start: Tree, inside: Place | None) -> Tree:
        """What a loop gives: known of all that it carries at the beginning of any turn, and of the last one's end."""
        devices = self.devices
        order, settled = self._order, self._settled
        self._settled = False
        carried = _afresh(start)
        for _ in range(ROUNDS):
            after = self._fitting(self.run(body, [carried], inside), instruction.shape)
            self._order = order
            wider = join(carried, _afresh(after), devices)
            if wider == carried:
                break
            carried = wider
        else:
            carried = self._unknown(instruction.shape)
        self._settled = settled
        after = self._fitting(self.run(body, [carried], inside), instruction.shape)
        condition = self.module.computations.get(instruction.attributes.get("condition", "").lstrip("%"))
        asked, first = unknown(devices), unknown(devices)
        if condition is not None:
            asked, first = (self._asked(condition, values, inside) for values in (carried, start))
        turns = _TURNS.search(instruction.rest)
        has_turn = (turns is not None and int(turns[1]) > 0) or (first.number is not None and all(first.number))
        return _chosen_by(_afresh(after) if has_turn else carried, asked, devices)

    def _asked(self, condition: Computation, carried: Tree, inside: Place | None) -> Value:
        found = self.run(condition, [carried], inside)
        return found if isinstance(found, Value) else unknown(self.devices)


def parts_of(shape: Shape) -> tuple[int, ...]:
    return shape.sizes if isinstance(shape, Array) else ()


def _flat(trees: Sequence[Tree]) -> list[Value]:
    return [leaf for tree in trees for leaf in ([tree] if isinstance(tree, Value) else _flat(tree))]


def _afresh(tree: Tree) -> Tree:
    """Values as terms of their own: what a loop carries is another value in each turn."""
    return tuple(map(_afresh, tree)) if isinstance(tree, tuple) else replace(tree, terms=())


def _chosen_by(tree: Tree, chosen: Value, devices: Devices) -> Tree:
    """Values that devices choose by another one."""
    if isinstance(tree, tuple):
        return tuple(_chosen_by(part, chosen, devices) for part in tree)
    if chosen.alike == devices.one:
        return tree
    return replace(
        tree,
        method=devices.finer(tree.method, chosen.method),
        alike=devices.finer(tree.alike, chosen.alike),
        number=None,
    )


def _pieces(given: Sequence[Value], devices: Devices) -> Value:
    """Parts of a value that were copied apart, together again."""
    found = join(given[0], given[0], devices)
    for other in given[1:]:
        found = join(found, other, devices)
    return found if isinstance(found, Value) else unknown(devices)
