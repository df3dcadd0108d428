"""Promises of `jax.jit`: functions of a `jit`, of which two may be asked whether they answer alike."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import hlo_verify

X = np.arange(6, dtype=np.float32).reshape(2, 3)
PROVED = hlo_verify.shown.shown(
    hlo_verify.report.Report("f", (hlo_verify.Result(0, "", hlo_verify.Verdict.PROVED),), (), 1, 0.0)
)
"""What every question is answered with: verdicts are asked for elsewhere."""

Jit = Callable[..., Any]
Promises = dict[str, Callable[[Jit], Any]]
RAISED = "raised"


def into(promises: Promises) -> Callable[[Callable[[Jit], Any]], Callable[[Jit], Any]]:
    """A decorator that notes a promise by its name."""

    def promise(asked: Callable[[Jit], Any]) -> Callable[[Jit], Any]:
        promises[asked.__name__.replace("_", " ")] = asked
        return asked

    return promise


def check_alike(asked: Callable[[Jit], Any]) -> None:
    """Ask both."""
    expected = _answer(asked, jax.jit)
    assert _answer(asked, hlo_verify.jit) == expected
    assert not (isinstance(expected[0], dict) and RAISED in expected[0]), "an answer says what is raised where"


def said(run: Callable[[], Any]) -> str:
    """The error that something ends with."""
    try:
        run()
    except Exception as error:
        return f"{type(error).__name__}: {without_addresses(str(error))}"
    return "nothing"


def without_addresses(text: str) -> str:
    """Without what two runs have not alike."""
    return re.sub(r"0x[0-9a-f]+|:\d+ \(|line \d+", "", text)


def _answer(asked: Callable[[Jit], Any], jit: Jit) -> Any:
    """What a promise comes to: what is returned, as plain as may be, or the error, and what was warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = jax.tree.map(_plain, asked(jit))
        except Exception as error:
            found = {RAISED: f"{type(error).__name__}: {without_addresses(str(error))}"}
    return found, [(each.category.__name__, without_addresses(str(each.message))) for each in caught]


def _plain(value: Any) -> Any:
    return (str(value.dtype), value.shape, np.asarray(value).tolist()) if isinstance(value, jax.Array) else value
