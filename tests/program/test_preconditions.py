"""Preconditions: how they are written, which arguments they are about, and which are none."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.passes.load.load import load
from hlo_verify.program import preconditions
from hlo_verify.program.allowed_values import Values
from hlo_verify.program.preconditions import Precondition, apply, assumed, path_of, read, said

MODULE = """
module @m attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%a: tensor<4xi32> loc("batch['tokens']"), %b: tensor<4xui8> loc("batch['labels']"),
                         %c: tensor<4xf32> loc("state.scale"), %d: tensor<4xi1> loc("mask")) -> tensor<4xf32> {
    return %c : tensor<4xf32>
  }
}
"""
HALF_OPEN = (False, True)


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ((0, 64), Values(0, 64, HALF_OPEN)),
        ([0, 64], Values(0, 64, HALF_OPEN)),
        (range(3, 9), Values(3, 9, HALF_OPEN)),
        ((np.int32(0), np.int64(64)), Values(0, 64, HALF_OPEN)),
        ((-0.5, float("inf")), Values(Fraction(-1, 2), None, (False, False))),
        ("positive", Values(0, None, (True, False))),
        ("is nonnegative", Values(0)),
        ("in [0, 64)", Values(0, 64, HALF_OPEN)),
        ("(0, 0.5]", Values(0, Fraction(1, 2), (True, False))),
        ("[1e-3, inf)", Values(Fraction(1e-3))),
    ],
)
def test_values_are_read(given: Any, values: Values) -> None:
    assert read({"x": given}) == (Precondition("x", values),)


@pytest.mark.parametrize(
    "text", ["tokens in [0, 32000)", "x is positive", "params/* is nonnegative", "a b in (0, 0.5]", "x in [-8, inf)"]
)
def test_what_is_written_is_read_and_written_the_same(text: str) -> None:
    (found,) = read(text)
    assert str(found) == text
    assert read([text, found]) == (found, found)


@pytest.mark.parametrize(
    "given",
    [
        "tokens",
        "tokens in 0, 64",
        "tokens in [0, 64, 2)",
        "tokens is odd",
        {"x": 3},
        {"x": (0, 64, 2)},
        {"x": range(0, 64, 2)},
        {"x": ("a", "b")},
        {"x": (float("nan"), 1)},
        {"x": (False, True)},
        {"x": None},
        [3],
    ],
)
def test_what_cannot_be_read_has_one_message(given: Any) -> None:
    with pytest.raises(InputError, match="not a precondition") as raised:
        read(given)
    assert raised.value.code is Input.PRECONDITION


@pytest.mark.parametrize("given", [(64, 64), (64, 0), "in (1, 1]"])
def test_a_range_without_numbers_is_an_error(given: Any) -> None:
    with pytest.raises(InputError, match="no number lies in the range"):
        read({"x": given})


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("tokens", "tokens"),
        ("batch['tokens']", "batch/tokens"),
        ("params['w'][0].kernel", "params/w/0/kernel"),
        ('args[1]["x"]', "args/1/x"),
        ("a.b.c", "a/b/c"),
    ],
)
def test_paths(name: str, path: str) -> None:
    assert path_of(name) == path


@pytest.mark.parametrize(
    ("pattern", "which"),
    [
        ("batch['tokens']", [0]),
        ("batch/tokens", [0]),
        ("*tokens", [0]),
        ("*", [0, 1, 2]),
        ("batch/*", [0, 1]),
        ("state/scale", [2]),
        ("state.scale", [2]),
    ],
)
def test_which_arguments_it_is_about(pattern: str, which: list[int]) -> None:
    names = load(MODULE).argument_names[:3]
    assert [n for n, name in enumerate(names) if Precondition(pattern, Values(0)).matches(name)] == which


def test_several_hold_together() -> None:
    module = apply(load(MODULE), read(["batch/* in [2, 300)", "batch/tokens in [-5, 9)", "*scale is positive"]))
    assert assumed(module) == (
        Values(2, 9, HALF_OPEN),
        Values(2, 256, HALF_OPEN),
        Values(0, None, (True, False)),
        None,
    )
    assert said(module) == (
        "batch['tokens'] in [2, 9)",
        "batch['labels'] in [2, 256)",
        "state.scale is positive",
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("tokens in [0, 4)", "there is no such argument; did you mean batch/tokens?"),
        ("nothing in [0, 4)", "they are batch/tokens, batch/labels, state/scale, mask"),
        ("batch/labels in [300, 400)", "no number of argument batch\\['labels'\\], .*, lies there"),
        ("batch/labels in [-5, 0)", "lies there"),
        ("batch/tokens in [0.2, 0.7]", "lies there"),
        ("mask in [0, 1)", "in no order"),
        (["batch/tokens in [0, 4)", "batch/tokens in [4, 9)"], "no input satisfies all that is assumed"),
    ],
)
def test_what_no_input_satisfies_is_an_error(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        apply(load(MODULE), read(given))
    assert raised.value.code is Input.PRECONDITION


def test_many_arguments_are_named_in_part() -> None:
    names = tuple(f"params[{n}]" for n in range(9))
    module = preconditions.replace(load(MODULE), argument_names=names, assumed=(Values(0),) * 9)
    assert said(module) == (f"{', '.join(names[:6])} and 3 more is nonnegative",)


@pytest.mark.parametrize(
    ("values", "least", "greatest", "does"),
    [
        (Values(0, 64, HALF_OPEN), 0, 63, True),
        (Values(0, 64, HALF_OPEN), 0, 64, False),
        (Values(0, 64, HALF_OPEN), -1, 3, False),
        (Values(0, None, (True, False)), 0, 1, False),
        (Values(0, None, (True, False)), 1e-300, 1e300, True),
        (Values(0), 0, float("inf"), False),
        (Values(), float("nan"), 1, False),
    ],
)
def test_what_values_admit(values: Values, least: float, greatest: float, does: bool) -> None:
    assert values.admits(least, greatest) is does
