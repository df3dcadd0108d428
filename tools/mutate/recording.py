"""A pytest plugin that keeps the pairs which tests see PROVED, to mutate them.

`python -m pytest -p tools.mutate.recording --record-pairs DIR tests`, then `python -m tools.mutate run --pairs DIR`.
Kept are those that a person distributed, as they are given: without assumptions, on few devices.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hlo_verify import api
from hlo_verify.asked import Asked
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.report import Report
from hlo_verify.sources.modules import contents_of
from tools.mutate import cases

MOST_DEVICES = 8
INTEGERS = 8
"""What integer arguments are drawn below."""

_MESH = re.compile(r"sdy\.mesh @\S+ = <\[(.*?)\]")
_AXIS = re.compile(r'"[^"]*"=(\d+)')


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-pairs", metavar="DIR", type=Path, help="keep the pairs that are PROVED, to mutate them")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Look at every pair that the test verifies."""
    folder: Path | None = item.config.getoption("record_pairs")
    if folder is None:
        return (yield)
    verify = api._verify_pair  # type: ignore[attr-defined]

    def kept(logical: Any, partitioned: Any, annotated: Any, devices: Any, given: Any, asked: Asked, *rest: Any) -> Any:
        report: Report = verify(logical, partitioned, annotated, devices, given, asked, *rest)
        if report.verdict == "PROVED" and not (asked.assume or asked.declared or annotated or any(given)):
            keep(folder, item.path.stem, logical, partitioned)
        return report

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "_verify_pair", kept)
        return (yield)


def keep(folder: Path, test: str, logical: Any, partitioned: Any) -> None:
    """Keep a pair that a test gave, if its second module has manual regions and it is for few devices."""
    try:
        contents = [contents_of(each) for each in (logical, partitioned)]
        text = contents[1].decode()
    except (InputError, UnicodeDecodeError, AttributeError):  # modules as they were read, and lists of them
        return
    found = _MESH.search(text)
    case = cases.Case(
        f"{test.removeprefix('test_')}-{hashlib.sha256(b''.join(contents)).hexdigest()[:8]}",
        *contents,
        mesh=tuple(map(int, _AXIS.findall(found[1]))) if found else (),
        integers=INTEGERS,
    )
    if "sdy.manual_computation" in text and 1 < case.devices <= MOST_DEVICES:
        cases.keep(folder, case)
