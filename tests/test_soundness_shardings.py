"""Unreduced and single-device arguments and results: what holds is proved, what nearly holds never is."""

from __future__ import annotations

import pytest

import hlo_verify
from hlo_verify.diagnostics.errors import InputError
from tests.support.pairs import REPLICATED, module, on

X = "tensor<4xf32>"
ON_0, ON_1 = "{maximal device=0}", "{maximal device=1}"
OVER_A = "{devices=[1,2,2]<=[4] last_tile_dims={unreduced, replicated}}"
OVER_B = "{devices=[1,2,2]<=[4] last_tile_dims={replicated, unreduced}}"
ALL = "{unreduced}"
ROWS_OVER_A = "{devices=[2,2]<=[2,2]T(1,0) last_tile_dims={unreduced}}"
"""Rows over the inner axis b, addends over the outer axis a."""


def _verdict(argument: str, result: str, logical: str, partitioned: str, devices: int = 4, part: str = X) -> bool:
    whole = module(f"%x: {X} {on(argument)}", f"{X} {on(result)}", logical, devices)
    report = hlo_verify.verify(whole, module(f"%x: {part}", part, partitioned, devices), refute=False)
    return report.verdict is hlo_verify.Verdict.PROVED


SAME = f"return %x : {X}"
NEGATED = f"%y = stablehlo.negate %x : {X}\nreturn %y : {X}"
SQUARED = f"%y = stablehlo.multiply %x, %x : {X}\nreturn %y : {X}"
SHIFTED = f"%o = stablehlo.constant dense<1.0> : {X}\n%y = stablehlo.add %x, %o : {X}\nreturn %y : {X}"


def _scaled(by: float) -> str:
    return f"%o = stablehlo.constant dense<{by}> : {X}\n%y = stablehlo.multiply %x, %o : {X}\nreturn %y : {X}"


def _summed(groups: str, of: str = "%x", kind: str = X) -> str:
    count = groups.count("],") + 1
    size = (groups.count(",") + 1) // count
    element = "tensor<f32>"
    return f"""
    %r = "stablehlo.all_reduce"({of}) <{{replica_groups = dense<{groups}> : tensor<{count}x{size}xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}}> ({{
    ^bb0(%p: {element}, %q: {element}):
      %s = stablehlo.add %p, %q : {element}
      stablehlo.return %s : {element}
    }}) : ({kind}) -> {kind}
    return %r : {kind}"""


def _only_where(test: str) -> str:
    """`%m`: the argument on the devices that the test (`%f`, of the device `%d`) is true on, else zeros."""
    return f"""
    %d = stablehlo.partition_id : tensor<ui32>
    %0 = stablehlo.constant dense<0> : tensor<ui32>
    %1 = stablehlo.constant dense<1> : tensor<ui32>
    %2 = stablehlo.constant dense<2> : tensor<ui32>
    %3 = stablehlo.constant dense<3> : tensor<ui32>
    {test}
    %w = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<i1>) -> tensor<4xi1>
    %z = stablehlo.constant dense<0.0> : {X}
    %m = stablehlo.select %w, %x, %z : tensor<4xi1>, {X}
    """


def _compare(name: str, a: str, direction: str, b: str) -> str:
    return f"%{name} = stablehlo.compare {direction}, %{a}, %{b} : (tensor<ui32>, tensor<ui32>) -> tensor<i1>\n"


MINE_0, MINE_1 = _only_where(_compare("f", "d", "EQ", "0")), _only_where(_compare("f", "d", "EQ", "1"))
FIRST_HALF = _only_where(_compare("f", "d", "LT", "2"))
EVEN = _only_where("%r = stablehlo.remainder %d, %2 : tensor<ui32>\n" + _compare("f", "r", "EQ", "0"))
OUTER = _only_where(
    _compare("p", "d", "EQ", "0") + _compare("q", "d", "EQ", "3") + "%f = stablehlo.or %p, %q : tensor<i1>"
)
MASKED = f"return %m : {X}"
PAIR = "[[0, 1]]"

SINGLE = {
    "stays where it is": (ON_0, ON_0, SAME, SAME, True),
    "is computed where it is": (ON_1, ON_1, NEGATED, NEGATED, True),
    "is wanted elsewhere": (ON_0, ON_1, SAME, SAME, False),
    "is wanted everywhere": (ON_0, REPLICATED, SAME, SAME, False),
    "is split": (ON_0, ON_0, SAME, NEGATED, False),
    "is one of equal ones": (REPLICATED, ON_1, SAME, SAME, True),
    "is broadcast": (ON_0, REPLICATED, SAME, MINE_0 + _summed(PAIR, "%m"), True),
    "is broadcast from where it is not": (ON_0, REPLICATED, SAME, MINE_1 + _summed(PAIR, "%m"), False),
    "is broadcast without a mask": (ON_0, REPLICATED, SAME, _summed(PAIR), False),
    "is right on its device alone": (REPLICATED, ON_0, SAME, MINE_0 + MASKED, True),
    "is right on the other device alone": (REPLICATED, ON_1, SAME, MINE_0 + MASKED, False),
}


@pytest.mark.parametrize(("argument", "result", "logical", "partitioned", "holds"), SINGLE.values(), ids=SINGLE.keys())
def test_on_a_single_device(argument: str, result: str, logical: str, partitioned: str, holds: bool) -> None:
    assert _verdict(argument, result, logical, partitioned, devices=2) is holds


A_GROUPS, B_GROUPS, EVERY = "[[0, 2], [1, 3]]", "[[0, 1], [2, 3]]", "[[0, 1, 2, 3]]"

