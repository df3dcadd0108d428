"""reduce: over classes, weighted by how often they occur, or element by element where the reducer is not recognised."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from hlo_verify.evaluate.balls import identities, shared
from hlo_verify.evaluate.blocks import Blocks, aligned, spread
from hlo_verify.evaluate.elementwise import converted, filled, scalar_function
from hlo_verify.evaluate.maps import Array, ClassMap, unique_rows
from hlo_verify.evaluate.numbers import wrapped
from hlo_verify.evaluate.state import Place, Rule, Run
from hlo_verify.evaluate.totals import is_enclosure, rearranged, ufunc, weighted_sum
from hlo_verify.program.ir import Function, Name, Op

MONOIDS: dict[str, str] = {
    "add": "add",
    "multiply": "multiply",
    "maximum": "maximum",
    "minimum": "minimum",
    "and": "and",
    "or": "or",
}
TRUTHS = {"add": "or", "maximum": "or", "or": "or", "multiply": "and", "minimum": "and", "and": "and"}


def monoid(region: Function) -> str | None:
    """The operation that a reducer of one operand is; None where it is something else."""
    if len(region.ops) != 1 or len(region.arguments) != 2:
        return None
    (op,) = region.ops
    if op.name not in MONOIDS or op.results != region.results or set(op.operands) != set(region.arguments):
        return None
    if op.types[0] != region.argument_types[0]:
        return None
    return TRUTHS.get(op.name) if op.types[0].dtype == "i1" else op.name


def joined(reducer: str, values: Array, axes: Sequence[int]) -> Array:
    """All elements along some axes, combined."""
    for axis in sorted(axes, reverse=True):
        values = np.asarray(ufunc(reducer, values).reduce(values, axis=axis))
    return values


def promoted(op: Op, args: Sequence[Blocks], values: Sequence[Name], run: Run) -> list[Blocks]:
    """The operands of a reduction in the types of its results, which the reducer works on."""
    dtypes = [t.dtype for t in op.types] * 2
    return [
        Blocks(a.classes, converted(a.values, run.types[v].dtype, new, run)) if run.types[v].dtype != new else a
        for a, v, new in zip(args, values, dtypes, strict=True)
    ]


def reduced(reducer: str, values: Array, weights: Sequence[Array], axes: Sequence[int]) -> Array:
    """The reduction over some axes, each class of which occurs `weights` times; of objects, once for the same ones."""
    if not axes or values.dtype != object:
        return _reduced(reducer, values, weights, axes)
    rest = [k for k in range(values.ndim) if k not in axes]
    shape = [values.shape[k] for k in rest]
    rows = np.transpose(identities(values), [*rest, *axes]).reshape(math.prod(shape), -1)
    return shared(np.asarray(_reduced(reducer, values, weights, axes), object), unique_rows(rows)[1].reshape(shape))


def _reduced(reducer: str, values: Array, weights: Sequence[Array], axes: Sequence[int]) -> Array:
    if not axes:
        return values
    if reducer in ("maximum", "minimum", "and", "or"):
        return joined(reducer, values, axes)
    joint = np.ones((1,) * values.ndim, np.int64)
    for axis, weight in zip(axes, weights, strict=True):
        joint = joint * weight.reshape(tuple(-1 if k == axis else 1 for k in range(values.ndim)))
    if reducer == "add":
        rest = [k for k in range(values.ndim) if k not in axes]
        inner = rearranged(values, [*rest, *axes], (*(values.shape[k] for k in rest), -1))
        return weighted_sum(inner, joint.reshape(-1))
    return np.asarray(joined("multiply", power(values, joint), axes))


def power(values: Array, exponents: Array) -> Array:
    """Elements to the power of natural numbers; integers wrap."""
    result, base, left, times = np.ones_like(values), values, exponents, ufunc("multiply", values)
    while left.any():
        result = np.where(left & 1, times(result, base), result)
        base, left = times(base, base), left >> 1
    return result


def _reduce(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    count = len(args) // 2
    args = promoted(op, args, op.operands, run)
    sources, inits = args[:count], args[count:]
    axes = sorted(k + 1 for k in op.attributes["dimensions"])
    (region,) = op.regions
    reducer = monoid(region)
    if reducer is None or count > 1:
        return _folded(op, sources, inits, axes, run)
    (a,), (init,), dtype = sources, inits, op.types[0].dtype
    run.toil(a.values.size)
    if any(not len(a.classes[k]) for k in axes):
        maps = [c for k, c in enumerate(a.classes) if k not in axes]
        return [Blocks((init.classes[0], *maps[1:]), filled_scalar(init, len(maps)))]
    weights = [run.maps.weights(a.classes[k]) for k in axes]
    values = wrapped(reduced(reducer, a.values, weights, axes), dtype, run.real)
    result = Blocks(tuple(c for k, c in enumerate(a.classes) if k not in axes), values)
    return [_combined(reducer, result, init, dtype, run)]


def filled_scalar(init: Blocks, rank: int) -> Array:
    """A scalar's values, for a tensor of another rank."""
    return init.values.reshape((-1,) + (1,) * (rank - 1))


