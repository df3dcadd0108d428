"""Values whose elements are moved, taken or put somewhere."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from hlo_verify.hlo.module import Instruction
from hlo_verify.hlo.shapes import Array
from hlo_verify.linter.placement.contractions import numbers, summed
from hlo_verify.linter.placement.devices import Devices
from hlo_verify.linter.placement.dimensions import recast, reshaped
from hlo_verify.linter.placement.elementwise import Place, bent
from hlo_verify.linter.placement.values import FREE, NOTHING, Dimension, Numbers, Value, merged, together

_PADDED = re.compile(r"(-?\d+)_(-?\d+)(?:_(\d+))?")


def move(instruction: Instruction, given: Sequence[Value], devices: Devices, place: Place) -> Value | None:
    """The result of an operation that moves elements; None if it is no such operation."""
    shapes = [shape for shape in instruction.given_shapes if isinstance(shape, Array)]
    shape = instruction.shape
    if not given or len(shapes) != len(given) or not isinstance(shape, Array):
        return None
    value = given[0]
    match instruction.opcode:
        case "broadcast":
            into = numbers(instruction, "dimensions")
            dimensions = [FREE] * len(shape.sizes)
            for k, target in enumerate(into[: len(value.dimensions)]):
                dimensions[target] = value.dimensions[k]
            return value.with_dimensions(dimensions)
        case "transpose":
            return value.with_dimensions(value.dimensions[k] for k in numbers(instruction, "dimensions"))
        case "reshape" | "bitcast":
            if shapes[0].count != shape.count or len(value.dimensions) != len(shapes[0].sizes):
                return replace(value, dimensions=(None,) * len(shape.sizes))
            physical = instruction.opcode == "bitcast"
            dimensions_, lost = (
                recast(value.dimensions, shapes[0], shape)
                if physical
                else reshaped(value.dimensions, shapes[0].sizes, shape.sizes)
            )
            return replace(value, dimensions=dimensions_, lost=value.lost | lost)
        case "slice" | "dynamic-slice" | "reverse":
            return _taken(instruction, given, shapes[0], shape, devices)
        case "concatenate":
            return _concatenated(instruction, given, devices)
        case "pad":
            return _padded(instruction, given, devices)
        case "dynamic-update-slice":
            return _updated(given, shapes, devices)
        case "gather":
            return _gathered(instruction, given, shapes, devices, place)
        case "scatter":
            return _scattered(instruction, given, shapes, devices, place)
    return None


def _also(value: Value, others: Sequence[Value], devices: Devices) -> Value:
    """A value that may depend on others, and differ where they do."""
    return replace(
        value,
        method=devices.finer(value.method, *(other.method for other in others)),
        alike=devices.finer(value.alike, *(other.alike for other in others)),
    )


def _taken(instruction: Instruction, given: Sequence[Value], before: Array, after: Array, devices: Devices) -> Value:
    """Part of a value. Where each device takes another part, how it is spread is not known."""
    value = given[0]
    starts = given[1:]
    dimensions = value.dimensions
    if any(start.alike != devices.one for start in starts):
        dimensions = tuple(
            None if small != large else dimension
            for dimension, small, large in zip(dimensions, after.sizes, before.sizes, strict=True)
        )
    part = replace(
        value,
        dimensions=dimensions,
        some=value.whole if instruction.opcode != "reverse" else value.some,
        number=_element(value, starts, after),
        elements=None,
        terms=(),
        is_constant=value.is_constant and instruction.opcode == "reverse",
    )
    return _also(part, starts, devices)


def _element(value: Value, starts: Sequence[Value], after: Array) -> Numbers | None:
    """The element of a constant vector that each device takes."""
    if value.elements is None or len(starts) != 1 or after.count != 1 or starts[0].number is None:
        return value.number
    last = len(value.elements) - 1
    return tuple(value.elements[min(max(int(start), 0), last)] for start in starts[0].number)


def _concatenated(instruction: Instruction, given: Sequence[Value], devices: Devices) -> Value:
    first = given[0]
    dimensions = first.dimensions
    for other in given[1:]:
        dimensions = tuple(map(merged, dimensions, other.dimensions))
    sums = frozenset.intersection(*(value.sums for value in given))
    return Value(
        frozenset.intersection(*(value.whole for value in given)),
        NOTHING.union(*(value.some for value in given)),
        devices.finer(*(value.method for value in given)),
        devices.finer(*(value.alike for value in given)),
        dimensions,
        is_constant=all(value.is_constant for value in given),
        partials=together(*(value.partials for value in given)),
        sums=sums,
        hidden=any(value.hidden for value in given),
    )


def _padded(instruction: Instruction, given: Sequence[Value], devices: Devices) -> Value:
    """A value with another one around it, or with less than all of it."""
    value = given[0]
    amounts = [(int(low), int(high)) for low, high, _ in _PADDED.findall(instruction.attributes.get("padding", ""))]
    crops = any(low < 0 or high < 0 for low, high in amounts) if amounts else True
    padded = replace(
        value,
        whole=NOTHING,
        some=value.whole if crops else value.some,
        number=None,
        sums=frozenset(),
        terms=(),
    )
    return _also(padded, given[1:], devices)


def _updated(given: Sequence[Value], shapes: Sequence[Array], devices: Devices) -> Value:
    """A value with part of it replaced; it surely depends on that part."""
    value, update, *starts = given
    if shapes[0].sizes == shapes[1].sizes:
        return _also(update, [], devices)
    put = Value(
        value.whole & update.whole,
        value.whole | update.some,
        devices.finer(value.method, update.method),
        devices.finer(value.alike, update.alike),
        tuple(
            (merged(a, b) if a is not None and b is not None else None) if value.number is None else b
            for a, b in zip(value.dimensions, update.dimensions, strict=True)
        ),
        partials=together(value.partials, update.partials),
        sums=value.sums & update.sums,
        hidden=value.hidden or update.hidden,
    )
    return _also(put, starts, devices)


def _gathered(
    instruction: Instruction, given: Sequence[Value], shapes: Sequence[Array], devices: Devices, place: Place
) -> Value:
    """Elements from places that are looked up. Of a dimension that is spread over devices each has some of what is
    looked for: an addend, if it puts zero for what it does not have."""
    value, indices = given[0], given[1]
    offsets = numbers(instruction, "offset_dims")
    collapsed = numbers(instruction, "collapsed_slice_dims")
    collapsed += numbers(instruction, "operand_batching_dims")
    vector = int(instruction.attributes.get("index_vector_dim", "-1"))
    rest = iter(d for k, d in enumerate(value.dimensions) if k not in collapsed)
    batch = iter(d for k, d in enumerate(indices.dimensions) if k != vector)
    rank = len(instruction.shape.sizes) if isinstance(instruction.shape, Array) else 0
    dimensions: list[Dimension] = [next(rest, None) if k in offsets else next(batch, None) for k in range(rank)]
    looked_up = [value.dimensions[k] for k in numbers(instruction, "start_index_map")]
    found = replace(
        value,
        dimensions=tuple(dimensions),
        some=value.whole,
        number=None,
        terms=(),
        partials=summed(
            instruction, looked_up, place, together(value.partials, bent(indices.partials, place)), doubted=True
        ),
        hidden=True,
    )
    return _also(found, [indices], devices)


def _scattered(
    instruction: Instruction, given: Sequence[Value], shapes: Sequence[Array], devices: Devices, place: Place
) -> Value | None:
    """Updates added to places that are looked up: a sum over the dimensions of the updates that name places."""
    if len(given) != 3:
        return None
    value, indices, updates = given
    windows = numbers(instruction, "update_window_dims")
    over = [d for k, d in enumerate(updates.dimensions) if k not in windows]
    return Value(
        NOTHING,
        updates.some if indices.whole or indices.is_constant else NOTHING,
        devices.finer(value.method, updates.method, indices.method),
        devices.finer(value.alike, updates.alike, indices.alike),
        value.dimensions if value.number is None else (None,) * len(value.dimensions),
        partials=summed(instruction, over, place, together(value.partials, updates.partials)),
        hidden=value.hidden or updates.hidden or None in over,
    )
