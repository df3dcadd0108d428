"""How `python -m tools.compare` tells two records apart."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.support.pairs import LOGICAL, PARTIAL, SUMMED
from tools.compare import Pair, difference, differs_in, read, record

RIGHT, WRONG = (Pair(name, lambda text=text: (LOGICAL, text)) for name, text in (("right", SUMMED), ("wrong", PARTIAL)))


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    file = tmp_path_factory.mktemp("compare") / "record"
    record([RIGHT, WRONG], Path.cwd(), file, refute=False)
    return read(file)


def test_a_record_holds_the_report_of_each_pair(lines: dict[str, dict[str, Any]]) -> None:
    assert {name: line["report"]["verdict"] for name, line in lines.items()} == {"right": "PROVED", "wrong": "UNKNOWN"}
    assert lines["right"]["report"]["stages"] and "seconds" not in lines["right"]["report"]


def test_what_is_the_same_differs_in_nothing(lines: dict[str, dict[str, Any]]) -> None:
    assert next(difference(lines, lines)) == "2 pairs in both; differing in nothing: 2"


@pytest.mark.parametrize(
    ("at", "value", "part", "said"),
    [
        (("wrong", "verdict"), "PROVED", "verdicts", "UNKNOWN (1 UNKNOWN HV"),
        (("wrong", "results", 0, "code"), None, "verdicts", ", now UNKNOWN (1 UNKNOWN)"),
        (("right", "stages"), [], "stages", ", now 0 stages"),
        (("right", "stages", 0, "lineage"), "elsewhere", "lineages", 'stages.0.lineage: "'),
        (("wrong", "results", 0, "spent", "inputs"), 7, "details", "results.0.spent.inputs: 0, now 7"),
    ],
)
def test_the_weightiest_difference_is_said(
    lines: dict[str, dict[str, Any]], at: tuple[Any, ...], value: Any, part: str, said: str
) -> None:
    other = copy.deepcopy(lines)
    name, *path, last = at
    place: Any = other[name]["report"]
    for step in path:
        place = place[step]
    place[last] = value
    assert differs_in(lines[name]["report"], other[name]["report"]) == part
    first, counted, _ = difference(lines, other)
    assert first.startswith(f"{name}: ") and said in first
    assert counted == f"2 pairs in both; differing in nothing: 1, {part}: 1"


def test_what_one_version_does_not_say_is_no_difference(lines: dict[str, dict[str, Any]]) -> None:
    before = copy.deepcopy(lines["right"]["report"])
    del before["laws"]
    assert not differs_in(before, lines["right"]["report"])


def test_pairs_of_one_record_alone_are_named(lines: dict[str, dict[str, Any]]) -> None:
    assert next(difference(lines, {"right": lines["right"]})) == "wrong: only in the first"
