"""Which values of a module hang on no argument, and which of these floats have otherwise than real numbers.

A value that was rounded, or is made of such ones, is another number in floats; what it is compared with, or cut to, is
decided by that one. Behind a comparison, or a rounding to whole numbers, real arithmetic and floats say the same again,
as long as the operands are taken for what floats have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import numpy as np

from hlo_verify.passes.load.cancelling import Sums
from hlo_verify.passes.load.decisive import TOP_K, decisive
from hlo_verify.passes.load.exact_numbers import exactly
from hlo_verify.passes.load.integer_bounds import IntegerBounds, Turns, digits_of
from hlo_verify.program.attributes import elements_once, fingerprint
from hlo_verify.program.element_types import DTYPES, is_float, is_inexact, is_integer, mantissa_bits
from hlo_verify.program.ir import Function, Name, Op, TensorType, used
from hlo_verify.program.op_families import (
    BORDERS,
    CHOOSES,
    COLLECTIVES,
    DECIDED,
    DEVICE_NUMBERS,
    FILLS,
    FORWARDS,
    INDEXED,
    JUMPS,
    KEEPS_SPLATS,
    MOVES,
    PARTS,
    REGION,
    RUNS_REGIONS,
    communicates_itself,
    has_effect,
    is_identity,
    is_new,
)

SELECTS = MOVES | FORWARDS | PARTS | KEEPS_SPLATS | INDEXED - {"scatter"}
SELECTS |= frozenset("abs bitcast_convert clamp complex imag maximum minimum negate real select sort".split())
"""Operations that round nothing."""
PUTS_TOGETHER = frozenset("complex concatenate dynamic_update_slice pad select".split())
"""Those of them whose elements, or their parts, are of one operand or of another one, whatever these are."""
_EXTREMA = ("maximum", "minimum")
_OF_WHOLES = ("add", "multiply", "subtract")
"""What floats have of whole numbers as it is, as long as they have digits for it."""


@dataclass(slots=True)
class Made:
    """What is known of the values of a module that hang on no argument, as they come."""

    types: Mapping[Name, TensorType]
    """Of all values of the module."""
    devices: int = 0
    """How many run it; 0 if that is not known."""
    ops: dict[Name, Op] = field(default_factory=dict)
    known: set[Name] = field(default_factory=set)
    """The values that hang on no argument."""
    rounded: set[Name] = field(default_factory=set)
    """Those of them that floats may have otherwise than real numbers: what was rounded, and what is made of it."""
    jumps: list[Op] = field(default_factory=list)
    """Comparisons and roundings of what was rounded before, and what is not steady in it."""
    unseen: set[Name] = field(default_factory=set)
    """What hangs on what loops carry, or regions are handed or give, or on complex numbers: it is not evaluated."""
    _handed: dict[Name, tuple[Name, ...]] = field(default_factory=dict)
    """Of a value that a region is handed or gives, those that it may be."""
    _exact: dict[Name, Any] = field(default_factory=dict)
    """Of a value that is computed of single numbers, exactly, the one that it is."""
    bounds: IntegerBounds = field(init=False)
    _cancelled: dict[Name, tuple[Name, ...]] = field(default_factory=dict)
    """Of a sum in which arguments cancel, what is added beside them."""
    _sums: Sums = field(init=False)
    _structures: dict[Name, str] = field(default_factory=dict)
    _sources: dict[Name, tuple[Op, str]] = field(default_factory=dict)
    """Of a value that no operation gives by itself, the one whose regions do, and which of its values it is."""

    def __post_init__(self) -> None:
        self.bounds = IntegerBounds(self.types, self.number, self.devices)
        self._sums = Sums(self.known)

    def read(self, function: Function) -> None:
        for op in function.ops:
            if op.name == "while":
                self._read_loop(op)
            elif op.name in RUNS_REGIONS and op.regions:
                self._read_regions(op)
            elif _hands_on(op):
                self._hand_on(op)
            elif self.known.issuperset(op.operands) and is_function(op):
                self._add(op)
            elif op.name in DECIDED:
                self._decide(op)
            else:
                self._cancel(op)

    def _read_loop(self, op: Op) -> None:
        """A loop, of which what it carries hangs on no argument where neither its start nor a turn does, and was
        rounded where its start or a turn is."""
        body = op.regions[1]
        of = tuple(zip(op.operands, body.results, strict=True))
        known, rounded = ([v in group for v in op.operands] for group in (self.known, self.rounded))
        before, jumps = set(self.known), len(self.jumps)
        turns = Turns(op, self.bounds, self.ops)
        while True:
            turns.begin()
            for region in op.regions:
                self._hand(op, region.arguments, of, known, rounded)
                self.read(region)
            known_after = [was and v in self.known for was, v in zip(known, body.results, strict=True)]
            rounded_after = [was or v in self.rounded for was, v in zip(rounded, body.results, strict=True)]
            if turns.hold() and (known_after, rounded_after) == (known, rounded):
                break
            known, rounded = known_after, rounded_after
            del self.jumps[jumps:]
            self.rounded -= self.known - before
            self.known &= before
        self._hand(op, op.results, of, known, rounded)
        turns.end()

    def _read_regions(self, op: Op) -> None:
        """Branches, and regions that are handed the operands."""
        for region in op.regions:
            if len(region.arguments) == len(op.operands):
                handed = [(v,) for v in op.operands]
                known, rounded = ([v in group for v in op.operands] for group in (self.known, self.rounded))
                self._hand(op, region.arguments, handed, known, rounded)
                self.bounds.hand(region.arguments, handed)
                self._see_through(op, region)
            self.read(region)
        chooses = op.operands[:1] if len(op.regions) > 1 else ()
        given = [tuple(region.results[k] for region in op.regions) for k in range(len(op.results))]
        known = [self.known.issuperset((*each, *chooses)) for each in given]
        self._hand(op, op.results, given, known, [not self.rounded.isdisjoint(each) for each in given])
        self.bounds.hand(op.results, given)

    def _see_through(self, op: Op, region: Function) -> None:
        """Note how that is made which a manual region is handed as it is, whole on every device: each of its values is
        evaluated by itself."""
        for n, (inner, outer) in enumerate(zip(region.arguments, op.operands, strict=True)):
            made = self.ops.get(outer)
            if made is None or outer in self.unseen or made.regions or len(made.results) > 1 or op.name != REGION:
                continue
            sharding = op.attributes["in_shardings"][n]
            if self.types[inner] == self.types[outer] and (sharding is None or sharding.addend_count == 1):
                self.ops[inner] = replace(made, results=(inner,))
                self.unseen.discard(inner)

    def _hand(
        self,
        op: Op,
        values: Sequence[Name],
        of: Sequence[tuple[Name, ...]],
        known: Sequence[bool],
        rounded: Sequence[bool],
    ) -> None:
        """Note what of the values that an operation hands to its regions, or gives, hangs on no argument."""
        for k, (value, given, is_known, is_rounded) in enumerate(zip(values, of, known, rounded, strict=True)):
            if is_known:
                self._note(value, is_rounded=is_rounded, is_unseen=True)
                self._handed[value] = given
                self._sources[value] = op, f"{'gives' if value in op.results else 'hands'} {k}"

    def _add(self, op: Op) -> None:
        self.bounds.measure(op)
        is_jump = self._is_jump(op)
        if is_jump:
            self.jumps.append(op)
        is_rounded = self.rounds(op) or not (self.rounded.isdisjoint(op.operands) or self.compares_or_rounds(op))
        is_unseen = not self.unseen.isdisjoint(op.operands) or (is_jump and op.name in CHOOSES)
        for v in op.results:
            self.ops[v] = op
            self._note(v, is_rounded=is_rounded, is_unseen=is_unseen)
            if not is_rounded and (found := exactly(op, self.number)) is not None:
                self._exact[v] = found

    def _hand_on(self, op: Op) -> None:
        """Values that are given as they are, each by itself."""
        is_all = self.known.issuperset(op.operands)
        for v, same in zip(op.results, op.operands, strict=True):
            if same in self.known:
                is_unseen = same in self.unseen or not is_all  # only the whole operation can be evaluated
                self.ops[v] = op
                self._note(v, is_rounded=same in self.rounded, is_unseen=is_unseen)
                self.bounds.hand([v], [[same]])

    def _cancel(self, op: Op) -> None:
        """A sum in which all that hangs on arguments cancels: 0, or what floats leave of what was added beside it."""
        parts = self._sums.of(op) if is_inexact(op.types[0].dtype if op.types else "") else None
        if parts is None or parts.times:
            return
        (value,), (type_,) = op.results, op.types
        if parts.beside or type_.dtype not in DTYPES:
            self.ops[value], self._cancelled[value] = op, parts.beside
            self._note(value, is_rounded=True, is_unseen=True)
        else:
            zeros = np.broadcast_to(np.zeros((), DTYPES[type_.dtype]), type_.shape)
            self.ops[value] = Op("constant", (), op.results, op.types, {"value": zeros})
            self._note(value, is_rounded=False, is_unseen=False)

    def _decide(self, op: Op) -> None:
        """What is put in an order, taken from, or divided, by numbers that hang on no argument."""
        if self.known.intersection(decisive(op)) and self._is_jump(op):
            self.jumps.append(op)

    def _note(self, value: Name, *, is_rounded: bool, is_unseen: bool) -> None:
        dtype = self.types[value].dtype
        self.known.add(value)
        if is_rounded and is_inexact(dtype):
            self.rounded.add(value)
        if is_unseen or (is_inexact(dtype) and not is_float(dtype)):
            self.unseen.add(value)

    def _is_jump(self, op: Op) -> bool:
        if op.name in DECIDED:
            return not self.rounded.isdisjoint(decisive(op))
        return self.compares_or_rounds(op) and not self.rounded.isdisjoint(op.operands)

    def compares_or_rounds(self, op: Op) -> bool:
        """Whether an operation compares floats, or makes something else than a float of them."""
        if op.name not in JUMPS or not is_inexact(self.types[op.operands[0]].dtype):
            return False
        return op.name != "convert" or is_integer(op.types[0].dtype) or op.types[0].dtype == "i1"

    def rounds(self, op: Op) -> bool:
        """Whether floats of the type may give another number than the operation is of real ones."""
        if not any(is_inexact(type_.dtype) for type_ in op.types) or is_identity(op):
            return False
        if op.name == "iota":
            (type_,), along = op.types, int(op.attributes["iota_dimension"])
            places = (0, type_.shape[along] - 1)
            return not is_float(type_.dtype) or digits_of(places) > mantissa_bits(type_.dtype) + 1
        if op.name in FILLS | SELECTS | TOP_K | JUMPS - {"convert"}:
            return False
        if op.name in ("all_reduce", "reduce", "reduce_scatter") and all(
            inner.name in _EXTREMA for inner in op.regions[0].ops
        ):
            return False
        if op.name == "convert":
            return self._loses_digits(op)
        is_whole = op.name in _OF_WHOLES and op.results[0] in self.bounds.ranges
        return not is_whole and exactly(op, self.number) is None

    def _loses_digits(self, op: Op) -> bool:
        """Whether a conversion is one to a type with fewer digits than its whole numbers may have, or than floats."""
        (value,) = op.operands
        old, new = (
            dtype.removeprefix("complex<").removesuffix(">") for dtype in (self.types[value].dtype, op.types[0].dtype)
        )
        if is_float(old):
            return mantissa_bits(new) < mantissa_bits(old) and op.results[0] not in self.bounds.ranges
        return self.bounds.digits(value) > mantissa_bits(new) + 1

    def leading_to(self, values: Iterable[Name]) -> list[Name]:
        """Those values, and what they are made of, that were rounded since numbers were compared or cut last."""
        waiting, found = list(values), dict[Name, None]()
        while waiting:
            value = waiting.pop()
            if value in self.rounded and value not in found:
                found[value] = None
                waiting += self._handed[value] if value in self._handed else self.ops[value].operands
                waiting += self._cancelled.get(value, ())
        return list(found)

    def number(self, value: Name) -> Any:
        """The one number that a constant holds, or that is computed of such exactly; None of all else."""
        op, types = self.ops.get(value), list[str]()
        while op is not None and op.operands and (op.name in KEEPS_SPLATS or op.name == "convert"):
            types += [op.types[0].dtype] * (op.name == "convert")
            value = op.operands[op.results.index(value) if len(op.operands) == len(op.results) else 0]
            op = self.ops.get(value)
        found = None
        if op is not None and op.name == "constant":
            found = elements_once(op.attributes["value"]).reshape(-1)
        if value in self._exact:
            found = np.array([self._exact[value]])
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
        return short(text(op, {v: self.structure(v) for v in used(op) if v in self.known}))


def text(op: Op, known: Mapping[Name, str]) -> str:
    """An operation as a text: with the structures of what it is of, and with numbers for names in its regions."""
    return short(str(op.types), code(op, known), *(known.get(v, "?") for v in op.operands))


def code(op: Op, known: Mapping[Name, str]) -> str:
    """The same without what it is of, and types."""
    names = dict(known)
    regions = [_region(region, names) for region in op.regions]
    attributes = sha256(repr(fingerprint(dict(op.attributes))).encode()).hexdigest()
    return short(op.name, attributes, *regions)


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
    if (communicates_itself(op) and op.name not in COLLECTIVES) or has_effect(op) or is_new(op) or not op.results:
        return False
    if op.attributes.get("call_target_name") in BORDERS:  # what lies behind them is looked at as what arguments are
        return False
    if any(is_float(type_.dtype) and type_.dtype not in DTYPES for type_ in op.types):
        return False
    if not op.operands:
        return op.name in FILLS or op.name in DEVICE_NUMBERS
    return set(used(op)) <= set(op.operands)


def short(*parts: str) -> str:
    """A name for those parts in that order, and for no others."""
    return sha256("\n".join(parts).encode()).hexdigest()[:16]
