"""Operations on bits of numbers that are known are done as a machine does them."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
import pytest

from hlo_verify.ops import bits, comparison, conversion
from hlo_verify.ops.values import Context, Value
from hlo_verify.program.element_types import DTYPES, INTEGER_RANGES
from hlo_verify.program.ir import Op, TensorType
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import INFINITY
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import ONE, ZERO, Poly, number

CONTEXT = Context(None, 1, 1, lambda *_: [])
FUNCTIONS: dict[str, Callable[..., object]] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "shift_left": operator.lshift,
    "shift_right_logical": operator.rshift,
    "shift_right_arithmetic": operator.rshift,
}


def outcome(name: str, *operands: Value, dtype: str, **attributes: str) -> Poly:
    op = Op(name, (0, 1)[: len(operands)], (2,), (TensorType((), dtype),), attributes)
    rules = {**bits.RULES, **comparison.RULES, **conversion.RULES}
    (value,) = rules[name](op, list(operands), CONTEXT)
    return value.term


def scalar(dtype: str, term: Poly) -> Value:
    return Value(TensorType((), dtype), term)


@pytest.mark.parametrize("dtype", ["i8", "ui8", "i32", "ui32", "ui64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_of_integers(name: str, dtype: str) -> None:
    """Whatever multiples of the number of the type's values a term has on top."""
    drawn, (lo, hi) = np.random.default_rng(0), INTEGER_RANGES[dtype]
    kind = DTYPES[dtype]
    for _ in range(20):
        a, b = (int(n) for n in drawn.integers(lo, hi, 2, kind, endpoint=True))
        if "shift" in name:
            b %= kind.itemsize * 8
        whole = np.dtype(f"{'u' if name == 'shift_right_logical' else 'i'}{kind.itemsize}")
        shifted = whole if "shift_right" in name else kind
        expected = np.asarray(FUNCTIONS[name](np.array(a, kind).view(shifted), np.array(b, kind).view(shifted)))
        found = outcome(name, scalar(dtype, number(a + 3 * (hi - lo + 1))), scalar(dtype, number(b)), dtype=dtype)
        assert found.constant == int(expected.astype(shifted).view(kind))


def test_shifts_by_the_width_are_not_done() -> None:
    assert outcome("shift_left", scalar("ui8", number(3)), scalar("ui8", number(8)), dtype="ui8").constant is None


@pytest.mark.parametrize(("integers", "floats"), [("ui32", "f32"), ("i32", "f32"), ("ui16", "bf16"), ("ui64", "f64")])
def test_bits_of_numbers(integers: str, floats: str) -> None:
    for known in (1.0, -2.5, 3.0e-5):
        exact = np.array(known, DTYPES[floats])
        pattern = int(exact.view(DTYPES[integers]))
        there = outcome("bitcast_convert", scalar(integers, number(pattern)), dtype=floats)
        assert there.constant is not None and float(there.constant) == float(exact)
        assert outcome("bitcast_convert", scalar(floats, there), dtype=integers).constant == pattern


@pytest.mark.parametrize("term", [ZERO, number(1 + 2 * 2**30 + 2**60)], ids=["no sign", "not held"])
def test_bits_that_are_not_known(term: Poly) -> None:
    assert outcome("bitcast_convert", scalar("f32", term), dtype="ui32").constant is None


def test_what_is_no_number_stays_a_function() -> None:
    assert outcome("bitcast_convert", scalar("ui32", number(0x7FC00000)), dtype="f32").constant is None
    assert outcome("bitcast_convert", scalar("ui32", number(0x80000000)), dtype="f32").constant is None


def test_infinities_are_compared() -> None:
    infinity = apply(INFINITY, ())
    values = {-np.inf: algebra.scale(infinity, -1), -1.0: number(-1), 0.0: ZERO, 2.0: number(2), np.inf: infinity}
    named = {"LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge}
    for direction, holds in {**named, "EQ": operator.eq, "NE": operator.ne}.items():
        for a, p in values.items():
            for b, q in values.items():
                operands = scalar("f32", p), scalar("f32", q)
                found = outcome("compare", *operands, dtype="i1", comparison_direction=direction)
                assert found is (ONE if holds(a, b) else ZERO)
