"""Manual regions: over all of a mesh, over some of its axes, nested, in loops, before and after XLA's partitioner."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed, floats

MESH = AbstractMesh((2, 4), ("x", "y"))


def _over_x(f: Callable[..., Any], in_specs: Any, out_specs: Any) -> Callable[..., Any]:
    """`f` on each device along x; y is left to XLA."""
    return jax.shard_map(f, mesh=MESH, in_specs=in_specs, out_specs=out_specs, axis_names={"x"})


def _partial(a: jax.Array, w: jax.Array) -> jax.Array:
    return _over_x(lambda a, w: lax.psum(jnp.tanh(a @ w), "x"), (P("x"), P()), P())(a, w) * 2


def _gradients(a: jax.Array, w: jax.Array) -> Any:
    return jax.grad(lambda a, w: (_partial(a, w) ** 2).sum(), argnums=(0, 1))(a, w)


def _nested(a: jax.Array, w: jax.Array) -> jax.Array:
    def outer(a: jax.Array, w: jax.Array) -> jax.Array:
        def inner(a: jax.Array, w: jax.Array) -> jax.Array:
            return lax.psum(a @ w, "y")

        product = jax.shard_map(inner, in_specs=(P(None, "y"), P("y")), out_specs=P(), axis_names={"y"})(a, w)
        return jnp.sin(product) + lax.axis_index("x")

    return _over_x(outer, (P("x"), P()), P("x"))(a, w)


def _collectives(a: jax.Array, w: jax.Array) -> Any:
    def local(a: jax.Array, w: jax.Array) -> Any:
        gathered = lax.all_gather(jnp.sin(a), "x", tiled=True) @ w * lax.axis_index("x")
        return gathered, lax.psum_scatter(a, "x", scatter_dimension=1, tiled=True)

    return _over_x(local, (P("x"), P()), (P("x"), P(None, "x")))(a, w)


def _scanned(a: jax.Array, ws: jax.Array) -> jax.Array:
    def local(a: jax.Array, ws: jax.Array) -> jax.Array:
        return lax.scan(lambda c, w: (jnp.tanh(c @ w), None), a, ws)[0]

    return _over_x(local, (P("x"), P()), P("x"))(a, ws)


def _ring(a: jax.Array, b: jax.Array) -> jax.Array:
    def local(a: jax.Array, b: jax.Array) -> jax.Array:
        def step(_: Any, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            total, block = carry
            return total + a @ block, lax.ppermute(block, "x", [(0, 1), (1, 0)])

        zeros = lax.pcast(jnp.zeros((a.shape[0], b.shape[1]), a.dtype), ("x",), to="varying")
        return lax.fori_loop(0, 2, step, (zeros, b))[0]

    return _over_x(local, (P("x"), P("x")), P("x"))(a, b)


ROWS, COLUMNS = P("x"), P(None, "y")
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...], tuple[P, ...], Any]] = {
    "partial": (_partial, ((16, 32), (32, 64)), (ROWS, COLUMNS), COLUMNS),
    "gradients": (_gradients, ((16, 32), (32, 64)), (ROWS, COLUMNS), (ROWS, COLUMNS)),
    "nested": (_nested, ((16, 32), (32, 64)), (ROWS, P("y")), ROWS),
    "collectives": (_collectives, ((16, 32), (32, 64)), (ROWS, COLUMNS), (P("x", "y"), P(None, "x"))),
    "scanned": (_scanned, ((16, 32), (5, 32, 32)), (ROWS, P(None, None, "y")), P("x", "y")),
    "ring": (_ring, ((16, 8), (16, 64)), (ROWS, P("x", "y")), P("x", "y")),
}


def _lowered(name: str) -> str:
    function, shapes, given, wanted = PROGRAMS[name]
    return Placed(MESH, given, wanted, floats(*shapes)).lowered(function)


def _verdict(*modules: Any, **options: Any) -> Verdict:
    return hlo_verify.verify(*modules, **options, refute=False).verdict


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_xla_makes_of_a_region_is_proved(name: str) -> None:
    assert _verdict(_lowered(name)) is Verdict.PROVED


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("partial", "{{0,4},{1,5},{2,6},{3,7}}", "{{0,1},{2,3},{4,5},{6,7}}"),
        ("partial", "{{0,4},{1,5},{2,6},{3,7}}", "{{0,5},{1,4},{2,6},{3,7}}"),
        ("nested", "{{0,1,2,3},{4,5,6,7}}", "{{0,1,2,4},{3,5,6,7}}"),
        ("nested", "divide(", "multiply("),
        ("ring", "{{0,4},{4,0},{1,5},{5,1},", "{{0,5},{5,0},{1,4},{4,1},"),
        ("collectives", "sine(", "cosine("),
    ],
)
def test_a_region_partitioned_wrongly_is_not(tmp_path: Path, name: str, before: str, after: str) -> None:
    assert _verdict(_lowered(name), keep=tmp_path) is Verdict.PROVED
    logical, partitioned = tmp_path / "annotated.hlo", (tmp_path / "partitioned.hlo").read_text()
    assert _verdict(logical, partitioned) is Verdict.PROVED
    assert before in partitioned
    assert _verdict(logical, partitioned.replace(before, after, 1)) is Verdict.UNKNOWN


# Pairs: a plain program, and one with regions

HEADER = """module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <MESH>
  func.func public @main(%a: tensor<16x8xf32>PLACED) -> (TYPE {sdy.sharding = #sdy.sharding<@mesh, []>}) {
"""
PLAIN = '<["x"=2, "y"=4]>'
PERMUTED = '<["x"=2, "y"=4], device_ids=[5, 0, 3, 6, 1, 2, 7, 4]>'


def _module(body: str, result: str = "tensor<8xf32>", mesh: str = PLAIN) -> str:
    at = " {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}"
    rank = result.count("x")
    header = HEADER.replace("<MESH>", mesh).replace("TYPE", result).replace("PLACED", at)
    return header.replace("<@mesh, []>", f"<@mesh, [{', '.join(['{}'] * rank)}]>") + body + "\n}\n}\n"


COLUMN_SUMS = """
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %r = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] :
      (tensor<16x8xf32>, tensor<f32>) -> tensor<8xf32>
    return %r : tensor<8xf32>"""


def _sum_over_x(end: str, out: str = "<@mesh, [{}]>", axes: str = '"x"') -> str:
    return f"""
    %r = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{"x"}}, {{}}]>] out_shardings=[{out}]
      manual_axes={{{axes}}} (%b: tensor<8x8xf32>) {{
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %p = stablehlo.reduce(%b init: %z) applies stablehlo.add across dimensions = [0] :
        (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
      {end}
      sdy.return %s : tensor<8xf32>
    }} : (tensor<16x8xf32>) -> tensor<8xf32>
    return %r : tensor<8xf32>"""


def _all_reduce(groups: str) -> str:
    count = groups.count("],") + 1
    return f"""%s = "stablehlo.all_reduce"(%p) <{{replica_groups = dense<{groups}> : tensor<{count}x{8 // count}xi64>,
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}}> ({{
      ^bb0(%u: tensor<f32>, %v: tensor<f32>):
        %w = stablehlo.add %u, %v : tensor<f32>
        stablehlo.return %w : tensor<f32>
      }}) : (tensor<8xf32>) -> tensor<8xf32>"""


OVER_X, OVER_Y = "[[0, 4], [1, 5], [2, 6], [3, 7]]", "[[0, 1, 2, 3], [4, 5, 6, 7]]"
OVER_X_PERMUTED = "[[5, 1], [0, 2], [3, 7], [6, 4]]"
PARTIAL = "%t = stablehlo.negate %p : tensor<8xf32>\n%s = stablehlo.negate %t : tensor<8xf32>"
UNREDUCED = '<@mesh, [{}], unreduced={"x"}>'


@pytest.mark.parametrize("axes", ['"x"', '"x", "y"'])
def test_a_region_computes_what_a_plain_program_does(axes: str) -> None:
    plain = _module(COLUMN_SUMS)
    assert _verdict(plain, _module(_sum_over_x(_all_reduce(OVER_X), axes=axes))) is Verdict.PROVED
    for end in (_all_reduce(OVER_Y), PARTIAL):
        assert _verdict(plain, _module(_sum_over_x(end, axes=axes))) is Verdict.UNKNOWN


def test_communication_across_axes_that_are_not_manual_has_no_meaning() -> None:
    report = hlo_verify.verify(_module(COLUMN_SUMS), _module(_sum_over_x(_all_reduce(OVER_Y))), refute=False)
    assert "across mesh axes that are not manual" in report.unsupported[0].message


def test_a_permuted_mesh() -> None:
    plain = _module(COLUMN_SUMS, mesh=PERMUTED)
    assert _verdict(plain, _module(_sum_over_x(_all_reduce(OVER_X_PERMUTED)), mesh=PERMUTED)) is Verdict.PROVED
    assert _verdict(plain, _module(_sum_over_x(_all_reduce(OVER_X)), mesh=PERMUTED)) is Verdict.UNKNOWN


IDENTITY = "%r = stablehlo.negate %a : tensor<16x8xf32>\nreturn %r : tensor<16x8xf32>"


@pytest.mark.parametrize("mesh", [PLAIN, PERMUTED])
@pytest.mark.parametrize(("out", "holds"), [('{"x"}, {"y"}', True), ('{"x", "y"}, {}', False)])
def test_blocks_make_up_the_whole_again(mesh: str, out: str, holds: bool) -> None:
    local, back = "tensor<8x2xf32>", "tensor<16x8xf32>" if holds else "tensor<64x2xf32>"
    body = f"""
    %r = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{"x"}}, {{"y"}}]>] out_shardings=[<@mesh, [{out}]>]
      manual_axes={{"x", "y"}} (%b: {local}) {{
      %n = stablehlo.negate %b : {local}
      sdy.return %n : {local}
    }} : (tensor<16x8xf32>) -> {back}
    %s = stablehlo.reshape %r : ({back}) -> tensor<16x8xf32>
    return %s : tensor<16x8xf32>"""
    plain = _module(IDENTITY, "tensor<16x8xf32>", mesh)
    assert (_verdict(plain, _module(body, "tensor<16x8xf32>", mesh)) is Verdict.PROVED) is holds


def test_addends_that_leave_a_region_are_summed() -> None:
    plain = _module(COLUMN_SUMS)
    assert _verdict(plain, _module(_sum_over_x(PARTIAL, UNREDUCED))) is Verdict.PROVED
    assert _verdict(plain, _module(_sum_over_x(_all_reduce(OVER_X), UNREDUCED))) is Verdict.UNKNOWN
    assert _verdict(plain, _module(_sum_over_x(PARTIAL))) is Verdict.UNKNOWN


def test_a_logical_module_has_a_result_only_where_devices_agree_on_it() -> None:
    """What XLA makes of it is the same program; but there is no one value that every device's part is a shard of."""
    assert _verdict(_module(_sum_over_x(PARTIAL))) is Verdict.UNKNOWN
    assert _verdict(_module(_sum_over_x(_all_reduce(OVER_X)))) is Verdict.PROVED


