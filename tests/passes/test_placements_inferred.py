"""Every kind of placement, of arguments and of results: what is right is PROVED and says which, what is wrong never."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import pytest

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.diagnostics import Annotation
from tests.support.ranks import psum, rank, whole

Function = Callable[[Any], Any]
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """What is computed, what a device computes of its part, and what it should not."""

    logical: Function
    right: Function
    wrong: tuple[Function, ...]
    whole: Shape
    part: Shape
    devices: int
    said: str


def _total(x: Any) -> Any:
    return jnp.sum(jnp.tanh(x))


def _columns(x: Any) -> Any:
    return jnp.sum(x, 0)


ARGUMENTS = {
    "replicated": Case(
        jnp.tanh, jnp.tanh, (jnp.sin, lambda x: psum(jnp.tanh(x))), (4, 6), (4, 6), 2, "x, result replicated"
    ),
    "split along the first dimension": Case(
        _total,
        lambda x: psum(_total(x)),
        (lambda x: psum(jnp.sum(x)), lambda x: psum(_total(x)) / 2, _total),
        (4, 6),
        (2, 6),
        2,
        "x split along dimension 0 over 2 devices",
    ),
    "split along the second dimension": Case(
        _total,
        lambda x: psum(_total(x)),
        (lambda x: psum(jnp.sum(jnp.sin(x))), lambda x: psum(_total(x)) * 2),
        (4, 6),
        (4, 3),
        2,
        "x split along dimension 1 over 2 devices",
    ),
    "copies": Case(
        _total,
        lambda x: psum(_total(x)) / 2,
        (lambda x: psum(_total(x)) / 4, lambda x: psum(jnp.sum(x)) / 2),
        (4, 6),
        (2, 6),
        4,
        "x split along dimension 0 in 2 over 4 devices, 2 copies of each",
    ),
    "addends": Case(
        jnp.tanh,
        lambda x: jnp.tanh(psum(x)),
        (lambda x: psum(jnp.tanh(x)), lambda x: jnp.tanh(psum(x) / 3), lambda x: jnp.tanh(psum(x)) + x),
        (4, 6),
        (4, 6),
        2,
        "x the sum of addends on 2 devices",
    ),
    "zeros": Case(
        _total,
        lambda x: psum(_total(x)),
        (lambda x: psum(jnp.sum(jnp.cos(x))), lambda x: psum(_total(x)) * 3),
        (4, 6),
        (1, 6),
        8,
        "x split along dimension 0 over devices 0, 1, 2, 3, zeros beside them",
    ),
    "a split that does not come out even, with zeros": Case(
        _total,
        lambda x: psum(_total(x)),
        (lambda x: psum(jnp.sum(jnp.cos(x))), lambda x: psum(_total(x)) / 2),
        (7,),
        (4,),
        2,
        "x split along dimension 0 over 2 devices, the last padded with zeros",
    ),
}

RESULTS = {
    "split along the first dimension": Case(
        jnp.tanh, jnp.tanh, (jnp.sin, lambda x: jnp.tanh(x[::-1])), (4, 6), (2, 6), 2,
        "x split along dimension 0 over 2 devices; result split along dimension 0 over 2 devices",
    ),
    "split along the second dimension": Case(
        lambda x: jnp.cumsum(x, 0), lambda x: jnp.cumsum(x, 0), (lambda x: x, lambda x: jnp.cumsum(x, 1)),
        (4, 6), (4, 3), 2,
        "x split along dimension 1 over 2 devices; result split along dimension 1 over 2 devices",
    ),
    "copies": Case(
        jnp.tanh, jnp.tanh, (jnp.sin, lambda x: psum(jnp.tanh(x)) / 4), (4, 6), (2, 6), 4,
        "result split along dimension 0 in 2 over 4 devices, 2 copies of each",
    ),
    "padding": Case(
        jnp.tanh, jnp.tanh, (jnp.sin, lambda x: jnp.tanh(x) + 1), (7,), (4,), 2,
        "result split along dimension 0 over 2 devices, the last padded",
    ),
    "replicated": Case(
        _columns, lambda x: psum(_columns(x)), (_columns, lambda x: psum(_columns(x)) / 2),
        (4, 6), (2, 6), 2,
        "result replicated",
    ),
}  # fmt: skip

CASES = {
    **{f"argument: {name}": case for name, case in ARGUMENTS.items()},
    **{f"result: {name}": case for name, case in RESULTS.items()},
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_is_right_is_proved_and_says_how_it_is_placed(case: Case) -> None:
    report = hlo_verify.verify(whole(case.logical, [case.whole]), rank(case.right, [case.part], case.devices))
    assert report.verdict is Verdict.PROVED
    assert case.said in report.headline and report.headline.startswith("PROVED with ")


WRONG = [(name, n) for name, case in CASES.items() for n in range(len(case.wrong))]


@pytest.mark.drawn(4)
@pytest.mark.parametrize(("name", "n"), WRONG)
def test_what_is_wrong_is_never_proved(name: str, n: int) -> None:
    case = CASES[name]
    report = hlo_verify.verify(whole(case.logical, [case.whole]), rank(case.wrong[n], [case.part], case.devices))
    assert report.verdict is not Verdict.PROVED
    if report.verdict is Verdict.REFUTED:
        assert report.headline == "REFUTED under every placement that the shapes allow"
    else:
        assert isinstance(report.results[0].code, Annotation)


def test_a_result_that_is_stated_to_be_a_sum(tmp_path: Path) -> None:
    path = tmp_path / "results.toml"
    path.write_text('[results]\n0 = "{unreduced}"\n')
    pair = whole(_columns, [(4, 6)]), rank(_columns, [(2, 6)], 2)
    found = hlo_verify.verify(*pair)
    assert found.verdict is Verdict.UNKNOWN and found.results[0].code is Annotation.UNREDUCED_RESULT
    assert hlo_verify.verify(*pair, results=path).verdict is Verdict.PROVED
