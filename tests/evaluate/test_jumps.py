"""Where rounding may decide, an evaluation says so, and nothing is refuted by it."""

from __future__ import annotations

import numpy as np
import pytest

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.evaluate import evaluate, of_dense
from hlo_verify.evaluate.jumps import is_order_unclear, nearly_equal
from hlo_verify.passes.load import load
from tests.support.pairs import elementwise

ONE = "%one = stablehlo.constant dense<1.0> : TYPE\n"
UNIT = (
    "%s = stablehlo.sine %x : TYPE\n %c = stablehlo.cosine %x : TYPE\n %ss = stablehlo.multiply %s, %s : TYPE\n"
    "%cc = stablehlo.multiply %c, %c : TYPE\n %u = stablehlo.add %ss, %cc : TYPE\n"
)
"""`%u` is 1, but for rounding."""

JUMPS = {
    "compare": "%p = stablehlo.compare GE, %u, %one : (TYPE, TYPE) -> tensor<Nxi1>\n"
    "%y = stablehlo.convert %p : (tensor<Nxi1>) -> TYPE",
    "floor": "%y = stablehlo.floor %u : TYPE",
    "ceil": "%y = stablehlo.ceil %u : TYPE",
    "sign": "%z = stablehlo.subtract %u, %one : TYPE\n %g = stablehlo.sign %z : TYPE\n"
    "%y = stablehlo.add %g, %one : TYPE",
    "convert": "%i = stablehlo.convert %u : (TYPE) -> tensor<Nxi32>\n"
    "%y = stablehlo.convert %i : (tensor<Nxi32>) -> TYPE",
    "remainder": "%r = stablehlo.remainder %u, %one : TYPE\n %g = stablehlo.sign %r : TYPE\n"
    "%y = stablehlo.subtract %one, %g : TYPE",
}


@pytest.mark.parametrize("name", JUMPS)
def test_what_rounding_decides_is_no_difference(name: str) -> None:
    whole, part = elementwise("f32", ONE + UNIT + JUMPS[name], ONE + "%y = stablehlo.add %one, %one : TYPE")
    part = part.replace("add %one, %one", "maximum %one, %one")
    whole = whole.replace("<Nx", "<8x")
    assert hlo_verify.verify(whole, part).verdict is Verdict.UNKNOWN


def test_a_jump_well_away_is_a_difference() -> None:
    compare = "%p = stablehlo.compare GE, %s, %x : (TYPE, TYPE) -> tensor<Nxi1>\n"
    result = "%y = stablehlo.convert %p : (tensor<Nxi1>) -> TYPE"
    sine = "%s = stablehlo.sine %x : TYPE\n"
    whole, part = elementwise("f32", sine + compare + result, sine + compare.replace("GE", "LE") + result)
    assert hlo_verify.verify(whole.replace("<Nx", "<8x"), part.replace("<Nx", "<2x")).verdict is Verdict.REFUTED


def test_equal_numbers_are_clear() -> None:
    body = "%y = stablehlo.floor %x : TYPE"
    module = load(elementwise("f32", body, body)[0])
    for values, unclear in (([2.0] * 8, False), ([2.5] * 8, False), ([2.0] * 7 + [2.0 - 1e-12], True)):
        assert evaluate(module, (of_dense(np.array(values)),), 1).unclear == unclear


def test_nearly_equal() -> None:
    a = np.array([0.0, 1.0, -np.inf, 3.0])
    assert not nearly_equal(a, a)
    assert not nearly_equal(a, np.array([1e-9, 1.001, np.inf, 0.0]))
    assert nearly_equal(a, a + 1e-15)
    assert nearly_equal(a, a * (1 + 1e-9))


def test_order() -> None:
    assert not is_order_unclear(np.array([3.0, 1.0, 1.0, 2.0]))
    assert is_order_unclear(np.array([3.0, 1.0, 1.0 + 1e-15, 2.0]))
    assert not is_order_unclear(np.array([3, 1, 1, 2]))


SATURATED = {
    "tanh": "%k = stablehlo.constant dense<100.0> : TYPE\n %s = stablehlo.multiply %x, %k : TYPE\n"
    "%t = stablehlo.tanh %s : TYPE\n %c = stablehlo.constant dense<1.0> : TYPE\n"
    "%p = stablehlo.compare LT, %t, %c : (TYPE, TYPE) -> tensor<Nxi1>\n",
    "underflow": "%k = stablehlo.constant dense<-1.0e5> : TYPE\n %q = stablehlo.multiply %x, %x : TYPE\n"
    "%s = stablehlo.multiply %q, %k : TYPE\n %t = stablehlo.exponential %s : TYPE\n"
    "%c = stablehlo.constant dense<0.0> : TYPE\n %p = stablehlo.compare GT, %t, %c : (TYPE, TYPE) -> tensor<Nxi1>\n",
}


@pytest.mark.parametrize("name", SATURATED)
def test_what_is_saturated_refutes_nothing(name: str) -> None:
    """True of all real numbers."""
    one = "%y = stablehlo.constant dense<1.0> : TYPE"
    result = "%y = stablehlo.convert %p : (tensor<Nxi1>) -> TYPE"
    whole, part = elementwise("f32", one, SATURATED[name] + result)
    verdict = hlo_verify.verify(whole.replace("<Nx", "<8x"), part.replace("<Nx", "<2x")).verdict
    assert verdict is Verdict.UNKNOWN
