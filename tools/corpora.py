"""Verify modules that nobody here wrote, and print what became of them.

`python -m tools.corpora [xla_spmd live neuron maxtext] [--folder DIR] [--jobs N] [--only NAME...]`. The folder is
`../shared/corpora`; its README says what it holds. Of XLA's own tests, a table of families by verdict; of all, what is
not as it should be, and what took longest. The exit status is 1 if a module that is right is REFUTED, or one that is
wrong is not.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hlo_verify.workers import Lost, Pool

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 120
"""Seconds for one pair."""

FAMILIES = {
    "convolutions": "Conv",
    "gather": "Gather(?!Scatter)(?!From)|UnpartitionedGather",
    "scatter": "Scatter",
    "windowed einsums": "Windowed",
    "einsums and dots": "Einsum|Dot|PartiallyReplicateRHS|MatchDot",
    "dynamic slices": "Dynamic|Dus",
    "slices, pads, concatenations": "Slice|Pad|Concat|Wrap",
    "sort and top-k": "Sort|TopK",
    "scans": "^Scan",
    "windows and reductions": "Window|Reduce",
    "manual and unreduced": "Manual|Unreduced|SingleDevice|Maximal",
    "reshapes and transposes": "Resh|Transpose|AllToAll|PartialReplicate|TileTo",
    "in- and outfeed, random numbers": "feed|Rng",
}
"""Families by what is in the name of a test, the first that fits."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two modules, and what is known of them: `equal`, `different`, `believed` (equal), `not-measured` or `no-pair`."""

    name: str
    logical: Path
    partitioned: Path
    truth: str
    devices: int | None = None

    @property
    def family(self) -> str:
        return next((family for family, pattern in FAMILIES.items() if re.search(pattern, self.name)), "others")


@dataclass(frozen=True, slots=True)
class Found:
    """The verdict (`input` for an error of input, `error` for any other), and what it took."""

    pair: Pair
    verdict: str
    proved: int = 0
    results: int = 0
    why: str = ""
    seconds: float = 0.0
    megabytes: int = 0

    @property
    def is_wrong(self) -> bool:
        """Whether the verdict contradicts what is known."""
        if self.verdict == "error":
            return True
        if self.pair.truth in ("different", "no-pair"):
            return self.verdict == "PROVED" or (self.pair.truth == "different" and self.verdict != "REFUTED")
        return self.verdict == "REFUTED" and self.pair.truth != "not-measured"


def xla_spmd(folder: Path) -> Iterator[Pair]:
    for line in (folder / "index.jsonl").read_text().splitlines():
        entry = json.loads(line)
        before, after = (folder / f"{entry['name']}.{half}.hlo.gz" for half in ("prespmd", "spmd"))
        yield Pair(entry["name"], before, after, entry["truth"], entry["devices"])


def live(folder: Path) -> Iterator[Pair]:
    """What XLA made of a program against the plain one; and a `shard_map` against the plain one, else what XLA made of
    the sharded one against that."""
    for path in sorted(folder.glob("*.spmd.hlo.gz")):
        name = path.name.removesuffix(".spmd.hlo.gz")
        plain, sharded = (folder / f"{name}.{half}.stablehlo.mlir.gz" for half in ("logical", "sharded"))
        yield Pair(f"{name} (plain)", plain, path, "different")
        by_hand = b"sdy.manual_computation" in gzip.decompress(sharded.read_bytes())
        yield Pair(f"{name} (sharded)", *((plain, sharded) if by_hand else (sharded, path)), "different")


def neuron(folder: Path) -> Iterator[Pair]:
    for whole, rank, truth in (
        ("llama_tp1_golden_result_0.hlo", "llama_tp2_golden_result.hlo", "equal"),
        ("llama_tp1_golden_result_0.hlo", "llama_tp2_missing_all_reduce.hlo", "no-pair"),
        ("entangle_llama_tp1_layer1.pb", "entangle_llama_tp2_layer1.pb", "equal"),
        ("gpt2_tp_1_n_layer_2.hlo", "gpt2_tp_2_n_layer_2.hlo", "equal"),
    ):
        yield Pair(rank.split(".")[0], folder / f"{whole}.gz", folder / f"{rank}.gz", truth)


def maxtext(folder: Path) -> Iterator[Pair]:
    for path in sorted(path for path in folder.iterdir() if path.is_dir()):
        yield Pair(path.name, path / "logical.hlo.pb.gz", path / "partitioned.hlo.pb.gz", "believed")


