"""What a module that is wrong may cost."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext

import pytest

from hlo_verify.limits import Limits
from hlo_verify.meter import TERM, Meter
from hlo_verify.passes.diagnose.examine import SHARE_OF_CHEAP, _share_seen, examine
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove import stages
from hlo_verify.passes.prove.prove import OtherReadings
from hlo_verify.program.ir import Module
from hlo_verify.program.pair import has_loops_by_hand
from hlo_verify.report import Verdict
from hlo_verify.session import Session
from tests.support.pairs import REPLICATED, module, on

KIND = "tensor<4xf32>"


def several(function: str, count: int = 3) -> Module:
    """A module of so many results, all of that function of an argument."""
    placed = f"{KIND} {on(REPLICATED)}"
    lines = [f"%y{n} = stablehlo.{function} %x{n} : {KIND}" for n in range(count)]
    results = ", ".join(f"%y{n}" for n in range(count))
    end = f"return {results} : {', '.join([KIND] * count)}"
    arguments = ", ".join(f"%x{n}: {placed}" for n in range(count))
    return load(module(arguments, ", ".join([placed] * count), "\n".join([*lines, end]), 1))


@pytest.mark.parametrize("is_known", [False, True])
def test_sums_of_products_are_compared_with_what_other_results_left(
    is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def same(found: object, expected: object, session: Session, inside: object, steps: stages.Steps) -> bool:
        asked.append(steps.left)
        steps.left -= session.limits.network_steps // 2
        return False

    monkeypatch.setattr(stages, "same_network", same)
    session = Session(Limits(wrong_work=10**12))
    examine(several("sine"), several("cosine"), differing=lambda _, **__: {1} if is_known else set(), session=session)
    most = session.limits.network_steps
    assert asked == ([most // stages.SHARE_NETWORK] if is_known else [most, most // 2])


def test_sums_of_products_take_no_more_than_half_of_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def same(found: object, expected: object, session: Session, inside: object, steps: stages.Steps) -> bool:
        asked.append(steps.left)
        session.meter.charge(TERM * steps.left)
        return False

    monkeypatch.setattr(stages, "same_network", same)
    limits = Limits(wrong_work=1000 * TERM, unseen_difference=0)
    examine(several("sine", 2), several("cosine", 2), session=Session(limits))
    assert 0 < asked[1] <= asked[0] / 2 <= 300


def test_nothing_more_is_compared_where_a_wrong_module_took_all_that_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report says so; what is equal by construction is proved all the same. Where nothing was seen to differ there
    is more for proofs."""
    asked: list[int] = []

    def differing(results: object, **_: object) -> set[int]:
        session.meter.charge(session.meter.allowed)
        return set()

    monkeypatch.setattr(stages.cases, "equal", lambda *_: asked.append(0))
    monkeypatch.setattr(stages, "same_network", lambda *_: asked.append(1))
    monkeypatch.setattr(OtherReadings, "prove", lambda *_, **__: False)
    session = Session()
    examine(several("sine"), several("cosine"), differing=differing, session=session)
    assert asked
    asked.clear()
    session = Session(Limits(unseen_difference=0))
    found = examine(several("sine"), several("cosine"), differing=differing, session=session).report
    assert not asked and session.spent().limits == ("wrong_work",)
    assert {each.verdict for each in found.results} == {Verdict.UNKNOWN}
    assert examine(several("sine"), several("sine"), session=session).report.verdict is Verdict.PROVED


