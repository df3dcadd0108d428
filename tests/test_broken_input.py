"""Broken input of every kind gives one error that says what to do, exit status 2, and no traceback."""

from __future__ import annotations

import gzip
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hlo_verify import cli
from hlo_verify.passes.load import load
from tests.programs import lowered
from tests.xla.test_partition import GSPMD

TESTDATA = Path(__file__).resolve().parent.parent / "testdata"
LOGICAL = gzip.decompress((TESTDATA / "mlp_2d" / "logical.hlo.gz").read_bytes()).decode()
PARTITIONED = gzip.decompress((TESTDATA / "mlp_2d" / "partitioned.hlo.gz").read_bytes()).decode()

Refused = Callable[..., str]

UNSHARDED = re.sub(
    r" \{mhlo.sharding[^}]*\}\"\}|, mhlo.sharding = \"[^\"]*\"",
    "",
    GSPMD.replace("num_partitions = 4", "num_partitions = 1"),
)
SHARDY = (
    UNSHARDED.replace("num_partitions = 1", "num_partitions = 4")
    .replace("  func.func", '  sdy.mesh @mesh = <["a"=4]>\n  func.func')
    .replace("%arg0: tensor<8x8xf32>", '%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}')
)


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Run the command line on files with the given contents, and return the one message that it is to print."""
    monkeypatch.chdir(tmp_path)

    def run(*contents: str | bytes | Path, options: tuple[str, ...] = ()) -> str:
        paths = []
        for n, content in enumerate(contents):
            path = content if isinstance(content, Path) else Path(f"input_{n}")
            if not isinstance(content, Path):
                path.write_bytes(content.encode() if isinstance(content, str) else content)
            paths.append(str(path))
        status = cli.main([*paths, *options])
        out, err = capsys.readouterr()
        assert (status, out) == (2, ""), err
        assert re.match(r"hlo-verify: error\[HV[14]\d\d\]: ", err)
        assert err.count("\n") == 1, "one message, on one line"
        assert "Traceback" not in err
        return err

    return run


def without(text: str, pattern: str) -> str:
    found, count = re.subn(pattern, "", text)
    assert count, f"the fixture no longer has {pattern}"
    return found


@pytest.mark.parametrize("lines", [1, 20, 115, 140])
def test_truncated_hlo_text(refused: Refused, lines: int) -> None:
    message = refused(LOGICAL, "".join(PARTITIONED.splitlines(keepends=True)[:lines]))
    assert "input_1: " in message
    assert "complete" in message or "cut short" in message


def test_hlo_text_cut_within_a_line(refused: Refused) -> None:
    assert "is the file complete?" in refused(LOGICAL, PARTITIONED[:-300])


def test_truncated_stablehlo(refused: Refused) -> None:
    message = refused(lowered().as_text()[:700])
    assert "input_0: not valid StableHLO" in message
    assert "is the file complete" in message


def test_truncated_gzip(refused: Refused) -> None:
    message = refused(LOGICAL, gzip.compress(PARTITIONED.encode())[:-100])
    assert "input_1: the gzip file is damaged or cut short" in message


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "neither MLIR bytecode nor a protocol buffer"),
        (b"\x7fELF\x02\x01\x01\x00\xff\xff\xff", "neither MLIR bytecode nor a protocol buffer"),
        (b"def f(x): return x\n", "not a module: the text begins with 'def f(x): return x'"),
        (b'{"name": "mlp_2d"}', "not a module"),
        (b"ML\xefR\x01garbage", "not valid StableHLO"),
        (b"ML\xefR\rStableHLO_v1.0.0\x00garbage", "not a StableHLO portable artifact"),
    ],
)
def test_wrong_file(refused: Refused, content: bytes, said: str) -> None:
    assert said in refused(LOGICAL, content)
    assert said in refused(content)


MINIMAL = "HloModule m\n\nENTRY %main (x: f32[8]) -> f32[8] {\n  ROOT %x = f32[8]{0} parameter(0)\n}\n"
DYNAMIC = "module {\n  func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n    return %x : tensor<?xf32>\n  }\n}\n"


@pytest.mark.parametrize(
    ("logical", "partitioned", "options", "code"),
    [
        (GSPMD, GSPMD, ("--keep", "kept"), "HV400"),
        (GSPMD, Path("nowhere"), (), "HV401"),
        (GSPMD, "def f(x): return x\n", (), "HV403"),
        (GSPMD, PARTITIONED[:-300], (), "HV404"),
        (GSPMD, MINIMAL.replace("parameter(0)", "constant({...})"), (), "HV405"),
        (DYNAMIC, DYNAMIC, (), "HV406"),
        (GSPMD, GSPMD.replace("(%arg0:", "(%arg1: tensor<8xf32>, %arg0:"), (), "HV407"),
        (MINIMAL, MINIMAL, (), "HV408"),
        (GSPMD, GSPMD, ("--devices", "8"), "HV409"),
        (GSPMD, GSPMD, ("--shardings", "wrong.toml"), "HV411"),
        (GSPMD.replace("devices=[4,1]<=[4]", "devices=[3,1]<=[4]"), GSPMD, (), "HV101"),
        (GSPMD.replace("devices=[4,1]<=[4]", "devices=[4]<=[4]"), GSPMD, (), "HV102"),
        (GSPMD.replace("devices=[4,1]<=[4]", "devices=[8,1]<=[8]"), GSPMD, (), "HV103"),
        (GSPMD, GSPMD, ("--shardings", "axis.toml"), "HV104"),
        (MINIMAL, MINIMAL.replace("f32[8]", "f32[3]"), ("--devices", "4"), "HV105"),
        (GSPMD, GSPMD, (), "HV106"),
        (GSPMD, GSPMD, ("--shardings", "manual.toml"), "HV109"),
    ],
)
def test_every_kind_of_error_has_its_code(
    refused: Refused, tmp_path: Path, logical: str, partitioned: str | Path, options: tuple[str, ...], code: str
) -> None:
    (tmp_path / "wrong.toml").write_text("[argument]\n")
    (tmp_path / "axis.toml").write_text('[mesh]\na = 4\n[arguments]\n0 = ["b"]\n')
    (tmp_path / "manual.toml").write_text('[arguments]\n0 = "{manual}"\n')
    message = refused(logical, partitioned, options=options)
    assert message.startswith(f"hlo-verify: error[{code}]: "), message


def test_modules_of_different_programs(refused: Refused) -> None:
    message = refused(LOGICAL, TESTDATA / "embedding_gather_scatter" / "partitioned.hlo.gz")
    assert "they are not a pair" in message or "check that the two modules are a pair" in message


def test_the_same_program_partitioned_otherwise(refused: Refused) -> None:
    message = refused(LOGICAL, TESTDATA / "mlp_dp" / "partitioned.hlo.gz")
    assert "argument params['b1']" in message
    assert "a pair" in message


def test_halves_exchanged(refused: Refused) -> None:
    refused(PARTITIONED, LOGICAL)


def test_argument_counts_that_do_not_fit(refused: Refused) -> None:
    more = GSPMD.replace("(%arg0:", "(%arg1: tensor<8xf32>, %arg0:")
    assert "1 argument" in refused(GSPMD, more)


def test_shapes_that_do_not_fit_the_shardings(refused: Refused) -> None:
    message = refused(GSPMD, GSPMD.replace("8x8", "4x8"))
    assert "arg0" in message
    assert "check that the two modules are a pair" in message


def test_shardings_for_other_devices(refused: Refused) -> None:
    message = refused(without(LOGICAL, r", num_partitions=8"), PARTITIONED, options=("--devices", "4"))
    assert "8" in message
    assert "4" in message


@pytest.mark.parametrize("side", [0, 1])
def test_elided_constants(refused: Refused, side: int) -> None:
    pair = [LOGICAL, PARTITIONED]
    pair[side] = re.sub(r"constant\(0\)", "constant({...})", pair[side])
    message = refused(*pair)
    assert f"input_{side}: " in message
    assert "--xla_dump_large_constants=true" in message


def test_a_fusion_of_a_computation_that_takes_something_else(refused: Refused) -> None:
    damaged = """HloModule m

