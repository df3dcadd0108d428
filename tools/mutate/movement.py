"""Mutations of data movement: which element goes where."""

from __future__ import annotations

import itertools
import math
from typing import Any

from hlo_verify.jaxlib_api import ir, stablehlo
from tools.mutate import mlir
from tools.mutate.mlir import NotHereError, Operation
from tools.mutate.site import Site


def shift_slice(op: Operation, site: Site) -> str:
    """A slice starts a little, or its own size, before or after where it should."""
    starts, limits = mlir.read_longs(op, "start_indices"), mlir.read_longs(op, "limit_indices")
    sizes = mlir.shape(op.operands[0])
    shifts = [
        (k, step)
        for k, (start, limit, size) in enumerate(zip(starts, limits, sizes, strict=True))
        for step in {1, -1, limit - start, start - limit}
        if start + step >= 0 and limit + step <= size
    ]
    k, step = site.choose(shifts)
    starts[k] += step
    limits[k] += step
    op.attributes["start_indices"], op.attributes["limit_indices"] = mlir.longs(starts), mlir.longs(limits)
    return f"slice along {k} shifted by {step}"


def shift_offset(op: Operation, site: Site) -> str:
    """An offset of a dynamic_slice or dynamic_update_slice is one, or a whole slice, more or less."""
    first = 1 if mlir.name(op) == "dynamic_slice" else 2
    whole = mlir.shape(op.operands[0])
    part = mlir.shape(op.results[0] if first == 1 else op.operands[1])
    dimensions = [k for k in range(len(whole)) if part[k] < whole[k]]
    k = site.choose(dimensions)
    step = site.choose(sorted({1, -1, part[k], -part[k]}))
    offset = op.operands[first + k]
    by = mlir.constant(op, offset.type, abs(step))
    moved = mlir.create(op, "add" if step > 0 else "subtract", [offset, by], [offset.type]).results[0]
    op.operands[first + k] = moved
    return f"{mlir.name(op)}: offset along {k} shifted by {step}"


def shift_pad(op: Operation, site: Site) -> str:
    """One element of padding goes from one end of a dimension to the other."""
    low, high = mlir.read_longs(op, "edge_padding_low"), mlir.read_longs(op, "edge_padding_high")
    k = site.choose([k for k in range(len(low)) if low[k] or high[k]])
    step = -1 if low[k] > 0 else 1
    low[k] += step
    high[k] -= step
    op.attributes["edge_padding_low"], op.attributes["edge_padding_high"] = mlir.longs(low), mlir.longs(high)
    return f"pad: along {k} one element less in {'front' if step < 0 else 'the back'}, one more at the other end"


def shift_window(op: Operation, site: Site) -> str:
    """The padding of a convolution or reduce_window is one more at one end and one less at the other."""
    if "padding" not in op.attributes:
        raise NotHereError
    padding = mlir.read_matrix(op, "padding")
    k = site.choose([k for k in range(len(padding)) if padding[k].any()])
    step = site.choose([1, -1])
    padding[k] += [step, -step]
    op.attributes["padding"] = mlir.matrix(padding)
    return f"{mlir.name(op)}: windows along {k} shifted by {step}"


def permute_dimensions(op: Operation, site: Site) -> str:
    """A transpose puts the dimensions in another order; elements keep their row-major order to fit the shape."""
    before = mlir.read_longs(op, "permutation")
    after = [before[k] for k in site.permutation(len(before))]
    sizes = mlir.shape(op.operands[0])
    kind = mlir.tensor([sizes[k] for k in after], op.operands[0])
    new = mlir.create(op, "transpose", [op.operands[0]], [kind], {"permutation": mlir.longs(after)}).results[0]
    mlir.replace(op.results[0], mlir.reshaped(op, new, op.results[0].type))
    op.erase()
    return f"transpose {before} became {after}"


