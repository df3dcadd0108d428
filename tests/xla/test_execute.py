"""Modules on XLA's virtual CPU devices: what each kind of module means there, and a child that fails."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from hlo_verify.passes.load.load import load
from hlo_verify.program.element_types import DTYPES
from hlo_verify.xla.execute import ExecutionError, Executor, Failure

DEVICES = 8


@pytest.fixture(scope="module")
def many() -> Iterator[Executor]:
    with Executor(DEVICES) as executor:
        yield executor


@pytest.fixture(scope="module")
def one() -> Iterator[Executor]:
    with Executor(1) as executor:
        yield executor


def _all_reduce(groups: str, kind: str = "f32[]") -> str:
    return f"""HloModule m, entry_computation_layout={{({kind})->{kind}}}, num_partitions=8

add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}

ENTRY main {{
  x = {kind} parameter(0), sharding={{replicated}}
  ROOT y = {kind} all-reduce(x), channel_id=1, replica_groups={groups}, use_global_device_ids=true, to_apply=add
}}
"""


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ("{{0,1,2,3},{4,5,6,7}}", [15, 15, 15, 15, 240, 240, 240, 240]),
        ("[2,4]<=[4,2]T(1,0)", [85, 170] * 4),
        ("mesh['a'=4,'b'=2] {'a'}", [85, 170] * 4),
        # jaxlib's own conversion to StableHLO forgets the order of the devices.
        ("mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)) {'a'}", [15, 15, 15, 15, 240, 240, 240, 240]),
    ],
)
def test_replica_groups_in_every_form(many: Executor, groups: str, expected: list[int]) -> None:
    (got,) = many.run(_all_reduce(groups), [2.0 ** np.arange(8, dtype=np.float32)])
    assert got.tolist() == expected


LOCAL = """
module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func private @twice(%x: tensor<2xbf16>) -> tensor<2xbf16> {
    %0 = stablehlo.add %x, %x : tensor<2xbf16>
    return %0 : tensor<2xbf16>
  }
  func.func @main(%x: tensor<2xbf16> {mhlo.sharding = "{devices=[8]<=[8]}"}, %c: tensor<complex<f32>>)
      -> (tensor<ui32>, tensor<2xbf16>, tensor<complex<f32>>, tensor<3x0xf32>) {
    %d = stablehlo.partition_id : tensor<ui32>
    %r = stablehlo.replica_id : tensor<ui32>
    %s = stablehlo.add %d, %r : tensor<ui32>
    %y = "stablehlo.collective_permute"(%x) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
      source_target_pairs = dense<[[0, 1], [6, 7]]> : tensor<2x2xi64>} : (tensor<2xbf16>) -> tensor<2xbf16>
    %z = func.call @twice(%y) : (tensor<2xbf16>) -> tensor<2xbf16>
    %e = stablehlo.constant dense<0.0> : tensor<3x0xf32>
    return %s, %z, %c, %e : tensor<ui32>, tensor<2xbf16>, tensor<complex<f32>>, tensor<3x0xf32>
  }
}
"""


def test_what_every_device_runs(many: Executor, tmp_path: Path) -> None:
    x = np.arange(16).reshape(8, 2).astype(ml_dtypes.bfloat16)
    c = (np.arange(8) * 1j).astype(np.complex64)
    (tmp_path / "m.mlir").write_text(LOCAL)
    for source in (LOCAL, LOCAL.encode(), tmp_path / "m.mlir", load(LOCAL)):
        numbers, permuted, passed, empty = many.run(source, [x, c])
        assert numbers.tolist() == list(range(8)) and numbers.dtype == np.uint32
        assert permuted.dtype == ml_dtypes.bfloat16
        assert permuted.tolist() == [[0, 0], [0, 2], *[[0, 0]] * 5, [24, 26]]
        assert np.array_equal(passed, c)
        assert empty.shape == (8, 3, 0)


REPLICAS = """
module @m attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 8 : i32} {
  func.func @main(%x: tensor<f32>) -> (tensor<f32>, tensor<ui32>) {
    %y = "stablehlo.all_reduce"(%x) ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>} : (tensor<f32>) -> tensor<f32>
    %r = stablehlo.replica_id : tensor<ui32>
    return %y, %r : tensor<f32>, tensor<ui32>
  }
}
"""


def test_replicas(many: Executor) -> None:
    for source in (REPLICAS, load(REPLICAS)):
        total, number = many.run(source, [2.0 ** np.arange(8, dtype=np.float32)])
        assert total.tolist() == [15, 15, 15, 15, 240, 240, 240, 240]
        assert number.tolist() == list(range(8))


def test_replicas_of_partitions_are_refused(many: Executor) -> None:
    text = REPLICAS.replace("num_replicas = 8", "num_replicas = 2").replace("num_partitions = 1", "num_partitions = 4")
    with pytest.raises(ExecutionError, match="2 replicas of 4 partitions"):
        many.run(text, [np.ones(8, np.float32)])


SHARDED = """
module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=8]>
  func.func @main(%x: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>, tf.aliasing_output = 0 : i32})
      -> (tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
    %0 = sdy.sharding_constraint %x <@mesh, [{"x"}]> : tensor<16xf32>
    %1 = stablehlo.custom_call @Sharding(%0) {mhlo.sharding = "{devices=[8]<=[8]}"} : (tensor<16xf32>) -> tensor<16xf32>
    %2 = stablehlo.add %0, %1 : tensor<16xf32>
    return %2 : tensor<16xf32>
  }
}
"""


def test_a_logical_module_runs_on_one_device(one: Executor, many: Executor) -> None:
    x = np.arange(16, dtype=np.float32)[None]
    for executor in (one, many):
        (got,) = executor.run(SHARDED, [x], logical=True)
        assert np.array_equal(got, 2 * x)
    assert np.array_equal(one.run(SHARDED, [x])[0], 2 * x)
    assert x.tolist() == [list(range(16))], "what is donated is a copy"


def _global(body: str) -> str:
    return f"""
    module @m attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
      sdy.mesh @mesh = <["x"=2, "y"=4]>
      func.func @main(%x: tensor<8x4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"y"}}, {{"x"}}]>}})
          -> (tensor<8x4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"y"}}, {{}}]>}}) {{
        %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{{"y"}}, {{}}]>] out_shardings=[<@mesh, [{{"y"}}, {{}}]>]
            manual_axes={{"x", "y"}} (%b: tensor<2x4xf32>) {{
          {body}
          sdy.return %c : tensor<2x4xf32>
        }} : (tensor<8x4xf32>) -> tensor<8x4xf32>
        return %0 : tensor<8x4xf32>
      }}
    }}
    """


def test_a_global_module_takes_and_gives_whole_tensors(many: Executor) -> None:
    x = np.arange(32, dtype=np.float32).reshape(1, 8, 4)
    text = _global("%c = stablehlo.add %b, %b : tensor<2x4xf32>")
    (whole,) = many.run(text, [x])
    (shards,) = many.run_shards(text, [x])
    assert np.array_equal(whole, 2 * x)
    assert np.array_equal(shards.values, np.tile(2 * x.reshape(4, 2, 4), (2, 1, 1)))


def test_a_shard_that_only_claims_to_be_replicated_shows(many: Executor) -> None:
    x = np.zeros((1, 8, 4), np.float32)
    body = """
      %d = stablehlo.partition_id : tensor<ui32>
      %f = stablehlo.convert %d : (tensor<ui32>) -> tensor<f32>
      %g = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
      %c = stablehlo.add %b, %g : tensor<2x4xf32>
    """
    (shards,) = many.run_shards(_global(body), [x])
    assert shards.values[:, 0, 0].tolist() == list(range(8))
    (whole,) = many.run(_global(body), [x])
    assert whole[0, ::2, 0].tolist() == [0, 1, 2, 3]


def test_manual_regions_of_gspmd(many: Executor) -> None:
    text = """
    module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
      func.func @main(%x: tensor<16xi32> {mhlo.sharding = "{devices=[8]<=[8]}"})
          -> (tensor<16xi32> {mhlo.sharding = "{devices=[8]<=[8]}"}) {
        %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{devices=[8]<=[8]}"}
          : (tensor<16xi32>) -> tensor<16xi32>
        %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = "{manual}"}
          : (tensor<16xi32>) -> tensor<2xi32>
        %2 = stablehlo.reverse %1, dims = [0] : tensor<2xi32>
        %3 = stablehlo.custom_call @Sharding(%2) {mhlo.sharding = "{manual}"} : (tensor<2xi32>) -> tensor<2xi32>
        %4 = stablehlo.custom_call @SPMDShardToFullShape(%3) {mhlo.sharding = "{devices=[8]<=[8]}"}
          : (tensor<2xi32>) -> tensor<16xi32>
        return %4 : tensor<16xi32>
      }
    }
    """
    (got,) = many.run(text, [np.arange(16, dtype=np.int32)[None]])
    assert got.reshape(8, 2)[:, ::-1].reshape(-1).tolist() == list(range(16))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "takes 1 arguments, not 0"),
        ([np.zeros((1, 16), np.int32)], "argument 0 is int32"),
        ([np.zeros((8, 2), np.float32)], r"the module takes float32\(1, 16\)"),
    ],
)
def test_arguments_that_do_not_fit(one: Executor, arguments: list[np.ndarray], message: str) -> None:
    with pytest.raises(ExecutionError, match=message) as error:
        one.run(SHARDED, arguments)
    assert error.value.failure is Failure.REJECTED


@pytest.mark.parametrize("dtype", ["f64", "i64", "ui64", "complex<f64>", "f32", "i8", "i1", "bf16", "f8E4M3FN"])
def test_elements_of_every_width(one: Executor, dtype: str) -> None:
    """Elements of 64 bits stay such, whatever JAX makes of them."""
    text = f"func.func @main(%x: tensor<3x{dtype}>) -> tensor<3x{dtype}> {{\n return %x : tensor<3x{dtype}>\n}}\n"
    given = np.array([[1, 0, 1]]).astype(DTYPES[dtype])
    if dtype in ("f64", "i64", "ui64"):
        given[0, 1] = (1 << 40) + 1
    (got,) = one.run(text, [given])
    assert got.dtype == given.dtype and got.tolist() == given.tolist()


def test_a_module_that_cannot_be_read(one: Executor) -> None:
    with pytest.raises(ExecutionError, match="not valid StableHLO") as error:
        one.run("module {\n  oops\n}\n", [])
    assert error.value.failure is Failure.REJECTED


ENDLESS = """
module @m {
  func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %one = stablehlo.constant dense<2.0> : tensor<f32>
    %y = stablehlo.while(%i = %x) : tensor<f32>
      cond { %t = stablehlo.compare NE, %i, %one : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %t : tensor<i1> }
      do { %j = stablehlo.sine %i : tensor<f32>
        stablehlo.return %j : tensor<f32> }
    return %y : tensor<f32>
  }
}
"""


def test_a_child_that_hangs_or_dies_costs_one_run(capfd: pytest.CaptureFixture[str]) -> None:
    x = np.ones((1, 16), np.float32)
    with Executor(1) as executor:
        executor.run(SHARDED, [x])
        executor.timeout = 0.3
        with pytest.raises(ExecutionError, match=r"more than 0\.3 s") as error:
            executor.run(ENDLESS, [np.zeros(1, np.float32)])
        assert error.value.failure is Failure.TIMEOUT
        executor.timeout = 60
        assert executor.run(SHARDED, [x])[0].sum() == 32
        assert executor._child is not None
        os.kill(executor._child.process.pid, signal.SIGSTOP)
        executor.timeout = 0.3
        with pytest.raises(ExecutionError, match="more than"):
            executor.run(SHARDED, [x])
        executor.timeout = 60
        executor.run(SHARDED, [x])
        executor._child.process.kill()
        executor._child.process.wait()
        assert executor.run(SHARDED, [x])[0].sum() == 32
    assert capfd.readouterr() == ("", "")


def test_a_crash_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hlo_verify.xla.child._FLAGS", ("--xla_no_such_flag",))
    with Executor(1) as executor, pytest.raises(ExecutionError, match="xla_no_such_flag") as error:
        executor.run(SHARDED, [np.ones((1, 16), np.float32)])
    assert error.value.failure is Failure.CRASH
