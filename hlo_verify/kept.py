"""Verdicts of files that were reached before, by everything that a report of them may depend on.

What is kept says what it said then: the modules are the same byte for byte, and so is the tool that decided. What time
or an interrupt ended, what could not be looked at, and what leans on a meaning that a user gave to a custom call is
decided anew each time, and so is everything of which more is wanted than a report: a witness, the modules that XLA
made, a second check (docs/decisions/keeping.md).
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from hlo_verify.asked import INTERRUPTED
from hlo_verify.cache.keys import key, this_tool
from hlo_verify.cache.store import Store
from hlo_verify.diagnostics import CODES, Input, Internal, Solver
from hlo_verify.jobs import Job
from hlo_verify.registered_calls import registered
from hlo_verify.render import Failure, Outcome
from hlo_verify.report import ChainReport, Report
from hlo_verify.tasks import Asking

FORM = "verdicts of files, 1"
"""What the key of such a verdict begins with. Another way to make it is another form."""

HOW = ("devices", "assume", "approximation", "refute", "effort", "time_limit")
"""What of `Asking` a report depends on by its value; `shardings` and `results` are files, which count by content."""

ANEW = ("keep", "witness", "recheck")
"""What asks for more than a report."""

HERE = ("project", "several", "jobs")
"""What no report depends on: custom calls of the project count as they are registered, and `several` with the name."""

ENVIRONMENT = ("JAX_", "LIBTPU_", "TPU_", "XLA_")
"""How variables of the environment begin that say how XLA partitions and runs."""

_ZIPPED = b"\x1f\x8b"


@dataclass(slots=True)
class Kept:
    """The verdicts of a store, as far as they are answers to what is asked."""

    store: Store
    asking: Asking
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    _keys: dict[Job, bytes] = field(default_factory=dict)
    """Of what was not found, to keep it by."""

    def find(self, job: Job) -> Outcome | None:
        """The report that was kept; None where there is none."""
        wanted = self._key(job)
        if wanted is None:
            return None
        found = self.store.find(wanted)
        if found is None:
            self._keys[job] = wanted
            return None
        return replace(found, kept=True)

    def keep(self, job: Job, found: Outcome) -> None:
        """Keep what was decided of a job that `find` did not find; not where its files are others by now."""
        wanted = self._keys.pop(job, None)
        if wanted is not None and not isinstance(found, Failure) and is_final(found) and self._key(job) == wanted:
            self.store.keep(wanted, found)

    def _key(self, job: Job) -> bytes | None:
        """None for what is decided anew each time."""
        if job.problem or any(getattr(self.asking, name) for name in ANEW):
            return None
        try:
            files = list(_files(job, self.asking))
        except (OSError, EOFError, zlib.error):  # who reads it says what is wrong with it
            return None
        if any(_occurs(target, content) for target in registered() for _, _, content in files):
            return None
        how = [repr((name, getattr(self.asking, name))) for name in HOW]
        where = sorted(each for each in self.environment.items() if each[0].startswith(ENVIRONMENT))
        parts = [part for role, path, content in files for part in (role, path, key(content))]
        return key(FORM, this_tool(), job.name, repr(self.asking.several), *how, repr(where), *parts)


def _files(job: Job, asking: Asking) -> Iterator[tuple[str, str, bytes]]:
    """What is read, with the name that reports have for it and what it is for."""
    dumps: list[tuple[str, Path | None]]
    if job.chain is not None:
        dumps = [(f"dump {n < job.chain.partitioned} {dump}", dump.path) for n, dump in enumerate(job.chain.dumps)]
    else:
        parts = job.partitioned if isinstance(job.partitioned, tuple) else (job.partitioned,)
        dumps = [("logical", job.logical), *(("partitioned", path) for path in parts), ("annotated", job.annotated)]
    for role, path in (*dumps, ("shardings", asking.shardings), ("results", asking.results)):
        yield role, str(path), b"" if path is None else _content(path)


def _content(path: Path) -> bytes:
    """What is in a file; of one that is compressed, what it holds."""
    content = path.read_bytes()
    return gzip.decompress(content) if content.startswith(_ZIPPED) else content


def _occurs(target: str, content: bytes) -> bool:
    """Whether a custom call may have that target: formats write what is no plain word in ways of their own."""
    return not target.isprintable() or not target.isascii() or "\\" in target or target.encode() in content


def is_final(found: Report | ChainReport) -> bool:
    """Whether it would be decided so again: neither time nor somebody who interrupted it had a part in it, and nothing
    that went wrong."""
    if isinstance(found, ChainReport):
        codes = [CODES.get(step.code) for step in found.steps]
        is_over = any(code is Solver.TIME_UP or isinstance(code, Input | Internal) for code in codes)
        return not (found.missing or is_over) and (found.report is None or is_final(found.report))
    return found.recheck is None and not any(
        (result.spent is not None and result.spent.phase)
        or INTERRUPTED in result.reason
        or isinstance(result.code, Input | Internal)
        for result in found.results
    )
