"""Elementwise operations on block-constant tensors: their common refinement, then the function on the values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from hlo_verify.evaluate import balls, functions, intervals, numbers, undefined
from hlo_verify.evaluate.balls import BALLS
from hlo_verify.evaluate.blocks import Blocks, aligned, compact, replaced, scalar
from hlo_verify.evaluate.intervals import INTERVALS
from hlo_verify.evaluate.maps import Array, Maps
from hlo_verify.evaluate.nearly import decided, nearly
from hlo_verify.evaluate.numbers import storage, width, wrapped
from hlo_verify.evaluate.state import Place, Rule, Run
from hlo_verify.evaluate.unknown import UnknownError
from hlo_verify.program.ir import IN_FLOATS, MADE_BY, Function, Op
from hlo_verify.program.op_families import KEEPS_SPLATS, plain_name


def broadcast(blocks: Blocks, shape: Sequence[int], maps: Maps) -> Blocks:
    """A scalar as a tensor of a shape; a tensor of that shape as it is."""
    if blocks.shape == tuple(shape):
        return blocks
    if blocks.shape:
        raise UnknownError(f"shapes {blocks.shape} and {tuple(shape)}")
    values = blocks.values.reshape((-1,) + (1,) * len(shape))
    return Blocks((blocks.classes[0], *(maps.constant(n) for n in shape)), values)


def apply(op: Op, dtypes: list[str], args: Sequence[Blocks], run: Run) -> Blocks:
    """An elementwise operation."""
    shape = op.types[0].shape
    args = [broadcast(a, shape, run.maps) for a in args]
    if op.name == "multiply" and len(args) == 2 and (_is_lost(*args) or _is_lost(*args[::-1])):
        return scalar(0, shape, storage(op.types[0].dtype, run.real), args[0].devices, run.maps)
    classes, values = aligned(args, run.maps, run.fits)
    wide = max(storage(op.types[0].dtype, run.real).itemsize, *(v.itemsize if v.size > 1 else 1 for v in values), 1)
    run.spend(math.prod(np.broadcast_shapes(*(v.shape for v in values))) * wide / 8)
    return Blocks(classes, filled(_applied(op, dtypes, values, run), len(classes)))


def _is_lost(zero: Blocks, other: Blocks) -> bool:
    """Whether the product with an operand that is 0 everywhere is 0: nothing of the other is infinite, or no number."""
    if zero.values.size != 1 or zero.values.dtype == object or other.values.dtype == object:
        return False
    if zero.values.dtype == INTERVALS:
        bounds = [each[side] for each in (zero.values, other.values) for side in ("low", "high")]
        return not any(bound.any() for bound in bounds[:2]) and all(np.isfinite(bound).all() for bound in bounds[2:])
    return not zero.values.any() and bool(np.isfinite(other.values).all())


def _applied(op: Op, dtypes: list[str], values: list[Array], run: Run) -> Array:
    if run.is_enclosed:
        if IN_FLOATS in op.attributes:
            near = zip(values, dtypes, strict=True)
            values = [decided(each) if run.decides else nearly(each, dtype) for each, dtype in near]
        has_fixed_amount = bool(op.operands) and op.operands[-1] in run.fixed
        note = partial(run.note, op=op)
        found = undefined.apply(op, dtypes, values, note, run.real, has_fixed_amount=has_fixed_amount)
        if run.has_domains and found.dtype == BALLS and not run.independent.issuperset(op.operands):
            return undefined.within_domain(found, values, note)
        return found
    return functions.apply(op, dtypes, values, run.real)


def filled(values: Array, rank: int) -> Array:
    """The array, of that rank."""
    return np.asarray(values).reshape((1,) * (rank - values.ndim) + values.shape)


def _elementwise(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    return [apply(op, kinds_of(op, run), args, run)]


def kinds_of(op: Op, run: Run) -> list[str]:
    """The element types of the operands."""
    return [run.types[v].dtype for v in op.operands]


def _bitcast(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    """Narrow elements of a last dimension together are a wide one, the least significant first."""
    old, new = kinds_of(op, run)[0], op.types[0].dtype
    (a,) = args
    if width(old) == width(new):
        return [apply(op, [old], args, run)]
    if run.is_enclosed and MADE_BY in op.attributes and undefined.is_zero_at(a.values).any():
        run.note(undefined.SIGN, op)
        raise UnknownError(undefined.SIGN)
    bits = _to_bits(a.values, old, run).astype(np.uint64)
    if width(old) > width(new):
        count = width(old) // width(new)
        parts = [(bits >> np.uint64(n * width(new))) & np.uint64((1 << width(new)) - 1) for n in range(count)]
        values = _of_bits(np.stack(parts, axis=-1), new, run)
        return [Blocks((*a.classes, run.maps.distinct(count)), values)]
    whole = np.take(bits, a.classes[-1], axis=-1)
    total = sum(whole[..., n] << np.uint64(n * width(old)) for n in range(whole.shape[-1]))
    return [Blocks(a.classes[:-1], _of_bits(np.asarray(total), new, run))]


def _to_bits(values: Array, dtype: str, run: Run) -> Array:
    return undefined.to_bits(values, dtype) if run.is_enclosed else functions.to_bits(values, dtype)


def _of_bits(bits: Array, dtype: str, run: Run) -> Array:
    return undefined.of_bits(bits, dtype, run.real) if run.is_enclosed else functions.of_bits(bits, dtype, run.real)


def scalar_function(region: Function, run: Run) -> Callable[[Sequence[Array]], list[Array]]:
    """A region of elementwise operations on scalars, as a function of arrays that broadcast.

    Raises `UnknownError` where it has other operations, or depends on the device through what it takes from outside.
    """
    names = functions.NAMES

    def function(arguments: Sequence[Array]) -> list[Array]:
        environment: dict[int, Array] = dict(zip(region.arguments, arguments, strict=True))
        dtypes: dict[int, str] = dict(zip(region.arguments, (t.dtype for t in region.argument_types), strict=True))

        def read(value: int) -> Array:
            if value not in environment:
                outer = run.environment.get(value)
                if outer is None or outer.values.size != 1:
                    raise UnknownError("a region of scalars that takes values from around it")
                environment[value] = outer.values.reshape(())
            return environment[value]

        for op in region.ops:
            if op.name == "constant":
                found = np.asarray(op.attributes["value"]).reshape(-1)[0]
                environment[op.results[0]] = literal(np.asarray(found), op.types[0].dtype, run)
            elif op.types and op.types[0].shape == () and plain_name(op.name) in names:
                operands = [read(v) for v in op.operands]
                types = [dtypes[v] if v in dtypes else run.types[v].dtype for v in op.operands]
                environment[op.results[0]] = _applied(op, types, operands, run)
            elif op.name in KEEPS_SPLATS and not op.types[0].shape:
                environment.update({r: read(v) for r, v in zip(op.results, op.operands, strict=True)})
            else:
                raise UnknownError(f"a region of scalars with {op.name}")
            dtypes.update({r: t.dtype for r, t in zip(op.results, op.types, strict=True)})
        return [read(v) for v in region.results]

    return function


def literal(array: Array, dtype: str, run: Run) -> Array:
    """A constant's elements as they are held."""
    stored = storage(dtype, run.real)
    if not run.is_enclosed or stored != run.real:
        return array.astype(stored)
    radius = run.literals(array, dtype)
    return balls.around(array, radius) if stored == BALLS else intervals.around(array.astype(float), radius)


