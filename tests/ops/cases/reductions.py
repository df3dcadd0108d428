"""Reductions, windows, sorts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from hlo_verify.program.element_types import DTYPES
from tests.ops.cases.drawing import Case, Draw, cases, operand, shapes
from tests.ops.cases.movement import listed
from tests.support.functions import bounds, is_integer
from tests.support.modules import Program, Ref, tensor_type
from tests.support.reference import reference

NUMBERS = ("f32", "f64", "i8", "ui8", "i32", "ui16")
REDUCERS = ("add", "multiply", "maximum", "minimum")


def scalar(dtype: str) -> str:
    return tensor_type((), dtype)


def reducer(name: str, dtype: str, swapped: bool = False) -> str:
    """A region of one operation on two scalars."""
    kind = scalar(dtype)
    args = "%y, %x" if swapped else "%x, %y"
    return (
        f'{{ ^bb0(%x: {kind}, %y: {kind}): %z = "stablehlo.{name}"({args}) : ({kind}, {kind}) -> {kind} '
        f'"stablehlo.return"(%z) : ({kind}) -> () }}'
    )


def not_a_monoid(dtype: str) -> str:
    """`x + 2*y`, whose order matters."""
    kind = scalar(dtype)
    return (
        f"{{ ^bb0(%x: {kind}, %y: {kind}): %d = stablehlo.add %y, %y : {kind} %z = stablehlo.add %x, %d : {kind} "
        f'"stablehlo.return"(%z) : ({kind}) -> () }}'
    )


def pairs(value: str, index: str, direction: str, tie: str, select_index: str = "") -> str:
    """JAX's region for argmax: the pair with the better value, or the lower index of equal ones."""
    v, i = scalar(value), scalar(index)
    return (
        f"{{ ^bb0(%x: {v}, %i: {i}, %y: {v}, %j: {i}): "
        f"%g = stablehlo.compare {direction}, %x, %y : ({v}, {v}) -> tensor<i1> "
        f"%n = stablehlo.compare NE, %x, %x : ({v}, {v}) -> tensor<i1> "
        "%p = stablehlo.or %g, %n : tensor<i1> "
        f"%e = stablehlo.compare EQ, %x, %y : ({v}, {v}) -> tensor<i1> "
        f"%l = stablehlo.compare {tie}, %i, %j : ({i}, {i}) -> tensor<i1> "
        "%a = stablehlo.and %e, %l : tensor<i1> %o = stablehlo.or %p, %a : tensor<i1> "
        f"%r = stablehlo.select %p, %x, %y : tensor<i1>, {v} "
        f"%s = stablehlo.select %o, %i, %j : tensor<i1>, {i} "
        f'"stablehlo.return"(%r, %s) : ({v}, {i}) -> () }}'
    )


def _moderate(draw: Draw, program: Program, shape: Sequence[int], dtype: str, name: str) -> Ref:
    """Operands whose product stays exact."""
    if name == "multiply" and not is_integer(dtype):
        return operand(draw, program, shape, dtype, (-2, 2))
    return operand(draw, program, shape, dtype)


@cases
def reduce(draw: Draw) -> Case:
    program = Program()
    shape = draw(shapes(most=3))
    dims = draw(st.lists(st.sampled_from(range(len(shape))), unique=True)) if shape else []
    if draw(st.integers(0, 3)) == 0:
        shape = tuple(0 if k in dims and draw(st.booleans()) else n for k, n in enumerate(shape))
    result = [n for k, n in enumerate(shape) if k not in dims]
    kind = draw(st.sampled_from(("one", "one", "truth", "wide", "other", "two", "best")))
    attributes = f"dimensions = {listed(dims)}"
    dtype = draw(st.sampled_from(NUMBERS))
    name = draw(st.sampled_from(REDUCERS))
    if kind == "best":
        return _argmax(draw, program, shape, result, attributes)
    if kind == "truth":
        dtype, name = "i1", draw(st.sampled_from((*REDUCERS, "and", "or")))
    region = reducer(name, dtype, draw(st.booleans()))
    if kind == "other":
        region, name = not_a_monoid(dtype), "add"
    if kind == "wide":  # the region works in a wider type
        return _promoted(draw, program, "reduce", (shape, result), attributes, reducer(name, "i32"))
    if kind == "two":
        other, second = draw(st.sampled_from(NUMBERS)), draw(st.sampled_from(REDUCERS))
        args = [_moderate(draw, program, shape, t, n) for t, n in ((dtype, name), (other, second))]
        args += [operand(draw, program, (), t) for t in (dtype, other)]
        a, b = scalar(dtype), scalar(other)
        region = (
            f"{{ ^bb0(%x: {a}, %u: {b}, %y: {a}, %v: {b}): "
            f"%z = stablehlo.{name} %x, %y : {a} %w = stablehlo.{second} %u, %v : {b} "
            f'"stablehlo.return"(%z, %w) : ({a}, {b}) -> () }}'
        )
        results = program.op("reduce", args, [(result, dtype), (result, other)], attributes, region)
        return Case(program.returns(results))
    args = [_moderate(draw, program, shape, dtype, name), operand(draw, program, (), dtype)]
    return Case(program.returns(program.op("reduce", args, [(result, dtype)], attributes, region)))


