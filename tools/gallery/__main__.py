"""`python -m tools.gallery [CASE...] [--check | --all] [--inputs]`."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tools.gallery.cases import CASES, GALLERY, Case
from tools.gallery.inputs import remake
from tools.gallery.make import make
from tools.gallery.pages import overview, page
from tools.gallery.structure import structure


def differing(case: Case, made: Path) -> list[str]:
    """Files of `made` that the gallery has not, or has with another structure."""
    kept = {file.name: file for file in case.folder.iterdir()}
    return [
        file.name
        for file in sorted(made.iterdir())
        if file.name not in kept or structure(kept[file.name]) != structure(file)
    ]


def main() -> int:
    """Remake what is out of date; the exit status of --check is 1 if anything is."""
    parser = argparse.ArgumentParser(prog="python -m tools.gallery", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(case.name for case in CASES))
    parser.add_argument("--check", action="store_true", help="write nothing; say what is out of date")
    parser.add_argument("--all", action="store_true", help="write all files, with this machine's times and versions")
    parser.add_argument("--inputs", action="store_true", help="compile the programs of the cases that are named anew")
    arguments = parser.parse_args()
    unknown = set(arguments.cases) - {case.name for case in CASES}
    if unknown or (arguments.inputs and not arguments.cases):
        parser.error(f"there is no case {', '.join(unknown)}" if unknown else "--inputs goes with cases")
    old = []
    for case in CASES:
        if arguments.cases and case.name not in arguments.cases:
            continue
        if arguments.inputs and case.inputs:
            remake(case)
        with tempfile.TemporaryDirectory() as scratch:
            made = Path(scratch)
            make(case, made)
            out_of_date = [file.name for file in made.iterdir()] if arguments.all else differing(case, made)
            old += [f"{case.name}/{name}" for name in out_of_date]
            if out_of_date and not arguments.check:
                for file in made.iterdir():
                    shutil.copy(file, case.folder / file.name)
    pages = {case.folder / "index.md": page(case) for case in CASES} | {GALLERY / "index.md": overview()}
    for path, text in pages.items():
        if not path.is_file() or path.read_text() != text:
            old.append(str(path.relative_to(GALLERY)))
            if not arguments.check:
                path.write_text(text)
    for name in old:
        print(f"{'out of date' if arguments.check else 'written'}: {name}")
    return 1 if old and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
