"""Windows that slide over a tensor: reduce_window and select_and_scatter.

Windows that read the same classes are one class; dimensions that they do not slide along keep theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from hlo_verify.evaluate.balls import BALLS, zeros
from hlo_verify.evaluate.blocks import Blocks, aligned, refine, spread, taken
from hlo_verify.evaluate.elementwise import scalar_function
from hlo_verify.evaluate.intervals import INTERVALS
from hlo_verify.evaluate.maps import Array, ClassMap, unique_rows
from hlo_verify.evaluate.numbers import exact, wrapped
from hlo_verify.evaluate.reductions import monoid, promoted, widened
from hlo_verify.evaluate.state import Place, Rule, Run
from hlo_verify.evaluate.totals import is_zero, running_sum, ufunc
from hlo_verify.evaluate.unknown import UnknownError
from hlo_verify.program.ir import Op


@dataclass(frozen=True, slots=True)
class Slide:
    """Where windows read along one dimension: `source[o, w]` is the index for offset w of window o, -1 in padding.

    `running` is 1 where window o holds the elements up to number o, -1 where it holds those from it on; `source` says
    nothing then. It is 0 otherwise.
    """

    axis: int
    source: Array
    running: int = 0

    @property
    def trivial(self) -> bool:
        return self.source.shape[1] == 1 and np.array_equal(self.source[:, 0], np.arange(len(self.source)))


def slide(size: int, out: int, width: int, stride: int, low: int, base: int, dilation: int) -> Array:
    """The index that each offset of each window reads, -1 where that is padding or a hole."""
    at = np.arange(out)[:, None] * stride + np.arange(width) * dilation - low
    source = at // base
    return np.where((at % base == 0) & (source >= 0) & (source < size), source, -1)


def _slides(op: Op, source: Sequence[int], out: Sequence[int], *, running: bool = False) -> list[Slide]:
    """What is trivial is left out; with `running`, running windows are told as such."""
    attributes, rank = op.attributes, len(source)
    ones = (1,) * rank
    sizes = attributes["window_dimensions"]
    strides = attributes.get("window_strides") or ones
    base = attributes.get("base_dilations") or ones
    dilations = attributes.get("window_dilations") or ones
    padding = attributes.get("padding")
    found = []
    for k in range(rank):
        low = 0 if padding is None else int(padding[k][0])
        plain = source[k] == out[k] == sizes[k] > 1 and strides[k] == base[k] == dilations[k] == 1
        if running and plain and low in (0, source[k] - 1):
            found.append(Slide(k + 1, np.zeros((out[k], 0), np.int64), 1 if low else -1))
            continue
        found.append(Slide(k + 1, slide(source[k], out[k], sizes[k], strides[k], low, base[k], dilations[k])))
    return [s for s in found if s.running or not (s.trivial and len(s.source) == source[s.axis - 1])]


def read(classes: ClassMap, source: Array) -> Array:
    """The class that each offset of each window reads; -1 where that is padding."""
    return np.where(source < 0, -1, classes[source]) if len(classes) else np.full_like(source, -1)


def _spread(a: Blocks, slides: Sequence[Slide], run: Run) -> Blocks:
    for s in slides:
        run.spend(a.values.size // a.values.shape[s.axis] * max(1, len(a.classes[s.axis])))
        a = spread(a, s.axis, run.maps)
    return a


def padded_by_one(values: Array, axis: int, filler: Array) -> Array:
    """The values with one more at the end of an axis, which index -1 then reads."""
    shape = (*values.shape[:axis], 1, *values.shape[axis + 1 :])
    return np.concatenate([values, np.broadcast_to(filler, shape).astype(values.dtype)], axis=axis)


def _reduce_window(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    count = len(args) // 2
    args = promoted(op, args, op.operands, run)
    reducer = monoid(op.regions[0]) if count == 1 else None
    adds = reducer == "add" and is_zero(args[1].values)
    slides = _slides(op, args[0].shape, op.types[0].shape, running=adds)
    sources = [_spread(a, [s for s in slides if s.running], run) for a in args[:count]]
    classes, values = aligned([*sources, *(widened(i, sources[0], run) for i in args[count:])], run.maps, run.fits)
    common = np.broadcast_shapes(*(v.shape for v in values))
    arrays = [np.broadcast_to(v, common) for v in values[:count]]
    firsts = values[count:]
    maps = list(classes)
    for n, s in enumerate(slides):
        maps[s.axis], slides[n] = _alike(classes[s.axis], s, run)
    if reducer is not None:
        found = [_separable(reducer, arrays[0], firsts[0], slides, run)]
    else:
        found = _offset_by_offset(op, arrays, firsts, slides, run)
    return [Blocks(tuple(maps), wrapped(v, t.dtype, run.real)) for v, t in zip(found, op.types, strict=True)]


def _alike(classes: ClassMap, s: Slide, run: Run) -> tuple[ClassMap, Slide]:
    """Windows that read the same classes, as one; where windows read, by classes."""
    if s.running:
        return classes, s
    matrix = read(classes, s.source)
    first, which = unique_rows(matrix)
    return run.maps.intern(which), Slide(s.axis, matrix[first])


def _separable(reducer: str, values: Array, first: Array, slides: Sequence[Slide], run: Run) -> Array:
    """A monoid's windows, one dimension after the other; the initial value stands in the padding."""
    combine = ufunc(reducer, values)
    neutral = _neutral(reducer, values.dtype)
    plain = bool((first == neutral).all())
    whole = values
    if not plain:  # where a window has padding or not matters for its initial value: element by element
        return _any_order(combine, values, first, slides, run)
    for s in slides:
        whole = _along(reducer, whole, s, neutral, run)
    return np.asarray(combine(whole, first.reshape(first.shape)))


