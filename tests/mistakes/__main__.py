"""Write what each mistake is told: `python -m tests.mistakes [NAME...]`."""

from __future__ import annotations

import sys

from tests.mistakes.telling import GOLDEN, PROGRAMS, golden, message


def main(names: list[str]) -> None:
    """Write the files of those mistakes, or of all, and remove those of none."""
    GOLDEN.mkdir(exist_ok=True)
    for path in GOLDEN.glob("*.txt"):
        if path.stem not in PROGRAMS:
            path.unlink()
    for name in names or PROGRAMS:
        golden(name).write_text(message(name))


if __name__ == "__main__":
    main(sys.argv[1:])
