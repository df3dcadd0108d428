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


@pytest.mark.parametrize("part", WRONG_EVERYWHERE.values(), ids=WRONG_EVERYWHERE.keys())
def test_what_is_wrong_under_every_placement_is_refuted(part: str) -> None:
    report = hlo_verify.verify(WHOLE, part)
    assert report.verdict is REFUTED and report.results[0].witness is not None
    assert report.headline == "REFUTED under every placement that the shapes allow"


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
