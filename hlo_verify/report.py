"""The result model: what was decided, for which results, and why. Renderers know nothing of the prover."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field


class Verdict(enum.StrEnum):
    """PROVED: equal for all inputs. REFUTED: a witness exists. UNKNOWN: neither."""

    PROVED = "PROVED"
    REFUTED = "REFUTED"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class Finding:
    """The operation of the partitioned module at which the meaning of a result is lost.

    Its operands are shards of logical values, its own value is none. `operation` is its
    StableHLO line, `location` the user's source line at fault (of the operation, or of what
    was left out before it), `found` its term, `expected` what the logical module has there,
    `nearest` the logical tensor that nearly matches, with what differs. Results that fail
    for one reason have equal findings.
    """

    operation: str
    location: str
    found: str
    expected: str = ""
    nearest: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """The verdict for one result of the module."""

    index: int
    name: str
    verdict: Verdict
    reason: str = ""
    location: str = ""
    finding: Finding | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """A cut point: the partitioned value of `operation` was found to be a shard of a logical tensor.

    `lineage` says which, as index notation; `shared` is true where an equal stage had been proved before.
    """

    operation: str
    location: str
    lineage: str
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """Everything a renderer needs. `seconds` is wall time from loaded modules to verdict."""

    name: str
    results: tuple[Result, ...]
    assumptions: tuple[str, ...]
    devices: int
    seconds: float
    stages: tuple[Stage, ...] = ()
    unsupported: tuple[str, ...] = field(default=())
    """Operations that were treated as opaque, each once, with its location and why."""

    @property
    def verdict(self) -> Verdict:
        """REFUTED if any result is, PROVED if all are, else UNKNOWN; a module without results proves nothing."""
        return worst(result.verdict for result in self.results)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """REFUTED if there is one, PROVED if there are only such, else UNKNOWN; of none, UNKNOWN."""
    found = set(verdicts)
    if Verdict.REFUTED in found:
        return Verdict.REFUTED
    return Verdict.PROVED if found == {Verdict.PROVED} else Verdict.UNKNOWN
