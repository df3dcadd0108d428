"""A module that makes a NaN of numbers, where the logical one makes a number, is not the same.

Ten elements on four devices, three on each: the last two places are padding, which is zero, arbitrary, or one. What a
device computes of its padding is masked again by a selection, by a factor, or not at all.
"""

from __future__ import annotations

import pytest

import hlo_verify
from hlo_verify import Verdict
from tests.support.pairs import FOUR, REPLICATED, module, on

POLES = {
    "log": "%f = stablehlo.log %y : TYPE",
    "1/y": "%f = stablehlo.divide %ones, %y : TYPE",
    "y/y": "%f = stablehlo.divide %y, %y : TYPE",
    "y log y": "%g = stablehlo.log %y : TYPE\n%f = stablehlo.multiply %y, %g : TYPE",
    "y/(y*y)": "%g = stablehlo.multiply %y, %y : TYPE\n%f = stablehlo.divide %y, %g : TYPE",
    "sin(y)/y": "%g = stablehlo.sine %y : TYPE\n%f = stablehlo.divide %g, %y : TYPE",
    "y * rsqrt(y)": "%g = stablehlo.rsqrt %y : TYPE\n%f = stablehlo.multiply %y, %g : TYPE",
    "y * lgamma(y)": "%g = chlo.lgamma %y : TYPE -> TYPE\n%f = stablehlo.multiply %y, %g : TYPE",
    "y * digamma(y)": "%g = chlo.digamma %y : TYPE -> TYPE\n%f = stablehlo.multiply %y, %g : TYPE",
    "y ** -1 * y": "%n = stablehlo.negate %ones : TYPE\n%g = stablehlo.power %y, %n : TYPE\n"
    "%f = stablehlo.multiply %y, %g : TYPE",
    "remainder": "%f = stablehlo.remainder %ones, %y : TYPE",
    "exp(log y)": "%g = stablehlo.log %y : TYPE\n%f = stablehlo.exponential %g : TYPE",
    "log y - log y": "%g = stablehlo.log %y : TYPE\n%f = stablehlo.subtract %g, %g : TYPE",
}
"""Functions `%f` of `%y` that are no numbers at 0, or of padding that is none."""

TOTAL = {
    "sine": "%f = stablehlo.sine %y : TYPE",
    "exponential": "%f = stablehlo.exponential %y : TYPE",
    "y * y": "%f = stablehlo.multiply %y, %y : TYPE",
}
"""Functions that are numbers of all numbers."""

SUM = """
    %s = stablehlo.reduce(%m init: %zero) applies stablehlo.add across dimensions = [0]
      : (TYPE, tensor<f32>) -> tensor<f32>
"""
LARGEST = SUM.replace("stablehlo.add", "stablehlo.maximum").replace("%zero", "%low")

SELECTED = "%m = stablehlo.select %inside, %f, %zeros : TRUTHS, TYPE"
MULTIPLIED = "%w = stablehlo.convert %inside : (TRUTHS) -> TYPE\n%m = stablehlo.multiply %f, %w : TYPE"
LEFT = "%m = stablehlo.add %f, %zeros : TYPE"

ZEROED = "%y = stablehlo.select %inside, %x, %zeros : TRUTHS, TYPE"
ARBITRARY = "%y = stablehlo.add %x, %zeros : TYPE"
SAFE = "%y = stablehlo.select %inside, %x, %ones : TRUTHS, TYPE"

CONSTANTS = """
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zeros = stablehlo.constant dense<0.0> : TYPE
    %ones = stablehlo.constant dense<1.0> : TYPE
"""

INSIDE = """
    %id = stablehlo.partition_id : tensor<ui32>
    %d = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %start = stablehlo.multiply %d, %three : tensor<i32>
    %starts = stablehlo.broadcast_in_dim %start, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %places = stablehlo.iota dim = 0 : tensor<3xi32>
    %at = stablehlo.add %starts, %places : tensor<3xi32>
    %ten = stablehlo.constant dense<10> : tensor<3xi32>
    %inside = stablehlo.compare LT, %at, %ten : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
"""

