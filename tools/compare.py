"""Record what is said of pairs of modules, and compare two records.

    python -m tools.compare record BEFORE [fixtures zoo neuron live xla_spmd maxtext] [--reversed] [--only WORD...]
    python -m tools.compare diff BEFORE AFTER

A record is a file of JSON lines, one a pair: its whole report but the seconds, and what the processor took. All pairs
are verified one after another in one process: two records of one version in two orders (`--reversed`) say the same, or
something is remembered from one pair to the next. To record another version, run this file by its path in a checkout of
that version, with `PYTHONPATH` set to it.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

LIMIT = 600
"""Seconds for one pair."""

CORPORA = ("neuron", "live", "xla_spmd", "maxtext")
COLLECTIONS = ("fixtures", "zoo", *CORPORA)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two modules by a name that is given once; they are read when they are verified."""

    name: str
    modules: Callable[[], tuple[Any, Any]]
    devices: int | None = None


def pairs(root: Path, collection: str) -> Iterator[Pair]:
    """Those of a collection in a checkout, in one order."""
    if collection == "fixtures":
        yield from _fixtures(root / "testdata")
    elif collection == "zoo":
        yield from _zoo()
    else:
        from tools import corpora

        for each in corpora.CORPORA[collection](root.parent / "shared" / "corpora" / collection):
            yield Pair(f"{collection}/{each.name}", _files(each.logical, each.partitioned), each.devices)


def _fixtures(folder: Path) -> Iterator[Pair]:
    for path in sorted(folder.glob("*/manifest.json")):
        manifest = json.loads(path.read_text())
        for file in (manifest["partitioned"], *(twin["file"] for twin in manifest["broken"])):
            name = f"fixtures/{path.parent.name}/{file.partition('.')[0]}"
            yield Pair(name, _files(path.parent / manifest["logical"], path.parent / file))


def _files(logical: Path, partitioned: Path) -> Callable[[], tuple[Any, Any]]:
    return lambda: (logical, partitioned)


def _zoo() -> Iterator[Pair]:
    from tools.zoo.case import names

    for name in names():
        for half in ("right", "wrong"):
            yield Pair(f"zoo/{name}/{half}", _lowered(name, half))


def _lowered(name: str, half: str) -> Callable[[], tuple[Any, Any]]:
    def made() -> tuple[Any, Any]:
        import jax

        from tools.zoo.case import load, lower

        jax.clear_caches()  # what was traced for another case would be lowered with that one's source lines
        texts = lower(load(name))
        return texts.reference, getattr(texts, half)

    return made


def verified(pair: Pair, refute: bool = True) -> dict[str, Any]:
    """What is said of a pair: its report without seconds, or the error that there is instead."""
    import hlo_verify

    logical, partitioned = pair.modules()
    try:
        report = hlo_verify.verify(logical, partitioned, devices=pair.devices, refute=refute)
    except Exception as error:
        return {"verdict": "error", "reason": f"{type(error).__name__}: {error}"}
    said: dict[str, Any] = json.loads(json.dumps({"verdict": report.verdict, **asdict(report)}, default=str))
    return without_seconds(said)


def _too_long(*_: Any) -> None:
    raise TimeoutError(f"no verdict within {LIMIT} s")


def without_seconds(said: Any) -> Any:
    """The same without how long anything took."""
    if isinstance(said, dict):
        return {name: without_seconds(value) for name, value in said.items() if name != "seconds"}
    return [without_seconds(each) for each in said] if isinstance(said, list | tuple) else said


def record(chosen: Iterable[Pair], root: Path, file: Path, refute: bool) -> None:
    """Verify pairs one after another in this process, and write a line for each, without the path of the checkout."""
    signal.signal(signal.SIGALRM, _too_long)
    with file.open("w") as lines:
        for pair in chosen:
            begun = time.process_time()
            signal.alarm(LIMIT)
            report = verified(pair, refute)
            signal.alarm(0)
            line = {"pair": pair.name, "report": report, "processor": round(time.process_time() - begun, 2)}
            print(json.dumps(line).replace(f"{root}/", ""), file=lines, flush=True)


def read(file: Path) -> dict[str, dict[str, Any]]:
    """The lines of a record by the names of their pairs."""
    return {line["pair"]: line for line in map(json.loads, file.read_text().splitlines())}


