"""Enclosures at the borders of functions: what is no number, infinite, undefined, or cannot be told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flint import acb, arb

from hlo_verify.evaluate import dense, evaluate, of_dense, unary
from hlo_verify.evaluate.balls import (
    INFINITE,
    INFINITY,
    MINUS_INFINITY,
    NAN,
    UNDEFINED,
    UNKNOWN,
    ZERO,
    exact,
    is_unknown,
    precision,
    same,
)
from hlo_verify.evaluate.enclosures import COMPLEX, REAL, chosen, compared
from hlo_verify.evaluate.maps import Array
from hlo_verify.passes.load.load import load

ONE, NEAR_ZERO, NEAR_ONE = arb(1), arb(0, 1e-9), arb(1, 1e-9)


def of(name: str, *operands: Any) -> Any:
    """The function of single elements."""
    arrays = [np.empty((), object) for _ in operands]
    for array, each in zip(arrays, operands, strict=True):
        array[()] = each
    return np.asarray(REAL[name](*arrays)).item()


@pytest.mark.parametrize(
    ("name", "operands", "wanted"),
    [
        ("divide", (ZERO, ZERO), NAN),
        ("divide", (ONE, ZERO), INFINITE),
        ("divide", (ONE, NEAR_ZERO), UNKNOWN),
        ("divide", (NEAR_ZERO, ZERO), UNKNOWN),
        ("divide", (ONE, INFINITY), ZERO),
        ("divide", (INFINITY, INFINITY), NAN),
        ("multiply", (ZERO, INFINITY), NAN),
        ("multiply", (NEAR_ZERO, INFINITY), UNKNOWN),
        ("multiply", (arb(-2), INFINITY), MINUS_INFINITY),
        ("multiply", (ZERO, NAN), NAN),
        ("multiply", (ZERO, UNKNOWN), UNKNOWN),
        ("multiply", (ZERO, INFINITE), NAN),
        ("add", (INFINITY, MINUS_INFINITY), NAN),
        ("add", (INFINITY, INFINITY), INFINITY),
        ("add", (INFINITY, NEAR_ONE), INFINITY),
        ("add", (INFINITE, INFINITE), UNKNOWN),
        ("add", (NAN, UNKNOWN), UNKNOWN),
        ("subtract", (INFINITY, INFINITY), NAN),
        ("log", (ZERO,), MINUS_INFINITY),
        ("log", (arb(-1),), NAN),
        ("log", (NEAR_ZERO,), UNKNOWN),
        ("log", (INFINITY,), INFINITY),
        ("log_plus_one", (arb(-1),), MINUS_INFINITY),
        ("sqrt", (ZERO,), ZERO),
        ("sqrt", (arb(-1),), NAN),
        ("rsqrt", (ZERO,), INFINITE),
        ("rsqrt", (INFINITY,), ZERO),
        ("exponential", (MINUS_INFINITY,), ZERO),
        ("tanh", (MINUS_INFINITY,), arb(-1)),
        ("logistic", (INFINITY,), ONE),
        ("erfc", (INFINITY,), ZERO),
        ("sine", (INFINITY,), NAN),
        ("lgamma", (ZERO,), INFINITY),
        ("lgamma", (arb(-3),), INFINITY),
        ("digamma", (ZERO,), NAN),
        ("power", (ZERO, ZERO), ONE),
        ("power", (ZERO, arb(-1)), INFINITE),
        ("power", (arb(-2), arb(3)), arb(-8)),
        ("power", (arb(-2), arb(0.5)), NAN),
        ("remainder", (arb(7), ZERO), NAN),
        ("remainder", (arb(-7), arb(4)), arb(-3)),
        ("floor", (arb(2.5),), arb(2)),
        ("round_nearest_even", (arb(2.5),), arb(2)),
        ("round_nearest_even", (arb(3.5),), arb(4)),
        ("round_nearest_afz", (arb(-2.5),), arb(-3)),
        ("maximum", (NAN, ONE), NAN),
        ("maximum", (NAN, UNKNOWN), UNKNOWN),
        ("maximum", (MINUS_INFINITY, ONE), ONE),
        ("atan2", (ZERO, arb(-1)), UNKNOWN),
        ("is_finite", (NAN,), False),
        ("is_finite", (UNKNOWN,), UNDEFINED),
    ],
)
def test_borders(name: str, operands: tuple[Any, ...], wanted: Any) -> None:
    found = of(name, *operands)
    assert found is wanted or same(found, wanted)


def test_what_only_touches_a_jump_is_enclosed_on_both_sides() -> None:
    for name in ("floor", "ceil", "round_nearest_even", "sign"):
        argument = arb(0.5, 1e-9) if name.startswith("round") else NEAR_ZERO if name == "sign" else NEAR_ONE
        found = of(name, argument)
        for point in (argument.lower(), argument.upper()):
            assert found.contains(of(name, point))


@pytest.mark.parametrize(
    ("direction", "a", "b", "wanted"),
    [
        ("LT", ONE, arb(2), True),
        ("LT", ONE, ONE, False),
        ("LT", ONE, NEAR_ONE, UNDEFINED),
        ("EQ", ONE, arb(1), True),
        ("EQ", NEAR_ONE, arb(1, 1e-9), UNDEFINED),
        ("EQ", NEAR_ONE, arb(2), False),
        ("LE", MINUS_INFINITY, NEAR_ONE, True),
        ("NE", NAN, NAN, True),
        ("EQ", NAN, ONE, False),
        ("GE", NAN, UNKNOWN, UNDEFINED),
    ],
)
def test_comparisons_are_decided_or_not(direction: str, a: Any, b: Any, wanted: Any) -> None:
    assert compared(direction, False)(a, b) is wanted


def test_a_number_is_equal_to_itself_even_where_it_is_not_exact() -> None:
    third = ONE / 3
    assert compared("EQ", False)(third, third) is True
    assert compared("NE", False)(UNKNOWN, UNKNOWN) is UNDEFINED


def test_a_choice_that_is_open_holds_both() -> None:
    found = chosen(UNDEFINED, ONE, arb(3))
    assert found.contains(ONE) and found.contains(arb(3))
    assert chosen(UNDEFINED, NEAR_ONE, NEAR_ONE) is NEAR_ONE
    assert chosen(UNDEFINED, 3, 4) is UNDEFINED and chosen(UNDEFINED, 3, 3) == 3
    assert is_unknown(chosen(UNDEFINED, ONE, NAN))


def test_complex_functions_are_open_on_their_cuts() -> None:
    values = np.array([acb(-1, 0), acb(-1, 1)], object)
    first, second = COMPLEX["sqrt"](values)
    assert is_unknown(first) and not is_unknown(second)


def enclosed(body: str, arguments: str, result: str, *values: Array) -> Array:
    """The elements of a small module's result."""
    text = f"func.func @main({arguments}) -> {result} {{\n{body}\n return %y : {result}\n}}"
    (found,) = evaluate(load(text), [of_dense(value) for value in values], 1, real=object).results
    assert found is not None
    return dense(found, 0)


