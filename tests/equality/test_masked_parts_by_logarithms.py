"""Attention that is merged from parts by the logarithms of their sums, which are minus infinity where a part is masked
altogether: in three spellings, by what rows, lengths, keys and windows leave, and near misses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

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
Array = Any


class Mask(NamedTuple):
    """Which keys a row attends to, by an argument where there is one."""

    leaves: Callable[..., Array]
    argument: tuple[jax.ShapeDtypeStruct, ...] = ()


MASKS = {
    "causal": Mask(lambda i, j: j <= i),
    "window": Mask(lambda i, j: (j <= i) & (j > i - 3)),
    "length": Mask(lambda i, j, n: j < n, (jax.ShapeDtypeStruct((), jnp.int32),)),
    "rows' lengths": Mask(lambda i, j, n: j < n[i], (jax.ShapeDtypeStruct((4,), jnp.int32),)),
    "keys": Mask(lambda i, j, b: b[j], (jax.ShapeDtypeStruct((4,), jnp.bool_),)),
}


def attention(mask: Mask) -> Callable[..., Array]:
    def reference(s: Array, v: Array, *e: Array) -> Array:
        left = mask.leaves(jnp.arange(4)[:, None], jnp.arange(4), *e)
        return jax.nn.softmax(jnp.where(left, s, -INF), -1) @ v

    return reference


class Part(NamedTuple):
    """Scores, which of them are left, values, and the greatest score of each row."""

    scores: Array
    left: Array
    values: Array
    most: Array


def by_softmax(part: Part) -> Array:
    p = jnp.exp(part.scores - guarded(part.most))
    total = p.sum(-1, keepdims=True)
    each = lax.all_gather(jnp.log(total) + guarded(part.most), "d")
    return (jax.nn.softmax(each, 0) * lax.all_gather(p @ part.values / jnp.where(total == 0, 1.0, total), "d")).sum(0)


def told(part: Part) -> Array:
    p = jnp.exp(part.scores - guarded(part.most))
    total = p.sum(-1, keepdims=True)
    here = jnp.where(total > 0, jnp.log(total) + guarded(part.most), -INF)
    weight = jnp.exp(here - lax.pmax(here, "d"))
    return lax.psum(weight * jnp.where(total > 0, p @ part.values / total, 0.0), "d") / lax.psum(weight, "d")


def by_logsumexp(part: Part) -> Array:
    here = jax.nn.logsumexp(part.scores, -1, keepdims=True)
    p = jnp.where(jnp.isneginf(here), 0.0, jnp.exp(part.scores - here))
    weight = jnp.exp(here - lax.pmax(here, "d"))
    return lax.psum(weight * (p @ part.values), "d") / lax.psum(weight, "d")


def guarded(x: Array, value: float = 0.0) -> Array:
    return jnp.where(jnp.isneginf(x), value, x)


RIGHT = [
    *(("causal", merge) for merge in (by_softmax, told, by_logsumexp)),
    *(("keys", merge) for merge in (by_softmax, told, by_logsumexp)),
    ("window", by_softmax),
    ("length", by_logsumexp),
    ("rows' lengths", told),
]


def split(mask: Mask, merge: Callable[[Part], Array], columns: int = 0) -> Callable[..., Array]:
    """Attention by what each device has of the keys, as if they were that many columns further on."""

    def on_device(s: Array, v: Array, *e: Array) -> Array:
        left = mask.leaves(jnp.arange(4)[:, None], 2 * lax.axis_index("d") + columns + jnp.arange(2), *e)
        scores = jnp.where(left, s, -INF)
        return merge(Part(scores, left, v[:, None], scores.max(-1, keepdims=True)))[:, 0]

    specs = (P(None, "d"), P("d"), *(P() for _ in mask.argument))
    return jax.shard_map(on_device, mesh=MESH, in_specs=specs, out_specs=P(), check_vma=False)


def of_attention(name: str, merge: Callable[[Part], Array], columns: int = 0) -> Verdict:
    mask = MASKS[name]
    shapes = (jax.ShapeDtypeStruct((4, 4), jnp.float32), jax.ShapeDtypeStruct((4,), jnp.float32), *mask.argument)
    return hlo_verify.check(attention(mask), split(mask, merge, columns), *shapes, refute=False).verdict


@pytest.mark.parametrize(("mask", "merge"), RIGHT)
def test_parts_are_merged(mask: str, merge: Callable[[Part], Array]) -> None:
    assert of_attention(mask, merge) is Verdict.PROVED


@pytest.mark.parametrize(("mask", "merge"), RIGHT)
def test_the_mask_of_other_keys_is_not_proved(mask: str, merge: Callable[[Part], Array]) -> None:
    assert of_attention(mask, merge, 1) is not Verdict.PROVED


def total(s: Array, b: Array) -> Array:
    return jnp.where(b, jnp.exp(s), 0.0).sum()


def whole(s: Array, b: Array) -> Array:
    return jax.nn.logsumexp(jnp.where(b, s, -INF))


def merged(s: Array, b: Array) -> Array:
    """The logarithm of all, by those of each part: minus infinity where nothing is left."""

    def log_total(x: Array) -> Array:
        most = guarded(x.max())
        return jnp.log(jnp.exp(x - most).sum()) + most

    return log_total(lax.all_gather(log_total(jnp.where(b, s, -INF)), "d"))


Whole = Callable[[Array, Array], Array]
Of = Callable[[Array], Array]
DIFFERENT: dict[str, tuple[Whole, Of]] = {
    "more than once": (lambda s, b: guarded(whole(s, b), 1.0), lambda t: guarded(3 * t - 2 * t, 1.0)),
    "another value of nothing": (lambda s, b: guarded(whole(s, b), 0.0), lambda t: guarded(t, 1.0)),
    "a value of nothing, and none": (lambda s, b: guarded(whole(s, b), 0.0), lambda t: t),
    "none, and a value of nothing": (whole, lambda t: guarded(t, 0.0)),
    "less itself": (lambda s, b: jnp.zeros(()), lambda t: t - t),
    "divided by itself": (lambda s, b: jnp.ones(()), lambda t: jnp.exp(t - t)),
    "and 0 times it": (total, lambda t: jnp.exp(t) + 0 * t),
    "twice less once": (total, lambda t: jnp.exp(2 * t - t)),
    "always finite": (lambda s, b: jnp.ones(()), lambda t: jnp.isfinite(t).astype(float)),
    "never minus infinity": (lambda s, b: jnp.zeros(()), lambda t: (t == -INF).astype(float)),
    "of nothing, more than once": (
        lambda s, b: jnp.maximum(jnp.log(jnp.where(b.any(), total(s, b), 1.0)), 0.0),
        lambda t: jnp.maximum(3 * t - 2 * t, 0.0),
    ),
    "never no number": (lambda s, b: jnp.zeros(()), lambda t: jnp.isnan(t - t).astype(float)),
    "the other way round": (lambda s, b: jnp.where(b.any(), 1 / total(s, b), 0.0), lambda t: jnp.exp(-t)),
}


def log_total(s: Array, b: Array) -> Array:
    """The same without a maximum, which laws take for a number: `3*t - 2*t` is t."""
    return jnp.log(lax.psum(total(s, b), "d"))


def of_logarithm(reference: Whole, of: Of, logarithm: Whole = merged) -> Verdict:
    def on_device(s: Array, b: Array) -> Array:
        return of(logarithm(s, b))

    split = jax.shard_map(on_device, mesh=MESH, in_specs=P("d"), out_specs=P(), check_vma=False)
    shapes = (jax.ShapeDtypeStruct((8,), jnp.float32), jax.ShapeDtypeStruct((8,), jnp.bool_))
    return hlo_verify.check(reference, split, *shapes, refute=False).verdict


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_where_nothing_is_left_is_not_proved(name: str) -> None:
    assert of_logarithm(*DIFFERENT[name]) is not Verdict.PROVED


@pytest.mark.parametrize("name", [name for name in DIFFERENT if name != "more than once"])
def test_what_a_logarithm_of_numbers_alone_differs_in_is_not_proved(name: str) -> None:
    assert of_logarithm(*DIFFERENT[name], log_total) is not Verdict.PROVED


def test_an_exponential_of_a_logarithm_of_nothing_is_divided_by() -> None:
    def reference(s: Array, b: Array) -> Array:
        return jnp.where(b.any(), jnp.exp(-whole(s, b)) * s.sum(), 0.0)

    def on_device(s: Array, b: Array) -> Array:
        is_any = lax.psum(b.any().astype(jnp.int32), "d") > 0
        return jnp.exp(-log_total(s, b)) * jnp.where(is_any, lax.psum(s.sum(), "d"), 0.0)

    split = jax.shard_map(on_device, mesh=MESH, in_specs=P("d"), out_specs=P(), check_vma=False)
    shapes = (jax.ShapeDtypeStruct((8,), jnp.float32), jax.ShapeDtypeStruct((8,), jnp.bool_))
    assert hlo_verify.check(reference, split, *shapes, refute=False).verdict is not Verdict.PROVED