ALL_REDUCE = """
    %t = "stablehlo.all_reduce"(%s) <{
      replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids
    }> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.REDUCER %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
    }) : (tensor<f32>) -> tensor<f32>
    return %t : tensor<f32>
"""


def verdict(function: str, padding: str, masked: str, reduced: str = SUM) -> Verdict:
    """Of the sum (or maximum) of a function of ten elements, computed on four devices."""
    whole = f"{CONSTANTS}\n%y = stablehlo.add %x, %zeros : TYPE\n{function}\n{LEFT}\n{reduced}\nreturn %s : tensor<f32>"
    reducer = "maximum" if reduced is LARGEST else "add"
    part = "\n".join((CONSTANTS, INSIDE, padding, function, masked, reduced, ALL_REDUCE.replace("REDUCER", reducer)))
    logical = module(
        f"%x: tensor<10xf32> {on(FOUR)}",
        f"tensor<f32> {on(REPLICATED)}",
        whole.replace("TYPE", "tensor<10xf32>"),
    )
    local = part.replace("TYPE", "tensor<3xf32>").replace("TRUTHS", "tensor<3xi1>")
    return hlo_verify.verify(logical, module("%x: tensor<3xf32>", "tensor<f32>", local), refute=False).verdict


@pytest.mark.parametrize("padding", [ZEROED, ARBITRARY, SAFE])
@pytest.mark.parametrize("function", [*POLES, *TOTAL])
def test_what_a_selection_masks_does_not_matter(function: str, padding: str) -> None:
    assert verdict((POLES | TOTAL)[function], padding, SELECTED) is Verdict.PROVED


@pytest.mark.parametrize("function", POLES)
def test_a_factor_masks_no_pole(function: str) -> None:
    assert verdict(POLES[function], ZEROED, MULTIPLIED) is not Verdict.PROVED


@pytest.mark.parametrize("function", [*POLES, *TOTAL])
def test_a_factor_masks_no_arbitrary_padding(function: str) -> None:
    assert verdict((POLES | TOTAL)[function], ARBITRARY, MULTIPLIED) is not Verdict.PROVED


@pytest.mark.parametrize("function", TOTAL)
def test_a_factor_masks_numbers(function: str) -> None:
    assert verdict(TOTAL[function], ZEROED, MULTIPLIED) is Verdict.PROVED


@pytest.mark.parametrize("padding", [ZEROED, ARBITRARY])
@pytest.mark.parametrize("function", POLES)
def test_a_pole_that_is_not_masked_stays(function: str, padding: str) -> None:
    assert verdict(POLES[function], padding, LEFT) is not Verdict.PROVED


@pytest.mark.parametrize("function", POLES)
def test_a_maximum_forgets_no_pole(function: str) -> None:
    assert verdict(POLES[function], ZEROED, LEFT, LARGEST) is not Verdict.PROVED


def test_zero_is_masked_where_zero_is_right() -> None:
    """The padding of a sum may be left as it is where the function is 0 there."""
    assert verdict(TOTAL["sine"], ZEROED, LEFT) is Verdict.PROVED
    assert verdict(TOTAL["exponential"], ZEROED, LEFT) is not Verdict.PROVED


def elementwise(kind: str, logical: str, local: str) -> Verdict:
    """Of two bodies that leave `%r`, of `%x` on one device."""
    one = f"%ones = stablehlo.constant dense<{'(1.0,0.0)' if 'complex' in kind else '1.0'}> : TYPE\n"
    zero = one.replace("%ones", "%zeros").replace("1.0", "0.0")
    texts = (
        module(f"%x: {kind} {on(REPLICATED)}", f"{kind} {on(REPLICATED)}", (one + zero + body).replace("TYPE", kind), 1)
        for body in (f"{logical}\nreturn %r : TYPE", f"{local}\nreturn %r : TYPE")
    )
    return hlo_verify.verify(*texts, refute=False).verdict