@pytest.mark.parametrize(
    ("operation", "a", "b", "undefined"),
    [
        ("divide", [7, 7, -128, -128], [2, 0, -1, 1], [1, 2]),
        ("remainder", [7, 7, -128, -128], [2, 0, -1, 1], [1, 2]),
        ("shift_left", [1, 1, 1, 1], [7, 8, -1, 0], [1, 2]),
        ("shift_right_arithmetic", [1, 1, 1, 1], [7, 8, -1, 0], [1, 2]),
        ("shift_right_logical", [1, 1, 1, 1], [7, 8, -1, 0], [1, 2]),
        ("power", [2, 2, 1, 0], [3, -1, 0, 0], [1]),
    ],
)
def test_integers_without_a_defined_result(operation: str, a: list[int], b: list[int], undefined: list[int]) -> None:
    kind = "tensor<4xi8>"
    body = f"%y = stablehlo.{operation} %a, %b : {kind}"
    found = enclosed(body, f"%a: {kind}, %b: {kind}", kind, np.array(a, np.int8), np.array(b, np.int8))
    assert [n for n, each in enumerate(found) if each is UNDEFINED] == undefined


def test_conversions_that_do_not_fit_are_undefined() -> None:
    x = np.array([127.9, 128.0, -129.0, np.nan, 3.0])
    body = "%y = stablehlo.convert %a : (tensor<5xf64>) -> tensor<5xi8>"
    found = enclosed(body, "%a: tensor<5xf64>", "tensor<5xi8>", x)
    assert [each if each is not UNDEFINED else None for each in found] == [127, None, None, None, 3]


