"""`python -m tools.zoo [NAMES] [--run]`: verify the cases of the bug zoo, and with `--run` compute them too."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from hlo_verify.report import Verdict
from tools.zoo.case import ROOT, Case, load, names
from tools.zoo.judge import Judged, judge

TOLERANCE = 1e-4
"""Of the right program: they compute in f32. A wrong one must be ten times as far from the reference."""


def run(cases: list[Case]) -> dict[str, tuple[float, float]]:
    """The distances of each case's two programs from the reference, computed in a child that has the devices."""
    flags = f"--xla_force_host_platform_device_count={max(case.devices for case in cases)}"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "tools.zoo.run", *(case.name for case in cases)]
    lines = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = (line.split() for line in lines.splitlines())
    return {name: (float(near), float(far)) for name, near, far in rows}


def row(judged: Judged) -> str:
    case = judged.case
    line = "yes" if judged.names_the_line else f"{case.line}, not {', '.join(judged.locations) or 'none'}"
    right = f"{judged.right.verdict} {judged.right_seconds:.2f}"
    wrong = f"{judged.wrong.verdict} {judged.wrong_seconds:.2f}"
    code = "yes" if case.code in judged.codes else f"{case.code}, not {', '.join(judged.codes) or 'none'}"
    return f"{case.name:52} {right:13} {wrong:13} code {code}; line {line}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.zoo", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="file names without .py, or their beginnings (b01)")
    parser.add_argument("--run", action="store_true", help="also compute both programs on virtual CPU devices")
    parser.add_argument("--findings", action="store_true", help="also print what is said of each result not proved")
    arguments = parser.parse_args()
    wanted = [name for name in names() if name.startswith(tuple(arguments.names or ("",)))]
    if not wanted:
        parser.error(f"no case is called so; there are {', '.join(names())}")
    cases = [load(name) for name in wanted]
    computed = run(cases) if arguments.run else {}
    fine = True
    for case in cases:
        judged = judge(case)
        fine &= judged.right.verdict is Verdict.PROVED and judged.wrong.verdict is Verdict.REFUTED
        fine &= judged.names_the_line and case.code in judged.codes
        text = row(judged)
        if case.name in computed:
            near, far = computed[case.name]
            told_apart = near < TOLERANCE and far > 10 * TOLERANCE
            fine &= told_apart
            text += f"  distance {near:.1g} {far:.1g}{'' if told_apart else '  <-- WRONG'}"
        print(text, flush=True)
        if arguments.findings:
            print_findings(judged)
    if not fine:
        sys.exit("not as it should be: right programs are to be proved, wrong ones refuted with their code and line")


def print_findings(judged: Judged) -> None:
    """The findings on the wrong program, and on the right one where it is not proved."""
    for label, report in (("right", judged.right), ("wrong", judged.wrong)):
        for result in report.results:
            if result.finding is not None:
                at = result.finding
                print(f"    {label} {result.name}: {at.location}: {at.nearest}")
                print(
                    f"        {at.operation}\n        found    {at.found[:300]}\n        expected {at.expected[:300]}"
                )
                if at.suggestion:
                    print(f"        repair   {at.suggestion}")
        for text in report.unsupported:
            print(f"    {label} unsupported {text}")


if __name__ == "__main__":
    main()
