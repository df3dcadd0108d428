"""Modules for four devices with a line for each operation, and what wrong ones are written with."""

from __future__ import annotations

import re
from dataclasses import dataclass

import hlo_verify
from hlo_verify.report import Finding, Report

ROWS, COLUMNS, WHOLE = "{devices=[4,1]<=[4]}", "{devices=[1,4]<=[4]}", "{replicated}"


def module(arguments: list[tuple[str, str]], results: list[tuple[str, str]], body: str, *, placed: bool) -> str:
    """A function of `%a0`, `%a1`, ... ; with `placed`, types have their shardings beside them."""

    def on(kind: str, sharding: str) -> str:
        return f'{kind} {{mhlo.sharding = "{sharding}"}}' if placed else kind

    def located(line: str) -> str:
        if "=" not in line or line.endswith("{") or "stablehlo.while" in line:
            return re.sub(r" @(\d+)$", r' loc("op"("model.py":\1:0))', line)
        text, _, number = line.partition(" @")
        return f'{text} loc("op"("model.py":{number}:0))' if number else f'{text} loc("op")'

    signature = ", ".join(f"%a{n}: {on(*each)}" for n, each in enumerate(arguments))
    lines = "\n".join(located(line.strip()) for line in body.strip().splitlines())
    return (
        "module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {\n"
        f"func.func public @main({signature}) -> ({', '.join(on(*r) for r in results)}) {{\n{lines}\n}}\n}}\n"
    )


def collective(name: str, result: str, operand: str, kind: str, groups: str, line: int, reducer: str = "add") -> str:
    size = groups.count("["), len(groups.split("], [")[0].strip("[]").split(","))
    scalar = "tensor<f32>"
    body = (
        f"^bb0(%p: {scalar}, %q: {scalar}): %r = stablehlo.{reducer} %p, %q : {scalar} stablehlo.return %r : {scalar}"
    )
    return (
        f'%{result} = "stablehlo.{name}"({operand}) ({{ {body} }}) {{replica_groups = dense<{groups}> : '
        f"tensor<{size[0] - 1}x{size[1]}xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, "
        f"use_global_device_ids}} : ({kind}) -> {kind} @{line}"
    )


@dataclass(frozen=True)
class Case:
    """Arguments and results as (logical type, device's type, sharding); both bodies; the line, and what is said."""

    arguments: list[tuple[str, str, str]]
    results: list[tuple[str, str, str]]
    logical: str
    partitioned: str
    line: int
    says: str

    def report(self) -> Report:
        whole = module(
            [(a, s) for a, _, s in self.arguments], [(a, s) for a, _, s in self.results], self.logical, placed=True
        )
        mine = module(
            [(b, s) for _, b, s in self.arguments], [(b, s) for _, b, s in self.results], self.partitioned, placed=False
        )
        return hlo_verify.verify(whole, mine, refute=False)


def findings(report: Report) -> list[Finding]:
    """Those of all results, each once; every result is UNKNOWN and says so in a line."""
    found = []
    for result in report.results:
        assert result.verdict is hlo_verify.Verdict.UNKNOWN
        assert result.finding is not None
        assert (result.reason, result.location) == (result.finding.nearest, result.finding.location)
        found.append(result.finding)
    return list(dict.fromkeys(found))


ALL, HALVES = "[[0, 1, 2, 3]]", "[[0, 1], [2, 3]]"
S88, S816, S216 = "tensor<8x8xf32>", "tensor<8x16xf32>", "tensor<2x16xf32>"
X, W = (S816, "tensor<8x4xf32>", COLUMNS), ("tensor<16x8xf32>", "tensor<4x8xf32>", ROWS)
V, SQUARE = (S816, S216, ROWS), (S88, S88, WHOLE)
VWHOLE = (S816, S816, WHOLE)


def product(left: str, right: str) -> str:
    return f"stablehlo.dot_general %a0, %a1, contracting_dims = [1] x [0] : ({left}, {right}) -> {S88} @3"