COMPARED = """
    %p = stablehlo.compare FIRST, %f, %zeros : (TYPE, TYPE) -> tensor<4xi1>
    %q = stablehlo.compare SECOND, %f, %zeros : (TYPE, TYPE) -> tensor<4xi1>
    %a = stablehlo.convert %p : (tensor<4xi1>) -> TYPE
    %b = stablehlo.convert %q : (tensor<4xi1>) -> TYPE
    %r = stablehlo.add %a, %b : TYPE
"""


@pytest.mark.parametrize(("first", "second"), [("LE", "GT"), ("GE", "LT")])
@pytest.mark.parametrize("function", [*POLES, *TOTAL])
def test_what_is_no_number_is_neither_less_nor_greater(function: str, first: str, second: str) -> None:
    both = COMPARED.replace("FIRST", first).replace("SECOND", second)
    local = f"%y = stablehlo.add %x, %zeros : TYPE\n{(POLES | TOTAL)[function]}{both}"
    found = elementwise("tensor<4xf32>", "%r = stablehlo.add %ones, %zeros : TYPE", local)
    assert found is (Verdict.PROVED if function in TOTAL else Verdict.UNKNOWN)


@pytest.mark.parametrize("lost", ["%r = stablehlo.subtract %q, %q : TYPE", "%r = stablehlo.multiply %q, %zeros : TYPE"])
@pytest.mark.parametrize("function", ["divide %ones, %s", "log %s", "rsqrt %s"])
@pytest.mark.parametrize("kind", ["tensor<4xf32>", "tensor<4xcomplex<f32>>"])
def test_a_square_of_a_complex_number_may_be_negative(kind: str, function: str, lost: str) -> None:
    """So one more than it may be 0, where its inverse is no number; of a real number it is positive."""
    local = f"""
        %z = stablehlo.multiply %x, %x : TYPE
        %s = stablehlo.add %z, %ones : TYPE
        %q = stablehlo.{function} : TYPE
        {lost}"""
    found = elementwise(kind, "%r = stablehlo.add %zeros, %zeros : TYPE", local)
    assert found is (Verdict.UNKNOWN if "complex" in kind else Verdict.PROVED)


HAVE_POLES = "atan tanh logistic tan log log_plus_one rsqrt".split()
ENTIRE = "exponential exponential_minus_one sine cosine sqrt negate sign".split()


@pytest.mark.parametrize("function", [*HAVE_POLES, *ENTIRE])
def test_functions_of_complex_numbers_may_have_poles(function: str) -> None:
    """Of some that have none on the real line: tanh at i*pi/2, atan at i."""
    dialect = "chlo." if function == "atan" else "stablehlo."
    types = "TYPE -> TYPE" if function == "atan" else "TYPE"
    local = f"%q = {dialect}{function} %x : {types}\n%r = stablehlo.subtract %q, %q : TYPE"
    found = elementwise("tensor<4xcomplex<f32>>", "%r = stablehlo.add %zeros, %zeros : TYPE", local)
    assert found is (Verdict.PROVED if function in ENTIRE else Verdict.UNKNOWN)


OF_PARTS = """
    %i = stablehlo.IMAGINARY : PART
    %z = stablehlo.complex %x, %i : TYPE
    %two = stablehlo.constant dense<(FACTOR,0.0)> : TYPE
    %q = stablehlo.OPERATION %z, %two : TYPE
    %t = stablehlo.real %q : (TYPE) -> PART
    %r = stablehlo.add %t, %zeros : PART
"""