def _promoted(
    draw: Draw, program: Program, name: str, types: tuple[Sequence[int], Sequence[int]], attributes: str, region: str
) -> Case:
    """Operands of a narrower type than the region's; the interpreter aborts, unless they are converted before."""
    shape, result = types
    args = [operand(draw, program, s, "i8") for s in (shape, ())]
    count = len(program.lines)
    wide = [program.op("convert", [x], [(x.shape, "i32")])[0] for x in args]
    expected = reference(program.returns(program.op(name, wide, [(result, "i32")], attributes, region)))
    del program.lines[count:]
    return Case(program.returns(program.op(name, args, [(result, "i32")], attributes, region)), expected)


def _argmax(draw: Draw, program: Program, shape: tuple[int, ...], result: list[int], attributes: str) -> Case:
    """Recognised, and with the greater index of equal ones, which is not."""
    dtype, index = draw(st.sampled_from(("f32", "i8", "ui8", "i1"))), draw(st.sampled_from(("i32", "ui8")))
    direction, tie = draw(st.sampled_from(("GT", "LT"))), draw(st.sampled_from(("LT", "LT", "GT")))
    args = [operand(draw, program, shape, dtype), operand(draw, program, shape, index)]
    first = {"f32": np.float32(-np.inf if direction == "GT" else np.inf), "i1": np.bool_(direction != "GT")}
    if dtype not in first:
        first[dtype] = np.array(bounds(dtype)[0 if direction == "GT" else 1], DTYPES[dtype])
    args.append(
        program.constant(np.asarray(first[dtype])) if draw(st.booleans()) else operand(draw, program, (), dtype)
    )
    args.append(operand(draw, program, (), index))
    kinds = [(result, dtype), (result, index)]
    return Case(program.returns(program.op("reduce", args, kinds, attributes, pairs(dtype, index, direction, tie))))


