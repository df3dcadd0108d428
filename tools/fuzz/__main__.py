"""`python -m tools.fuzz files ...` damages files, `python -m tools.fuzz programs ...` makes up pairs of programs."""

from __future__ import annotations

import importlib
import sys

KINDS = ("files", "programs")


def main(argv: list[str]) -> int:
    if not argv or argv[0] not in KINDS:
        print(f"usage: python -m tools.fuzz {{{','.join(KINDS)}}} ...", file=sys.stderr)
        return 2
    kind = importlib.import_module(f"tools.fuzz.{argv[0]}")
    return int(kind.main(argv[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