DOT = f"""
    %0 = {product(S816, "tensor<16x8xf32>")}
    %1 = stablehlo.tanh %0 : tensor<8x8xf32> @4
    return %1 : tensor<8x8xf32>"""


def dot(completed: str) -> str:
    """The sum of products on each device, what is made of it as `%1`, and its tanh."""
    return f"""
    %0 = {product("tensor<8x4xf32>", "tensor<4x8xf32>")}
    {completed}
    %2 = stablehlo.tanh %1 : tensor<8x8xf32> @4
    return %2 : tensor<8x8xf32>"""


def scaled(kind: str, step: str) -> str:
    """`step` makes `%1` of the square `%0` of the argument; the tanh of it is the result."""
    return f"""
    %0 = stablehlo.multiply %a0, %a0 : {kind} @3
    {step}
    %2 = stablehlo.tanh %1 : {kind} @6
    return %2 : {kind}"""


def times(factor: float, kind: str) -> str:
    return f"%c = stablehlo.constant dense<{factor}> : {kind}\n%1 = stablehlo.multiply %0, %c : {kind} @5"


def rows(table: str) -> str:
    """A device's rows of a whole tanh: they begin at the device's entry of a table."""
    return f"""
    %t = stablehlo.constant dense<[{table}]> : tensor<4xi32> @3
    %d = "stablehlo.partition_id"() : () -> tensor<ui32>
    %s = stablehlo.dynamic_slice %t, %d, sizes = [1] : (tensor<4xi32>, tensor<ui32>) -> tensor<1xi32> @3
    %o = stablehlo.reshape %s : (tensor<1xi32>) -> tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %h = stablehlo.tanh %a0 : tensor<8x16xf32> @5
    %1 = stablehlo.dynamic_slice %h, %o, %z, sizes = [2, 16] : ({S816}, tensor<i32>, tensor<i32>) -> {S216}
    return %1 : tensor<2x16xf32>"""


def counted(local: int, row: str) -> str:
    """Six steps of `total += tanh(row of a0)`."""
    types = f"(tensor<6x{local}xf32>, tensor<i32>, tensor<i32>) -> tensor<1x{local}xf32>"
    return f"""
    %n = stablehlo.constant dense<6> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %f = stablehlo.constant dense<0.0> : tensor<{local}xf32>
    %r:2 = stablehlo.while(%i = %z, %x = %f) : tensor<i32>, tensor<{local}xf32>
    cond {{
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1> @7
      stablehlo.return %p : tensor<i1>
    }} do {{
      %s = stablehlo.dynamic_slice %a0, {row}, %z, sizes = [1, {local}] : {types} @8
      %v = stablehlo.reshape %s : (tensor<1x{local}xf32>) -> tensor<{local}xf32> @8
      %y = stablehlo.tanh %v : tensor<{local}xf32> @9
      %w = stablehlo.add %x, %y : tensor<{local}xf32> @10
      %j = stablehlo.add %i, %one : tensor<i32> @7
      stablehlo.return %j, %w : tensor<i32>, tensor<{local}xf32>
    }} @7
    return %r#1 : tensor<{local}xf32>"""


def windows(operand: str, padding: str, kind: str, result: str) -> str:
    """The sum of every two neighbours along the columns."""
    one = "tensor<f32>"
    body = f"^bb0(%p: {one}, %q: {one}): %v = stablehlo.add %p, %q : {one} stablehlo.return %v : {one}"
    attributes = f"window_dimensions = array<i64: 1, 2>, padding = dense<[[0, 0], [{padding}]]> : tensor<2x2xi64>"
    text = f'"stablehlo.reduce_window"({operand}, %z) ({{ {body} }}) {{{attributes}}}'
    return f"%w = {text} : ({kind}, tensor<f32>) -> {result} @6\nreturn %w : {result}"


def row_sums(kind: str) -> str:
    return f"""%z = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.reduce(%a0 init: %z) applies stablehlo.add across dimensions = [1] : \
({kind}, tensor<f32>) -> tensor<8xf32> @4"""


