# ruff: noqa: E501 (modules as MLIR prints them)
"""The codes: each has one number, an explanation, and something that raises it."""

from __future__ import annotations

import ast
import copy
import pickle
import re
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

import hlo_verify
from hlo_verify.diagnostics import CODES, FAMILIES, Code, Diagnostic, Mismatch, Severity, Solver, near
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.diagnostics.inputs import Input
from hlo_verify.limits import Limits

PACKAGE = Path(hlo_verify.__file__).parent
FILES = {*PACKAGE.rglob("*.py"), *(PACKAGE / "passes").rglob("*.py")}  # passes may be a link
TESTDATA = Path(__file__).parents[2] / "testdata" / "mlp_tp"
SOURCES = [path for path in sorted(FILES) if path.parent.name != "diagnostics"]


def test_numbers_are_of_their_family_and_given_once() -> None:
    assert len(CODES) == sum(len(family.__members__) for family in FAMILIES.values())
    for start, family in FAMILIES.items():
        assert all(re.fullmatch(rf"{start}\d+", code) and len(code) == 5 for code in family)
        assert list(family) == sorted(family)


@pytest.mark.parametrize("code", CODES.values())
def test_an_explanation_says_what_it_is_and_what_to_do(code: Code) -> None:
    assert code.summary == code.summary.strip() and len(code.summary) < 80
    assert code.summary[-1] not in ".:"
    assert "What to do: " in code.explanation or code is Mismatch.DIFFERS
    assert 150 < len(code.explanation) < 1600
    assert all(len(line) <= 112 for line in code.explanation.splitlines())


def test_a_code_is_a_string_and_itself_wherever_it_goes() -> None:
    code = Mismatch.NEVER_REDUCED
    assert code == "HV002" and f"{code}" == "HV002" and CODES["HV002"] is code
    assert pickle.loads(pickle.dumps(code)) is code and copy.deepcopy(code) is code


def _mentioned() -> Iterator[tuple[Path, int, str, str]]:
    """Each `Family.CODE` in the sources."""
    families = {family.__name__ for family in FAMILIES.values()}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in families:
                yield path, node.lineno, node.value.id, node.attr


def test_every_code_is_raised_somewhere() -> None:
    raised = {getattr(hlo_verify.diagnostics, family)[name] for _, _, family, name in _mentioned()}
    assert set(CODES.values()) == raised


def test_a_result_says_that_others_failed_before_it() -> None:
    report = hlo_verify.verify(TESTDATA / "logical.hlo.gz", TESTDATA / "broken_dropped_psum.hlo.gz", refute=False)
    assert [result.code for result in report.results] == [*[Solver.NO_PROOF] * 4, Solver.GIVEN_UP]
    [stopped] = report.diagnostics
    assert (stopped.code, stopped.severity) == (Solver.NO_PROOF, Severity.WARNING)
    assert ("looks like", "HV002: a partial value is never reduced") in stopped.notes


def test_a_result_says_that_the_budget_is_used_up() -> None:
    report = hlo_verify.verify(
        TESTDATA / "logical.hlo.gz",
        TESTDATA / "broken_swapped_operands.hlo.gz",
        refute=False,
        limits=Limits(total_steps=0),
    )
    assert {result.code for result in report.results} == {None, Solver.CASE_BUDGET}


GUARDS = """module @m attributes {{mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32}} {{
func.func public @main(%a: tensor<8xi32> {{mhlo.sharding = "{{replicated}}"}}, %b: tensor<8xi32> {{mhlo.sharding = "{{replicated}}"}}, %x: tensor<8xf32> {{mhlo.sharding = "{{replicated}}"}}) -> (tensor<8xf32> {{mhlo.sharding = "{{replicated}}"}}) {{
  %zero = stablehlo.constant dense<0.0> : tensor<8xf32>
  %0 = stablehlo.constant dense<0> : tensor<8xi32>
  %2 = stablehlo.constant dense<2> : tensor<8xi32>
  %3 = stablehlo.constant dense<3> : tensor<8xi32>
  %5 = stablehlo.constant dense<5> : tensor<8xi32>
  %7 = stablehlo.constant dense<7> : tensor<8xi32>
  %low = stablehlo.clamp %0, %a, %7 : tensor<8xi32>
  %high = stablehlo.clamp %0, %b, %7 : tensor<8xi32>
  %lows = stablehlo.multiply %low, %3 : tensor<8xi32>
  %highs = stablehlo.multiply %high, %3 : tensor<8xi32>
  %more_low = stablehlo.add %lows, %high : tensor<8xi32>
  %more_high = stablehlo.add %low, %highs : tensor<8xi32>
  %sum = stablehlo.add %low, %high : tensor<8xi32>
  %few_low = stablehlo.compare LE, %more_low, %5 : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
  %few_high = stablehlo.compare LE, %more_high, %5 : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
  %few = stablehlo.and %few_low, %few_high : tensor<8xi1>
  %small = stablehlo.compare LE, %sum, %2 : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
  %both = stablehlo.and %few, %{second} : tensor<8xi1>
  %y = stablehlo.select %both, %x, %zero : tensor<8xi1>, tensor<8xf32>
  return %y : tensor<8xf32>
}} }}"""
"""3*low + high <= 5 and low + 3*high <= 5 together say that low + high <= 2, and neither does alone."""


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (Limits(), None),
        (Limits(solver_steps=1), Solver.TIME_LIMIT),
        (Limits(solver_megabytes=1), Solver.MEMORY_LIMIT),
    ],
)
def test_a_result_says_which_limit_of_the_solver_it_met(limits: Limits, code: Code | None, tmp_path: Path) -> None:
    paths = [tmp_path / f"{second}.mlir" for second in ("small", "few")]
    for path in paths:
        path.write_text(GUARDS.format(second=path.stem))
    [result] = hlo_verify.verify(*paths, refute=False, limits=limits).results
    assert result.code is code


def test_every_input_error_has_a_code() -> None:
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "InputError":
                assert len(node.args) == 2, f"{path}:{node.lineno}"
    with pytest.raises(TypeError):
        InputError("no code")  # type: ignore[call-arg]


def test_a_traceback_says_where_there_is_more_about_an_input_error() -> None:
    """Once, wherever the error has been, and not in what the command line prints."""
    error = pickle.loads(pickle.dumps(InputError("is empty", Input.USAGE).within("m.hlo")))
    assert str(error) == "m.hlo: is empty" and error.code is Input.USAGE
    last = "".join(traceback.format_exception(error)).splitlines()[-1]
    assert last == f"{error.code}: `hlo-verify --explain {error.code}` says more"
    assert error.__notes__ == [last]


@pytest.mark.parametrize(
    ("text", "first"), [("HV0002", "HV002"), ("hv03", "HV003"), ("404", "HV404"), ("HV02", "HV002"), ("HV399", "HV3")]
)
def test_near_codes(text: str, first: str) -> None:
    assert near(text)[0].startswith(first)


def test_nothing_is_near_to_something_else() -> None:
    assert near("overflow") == []


def test_a_diagnostic_says_where() -> None:
    full = Diagnostic(Mismatch.DIFFERS, Severity.ERROR, "why", "a.py:3", "sort")
    assert str(full) == "sort at a.py:3: why"
    assert str(Diagnostic(Mismatch.DIFFERS, Severity.ERROR, "why", "a.py:3")) == "a.py:3: why"
    assert str(Diagnostic(Mismatch.DIFFERS, Severity.ERROR, "why")) == "why"
