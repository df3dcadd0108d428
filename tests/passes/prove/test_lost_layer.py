"""Of a module that is wrong in one layer, that layer is found, and the others are derived once all the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.in_layers import Layered
from hlo_verify.passes.prove.prove import by_layers
from hlo_verify.session import Session
from tests.passes.prove.test_layer_sharing import LAYERS, LOGICAL, PARTITIONED, _broken

FAULTS = {
    "not reduced": ("%x{n}, %y{n}", "%x{n}, %p{n}"),
    "no residual": ("%x{n}, %y{n}", "%y{n}, %y{n}"),
    "another function": ("tanh", "logistic"),
}


def derived(partitioned: str) -> Layered:
    session = Session()
    with session.on():
        found = by_layers(load(LOGICAL), load(partitioned), session)
    assert found is not None
    return found


@pytest.mark.parametrize("at", [0, 1, 3, LAYERS - 1])
@pytest.mark.parametrize("fault", FAULTS)
def test_the_layer_that_is_wrong_is_a_pair_of_its_own(fault: str, at: int) -> None:
    old, new = (text.format(n=at) for text in FAULTS[fault])
    found = derived(_broken(at, old, new))
    assert found.report.verdict is Verdict.UNKNOWN
    lost = found.lost
    assert lost is not None
    # one layer, whichever it is: what lies before it is an argument
    assert len(lost.logical.main.ops) == len(load(LOGICAL).main.ops) / LAYERS
    names = load(LOGICAL).argument_names
    assert {names[1 + 2 * at], names[2 + 2 * at]} <= set(lost.logical.argument_names)
    assert len(lost.logical.argument_names) == len(lost.partitioned.argument_names) == 3
    assert lost.reaches(load(_broken(at, old, new)), [0]) == {0}
    assert hlo_verify.verify(lost.logical, lost.partitioned, refute=False).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("at", [1, 4])
def test_a_layer_is_proved_where_it_is_right(at: int) -> None:
    """The pair that is made of a wrong layer, with the right operations put back."""
    old, new = (text.format(n=at) for text in FAULTS["another function"])
    lost = derived(_broken(at, old, new)).lost
    assert lost is not None
    ops = tuple(replace(op, name="tanh") if op.name == "logistic" else op for op in lost.partitioned.main.ops)
    assert ops != lost.partitioned.main.ops
    mended = replace(lost.partitioned, main=replace(lost.partitioned.main, ops=ops))
    assert hlo_verify.verify(lost.logical, mended, refute=False).verdict is Verdict.PROVED


def test_what_follows_a_wrong_layer_is_shared() -> None:
    """As many terms as for the right module, and a layer or two."""
    right, wrong = (derived(text).terms for text in (PARTITIONED, _broken(1, "tanh", "logistic")))
    assert wrong < 4 * right


@pytest.mark.parametrize("fault", FAULTS)
def test_the_report_is_of_the_whole_module(fault: str) -> None:
    old, new = (text.format(n=3) for text in FAULTS[fault])
    report = hlo_verify.verify(LOGICAL, _broken(3, old, new))
    assert report.verdict is Verdict.REFUTED
    (result,) = report.results
    assert result.witness is not None and result.finding is not None and result.location