CORPORA = {"xla_spmd": xla_spmd, "live": live, "neuron": neuron, "maxtext": maxtext}


def verify(pair: Pair) -> Found:
    """Verify a pair in this process."""
    import hlo_verify
    from hlo_verify.diagnostics.errors import InputError

    started = time.process_time()

    def found(verdict: str, why: str = "", proved: int = 0, results: int = 0) -> Found:
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        return Found(pair, verdict, proved, results, why, time.process_time() - started, memory)

    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(LIMIT)
    try:
        report = hlo_verify.verify(pair.logical, pair.partitioned, devices=pair.devices)
    except InputError as error:
        return found("input", str(error))
    except Exception as error:
        return found("error", f"{type(error).__name__}: {error}")
    finally:
        signal.alarm(0)
    stopped = [result for result in report.results if result.verdict is not hlo_verify.Verdict.PROVED]
    why = f"{stopped[0].reason} ({stopped[0].location})" if stopped else ""
    return found(str(report.verdict), why, len(report.results) - len(stopped), len(report.results))


def _too_long(*_: Any) -> None:
    raise TimeoutError(f"no verdict within {LIMIT} s")


def table(found: Sequence[Found]) -> str:
    """Markdown: for each family, how many have which verdict."""
    verdicts = ("PROVED", "UNKNOWN", "REFUTED", "input", "error")
    lines = [f"| family | {' | '.join(verdicts)} |", f"|---|{'--:|' * len(verdicts)}"]
    families = [*FAMILIES, "others"]
    for family in (*families, "all"):
        count = Counter(each.verdict for each in found if family in (each.pair.family, "all"))
        if count:
            lines.append(f"| {family} | {' | '.join(str(count[verdict] or '') for verdict in verdicts)} |")
    return "\n".join(lines)


def render(corpus: str, found: Sequence[Found]) -> str:
    """What became of one corpus."""
    parts = [f"## {corpus}"]
    for truth in dict.fromkeys(each.pair.truth for each in found):
        those = [each for each in found if each.pair.truth == truth]
        proved = sum(each.verdict == "PROVED" for each in those)
        parts.append(f"\n{truth}: {proved} of {len(those)} PROVED ({proved / len(those):.1%})\n")
        if corpus == "xla_spmd" and len(those) > 1:
            parts.append(table(those))
    open_ = [each for each in found if each.verdict != "PROVED" or each.is_wrong]
    if open_:
        parts.append("\nNot PROVED:\n")
    for each in open_:
        mark = "WRONG: " if each.is_wrong else ""
        share = f", {each.proved} of {each.results} results PROVED" if each.results > 1 else ""
        parts.append(f"- {mark}{each.pair.name} ({each.pair.truth}): {each.verdict}{share}: {each.why[:160]}")
    slow = sorted(found, key=lambda each: -each.seconds)[:3]
    longest = ", ".join(f"{each.pair.name} {each.seconds:.1f} s" for each in slow)
    memory = max(each.megabytes for each in found)
    parts.append(
        f"\nProcessor time: {sum(each.seconds for each in found):.0f} s; longest {longest}; {memory} MB at most"
    )
    return "\n".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.corpora", description=__doc__)
    parser.add_argument("corpora", nargs="*", choices=[*CORPORA, []], help="all, if none is named")
    parser.add_argument("--folder", type=Path, default=ROOT.parent / "shared" / "corpora")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these pairs alone")
    arguments = parser.parse_args()
    wrong = False
    workers: Pool[Pair, Found] = Pool(verify, jobs=arguments.jobs, tries=2)
    with workers as pool:
        for corpus in arguments.corpora or CORPORA:
            pairs = list(CORPORA[corpus](arguments.folder / corpus))
            if arguments.only:
                pairs = [pair for pair in pairs if pair.name in arguments.only]
            if pairs:
                answers = zip(pairs, pool.map(pairs), strict=True)
                found = [Found(pair, "error", why=at.reason) if isinstance(at, Lost) else at for pair, at in answers]
                print(render(corpus, found), end="\n\n", flush=True)
                wrong = wrong or any(each.is_wrong for each in found)
    return int(wrong)


if __name__ == "__main__":
    from tools import corpora  # by the name that workers know it by

    sys.exit(corpora.main())
