"""`python -m tools.mutate run|table|show`: run a campaign, print its table, write one of its mutants."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path

from hlo_verify.own_process import settle
from tools import records as records_of
from tools.mutate import cases
from tools.mutate.campaign import REFUTED_OF, WITH_ALL_OF, Campaign, Options, Record, identity, read_records, surprise
from tools.mutate.mutant import mutate
from tools.mutate.table import render


def main() -> int:
    arguments = _parser().parse_args()
    if arguments.command == "table":
        print(render(read_records(arguments.out)), end="")
        return 0
    settle()  # the workers take over how many threads there are
    folder, names = _given(arguments)
    if arguments.command == "show":
        return _show(arguments, folder, names)
    if arguments.pairs is None:
        cases.require_proofs(folder, names)
    where = folder, arguments.out
    shares = arguments.refuted_of, arguments.with_all_of
    before = records_of.mend(arguments.out / "records.jsonl")
    seed = records_of.seed_of(before, arguments.seed, arguments.out) or 0
    options = Options(names, *where, seed, arguments.limit, arguments.keep_unknown, *shares)
    return _run(options, arguments.mutants, arguments.jobs, arguments.resume)


def _given(arguments: argparse.Namespace) -> tuple[Path, tuple[str, ...]]:
    """The good pairs, and the folder that has them."""
    if arguments.pairs is None:
        names = tuple(arguments.fixtures or cases.DEFAULT)
        cases.capture(arguments.cache, names)
        return arguments.cache, names
    there = cases.kept(arguments.pairs)
    names = tuple(name for name in there if not arguments.fixtures or name in arguments.fixtures)
    if not names:
        sys.exit(f"there are no such pairs in {arguments.pairs}: pytest -p tools.mutate.recording keeps some")
    return arguments.pairs, names


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="make mutants and judge them; the table at the end")
    show = commands.add_parser("show", help="write mutant NUMBER as text, next to its logical module")
    table = commands.add_parser("table", help="the table of what there is in OUT")
    for command in (run, show):
        command.add_argument("--fixtures", nargs="+", metavar="NAME", help="all whose small build is proved")
        said = "pairs of programs by hand that tools.mutate.recording kept, in place of fixtures"
        command.add_argument("--pairs", type=Path, metavar="DIR", help=said)
        command.add_argument("--cache", type=Path, default=cases.CACHE, help="where captured fixtures are kept")
        command.add_argument("--seed", type=int, help="0 if there is none, or that of the results in OUT")
    for command in (run, show, table):
        command.add_argument("--out", type=Path, default=Path("mutants"), help="results, and surprises as cases")
    run.add_argument("--mutants", type=int, default=3000)
    run.add_argument("--jobs", type=int, default=1)
    run.add_argument("--limit", type=float, default=60.0, help="seconds for one verification")
    run.add_argument("--resume", action="store_true", help="go on with the results in OUT")
    run.add_argument("--keep-unknown", action="store_true", help="also write what differs and is UNKNOWN as cases")
    said = "of so many mutants that differ, one is refuted too; with 0 none is, nor any other"
    run.add_argument("--refuted-of", type=int, default=REFUTED_OF, metavar="COUNT", help=said)
    said = "of the others that differ, one of so many may take all that a verification may, the rest a twentieth of it"
    run.add_argument("--with-all-of", type=int, default=WITH_ALL_OF, metavar="COUNT", help=said)
    show.add_argument("number", type=int)
    return parser


def _run(options: Options, count: int, jobs: int, resume: bool) -> int:
    records = read_records(options.out)
    if records and not resume:
        sys.exit(f"there are results in {options.out}: --resume goes on with them, --out puts new ones elsewhere")
    done = {record["number"] for record in records}
    started = time.monotonic()

    def report(record: Record) -> None:
        records.append(record)
        kind = surprise(record)
        made = len(records) - len(done)
        if kind not in (None, "unknown"):
            print(f"{kind}: {record['fixture']} {record['number']}: {record['operator']}: {record['what']}", flush=True)
        if made % 50 == 0:
            print(f"{len(records)}/{count}, {(time.monotonic() - started) / made:.2f} s a mutant", flush=True)

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    try:
        campaign = Campaign(options, report, {identity(each): each for each in records if "digest" in each})
        campaign.run([number for number in range(count) if number not in done], jobs)
    except KeyboardInterrupt:
        print("interrupted; --resume goes on from here", file=sys.stderr)
    print(render(records), end="")
    return 1 if any(surprise(record) in ("false-proved", "false-refuted") for record in records) else 0


def _show(arguments: argparse.Namespace, folder: Path, names: tuple[str, ...]) -> int:
    order = cases.in_turn(names)
    case = cases.read_case(folder, order[arguments.number % len(order)])
    mutant = mutate(case, (arguments.seed or 0, arguments.number))
    if mutant is None:
        sys.exit("no operator fits")
    arguments.out.mkdir(parents=True, exist_ok=True)
    for file, module in (("logical", case.logical), ("partitioned", case.partitioned), ("mutant", mutant.module)):
        (arguments.out / f"{file}.mlir").write_text(cases.as_text(module))
    print(f"{case.name}: {mutant.operator}: {mutant.what}\n{mutant.operation}\n{', '.join(mutant.own + mutant.near)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
