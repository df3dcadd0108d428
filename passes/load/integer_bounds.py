"""Between which numbers the integers of a module lie that hang on no argument, as far as its operations show it.

Integers become floats exactly as long as these have digits for them, and so long floats add and multiply whole numbers
exactly: these have bounds as well. What a loop carries lies where it starts from, and as much beyond as its turns may
add: as many of them as a counter takes to a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from hlo_verify.program.attributes import elements_once
from hlo_verify.program.element_types import INTEGER_RANGES, is_float, is_integer, mantissa_bits
from hlo_verify.program.ir import Name, Op, TensorType
from hlo_verify.program.op_families import COLLECTIVES, DEVICE_NUMBERS, FORWARDS, INDEXED, KEEPS_SPLATS, MOVES, PARTS

Range = tuple[int, int]

_SELECTS = (MOVES | FORWARDS | PARTS | KEEPS_SPLATS | INDEXED) - {"scatter"}
"""Operations that give elements of their operands."""
_EXTREMA = ("maximum", "minimum")
_TURNED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}
"""How the second operand stands to the first, by how the first stands to the second."""
_PARTS = {"gather": slice(1), "dynamic_slice": slice(1), "dynamic_update_slice": slice(2), "select": slice(1, None)}
"""The operands that elements are taken from, where others say which."""


@dataclass(slots=True)
class IntegerBounds:
    """The least and the greatest that integers may be, or floats that are whole numbers, by name; of those that are
    missing nothing is known."""

    types: Mapping[Name, TensorType]
    number: Callable[[Name], Any]
    """The one number that a constant holds, or None."""
    devices: int
    """How many run the module; 0 if that is not known."""
    ranges: dict[Name, Range] = field(default_factory=dict)

    def digits(self, value: Name) -> int:
        """How many binary digits tell such integers apart: where nothing is known, as many as their type has."""
        return digits_of(self.ranges.get(value, INTEGER_RANGES[self.types[value].dtype]))

    def measure(self, op: Op) -> None:
        """Note the bounds of what an operation gives."""
        for value, type_ in zip(op.results, op.types, strict=True):
            if is_integer(type_.dtype) or (type_.dtype in _FLOATS and op.name not in ("divide", "remainder")):
                self.note(value, self._of(op))

    def hand(self, values: Sequence[Name], of: Iterable[Sequence[Name]]) -> None:
        """Note the bounds of values each of which is one of some others."""
        for value, given in zip(values, of, strict=True):
            self.note(value, _around([self.of(v) for v in given]))

    def note(self, value: Name, found: Range | None) -> None:
        """Integers that their type does not hold wrap, and of whole numbers with neighbours that it does not hold
        floats have another one: nothing is known of them."""
        dtype = self.types[value].dtype
        least, most = _held(dtype)
        if found is not None and least <= found[0] and found[1] <= most and (is_integer(dtype) or dtype in _FLOATS):
            self.ranges[value] = found
        else:
            self.ranges.pop(value, None)

    def of(self, value: Name) -> Range | None:
        """The bounds of an integer, a whole number or a truth value."""
        return (0, 1) if self.types[value].dtype == "i1" else self.ranges.get(value)

    def _of(self, op: Op) -> Range | None:
        name = op.name
        if name == "iota":
            return 0, max(op.types[0].shape[int(op.attributes["iota_dimension"])] - 1, 0)
        if name == "constant":
            elements = elements_once(op.attributes["value"])
            if is_float(op.types[0].dtype):
                elements = elements.astype(float)
                if not np.isfinite(elements).all() or (elements != np.floor(elements)).any():
                    return None
            return (int(elements.min()), int(elements.max())) if elements.size else (0, 0)
        if name in DEVICE_NUMBERS:
            return (0, self.devices - 1) if self.devices else None
        given = [self.of(v) for v in op.operands[_PARTS.get(name, slice(None))]]
        if name in ("divide", "remainder"):
            return _divided(name, given, op.types[0].dtype)
        if name == "clamp" and is_integer(op.types[0].dtype) and given[0] is not None and given[2] is not None:
            return _around([given[0], given[2]])
        known = [each for each in given if each is not None]
        if len(known) < len(given) or not known:
            return None
        if name in _CORNERS:
            return _corners(_CORNERS[name], *known)
        if name in ("reduce", "reduce_window"):
            return self._reduced(op, known)
        if name in COLLECTIVES and name in _SELECTS:  # devices that nobody sends to have zeros
            return _hull(*known, (0, 0))
        return _hull(*known) if name in _SELECTS else _BY_NAME.get(name, _unknown)(known)

    def _reduced(self, op: Op, known: Sequence[Range]) -> Range | None:
        """Sums and extrema."""
        inner = [each.name for each in op.regions[0].ops]
        if len(known) != 2 or len(inner) != 1 or inner[0] not in ("add", *_EXTREMA):
            return None
        if inner[0] in _EXTREMA:
            return _hull(*known)
        if op.name == "reduce_window":
            count = prod(int(n) for n in op.attributes["window_dimensions"])
        else:
            shape = self.types[op.operands[0]].shape
            count = prod(shape[int(k)] for k in op.attributes["dimensions"])
        start = known[1]
        low, high = known[0] if op.name == "reduce" else _hull(*known)  # padding is what a window starts from
        return min(low * count, 0) + start[0], max(high * count, 0) + start[1]


_FLOATS = frozenset({"f64", "f32", "f16", "bf16"})
"""Floats whose whole numbers have bounds."""


def _held(dtype: str) -> Range:
    """All whole numbers between these are the type's."""
    if dtype not in _FLOATS:
        return INTEGER_RANGES.get(dtype, (0, 0))
    most = 1 << (mantissa_bits(dtype) + 1)
    return -most, most


