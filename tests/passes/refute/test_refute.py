"""What is refuted, with which witness, and what never is."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import hlo_verify
from hlo_verify.diagnostics import Internal, Mismatch
from hlo_verify.diagnostics.errors import DisagreementError
from hlo_verify.evaluate import of_dense
from hlo_verify.passes.diagnose.examine import examine
from hlo_verify.passes.load.load import load
from hlo_verify.passes.refute.refute import describe, refuter
from hlo_verify.report import Verdict
from hlo_verify.xla.execute import ExecutionError, Executor, Failure
from tests.support.pairs import LOGICAL, PARTIAL, elementwise


def test_a_witness_that_a_person_can_check() -> None:
    """Inputs made plain, replayed by XLA, and a repair that was proved."""
    (result,) = hlo_verify.verify(LOGICAL, PARTIAL).results
    assert result.verdict is Verdict.REFUTED
    assert result.code is Mismatch.NEVER_REDUCED
    assert result.witness is not None and result.finding is not None
    assert result.witness.inputs == (("arg0", "1 everywhere"),)
    assert (result.witness.point.logical, result.witness.point.partitioned) == (8.0, 2.0)
    assert "4 virtual CPU devices" in result.witness.replayed
    assert "all_reduce" in result.finding.suggestion


DIFFERENT = {
    "epsilon": (
        "f32",
        "%e = stablehlo.constant dense<1.0e-5> : TYPE\n %s = stablehlo.multiply %x, %x : TYPE\n"
        "%v = stablehlo.add %s, %e : TYPE\n %y = stablehlo.rsqrt %v : TYPE",
        ("1.0e-5", "1.0e-6"),
    ),
    "reducer": (
        "i32",
        "%c = stablehlo.constant dense<3> : TYPE\n %y = stablehlo.maximum %x, %c : TYPE",
        ("max", "min"),
    ),
    "comparison": (
        "i32",
        "%c = stablehlo.constant dense<2> : TYPE\n"
        "%p = stablehlo.compare LT, %x, %c : (TYPE, TYPE) -> tensor<Nxi1>\n"
        "%y = stablehlo.select %p, %x, %c : tensor<Nxi1>, TYPE",
        ("dense<2>", "dense<3>"),
    ),
    "infinity": (
        "f32",
        "%c = stablehlo.constant dense<0xFF800000> : TYPE\n"
        "%p = stablehlo.compare LT, %x, %x : (TYPE, TYPE) -> tensor<Nxi1>\n"
        "%s = stablehlo.select %p, %x, %c : tensor<Nxi1>, TYPE\n %y = stablehlo.tanh %s : TYPE",
        ("0xFF", "0x7F"),
    ),
    "saturation": ("f32", "%y = stablehlo.tanh %x : TYPE", ("%y = stablehlo.tanh %x", "%y = stablehlo.negate %x")),
}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", DIFFERENT)
def test_subtle_differences(name: str) -> None:
    kind, body, (old, new) = DIFFERENT[name]
    whole, part = elementwise(kind, body, body.replace(old, new))
    whole, part = whole.replace("<Nx", "<8x"), part.replace("<Nx", "<2x")
    assert hlo_verify.verify(whole, part).verdict is Verdict.REFUTED


EQUAL = {
    "a law that the prover does not know": (
        "%n = stablehlo.negate %x : TYPE\n %y = stablehlo.cosine %n : TYPE",
        "%y = stablehlo.cosine %x : TYPE",
    ),
    "a cancellation that rounding disturbs": (
        "%c = stablehlo.constant dense<1.0e7> : TYPE\n %a = stablehlo.add %x, %c : TYPE\n"
        "%b = stablehlo.sine %a : TYPE\n %z = stablehlo.abs %b : TYPE\n %y = stablehlo.sqrt %z : TYPE",
        "%c = stablehlo.constant dense<-1.0e7> : TYPE\n %n = stablehlo.negate %x : TYPE\n"
        "%a = stablehlo.add %n, %c : TYPE\n"
        "%b = stablehlo.sine %a : TYPE\n %z = stablehlo.abs %b : TYPE\n %y = stablehlo.sqrt %z : TYPE",
    ),
    "a constant that was rounded": (
        "%c = stablehlo.constant dense<3.0> : TYPE\n %d = stablehlo.divide %x, %c : TYPE\n%y = stablehlo.tan %d : TYPE",
        "%c = stablehlo.constant dense<0.333333343> : TYPE\n %d = stablehlo.multiply %x, %c : TYPE\n"
        " %y = stablehlo.tan %d : TYPE",
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_what_is_equal_is_never_refuted(name: str) -> None:
    assert hlo_verify.verify(*elementwise("f32", *EQUAL[name])).verdict is not Verdict.REFUTED


def test_without_refuting() -> None:
    (result,) = hlo_verify.verify(LOGICAL, PARTIAL, refute=False).results
    assert result.verdict is Verdict.UNKNOWN
    assert result.witness is None


def test_a_wrong_proof_is_an_internal_error() -> None:
    logical, partitioned = load(_two_results(LOGICAL)), load(_two_results(PARTIAL))
    examination = examine(logical, partitioned)
    first, second = examination.report.results
    wrong = replace(
        examination, report=replace(examination.report, results=(replace(first, verdict=Verdict.PROVED), second))
    )
    with refuter(logical, partitioned) as refutes, pytest.raises(DisagreementError, match="proved"):
        refutes.refute(wrong)


def _two_results(text: str) -> str:
    """The module with its result twice."""
    text = re.sub(r"-> \((.*?)\) \{\n", r"-> (\1, \1) {\n", text, count=1)
    return text.replace("return %s : tensor<f32>\n  }", "return %s, %s : tensor<f32>, tensor<f32>\n  }")


def test_what_xla_does_not_confirm_is_not_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: Executor, module: object, arguments: object, **options: bool) -> list[np.ndarray]:
        return [np.full((1 if options.get("logical") else 4,), 8.0)]

    monkeypatch.setattr(Executor, "run", run)
    (result,) = hlo_verify.verify(LOGICAL, PARTIAL).results
    assert result.verdict is Verdict.UNKNOWN
    assert result.code is Internal.DISAGREEMENT


def test_narrow_types_do_not_excuse_a_denial_of_what_is_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: Executor, module: object, arguments: object, **options: bool) -> list[np.ndarray]:
        return [np.full((1 if options.get("logical") else 4,), 8.0)]

    monkeypatch.setattr(Executor, "run", run)
    narrow = (text.replace("f32", "bf16") for text in (LOGICAL, PARTIAL))
    (result,) = hlo_verify.verify(*narrow).results
    assert result.verdict is Verdict.UNKNOWN
    assert result.code is Internal.DISAGREEMENT


def test_what_narrow_types_hide_is_refuted_by_evaluation() -> None:
    body = (
        "%a = stablehlo.constant dense<1.0e-4> : TYPE\n %b = stablehlo.constant dense<1.0> : TYPE\n"
        "%s = stablehlo.sine %x : TYPE\n %m = stablehlo.multiply %a, %s : TYPE\n %y = stablehlo.add %m, %b : TYPE"
    )
    (result,) = hlo_verify.verify(*elementwise("bf16", body, body.replace("1.0e-4", "2.0e-4"))).results
    assert result.verdict is Verdict.REFUTED
    assert result.witness is not None and "by evaluating" in result.witness.replayed


def test_what_xla_cannot_run_is_refuted_by_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: Executor, module: object, arguments: object, **options: bool) -> list[np.ndarray]:
        raise ExecutionError("no such operation", Failure.REJECTED)

    monkeypatch.setattr(Executor, "run", run)
    (result,) = hlo_verify.verify(LOGICAL, PARTIAL).results
    assert result.verdict is Verdict.REFUTED
    assert result.witness is not None and "no such operation" in result.witness.replayed


def test_inputs_in_words() -> None:
    assert describe(of_dense(np.full((3, 4), 0.5))) == "0.5 everywhere"
    assert describe(of_dense(np.array(True))) == "true"
    assert describe(of_dense(np.array([1, 2, 3]))) == "[1, 2, 3]"
    assert describe(of_dense(np.arange(100.0))).startswith("100 values, from 0 to 99")
    assert describe(of_dense(np.zeros((0, 2)))) == "no elements"
