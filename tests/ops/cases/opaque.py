"""Functions that only their name is known of, custom calls, and running reductions; numpy is the reference."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from hlo_verify.program.element_types import DTYPES
from tests.ops.cases.drawing import Case, Draw, cases, numbers, operand, shapes, values
from tests.ops.cases.movement import element, listed
from tests.support.modules import Program
from tests.support.reference import reference


@cases
def cholesky(draw: Draw) -> Case:
    program = Program()
    n = draw(st.integers(1, 3))
    shape = (*draw(shapes(most=2, high=2)), n, n)
    half = numbers(draw).normal(size=shape)
    matrix = half @ np.swapaxes(half, -1, -2) + np.eye(n)
    lower = draw(st.booleans())
    factor = np.linalg.cholesky(matrix)
    # The other triangle of the result holds the operand's values or zeros, as the implementation likes.
    expected = [factor if lower else np.swapaxes(factor, -1, -2)]
    results = program.op("cholesky", [program.argument(matrix)], [(shape, "f64")], f"lower = {str(lower).lower()}")
    return Case(program.returns(results), expected)


@cases
def triangular_solve(draw: Draw) -> Case:
    program = Program()
    n, m = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    batch = draw(shapes(most=2, high=2))
    left, lower, unit = (draw(st.booleans()) for _ in range(3))
    transpose = draw(st.sampled_from(("NO_TRANSPOSE", "TRANSPOSE")))
    rng = numbers(draw)
    a = rng.uniform(1, 2, size=(*batch, n, n))
    shape = (*batch, n, m) if left else (*batch, m, n)
    b = rng.normal(size=shape)
    triangle = np.tril(a) if lower else np.triu(a)
    if unit:
        triangle = triangle * (1 - np.eye(n)) + np.eye(n)
    if transpose == "TRANSPOSE":
        triangle = np.swapaxes(triangle, -1, -2)
    inverse = np.linalg.inv(triangle)
    attributes = (
        f"left_side = {str(left).lower()}, lower = {str(lower).lower()}, unit_diagonal = {str(unit).lower()}, "
        f"transpose_a = #stablehlo<transpose {transpose}>"
    )
    args = [program.argument(a), program.argument(b)]
    results = program.op("triangular_solve", args, [(shape, "f64")], attributes)
    return Case(program.returns(results), [inverse @ b if left else b @ inverse])


@cases
def fft(draw: Draw) -> Case:
    program = Program()
    kind = draw(st.sampled_from(("FFT", "IFFT", "RFFT", "IRFFT")))
    length = draw(st.lists(st.integers(1, 4), min_size=1, max_size=2))
    batch = draw(shapes(most=1, high=2))
    axes = tuple(range(-len(length), 0))
    half = [*length[:-1], length[-1] // 2 + 1]
    shape = (*batch, *(half if kind == "IRFFT" else length))
    dtype = "f64" if kind == "RFFT" else "complex<f64>"
    source = values(draw, shape, dtype)
    functions = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn}
    expected = np.fft.irfftn(source, s=length, axes=axes) if kind == "IRFFT" else functions[kind](source, axes=axes)
    result = (expected.shape, "f64" if kind == "IRFFT" else "complex<f64>")
    attributes = f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {listed(length)}"
    return Case(program.returns(program.op("fft", [program.argument(source)], [result], attributes)), [expected])


@cases
def rng_bit_generator(draw: Draw) -> Case:
    """Opaque: only that it is read at all is tested here."""
    program = Program()
    shape = draw(shapes())
    state = program.argument(values(draw, (2,), "ui64"))
    attributes = "rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>"
    results = program.op("rng_bit_generator", [state], [((2,), "ui64"), (shape, "ui32")], attributes)
    return Case(program.returns(results), [], may_refuse=True)


@cases
def without_meaning(draw: Draw, name: str) -> Case:
    program = Program()
    token = program.op("after_all", [], [((), "!stablehlo.token")])
    x = operand(draw, program, (2,), "f32")
    if name == "rng":
        edges = [program.constant(np.float32(x)) for x in (0, 1)]
        size = program.constant(np.array([2], dtype=np.int64))
        attributes = "rng_distribution = #stablehlo<rng_distribution UNIFORM>"
        results = program.op("rng", [*edges, size], [((2,), "f32")], attributes)
    elif name in ("infeed", "recv"):
        channel = ", channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>, is_host_transfer = true"
        attributes = 'infeed_config = ""' if name == "infeed" else channel[2:]
        results = program.op(name, token, [((2,), "f32"), ((), "!stablehlo.token")], attributes)
    else:
        channel = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, is_host_transfer = true"
        attributes = 'outfeed_config = ""' if name == "outfeed" else channel
        program.op(name, [x, *token], [((), "!stablehlo.token")], attributes)
        results = [x]
    return Case(program.returns([r for r in results if r.dtype == "f32"]), [], may_refuse=True)


@cases
def after_all(draw: Draw) -> Case:
    program = Program()
    tokens = program.op("after_all", [], [((), "!stablehlo.token")])
    program.op("after_all", tokens, [((), "!stablehlo.token")])
    x = operand(draw, program, draw(shapes()), element(draw))
    return Case(program.returns([x]))


@cases
def custom_call(draw: Draw) -> Case:
    program, dtype = Program(), element(draw)
    if draw(st.booleans()):
        x = operand(draw, program, draw(shapes()), dtype)
        expected = reference(program.returns([x]))
        attributes = 'call_target_name = "Sharding"'
        return Case(program.returns(program.op("custom_call", [x], [(x.shape, dtype)], attributes)), expected)
    x = operand(draw, program, draw(shapes(least=1)), "f32")
    (known,) = reference(program.returns([x]))
    k = draw(st.integers(1, x.shape[-1]))
    name = draw(st.sampled_from(("TopK", "mhlo.topk")))
    largest = name == "TopK" or draw(st.booleans())
    attributes = f'call_target_name = "{name}"'
    if name == "mhlo.topk":
        attributes += f", mhlo.attributes = {{k = {k} : i64, largest = {str(largest).lower()}}}"
    order = np.argsort(-known if largest else known, axis=-1, kind="stable")[..., :k].astype(np.int32)
    kinds = [((*x.shape[:-1], k), "f32"), ((*x.shape[:-1], k), "i32")]
    results = program.op("custom_call", [x], kinds, attributes)
    return Case(program.returns(results), [np.take_along_axis(known, order, axis=-1), order])


@cases
def scan(draw: Draw) -> Case:
    """A running sum, product or extremum; another body is opaque."""
    program = Program()
    shape = draw(shapes(least=1))
    dim = draw(st.integers(0, len(shape) - 1))
    dtype = draw(st.sampled_from(("f32", "i8", "ui8")))
    name = draw(st.sampled_from(("add", "multiply", "maximum", "minimum", "subtract")))
    reverse = draw(st.booleans())
    domain = (-2, 2) if name == "multiply" and dtype == "f32" else None
    rest = tuple(n for k, n in enumerate(shape) if k != dim)
    args = [operand(draw, program, s, dtype, domain) for s in (shape, rest)]
    known, carry = reference(program.returns(args))
    functions = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}
    expected = np.zeros_like(known)
    steps = range(shape[dim])
    for k in reversed(steps) if reverse else steps:
        where = (slice(None),) * dim + (k,)
        carry = functions.get(name, np.subtract)(known[where], carry)
        expected[where] = carry
    kind = f"tensor<{''.join(f'{n}x' for n in rest)}{dtype}>"
    region = (
        f"{{ ^bb0(%x: {kind}, %c: {kind}): %y = stablehlo.{name} %x, %c : {kind} "
        f'"mhlo.return"(%y, %y) : ({kind}, {kind}) -> () }}'
    )
    attributes = (
        f"dimension = {dim} : i64, is_reverse = {str(reverse).lower()}, is_associative = false, "
        "operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>"
    )
    results = program.op("mhlo.scan", args, [(shape, dtype), (rest, dtype)], attributes, region)
    wanted = [expected, np.asarray(carry, dtype=DTYPES[dtype])]
    return Case(program.returns(results), wanted, may_refuse=name == "subtract")


CASES: dict[str, st.SearchStrategy[Case]] = {
    "cholesky": cholesky(),
    "triangular_solve": triangular_solve(),
    "fft": fft(),
    "rng_bit_generator": rng_bit_generator(),
    "custom_call": custom_call(),
    "after_all": after_all(),
    "mhlo.scan": scan(),
    **{name: without_meaning(name) for name in ("rng", "infeed", "recv", "outfeed", "send")},
}
