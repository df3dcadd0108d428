"""Verdicts that `hlo_verify.jit` keeps: found again for the same question, and for no other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlo_verify
from hlo_verify import Verdict, executed

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_a_verdict_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for folder in (tmp_path, tmp_path, False):
        right = hlo_verify.jit(lambda x: x + 1, reference=lambda x: 1 + x, cache=folder)
        wrong = hlo_verify.jit(lambda x: x + 1, reference=lambda x: x, cache=folder)
        found.append([f.verification.check(X) for f in (right, wrong)])
        monkeypatch.setattr(executed, "_Decision", None)
    assert [report.verdict for report in found[0]] == [Verdict.PROVED, Verdict.REFUTED]
    assert found[1] == found[0]
    assert [report.verdict for report in found[2]] == [Verdict.UNKNOWN] * 2, "nothing decides any more"


@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    "other",
    [
        {"f": lambda x: x * 2.000001},
        {"f": lambda x: x * np.array([[2.0, 2.0, 2.5]], np.float32)},
        {"reference": lambda x: x * 3},
        {"assume": {"x": (0, 1.0000001)}},
        {"effort": "low"},
        {"x": X[:1]},
    ],
    ids=["factor", "constant", "reference", "precondition", "effort", "argument"],
)
def test_another_question_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: Any) -> None:
    def ask(f: Any = None, x: Any = X, **options: Any) -> Verdict:
        given = {"reference": lambda x: x * 2, "assume": {"x": (0, 1)}, "cache": tmp_path, **options}
        return hlo_verify.jit(f or (lambda x: x * 2), **given).verification.check(x).verdict

    assert ask() is Verdict.PROVED
    monkeypatch.setattr(executed, "_Decision", None)
    assert ask() is Verdict.PROVED
    assert ask(**other) is Verdict.UNKNOWN


def test_preconditions_go_by_names(tmp_path: Path) -> None:
    """Two programs that differ in the names of arguments alone, and in what is said of which of them."""

    def verdict(f: Callable[..., Any]) -> Verdict:
        g = hlo_verify.jit(f, reference=of_abs(f), assume={"x": "positive"}, cache=tmp_path)
        return g.verification.check(np.float32(1), np.float32(1)).verdict

    def of_abs(f: Callable[..., Any]) -> Callable[..., Any]:
        return (lambda x, y: abs(x) + y) if f is first else (lambda y, x: abs(y) + x)

    first, second = (lambda x, y: x + y), (lambda y, x: y + x)
    assert verdict(first) is Verdict.PROVED
    assert verdict(second) is Verdict.REFUTED


def test_approximations_go_by_names(tmp_path: Path) -> None:
    """Two programs that differ in the names of their values alone, and two declarations about one program."""

    def verdict(first: str, second: str, declared: str = "own = sine") -> Verdict:
        def f(x: Any) -> Any:
            with jax.named_scope(first):
                one = jnp.tanh(x)
            with jax.named_scope(second):
                other = jnp.tanh(x) * 1.5
            return one + 3 * other

        g = hlo_verify.jit(f, reference=reference, approximations=declared, cache=tmp_path)
        return g.verification.check(X).verdict

    def reference(x: Any) -> Any:
        with jax.named_scope("sine"):
            one = jnp.sin(x)
        return one + 3 * (jnp.tanh(x) * 1.5)

    for _ in range(2):
        assert verdict("own", "other") is Verdict.PROVED
        assert verdict("other", "own") is Verdict.REFUTED
        assert verdict("own", "other", "other = sine") is Verdict.REFUTED


def test_what_ran_out_of_time_is_not_kept(tmp_path: Path) -> None:
    limits = (1e-9, None)
    found = [
        hlo_verify.jit(lambda x: x + 1, cache=tmp_path, time_limit=limit).verification.check(X) for limit in limits
    ]
    assert [report.verdict for report in found] == [Verdict.UNKNOWN, Verdict.PROVED]


def test_what_leans_on_a_users_word_is_not_kept(tmp_path: Path) -> None:
    hlo_verify.register_custom_call("add", trailing=0)  # a part of the text, though no call
    try:
        hlo_verify.jit(lambda x: x + 1, cache=tmp_path)(X)
    finally:
        hlo_verify.forget_custom_call("add")
    assert not any(tmp_path.iterdir())