SMOOTHED = f"""
    {row_sums(S816)}
    %b = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<8xf32>) -> {S816} @5
    %m = stablehlo.multiply %a0, %b : {S816} @5
    {windows("%m", "1, 0", S816, S816)}"""

SENT = f"""
    %l = stablehlo.slice %a0 [0:8, 3:4] : (tensor<8x4xf32>) -> tensor<8x1xf32>
    %e = "stablehlo.collective_permute"(%l) {{source_target_pairs = dense<[[0, 1], [1, 2], [2, 3]]> : tensor<3x2xi64>, \
channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>}} : (tensor<8x1xf32>) -> tensor<8x1xf32> @6
    {row_sums("tensor<8x4xf32>")}
    %x = stablehlo.concatenate %e, %a0, dim = 1 : (tensor<8x1xf32>, tensor<8x4xf32>) -> tensor<8x5xf32> @6
    %b = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<8xf32>) -> tensor<8x5xf32> @5
    %m = stablehlo.multiply %x, %b : tensor<8x5xf32> @5
    {windows("%m", "0, 0", "tensor<8x5xf32>", "tensor<8x4xf32>")}"""
"""Devices smooth their own columns with an edge that a neighbour sends; the sums of rows are those of its columns."""


def masked(kind: str, offset: str, direction: str) -> str:
    """The elements below the diagonal; rows are numbered from an offset."""
    rank = kind[7:].removesuffix("xf32>")
    return f"""
    %d = "stablehlo.partition_id"() : () -> tensor<ui32>
    %i = stablehlo.iota dim = 0 : tensor<{rank}xi32> @3
    {offset}
    %j = stablehlo.iota dim = 1 : tensor<{rank}xi32> @4
    %p = stablehlo.compare {direction}, %k, %j : (tensor<{rank}xi32>, tensor<{rank}xi32>) -> tensor<{rank}xi1> @5
    %z = stablehlo.constant dense<0.0> : {kind}
    %1 = stablehlo.select %p, %a0, %z : tensor<{rank}xi1>, {kind} @6
    return %1 : {kind}"""


FROM_ZERO = "%e = stablehlo.constant dense<0> : tensor<8x16xi32>\n%k = stablehlo.add %i, %e : tensor<8x16xi32> @3"


def from_device(rows_each: int) -> str:
    return f"""%n = stablehlo.convert %d : (tensor<ui32>) -> tensor<i32>
    %m = stablehlo.constant dense<{rows_each}> : tensor<i32>
    %q = stablehlo.multiply %n, %m : tensor<i32> @3
    %e = stablehlo.broadcast_in_dim %q, dims = [] : (tensor<i32>) -> tensor<2x16xi32> @3
    %k = stablehlo.add %i, %e : tensor<2x16xi32> @3"""


COPY = "%1 = stablehlo.reshape %0 : (tensor<8x8xf32>) -> tensor<8x8xf32>"


def summed(kind: str, second: str) -> str:
    return f"""
        %z = stablehlo.constant dense<0.0> : {kind}
        %1 = stablehlo.tanh %a0 : {kind} @4
        %2 = stablehlo.negate {second} : {kind} @5
        %3 = stablehlo.add %1, %2 : {kind} @6
        %4 = stablehlo.exponential %3 : {kind} @7
        return %4 : {kind}
    """


KEPT = f"""
    %d = stablehlo.partition_id : tensor<ui32>
    %k = stablehlo.constant dense<1> : tensor<ui32>
    %m = stablehlo.compare EQ, %d, %k : (tensor<ui32>, tensor<ui32>) -> tensor<i1> @6
    %z = stablehlo.constant dense<0.0> : tensor<1x16xf32>
    %s = stablehlo.select %m, %1, %z : tensor<i1>, tensor<1x16xf32> @6
    {collective("all_reduce", "t", "%s", "tensor<1x16xf32>", "[[0, 1, 2, 3]]", 6)}
    %u = stablehlo.tanh %t : tensor<1x16xf32> @7
    return %u : tensor<1x16xf32>
"""
