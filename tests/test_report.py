"""The result model."""

from __future__ import annotations

import pytest

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.render import Failure, overall
from hlo_verify.report import Report, Result, Verdict

FAILURE = Failure("m", InputError("no", Input.DAMAGED).diagnostic)

P, R, U = Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN


def _report(*verdicts: Verdict) -> Report:
    return Report("m", tuple(Result(n, f"r{n}", v) for n, v in enumerate(verdicts)), (), 1, 0.0)


@pytest.mark.parametrize(
    ("verdicts", "verdict"), [((), U), ((P,), P), ((P, P), P), ((P, U), U), ((U, R), R), ((P, R), R)]
)
def test_the_verdict_is_the_worst_and_of_nothing_unknown(verdicts: tuple[Verdict, ...], verdict: Verdict) -> None:
    assert _report(*verdicts).verdict is overall([_report(*verdicts)]) is verdict


def test_a_failure_is_neither() -> None:
    assert overall([_report(P), FAILURE]) is U
    assert overall([_report(R), FAILURE]) is R
    assert overall([]) is U
