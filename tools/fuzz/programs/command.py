"""`python -m tools.fuzz programs`: random pairs of small programs, what they compute against what hlo-verify says."""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path

from tools import records as records_of
from tools.fuzz.programs.campaign import REFUTED_OF, Options, campaign, examine, save, table, wrong
from tools.fuzz.programs.families import FAMILIES
from tools.fuzz.programs.pair import Pair, make_pair
from tools.fuzz.programs.shrink import shrink


def main(argv: list[str]) -> int:
    given = _parser().parse_args(argv)
    if given.show is not None:
        return _show(given)
    before = records_of.mend(given.out / "records.jsonl") if given.resume else []
    seed = records_of.seed_of(before, given.seed, given.out)
    if seed is None and before:
        sys.exit(f"the results in {given.out} do not say which seed they are of: --seed does")
    seed = random.SystemRandom().randrange(2**31) if seed is None else seed
    options = Options(tuple(given.only or FAMILIES), seed, given.out, given.refuted_of)
    if any(record["family"] != options.family(record["number"]) for record in before):
        sys.exit(f"the results in {given.out} are of other families: --only names those")
    done = {record["number"] for record in before}
    numbers = [number for number in range(given.count) if number not in done]
    given.out.mkdir(parents=True, exist_ok=True)
    records, started = list(before), time.monotonic()
    print(f"seed {seed}", flush=True)
    with (given.out / "records.jsonl").open("a" if given.resume else "w") as file:
        try:
            for record in campaign(options, numbers, given.jobs):
                records.append(record)
                file.write(json.dumps(record) + "\n")
                file.flush()
                if "surprise" in record:
                    print(f"{record['surprise']}: {record['family']} {record['number']}: {record['why']}", flush=True)
        except KeyboardInterrupt:
            print("interrupted; --resume goes on from here", file=sys.stderr)
    print(table(records, None if before else time.monotonic() - started), end="")
    return 1 if wrong(records) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz programs", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="pairs, over all families")
    parser.add_argument("--seed", type=int, help="a fresh one if there is none; it is printed")
    parser.add_argument("--jobs", type=int, default=1, help="processes; with 0, all is done in this one")
    parser.add_argument("--only", nargs="+", choices=sorted(FAMILIES), metavar="FAMILY", help=", ".join(FAMILIES))
    parser.add_argument("--out", type=Path, default=Path("fuzzed"), help="results, and surprises as files")
    parser.add_argument("--resume", action="store_true", help="go on with the results in OUT, and with their seed")
    parser.add_argument(
        "--refuted-of", type=int, default=REFUTED_OF, help="of so many pairs, one is refuted too; 0: none"
    )
    parser.add_argument("--show", type=int, metavar="NUMBER", help="make that pair smaller, and write it to OUT")
    return parser


def _show(given: argparse.Namespace) -> int:
    families = tuple(given.only or FAMILIES)
    pair = make_pair(families[given.show % len(families)], given.seed or 0, given.show)
    if pair is None:
        sys.exit("there is no such pair: it came out too large")
    found, outcome, judgement = examine(pair, True)
    kind = found or "shown"
    if found is not None:
        refute = judgement.verdict == "REFUTED"
        pair = shrink(pair, lambda each: shown(each, refute) == found)
        _, outcome, judgement = examine(pair, refute)
    folder = save(given.out, pair, {"surprise": kind, "why": outcome.why, "done": pair.done, "truth": outcome.truth})
    print(f"{kind}: {outcome.truth} ({outcome.why}), {judgement.verdict} {judgement.reason}\n{folder}")
    return 0


def shown(pair: Pair, refute: bool) -> str | None:
    return examine(pair, refute)[0]