def test_what_is_undefined_is_left_behind_by_a_choice() -> None:
    body = """
      %z = stablehlo.constant dense<0> : tensor<3xi32>
      %q = stablehlo.divide %a, %b : tensor<3xi32>
      %p = stablehlo.compare NE, %b, %z : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
      %y = stablehlo.select %p, %q, %z : tensor<3xi1>, tensor<3xi32>"""
    arguments = "%a: tensor<3xi32>, %b: tensor<3xi32>"
    found = enclosed(body, arguments, "tensor<3xi32>", np.array([6, 7, 8], np.int32), np.array([2, 0, 4], np.int32))
    assert found.tolist() == [3, 0, 2] and found.dtype == np.int32


@pytest.mark.parametrize(("stable", "wanted"), [("true", [1, 2, 0]), ("false", [None, None, 0])])
def test_ties_under_a_sort(stable: str, wanted: list[int | None]) -> None:
    body = f"""
      %k = stablehlo.iota dim = 0 : tensor<3xi32>
      %s:2 = "stablehlo.sort"(%a, %k) <{{dimension = 0 : i64, is_stable = {stable}}}> ({{
        ^bb0(%l: tensor<f32>, %r: tensor<f32>, %m: tensor<i32>, %n: tensor<i32>):
          %c = stablehlo.compare LT, %l, %r, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
      }}) : (tensor<3xf32>, tensor<3xi32>) -> (tensor<3xf32>, tensor<3xi32>)
      %y = stablehlo.add %s#1, %s#1 : tensor<3xi32>"""
    found = enclosed(body, "%a: tensor<3xf32>", "tensor<3xi32>", np.array([5.0, 2.0, 2.0]))
    assert [None if each is UNDEFINED else int(each) // 2 for each in found] == wanted


def test_an_order_that_cannot_be_told_is_not_known() -> None:
    body = """
      %t = stablehlo.constant dense<3.0> : tensor<2xf64>
      %d = stablehlo.divide %a, %t : tensor<2xf64>
      %s = "stablehlo.sort"(%d) <{dimension = 0 : i64}> ({
        ^bb0(%l: tensor<f64>, %r: tensor<f64>):
          %c = stablehlo.compare LT, %l, %r : (tensor<f64>, tensor<f64>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
      }) : (tensor<2xf64>) -> tensor<2xf64>
      %y = stablehlo.add %s, %s : tensor<2xf64>"""
    module = load(f"func.func @main(%a: tensor<2xf64>) -> tensor<2xf64> {{\n{body}\n return %y : tensor<2xf64>\n}}")
    for values, is_known in (([1.0, 2.0], True), ([1.0, 1.0], False)):
        (found,) = evaluate(module, [of_dense(np.array(values))], 1, real=object).results
        assert (found is not None) == is_known


def test_more_bits_make_narrower_balls() -> None:
    with precision(64):
        wide = (ONE / 3).exp()
    with precision(256):
        narrow = (ONE / 3).exp()
    assert narrow.rad() < wide.rad() * 1e-40 and wide.contains(narrow)


def test_arrays_become_exact_balls() -> None:
    found = exact(np.array([0.1, np.inf, np.nan]))
    assert found[0] == arb(0.1) and found[1] == INFINITY and found[2] is NAN


@pytest.mark.parametrize("name", sorted(unary.COMPLEX))
def test_elements_of_complex_types_that_are_held_as_real_ones(name: str) -> None:
    """The 0 that a device receives of nobody, a number past the end of a tensor: a method of complex numbers that is
    called with one reads memory beside it, and ended the process."""
    for x in (0.5, 2, -3, NEAR_ONE):
        held, plain = (unary.COMPLEX[name](each) for each in (arb(x), acb(x)))
        assert same(held, plain) or held.overlaps(plain) or not (held.is_finite() or plain.is_finite())
    assert not any(unary.COMPLEX[name](x).is_finite() for x in (NAN, INFINITE, UNKNOWN, UNDEFINED))


def test_powers_of_elements_of_complex_types_that_are_held_as_real_ones() -> None:
    held, plain = (COMPLEX["power"](np.array([make(2)], object), np.array([acb(1, 1)], object)) for make in (arb, acb))
    assert held.item().overlaps(plain.item())