UNREDUCED = {
    "stays open": (OVER_A, OVER_A, SAME, SAME, True),
    "stays open over all devices": (ALL, ALL, NEGATED, NEGATED, True),
    "is closed": (OVER_A, REPLICATED, SAME, _summed(A_GROUPS), True),
    "is closed over all devices": (ALL, REPLICATED, SAME, _summed(EVERY), True),
    "is not closed": (OVER_A, REPLICATED, SAME, SAME, False),
    "is closed over the other axis": (OVER_A, REPLICATED, SAME, _summed(B_GROUPS), False),
    "is closed over too many devices": (OVER_A, REPLICATED, SAME, _summed(EVERY), False),
    "is closed over too few devices": (ALL, REPLICATED, SAME, _summed(A_GROUPS), False),
    "is closed and wanted open": (OVER_A, OVER_A, SAME, _summed(A_GROUPS), False),
    "is wanted open over the other axis": (OVER_A, OVER_B, SAME, SAME, False),
    "goes through a linear function": (OVER_A, OVER_A, _scaled(3.0), _scaled(3.0), True),
    "goes through another function": (OVER_A, OVER_A, _scaled(3.0), _scaled(2.0), False),
    "goes through a function that is not linear": (OVER_A, OVER_A, SQUARED, SQUARED, False),
    "is shifted on every device": (OVER_A, OVER_A, SHIFTED, SHIFTED, False),
    "is whole on every device": (REPLICATED, OVER_A, SAME, SAME, False),
    "is shared out": (REPLICATED, OVER_A, SAME, _scaled(0.5), True),
    "is shared out among too many": (REPLICATED, OVER_A, SAME, _scaled(0.25), False),
    "is shared out among all": (REPLICATED, ALL, SAME, _scaled(0.25), True),
    "is on one of each group": (REPLICATED, OVER_A, SAME, FIRST_HALF + MASKED, True),
    "is on both of a group": (REPLICATED, OVER_A, SAME, EVEN + MASKED, False),
    "is on another of each group": (REPLICATED, OVER_A, SAME, OUTER + MASKED, False),
}


@pytest.mark.parametrize(
    ("argument", "result", "logical", "partitioned", "holds"), UNREDUCED.values(), ids=UNREDUCED.keys()
)
def test_addends(argument: str, result: str, logical: str, partitioned: str, holds: bool) -> None:
    """The last one: the sum is right in every group, but devices that are to hold the same addend do not."""
    assert _verdict(argument, result, logical, partitioned) is holds


def test_addends_of_shards() -> None:
    halves = _summed(A_GROUPS, kind="tensor<2xf32>")
    rows = "{devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate}"
    assert _verdict(ROWS_OVER_A, rows, SAME, halves, part="tensor<2xf32>")
    assert not _verdict(ROWS_OVER_A, rows, SAME, "return %x : tensor<2xf32>", part="tensor<2xf32>")
    other = "{devices=[2,2]<=[4] last_tile_dim_replicate}"
    assert not _verdict(ROWS_OVER_A, other, SAME, halves, part="tensor<2xf32>")


def test_truth_values_have_no_sum() -> None:
    with pytest.raises(InputError, match="argument arg0 is unreduced, and elements of type i1 have no sum"):
        body = "return %x : tensor<4xi1>"
        hlo_verify.verify(
            module(f"%x: tensor<4xi1> {on(ALL)}", f"tensor<4xi1> {on(ALL)}", body, 2),
            module("%x: tensor<4xi1>", "tensor<4xi1>", body, 2),
            refute=False,
        )


def _contraction(contracted: int, end: str, argument: str = "", result: str = "") -> str:
    a, b, c = f"tensor<8x{contracted}xf32>", f"tensor<{contracted}x6xf32>", "tensor<8x6xf32>"
    placed = [f" {on(text)}" if text else "" for text in (*(argument.split("|") * 2)[:2], result)]
    body = f"%y = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({a}, {b}) -> {c}\n{end}"
    return module(f"%a: {a}{placed[0]}, %b: {b}{placed[1]}", c + placed[2], body, 4)


def test_a_contraction_may_stay_open() -> None:
    split = "{devices=[1,2,2]<=[4] last_tile_dim_replicate}|{devices=[2,1,2]<=[4] last_tile_dim_replicate}"
    end = "return %y : tensor<8x6xf32>"
    open_ = "{devices=[1,1,2,2]<=[4] last_tile_dims={unreduced, replicated}}"
    wrong = "{devices=[1,1,2,2]<=[4] last_tile_dims={replicated, unreduced}}"
    parts = _contraction(4, end)
    assert (
        hlo_verify.verify(_contraction(8, end, split, open_), parts, refute=False).verdict is hlo_verify.Verdict.PROVED
    )
    for result in (wrong, REPLICATED, ALL):
        report = hlo_verify.verify(_contraction(8, end, split, result), parts, refute=False)
        assert report.verdict is hlo_verify.Verdict.UNKNOWN


def test_a_contraction_of_addends_is_closed_afterwards() -> None:
    """A linear function of addends, closed after it."""
    argument = "{devices=[1,1,2,2]<=[4] last_tile_dims={unreduced, replicated}}|{replicated}"
    logical = _contraction(8, "return %y : tensor<8x6xf32>", argument, REPLICATED)
    closed = _summed(A_GROUPS, "%y", "tensor<8x6xf32>")
    assert hlo_verify.verify(logical, _contraction(8, closed), refute=False).verdict is hlo_verify.Verdict.PROVED
    wrong = closed.replace(A_GROUPS, B_GROUPS)
    assert hlo_verify.verify(logical, _contraction(8, wrong), refute=False).verdict is hlo_verify.Verdict.UNKNOWN
