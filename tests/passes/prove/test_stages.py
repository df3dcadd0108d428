"""How much is tried where values are not recognised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.equality import cases
from hlo_verify.equality.effort import Effort
from hlo_verify.index import expr
from hlo_verify.limits import Limits
from hlo_verify.passes.prove import prove
from hlo_verify.passes.prove.stages import Stages
from hlo_verify.session import Session
from hlo_verify.terms.term import ONE, ZERO, Poly

TESTDATA = Path(hlo_verify.__file__).parents[1] / "testdata"


class Refusing:
    """Comparisons that take some steps each, and find nothing equal."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.taken: list[int] = []

    def __call__(self, found: Poly, expected: Poly, inside: Poly, effort: Effort, most: int, limit: str) -> bool:
        self.taken.append(min(self.steps, most))
        effort.left -= self.taken[-1]
        return False


@pytest.fixture
def stages() -> Stages:
    return Stages(expr.var("d", "", 8), session=Session())


def test_what_follows_a_wrong_value_is_compared_briefly(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = Refusing(1000)
    monkeypatch.setattr(cases, "equal", refusing)
    for _ in range(20):
        assert not stages.is_result(ONE, ZERO, ONE)
    limits = Limits()
    assert refusing.taken[0] == 1000
    assert set(refusing.taken[2:]) == {limits.brief_steps}


def test_a_few_steps_in_vain_shorten_nothing(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "equal", Refusing(2))
    for _ in range(10):
        stages.is_result(ONE, ZERO, ONE)
    assert stages.allowance() == Limits().comparison_steps


@pytest.mark.slow
@pytest.mark.parametrize("twin", sorted((TESTDATA / "mlp_2d").glob("broken_*")), ids=lambda path: path.name)
def test_of_a_wrong_module_few_steps_are_taken(twin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong value, what is made of it, and four results: compared at length, they took thousands of steps each."""
    taken = []
    within = Effort.within

    def counted(effort: Effort, *question: object) -> bool:
        left = effort.left
        answer = within(effort, *question)  # type: ignore[arg-type]
        taken.append(left - effort.left)
        return answer

    monkeypatch.setattr(Effort, "within", counted)
    report = hlo_verify.verify(twin.parent / "logical.hlo.gz", twin, refute=False)
    assert report.verdict is Verdict.UNKNOWN
    limits = Limits()
    assert sum(taken) < limits.vain_steps + (limits.vain_comparisons + limits.vain_results) * limits.brief_steps


@pytest.mark.parametrize(
    ("name", "file", "times"),
    [("mlp_2d", "broken_missing_scale", 1), pytest.param("conv_spatial", "partitioned", 2, marks=pytest.mark.slow)],
)
def test_a_walk_is_repeated_only_where_something_more_is_recognised(
    name: str, file: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    walks = []
    walk = prove.walk

    def counted(*modules: Any, **options: Any) -> prove.Outcome:
        walks.append(modules)
        return walk(*modules, **options)

    monkeypatch.setattr(prove, "walk", counted)
    hlo_verify.verify(TESTDATA / name / "logical.hlo.gz", TESTDATA / name / f"{file}.hlo.gz", refute=False)
    assert len(walks) == times
