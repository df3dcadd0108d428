"""gather and scatter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from hlo_verify.program.element_types import DTYPES
from tests.ops.cases.drawing import Case, Draw, cases, operand, shapes, values
from tests.ops.cases.movement import ELEMENTS, listed
from tests.ops.cases.reductions import reducer, scalar
from tests.support.modules import Program, Ref

INDEX_TYPES = ("i32", "i64", "ui8", "i8", "ui32")


@dataclass(frozen=True, slots=True)
class Layout:
    """How windows of an operand and a batch of indices lie in one tensor (a gather's result, a scatter's updates)."""

    operand: tuple[int, ...]
    indices: tuple[int, ...]
    windows: tuple[int, ...]
    result: tuple[int, ...]
    offset_dims: list[int]
    collapsed: list[int]
    batching: list[int]
    indices_batching: list[int]
    index_map: list[int]
    vector_dim: int


def layout(draw: Draw) -> Layout:
    operand_shape = draw(shapes(least=1, most=3))
    rank = len(operand_shape)
    free = draw(shapes(most=2, high=3))
    batching = sorted(draw(st.lists(st.sampled_from(range(rank)), unique=True, max_size=1)))
    mapped = [k for k in draw(st.permutations(range(rank))) if k not in batching]
    mapped = mapped[: draw(st.integers(0, len(mapped)))]
    windows = [1 if k in batching else draw(st.integers(0 if k else 1, n)) for k, n in enumerate(operand_shape)]
    collapsed = [k for k, n in enumerate(windows) if n == 1 and k not in batching and draw(st.booleans())]
    # Batch dimensions of the indices: the free ones and those shared with the operand, in any order.
    labels: list[tuple[str, int]] = [("free", n) for n in free] + [("shared", operand_shape[k]) for k in batching]
    labels = list(draw(st.permutations(labels)))
    batch = [n for _, n in labels]
    vector_dim = len(batch) if len(mapped) == 1 and draw(st.booleans()) else draw(st.integers(0, len(batch)))
    explicit = len(mapped) != 1 or vector_dim < len(batch) or draw(st.booleans())
    indices = [*batch[:vector_dim], len(mapped), *batch[vector_dim:]] if explicit else batch
    position = [k if not explicit or k < vector_dim else k + 1 for k in range(len(batch))]
    shared = [position[k] for k, (name, _) in enumerate(labels) if name == "shared"]
    kept = [n for k, n in enumerate(windows) if k not in collapsed and k not in batching]
    total = len(batch) + len(kept)
    offset_dims = sorted(draw(st.permutations(range(total)))[: len(kept)])
    batches, offsets = iter(batch), iter(kept)
    result = tuple(next(offsets) if k in offset_dims else next(batches) for k in range(total))
    return Layout(
        operand_shape,
        tuple(indices),
        tuple(windows),
        result,
        offset_dims,
        collapsed,
        batching,
        shared,
        mapped,
        vector_dim,
    )


def start_indices(draw: Draw, program: Program, shape: Sequence[int], most: int) -> Ref:
    """Indices around the operand's range."""
    kind = draw(st.sampled_from(INDEX_TYPES))
    domain = (0 if kind.startswith("u") else -2, most + 1)
    # The interpreter takes the upper half of an unsigned type for negative numbers.
    anywhere = not kind.startswith("u") and draw(st.integers(0, 3)) == 0
    return operand(draw, program, shape, kind, None if anywhere else domain)


@cases
def gather(draw: Draw, dynamic: bool = False) -> Case:
    program = Program()
    form, dtype = layout(draw), draw(st.sampled_from(ELEMENTS))
    args = [operand(draw, program, form.operand, dtype)]
    args.append(start_indices(draw, program, form.indices, max(form.operand)))
    attributes = (
        "dimension_numbers = #stablehlo.gather<"
        f"offset_dims = {form.offset_dims}, collapsed_slice_dims = {form.collapsed}, "
        f"operand_batching_dims = {form.batching}, start_indices_batching_dims = {form.indices_batching}, "
        f"start_index_map = {form.index_map}, index_vector_dim = {form.vector_dim}>"
    )
    if dynamic:
        args.append(program.constant(np.array(form.windows, dtype=np.int64)))
    else:
        attributes += f", slice_sizes = {listed(form.windows)}"
    name = "dynamic_gather" if dynamic else "gather"
    return Case(program.returns(program.op(name, args, [(form.result, dtype)], attributes)))


def replacing(dtype: str) -> str:
    """The region of a scatter that overwrites."""
    kind = scalar(dtype)
    return f'{{ ^bb0(%x: {kind}, %y: {kind}): "stablehlo.return"(%y) : ({kind}) -> () }}'


