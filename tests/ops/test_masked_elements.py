"""What is asked of an infinity where one masks elements: whether some are left, as a count or `any` says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.ops import segment_max, segment_min, segment_sum
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from hlo_verify import Verdict, verify
from tests.support.lowering import Placed

MESH = AbstractMesh((4,), ("d",), axis_types=(AxisType.Auto,))
SHAPES = (
    jax.ShapeDtypeStruct((8,), jnp.float32),
    jax.ShapeDtypeStruct((8,), jnp.int32),
    jax.ShapeDtypeStruct((8,), jnp.bool_),
)
Over = Callable[[Any], Any]
"""The greatest, the least or the sum of what devices hold; of all in a program on one device."""
Body = Callable[[Any, Any, Any, Over, Over, Over], Any]


def most(x: Any, g: Any, over: Over) -> Any:
    return over(segment_max(x, g, 3))


def count(g: Any, total: Over) -> Any:
    return total(segment_sum(jnp.ones(g.shape), g, 3))


def masked(x: Any, m: Any, by: float = -jnp.inf) -> Any:
    return jnp.where(m, x, by)


def counted(x: Any, g: Any, m: Any, high: Over, low: Over, total: Over) -> Any:
    return jnp.where(count(g, total) > 0, most(x, g, high), 0)


def some(x: Any, g: Any, m: Any, high: Over, low: Over, total: Over) -> Any:
    return total(m.sum()) > 0


def finite(x: Any, g: Any, m: Any, high: Over, low: Over, total: Over) -> Any:
    return jnp.isfinite(most(x, g, high))


RIGHT: dict[str, tuple[Body, Body]] = {
    "finite": (counted, lambda x, g, m, high, low, total: jnp.where(jnp.isfinite(y := most(x, g, high)), y, 0)),
    "no infinity": (counted, lambda x, g, m, high, low, total: jnp.where((y := most(x, g, high)) == -jnp.inf, 0, y)),
    "above it": (counted, lambda x, g, m, high, low, total: jnp.where((y := most(x, g, high)) > -jnp.inf, y, 0)),
    "not infinite": (counted, lambda x, g, m, high, low, total: jnp.where(jnp.isinf(y := most(x, g, high)), 0, y)),
    "never above all": (
        counted,
        lambda x, g, m, high, low, total: jnp.where(most(x, g, high) < jnp.inf, counted(x, g, m, high, low, total), 7),
    ),
    "the least": (
        lambda x, g, m, high, low, total: jnp.where(jnp.isfinite(y := low(segment_min(x, g, 3))), y, 1.0),
        lambda x, g, m, high, low, total: jnp.where(count(g, total) == 0, 1.0, low(segment_min(x, g, 3))),
    ),
    "computed, and finite": (
        lambda x, g, m, high, low, total: counted(jnp.exp(x), g, m, high, low, total),
        lambda x, g, m, high, low, total: jnp.where(jnp.isfinite(y := most(jnp.exp(x), g, high)), y, 0),
    ),
    "computed, and not finite": (
        lambda x, g, m, high, low, total: counted(x * x, g, m, high, low, total),
        lambda x, g, m, high, low, total: jnp.where(~jnp.isfinite(y := most(x * x, g, high)), 0, y),
    ),
    "computed, and infinite": (
        lambda x, g, m, high, low, total: counted(x * x, g, m, high, low, total),
        lambda x, g, m, high, low, total: jnp.where(jnp.isinf(y := most(x * x, g, high)), 0, y),
    ),
    "half of it": (
        lambda x, g, m, high, low, total: counted(x * x, g, m, high, low, total) / 2,
        lambda x, g, m, high, low, total: jnp.where(jnp.isinf(y := most(x * x, g, high) / 2), 0, y),
    ),
    "computed, and minus infinity": (
        lambda x, g, m, high, low, total: counted(jnp.sin(x), g, m, high, low, total),
        lambda x, g, m, high, low, total: jnp.where((y := most(jnp.sin(x), g, high)) == -jnp.inf, 0, y),
    ),
    "computed, and above it": (
        lambda x, g, m, high, low, total: counted(jnp.sin(x), g, m, high, low, total),
        lambda x, g, m, high, low, total: jnp.where((y := most(jnp.sin(x), g, high)) > -jnp.inf, y, 0),
    ),
    "computed, and not below all": (
        lambda x, g, m, high, low, total: jnp.where(count(g, total) > 0, low(segment_min(x * x, g, 3)), 1.0),
        lambda x, g, m, high, low, total: jnp.where((y := low(segment_min(x * x, g, 3))) >= jnp.inf, 1.0, y),
    ),
    "a mask": (some, lambda x, g, m, high, low, total: high(masked(x, m).max()) > -jnp.inf),
    "an element": (
        lambda x, g, m, high, low, total: total(jnp.isfinite(masked(x, m)).sum()),
        lambda x, g, m, high, low, total: total(m.sum()),
    ),
}

WRONG: dict[str, tuple[Body, Body]] = {
    "more than one": (finite, lambda x, g, m, high, low, total: count(g, total) > 1),
    "the other infinity": (
        counted,
        lambda x, g, m, high, low, total: jnp.where((y := most(x, g, high)) == jnp.inf, 0, y),
    ),
    "of computed ones, the other infinity": (
        lambda x, g, m, high, low, total: counted(x * x, g, m, high, low, total),
        lambda x, g, m, high, low, total: jnp.where((y := most(x * x, g, high)) == jnp.inf, 0, y),
    ),
    "of computed ones, where there are some": (
        lambda x, g, m, high, low, total: counted(x * x, g, m, high, low, total),
        lambda x, g, m, high, low, total: jnp.where(jnp.isinf(y := most(x * x, g, high)), y, 0),
    ),
    "of computed ones, what is no larger": (
        lambda x, g, m, high, low, total: counted(x * x, g, m, high, low, total),
        lambda x, g, m, high, low, total: jnp.where((y := most(x * x, g, high)) < jnp.inf, y, 0),
    ),
    "not negative": (
        lambda x, g, m, high, low, total: jnp.where(count(g, total) > 0, most(x, g, high), 7),
        lambda x, g, m, high, low, total: jnp.where((y := most(x, g, high)) >= 0, y, 7),
    ),
    "not zero": (
        lambda x, g, m, high, low, total: jnp.where(count(g, total) > 0, most(x, g, high), 7),
        lambda x, g, m, high, low, total: jnp.where((y := most(x, g, high)) == 0, y, 7),
    ),
    "as large as another number": (
        lambda x, g, m, high, low, total: jnp.where(count(g, total) > 0, low(segment_min(x * x, g, 3)), 7),
        lambda x, g, m, high, low, total: jnp.where((y := low(segment_min(x * x, g, 3))) <= 0.5, y, 7),
    ),
    "as large as its own size": (
        lambda x, g, m, high, low, total: jnp.where(count(g, total) > 0, most(x, g, high), 7),
        lambda x, g, m, high, low, total: jnp.where((y := most(x, g, high)) == abs(y), y, 7),
    ),
    "never below": (finite, lambda x, g, m, high, low, total: most(x, g, high) >= -jnp.inf),
    "all of them": (some, lambda x, g, m, high, low, total: low(masked(x, m).min()) > -jnp.inf),
    "the greatest of other ones": (some, lambda x, g, m, high, low, total: jnp.isfinite(high(masked(x, ~m).max()))),
    "both infinities": (
        lambda x, g, m, high, low, total: total((m & (g > 0)).sum()) > 0,
        lambda x, g, m, high, low, total: jnp.isfinite(high(jnp.where(m, masked(x, g > 0), jnp.inf).max())),
    ),
    "a large number": (some, lambda x, g, m, high, low, total: high(masked(x, m, -1e30).max()) > -jnp.inf),
    "what may be no number": (some, lambda x, g, m, high, low, total: jnp.isfinite(high(masked(jnp.log(x), m).max()))),
}


TOO_LARGE: dict[str, tuple[Body, Body]] = {
    "products": (some, lambda x, g, m, high, low, total: jnp.isfinite(high(masked(x * 1e30, m).max()))),
    "sums": (some, lambda x, g, m, high, low, total: high(masked(x + x[::-1], m).max()) > -jnp.inf),
    "a narrower type": (
        some,
        lambda x, g, m, high, low, total: jnp.isfinite(high(masked(x.astype(jnp.float16), m).max())),
    ),
    "a narrower type of nearly the same range": (
        some,
        lambda x, g, m, high, low, total: high(masked(x.astype(jnp.bfloat16), m).max()) > -jnp.inf,
    ),
    "integers in a narrow type": (
        some,
        lambda x, g, m, high, low, total: jnp.isfinite(high(masked(g.astype(jnp.float16), m).max())),
    ),
    "another one": (
        lambda x, g, m, high, low, total: counted(jnp.exp(x), g, m, high, low, total),
        lambda x, g, m, high, low, total: jnp.where(
            jnp.isfinite(high(masked(x, m).max())), most(jnp.exp(x), g, high), 0
        ),
    ),
}
"""Whether what is computed is finite, which real numbers always are."""


def same(x: Any) -> Any:
    return x


def checked(reference: Body, distributed: Body) -> Verdict:
    across = (lambda x: lax.pmax(x, "d"), lambda x: lax.pmin(x, "d"), lambda x: lax.psum(x, "d"))
    placed = Placed(MESH, P("d"), P(), SHAPES)
    pair = placed.pair(
        lambda x, g, m: reference(x, g, m, same, same, same), lambda x, g, m: distributed(x, g, m, *across)
    )
    return verify(*pair, assume={"g": (0, 3)}, refute=False, recheck=True).verdict


def agree(reference: Body, distributed: Body) -> bool:
    """Whether both are one on a single device, of random inputs with groups and masks that are empty, some of them."""
    random = np.random.default_rng(7)
    groups = np.zeros(8, int), np.arange(8) // 7, np.arange(8) % 3, random.integers(0, 3, 8), random.integers(0, 2, 8)
    for g, kept in zip(groups, (0, 0.3, 0.8, 1, 0.1), strict=True):
        args = random.normal(size=8).astype(np.float32), g, random.random(8) < kept
        one, other = (np.asarray(f(*map(jnp.asarray, args), same, same, same)) for f in (reference, distributed))
        if not np.array_equal(one, other):
            return False
    return True


@pytest.mark.parametrize("name", RIGHT)
def test_whether_elements_are_left(name: str) -> None:
    assert agree(*RIGHT[name])
    assert checked(*RIGHT[name]) is Verdict.PROVED


@pytest.mark.parametrize("name", WRONG)
def test_other_questions(name: str) -> None:
    assert not agree(*WRONG[name])
    assert checked(*WRONG[name]) is not Verdict.PROVED


@pytest.mark.parametrize("name", TOO_LARGE)
def test_what_may_be_too_large(name: str) -> None:
    assert checked(*TOO_LARGE[name]) is Verdict.UNKNOWN
