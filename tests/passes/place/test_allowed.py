"""Placements that were inferred refute nothing: REFUTED is what is wrong wherever the shapes let things lie."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.diagnostics import Annotation
from hlo_verify.limits import Limits
from tests.passes.place.test_infer import matrix, module

PROVED, REFUTED, UNKNOWN = Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN

X, HALF, BITS, INTEGERS = matrix(4, 6), matrix(4, 3), "tensor<4x6xi1>", "tensor<4x6xi32>"


def tanh(result: str, operand: str, kind: str = X) -> str:
    return f"{result} = stablehlo.tanh {operand} : {kind}\n"


def times(result: str, operand: str, factor: int, kind: str = X) -> str:
    number = f"{factor}" if kind == INTEGERS else f"{factor}.0"
    return (
        f"%c{factor} = stablehlo.constant dense<{number}> : {kind}\n"
        f"{result} = stablehlo.multiply {operand}, %c{factor} : {kind}\n"
    )


WHOLE = module([X], [("%y", X)], tanh("%y", "%a0"), 1)


def one(body: str, devices: int = 2, kind: str = X, given: str = X) -> str:
    """A device's program, whose result is `%y`."""
    return module([given], [("%y", kind)], body, devices)


WRONG_EVERYWHERE = {
    "another function": one(f"%y = stablehlo.sine %a0 : {X}"),
    "another factor": one(tanh("%t", "%a0") + times("%y", "%t", 5)),
    "another factor on four devices": one(tanh("%t", "%a0") + times("%y", "%t", 7), devices=4),
    "another function of shards": one(f"%y = stablehlo.sine %a0 : {HALF}", kind=HALF, given=HALF),
    "another factor of shards": one(tanh("%t", "%a0", HALF) + times("%y", "%t", 3, HALF), kind=HALF, given=HALF),
}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("part", WRONG_EVERYWHERE.values(), ids=WRONG_EVERYWHERE.keys())
def test_what_is_wrong_under_every_placement_is_refuted(part: str) -> None:
    report = hlo_verify.verify(WHOLE, part)
    assert report.verdict is REFUTED and report.results[0].witness is not None
    assert report.headline == "REFUTED under every placement that the shapes allow"


def test_complex_values_that_are_wrong_under_every_placement_are_refuted() -> None:
    kind = "tensor<4x6xcomplex<f32>>"
    whole, part = (
        one(tanh("%t", "%a0", kind) + f"%y = stablehlo.{last} %t : {kind}", kind=kind, given=kind)
        for last in ("negate", "tanh")
    )
    assert hlo_verify.verify(whole, part).verdict is REFUTED


HALVED = one(tanh("%t", "%a0") + f"%h = stablehlo.constant dense<0.5> : {X}\n%y = stablehlo.multiply %t, %h : {X}")


def test_what_would_be_right_as_a_sum_is_not_refuted() -> None:
    (result,) = hlo_verify.verify(WHOLE, HALVED).results
    assert result.verdict is UNKNOWN and result.code is Annotation.UNREDUCED_RESULT and result.witness is None


def test_what_may_be_padding_is_not_refuted() -> None:
    """Two shards on four devices: copies, or zeros beside them, in any order."""
    (result,) = hlo_verify.verify(WHOLE, one(f"%y = stablehlo.sine %a0 : {HALF}", 4, HALF, HALF)).results
    assert result.verdict is UNKNOWN and result.code is Annotation.GUESSED_PLACEMENT and result.witness is None
    assert "which was inferred: element" in result.reason and "state it with --shardings FILE" in result.reason


def test_what_may_be_padding_is_not_refuted_by_a_whole_result() -> None:
    """The argument alone is two shards on four devices, of which pairs make it whole."""
    gathered = (
        f'%w = "stablehlo.all_gather"(%a0) <{{all_gather_dim = 1 : i64, '
        f"replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}}> : ({HALF}) -> {X}\n"
    )
    assert hlo_verify.verify(WHOLE, one(gathered + tanh("%y", "%w"), 4, X, HALF)).verdict is PROVED
    (result,) = hlo_verify.verify(WHOLE, one(gathered + f"%y = stablehlo.sine %w : {X}", 4, X, HALF)).results
    assert result.verdict is UNKNOWN and result.code is Annotation.GUESSED_PLACEMENT and result.witness is None