def change_broadcast(op: Operation, site: Site) -> str:
    """The operand's dimensions become others of the result."""
    before = mlir.read_longs(op, "broadcast_dimensions")
    inner, outer = mlir.shape(op.operands[0]), mlir.shape(op.results[0])
    others = [
        list(each)
        for each in itertools.permutations(range(len(outer)), len(inner))
        if list(each) != before and all(n in (1, outer[k]) for n, k in zip(inner, each, strict=True))
    ]
    after = site.choose(
        [each for each in others if any(inner[k] > 1 and each[k] != before[k] for k in range(len(inner)))]
    )
    op.attributes["broadcast_dimensions"] = mlir.longs(after)
    return f"broadcast_in_dim along {before} became {after}"


def swap_parts(op: Operation, site: Site) -> str:
    """Two operands of a concatenate change places."""
    parts = list(op.operands)
    i, j = site.choose(
        [pair for pair in itertools.combinations(range(len(parts)), 2) if parts[pair[0]] != parts[pair[1]]]
    )
    op.operands[i], op.operands[j] = parts[j], parts[i]
    return f"concatenate: parts {i} and {j} exchanged"


def flip(op: Operation, site: Site) -> str:
    """An operand is reversed along a dimension."""
    return _moved_operand(op, site, "reverse")


def transpose_operand(op: Operation, site: Site) -> str:
    """An operand has two dimensions of one size exchanged."""
    return _moved_operand(op, site, "transpose")


def _moved_operand(op: Operation, site: Site, how: str) -> str:
    ways: list[tuple[int, dict[str, Any], str]] = []
    for n, operand in enumerate(op.operands):
        if not mlir.is_tensor(operand) or mlir.splat_of(operand) is not None:
            continue
        sizes = mlir.shape(operand)
        if how == "reverse":
            ways += [(n, {"dimensions": mlir.longs([k])}, f"{k}") for k, size in enumerate(sizes) if size > 1]
        else:
            for i, j in itertools.combinations(range(len(sizes)), 2):
                if sizes[i] == sizes[j] > 1:
                    order = list(range(len(sizes)))
                    order[i], order[j] = j, i
                    ways.append((n, {"permutation": mlir.longs(order)}, f"{i} and {j}"))
    n, attributes, along = site.choose(ways)
    operand = op.operands[n]
    op.operands[n] = mlir.create(op, how, [operand], [operand.type], attributes).results[0]
    return f"{mlir.name(op)}: operand {n} goes through a {how} along {along}"


def unflip(op: Operation, site: Site) -> str:
    """A reverse is left out."""
    mlir.replace(op.results[0], op.operands[0])
    op.erase()
    return "reverse left out"


def change_contraction(op: Operation, site: Site) -> str:
    """A dot_general contracts, or batches, another dimension of the same size; the result is reshaped to fit."""
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    names = ("lhs_batching", "rhs_batching", "lhs_contracting", "rhs_contracting")
    used = {key: list(getattr(numbers, f"{key}_dimensions")) for key in names}
    ways = []
    for side, (operand, prefix) in enumerate(zip(op.operands, ("lhs", "rhs"), strict=True)):
        sizes = mlir.shape(operand)
        for key in (f"{prefix}_batching", f"{prefix}_contracting"):
            ways += [
                (side, prefix, dimension, other)
                for dimension in used[key]
                for other in range(len(sizes))
                if other not in used[key] and sizes[other] == sizes[dimension] > 1
            ]
    side, prefix, dimension, other = site.choose(ways)
    exchange = {dimension: other, other: dimension}
    changed = {key: [exchange.get(k, k) for k in ks] if key.startswith(prefix) else ks for key, ks in used.items()}
    attribute = stablehlo.DotDimensionNumbers.get(**{f"{key}_dimensions": ks for key, ks in changed.items()})
    sizes = _dot_shape([mlir.shape(operand) for operand in op.operands], changed)
    attributes = mlir.rest_of(op, "dot_dimension_numbers") | {"dot_dimension_numbers": attribute}
    kind = mlir.tensor(sizes, op.results[0])
    new = mlir.create(op, "dot_general", list(op.operands), [kind], attributes).results[0]
    mlir.replace(op.results[0], mlir.reshaped(op, new, op.results[0].type))
    op.erase()
    return f"dot_general: dimensions {dimension} and {other} of operand {side} exchanged"


