"""What a module computes of constants alone, device by device: intervals that hold its numbers, however often they were
rounded on the way.

A number that is written down may be rounded from any within half a unit in its last place, unless few bits say it; what
an operation gives is rounded once more, as its element type is. So that evaluation knows of these roundings, each
result is multiplied by a 1 that is one unit wide.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from hlo_verify.evaluate.blocks import every_element
from hlo_verify.evaluate.interpret import evaluate
from hlo_verify.evaluate.intervals import INTERVALS, around
from hlo_verify.evaluate.maps import Array
from hlo_verify.evaluate.numbers import is_float
from hlo_verify.evaluate.state import Limits
from hlo_verify.limits import allows, limit_of
from hlo_verify.passes.refute.folding import CONSTANTS
from hlo_verify.passes.refute.literals import is_plain, precision
from hlo_verify.program.element_types import DTYPES
from hlo_verify.program.ir import Fresh, Function, Module, Name, Op, TensorType, fresh_in, used
from hlo_verify.program.op_families import (
    FILLS,
    JUMPS,
    KEEPS_SPLATS,
    LOOKUPS,
    MOVES,
    PARTS,
    REGION,
    RESHAPES,
    SLICES,
    is_new,
)
from hlo_verify.session import Session

EXACT = CONSTANTS | KEEPS_SPLATS | MOVES | RESHAPES | SLICES | PARTS | FILLS | LOOKUPS | {"convert", "select"}
"""Operations whose results have no rounding of their own."""


@dataclass(frozen=True, slots=True, eq=False)
class Closed:
    """A value that depends on no argument."""

    name: Name
    type: TensorType
    op: Op
    is_computed: bool
    """Whether a number in it was computed."""
    is_alone: bool
    """Whether it is outside of all regions, and so one for all devices."""


def closed_values(function: Function) -> dict[Name, Closed]:
    """The values of a function and of its manual regions, that depend on no argument; but for what is made of numbers
    with fewer digits than the type has, and of comparisons and cuts of numbers that had fewer on the way: intervals say
    nothing of these digits."""
    found: dict[Name, Closed] = {}
    narrowed: set[Name] = set()

    def walk(function: Function, *, is_alone: bool) -> None:
        for op in function.ops:
            if op.name == REGION:
                (region,) = op.regions
                for inner, outer, type_ in zip(region.arguments, op.operands, region.argument_types, strict=True):
                    if outer in found:
                        narrowed.update({inner} if outer in narrowed else ())
                        found[inner] = Closed(inner, type_, op, found[outer].is_computed, False)
                walk(region, is_alone=False)
            elif op.results and found.keys() >= used(op) and not is_new(op) and op.name != "reduce_precision":
                if _narrows(op, found) or not narrowed.isdisjoint(op.operands):
                    if op.name in JUMPS - {"convert"} or not is_float(op.types[0].dtype):
                        continue
                    narrowed.update(op.results)
                computes = op.name not in EXACT and any(is_float(type_.dtype) for type_ in op.types)
                is_computed = computes or any(found[v].is_computed for v in op.operands)
                for value, type_ in zip(op.results, op.types, strict=True):
                    found[value] = Closed(value, type_, op, is_computed, is_alone)

    walk(function, is_alone=True)
    return found


def _narrows(op: Op, found: Mapping[Name, Closed]) -> bool:
    """Whether a conversion leaves floats with fewer digits."""
    if op.name != "convert" or not is_float(op.types[0].dtype):
        return False
    old = found[op.operands[0]].type.dtype
    return is_float(old) and precision(op.types[0].dtype) < precision(old)


def enclosures(module: Module, values: Iterable[Closed], devices: int, session: Session) -> dict[Name, Array]:
    """Of each of those values that can be evaluated, intervals that hold its elements: [devices, *shape]. What does not
    fit in with those before it is left out."""
    room = _Room()
    floats = {value.name: value.type for value in values if is_float(value.type.dtype)}
    watched = {name: type_ for name, type_ in floats.items() if room.takes(prod(type_.shape))}
    if not watched:
        return {}
    closed = closed_values(module.main)
    main = _with_roundings(_part(module.main, closed), fresh_in(module.main))
    given = [None] * len(main.arguments)
    alone = replace(module, main=main)
    limits = Limits(limit_of("enclosed_elements"), limit_of("glance_work"), heed=session.check)
    evaluation = evaluate(
        alone, given, devices, watch=watched, only=(), real=INTERVALS, literals=_roundings, limits=limits
    )
    session.meter.charge(evaluation.work)
    room = _Room()
    return {
        name: every_element(blocks)
        for name, blocks in evaluation.watched.items()
        if blocks is not None
        and blocks.values.dtype == INTERVALS
        and blocks.shape == watched[name].shape
        and room.takes(blocks.devices * prod(blocks.shape))
    }


@dataclass(slots=True)
class _Room:
    """For elements that are held at one time."""

    taken: int = 0

    def takes(self, elements: int) -> bool:
        """Whether so many more have room; then they take it."""
        fits = allows("enclosed_elements", self.taken + elements)
        self.taken += elements if fits else 0
        return fits


def _part(function: Function, closed: Collection[Name]) -> Function:
    """The function without operations whose results depend on arguments, and without results; of manual regions, what
    is inside of them."""
    ops = []
    for op in function.ops:
        if op.name == REGION:
            ops.append(_part_of_region(op, closed))
        elif op.results and all(value in closed for value in op.results):
            ops.append(op)
    return replace(function, ops=tuple(ops), results=())


def _part_of_region(op: Op, closed: Collection[Name]) -> Op:
    """The manual region without what it is handed that depends on arguments: nothing makes that any more."""
    (region,) = op.regions
    kept = [n for n, value in enumerate(op.operands) if value in closed]
    region = replace(
        _part(region, closed),
        arguments=tuple(region.arguments[n] for n in kept),
        argument_types=tuple(region.argument_types[n] for n in kept),
    )
    shardings = {"in_shardings": tuple(op.attributes["in_shardings"][n] for n in kept), "out_shardings": ()}
    operands = tuple(op.operands[n] for n in kept)
    attributes = {**op.attributes, **shardings}
    return replace(op, operands=operands, results=(), types=(), attributes=attributes, regions=(region,))


def _with_roundings(function: Function, fresh: Fresh) -> Function:
    """The function with every result that is rounded multiplied by a 1 of its type."""

    def rounded(op: Op) -> Iterator[Op]:
        regions = tuple(_with_roundings(r, fresh) for r in op.regions) if op.name == REGION else op.regions
        if op.name in EXACT or len(op.results) != 1 or not is_float(op.types[0].dtype):
            yield replace(op, regions=regions)
            return
        (value,), (type_,) = op.results, op.types
        inexact, one = fresh.some(2)
        array = np.broadcast_to(np.array(1, DTYPES[type_.dtype]), type_.shape)
        yield replace(op, results=(inexact,), regions=regions)
        yield Op("constant", (), (one,), (type_,), {"value": array}, location=op.location)
        yield Op("multiply", (inexact, one), (value,), (type_,), location=op.location)

    return replace(function, ops=tuple(each for op in function.ops for each in rounded(op)))


def _roundings(array: Array, dtype: str) -> Array:
    """How far off constants may be: a 1 is taken for the rounding of some result."""
    values, bits = np.abs(np.asarray(array).astype(float)), precision(dtype)
    is_exact = is_plain(values, bits) & (values != 1)
    return np.where(is_exact | ~np.isfinite(values), 0.0, values * 2.0**-bits)


def enclosure_of(array: Array, dtype: str) -> Array:
    """Intervals of what the numbers of a constant may be rounded from."""
    values = np.asarray(array).astype(float)
    bits = precision(dtype)
    off = np.where(is_plain(values, bits) | ~np.isfinite(values), 0.0, np.abs(values) * 2.0**-bits)
    return around(values, off)
