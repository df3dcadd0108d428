"""Modules in every form that the linter takes."""

from __future__ import annotations

import gzip
import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from hlo_verify import cli
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.jaxlib_hlo import hlo_text_to_proto
from hlo_verify.linter.lint import lint
from hlo_verify.linter.reading import annotated_shardings, as_it_is, is_partitioned, read

TESTDATA = Path(__file__).parents[2] / "testdata"

LOST = """HloModule lost, num_partitions=2, entry_computation_layout={(f32[4,2]{1,0},f32[2,3]{1,0})->f32[4,3]{1,0}}

ENTRY e {
  x = f32[4,2]{1,0} parameter(0), sharding={devices=[1,2]<=[2]}
  w = f32[2,3]{1,0} parameter(1), sharding={devices=[2,1]<=[2]}
  d = f32[4,3]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT n = f32[4,3]{1,0} tanh(d)
}
"""
SHARDINGS = json.dumps({"in": ["{devices=[1,2]<=[2]}", "{devices=[2,1]<=[2]}"], "out": ["{replicated}"]})

BY_HAND = """module @f attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%x: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                         %w: tensor<4x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
      -> (tensor<4x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %0 = sdy.manual_computation(%x, %w)
        in_shardings=[<@mesh, [{}, {"x"}]>, <@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{}, {}]>]
        manual_axes={"x"} (%a: tensor<4x2xf32>, %b: tensor<2x3xf32>) {
      %1 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
        : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
      sdy.return %1 : tensor<4x3xf32>
    } : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    return %0 : tensor<4x3xf32>
  }
}
"""


@pytest.mark.parametrize("zipped", [False, True])
def test_a_serialized_module(zipped: bool, tmp_path: Path) -> None:
    proto = hlo_text_to_proto(LOST)
    path = tmp_path / "module.hlo.pb"
    path.write_bytes(gzip.compress(proto) if zipped else proto)
    assert is_partitioned(path)
    of_proto, of_text = lint(path, shardings=SHARDINGS), lint(LOST, shardings=SHARDINGS)
    assert [(one.name, one.message) for one in of_proto.findings] == [
        (one.name, one.message) for one in of_text.findings
    ]
    assert [one.name for one in of_proto.errors] == ["missing_reduction"]


def test_an_hlo_proto_holds_a_module() -> None:
    proto = hlo_text_to_proto(LOST)
    length = len(proto)
    digits = bytes([length & 127 | 128, length >> 7]) if length > 127 else bytes([length])
    assert read(b"\x0a" + digits + proto).module.entry.name == "e"


def test_what_xla_made_is_read_with_its_shardings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the partitioner dumps (here without XLA) is the module, and says how parameters and results lie."""
    annotated, partitioned = tmp_path / "annotated.txt", tmp_path / "partitioned.txt"
    annotated.write_text(LOST.replace("tanh(d)", "tanh(d), sharding={replicated}"))
    partitioned.write_text(LOST.replace(", sharding={devices=[1,2]<=[2]}", ""))
    job = SimpleNamespace(wait=lambda: SimpleNamespace(annotated=annotated, partitioned=partitioned))
    monkeypatch.setattr("hlo_verify.xla.partition.partition", lambda contents: nullcontext(job))
    assert [one.name for one in lint(BY_HAND).errors] == ["missing_reduction"]


@pytest.mark.slow
def test_what_is_not_partitioned_is_partitioned(tmp_path: Path) -> None:
    """A `shard_map` whose partial sum is never added up: XLA makes a device's program of it, and says how it lies."""
    path = tmp_path / "f.mlir"
    path.write_text(BY_HAND)
    assert not is_partitioned(path)
    found = lint(path).errors
    assert [one.name for one in found] == ["missing_reduction"]


def test_how_a_logical_module_says_that_values_lie() -> None:
    said = annotated_shardings(as_it_is(TESTDATA / "mlp_2d" / "logical.hlo.gz"))
    assert len(said.arguments) == 6 and said.arguments[4] == "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"
    assert len(said.results) == 5 and said.results[0] == "{replicated}"


@pytest.mark.parametrize(
    ("contents", "said"),
    [
        (b"\xff\xfe\x00\x01what", "neither MLIR bytecode nor a protocol buffer"),
        (b"\x1f\x8b\x08broken", "damaged gzip file"),
        (b"nothing\n", "does not begin with HloModule"),
    ],
)
def test_what_is_no_module(contents: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "module"
    path.write_bytes(contents)
    with pytest.raises(InputError, match=said):
        lint(path)
    assert cli.main(["lint", str(path)]) == 2
    assert said in capsys.readouterr().err
