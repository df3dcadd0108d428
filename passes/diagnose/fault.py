"""What is found to be wrong: a value of the partitioned module, and the source line to report."""

from __future__ import annotations

from dataclasses import dataclass

from hlo_verify.diagnostics import Mismatch
from hlo_verify.index.expr import Index
from hlo_verify.passes.diagnose.dataflow import Flow
from hlo_verify.passes.diagnose.shard_match import Match
from hlo_verify.passes.prove.stages import Step
from hlo_verify.program.ir import Location, Name
from hlo_verify.program.op_families import RESHAPES

IN_BETWEEN = 8
"""So many operations in a row that give a value another shape or order are seen through."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A value at fault, and the source line.

    `partial` is what the value is a part of, `offset` the index that is no start of a shard, `missing` the logical
    operation that was left out before it.
    """

    name: Name
    location: Location
    partial: Match | None = None
    elsewhere: bool = False
    """Whether what is partial was summed, but over other devices."""
    offset: Index | None = None
    missing: Step | None = None
    meant: Step | None = None
    """The logical operation that the value is most likely meant to be."""
    mismatch: Mismatch | None = None
    """What is wrong, where the terms alone do not say it; `why` says it in words."""
    why: str = ""


def moved(flow: Flow, name: Name) -> list[Name]:
    """The value, and those that it is only another shape or order of."""
    found = [name]
    while flow.op(found[-1]).name in RESHAPES and flow.sources(found[-1]) and len(found) < IN_BETWEEN:
        found.append(flow.sources(found[-1])[0])
    return found
