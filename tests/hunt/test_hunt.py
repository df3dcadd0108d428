"""The hunt: its programs, its minimiser on made-up defects, how findings are sorted, and known defects found again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from tools.hunt.campaign import Hunt, hunt, sorted_again
from tools.hunt.case import Argument, Case, Step, from_data, live, pruned, to_data
from tools.hunt.causes import cause_of, features, signature
from tools.hunt.children import Child
from tools.hunt.families import EXPLICIT, FAMILIES, make
from tools.hunt.kinds import ABORT, FALSE_PROOF, FALSE_REFUTATION, MISSED, REFUSED, WHOLE, WRONG, Outcome, kind
from tools.hunt.known import KNOWN
from tools.hunt.machine import _compared
from tools.hunt.maker import is_program, shapes
from tools.hunt.minimise import minimise
from tools.hunt.operations import OPERATIONS
from tools.hunt.source import placed_program, plain_program, script
from tools.hunt.tables import table
from tools.hunt.values import draw

WHOLE_ROW: tuple[tuple[str, ...], ...] = ((),)


def _pad(
    edges: list[tuple[int, int, int]], size: int = 8, result: Any = (("x",),), mesh: tuple[int, ...] = (2,)
) -> Case:
    argument = Argument("float32", (size,), WHOLE_ROW)
    return Case(mesh, (argument,), (Step("pad", (0,), {"edges": edges, "value": 0}),), 1, result)


@pytest.mark.parametrize("family", [*FAMILIES, EXPLICIT])
def test_what_is_drawn_is_a_program_and_the_same_each_time(family: str, seed: int) -> None:
    for number in range(3):
        name, case = make(seed, number, family)
        assert name == family and make(seed, number, family)[1] == case
        assert is_program(case)
        text = json.dumps(to_data(case))
        assert json.dumps(to_data(from_data(json.loads(text)))) == text
        assert pruned(case) == case and live(case) >= {case.value}
        for text in (placed_program(case), plain_program(case), script(case, 0)):
            compile(text, "<hunt>", "exec")
        assert "sharding" not in plain_program(case).partition("def f")[2]


def test_every_operation_is_drawn() -> None:
    missing = set(OPERATIONS)
    for number in range(200):
        for family in ("gather", "scatter") if number > 12 else (*FAMILIES, EXPLICIT):
            missing -= {step.op for step in make(5, number, family)[1].steps}
        if not missing:
            return
    raise AssertionError(missing)


def test_values_are_whole_numbers_in_reach() -> None:
    kinds = [
        ("float32", (4, 3), 0, False),
        ("int32", (64,), 5, False),
        ("int32", (5,), 5, True),
        ("uint8", (64,), 5, False),
    ]
    for seed in range(3):
        floats, indices, distinct, unsigned = draw(kinds, seed)
        assert (floats == floats.round()).all() and floats.shape == (4, 3)
        assert sorted(distinct) == list(range(5)) and unsigned.min() >= 0
        inside = ((indices >= 0) & (indices < 5)).all()
        assert inside == (seed != 2)  # one draw of three has indices outside


def _has(op: str) -> Callable[[Case], bool]:
    return lambda case: any(step.op == op for step in case.steps)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("number", range(4))
def test_the_minimiser_keeps_what_it_is_asked_to(number: int, seed: int) -> None:
    """A made-up defect: any convolution on a mesh of two axes of which one splits an argument."""

    def shows(case: Case) -> bool:
        split = {name for each in case.arguments for names in each.spec for name in names}
        return _has("convolution")(case) and len(case.mesh) == 2 and bool(split)

    cases = (make(seed, n, "convolution")[1] for n in range(number, 400, 4))
    case = next(each for each in cases if shows(each))
    smaller = minimise(case, shows, 2000)
    assert shows(smaller) and is_program(smaller) and smaller.size() <= case.size()
    assert len(smaller.steps) == 1 and smaller.mesh == (2, 2) and smaller.pulled is None and len(smaller.arguments) == 2
    assert sum(len(names) for each in smaller.arguments for names in each.spec) == 1
    assert all(step.spec is None for step in smaller.steps)


def test_the_minimiser_makes_shapes_and_numbers_small() -> None:
    def shows(case: Case) -> bool:
        return {"pad:shift", "split:made"} <= features(case)

    smaller = minimise(_pad([(4, -4, 0)], 24, mesh=(6,)), shows)
    assert smaller.mesh == (2,) and smaller.arguments[0].shape == (2,) and smaller.result == (("x",),)
    assert [abs(low) for low, *_ in smaller.steps[0].attributes["edges"]] == [1]


def test_the_minimiser_asks_programs_alone_and_ends_in_time() -> None:
    asked = []

    def shows(case: Case) -> bool:
        asked.append(case)
        assert is_program(case)
        return False

    case = _pad([(1, -1, 0)])
    assert minimise(case, shows, 5) == case
    assert len(asked) == 5 and len(set(map(repr, asked))) == 5


def test_what_is_surprising() -> None:
    assert kind(Outcome("equal", verdict="PROVED")) is None
    assert kind(Outcome("equal", verdict="UNKNOWN")) is None
    assert kind(Outcome("invalid")) is None
    assert kind(Outcome("differs", verdict="REFUTED")) == WRONG
    assert kind(Outcome("differs", verdict="PROVED")) == FALSE_PROOF
    assert kind(Outcome("differs", verdict="UNKNOWN")) == MISSED
    assert kind(Outcome("differs", verdict="PROVED", by_steps="unlike")) == WHOLE
    assert kind(Outcome("equal", verdict="REFUTED")) == FALSE_REFUTATION
    assert kind(Outcome("equal", verdict="REFUTED", confirmed="UNKNOWN")) == FALSE_REFUTATION
    assert kind(Outcome("equal", verdict="REFUTED", confirmed="REFUTED")) == WRONG
    assert kind(Outcome("abort")) == ABORT and kind(Outcome("refused")) == REFUSED


def test_signatures_sort() -> None:
    """Shapes, devices and numbers do not matter; operations, what is unusual of them, and what XLA says do."""
    wrong = Outcome("differs", verdict="REFUTED", codes=("HV007",), operation="%1 = stablehlo.dynamic_slice %0")
    shift, other = _pad([(1, -1, 0)]), _pad([(2, -2, 0)], 16, mesh=(4,))
    assert signature(WRONG, shift, wrong) == signature(WRONG, other, wrong)
    assert signature(WRONG, shift, wrong) != signature(WRONG, _pad([(1, 0, 1)]), wrong)
    assert "HV007 at dynamic_slice" in signature(WRONG, shift, wrong)
    first = Outcome("abort", "status -6: F1123 11:2 1 spmd_partitioner.cc:1115] Check failed: a == b (1 vs. -1)")
    second = Outcome("abort", "status -6: F0101 17:0 9 spmd_partitioner.cc:1120] Check failed: a == b (3 vs. -2)")
    third = Outcome("abort", "status -6: F0101 17:0 9 spmd_partitioner.cc:1120] Check failed: c == b (3 vs. -2)")
    assert signature(ABORT, shift, first) == signature(ABORT, other, second) != signature(ABORT, shift, third)


def test_known_causes_are_found_by_features() -> None:
    wrong = Outcome("differs", verdict="REFUTED")
    cause = cause_of(WRONG, _pad([(1, -1, 0)]), wrong, KNOWN)
    assert cause is not None and cause.page == "pad-of-whole-operand"
    sum_ = Step("cumulative", (0,), {"function": "cumsum", "dim": 0, "reverse": False})
    greatest = Step("cumulative", (0,), {"function": "cummax", "dim": 0, "reverse": False})
    twice = cause_of(WRONG, replace(_pad([]), steps=(sum_, greatest)), wrong, KNOWN)
    assert twice is not None and twice.page == "windows-padded-apart"
    assert cause_of(WRONG, replace(_pad([]), steps=(sum_, replace(greatest, inputs=(1,)))), wrong, KNOWN) is None
    elsewhere = replace(_pad([(1, -1, 0)]), steps=(Step("reverse", (0,), {"dims": [0]}),))
    assert cause_of(WRONG, elsewhere, wrong, KNOWN) is None
    assert {"pad", "pad:shift", "pad:negative", "mesh:1d", "arguments:whole", "split:made"} == features(
        _pad([(1, -1, 0)])
    )


class FakeChild:
    """A partitioner that gets every reversed value wrong that is split, and dies of a Fourier transform."""

    def __init__(self) -> None:
        self.asked = 0

    def examine(self, case: Case, draws: Sequence[int], *, verify: bool = True, confirm: bool = False) -> Outcome:
        self.asked += 1
        if _has("fourier")(case):
            return Outcome("abort", "status -6: F1 x.cc:1] Check failed: it (1 vs. 2)")
        split = any(any(each.spec) for each in case.arguments)
        if _has("reverse")(case) and split:
            verdict = "REFUTED" if verify else ""
            return Outcome("differs", "device 0 has 1, not 2", draw=draws[0], by_steps="alike", verdict=verdict)
        return Outcome("equal", verdict="PROVED" if verify else "")


def test_a_hunt_finds_shrinks_sorts_and_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.hunt.campaign.RUNS", 60)
    hunting = Hunt(FakeChild(), tmp_path, 3)  # type: ignore[arg-type]
    numbers = [n for n in range(150) if any(s.op in ("reverse", "fourier") for s in make(3, n)[1].steps)][:8]
    records = [hunting.one(number) for number in numbers]
    found = [record for record in records if "kind" in record]
    assert {record["kind"] for record in found} == {WRONG, ABORT}
    for file in tmp_path.glob("wrong-result/*.json"):
        case = from_data(json.loads(file.read_text())["case"])
        assert [step.op for step in case.steps] == ["reverse"] and case.devices == 2 and case.pulled is None
        compile(file.with_suffix(".py").read_text(), "<hunt>", "exec")
    again = sorted_again(tmp_path, [record | {"cause": "another"} for record in records if "kind" in record])
    assert {record["cause"] for record in again if "as_it_is" not in record} == {each["cause"] for each in found}
    text = table(records)
    assert "| wrong result | new: wrong result: reverse | " in text and "x.cc: Check failed: it (N vs. N)" in text


def test_a_defect_of_the_hunt_is_a_record(tmp_path: Path) -> None:
    class Broken(FakeChild):
        def examine(self, case: Case, draws: Sequence[int], *, verify: bool = True, confirm: bool = False) -> Outcome:
            raise ValueError("broken")

    records = hunt(Hunt(Broken(), tmp_path, 3), 7, time.monotonic() + 60)  # type: ignore[arg-type]
    record = next(records)
    assert record["number"] == 7 and record["kind"] == "defect of the hunt" and "broken" in record["cause"]
    assert "defect of the hunt" in table([record])


def test_a_known_defect_is_found_again(tmp_path: Path) -> None:
    """The first program that shifts a whole operand into shards; XLA runs in a child."""
    case = _pad([(2, -2, 0)], 12, mesh=(4,))
    with Child() as child:
        found = child.examine(case, (0,))
        if found.truth == "equal":
            pytest.skip("this jaxlib has mended it")
        assert (found.truth, found.by_steps, found.verdict) == ("differs", "alike", "REFUTED")
        right = child.examine(replace(case, result=WHOLE_ROW), (0,))
        assert (right.truth, right.verdict) == ("equal", "PROVED")
        smallest = Hunt(child, tmp_path, 0).smallest(WRONG, case, found)
    assert smallest.case.mesh == (2,) and shapes(smallest.case)[0][1] <= (4,)
    assert smallest.cause == "a pad that shifts a whole operand is dropped"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "first", "page"),
    [
        ("pad", 0, "pad-of-whole-operand"),
        ("windows", 20, "pooling-gradient"),
        ("convolution", 24, "convolution-several-axes"),
        ("convolution", 1236, "grouped-convolution"),  # an input gradient with two groups on four devices
    ],
)
def test_a_family_is_found_again(
    family: str, first: int, page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From that number on, among the next three; among the next sixty, if programs are drawn in another way."""
    monkeypatch.setattr("tools.hunt.campaign.RUNS", 60)
    pages = {cause.name: cause.page for cause in KNOWN}
    with Child() as child:
        hunting = Hunt(child, tmp_path, 1, family)
        found = (hunting.one(number) for number in range(first, first + 60))
        assert any(pages.get(record.get("cause", "")) == page for record in found)


def test_what_differs_is_known_by_its_draw() -> None:
    same, other = jnp.zeros(2), jnp.zeros(3)
    wanted = np.zeros(2)
    assert _compared((2,), [wanted], [other]).draw == 2
    assert _compared((0, 1, 2), [wanted, wanted, wanted], [same, other, other]).draw == 1