def _along(reducer: str, values: Array, s: Slide, neutral: Array, run: Run) -> Array:
    width = s.source.shape[1]
    run.toil(values.size * max(1, width) / 16)
    if s.running > 0:
        return running_sum(values, s.axis)
    if s.running < 0:
        return np.flip(running_sum(np.flip(values, s.axis), s.axis), s.axis)
    longer = padded_by_one(values, s.axis, neutral)
    result = np.take(longer, s.source[:, 0], axis=s.axis)
    for w in range(1, width):
        result = ufunc(reducer, values)(result, np.take(longer, s.source[:, w], axis=s.axis))
    return result


_NEUTRAL = {"add": 0.0, "multiply": 1.0, "maximum": -np.inf, "minimum": np.inf}


def _neutral(reducer: str, dtype: np.dtype) -> Array:
    if dtype in (BALLS, INTERVALS):
        return exact(_NEUTRAL[reducer], dtype)
    if reducer in ("add", "or"):
        return np.zeros((), dtype)
    if reducer == "multiply":
        return np.ones((), dtype)
    if reducer == "and":
        return np.array(True) if dtype.kind == "b" else np.array(-1).astype(dtype)
    low = reducer == "maximum"
    if dtype.kind == "f":
        return np.array(-np.inf if low else np.inf, dtype)
    return np.array(np.iinfo(dtype).min if low else np.iinfo(dtype).max, dtype)


def _windows(values: Array, first: Array, slides: Sequence[Slide], offset: Sequence[int]) -> Array:
    """What every window has at an offset."""
    for s, w in zip(slides, offset, strict=True):
        values = np.take(padded_by_one(values, s.axis, first), s.source[:, w], axis=s.axis)
    return values


def _any_order(combine: np.ufunc, values: Array, first: Array, slides: Sequence[Slide], run: Run) -> Array:
    result = None
    for offset in product(*(range(s.source.shape[1]) for s in slides)):
        run.toil(values.size)
        found = _windows(values, first, slides, offset)
        result = found if result is None else combine(result, found)
    return np.asarray(first if result is None else combine(result, first))


