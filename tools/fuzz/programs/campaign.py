"""Many pairs: what each computes against what the verifier says of it. Results are lines of JSON; a run can go on."""

from __future__ import annotations

import collections
import json
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tools.fuzz.programs.children import ABORT, judged
from tools.fuzz.programs.elementwise import DTYPES
from tools.fuzz.programs.machine import ENDLESS
from tools.fuzz.programs.pair import Pair, make_pair, with_result
from tools.fuzz.programs.truth import Outcome, Truth, compare, judge
from tools.fuzz.programs.verdict import Judgement, verify

Record = dict[str, Any]

REFUTED_OF = 10
"""One pair of so many is also refuted where it is not proved: that takes some five times as long as a small proof."""

NOT_VALID = "not valid StableHLO"
"""What mutation may make of a program: jaxlib's parser says so."""

DEFECT = "defect of the fuzzer"

FALSE = ("false proof", "false proof (NaN)", "false refutation")


@dataclass(frozen=True, slots=True)
class Options:
    families: tuple[str, ...]
    seed: int
    out: Path
    refuted_of: int = REFUTED_OF

    def family(self, number: int) -> str:
        """What kind of pair a number is of."""
        return self.families[number % len(self.families)]


def run(options: Options, number: int) -> Record:
    """The record of a pair; a defect of the fuzzer's own is one, and ends nothing."""
    record: Record = {"number": number, "family": options.family(number), "seed": options.seed}
    try:
        return _run(options, number, record)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        why = f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"
        return record | {"truth": "none", "verdict": "none", "surprise": DEFECT, "why": why[:300]}


def _run(options: Options, number: int, record: Record) -> Record:
    family = record["family"]
    pair = make_pair(family, options.seed, number)
    if pair is None:
        return record | {"truth": "none", "verdict": "none"}
    refute = options.refuted_of > 0 and number // len(options.families) % options.refuted_of == 0
    found, outcome, judgement = examine(pair, refute)
    record |= {"truth": str(outcome.truth), "verdict": judgement.verdict, "refute": refute, "mutated": pair.is_mutated}
    record["seconds"] = round(judgement.seconds, 4)
    if found is not None:
        record |= {"surprise": found, "why": outcome.why, "reason": judgement.reason, "done": pair.done}
        save(options.out, pair, record)
    return record


def examine(pair: Pair, refute: bool) -> tuple[str | None, Outcome, Judgement]:
    """What is wrong, if anything, with the truth and the verdict that it was seen from."""
    generator = np.random.default_rng([pair.seed % 2**32, pair.number])
    outcome = judge(pair, generator)
    judgement = verify(*pair.texts(), refute and outcome.why != ENDLESS)
    if judgement.verdict == "PROVED":
        if outcome.truth is Truth.EQUAL:
            outcome = judge(pair, generator)  # once more, since this is where it matters
        names = {Truth.DIFFERS: "false proof", Truth.NAN: "false proof (NaN)", Truth.MEANINGLESS: "meaningless proof"}
        if outcome.why == ENDLESS:
            return None, outcome, judgement  # a proof is of what comes out, not that anything does
        return names.get(outcome.truth), outcome, judgement
    if judgement.verdict == "REFUTED" and outcome.truth is not Truth.DIFFERS:
        outcome = at_witness(pair, judgement, generator, outcome)
        names = {Truth.EQUAL: "false refutation", Truth.UNCLEAR: "undefined refutation"}
        return names.get(outcome.truth), outcome, judgement
    refused = judgement.verdict == "error" and not (pair.is_mutated and NOT_VALID in judgement.reason)
    if judgement.verdict in ("crash", "slow") or refused:
        return judgement.verdict, outcome, judgement
    return None, outcome, judgement


def at_witness(pair: Pair, judgement: Judgement, generator: np.random.Generator, outcome: Outcome) -> Outcome:
    """What both compute with the inputs of a witness."""
    if judgement.witness is None:
        return outcome
    given = []
    for value, array in zip(pair.logical.body.arguments, judgement.witness, strict=True):
        one = np.asarray(array).astype(DTYPES[pair.logical.kinds[value].dtype])
        given.append(np.broadcast_to(one, (2, 1, *one.shape)))
    if not given:
        return outcome
    found = compare(pair, given, generator, least=1)
    if found.truth is not Truth.UNCLEAR:
        return found
    # What is not defined may be another result than the one that differs.
    alone = (compare(with_result(pair, k), given, generator, least=1) for k in range(len(pair.gives)))
    return next((each for each in alone if each.truth is Truth.DIFFERS), found)


def save(out: Path, pair: Pair, record: Record) -> Path:
    """Write a pair that anyone can look at."""
    folder = out / record["surprise"].replace(" ", "-") / f"{pair.family}-{pair.seed}-{pair.number}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, contents in zip(("logical", "partitioned"), pair.texts(), strict=True):
        (folder / f"{name}.mlir").write_text(contents)
    (folder / "record.json").write_text(json.dumps(record, indent=2) + "\n")
    return folder


def campaign(options: Options, numbers: Sequence[int], jobs: int) -> Iterator[Record]:
    """The records of all those pairs, as they come."""
    work = partial(run, options)
    if jobs == 0:
        yield from map(work, numbers)
        return
    for record in judged(work, numbers, jobs):
        yield {"family": options.family(record["number"]), "seed": options.seed} | record


def table(records: Iterable[Record], seconds: float | None = None) -> str:
    """A row for each family, and what was surprising."""
    records = list(records)
    columns = (
        ("equal", "PROVED"), ("equal", "UNKNOWN"), ("equal", "REFUTED"),
        ("differs", "PROVED"), ("differs", "UNKNOWN"), ("differs", "REFUTED"),
    )  # fmt: skip
    lines = ["| family | pairs | " + " | ".join(", ".join(each) for each in columns) + " | other |"]
    lines.append("|---" * (len(columns) + 3) + "|")
    for family in sorted({record["family"] for record in records}):
        mine = [record for record in records if record["family"] == family and record["truth"] != "none"]
        counted = collections.Counter((record["truth"], record["verdict"]) for record in mine)
        cells = [counted[each] for each in columns]
        row = [family, len(mine), *cells, len(mine) - sum(cells)]
        lines.append("| " + " | ".join(map(str, row)) + " |")
    surprises = collections.Counter(record["surprise"] for record in records if "surprise" in record)
    judged = sum(record["truth"] != "none" for record in records)
    with_refutation = sum(bool(record.get("refute")) for record in records)
    head = f"{judged} pairs, {with_refutation} of them with refutation"
    head += f", {seconds / max(judged, 1) * 1000:.0f} ms a pair" if seconds is not None else ""
    told = ", ".join(f"{kind}: {count}" for kind, count in sorted(surprises.items())) or "nothing surprising"
    return "\n".join([f"{head}; {told}.", "", *lines]) + "\n"


def wrong(records: Iterable[Record]) -> bool:
    return any(record.get("surprise") in (*FALSE, "crash", ABORT, DEFECT) for record in records)
