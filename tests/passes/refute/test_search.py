"""Which inputs are searched through."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hlo_verify.evaluate import Limits as Elements
from hlo_verify.limits import Limits
from hlo_verify.passes.load.load import load
from hlo_verify.passes.refute import granularity, search, trial
from hlo_verify.passes.refute.draws import Draw
from hlo_verify.passes.refute.granularity import Granularities, Granularity
from hlo_verify.passes.refute.refute import Refuter
from hlo_verify.passes.refute.search import Search
from hlo_verify.program.pair import Pair, pair_of
from hlo_verify.session import Session
from tests.support.pairs import REPLICATED, module, on


def pair(kind: str, arguments: str, results: str, body: str, old: str, new: str) -> Pair:
    """A module on one device, of values of one type, and the same with something in its body replaced."""
    given = ", ".join(f"%{name}: {kind} {on(REPLICATED)}" for name in arguments)
    found = ", ".join([f"{kind} {on(REPLICATED)}"] * len(results))
    end = f"\n return {', '.join(f'%{name}' for name in results)} : {', '.join([kind] * len(results))}"
    texts = (module(given, found, each.replace("TYPE", kind) + end, 1) for each in (body, body.replace(old, new)))
    return pair_of(*map(load, texts))


UPDATE = """
    %c = stablehlo.constant dense<1.0e-6> : TYPE
    %g = stablehlo.multiply %w, %c : TYPE
    %a = stablehlo.add %m, %g : TYPE
    %b = stablehlo.add %n, %g : TYPE
    %d = stablehlo.add %o, %g : TYPE
    %e = stablehlo.add %p, %g : TYPE
"""


def test_a_state_does_not_hide_what_it_is_updated_by() -> None:
    """Next to a state of its usual size, the difference is a millionth."""
    modules = pair("tensor<4096xf32>", "wmnop", "abde", UPDATE, "1.0e-6", "2.0e-6")
    assert Search(modules).find(range(4), draws=1) == {0, 1, 2, 3}


RATIO = """
    %c = stablehlo.constant dense<0.01> : TYPE
    %a = stablehlo.abs %x : TYPE
    %b = stablehlo.abs %y : TYPE
    %m = stablehlo.multiply %b, %c : TYPE
    %r = stablehlo.maximum %a, %m : TYPE
"""


def test_arguments_of_different_scales() -> None:
    """The result is the first argument unless the second is more than a hundred times as large."""
    assert Search(pair("tensor<4096xf32>", "xy", "r", RATIO, "0.01", "0.011")).find([0]) == {0}


WRAPPED = """
    %z = stablehlo.constant dense<0> : TYPE
    %c = stablehlo.constant dense<40> : TYPE
    %m = stablehlo.compare LT, %x, %z : (TYPE, TYPE) -> tensor<64xi1>
    %w = stablehlo.add %x, %c : TYPE
    %r = stablehlo.select %m, %w, %x : tensor<64xi1>, TYPE
