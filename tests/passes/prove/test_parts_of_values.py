"""What devices combine next is a part of a value; what is used elsewhere, or combined by one device alone, is none."""

from __future__ import annotations

import pytest

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.passes.prove.lineage import Lineage
from hlo_verify.passes.prove.parts_of_values import Parts, combined
from hlo_verify.passes.prove.stages import Stages
from hlo_verify.program.ir import Function, Op, TensorType
from hlo_verify.terms.term import Poly
from tests.support.pairs import LOGICAL, PARTIAL, REPLICATED, SUMMED, on

TYPE = TensorType((4,), "f32")


def op(name: str, operands: tuple[int, ...], result: int, regions: tuple[Function, ...] = (), group: int = 2) -> Op:
    groups = {"replica_groups": tuple(tuple(range(n, n + group)) for n in range(0, 4, group))}
    return Op(name, operands, (result,), (TYPE,), groups if name.startswith(("all_", "reduce_")) else {}, regions)


def function(*ops: Op, result: int = 9) -> Function:
    return Function((0,), (TYPE,), ops, (result,))


def test_a_partial_sum_is_a_part() -> None:
    assert combined(function(op("tanh", (0,), 1), op("all_reduce", (1,), 9))) == {1}
    assert combined(function(op("tanh", (0,), 1), op("reduce_scatter", (1,), 9))) == {1}


def test_in_another_shape_it_is_one_too() -> None:
    reshaped = op("tanh", (0,), 1), op("reshape", (1,), 2), op("convert", (2,), 3), op("all_reduce", (3,), 9)
    assert combined(function(*reshaped)) == {1, 2, 3}
    assert combined(function(*reshaped, result=2)) == {3}


@pytest.mark.parametrize(
    "other",
    [op("all_gather", (1,), 3), op("tanh", (1,), 3), op("while", (), 3, (function(op("tanh", (1,), 4), result=4),))],
    ids=["gathered", "computed with", "used in a loop"],
)
def test_what_is_used_elsewhere_is_none(other: Op) -> None:
    ops = op("tanh", (0,), 1), op("all_reduce", (1,), 9)
    assert combined(function(*ops, other)) == set()
    assert combined(function(ops[0], other, ops[1])) == set()


def test_what_is_returned_or_left_to_itself_is_none() -> None:
    first = op("tanh", (0,), 1)
    assert combined(function(first, op("all_reduce", (1,), 9), result=1)) == set()
    assert combined(function(first, op("all_reduce", (1,), 9, group=1))) == set()
    assert combined(function(first, op("tanh", (1,), 9))) == set()
    assert combined(function(op("while", (), 9, (function(op("all_reduce", (0,), 1), result=0),)))) == set()


def test_parts_of_both_modules_may_be_the_same() -> None:
    one, other = op("tanh", (0,), 1), op("tanh", (0,), 2)
    assert Parts(frozenset(), frozenset({2})).are_apart(one, other)
    assert not Parts(frozenset({1}), frozenset({2})).are_apart(one, other)
    assert not Parts(frozenset({1}), frozenset({3})).are_apart(one, other)


HALVES = SUMMED.replace("[[0, 1, 2, 3]]> : tensor<1x4xi64>", "[[0, 1], [2, 3]]> : tensor<2x2xi64>")
"""What the first two devices have, and the others."""


def at_one_line(text: str) -> str:
    """With the sharding that a compiler notes, and from one line of a program."""
    noted = f"across dimensions = [0] {on(REPLICATED)}"
    lines = text.replace("across dimensions = [0]", noted).split("\n")
    ends = ("-> tensor<f32>",)
    return "\n".join(line + ' loc("total")' if line.endswith(ends) else line for line in lines)


@pytest.mark.parametrize(("partitioned", "count"), [(HALVES, 1), (PARTIAL, 1)])
def test_a_part_is_compared_with_no_whole(partitioned: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is made of the parts is, or a part that is returned as it is."""
    compared = set()

    def refuse(stages: Stages, views: list[tuple[Poly, Poly]], where: Lineage) -> bool:
        compared.add(views[-1][0])
        return False

    monkeypatch.setattr(Stages, "_is_shard", refuse)
    report = hlo_verify.verify(at_one_line(LOGICAL), at_one_line(partitioned), refute=False)
    assert report.verdict is Verdict.UNKNOWN
    assert len(compared) == count


@pytest.mark.parametrize(("partitioned", "verdict"), [(SUMMED, Verdict.PROVED), (HALVES, Verdict.UNKNOWN)])
def test_what_is_made_of_parts_is_compared(partitioned: str, verdict: Verdict) -> None:
    assert hlo_verify.verify(at_one_line(LOGICAL), at_one_line(partitioned), refute=False).verdict is verdict
