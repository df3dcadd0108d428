"""Attention that is merged from parts, of which some may be masked altogether, in the forms that people write it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict

pytestmark = pytest.mark.usefixtures("prover_alone")

INF = jnp.inf
MESH = AbstractMesh((2,), ("d",), axis_types=(AxisType.Auto,))
SHAPES = (
    jax.ShapeDtypeStruct((8,), jnp.float32),
    jax.ShapeDtypeStruct((8,), jnp.bool_),
    jax.ShapeDtypeStruct((8,), jnp.float32),
)
Array = Any
Function = Callable[[Array, Array, Array], Array]


def masked(s: Array, b: Array) -> Array:
    return jnp.where(b, s, -INF)


def softmax(s: Array, b: Array, v: Array) -> Array:
    return jax.nn.softmax(masked(s, b)) @ v


def logsumexp(s: Array, b: Array, v: Array) -> Array:
    return jax.nn.logsumexp(masked(s, b))


def total(s: Array, b: Array, v: Array) -> Array:
    return jnp.where(b, jnp.exp(s), 0.0).sum()


def weights(s: Array, b: Array, v: Array) -> Array:
    """Without a division: NaN where nothing is left."""
    x = masked(s, b)
    return jnp.exp(x - x.max()).sum()


def merged(
    scale: Callable[[Array, Array], Array] = lambda m, most: jnp.exp(m - most),
    safe: Callable[[Array], Array] = lambda m: jnp.where(jnp.isneginf(m), 0.0, m),
    most: Callable[[Array], Array] = lambda m: lax.pmax(m, "d"),
) -> Function:
    """By each part's own greatest score: with those of nothing 0, and sums in units of the greatest of all."""

    def on_device(s: Array, b: Array, v: Array) -> Array:
        x = masked(s, b)
        m = x.max()
        p = jnp.exp(x - safe(m))
        c = scale(m, most(m))
        return lax.psum(p @ v * c, "d") / lax.psum(p.sum() * c, "d")

    return on_device


def by_logarithms(s: Array, b: Array, v: Array, times: float = 1.0) -> Array:
    """By the logarithms of each part's sum, which is minus infinity where nothing is left."""
    x = masked(s, b)
    m = x.max()
    safe = jnp.where(jnp.isneginf(m), 0.0, m)
    p = jnp.exp(x - safe)
    here = p.sum()
    each = lax.all_gather(jnp.log(here) * times + safe, "d")
    return jax.nn.softmax(each) @ lax.all_gather(p @ v / jnp.where(here == 0, 1.0, here), "d")


def by_all(s: Array, b: Array, v: Array, fill: float = 0.0, of: Array = None) -> Array:
    """By the greatest score of all, with a condition beside the exponential."""
    x = masked(s, b)
    p = jnp.where(b if of is None else of(b), jnp.exp(x - lax.pmax(x.max(), "d")), fill)
    return lax.psum(p @ v, "d") / lax.psum(p.sum(), "d")


def guarded(x: Array, value: float) -> Array:
    return jnp.where(jnp.isneginf(x), value, x)


def log_total(s: Array, b: Array, v: Array) -> Array:
    return jnp.log(lax.psum(total(s, b, v), "d"))


def parts(s: Array, b: Array, v: Array, safe: float = 0.0) -> Array:
    x = masked(s, b)
    m = x.max()
    m = jnp.where(jnp.isneginf(m), safe, m)
    return lax.psum(jnp.exp(x - m).sum() * jnp.exp(m), "d")


RIGHT: dict[str, tuple[Function, Function]] = {
    "merged": (softmax, merged()),
    "merged, nothing told": (softmax, merged(lambda m, most: jnp.where(jnp.isneginf(m), 0.0, jnp.exp(m - most)))),
    "by the greatest of all": (softmax, by_all),
    "parts": (total, parts),
    "logarithm of parts": (logsumexp, lambda s, b, v: jnp.log(parts(s, b, v))),
}

WRONG: dict[str, tuple[Function, Function]] = {
    "not rescaled": (softmax, merged(lambda m, most: jnp.exp(0 * m))),
    "rescaled the other way": (softmax, merged(lambda m, most: jnp.exp(most - m))),
    "by the first part": (softmax, merged(most=lambda m: lax.all_gather(m, "d")[0])),
    "one for nothing": (softmax, merged(safe=lambda m: jnp.where(jnp.isneginf(m), 1.0, m * 2))),
    "not a number of nothing": (softmax, merged(safe=lambda m: m)),
    "of logarithms, more than once": (
        lambda s, b, v: jnp.where(b, s, -INF)[:1].max(),
        lambda s, b, v: (lambda t: 3 * t - 2 * t)(log_total(s[:1], b[:1] & (lax.axis_index("d") == 0), v)),
    ),
    "squared": (softmax, lambda s, b, v: by_logarithms(s, b, v, 2.0)),
    "something of nothing": (softmax, lambda s, b, v: by_all(s, b, v, 1.0)),
    "another mask": (softmax, lambda s, b, v: by_all(s, b, v, of=lambda b: b[::-1])),
    "a number where there is none": (
        softmax,
        lambda s, b, v: jnp.where(lax.pmax(b.any().astype(int), "d") > 0, by_all(s, b, v), 0.0),
    ),
    "0 where there is none": (
        weights,
        lambda s, b, v: lax.psum(jnp.where(b, jnp.exp(s - lax.pmax(masked(s, b).max(), "d")), 0.0).sum(), "d"),
    ),
    "another value of nothing": (
        lambda s, b, v: guarded(jnp.log(total(s, b, v)), 0.0),
        lambda s, b, v: guarded(log_total(s, b, v), 1.0),
    ),
    "a value of nothing, and none": (
        lambda s, b, v: guarded(jnp.log(total(s, b, v)), 0.0),
        log_total,
    ),
    "the greatest of one, and a value of nothing": (
        lambda s, b, v: jnp.where(b, s, -INF)[:1].max(),
        lambda s, b, v: guarded(
            log_total(jnp.where(lax.axis_index("d") == 0, s, 0.0)[:1], b[:1] & (lax.axis_index("d") == 0), v), 1.0
        ),
    ),
    "logarithm of one part": (logsumexp, lambda s, b, v: jnp.log(lax.pmax(total(s, b, v), "d"))),
}


def verdict(reference: Function, on_device: Function) -> Verdict:
    split = jax.shard_map(on_device, mesh=MESH, in_specs=P("d"), out_specs=P(), check_vma=False)
    return hlo_verify.check(reference, split, *SHAPES, refute=False).verdict


@pytest.mark.parametrize("name", RIGHT)
def test_parts_of_which_nothing_may_be_left(name: str) -> None:
    assert verdict(*RIGHT[name]) is Verdict.PROVED


@pytest.mark.parametrize("name", WRONG)
def test_what_differs_is_not_proved(name: str) -> None:
    assert verdict(*WRONG[name]) is not Verdict.PROVED
