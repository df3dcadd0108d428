"""What is not imported where it is not needed: most of the time of a small pair is that of imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTDATA = Path(__file__).resolve().parents[1] / "testdata"

LISTS = "import sys\nfrom hlo_verify import cli\ntry: cli.main(sys.argv[1:])\nfinally: print(*sys.modules, sep=chr(10))"
"""Runs a command line, and prints what was imported then."""

READING = {"numpy", "jaxlib._jax", "jaxlib.mlir", "hlo_verify.passes"}
"""What reads a module and proves something of it."""

ALL_ELSE = {
    "flint",
    "jax",
    "jinja2",
    "rich",
    "sqlite3",
    "z3",
    "hlo_verify.evaluate",
    "hlo_verify.passes.refute.refute",
}
"""What a pair that is proved as it stands and is not small takes nothing of: jax, solvers, numbers, other renderers."""


def imported(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", LISTS, *arguments], capture_output=True, text=True, check=True, timeout=300
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "never"),
    [
        (("--version",), READING | ALL_ELSE | {"argparse", "dataclasses", "importlib.metadata", "inspect"}),
        (("--help",), READING | ALL_ELSE),
        (("--explain", "HV002"), READING | ALL_ELSE),
        (("nowhere.hlo", "neither.hlo"), {"jax", "jinja2", "rich", "z3", "flint"}),
        (("-q", *(str(TESTDATA / "conv_batch" / f"{name}.hlo.gz") for name in ("logical", "partitioned"))), ALL_ELSE),
    ],
    ids=["version", "help", "explain", "no such file", "a proved pair"],
)
def test_what_is_not_needed_is_not_imported(arguments: tuple[str, ...], never: set[str]) -> None:
    assert not imported(*arguments) & never


def test_what_is_told_is_not_imported_by_chance() -> None:
    """The names are those of modules that other command lines do import."""
    wrong = [str(TESTDATA / "mlp_tp" / f"{name}.hlo.gz") for name in ("logical", "broken_dropped_psum")]
    found = imported("--format", "html", *wrong)
    assert found >= READING | {"argparse", "dataclasses", "flint", "inspect", "jinja2"}
    assert found >= {"hlo_verify.evaluate", "hlo_verify.passes.refute.refute"}


def test_modules_that_are_read_already_take_no_jax() -> None:
    """They are no functions of JAX, whose arguments would be made the same."""
    script = (
        "import sys, pathlib, hlo_verify\nfrom hlo_verify.passes.load.load import load\n"
        "print(hlo_verify.verify(*(load(pathlib.Path(path)) for path in sys.argv[1:])).verdict, 'jax' in sys.modules)"
    )
    paths = [str(TESTDATA / "mlp_2d" / f"{name}.hlo.gz") for name in ("logical", "partitioned")]
    done = subprocess.run([sys.executable, "-c", script, *paths], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["PROVED", "False"]
