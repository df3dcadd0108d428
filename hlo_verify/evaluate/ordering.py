"""sort and top_k: along a dimension with a class for each index, by a network of comparisons."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hlo_verify.evaluate.balls import is_real
from hlo_verify.evaluate.blocks import Blocks, aligned, spread
from hlo_verify.evaluate.elementwise import scalar_function
from hlo_verify.evaluate.maps import Array
from hlo_verify.evaluate.numbers import wrapped
from hlo_verify.evaluate.state import Place, Rule, Run
from hlo_verify.evaluate.totals import are_same, certain_order, negated, without
from hlo_verify.evaluate.unknown import UnknownError
from hlo_verify.program.ir import Function, Op


def _sort(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    axis = op.attributes["dimension"] + 1
    if not op.types[0].shape:
        return args
    classes, arrays = _lanes(args, axis, run)
    order = _order(op.regions[0], arrays, run)
    inorder = [np.take_along_axis(x, order, axis=0) for x in arrays]
    is_ordered = op.attributes.get("is_stable", False) and _key(op.regions[0], arrays) is not None
    if run.is_enclosed and not is_ordered:
        inorder = _without_ties(op, inorder, run)
    return [Blocks(classes, np.moveaxis(x, 0, axis)) for x in inorder]


def _without_ties(op: Op, arrays: list[Array], run: Run) -> list[Array]:
    """What was sorted, undefined where equal elements of different values may come in any order.

    Those of which neither comes before the other stay in order under a stable sort; where both do (`a >= b`), the
    specification says nothing.
    """
    is_stable = op.attributes.get("is_stable", False)
    function = scalar_function(op.regions[0], run)
    left, right = ([x[part] for x in arrays] for part in (slice(None, -1), slice(1, None)))
    both = ((left, right), (right, left))
    less, more = (function([z for pair in zip(*sides, strict=True) for z in pair])[0] for sides in both)
    less, more = (np.broadcast_to(x, left[0].shape).astype(np.bool_) for x in (less, more))
    tied = less & more if is_stable else less == more
    if not tied.any():
        return list(arrays)
    results = []
    for x, a, b in zip(arrays, left, right, strict=True):
        changed = tied & ~are_same(a, b)
        gap = np.zeros(x.shape, np.bool_)
        gap[:-1] |= changed
        gap[1:] |= changed
        for n in range(1, len(x)):  # all of a run of equal elements
            gap[n] |= gap[n - 1] & tied[n - 1]
        for n in range(len(x) - 2, -1, -1):
            gap[n] |= gap[n + 1] & tied[n]
        if gap.any():
            how = "whose comparator has both before the other" if is_stable else "that is not stable"
            run.note(f"the order of equal elements under a sort {how}", op)
        results.append(without(x, gap))
    return results


def _lanes(args: Sequence[Blocks], axis: int, run: Run) -> tuple[tuple[Array, ...], list[Array]]:
    """Tensors of one shape with a class for each index along an axis, and their values with that axis first."""
    for a in args:
        run.spend(a.values.size // a.values.shape[axis] * len(a.classes[axis]))
    classes, values = aligned([spread(a, axis, run.maps) for a in args], run.maps, run.fits)
    common = list(np.broadcast_shapes(*(v.shape for v in values)))
    common[axis] = len(args[0].classes[axis])
    classes = (*classes[:axis], run.maps.distinct(common[axis]), *classes[axis + 1 :])
    return classes, [np.moveaxis(np.broadcast_to(v, common), axis, 0) for v in values]


def _order(region: Function, arrays: Sequence[Array], run: Run) -> Array:
    """The stable order of the first axis by a comparator. Merges sorted runs, all lanes at once."""
    function = scalar_function(region, run)
    size = len(arrays[0])
    simple = _key(region, arrays)
    if simple is not None:
        return certain_order(simple)

    def before(a: Array, b: Array) -> Array:
        """Whether elements of some places come before those of others (places are original indices)."""
        x = [np.take_along_axis(v, np.minimum(a, size - 1), axis=0) for v in arrays]
        y = [np.take_along_axis(v, np.minimum(b, size - 1), axis=0) for v in arrays]
        less = function([z for pair in zip(x, y, strict=True) for z in pair])[0]
        more = function([z for pair in zip(y, x, strict=True) for z in pair])[0]
        less, more = (np.broadcast_to(x, a.shape).astype(np.bool_) for x in (less, more))
        found = np.where(less == more, a < b, less)
        return np.where(a >= size, False, np.where(b >= size, True, found))

    return _bitonic(before, arrays[0].shape, run)


def _key(region: Function, arrays: Sequence[Array]) -> Array | None:
    """A key to sort by in ascending order, for a comparator that is one comparison of the first operand."""
    if len(region.ops) != 1 or region.ops[0].name != "compare" or region.results != region.ops[0].results:
        return None
    (op,) = region.ops
    direction, x = op.attributes["comparison_direction"], arrays[0]
    if direction not in ("LT", "GT") or op.operands not in (region.arguments[:2], region.arguments[1::-1]):
        return None
    if x.dtype.kind == "f" and (
        np.isnan(x).any() or (op.attributes.get("compare_type") == "TOTALORDER" and (x == 0).any())
    ):
        return None
    if x.dtype.kind not in "fiuV" and not (x.dtype == object and all(map(is_real, x.reshape(-1)))):
        return None
    ascending = (direction == "LT") == (op.operands == region.arguments[:2])
    if ascending:
        return x
    return ~x if x.dtype.kind in "iu" else negated(x)


def _bitonic(before: Callable[[Array, Array], Array], shape: tuple[int, ...], run: Run) -> Array:
    """Batcher's odd-even merge sort on indices, padded to a power of two with indices that come last."""
    size = shape[0]
    padded = 1 << (size - 1).bit_length()
    order = np.broadcast_to(np.arange(padded).reshape((-1,) + (1,) * (len(shape) - 1)), (padded, *shape[1:])).copy()
    step = 1
    while step < padded:
        gap = step
        while gap >= 1:
            run.toil(order.size * 8)
            start = np.arange(padded)
            base = gap % step
            low = start[(start >= base) & ((start - base) % (2 * gap) < gap) & (start + gap < padded)]
            low = low[low // (2 * step) == (low + gap) // (2 * step)]
            a, b = order[low], order[low + gap]
            keep = before(a, b)
            order[low], order[low + gap] = np.where(keep, a, b), np.where(keep, b, a)
            gap //= 2
        step *= 2
    return order[:size]


def top_k(op: Op, a: Blocks, largest: bool, run: Run) -> list[Blocks]:
    """The k largest (or least) elements along the last dimension, and their indices; of equal ones the first first."""
    axis = len(a.shape)
    classes, (x,) = _lanes([a], axis, run)
    if x.dtype.kind == "f" and np.isnan(x).any():
        raise UnknownError("NaN among what is ordered")
    key = x if not largest else ~x if x.dtype.kind in "iu" else negated(x)
    order = certain_order(key)[: op.types[0].shape[-1]]
    maps = (*classes[:-1], run.maps.distinct(op.types[0].shape[-1]))
    found = [np.take_along_axis(x, order, axis=0), wrapped(order, op.types[1].dtype, run.real)]
    return [Blocks(maps, np.moveaxis(v, 0, axis)) for v in found]


def _top_k(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    return top_k(op, args[0], op.attributes.get("largest", True), run)


RULES: dict[str, Rule] = {"sort": _sort, "chlo.top_k": _top_k, "mhlo.topk": _top_k}
