"""Layers of which each is recognised case by case: that takes few terms, and next to nothing in vain.

A walk that compares no values finds none of a layer's as a shard, and so none of the layers' after it, which look like
an associative scan in pieces then, of which most comparisons are in vain. Which of them it is shows at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from hlo_verify.index.interned import made
from hlo_verify.passes.prove.prove import open_obligations, report_of, walk
from hlo_verify.program.ir import Module
from hlo_verify.program.sharding import Sharding
from hlo_verify.report import Report, Result, Verdict
from hlo_verify.session import EnoughError, Session

PATIENCE = 4
"""Comparisons in vain, one after another, by which it is no module of such layers."""

AS_MANY = 2
"""The walk makes up to so many times the terms of one that compares nothing."""


@dataclass(slots=True)
class Patience:
    """How many more comparisons may be in vain."""

    left: int = PATIENCE

    def answered(self, is_equal: bool) -> None:
        """A comparison came to its end. Raises `EnoughError`."""
        self.left = PATIENCE if is_equal else self.left - 1
        if not self.left:
            raise EnoughError


def decided_soon(
    logical: Module, partitioned: Module, placed: list[Sharding], terms: int, session: Session, started: float
) -> Report | None:
    """The proof of all results by a walk that compares values case by case; None where it ends early. The one that
    compared nothing made so many terms. Raises `TimeUpError`."""
    before, session.phase = session.phase, "values were compared case by case"
    try:
        with session.at_most(made() + AS_MANY * terms, made):
            outcome = walk(logical, partitioned, True, None, session=session, answered=Patience().answered)
    except EnoughError:
        session.phase = before
        return None
    session.phase = before
    names = logical.result_names
    if any(open_obligations(n, name, outcome, placed[n], decide=False) for n, name in enumerate(names)):
        return None
    results = [Result(n, name, Verdict.PROVED) for n, name in enumerate(names)]
    return report_of(logical, outcome, results, outcome.stages.device.size, started)
