"""Verify fixtures pass by pass: `python -m tools.chains [NAME...] [--small] [--dumps DIR] [--verbose]`.

XLA's CPU compiler dumps a fixture after every pass, into DIR/NAME (or DIR/NAME_small) if a DIR is given and into a
temporary folder if not; what is there already is not compiled again. Prints a line for each fixture, and the whole
report with --verbose or where a dump is not PROVED. Inputs that refute it are not looked for. The exit status is 1 if
a dump of some fixture is not PROVED.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import tempfile
from pathlib import Path

from hlo_verify.passes.chain.each_pass import verify_passes
from hlo_verify.render.text import Style, render
from hlo_verify.report import Verdict
from hlo_verify.sources.dump_chains import PASSES_FLAG, find_chains
from tools.fixtures.catalogue import FIXTURES
from tools.fixtures.fixture import Fixture
from tools.fixtures.make import run_child

DEFAULT = (
    "mlp_dp mlp_tp mlp_2d mlp_zero3 mlp_accumulate gspmd_mlp_2d transformer_fwd_8 transformer_grads_8 "
    "gspmd_transformer_grads_8 transformer_scan_8 transformer_remat_8 transformer_sp_8 transformer_scan_sp_8 "
    "transformer_train_8"
).split()


def dump(fixture: Fixture, folder: Path, small: bool) -> None:
    """Dump what the fixture is after every pass; of the other modules that were compiled nothing is left."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        run_child(fixture, Path(scratch), passes=PASSES_FLAG.partition("=")[2], small=small)
        name = (Path(scratch) / "module_name.txt").read_text()
        for file in Path(scratch).iterdir():
            if file.is_file() and f".{name}." not in file.name:
                file.unlink()
        shutil.copytree(scratch, folder)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.chains", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"fixtures ({' '.join(DEFAULT)})")
    parser.add_argument("--small", action="store_true", help="their small builds")
    parser.add_argument("--dumps", type=Path, metavar="DIR", help="where dumps are kept")
    parser.add_argument("--verbose", action="store_true", help="print the whole report of each")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in FIXTURES]
    if unknown:
        parser.error(f"there is no fixture {', '.join(unknown)}")
    proved = True
    with contextlib.ExitStack() as stack:
        dumps = arguments.dumps or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for name in arguments.names or DEFAULT:
            folder = dumps / (f"{name}_small" if arguments.small else name)
            if not folder.exists():
                dump(FIXTURES[name], folder, arguments.small)
            (chain,) = find_chains(folder)
            found = verify_passes(chain, refute=False)
            verdicts = [step.verdict for step in found.steps]
            slowest = max(found.steps, key=lambda step: step.seconds)
            said = f"{verdicts.count(Verdict.PROVED)} of {len(verdicts)} dumps PROVED, {found.seconds:.0f} s"
            print(
                f"{name}: {said}; longest {slowest.after} (step {slowest.number}) {slowest.seconds:.0f} s", flush=True
            )
            if arguments.verbose or found.verdict is not Verdict.PROVED:
                print(render([found], Style(), several=False), flush=True)
            proved = proved and found.verdict is Verdict.PROVED
    return 0 if proved else 1


if __name__ == "__main__":
    sys.exit(main())