%f (p: f32[4]) -> f32[2] {
  %p = f32[4] parameter(0)
  ROOT %s = f32[2] slice(%p), slice={[0:2]}
}

ENTRY %main (x: f32[2]) -> f32[2] {
  %x = f32[2] parameter(0)
  ROOT %y = f32[2] fusion(%x), kind=kLoop, calls=%f
}
"""
    assert "f32[2] to a computation that takes f32[4]" in refused(damaged, damaged)


def test_missing_num_partitions(refused: Refused) -> None:
    """With nothing in either module that tells how many devices there are."""
    plain = "HloModule m\n\nENTRY %main (x: f32[8]) -> f32[8] {\n  ROOT %x = f32[8]{0} parameter(0)\n}\n"
    assert "--devices N" in refused(plain, plain)
    replicated = re.sub(r"\{devices[^}]*\}", "{replicated}", GSPMD.replace("mhlo.num_partitions = 4 : i32, ", ""))
    assert "does not say for how many devices" in refused(replicated)


def test_a_result_without_a_sharding_is_named(refused: Refused) -> None:
    nothing = re.sub(r'jax.result_info = "out", mhlo.sharding = "[^"]*"', 'jax.result_info = "out"', GSPMD)
    message = refused(nothing, nothing.replace("8x8", "3x8"))
    assert "out" in message
    assert "--shardings" in message


def test_an_empty_dump_folder(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    message = refused(Path("dump"))
    assert "dump is empty" in message
    assert "--xla_dump_hlo_pass_re=spmd|shardy|sharding" in message


def test_a_folder_of_something_else(refused: Refused) -> None:
    assert "no module from before and after the SPMD partitioner" in refused(TESTDATA)


def test_a_folder_in_place_of_a_file(refused: Refused) -> None:
    assert "pass a folder inside, or the two files" in refused(LOGICAL, TESTDATA)


@pytest.mark.parametrize("alone", [True, False])
def test_a_path_that_does_not_exist(refused: Refused, alone: bool) -> None:
    paths = (Path("nowhere.mlir"),) if alone else (LOGICAL, Path("nowhere.mlir"))
    assert "error[HV401]: nowhere.mlir: there is no such file (see" in refused(*paths)


def test_a_file_that_cannot_be_read(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root reads everything, so the operating system's answer is put in place."""

    def deny(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(load.Path, "read_bytes", deny)
    path = TESTDATA / "mlp_2d" / "logical.hlo.gz"
    assert f"error[HV401]: {path}: cannot be read (Permission denied) (see" in refused(path, path)


def test_more_devices_than_xla_takes(refused: Refused) -> None:
    many = re.sub(r"<=\[4\]", "<=[4096]", GSPMD.replace("num_partitions = 4", "num_partitions = 4096"))
    assert "2048 at most" in refused(many.replace("[4,1]", "[4096,1]").replace("[1,4]", "[1,4096]"))


def test_a_single_module_without_shardings(refused: Refused) -> None:
    assert "nothing to partition" in refused(GSPMD.replace("mhlo.sharding", "mhlo.unrelated"))


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("module", "shardings", "said"),
    [
        (GSPMD, "[mesh]\na = 8\n[arguments]\n0 = []", "the mesh has 8 devices, the module is for 4"),
        (GSPMD, "[mesh]\na = 4\n[arguments]\n0 = []", "the module itself says otherwise"),
        (GSPMD, "[mesh]\na = 4\n[results]\nx = []", "result 'x' does not exist"),
        (UNSHARDED, "", "nothing to partition"),
        (UNSHARDED, '[results]\n0 = "{devices=[2,1]<=[1]}"', "for 2 devices and names 1"),
        (
            UNSHARDED,
            '[results]\n0 = "{devices=[2,1]<=[2]}"\n[arguments]\n0 = "{devices=[4,1]<=[4]}"',
            "2 and 4 devices",
        ),
        (SHARDY, '[results]\n0 = "{devices=[1,4]<=[4]}"', "lowered for Shardy"),
        (SHARDY, "[mesh]\nb = 4\n[results]\n0 = []", "is not the module's own"),
    ],
)
def test_shardings_of_a_single_module_that_do_not_fit(
    refused: Refused, tmp_path: Path, module: str, shardings: str, said: str
) -> None:
    (tmp_path / "s.toml").write_text(shardings)
    message = refused(module, options=("--shardings", "s.toml"))
    assert said in message


