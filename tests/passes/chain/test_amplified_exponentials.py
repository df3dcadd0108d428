"""The exponential of a number that is rounded moves as many times as much as the number is large."""

from __future__ import annotations

import numpy as np
import pytest

from hlo_verify.program.ir import Module
from tests.passes.chain.test_amplified import KIND, MOST, Program, both, judged


def of_exponentials(factor: float, power: int = 1, less: float = 0.0, *, outer: str = "") -> object:
    """x * (exp(1/3 * factor)**power - less), or of a function of that."""

    def build(p: Program, c: str) -> None:
        base = p.apply("exponential", p.apply("multiply", c, p.constant(factor)))
        value = base
        for _ in range(power - 1):
            value = p.apply("multiply", value, base)
        if less:
            value = p.apply("subtract", value, p.constant(less))
        p.apply("multiply", "%x", p.apply(outer, value) if outer else value)

    return build


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (of_exponentials(1.0), ""),
        (of_exponentials(-24.0), ""),
        (of_exponentials(3.0 * MOST), ""),
        (of_exponentials(3.0 * MOST + 4), "times as large"),
        (of_exponentials(-3.0 * MOST - 4), "times as large"),
        (of_exponentials(30.0, power=4), ""),
        (of_exponentials(30.0, power=7), "times as large"),
        (of_exponentials(1.0, less=float(np.exp(1 / 3))), "times as large"),
        (of_exponentials(1.0, less=1.39), "times as large"),
        (of_exponentials(1.0, less=0.5), ""),
        (of_exponentials(3.0, less=float(np.float32(np.e))), "times as large"),
        (of_exponentials(1.0, outer="floor"), "all that is left"),
        (of_exponentials(1.0, outer="sine"), "all that is left"),
        (of_exponentials(1.0, outer="tanh", less=1.3956), "times as large"),
        (of_exponentials(1.0, outer="exponential"), ""),
        (of_exponentials(3.0, outer="exponential", less=1.0), ""),
        (of_exponentials(15.0, outer="exponential", less=150.0), "times as large"),
        (of_exponentials(12.0, outer="exponential"), "times as large"),
    ],
)
def test_the_exponential_of_a_rounded_number(build: object, reason: str) -> None:
    """It moves as many times as much as the number is large."""
    equal, found = judged(*both(build))
    assert equal
    assert reason in found and bool(reason) == bool(found)


def encoded(number: float | None) -> Module:
    """sin(x * exp(2*i * q)), where q is -log(10000)/4, computed or the number that it is folded into."""
    p = Program()
    if number is None:
        logarithm = p.apply("negate", p.apply("log", p.constant(10000.0)))
        q = p.apply("divide", logarithm, p.constant(4.0))
    else:
        q = p.constant(number)
    places = p.apply("multiply", p.add(f"iota dim = 0 : {KIND}"), p.constant(2.0))
    p.apply("sine", p.apply("multiply", "%x", p.apply("exponential", p.apply("multiply", places, q))))
    return p.module


@pytest.mark.parametrize(
    ("times", "is_equal"), [(1.0, True), (1 + 2.0**-20, False), (1 - 2.0**-20, False), (-1.0, False), (2.0, False)]
)
def test_encoded_places(times: float, is_equal: bool) -> None:
    folded = np.float32(-np.log(np.float32(10000.0)) / np.float32(4))
    assert judged(encoded(None), encoded(float(np.float32(folded * times)))) == (is_equal, "")
