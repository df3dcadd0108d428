"""The fields of each opcode that are lost, by version of jaxlib, as they are written down in `table.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from hlo_verify.jaxlib_hlo import jaxlib_version
from tools.fields.observe import Fate, Fates

FILE = Path(__file__).with_name("table.json")

Lost = Mapping[str, list[str]]
"""By opcode, the paths of fields."""


def lost(fates: Fates) -> list[str]:
    """The paths that are lost; of those within one that is lost as a whole, it alone."""
    paths = {path for path, fate in fates.items() if fate is Fate.LOST}
    return sorted(path for path in paths if not any(path.startswith(f"{other}.") for other in paths))


def versions() -> dict[str, dict[str, list[str]]]:
    """The table for each version of jaxlib that it was made with."""
    found: dict[str, dict[str, list[str]]] = json.loads(FILE.read_text())
    return found


def read() -> Lost:
    """The table of the installed jaxlib; empty where there is none."""
    return versions().get(jaxlib_version(), {})


def write(found: Lost) -> None:
    every = {**versions(), jaxlib_version(): dict(sorted(found.items()))}
    FILE.write_text(json.dumps(every, indent=1, sort_keys=True) + "\n")
