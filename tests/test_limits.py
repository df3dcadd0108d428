"""Limits count steps and are said; time is the user's alone."""

from __future__ import annotations

import ast
import itertools
import json
import time
from dataclasses import fields, replace
from pathlib import Path

import pytest

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.diagnostics import Solver
from hlo_verify.limits import EFFORTS, Limits
from hlo_verify.render.json import report_object
from hlo_verify.render.limits import table
from hlo_verify.session import Session
from tests.passes.place.test_infer import all_reduce, matrix, module
from tests.xla.test_partition import GSPMD

ROOT = Path(hlo_verify.__file__).parents[1]
TESTDATA = ROOT / "testdata" / "mlp_tp"
CLOCKS = ("monotonic", "perf_counter", "process_time", "thread_time", "time")

TELLS_THE_TIME = {
    "session.py": "the user's time limit",
    "prove.py": "the seconds in a report",
    "examine.py": "the seconds in a report",
    "refute.py": "the seconds in a report",
    "recheck.py": "the seconds in a report",
    "each_pass.py": "the seconds in a report",
    "between.py": "the seconds in a report",
    "execute.py": "a child process",
    "execute_child.py": "a child process",
    "partition.py": "a child process",
    "workers.py": "a child process",
    "z3_formulas.py": "a child process of the second check",
    "progress.py": "a progress bar",
}


def test_nothing_else_looks_at_a_clock() -> None:
    files = {*(ROOT / "hlo_verify").rglob("*.py"), *(ROOT / "passes").rglob("*.py")}
    found = set()
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "time":
                assert node.attr in (*CLOCKS, "sleep")
                found.add(path.name)
    assert found <= TELLS_THE_TIME.keys(), "count steps; seconds differ from machine to machine"


SEARCHES = ("hlo_verify/equality", "passes/place")
"""The rooms that try one thing after another: how many, is a limit."""

NO_LIMITS = {
    "COST": "what one question counts for",
    "DEEP": "what a role is",
    "NAMED": "how a line is written",
    "POINTS": "where a term is looked at, to refuse it at once",
    "TERMS": "the length of a term from which names are left in it",
}


def test_searches_have_no_limits_of_their_own() -> None:
    """A number that says when to give up is a field of `Limits`: documented, set by name, and said in a report."""
    numbers = set()
    for path in itertools.chain.from_iterable((ROOT / room).rglob("*.py") for room in SEARCHES):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and _is_number(node.value):
                numbers |= {name.id for name in node.targets if isinstance(name, ast.Name)}
    assert numbers == NO_LIMITS.keys()


def _is_number(node: ast.expr) -> bool:
    """Whether an expression is made of numbers alone."""
    parts = [part for part in ast.walk(node) if isinstance(part, ast.expr)]
    constants = [part.value for part in parts if isinstance(part, ast.Constant)]
    others = (part for part in parts if not isinstance(part, ast.Constant | ast.BinOp | ast.UnaryOp))
    return not any(others) and all(isinstance(value, int | float) for value in constants)


