"""An operand that is a logical value, but another than it should be: what computed it is named, or what uses it."""

from __future__ import annotations

import re

import pytest

import hlo_verify
from hlo_verify import Verdict

S = "tensor<8x8xf32>"


def lines_named(logical: str, partitioned: str) -> set[str]:
    """The locations of all findings; `@N` at the end of a line is line N of the user's `model.py`."""

    def module(body: str) -> str:
        text = re.sub(r" @(\d+)$", r' loc("op"("model.py":\1:0))', body, flags=re.MULTILINE)
        place = "{sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}"
        signature = ", ".join(f"%a{n}: {S} {place}" for n in range(3))
        return f'module @m {{\nsdy.mesh @mesh = <["d"=4]>\nfunc.func @main({signature}) -> ({S} {place}) {{{text}}}\n}}'

    report = hlo_verify.verify(module(logical), module(partitioned), refute=False)
    assert report.verdict is Verdict.UNKNOWN
    return {each.location for each in report.results}


def product(left: str, right: str, line: int) -> str:
    return f"stablehlo.dot_general {left}, {right}, contracting_dims = [1] x [0] : ({S}, {S}) -> {S} @{line}"


SCORES = f"""
    %q = {product("%a0", "%a1", 1)}
    %k = {product("%a0", "%a2", 2)}
    %s = {product("%q", "%k", 3)}
    return %s : {S}
"""


@pytest.mark.parametrize(
    ("right", "wrong", "line"),
    [
        (product("%a0", "%a2", 2), product("%a0", "%a1", 2), 2),
        (product("%q", "%k", 3), product("%q", "%q", 3), 3),
    ],
    ids=["computed from another argument", "another value is used"],
)
def test_what_has_another_operand(right: str, wrong: str, line: int) -> None:
    assert lines_named(SCORES, SCORES.replace(right, wrong)) == {f"model.py:{line}"}


PROJECTED = f"""
    %p = {product("%a0", "%a1", 1)}
    %t = stablehlo.transpose %p, dims = [1, 0] : ({S}) -> {S} @1
    %q = {product("%t", "%a2", 2)}
    %u = stablehlo.transpose %q, dims = [1, 0] : ({S}) -> {S} @2
    %r = stablehlo.reshape %u : ({S}) -> {S} @3
    %v = {product("%t", "%a1", 4)}
    %w = stablehlo.add %r, %v : {S} @5
    return %w : {S}
"""


def test_what_takes_an_earlier_value_is_named_and_not_who_computed_that() -> None:
    assert lines_named(PROJECTED, PROJECTED.replace("transpose %q", "transpose %t")) == {"model.py:2"}


SQUARED = f"""
    %z = stablehlo.constant dense<0.0> : {S}
    %p = {product("%a0", "%a1", 1)}
    %t = stablehlo.tanh %p : {S} @2
    %m = stablehlo.multiply %t, %t : {S} @3
    %w = stablehlo.exponential %m : {S} @4
    return %w : {S}
"""


@pytest.mark.parametrize("computed", [f"%t = stablehlo.sine %p : {S} @2", ""], ids=["not used", "not computed"])
def test_a_constant_in_place_of_what_is_lost(computed: str) -> None:
    """What is wrong is no square of a constant: the value to be squared is not used, or not even computed."""
    wrong = SQUARED.replace("multiply %t, %t", "multiply %z, %z").replace(f"%t = stablehlo.tanh %p : {S} @2", computed)
    assert lines_named(SQUARED, wrong) == {"model.py:2"}


MASKED = f"""
    %i = stablehlo.iota dim = 0 : tensor<8x8xi32> @1
    %j = stablehlo.iota dim = 1 : tensor<8x8xi32> @2
    %m = stablehlo.compare GE, %i, %j : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1> @3
    %z = stablehlo.constant dense<0.0> : {S} @4
    %s = stablehlo.select %m, %a0, %z : tensor<8x8xi1>, {S} @4
    return %s : {S}
"""


def test_a_mask_is_wrong_where_it_was_computed() -> None:
    wrong = MASKED.replace("compare GE", "compare GT")
    assert lines_named(MASKED, wrong) == {"model.py:3"}


GRADIENT = f"""
    %d = stablehlo.dot_general %a0, %a1, contracting_dims = [0] x [0] : ({S}, {S}) -> {S} @1
    %t = stablehlo.transpose %d, dims = [1, 0] : ({S}) -> {S} @1
    %c = stablehlo.constant dense<0.01> : {S} @2
    %g = stablehlo.multiply %c, %t : {S} @2
    %s = stablehlo.subtract %a2, %g : {S} @3
"""


def by_hand(body: str, result: str) -> str:
    """The program of each of four devices, which hold the whole of everything."""
    places = ", ".join(["<@mesh, [{}, {}]>"] * 3)
    kinds = ", ".join([S] * 3)
    inner = ", ".join(f"%b{n}: {S}" for n in range(3))
    inside = re.sub(r"%a(\d)", r"%b\1", re.sub(r"@(\d)$", r"@1\1", body, flags=re.MULTILINE))
    return (
        f"\n    %r = sdy.manual_computation(%a0, %a1, %a2) in_shardings=[{places}]"
        " out_shardings=[<@mesh, [{}, {}]>]"
        f' manual_axes={{"d"}} ({inner}) {{{inside}    sdy.return {result} : {S}\n    }} : ({kinds}) -> {S} @9\n'
        f"    return %r : {S}\n"
    )


@pytest.mark.parametrize(
    ("right", "wrong", "result", "line"),
    [
        ("dot_general %a0, %a1", "dot_general %a1, %a0", "%s", 11),
        ("", "", "%g", 12),
    ],
    ids=["operands exchanged", "another result"],
)
def test_in_a_program_by_hand(right: str, wrong: str, result: str, line: int) -> None:
    logical = f"{GRADIENT}    return %s : {S}\n"
    body = by_hand(GRADIENT.replace(right, wrong) if right else GRADIENT, result)
    assert lines_named(logical, body) == {f"model.py:{line}"}
