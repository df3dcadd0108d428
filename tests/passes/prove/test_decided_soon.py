"""Layers that are recognised case by case are no pieces of a scan, which a few comparisons tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.limits import Limits
from hlo_verify.passes.prove.decided_soon import PATIENCE, Patience
from hlo_verify.session import EnoughError
from tests.passes.prove.test_frontier import _padded_softmax, _uneven_halo


@pytest.mark.parametrize("network", [_padded_softmax, _uneven_halo])
def test_layers_are_proved_for_all_devices_at_once(network: Callable[[int], Any]) -> None:
    report = hlo_verify.verify(network(9), refute=False)
    assert report.verdict is Verdict.PROVED
    assert not report.results[0].by_device


@pytest.mark.parametrize("wrong", [1, 8])
def test_one_that_differs_is_not(wrong: int, tmp_path: Path) -> None:
    hlo_verify.verify(_uneven_halo(9), refute=False, keep=tmp_path)
    pairs = "source_target_pairs={{1,0},{2,1},{3,2}}"
    parts = (tmp_path / "partitioned.hlo").read_text().split(pairs)
    assert len(parts) > 9
    changed = pairs.join(parts[:wrong]) + "source_target_pairs={{1,0},{2,1},{0,2}}" + pairs.join(parts[wrong:])
    limits = replace(Limits(), wrong_work=Limits().wrong_work // 50, wrong_operation_work=0)
    report = hlo_verify.verify(tmp_path / "annotated.hlo", changed, refute=False, limits=limits)
    assert report.verdict is Verdict.UNKNOWN


def test_patience() -> None:
    patience = Patience()
    for _ in range(2):
        for _ in range(PATIENCE - 1):
            patience.answered(False)
        patience.answered(True)
    with pytest.raises(EnoughError):
        for _ in range(PATIENCE):
            patience.answered(False)
