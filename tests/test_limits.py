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
from hlo_verify.limits import EFFORT_SETS, EFFORTS, Limits
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
    "child.py": "a child process",
    "execute_child.py": "a child process",
    "partition.py": "a child process",
    "workers.py": "a child process",
    "conversion.py": "the user's time limit, in a child process",
    "z3_formulas.py": "a child process of the second check",
    "progress.py": "a progress bar",
    "watching.py": "when a folder is looked at again",
    "tasks.py": "how often a progress bar hears of a task",
    "executed.py": "what is left of the user's time limit",
    "store.py": "when somebody last asked for a verdict that is kept",
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


ROOMS = ("hlo_verify/index", "hlo_verify/terms", "hlo_verify/equality", "hlo_verify/ops")
ROOMS += ("passes/place", "passes/prove", "passes/refute", "passes/recheck", "passes/chain")
"""Rooms that prove, refute or check: how long something is tried there, or how far a rule is carried, is a limit."""

NO_LIMITS = {
    "apart.SHARE_BRIEF": "which part of a limit",
    "answer.FEWEST": "how many elements of a step are looked at in any case",
    "answer.LONG": "of what Z3 is not asked as well, once there is an answer",
    "answer.SHORT": "how long Z3 is asked as well, once there is an answer",
    "comparators.FLOATS": "what elements are tried, in every order",
    "comparators.INTEGERS": "what elements are tried, in every order",
    "by_element.HEAVY": "what one step counts for",
    "by_element.LONG": "what one step counts for",
    "in_line.FEWEST": "any two places are in line",
    "neighbours.IDLE": "how often in a row what is put together may become no shorter",
    "of_functions.MOST": "which functions are compared by what they are of",
    "of_integers.MOST": "which integers are compared by what they are",
    "openings._SHARE": "which names are kept",
    "opening.READS": "which names are made anew",
    "quotients.MOST": "which names are made anew",
    "plainer.OPERATIONS": "how often inputs are made plainer",
    "plainer.TRIES": "how often inputs are made plainer",
    "prove.LARGE": "which modules one lost layer decides",
    "cut_points.HASTE": "which part of a limit",
    "cut_points.ONE_OF": "which part of a limit",
    "decided_soon.AS_MANY": "which of two ways comes first",
    "decided_soon.PATIENCE": "which of two ways comes first",
    "comparison.VAIN": "which part of a limit",
    "conditions.MOST": "which conditions Z3 is given as decisions, and not as numbers",
    "conditions.MANY": "how far cases are counted",
    "confirm.FEWEST": "with how many bits is begun",
    "confirm.FURTHER": "with how many more bits is gone on",
    "confirm.NEARLY": "what may be noise",
    "confirm.STUCK": "stands for no number",
    "constant_values.DIGITS": "how exactly an irrational number is computed",
    "constant_values.MOST_ROUNDINGS": "how far off a number may be written down",
    "constants.FLOAT_BOUND": "integers that are floats of 64 bits",
    "constants.TABLE_BOUND": "integers that fit into 64 bits",
    "control.SHORT": "which of two ways is gone with a loop",
    "counting.UNCOUNTED": "stands for infinity",
    "doubts.INFINITE": "a doubt",
    "doubts.UNDEFINED": "a doubt",
    "draws.COMMON": "what is drawn",
    "draws.LARGE": "what is drawn",
    "draws.LEAST": "what is drawn",
    "draws.MOST": "what is drawn",
    "draws.SIZES": "what is drawn",
    "draws.FAINT": "what is drawn",
    "draws.HALF": "what is drawn",
    "draws.SEEDS": "what is drawn",
    "draws.TABLE": "what is drawn",
    "draws.WITHOUT_ZEROS": "what is drawn",
    "extended.FEW": "which conditions are written in a shorter way",
    "float_probe.TOLERANCE": "what may be noise",
    "constant_values._FEW_BITS": "what is taken for an exact number that a person wrote",
    "constant_values.MULTIPLES": "how many neighbours of a stencil share a factor",
    "decimal_numbers.DIGITS": "how many digits a decimal has that people write",
    "decimal_numbers.LARGEST_DIVISOR": "what people divide by who write more digits",
    "constant_values._CLOSE": "a look in floats before numbers are compared exactly",
    "irrational_numbers._CLOSE": "a look in floats before numbers are compared exactly",
    "products.CANCELLING": "how many products of a limit's may vanish",
    "granularity.CHEAP": "which inputs are tried before others",
    "granularity.CLASSES": "which inputs are tried before others",
    "granularity.COARSE": "which inputs are tried before others",
    "granularity.FINE": "which inputs are tried before others",
    "inferred.NAMED": "how a line is written",
    "interned._OUTSIDE": "where numbers begin",
    "interned.UNBOUNDED": "stands for infinity",
    "layer_sharing.LEAVES": "of how many values a layer is shared, which only saves time",
    "layers.BOUNDARIES": "how a module is divided into layers, which only saves time",
    "layers.RADIUS": "how a module is divided into layers",
    "layers.REPEATED": "how a module is divided into layers",
    "literals.CLEARLY": "what a rounding is: part of an assumption",
    "literals.FOLDED": "what a rounding is: part of an assumption",
    "literals.FOLDED_NARROW": "what a rounding is: part of an assumption",
    "literals.WIDE": "what a rounding is: part of an assumption",
    "masked.FAR": "what a mask is: part of an assumption",
    "masked.HALF_WAY": "what a mask is: part of an assumption",
    "masked.LEAST": "what a mask is: part of an assumption",
    "multiples.PRIMES": "of which squares leave a root: one form of a number",
    "neighbours.SORTED_BY": "which of several orders terms are tried in",
    "notation.ROOM": "how long a term is that a report shows",
    "notation.SUMMANDS": "how long a term is that a report shows",
    "opaque._ORIGINAL": "a version",
    "picking.LOOKED_UP": "which of several orders terms are tried in",
    "quick_refusal.POINTS": "where a term is looked at, to refuse it at once",
    "refute.LESS": "which results are looked at first",
    "refute.MUCH_LESS": "which results are looked at first",
    "refute.FEW": "how an input is written",
    "refute.RUNNING": "seconds of a child process",
    "repairs.ROUNDING": "what may be noise",
    "roles.DEEP": "what a role is",
    "roundings.LONG": "what is taken for a number that was not rounded",
    "roundings.WHOLE": "what is taken for a number that was not rounded",
    "roundings.SHORT": "what is taken for a number that was not rounded",
    "rounding_laws.FINEST": "which numbers are far enough from where rounding jumps",
    "rounding_laws.GREATEST": "which numbers are far enough from where rounding jumps",
    "scalar_values.FAR": "what may be noise",
    "scalar_values.POINTS": "where a term is looked at, to refuse it at once",
    "rounded_tables.WIDE": "what a rounding is: part of an assumption",
    "rounded_tables.FAR_OFF": "how far off an element may be, of itself, to be one that is rounded",
    "amplified.SHIFTS": "which numbers are of about one size: a sum of their functions covers no rounding",
    "search.CLEARER": "which inputs are better than others",
    "seen_apart.APART": "what may be noise",
    "seen_apart.GROWN": "what may be noise",
    "seen_apart.SHARE": "which part of a limit",
    "settling.COST": "what one question counts for",
    "shape_reduction.LEAST": "what a small instance has to keep",
    "when_asked.OPERATION": "what one step counts for",
    "signs.ANY": "a set of signs",
    "signs.BEYOND": "a set of signs",
    "signs.NEGATIVE": "a set of signs",
    "signs.POSITIVE": "a set of signs",
    "written_out.LARGE": "when constants are compared by what they are",
    "along_lines.ROUNDS": "how often sums are turned round, where that is not seen to be enough before",
    "repeats.LEAST": "how many turns are a loop",
    "repeats.PERIODS": "how many ways are tried",
    "root_laws.ROOTS": "which roots square roots make",
    "signs.REAL": "a set of signs",
    "signs.ZERO": "a set of signs",
    "stages.SHARE_COMPARISONS": "which part of a limit",
    "stages.SHARE_LEFT": "which part of a limit",
    "stages.SHARE_NETWORK": "which part of a limit",
    "stages.SHARE_STEPS": "which part of a limit",
    "summands.SIZE_OF_A_STEP": "what one step counts for",
    "tables.LARGE": "integers that fit into 64 bits",
    "term.NAMES": "how many names are remembered",
    "trial.CLEAR": "which inputs are better than others",
    "trial.EVIDENT": "what may be noise",
    "trial.NOISE": "what may be noise",
    "trial.NOTICED": "what may be noise",
    "trial.SEED": "what is drawn",
    "witness_file.VERSION": "a version",
    "xla_replay.CONFIRMING": "what a confirmation is",
    "z3_formulas.ARGUMENTS": "how a model is written",
    "z3_formulas.ENTRIES": "how a model is written",
    "z3_formulas.MODEL": "how a model is written",
    "zero_one.NODES_A_STEP": "what one step counts for",
}


