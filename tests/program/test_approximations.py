"""How approximations are written."""

from __future__ import annotations

from typing import Any

import pytest
from jax.sharding import PartitionSpec as P

from hlo_verify.diagnostics.errors import InputError
from hlo_verify.program.approximations import named, parse, read


@pytest.mark.parametrize(
    "given",
    [
        {"batch/mean": "stats/mean"},
        "batch/mean = stats/mean",
        ["batch/mean=stats/mean"],
        {"batch/mean": " stats/mean "},
    ],
    ids=["a table", "a text", "texts", "with blanks"],
)
def test_forms_mean_the_same(given: Any) -> None:
    (found,) = read(given)
    assert (found.partitioned.scope, found.logical.scope, found.placement) == (("batch", "mean"), ("stats", "mean"), "")


@pytest.mark.parametrize(
    "given",
    [{"a": ("b", P("x", None))}, {"a": ("b", "P('x', None)")}, {"a": "b at P('x', None)"}, "a = b at P('x', None)"],
    ids=["a spec", "its text", "in a table", "in a text"],
)
def test_placements(given: Any) -> None:
    (found,) = read(given)
    assert found.placement == "P('x', None)" and str(found.logical) == "b"


def test_lines_and_gradients() -> None:
    assert (named("g.py:41").file, named("g.py:41").line) == ("g.py", 41)
    assert named("src/a/g.py:41").file == "src/a/g.py"
    assert named("transpose(stats/mean)").backward and named("transpose(stats/mean)").scope == ("stats", "mean")
    assert named("transpose(g.py:41)").line == 41
    assert named("stats[2]").which == 2 and not named("stats").backward


MISTAKES: dict[str, Any] = {
    "a number": {"a": 3},
    "no equals sign": "a",
    "two equals signs": "a = b = c",
    "an empty name": " = b",
    "parentheses": "f(a) = b",
    "a number of names": [3],
    "no placement": {"a": ("b", 3)},
}


@pytest.mark.parametrize("which", MISTAKES)
def test_what_is_none(which: str) -> None:
    with pytest.raises(InputError, match="not an approximation"):
        read(MISTAKES[which])


def test_a_text_is_said_as_it_was_written() -> None:
    assert str(parse("a  =  stats/b[1]  at {devices=[2]<=[2]}")) == "a = stats/b[1] at {devices=[2]<=[2]}"