# Shards that are not equal: XLA's custom calls alone can say so

UNEVEN = """module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%a: tensor<10xf32> {mhlo.sharding = "{devices=[4]<=[4]}"})
      -> (tensor<10xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}) {
    %b = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = "{devices=[4]<=[4]}"} :
      (tensor<10xf32>) -> tensor<10xf32>
    %c = stablehlo.custom_call @SPMDFullToShardShape(%b) {mhlo.sharding = "{manual}"} :
      (tensor<10xf32>) -> tensor<3xf32>
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.reduce(%c init: %z) applies stablehlo.add across dimensions = [0] :
      (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    %t = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %m = stablehlo.multiply %t, %c : tensor<3xf32>
    %n = stablehlo.custom_call @Sharding(%m) {mhlo.sharding = "{manual}"} : (tensor<3xf32>) -> tensor<3xf32>
    %r = stablehlo.custom_call @SPMDShardToFullShape(%n) {mhlo.sharding = "{devices=[4]<=[4]}"} :
      (tensor<3xf32>) -> tensor<10xf32>
    return %r : tensor<10xf32>
  }
}
"""


def test_a_shard_is_filled_up_with_zeros(tmp_path: Path) -> None:
    assert _verdict(UNEVEN, keep=tmp_path) is Verdict.PROVED
    partitioned = (tmp_path / "partitioned.hlo").read_text()
    unmasked, count = re.subn(r"select\([^,]*, ([^,]*), [^)]*\)", r"copy(\1)", partitioned)
    assert count == 1
    assert _verdict(tmp_path / "annotated.hlo", unmasked) is Verdict.UNKNOWN