def verdicts(report: Mapping[str, Any]) -> str:
    """The verdict, and how many results have which with which code: `UNKNOWN (3 PROVED, 1 UNKNOWN HV301)`."""
    counted = Counter(f"{each['verdict']} {each['code'] or ''}".strip() for each in report.get("results", ()))
    return f"{report['verdict']} ({', '.join(f'{times} {what}' for what, times in sorted(counted.items()))})"


def stages(report: Mapping[str, Any]) -> str:
    """How many values of the devices were found to be shards of logical ones."""
    return f"{len(report.get('stages', ()))} stages"


def lineages(report: Mapping[str, Any]) -> str:
    return str([(stage["operation"], stage["lineage"]) for stage in report.get("stages", ())])


PARTS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "verdicts": verdicts,
    "stages": stages,
    "lineages": lineages,
}
"""What two reports may differ in, the weightiest first; what is left is called details."""


def differs_in(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """The weightiest part in which two reports differ; empty where they say the same."""
    parts = (name for name, part in PARTS.items() if part(before) != part(after))
    return next(parts, "details" if any(fields(before, after)) else "")


def fields(before: Any, after: Any, at: str = "") -> Iterator[str]:
    """Each place where two reports hold different values, as `results.3.spent.inputs: 4, now 6`.

    A field that reports of one version do not have says nothing.
    """
    if isinstance(before, dict) and isinstance(after, dict):
        for name in (name for name in before if name in after):
            yield from fields(before[name], after[name], f"{at}.{name}" if at else name)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from fields(one, other, f"{at}.{number}")
    elif before != after:
        yield f"{at}: {_short(before)}, now {_short(after)}"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Lines that say how two records differ: pairs of only one, then those that differ, the weightiest first."""
    for name in sorted(before.keys() ^ after.keys()):
        yield f"{name}: only in the {'first' if name in before else 'second'}"
    both = [name for name in before if name in after]
    found = {name: differs_in(before[name]["report"], after[name]["report"]) for name in both}
    for part in (*PARTS, "details"):
        for name in (name for name in both if found[name] == part):
            one, other = before[name]["report"], after[name]["report"]
            if part in ("verdicts", "stages"):
                yield f"{name}: {PARTS[part](one)}, now {PARTS[part](other)}"
            else:
                differing = list(fields(one, other))
                yield f"{name}: {part}, {len(differing)} fields; {differing[0]}"
    counted = Counter(part or "nothing" for part in found.values())
    counts = [f"{part}: {counted[part]}" for part in ("nothing", *PARTS, "details") if counted[part]]
    yield f"{len(both)} pairs in both; differing in {', '.join(counts)}"
    times = (sum(one[name]["processor"] for name in both) for one in (before, after))
    yield "processor seconds: {:.0f}, now {:.0f}".format(*times)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.compare", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("record", help="verify pairs and write down what is said of them")
    making.add_argument("file", type=Path)
    making.add_argument("collections", nargs="*", choices=[*COLLECTIONS, []], help="fixtures, if none is named")
    making.add_argument("--root", type=Path, default=Path.cwd(), help="the checkout that they are taken from")
    making.add_argument("--no-refute", action="store_true", help="prove alone, and say where a proof stops")
    making.add_argument("--reversed", action="store_true", help="the last one first")
    making.add_argument("--only", nargs="+", metavar="WORD", help="pairs whose name has one of these words in it")
    comparing = commands.add_parser("diff", help="say in what two records differ; the exit status is 1 if they do")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "diff":
        before, after = read(arguments.before), read(arguments.after)
        print(*difference(before, after), sep="\n")
        same = before.keys() == after.keys() and not any(
            differs_in(before[name]["report"], after[name]["report"]) for name in before
        )
        return int(not same)
    sys.path.insert(0, str(arguments.root))
    collections = arguments.collections or ["fixtures"]
    chosen = [pair for collection in collections for pair in pairs(arguments.root, collection)]
    if arguments.only:
        chosen = [pair for pair in chosen if any(word in pair.name for word in arguments.only)]
    ordered = reversed(chosen) if arguments.reversed else chosen
    record(ordered, arguments.root, arguments.file, not arguments.no_refute)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