"""


def test_integers_out_of_range() -> None:
    """As an index from the end of a table is, of which another size is assumed."""
    assert Search(pair("tensor<64xi32>", "x", "r", WRAPPED, "dense<40>", "dense<41>")).find([0]) == {0}


EDGES = {
    "a product": ("i32", 2, "multiply %x, %c", "divide %p, %c", "or %x, %x"),
    "a sum": ("ui8", 100, "add %x, %c", "maximum %p, %c", "or %p, %p"),
    "the last number": ("ui64", 1, "add %x, %c", "maximum %p, %x", "or %p, %p"),
    "the next number": ("i64", 1, "add %x, %c", "maximum %p, %x", "or %p, %p"),
    "the upper half of an unsigned type": ("ui32", 31, "shift_right_logical %x, %c", "shift_left %p, %c", "xor %x, %x"),
}
"""What differs only near the limits of a type."""


@pytest.mark.parametrize("name", EDGES)
def test_integers_at_the_edges_of_their_type_are_drawn(name: str) -> None:
    kind, constant, first, last, other = EDGES[name]
    body = f"""
        %c = stablehlo.constant dense<{constant}> : TYPE
        %p = stablehlo.{first} : TYPE
        %r = stablehlo.{last} : TYPE"""
    assert Search(pair(f"tensor<8x{kind}>", "x", "r", body, last, other)).find([0]) == {0}


def test_halves_are_drawn() -> None:
    body = "%r = stablehlo.round_nearest_afz %x : TYPE"
    assert Search(pair("tensor<4xf32>", "x", "r", body, "nearest_afz", "nearest_even")).find([0]) == {0}


def test_the_rest_is_not_searched_for_much_longer() -> None:
    """Two results: one differs for any inputs, the other only for arguments of different scales."""
    plain = "%s = stablehlo.multiply %x, %c : TYPE" + RATIO.replace("%c = ", "%k = ").replace("%b, %c", "%b, %k")
    body = "%c = stablehlo.constant dense<0.01> : TYPE\n" + plain
    modules = pair("tensor<4096xf32>", "xy", "sr", body, "0.01", "0.011")
    assert Search(modules).find([0, 1]) == {0, 1}
    short = Session(Limits(further_work=-(10**12)))
    assert Search(modules, short).find([0, 1]) == {0}
    assert Search(modules, short).find([1]) == {1}


def test_fewer_classes_are_tried_before_dimensions_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(granularity, "CHEAP", 32)
    found = Search(pair("tensor<16x32x64x128xi1>", "x", "y", "%y = stablehlo.and %x, %x : TYPE", "and", "xor"))
    found.drawing._draws = (Draw(1.0, 8, 8),)
    assert found.find([0], draws=1) == {0}
    (counterexample,) = found.counterexamples([0])
    assert counterexample.trial.inputs[0].values.shape == (1, 2, 2, 2, 2)


SCORES = """
    %q = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (TYPE, TYPE) -> TYPE
    %k = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (TYPE, TYPE) -> TYPE
    %i = stablehlo.iota dim = 0 : TYPE
    %m = stablehlo.multiply %q, %i : TYPE
    %s = stablehlo.dot_general %m, %k, contracting_dims = [1] x [1] : (TYPE, TYPE) -> TYPE
    %p = stablehlo.tanh %s : TYPE
    %o = stablehlo.dot_general %p, %x, contracting_dims = [1] x [0] : (TYPE, TYPE) -> TYPE
    %c = stablehlo.constant dense<2.0> : TYPE
    %a = stablehlo.add %o, %x : TYPE
    %y = stablehlo.multiply %a, %c : TYPE
"""


def test_arguments_are_zero_where_that_keeps_elements_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are all different by their numbers, and so are their scores, unless the weights of one side are 0."""
    modules = pair("tensor<64x64xf32>", "xvw", "y", SCORES, "dense<2.0>", "dense<3.0>")
    monkeypatch.setattr(granularity, "CHEAP", 1 << 9)
    found = Search(modules)
    assert found.find([0], draws=0) == {0}
    (inputs,) = (each.trial.inputs for each in found.counterexamples([0]))
    assert not inputs[1].values.any() and inputs[0].values.any()
    assert found._best[0][1].whole.largest <= 1 << 8


def test_zeros_and_what_is_too_large_show_nothing_of_a_result() -> None:
    found = Search(pair("tensor<64x64xf32>", "xvw", "y", SCORES, "dense<2.0>", "dense<3.0>"), Session())
    assert found.find([0], draws=0) == {0}
    assert found.session.values_seen == {0: True}
    ((_, trial),) = found._best.values()
    large = replace(trial, whole=replace(trial.whole, exceeded=1))
    seen: dict[int, bool] = {}
    large.note_seen(seen, [0], is_telling=False)
    assert seen == {0: False}
    trial.note_seen(seen, [0])
    large.note_seen(seen, [0], is_telling=False)
    assert seen == {0: True}


def test_no_further_zeros_are_tried_that_a_wrong_module_may_not_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = pair("tensor<64x64xf32>", "xvw", "y", SCORES, "dense<2.0>", "dense<2.0>")
    monkeypatch.setattr(granularity, "CHEAP", 1 << 9)
    session = Session()
    session.meter.begin(1)
    assert not Search(modules, session).find([0])
    assert session.inputs == 1 and "wrong_work" in session.spent().limits


