"""What a mistake is told, as a person sees it: the last lines of a traceback, a report, or what a command prints."""

from __future__ import annotations

import re
import tempfile
import warnings
from pathlib import Path

import hlo_verify
from hlo_verify.passes.refute import refute
from hlo_verify.render import text as text_report
from tests.mistakes import commands, decorated, functions
from tests.mistakes.common import Program

GOLDEN = Path(__file__).parent / "golden"
ROOT = Path(__file__).parents[2]
WRITTEN_WITH = "0.10.2"
"""The version of JAX whose words the files quote."""

PROGRAMS: dict[str, Program] = {**functions.MISTAKES, **decorated.MISTAKES, **commands.MISTAKES}

_CHANGES = [
    (re.compile(r"\d+\.\d s\b"), "0.0 s"),
    (re.compile(r" at 0x[0-9a-f]+"), " at 0x0"),
    (re.compile(r"jaxlib \d[\w.]*"), "jaxlib VERSION"),
    (re.compile(r"(\w+\.py):\d+"), r"\1:LINE"),
]


def golden(name: str) -> Path:
    """The file with what is told."""
    return GOLDEN / f"{name}.txt"


def message(name: str) -> str:
    """What is told, without what is of this machine or this moment."""
    small, refute.is_small = refute.is_small, lambda pair: False  # XLA is not started to run them as well
    line, text_report.LINE = text_report.LINE, 1 << 20  # where a line is cut hangs on how long this folder's name is
    try:
        with warnings.catch_warnings(action="ignore"), tempfile.TemporaryDirectory(prefix="mistake-") as folder:
            text = _told(PROGRAMS[name], Path(folder)).replace(folder, "FOLDER").replace(str(ROOT), "ROOT")
    finally:
        refute.is_small, text_report.LINE = small, line
    for pattern, instead in _CHANGES:
        text = pattern.sub(instead, text)
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines()) + "\n"


def _told(program: Program, folder: Path) -> str:
    try:
        return str(program(folder))
    except hlo_verify.InputError as error:
        return f"hlo_verify.InputError: {error}   [{error.code}]"
    except Exception as error:
        own = type(error).__module__.split(".")[0]
        name = type(error).__name__ if own == "builtins" else f"{own}.{type(error).__name__}"
        return f"{name}: {error}"