def shifted(groups: str) -> str:
    """The shards, exchanged by the devices of a group."""
    return one(
        f'%s = "stablehlo.collective_permute"(%a0) <{{source_target_pairs = dense<{groups}> : tensor<2x2xi64>}}> : '
        f"({HALF}) -> {HALF}\n" + tanh("%y", "%s", HALF),
        kind=HALF,
        given=HALF,
    )


@pytest.mark.slow
def test_an_order_of_devices_is_a_guess_too(tmp_path: Path) -> None:
    """Shards that are exchanged are in order if the arguments' were not, or if the results' need not be."""
    part = shifted("[[0, 1], [1, 0]]")
    report = hlo_verify.verify(WHOLE, part)
    assert report.verdict is UNKNOWN and report.results[0].code is Annotation.GUESSED_PLACEMENT
    assert "state it with --shardings FILE" in report.results[0].reason
    path = tmp_path / "shardings.toml"
    path.write_text('[mesh]\nx = 2\n[arguments]\n0 = ["", "x"]\n[results]\n0 = ["", "x"]\n')
    assert hlo_verify.verify(WHOLE, part, shardings=path).verdict is REFUTED
    path.write_text('[mesh]\nx = 2\n[arguments]\n0 = ["", "x"]\n[results]\n0 = "{devices=[1,2]1,0}"\n')
    assert hlo_verify.verify(WHOLE, part, shardings=path).verdict is PROVED


def test_a_result_of_what_is_stated_is_refuted_as_ever(tmp_path: Path) -> None:
    """The second argument's placement is a guess, and the first result does not depend on it."""
    part = module([X, X], [("%y", X), ("%z", X)], f"%y = stablehlo.sine %a0 : {X}\n" + times("%z", "%a1", 2), 2)
    whole = module([X, X], [("%y", X), ("%z", X)], tanh("%y", "%a0") + times("%z", "%a1", 2), 1)
    path = tmp_path / "shardings.toml"
    path.write_text("[mesh]\nx = 2\n[arguments]\n0 = []\n[results]\n0 = []\n")
    report = hlo_verify.verify(whole, part, shardings=path)
    assert [result.verdict for result in report.results] == [REFUTED, PROVED]


def test_no_witness_is_saved_of_what_is_not_refuted(tmp_path: Path) -> None:
    path = tmp_path / "witness"
    assert hlo_verify.verify(WHOLE, shifted("[[0, 1], [1, 0]]"), witness=path).verdict is UNKNOWN
    assert not path.exists()


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        (BITS, f"%y = stablehlo.not %a0 : {BITS}", f"%y = stablehlo.and %a0, %a0 : {BITS}"),
        (INTEGERS, times("%y", "%a0", 3, INTEGERS), f"%y = stablehlo.negate %a0 : {INTEGERS}"),
    ],
    ids=["truth values", "integers"],
)
def test_other_types(kind: str, right: str, wrong: str) -> None:
    """Truth values have no sum, so they lie whole."""
    assert hlo_verify.verify(module([kind], [("%y", kind)], right, 1), one(wrong, 2, kind, kind)).verdict is REFUTED


def test_more_placements_than_may_be_tried_refute_nothing() -> None:
    part = WRONG_EVERYWHERE["another function"]
    (result,) = hlo_verify.verify(WHOLE, part, limits=Limits(placement_pairs=3)).results
    assert result.verdict is UNKNOWN and result.code is Annotation.GUESSED_PLACEMENT


