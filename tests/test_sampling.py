"""Which tests are slow, and which part of them a run takes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.sampling import COSTLY, Part, listed, others_than, part, slow


def item(name: str, *marks: pytest.MarkDecorator, **params: Any) -> Any:
    """A case of a test, as pytest collects it."""
    marked = {each.name: each.mark for each in marks}
    return SimpleNamespace(
        nodeid=f"tests/test_it.py::{name}", get_closest_marker=marked.get, callspec=SimpleNamespace(params=params)
    )


def drawn(count: int, **kwargs: Any) -> list[Any]:
    """Cases of a test, by two parameters."""
    mark = pytest.mark.drawn(count, **kwargs)
    return [item(f"test_drawn[{a}-{b}]", mark, a=a, b=b) for a in range(4) for b in range(10)]


def test_what_is_marked_is_slow_and_what_is_not_is_not() -> None:
    found = slow([item("test_slow", pytest.mark.slow), item("test_quick"), item("test_case[1]")], 0)
    assert found == {"tests/test_it.py::test_slow"}


def test_as_many_as_are_asked_for_are_drawn() -> None:
    cases, alike = drawn(3), [item(f"test_other[{n}]", pytest.mark.drawn(2)) for n in range(5)]
    found = slow(cases + alike, 7)
    assert [sum(each.nodeid not in found for each in these) for these in (cases, alike)] == [3, 2]
    assert not slow(drawn(40), 7)


def test_as_many_of_every_kind_are_drawn() -> None:
    cases = drawn(2, each=lambda a, b: a)
    found = slow(cases, 7)
    left = [each.callspec.params["a"] for each in cases if each.nodeid not in found]
    assert left == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_seed_says_what_is_drawn_in_whatever_order_tests_are_collected() -> None:
    assert slow(drawn(3), 7) == slow(drawn(3)[::-1], 7)
    runs = {case for seed in range(100) for case in {each.nodeid for each in drawn(3)} - slow(drawn(3), seed)}
    assert len(runs) == 40, "some are never drawn"


def test_every_slow_test_is_in_one_part() -> None:
    names = [each.nodeid for each in drawn(1)]
    assert all(sum(Part(number, 7).holds(name) for number in range(1, 8)) == 1 for name in names)
    assert all(part("1/1").holds(name) for name in names)


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "a/b", "-1/-1"])
def test_what_is_no_part_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        part(text)


def test_costly_tests_are_dealt_out() -> None:
    costs = {
        "tests/test_a.py::test_one[a b]": 3.0,
        "tests/test_a.py::test_two": 9.0,
        "tests/test_b.py::test_three": 1.0,
    }
    text = listed(costs | {"tests/test_a.py::test_cheap": 0.2, "tests/test_soundness_nan.py::test_dear": 8.0})
    parts = [set(costs) - others_than(Part(number, 2), text) for number in (1, 2)]
    assert parts == [{"tests/test_a.py::test_two", "tests/test_b.py::test_three"}, {"tests/test_a.py::test_one[a b]"}]


def test_costly_tests_are_in_files_that_are_there() -> None:
    files = {line.split(" ", 1)[1].partition("::")[0] for line in COSTLY.read_text(encoding="utf-8").splitlines()}
    assert files and all((Path(__file__).parents[1] / file).exists() for file in files)
