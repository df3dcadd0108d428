"""What is not a function of its operands is new at every execution: no two executions of it are ever taken for one.

Every way of making such a value is put in every place that is executed more than once. One module computes its argument
plus what one execution gives minus what another one gives, the other module computes the argument: never PROVED.
Likewise `r - r` for one execution: PROVED. All are integers: of floats, `r - r` need not be 0.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import hlo_verify
from hlo_verify import Verdict
from tests.support.executions import (
    DRAWS,
    PART,
    PLACES,
    Draw,
    Place,
    add,
    is_equal,
    loop,
    regions,
    report,
    verdict,
)
from tests.support.pairs import module, on


@pytest.mark.drawn(50)
@pytest.mark.parametrize("drawn_by_whole", [False, True], ids=["partitioned", "logical"])
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_two_executions_are_two(draw: Draw, place: Callable[[Draw, bool], Place], drawn_by_whole: bool) -> None:
    assert verdict(place(draw, False), drawn_by_whole) is not Verdict.PROVED


@pytest.mark.parametrize("same", [False, True], ids=["two", "one"])
@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_entering_a_region_is_an_execution(draw: Draw, same: bool) -> None:
    assert is_equal(regions(draw, same), True) is same


def exchanged(draw: Draw, same: bool) -> Place:
    """On two devices, of which each takes away what the other one has; or its own, which went to the other and back."""
    lines, given = draw("r"), "r"
    for turn in range(1 + same):
        lines += f"""
    %to{turn} = "stablehlo.collective_permute"(%{given}) {{
      source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = {turn + 2}, type = 1>}} : (TYPE) -> TYPE
"""
        given = f"to{turn}"
    return Place(
        lines + add("z", "r", given, "subtract") + add("b", "a", "z") + "    %y = stablehlo.popcnt %b : TYPE\n"
    )


@pytest.mark.parametrize("same", [False, True], ids=["two", "one"])
@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_a_device_has_executions_of_its_own(draw: Draw, same: bool) -> None:
    assert is_equal(exchanged(draw, same), False) is same


OPEN = {"matched 3", *(f"{name} {trips}" for name in ("closed", "summed") for trips in (65, 70))}
"""Places that are not proved whatever is drawn: loops that carry it, too short to be matched in part or too long to be
unrolled."""


WAITS = {
    (draw, name) for draw in ("recv", "unknown call", "side effect") for name in ("branch", "layers with branches")
}
"""What may communicate, in branches that the devices may not all take: nothing is proved of that either."""


OUTSIDE = {"infeed", "recv", "side effect"}
"""What takes something from the world outside, which the logical module does not."""


@pytest.mark.drawn(50)
@pytest.mark.parametrize("name", [name for name in PLACES if name not in OPEN])
@pytest.mark.parametrize("draw", DRAWS)
def test_one_execution_is_one(draw: str, name: str) -> None:
    found = report(PLACES[name](DRAWS[draw], True), False)
    is_same = (draw, name) not in WAITS
    if draw in OUTSIDE:
        assert found.verdict is Verdict.UNKNOWN
        assert found.results[0].reason.startswith("the result is the same") is is_same
    else:
        assert found.verdict is (Verdict.PROVED if is_same else Verdict.UNKNOWN)


SCALARS = {
    "unknown call": "%z = stablehlo.custom_call @mystery(%e) : (tensor<i32>) -> tensor<i32>",
    "memory": "%z = stablehlo.custom_call @AllocateBuffer() : () -> tensor<i32>",
    "loop": loop(100, {"x": "e"}, "      %x1 = stablehlo.popcnt %x : TYPE\n", ["x1"]).replace("TYPE", "tensor<i32>")
    + "    %z = stablehlo.negate %w#1 : tensor<i32>",
}
"""Ways to compute a number from `%e` that are new each time, or that tensors inside stand for."""


@pytest.mark.parametrize("drawn_by_whole", [False, True], ids=["partitioned", "logical"])
@pytest.mark.parametrize("lines", SCALARS.values(), ids=SCALARS)
def test_each_element_is_an_execution(lines: str, drawn_by_whole: bool) -> None:
    drawn = f"""
    %r = "stablehlo.map"(%a) <{{dimensions = array<i64: 0>}}> ({{
    ^bb0(%e: tensor<i32>):
    {lines}
      stablehlo.return %z : tensor<i32>
    }}) : (TYPE) -> TYPE
    %q = stablehlo.reverse %r, dims = [0] : TYPE
"""
    place = Place(drawn + add("z", "r", "q", "subtract") + add("b", "a", "z") + "    %y = stablehlo.popcnt %b : TYPE\n")
    assert verdict(place, drawn_by_whole) is not Verdict.PROVED


REGIONS = {
    "sort": """
    %y = "stablehlo.sort"(%a) <{dimension = 0 : i64}> ({
    ^bb0(%e: tensor<i32>, %f: tensor<i32>):
    LINES
      %p = stablehlo.compare LT, %z, %f : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }) : (TYPE) -> TYPE""",
    "reduce": """
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %s = stablehlo.reduce(%a init: %zero) across dimensions = [0] : (TYPE, tensor<i32>) -> tensor<i32>
    reducer(%e: tensor<i32>, %f: tensor<i32>) {
    LINES
      %g = stablehlo.add %f, %z : tensor<i32>
      stablehlo.return %g : tensor<i32>
    }
    %y = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<i32>) -> TYPE""",
    "scatter": """
    %zero = stablehlo.constant dense<0> : TYPE
    %at = stablehlo.constant dense<0> : tensor<4x1xi32>
    %y = "stablehlo.scatter"(%zero, %at, %a) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%f: tensor<i32>, %e: tensor<i32>):
    LINES
      %g = stablehlo.add %f, %z : tensor<i32>
      stablehlo.return %g : tensor<i32>
    }) : (TYPE, tensor<4x1xi32>, TYPE) -> TYPE""",
}


@pytest.mark.parametrize("draw", ["unknown call", "memory"])
@pytest.mark.parametrize("region", REGIONS.values(), ids=REGIONS)
def test_a_region_that_draws_is_no_function(region: str, draw: str) -> None:
    """Even the same program draws other values when it is run again."""
    body = region.replace("LINES", SCALARS[draw]).replace("TYPE", PART) + f"\n    return %y : {PART}"
    both = [
        module(f"%a: {PART}{placed}", f"{PART}{placed}", body, devices=2) for placed in (" " + on("{replicated}"), "")
    ]
    assert hlo_verify.verify(*both, refute=False).verdict is Verdict.UNKNOWN
