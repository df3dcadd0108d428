"""What means nothing refutes nothing, and what is surely no number does."""

from __future__ import annotations

import numpy as np
import pytest

import hlo_verify
from hlo_verify.evaluate import of_dense
from hlo_verify.passes.load.load import load
from hlo_verify.passes.refute.confirm import Confirmer
from hlo_verify.passes.refute.search import Search
from hlo_verify.program.pair import pair_of
from hlo_verify.report import Verdict
from tests.support.bodies import body, pair
from tests.support.pairs import elementwise

# What means nothing


UNDEFINED = {
    "division by zero": ("i32", body("%y = divide %x, %z", z=0), body("%y = subtract %x, %x")),
    "remainder by zero": ("i32", body("%y = remainder %x, %z", z=0), body("%y = negate %x")),
    "division by a difference": (
        "i32",
        body("%d = subtract %x, %x", "%y = divide %x, %d"),
        body("%y = negate %x"),
    ),
    "the least integer by -1": (
        "i8",
        body("%m = minimum %x, %l", "%y = divide %m, %o", l=-128, o=-1),
        body("%m = minimum %x, %l", "%y = subtract %m, %m", l=-128),
    ),
    "the absolute value of the least integer": (
        "i8",
        body("%m = minimum %x, %l", "%y = abs %m", l=-128),
        body("%m = minimum %x, %l", "%y = subtract %m, %m", l=-128),
    ),
    "shifts by the width": (
        "i32",
        body("%m = maximum %x, %c", "%y = shift_left %x, %m", c=32),
        body("%m = maximum %x, %c", "%y = negate %x", c=32),
    ),
    "logical shifts by more than the width": (
        "i32",
        body("%m = maximum %x, %c", "%y = shift_right_logical %x, %m", c=40),
        body("%y = add %x, %c", c=1),
    ),
    "arithmetic shifts by a negative amount": (
        "i32",
        body("%m = minimum %x, %c", "%y = shift_right_arithmetic %x, %m", c=-1),
        body("%y = add %x, %c", c=1),
    ),
    "a shift by more than the width that the module says itself": (
        "i16",
        body("%y = shift_left %x, %c", c=31),
        body("%y = negate %x"),
    ),
    "negative powers of integers": (
        "i32",
        body("%m = minimum %x, %c", "%y = power %x, %m", c=-1),
        body("%y = add %x, %c", c=2),
    ),
}


@pytest.mark.parametrize("name", UNDEFINED)
def test_inputs_that_mean_nothing_refute_nothing(name: str) -> None:
    kind, logical, partitioned = UNDEFINED[name]
    search = Search(pair(kind, logical, partitioned))
    assert not search.find([0])
    assert "no defined value" in search.open[0]


def test_a_shift_by_just_the_width_that_the_module_says_is_defined() -> None:
    """JAX takes the upper half of a seed that way."""
    shifted = body("%y = shift_right_logical %x, %c", c=32)
    assert Search(pair("i32", shifted, body("%y = negate %x"))).find([0]) == {0}


CONVERTED = """%c = stablehlo.constant dense<BIG> : TYPE
    %a = stablehlo.abs %x : TYPE
    %b = stablehlo.add %a, %c : TYPE
    %i = stablehlo.convert %b : (TYPE) -> tensor<Nxi8>
    %j = stablehlo.convert %i : (tensor<Nxi8>) -> TYPE
    %y = stablehlo.multiply %j, %x : TYPE"""


def test_numbers_that_an_integer_type_does_not_hold_refute_nothing() -> None:
    logical, partitioned = elementwise("f32", CONVERTED.replace("BIG", "300.0"), CONVERTED.replace("BIG", "-0.0"))
    partitioned = partitioned.replace("%y = stablehlo.multiply %j, %x", "%y = stablehlo.add %j, %x")
    texts = logical.replace("<Nx", "<8x"), partitioned.replace("<Nx", "<2x")
    assert not Search(pair_of(*map(load, texts))).find([0])


