"""What a proof takes by layers and devices: `benchmarks/scale`.

A train step of a decoder of Llama 405B's width (`tools.scale`: forward, backward, Adam; sharded over `fsdp` x `tp`), of
each number of layers on each number of devices: lowered once, and verified in a process of its own, whose imports and
reading count. With `--wrong`, also with an all_reduce left out of its middle layer. Seconds are of a processor. Prints
a table as it goes, then by how much time grows with each: the exponent of the best power.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
MEBIBYTE = 1 << 20

_LOWER = """
import sys
from pathlib import Path
from tools.scale import decoder, lower
layers, devices, wrong = int(sys.argv[3]), int(sys.argv[4]), sys.argv[5] == "True"
halves = lower.pair(decoder.of(layers, devices), layers // 2 if wrong else None)
for file, half in zip(sys.argv[1:3], halves, strict=True):
    Path(file).write_bytes(half)
"""

# Prints one JSON object. `ru_maxrss` is in KiB on Linux.
_VERIFY = """
import time
import json, resource, sys
from pathlib import Path
import hlo_verify
from hlo_verify.own_process import settle
settle()
imported = time.process_time()
from hlo_verify.passes.load.load import load
from hlo_verify.program.ir import operations
logical, partitioned = load(Path(sys.argv[1])), load(Path(sys.argv[2]))
loaded = time.process_time()
report = hlo_verify.verify(logical, partitioned, time_limit=float(sys.argv[3]))
print(json.dumps({
    "imports": imported, "reading": loaded - imported, "proof": time.process_time() - loaded,
    "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10, "verdict": str(report.verdict),
    "operations": sum(1 for module in (logical, partitioned) for _ in operations(module.main)),
    "proved": sum(str(result.verdict) == "PROVED" for result in report.results), "results": len(report.results),
}))
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One pair of modules. Times are seconds of a processor, memory is bytes."""

    devices: int
    layers: int
    is_wrong: bool
    imports: float
    reading: float
    proof: float
    peak: int
    verdict: str
    operations: int
    """Of both modules."""
    proved: int
    results: int

    @property
    def seconds(self) -> float:
        return self.imports + self.reading + self.proof

    def __str__(self) -> str:
        what = "wrong" if self.is_wrong else "right"
        cells = (
            *(self.devices, self.layers, what, self.operations, f"{self.seconds:.1f} s", f"{self.reading:.1f} s"),
            *(f"{self.proof:.1f} s", f"{1000 * (self.reading + self.proof) / self.operations:.2f} s"),
            *(f"{self.peak // MEBIBYTE} MiB", f"{self.verdict}, {self.proved} of {self.results}"),
        )
        return f"| {' | '.join(map(str, cells))} |"


HEADER = (
    "| devices | layers | | operations | all of it | reading | proof | per 1000 operations | peak memory | verdict |\n"
    "|--:|--:|---|--:|--:|--:|--:|--:|--:|---|"
)


def measure(layers: int, devices: int, wrong: bool, limit: float) -> Row:
    """Lower a pair and verify it in a fresh process, which has so many seconds."""
    with tempfile.TemporaryDirectory(prefix="hlo-verify-scale-") as name:
        files = Path(name) / "logical.mlirbc", Path(name) / "partitioned.mlirbc"
        made = [sys.executable, "-c", _LOWER, *map(str, files), str(layers), str(devices), str(wrong)]
        subprocess.run(made, cwd=ROOT, check=True)
        command = [sys.executable, "-c", _VERIFY, *map(str, files), str(limit)]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return Row(devices, layers, wrong, **json.loads(done.stdout.splitlines()[-1]))


def growth(rows: Sequence[Row]) -> Iterator[str]:
    """How the time for reading and proving right modules grows, where several rows differ in nothing else."""
    right = [row for row in rows if not row.is_wrong]
    for what, other in (("devices", "layers"), ("layers", "devices")):
        for same in sorted({getattr(row, other) for row in right}):
            line = [row for row in right if getattr(row, other) == same]
            if len(line) > 1:
                sizes = np.log([getattr(row, what) for row in line])
                power = np.polyfit(sizes, np.log([row.reading + row.proof for row in line]), 1)[0]
                yield f"with {what}, at {same} {other}: exponent {power:.2f}"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks/scale", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--devices", type=int, nargs="+", default=[8, 512, 8192, 131072])
    parser.add_argument("--layers", type=int, nargs="+", default=[2, 8, 32, 126, 512])
    parser.add_argument("--wrong", action="store_true", help="also with one defect")
    parser.add_argument("--limit", type=float, default=300, help="seconds that one verification may take")
    parser.add_argument("-o", "--output", type=Path, help="where to write all rows, as JSON")
    chosen = parser.parse_args(argv)
    rows = []
    print(HEADER)
    for layers in chosen.layers:
        for devices in chosen.devices:
            for wrong in (False, True) if chosen.wrong else (False,):
                rows.append(measure(layers, devices, wrong, chosen.limit))
                print(rows[-1], flush=True)
    print("", *growth(rows), sep="\n")
    if chosen.output:
        chosen.output.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
