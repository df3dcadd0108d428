"""A plain reference of `hlo_verify.jit` is what it computes when it is compared, whatever JAX kept of it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

import hlo_verify
from hlo_verify import NotProvedError
from hlo_verify.cache.store import FOLDER

X = np.arange(6, dtype=np.float32)
FACTOR = {"of a global": 2.0}


@pytest.fixture(autouse=True)
def _no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, "")


class Scale:
    """What can be called, and what has a method that can be."""

    def __init__(self) -> None:
        self.factor = 2.0

    def __call__(self, x: Any) -> Any:
        return x * self.factor

    def method(self, x: Any) -> Any:
        return x * self.factor


def of_a_global(monkeypatch: pytest.MonkeyPatch) -> tuple[Callable[..., Any], Callable[[], None]]:
    return lambda x: x * FACTOR["of a global"], lambda: monkeypatch.setitem(FACTOR, "of a global", 3.0)


def of_a_closure(_: pytest.MonkeyPatch) -> tuple[Callable[..., Any], Callable[[], None]]:
    factor = 2.0

    def change() -> None:
        nonlocal factor
        factor = 3.0

    return lambda x: x * factor, change


def of_an_array(_: pytest.MonkeyPatch) -> tuple[Callable[..., Any], Callable[[], None]]:
    kept = np.full(6, 2, np.float32)
    return lambda x: x * kept, lambda: kept.fill(3)


def of_an_object(_: pytest.MonkeyPatch) -> tuple[Callable[..., Any], Callable[[], None]]:
    scale = Scale()
    return scale, lambda: setattr(scale, "factor", 3.0)


def of_a_method(_: pytest.MonkeyPatch) -> tuple[Callable[..., Any], Callable[[], None]]:
    scale = Scale()
    return scale.method, lambda: setattr(scale, "factor", 3.0)


def of_a_default(_: pytest.MonkeyPatch) -> tuple[Callable[..., Any], Callable[[], None]]:
    kept = SimpleNamespace(factor=2.0)

    def reference(x: Any, kept: Any = kept) -> Any:
        return x * kept.factor

    return lambda x: reference(x), lambda: setattr(kept, "factor", 3.0)


KINDS = (of_a_global, of_a_closure, of_an_array, of_an_object, of_a_method, of_a_default)


def is_proved(factor: float, reference: Callable[..., Any]) -> bool:
    f = hlo_verify.jit(lambda x: x * factor, reference=reference)
    try:
        f(X)
    except NotProvedError:
        return False
    return True


@pytest.mark.drawn(1, each=lambda kind, before: kind)
@pytest.mark.parametrize("before", ["verified", "jitted"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_changed_since_it_was_traced(kind: Any, before: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reference, change = kind(monkeypatch)
    if before == "verified":
        assert is_proved(2, reference)
    else:
        jax.jit(reference)(X)
    change()
    np.testing.assert_array_equal(reference(X), 3 * X)
    assert not is_proved(2, reference)
    assert is_proved(3, reference)


def test_both_changed_and_are_compiled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    reference, change = of_a_global(monkeypatch)
    f = hlo_verify.jit(lambda x: x * FACTOR["of a global"], reference=reference)
    np.testing.assert_array_equal(f(X), 2 * X)
    change()
    f.clear_cache()
    np.testing.assert_array_equal(f(X), 3 * X)


def test_one_that_is_jitted_computes_what_jax_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, change = of_a_global(monkeypatch)
    reference = jax.jit(plain)
    assert is_proved(2, reference)
    change()
    np.testing.assert_array_equal(reference(X), 2 * X)
    assert is_proved(2, reference)


def test_static_arguments_stay_so() -> None:
    f = hlo_verify.jit(lambda x, n: x * n, reference=lambda x, n: sum([x] * n), static_argnames="n")
    np.testing.assert_array_equal(f(X, n=3), 3 * X)
