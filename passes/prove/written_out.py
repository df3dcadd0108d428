"""Whether a function with loops, written out turn by turn, is another one: this trusts nothing of what found the loops.

Both functions are walked through operation by operation, and each value is numbered: values have one number where the
same operation made them of values with the same numbers. Loops that the other function does not have are walked through
turn by turn. Numbers that such a loop counts with are worked out, and so is what it looks up in its tables.

    h1 = sin(h0); h2 = sin(h1)      the same as      a loop over t < 2 of h = sin(h)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.program.ir import Function, Name, Op, TensorType, captured, functions
from hlo_verify.program.op_families import EFFECTS, communicates_itself, family

LARGE = 1 << 12
"""Elements of a constant from which on it is the same as itself alone."""

COUNTED = ("i32", "ui32")
"""Types of numbers that are worked out."""


def is_written_out(loops: Function, written: Function) -> bool:
    """Whether a function is another one with some turns written as loops: it makes the same results of the same
    arguments, and communicates in the same order, but that it may hand on more between devices which nobody needs."""
    numbers: dict[Hashable, int] = {}
    own = frozenset(v for each in functions(written) for op in each.ops for v in op.results)
    try:
        second = _Walk(numbers, own).whole(written)
        return any(_Walk(numbers, own, is_needed=is_needed).whole(loops) == second for is_needed in (False, True))
    except (_OtherError, KeyError):  # a value is read where there is none
        return False


Meaning = tuple[tuple[TensorType, ...], tuple[int, ...], tuple[int, ...]]
"""What a function does: the types of its arguments, the numbers of its results, and of what it sends on the way."""


class _OtherError(Exception):
    """A loop is none that can be written out."""


@dataclass(slots=True, eq=False)
class _Walk:
    """The numbers of the values of one function. `own` are the values of the function that has no new loops."""

    numbers: dict[Hashable, int]
    own: frozenset[Name]
    values: dict[Name, int] = field(default_factory=dict)
    known: dict[int, np.ndarray[Any, Any]] = field(default_factory=dict)
    """Integers, and lists of integers, by the numbers of their values."""
    types: dict[Name, TensorType] = field(default_factory=dict)
    sent: list[int] = field(default_factory=list)
    """What communicates, in order."""
    depth: int = 0
    is_needed: bool = False
    """Whether what is handed on counts only where it is needed."""
    made_of: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """What values are made of, and what is sent."""
    handed_on: dict[int, int] = field(default_factory=dict)
    """What is handed on by what is sent so."""

    def number(self, *key: Hashable) -> int:
        return self.numbers.setdefault(key, len(self.numbers))

    def whole(self, function: Function) -> Meaning:
        """What a function does to arguments that are known by how deep it is and where they come."""
        self.depth += 1
        outside, self.sent = self.sent, []
        self.enter(function, [self.number("argument", self.depth, k) for k in range(len(function.arguments))])
        self.walk(function)
        sent, self.sent = self.sent, outside
        self.depth -= 1
        made = self.left(function)
        return function.argument_types, tuple(made), tuple(self.needed(sent, made) if self.is_needed else sent)

    def needed(self, sent: Sequence[int], made: Sequence[int]) -> Iterator[int]:
        """What is sent, but for what is handed on and neither needed for results nor for what else is sent."""
        seen: set[int] = set()
        left = [*made, *(v for v in sent if v not in self.handed_on)]
        while left:
            v = left.pop()
            if v not in seen:
                seen.add(v)
                left += self.made_of.get(v, ())
        return (v for v in sent if self.handed_on.get(v, v) in seen)

    def enter(self, region: Function, given: Sequence[int]) -> None:
        self.values.update(zip(region.arguments, given, strict=True))
        self.types.update(zip(region.arguments, region.argument_types, strict=True))

    def left(self, function: Function) -> list[int]:
        """The results of a function that was walked through; what else it made is not seen outside of it."""
        found = [self.values[v] for v in function.results]
        for v in (*function.arguments, *(v for op in function.ops for v in op.results)):
            del self.values[v]
        return found

    def walk(self, function: Function) -> None:
        for op in function.ops:
            self.types.update(zip(op.results, op.types, strict=True))
            if op.name == "while" and self.own.isdisjoint(op.results):
                self.turns(op)
            else:
                self.values.update(zip(op.results, self.made(op), strict=True))

    def turns(self, loop: Op) -> None:
        """A loop, turn by turn: no more than the other function has values."""
        condition, body = loop.regions
        carried = [self.values[v] for v in loop.operands]
        for _ in range(len(self.own) + 1):
            self.enter(condition, carried)
            if not self.holds(condition):
                break
            self.enter(body, carried)
            self.walk(body)
            carried = self.left(body)
        else:
            raise _OtherError
        self.values.update(zip(loop.results, carried, strict=True))

    def holds(self, condition: Function) -> bool:
        """Whether there is one more turn."""
        *ops, last = condition.ops
        self.walk(replace(condition, ops=tuple(ops)))
        sides = [self.known.get(self.values[v]) for v in last.operands]
        self.left(replace(condition, ops=tuple(ops), results=()))
        how = last.attributes.get("comparison_direction"), last.attributes.get("compare_type")
        if (last.name, *how) != ("compare", "LT", "SIGNED") or condition.results != last.results:
            raise _OtherError
        if sides[0] is None or sides[1] is None:
            raise _OtherError
        return int(sides[0]) < int(sides[1])

    def made(self, op: Op) -> Sequence[int]:
        """The numbers of an operation's results."""
        operands = tuple(self.values[v] for v in op.operands)
        one = self.counted(op, operands) if len(op.results) == 1 else None
        if one is not None:
            return (one,)
        inside = tuple(map(self.whole, op.regions))
        itself = op.results if op.name in ("rng", *EFFECTS) or family(op.name, op.attributes) is None else ()
        key = op.name, op.types, operands, plain(op.attributes), inside, itself
        parts = (*operands, *(self.values[v] for v in captured(op)))
        if communicates_itself(op) or any(sent for *_, sent in inside):
            self.sent.append(self.number("sent", key))
            self.made_of[self.sent[-1]] = parts
            if op.name == "collective_permute" and len(op.results) == 1:
                self.handed_on[self.sent[-1]] = self.number("made", key, 0)
        made = [self.number("made", key, k) for k in range(len(op.results))]
        self.made_of.update(dict.fromkeys(made, parts))
        return made

    def counted(self, op: Op, operands: Sequence[int]) -> int | None:
        """The number of what is an integer, or what no more is done to than to read it or a part of it."""
        type_, numbers = op.types[0], [self.known.get(v) for v in operands]
        if op.name == "convert" and not op.attributes and self.types[op.operands[0]] == type_:
            return operands[0]
        if op.name == "slice" and op.attributes.keys() <= {"start_indices", "limit_indices", "strides"}:
            if set(op.attributes.get("strides", ())) <= {1}:
                return self.read(operands[0], op.attributes["start_indices"], type_)
            return None
        if op.name == "dynamic_slice" and op.attributes.keys() == {"slice_sizes"}:
            return self.window(op, operands[0], [None if n is None or n.ndim else int(n) for n in numbers[1:]])
        if type_.dtype not in COUNTED or type_.rank > 1:
            return None
        if op.name == "constant" and op.attributes.keys() == {"value"}:
            return self.integers(np.asarray(op.attributes["value"]), type_)
        if op.name == "reshape" and numbers[0] is not None and type_.shape == () and not op.attributes:
            return self.integers(numbers[0], type_)
        if op.name in ("add", "multiply") and type_ == TensorType((), "i32") and not op.attributes:
            x, y = numbers
            if x is not None and y is not None:
                value = int(x) + int(y) if op.name == "add" else int(x) * int(y)
                lo, hi = INTEGER_RANGES["i32"]
                return self.integers(np.array((value - lo) % (hi - lo + 1) + lo), type_)
        return None

    def window(self, op: Op, operand: int, starts: Sequence[int | None]) -> int | None:
        """What is read at places that are known."""
        if any(start is None for start in starts):
            return None
        shape, type_ = self.types[op.operands[0]].shape, op.types[0]
        at = [
            max(0, min(start or 0, size - part)) for start, size, part in zip(starts, shape, type_.shape, strict=True)
        ]
        table = self.known.get(operand)
        if table is not None and table.ndim == 1:
            return self.integers(table[at[0] : at[0] + type_.shape[0]], type_)
        return self.read(operand, at, type_)

    def read(self, operand: int, at: Sequence[int], type_: TensorType) -> int:
        found = self.number("window", operand, tuple(at), type_)
        self.made_of[found] = (operand,)
        return found

    def integers(self, values: np.ndarray[Any, Any], type_: TensorType) -> int | None:
        if values.size > LARGE:
            return None
        values = values.reshape(type_.shape)
        found = self.number("integers", type_, tuple(map(int, values.flat)))
        self.known[found] = values
        return found


def plain(value: Any) -> Hashable:
    """An attribute as what can be looked up: large constants are equal to themselves alone."""
    if isinstance(value, np.ndarray):
        is_one = value.size > 0 and not any(stride for stride in value.strides)
        if is_one:
            return value.shape, str(value.dtype), value.flat[0].tobytes()
        return value.shape, str(value.dtype), value.tobytes() if value.size <= LARGE else id(value)
    if isinstance(value, Mapping):
        return tuple(sorted((name, plain(each)) for name, each in value.items()))
    if isinstance(value, tuple | list):
        return tuple(map(plain, value))
    return (type(value), value) if isinstance(value, Hashable) else id(value)
