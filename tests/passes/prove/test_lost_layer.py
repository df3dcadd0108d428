"""Of a module that is wrong in one layer, that layer is found, and the others are derived once all the same."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.passes.chain import by_people, precondition_search
from hlo_verify.passes.chain.between import Question
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.in_layers import Layered
from hlo_verify.passes.prove.prove import by_layers
from hlo_verify.passes.refute.when_asked import WhenAsked
from hlo_verify.program.ir import Module
from hlo_verify.session import Session
from tests.passes.prove.test_layer_sharing import LAYERS, LOGICAL, PARTITIONED, Lines, X, _broken
from tests.passes.prove.test_layer_sharing import _layer as layer_of_devices

FAULTS = {
    "not reduced": ("%x{n}, %y{n}", "%x{n}, %p{n}"),
    "no residual": ("%x{n}, %y{n}", "%y{n}, %y{n}"),
    "another function": ("tanh", "logistic"),
}


def derived(partitioned: str, logical: str = LOGICAL) -> Layered:
    session = Session()
    with session.on():
        found = by_layers(load(logical), load(partitioned), session)
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


def _recomputing(text: str, layer: Lines | None) -> str:
    """A program in which each layer's value is used again from behind, as gradients do; computed once more, if so."""
    lines, value = [], f"%x{LAYERS}"
    for n in reversed(range(LAYERS)):
        again = "\n".join(layer(n)) if layer is not None else f"%rx{n + 1} = stablehlo.negate %x{n + 1} : {X}"
        again = re.sub(r"%([ahpy]\d)", r"%r\1", again).replace(f"%x{n + 1} =", f"%n{n} =")
        again += f"\n%rx{n + 1} = stablehlo.negate %n{n} : {X}" if layer is not None else ""
        lines += [again, f"%g{n} = stablehlo.multiply {value}, %rx{n + 1} : {X}"]
        value = f"%g{n}"
    return text.replace(f"return %x{LAYERS}", "\n".join([*lines, f"return {value}"]))


@pytest.mark.parametrize("at", [3, 4])
def test_a_layer_that_is_computed_once_more_and_wrongly_is_a_pair(at: int) -> None:
    def wrong(n: int) -> list[str]:
        lines = layer_of_devices(n)
        return [line.replace(f"%x{n}, %y{n}", f"%x{n}, %p{n}") for line in lines] if n == at else lines

    logical = _recomputing(LOGICAL, None)
    assert hlo_verify.verify(logical, _recomputing(PARTITIONED, layer_of_devices), refute=False)
    lost = derived(_recomputing(PARTITIONED, wrong), logical).lost
    assert lost is not None
    assert {op.name for op in lost.partitioned.main.ops} == {"dot_general", "tanh", "add"}
    report = hlo_verify.verify(logical, _recomputing(PARTITIONED, wrong))
    assert report.verdict is Verdict.REFUTED


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


def test_constants_are_read_anew_in_the_layer_that_is_lost_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def proof_of(logical: Module, *_: object) -> tuple[None, None]:
        sizes.append(len(logical.main.ops))
        return None, None

    monkeypatch.setattr(WhenAsked, "differing", lambda *_, **__: set())
    monkeypatch.setattr(by_people, "proof_by_people", proof_of)
    hlo_verify.verify(LOGICAL, _broken(3, "tanh", "logistic"))
    assert sizes == [len(load(LOGICAL).main.ops) / LAYERS]


def test_a_layer_that_is_lost_is_asked_first_whether_indices_lie_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    found = derived(_broken(3, "tanh", "logistic"))
    assert found.lost is not None
    monkeypatch.setattr(precondition_search, "that_indices_lie_inside", lambda _: [()])
    monkeypatch.setattr(precondition_search, "terms_left", pytest.fail)
    question = Question(load(LOGICAL), load(PARTITIONED))
    assert precondition_search.suggested(question, found.report, [], Session(), found.lost) is None
