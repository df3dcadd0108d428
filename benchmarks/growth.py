"""Whether a process that verifies many modules grows: `python -m benchmarks.growth --modules 1000`.

Small pairs, each of other sizes, meshes and custom calls than the others, right and wrong, are verified one after
another, or in threads. What a process has then, beside what it had after the first ones, is printed: objects of Python
by type, bytes that Python allocated, and what is kept without a session. Ends with status 1 where it grew.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import hlo_verify
from hlo_verify import memory

OBJECTS = 200
"""So many objects more of one type are growth: caches of a fixed size may fill up, and modules are imported late."""

BYTES = 1 << 20
"""So many bytes more are growth."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a process has, after everything that can be freed is."""

    objects: Counter[str]
    bytes: int
    outside: dict[str, int]
    """What is kept without a session."""

    @classmethod
    def now(cls) -> Held:
        gc.collect()
        objects = Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())
        return cls(objects, tracemalloc.get_traced_memory()[0], memory.outside())

    def growth(self, before: Held) -> dict[str, int]:
        """What is more than it was, by name."""
        grown = {name: n - before.objects[name] for name, n in self.objects.items()}
        found = {name: n for name, n in grown.items() if n >= OBJECTS}
        if self.bytes - before.bytes >= BYTES:
            found["bytes"] = self.bytes - before.bytes
        kept = {f"without a session: {name}": n for name, n in self.outside.items() if n != before.outside.get(name)}
        return found | kept


def pairs(count: int) -> Iterator[tuple[str, str, bool]]:
    """Pairs of modules, no two alike, and whether they are equal: the sum of a custom call's results over all devices,
    in every third pair over one."""
    for n in range(count):
        devices, width, is_right = 2 ** (1 + n % 3), 8 + n, n % 3 != 2
        yield _module(width * devices, width, devices, None), _module(width, width, devices, n, is_right), is_right


def _module(size: int, width: int, devices: int, number: int | None, is_right: bool = True) -> str:
    placed = "" if number is not None else f' {{mhlo.sharding = "{{devices=[{devices}]<=[{devices}]}}"}}'
    groups = f"dense<[{list(range(devices))}]> : tensor<1x{devices}xi64>"
    adds = "^bb0(%a: tensor<f32>, %b: tensor<f32>):\n%c = stablehlo.add %a, %b : tensor<f32>\n"
    adds += "stablehlo.return %c : tensor<f32>"
    reduced = (
        f'%r = "stablehlo.all_reduce"(%s) <{{replica_groups = {groups}, use_global_device_ids, '
        "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> ({\n"
        f"{adds}\n}}) : (tensor<f32>) -> tensor<f32>"
        if number is not None and is_right
        else "%r = stablehlo.add %s, %zero : tensor<f32>"
    )
    return f"""module @pair{width} attributes {{mhlo.num_partitions = {devices} : i32, mhlo.num_replicas = 1 : i32}} {{
func.func public @main(%x: tensor<{size}xf32>{placed}) -> (tensor<f32> {{mhlo.sharding = "{{replicated}}"}}) {{
%zero = stablehlo.constant dense<0.0> : tensor<f32>
%e = stablehlo.constant dense<{width}.5> : tensor<{size}xf32>
%f = stablehlo.multiply %x, %e : tensor<{size}xf32>
%g = stablehlo.custom_call @growth.kernel(%f) {{backend_config = "{width}"}}
  : (tensor<{size}xf32>) -> tensor<{size}xf32>
%s = stablehlo.reduce(%g init: %zero) applies stablehlo.add across dimensions = [0]
  : (tensor<{size}xf32>, tensor<f32>) -> tensor<f32>
{reduced}
return %r : tensor<f32>
}} }}
"""


def verify(pair: tuple[str, str, bool], refute: bool) -> None:
    """Verify one pair. Raises AssertionError where the verdict is wrong."""
    logical, partitioned, is_right = pair
    session = hlo_verify.Session()
    hlo_verify.register_custom_call("growth.kernel", trailing=0, session=session)
    report = hlo_verify.verify(logical, partitioned, refute=refute, session=session)
    assert (report.verdict is hlo_verify.Verdict.PROVED) is is_right, report.results


def growth(modules: int, first: int, threads: int = 1, refute: bool = False) -> dict[str, int]:
    """By how much a process grows that verifies so many pairs, after the `first` ones."""
    every = list(pairs(modules))
    tracemalloc.start()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda pair: verify(pair, refute), every[:first]))
        before = Held.now()  # nothing is verified meanwhile: who lists all objects holds what others are making
        list(pool.map(lambda pair: verify(pair, refute), every[first:]))
        found = Held.now().growth(before)
    tracemalloc.stop()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--modules", type=int, default=1000)
    parser.add_argument("--first", type=int, default=100, help="how many to verify before growth is measured")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--refute", action="store_true", help="look for witnesses of the wrong ones too")
    chosen = parser.parse_args()
    found = growth(chosen.modules, chosen.first, chosen.threads, chosen.refute)
    print("\n".join(f"{count:12,} {name}" for name, count in found.items()) or "nothing grew")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
