"""dot_general and convolution."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tests.ops.cases.drawing import Case, Draw, cases, operand
from tests.ops.cases.movement import listed
from tests.support.modules import Program
from tests.support.reference import reference

# Operand types with the type of the result: integers may be added up in a wider type.
TYPES = (
    ("f32", "f32", "f32"),
    ("f64", "f64", "f64"),
    ("i8", "i8", "i8"),
    ("i8", "i8", "i32"),
    ("ui8", "ui8", "ui8"),
    ("i32", "i32", "i32"),
    ("i1", "i1", "i1"),
    ("complex<f32>", "complex<f32>", "complex<f32>"),
)


@cases
def dot_general(draw: Draw) -> Case:
    program = Program()
    left, right, kind = draw(st.sampled_from(TYPES))
    batch, contracted, free_left, free_right = (draw(st.lists(st.integers(1, 3), max_size=n)) for n in (1, 2, 2, 2))

    def side(free: list[int]) -> tuple[list[int], list[int], list[int], list[int]]:
        labels = [("b", n) for n in range(len(batch))] + [("c", n) for n in range(len(contracted))]
        labels += [("f", n) for n in range(len(free))]
        order = draw(st.permutations(labels))
        rest = sorted(k for k, (x, _) in enumerate(order) if x == "f")
        sizes = {"b": batch, "c": contracted}
        shape, seen = [], 0
        for x, n in order:
            shape.append(sizes[x][n] if x != "f" else free[seen])
            seen += x == "f"
        where = {label: k for k, label in enumerate(order)}
        batches = [where["b", n] for n in range(len(batch))]
        contracting = [where["c", n] for n in range(len(contracted))]
        return shape, batches, contracting, rest

    a_shape, a_batch, a_contract, _ = side(free_left)
    b_shape, b_batch, b_contract, _ = side(free_right)
    args = [operand(draw, program, a_shape, left), operand(draw, program, b_shape, right)]
    attributes = (
        "dot_dimension_numbers = #stablehlo.dot<"
        f"lhs_batching_dimensions = {a_batch}, rhs_batching_dimensions = {b_batch}, "
        f"lhs_contracting_dimensions = {a_contract}, rhs_contracting_dimensions = {b_contract}>"
    )
    result = [*batch, *free_left, *free_right]
    return Case(program.returns(program.op("dot_general", args, [(result, kind)], attributes)))


@cases
def convolution(draw: Draw, dynamic: bool = False) -> Case:
    program = Program()
    left, right, kind = draw(st.sampled_from(TYPES[:-2]))
    spatial = draw(st.integers(1, 2))  # the interpreter aborts where there is none
    groups, batch_groups = draw(st.sampled_from(((1, 1), (1, 1), (2, 1), (1, 2), (3, 1), (1, 3))))
    batch = batch_groups * draw(st.integers(1, 2))
    channels = draw(st.integers(1, 2))
    features = groups * batch_groups * draw(st.integers(1, 2))
    image, window, result_sizes = [], [], []
    strides, low, high, dilation, window_dilation, reversal = [], [], [], [], [], []
    for _ in range(spatial):
        n, w = draw(st.integers(1, 4)), draw(st.integers(1, 3))
        d, wd, s = draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.integers(1, 3))
        a, b = draw(st.integers(-1, 3)), draw(st.integers(-1, 3))
        full, taps = (n - 1) * d + 1 + a + b, (w - 1) * wd + 1
        if full < 0:
            b -= full
            full = 0
        image, window = [*image, n], [*window, w]
        strides, low, high = [*strides, s], [*low, a], [*high, b]
        dilation, window_dilation = [*dilation, d], [*window_dilation, wd]
        reversal = [*reversal, draw(st.booleans())]
        result_sizes.append((full - taps) // s + 1 if full >= taps else 0)

    def layout(first: int, second: int, sizes: list[int], names: str) -> tuple[list[int], str]:
        labels: list[tuple[str, int]] = [(names[0], first), (names[1], second)]
        labels += [(str(k), n) for k, n in enumerate(sizes)]
        order = draw(st.permutations(labels))
        return [n for _, n in order], ", ".join(x for x, _ in order)

    a_shape, a_names = layout(batch, channels * groups, image, "bf")
    b_shape, b_names = layout(channels, features, window, "io")
    r_shape, r_names = layout(batch // batch_groups, features, result_sizes, "bf")
    args = [operand(draw, program, a_shape, left), operand(draw, program, b_shape, right)]
    pairs = [[x, y] for x, y in zip(low, high, strict=True)]
    booleans = f"array<i1: {', '.join(str(x).lower() for x in reversal)}>" if reversal else "array<i1>"
    attributes = (
        f"feature_group_count = {groups} : i64, batch_group_count = {batch_groups} : i64, "
        f"window_strides = {listed(strides)}, lhs_dilation = {listed(dilation)}, "
        f"rhs_dilation = {listed(window_dilation)}, window_reversal = {booleans}"
    )
    if dynamic:
        args.append(program.constant(np.array(pairs, dtype=np.int64)))
    else:
        attributes += f", padding = dense<{pairs if pairs else ''}> : tensor<{spatial}x2xi64>"
    name = "dynamic_conv" if dynamic else "convolution"
    # The interpreter aborts where the result has another layout than this: transpose after it.
    plain = ["b", "f", *map(str, range(spatial))]
    shape = [batch // batch_groups, features, *result_sizes]
    numbers = f"dimension_numbers = #stablehlo.conv<[{a_names}]x[{b_names}]->"
    count = len(program.lines)
    # It also adds integers up in their own type; XLA promotes them to the result's first, and so do we.
    wide = [program.op("convert", [x], [(x.shape, kind)])[0] for x in args[:2]]
    (known,) = program.op(name, [*wide, *args[2:]], [(shape, kind)], f"{numbers}[{', '.join(plain)}]>, {attributes}")
    permutation = f"permutation = {listed([plain.index(x) for x in r_names.split(', ')])}"
    expected = reference(program.returns(program.op("transpose", [known], [(r_shape, kind)], permutation)))
    del program.lines[count:]
    return Case(
        program.returns(program.op(name, args, [(r_shape, kind)], f"{numbers}[{r_names}]>, {attributes}")), expected
    )


CASES: dict[str, st.SearchStrategy[Case]] = {
    "dot_general": dot_general(),
    "convolution": convolution(),
    "dynamic_conv": convolution(dynamic=True),
}
