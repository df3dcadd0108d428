"""Ways to make what is new at every execution, and places that are executed more than once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import hlo_verify
from hlo_verify import Verdict
from tests.support.pairs import module, on

WHOLE, PART = "tensor<8xi32>", "tensor<4xi32>"
SPLIT = on("{devices=[2]<=[2]}")

Draw = Callable[[str], str]
"""The lines that make a new value of that name."""


def _rng(name: str) -> str:
    return f"""
    %{name}_lo = stablehlo.constant dense<0> : tensor<i32>
    %{name}_hi = stablehlo.constant dense<1> : tensor<i32>
    %{name}_shape = stablehlo.constant dense<SIZE> : tensor<1xi64>
    %{name} = stablehlo.rng %{name}_lo, %{name}_hi, %{name}_shape, distribution = UNIFORM
      : (tensor<i32>, tensor<i32>, tensor<1xi64>) -> TYPE"""


def _state(name: str) -> str:
    return f"""
    %{name}_state = "mhlo.xla.rng_get_and_update_state"() {{delta = 1 : i64}} : () -> tensor<2xui64>
    %{name}_word = stablehlo.slice %{name}_state [0:1] : (tensor<2xui64>) -> tensor<1xui64>
    %{name}_one = stablehlo.convert %{name}_word : (tensor<1xui64>) -> tensor<1xi32>
    %{name} = stablehlo.broadcast_in_dim %{name}_one, dims = [0] : (tensor<1xi32>) -> TYPE"""


def _outside(operation: str, attributes: str, name: str) -> str:
    return f"""
    %{name}_token = stablehlo.after_all : !stablehlo.token
    %{name}, %{name}_after = "stablehlo.{operation}"(%{name}_token) {attributes}
      : (!stablehlo.token) -> (TYPE, !stablehlo.token)"""


def _call(target: str, attributes: str, name: str) -> str:
    operands = "" if target == "AllocateBuffer" else f"%{name}_given"
    return f"""
    %{name}_given = stablehlo.constant dense<1> : TYPE
    %{name} = stablehlo.custom_call @{target}({operands}) {{{attributes}}} : ({"TYPE" if operands else ""}) -> TYPE"""


HOST = "{channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>, is_host_transfer = true}"
DRAWS: dict[str, Draw] = {
    "rng": _rng,
    "state": _state,
    "infeed": partial(_outside, "infeed", '{infeed_config = "", layout = [[0]]}'),
    "recv": partial(_outside, "recv", HOST),
    "unknown call": partial(_call, "mystery", ""),
    "side effect": partial(_call, "tpu_custom_call", "has_side_effect = true"),
    "memory": partial(_call, "AllocateBuffer", ""),
}


def add(name: str, a: str, b: str, operation: str = "add") -> str:
    return f"    %{name} = stablehlo.{operation} %{a}, %{b} : TYPE\n"


def apart(draw: Draw, prefix: str = "") -> str:
    """`%apart`, what an execution gives less what another one gives."""
    return (
        draw(f"{prefix}r") + draw(f"{prefix}q") + "\n" + add(f"{prefix}apart", f"{prefix}r", f"{prefix}q", "subtract")
    )


def alike(draw: Draw, prefix: str = "") -> str:
    """The same of one execution."""
    return draw(f"{prefix}r") + "\n" + add(f"{prefix}apart", f"{prefix}r", f"{prefix}r", "subtract")


def loop(trips: int, carried: dict[str, str], body: str, results: list[str], name: str = "w") -> str:
    """A loop that carries those values, each from a value around it, and leaves `%name#1, ...`."""
    starts = "".join(f", %{inner} = %{outer}" for inner, outer in carried.items())
    types = ", ".join(["tensor<i32>", *["TYPE"] * len(carried)])
    return f"""
    %{name}_zero = stablehlo.constant dense<0> : tensor<i32>
    %{name}:{1 + len(carried)} = stablehlo.while(%{name}_i = %{name}_zero{starts}) : {types}
    cond {{
      %{name}_n = stablehlo.constant dense<{trips}> : tensor<i32>
      %{name}_p = stablehlo.compare LT, %{name}_i, %{name}_n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %{name}_p : tensor<i1>
    }} do {{
      %{name}_one = stablehlo.constant dense<1> : tensor<i32>
      %{name}_j = stablehlo.add %{name}_i, %{name}_one : tensor<i32>
{body}
      stablehlo.return {", ".join(f"%{v}" for v in [f"{name}_j", *results])} : {types}
    }}
