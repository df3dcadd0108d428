"""Verify programs that people distributed by hand, and print what became of them.

`python -m tools.byhand [FILE...] [--only NAME...] [--jobs N] [--records FILE] [--before FILE]`. FILE is a script of
`../shared/corpora/jax`: `labs/lab*.py` hold minimal pairs in a dictionary `LAB` (a reference, what is distributed,
arguments), the files of `programs/` whole ones in a dictionary `PROGS` (a function that verifies one; "wrong" in its
name says that it is). Without FILE all are run, each in a process of its own, since they import JAX. `--records` keeps
a line of JSON for each pair, and a pair that is there already is not run again. `--before` names records that an older
version wrote: what changed is listed. The exit status is 1 if a right one is REFUTED, or a wrong one PROVED.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT.parent / "shared" / "corpora" / "jax"
LIMIT = 60
"""Seconds of a processor for one pair: how busy the machine is makes no difference."""

RIGHTLY_REFUTED = {
    "gpipe_nan_grad": "0 times the NaN of a bubble is NaN in the gradients",
    "vocab_embedding_lookup": "tokens out of range",
    "xent_onehot_ref": "labels out of range",
}
"""What is right for the inputs that it is meant for, and differs for others."""

LABS = [f"labs/lab{number}" for number in ("", *range(2, 13))]
PROGRAMS = [f"programs/{name}" for name in ("s1", "s2", "s3", "ring", "gp")]


@dataclass(frozen=True, slots=True)
class Found:
    """The verdict of a pair (`error` if there was none), why, and the seconds of a processor that it took."""

    file: str
    name: str
    verdict: str
    why: str = ""
    seconds: float = 0.0

    @property
    def should_be(self) -> str:
        return "REFUTED" if "wrong" in self.name or self.name in RIGHTLY_REFUTED else "PROVED"

    @property
    def is_false(self) -> bool:
        return self.verdict in {"PROVED", "REFUTED"} - {self.should_be}

    def __str__(self) -> str:
        return f"{self.file} {self.name}: {self.verdict} in {self.seconds:.1f} s: {' '.join(self.why.split())[:200]}"


def run(file: str, only: Sequence[str], skip: Sequence[str], refute: bool) -> None:
    """Verify the pairs of one file in this process: a line of JSON for each."""
    os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=16")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    path = CORPUS / file
    os.chdir(path.parent)
    sys.path.insert(0, str(path.parent))
    module = importlib.import_module(path.name)
    pairs: Mapping[str, Any] = module.LAB if hasattr(module, "LAB") else module.PROGS
    signal.signal(signal.SIGPROF, _too_long)
    for name in pairs:
        if (only and name not in only) or name in skip:
            continue
        started = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, LIMIT)
        try:
            verdict, why = verify(pairs[name], hasattr(module, "LAB"), refute)
        except Exception as error:
            verdict, why = "error", f"{type(error).__name__}: {error}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps(asdict(Found(file, name, verdict, why, time.process_time() - started))), flush=True)


def verify(pair: Any, is_lab: bool, refute: bool) -> tuple[str, str]:
    """The verdict of a pair, and what the first result that is not PROVED says."""
    import jax

    import hlo_verify

    if is_lab:
        reference, distributed, arguments, *assumed = pair
        traced = [jax.jit(function).trace(*arguments) for function in (reference, distributed)]
        report = hlo_verify.verify(*traced, refute=refute, assume=[each for some in assumed for each in some])
    else:
        report = pair[0]()
    stopped = [result for result in report.results if result.verdict is not hlo_verify.Verdict.PROVED]
    return str(report.verdict), f"{stopped[0].reason} ({stopped[0].location})" if stopped else ""


def _too_long(*_: Any) -> None:
    raise TimeoutError(f"no verdict within {LIMIT} s of a processor")


def found_in(file: str, options: argparse.Namespace, kept: Sequence[Found]) -> Iterator[Found]:
    """Run one file in a process of its own."""
    skip = [each.name for each in kept if each.file == file]
    command = [sys.executable, "-m", "tools.byhand", file, "--worker", "--skip", *skip, "--only", *options.only]
    command += ["--refute"] if options.refute else []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        for line in process.stdout:
            if line.startswith('{"file"'):
                yield Found(**json.loads(line))
    if process.returncode:
        yield Found(file, "(the rest)", "error", f"the process ended with {process.returncode}")


def render(found: Sequence[Found], before: Sequence[Found]) -> str:
    """What became of all, with what is not as it should be, and what changed."""
    lines = ["| file | right | PROVED | wrong | REFUTED | seconds |", "|---|--:|--:|--:|--:|--:|"]
    for file in dict.fromkeys(each.file for each in found):
        those = [each for each in found if each.file == file]
        right = Counter(each.verdict for each in those if each.should_be == "PROVED")
        wrong = Counter(each.verdict for each in those if each.should_be == "REFUTED")
        counts = f"{right.total()} | {right['PROVED']} | {wrong.total()} | {wrong['REFUTED']}"
        lines.append(f"| {file} | {counts} | {sum(each.seconds for each in those):.0f} |")
    lines += ["", *(f"- {'FALSE: ' * each.is_false}{each}" for each in found if each.verdict != each.should_be)]
    verdicts = {(each.file, each.name): each.verdict for each in before}
    changed = [each for each in found if each.verdict != verdicts.get((each.file, each.name), each.verdict)]
    lines += [f"- was {verdicts[each.file, each.name]}: {each}" for each in changed]
    return "\n".join(lines)


def _kept(path: Path | None) -> list[Found]:
    return [Found(**json.loads(line)) for line in path.read_text().splitlines()] if path and path.exists() else []


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.byhand", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help="as labs/lab3 or programs/s1; all, if none is named")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="these pairs alone")
    parser.add_argument("--skip", nargs="*", default=[], metavar="NAME", help="all pairs but these")
    parser.add_argument("--refute", action="store_true", help="look for witnesses in labs too")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--records", type=Path, help="where lines of JSON are kept")
    parser.add_argument("--before", type=Path, help="records of an older version")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        run(options.files[0], options.only, options.skip, options.refute)
        return 0
    found = _kept(options.records)

    def add(file: str) -> None:
        for each in found_in(file, options, tuple(found)):
            found.append(each)
            if options.records:
                with options.records.open("a") as records:
                    records.write(json.dumps(asdict(each)) + "\n")

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(add, options.files or [*LABS, *PROGRAMS]))
    print(render(found, _kept(options.before)))
    return int(any(each.is_false for each in found))


if __name__ == "__main__":
    sys.exit(main())
