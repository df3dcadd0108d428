"""Integers that wrapped, where they place or choose something: the value is what the machine holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from hlo_verify import Verdict, verify

N = 300
Q, X = jax.ShapeDtypeStruct((N,), jnp.int32), jax.ShapeDtypeStruct((N,), jnp.float32)
Function = Callable[[Any, Any], Any]


def narrow(q: Any) -> Any:
    return q.astype(jnp.uint8)


def at(x: Any, q: Any) -> Any:
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    return lax.gather(x, q[:, None], numbers, (1,), mode=lax.GatherScatterMode.CLIP)


def scattered(q: Any, x: Any, put: Callable[..., Any]) -> Any:
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    return put(jnp.zeros(N), q[:, None], x, numbers, mode=lax.GatherScatterMode.FILL_OR_DROP)


def halves(q: Any, dtype: Any) -> Any:
    return lax.div(q, jnp.full_like(q, 2)).astype(dtype) * 2 + lax.rem(q, jnp.full_like(q, 2)).astype(dtype)


DIFFERENT: dict[str, tuple[Function, Function, Any]] = {
    "a number of its place": (lambda q, x: q, lambda q, x: at(jnp.arange(N, dtype=jnp.int32), narrow(q)), None),
    "a slice": (
        lambda q, x: q[:1].astype(jnp.float32),
        lambda q, x: lax.dynamic_slice(jnp.arange(N, dtype=jnp.float32), (narrow(q)[0],), (1,)),
        None,
    ),
    "digits put together": (lambda q, x: q, lambda q, x: halves(narrow(q), jnp.int32), None),
    "digits of a signed one": (lambda q, x: q, lambda q, x: halves(q.astype(jnp.int8), jnp.int32), None),
    "digits of a sum": (
        lambda q, x: (q + q[::-1]).astype(jnp.float32),
        lambda q, x: halves(narrow(q) + narrow(q[::-1]), jnp.float32),
        None,
    ),
    "digits of a wide sum": (
        lambda q, x: q.astype(jnp.float32) + (q * 7).astype(jnp.float32),
        lambda q, x: halves(q + q * 7, jnp.float32),
        None,
    ),
    "digits of a wide multiple": (
        lambda q, x: q.astype(jnp.float32) * 8,
        lambda q, x: halves(q * 8, jnp.float32),
        None,
    ),
    "one of all numbers": (
        lambda q, x: q.astype(jnp.float32),
        lambda q, x: (jnp.arange(256).astype(jnp.uint8) == narrow(q)[:, None]) @ jnp.arange(256, dtype=jnp.float32),
        None,
    ),
    "the greater by a part": (
        lambda q, x: jnp.maximum(q, q[::-1]).astype(jnp.float32),
        lambda q, x: jnp.where(q.astype(jnp.int8) < q[::-1].astype(jnp.int8), q[::-1], q).astype(jnp.float32),
        None,
    ),
    "set and added by an order": (
        lambda q, x: scattered(narrow(jnp.argsort(x)), x, lax.scatter_add),
        lambda q, x: scattered(narrow(jnp.argsort(x)), x, lax.scatter),
        None,
    ),
    "set and added by a permutation": (
        lambda q, x: scattered(narrow(q), x, lax.scatter_add),
        lambda q, x: scattered(narrow(q), x, lax.scatter),
        "permutation",
    ),
    "set and added at distinct places": (
        lambda q, x: scattered(narrow(q), x, lax.scatter_add),
        lambda q, x: scattered(narrow(q), x, lax.scatter),
        "distinct",
    ),
    "distinct, as narrow ones": (
        lambda q, x: q[1:] == q[:-1],
        lambda q, x: narrow(q)[1:] == narrow(q)[:-1],
        "distinct",
    ),
    "sorted, without a sign": (
        lambda q, x: jnp.ones(N - 1, bool),
        lambda q, x: q[:-1].astype(jnp.uint32) <= q[1:].astype(jnp.uint32),
        "sorted",
    ),
    "sorted, eight times that": (
        lambda q, x: jnp.ones(N - 1, bool),
        lambda q, x: q[:-1] * 8 <= q[1:] * 8,
        "sorted",
    ),
    "in order at a narrow place": (lambda q, x: q, lambda q, x: at(jnp.sort(q), narrow(q)), "permutation"),
}
"""Pairs that differ, under what is said of `q`."""


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", DIFFERENT)
def test_what_wrapped_is_not_what_it_was(name: str) -> None:
    first, second, said = DIFFERENT[name]
    pair = [jax.jit(each, keep_unused=True).trace(Q, X) for each in (first, second)]
    assert verify(*pair, devices=1, assume={"q": said} if said else None, refute=False).verdict is Verdict.UNKNOWN
    generator = np.random.default_rng(0)
    x = generator.permutation(N).astype(np.float32) + 1
    q = generator.permutation(N) if said == "permutation" else (np.arange(N) - 150) * 2**23 // 3
    q = q.astype(np.int32) + (0 if said else generator.integers(0, 2000, N).astype(np.int32))
    if name == "set and added at distinct places" or name == "distinct, as narrow ones":
        q = np.arange(N, dtype=np.int32) * 256
    assert not np.array_equal(first(q, x), second(q, x))


SAME: dict[str, tuple[Function, Function, Any]] = {
    "digits put together": (lambda q, x: narrow(q).astype(jnp.int32), lambda q, x: halves(narrow(q), jnp.int32), None),
    "a number of its place": (
        lambda q, x: narrow(q).astype(jnp.int32),
        lambda q, x: at(jnp.arange(N, dtype=jnp.int32), narrow(q)),
        None,
    ),
    "set and added by a permutation": (
        lambda q, x: scattered(q.astype(jnp.int16), x, lax.scatter_add),
        lambda q, x: scattered(q.astype(jnp.int16), x, lax.scatter),
        "permutation",
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_what_does_not_differ_is_proved(name: str) -> None:
    first, second, said = SAME[name]
    pair = [jax.jit(each, keep_unused=True).trace(Q, X) for each in (first, second)]
    assert verify(*pair, devices=1, assume={"q": said} if said else None, refute=False).verdict is Verdict.PROVED