@pytest.mark.parametrize("is_by_hand", [False, True])
@pytest.mark.parametrize(("is_seen", "has_meaning"), [(False, True), (True, True), (False, False)])
def test_there_is_no_more_for_proofs_of_what_inputs_show_nothing_of(
    is_seen: bool, has_meaning: bool, is_by_hand: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That no inputs were seen to make a difference says nothing where there were no values, as they are too large; but
    a right module with a kernel that has no meaning here never has any. One of a compiler's takes no more."""
    asked: list[int] = []
    monkeypatch.setattr("hlo_verify.passes.diagnose.examine.has_loops_by_hand", lambda _: is_by_hand)

    def differing(results: object, **_: object) -> set[int]:
        session.values_seen |= dict.fromkeys(range(3), is_seen)
        session.lacks_meanings = not has_meaning
        session.meter.charge(2 * session.meter.allowed)
        return set()

    monkeypatch.setattr(stages.cases, "equal", lambda *_: asked.append(0))
    monkeypatch.setattr(stages, "same_network", lambda *_: asked.append(1))
    monkeypatch.setattr(OtherReadings, "prove", lambda *_, **__: False)
    session = Session()
    examine(several("sine"), several("cosine"), differing=differing, session=session)
    assert bool(asked) == (is_seen or (is_by_hand and not has_meaning))


def test_a_search_leaves_half_of_it_for_proofs() -> None:
    left = []

    def differing(results: object, **_: object) -> set[int]:
        left.append(session.meter.left)
        session.meter.charge(max(0.0, session.meter.left))
        assert not session.affords()
        return set()

    session = Session()
    examine(several("sine"), several("cosine"), differing=differing, session=session)
    assert left[0] >= session.limits.wrong_work / 2
    assert session.meter.left > 0


@pytest.mark.parametrize("is_known", [False, True])
def test_loops_of_modules_that_are_wrong_are_read_in_one_way(is_known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def prove(self: OtherReadings, n: int, decide: bool = True) -> bool:
        if decide:
            asked.append(n)
        return False

    monkeypatch.setattr(OtherReadings, "prove", prove)
    differing = {1} if is_known else set[int]()
    examine(several("sine", 6), several("cosine", 6), differing=lambda _, **__: differing)
    assert asked == ([] if is_known else [0, 1, 2, 3])


LOOP = """
    %n = stablehlo.constant dense<3> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %w:2 = stablehlo.while(%i = %z, %v = %x) : tensor<i32>, tensor<8xf32>
    cond {
      %t = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %t : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %u = stablehlo.FUNCTION %v : tensor<8xf32>
      stablehlo.return %j, %u : tensor<i32>, tensor<8xf32>
    }
    return %w#1 : tensor<8xf32>"""


@pytest.mark.parametrize("is_large", [False, True])
def test_inputs_are_searched_for_in_earnest_before_large_loops_are_read_in_other_ways(is_large: bool) -> None:
    typed = f"tensor<8xf32> {on(REPLICATED)}"
    modules = [load(module(f"%x: {typed}", typed, LOOP.replace("FUNCTION", name), 1)) for name in ("sine", "cosine")]
    asked: list[float] = []

    def differing(_: object, *, in_earnest: bool = False, work: float = 0.0) -> set[int]:
        asked.append(work)
        return set()

    limits = Limits(reading_operations=1) if is_large else Limits()
    session = Session(limits)
    examine(modules[0], modules[1], differing=differing, session=session)
    assert asked == [0.0, math.inf if is_large else SHARE_OF_CHEAP * session.meter.allowed]


def looping(function: str, sharding: str = "") -> Module:
    """A module with a loop that applies that function, and an annotation on it."""
    typed = f"tensor<8xf32> {on(REPLICATED)}"
    body = LOOP.replace("FUNCTION", function).replace(
        ") : tensor<i32>, tensor<8xf32>\n", f") : tensor<i32>, tensor<8xf32> {sharding}\n"
    )
    return load(module(f"%x: {typed}", typed, body, 1))


@pytest.mark.parametrize("is_by_hand", [False, True])
def test_only_loops_that_a_person_wrote_are_read_in_other_ways_with_what_is_lent(
    is_by_hand: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hlo_verify.passes.prove.prove.has_loops_by_hand", lambda _: is_by_hand)
    session, readings = Session(), []

    def differing(_: object, **__: object) -> set[int]:
        session.meter.charge(session.meter.allowed)
        return set()

    def walked(self: OtherReadings, reading: object) -> None:
        readings.append(reading)

    monkeypatch.setattr(OtherReadings, "_walked", walked)
    examine(looping("sine"), looping("cosine"), differing=differing, session=session)
    assert len(readings) == (2 if is_by_hand else 0)


@pytest.mark.parametrize("is_searched", [False, True])
@pytest.mark.parametrize("is_by_hand", [False, True])
def test_nothing_is_lent_where_nobody_looked_for_inputs_at_what_a_compiler_made(
    is_searched: bool, is_by_hand: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing speaks for it then. What a person distributed takes more to prove."""
    monkeypatch.setattr("hlo_verify.passes.diagnose.examine.has_loops_by_hand", lambda _: is_by_hand)
    lent: list[float] = []

    def lending(_: Meter, work: float) -> AbstractContextManager[None]:
        lent.append(work)
        return nullcontext()

    monkeypatch.setattr(Meter, "lending", lending)
    session = Session()
    examine(
        several("sine"), several("cosine"), differing=(lambda _, **__: ()) if is_searched else None, session=session
    )
    more = session.limits.unseen_difference * session.meter.allowed
    assert lent == [more if is_searched or is_by_hand else 0.0]


def test_a_reading_that_takes_more_than_there_is_proves_nothing() -> None:
    """It ends there, and is not begun again."""
    for work, is_all in ((10**9, True), (20 * TERM, False)):
        session = Session()
        with session.on():
            session.meter.begin(work)
            pair = looping("sine"), looping("sine")
            placed = [each for each in pair[0].result_shardings if each is not None]
            readings = OtherReadings(*pair, placed, session)
            assert readings.prove(0) is is_all
            assert readings.prove(0) is is_all
            assert ("wrong_work" in session.spent().limits) is not is_all


def test_loops_by_hand_are_told_by_regions_and_by_annotations() -> None:
    assert not has_loops_by_hand(looping("sine"))
    assert not has_loops_by_hand(looping("sine", 'attributes {mhlo.sharding = "{{replicated}, {replicated}}"}'))
    assert has_loops_by_hand(looping("sine", 'attributes {mhlo.sharding = "{{manual}, {manual}}"}'))


def test_nothing_more_is_proved_of_what_looked_different() -> None:
    """Results that no inputs were drawn for are like the others; one that evidently differs is enough."""
    session = Session()
    assert _share_seen([0, 1], session, is_by_hand=False) == 1.0
    session.values_seen[0] = False
    assert _share_seen([0, 1], session, is_by_hand=False) == 0.0
    session.values_seen[1] = True
    assert _share_seen([0, 1, 2], session, is_by_hand=False) == 0.5
    session.seems_wrong = True
    assert _share_seen([0, 1, 2], session, is_by_hand=False) == 0.0