@cases
def scatter(draw: Draw) -> Case:
    program = Program()
    form = layout(draw)
    batch = int(np.prod(form.result)) // max(1, int(np.prod([form.result[k] for k in form.offset_dims])))
    kind = draw(
        st.sampled_from(("add", "add", "maximum", "minimum", "multiply", "truth", "set", "unique", "two", "joined"))
    )
    dtype = draw(st.sampled_from(("f32", "i8", "i32", "ui8")))
    if kind == "unique" and not form.index_map and batch != 1:
        kind = "set"
    name = kind if kind in ("maximum", "minimum", "multiply") else "add"
    region = reducer(name, dtype)
    may_refuse = kind in ("set",)
    if kind == "truth":
        dtype, name = "i1", draw(st.sampled_from(("and", "or", "add")))
        region = reducer(name, dtype)
    if kind in ("set", "unique"):
        region = replacing(dtype)
    moderate = (-2, 2) if kind == "multiply" and dtype == "f32" else None
    args = [operand(draw, program, form.operand, dtype, moderate)]
    if kind == "unique":
        args.append(program.constant(distinct_indices(draw, form)))
    else:
        args.append(start_indices(draw, program, form.indices, max(form.operand)))
    args.append(operand(draw, program, form.result, dtype, moderate))
    kinds = [(form.operand, dtype)]
    if kind == "two":
        args = [args[0], operand(draw, program, form.operand, "f64"), args[1], args[2]]
        args.append(operand(draw, program, form.result, "f64"))
        a, b = scalar(dtype), scalar("f64")
        region = (
            f"{{ ^bb0(%x: {a}, %u: {b}, %y: {a}, %v: {b}): "
            f"%z = stablehlo.add %x, %y : {a} %w = stablehlo.maximum %u, %v : {b} "
            f'"stablehlo.return"(%z, %w) : ({a}, {b}) -> () }}'
        )
        kinds.append((form.operand, "f64"))
    if kind == "joined":
        args = [args[0], operand(draw, program, form.operand, dtype), args[1], args[2]]
        args.append(operand(draw, program, form.result, dtype))
        a = scalar(dtype)
        region = (
            f"{{ ^bb0(%x: {a}, %u: {a}, %y: {a}, %v: {a}): "
            f"%low = stablehlo.minimum %y, %v : {a} %z = stablehlo.add %x, %low : {a} "
            f"%product = stablehlo.multiply %y, %v : {a} %w = stablehlo.subtract %u, %product : {a} "
            f'"stablehlo.return"(%z, %w) : ({a}, {a}) -> () }}'
        )
        kinds.append((form.operand, dtype))
    unique = "true" if kind == "unique" else "false"
    attributes = (
        "scatter_dimension_numbers = #stablehlo.scatter<"
        f"update_window_dims = {form.offset_dims}, inserted_window_dims = {form.collapsed}, "
        f"input_batching_dims = {form.batching}, scatter_indices_batching_dims = {form.indices_batching}, "
        f"scatter_dims_to_operand_dims = {form.index_map}, index_vector_dim = {form.vector_dim}>, "
        f"unique_indices = {unique}"
    )
    return Case(program.returns(program.op("scatter", args, kinds, attributes, region)), may_refuse=may_refuse)


def distinct_indices(draw: Draw, form: Layout) -> np.ndarray:
    """Start indices of windows that do not overlap, or lie wholly outside."""
    shape = form.indices
    explicit = len(form.index_map) != 1 or form.vector_dim < len(shape)
    dims = [n for k, n in enumerate(shape) if not (explicit and k == form.vector_dim)]
    count = int(np.prod(dims))
    if not form.index_map or count == 0:
        return values(draw, shape, "i32", (0, 1))
    rows = np.zeros((count, len(form.index_map)), dtype=np.int32)
    k = form.index_map[0]
    slots = list(draw(st.permutations(range(count))))
    rows[:, 0] = [slot * max(form.windows[k], 1) for slot in slots]
    rows[:, 0] = np.where(rows[:, 0] + form.windows[k] > form.operand[k], form.operand[k] + rows[:, 0], rows[:, 0])
    batch = rows.reshape((*dims, len(form.index_map)))
    result = np.moveaxis(batch, -1, form.vector_dim) if explicit and len(shape) > len(dims) else batch[..., 0]
    return np.ascontiguousarray(result.reshape(shape), dtype=DTYPES["i32"])


CASES: dict[str, st.SearchStrategy[Case]] = {
    "gather": gather(),
    "dynamic_gather": gather(dynamic=True),
    "scatter": scatter(),
}
