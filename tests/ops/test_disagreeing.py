"""What a manual region leaves different on each device stays so: no loop after it makes one value of it."""

from __future__ import annotations

import pytest

import hlo_verify
from hlo_verify import Verdict
from tests.support.pairs import REPLICATED, module, on

TYPE = "tensor<4xi32>"
NUMBER = f"""
    %id = stablehlo.partition_id : tensor<ui32>
    %number = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
    %v = stablehlo.broadcast_in_dim %number, dims = [] : (tensor<i32>) -> {TYPE}"""
LEFT = f"""
    %v = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{}}]>] out_shardings=[<@mesh, [{{}}]>] manual_axes={{"d"}}
      (%inside: {TYPE}) {{{NUMBER}
      sdy.return %v : {TYPE}
    }} : ({TYPE}) -> {TYPE}"""


def _loop(name: str, start: str, other: str, trips: int = 100) -> str:
    """`%name#1`, which takes in `%name#2` in each turn; that changes by itself."""
    return f"""
    %{name}0 = stablehlo.constant dense<0> : tensor<i32>
    %{name}:3 = stablehlo.while(%i = %{name}0, %x = %{start}, %z = %{other}) : tensor<i32>, {TYPE}, {TYPE}
    cond {{
      %n = stablehlo.constant dense<{trips}> : tensor<i32>
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }} do {{
      %o = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %o : tensor<i32>
      %t = stablehlo.add %x, %z : {TYPE}
      %x1 = stablehlo.popcnt %t : {TYPE}
      %z1 = stablehlo.count_leading_zeros %z : {TYPE}
      stablehlo.return %j, %x1, %z1 : tensor<i32>, {TYPE}, {TYPE}
    }}"""


EXCHANGED = f"""
    %q = "stablehlo.collective_permute"(%r) <{{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}}> : ({TYPE}) -> {TYPE}
    %c = stablehlo.subtract %r, %q : {TYPE}
    %b = stablehlo.add %a, %c : {TYPE}
    %y = stablehlo.popcnt %b : {TYPE}"""
PLAIN = f"""
    %y = stablehlo.popcnt %a : {TYPE}"""
LOOPS = {
    "it is carried": (_loop("w", "v", "a"), "w#1"),
    "it is taken in": (_loop("w", "a", "v"), "w#1"),
    "it is taken in two loops after": (_loop("w", "a", "v") + _loop("u", "a", "w#1"), "u#1"),
}


def _verdict(logical: str, partitioned: str) -> Verdict:
    wanted = module(f"%a: {TYPE} {on(REPLICATED)}", f"{TYPE} {on(REPLICATED)}", logical, devices=2)
    wanted = wanted.replace("func.func", 'sdy.mesh @mesh = <["d"=2]>\n  func.func')
    return hlo_verify.verify(wanted, module(f"%a: {TYPE}", TYPE, partitioned, devices=2), refute=False).verdict


@pytest.mark.parametrize(("loop", "carried"), LOOPS.values(), ids=LOOPS)
def test_a_loop_makes_no_one_value_of_it(loop: str, carried: str) -> None:
    end = f"\n    return %y : {TYPE}"
    result = f"\n    %r = stablehlo.negate %{carried} : {TYPE}"
    assert _verdict(LEFT + loop + PLAIN + end, NUMBER + loop + result + EXCHANGED + end) is Verdict.UNKNOWN
    returned = f"{result}\n    return %r : {TYPE}"
    assert _verdict(LEFT + loop + returned, NUMBER + loop + returned) is Verdict.UNKNOWN


@pytest.mark.parametrize(("loop", "carried"), LOOPS.values(), ids=LOOPS)
def test_what_devices_agree_on_is_one(loop: str, carried: str) -> None:
    loop, one = loop.replace("%v", "%one"), f"\n    %one = stablehlo.constant dense<1> : {TYPE}"
    result = f"{one}{loop}\n    %r = stablehlo.negate %{carried} : {TYPE}"
    assert (
        _verdict(
            LEFT + one + loop + PLAIN + f"\n    return %y : {TYPE}", result + EXCHANGED + f"\n    return %y : {TYPE}"
        )
        is Verdict.PROVED
    )
