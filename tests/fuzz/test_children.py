"""Children that are killed cost the pair that they were at, and results that were cut are gone on with."""

from __future__ import annotations

import json
import os
import signal
from functools import partial
from pathlib import Path

import pytest

from tools import records
from tools.fuzz.programs import command
from tools.fuzz.programs.children import ABORT, judged


def killed(folder: Path, number: int) -> dict[str, object]:
    """Ends the process at 3 always, and at 5 the first time."""
    mark = folder / str(number)
    if number == 3 or (number == 5 and not mark.exists()):
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL if number == 5 else signal.SIGABRT)
    return {"number": number, "truth": "equal"}


def test_a_child_that_is_killed_costs_one_pair(tmp_path: Path) -> None:
    found = list(judged(partial(killed, tmp_path), range(8), 2))
    assert sorted(record["number"] for record in found) == list(range(8))
    assert [record["number"] for record in found if record.get("verdict") == ABORT] == [3]


def test_cut_lines_are_left_out_and_mended(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text('{"number": 0, "seed": 7}\n{"number": 1, "se{"number": 2}\n{"number": 3, "seed": 7}\n{"numb')
    assert [record["number"] for record in records.read(path)] == [0, 3]
    assert records.mend(path) == records.read(path)
    assert path.read_text() == '{"number": 0, "seed": 7}\n{"number": 3, "seed": 7}\n'
    assert records.seed_of(records.read(path), None, path) == 7
    with pytest.raises(SystemExit, match="another seed"):
        records.seed_of(records.read(path), 8, path)


def test_a_run_goes_on_with_its_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ["--jobs", "0", "--count", "4", "--refuted-of", "0", "--out", str(tmp_path)]
    assert command.main([*run, "--seed", "11"]) == 0
    path = tmp_path / "records.jsonl"
    whole = path.read_text()
    path.write_text(whole[:-20])
    assert command.main([*run, "--resume"]) == 0
    assert capsys.readouterr().out.count("seed 11\n") == 2

    def told(text: str) -> list[dict[str, object]]:
        return [{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in text.splitlines()]

    assert told(path.read_text()) == told(whole)