SORTED = """%k = stablehlo.iota dim = 0 : tensor<Nxi32>
    %h = stablehlo.constant dense<0> : TYPE
    %z = stablehlo.multiply %x, %h : TYPE
    %s:2 = "stablehlo.sort"(%z, %k) <{dimension = 0 : i64, is_stable = STABLE}> ({
      ^bb0(%l: tensor<i32>, %r: tensor<i32>, %m: tensor<i32>, %n: tensor<i32>):
        %c = stablehlo.compare ORDER, %l, %r : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
    }) : (TYPE, tensor<Nxi32>) -> (TYPE, tensor<Nxi32>)
    %y = stablehlo.add %s#1, %s#0 : TYPE"""


@pytest.mark.parametrize("order", ["LT", "GT", "LE", "GE"])
@pytest.mark.parametrize("stable", ["true", "false"])
def test_ties_in_an_order_that_is_open_refute_nothing(stable: str, order: str) -> None:
    """Under an unstable sort, and where the comparator says of both that it comes before the other."""
    kept = SORTED.replace("STABLE", stable).replace("ORDER", order)
    other = "%k = stablehlo.iota dim = 0 : tensor<Nxi32>\n    %y = stablehlo.reverse %k, dims = [0] : TYPE"
    whole, part = elementwise("i32", kept, other)
    whole = whole.replace("{devices=[4]<=[4]}", "{replicated}").replace("<Nx", "<8x")
    part = part.replace("2xi32", "8xi32").replace("<Nx", "<8x")
    found = Search(pair_of(load(whole), load(part))).find([0])
    assert found == ({0} if stable == "true" and order in ("LT", "GT") else set())


def test_a_defined_difference_beside_an_undefined_one_is_found() -> None:
    """Only elements that depend on what is undefined are left out."""
    lines = "%q = divide %x, %w", "%p = maximum %x, %z"
    logical = body("%w = minimum %x, %o", *lines, "%y = add %q, %p", z=0, o=1)
    partitioned = body("%w = minimum %x, %o", *lines, "%r = add %q, %p", "%y = add %r, %o", z=0, o=1)
    assert Search(pair("i32", logical, partitioned)).find([0]) == {0}


SIGN_OF = """%a = stablehlo.abs %x : TYPE
    %n = stablehlo.negate %a : TYPE
    LOOKED
    %y = stablehlo.convert %s : (tensor<NxKIND>) -> TYPE"""

LOOKED = {
    "bits": """%b = stablehlo.bitcast_convert %n : (TYPE) -> tensor<Nxi32>
    %w = stablehlo.constant dense<31> : tensor<Nxi32>
    %s = stablehlo.shift_right_logical %b, %w : tensor<Nxi32>""",
    "bytes": """%b = stablehlo.bitcast_convert %n : (TYPE) -> tensor<Nx4xi8>
    %h = stablehlo.slice %b [0:N, 3:4] : (tensor<Nx4xi8>) -> tensor<Nx1xi8>
    %r = stablehlo.reshape %h : (tensor<Nx1xi8>) -> tensor<Nxi8>
    %w = stablehlo.constant dense<7> : tensor<Nxi8>
    %s = stablehlo.shift_right_logical %r, %w : tensor<Nxi8>""",
    "order": """%z = stablehlo.constant dense<0.0> : TYPE
    %s = stablehlo.compare LT, %n, %z, TOTALORDER : (TYPE, TYPE) -> tensor<Nxi1>""",
}


@pytest.mark.parametrize("name", LOOKED)
def test_the_sign_of_a_zero_that_was_computed_refutes_nothing(name: str) -> None:
    """That of `-abs(x)` is set for all numbers, as 0 is -0.0 then; of real numbers, 0 has none."""
    kind = {"bits": "i32", "bytes": "i8", "order": "i1"}[name]
    logical, partitioned = elementwise(
        "f32",
        SIGN_OF.replace("LOOKED", LOOKED[name]).replace("KIND", kind),
        body("%d = subtract %x, %x", "%y = add %d, %c", c=1.0),
    )
    texts = (text.replace("0:N", f"0:{n}").replace("<Nx", f"<{n}x") for text, n in ((logical, 8), (partitioned, 2)))
    both = pair_of(*map(load, texts))
    said = Confirmer(both).confirm((of_dense(np.zeros(8)),), [0])
    assert not said.differences and "defined" in said.open[0]
    assert not Search(both).find([0])


# NaN and infinities


