"""Layers as Neuron's tools split them, without a word of where arguments lie: right ones are PROVED with the placement
that was found, wrong ones never, and nothing is refuted by a guess."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import hlo_verify
from hlo_verify import Report, Verdict
from tests.support.ranks import psum, rank, rank_number, whole

PROVED, REFUTED, UNKNOWN = Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN

Layer = Callable[..., Any]

# Two layers of a perceptron, with biases

X, UP, DOWN, WIDE, NARROW = (3, 4), (4, 8), (8, 4), (8,), (4,)


def _added(y: Any, b: Any) -> Any:
    """Of devices that hold addends of the bias."""
    return psum(y + b)


def _shared(y: Any, b: Any) -> Any:
    return psum(y + b / 2)


def _after(y: Any, b: Any) -> Any:
    return psum(y) + b


def _on_the_first(y: Any, b: Any) -> Any:
    return psum(y + jnp.where(rank_number() == 0, b, 0.0))


def _shared_too_much(y: Any, b: Any) -> Any:
    return psum(y + b / 4)


def _twice(y: Any, b: Any) -> Any:
    return psum(y + b) + b


def _never(y: Any, b: Any) -> Any:
    return psum(y)


def _not_summed(y: Any, b: Any) -> Any:
    return y + b


def perceptron(*bias: Layer) -> Layer:
    """A layer for each way to add the bias."""

    def function(x: Any, *weights: Any) -> Any:
        for n, add in enumerate(bias):
            up, wide, down, narrow = weights[4 * n : 4 * n + 4]
            x = x + jnp.tanh(add(jnp.tanh(x @ up + wide) @ down, narrow))
        return x

    return function


@cache
def _perceptrons(first: Layer, second: Layer) -> Report:
    one = whole(perceptron(lambda y, b: y + b, lambda y, b: y + b), [X, *[UP, WIDE, DOWN, NARROW] * 2])
    return hlo_verify.verify(one, rank(perceptron(first, second), [X, *[(4, 4), (4,), (4, 4), NARROW] * 2], 2))


SUM = "the sum of addends on 2 devices"


@pytest.mark.parametrize(
    ("bias", "sums"),
    [
        ((_added, _added), ["weights[3]", "weights[7]"]),
        ((_shared, _shared), []),
        ((_after, _after), []),
        ((_on_the_first, _on_the_first), []),
        ((_added, _after), ["weights[3]"]),
        ((_after, _added), ["weights[7]"]),
        ((_shared, _added), ["weights[7]"]),
    ],
    ids=["addends", "shared out", "after", "on the first rank", "addends, after", "after, addends", "shared, addends"],
)
def test_biases_are_proved_with_the_placement_that_was_found(bias: tuple[Layer, Layer], sums: Sequence[str]) -> None:
    report = _perceptrons(*bias)
    assert report.verdict is PROVED
    assert report.headline.startswith("PROVED with ") and report.headline.endswith("(inferred)")
    assert (SUM in report.headline) == bool(sums)
    if sums:
        assert f"{', '.join(sums)} {SUM}" in report.headline


@pytest.mark.drawn(1)
@pytest.mark.parametrize("second", [_added, _after])
@pytest.mark.parametrize("first", [_shared_too_much, _twice, _never, _not_summed])
def test_wrong_biases_are_never_proved(first: Layer, second: Layer) -> None:
    assert _perceptrons(first, second).verdict is not PROVED


# Attention with 4 heads on 8 ranks

T, E, D, HEADS, RANKS = 2, 3, 1, 4, 8


def attention(heads: int, keys: int, scale: float = 1.0, reduce: Layer = lambda y: y, turned: bool = False) -> Layer:
    """So many heads of queries, and of keys and values, which are repeated for as many queries as it takes."""

    def function(x: Any, q: Any, k: Any, v: Any, out: Any) -> Any:
        queries, key, value = ((x @ w).reshape(T, n, D) for w, n in ((q, heads), (k, keys), (v, keys)))
        key, value = (jnp.repeat(each, heads // keys, axis=1) for each in (key, value))
        if turned:
            key, value = value, key
        weights = jax.nn.softmax(jnp.einsum("ihd,jhd->hij", queries, key))
        y = jnp.einsum("hij,jhd->ihd", weights, value).reshape(T, heads * D)
        return reduce(y @ out) * scale

    return function


def _attention(queries: int, keys: int, scale: float, turned: bool = False) -> Report:
    one = whole(attention(queries, keys), [(T, E), (E, queries * D), *[(E, keys * D)] * 2, (queries * D, E)])
    local = attention(1, 1, scale, psum, turned)
    return hlo_verify.verify(one, rank(local, [(T, E), *[(E, D)] * 3, (D, E)], RANKS))


def test_fewer_heads_than_ranks_lie_beside_zeros() -> None:
    report = _attention(HEADS, HEADS, 1.0)
    assert report.verdict is PROVED
    assert "q, k, v split along dimension 1" in report.headline
    assert "out split along dimension 0 over devices 0, 1, 2, 3, zeros beside them" in report.headline


def test_fewer_heads_than_ranks_are_copied() -> None:
    report = _attention(HEADS, HEADS, 0.5)
    assert report.verdict is PROVED and "2 copies of each" in report.headline and "zeros" not in report.headline


def test_fewer_keys_than_ranks_are_copied_to_neighbours() -> None:
    report = _attention(RANKS, HEADS, 1.0)
    assert report.verdict is PROVED
    assert (
        "k, v split along dimension 1 in 4 over 8 devices, 2 copies of each, devices in another order"
        in report.headline
    )


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("scale", "turned"), [(0.25, False), (2.0, False), (1.0, True), (0.5, True)])
@pytest.mark.parametrize("queries", [HEADS, RANKS])
def test_wrong_attention_is_never_proved(queries: int, scale: float, turned: bool) -> None:
    report = _attention(queries, HEADS, scale, turned)
    assert report.verdict is UNKNOWN, "padding in another order of devices is not refuted"
