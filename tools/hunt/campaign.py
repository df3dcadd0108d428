"""Many cases: what is surprising about each, made smaller and sorted. Results are lines of JSON; a run can go on."""

from __future__ import annotations

import collections
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tools.hunt.case import Case, from_data, to_data
from tools.hunt.causes import cause_of, signature
from tools.hunt.children import Child
from tools.hunt.families import make
from tools.hunt.kinds import ABORT, BY_VERDICT, FALSE_REFUTATION, REFUSED, Outcome, kind
from tools.hunt.known import KNOWN
from tools.hunt.minimise import RUNS, minimise
from tools.hunt.source import script

DRAWS = (0, 1, 2)
RUNS_OF_ABORTS = 25
"""Each takes a new child."""
ENOUGH = 6
"""Findings that look alike before they are made smaller, all of one cause, after which others of that look are counted
to it as they are."""
SAMPLED = 8
"""Of these, one in so many is looked at all the same."""

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """A finding, its smallest case, and what became of that."""

    kind: str
    case: Case
    outcome: Outcome
    cause: str
    signature: str


class Hunt:
    """What is known of the findings so far."""

    def __init__(self, child: Child, out: Path, seed: int, only: str = "") -> None:
        self.child, self.out, self.seed, self.only = child, out, seed, only
        self.looks: dict[str, list[str]] = collections.defaultdict(list)
        self.seen: collections.Counter[str] = collections.Counter()

    def one(self, number: int) -> Record:
        """The record of the case of that number; a finding is written to the folder."""
        family, case = make(self.seed, number, self.only)
        started = time.monotonic()
        outcome = self.judged(case)
        record: Record = {
            "number": number, "family": family, "truth": outcome.truth, "verdict": outcome.verdict,
            "operations": [step.op for step in case.steps], "gradient": case.pulled is not None, "mesh": case.mesh,
        }  # fmt: skip
        if outcome.verdict == "UNKNOWN":
            record |= {"codes": outcome.codes, "reason": outcome.reason[:200]}
        if outcome.truth == "invalid":
            record["why"] = outcome.why[:200]
        what = kind(outcome)
        if what is not None:
            record |= self.sorted(what, number, case, outcome)
        return record | {"seconds": round(time.monotonic() - started, 2)}

    def judged(self, case: Case) -> Outcome:
        outcome = self.child.examine(case, DRAWS)
        if kind(outcome) == FALSE_REFUTATION:
            outcome = self.child.examine(case, DRAWS, confirm=True)
        return outcome

    def sorted(self, what: str, number: int, case: Case, outcome: Outcome) -> Record:
        look = signature(what, case, outcome)
        before = self.looks[look]
        self.seen[look] += 1
        enough = 1 if what in (ABORT, REFUSED) else ENOUGH  # what XLA says of them tells more
        if len(before) >= enough and len(set(before)) == 1 and self.seen[look] % SAMPLED != 0:
            return {"kind": what, "cause": before[0], "as_it_is": True}
        found = self.smallest(what, case, outcome)
        before.append(found.cause)
        self.save(number, found)
        return {"kind": found.kind, "cause": found.cause, "signature": found.signature}

    def smallest(self, what: str, case: Case, outcome: Outcome) -> Found:
        verdict = what in BY_VERDICT or outcome.truth == "equal"
        draws = (outcome.draw,) if outcome.truth == "differs" else DRAWS

        def shows(smaller: Case) -> bool:
            found = self.child.examine(smaller, draws, verify=verdict, confirm=outcome.confirmed != "")
            if found.truth != outcome.truth or kind(found) != what:
                return False
            return what != ABORT or signature(what, smaller, found) == signature(what, case, outcome)

        smaller = minimise(case, shows, RUNS_OF_ABORTS if what == ABORT else RUNS)
        last = self.child.examine(smaller, draws, confirm=outcome.confirmed != "")
        what = kind(last) or what
        cause = cause_of(what, smaller, last, KNOWN)
        text = signature(what, smaller, last)
        return Found(what, smaller, last, cause.name if cause else f"new: {text}", text)

    def save(self, number: int, found: Found) -> None:
        """The smallest case, as data and as a script that anyone can run."""
        folder = self.out / found.kind.replace(" ", "-").replace(",", "")
        folder.mkdir(parents=True, exist_ok=True)
        data = {"seed": self.seed, "number": number, "cause": found.cause, "outcome": asdict(found.outcome)}
        (folder / f"{number}.json").write_text(json.dumps(data | {"case": to_data(found.case)}, indent=1) + "\n")
        head = f'"""{found.cause}\n\n{found.outcome.why}\n{found.outcome.verdict}: {found.outcome.reason}\n"""\n'
        (folder / f"{number}.py").write_text(head + script(found.case, found.outcome.draw))


def sorted_again(out: Path, records: Sequence[Record]) -> list[Record]:
    """The records of a folder with the causes that its smallest cases have by now."""
    now: dict[tuple[str, str], str] = {}
    by_number: dict[int, str] = {}
    for path in sorted(out.glob("*/*.json")):
        data = json.loads(path.read_text())
        outcome = Outcome(**data["outcome"] | {"codes": tuple(data["outcome"]["codes"])})
        case, what = from_data(data["case"]), kind(outcome)
        if what is None:
            continue
        cause = cause_of(what, case, outcome, KNOWN)
        by_number[data["number"]] = cause.name if cause else f"new: {signature(what, case, outcome)}"
        now[what, data["cause"]] = by_number[data["number"]]
    found = []
    for record in records:
        if "cause" in record:
            old = now.get((record["kind"], record["cause"]), record["cause"])
            record = record | {"cause": by_number.get(record["number"], old)}
        found.append(record)
    return found


def hunt(hunt_: Hunt, first: int, until: float) -> Iterator[Record]:
    """Records, until the time is up. What the tool itself does wrong is a record too, and ends nothing."""
    number = first
    while time.monotonic() < until:
        try:
            yield hunt_.one(number)
        except (RuntimeError, ValueError, TypeError, KeyError, IndexError, AssertionError) as error:
            yield {"number": number, "family": "-", "truth": "none", "verdict": "", "kind": "defect of the hunt",
                   "cause": f"{type(error).__name__}: {error}"[:300]}  # fmt: skip
        number += 1