def windows(draw: Draw, shape: Sequence[int], dilated: bool) -> tuple[list[int], list[int], str]:
    """Window sizes, the result's shape, and the attributes."""
    sizes, strides, base, dilation, padding, result = [], [], [], [], [], []
    for n in shape:
        w, s = draw(st.integers(1, 3)), draw(st.integers(1, 3))
        b, d = (draw(st.integers(1, 2)), draw(st.integers(1, 2))) if dilated else (1, 1)
        low, high = draw(st.integers(0, 2)), draw(st.integers(0, 2))
        full, taps = (n - 1) * b + 1 + low + high, (w - 1) * d + 1
        if full < taps:
            high, full = high + taps - full, taps
        sizes, strides, base, dilation = [*sizes, w], [*strides, s], [*base, b], [*dilation, d]
        padding, result = [*padding, [low, high]], [*result, (full - taps) // s + 1]
    attributes = f"window_dimensions = {listed(sizes)}, window_strides = {listed(strides)}"
    attributes += f", padding = dense<{padding if padding else ''}> : tensor<{len(padding)}x2xi64>"
    if dilated:
        attributes += f", base_dilations = {listed(base)}, window_dilations = {listed(dilation)}"
    return sizes, result, attributes


@cases
def reduce_window(draw: Draw) -> Case:
    program = Program()
    shape = draw(shapes(least=1, most=2))
    _, result, attributes = windows(draw, shape, dilated=True)
    kind = draw(st.sampled_from(("one", "one", "truth", "wide", "other", "best")))
    dtype, name = draw(st.sampled_from(NUMBERS)), draw(st.sampled_from(REDUCERS))
    if kind == "truth":
        dtype, name = "i1", draw(st.sampled_from((*REDUCERS, "and", "or")))
    if kind == "wide":
        return _promoted(draw, program, "reduce_window", (shape, result), attributes, reducer(name, "i32"))
    if kind == "best":
        return _argmax_of_windows(draw, program, shape, result, attributes)
    region = not_a_monoid(dtype) if kind == "other" else reducer(name, dtype)
    name = "add" if kind == "other" else name
    args = [
        _moderate(draw, program, shape, dtype, name),
        operand(draw, program, (), dtype, (-2, 2) if dtype in ("f32", "f64") else None),
    ]
    return Case(program.returns(program.op("reduce_window", args, [(result, dtype)], attributes, region)))


def _argmax_of_windows(
    draw: Draw, program: Program, shape: tuple[int, ...], result: list[int], attributes: str
) -> Case:
    args = [operand(draw, program, s, t) for s in (shape, ()) for t in ("f32", "i32")]
    kinds = [(result, "f32"), (result, "i32")]
    return Case(program.returns(program.op("reduce_window", args, kinds, attributes, pairs("f32", "i32", "GT", "LT"))))


@cases
def select_and_scatter(draw: Draw) -> Case:
    program = Program()
    shape = draw(shapes(least=1, most=2))
    _, result, attributes = windows(draw, shape, dilated=False)
    dtype = draw(st.sampled_from(("f32", "i8", "i32")))
    v = scalar(dtype)
    direction = draw(st.sampled_from(("GE", "GT", "LE", "LT")))
    args = [operand(draw, program, s, dtype) for s in (shape, result)]
    zero = draw(st.integers(0, 7)) > 0  # a fold from any other value is ambiguous: once, or once for every element?
    args.append(program.constant(np.zeros((), DTYPES[dtype])) if zero else operand(draw, program, (), dtype))
    select = (
        f"{{ ^bb0(%x: {v}, %y: {v}): %c = stablehlo.compare {direction}, %x, %y : ({v}, {v}) -> tensor<i1> "
        '"stablehlo.return"(%c) : (tensor<i1>) -> () }'
    )
    regions = f"{select}, {reducer('add', dtype)}"
    results = program.op("select_and_scatter", args, [(shape, dtype)], attributes, regions)
    return Case(program.returns(results), may_refuse=not zero)


@cases
def sort(draw: Draw) -> Case:
    program = Program()
    shape = draw(shapes(least=1))
    k = draw(st.integers(0, len(shape) - 1))
    dtypes = draw(st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=3))
    args = [operand(draw, program, shape, t, (0, 3) if draw(st.booleans()) else None) for t in dtypes]
    kinds = [scalar(t) for t in dtypes]
    names = ", ".join(f"%x{n}: {t}, %y{n}: {t}" for n, t in enumerate(kinds))
    n = draw(st.integers(0, len(dtypes) - 1))
    direction = draw(st.sampled_from(("LT", "GT")))
    body = f"%c = stablehlo.compare {direction}, %x{n}, %y{n} : ({kinds[n]}, {kinds[n]}) -> tensor<i1> "
    region = f'{{ ^bb0({names}): {body} "stablehlo.return"(%c) : (tensor<i1>) -> () }}'
    attributes = f"dimension = {k} : i64, is_stable = true"
    return Case(program.returns(program.op("sort", args, [(shape, t) for t in dtypes], attributes, region)))


@cases
def top_k(draw: Draw, name: str) -> Case:
    program = Program()
    shape = draw(shapes(least=1))
    k = draw(st.integers(1, shape[-1]))
    dtype = draw(st.sampled_from(("f32", "i32", "i8", "ui8")))
    largest = name == "chlo.top_k" or draw(st.booleans())
    array = operand(draw, program, shape, dtype)
    (known,) = reference(program.returns([array]))
    wide = known.astype(np.float64)
    order = np.argsort(-wide if largest else wide, axis=-1, kind="stable")[..., :k].astype(np.int32)
    expected = [np.take_along_axis(known, order, axis=-1), order]
    attributes = f"k = {k} : i64" + (f", largest = {str(largest).lower()}" if name == "mhlo.topk" else "")
    kinds = [((*shape[:-1], k), dtype), ((*shape[:-1], k), "i32")]
    return Case(program.returns(program.op(name, [array], kinds, attributes)), expected)


CASES: dict[str, st.SearchStrategy[Case]] = {
    "reduce": reduce(),
    "reduce_window": reduce_window(),
    "select_and_scatter": select_and_scatter(),
    "sort": sort(),
    "chlo.top_k": top_k("chlo.top_k"),
    "mhlo.topk": top_k("mhlo.topk"),
}
