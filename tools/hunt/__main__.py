"""`python -m tools.hunt --minutes N --seed S`: random programs through XLA's partitioner, against a verdict."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import random
import sys
import time
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from tools.hunt.campaign import Hunt, hunt, sorted_again
from tools.hunt.children import Child
from tools.hunt.families import EXPLICIT, FAMILIES
from tools.hunt.kinds import OURS
from tools.hunt.tables import table


def main(argv: list[str]) -> int:
    given = _parser().parse_args(argv)
    seed = random.SystemRandom().randrange(2**31) if given.seed is None else given.seed
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / "records.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()] if given.resume and path.exists() else []
    first = max((each["number"] for each in records), default=given.first - 1) + 1
    if given.sort:
        print(table(sorted_again(given.out, [json.loads(line) for line in path.read_text().splitlines()])))
        return 0
    print(f"seed {seed}, jaxlib {importlib.metadata.version('jaxlib')}", flush=True)
    with Child() as child, path.open("a" if given.resume else "w") as file:
        until = time.monotonic() + 60 * given.minutes
        try:
            for record in hunt(Hunt(child, given.out, seed, given.only or ""), first, until):
                records.append(record)
                file.write(json.dumps(record) + "\n")
                file.flush()
                if "kind" in record and not record.get("as_it_is"):
                    print(f"{record['number']} {record['family']}: {record['kind']}: {record['cause']}", flush=True)
        except KeyboardInterrupt:
            print("interrupted; --resume goes on from here", file=sys.stderr)
    found = table(records)
    (given.out / "table.md").write_text(found)
    print(found)
    return int(any(each.get("kind") in OURS for each in records))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.hunt", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, help="a fresh one if there is none; it is printed")
    parser.add_argument("--first", type=int, default=0, metavar="NUMBER", help="the case to begin with")
    parser.add_argument("--only", choices=[*sorted(FAMILIES), EXPLICIT], help="programs around this family alone")
    parser.add_argument("--out", type=Path, default=Path("hunted"), help="records, and findings as scripts")
    parser.add_argument("--resume", action="store_true", help="go on with the records in OUT, of the same seed")
    parser.add_argument("--sort", action="store_true", help="no hunt: the table of OUT, by the causes known by now")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
