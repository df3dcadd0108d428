"""Sums over dimensions: contractions, convolutions, reductions. Where a dimension is spread over devices, what each of
them gets is one addend of the sum."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from hlo_verify.hlo.module import Instruction
from hlo_verify.hlo.shapes import Array
from hlo_verify.linter.placement.devices import Devices
from hlo_verify.linter.placement.elementwise import Place, multiplied, partials, product
from hlo_verify.linter.placement.values import FREE, NOTHING, Dimension, Local, Partial, Stage, Value, together

LABELS = re.compile(r"(\w+)_(\w+)->(\w+)")


def numbers(instruction: Instruction, name: str) -> tuple[int, ...]:
    """An attribute that is a list of numbers: `{0,2}`."""
    return tuple(int(k) for k in instruction.attributes.get(name, "").strip("{}").split(",") if k.strip())


def summed(
    instruction: Instruction,
    spread: Iterable[Dimension],
    place: Place,
    before: tuple[Partial, ...] = (),
    *,
    doubted: bool = False,
) -> tuple[Partial, ...]:
    """The addends that a sum over dimensions makes, and those of `before`. One that was no longer linear is a value of
    its device then, as a hidden unit is, of which the sum is over all devices."""
    labels = {label for dimension in spread if dimension for label in dimension if label >= 0}
    kept = tuple(one for one in before if one.label not in labels or one.stage is Stage.LINEAR)
    called = instruction.op_name
    made = (Partial(label, place.order, place.name, doubted=doubted, called=called) for label in sorted(labels))
    return together(kept, tuple(made))


def _is_open(dimension: Dimension) -> bool:
    """Whether a dimension that is summed may be spread in a way that is not known, as that of a broadcast may."""
    return dimension is None or dimension == FREE


def _contracted(one: Dimension, other: Dimension) -> Dimension:
    """How the dimension of two operands is spread over which is summed; nothing where they disagree."""
    if NOTHING in (one, other):
        return NOTHING if None in (one, other) or one == other or FREE in (one, other) else None
    if one is None or other is None:
        return one or other
    if -1 in one or -1 in other:
        return (one | other) - {-1}
    return one & other


def _bilinear(
    instruction: Instruction,
    given: tuple[Value, Value],
    devices: Devices,
    place: Place,
    dimensions: Sequence[Dimension],
    over: Sequence[Dimension],
) -> Value:
    one, other = given
    whole, some = product(one, other)
    return Value(
        whole,
        some | whole,
        devices.finer(one.method, other.method),
        devices.finer(one.alike, other.alike),
        tuple(dimensions),
        partials=summed(instruction, over, place, multiplied(one, other, place)),
        lost=one.lost | other.lost,
        hidden=one.hidden or other.hidden or any(map(_is_open, over)),
    )


def dot(instruction: Instruction, one: Value, other: Value, devices: Devices, place: Place) -> Value:
    """A contraction: batch dimensions first, then those of each operand that are left."""
    batch = (numbers(instruction, "lhs_batch_dims"), numbers(instruction, "rhs_batch_dims"))
    over = (numbers(instruction, "lhs_contracting_dims"), numbers(instruction, "rhs_contracting_dims"))
    left = [d for k, d in enumerate(one.dimensions) if k not in batch[0] and k not in over[0]]
    right = [d for k, d in enumerate(other.dimensions) if k not in batch[1] and k not in over[1]]
    shared = [
        a if a == b else None
        for a, b in ((one.dimensions[j], other.dimensions[k]) for j, k in zip(*batch, strict=True))
    ]
    contracted = [_contracted(one.dimensions[j], other.dimensions[k]) for j, k in zip(*over, strict=True)]
    return _bilinear(instruction, (one, other), devices, place, [*shared, *left, *right], contracted)


def convolution(instruction: Instruction, one: Value, other: Value, devices: Devices, place: Place) -> Value:
    """A convolution, as TPUs spell contractions too: a spatial dimension whose window is all of it is one that is
    contracted; one that is dilated so that each step sees one element is a batch dimension."""
    found = LABELS.fullmatch(instruction.attributes.get("dim_labels", ""))
    shapes = [shape for shape in (*instruction.given_shapes, instruction.shape) if isinstance(shape, Array)]
    if found is None or len(shapes) != 3 or len(one.dimensions) != len(found[1]):
        return _bilinear(instruction, (one, other), devices, place, [None] * len(shapes[-1].sizes), [None])
    left, right, result = found.groups()
    dimensions: list[Dimension] = []
    contracted = [_contracted(one.dimensions[left.index("f")], other.dimensions[right.index("i")])]
    for k, label in enumerate(result):
        if label == "b":
            dimensions.append(one.dimensions[left.index("b")])
        elif label == "f":
            dimensions.append(other.dimensions[right.index("o")])
        else:
            dimensions.append(_spatial(label, found.groups(), shapes, (one, other), contracted, shapes[2].sizes[k]))
    return _bilinear(instruction, (one, other), devices, place, dimensions, contracted)


def _spatial(
    label: str,
    labels: Sequence[str],
    shapes: Sequence[Array],
    given: tuple[Value, Value],
    contracted: list[Dimension],
    size: int,
) -> Dimension:
    """How a spatial dimension of the result is spread; one that is summed up goes to `contracted`."""
    j, k = labels[0].index(label), labels[1].index(label)
    one, other = given[0].dimensions[j], given[1].dimensions[k]
    large, window = shapes[0].sizes[j], shapes[1].sizes[k]
    if size == 1 and large == window > 1:
        contracted.append(_contracted(one, other))
        return frozenset()
    if size == large:
        return one if window == 1 or one == other else None
    return other if size == window and large == 1 else None


def reduction(instruction: Instruction, given: Sequence[Value], devices: Devices, place: Place, adds: bool) -> Value:
    """One operand of a reduction, over some of its dimensions: `given` is it, and what the reduction starts from. Of a
    broadcast that is spread, each device sums its own part: equal ones, that have to be added up."""
    value = given[0]
    over = numbers(instruction, "dimensions")
    kept = [d for k, d in enumerate(value.dimensions) if k not in over]
    if adds:
        addends = summed(instruction, [value.dimensions[k] for k in over], place, value.partials)
    else:
        addends = partials("maximum", given[:1], place)
    statistics = frozenset(
        Local(label, size, place.name)
        for k, (dimension, size) in enumerate(zip(value.dimensions, sizes_of(instruction), strict=False))
        if k in over and dimension and size > 1
        for label in dimension
        if label >= 0
    )
    return Value(
        value.whole,
        value.some,
        devices.finer(*(one.method for one in given)),
        devices.finer(*(one.alike for one in given)),
        tuple(kept),
        partials=addends,
        sums=value.sums if adds and FREE not in (value.dimensions[k] for k in over) else frozenset(),
        lost=value.lost,
        hidden=adds and (value.hidden or any(_is_open(value.dimensions[k]) for k in over)),
        statistics=statistics or value.statistics,
    )


def sizes_of(instruction: Instruction) -> tuple[int, ...]:
    """The sizes of the first operand, on each device."""
    shape = next(iter(instruction.given_shapes), None)
    return shape.sizes if isinstance(shape, Array) else ()