def test_proofs_have_no_limits_but_those_that_are_documented() -> None:
    """A number that says when to give up is a field of `Limits`: documented, set by name, and said in a report."""
    paths = itertools.chain.from_iterable((ROOT / room).rglob("*.py") for room in ROOMS)
    assert {f"{path.stem}.{name}" for path in paths for name in _numbers(path.read_text())} == NO_LIMITS.keys()


def _numbers(text: str) -> set[str]:
    """The names of a module's numbers, and of those that are assigned together."""
    found = set()
    for node in ast.parse(text).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        if value is not None and _is_number(value):
            found |= {
                part.id for target in targets if target for part in ast.walk(target) if isinstance(part, ast.Name)
            }
    return found


def _is_number(node: ast.expr) -> bool:
    """Whether an expression is made of numbers alone."""
    if isinstance(node, ast.Tuple):
        return all(map(_is_number, node.elts))
    parts = [part for part in ast.walk(node) if isinstance(part, ast.expr)]
    are_numbers = all(isinstance(part.value, int | float) for part in parts if isinstance(part, ast.Constant))
    return are_numbers and all(isinstance(part, ast.Constant | ast.BinOp | ast.UnaryOp) for part in parts)


@pytest.mark.parametrize(
    "text", ["MOST = 3", "MOST: int = 1 << 8", "MOST, LEAST = 4, -1", "MOST = 1.5 * 2", "MOST = OTHER = 1"]
)
def test_no_spelling_of_a_number_is_overlooked(text: str) -> None:
    assert "MOST" in _numbers(text)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", ["partitioned.hlo.gz", "broken_dropped_psum.hlo.gz", "broken_swapped_operands.hlo.gz"])
