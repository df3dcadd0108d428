"""Which comparisons and roundings of numbers that hang on no argument floats may decide otherwise than real numbers.

    floor(arange(64) / 41 * 41)       maximum(0.1 * arange(16), 0.7) > 0.7

The proof is of real arithmetic, in which the first is `arange(64)`. What floats give is one thing or the other for all
arguments, and XLA, which multiplies by 1/41, has 40 at 41: nothing may be said that holds for real numbers alone. Where
numbers are made of constants and places, the operations that made them are evaluated once more with fewer digits than
the type has, every result as an interval. Where that leaves open how a comparison or a rounding comes out, it is marked
with how its operands were made: it is the same as one of the same numbers that were made alike, and more is not known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hlo_verify.program.attributes import elements_once
from hlo_verify.program.element_types import DTYPES, finfo, is_float, is_integer, mantissa_bits, sure_digits
from hlo_verify.program.ir import IN_FLOATS, Function, Module, Name, Op, TensorType, fresh_in, used
from hlo_verify.program.op_families import (
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

if TYPE_CHECKING:
    from hlo_verify.evaluate.blocks import Blocks
    from hlo_verify.evaluate.maps import Array

ELEMENTS, WORK = 1 << 21, 3e7
"""What the numbers, two bounds each, may be and take: of more than that it is not known how they are compared."""

Floats = npt.NDArray[np.float64]

_SELECTS = MOVES | PARTS | KEEPS_SPLATS | INDEXED - {"scatter"}
_SELECTS |= frozenset("abs bitcast_convert clamp maximum minimum negate select sort".split())
"""Operations that round nothing."""
_AS_IEEE_HAS_IT = _SELECTS | frozenset("add subtract multiply constant convert".split())
"""Operations of which an exact result is what every machine has."""
_SUMS = frozenset({"dot_general", "reduce", "reduce_window", "convolution", "scatter"})
"""Operations that may add up many numbers, some of which cancel."""
_EXTREMA = ("maximum", "minimum")
_CARRIED = "what a loop carries"
_WIDE = 23
"""More binary digits than a place has."""


@dataclass(slots=True)
class _Made:
    """What is known of the values of a module that hang on no argument, as they come."""

    ops: dict[Name, Op] = field(default_factory=dict)
    types: dict[Name, TensorType] = field(default_factory=dict)
    ways: dict[Name, str] = field(default_factory=dict)
    """By which operations that round each was made, one after another; "" where there are none. What moves numbers
    about, and what is done with integers, is not told: devices do that otherwise."""
    jumps: list[Op] = field(default_factory=list)
    """Comparisons and roundings of what was rounded before."""
    carried: set[Name] = field(default_factory=set)
    """What hangs on what a loop carries: it is not evaluated."""

    def read(self, function: Function) -> None:
        for op in function.ops:
            self.types |= zip(op.results, op.types, strict=True)
            if op.name == "while":
                self._read_loop(op)
            elif op.name in RUNS_REGIONS:
                for region in op.regions:
                    self.read(region)
            elif all(v in self.ways for v in op.operands) and _is_known(op):
                self._add(op)

    def _read_loop(self, op: Op) -> None:
        """A loop, of which what it carries hangs on no argument where neither its start nor a turn does."""
        known = [v in self.ways for v in op.operands]
        before, jumps = len(self.ways), len(self.jumps)
        condition, body = op.regions
        while True:
            for region in (condition, body):
                self._carry(region.arguments, region.argument_types, known)
                self.read(region)
            after = [is_known and v in self.ways for v, is_known in zip(body.results, known, strict=True)]
            if after == known:
                break
            known = after
            del self.jumps[jumps:]
            for value in list(self.ways)[before:]:
                del self.ways[value]
        self._carry(op.results, op.types, known)

    def _carry(self, values: Sequence[Name], types: Sequence[TensorType], known: Sequence[bool]) -> None:
        """Note what of the values that a loop carries hangs on no argument."""
        for value, type_, is_known in zip(values, types, known, strict=True):
            self.types[value] = type_
            if is_known:
                self.ways[value] = _short(_CARRIED) if is_float(type_.dtype) else ""
                self.carried.add(value)

    def _add(self, op: Op) -> None:
        before = self.way_of_all(op.operands)
        if before and self._is_jump(op):
            self.jumps.append(op)
        way = self._way(op) if self.rounds(op) else before
        if not self.carried.isdisjoint(op.operands):
            self.carried.update(op.results)
        for v in op.results:
            self.ops[v], self.ways[v] = op, way

    def way_of_all(self, values: Sequence[Name]) -> str:
        """How several values were made."""
        found = sorted({self.ways[v] for v in values} - {""})
        return found[0] if len(found) == 1 else _short("all", *found) if found else ""

    def _is_jump(self, op: Op) -> bool:
        if op.name not in JUMPS or not is_float(self.types[op.operands[0]].dtype):
            return False
        return op.name != "convert" or is_integer(op.types[0].dtype) or op.types[0].dtype == "i1"

    def rounds(self, op: Op) -> bool:
        """Whether floats of the type may give another number than the operation is of real ones."""
        dtype = op.types[0].dtype
        if (
            op.name in FILLS
            or op.name in _SELECTS
            or is_identity(op)
            or op.name in JUMPS - {"convert"}
            or not is_float(dtype)
        ):
            return False
        if op.name == "reduce" and all(inner.name in _EXTREMA for inner in op.regions[0].ops):
            return False
        if op.name != "convert":
            return True
        old = self.types[op.operands[0]].dtype
        return mantissa_bits(dtype) < (mantissa_bits(old) if is_float(old) else _WIDE)

    def _way(self, op: Op) -> str:
        made = [self.ways[v] or str(self.number(v)) for v in op.operands]
        made = sorted(made) if op.name in ("add", "multiply") else made
        return _short(plain_name(op.name), op.types[0].dtype, *made)

    def kind(self, op: Op) -> str:
        """An operation that rounds, without what it is of but for numbers."""
        numbers = (self.number(v) for v in op.operands if not self.ways[v])
        return " ".join((plain_name(op.name), op.types[0].dtype, *sorted(str(n) for n in numbers if n is not None)))

    def number(self, value: Name) -> Any:
        """The one number that a constant holds; None of all else."""
        op = self.ops.get(value)
        while op is not None and op.operands and (op.name in KEEPS_SPLATS or op.name == "convert"):
            op = self.ops.get(op.operands[0])
        found = elements_once(op.attributes["value"]) if op is not None and op.name == "constant" else None
        return found[0] if found is not None and len(found) == 1 else None

    def made_of(self, jumps: Sequence[Op]) -> list[Op]:
        """Those jumps and all that they are made of, in order."""
        needed = {v for op in jumps for v in op.results}
        found = []
        for op in reversed({op.results: op for op in self.ops.values()}.values()):
            if needed.intersection(op.results):
                needed.update(op.operands)
                found.append(op)
        return found[::-1]


def _is_known(op: Op) -> bool:
    """Whether an operation is a function of its operands, or of nothing but the device, in types that numpy has."""
    if (op.name == "custom_call" and not is_identity(op)) or communicates_itself(op) or is_new(op) or not op.results:
        return False
    if any(is_float(type_.dtype) and type_.dtype not in DTYPES for type_ in op.types):
        return False
    if not op.operands:
        return op.name in FILLS or op.name in DEVICE_NUMBERS
    return set(used(op)) <= set(op.operands)


def marked(module: Module) -> Module:
    """The module with the operations marked that floats may decide otherwise."""
    made = _Made()
    made.read(module.main)
    if not made.jumps:
        return module
    open_ = dict(_undecided(module, made))
    return replace(module, main=_with_marks(module.main, open_)) if open_ else module


def _way_to(jump: Op, made: _Made) -> str:
    """How the operands of a jump were made, each of them, in whichever order they are compared."""
    return _short(*sorted(made.ways[v] or str(made.number(v)) for v in jump.operands))


def _short(*parts: str) -> str:
    """A name for those parts in that order, and for no others."""
    return sha256("\n".join(parts).encode()).hexdigest()[:16]


def _with_marks(function: Function, marks: dict[tuple[Name, ...], str]) -> Function:
    ops = []
    for op in function.ops:
        regions = tuple(_with_marks(region, marks) for region in op.regions)
        if any(new is not old for new, old in zip(regions, op.regions, strict=True)):
            op = replace(op, regions=regions)
        if op.results in marks:
            op = replace(op, attributes={**op.attributes, IN_FLOATS: marks[op.results]})
        ops.append(op)
    is_same = all(new is old for new, old in zip(ops, function.ops, strict=True))
    return function if is_same else replace(function, ops=tuple(ops))


def _kinds_to(jump: Op, made: _Made) -> str:
    """By which operations the operands of a jump were made, in whichever order."""
    return _short(*sorted({made.kind(op) for op in made.made_of([jump]) if made.rounds(op)}))


def _undecided(module: Module, made: _Made) -> Iterator[tuple[tuple[Name, ...], str]]:
    """The results of those jumps that come out one way or the other in floats, as far as is known, and how what they
    are of was made: of what is too much to be evaluated, which is hardly ever open, by which operations alone."""
    from hlo_verify.evaluate.interpret import evaluate
    from hlo_verify.evaluate.intervals import INTERVALS
    from hlo_verify.evaluate.state import Limits

    fixed = [op for op in made.jumps if made.carried.isdisjoint(op.operands)]
    carried = [op for op in made.jumps if not made.carried.isdisjoint(op.operands)]
    ops = tuple(made.made_of(fixed))
    devices = (module.partitions or 0) * module.replicas
    yield from ((op.results, _way_to(op, made)) for op in carried)
    if not fixed:
        return
    if not devices and any(op.name in DEVICE_NUMBERS for op in ops):
        yield from ((op.results, _kinds_to(op, made)) for op in fixed)
        return
    main = Function((), (), ops, tuple(op.results[0] for op in fixed))
    instead = {op.results[0]: way for op in ops if (way := _in_type(op, made)) is not None}
    main, of_sums = _with_sizes(main, made)
    found = evaluate(
        replace(module, main=main),
        [],
        max(devices, 1),
        real=INTERVALS,
        limits=Limits(elements=ELEMENTS, work=WORK, room=8 * ELEMENTS),
        instead=instead | of_sums,
    )
    for op, value in zip(fixed, found.results, strict=True):
        if not _is_decided(value):
            yield op.results, _kinds_to(op, made) if value is None else _way_to(op, made)


def _is_decided(value: Blocks | None) -> bool:
    """Whether all elements of what a jump gives are known."""
    from hlo_verify.evaluate.intervals import INTERVALS, is_point

    if value is None or value.values.dtype == object:
        return False
    return value.values.dtype != INTERVALS or bool(is_point(value.values).all())


def _in_type(op: Op, made: _Made) -> Callable[[Array], Array] | None:
    """What an operation of floats gives, of the results that it has of real numbers; None where that is the same."""
    if not is_float(op.types[0].dtype) or (op.name != "constant" and not made.rounds(op)):
        return None
    dtype = op.types[0].dtype
    off = 0.5 ** sure_digits(dtype)
    if op.name == "divide":
        return partial(_divided, by=made.number(op.operands[1]), dtype=dtype, off=off)
    is_exact = partial(_holds, digits=mantissa_bits(dtype) + 1) if op.name in _AS_IEEE_HAS_IT else np.zeros_like
    return partial(_rounded, is_exact=is_exact, off=np.nan if op.name in _SUMS else off, dtype=dtype)


def _with_sizes(main: Function, made: _Made) -> tuple[Function, dict[Name, Callable[[Array], Array]]]:
    """The function in which the addends' sizes are added up ahead of each sum, and what such sums give: off by as many
    roundings of the greatest of these as there are addends."""
    fresh, ops = fresh_in(main), list[Op]()
    found: dict[Name, Callable[[Array], Array]] = {}
    for op in main.ops:
        if _adds_up(op, made):
            source, start = op.operands
            size, total = fresh.some(2)
            type_, greatest = made.types[source], [math.inf]
            ops.append(Op("abs", (source,), (size,), (type_,)))
            ops.append(replace(op, operands=(size, start), results=(total,)))
            count = math.prod(type_.shape) // max(math.prod(op.types[0].shape), 1) + 1
            found[total] = partial(_noted, greatest=greatest)
            found[op.results[0]] = partial(_added, greatest=greatest, off=count * 0.5 ** sure_digits(type_.dtype))
        ops.append(op)
    return replace(main, ops=tuple(ops)), found


def _adds_up(op: Op, made: _Made) -> bool:
    """Whether an operation adds up elements of one tensor of floats."""
    if op.name != "reduce" or len(op.operands) != 2 or not is_float(op.types[0].dtype):
        return False
    return [inner.name for inner in op.regions[0].ops] == ["add"] and made.number(op.operands[1]) == 0


def _noted(values: Array, *, greatest: list[float]) -> Array:
    high = values["high"]
    greatest[0] = math.inf if np.isnan(high).any() else float(np.abs(high).max(initial=0.0))
    return values


def _added(values: Array, *, greatest: list[float], off: float) -> Array:
    """Sums, of which so much of the greatest sum of addends' sizes may be rounded off."""
    from hlo_verify.evaluate.intervals import interval

    off_by = greatest[0] * off if math.isfinite(greatest[0]) else np.nan
    return interval(values["low"] - off_by, values["high"] + off_by)