@pytest.mark.parametrize("name", ["partitioned.hlo.gz", "broken_dropped_psum.hlo.gz", "broken_swapped_operands.hlo.gz"])
def test_a_report_is_the_same_on_a_slow_machine(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reports = []
    for step in (0.0, 100.0):
        with monkeypatch.context() as patch:
            for clock in CLOCKS:
                patch.setattr(time, clock, itertools.count(0.0, step).__next__)
            report = hlo_verify.verify(TESTDATA / "logical.hlo.gz", TESTDATA / name, time_limit=None)
        told = report_object(replace(report, seconds=0.0))
        for result in told["results"]:
            if result["witness"] is not None:
                result["witness"]["replayed"] = ""
        told["diagnostics"] = []
        reports.append(json.dumps(told))
    assert reports[0] == reports[1]


@pytest.mark.parametrize("name", ["partitioned.hlo.gz", "broken_dropped_psum.hlo.gz"])
def test_time_that_is_up_leaves_what_is_known(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = TESTDATA / "logical.hlo.gz", TESTDATA / name
    wanted = hlo_verify.verify(*pair).results
    phases = set()
    for checks in (0, 10, 40, 100, 200, 1000):
        counter = itertools.count()
        monkeypatch.setattr(Session, "is_over", property(lambda _, n=counter, most=checks: next(n) > most))
        report = hlo_verify.verify(*pair)
        for result, known in zip(report.results, wanted, strict=True):
            if result.code is Solver.TIME_UP:
                assert result.verdict is Verdict.UNKNOWN
                assert result.spent is not None and result.spent.phase in result.reason
                phases.add(result.spent.phase)
            else:
                assert result.verdict is known.verdict
    assert phases


GIVEN = module([matrix(4, 6)], [("%y", matrix(4, 6))], f"%y = stablehlo.tanh %a0 : {matrix(4, 6)}", 1)
SHARDS = module([matrix(4, 3)], [("%y", matrix(4, 3))], f"%y = stablehlo.tanh %a0 : {matrix(4, 3)}", 2)
WRONG = module([matrix(4, 6)], [("%y", matrix(4, 6))], f"%y = stablehlo.sine %a0 : {matrix(4, 6)}", 2)

PHASES = {
    "XLA": ((GSPMD,), "XLA partitioned the module"),
    "placements": ((GIVEN, SHARDS), "placements were inferred that no module states"),
    "other placements": ((GIVEN, WRONG), "other placements were tried than those that were inferred"),
}


@pytest.mark.parametrize("phase", PHASES)
def test_time_is_up_in_every_phase(phase: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that stands still until a phase begins, and then says that the time is up."""
    given, name = PHASES[phase]
    assert hlo_verify.verify(*given).verdict is not Verdict.UNKNOWN
    monkeypatch.setattr(Session, "is_over", property(lambda session: session.phase == name))
    report = hlo_verify.verify(*given)
    assert report.verdict is Verdict.UNKNOWN
    for result in report.results:
        assert result.code is Solver.TIME_UP and result.reason.endswith(f"the time was up while {name}")
        assert result.spent is not None and result.spent.phase == name
        assert result.witness is None


QUARTERS = module([matrix(2, 3)], [("%y", matrix(2, 3))], f"%y = stablehlo.tanh %a0 : {matrix(2, 3)}", 1)
PLACED = '{mhlo.sharding = "{devices=[2,2]<=[2,2]T(1,0)}"}'
TURNED = GIVEN.replace("-> (tensor<4x6xf32>)", f"-> (tensor<4x6xf32> {PLACED})")
TURNED, QUARTERS = (each.replace("partitions = 1", "partitions = 4") for each in (TURNED, QUARTERS))
SUM = all_reduce("%s", "%a0", matrix(4, 6))
SUMMED = module([matrix(4, 6)], [("%y", matrix(4, 6))], f"{SUM}%y = stablehlo.tanh %s : {matrix(4, 6)}", 2)


@pytest.mark.parametrize(
    ("name", "logical", "partitioned"),
    [
        ("placement_walks", GIVEN, SUMMED),
        ("placement_orders", TURNED, QUARTERS),
        ("placement_pairs", GIVEN, WRONG),
    ],
)
def test_limits_of_placements_are_said(name: str, logical: str, partitioned: str) -> None:
    """The first way that is tried is not the right one, and one way alone does not stand for all."""
    assert hlo_verify.verify(logical, partitioned).verdict is not Verdict.UNKNOWN
    report = hlo_verify.verify(logical, partitioned, limits=replace(Limits(), **{name: 1}))
    assert report.verdict is Verdict.UNKNOWN
    (spent,) = (result.spent for result in report.results)
    assert spent is not None and name in spent.limits


def test_efforts_are_in_order() -> None:
    for each in fields(Limits):
        low, normal, high = (getattr(Limits.of(effort), each.name) for effort in EFFORTS)
        assert low <= normal <= high
        assert normal == getattr(Limits(), each.name) == each.default
    assert Limits.of("low") != Limits() != Limits.of("high")


def test_limits_are_documented() -> None:
    """`python -m hlo_verify.render.limits` prints the table."""
    assert table() in (ROOT / "docs" / "limits.md").read_text()
    assert all(row.count("| |") == 0 for row in table().splitlines())


def test_a_result_says_which_limits_it_ran_into() -> None:
    pair = TESTDATA / "logical.hlo.gz", TESTDATA / "broken_swapped_operands.hlo.gz"
    limits = Limits(total_steps=1, search_work=1, glance_work=1, evaluation_work=1)
    report = hlo_verify.verify(*pair, limits=limits)
    (result, *_) = (each for each in report.results if each.verdict is Verdict.UNKNOWN)
    assert result.spent is not None
    assert {"total_steps", "evaluation_work"} <= set(result.spent.limits)
    assert result.spent.inputs > 0
    assert "more work than 1 elements" in result.spent.not_evaluated[0]
    assert dict(report.diagnostics[0].notes)["limits"] == ", ".join(result.spent.limits)
    assert all(each.spent is None for each in report.results if each.verdict is Verdict.PROVED)
