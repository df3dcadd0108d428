"""A long-lived child that mutates and verifies, replaced when it takes too long, dies or has grown old."""

from __future__ import annotations

import multiprocessing
import signal
import tempfile
import time
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

from hlo_verify.limits import EFFORT_SETS, Limits
from hlo_verify.own_process import settle
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
        self._process: Any = None
        self._connection: Any = None
        self._answered = 0

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

    def _ask(self, request: Any, limit: float) -> Any:
        """The answer. A child that ends meanwhile may have been killed for no fault of the request's: it is asked once
        more."""
        answer, is_lost = self._once(request, limit)
        return self._once(request, limit)[0] if is_lost else answer

    def _once(self, request: Any, limit: float) -> tuple[Any, bool]:
        """The answer, or what came instead; and whether the child ended."""
        is_lost = False
        if self._process is None or self._answered >= _AGE:
            self.close()
            self._start()
        try:
            self._connection.send(request)
            if self._connection.poll(limit):
                self._answered += 1
                return self._connection.recv(), False
            why = f"timeout: no answer within {limit:g} s"
        except (EOFError, ConnectionError):
            self._process.join(5)
            why, is_lost = f"crash: the worker ended with status {self._process.exitcode}", True
        self.close()
        return why, is_lost

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, there = context.Pipe()
        self._process = context.Process(target=serve, args=(there, self.folder), daemon=True)
        self._process.start()
        there.close()
        self._answered = 0
        self._connection.recv()

    def close(self) -> None:
        """End the child; a later request starts another."""
        if self._process is not None:
            self._connection.close()
            self._process.kill()
            self._process.join()
        self._process = self._connection = None


def serve(connection: Connection[Any, Any], folder: Path) -> None:
    """The child: answer requests until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    settle()
    keep_devices()
    with unread():
        connection.send("ready")
        _answer(connection, folder)


def _answer(connection: Connection[Any, Any], folder: Path) -> None:
    from tools.mutate.mutant import mutate

    cases: dict[str, Case] = {}
    while True:
        try:
            what, name, given = connection.recv()
        except EOFError:
            return
        if name not in cases:
            cases[name] = read_case(folder, name)
        try:
            answer: Any = mutate(cases[name], given) if what == "mutate" else judge(cases[name], *given)
        except Exception as error:
            answer = f"crash: {type(error).__name__}: {error}"
        connection.send(answer)


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
    """The limits of a verification, of which "brief" leaves a twentieth where they count steps and work."""
    whole = Limits()
    if effort == "normal":
        return whole
    return replace(whole, **{name: max(1, getattr(whole, name) // _BRIEF) for name in EFFORT_SETS})


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
