"""Tables of constants, taken for what the other module computes: positions that numpy encoded, windows, slopes.

One program has numpy compute `cos(position / 10000**(k/8))` in double precision and holds the numbers; the other one
computes them in single precision, each device those of its own positions. Over the reals these are other numbers. So a
value that depends on no argument is read as a part of a table of the other module, each device's at its own offset,
where intervals that hold what it computes (`closed_values`: numbers that are written down may be rounded, and so is
every operation) meet those that the table's numbers may be rounded from, element by element. A named assumption says
so. Whether that stays a rounding, `amplified` says, of the module with the table and of the one with the formula.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import prod

import numpy as np
import numpy.typing as npt

from hlo_verify.evaluate.interpret import mesh_devices
from hlo_verify.evaluate.intervals import interval, is_point
from hlo_verify.evaluate.maps import Array
from hlo_verify.evaluate.numbers import is_float
from hlo_verify.limits import allows
from hlo_verify.passes.chain.closed_values import Closed, closed_values, enclosure_of, enclosures
from hlo_verify.passes.chain.constant_values import Key
from hlo_verify.program.ir import Fresh, Function, Module, Name, Op, TensorType, fresh_in, operations, used
from hlo_verify.program.op_families import DEVICE_NUMBERS, REGION
from hlo_verify.session import Session

WIDE = 1e-4
"""How wide the intervals of a value may be, of its largest element: beyond that nothing is told by them."""

FAR_OFF = 1e-3
"""How far off an element may be, of itself, and still be one that is rounded."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Numbers that a module holds, or computes of constants alone, and the operations that give them."""

    op: Op
    type: TensorType
    numbers: Array
    """Intervals that hold them."""
    made_by: tuple[Op, ...]

    @property
    def said(self) -> str:
        return f"the constant {self.type}" if self.op.name == "constant" else f"{self.op.name} ({self.op.location})"


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A value as a part of a table: which of its dimensions are those of the table, and where it begins on each device
    (one row a device, or one for all)."""

    value: Closed
    table: Table
    dimensions: tuple[int | None, ...]
    """For each dimension of the table that of the value, or None where it has one element of it."""
    offsets: npt.NDArray[np.int64]
    is_exact: bool
    near_zero: float
    """The greatest element of the table, if some of those that are there are rather a rounding of 0; else 0."""
    is_opposite: bool = False

    # What `amplified` asks of what stands for a rounded number:

    @property
    def is_rounded(self) -> bool:
        return not self.is_exact

    @property
    def roundings(self) -> int:
        return 1

    @property
    def dtype(self) -> str:
        return self.value.type.dtype

    @property
    def key(self) -> Key:
        return self.dtype, str(self.table.made_by[-1].results[0]).encode()

    @property
    def meaning(self) -> str:
        opposite = "the opposite of " if self.is_opposite else ""
        said = f"{opposite}{self.table.said} is what {self.value.op.name} ({self.value.op.location}) computes"
        return f"a part of {said}" if self.table.type != self.value.type else said


@np.errstate(all="ignore")
def parts(first: Module, second: Module, devices: tuple[int, int], session: Session) -> dict[Name, Part]:
    """Values of the second module that are parts of tables of the first, but for roundings: of those that something is
    computed of that depends on arguments, or else of what they are computed of."""
    closed = closed_values(second.main)
    wanted = _first_of_all(second.main, closed)
    if not wanted or not allows("joined_constants", len(wanted)):
        return {}
    tables = list(_tables(first, devices[0], session))
    if not tables or not allows("joined_constants", len(tables)):
        return {}
    found: dict[Name, Part] = {}
    numbers = enclosures(second, (v for v in closed.values() if v.is_computed), devices[1], session)
    seen: set[Name] = set()
    while wanted:
        value = wanted.pop()
        if value.name in seen:
            continue
        seen.add(value.name)
        part = None
        if value.name in numbers:
            for table in tables:
                session.meter.charge(table.numbers.size + numbers[value.name].size)
                part = _part_of(value, numbers[value.name], table)
                if part is not None:
                    break
        if part is not None:
            found[value.name] = part
        else:
            wanted += [closed[v] for v in value.op.operands if v in closed and closed[v].is_computed]
    return found


def _first_of_all(function: Function, closed: Mapping[Name, Closed]) -> list[Closed]:
    """The computed values that something uses that depends on arguments, and such results."""
    found: dict[Name, Closed] = {}
    for op in operations(function):
        if op.name != REGION and not (op.results and all(v in closed for v in op.results)):
            found.update((v, closed[v]) for v in used(op) if v in closed)
    found.update((v, closed[v]) for v in function.results if v in closed)
    return [value for value in found.values() if value.is_computed]


# Tables


def _tables(module: Module, devices: int, session: Session) -> Iterator[Table]:
    """Of those that are written down, and of those that a module for one device computes."""
    for op in operations(module.main):
        if op.name == "constant" and _is_table(op.types[0]):
            numbers = enclosure_of(op.attributes["value"], op.types[0].dtype)
            if _varies(numbers[None]):
                yield Table(op, op.types[0], numbers, (op,))
    if devices > 1 or (mesh_devices(module.main) or 1) > 1:
        return
    closed = closed_values(module.main)
    alone = {v.name: v for v in closed.values() if v.is_computed and v.is_alone and _is_table(v.type)}
    for name, numbers in enclosures(module, alone.values(), devices, session).items():
        made_by = _made_by(name, closed)
        numbered = any(op.name in DEVICE_NUMBERS or op.regions for op in made_by)
        if len(numbers) == 1 and not numbered and _varies(numbers) and _is_narrow(numbers):
            yield Table(alone[name].op, alone[name].type, numbers[0], made_by)


def _is_table(type_: TensorType) -> bool:
    size = prod(type_.shape)
    return is_float(type_.dtype) and size > 1 and allows("enclosed_elements", size)


def _varies(numbers: Array) -> bool:
    """Whether elements are surely not all one number."""
    return bool(numbers["low"].max() > numbers["high"].min())


def _is_narrow(numbers: Array) -> bool:
    """Whether intervals are narrow enough to tell something."""
    low, high = numbers["low"], numbers["high"]
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        return False
    return bool((high - low).max() <= WIDE * max(np.abs(low).max(), np.abs(high).max()))


def _made_by(name: Name, closed: Mapping[Name, Closed]) -> tuple[Op, ...]:
    """The operations that give a value that depends on no argument, in order."""
    ops: dict[int, Op] = {}

    def visit(name: Name) -> None:
        op = closed[name].op
        if id(op) not in ops:
            for operand in sorted(used(op)):
                visit(operand)
            ops[id(op)] = op

    visit(name)
    return tuple(ops.values())


# Places


def _part_of(value: Closed, numbers: Array, table: Table) -> Part | None:
    """The part of a table that a value is on each device; None where it is none. `numbers` are [devices, *shape]."""
    if value.type.dtype != table.type.dtype or len(value.op.results) > 1 or value.op.name == REGION:
        return None
    if not _varies(numbers) or not _is_narrow(numbers):
        return None
    shape, sizes = numbers.shape[1:], table.type.shape
    own = [k for k, size in enumerate(shape) if size > 1]
    for chosen in permutations(range(len(sizes)), len(own)):
        dimensions: list[int | None] = [None] * len(sizes)
        for k, dimension in zip(own, chosen, strict=True):
            dimensions[dimension] = k
        spans = [1 if k is None else shape[k] for k in dimensions]
        if any(span > size for span, size in zip(spans, sizes, strict=True)):
            continue
        inside = numbers.reshape(len(numbers), *(shape[k] for k in own))
        order = [0, *(1 + own.index(k) for k in dimensions if k is not None)]
        inside = inside.transpose(order).reshape(len(numbers), *spans)
        for is_opposite in (False, True):
            found = _offsets(table.numbers, _opposite(inside) if is_opposite else inside)
            if found is not None:
                return Part(value, table, tuple(dimensions), *found, is_opposite)
    return None


def _opposite(numbers: Array) -> Array:
    return interval(-numbers["high"], -numbers["low"])


def _offsets(table: Array, values: Array) -> tuple[npt.NDArray[np.int64], bool, float] | None:
    """Where the values of each device begin in a table, whether they are exactly what is there, and the greatest of the
    table if some are nearly 0; None where they are not there. One row for all devices where one will do."""
    spans = values.shape[1:]
    places = _places(table, values[0])
    every = [place for place in places if all(_is_at(table, each, place) for each in values)]
    rows = [min(every or places, key=lambda place: _preference(place, spans), default=None)]
    for each in values[1:] if not every else ():
        if rows[-1] is None:
            return None
        rows.append(_next_place(table, each, rows))
    if rows[-1] is None:
        return None
    offsets = np.array(rows, np.int64)
    windows = np.broadcast_to(offsets, (len(values), len(spans)))
    there = [(each, table[_window(row, spans)]) for each, row in zip(values, windows, strict=True)]
    exact = all(is_point(each).all() and is_point(part).all() for each, part in there)
    largest = float(np.abs(table["high"]).max()) if any(_are_near_zero(*both) for both in there) else 0.0
    return offsets.reshape(len(rows), len(spans)), exact, largest


def _are_near_zero(some: Array, others: Array) -> bool:
    """Whether some of these numbers may be far off for how large they are, though they are none of the largest."""
    low, high = np.minimum(some["low"], others["low"]), np.maximum(some["high"], others["high"])
    return bool((high - low > FAR_OFF * np.minimum(np.abs(low), np.abs(high))).any())


Place = tuple[int, ...]


def _places(table: Array, values: Array) -> list[Place]:
    """Where in a table each of those numbers may be what is there."""
    counts = [size - span + 1 for size, span in zip(table.shape, values.shape, strict=True)]
    ends = [tuple(n * (size - 1) // 2 for size in values.shape) for n in range(3)]
    near = np.ones(counts, np.bool_)
    for end in ends:
        near &= _meet(table[_window(end, counts)], values[end])
    places = np.argwhere(near)
    if not allows("joined_constants", len(places)):
        return []
    return [place for place in map(tuple, places.tolist()) if _is_at(table, values, place)]


def _next_place(table: Array, values: Array, rows: Sequence[Place | None]) -> Place | None:
    """Where in a table the numbers of another device are: as far from the last one's as that is from the one before,
    or elsewhere. A table has parts for all devices, and is looked through for few."""
    last, before = rows[-1], rows[-2] if len(rows) > 1 else None
    if last is not None and before is not None:
        place = tuple(2 * n - m for n, m in zip(last, before, strict=True))
        is_as_good = _preference(place, values.shape)[0] <= _preference(last, values.shape)[0]
        if is_as_good and _is_at(table, values, place):
            return place
    return min(_places(table, values), key=lambda place: _preference(place, values.shape), default=None)


def _is_at(table: Array, values: Array, place: Place) -> bool:
    """Whether those numbers may be what is at a place of a table."""
    spans = zip(place, values.shape, table.shape, strict=True)
    if any(at < 0 or at + span > size for at, span, size in spans):
        return False
    return bool(_meet(table[_window(place, values.shape)], values).all())


def _meet(some: Array, others: Array) -> Array:
    return np.asarray((some["low"] <= others["high"]) & (some["high"] >= others["low"]))


def _window(row: Iterable[int], spans: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(int(start), int(start) + span) for start, span in zip(row, spans, strict=True))


def _preference(place: Place, spans: Sequence[int]) -> tuple[int, Place]:
    """The least is taken where several will do: shards begin at multiples of their size."""
    return sum(start % span for start, span in zip(place, spans, strict=True)), place


# Writing it out


def with_tables(module: Module, found: Mapping[Name, Part]) -> Module:
    """The module with parts of tables in place of what it computes."""
    main = _rewritten(module.main, found, fresh_in(module.main))
    notes = tuple(f"{part.meaning}, rounded" for part in found.values() if part.is_rounded)
    return replace(module, main=main, notes=tuple(dict.fromkeys((*module.notes, *notes))))


def _rewritten(function: Function, found: Mapping[Name, Part], fresh: Fresh) -> Function:
    ops: list[Op] = []
    for op in function.ops:
        part = found.get(op.results[0]) if op.results else None
        if part is not None:
            ops += _written_out(part, op, fresh)
        else:
            regions = tuple(_rewritten(region, found, fresh) for region in op.regions)
            ops.append(replace(op, regions=regions) if regions else op)
    return replace(function, ops=tuple(ops))


def _written_out(part: Part, op: Op, fresh: Fresh) -> list[Op]:
    """The operations that give a part of a table."""
    ops: list[Op] = []

    def add(name: str, operands: Sequence[Name], shape: Sequence[int], dtype: str, **attributes: object) -> Name:
        new = fresh.one()
        type_ = TensorType(tuple(shape), dtype)
        ops.append(Op(name, tuple(operands), (new,), (type_,), attributes, location=op.location, source=op.source))
        return new

    names: dict[Name, Name] = {}
    for made in part.table.made_by:
        names.update((old, fresh.one()) for old in made.results)
        operands = tuple(names[v] for v in made.operands)
        ops.append(replace(made, operands=operands, results=tuple(names[v] for v in made.results)))
    table = names[part.table.made_by[-1].results[0]]
    shape, dtype = part.value.type.shape, part.dtype
    spans = tuple(1 if k is None else shape[k] for k in part.dimensions)
    if len(part.offsets) == 1:
        first = tuple(map(int, part.offsets[0]))
        ends = tuple(start + span for start, span in zip(first, spans, strict=True))
        steps = (1,) * len(spans)
        here = add("slice", [table], spans, dtype, start_indices=first, limit_indices=ends, strides=steps)
    else:
        device = add("partition_id", [], (), "ui32")
        starts = []
        for column in part.offsets.T:
            rows = add("constant", [], (len(column),), "i32", value=column.astype(np.int32))
            one = add("dynamic_slice", [rows, device], (1,), "i32", slice_sizes=(1,))
            starts.append(add("reshape", [one], (), "i32"))
        here = add("dynamic_slice", [table, *starts], spans, dtype, slice_sizes=spans)
    kept = [k for k in part.dimensions if k is not None]
    if kept != sorted(kept):
        flat = add("reshape", [here], [shape[k] for k in kept], dtype)
        order = tuple(kept.index(k) for k in sorted(kept))
        here = add("transpose", [flat], [shape[k] for k in sorted(kept)], dtype, permutation=order)
    if part.is_opposite:
        here = add("negate", [here], ops[-1].types[0].shape, dtype)
    add("reshape", [here], shape, dtype)
    ops[-1] = replace(ops[-1], results=op.results)
    return ops
