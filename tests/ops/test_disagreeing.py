"""What a manual region leaves different on each device stays so: no loop after it makes one value of it."""

from __future__ import annotations

from collections.abc import Callable

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


def _within(body: str, given: str, gives: str) -> str:
    """`%{gives}`, which a region makes of `%{given}`, where each device has its own."""
    return f"""
    %{gives} = sdy.manual_computation(%{given}) in_shardings=[<@mesh, [{{}}]>] out_shardings=[<@mesh, [{{}}]>]
      manual_axes={{"d"}} (%r: {TYPE}) {{{body}
      sdy.return %c : {TYPE}
    }} : ({TYPE}) -> {TYPE}"""


@pytest.mark.parametrize("given", ["v", "a"])
def test_what_is_not_understood_is_another_on_each_device(given: str) -> None:
    """A call of which nothing is known, outside of regions: what devices hold of it does not cancel between them."""
    differences = EXCHANGED.partition("%b =")[0]
    u = f"\n    %u = stablehlo.custom_call @unknown(%{given}) : ({TYPE}) -> {TYPE}"
    added = f"\n    %y = stablehlo.add %a, %e : {TYPE}\n    return %y : {TYPE}"
    logical = LEFT + u + _within(differences, "u", "e") + added
    assert _verdict(logical, f"\n    return %a : {TYPE}") is Verdict.UNKNOWN


def test_what_is_understood_is_one() -> None:
    differences = EXCHANGED.partition("%b =")[0]
    logical = _within(differences, "a", "e") + f"\n    %y = stablehlo.add %a, %e : {TYPE}\n    return %y : {TYPE}"
    assert _verdict(logical, f"\n    return %a : {TYPE}") is Verdict.PROVED


SUMMED = f"""
    %c = "stablehlo.all_reduce"(%r) ({{
    ^bb0(%first: tensor<i32>, %second: tensor<i32>):
      %both = stablehlo.add %first, %second : tensor<i32>
      stablehlo.return %both : tensor<i32>
    }}) {{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}} : ({TYPE}) -> {TYPE}"""


def _branch(given: str) -> str:
    """Devices that hold a 0 at the first place add up what all hold; nothing uses it."""
    return f"""
    %s = stablehlo.slice %{given} [0:1] : ({TYPE}) -> tensor<1xi32>
    %h = stablehlo.reshape %s : (tensor<1xi32>) -> tensor<i32>
    %k = stablehlo.constant dense<0> : tensor<i32>
    %p = stablehlo.compare EQ, %h, %k : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %hung = "stablehlo.if"(%p) ({{{_within(SUMMED, "a", "e")}
      stablehlo.return %e : {TYPE}
    }}, {{
      stablehlo.return %a : {TYPE}
    }}) : (tensor<i1>) -> {TYPE}"""


def _turns(given: str) -> str:
    """They do so as often as their number says."""
    return f"""
    %s = stablehlo.slice %{given} [0:1] : ({TYPE}) -> tensor<1xi32>
    %h = stablehlo.reshape %s : (tensor<1xi32>) -> tensor<i32>
    %k = stablehlo.constant dense<0> : tensor<i32>
    %hung:3 = stablehlo.while(%i = %k, %x = %a, %n = %h) : tensor<i32>, {TYPE}, tensor<i32>
    cond {{
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }} do {{
      %o = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %o : tensor<i32>{_within(SUMMED, "x", "e")}
      stablehlo.return %j, %e, %n : tensor<i32>, {TYPE}, tensor<i32>
    }}"""


@pytest.mark.parametrize("hang", [_branch, _turns])
def test_what_devices_disagree_on_keeps_them_apart_around_regions(hang: Callable[[str], str]) -> None:
    """A region that communicates, in a branch or loop of a global module that not all devices run alike."""
    end = f"{PLAIN}\n    return %y : {TYPE}"
    whole = module(f"%a: {TYPE} {on(REPLICATED)}", f"{TYPE} {on(REPLICATED)}", LEFT + "BODY" + end, devices=2)
    whole = whole.replace("func.func", 'sdy.mesh @mesh = <["d"=2]>\n  func.func')
    logical, apart, together = (whole.replace("BODY", each) for each in ("", hang("v"), hang("a")))
    for wrong in ((logical, apart), (apart, logical), (apart, apart)):
        assert hlo_verify.verify(*wrong, refute=False).verdict is Verdict.UNKNOWN
    assert hlo_verify.verify(logical, together, refute=False).verdict is Verdict.PROVED