def digits_of(bounds: Range) -> int:
    """How many binary digits tell such integers apart."""
    return max(-bounds[0] - 1, bounds[1] - 1, 0).bit_length()


def _unknown(known: Sequence[Range]) -> Range | None:
    return None


def _divided(name: str, given: Sequence[Range | None], dtype: str) -> Range | None:
    """What is left over is less than what it is divided by, and a quotient of whole numbers no larger than these: of
    none by 0."""
    of, by = given
    if by is None or by[0] <= 0 <= by[1] or (of is None and name == "divide"):
        return None
    sizes = [max(map(abs, of))] if of is not None else []
    if name == "remainder":
        sizes.append(max(map(abs, by)) - 1)
    is_positive = dtype.startswith("u") or (of is not None and of[0] >= 0 and (by[0] > 0 or name == "remainder"))
    return 0 if is_positive else -min(sizes), min(sizes)


def _around(some: Sequence[Range | None]) -> Range | None:
    known = [each for each in some if each is not None]
    return _hull(*known) if known and len(known) == len(some) else None


def _hull(*some: Range) -> Range:
    return min(low for low, _ in some), max(high for _, high in some)


def _corners(function: Callable[[int, int], int], a: Range, b: Range) -> Range:
    found = [function(x, y) for x in a for y in b]
    return min(found), max(found)


_CORNERS: Mapping[str, Callable[[int, int], int]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
}


def _bits(known: Sequence[Range]) -> Range | None:
    """Of integers that are not negative, as many bits as the longest has."""
    if any(low < 0 for low, _ in known):
        return None
    return 0, (1 << max(high for _, high in known).bit_length()) - 1


_BY_NAME: Mapping[str, Callable[[Sequence[Range]], Range | None]] = {
    "abs": lambda known: (0, max(map(abs, known[0]))),
    "and": _bits,
    "clamp": lambda known: _hull(*known),
    "convert": lambda known: _hull(*known),
    "maximum": lambda known: _hull(*known),
    "minimum": lambda known: _hull(*known),
    "negate": lambda known: (-known[0][1], -known[0][0]),
    "or": _bits,
    "select": lambda known: _hull(*known),
    "shift_right_logical": lambda known: _bits(known[:1]),
    "sign": lambda known: (-1, 1),
    "sort": lambda known: _hull(*known),
    "xor": _bits,
}