def test_only_what_results_need_is_evaluated() -> None:
    modules = pair("tensor<64xf32>", "xy", "xr", RATIO, "0.01", "0.011")
    found = Search(modules)
    assert found.find([1]) == {1}
    (trial,) = {id(each): each for _, each in found._best.values()}.values()
    assert trial.whole.results[0] is None and trial.local.results[0] is None


def test_what_cannot_be_confirmed_is_not_searched_for_much_longer() -> None:
    """Inputs differ at once, for which enclosures take more than they may: two draws, and what it takes to make the
    first plain, are the end."""
    modules = pair("tensor<4096xf32>", "x", "y", "%y = stablehlo.add %x, %x : TYPE", "add", "multiply")
    poor = Session(Limits(interval_work=1, enclosed_work=1, dear_draws=2, shrinking_work=1))
    assert not Search(modules, poor).find([0])
    assert poor.inputs == 2
    assert {"interval_work", "dear_draws"} <= set(poor.spent().limits)


def test_what_will_take_too_much_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """What floating point took tells what enclosures will."""
    modules = pair("tensor<256x256xf32>", "xvw", "y", SCORES, "dense<2.0>", "dense<3.0>")
    passes: list[object] = []
    monkeypatch.setattr(search.Confirmer, "confirm", lambda *given: passes.append(given))
    poor = Session(Limits(interval_work=1 << 18, shrinking_work=1, clear_elements=1))
    assert not Search(modules, poor).find([0], draws=1) and not passes
    assert "interval_work" in poor.spent().limits


KINDS = ((64, 1), (128, 4), (4096, 1), (4096, 8))


def test_what_does_not_fit_is_not_begun_within_an_allowance() -> None:
    """Of a right module, cheap inputs are few of those that there are; having stopped there is no limit run into."""
    modules = pair("tensor<4096xf32>", "xy", "r", RATIO, "", "")
    found = Search(modules)
    found.find([0], draws=2)
    assert found._hardest > 0
    before = found._spent
    assert not found.find([0], work=found._hardest / 2, within=True)
    assert found._spent == before
    assert not found.find([0], work=4 * found._hardest, within=True)
    assert before < found._spent <= before + 4 * found._hardest
    assert not found.session.spent("").limits


def test_what_is_known_to_be_too_large_is_not_tried_again() -> None:
    known = Granularities(KINDS, 2.0)
    assert known.all_fit
    tried = []
    for each in known.choices(0, 4):
        assert not any(map(each.is_finer, tried))
        tried.append(each)
        known.note(each, 1 << 40, 0.0)
    assert tried[0] == Granularity(4)
    assert tried[-1] == Granularity(2, frozenset(KINDS))
    known.relax()
    assert known.elements == 1 << 40
    assert known.all_fit


def test_no_work_is_wasted_on_what_is_too_large() -> None:
    """One failure that took much, and what takes least is next; then what was cheap."""
    known = Granularities(KINDS, 2.0)
    known.note(next(known.choices(0, 4)), 1 << 40, 10.0)
    assert list(known.choices(0, 4)) == [Granularity(2, frozenset(KINDS))]
    fitting = Granularity(2, frozenset(KINDS[:2]))
    known.note(fitting, 0, 1.0)
    assert list(known.choices(1, 4)) == [fitting]
    known.note(fitting, 0, 20.0)
    *finer, last = known.choices(1, 4)
    assert last == fitting
    assert finer[0].detail == 4


@pytest.mark.parametrize("shape", ["1000000000x1000", "3x4000000000000"])
def test_no_inputs_are_drawn_of_a_dimension_that_is_too_long(shape: str) -> None:
    modules = pair(f"tensor<{shape}xf32>", "xy", "a", "%a = stablehlo.add %x, %y : TYPE", "add", "subtract")
    session = Session()
    assert not Search(modules, session).find([0])
    assert session.inputs == 0 and "evaluation_elements" in session.spent().limits


