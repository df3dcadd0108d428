"""What the command line's process is set to."""

from __future__ import annotations

import os
import subprocess
import sys

SHOWN = "from hlo_verify.own_process import settle; settle(); import os; print(os.environ['OPENBLAS_NUM_THREADS'])"


def threads(**environment: str) -> str:
    rest = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    command = [sys.executable, "-c", SHOWN]
    return subprocess.run(command, env={**rest, **environment}, capture_output=True, text=True, check=True).stdout


def test_products_take_one_thread_unless_the_user_says_otherwise() -> None:
    assert threads() == "1\n"
    assert threads(OPENBLAS_NUM_THREADS="3") == "3\n"


def test_numpy_is_not_imported_before() -> None:
    command = [sys.executable, "-c", "import sys, hlo_verify.cli; print('numpy' in sys.modules)"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"
