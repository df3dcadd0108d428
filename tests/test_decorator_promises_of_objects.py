"""What `jax.jit` promises of what a function is as an object of Python: `hlo_verify.jit` answers alike."""

from __future__ import annotations

import concurrent.futures
import copy
import functools
import gc
import inspect
import pickle
import types
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlo_verify
from hlo_verify import executed
from tests.support.promises import PROVED, Jit, Promises, X, check_alike, into, said, without_addresses

PROMISES: Promises = {}
promise = into(PROMISES)
pytestmark = pytest.mark.usefixtures("all_is_proved")


# What it is as an object of Python


@promise
def what_it_says_of_itself(jit: Jit) -> Any:
    def f(x: int, *, scale: float = 2.0) -> int:
        """Scaled."""
        return x

    g = jit(f)
    return (
        g.__name__, g.__qualname__, g.__doc__, g.__module__, g.__wrapped__ is f, str(inspect.signature(g)),
        inspect.unwrap(g) is f, g.__annotations__, callable(g), without_addresses(repr(g)), type(g).__name__,
    )  # fmt: skip


@promise
def its_attributes(jit: Jit) -> Any:
    def f(x: Any) -> Any:
        return x

    f.own = 3  # type: ignore[attr-defined]
    g = jit(f)
    g.later = 4
    return g.own, g.later, hasattr(g, "nothing"), sorted(set(dir(g)) - {"verification"})


@promise
def equal_and_hashable(jit: Jit) -> Any:
    f = lambda x: x  # noqa: E731
    g, h = jit(f), jit(f)
    return g == g, g == h, len({g, h, g}), {g: 1}[g]


@promise
def a_weak_reference(jit: Jit) -> Any:
    g = jit(lambda x: x + 1)
    g(X)
    gone = weakref.ref(g)
    there = gone() is g
    del g
    gc.collect()
    return there, gone() is None


@promise
def what_it_was_given_is_let_go(jit: Jit) -> Any:
    class Owner:
        pass

    owner = Owner()
    held = weakref.ref(owner)

    def f(x: Any, owner: Any = owner) -> Any:
        return x + 1

    g = jit(functools.partial(f))
    g(X)
    del f, g, owner
    jax.clear_caches()
    gc.collect()
    return held() is None


@promise
def arguments_are_let_go(jit: Jit) -> Any:
    g = jit(lambda x: x + 1)
    x = jnp.array(X)
    held = weakref.ref(x)
    g(x)
    del x
    gc.collect()
    return held() is None


@promise
def methods(jit: Jit) -> Any:
    class Model:
        scale = 3

        @functools.partial(jit, static_argnums=0)
        def apply(self, x: Any) -> Any:
            """Apply."""
            return x * self.scale

        @staticmethod
        @jit
        def twice(x: Any) -> Any:
            return 2 * x

        @classmethod
        @functools.partial(jit, static_argnums=0)
        def named(cls, x: Any) -> Any:
            return x * cls.scale

    model = Model()
    bound = model.apply
    return (
        bound(X),
        Model.apply(model, X),
        model.twice(X),
        Model.named(X),
        bound.__name__,
        isinstance(bound, types.MethodType),
    )


@promise
def partials(jit: Jit) -> Any:
    f = lambda a, b, c=1: a * 100 + b * 10 + c  # noqa: E731
    return jit(functools.partial(f, 1))(2), functools.partial(jit(f), 1)(2, c=3), jit(functools.partial(f, c=4))(1, 2)


@promise
def as_a_decorator_with_options(jit: Jit) -> Any:
    @jit(static_argnames="n")
    def f(x: Any, n: int) -> Any:
        return x * n

    @functools.partial(jit, static_argnames="n")
    def g(x: Any, n: int) -> Any:
        return x * n

    return f(X, n=2), g(X, n=2), f.__name__


@promise
def pickles_and_copies(jit: Jit) -> Any:
    g = jit(jnp.tanh)
    return copy.copy(g)(X), copy.deepcopy(g)(X), said(lambda: pickle.loads(pickle.dumps(g))(X)).split(":")[0]


@promise
def threads(jit: Jit) -> Any:
    g = jit(lambda x: x + x - 3.0)
    xs = [np.arange(n, dtype=np.float32) for n in range(1, 5)] * 3
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        return list(pool.map(g, xs))


@promise
def calls_from_its_own_trace(jit: Jit) -> Any:
    @jit
    def power(x: Any, n: Any) -> Any:
        return x * 2

    @functools.partial(jit, static_argnums=1)
    def countdown(x: Any, n: int) -> Any:
        return x if n == 0 else power(countdown(x, n - 1), n)

    return countdown(X, 4)


@promise
def the_same_function_with_other_options(jit: Jit) -> Any:
    f = lambda x, n: x * n  # noqa: E731
    g, h = jit(f), jit(f, static_argnums=1)
    return g(X, 2), h(X, 2), g.lower(X, 2).as_text().count("%arg"), h.lower(X, 2).as_text().count("%arg")


@pytest.mark.drawn(5)
@pytest.mark.parametrize("name", PROMISES)
def test_both_answer_alike(name: str) -> None:
    check_alike(PROMISES[name])


def test_what_is_asked_is_verified_but_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of it comes to a verdict by the way."""
    asked: list[executed.Question] = []
    monkeypatch.setattr(hlo_verify.decorator, "decide", lambda asked_, settings: asked.append(asked_) or PROVED)
    threads(hlo_verify.jit)
    assert len(asked) == 4
