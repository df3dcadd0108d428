"""What is sampled from, with the vocabulary over devices: filters of logits and probabilities in several spellings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.passes.prove.each_device.programs import on

Function = Callable[..., Any]
SPLIT = P(None, "i")
K = 3


def verdict(reference: Function, local: Function) -> Verdict:
    placed = on({"i": 4}, (SPLIT,), SPLIT, (2, 16))
    return hlo_verify.verify(*placed.pair(reference, local), refute=False).verdict


def share(p: jax.Array) -> jax.Array:
    return p / jnp.sum(p, -1, keepdims=True)


def shares(p: jax.Array) -> jax.Array:
    return p / lax.psum(p.sum(-1, keepdims=True), "i")


def powers(z: jax.Array) -> jax.Array:
    """In units of the greatest one."""
    return jnp.exp(z - lax.pmax(z.max(-1, keepdims=True), "i"))


# The k best: the greatest of what is left is a number, since the k-th is one of the elements


def best(z: jax.Array) -> jax.Array:
    kth = lax.top_k(z, K)[0][:, -1:]
    return jax.nn.softmax(jnp.where(z < kth, -jnp.inf, z))


def best_of_each(z: jax.Array, k: int = K, among: int = K, own: bool = False) -> jax.Array:
    found = lax.top_k(z, among)[0]
    kth = lax.top_k(found if own else lax.all_gather(found, "i", axis=1, tiled=True), k)[0][:, -1:]
    return shares(jnp.where(z >= kth, powers(z), 0))


def without_the_kth(z: jax.Array) -> jax.Array:
    kth = lax.top_k(z, K)[0][:, -1:]
    return jax.nn.softmax(jnp.where(z <= kth, -jnp.inf, z))


BEST: dict[str, tuple[Function, bool]] = {
    "right": (best_of_each, True),
    "one_fewer": (partial(best_of_each, k=K - 1), False),
    "too_few_of_each": (partial(best_of_each, among=K - 1), False),
    "own_alone": (partial(best_of_each, own=True), False),
}


@pytest.mark.parametrize("name", BEST)
def test_the_best_words(name: str) -> None:
    local, is_right = BEST[name]
    assert (verdict(best, local) is Verdict.PROVED) is is_right


@pytest.mark.parametrize("name", BEST)
def test_none_of_them_is_the_best_without_the_last_one(name: str) -> None:
    assert verdict(without_the_kth, BEST[name][0]) is not Verdict.PROVED


# Words that are likely enough beside the likeliest: a comparison of probabilities is one of exponentials


def likely(z: jax.Array) -> jax.Array:
    p = jax.nn.softmax(z)
    return share(jnp.where(p < 0.125 * p.max(-1, keepdims=True), 0.0, p))


def of_powers(z: jax.Array, least: float = 0.125) -> jax.Array:
    p = powers(z)
    return shares(jnp.where(p < least, 0.0, p))


def of_probabilities(z: jax.Array, shared: bool = True) -> jax.Array:
    p = shares(powers(z))
    most = p.max(-1, keepdims=True)
    return shares(jnp.where(8 * p >= (lax.pmax(most, "i") if shared else most), p, 0.0))


LIKELY: dict[str, tuple[Function, bool]] = {
    "of_powers": (of_powers, True),
    "of_probabilities": (of_probabilities, True),
    "other_bound": (partial(of_powers, least=0.25), False),
    "likeliest_of_its_own": (partial(of_probabilities, shared=False), False),
    "not_summed": (lambda z: shares(z * 0 + share(jnp.where(powers(z) < 0.125, 0.0, powers(z)))), False),
    "all": (lambda z: shares(powers(z)), False),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", LIKELY)
def test_words_that_are_likely_enough(name: str) -> None:
    local, is_right = LIKELY[name]
    assert (verdict(likely, local) is Verdict.PROVED) is is_right