def _dot_shape(shapes: list[tuple[int, ...]], numbers: dict[str, list[int]]) -> list[int]:
    sizes = [shapes[0][k] for k in numbers["lhs_batching"]]
    for one, prefix in zip(shapes, ("lhs", "rhs"), strict=True):
        taken = numbers[f"{prefix}_batching"] + numbers[f"{prefix}_contracting"]
        sizes += [size for k, size in enumerate(one) if k not in taken]
    return sizes


def change_iota(op: Operation, site: Site) -> str:
    """An iota counts along another dimension."""
    before = op.attributes["iota_dimension"].value
    after = site.choose([k for k, size in enumerate(mlir.shape(op.results[0])) if k != before and size > 1])
    op.attributes["iota_dimension"] = mlir.long(after)
    return f"iota along {before} became {after}"


def change_reduced(op: Operation, site: Site) -> str:
    """A reduce goes along another dimension of the same size; the result is reshaped to fit."""
    before, sizes = mlir.read_longs(op, "dimensions"), mlir.shape(op.operands[0])
    if len(op.results) != 1:
        raise NotHereError
    ways = [
        (k, other)
        for k in before
        for other in range(len(sizes))
        if other not in before and sizes[k] == sizes[other] > 1
    ]
    old, new = site.choose(ways)
    dimensions = sorted(new if k == old else k for k in before)
    kept = [size for k, size in enumerate(sizes) if k not in dimensions]
    changed = op.clone(ir.InsertionPoint(op)).operation
    changed.attributes["dimensions"] = mlir.longs(dimensions)
    changed.results[0].set_type(mlir.tensor(kept, op.results[0]))
    mlir.replace(op.results[0], mlir.reshaped(op, changed.results[0], op.results[0].type))
    op.erase()
    return f"reduce along {before} became {dimensions}"


def drop_update(op: Operation, site: Site) -> str:
    """A dynamic_update_slice or scatter writes nothing."""
    what = mlir.name(op)
    mlir.replace(op.results[0], op.operands[0])
    op.erase()
    return f"{what} left out"


def reorder_reshape(op: Operation, site: Site) -> str:
    """The operand of a reshape is transposed first: elements are counted in another order."""
    sizes = mlir.shape(op.operands[0])
    orders = [list(o) for o in itertools.permutations(range(len(sizes))) if len(sizes) <= 5]
    moved = [o for o in orders if [k for k in o if sizes[k] > 1] != [k for k in range(len(sizes)) if sizes[k] > 1]]
    order = site.choose(moved)
    kind = mlir.tensor([sizes[k] for k in order], op.operands[0])
    new = mlir.create(op, "transpose", [op.operands[0]], [kind], {"permutation": mlir.longs(order)}).results[0]
    op.operands[0] = new
    return f"reshape: its operand is transposed by {order}"


def shift_index(op: Operation, site: Site) -> str:
    """The indices of a gather or scatter are one more, or less."""
    indices = op.operands[1]
    step = site.choose(["add", "subtract"])
    one = mlir.constant(op, indices.type, 1)
    op.operands[1] = mlir.create(op, step, [indices, one], [indices.type]).results[0]
    return f"{mlir.name(op)}: indices {step} one"


def rotate(op: Operation, site: Site) -> str:
    """The result is rotated by one element, or by half, along a dimension."""
    result = op.results[0]
    sizes = mlir.shape(result)
    k = site.choose([k for k, size in enumerate(sizes) if size > 1])
    step = site.choose(sorted({1, math.ceil(sizes[k] / 2)}))
    parts = []
    zero, ones = [0] * len(sizes), mlir.longs([1] * len(sizes))
    for begin, end in ((step, sizes[k]), (0, step)):
        starts, limits = [*zero], [*sizes]
        starts[k], limits[k] = begin, end
        kind = mlir.tensor([end - begin if n == k else size for n, size in enumerate(sizes)], result)
        attributes = {"start_indices": mlir.longs(starts), "limit_indices": mlir.longs(limits), "strides": ones}
        parts.append(mlir.create(op, "slice", [result], [kind], attributes, after=True))
    attributes = {"dimension": mlir.long(k)}
    whole = mlir.create(parts[0], "concatenate", [p.results[0] for p in parts], [result.type], attributes, after=True)
    mlir.replace(result, whole.results[0], parts)
    return f"{mlir.name(op)}: result rotated by {step} along {k}"