@pytest.mark.parametrize(("operation", "factor"), [("multiply", 2.0), ("multiply", 1.0), ("divide", 0.5)])
@pytest.mark.parametrize("imaginary", ["constant dense<0x7F800000>", "constant dense<0x7FC00000>", "log %x", "sine %x"])
def test_a_part_that_is_no_number_makes_both_parts_of_a_product_none(
    imaginary: str, operation: str, factor: float
) -> None:
    """`(x + i*inf) * (2 + 0i)` has the real part `2x - inf*0`."""
    local = OF_PARTS.replace("IMAGINARY", imaginary).replace("OPERATION", operation).replace("FACTOR", str(factor))
    local = local.replace("TYPE", "tensor<4xcomplex<f32>>").replace("PART", "tensor<4xf32>")
    by = {2.0: "%r = stablehlo.add %x, %x : TYPE", 1.0: "%r = stablehlo.add %x, %zeros : TYPE"}
    found = elementwise("tensor<4xf32>", by[2.0 if factor != 1.0 else 1.0], local)
    assert found is (Verdict.PROVED if imaginary == "sine %x" else Verdict.UNKNOWN)


@pytest.mark.parametrize("number", ["(0x7F800000,0.0)", "(1.0,0x7FC00000)", "(1.0,2.0)"])
def test_constants_of_complex_numbers_may_be_none(number: str) -> None:
    local = f"""
        %k = stablehlo.constant dense<[{number}, (0.0,0.0), (1.0,1.0), (0.0,3.0)]> : TYPE
        %d = stablehlo.subtract %k, %k : TYPE
        %r = stablehlo.add %x, %d : TYPE"""
    found = elementwise("tensor<4xcomplex<f32>>", "%r = stablehlo.add %x, %zeros : TYPE", local)
    assert found is (Verdict.PROVED if number == "(1.0,2.0)" else Verdict.UNKNOWN)


OF_CONSTANTS = {
    "inverse of an iota": "%q = stablehlo.divide %ones, %i : TYPE",
    "inverse of a table": "%k = stablehlo.constant dense<[0.0, 1.0, 2.0, 3.0]> : TYPE\n"
    "%q = stablehlo.divide %ones, %k : TYPE",
    "logarithm": "%q = stablehlo.log %i : TYPE",
    "inverse root of a minimum": "%k = stablehlo.minimum %i, %ones : TYPE\n%q = stablehlo.rsqrt %k : TYPE",
}
"""Infinities that a program makes of constants and places."""

REWRITTEN = {
    "twice less once": (
        "%r = stablehlo.add %q, %zeros : TYPE",
        "%t = stablehlo.add %q, %q : TYPE\n%r = stablehlo.subtract %t, %q : TYPE",
    ),
    "a quotient of exponentials": (
        "%n = stablehlo.negate %q : TYPE\n%r = stablehlo.exponential %n : TYPE",
        "%n = stablehlo.negate %q : TYPE\n%t = stablehlo.add %n, %n : TYPE\n%e = stablehlo.exponential %n : TYPE\n"
        "%f = stablehlo.exponential %t : TYPE\n%r = stablehlo.divide %f, %e : TYPE",
    ),
    "a sum and a difference": (
        "%r = stablehlo.add %x, %zeros : TYPE",
        "%t = stablehlo.add %x, %q : TYPE\n%r = stablehlo.subtract %t, %q : TYPE",
    ),
}


@pytest.mark.parametrize("rewritten", REWRITTEN)
@pytest.mark.parametrize("source", OF_CONSTANTS)
def test_infinities_that_a_program_makes_of_places_are_its_own(source: str, rewritten: str) -> None:
    """They are no inputs that nobody means: `1/iota` is infinite at 0 for all of them."""
    start = "%i = stablehlo.iota dim = 0 : TYPE\n" + OF_CONSTANTS[source]
    logical, local = (f"{start}\n{body}" for body in REWRITTEN[rewritten])
    assert elementwise("tensor<4xf32>", logical, logical) is Verdict.PROVED
    assert elementwise("tensor<4xf32>", logical, local) is Verdict.UNKNOWN
