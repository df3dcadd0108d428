"""A long-lived child that mutates and verifies, replaced when it takes too long, dies or has grown old."""

from __future__ import annotations

import functools
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from hlo_verify.limits import EFFORT_SETS, Limits
from hlo_verify.own_process import settle
from hlo_verify.workers import Lost, Pool
from hlo_verify.xla.execute import Executor
from tools.mutate.cases import Case, read_case
from tools.unread import unread

_AGE = 400
"""Requests that a child answers before it is replaced, so that what it keeps does not add up."""

Effort = Literal["normal", "brief"]
"""All that a verification may take, or a twentieth of its steps: 125 of one comparison."""

_BRIEF = 20


@dataclass(frozen=True, slots=True)
class Judgement:
    """What `hlo_verify.verify` says: the verdict (or `error`, `timeout`, `crash`), where its findings are, and why."""

    verdict: str
    locations: tuple[str, ...] = ()
    reason: str = ""
    seconds: float = 0.0
    witness: tuple[Any, ...] | None = None
    """The whole arguments of a witness, if it is refuted."""
    proved: tuple[int, ...] = ()
    """The results that are."""


class Worker:
    """A child process, started when it is first needed. `limit` is in seconds, for one verification."""

    def __init__(self, folder: Path, limit: float) -> None:
        self.folder = folder
        self.limit = limit
        self._pool: Pool[Request, Any] = Pool(answer, jobs=1, tasks=_AGE, tries=2)
        """Tries twice: a child that ends may have been killed for no fault of the request's."""

    def mutate(self, name: str, seed: tuple[int, ...]) -> Any:
        """A `Mutant` of the case, or None where there is none; a string where making it failed."""
        return self._ask(("mutate", name, seed), 120.0)

    def verify(self, name: str, mutant: bytes, refute: bool = True, effort: Effort = "normal") -> Judgement:
        started = time.monotonic()
        answer = self._ask(("verify", name, (mutant, refute, effort)), self.limit)
        if isinstance(answer, Judgement):
            return answer
        kind = "timeout" if answer.startswith("timeout") else "crash"
        return Judgement(kind, reason=answer, seconds=time.monotonic() - started)

    def _ask(self, what: tuple[str, str, Any], limit: float) -> Any:
        """The answer, or what came instead."""
        (found,) = self._pool.map([(self.folder, *what)], limit)
        if not isinstance(found, Lost):
            return found
        return f"{'timeout' if found.reason.startswith('took') else 'crash'}: the worker {found.reason}"

    def close(self) -> None:
        """End the child; a later request starts another."""
        self._pool.__exit__()


Request = tuple[Path, str, str, Any]
"""The folder of cases, what is to be done, the case's name, and what is given for it."""


def answer(request: Request) -> Any:
    """What the child does."""
    from tools.mutate.mutant import mutate

    _prepare()
    folder, what, name, given = request
    try:
        case = _case(folder, name)
        return mutate(case, given) if what == "mutate" else judge(case, *given)
    except Exception as error:
        return f"crash: {type(error).__name__}: {error}"


_case = functools.cache(read_case)


@functools.cache
def _prepare() -> None:
    settle()
    keep_devices()
    unread().__enter__()


def keep_devices() -> None:
    """Let the replays of this process share their virtual devices: starting them takes longer than the rest."""
    from hlo_verify.passes.refute import refute

    kept: dict[int, Executor] = {}

    class Kept(Executor):
        def close(self) -> None:
            pass

    def executor(devices: int, *, timeout: float = 60.0) -> Executor:
        if devices not in kept:
            kept[devices] = Kept(devices, timeout=timeout)
        return kept[devices]

    refute.Executor = executor  # type: ignore[assignment,misc]


def limits_of(effort: Effort) -> Limits:
    """The limits of a verification, of which "brief" leaves a twentieth where they count steps and work. It is the
    prover that is judged: no evaluation takes back what it proves."""
    whole = Limits()
    if effort == "brief":
        whole = replace(whole, **{name: max(1, getattr(whole, name) // _BRIEF) for name in EFFORT_SETS})
    return replace(whole, countersigned_work=0)


def judge(case: Case, mutant: bytes, refute: bool, effort: Effort = "normal") -> Judgement:
    """The verdict on a mutant. An exception of the verifier is one too: mutants are well formed."""
    import traceback

    import hlo_verify
    from hlo_verify.evaluate import dense
    from hlo_verify.passes.refute.witness_file import read

    started = time.monotonic()
    witness = None
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "witness"
            saved = file if refute else None
            report = hlo_verify.verify(case.logical, mutant, refute=refute, witness=saved, limits=limits_of(effort))
            if file.exists():
                witness = tuple(dense(blocks, 0) for blocks in read(file).inputs)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        why = f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"
        return Judgement("error", reason=why[:500], seconds=time.monotonic() - started)
    open_results = [result for result in report.results if result.verdict != "PROVED"]
    locations = {result.finding.location for result in open_results if result.finding is not None}
    reasons = [result.reason for result in open_results][:1] + [str(each) for each in report.unsupported[:2]]
    seconds = time.monotonic() - started
    proved = tuple(result.index for result in report.results if result.verdict == "PROVED")
    said = str(report.verdict), tuple(sorted(locations)), " | ".join(reasons)[:400]
    return Judgement(*said, seconds, witness, proved)
