"""What reading HLO loses: `python -m tools.fields [OPCODE...] [--write] [--jobs N]`.

Tries every field of HloInstructionProto on every opcode, on the installed jaxlib, and compares what is lost with
tools/fields/table.json; with --write, the table is what was found. The exit status is 1 where they differ, or where
something is lost of which passes/read/fields.py does not say why that does no harm. Takes some minutes.
"""

from __future__ import annotations

import argparse
import sys

from hlo_verify.passes.read.fields import why_lost
from tools.fields import table
from tools.fields.examples import OPCODES
from tools.fields.observe import observe


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fields", description=__doc__)
    parser.add_argument("opcodes", nargs="*", metavar="OPCODE", help="some alone (default: all)")
    parser.add_argument("--write", action="store_true", help="write down what was found")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    found = {
        opcode: table.lost(fates) for opcode, fates in observe(arguments.opcodes or OPCODES, arguments.jobs).items()
    }
    known = table.read()
    wrong = [
        f"{opcode}: {path} is lost, and nobody says why that does no harm"
        for opcode, paths in found.items()
        for path in paths
        if why_lost(opcode, path) is None
    ]
    if arguments.write:
        table.write({**known, **found})
    else:
        wrong += [
            f"{opcode}: the table has {sorted(set(known.get(opcode, ())) ^ set(paths))} otherwise"
            for opcode, paths in found.items()
            if paths != known.get(opcode)
        ]
    print("\n".join(wrong or [f"{len(found)} opcodes: what is lost is in the table, and does no harm"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
