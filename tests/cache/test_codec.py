"""Reports come back from text as they were, every field of them."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import pytest

from hlo_verify.cache.codec import decoded, encoded
from hlo_verify.diagnostics import Diagnostic, Input, Mismatch, Placement, Severity, Solver
from hlo_verify.report import (
    ChainReport,
    Finding,
    LawUse,
    Recheck,
    Report,
    Result,
    Spent,
    Stage,
    Step,
    Suggestion,
    Verdict,
)
from hlo_verify.witness import Point, Witness

POINT = Point(3, (1, 2), (0, 2), 1.5, -math.inf)
FULL = Report(
    "step",
    (
        Result(0, "loss", Verdict.PROVED, by_device=True),
        Result(
            1,
            "grad['w']",
            Verdict.REFUTED,
            "a reason with “signs”",
            "train.py:3",
            Finding("op", "train.py:3", "x", "y", "z", Mismatch.REDUCED_TWICE, "mend", "Block_0", ("a.py:1", "b.py:2")),
            Mismatch.REDUCED_TWICE,
            Witness(POINT, (("x", "1 everywhere"),), "by XLA", POINT),
        ),
        Result(2, "n", Verdict.UNKNOWN, code=Solver.NO_PROOF, spent=Spent(("cases",), 2, 3, ("sort",), "Z3")),
    ),
    ("real arithmetic",),
    8,
    0.25,
    (Stage("dot", "train.py:3", "x[i]", True),),
    (Diagnostic(Input.USAGE, Severity.WARNING, "message", "a", "b", (("label", "text"),)),),
    ("x split",),
    "x split",
    None,
    "a with b",
    ("y",),
    (LawUse("digits", "a = a", 3),),
    ("t in [0, 3)",),
    Suggestion(("t in [0, 3)",), ("loss",), ("loss",), False),
    (Diagnostic(Placement.MISSING_REDUCTION, Severity.ERROR, "a sum", "a", "b"),),
    ("a stands for b",),
    True,
)
STEP = Step(12, "simplification", "algsimp", "a.txt", Verdict.PROVED, "same operations", "why", "HV301", "b.txt", 0.5)
CHAIN = ChainReport("step", (STEP,), ("real arithmetic",), 8, 0.5, FULL, 3, True)


def test_every_field_comes_back() -> None:
    assert decoded(encoded(FULL)) == FULL
    assert decoded(encoded(CHAIN)) == CHAIN
    empty = Report("", (), (), 0, 0.0)
    same = [field.name for field in fields(Report) if getattr(FULL, field.name) == getattr(empty, field.name)]
    assert same == ["recheck"], "the report of this test leaves out what it should ask about"


def test_a_code_is_the_one_that_it_was() -> None:
    code = decoded(encoded(FULL)).results[1].code
    assert code is Mismatch.REDUCED_TWICE


def test_what_is_not_kept_is_refused() -> None:
    again = Recheck(1, 1, 1, 0, 0, (), (), 0.1)
    with pytest.raises(TypeError, match="Recheck"):
        encoded(replace(FULL, recheck=again))
