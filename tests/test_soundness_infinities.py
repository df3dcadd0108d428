"""What infinities mask is no number in places, and no factor that its inverse cancels there."""

from __future__ import annotations

import pytest

import hlo_verify
from hlo_verify import Verdict
from tests.support.pairs import REPLICATED, module, on

VECTOR, TRUTHS = "tensor<4xf32>", "tensor<4xi1>"
MINUS_INFINITY = "0xFF800000"
BOTH = "%p = stablehlo.add %k, %x : TYPE\n%q = stablehlo.add %k, %y : TYPE"
SELECTED = "%p = stablehlo.select %m, %k, %x : TRUTHS, TYPE\n%q = stablehlo.select %m, %k, %y : TRUTHS, TYPE"
LONG = "\n".join(
    f"%t{n} = stablehlo.tanh {f'%s{n - 1}' if n else '%x'} : TYPE\n%s{n} = stablehlo.add %t{n}, %y : TYPE"
    for n in range(24)
)
"""What is so long that a selection of it gets a name."""
NAMED = (
    f"{LONG}\n%p = stablehlo.select %m, %k, %s23 : TRUTHS, TYPE\n"
    "%z = stablehlo.constant dense<0.0> : TYPE\n%q0 = stablehlo.multiply %z, %y : TYPE\n"
    "%q1 = stablehlo.add %q0, %x : TYPE\n%q = stablehlo.add %p, %q1 : TYPE"
)


def verdict(logical: str, partitioned: str) -> Verdict:
    """Of two bodies that leave `%r`, made of `%x`, `%y` and truth values `%m`; everything is replicated."""
    names = f"%x: {VECTOR}", f"%y: {VECTOR}", f"%m: {TRUTHS}"
    bodies = [
        f"{body}\nreturn %r : TYPE".replace("TYPE", VECTOR).replace("TRUTHS", TRUTHS) for body in (logical, partitioned)
    ]
    whole = module(", ".join(f"{name} {on(REPLICATED)}" for name in names), f"{VECTOR} {on(REPLICATED)}", bodies[0], 2)
    return hlo_verify.verify(whole, module(", ".join(names), VECTOR, bodies[1], 2), refute=False).verdict


def quotient(masked: str, constant: str) -> str:
    """`exp(q) / exp(p)`."""
    return f"""
    %k = stablehlo.constant dense<{constant}> : TYPE
    {masked}
    %a = stablehlo.exponential %q : TYPE
    %b = stablehlo.exponential %p : TYPE
    %r = stablehlo.divide %a, %b : TYPE"""


@pytest.mark.parametrize(
    ("masked", "number", "infinite"),
    [
        (BOTH, "[0.0, 1.0, 2.0, 3.0]", f"[0.0, {MINUS_INFINITY}, 2.0, 3.0]"),
        (BOTH, "[0.0, 1.0, 2.0, 3.0]", "[0.0, 0x7F800000, 2.0, 3.0]"),
        (BOTH, "1.0", "0x7F800000"),
        (SELECTED, "0.0", MINUS_INFINITY),
        (NAMED, "0.0", MINUS_INFINITY),
    ],
)
def test_exponentials_of_infinities_do_not_cancel(masked: str, number: str, infinite: str) -> None:
    assert verdict(quotient(masked, "0.5"), quotient(masked, number)) is Verdict.PROVED
    assert verdict(quotient(masked, number), quotient(masked, infinite)) is Verdict.UNKNOWN


def test_what_is_masked_weighs_nothing() -> None:
    """Wherever the mask comes from."""
    weight = "%a = stablehlo.exponential {} : TYPE\n%r = stablehlo.multiply %a, %y : TYPE"
    constant = f"%k = stablehlo.constant dense<[0.0, {MINUS_INFINITY}, 0.0, {MINUS_INFINITY}]> : TYPE\n"
    by_constant = constant + "%p = stablehlo.add %k, %x : TYPE\n" + weight.format("%p")
    by_selection = f"""
    %k = stablehlo.constant dense<[false, true, false, true]> : TRUTHS
    %z = stablehlo.constant dense<0.0> : TYPE
    {weight.format("%x").replace("%r", "%b")}
    %r = stablehlo.select %k, %z, %b : TRUTHS, TYPE"""
    assert verdict(by_constant, by_selection) is Verdict.PROVED
    assert verdict(by_constant, by_selection.replace("[false, true,", "[true, true,")) is Verdict.UNKNOWN
    infinite = f"""
    %z = stablehlo.constant dense<0.0> : TYPE
    %k = stablehlo.constant dense<{MINUS_INFINITY}> : TYPE
    %p = stablehlo.select %m, %k, %x : TRUTHS, TYPE
    {weight.format("%p")}"""
    nothing = f"""
    %z = stablehlo.constant dense<0.0> : TYPE
    {weight.format("%x").replace("%r", "%b")}
    %r = stablehlo.select %m, %z, %b : TRUTHS, TYPE"""
    assert verdict(infinite, nothing) is Verdict.PROVED
    assert verdict(infinite, nothing.replace("%m, %z, %b", "%m, %b, %z")) is Verdict.UNKNOWN
