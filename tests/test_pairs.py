"""Pairs that the program fuzzer found, whose verdict was wrong once. Each folder says what it is to be, and why.

`expected.txt` begins with the verdict of the prover alone. UNKNOWN there may become PROVED for a pair that is equal.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_verify

PAIRS = sorted((Path(__file__).parent / "pairs").iterdir())


@pytest.mark.drawn(5)
@pytest.mark.parametrize("folder", PAIRS, ids=lambda folder: folder.name)
def test_verdict(folder: Path) -> None:
    expected = (folder / "expected.txt").read_text().split(":")[0]
    report = hlo_verify.verify(folder / "logical.mlir", folder / "partitioned.mlir", refute=False)
    assert report.verdict == expected, [result.reason for result in report.results]
