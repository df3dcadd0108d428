"""What is proved as a loop is checked again as one, and that the loop is what was written out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from hlo_verify.limits import Limits
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.by_rolling import in_loops
from hlo_verify.passes.recheck.answer import Finding, Task, answer
from hlo_verify.passes.recheck.recheck import recheck_with
from hlo_verify.session import Session
from tests.passes.prove.each_device.ring_attention import INFINITE, Ring

RING = Ring(devices=64, mask="", start=INFINITE)
LIMITS = Limits(devices_apart=1)


def _inline(tasks: Sequence[Task]) -> Iterator[tuple[int, Finding]]:
    for n, task in enumerate(tasks):
        yield n, answer(task)


def test_rings_are_checked_as_loops() -> None:
    found = recheck_with(_inline, *map(load, RING.pair()), 1000, session=Session(LIMITS))
    assert found.disagreements == ()
    assert [what.split(":")[0] for what, _ in found.unchecked] == ["while"]
    assert found.agreed + found.partly > 150


def test_a_loop_that_is_something_else_disagrees(monkeypatch: pytest.MonkeyPatch) -> None:
    other = in_loops(*map(load, replace(RING, scale=0.25).pair()))
    assert other is not None
    monkeypatch.setattr("hlo_verify.passes.recheck.recheck.in_loops", lambda *_: other)
    found = recheck_with(_inline, *map(load, RING.pair()), 1000, session=Session(LIMITS))
    assert "turns as a loop" in {each.operation for each in found.disagreements}
