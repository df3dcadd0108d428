"""The child process that partitions one module."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jax.export
import pytest

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.xla.partition import MAX_DEVICES, Job, Partitioned, _is_partitioned, partition
from tests.programs import arguments, jitted, lowered

GSPMD = """\
module @jit_f attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8x8xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<8x8xf32> {jax.result_info = "out", mhlo.sharding = "{devices=[1,4]<=[4]}"}) {
    %0 = stablehlo.tanh %arg0 : tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
}
"""


@contextmanager
def halves(source: str | bytes | Path, devices: int | None = None) -> Iterator[Partitioned]:
    with partition(source, devices=devices) as job:
        yield job.wait()


def test_a_module_for_shardy() -> None:
    with halves(lowered().as_text(debug_info=True)) as pair:
        assert "after_shardy-xla" in pair.annotated.name
        annotated, partitioned = pair.annotated.read_text(), pair.partitioned.read_text()
    assert "f32[32,64]{1,0} dot(" in annotated
    assert "f32[16,16]{1,0} dot(" in partitioned
    assert "num_partitions=8" in partitioned
    assert "all-reduce" in partitioned


def test_a_module_for_gspmd() -> None:
    with halves(GSPMD) as pair:
        assert "after_sharding-propagation" in pair.annotated.name
        assert "all-to-all" in pair.partitioned.read_text()


def test_results_without_a_sharding_are_left_to_xla() -> None:
    """As JAX does; without it XLA would gather the first result on every device."""
    with halves(lowered(out_shardings=False).as_text()) as pair:
        assert "->(f32[16,16]{1,0}, f32[])" in pair.partitioned.read_text().splitlines()[0]


def test_an_exported_artifact() -> None:
    exported = jax.export.export(jitted({"data": 2, "model": 4}), platforms=["cpu"])(*arguments())
    with halves(bytes(exported.serialize())) as pair:
        assert "num_partitions=8" in pair.partitioned.read_text()


def test_as_many_devices_as_xla_takes(tmp_path: Path) -> None:
    path = tmp_path / "module.mlir"
    path.write_text(lowered({"data": 32, "model": MAX_DEVICES // 32}).as_text())
    with halves(path) as pair:
        assert f"num_partitions={MAX_DEVICES}" in pair.partitioned.read_text()


def test_more_devices_are_refused_with_a_way_out() -> None:
    many = GSPMD.replace("num_partitions = 4", "num_partitions = 4096").replace("<=[4]", "<=[4096]")
    many = many.replace("[4,1]", "[4096,1]").replace("[1,4]", "[1,4096]")
    with pytest.raises(InputError, match=r"for 4096 devices.*2048 at most.*--xla_dump_to=DIR"), halves(many):
        pass


def test_the_child_is_gone_and_its_files_too() -> None:
    with partition(GSPMD) as job:
        folder = job.wait().annotated.parent
        assert folder.is_dir()
    assert job.process.poll() is not None
    assert not folder.exists()


def test_the_child_is_ended_when_nobody_waits() -> None:
    with partition(GSPMD) as job:
        pass
    assert job.process.poll() is not None


def test_waiting_is_called_meanwhile() -> None:
    calls: list[None] = []
    with partition(GSPMD) as job:
        job.wait(lambda: calls.append(None))
    assert calls


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("source", "said"),
    [
        (GSPMD.replace("mhlo.sharding", "mhlo.unrelated"), "no sharding annotations"),
        (
            GSPMD.replace("num_partitions = 4", "num_partitions = 1")
            .replace("4,1]<=[4", "1,1]<=[1")
            .replace("1,4]<=[4", "1,1]<=[1"),
            "is for one device",
        ),
        (GSPMD[:300], "not valid StableHLO"),
        (GSPMD.replace("[4,1]<=[4]", "[3,1]<=[3]"), "a sharding is for 3 devices, the module has 4"),
        (Path("nowhere.mlir"), "nowhere.mlir: there is no such file"),
    ],
)
def test_input_that_cannot_be_partitioned(source: str | Path, said: str) -> None:
    with pytest.raises(InputError) as raised, halves(source):
        pass
    assert said in str(raised.value)
    assert str(raised.value).count("nowhere.mlir") <= 1


def test_the_number_of_devices_is_the_modules_own() -> None:
    with pytest.raises(InputError, match="4 partitions, not for 8 devices"), halves(GSPMD, devices=8):
        pass


def test_a_crash_of_xla_stays_in_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_no_such_flag=1")
    with (
        pytest.raises(InputError, match=r"the module: XLA ended with status 1 .*Unknown flag.*xla_no_such_flag"),
        halves(GSPMD),
    ):
        pass


def test_a_child_that_is_killed_is_an_error_too() -> None:
    with partition(GSPMD) as job:
        job.process.send_signal(signal.SIGABRT)
        with pytest.raises(InputError, match=r"the module: XLA was ended by SIGABRT while it partitioned"):
            job.wait()


def test_flags_of_the_user_reach_xla_and_ours_win(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XLA_FLAGS", f"--xla_dump_hlo_as_proto --xla_dump_to={tmp_path}")
    with halves(GSPMD) as pair:
        assert list(pair.partitioned.parent.glob("*.pb"))
    assert list(tmp_path.iterdir()) == []


def test_a_dump_is_not_taken_before_it_is_complete(tmp_path: Path) -> None:
    """The child is ended once the dump is there: a half-written one must not be mistaken for it."""
    with halves(GSPMD) as pair:
        text, name = pair.partitioned.read_text(), pair.partitioned.name
    assert not _is_partitioned(tmp_path)
    lines = text.splitlines(keepends=True)
    for count in range(len(lines)):
        head = "".join(lines[:count])
        if head.strip() != text.strip():
            (tmp_path / name).write_text(head)
            assert not _is_partitioned(tmp_path), head[-80:]
    (tmp_path / name).write_text(text)
    assert _is_partitioned(tmp_path)


def test_what_xla_runs_into_after_the_partitioner_is_of_no_interest(tmp_path: Path) -> None:
    with partition(GSPMD) as job:
        job.wait()
        said = {"message": "no such device", "code": Input.XLA_REFUSES}
        (job.folder / "error").write_text(json.dumps(said))
        assert Job(job.folder, job.process, "the module").wait().partitioned.is_file()
        shutil.rmtree(job.folder / "dump")
        (job.folder / "dump").mkdir()
        with pytest.raises(InputError, match="the module: no such device"):
            Job(job.folder, job.process, "the module").wait()
