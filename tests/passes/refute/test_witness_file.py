"""Saved witnesses."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hlo_verify
from hlo_verify.diagnostics import Input, Solver
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.passes.refute import witness_file
from hlo_verify.report import Verdict
from tests.support.pairs import LOGICAL, PARTIAL, SUMMED


def save(path: Path, partitioned: str = PARTIAL) -> hlo_verify.Report:
    return hlo_verify.verify(LOGICAL, partitioned, witness=path)


def test_a_witness_holds_all_that_it_takes(tmp_path: Path) -> None:
    path = tmp_path / "witness"
    report = save(path)
    saved = witness_file.read(path)
    assert (saved.logical.decode(), saved.partitioned.decode(), saved.devices) == (LOGICAL, PARTIAL, 4)
    (point,) = saved.points
    found = report.results[0].witness
    assert found is not None
    assert point == (0, found.point.device, found.point.element, found.point.local_element)
    again = tmp_path / "again"
    witness_file.save(again, saved)
    copy = witness_file.read(again)
    assert np.array_equal(copy.inputs[0].values, saved.inputs[0].values)
    assert copy.arguments[0] is not None and copy.arguments[0].tiles == (4,)


def test_it_runs_again(tmp_path: Path) -> None:
    path = tmp_path / "witness"
    first = save(path).results[0].witness
    (result,) = hlo_verify.replay(path).results
    assert first is not None and result.witness is not None
    assert result.verdict is Verdict.REFUTED
    assert result.witness.point == first.point


def test_it_shows_whether_a_repair_helps(tmp_path: Path) -> None:
    """That it does not differ any more proves nothing."""
    path = tmp_path / "witness"
    save(path)
    report = hlo_verify.replay(path, LOGICAL, SUMMED)
    (result,) = report.results
    assert result.verdict is Verdict.UNKNOWN
    assert result.code is Solver.NO_LONGER_DIFFERS
    said = str(report).splitlines()
    assert said[0] == "UNKNOWN  result[0]  no longer differs for these inputs" and said[1] == "" and len(said) == 3
    assert "hlo-verify LOGICAL PARTITIONED verifies" in said[2]


def test_nothing_is_saved_of_what_is_proved(tmp_path: Path) -> None:
    assert save(tmp_path / "witness", SUMMED).verdict is Verdict.PROVED
    assert not (tmp_path / "witness").exists()


def test_modules_that_it_is_not_about(tmp_path: Path) -> None:
    path = tmp_path / "witness"
    save(path)
    with pytest.raises(InputError, match="other arguments"):
        hlo_verify.replay(path, LOGICAL.replace("8xf32", "16xf32"), PARTIAL.replace("2xf32", "4xf32"))
    witness_file.save(path, replace(witness_file.read(path), points=((1, 0, (), ()),)))
    with pytest.raises(InputError, match="more results"):
        hlo_verify.replay(path)
    witness_file.save(path, replace(witness_file.read(path), points=((-1, 0, (), ()),)))
    with pytest.raises(InputError, match="no witness"):
        hlo_verify.replay(path)


def _not_a_zip(path: Path) -> None:
    path.write_bytes(b"witness")


def _without_modules(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("witness.json", "{}")


def _of_the_future(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("witness.json", json.dumps({"version": witness_file.VERSION + 1}))


def _of_another_kind(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("witness.json", "[]")


def _damaged(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("witness.json", json.dumps({"version": witness_file.VERSION}))
    contents = bytearray(path.read_bytes())
    start = len("witness.json") + 30  # of what is compressed, behind a header of 30 bytes and a name
    contents[start] ^= 6  # another type of block
    path.write_bytes(contents)


@pytest.mark.parametrize("make", [_not_a_zip, _without_modules, _of_the_future, _of_another_kind, _damaged])
def test_what_is_no_witness(tmp_path: Path, make: object) -> None:
    path = tmp_path / "witness"
    assert callable(make)
    make(path)
    with pytest.raises(InputError, match=str(path)) as caught:
        hlo_verify.replay(path)
    assert caught.value.diagnostic.code is Input.DAMAGED


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        hlo_verify.replay(tmp_path / "absent")
    with pytest.raises(InputError, match="no such folder"):
        save(tmp_path / "absent" / "witness")
    with pytest.raises(InputError, match="refute"):
        hlo_verify.verify(LOGICAL, PARTIAL, refute=False, witness=tmp_path / "witness")