def _rounded(values: Array, *, is_exact: Callable[[Floats], npt.NDArray[Any]], off: float, dtype: str) -> Array:
    """Intervals that hold what floats may give in place of each number, off by so much of it where it is not exact, and
    by the least number of the type; of what is too large for it nothing is known."""
    from hlo_verify.evaluate.intervals import interval, is_point

    low, high = values["low"], values["high"]
    least, most = float(finfo(dtype).smallest_normal), float(finfo(dtype).max)
    is_held = (low == 0) | (is_exact(low).astype(np.bool_) & (np.abs(low) >= least))
    size = np.maximum(np.abs(low), np.abs(high))
    off_by = np.where(is_point(values) & is_held, 0.0, np.where(np.isnan(off), off, size * off + least))
    off_by = np.where((size > most) & np.isfinite(size), np.nan, off_by)
    return interval(low - off_by, high + off_by)


def _divided(values: Array, *, by: Any, dtype: str, off: float) -> Array:
    """The same of quotients by one number: exact are those that a compiler has as products with its inverse too."""
    from hlo_verify.evaluate.intervals import interval

    if by is None or not by:
        return _rounded(values, is_exact=np.zeros_like, off=off, dtype=dtype)
    as_held = DTYPES[dtype]
    near = (values["low"] / 2 + values["high"] / 2).astype(as_held)
    inverse = np.ones((), as_held) / np.asarray(by).astype(as_held)
    product = (near * np.asarray(by).astype(as_held)) * inverse
    is_inside = (values["low"] <= near) & (near <= values["high"]) & (product == near)
    is_inside &= _holds(near.astype(np.float64), sure_digits(dtype))
    found = interval(*(np.where(is_inside, near, values[side]) for side in ("low", "high")))
    return _rounded(found, is_exact=lambda low: is_inside & (low == near), off=off, dtype=dtype)


def _holds(values: Floats, digits: int) -> npt.NDArray[np.bool_]:
    """Which numbers have no more binary digits."""
    mantissa, _ = np.frexp(values)
    scaled = np.ldexp(mantissa, digits)
    return np.asarray(scaled == np.round(scaled))