def _offset_by_offset(
    op: Op, arrays: Sequence[Array], firsts: Sequence[Array], slides: Sequence[Slide], run: Run
) -> list[Array]:
    function = scalar_function(op.regions[0], run)
    results = list(firsts)
    for offset in product(*(range(s.source.shape[1]) for s in slides)):
        run.toil(arrays[0].size * len(arrays))
        found = [_windows(a, f, slides, offset) for a, f in zip(arrays, firsts, strict=True)]
        results = function([*results, *found])
    shape = list(arrays[0].shape)
    for s in slides:
        shape[s.axis] = len(s.source)
    return [np.broadcast_to(r, shape) for r in results]


def _beside(a: Blocks, b: Blocks, apart: set[int], run: Run) -> tuple[tuple[ClassMap, ...], Array, Array]:
    """Two tensors on the common classes of all axes but some, along which each keeps its own; the maps are those of `a`
    there. The values have the same sizes along all other axes."""
    classes: list[ClassMap] = []
    indices: list[list[Array | None]] = [[], []]
    for k, c in enumerate(a.classes):
        now, found = (
            (c, [None, None]) if k in apart else refine([(x.classes[k], x.values.shape[k]) for x in (a, b)], run.maps)
        )
        classes.append(now)
        for side, index in zip(indices, found, strict=True):
            side.append(index)
    values = taken([a.values, b.values], indices, run.fits)
    rest = [max(v.shape[k] for v in values) for k in range(len(classes))]
    x, y = (np.broadcast_to(v, [n if k in apart else rest[k] for k, n in enumerate(v.shape)]) for v in values)
    return tuple(classes), x, y


def _select_and_scatter(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    """Every element of `source` is added where its window over `operand` has the element that `select` keeps."""
    operand, source, init = args
    reducer = monoid(op.regions[1])
    if reducer != "add" or not is_zero(init.values):
        raise UnknownError("that does more than add to zeros")
    slides = _slides(op, operand.shape, source.shape)
    operand = _spread(operand, slides, run)
    source = _spread(source, slides, run)
    select = scalar_function(op.regions[0], run)
    classes, values, added = _beside(operand, source, {s.axis for s in slides}, run)
    best: Array | None = None
    where: Array = np.zeros(added.shape, np.int64)
    known: Array = np.zeros(added.shape, np.bool_)
    offsets = list(product(*(range(s.source.shape[1]) for s in slides)))
    run.spend(added.size)
    run.toil(added.size * len(offsets) * 3)
    for n, offset in enumerate(offsets):
        found_values = _windows(values, zeros((), values.dtype), slides, offset)
        real = np.ones((1,) * values.ndim, np.bool_)
        for s, w in zip(slides, offset, strict=True):
            real = real & (s.source[:, w] >= 0).reshape(tuple(-1 if k == s.axis else 1 for k in range(values.ndim)))
        if best is None:
            best, known, where = found_values, np.broadcast_to(real, added.shape), np.full(added.shape, n)
            continue
        keep = select([best, found_values])[0] & known
        change = real & ~keep
        best, where = np.where(change, found_values, best), np.where(change, n, where)
        known = known | real
    result = zeros(values.shape, added.dtype)
    for n, offset in enumerate(offsets):
        chosen = (where == n) & known
        if chosen.any():
            at = list(np.nonzero(chosen))
            for s, w in zip(slides, offset, strict=True):
                at[s.axis] = s.source[:, w][at[s.axis]]
            ufunc("add", result).at(result, tuple(at), added[chosen])
    return [Blocks(tuple(classes), wrapped(result, op.types[0].dtype, run.real))]


RULES: dict[str, Rule] = {
    "reduce_window": _reduce_window,
    "select_and_scatter": _select_and_scatter,
}