def test_what_is_ordered_is_drawn_apart() -> None:
    """Of experts that are alike, none is the best for certain, however plain the inputs are otherwise."""
    router = """
    %l = stablehlo.dot_general %x, %y, contracting_dims = [1] x [1] : (TYPE, TYPE) -> tensor<12x12xf32>
    %v, %k = chlo.top_k(%l, k = 2) : tensor<12x12xf32> -> (tensor<12x2xf32>, tensor<12x2xi32>)"""
    modules = pair("tensor<12x16xf32>", "xy", "x", router, "k = 2", "k = 2")
    drawn = Search(modules).drawing.draw(Draw(1.0, 2, 8), 0, plain=frozenset({(12, 1), (16, 1)}))
    assert [len(set(classes)) for classes in drawn[0].classes] == [1, 12, 1]


def test_what_takes_least_is_looked_at_alone() -> None:
    """A sum that differs, and scores that need much more: nothing of these is evaluated."""
    body = "%z = stablehlo.add %x, %x : TYPE" + SCORES
    modules = pair("tensor<64x64xf32>", "xvw", "yz", body, "add %x, %x", "multiply %x, %x")
    found = Search(modules)
    assert found.find_first([0, 1], draws=2, work=1) == {1}
    assert found._best[1][1].whole.results[0] is None and found.find([0, 1]) == {1}
    for work, share in ((10**12, 0.5), (1, 1e-3)):  # all of it takes no more than a glance; nor is it so much less
        assert Search(modules).find_first([0, 1], draws=2, work=work, share=share) == set()
    once = Search(modules)
    seen = [(once.find_first([0, 1], draws=2, work=10**12, in_any_case=True), once.session.inputs) for _ in range(2)]
    assert seen[0][0] == {1} and seen[0][1] == seen[1][1] > 0  # it is not searched for again


def test_a_faint_difference_of_inputs_with_few_elements_is_looked_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = pair("tensor<64x64xf64>", "xvw", "y", SCORES, "dense<2.0>", "dense<2.00000095367431640625>")
    monkeypatch.setattr(granularity, "CHEAP", 1 << 9)
    found, left = Search(modules, Session(Limits(clear_elements=0))), []
    confirm = found.confirmer.confirm

    def noted(*given: Any) -> Any:
        left.append(len(found._spared))
        return confirm(*given)

    monkeypatch.setattr(type(found.confirmer), "confirm", lambda _, *given: noted(*given))
    assert found.find([0], draws=0) == {0}
    assert left[0] == 0


def test_inputs_are_made_no_plainer_where_it_takes_too_much_to_confirm_that() -> None:
    modules = pair("tensor<4096xf32>", "xy", "r", RATIO, "0.01", "0.02")
    found = Search(modules)
    assert found.find([0]) == {0}
    drawn = found._best[0][1]
    assert found.counterexamples([0])[0].trial is not drawn
    found._confirming = 1e12
    assert found.counterexamples([0])[0].trial is drawn


def test_single_precision_is_evaluated_within_the_elements_of_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = pair("tensor<4096xf32>", "xy", "r", RATIO, "0.01", "0.02")
    inputs = Search(modules).drawing.draw(Draw(1.0, 2, 8, uneven=True), 0)
    drawn, asked = trial.run(modules, inputs, limits=Elements(1 << 10)), []
    run = trial.run
    monkeypatch.setattr(
        trial, "run", lambda *given, **said: asked.append(said["limits"].elements) or run(*given, **said)
    )
    trial.beyond_noise(drawn, drawn.differences([0], 0.0))
    assert asked == [1 << 10]


PARTS = """
    %k = stablehlo.constant dense<4.0> : TYPE
    %a = stablehlo.multiply %x, %k : TYPE
    %b = stablehlo.exponential %a : TYPE
    %c = stablehlo.tanh %b : TYPE
    %d = stablehlo.add %c, %a : TYPE
"""
"""The last result needs more than the first."""


