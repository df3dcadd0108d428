"""No rounding of a constant is covered in the argument of a function where that has a slope without bound."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.passes.chain.test_amplified import KIND, Program, both, judged, three_thirds

Build = Callable[[Program, str], None]


def near_a_border(name: str) -> Build:
    """acos(x * c * 3) + y: where x is 1, of a number or of none."""

    def build(p: Program, c: str) -> None:
        arg = three_thirds(p, c)
        p.lines.append(f"%v{len(p.lines)} = chlo.{name} {arg} : {KIND} -> {KIND}")
        p.apply("add", f"%v{len(p.lines) - 1}", "%y")

    return build


def of_a_difference(name: str) -> Build:
    """log(x * c * 3 - y): where x is y, of 0 or of what is none."""

    def build(p: Program, c: str) -> None:
        p.apply("multiply", p.apply(name, p.apply("subtract", three_thirds(p, c), "%y")), "%x")

    return build


def of_a_sum_of_differences(p: Program, c: str) -> None:
    """log(sum(x * c * 3 - y))"""
    arg, zero = p.apply("subtract", three_thirds(p, c), "%y"), p.constant(0.0, "tensor<f32>")
    kind = f"({KIND}, tensor<f32>) -> tensor<f32>"
    total = p.add(f"reduce({arg} init: {zero}) applies stablehlo.add across dimensions = [0] : {kind}")
    p.add(f"log {total} : tensor<f32>")


def of_a_weighted_sum(name: str, weigh: Callable[[Program], str]) -> Build:
    """log(sum(y * exp(x * c * 3))): one product for each element, which cancel where y has both signs."""

    def build(p: Program, c: str) -> None:
        arg = p.apply("multiply", weigh(p), p.apply("exponential", three_thirds(p, c)))
        zero, kind = p.constant(0.0, "tensor<f32>"), f"({KIND}, tensor<f32>) -> tensor<f32>"
        total = p.add(f"reduce({arg} init: {zero}) applies stablehlo.add across dimensions = [0] : {kind}")
        p.add(f"{name} {total} : tensor<f32>")

    return build


def by_itself(_: Program) -> str:
    return "%y"


def by_its_sine(p: Program) -> str:
    return p.apply("sine", "%y")


def of_a_square(p: Program, c: str) -> None:
    """log(tanh(x * c * 3 - y) ** 2): a square is not far from 0 for its sign."""
    root = p.apply("tanh", p.apply("subtract", three_thirds(p, c), "%y"))
    p.apply("log", p.apply("multiply", root, root))


def of_an_angle(p: Program, c: str) -> None:
    """atan2(x * c * 3 - y, y): half a turn, or its opposite, where x is y and both are negative."""
    p.apply("atan2", p.apply("subtract", three_thirds(p, c), "%y"), "%y")


def next_to_one(p: Program, c: str) -> None:
    """log1p(-x * c * 3)"""
    p.apply("log_plus_one", p.apply("negate", three_thirds(p, c)))


STEEP = [
    *map(near_a_border, ("acos", "asin", "atanh", "acosh", "erf_inv")),
    of_a_difference("log"), of_a_difference("cbrt"), of_a_square, of_a_sum_of_differences, of_an_angle, next_to_one,
    *(of_a_weighted_sum(name, weigh) for name in ("log", "cbrt") for weigh in (by_itself, by_its_sine)),
]  # fmt: skip


@pytest.mark.parametrize("build", STEEP)
def test_no_rounding_is_covered_where_a_slope_has_no_bound(build: object) -> None:
    equal, reason = judged(*both(build))
    assert equal
    assert "a function of it has a slope without bound, or ends" in reason


@pytest.mark.parametrize("sign", ["abs", "logistic"])
def test_a_logarithm_of_a_sum_is_covered_where_all_elements_are_of_one_sign(sign: str) -> None:
    assert judged(*both(of_a_weighted_sum("log", lambda p: p.apply(sign, "%y")))) == (True, "")