@dataclass(slots=True)
class Turns:
    """What turns of a loop make of the bounds of integers that it carries, found by trying.

    Bounds hold in all turns if, as long as they do, a turn gives nothing beyond them, or adds so little to what it
    carries that they hold after as many turns as there are.
    """

    loop: Op
    bounds: IntegerBounds
    made: Mapping[Name, Op]
    assumed: list[Range | None] = field(init=False)
    rounds: int = 0

    def __post_init__(self) -> None:
        self.assumed = [self.bounds.of(v) for v in self.loop.operands]

    def begin(self) -> None:
        """Take what is assumed for the bounds of what the regions are handed."""
        for region in self.loop.regions:
            for value, found in zip(region.arguments, self.assumed, strict=True):
                self.bounds.note(value, found)

    def hold(self) -> bool:
        """Whether the bounds hold in all turns, now that the regions were measured with them; if not, others are
        assumed."""
        after = list(map(self._after, range(len(self.assumed))))
        is_same = all(_lies_in(found, was) for found, was in zip(after, self.assumed, strict=True))
        self.rounds += 1
        if not is_same:
            self.assumed = [
                was if _lies_in(found, was) else None if self.rounds > _TRIES else _around([found, was])
                for found, was in zip(after, self.assumed, strict=True)
            ]
        return is_same

    def end(self) -> None:
        """Note the bounds of what the loop gives."""
        for value, found in zip(self.loop.results, self.assumed, strict=True):
            self.bounds.note(value, found)

    def _after(self, k: int) -> Range | None:
        """Where what is carried there lies in all turns, by one of them."""
        body, start = self.loop.regions[1], self.bounds.of(self.loop.operands[k])
        found = self.bounds.of(body.results[k])
        if start is None or _lies_in(found, self.assumed[k]):
            return None if start is None else _around([start, found])
        turns, added = self._turns(), self._added(body.results[k], body.arguments[k])
        if turns is None or added is None:
            return _around([start, found])
        return start[0] + turns * min(added[0], 0), start[1] + turns * max(added[1], 0)

    def _added(self, value: Name, to: Name) -> Range | None:
        """What a turn adds to a value; None where it does anything else."""
        if value == to:
            return 0, 0
        op = self.made.get(value)
        if op is None or op.name not in ("add", "subtract"):
            return None
        first, second = op.operands
        sign = 1 if op.name == "add" else -1
        ways = [(first, second, sign), *([(second, first, 1)] if sign == 1 else [])]
        for inner, other, sign in ways:
            before, more = self._added(inner, to), self.bounds.of(other)
            if before is not None and more is not None:
                low, high = sorted(sign * n for n in more)
                return before[0] + low, before[1] + high
        return None

    def _turns(self) -> int | None:
        """How many turns there are at most: what is less than a bound, and grows, is so for no more of them."""
        condition, body = self.loop.regions
        waiting = list(condition.results)
        while waiting:
            op = self.made.get(waiting.pop())
            if op is not None and op.name == "and":
                waiting += op.operands
            if op is None or op.name != "compare":
                continue
            direction, (counter, bound) = str(op.attributes["comparison_direction"]), op.operands
            if direction in ("GT", "GE"):
                direction, counter, bound = _TURNED[direction], bound, counter
            most = self.bounds.of(bound)
            if direction not in ("LT", "LE") or counter not in condition.arguments or most is None:
                continue
            k = condition.arguments.index(counter)
            start, step = self.bounds.of(self.loop.operands[k]), self._added(body.results[k], body.arguments[k])
            if start is None or step is None or step[0] <= 0:
                continue
            past = most[1] + (direction == "LE")  # what counts no further, and what is added last may wrap before that
            if past - 1 + step[1] <= _held(self.bounds.types[counter].dtype)[1]:
                return max(-(-(past - start[0]) // step[0]), 0)
        return None


_TRIES = 4
"""So often are other bounds assumed."""


def _lies_in(found: Range | None, other: Range | None) -> bool:
    return other is None or (found is not None and other[0] <= found[0] and found[1] <= other[1])
