"""Every operation's rule agrees with StableHLO's reference interpreter on random small programs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.ops import RULES
from tests.ops.cases import CASES
from tests.ops.cases.drawing import Case
from tests.support.compare import assert_same
from tests.support.modules import ours
from tests.support.reference import reference


def test_every_rule_has_a_case() -> None:
    assert set(RULES) == set(CASES)


@pytest.mark.drawn(45)
@pytest.mark.parametrize("name", sorted(CASES))
@given(data=st.data())
def test_rule_agrees_with_reference(name: str, data: st.DataObject) -> None:
    check(data.draw(CASES[name]))


def check(case: Case) -> None:
    text, inputs = case.program.text, case.program.inputs
    wanted = case.expected if case.expected is not None else reference(case.program)
    answer = ours(text, inputs, partitions=case.partitions, replicas=case.replicas)
    if answer.unsupported:
        assert case.may_refuse, answer.unsupported
        return
    described = "\n".join([text, *map(repr, inputs)])
    for found, array in zip(answer.results, wanted, strict=True):
        assert_same(found, array, described)
