"""Each meaning that a row claims for the re-check agrees with the prover's rule, on random small programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlo_verify.ops import windows
from hlo_verify.ops.movement import guarded_select
from hlo_verify.passes.chain.pair_programs import pair_of_programs
from hlo_verify.passes.load.load import load
from hlo_verify.passes.recheck.answer import Finding, Task, answer
from hlo_verify.passes.recheck.recheck import recheck_with
from hlo_verify.program.op_families import COLLECTIVES, DEVICE_NUMBERS
from hlo_verify.program.operations import CUSTOM_CALL, ROWS
from hlo_verify.report import Disagreement, Recheck
from hlo_verify.terms.term import Poly
from tests.ops.cases import CASES

NAMES = sorted(
    name
    for name, row in ROWS.items()
    if row.recheck not in (None, "claims") and name not in COLLECTIVES | DEVICE_NUMBERS | {CUSTOM_CALL}
)
"""What devices exchange is in the fixtures, and what regions do in `test_loop_claims`."""

MILLISECONDS = 2000


def _inline(tasks: Sequence[Task]) -> Iterator[tuple[int, Finding]]:
    for n, task in enumerate(tasks):
        yield n, answer(task)


def _checked(text: str) -> Recheck:
    return recheck_with(_inline, *pair_of_programs(load(text), load(text), 1), MILLISECONDS)


def _wrong(text: str) -> tuple[Disagreement, ...]:
    return _checked(text).disagreements


@pytest.mark.drawn(20)
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=4)
@given(data=st.data())
def test_meaning_agrees_with_the_rule(name: str, data: st.DataObject) -> None:
    case = data.draw(CASES[name])
    assert _wrong(case.program.text) == (), case.program.text


def test_the_absolute_value_of_a_constant_is_one() -> None:
    text = """
    func.func @main() -> tensor<f32> {
      %c = stablehlo.constant dense<-3.0> : tensor<f32>
      %a = stablehlo.abs %c : tensor<f32>
      return %a : tensor<f32>
    }
    """
    assert _checked(text).disagreements == ()


def test_regions_that_nobody_walked_through_claim_nothing() -> None:
    text = """
    func.func @main(%i: tensor<i32>, %x: tensor<0xf32>) -> tensor<0xf32> {
      %y = "stablehlo.case"(%i) ({
        stablehlo.return %x : tensor<0xf32>
      }, {
        %z = stablehlo.abs %x : tensor<0xf32>
        stablehlo.return %z : tensor<0xf32>
      }) : (tensor<i32>) -> tensor<0xf32>
      return %y : tensor<0xf32>
    }
    """
    found = _checked(text)
    assert (found.disagreements, found.unchecked) == ((), ())


FOLD = """
    func.func @main(%a: tensor<1x1xf32>, %i: tensor<f32>) -> tensor<1x2xf32> {
      %r = "stablehlo.reduce_window"(%a, %i) ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %d = stablehlo.add %y, %y : tensor<f32>
        %z = stablehlo.add %x, %d : tensor<f32>
        stablehlo.return %z : tensor<f32>
      }) {
        window_dimensions = array<i64: 2, 1>, padding = dense<[[0, 1], [0, 1]]> : tensor<2x2xi64>
      } : (tensor<1x1xf32>, tensor<f32>) -> tensor<1x2xf32>
      return %r : tensor<1x2xf32>
    }
"""


def test_a_fold_that_is_no_monoid_is_a_function_of_its_elements() -> None:
    """However the prover writes the places that are in the padding."""
    assert _wrong(FOLD) == ()


def test_a_fold_of_other_elements_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the prover takes what is beyond the end for an element, in one module alone."""
    turns = count()

    def of_other_padding(inside: Poly, element: Poly, first: Poly) -> Poly:
        return guarded_select(inside, element, first) if next(turns) % 2 else element

    monkeypatch.setattr(windows, "guarded_select", of_other_padding)
    assert {each.operation for each in _wrong(FOLD)} == {"result result[0]"}


LEAST = """
    func.func @main(%a: tensor<4xf32>) -> tensor<1xf32> {
      %s = "stablehlo.sort"(%a) ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %c = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }) {dimension = 0 : i64, is_stable = true} : (tensor<4xf32>) -> tensor<4xf32>
      %t = stablehlo.slice %s [0:1] : (tensor<4xf32>) -> tensor<1xf32>
      return %t : tensor<1xf32>
    }
"""

GREATEST = """
    func.func @main(%a: tensor<6xf32>) -> (tensor<1xf32>, tensor<1xi32>) {
      %v, %i = chlo.top_k(%a, k = 2) : tensor<6xf32> -> (tensor<2xf32>, tensor<2xi32>)
      %w = stablehlo.slice %v [0:1] : (tensor<2xf32>) -> tensor<1xf32>
      %j = stablehlo.slice %i [0:1] : (tensor<2xi32>) -> tensor<1xi32>
      return %w, %j : tensor<1xf32>, tensor<1xi32>
    }
"""


@pytest.mark.parametrize("text", [LEAST, GREATEST], ids=["sort", "top_k"])
def test_laws_of_elements_in_order_are_not_checked(text: str) -> None:
    """The first of elements in order is the least of them, by a law that the second check does not know."""
    found = _checked(text)
    assert found.disagreements == ()
    assert any("sort of other elements" in why for why, _ in found.unchecked)
    assert found.agreed < found.steps