def _combined(reducer: str, a: Blocks, init: Blocks, dtype: str, run: Run) -> Blocks:
    classes, (x, y) = aligned([a, widened(init, a, run)], run.maps, run.fits)
    return Blocks(classes, wrapped(ufunc(reducer, x if is_enclosure(x) else y)(x, y), dtype, run.real))


def widened(init: Blocks, like: Blocks, run: Run) -> Blocks:
    """A scalar in the shape of a tensor."""
    maps = (init.classes[0], *(run.maps.constant(len(c)) for c in like.classes[1:]))
    return Blocks(maps, filled_scalar(init, len(maps)))


def _folded(op: Op, sources: list[Blocks], inits: list[Blocks], axes: list[int], run: Run) -> list[Blocks]:
    """Any reducer: halves of the elements combined, again and again, and the initial values at last."""
    function = scalar_function(op.regions[0], run)
    sources = [_spread(a, axes, run) for a in sources]
    classes, arrays = aligned(sources, run.maps, run.fits)
    common = np.broadcast_shapes(*(x.shape for x in arrays))
    run.spend(math.prod(common) * len(arrays))
    rest = [k for k in range(len(classes)) if k not in axes]
    arrays = [
        np.transpose(np.broadcast_to(x, common), [*axes, *rest]).reshape(-1, *(common[k] for k in rest)) for x in arrays
    ]
    maps: tuple[ClassMap, ...] = tuple(classes[k] for k in rest)
    empty = any(not len(classes[k]) for k in axes)
    found = [] if empty else fold(function, arrays)
    shaped = Blocks(maps, np.zeros((1,) * len(maps)))
    firsts = [widened(init, shaped, run) for init in inits]
    if empty:
        return firsts
    all_classes, values = aligned([*firsts, *(Blocks(maps, x) for x in found)], run.maps, run.fits)
    return [
        Blocks(all_classes, wrapped(filled(x, len(maps)), type_.dtype, run.real))
        for x, type_ in zip(function(values), op.types, strict=True)
    ]


def fold(function: Callable[[Sequence[Array]], list[Array]], arrays: Sequence[Array]) -> list[Array]:
    """The reduction over the first axis, in an order of its own that keeps earlier elements on the left."""
    while len(arrays[0]) > 1:
        half = len(arrays[0]) // 2
        pairs = [x[: 2 * half : 2] for x in arrays] + [x[1 : 2 * half : 2] for x in arrays]
        found = [np.broadcast_to(x, y.shape) for x, y in zip(function(pairs), pairs, strict=False)]
        odd = len(arrays[0]) % 2
        arrays = [np.concatenate([f, x[-1:]]) if odd else f for f, x in zip(found, arrays, strict=True)]
    return [x[0] for x in arrays]


def _spread(a: Blocks, axes: Sequence[int], run: Run) -> Blocks:
    for k in axes:
        run.spend(a.values.size // a.values.shape[k] * max(1, len(a.classes[k])))
        a = spread(a, k, run.maps)
    return a


RULES: dict[str, Rule] = {"reduce": _reduce}
