"""Devices that part where nobody looks: inside of loops and regions that are not understood, and that nobody reads."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from hlo_verify import Verdict
from tests.ops.test_communication import (
    COPY,
    FIRST_TWO,
    FORMS,
    KNOWN,
    TYPE,
    Form,
    all_reduce,
    hidden,
    local,
    permute,
    verdict,
    whole,
)


def _not_understood(body: str, going_on: str) -> str:
    """A loop of which nothing is known, and of which nothing is used."""
    return f"""{FIRST_TWO}
    %zero = stablehlo.constant dense<0> : tensor<ui32>
    %one = stablehlo.constant dense<1> : tensor<ui32>
    %often = stablehlo.constant dense<100> : tensor<ui32>
    %w:2 = stablehlo.while(%i = %zero, %before = %x) : tensor<ui32>, {TYPE}
    cond {{
      %q = stablehlo.compare {going_on}, %i, %often : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
      stablehlo.return %q : tensor<i1>
    }} do {{
      %j = stablehlo.add %i, %one : tensor<ui32>{body.replace("%y", "%made").replace("%x", "%before")}
      %square = stablehlo.multiply %made, %made : {TYPE}
      %after = stablehlo.tanh %square : {TYPE}
      stablehlo.return %j, %after : tensor<ui32>, {TYPE}
    }}"""


def _in_branch(body: str) -> str:
    return hidden(body).removeprefix(FIRST_TWO)


def _in_loop(body: str) -> str:
    return f"""
    %v:2 = stablehlo.while(%k = %zero, %held = %x) : tensor<ui32>, {TYPE}
    cond {{
      %go = stablehlo.compare LT, %k, %id : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    }} do {{
      %l = stablehlo.add %k, %one : tensor<ui32>{body.replace("%y", "%given").replace("%x", "%held")}
      stablehlo.return %l, %given : tensor<ui32>, {TYPE}
    }}
    %y = stablehlo.reshape %v#1 : ({TYPE}) -> {TYPE}"""


def _in_loop_not_understood(body: str) -> str:
    inner = _not_understood(_in_branch(body), "NE").removeprefix(FIRST_TWO)
    for name in ("i", "j", "q", "w", "before", "after", "square", "made", "zero", "one", "often"):
        inner = re.sub(rf"%{name}\b", f"%inner_{name}", inner)
    return f"""{inner}
    %y = stablehlo.reshape %inner_w#1 : ({TYPE}) -> {TYPE}"""


PARTINGS: dict[str, Callable[[str], str]] = {
    "branch": _in_branch,
    "loop": _in_loop,
    "loop that is not understood": _in_loop_not_understood,
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_nothing_is_proved_where_devices_part_inside_of_a_loop_that_is_not_understood(form: Form) -> None:
    body = form(range(4))
    apart, together = _not_understood(_in_branch(body), "NE"), _not_understood(body, "NE")
    assert verdict(whole(COPY, 4), local(apart + COPY, 4)) is Verdict.UNKNOWN
    if form.__name__ in KNOWN:
        assert verdict(whole(COPY, 4), local(together + COPY, 4)) is Verdict.PROVED


@pytest.mark.parametrize("going_on", ["LT", "NE"])
@pytest.mark.parametrize("parting", PARTINGS.values(), ids=PARTINGS)
def test_nothing_is_proved_where_devices_part_in_any_way_inside_of_it(
    parting: Callable[[str], str], going_on: str
) -> None:
    apart = _not_understood(parting(permute(range(4))), going_on)
    assert verdict(whole(COPY, 4), local(apart + COPY, 4)) is Verdict.UNKNOWN


def _region(body: str, placed: str) -> str:
    """A manual region of which nothing is used, on all of its argument."""
    rows, on = "tensor<4x4xf32>", '{mhlo.sharding = "{replicated}"}'
    return f"""module @m attributes {{mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <["d"=4]>
  func.func public @main(%a: {rows} {on}) -> ({rows} {on}) {{
    %r = sdy.manual_computation(%a) in_shardings=[<@mesh, {placed}>] out_shardings=[<@mesh, [{{}}, {{}}]>]
      manual_axes={{"d"}} (%x0: {rows}) {{
    %row = stablehlo.slice %x0 [0:1, 0:4] : ({rows}) -> tensor<1x4xf32>
    %x = stablehlo.reshape %row : (tensor<1x4xf32>) -> {TYPE}{body}
    %y0 = stablehlo.broadcast_in_dim %y, dims = [1] : ({TYPE}) -> {rows}
      sdy.return %y0 : {rows}
    }} : ({rows}) -> {rows}
    return %a : {rows}
  }}
}}
"""


@pytest.mark.parametrize("placed", ["[{}, {}]", '[{}, {}], unreduced={"d"}'], ids=["understood", "addends"])
@pytest.mark.parametrize("parting", PARTINGS.values(), ids=PARTINGS)
def test_nothing_is_proved_where_devices_part_inside_of_a_region_that_is_not_understood(
    parting: Callable[[str], str], placed: str
) -> None:
    numbers = {"zero": 0, "one": 1, "often": 100}
    constants = [f"%{name} = stablehlo.constant dense<{n}> : tensor<ui32>" for name, n in numbers.items()]
    body, logical = all_reduce(range(4)), _region(COPY, "[{}, {}]")
    assert verdict(logical, _region("\n".join([FIRST_TWO, *constants, parting(body)]), placed)) is Verdict.UNKNOWN
    assert verdict(logical, _region(body, placed)) is Verdict.PROVED
