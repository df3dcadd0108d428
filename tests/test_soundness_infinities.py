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


LOST = {
    "zero times": "%l = stablehlo.log %y : TYPE\n"
    "%o = stablehlo.constant dense<0.0> : TYPE\n%z = stablehlo.multiply %l, %o : TYPE",
    "difference": "%l = stablehlo.log %y : TYPE\n%z = stablehlo.subtract %l, %l : TYPE",
    "of a root": "%l = stablehlo.sqrt %y : TYPE\n%n = stablehlo.negate %l : TYPE\n%z = stablehlo.add %n, %l : TYPE",
}
"""`%z`, 0 where y is positive."""

IN = {
    "function": "%f = stablehlo.tanh %a : TYPE",
    "function of functions": "%e = stablehlo.sine %a : TYPE\n"
    "%g = stablehlo.multiply %e, %x : TYPE\n%f = stablehlo.cosine %g : TYPE",
    "quotient": "%e = stablehlo.cosine %a : TYPE\n%t = stablehlo.constant dense<2.0> : TYPE\n"
    "%g = stablehlo.add %e, %t : TYPE\n%f = stablehlo.divide %x, %g : TYPE",
}
"""`%f`, of `%a`."""

WITH_INFINITIES = {
    "masked": "%k = stablehlo.constant dense<INFINITY> : TYPE\n%r = stablehlo.select %m, %f, %k : TRUTHS, TYPE",
    "by a constant": "%k = stablehlo.constant dense<[0.0, INFINITY, 0.0, INFINITY]> : TYPE\n"
    "%r = stablehlo.add %f, %k : TYPE",
    "greatest": "%k = stablehlo.constant dense<[0.0, INFINITY, 0.0, INFINITY]> : TYPE\n"
    "%p = stablehlo.add %f, %k : TYPE\n%r = stablehlo.maximum %p, %x : TYPE",
}


@pytest.mark.parametrize("around", WITH_INFINITIES)
@pytest.mark.parametrize("inside", IN)
@pytest.mark.parametrize("lost", LOST)
def test_what_may_be_no_number_is_not_lost_beside_infinities(lost: str, inside: str, around: str) -> None:
    """`where(m, f(x + 0*log(y)), -inf)` is none where y is negative."""
    after = f"{IN[inside]}\n{WITH_INFINITIES[around].replace('INFINITY', MINUS_INFINITY)}"
    plain = f"%o1 = stablehlo.constant dense<0.0> : TYPE\n%a = stablehlo.add %o1, %x : TYPE\n{after}"
    found = f"{LOST[lost]}\n%a = stablehlo.add %x, %z : TYPE\n{after}"
    assert verdict(plain, found) is Verdict.UNKNOWN
    assert verdict(found, plain) is not Verdict.REFUTED
    assert verdict(found, found.replace("add %x, %z", "add %z, %x")) is Verdict.PROVED
