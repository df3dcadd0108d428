"""Many mutants, each judged by its values and by hlo-verify; results are lines of JSON, and a later run goes on."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hlo_verify.xla.execute import ExecutionError, Executor
from tools import records as records_of
from tools.mutate.cases import Case, as_text, in_turn, read_case
from tools.mutate.mutant import Mutant
from tools.mutate.truth import Judge, Outcome, Truth
from tools.mutate.worker import Effort, Judgement, Worker

Record = dict[str, Any]
Identity = tuple[str, str]
"""A fixture, and the digest of a mutant of it: different numbers may make the same one."""

_RUN_LIMIT = 30.0
"""Seconds for one run of a mutant on the devices; one that waits for ever is no program."""

_SIGNALLED = 0.3
"""Seconds in which the campaign learns of the signal that ended a child."""


REFUTED_OF = 40
"""Of the mutants that are seen to differ, one of so many is refuted too, which takes four times as long as not to prove
it: of these nothing but PROVED would be false. All others are."""

WITH_ALL_OF = 8
"""Of those that are not, one of so many may take all that a verification may; the others a twentieth, in a third of
the time. Comparisons that succeed take some dozens of steps, so that hardly any needs more to be PROVED."""


@dataclass(frozen=True, slots=True)
class Options:
    """`names` are the fixtures, captured in `cache`; mutant number n of a seed is always the same."""

    names: tuple[str, ...]
    cache: Path
    out: Path
    seed: int = 0
    limit: float = 60.0
    keep_unknown: bool = False
    refuted_of: int = REFUTED_OF
    with_all_of: int = WITH_ALL_OF

    def is_one_of(self, count: int, number: int) -> bool:
        """Whether a mutant is among one of so many, drawn by its number; none is, if that is 0."""
        return count > 0 and random.Random(f"{self.seed} {count} {number}").randrange(count) == 0


class Line:
    """What one thread works with: a worker that mutates and verifies, and the devices."""

    def __init__(self, options: Options, known: Mapping[Identity, Record]) -> None:
        self.options = options
        self.known = known
        self.worker = Worker(options.cache, options.limit)
        self.many: dict[int, Executor] = {}
        self.judges: dict[str, tuple[Case, Judge]] = {}

    def case(self, name: str) -> tuple[Case, Judge]:
        if name not in self.judges:
            case = read_case(self.options.cache, name)
            if case.devices not in self.many:
                self.many[case.devices] = Executor(case.devices, timeout=_RUN_LIMIT)
            self.judges[name] = case, Judge(case, self.many[case.devices])
        return self.judges[name]

    def run(self, number: int) -> tuple[Record, Mutant | None]:
        """Make mutant `number`, and judge it."""
        order = in_turn(self.options.names)
        name = order[number % len(order)]
        record: Record = {"number": number, "seed": self.options.seed, "fixture": name}
        try:
            _, judge = self.case(name)
        except (ValueError, ExecutionError) as error:
            return record | {"truth": "none", "why": str(error)[:300]}, None
        started = time.monotonic()
        mutant = self.worker.mutate(name, (self.options.seed, number))
        made = time.monotonic()
        if not isinstance(mutant, Mutant):
            return record | {"truth": "none", "why": str(mutant)}, None
        earlier = self.known.get((name, mutant.digest))
        if earlier is not None:
            return {**earlier, **record, "again": earlier["number"]}, None
        outcome = judge.judge(mutant.module)
        ran = time.monotonic()
        differs, options = outcome.truth is Truth.DIFFERS, self.options
        refute = options.is_one_of(options.refuted_of, number) or (options.refuted_of > 0 and not differs)
        effort: Effort = "normal" if refute or options.is_one_of(options.with_all_of, number) else "brief"
        judgement = self.worker.verify(name, mutant.module, refute, effort)
        if judgement.witness is not None and outcome.truth in (Truth.EQUAL, Truth.UNCLEAR):
            shown = judge.judge(mutant.module, judgement.witness)
            outcome = replace(shown, why=f"with the witness's arguments: {shown.why}")
        seconds = {"mutate": made - started, "run": ran - made, "verify": judgement.seconds}
        found = describe(mutant, outcome, judgement) | {
            "refute": refute,
            "effort": effort,
            "seconds": _rounded(seconds),
        }
        return record | found, mutant

    def close(self) -> None:
        self.worker.close()
        for executor in self.many.values():
            executor.close()


def _rounded(seconds: dict[str, float]) -> dict[str, float]:
    return {key: round(value, 3) for key, value in seconds.items()}


def describe(mutant: Mutant, outcome: Outcome, judgement: Judgement) -> Record:
    """The record of one mutant; `named` says whether a finding names the edited operation (see `mutant.lines`)."""
    return {
        "operator": mutant.operator,
        "what": mutant.what[:400],
        "operation": mutant.operation,
        "own": mutant.own,
        "near": mutant.near,
        "digest": mutant.digest,
        "truth": str(outcome.truth),
        "ratio": outcome.ratio,
        "why": outcome.why,
        "verdict": judgement.verdict,
        "wrongly_proved": sorted(set(outcome.differing) & set(judgement.proved)),
        "locations": judgement.locations,
        "reason": judgement.reason,
        "named": named(mutant, judgement.locations),
    }


def named(mutant: Mutant, locations: Iterable[str]) -> str:
    """`own`, `near`, `far`, or `none` where there is no finding."""
    found = set(locations)
    if not found:
        return "none"
    if found & set(mutant.own):
        return "own"
    return "near" if found & set(mutant.near) else "far"


def identity(record: Record) -> Identity:
    return record["fixture"], record["digest"]


def surprise(record: Record) -> str | None:
    """What kind of surprise a record is; None for those that are as they should be, or that tell nothing."""
    truth, verdict = record["truth"], record.get("verdict")
    if record.get("wrongly_proved") or (truth == Truth.DIFFERS and verdict == "PROVED"):
        return "false-proved"
    if truth == Truth.EQUAL and verdict == "REFUTED":
        return "false-refuted"
    if verdict in ("crash", "error", "timeout"):
        return str(verdict) if truth != Truth.INVALID else None
    is_open = truth == Truth.DIFFERS and verdict == "UNKNOWN" and record.get("refute", True)
    return "unknown" if is_open else None


def save(options: Options, record: Record, case: Case, mutant: Mutant, kind: str) -> Path:
    """Write a case that anyone can run again: both modules, and the record."""
    folder = options.out / "surprises" / kind / f"{record['fixture']}-{options.seed}-{record['number']}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "logical.mlir").write_text(as_text(case.logical))
    (folder / "mutant.mlir").write_text(as_text(mutant.module))
    (folder / "record.json").write_text(json.dumps(record, indent=2) + "\n")
    return folder


def read_records(out: Path) -> list[Record]:
    """What earlier runs found; a last line that was cut short is left out."""
    return records_of.read(out / "records.jsonl")


@dataclass(slots=True)
class Campaign:
    """Runs mutants on several lines of work, and keeps what comes of them. `report` is told each record."""

    options: Options
    report: Callable[[Record], None]
    known: dict[Identity, Record] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self, numbers: Sequence[int], jobs: int = 1) -> None:
        """All mutants of those numbers. Ctrl-C ends the children and raises KeyboardInterrupt; what is done is kept."""
        waiting = iter(numbers)
        lines = [Line(self.options, self.known) for _ in range(jobs)]
        self.options.out.mkdir(parents=True, exist_ok=True)
        try:
            with ThreadPoolExecutor(jobs) as pool:
                works = [pool.submit(self._work, line, waiting) for line in lines]
                try:
                    while not all(work.done() for work in works):
                        time.sleep(0.1)
                        if any(work.done() and work.exception() for work in works):
                            self.stopped.set()
                except KeyboardInterrupt:
                    self.stopped.set()
                    raise
            for work in works:
                work.result()
        finally:
            for line in lines:
                line.close()

    def _work(self, line: Line, waiting: Any) -> None:
        while not self.stopped.is_set():
            with self.lock:
                number = next(waiting, None)
            if number is None:
                return
            record, mutant = line.run(number)
            ended = record.get("verdict") == "crash" or record["truth"] == Truth.INVALID
            if ended and self.stopped.wait(_SIGNALLED):
                return  # a signal to all of the processes is no result: the number is run when the campaign goes on
            kind = surprise(record)
            if mutant is not None and kind is not None and (kind != "unknown" or self.options.keep_unknown):
                save(self.options, record, line.case(record["fixture"])[0], mutant, kind)
            with self.lock:
                if mutant is not None:
                    self.known.setdefault(identity(record), record)
                with (self.options.out / "records.jsonl").open("a") as file:
                    file.write(json.dumps(record) + "\n")
                self.report(record)
