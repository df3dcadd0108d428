"""How `python -m tools.corpora` judges what was found, and what it prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pairs import LOGICAL, PARTIAL, SUMMED
from tools.corpora import Found, Pair, render, verify


def pair(name: str, truth: str = "equal") -> Pair:
    return Pair(name, Path("a"), Path("b"), truth)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("PartitionConvWithFeatureGroupCount2", "convolutions"),
        ("GatherScatterPartitioningIndexParallelCase", "scatter"),
        ("UnrollEinsumRHSWindowedContracting", "windowed einsums"),
        ("TopKCustomCallManualSharding", "sort and top-k"),
        ("ReduceWindowTiled2D", "windows and reductions"),
        ("Cholesky", "others"),
    ],
)
def test_families(name: str, family: str) -> None:
    assert pair(name).family == family


@pytest.mark.parametrize(
    ("truth", "verdict", "wrong"),
    [
        ("equal", "PROVED", False),
        ("equal", "UNKNOWN", False),
        ("equal", "REFUTED", True),
        ("believed", "REFUTED", True),
        ("not-measured", "REFUTED", False),
        ("different", "REFUTED", False),
        ("different", "UNKNOWN", True),
        ("different", "PROVED", True),
        ("no-pair", "input", False),
        ("no-pair", "PROVED", True),
        ("equal", "error", True),
    ],
)
def test_what_contradicts_the_truth(truth: str, verdict: str, wrong: bool) -> None:
    assert Found(pair("x", truth), verdict).is_wrong is wrong


def test_a_pair_is_verified(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in "abc"]
    for path, text in zip(paths, (LOGICAL, SUMMED, PARTIAL), strict=True):
        path.write_text(text)
    assert verify(Pair("x", paths[0], paths[1], "equal")).verdict == "PROVED"
    found = verify(Pair("x", paths[0], paths[2], "different"))
    assert (found.verdict, found.proved, found.results) == ("REFUTED", 0, 1) and "is missing" in found.why
    assert verify(Pair("x", paths[0], tmp_path / "nothing", "equal")).verdict == "input"


def test_the_report() -> None:
    found = [
        Found(pair("ScanShardedOnScanDim"), "PROVED", 1, 1, "", 1.0, 100),
        Found(pair("SortTwo"), "UNKNOWN", 2, 3, "sorted otherwise", 2.0, 300),
        Found(pair("Cholesky"), "REFUTED", 0, 1, "another value", 0.5, 200),
    ]
    text = render("xla_spmd", found)
    assert "equal: 1 of 3 PROVED (33.3%)" in text
    assert "| sort and top-k |  | 1 |  |  |  |" in text and "| all | 1 | 1 | 1 |  |  |" in text
    assert "- SortTwo (equal): UNKNOWN, 2 of 3 results PROVED: sorted otherwise" in text
    assert "- WRONG: Cholesky (equal): REFUTED: another value" in text
    assert "4 s; longest SortTwo 2.0 s" in text and "300 MB at most" in text