def _changed(start: str, turns: int = 100) -> str:
    """What a loop adds to `%{start}`: in each turn what the other device has less than this one."""
    return f"""
    %k = stablehlo.constant dense<0> : tensor<i32>
    %w:2 = stablehlo.while(%i = %k, %x = %{start}) : tensor<i32>, {TYPE}
    cond {{
      %n = stablehlo.constant dense<{turns}> : tensor<i32>
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }} do {{
      %o = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %o : tensor<i32>{_within(EXCHANGED.partition("%b =")[0], "x", "e")}
      %x1 = stablehlo.add %x, %e : {TYPE}
      stablehlo.return %j, %x1 : tensor<i32>, {TYPE}
    }}
    %f = stablehlo.subtract %w#1, %{start} : {TYPE}
    %g = stablehlo.add %a, %f : {TYPE}
    %y = stablehlo.popcnt %g : {TYPE}"""


@pytest.mark.parametrize("turns", [3, 100])
def test_a_loop_around_regions_carries_what_devices_disagree_on(turns: int) -> None:
    whole = module(
        f"%a: {TYPE} {on(REPLICATED)}", f"{TYPE} {on(REPLICATED)}", f"BODY\n    return %y : {TYPE}", devices=2
    )
    whole = whole.replace("func.func", 'sdy.mesh @mesh = <["d"=2]>\n  func.func')
    plain, changed, same = (
        whole.replace("BODY", LEFT + each) for each in (PLAIN, _changed("v", turns), _changed("a", turns))
    )
    for wrong in ((plain, changed), (changed, plain)):
        assert hlo_verify.verify(*wrong, refute=False).verdict is Verdict.UNKNOWN
    right = hlo_verify.verify(plain, same, refute=False).verdict
    assert right is (Verdict.PROVED if turns == 3 else Verdict.UNKNOWN)  # more than are written out


def _beside(start: str, step: str) -> str:
    """A loop that carries something else too, which both modules have; `%y` is made of both."""
    return f"""
    %k = stablehlo.constant dense<0> : tensor<i32>
    %w:3 = stablehlo.while(%i = %k, %x = %{start}, %z = %a) : tensor<i32>, {TYPE}, {TYPE}
    cond {{
      %n = stablehlo.constant dense<100> : tensor<i32>
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }} do {{
      %o = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %o : tensor<i32>{step}
      %s = stablehlo.add %z, %a : {TYPE}
      %z1 = stablehlo.popcnt %s : {TYPE}
      stablehlo.return %j, %x1, %z1 : tensor<i32>, {TYPE}, {TYPE}
    }}
    %f = stablehlo.subtract %w#1, %{start} : {TYPE}
    %y = stablehlo.add %w#2, %f : {TYPE}"""


def test_what_is_carried_beside_what_is_matched() -> None:
    stays = f"\n      %x1 = stablehlo.reshape %x : ({TYPE}) -> {TYPE}"
    changes = _within(EXCHANGED.partition("%b =")[0], "x", "e") + f"\n      %x1 = stablehlo.add %x, %e : {TYPE}"
    whole = module(
        f"%a: {TYPE} {on(REPLICATED)}", f"{TYPE} {on(REPLICATED)}", "BODY\n    return %y : " + TYPE, devices=2
    )
    whole = whole.replace("func.func", 'sdy.mesh @mesh = <["d"=2]>\n  func.func')
    logical, right, wrong = (
        whole.replace("BODY", LEFT + _beside(*each)) for each in (("a", stays), ("v", stays), ("v", changes))
    )
    assert hlo_verify.verify(logical, wrong, refute=False).verdict is Verdict.UNKNOWN
    assert hlo_verify.verify(logical, right, refute=False).verdict is Verdict.PROVED