def converted(values: Array, old: str, new: str, run: Run) -> Array:
    """The element type changed."""
    if run.is_enclosed:
        return undefined.converted(values, old, new, run.real)
    return numbers.converted(values, old, new, run.real)


def _map(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    classes, values = aligned(args, run.maps, run.fits)
    run.spend(math.prod(np.broadcast_shapes(*(v.shape for v in values))))
    found = scalar_function(op.regions[0], run)(values)
    return [Blocks(classes, filled(v, len(classes))) for v in found]


# Values that operations begin with


def _constant(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    kept = run.constants.get(id(op))
    if kept is not None and kept[1].devices == place.devices:
        return [kept[1]]
    (type_,) = op.types
    array = np.asarray(op.attributes["value"])
    dtype = storage(type_.dtype, run.real)
    if array.size == 0:
        return [scalar(0, type_.shape, dtype, place.devices, run.maps)]
    splat = all(stride == 0 or size == 1 for stride, size in zip(array.strides, array.shape, strict=True))
    if splat:
        return [
            scalar(literal(array.reshape(-1)[:1], type_.dtype, run)[0], type_.shape, dtype, place.devices, run.maps)
        ]
    run.spend(array.size)
    values = wrapped(literal(array, type_.dtype, run), type_.dtype, run.real)[None]
    result = Blocks((run.maps.constant(place.devices), *(run.maps.distinct(n) for n in type_.shape)), values)
    run.constants[id(op)] = (op, compact(result, run.maps))
    return [run.constants[id(op)][1]]


def _iota(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    (type_,) = op.types
    k = op.attributes["iota_dimension"]
    dtype = storage(type_.dtype, run.real)
    whole = scalar(0, type_.shape, dtype, place.devices, run.maps)
    size = type_.shape[k]
    if 0 in type_.shape:
        return [whole]
    run.spend(size)
    shape = [1] * (len(type_.shape) + 1)
    shape[k + 1] = size
    values = wrapped(np.arange(size), type_.dtype, run.real).reshape(shape)
    return [replaced(whole, k + 1, run.maps.distinct(size), values)]


def _identity(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    return list(args)


def _token(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    return [scalar(False, type_.shape, np.bool_, place.devices, run.maps) for type_ in op.types]


def _size(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    size: Any = args[0].shape[op.attributes["dimension"]]
    return [scalar(size, (), storage(op.types[0].dtype, run.real), place.devices, run.maps)]


RULES: dict[str, Rule] = {
    **dict.fromkeys(functions.NAMES, _elementwise),
    "bitcast_convert": _bitcast,
    "map": _map,
    "constant": _constant,
    "iota": _iota,
    "dynamic_iota": _iota,
    "get_dimension_size": _size,
    "optimization_barrier": _identity,
    "after_all": _token,
    "sdy.sharding_constraint": _identity,
    "sdy.reshard": _identity,
}
