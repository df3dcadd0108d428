"""A constant that one module alone holds may be what the other computes of constants, rounded to the type."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.program.element_types import DTYPES
from tests.support.pairs import REPLICATED, module, on

FUNCTIONS = {
    "tanh": (np.tanh, (2.0, 6.0, -6.0)),
    "exponential": (np.exp, (-30.0, 2.0, 20.0)),
    "exponential_minus_one": (np.expm1, (-12.0,)),
    "logistic": (lambda x: 1 / (1 + np.exp(-x)), (-30.0, 12.0)),
}
NARROW = ["bf16", "f16", "f8E5M2", "f8E4M3"]


def plus(dtype: str, lines: str) -> str:
    """The argument and `%b`."""
    kind = f"tensor<4x{dtype}>"
    body = f"{lines}\n%r = stablehlo.add %b, %x : {kind}\nreturn %r : {kind}".replace("TYPE", kind)
    return module(f"%x: {kind} {on(REPLICATED)}", f"{kind} {on(REPLICATED)}", body, 1)


def constant(name: str, value: float, dtype: str) -> str:
    bits = np.asarray(value, DTYPES[dtype]).view(f"u{ml_dtypes.finfo(DTYPES[dtype]).bits // 8}")
    return f"%{name} = stablehlo.constant dense<0x{int(bits):0{bits.itemsize * 2}X}> : TYPE"


@pytest.mark.drawn(2)
@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_a_function_of_a_constant_is_folded_to_is_not_refuted(name: str, dtype: str) -> None:
    function, points = FUNCTIONS[name]
    for point in points:
        with np.errstate(over="ignore"):
            folded = float(np.asarray(function(np.float64(point))).astype(DTYPES[dtype]))
        computed = plus(dtype, constant("a", point, dtype) + f"\n%b = stablehlo.{name} %a : TYPE")
        literal = plus(dtype, constant("b", folded, dtype))
        for pair in ((computed, literal), (literal, computed)):
            assert hlo_verify.verify(*pair).verdict is not Verdict.REFUTED, (name, point, folded)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", NARROW)
def test_what_it_is_not_is_refuted(dtype: str) -> None:
    computed = plus(dtype, constant("a", 6.0, dtype) + "\n%b = stablehlo.tanh %a : TYPE")
    assert hlo_verify.verify(computed, plus(dtype, constant("b", 2.0, dtype))).verdict is Verdict.REFUTED


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", ["f32", *NARROW])
def test_where_nothing_is_computed_of_constants_a_plain_one_is_meant_as_it_is_written(dtype: str) -> None:
    one, other = (plus(dtype, constant("b", value, dtype)) for value in (1.0, 0.0))
    assert hlo_verify.verify(one, other).verdict is Verdict.REFUTED
