"""Every operation's rule agrees with StableHLO's reference interpreter, on dense and on block-constant operands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlo_verify.evaluate import Blocks, dense, evaluate
from hlo_verify.evaluate.balls import UNDEFINED, is_real, is_unknown, number
from hlo_verify.evaluate.blocks import of_devices
from hlo_verify.passes.load.load import load
from tests.ops.cases import CASES
from tests.ops.cases.drawing import Case
from tests.support.compare import Array, assert_same
from tests.support.modules import Program
from tests.support.reference import reference

UNKNOWN = frozenset(
    "cholesky triangular_solve rng_bit_generator rng infeed outfeed send recv chlo.bessel_i1e chlo.next_after "
    "chlo.polygamma chlo.zeta custom_call bitcast_convert mhlo.scan scatter".split()
)
"""Operations that the evaluator need not know, or not always."""

OTHERWISE = frozenset({"reduce_precision"})
"""Operations that mean something else in real arithmetic."""

OPEN = frozenset(
    "shift_left shift_right_arithmetic shift_right_logical divide remainder power convert sort atan2".split()
)
"""Operations that the specification gives no value for some operands, or for which the sign of a zero decides."""

EXAMPLES = 8


def blocks_of(array: Array, case: Case) -> Blocks:
    """The array as blocks, one class for each index."""
    return of_devices(array) if case.partitions else of_devices(array[None])


def coarse(draw: st.DrawFn, array: Array, case: Case) -> Blocks:
    """A block-constant tensor with some of the array's elements."""
    fine = blocks_of(array, case)
    if array.size == 0:
        return fine
    maps = []
    values = fine.values
    for axis, classes in enumerate(fine.classes):
        count = draw(st.integers(1, max(1, len(classes))))
        drawn = np.array([draw(st.integers(0, count - 1)) for _ in classes], np.int64)
        used, which = np.unique(drawn, return_inverse=True)
        if len(used):
            values = np.take(values, used, axis=axis)
        maps.append(which.reshape(-1))
    return Blocks(tuple(maps), values)


ORDER_MATTERS = "%d = stablehlo.add %y, %y"
"""In a reducer that is not associative; see `not_a_monoid`."""


def whole(blocks: Blocks, case: Case) -> Array:
    """Every element, with a first dimension for devices where the case has one."""
    if not case.partitions:
        return dense(blocks, 0)
    return np.stack([dense(blocks, d) for d in range(case.partitions * case.replicas)])


def check(case: Case, arguments: list[Blocks], wanted: list[Array], name: str) -> None:
    module = load(case.program.text, devices=max(1, case.partitions * case.replicas))
    if case.partitions:
        module = replace(module, partitions=case.partitions, replicas=case.replicas)
    found = evaluate(module, arguments, max(1, case.partitions * case.replicas))
    if not wanted:  # no more than that the rule may refuse
        return
    if found.unknown:
        assert name in UNKNOWN or case.may_refuse, f"{found.unknown}\n{case.program.text}"
        return
    if ORDER_MATTERS in case.program.text:  # the specification leaves open which of its values comes out
        return
    text = "\n".join([case.program.text, *(repr(whole(a, case)) for a in arguments)])
    enclosed = evaluate(module, arguments, max(1, case.partitions * case.replicas), real=object)
    assert not enclosed.unknown, f"{enclosed.unknown}\n{text}"
    for blocks, array in zip(found.results, wanted, strict=True):
        assert blocks is not None
        for axis, (classes, count) in enumerate(zip(blocks.classes, blocks.values.shape, strict=True)):
            assert len(classes) == 0 or set(classes) == set(range(count)), f"axis {axis}: {classes} of {count}"
        assert_same(np.asarray(whole(blocks, case)).astype(object), array, text)
    for blocks, balls in zip(found.results, enclosed.results, strict=True):
        assert blocks is not None and balls is not None
        assert_enclosed(whole(blocks, case), whole(balls, case), name, text)


def assert_enclosed(values: Array, balls: Array, name: str, text: str) -> None:
    """Enclosures hold what floating point computes, but for rounding; they leave open what the specification does."""
    assert values.shape == balls.shape, text
    for value, ball in zip(values.reshape(-1), balls.reshape(-1), strict=True):
        if ball is UNDEFINED or is_unknown(ball):
            is_least = name == "abs" and value < 0  # the least integer's own, which its type does not hold
            assert name in OPEN or is_least or not np.isfinite(value), f"{value} is {ball}\n{text}"
            continue
        near = number(ball)
        assert np.isclose(value, near, rtol=1e-9, atol=1e-12, equal_nan=True), f"{value} is {ball}\n{text}"
        if is_real(ball) and ball.is_finite():
            assert abs(ball.rad()) <= 1e-9 * (1 + abs(near)), f"{ball}\n{text}"


@pytest.mark.drawn(45)
@pytest.mark.parametrize("name", sorted(set(CASES) - OTHERWISE))
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_rule_agrees_with_reference(name: str, data: st.DataObject) -> None:
    case = data.draw(CASES[name])
    if case.expected is not None:  # for these operands, whatever they are
        check(case, [blocks_of(x, case) for x in case.program.inputs], case.expected, name)
        return
    fine = data.draw(st.booleans())
    arguments = [blocks_of(x, case) if fine else coarse(data.draw, x, case) for x in case.program.inputs]
    program: Program = case.program
    program.inputs = [np.asarray(whole(a, case)) for a in arguments]
    check(case, arguments, reference(program), name)


def test_a_gather_from_equal_rows_has_one_class_for_its_indices() -> None:
    module = load("""
    func.func @main(%x: tensor<8x2xf32>, %i: tensor<3xi32>) -> tensor<3x2xf32> {
      %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
          collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>}>
        : (tensor<8x2xf32>, tensor<3xi32>) -> tensor<3x2xf32>
      return %0 : tensor<3x2xf32>
    }
    """)
    rows = Blocks((np.zeros(1, np.int64), np.zeros(8, np.int64), np.arange(2)), np.array([[[5.0, 6.0]]]))
    (found,) = evaluate(module, [rows, of_devices(np.array([[1, 0, 7]]))], 1).results
    assert found is not None
    assert dense(found, 0).tolist() == [[5, 6]] * 3
    assert [int(c.max()) + 1 for c in found.classes] == list(found.values.shape)
