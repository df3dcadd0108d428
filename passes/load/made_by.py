"""How values of a module that hang on no argument are made: by which operations that round, one after another.

Numbers that real arithmetic makes equal are the same floats where they were made alike, of the same numbers. Exact ones
of those, as places are, are told by what is computed of them, so a way says of them along which dimensions they vary;
where that does not tell two of them apart, it says all that the value is computed by (`Made.structure`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np

from hlo_verify.passes.load.decisive import TOP_K, decisive
from hlo_verify.program.attributes import elements_once, fingerprint
from hlo_verify.program.element_types import DTYPES, is_float, is_integer, mantissa_bits
from hlo_verify.program.ir import Function, Name, Op, TensorType, used
from hlo_verify.program.op_families import (
    CHOOSES,
    COLLECTIVES,
    DECIDED,
    DEVICE_NUMBERS,
    FILLS,
    INDEXED,
    JUMPS,
    KEEPS_SPLATS,
    MOVES,
    PARTS,
    RUNS_REGIONS,
    communicates_itself,
    is_identity,
    is_new,
    plain_name,
)

SELECTS = MOVES | PARTS | KEEPS_SPLATS | INDEXED - {"scatter"}
SELECTS |= frozenset("abs bitcast_convert clamp maximum minimum negate select sort".split())
"""Operations that round nothing."""
PUTS_TOGETHER = frozenset("concatenate dynamic_update_slice pad select".split())
"""Those of them whose elements are of one operand or of another one, whatever these are."""
_KEEPS_ROOTS = KEEPS_SPLATS | frozenset({"convert"})
_TAKES_ANOTHER = MOVES | PARTS | INDEXED | frozenset({"sort"})
"""Operations whose elements are of another place."""
_EXTREMA = ("maximum", "minimum")
_CARRIED = "what a loop carries"
_WIDE = 23
"""More binary digits than a place has."""


@dataclass(slots=True)
class Made:
    """What is known of the values of a module that hang on no argument, as they come."""

    ops: dict[Name, Op] = field(default_factory=dict)
    types: dict[Name, TensorType] = field(default_factory=dict)
    ways: dict[Name, str] = field(default_factory=dict)
    """By which operations that round each was made, one after another; "" where there are none. What moves numbers
    about, and what is done with integers, is not told: devices do that otherwise."""
    jumps: list[Op] = field(default_factory=list)
    """Comparisons and roundings of what was rounded before, and what is not steady in it."""
    unseen: set[Name] = field(default_factory=set)
    """What hangs on what loops carry, or regions are handed or give: it is not evaluated."""
    _along: dict[Name, frozenset[int]] = field(default_factory=dict)
    """The dimensions along which a value varies, or may."""
    _leaves: dict[Name, frozenset[Name]] = field(default_factory=dict)
    """The values that one is made of by operations on one element of each, of those that vary."""
    _structures: dict[Name, str] = field(default_factory=dict)
    _sources: dict[Name, tuple[Op, str]] = field(default_factory=dict)
    """Of a value that no operation gives by itself, the one whose regions do, and which of its values it is."""

    def read(self, function: Function) -> None:
        for op in function.ops:
            self.types |= zip(op.results, op.types, strict=True)
            if op.name == "while":
                self._read_loop(op)
            elif op.name in RUNS_REGIONS and op.regions:
                self._read_regions(op)
            elif _hands_on(op):
                self._hand_on(op)
            elif all(v in self.ways for v in op.operands) and is_function(op):
                self._add(op)
            elif op.name in DECIDED:
                self._decide(op)

    def _read_loop(self, op: Op) -> None:
        """A loop, of which what it carries hangs on no argument where neither its start nor a turn does. It was made by
        what made its start, and by what a turn does, but for what is handed on as it is."""
        body = op.regions[1]
        kept = [new == old for new, old in zip(body.results, body.arguments, strict=True)]
        starts = [self.ways[v] or str(self.number(v)) if v in self.ways else "" for v in op.operands]
        known, turns = [v in self.ways for v in op.operands], [""] * len(op.operands)
        before, jumps = set(self.ways), len(self.jumps)
        for is_last in (False, True):
            while True:
                ways = [
                    self.ways.get(v, "") if is_kept else short(_CARRIED, start, turn)
                    for v, is_kept, start, turn in zip(op.operands, kept, starts, turns, strict=True)
                ]
                for region in op.regions:
                    self._hand(op, region.arguments, region.argument_types, known, ways)
                    self.read(region)
                after = [is_known and v in self.ways for v, is_known in zip(body.results, known, strict=True)]
                if after == known:
                    break
                known = after
                self._forget(before, jumps)
            if not is_last:
                turns = [self.ways[v] if is_known else "" for v, is_known in zip(body.results, known, strict=True)]
                self._forget(before, jumps)
        self._hand(op, op.results, op.types, known, ways)

    def _forget(self, known: set[Name], jumps: int) -> None:
        """Take back what was read since."""
        del self.jumps[jumps:]
        for value in self.ways.keys() - known:
            del self.ways[value]

    def _read_regions(self, op: Op) -> None:
        """Branches, and regions that are handed the operands."""
        for region in op.regions:
            if len(region.arguments) == len(op.operands):
                known = [v in self.ways for v in op.operands]
                ways = [self.ways.get(v, "") for v in op.operands]
                self._hand(op, region.arguments, region.argument_types, known, ways)
            self.read(region)
        is_chosen = len(op.regions) > 1
        given = [[region.results[k] for region in op.regions] for k in range(len(op.results))]
        known = [all(v in self.ways for v in (*each, *(op.operands[:1] if is_chosen else ()))) for each in given]
        ways = []
        for each, is_known in zip(given, known, strict=True):
            found = {self.ways[v] for v in each} if is_known else {""}
            ways.append(found.pop() if len(found) == 1 else self._code(op))
        self._hand(op, op.results, op.types, known, ways)

    def _hand(
        self,
        op: Op,
        values: Sequence[Name],
        types: Sequence[TensorType],
        known: Sequence[bool],
        ways: Sequence[str],
    ) -> None:
        """Note what of the values that an operation hands to its regions, or gives, hangs on no argument."""
        for k, (value, type_, is_known, way) in enumerate(zip(values, types, known, ways, strict=True)):
            self.types[value] = type_
            if is_known:
                self.ways[value] = way if is_float(type_.dtype) else ""
                self.unseen.add(value)
                self._along[value] = frozenset(range(len(type_.shape)))
                self._leaves[value] = frozenset({value})
                self._sources[value] = op, f"{'gives' if value in op.results else 'hands'} {k}"

    def _add(self, op: Op) -> None:
        before = self._way_of_all(op)
        if is_jump := self._is_jump(op):
            self.jumps.append(op)
        along = self._varies(op)
        way = self._way(op) if self.rounds(op) else before
        is_unseen = not self.unseen.isdisjoint(op.operands) or (is_jump and op.name in CHOOSES)
        is_own = op.name not in _KEEPS_ROOTS if not way else op.name in _TAKES_ANOTHER
        made_of = frozenset[Name]().union(*(self._leaves[v] for v in op.operands))
        for v in op.results:
            leaves = frozenset({v} if along else ()) if is_own else made_of
            self._note(op, v, way if is_float(self.types[v].dtype) else "", along, leaves, is_unseen=is_unseen)

    def _hand_on(self, op: Op) -> None:
        """Values that are given as they are, each by itself."""
        is_all = all(v in self.ways for v in op.operands)
        for v, same in zip(op.results, op.operands, strict=True):
            if same in self.ways:
                is_unseen = same in self.unseen or not is_all  # only the whole operation can be evaluated
                self._note(op, v, self.ways[same], self._along[same], self._leaves[same], is_unseen=is_unseen)

    def _decide(self, op: Op) -> None:
        """What is put in an order, taken from, or divided, by numbers that hang on no argument."""
        asked = decisive(op)
        if asked and all(v in self.ways for v in asked) and self._is_jump(op):
            self.jumps.append(op)

    def _note(
        self, op: Op, value: Name, way: str, along: frozenset[int], leaves: frozenset[Name], *, is_unseen: bool
    ) -> None:
        self.ops[value], self.ways[value], self._along[value], self._leaves[value] = op, way, along, leaves
        if is_unseen:
            self.unseen.add(value)

    def _varies(self, op: Op) -> frozenset[int]:
        """The dimensions along which a result varies, or may."""
        shape = op.types[0].shape
        every = frozenset(k for k, size in enumerate(shape) if size > 1)
        if op.name == "iota":
            return every & {int(op.attributes["iota_dimension"])}
        if op.name == "constant":
            return every if len(elements_once(op.attributes["value"])) != 1 else frozenset()
        if op.name == "broadcast_in_dim":
            to = op.attributes["broadcast_dimensions"]
            return every & {int(to[k]) for k in self._along[op.operands[0]]}
        if op.name == "transpose":
            order = [int(k) for k in op.attributes["permutation"]]
            return every & {k for k, old in enumerate(order) if old in self._along[op.operands[0]]}
        same = [v for v in op.operands if len(self.types[v].shape) == len(shape)]
        if op.regions or op.name in COLLECTIVES or not op.operands or len(same) < len(op.operands):
            is_part = op.name in ("dynamic_slice", "dynamic_update_slice")
            return every if not is_part else every & frozenset[int]().union(*(self._along[v] for v in same))
        is_pointwise = all(self.types[v].shape == shape for v in op.operands) or op.name == "slice"
        return every & frozenset[int]().union(*(self._along[v] for v in op.operands)) if is_pointwise else every

    def _way_of_all(self, op: Op) -> str:
        """How the numbers of several operands were made, of which each element of the result is one."""
        floats = [v for v in op.operands if is_float(self.types[v].dtype)]
        found = sorted({self.ways[v] for v in floats} - {""})
        if not found:
            return ""
        others = [v for v in floats if not self.ways[v] and self._along[v]]
        if op.name in PUTS_TOGETHER and (len(found) > 1 or others):
            return short(self.structure_of(op))
        return found[0] if len(found) == 1 else short("all", *found)

    def _is_jump(self, op: Op) -> bool:
        if op.name in DECIDED:
            return any(self.ways[v] for v in decisive(op) if is_float(self.types[v].dtype))
        return self.compares_or_rounds(op) and any(self.ways[v] for v in op.operands)

    def compares_or_rounds(self, op: Op) -> bool:
        """Whether an operation compares floats, or makes something else than a float of them."""
        if op.name not in JUMPS or not is_float(self.types[op.operands[0]].dtype):
            return False
        return op.name != "convert" or is_integer(op.types[0].dtype) or op.types[0].dtype == "i1"

    def rounds(self, op: Op) -> bool:
        """Whether floats of the type may give another number than the operation is of real ones."""
        dtype = op.types[0].dtype
        if (
            op.name in FILLS
            or op.name in SELECTS
            or op.name in TOP_K
            or is_identity(op)
            or op.name in JUMPS - {"convert"}
            or not is_float(dtype)
        ):
            return False
        if op.name in ("all_reduce", "reduce", "reduce_scatter") and all(
            inner.name in _EXTREMA for inner in op.regions[0].ops
        ):
            return False
        if op.name != "convert":
            return True
        old = self.types[op.operands[0]].dtype
        return mantissa_bits(dtype) < (mantissa_bits(old) if is_float(old) else _WIDE)

    def _way(self, op: Op) -> str:
        varying = [v for v in op.operands if self._along[v]]
        if self._is_ambiguous(varying):
            return short(self.structure_of(op))
        is_told = len({self._along[v] for v in varying}) > 1
        made = [self.ways[v] or str(self.number(v)) for v in op.operands]
        if is_told:
            made = [f"{way} {sorted(self._along[v])}" for way, v in zip(made, op.operands, strict=True)]
        made = sorted(made) if op.name in ("add", "multiply") else made
        return short(plain_name(op.name), op.types[0].dtype, *made)

    def _is_ambiguous(self, varying: Sequence[Name]) -> bool:
        """Whether operands vary along one dimension and are made of different numbers, which a way does not tell."""
        return any(
            self._along[a] & self._along[b] and self._are_other(self._leaves[a], self._leaves[b])
            for n, a in enumerate(varying)
            for b in varying[:n]
        )

    def _are_other(self, some: frozenset[Name], others: frozenset[Name]) -> bool:
        return some != others and set(map(self.structure, some)) != set(map(self.structure, others))

    def way_to(self, jump: Op) -> str:
        """How the operands of a jump were made, each of them."""
        return short(*in_order(jump, (self.ways[v] or str(self.number(v)) for v in jump.operands if v in self.ways)))

    def kinds_to(self, jump: Op) -> str:
        """By which operations the operands of a jump were made, in whichever order."""
        return short(*sorted({self._kind(op) for op in self.made_of(jump.operands) if self.rounds(op)}))

    def _kind(self, op: Op) -> str:
        """An operation that rounds, without what it is of but for numbers."""
        numbers = (self.number(v) for v in op.operands if not self.ways[v])
        return " ".join((plain_name(op.name), op.types[0].dtype, *sorted(str(n) for n in numbers if n is not None)))

    def number(self, value: Name) -> Any:
        """The one number that a constant holds; None of all else."""
        op, types = self.ops.get(value), list[str]()
        while op is not None and op.operands and (op.name in KEEPS_SPLATS or op.name == "convert"):
            types += [op.types[0].dtype] * (op.name == "convert")
            value = op.operands[op.results.index(value) if len(op.operands) == len(op.results) else 0]
            op = self.ops.get(value)
        found = elements_once(op.attributes["value"]) if op is not None and op.name == "constant" else None
        if found is None or len(found) != 1:
            return None
        for dtype in types[::-1]:
            if dtype not in DTYPES or not np.isfinite(found.astype(complex)).all():
                return None
            with np.errstate(over="ignore"):  # an infinity then
                found = found.astype(DTYPES[dtype])
        return found[0]

    def made_of(self, values: Iterable[Name]) -> list[Op]:
        """The operations that make those values, and all that they are made of, in order."""
        needed, found = set(values), []
        for op in reversed({op.results: op for op in self.ops.values()}.values()):
            if needed.intersection(op.results):
                needed.update(op.operands)
                found.append(op)
        return found[::-1]

    def structure(self, value: Name) -> str:
        """All that a value is computed by: the same of two modules where they compute it by the same code."""
        waiting = [value]
        while waiting:
            top = waiting[-1]
            op = self.ops.get(top)
            ahead = [v for v in op.operands if v not in self._structures] if op is not None else []
            if top in self._structures:
                waiting.pop()
            elif ahead:
                waiting += ahead
            else:
                self._structures[top] = self._structure(top, op)
        return self._structures[value]

    def _structure(self, value: Name, op: Op | None) -> str:
        if op is not None:
            return short(self.structure_of(op), str(op.results.index(value)))
        source = self._sources.get(value)
        return "?" if source is None else short(self._code(source[0]), source[1])

    def structure_of(self, op: Op) -> str:
        """The same of all results of an operation."""
        return text(op, {v: self.structure(v) for v in op.operands})

    def _code(self, op: Op) -> str:
        """An operation with regions, and how what it is handed is computed."""
        return short(text(op, {v: self.structure(v) for v in used(op) if v in self.ops}))


def text(op: Op, known: Mapping[Name, str]) -> str:
    """An operation as a text: with the structures of what it is of, and with numbers for names in its regions."""
    names = dict(known)
    regions = [_region(region, names) for region in op.regions]
    attributes = sha256(repr(fingerprint(dict(op.attributes))).encode()).hexdigest()
    given = [names.get(v, "?") for v in op.operands]
    return short(op.name, attributes, str(op.types), *given, *regions)


def _region(function: Function, names: dict[Name, str]) -> str:
    names |= {v: f"#{len(names) + k}" for k, v in enumerate(function.arguments)}
    parts = [str(function.argument_types)]
    for op in function.ops:
        parts.append(text(op, names))
        names |= {v: f"#{len(names) + k}" for k, v in enumerate(op.results)}
    return short(*parts, *(names.get(v, "?") for v in function.results))


def in_order(jump: Op, told: Iterable[str]) -> list[str]:
    """What is told of a jump's operands, the one first that is asked whether it is greater."""
    found, direction = list(told), jump.attributes.get("comparison_direction")
    if direction in ("EQ", "NE"):
        return sorted(found)
    return found[::-1] if direction in ("LT", "GE") else found


def _hands_on(op: Op) -> bool:
    """Whether an operation gives each of its operands as it is."""
    return len(op.operands) == len(op.results) and (op.name == "optimization_barrier" or is_identity(op))


def is_function(op: Op) -> bool:
    """Whether an operation is a function of its operands, or of nothing but the device, in types that numpy has."""
    is_between = op.name in COLLECTIVES
    if (op.name == "custom_call" and not is_identity(op)) or (communicates_itself(op) and not is_between):
        return False
    if is_new(op) or not op.results:
        return False
    if any(is_float(type_.dtype) and type_.dtype not in DTYPES for type_ in op.types):
        return False
    if not op.operands:
        return op.name in FILLS or op.name in DEVICE_NUMBERS
    return set(used(op)) <= set(op.operands)


def short(*parts: str) -> str:
    """A name for those parts in that order, and for no others."""
    return sha256("\n".join(parts).encode()).hexdigest()[:16]
