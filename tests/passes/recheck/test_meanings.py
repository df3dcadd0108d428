"""Each meaning that a row claims for the re-check agrees with the prover's rule, on random small programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlo_verify.passes.chain.pair_programs import pair_of_programs
from hlo_verify.passes.load.load import load
from hlo_verify.passes.recheck.answer import Finding, Task, answer
from hlo_verify.passes.recheck.recheck import recheck_with
from hlo_verify.program.op_families import COLLECTIVES, DEVICE_NUMBERS
from hlo_verify.program.operations import CUSTOM_CALL, ROWS
from hlo_verify.report import Disagreement, Recheck
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
    """What disagrees. An operation without a second meaning gives definitions that are known by their names.

    The prover may write the elements of a fold that is no monoid (places in the padding) in two ways, and sees by cases
    that they are equal; the second check does not look into such a fold, and can say nothing of results made of it.
    """
    found = _checked(text)
    is_open = bool(found.unchecked)
    return tuple(each for each in found.disagreements if not (is_open and each.operation.startswith("result ")))


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


def test_a_fold_that_is_no_monoid_has_no_second_meaning() -> None:
    text = """
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
    assert _wrong(text) == ()