"""


ZERO = "    %zero = stablehlo.constant dense<0> : TYPE\n"
COUNTED = "    %y = stablehlo.popcnt %a : TYPE\n"
TURNED = "      %x1 = stablehlo.popcnt %x : TYPE\n"


class Place:
    """A body over `%a` that gives `%y` and draws, the body that draws nothing, and functions that they call."""

    def __init__(self, drawn: str, plain: str = COUNTED, functions: str = "") -> None:
        self.drawn, self.plain, self.functions = drawn, plain, functions


def straight(draw: Draw, same: bool) -> Place:
    return Place((alike if same else apart)(draw) + add("b", "a", "apart") + "    %y = stablehlo.popcnt %b : TYPE\n")


def matched(trips: int, draw: Draw, same: bool) -> Place:
    """In one iteration, and in one and the next."""
    ours = alike(draw) if same else draw("r") + add("apart", "r", "p", "subtract")
    body = ours + add("b", "x", "apart") + "      %x1 = stablehlo.popcnt %b : TYPE\n"
    carried = {"x": "a", "p": "first"}
    first = draw("first")
    return Place(
        first + loop(trips, carried, body, ["x1", "r"]) + add("y", "w#1", "a"),
        "    %first = stablehlo.popcnt %a : TYPE\n"
        + loop(trips, carried, TURNED + "      %p1 = stablehlo.popcnt %p : TYPE\n", ["x1", "p1"])
        + add("y", "w#1", "a"),
    )


def _inner(turns: int, draw: Draw, same: bool) -> str:
    """`%z`, the sum of what some turns give with signs that alternate: 0 if they all give the same."""
    drawn = alike(draw) + add("s1", "apart", "s", "subtract") if same else draw("r") + add("s1", "r", "s", "subtract")
    return ZERO + loop(turns, {"s": "zero"}, drawn, ["s1"], "v") + add("z", "v#1", "zero")


def unrolled(trips: int, draw: Draw, same: bool) -> Place:
    """In the turns of a loop inside of a loop that the other module has too."""
    body = _inner(2, draw, same) + add("b", "x", "z") + "      %x1 = stablehlo.popcnt %b : TYPE\n"
    return Place(
        loop(trips, {"x": "a"}, body, ["x1"]) + add("y", "w#1", "a"),
        loop(trips, {"x": "a"}, TURNED, ["x1"]) + add("y", "w#1", "a"),
    )


def twice_unrolled(trips: int, draw: Draw, same: bool) -> Place:
    """The same one loop further in: what it draws all in all, less so many times what it draws in the end."""
    drawn = alike(draw) + add("last1", "apart", "zero") if same else draw("r") + add("last1", "r", "zero")
    drawn += add("s1", "s", "apart" if same else "r")
    innermost = loop(2, {"s": "o", "last": "l"}, drawn, ["s1", "last1"], "u")
    inner = loop(2, {"o": "zero", "l": "zero"}, innermost, ["u#1", "u#2"], "v")
    count = "    %count = stablehlo.constant dense<4> : TYPE\n" + add("all", "v#2", "count", "multiply")
    body = ZERO + inner + count + add("z", "v#1", "all", "subtract")
    body += add("b", "x", "z") + "      %x1 = stablehlo.popcnt %b : TYPE\n"
    return Place(
        loop(trips, {"x": "a"}, body, ["x1"]) + add("y", "w#1", "a"),
        loop(trips, {"x": "a"}, TURNED, ["x1"]) + add("y", "w#1", "a"),
    )


def closed(trips: int, draw: Draw, same: bool) -> Place:
    """In a loop that adds up: its sum less so many times what its last turn gives."""
    drawn = alike(draw) if same else draw("apart")
    count = f"    %count = stablehlo.constant dense<{trips}> : TYPE\n" + add("all", "w#2", "count", "multiply")
    body = drawn + add("s1", "s", "apart") + add("last1", "apart", "zero")
    return Place(
        ZERO
        + loop(trips, {"s": "zero", "last": "zero"}, body, ["s1", "last1"])
        + count
        + add("z", "w#1", "all", "subtract")
        + add("b", "a", "z")
        + "    %y = stablehlo.popcnt %b : TYPE\n"
    )


def summed(trips: int, draw: Draw, same: bool) -> Place:
    """In a loop that adds up: less so many times what is drawn once outside."""
    drawn = alike(draw) if same else draw("apart")
    count = f"    %count = stablehlo.constant dense<{trips}> : TYPE\n"
    outside = "" if same else draw("once") + add("all", "once", "count", "multiply")
    return Place(
        ZERO
        + count
        + (add("all", "zero", "count", "multiply") if same else outside)
        + loop(trips, {"s": "zero"}, drawn + add("s1", "s", "apart"), ["s1"])
        + add("z", "w#1", "all", "subtract")
        + add("b", "a", "z")
        + "    %y = stablehlo.popcnt %b : TYPE\n"
    )


def _branches(draw: Draw, name: str, same: bool) -> str:
    drawn = alike(draw, f"{name}s") if same else draw(f"{name}sapart")
    regions = ", ".join(f"{{{drawn}\n      stablehlo.return %{name}sapart : TYPE\n    }}" for _ in range(2))
    return f"""
    %{name}_at = stablehlo.slice %a [0:1] : (TYPE) -> tensor<1xi32>
    %{name}_number = stablehlo.reshape %{name}_at : (tensor<1xi32>) -> tensor<i32>
    %{name}_which = stablehlo.convert %{name}_number : (tensor<i32>) -> tensor<i32>
    %{name} = "stablehlo.case"(%{name}_which) ({regions}) : (tensor<i32>) -> TYPE
