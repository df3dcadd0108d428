"""What attributes of modules are called: none is taken for one of an operation's own, or for one of ours."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.evaluate import evaluate, of_dense
from hlo_verify.evaluate.blocks import dense
from hlo_verify.passes.load.load import load
from hlo_verify.program.ir import OURS
from hlo_verify.registered_calls import registered
from tests.support.pairs import FOUR, LOGICAL, REPLICATED, SUMMED, module, on

TYPE = "tensor<8xf32>"


@pytest.fixture(autouse=True)
def _known_by_name() -> Iterator[None]:
    hlo_verify.register_custom_call("by.name")
    yield
    for target in list(registered()):
        hlo_verify.forget_custom_call(target)


def verdict(body: str, other: str, result: str = TYPE) -> Verdict:
    """Of a function of eight numbers that all devices have."""
    signature = f"%x: {TYPE} {on(REPLICATED)}", f"{result} {on(REPLICATED)}"
    return hlo_verify.verify(module(*signature, body), module(f"%x: {TYPE}", result, other), refute=False).verdict


def call(attributes: str) -> str:
    return f"""
    %t = stablehlo.tuple %x : tuple<{TYPE}>
    %y = stablehlo.custom_call @by.name(%t) {{{attributes}}} : (tuple<{TYPE}>) -> {TYPE}
    return %y : {TYPE}"""


@pytest.mark.parametrize("name", [*sorted(OURS), "sharding", "the module's kinds"])
def test_settings_with_names_of_ours_count(name: str) -> None:
    """Of a call with settings of types, and with a tuple."""
    one, other, without = (call(f"{said}z = 1 : i32") for said in (f'"{name}" = "a", ', f'"{name}" = "b", ', ""))
    assert verdict(one, one) is verdict(without, without) is Verdict.PROVED
    assert verdict(one, other) is verdict(one, without) is verdict(without, one) is Verdict.UNKNOWN


SORT = f"""
    %i = stablehlo.iota dim = 0 : tensor<8xi32>
    %s:2 = "stablehlo.sort"(%x, %i) <{{dimension = 0 : i64SAID}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
      %q = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %q : tensor<i1>
    }}) {{ATTRIBUTES}} : ({TYPE}, tensor<8xi32>) -> ({TYPE}, tensor<8xi32>)
    return %s#1 : tensor<8xi32>"""


@pytest.mark.parametrize("attributes", ["", "mhlo.is_stable = true"])
def test_an_attribute_of_another_dialect_is_none_of_the_operation(attributes: str) -> None:
    """An order of equal elements that a sort does not promise."""
    stable = SORT.replace("SAID", ", is_stable = true").replace("ATTRIBUTES", "")
    said = SORT.replace("SAID", "").replace("ATTRIBUTES", attributes)
    assert verdict(stable, stable, "tensor<8xi32>") is Verdict.PROVED
    assert verdict(stable, said, "tensor<8xi32>") is Verdict.UNKNOWN


@pytest.mark.parametrize("attributes", ["", "{mhlo.use_global_device_ids}"])
def test_groups_are_those_of_the_operation(attributes: str) -> None:
    """Of replicas, where it does not say that they are of devices."""
    other = SUMMED.replace(",\n      use_global_device_ids", "").replace("}) :", f"}}) {attributes} :")
    assert hlo_verify.verify(LOGICAL, SUMMED).verdict is Verdict.PROVED
    assert other != SUMMED and hlo_verify.verify(LOGICAL, other, refute=False).verdict is Verdict.UNKNOWN


def test_a_border_reads_its_own_sharding() -> None:
    def text(split: str, further: str = "") -> str:
        return module(
            f"%x: {TYPE} {on(FOUR)}",
            f"{TYPE} {on(FOUR)}",
            f"""
    %s = stablehlo.custom_call @Sharding(%x) {{mhlo.sharding = "{split}"{further}}} : ({TYPE}) -> {TYPE}
    %m = stablehlo.custom_call @SPMDFullToShardShape(%s) {{mhlo.sharding = "{{manual}}"}} : ({TYPE}) -> tensor<2xf32>
    %n = stablehlo.custom_call @Sharding(%m) {{mhlo.sharding = "{{manual}}"}} : (tensor<2xf32>) -> tensor<2xf32>
    %y = stablehlo.custom_call @SPMDShardToFullShape(%n) {on(FOUR)} : (tensor<2xf32>) -> {TYPE}
    return %y : {TYPE}""",
        )

    part = module("%x: tensor<2xf32>", "tensor<2xf32>", "    return %x : tensor<2xf32>")
    same, swapped = FOUR, "{devices=[4]0,2,1,3}"
    verdicts = [
        hlo_verify.verify(text(*split), part, refute=False).verdict
        for split in ((same,), (swapped,), (swapped, f', sharding = "{same}"'), (same, f', sharding = "{swapped}"'))
    ]
    assert verdicts == [Verdict.PROVED, Verdict.UNKNOWN, Verdict.UNKNOWN, Verdict.PROVED]


@pytest.mark.parametrize("name", sorted(OURS))
def test_what_is_computed_does_not_hang_on_names_of_ours(name: str) -> None:
    text = f"""
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %y = stablehlo.tanh %x {{{name} = true}} : tensor<4xf32>
  return %y : tensor<4xf32>
}}"""
    (found,) = evaluate(load(text), [of_dense(np.arange(4.0))], 1).results
    assert found is not None and np.allclose(dense(found, 0), np.tanh(np.arange(4.0)))


@pytest.mark.parametrize("said", ["", '{made_by = "add in f32"}'])
def test_what_made_bits_is_not_said_by_a_module(said: str) -> None:
    result = "tensor<8xi32>"
    moved = f"    %y = stablehlo.bitcast_convert %x {said} : ({TYPE}) -> {result}\n    return %y : {result}"
    added = f"""
    %z = stablehlo.constant dense<0.0> : {TYPE}
    %a = stablehlo.add %x, %z : {TYPE}
    %y = stablehlo.bitcast_convert %a : ({TYPE}) -> {result}
    return %y : {result}"""
    assert verdict(moved, moved, result) is verdict(added, added, result) is Verdict.PROVED
    assert verdict(added, moved, result) is verdict(moved, added, result) is Verdict.UNKNOWN