NAN = {
    "zero by zero": body("%z = subtract %x, %x", "%q = divide %z, %z", "%y = add %q, %x"),
    "the logarithm of a negative number": body("%q = multiply %x, %x", "%n = subtract %c, %q", "%y = log %n", c=-1.0),
    "the root of a negative number": body("%q = multiply %x, %x", "%n = subtract %c, %q", "%y = sqrt %n", c=-1.0),
    "zero times infinity": body("%z = subtract %x, %x", "%q = multiply %z, %i", "%y = add %q, %x", i="0x7F800000"),
    "infinity less itself": body("%a = add %x, %i", "%y = subtract %a, %i", i="0x7F800000"),
    "one by zero": body("%z = subtract %x, %x", "%y = divide %c, %z", c=1.0),
}


@pytest.mark.parametrize("name", NAN)
def test_nan_that_a_device_makes_of_numbers_is_a_difference(name: str) -> None:
    search = Search(pair("f32", body("%y = sine %x"), NAN[name]))
    assert search.find([0]) == {0}
    (found,) = search.counterexamples([0])
    assert not np.isfinite(found.differences[0].found) and np.isfinite(found.differences[0].expected)


def test_xla_confirms_nan() -> None:
    (result,) = hlo_verify.verify(*elementwise("f32", body("%y = sine %x"), NAN["zero by zero"])).results
    assert result.verdict is Verdict.REFUTED
    assert result.witness is not None and "by XLA" in result.witness.replayed


@pytest.mark.parametrize("name", NAN)
def test_nan_in_the_logical_result_is_no_witness(name: str) -> None:
    assert not Search(pair("f32", NAN[name], body("%y = sine %x"))).find([0])


POLES = {
    "logarithm": "%p = log %x",
    "logarithm of one and a number": "%o = subtract %x, %c\n    %p = log_plus_one %o",
    "quotient": "%p = divide %c, %x",
    "inverse root": "%p = rsqrt %x",
    "power": "%p = power %x, %n",
    "gamma function": "%p = chlo.lgamma %x",
    "inverse hyperbolic tangent": "%o = subtract %c, %x\n    %p = chlo.atanh %o",
}
"""Functions of which each has a pole where %x is 0."""

BEYOND_POLES = {
    "compared": ("%y = maximum %p, %n", "%y = maximum %p, %b"),
    "inverted": ("%y = divide %c, %p", "%q = divide %c, %p\n    %y = add %q, %c"),
    "saturated": ("%y = tanh %p", "%t = tanh %p\n    %y = add %t, %c"),
    "given": ("%y = multiply %p, %c", "%y = multiply %p, %n"),
}


@pytest.mark.parametrize("beyond", BEYOND_POLES)
@pytest.mark.parametrize("pole", POLES)
def test_poles_of_the_logical_module_are_no_witnesses(pole: str, beyond: str) -> None:
    """The results differ for 0, but there the logical module steps outside of a domain on the way."""
    logical, partitioned = (
        body(*POLES[pole].split("\n    "), *each.split("\n    "), b=100.0, c=1.0, n=-1.0)
        for each in BEYOND_POLES[beyond]
    )
    search = Confirmer(pair("f32", logical, partitioned))
    shape = search.pair.logical.main.argument_types[0].shape
    nothing, something = (of_dense(np.full(shape, number)) for number in (0.0, 0.5))
    said = search.confirm((nothing,), [0])
    assert not said.differences and "outside of its domain" in said.open[0]
    assert search.confirm((something,), [0]).differences.keys() == {0}


def test_poles_of_constants_are_numbers_of_the_program() -> None:
    """Minus infinity, as a mask is made of the logarithm of 0 and 1, is no step outside of a domain."""
    mask = "%i = multiply %z, %c", "%m = log %i"
    logical, partitioned = (
        body(*mask, "%p = add %x, %m", f"%y = maximum %p, %{bound}", z=0.0, c=1.0, n=-1.0) for bound in "nc"
    )
    assert Search(pair("f32", logical, partitioned)).find([0]) == {0}


def test_an_overflow_of_floating_point_is_no_nan() -> None:
    """Over the reals `exp(1000 + x) / exp(1000 + x)` is 1."""
    ratio = body("%a = add %x, %c", "%e = exponential %a", "%f = exponential %a", "%y = divide %e, %f", c=1000.0)
    one = body("%z = subtract %x, %x", "%y = cosine %z")
    assert not Search(pair("f64", one, ratio)).find([0])
