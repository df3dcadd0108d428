"""A sample of the fuzzer of files, another one in each run; and that the fuzzer would see what it looks for."""

from __future__ import annotations

import random

import pytest

from hlo_verify.passes.load.load import load
from tools.fuzz.files import run
from tools.fuzz.files.corruption import corrupted
from tools.fuzz.files.originals import FORMATS, contents, originals
from tools.fuzz.files.trial import SMALL, Trial, attempt

SAMPLE = 40


def test_damaged_files_do_no_harm(seed: int) -> None:
    ends, failures = run(seed, range(SAMPLE), jobs=1)
    assert not failures
    assert sum(ends.values()) == SAMPLE


@pytest.mark.drawn(3)
@pytest.mark.parametrize("form", FORMATS)
def test_formats_are_read_undamaged_and_differ_when_damaged(form: str, seed: int) -> None:
    original = contents(originals(SMALL)[0].path, form)
    assert load(original).main.ops
    draw = random.Random(seed)
    assert sum(corrupted(form, original, draw) != original for _ in range(20)) > 10


def test_a_trial_is_known_by_its_number() -> None:
    assert Trial(3, 5).make() == Trial(3, 5).make()
    assert Trial(3, 5).make() != Trial(3, 6).make()


def test_a_defect_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def defect(_: bytes) -> None:
        raise KeyError("nothing foresaw this")

    monkeypatch.setattr("tools.fuzz.files.trial.load", defect)
    assert attempt(Trial(3, 5)).startswith("FAILED to read: KeyError: 'nothing foresaw this'")
