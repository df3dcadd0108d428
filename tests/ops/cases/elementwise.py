"""Elementwise operations, conversions and constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.special
from hypothesis import strategies as st

from hlo_verify.program.element_types import DTYPES
from tests.ops.cases.drawing import COMPLEX, FLOATS, INTEGERS, SIGNED, Case, Draw, cases, operand, shapes, values
from tests.support.functions import is_integer
from tests.support.modules import Program
from tests.support.reference import reference

Strategy = st.SearchStrategy[Case]


@cases
def pointwise(
    draw: Draw,
    name: str,
    dtypes: Sequence[str],
    count: int = 2,
    result: str | None = None,
    domain: tuple[float, float] | None = None,
    attributes: str = "",
) -> Case:
    program = Program()
    shape = draw(shapes())
    dtype = draw(st.sampled_from(tuple(dtypes)))
    args = [operand(draw, program, shape, dtype, domain if not is_integer(dtype) else None) for _ in range(count)]
    return Case(program.returns(program.op(name, args, [(shape, result or dtype)], attributes)))


@cases
def scientific(
    draw: Draw, name: str, function: Callable[..., Any], domain: tuple[float, float], count: int = 1
) -> Case:
    """An operation that the interpreter does not know: numpy's or scipy's answer on its operands."""
    program = Program()
    shape = draw(shapes())
    args = [operand(draw, program, shape, "f64", domain) for _ in range(count)]
    known = reference(program.returns(args))
    with np.errstate(all="ignore"):
        expected = [np.asarray(function(*known), dtype=np.float64)]
    return Case(program.returns(program.op(name, args, [(shape, "f64")])), expected)


@cases
def select(draw: Draw) -> Case:
    program = Program()
    shape, dtype = draw(shapes()), draw(st.sampled_from((*INTEGERS, *FLOATS, "i1", *COMPLEX)))
    condition = operand(draw, program, draw(st.sampled_from((shape, ()))), "i1")
    args = [operand(draw, program, shape, dtype) for _ in range(2)]
    return Case(program.returns(program.op("select", [condition, *args], [(shape, dtype)])))


@cases
def clamp(draw: Draw) -> Case:
    program = Program()
    shape, dtype = draw(shapes()), draw(st.sampled_from((*INTEGERS, *FLOATS)))
    edge = draw(st.sampled_from((shape, ())))
    args = [operand(draw, program, s, dtype) for s in (edge, shape, edge)]
    return Case(program.returns(program.op("clamp", args, [(shape, dtype)])))


@cases
def compare(draw: Draw) -> Case:
    program = Program()
    shape, dtype = draw(shapes()), draw(st.sampled_from((*INTEGERS, *FLOATS, "i1", *COMPLEX)))
    names = ("EQ", "NE") if dtype in COMPLEX else ("EQ", "NE", "GT", "GE", "LT", "LE")
    attributes = f"comparison_direction = #stablehlo<comparison_direction {draw(st.sampled_from(names))}>"
    kinds = ["FLOAT"] if dtype in (*FLOATS, *COMPLEX) else ["SIGNED" if dtype in SIGNED else "UNSIGNED"]
    if dtype in FLOATS:
        kinds.append("TOTALORDER")
    kind = draw(st.sampled_from((None, *kinds)))
    if kind is not None:
        attributes += f", compare_type = #stablehlo<comparison_type {kind}>"
    if kind == "TOTALORDER":  # of what is computed nobody knows it
        args = [program.argument(values(draw, shape, dtype, None)) for _ in range(2)]
    else:
        args = [operand(draw, program, shape, dtype) for _ in range(2)]
    return Case(program.returns(program.op("compare", args, [(shape, "i1")], attributes)))


@cases
def convert(draw: Draw) -> Case:
    program = Program()
    old = draw(st.sampled_from((*INTEGERS, *FLOATS, "i1", "bf16", "f16", "i4", "ui4", "f8E5M2", *COMPLEX)))
    new = draw(st.sampled_from((*INTEGERS, *FLOATS, "i1", "bf16", "f16", "i4", "ui4", *COMPLEX)))
    shape = draw(shapes())
    # Values that every float type holds exactly, so that no conversion between them rounds.
    domain = None if old in INTEGERS and is_integer(new) else (-4, 4) if old not in ("ui4",) else (0, 7)
    if old.startswith("ui") and domain is not None:
        domain = (0, 7)
    if not is_integer(old) and new.startswith("ui"):
        domain = (0, 4)  # a negative float as an unsigned integer is implementation-defined
    if old in ("i4", "ui4", "bf16", "f16", "f8E5M2"):
        source = program.argument(values(draw, shape, old, domain or (0, 4)))
    else:
        source = operand(draw, program, shape, old, domain)
    refused = old in COMPLEX and new == "i1"
    return Case(program.returns(program.op("convert", [source], [(shape, new)])), may_refuse=refused)


@cases
def shift(draw: Draw, name: str) -> Case:
    program = Program()
    shape, dtype = draw(shapes()), draw(st.sampled_from(INTEGERS))
    left = operand(draw, program, shape, dtype)
    by = operand(draw, program, shape, dtype, (0, 20) if draw(st.booleans()) else None)
    return Case(program.returns(program.op(name, [left, by], [(shape, dtype)])))


@cases
def high_half(draw: Draw) -> Case:
    program = Program()
    shape, dtype = draw(shapes()), draw(st.sampled_from(INTEGERS))
    args = [operand(draw, program, shape, dtype) for _ in range(2)]
    a, b = (known.astype(object) for known in reference(program.returns(args)))
    bits = np.dtype(DTYPES[dtype]).itemsize * 8
    expected = np.asarray(a * b >> bits).astype(DTYPES[dtype])
    return Case(program.returns(program.op("chlo.mulhi", args, [(shape, dtype)])), [expected])


@cases
def integer_division(draw: Draw, name: str) -> Case:
    program = Program()
    shape, dtype = draw(shapes()), draw(st.sampled_from((*INTEGERS, *FLOATS)))
    top = operand(draw, program, shape, dtype)
    if dtype in FLOATS:
        bottom = program.argument(values(draw, shape, dtype, (1, 4)))
    else:
        array = values(draw, shape, dtype)
        array = np.where(array == 0, np.array(3, array.dtype), array)
        if draw(st.booleans()):
            array = np.broadcast_to(np.array(draw(st.sampled_from((1, 2, 3, 7))), array.dtype), shape)
        # The smallest value divided by -1 overflows: implementation-defined.
        array = np.where(array == np.array(-1).astype(array.dtype), np.array(5, array.dtype), array)
        bottom = draw(st.sampled_from((program.constant, program.argument)))(array)
    return Case(program.returns(program.op(name, [top, bottom], [(shape, dtype)])))


@cases
def power(draw: Draw) -> Case:
    program = Program()
    shape, dtype = draw(shapes()), draw(st.sampled_from((*INTEGERS, *FLOATS)))
    base = operand(draw, program, shape, dtype, (1, 4) if dtype in FLOATS else None)
    exponent = operand(draw, program, shape, dtype, (0, 3) if is_integer(dtype) else (-2, 3))
    return Case(program.returns(program.op("power", [base, exponent], [(shape, dtype)])))


@cases
def iota(draw: Draw) -> Case:
    program = Program()
    shape, dtype = draw(shapes(least=1)), draw(st.sampled_from((*INTEGERS, *FLOATS, *COMPLEX)))
    attributes = f"iota_dimension = {draw(st.integers(0, len(shape) - 1))} : i64"
    return Case(program.returns(program.op("iota", [], [(shape, dtype)], attributes)))


@cases
def constant(draw: Draw) -> Case:
    program = Program()
    dtype = draw(st.sampled_from((*INTEGERS, *FLOATS, "i1", "bf16", "f16", "i4", "ui4", "f8E4M3FN", *COMPLEX)))
    array = values(draw, draw(shapes()), dtype, (0, 7) if dtype in ("i4", "ui4") else None)
    if dtype in FLOATS and array.size and draw(st.booleans()):
        array = array.copy()
        array.flat[0] = draw(st.sampled_from((np.inf, -np.inf, np.nan, 1e-30, 0.1)))
    if draw(st.booleans()):
        array = np.broadcast_to(array.flat[0], array.shape) if array.size else array
    return Case(program.returns([program.constant(array)]))


@cases
def bitcast(draw: Draw) -> Case:
    program = Program()
    sizes = {"i8": 8, "ui8": 8, "i16": 16, "ui16": 16, "bf16": 16, "f16": 16, "i32": 32, "f32": 32, "ui32": 32}
    old, new = (draw(st.sampled_from(tuple(sizes))) for _ in range(2))
    shape = draw(shapes())
    result: tuple[int, ...] = shape
    if sizes[old] > sizes[new]:
        result = (*shape, sizes[old] // sizes[new])
    elif sizes[old] < sizes[new]:
        shape = (*shape, sizes[new] // sizes[old])
    source = program.argument(values(draw, shape, old, (-4, 4) if not is_integer(old) else None))
    return Case(program.returns(program.op("bitcast_convert", [source], [(result, new)])))


@cases
def reduce_precision(draw: Draw) -> Case:
    program = Program()
    shape, dtype = draw(shapes()), draw(st.sampled_from(FLOATS))
    attributes = f"exponent_bits = {draw(st.integers(2, 6))} : i32, mantissa_bits = {draw(st.integers(1, 6))} : i32"
    args = [operand(draw, program, shape, dtype)]
    return Case(program.returns(program.op("reduce_precision", args, [(shape, dtype)], attributes)))


@cases
def complex_part(draw: Draw, name: str) -> Case:
    program = Program()
    shape, dtype = draw(shapes()), draw(st.sampled_from((*COMPLEX, *FLOATS)))
    result = {"complex<f32>": "f32", "complex<f64>": "f64"}.get(dtype, dtype)
    return Case(program.returns(program.op(name, [operand(draw, program, shape, dtype)], [(shape, result)])))


@cases
def make_complex(draw: Draw) -> Case:
    program = Program()
    shape, dtype = draw(shapes()), draw(st.sampled_from(FLOATS))
    args = [operand(draw, program, shape, dtype) for _ in range(2)]
    return Case(program.returns(program.op("complex", args, [(shape, f"complex<{dtype}>")])))


@cases
def magnitude(draw: Draw) -> Case:
    program = Program()
    shape, dtype = draw(shapes()), draw(st.sampled_from((*SIGNED, *FLOATS, *COMPLEX)))
    result = {"complex<f32>": "f32", "complex<f64>": "f64"}.get(dtype, dtype)
    return Case(program.returns(program.op("abs", [operand(draw, program, shape, dtype)], [(shape, result)])))


@cases
def map_(draw: Draw) -> Case:
    program = Program()
    shape, dtype = draw(shapes(least=1)), draw(st.sampled_from(("f32", "i8")))
    args = [operand(draw, program, shape, dtype) for _ in range(2)]
    kind = f"tensor<{dtype}>"
    region = (
        f"{{ ^bb0(%x: {kind}, %y: {kind}): %s = stablehlo.add %x, %y : {kind} %m = stablehlo.maximum %s, %y : {kind} "
        f'"stablehlo.return"(%m) : ({kind}) -> () }}'
    )
    attributes = f"dimensions = array<i64: {', '.join(map(str, range(len(shape))))}>"
    return Case(program.returns(program.op("map", args, [(shape, dtype)], attributes, region)))


def _polygamma(n: Any, x: Any) -> Any:
    return np.where(n == np.floor(n), scipy.special.polygamma(np.floor(n).astype(int), x), np.nan)


ANY = (*INTEGERS, *FLOATS)
BITS = (*INTEGERS, "i1")
POSITIVE, UNIT, WIDE = (0.25, 4.0), (-0.75, 0.75), (-4.0, 4.0)


def real(name: str, domain: tuple[float, float] = WIDE, count: int = 1, complex_too: bool = False) -> Strategy:
    return pointwise(name, (*FLOATS, *(COMPLEX if complex_too else ())), count, None, domain)


def science(name: str, function: Callable[..., Any], domain: tuple[float, float] = WIDE) -> Strategy:
    return scientific(name, function, domain)


CASES: dict[str, Strategy] = {
    "add": pointwise("add", (*ANY, "i1", *COMPLEX)),
    "subtract": pointwise("subtract", (*ANY, *COMPLEX)),
    "multiply": pointwise("multiply", (*ANY, "i1", *COMPLEX)),
    "negate": pointwise("negate", (*ANY, *COMPLEX), 1),
    "divide": integer_division("divide"),
    "remainder": integer_division("remainder"),
    "maximum": pointwise("maximum", (*ANY, "i1")),
    "minimum": pointwise("minimum", (*ANY, "i1")),
    "clamp": clamp(),
    "select": select(),
    "compare": compare(),
    "and": pointwise("and", BITS),
    "or": pointwise("or", BITS),
    "xor": pointwise("xor", BITS),
    "not": pointwise("not", BITS, 1),
    "shift_left": shift("shift_left"),
    "shift_right_logical": shift("shift_right_logical"),
    "shift_right_arithmetic": shift("shift_right_arithmetic"),
    "power": power(),
    "convert": convert(),
    "iota": iota(),
    "constant": constant(),
    "bitcast_convert": bitcast(),
    "reduce_precision": reduce_precision(),
    "is_finite": pointwise("is_finite", FLOATS, 1, "i1"),
    "exponential": real("exponential", complex_too=True),
    "exponential_minus_one": real("exponential_minus_one"),
    "log": real("log", POSITIVE, complex_too=True),
    "log_plus_one": real("log_plus_one", POSITIVE),
    "sqrt": real("sqrt", POSITIVE, complex_too=True),
    "rsqrt": real("rsqrt", POSITIVE, complex_too=True),
    "cbrt": real("cbrt"),
    "cosine": real("cosine", complex_too=True),
    "sine": real("sine", complex_too=True),
    "tan": real("tan", UNIT),
    "tanh": real("tanh", complex_too=True),
    "logistic": real("logistic", complex_too=True),
    "ceil": real("ceil"),
    "floor": real("floor"),
    "round_nearest_afz": real("round_nearest_afz"),
    "round_nearest_even": real("round_nearest_even"),
    "sign": pointwise("sign", (*SIGNED, *FLOATS), 1),
    "abs": magnitude(),
    "atan2": real("atan2", count=2),
    "popcnt": pointwise("popcnt", INTEGERS, 1),
    "count_leading_zeros": pointwise("count_leading_zeros", INTEGERS, 1),
    "real": complex_part("real"),
    "imag": complex_part("imag"),
    "complex": make_complex(),
    "chlo.erf": science("chlo.erf", scipy.special.erf),
    "mhlo.erf": science("mhlo.erf", scipy.special.erf),
    "chlo.erfc": science("chlo.erfc", scipy.special.erfc),
    "chlo.erf_inv": science("chlo.erf_inv", scipy.special.erfinv, UNIT),
    "chlo.lgamma": science("chlo.lgamma", scipy.special.gammaln, POSITIVE),
    "chlo.digamma": science("chlo.digamma", scipy.special.digamma, POSITIVE),
    "chlo.mulhi": high_half(),
    "chlo.square": science("chlo.square", np.square),
    "chlo.tan": science("chlo.tan", np.tan, UNIT),
    "mhlo.tan": science("mhlo.tan", np.tan, UNIT),
    "chlo.asin": science("chlo.asin", np.arcsin, UNIT),
    "chlo.acos": science("chlo.acos", np.arccos, UNIT),
    "chlo.atan": science("chlo.atan", np.arctan),
    "chlo.sinh": science("chlo.sinh", np.sinh),
    "chlo.cosh": science("chlo.cosh", np.cosh),
    "chlo.asinh": science("chlo.asinh", np.arcsinh),
    "chlo.acosh": science("chlo.acosh", np.arccosh, (1.0, 4.0)),
    "chlo.atanh": science("chlo.atanh", np.arctanh, UNIT),
    "mhlo.asin": science("mhlo.asin", np.arcsin, UNIT),
    "mhlo.acos": science("mhlo.acos", np.arccos, UNIT),
    "mhlo.sinh": science("mhlo.sinh", np.sinh),
    "mhlo.cosh": science("mhlo.cosh", np.cosh),
    "mhlo.asinh": science("mhlo.asinh", np.arcsinh),
    "mhlo.acosh": science("mhlo.acosh", np.arccosh, (1.0, 4.0)),
    "mhlo.atanh": science("mhlo.atanh", np.arctanh, UNIT),
    "chlo.bessel_i1e": science("chlo.bessel_i1e", scipy.special.i1e),
    "chlo.zeta": scientific("chlo.zeta", scipy.special.zeta, (1.5, 4.0), 2),
    "chlo.polygamma": scientific("chlo.polygamma", _polygamma, (1.0, 3.0), 2),
    "map": map_(),
    "chlo.next_after": scientific("chlo.next_after", np.nextafter, WIDE, 2),
}