def test_a_single_module_that_is_partitioned_already(refused: Refused) -> None:
    refused(PARTITIONED)


def test_options_that_do_not_go_together(refused: Refused) -> None:
    assert "keep" in refused(LOGICAL, PARTITIONED, options=("--keep", "kept"))
    assert "nowhere.toml" in refused(LOGICAL, PARTITIONED, options=("--shardings", "nowhere.toml"))


def test_nothing_is_kept_where_nothing_can_be(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "cannot keep the modules in file" in refused(GSPMD, options=("--keep", "file"))


def test_a_dump_of_which_one_file_is_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for n, folder in enumerate(["mlp_2d", "mlp_dp"]):
        for step, half in enumerate(["logical", "partitioned"]):
            passes = ["after_shardy-xla.before_spmd-partitioning", "after_spmd-partitioning.before_dce"][step]
            target = tmp_path / f"module_000{n}.jit_loss.000{step}.spmd-partitioner.{passes}.txt.gz"
            shutil.copyfile(TESTDATA / folder / f"{half}.hlo.gz", target)
    target.write_bytes(target.read_bytes()[:200])
    assert cli.main([str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert "module_0000.jit_loss\n\nPROVED" in out
    assert "module_0001.jit_loss\n\nUNKNOWN  error[HV404]: " in out
    assert out.endswith("UNKNOWN  2 modules: 1 proved, 1 not verified\n")
    assert err == ""
