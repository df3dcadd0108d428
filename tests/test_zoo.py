"""Every bug of the zoo is found, and its right twin is proved (`testdata/bugs/README.md` says what a case is)."""

from __future__ import annotations

import pytest

from hlo_verify import Verdict
from tools.zoo.case import load, names
from tools.zoo.judge import judge

ELSEWHERE = {
    "b28b_softmax_over_split_keys": "the largest of scaled scores is a scaled one: of the right line, another kind",
    "b29a_ring_attention_one_rotation_short": "the loop is not closed, so its permute is named, not its trip count",
}
"""Cases whose report names another line or kind, and why."""


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", names())
def test_right_is_proved_and_wrong_is_refuted_at_its_line(name: str) -> None:
    judged = judge(load(name))
    assert judged.right.verdict is Verdict.PROVED
    assert judged.wrong.verdict is Verdict.REFUTED
    found = judged.case.code in judged.codes and judged.names_the_line
    assert found == (name not in ELSEWHERE), (judged.codes, judged.locations)