def test_of_large_inputs_those_results_are_confirmed_that_take_least() -> None:
    modules = pair("tensor<64x64xf32>", "x", "da", PARTS, "4.0", "4.5")
    everything, few = Session(Limits(clear_elements=0)), Session(Limits(clear_elements=0, confirming_work=1))
    assert Search(modules, everything).find([0, 1]) == {0, 1}
    assert "confirming_work" not in everything.spent().limits
    found = Search(modules, few)
    assert found.find([0, 1], draws=1) == {1}
    assert "confirming_work" in few.spent().limits
    assert found.open == {0: search.POSTPONED} and found.evident == {0}
    assert Search(modules, few).find([0]) == {0}  # one is asked about in any case


def test_where_what_takes_least_is_equal_the_others_are_asked_about() -> None:
    """Floats lose all of the first result's digits, and none of the other's."""
    body = """
    %o = stablehlo.constant dense<1.0> : TYPE
    %k = stablehlo.constant dense<2.0> : TYPE
    %s = stablehlo.constant dense<1.0e-15> : TYPE
    %t = stablehlo.tanh %x : TYPE
    %u = stablehlo.multiply %t, %s : TYPE
    %a = stablehlo.exponential_minus_one %u : TYPE
    %c = stablehlo.add %a, %o : TYPE
    %d = stablehlo.log_plus_one %c : TYPE
    %e = stablehlo.multiply %d, %k : TYPE
    """
    other = body.replace("dense<2.0>", "dense<3.0>").replace(
        "%a = stablehlo.exponential_minus_one %u : TYPE",
        "%w = stablehlo.exponential %u : TYPE\n%a = stablehlo.subtract %w, %o : TYPE",
    )
    modules = pair("tensor<64x64xf64>", "x", "ae", body, body, other)
    few = Session(Limits(clear_elements=0, confirming_work=1))
    assert Search(modules, few).find([0, 1]) == {1}


def test_what_evidently_differs_and_takes_too_much_to_enclose() -> None:
    """Nobody tries to prove it; whether it differs stays open."""
    modules = pair("tensor<64x64xf32>", "x", "d", PARTS, "4.0", "4.5")
    bounds = Limits(clear_elements=0, interval_work=1, enclosed_work=1, shrinking_work=0)
    found = Refuter(Search(modules, Session(bounds)))
    assert found.differing([0]) == {0}
    assert not found.search.found([0])
    faint = pair("tensor<64x64xf32>", "x", "d", PARTS, "dense<4.0>", "dense<4.00001>")
    assert Refuter(Search(faint, Session(bounds))).differing([0]) == set()


def test_no_inputs_are_drawn_that_a_wrong_module_may_not_cost() -> None:
    modules = pair("tensor<64x64xf32>", "x", "d", PARTS, "4.0", "4.0")
    session = Session()
    found = Search(modules, session)
    assert not found.find([0], draws=1)
    session.meter.begin(found._foreseen)
    assert not found.find([0])
    assert session.inputs == 1 and "wrong_work" in session.spent().limits


def test_what_clearly_differs_is_confirmed_in_any_case() -> None:
    modules = pair("tensor<64x64xf32>", "x", "d", PARTS, "4.0", "4.5")
    session = Session(Limits(clear_elements=0))
    session.meter.begin(1)
    assert Search(modules, session).find([0]) == {0}


def test_what_hardly_differs_is_not_confirmed_for_more_than_a_wrong_module_may_cost() -> None:
    modules = pair("tensor<64x64xf32>", "x", "d", PARTS, "dense<4.0>", "dense<4.00001>")
    session = Session(Limits(clear_elements=0))
    session.meter.begin(1)
    found = Search(modules, session)
    assert not found.find([0])
    assert found.open == {0: search.GIVEN_UP} and session.spent().limits == ("wrong_work",)


def test_what_one_result_took_alone_has_to_fit_in_for_the_others() -> None:
    body = "%z = stablehlo.add %x, %x : TYPE" + SCORES
    modules = pair("tensor<64x64xf32>", "xvw", "yz", body, "add %x, %x", "multiply %x, %x")
    found = Search(modules, Session(Limits(further_work=0)))
    assert found.find_first([0, 1], draws=2, work=1) == {1}
    inputs = found.session.inputs
    assert found.find([0, 1]) == {1}
    assert found.session.inputs == inputs
