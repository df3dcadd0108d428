"""Results of long runs as lines of JSON, which a run that was killed may leave with a line that is cut short."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def read(path: Path) -> list[Record]:
    """The records in a file, but for lines that are cut: what these were of is done again. None if there is no file."""
    found = []
    for line in path.read_text().splitlines() if path.is_file() else []:
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(record, dict):
            found.append(record)
    return found


def mend(path: Path) -> list[Record]:
    """The same, and the file has whole lines alone afterwards, so that another record may follow."""
    records = read(path)
    whole = "".join(json.dumps(record) + "\n" for record in records)
    if path.is_file() and path.read_text() != whole:
        beside = path.with_name(f"{path.name}.mended")
        beside.write_text(whole)
        os.replace(beside, path)
    return records


def seed_of(records: Iterable[Record], given: int | None, where: Path) -> int | None:
    """The seed that records were made with, or the given one where none says; None where nobody does. Ends the program
    where they are of another one than the given."""
    seeds = {record["seed"] for record in records if "seed" in record} | ({given} - {None})
    if len(seeds) > 1:
        sys.exit(f"the results in {where} are of another seed: {', '.join(map(str, sorted(seeds)))}")
    return next(iter(seeds), None)
