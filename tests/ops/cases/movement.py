"""Data movement."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st

from hlo_verify.program.element_types import DTYPES
from tests.ops.cases.drawing import COMPLEX, FLOATS, INTEGERS, Case, Draw, cases, operand, shapes
from tests.support.modules import Program, Ref
from tests.support.reference import reference

ELEMENTS = ("f32", "i8", "ui16", "i1", "i64", "complex<f32>")
INDEX_TYPES = ("i32", "i64", "ui8", "i8", "ui32")


def listed(values: list[int] | tuple[int, ...]) -> str:
    """`array<i64: 1, 2>`"""
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"


def element(draw: Draw) -> str:
    found: str = draw(st.sampled_from(ELEMENTS))
    return found


@cases
def broadcast_in_dim(draw: Draw) -> Case:
    program, dtype = Program(), element(draw)
    result = draw(shapes(most=4))
    rank = draw(st.integers(0, len(result)))
    dims = draw(st.permutations(range(len(result))))[:rank]
    source = tuple(result[k] if draw(st.booleans()) else 1 for k in dims)
    args = [operand(draw, program, source, dtype)]
    attributes = f"broadcast_dimensions = {listed(dims)}"
    return Case(program.returns(program.op("broadcast_in_dim", args, [(result, dtype)], attributes)))


@cases
def transpose(draw: Draw) -> Case:
    program, dtype = Program(), element(draw)
    shape = draw(shapes(most=4, low=0))
    permutation = draw(st.permutations(range(len(shape))))
    args = [operand(draw, program, shape, dtype)]
    result = [shape[k] for k in permutation]
    attributes = f"permutation = {listed(permutation)}"
    return Case(program.returns(program.op("transpose", args, [(result, dtype)], attributes)))


@cases
def reshape(draw: Draw) -> Case:
    program, dtype = Program(), element(draw)
    factors = draw(st.lists(st.sampled_from((1, 1, 2, 2, 3, 4)), max_size=4))
    if math.prod(factors) > 48:
        factors = factors[:2]
    if draw(st.integers(0, 9)) == 0:
        factors.append(0)

    def grouped(parts: list[int]) -> list[int]:
        """Neighbours joined at random, with dimensions of size 1 put in."""
        joined: list[int] = []
        for n in parts:
            if joined and draw(st.booleans()):
                joined[-1] *= n
            else:
                joined.append(n)
            if draw(st.integers(0, 4)) == 0:
                joined.append(1)
        return joined

    source = grouped(factors)
    result = grouped(factors if draw(st.booleans()) else list(draw(st.permutations(factors))))
    if math.prod(source) != math.prod(result):
        result = [math.prod(source)]
    args = [operand(draw, program, source, dtype)]
    return Case(program.returns(program.op("reshape", args, [(result, dtype)])))


@cases
def slice_(draw: Draw) -> Case:
    program, dtype = Program(), element(draw)
    shape = draw(shapes(high=6))
    starts = [draw(st.integers(0, n)) for n in shape]
    limits = [draw(st.integers(a, n)) for a, n in zip(starts, shape, strict=True)]
    strides = [draw(st.integers(1, 3)) for _ in shape]
    result = [-(-(b - a) // s) for a, b, s in zip(starts, limits, strides, strict=True)]
    attributes = f"start_indices = {listed(starts)}, limit_indices = {listed(limits)}, strides = {listed(strides)}"
    args = [operand(draw, program, shape, dtype)]
    return Case(program.returns(program.op("slice", args, [(result, dtype)], attributes)))


@cases
def reverse(draw: Draw) -> Case:
    program, dtype = Program(), element(draw)
    shape = draw(shapes(low=0))
    dims = draw(st.lists(st.sampled_from(range(len(shape))), unique=True)) if shape else []
    args = [operand(draw, program, shape, dtype)]
    attributes = f"dimensions = {listed(dims)}"
    return Case(program.returns(program.op("reverse", args, [(shape, dtype)], attributes)))


@cases
def concatenate(draw: Draw) -> Case:
    program, dtype = Program(), element(draw)
    shape = draw(shapes(least=1))
    k = draw(st.integers(0, len(shape) - 1))
    sizes = draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    args = [operand(draw, program, (*shape[:k], n, *shape[k + 1 :]), dtype) for n in sizes]
    result = (*shape[:k], sum(sizes), *shape[k + 1 :])
    attributes = f"dimension = {k} : i64"
    return Case(program.returns(program.op("concatenate", args, [(result, dtype)], attributes)))


@cases
def pad(draw: Draw) -> Case:
    program, dtype = Program(), element(draw)
    shape = draw(shapes(most=2, low=0))
    low, high, interior, result = [], [], [], []
    for n in shape:
        i = draw(st.integers(0, 2))
        full = n + max(n - 1, 0) * i
        a, b = draw(st.integers(-min(full, 3), 3)), draw(st.integers(-2, 3))
        b = max(b, -(full + a))
        low, high, interior, result = [*low, a], [*high, b], [*interior, i], [*result, full + a + b]
    attributes = (
        f"edge_padding_low = {listed(low)}, edge_padding_high = {listed(high)}, interior_padding = {listed(interior)}"
    )
    args = [operand(draw, program, shape, dtype), operand(draw, program, (), dtype)]
    return Case(program.returns(program.op("pad", args, [(result, dtype)], attributes)))


def starts(draw: Draw, program: Program, shape: tuple[int, ...]) -> list[Ref]:
    """Start indices, some of them out of range."""
    kind = draw(st.sampled_from(INDEX_TYPES))
    return [operand(draw, program, (), kind, (0 if kind.startswith("u") else -3, n + 2)) for n in shape]


@cases
def dynamic_slice(draw: Draw) -> Case:
    program, dtype = Program(), element(draw)
    shape = draw(shapes(high=5))
    result = tuple(draw(st.integers(0, n)) for n in shape)
    args = [operand(draw, program, shape, dtype), *starts(draw, program, shape)]
    attributes = f"slice_sizes = {listed(result)}"
    return Case(program.returns(program.op("dynamic_slice", args, [(result, dtype)], attributes)))


@cases
def dynamic_update_slice(draw: Draw) -> Case:
    program, dtype = Program(), element(draw)
    shape = draw(shapes(high=5))
    update = tuple(draw(st.integers(0, n)) for n in shape)
    args = [operand(draw, program, s, dtype) for s in (shape, update)]
    args += starts(draw, program, shape)
    return Case(program.returns(program.op("dynamic_update_slice", args, [(shape, dtype)])))


@cases
def barrier(draw: Draw) -> Case:
    program = Program()
    args = [operand(draw, program, draw(shapes()), element(draw)) for _ in range(draw(st.integers(1, 2)))]
    kinds = [(a.shape, a.dtype) for a in args]
    return Case(program.returns(program.op("optimization_barrier", args, kinds)))


@cases
def dynamic(draw: Draw, name: str) -> Case:
    """An operation whose shape or attributes are operands, here constants."""
    program, dtype = Program(), element(draw)

    def sizes(values: list[int] | tuple[int, ...]) -> Ref:
        return program.constant(np.array(values, dtype=DTYPES["i64"]))

    if name == "dynamic_iota":
        shape = draw(shapes(least=1))
        dtype = draw(st.sampled_from((*INTEGERS, *FLOATS, *COMPLEX)))
        k = draw(st.integers(0, len(shape) - 1))
        return Case(program.returns(program.op(name, [sizes(shape)], [(shape, dtype)], f"iota_dimension = {k} : i64")))
    shape = draw(shapes())
    source = operand(draw, program, shape, dtype)
    if name == "dynamic_reshape":
        result = (*shape, 1) if draw(st.booleans()) else (math.prod(shape),)
        return Case(program.returns(program.op(name, [source, sizes(result)], [(result, dtype)])))
    if name == "dynamic_broadcast_in_dim":
        result = (2, *shape)
        attributes = f"broadcast_dimensions = {listed(range(1, len(result)))}"
        return Case(program.returns(program.op(name, [source, sizes(result)], [(result, dtype)], attributes)))
    if name == "dynamic_pad":
        low = [draw(st.integers(-n, 2)) for n in shape]
        high = [draw(st.integers(0, 2)) for _ in shape]
        inner = [draw(st.integers(0, 2)) for _ in shape]
        result = tuple(a + b + n + (n - 1) * i for n, a, b, i in zip(shape, low, high, inner, strict=True))
        args = [source, operand(draw, program, (), dtype), sizes(low), sizes(high), sizes(inner)]
        return Case(program.returns(program.op(name, args, [(result, dtype)])))
    first = [draw(st.integers(0, n)) for n in shape]
    last = [draw(st.integers(a, n)) for a, n in zip(first, shape, strict=True)]
    step = [draw(st.integers(1, 2)) for _ in shape]
    result = tuple(-(-(b - a) // s) for a, b, s in zip(first, last, step, strict=True))
    attributes = f"start_indices = {listed(first)}, limit_indices = {listed(last)}, strides = {listed(step)}"
    expected = reference(program.returns(program.op("slice", [source], [(result, dtype)], attributes)))
    args = [source, sizes(first), sizes(last), sizes(step)]
    return Case(program.returns(program.op(name, args, [(result, dtype)])), expected)


@cases
def get_dimension_size(draw: Draw) -> Case:
    program, shape = Program(), draw(shapes(least=1))
    attributes = f"dimension = {draw(st.integers(0, len(shape) - 1))} : i64"
    args = [operand(draw, program, shape, element(draw))]
    return Case(program.returns(program.op("get_dimension_size", args, [((), "i32")], attributes)))


DYNAMIC = ("dynamic_iota", "dynamic_reshape", "dynamic_broadcast_in_dim", "dynamic_pad", "real_dynamic_slice")

CASES: dict[str, st.SearchStrategy[Case]] = {
    "broadcast_in_dim": broadcast_in_dim(),
    "transpose": transpose(),
    "reshape": reshape(),
    "slice": slice_(),
    "reverse": reverse(),
    "concatenate": concatenate(),
    "pad": pad(),
    "dynamic_slice": dynamic_slice(),
    "dynamic_update_slice": dynamic_update_slice(),
    "optimization_barrier": barrier(),
    **{name: dynamic(name) for name in DYNAMIC},
    "get_dimension_size": get_dimension_size(),
}
