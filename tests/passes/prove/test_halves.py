"""Halves of a dimension that a compiler sends to their devices: each looks up by its place on the axis what it needs.

Device k of the axis has 2*w elements, and is to have w elements of one half: those of device k // 2 or n/2 + k // 2,
which sends them in one of two permutes, or they are its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.prove import open_obligations, walk
from hlo_verify.program.pair import device_count, result_placements
from hlo_verify.session import Session

OUTER, INNER = 3, 2
"""Devices of the other axes."""
Pairs = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Halves:
    """One half of a dimension over `n` devices of an axis, and what is wrong with how it is sent."""

    n: int = 8
    is_second: bool = False
    wrong: str = ""

    def pair(self) -> tuple[str, str]:
        devices = f"{OUTER},{self.n},{INNER}"
        axes = f"devices=[1,{self.n},{OUTER * INNER}]<=[{devices}]T(1,0,2) last_tile_dim_replicate"
        placed = f'{{mhlo.sharding = "{{{axes}}}"}}'
        start, size = (2 * self.n if self.is_second else 0), 2 * self.n
        head = f"module attributes {{mhlo.num_partitions = {OUTER * self.n * INNER} : i32}}"
        logical = f"""{head} {{
  func.func public @main(%x: tensor<3x{2 * size}xf32> {placed}) -> (tensor<3x{size}xf32> {placed}) {{
    %0 = stablehlo.slice %x [0:3, {start}:{start + size}] : (tensor<3x{2 * size}xf32>) -> tensor<3x{size}xf32>
    return %0 : tensor<3x{size}xf32>
  }}
}}"""
        partitioned = f"""{head} {{
  func.func public @main(%x: tensor<3x4xf32> {placed}) -> (tensor<3x2xf32> {placed}) {{
{self._looked_up()}{self._second() if self.is_second else self._first()}    return %r : tensor<3x2xf32>
  }}
}}"""
        return logical, partitioned

    def _looked_up(self) -> str:
        """The device's place on the axis, which of the cases it is in, and where its part begins in what it gets."""
        n, last = self.n, self.n - 1
        if self.is_second:
            cases = [0 if k % 2 == 0 else 2 if k == last else 1 for k in range(n)]
        else:
            cases = [0 if k == 0 else 1 if k == 1 or k % 2 == 0 else 2 for k in range(n)]
        if self.wrong == "case":
            cases[n // 2 + 1] -= 1
        starts = [2 * (k % 2) for k in range(n)]
        if self.wrong == "start":
            starts[n // 2] = 2
        number = f"dense<{[d // INNER % n for d in range(OUTER * n * INNER)]}> : tensor<{OUTER * n * INNER}xui32>"
        text = f"""    %id = stablehlo.partition_id : tensor<ui32>
    %numbers = stablehlo.constant {number}
    %zero = stablehlo.constant dense<0> : tensor<i32>
"""
        for name, of, size, type_, at in (
            ("k", "%numbers", OUTER * n * INNER, "ui32", "%id"),
            ("case", f"dense<{cases}>", n, "i32", "%k"),
            ("start", f"dense<{starts}>", n, "i32", "%k"),
        ):
            if of.startswith("dense"):
                text += f"    %{name}s = stablehlo.constant {of} : tensor<{size}x{type_}>\n"
                of = f"%{name}s"
            one = f"tensor<1x{type_}>"
            entry = f"sizes = [1] : (tensor<{size}x{type_}>, tensor<ui32>) -> {one}"
            text += f"""    %{name}_1 = stablehlo.dynamic_slice {of}, {at}, {entry}
    %{name} = stablehlo.reshape %{name}_1 : ({one}) -> tensor<{type_}>
"""
        for case in (1, 2):
            text += f"""    %c{case} = stablehlo.constant dense<{case}> : tensor<i32>
    %is{case} = stablehlo.compare EQ, %case, %c{case} : (tensor<i32>, tensor<i32>) -> tensor<i1>
"""
        return text

    def _first(self) -> str:
        """Whole shards to one device each, and the upper halves of the others to another."""
        n = self.n
        whole = [(0, 1), *((s, 2 * s) for s in range(1, n // 2))]
        upper = [(s, 2 * s + 1) for s in range(1, n // 2)]
        padded = "low = [0, 2], high = [0, 0], interior = [0, 0] : (tensor<3x2xf32>, tensor<f32>) -> tensor<3x4xf32>"
        sliced = "sizes = [3, 2] : (tensor<3x4xf32>, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>"
        return f"""    %u = stablehlo.slice %x [0:3, 2:4] : (tensor<3x4xf32>) -> tensor<3x2xf32>
{self._sent("a", "%u", 2, self._changed(upper))}{self._sent("b", "%x", 4, whole)}
    %f = stablehlo.constant dense<0.0> : tensor<f32>
    %p = stablehlo.pad %a, %f, {padded}
    %s = stablehlo.select %is1, %b, %x : tensor<i1>, tensor<3x4xf32>
    %t = stablehlo.select %is2, %p, %s : tensor<i1>, tensor<3x4xf32>
    %r = stablehlo.dynamic_slice %t, %zero, %start, {sliced}
"""

    def _second(self) -> str:
        """Lower halves of shards to one device each, upper halves to another, or their own."""
        n = self.n
        lower = [(n // 2 + j, 2 * j) for j in range(n // 2)]
        upper = [(n // 2 + j, 2 * j + 1) for j in range(n // 2 - 1)]
        return f"""    %l = stablehlo.slice %x [0:3, 0:2] : (tensor<3x4xf32>) -> tensor<3x2xf32>
    %u = stablehlo.slice %x [0:3, 2:4] : (tensor<3x4xf32>) -> tensor<3x2xf32>
{self._sent("a", "%u", 2, self._changed(upper))}{self._sent("b", "%l", 2, lower)}
    %s = stablehlo.select %is1, %a, %b : tensor<i1>, tensor<3x2xf32>
    %r = stablehlo.select %is2, %u, %s : tensor<i1>, tensor<3x2xf32>
"""

    def _changed(self, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
        if self.wrong == "swapped":
            (a, to), (b, other), *others = pairs
            return [(a, other), (b, to), *others]
        return pairs[:-1] if self.wrong == "dropped" else pairs

    def _sent(self, name: str, value: str, width: int, pairs: Pairs) -> str:
        """A permute along the axis, for each device of the others."""
        everywhere = [
            [(o * self.n + place) * INNER + i for place in pair]
            for o in range(OUTER)
            for pair in pairs
            for i in range(INNER)
        ]
        type_, count = f"tensor<3x{width}xf32>", f"tensor<{len(everywhere)}x2xi64>"
        given = f"channel_handle = #stablehlo.channel_handle<handle = {ord(name)}, type = 1>"
        return (
            f'    %{name} = "stablehlo.collective_permute"({value}) <{{{given}, source_target_pairs = '
            f"dense<{everywhere}> : {count}}}> : ({type_}) -> {type_}\n"
        )


RIGHT = [Halves(n, is_second) for n in (4, 8, 16) for is_second in (False, True)]
WRONG = [
    replace(halves, wrong=wrong)
    for halves in RIGHT
    if halves.n == 8
    for wrong in ("case", "start", "swapped", "dropped")
]


def seen(halves: Halves) -> bool:
    """Whether what devices hold is seen to be right for all devices at once, without a comparison of cases."""
    logical, partitioned = map(load, halves.pair())
    with Session().on() as session:
        session.phase = ""
        (placed,) = result_placements(logical, partitioned, device_count(logical, partitioned))
        outcome = walk(logical, partitioned, False, None, session=session)
        return not open_obligations(0, logical.result_names[0], outcome, placed, decide=False)


@pytest.mark.parametrize("halves", RIGHT, ids=str)
def test_halves_are_seen_to_be_shards(halves: Halves) -> None:
    assert seen(halves)


@pytest.mark.parametrize("halves", WRONG, ids=str)
def test_other_halves_are_not(halves: Halves) -> None:
    assert seen(halves) is (halves.is_second and halves.wrong == "start")  # which the second ones do not look up