def test_a_report_is_the_same_on_a_slow_machine(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reports = []
    for step in (0.0, 100.0):
        with monkeypatch.context() as patch:
            for clock in CLOCKS:
                patch.setattr(time, clock, itertools.count(0.0, step).__next__)
            report = hlo_verify.verify(TESTDATA / "logical.hlo.gz", TESTDATA / name, time_limit=0)
        told = report_object(replace(report, seconds=0.0))
        for result in told["results"]:
            if result["witness"] is not None:
                result["witness"]["replayed"] = ""
        told["diagnostics"] = []
        reports.append(json.dumps(told))
    assert reports[0] == reports[1]


@pytest.mark.drawn(1)
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


@pytest.mark.drawn(1)
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


@pytest.mark.drawn(1)
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


NAMES = [each.name for each in fields(Limits)]
FORMS = NAMES[NAMES.index("table_elements") :]
"""Limits that say what form a term has, which no effort changes."""

SCALAR = "tensor<f32>"
SUM_FIRST = """
    %s = stablehlo.add %a0, %a1 : tensor<f32>
    %y = stablehlo.exponential %s : tensor<f32>"""
EXPONENTIALS_FIRST = """
    %p = stablehlo.exponential %a0 : tensor<f32>
    %q = stablehlo.exponential %a1 : tensor<f32>
    %y = stablehlo.multiply %p, %q : tensor<f32>"""
SQUARES = """
    %three = stablehlo.constant dense<3.0> : tensor<f32>
    %y = stablehlo.power %a0, %three : tensor<f32>"""
PRODUCTS = """
    %s = stablehlo.multiply %a0, %a0 : tensor<f32>
    %y = stablehlo.multiply %s, %a0 : tensor<f32>"""


@pytest.mark.parametrize(
    ("name", "logical", "partitioned"),
    [("expanded_terms", SUM_FIRST, EXPONENTIALS_FIRST), ("multiplied_powers", SQUARES, PRODUCTS)],
)
def test_limits_of_forms_are_set_by_name(name: str, logical: str, partitioned: str) -> None:
    pair = [module([SCALAR] * 2, [("%y", SCALAR)], body, 1) for body in (logical, partitioned)]
    assert hlo_verify.verify(*pair, refute=False).verdict is Verdict.PROVED
    report = hlo_verify.verify(*pair, refute=False, limits=replace(Limits(), **{name: 1}))
    (result,) = report.results
    assert result.verdict is Verdict.UNKNOWN
    assert result.spent is not None and name in result.spent.limits
    assert hlo_verify.verify(*pair, refute=False).verdict is Verdict.PROVED  # limits end with their session


@pytest.mark.parametrize("least", [1, 2, 1 << 20])
def test_no_limit_decides_what_is_right(least: int) -> None:
    """Where less is tried, less is proved; where more is tried, nothing that is wrong."""
    limits = replace(Limits(), **dict.fromkeys(FORMS, least))
    right, wrong = (
        hlo_verify.verify(TESTDATA / "logical.hlo.gz", TESTDATA / name, limits=limits)
        for name in ("partitioned.hlo.gz", "broken_dropped_psum.hlo.gz")
    )
    assert right.verdict is not Verdict.REFUTED
    assert wrong.verdict is not Verdict.PROVED


def test_efforts_are_in_order() -> None:
    for each in fields(Limits):
        low, normal, high = (getattr(Limits.of(effort), each.name) for effort in EFFORTS)
        assert low <= normal == getattr(Limits(), each.name) == each.default <= high
    assert Limits.of("low") != Limits() != Limits.of("high")
    assert not set(FORMS) & set(EFFORT_SETS)


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
    assert not {"total_steps", "evaluation_work"} & set(FORMS)
    assert result.spent.inputs > 0
    assert "more work than 1 elements" in result.spent.not_evaluated[0]
    assert dict(report.diagnostics[0].notes)["limits"] == ", ".join(
        name for name in result.spent.limits if name not in FORMS
    )
    assert all(each.spent is None for each in report.results if each.verdict is Verdict.PROVED)