"""


def branch(draw: Draw, same: bool) -> Place:
    return Place(
        _branches(draw, "r", same)
        + _branches(draw, "q", same)
        + add("z", "r", "q", "subtract")
        + add("b", "a", "z")
        + "    %y = stablehlo.popcnt %b : TYPE\n"
    )


def called(draw: Draw, same: bool) -> Place:
    given = alike(draw) if same else draw("apart")
    return Place(
        "    %r = func.call @drawn() : () -> TYPE\n    %q = func.call @drawn() : () -> TYPE\n"
        + add("z", "r", "q", "subtract")
        + add("b", "a", "z")
        + "    %y = stablehlo.popcnt %b : TYPE\n",
        functions=f"  func.func private @drawn() -> TYPE {{{given}\n    return %apart : TYPE\n  }}\n",
    )


LAYERS = 5


def layers(inside: bool, draw: Draw, same: bool) -> Place:
    """In equal layers, bare or in a branch; what one layer adds the next one takes away."""
    drawn = plain = "    %x0 = stablehlo.popcnt %a : TYPE\n"
    for n in range(LAYERS):
        if inside:
            drawn += _branches(draw, f"r{n}", same)
        else:
            drawn += alike(draw, f"n{n}") + add(f"r{n}", f"n{n}apart", f"n{n}apart") if same else draw(f"r{n}")
        before = f"r{n - 1}" if n else f"r{n}"
        drawn += "\n" + add(f"d{n}", f"r{n}", before, "subtract") + add(f"b{n}", f"x{n}", f"d{n}")
        for lines, source in (("drawn", f"b{n}"), ("plain", f"x{n}")):
            layer = f"    %t{n} = stablehlo.popcnt %{source} : TYPE\n"
            layer += f"    %x{n + 1} = stablehlo.count_leading_zeros %t{n} : TYPE\n"
            drawn, plain = (drawn + layer, plain) if lines == "drawn" else (drawn, plain + layer)
    end = add("y", f"x{LAYERS}", "a")
    return Place(drawn + end, plain + end)


def regions(draw: Draw, same: bool) -> Place:
    """In two manual regions."""
    drawn = alike(draw, "n") if same else draw("napart")
    entered = "".join(
        f"""
    %{name} = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{"d"}}]>] out_shardings=[<@mesh, [{{"d"}}]>]
      manual_axes={{"d"}} (%{name}_a: {PART}) {{
{drawn.replace("TYPE", PART).replace("SIZE", "4")}
      sdy.return %napart : {PART}
    }} : (TYPE) -> TYPE"""
        for name in "rq"
    )
    return Place(
        entered + "\n" + add("z", "r", "q", "subtract") + add("b", "a", "z") + "    %y = stablehlo.popcnt %b : TYPE\n",
        functions='  sdy.mesh @mesh = <["d"=2]>\n',
    )


TRIPS = (3, 6, 65, 70)
"""Below and above what is unrolled in part, and at all."""

LOOPS = {
    f"{place.__name__} {trips}": partial(place, trips)
    for place in (matched, unrolled, twice_unrolled, closed, summed)
    for trips in TRIPS
}
PLACES: dict[str, Callable[[Draw, bool], Place]] = {
    "straight": straight,
    **LOOPS,
    "branch": branch,
    "called twice": called,
    "layers": partial(layers, False),
    "layers with branches": partial(layers, True),
}


@cache
def text(body: str, functions: str, whole: bool) -> str:
    """A module for all of `%a`, or for the half that each of two devices has."""
    kind, size = (WHOLE, "8") if whole else (PART, "4")
    argument, result = (f"%a: {kind} {SPLIT}", f"{kind} {SPLIT}") if whole else (f"%a: {kind}", kind)
    made = module(argument, result, f"{body}\n    return %y : {kind}", devices=2)
    made = made.rstrip()[:-1] + functions + "}\n"
    return made.replace("TYPE", kind).replace("SIZE", size)


def verdict(place: Place, drawn_by_whole: bool) -> Verdict:
    return report(place, drawn_by_whole).verdict


def is_equal(place: Place, drawn_by_whole: bool) -> bool:
    """Whether the result is seen to be the same, whatever else the modules do to the world outside."""
    found = report(place, drawn_by_whole)
    return found.verdict is Verdict.PROVED or found.results[0].reason.startswith("the result is the same")


def report(place: Place, drawn_by_whole: bool) -> hlo_verify.Report:
    wanted = text(place.drawn if drawn_by_whole else place.plain, place.functions, True)
    found = text(place.plain if drawn_by_whole else place.drawn, place.functions, False)
    return hlo_verify.verify(wanted, found, refute=False)
