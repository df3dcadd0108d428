"""The plugin of pytest: a fixture `hlo_verify` whose `check` fails a test, with the report, unless all is PROVED, and
whose `lint` fails it where a final module of XLA has a defect.

It is loaded wherever hlo-verify is installed, so that nothing else is imported before a test asks for it.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from hlo_verify.linter.lint import LintReport
    from hlo_verify.shown import Report

LONGEST = 200
"""Bytes of a folder's name; systems take 255."""


class Checker:
    """What the fixture gives: `check`, under the options of the command line, and `lint`."""

    def __init__(self, folder: Path | None, time_limit: float | None) -> None:
        self._folder, self._time_limit, self._checks = folder, time_limit, 0

    def check(self, function: Any, /, *args: Any, **kwargs: Any) -> Report:
        """`hlo_verify.check`; the report, if all is PROVED. Raises `NotProvedError` if anything is not."""
        __tracebackhide__ = True
        from hlo_verify.checking import check
        from hlo_verify.shown import NotProvedError

        if self._time_limit is not None:
            kwargs.setdefault("time_limit", self._time_limit or None)
        folder = None if self._folder is None else self._folder / str(self._checks)
        self._checks += 1
        report = check(function, *args, **{"keep": folder, **kwargs})
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "report.txt").write_text(f"{report}\n", encoding="utf-8", errors="backslashreplace")
        if report.verdict != "PROVED":
            raise NotProvedError(report)
        return report

    def lint(self, module: str | Path, **kwargs: Any) -> LintReport:
        """`hlo_verify.lint`; the report, where it has no error. Fails the test with the report where it has one."""
        __tracebackhide__ = True
        from hlo_verify.linter.lint import lint

        report = lint(module, **kwargs)
        if report.errors:
            pytest.fail(str(report))
        return report


@pytest.fixture
def hlo_verify(request: pytest.FixtureRequest) -> Checker:
    """`hlo_verify.check(f, g, *args)` fails the test, with the report, unless it is proved that `g` computes `f`."""
    dump, limit = (request.config.getoption(f"hlo_verify_{name}") for name in ("dump", "time_limit"))
    folder = None if dump is None else Path(dump) / _as_name(request.node.nodeid)
    return Checker(folder, limit)


def _as_name(test: str) -> str:
    """The name of a test as that of a folder. Of one that is too long for that, a sum tells it from others."""
    name = re.sub(r"[^\w.-]+", "_", test)
    if len(name.encode(errors="replace")) <= LONGEST:
        return name
    return f"{name[: LONGEST // 8]}-{hashlib.sha256(test.encode(errors='backslashreplace')).hexdigest()[:16]}"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("hlo-verify")
    group.addoption(
        "--hlo-verify-dump",
        metavar="DIR",
        help="keep the modules and the report of each check, in a folder a test",
    )
    group.addoption(
        "--hlo-verify-time-limit",
        type=_seconds,
        metavar="SECONDS",
        help="what a check may take that does not say it itself; 0 is no limit (default: 300)",
    )


def _seconds(text: str) -> float:
    seconds = float(text)
    if not seconds >= 0:
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds")
    return seconds
