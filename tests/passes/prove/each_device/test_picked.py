"""Experts that are asked one by one, against each token's own experts: what an integer picks, piece by piece."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.passes.prove.each_device.programs import on

DEVICES, EXPERTS, TOKENS, WIDTH = 2, 4, 3, 2
SHAPES = (TOKENS, WIDTH), (WIDTH, EXPERTS), (EXPERTS, WIDTH, WIDTH)
Layer = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]


def scores(x: jax.Array, router: jax.Array, best: int) -> tuple[jax.Array, jax.Array]:
    """The probabilities of the best experts of each token, made one again, and which these are."""
    values, which = lax.top_k(jax.nn.softmax(x @ router), best)
    return values / values.sum(-1, keepdims=True), which


def gathered(best: int) -> Layer:
    """Each token's experts, with their weights gathered."""

    def layer(x: jax.Array, router: jax.Array, weights: jax.Array) -> jax.Array:
        values, which = scores(x, router, best)
        parts = [jnp.tanh(jnp.einsum("td,tdf->tf", x, weights[which[:, k]])) for k in range(best)]
        return sum(values[:, k, None] * part for k, part in enumerate(parts))  # type: ignore[return-value]

    return layer


def one_by_one(best: int, ahead: int = 0, first: int = 0, twice: bool = False) -> Layer:
    """A device's experts in a loop of Python, each for the tokens that picked it."""

    def layer(x: jax.Array, router: jax.Array, weights: jax.Array) -> jax.Array:
        values, which = scores(x, router, best)
        own, total = weights.shape[0], jnp.zeros((TOKENS, WIDTH))
        for n in range(first, own):
            expert = lax.axis_index("i") * own + n
            share = jnp.where(which == expert, values, 0.0).sum(-1, keepdims=True)
            total += share * jnp.tanh(x @ weights[0 if twice else (n + ahead) % own])
        return lax.psum(total, "i")

    return layer


def dispatched(x: jax.Array, router: jax.Array, weights: jax.Array) -> jax.Array:
    """A device's part of a table of all tokens' shares in all experts."""
    values, which = scores(x, router, 2)
    own = weights.shape[0]
    table = jnp.einsum("tk,tke->te", values, jax.nn.one_hot(which, EXPERTS))
    mine = lax.dynamic_slice_in_dim(table, lax.axis_index("i") * own, own, 1)
    return lax.psum(jnp.einsum("te,tef->tf", mine, jnp.tanh(jnp.einsum("td,edf->tef", x, weights))), "i")


def report(reference: Layer, local: Layer) -> hlo_verify.Report:
    placed = on({"i": DEVICES}, (P(), P(), P("i")), P(), *SHAPES)
    return hlo_verify.verify(*placed.pair(reference, local), refute=False)


def verdict(reference: Layer, local: Layer) -> Verdict:
    return report(reference, local).verdict


@pytest.mark.parametrize("best", [1, 2])
def test_experts_one_by_one(best: int) -> None:
    assert verdict(gathered(best), one_by_one(best)) is Verdict.PROVED


def test_a_result_says_how_it_was_proved() -> None:
    assert [result.by_device for result in report(gathered(2), one_by_one(2)).results] == [True]
    plain = on({"i": DEVICES}, P("i"), P("i"), (8,)).pair(jnp.sin, jnp.sin)
    assert [result.by_device for result in hlo_verify.verify(*plain).results] == [False]


def test_experts_by_a_table_of_shares() -> None:
    assert verdict(gathered(2), dispatched) is Verdict.PROVED


WRONG = {
    "the next expert's weights": one_by_one(2, ahead=1),
    "the first expert of none": one_by_one(2, first=1),
    "one expert's weights": one_by_one(2, twice=True),
    "the best alone": one_by_one(1),
}


@pytest.mark.parametrize("name", WRONG)
def test_other_experts_are_not_proved(name: str) -> None:
    assert verdict(gathered(2), WRONG[name]) is not Verdict.PROVED
