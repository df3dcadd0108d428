"""How long XLA takes to compile a transformer, and hlo-verify to verify what XLA's partitioner made of it.

For each number of devices and of layers: lower the unrolled transformer (the one in `testdata/`, at its real sizes),
compile it as JAX does by default, capture it around the partitioner, and verify the pair. Compiling and verifying each
have a process of their own, so that peak memory is theirs; interpreter start and imports are not counted. Prints a
table and what became of the aims, and writes everything as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hlo_verify.xla.partition import partition

ROOT = Path(__file__).resolve().parent.parent
MEBIBYTE = 1 << 20

# Each prints one JSON object. `ru_maxrss` is in KiB on Linux.
_COMPILE = """
import json, resource, sys, time
import jax
from jax.sharding import AxisType
from tools.fixtures.training import build
devices, layers, kind, text = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
model = min(8, devices // 2)
mesh = jax.make_mesh((devices // model, model), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
lowered = build(mesh, kind, layers=layers).lower()
open(text, "w").write(lowered.as_text(debug_info=True))
start = time.perf_counter()
lowered.compile()
seconds = time.perf_counter() - start
print(json.dumps({"seconds": seconds, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10}))
"""

_VERIFY = """
import json, resource, sys, time
from pathlib import Path
from hlo_verify.passes.load.load import load
from hlo_verify.passes.diagnose.examine import prove
start = time.perf_counter()
logical, partitioned = load(Path(sys.argv[1])), load(Path(sys.argv[2]))
loaded = time.perf_counter()
report = prove(logical, partitioned)
end = time.perf_counter()
print(json.dumps({
    "seconds": end - start, "load": loaded - start, "verdict": report.verdict, "results": len(report.results),
    "stages": len(report.stages), "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10,
}))
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One transformer. Times are seconds, memory is bytes; `verify` is the median of its runs."""

    devices: int
    layers: int
    compile: float
    compile_peak: int
    verify: float
    verify_load: float
    verify_peak: int
    verdict: str
    results: int
    stages: int
    operations: int
    """Instructions of the partitioned module."""


@dataclass(frozen=True, slots=True)
class Aim:
    """A bound that a measured value should keep."""

    what: str
    value: float
    bound: float

    def __str__(self) -> str:
        verdict = "met   " if self.value <= self.bound else "MISSED"
        return f"{verdict}  {self.what}: {self.value:.2f}, at most {self.bound:g}"


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parse(argv)
    rows: list[Row] = []
    print(f"{'devices':>7} {'layers':>6} {'ops':>7}   {'compile':>18}   {'verify':>18}   {'ratio':>6}   verdict")
    for devices in arguments.devices:
        for layers in arguments.layers:
            row = measure(devices, layers, arguments.program, arguments.repeat)
            rows.append(row)
            print(_line(row), flush=True)
    aims = list(check(rows))
    print()
    for aim in aims:
        print(aim)
    document = {
        "program": arguments.program,
        "machine": {"processor": _processor(), "cores": os.cpu_count(), "python": platform.python_version()},
        "versions": _versions(),
        "rows": [asdict(row) for row in rows],
        "aims": [{**asdict(aim), "met": aim.value <= aim.bound} for aim in aims],
    }
    arguments.output.write_text(json.dumps(document, indent=2) + "\n")
    print(f"\nwritten to {arguments.output}")
    return 0


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks/run", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--devices", type=int, nargs="+", default=[8, 64, 512, 2048])
    parser.add_argument("--layers", type=int, nargs="+", default=[2, 8, 32])
    parser.add_argument("--program", choices=("forward", "gradients", "train"), default="gradients")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each verification; the median counts")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "benchmarks" / "scaling.json")
    return parser.parse_args(argv)


def measure(devices: int, layers: int, program: str, repeat: int) -> Row:
    """Compile once, verify `repeat` times, each in a fresh process."""
    with tempfile.TemporaryDirectory(prefix="hlo-verify-benchmark-") as name:
        text = Path(name) / "module.mlir"
        compiled = _child(_COMPILE, devices, str(devices), str(layers), program, str(text))
        with partition(text) as job:
            halves = job.wait()
            operations = halves.partitioned.read_text().count(" = ")
            verified = [_child(_VERIFY, 1, str(halves.annotated), str(halves.partitioned)) for _ in range(repeat)]
    return Row(
        devices=devices,
        layers=layers,
        compile=compiled["seconds"],
        compile_peak=compiled["peak"],
        verify=statistics.median(run["seconds"] for run in verified),
        verify_load=statistics.median(run["load"] for run in verified),
        verify_peak=max(run["peak"] for run in verified),
        verdict=verified[0]["verdict"],
        results=verified[0]["results"],
        stages=verified[0]["stages"],
        operations=operations,
    )


def _child(code: str, devices: int, *arguments: str) -> dict[str, Any]:
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_COMPILATION_CACHE": "false",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
    }
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def check(rows: Sequence[Row]) -> Iterator[Aim]:
    """The aims for which there are measurements."""
    for row in rows:
        if row.devices == 8 or row.devices >= 512:
            bound = 0.25 if row.devices == 8 else 0.1
            yield Aim(f"verify / compile, {row.devices} devices, {row.layers} layers", row.verify / row.compile, bound)
    by_size = {(row.devices, row.layers): row for row in rows}
    for (devices, layers), row in by_size.items():
        few = by_size.get((8, layers))
        if devices == 2048 and few:
            yield Aim(f"verify at 2048 devices / at 8, {layers} layers", row.verify / few.verify, 1.3)
        shallow = by_size.get((devices, 2))
        if layers == 32 and shallow:
            yield Aim(f"verify 32 layers / 2 layers, {devices} devices", row.verify / shallow.verify, 3)
    yield Aim("peak memory of verification, GiB", max(row.verify_peak for row in rows) / (1 << 30), 1)
    unproved = sum(row.verdict != "PROVED" for row in rows)
    yield Aim("modules that are not PROVED", unproved, 0)


def _line(row: Row) -> str:
    times = [
        f"{seconds:8.2f} s {peak / MEBIBYTE:5.0f} MiB"
        for seconds, peak in ((row.compile, row.compile_peak), (row.verify, row.verify_peak))
    ]
    size = f"{row.devices:7} {row.layers:6} {row.operations:7}"
    return f"{size}   {times[0]:>18}   {times[1]:>18}   {row.verify / row.compile:6.1%}   {row.verdict}"


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("hlo-verify", "jax", "jaxlib", "z3-solver")}


if __name__ == "__main__":
    sys.exit(main())
