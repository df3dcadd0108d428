"""Graphs of the ranks are one program where they differ in what single operations compute, and none otherwise."""

from __future__ import annotations

import pytest

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.diagnostics import Input
from hlo_verify.errors import InputError
from tests.passes.test_inference import all_reduce, matrix, module

PROVED, REFUTED = Verdict.PROVED, Verdict.REFUTED
ROWS, ALL = matrix(2, 3), matrix(4, 3)


def halves(start: int, scale: float = 1.0, groups: str = "[[0, 1]]") -> str:
    """The graph of a rank that sums the rows from `start` on, of all rows, with those of the other."""
    body = (
        f"%s = stablehlo.slice %a0 [{start}:{start + 2}, 0:3] : ({ALL}) -> {ROWS}\n"
        f"%c = stablehlo.constant dense<{scale}> : {ROWS}\n%t = stablehlo.tanh %s : {ROWS}\n"
        f"%y = stablehlo.multiply %t, %c : {ROWS}\n" + all_reduce("%z", "%y", ROWS, groups)
    )
    return module([ALL], [("%z", ROWS)], body, 2)


LOGICAL = module(
    [ALL],
    [("%z", ROWS)],
    f"%t = stablehlo.tanh %a0 : {ALL}\n%a = stablehlo.slice %t [0:2, 0:3] : ({ALL}) -> {ROWS}\n"
    f"%b = stablehlo.slice %t [2:4, 0:3] : ({ALL}) -> {ROWS}\n%z = stablehlo.add %a, %b : {ROWS}",
    1,
)


def test_every_rank_has_rows_of_its_own() -> None:
    assert hlo_verify.verify(LOGICAL, [halves(0), halves(2)]).verdict is PROVED


@pytest.mark.parametrize(
    "ranks",
    [[halves(0), halves(0)], [halves(1), halves(2)], [halves(0), halves(2, 2.0)]],
    ids=["the same rows twice", "overlapping rows", "another factor on one rank"],
)
def test_a_rank_that_is_wrong(ranks: list[str]) -> None:
    assert hlo_verify.verify(LOGICAL, ranks).verdict is REFUTED  # type: ignore[arg-type]


def test_the_order_of_the_ranks_counts() -> None:
    whole = module([ALL], [("%a0", ALL)], "", 1)
    rows = [halves(start).split("%c =")[0] + f"return %s : {ROWS}\n}}\n}}\n" for start in (0, 2)]
    assert hlo_verify.verify(whole, rows).verdict is PROVED  # type: ignore[arg-type]
    assert hlo_verify.verify(whole, rows[::-1]).verdict is REFUTED  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (halves(2).replace("tanh", "sine"), "sine"),
        (halves(2).replace("%t, %c", "%c, %t"), "other operands"),
        (halves(2, groups="[[0], [1]]"), "communicates otherwise"),
        (halves(2).replace("%c = ", f"%d = stablehlo.negate %s : {ROWS}\n%c = "), "7 operations and not 6"),
        (halves(2).replace("stablehlo.add", "stablehlo.maximum"), "communicates otherwise"),
    ],
)
def test_graphs_that_are_no_program(second: str, why: str) -> None:
    with pytest.raises(InputError, match=f"rank 1.*{why}") as error:
        hlo_verify.verify(LOGICAL, [halves(0), second])
    assert error.value.code is Input.NOT_A_PAIR


def test_a_graph_for_another_number_of_devices() -> None:
    with pytest.raises(InputError, match="3 ranks") as error:
        hlo_verify.verify(LOGICAL, [halves(0), halves(2), halves(0)])
    assert error.value.code is Input.OTHER_DEVICES
