"""Graphs of the ranks are one program where they differ in what single operations compute, and none otherwise."""

from __future__ import annotations

import pytest

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from tests.passes.place.test_infer import all_reduce, matrix, module

PROVED, REFUTED, UNKNOWN = Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN
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


@pytest.mark.drawn(1)
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
    found = hlo_verify.verify(whole, rows[::-1])  # type: ignore[arg-type]
    assert found.verdict is UNKNOWN, "nothing says that the first device is to hold the first rows"


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


def looped(factor: float, inside: bool, captured: bool) -> str:
    """The graph of a rank that multiplies by a number in a loop of one turn, and sums there if `inside`."""
    constant = f"%k = stablehlo.constant dense<{factor}> : {ROWS}\n"
    body = (
        "%i0 = stablehlo.constant dense<0> : tensor<i32>\n"
        + (constant if captured else "")
        + f"%w:2 = stablehlo.while(%i = %i0, %x = %a0) : tensor<i32>, {ROWS}\n"
        + "cond { %n = stablehlo.constant dense<1> : tensor<i32>\n"
        + "%c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        + "stablehlo.return %c : tensor<i1> } do {\n"
        + ("" if captured else constant)
        + f"%t = stablehlo.constant dense<{factor}> : {ROWS}\n"
        + f"%u = stablehlo.multiply %k, %t : {ROWS}\n%y = stablehlo.multiply %x, %u : {ROWS}\n"
        + (all_reduce("%z", "%y", ROWS) if inside else f"%z = stablehlo.negate %y : {ROWS}\n")
        + "%o = stablehlo.constant dense<1> : tensor<i32>\n%j = stablehlo.add %i, %o : tensor<i32>\n"
        + f"stablehlo.return %j, %z : tensor<i32>, {ROWS} }}\n"
    )
    if not inside:
        body += all_reduce("%s", "%w#1", ROWS)
    return module([ROWS], [("%w#1" if inside else "%s", ROWS)], body, 2)


@pytest.mark.parametrize(
    ("inside", "captured", "why"),
    [(True, False, "communicates otherwise"), (False, True, "uses values from outside")],
    ids=["devices communicate in it", "it uses a value from outside"],
)
def test_a_loop_that_differs(inside: bool, captured: bool, why: str) -> None:
    """A choice between loops would have each device sum what its own loop makes of what the others hold."""
    ranks = [looped(factor, inside, captured) for factor in (1.0, 3.0)]
    with pytest.raises(InputError, match=f"rank 1.*{why}"):
        hlo_verify.verify(module([ROWS], [("%a0", ROWS)], "", 1), ranks)  # type: ignore[arg-type]


@pytest.mark.parametrize("total", [-10.0, -2.0])
def test_a_loop_that_differs_by_itself(total: float) -> None:
    body = f"%c = stablehlo.constant dense<{total}> : {ROWS}\n%y = stablehlo.multiply %a0, %c : {ROWS}"
    whole = module([ROWS], [("%y", ROWS)], body, 1)
    found = hlo_verify.verify(whole, [looped(factor, False, False) for factor in (1.0, 3.0)])
    assert (found.verdict is PROVED) is (total == -10.0)


@pytest.mark.parametrize("place", ["argument", "result"])
def test_graphs_that_place_one_thing_in_two_ways(place: str) -> None:
    """Each rank says where all of them have their parts; two that say otherwise are not one program."""

    def rank(order: str) -> str:
        body = f"%y = stablehlo.tanh %a0 : {ROWS}"
        text = module([ROWS], [("%y", ROWS)], body, 1).replace("num_partitions = 1", "num_partitions = 2")
        old = f"%a0: {ROWS}" if place == "argument" else f"-> ({ROWS}"
        return text.replace(old, f'{old} {{mhlo.sharding = "{{devices=[2,1]{order}}}"}}', 1)

    whole = module([ALL], [("%y", ALL)], f"%y = stablehlo.tanh %a0 : {ALL}", 1)
    assert hlo_verify.verify(whole, [rank("<=[2]"), rank("<=[2]")]).verdict is PROVED
    with pytest.raises(InputError, match=f"in rank 1, its {place}s have other shardings"):
        hlo_verify.verify(whole, [rank("<=[2]"), rank("1,0")])


def test_graphs_that_number_devices_in_two_ways() -> None:
    """`partition_id` of a rank that says it is one of two replicas is 0, and of one of two partitions its number."""
    whole = module([ROWS], [("%a0", ROWS)], "", 1)
    replicas = module([ROWS], [("%a0", ROWS)], "", 2)
    partitions = whole.replace("num_partitions = 1", "num_partitions = 2")
    for other in (partitions, whole):
        with pytest.raises(InputError, match="numbers devices otherwise"):
            hlo_verify.verify(whole, [replicas, other])
    assert hlo_verify.verify(whole, [replicas, replicas]).verdict is PROVED