def summed_in(groups: str) -> str:
    return (
        f'%s = "stablehlo.all_reduce"(%a0) ({{\n^bb0(%p: tensor<f32>, %q: tensor<f32>):\n'
        "%r = stablehlo.add %p, %q : tensor<f32>\nstablehlo.return %r : tensor<f32>\n}) "
        f"{{replica_groups = dense<{groups}> : tensor<2x2xi64>}} : ({X}) -> {X}\n"
    )


HALF_OF_EACH = f"""
    %n = stablehlo.replica_id : tensor<ui32>
    %table = stablehlo.constant dense<[0, 3, 3, 0]> : tensor<4xi32>
    %one = stablehlo.dynamic_slice %table, %n, sizes = [1] : (tensor<4xi32>, tensor<ui32>) -> tensor<1xi32>
    %k = stablehlo.reshape %one : (tensor<1xi32>) -> tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %h = stablehlo.dynamic_slice %a0, %z, %k, sizes = [4, 3] : ({X}, tensor<i32>, tensor<i32>) -> {HALF}
    """

RIGHT_SOMEWHERE = {
    "two addends of the argument, each on two devices": one(summed_in("[[0, 3], [1, 2]]") + tanh("%y", "%s"), 4),
    "two addends of the result, each on two devices": HALVED.replace("num_replicas = 2", "num_replicas = 4"),
    "two shards of the result, each on two devices": one(HALF_OF_EACH + tanh("%y", "%h", HALF), 4, HALF),
}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("part", RIGHT_SOMEWHERE.values(), ids=RIGHT_SOMEWHERE.keys())
def test_what_is_right_where_devices_hold_copies_is_not_refuted(part: str) -> None:
    """Fewer addends, or shards, than devices."""
    assert "num_replicas = 4" in part
    assert hlo_verify.verify(WHOLE, part).verdict is not REFUTED


@pytest.mark.parametrize("kind", ["tensor<4xf32>", "tensor<4x0xf32>", "tensor<4x6x1xf32>"])
def test_shapes_that_are_no_shards_are_no_pair(kind: str) -> None:
    with pytest.raises(hlo_verify.InputError, match="argument arg0"):
        hlo_verify.verify(WHOLE, one(f"%y = stablehlo.sine %a0 : {kind}\n", 2, kind, kind))


def added(kind: str, function: str) -> str:
    return (
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%s = stablehlo.reduce(%a0 init: %z) applies stablehlo.add "
        f"across dimensions = [0, 1] : ({kind}, tensor<f32>) -> tensor<f32>\n"
        f"%t = stablehlo.add %a1, %s : tensor<f32>\n%y = stablehlo.{function} %t : tensor<f32>\n"
    )


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("function", "verdict"), [("tanh", PROVED), ("sine", REFUTED)])
def test_an_argument_without_elements_is_split_too(function: str, verdict: Verdict) -> None:
    kinds = [[f"tensor<{rows}x0xf32>", "tensor<f32>"] for rows in (8, 4)]
    whole = module(kinds[0], [("%y", "tensor<f32>")], added(kinds[0][0], "tanh"), 1)
    part = module(kinds[1], [("%y", "tensor<f32>")], added(kinds[1][0], function), 2)
    assert hlo_verify.verify(whole, part).verdict is verdict


IN_TUPLES = f"""module @m attributes {{mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 2 : i32}} {{
  func.func public @main(%p: tuple<{X}>) -> {X} {{
    %x = stablehlo.get_tuple_element %p[0] : (tuple<{X}>) -> {X}
    %y = stablehlo.FUNCTION %x : {X}
    return %y : {X}
  }}
}}
"""


def test_arguments_in_tuples_are_placed_as_they_are_or_not_at_all() -> None:
    wrong, right = (IN_TUPLES.replace("FUNCTION", function) for function in ("sine", "tanh"))
    assert hlo_verify.verify(WHOLE, right).verdict is PROVED
    (result,) = hlo_verify.verify(WHOLE, wrong).results
    assert result.verdict is UNKNOWN and result.code is Annotation.GUESSED_PLACEMENT
