"""How long the linter takes: a real module, repeated until it is large, with its buffers.

`python -m tools.lint_speed NAME [--times N] [--profile]`: of `../shared/corpora/scheduled`. The computations of the
module stand N times one behind the other in one schedule; temporary buffers are shared by all, as XLA would.
"""

from __future__ import annotations

import argparse
import cProfile
import gzip
import pstats
import re
import resource
import sys
import time

from hlo_verify.hlo.buffers import parse_assignment, parse_values
from hlo_verify.hlo.text import parse_hlo
from hlo_verify.linter.lint import lint
from tools.lint_corpus import CORPUS


def repeated(module: str, times: int) -> str:
    """The text of a module whose entry computation holds that of another one some times."""
    head, _, rest = module.partition("\n")
    entry = rest.index("\nENTRY")
    others, main = rest[:entry], rest[entry:].strip().splitlines()
    names = re.compile(r"%([\w.-]+)")
    inner = [names.sub(rf"%\1__{k}", others) for k in range(times)]
    body: list[str] = []
    count = sum(" parameter(" in line for line in main)
    for k in range(times):
        for line in main[1:-1]:
            line = names.sub(rf"%\1__{k}", line)
            line = re.sub(r" parameter\((\d+)\)", lambda found, k=k: f" parameter({int(found[1]) + k * count})", line)
            body.append(line if k == times - 1 else line.replace("  ROOT ", "  "))
    tables = others[: others.index("\n%")] if "\n%" in others else ""
    bare = [each[each.index("\n%") :] for each in inner]
    head = re.sub(r"(input_output_alias|entry_computation_layout)=\{.*?\}\s*(?=, \w+=|$)", r"name=0", head)
    return "\n".join([head, tables, *bare, "", "ENTRY %all {", *body, "}"]) + "\n"


def repeated_buffers(text: str, times: int) -> str:
    """The buffer assignment of that: parameters and results have allocations of their own each time."""
    blocks = re.split(r"(?m)^(?=allocation )", text.split("\nTotal ")[0])
    lines = [blocks[0]]
    for number, block in enumerate(blocks[1:]):
        first, *values = block.rstrip().splitlines()
        own = "parameter" in first or "output" in first or "maybe-live-out" in first
        again = [[_value(line, k) for line in values] for k in range(times)]
        for k in range(times) if own else [0]:
            lines.append(re.sub(r"allocation \d+", f"allocation {number * times + k}", first) + "\n")
            lines += [f"{line}\n" for each in ([again[k]] if own else again) for line in each]
    return "".join(lines)


def _value(line: str, k: int) -> str:
    return re.sub(r"<(\d+) ([\w.-]+)", lambda found: f"<{int(found[1]) + k * 10**6} {found[2]}__{k}", line)


def repeated_values(text: str, times: int) -> str:
    """XLA's list of values of that."""
    found = []
    for k in range(times):
        renamed = re.sub(r"(?m)^(<\d+ |  )([\w.-]+)", rf"\1\2__{k}", text)
        found.append(re.sub(r"(?m)^<(\d+) ", lambda one, k=k: f"<{int(one[1]) + k * 10**6} ", renamed))
    return "\n".join(found)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.lint_speed", description=__doc__)
    parser.add_argument("name", nargs="?", default="real.v5p64.tf_big")
    parser.add_argument("--times", type=int, default=4)
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    files = {what: CORPUS / f"{arguments.name}.{what}.gz" for what in ("hlo", "buffers.txt", "values.txt")}
    texts = {what: gzip.decompress(path.read_bytes()).decode() for what, path in files.items()}
    module = repeated(texts["hlo"], arguments.times)
    buffers = repeated_buffers(texts["buffers.txt"], arguments.times)
    values = repeated_values(texts["values.txt"], arguments.times)
    started = time.process_time()
    parse_hlo(module), parse_assignment(buffers), parse_values(values)
    loaded = time.process_time() - started
    profile = cProfile.Profile()
    started = time.process_time()
    report = (
        profile.runcall(lint, module, buffers=buffers, values=values)
        if arguments.profile
        else lint(module, buffers=buffers, values=values)
    )
    taken = time.process_time() - started
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"{report.looked_at}, {len(report.findings)} findings")
    print(f"loading {loaded:.1f} s, in all {taken:.1f} s of a processor, {megabytes} MB")
    if arguments.profile:
        pstats.Stats(profile).sort_stats("cumulative").print_stats(45)
    return 0


if __name__ == "__main__":
    sys.exit(main())
