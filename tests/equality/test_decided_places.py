"""Masks in numbers, integers that are 0 or 1 by what the user says: truth values, in products, counts and places."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed

Spelling = Callable[[jax.Array, jax.Array], jax.Array]
Pair = tuple[Spelling, Spelling]
ZEROS_AND_ONES = {"m": (0, 2)}

SAME: dict[str, Pair] = {
    "product": (lambda x, m: x * m, lambda x, m: jnp.where(m > 0, x, 0)),
    "square": (lambda x, m: x * m * m, lambda x, m: jnp.where(m == 1, x, 0)),
    "opposite": (lambda x, m: x * (1 - m), lambda x, m: jnp.where(m == 0, x, 0)),
    "count": (lambda x, m: x * m.sum(1, keepdims=True), lambda x, m: x * (m != 0).sum(1, keepdims=True)),
    "enough": (
        lambda x, m: jnp.where(m.sum(1, keepdims=True) > 2, x, 0),
        lambda x, m: jnp.where(m.astype(jnp.float32).sum(1, keepdims=True) >= 3, x, 0),
    ),
    "any": (lambda x, m: x * m.max(1, keepdims=True), lambda x, m: jnp.where((m > 0).any(1, keepdims=True), x, 0)),
    "all": (lambda x, m: x * m.prod(1, keepdims=True), lambda x, m: jnp.where((m > 0).all(1, keepdims=True), x, 0)),
    "or": (lambda x, m: x * jnp.maximum(m, m[:, ::-1]), lambda x, m: jnp.where((m > 0) | (m[:, ::-1] > 0), x, 0)),
    "one hot": (
        lambda x, m: x[..., None] * jax.nn.one_hot(m, 2),
        lambda x, m: jnp.stack([x * (1 - m), x * m], -1),
    ),
    "place": (lambda x, m: jnp.take_along_axis(x, m, 1), lambda x, m: jnp.where(m == 1, x[:, 1:2], x[:, :1])),
    "place after": (lambda x, m: jnp.take_along_axis(x, m + 1, 1), lambda x, m: jnp.where(m > 0, x[:, 2:3], x[:, 1:2])),
    "bits that wrap": (
        lambda x, m: x * jnp.sum(m.astype(jnp.int8) * 100, 1, keepdims=True, dtype=jnp.int8),
        lambda x, m: x * jnp.sum(jnp.where(m == 1, 100, 0).astype(jnp.int8), 1, keepdims=True, dtype=jnp.int8),
    ),
}
OTHER: dict[str, Pair] = {
    "product": (lambda x, m: x * m, lambda x, m: jnp.where(m > 0, 0, x)),
    "opposite": (lambda x, m: x * (1 - m), lambda x, m: jnp.where(m == 1, x, 0)),
    "product of none": (lambda x, m: jnp.where(m > 0, jnp.log(x), 0), lambda x, m: m * jnp.log(x)),
    "quotient of none": (lambda x, m: jnp.where(m > 0, 1 / x, 0), lambda x, m: m / x),
    "infinity": (lambda x, m: jnp.where(m > 0, jnp.inf, x), lambda x, m: x + m * jnp.inf),
    "count": (lambda x, m: x * m.sum(1, keepdims=True), lambda x, m: x * (m == 0).sum(1, keepdims=True)),
    "any": (lambda x, m: x * m.max(1, keepdims=True), lambda x, m: jnp.where((m > 0).all(1, keepdims=True), x, 0)),
    "place": (lambda x, m: jnp.take_along_axis(x, m, 1), lambda x, m: jnp.where(m == 0, x[:, 1:2], x[:, :1])),
    "bits that do not wrap": (
        lambda x, m: x * jnp.sum(m.astype(jnp.int8) * 100, 1, keepdims=True, dtype=jnp.int8),
        lambda x, m: x * jnp.sum(m * 100, 1, keepdims=True),
    ),
}


def report(pair: Pair, assume: dict[str, tuple[int, int]], *, recheck: bool = False) -> hlo_verify.Report:
    arguments = [jax.ShapeDtypeStruct((2, 4), jnp.float32), jax.ShapeDtypeStruct((2, 4), jnp.int32)]
    placed = Placed(AbstractMesh((2,), ("x",)), (P("x"), P("x")), P("x"), arguments)
    return hlo_verify.verify(*placed.pair(*pair), assume=assume, refute=False, recheck=recheck)


@pytest.mark.parametrize("name", SAME)
def test_a_mask_in_numbers(name: str) -> None:
    assert report(SAME[name], ZEROS_AND_ONES).verdict is Verdict.PROVED


@pytest.mark.parametrize("name", OTHER)
def test_another_mask_is_not(name: str) -> None:
    assert report(OTHER[name], ZEROS_AND_ONES).verdict is not Verdict.PROVED


@pytest.mark.parametrize("assume", [{}, {"m": (0, 3)}, {"m": (-1, 2)}])
@pytest.mark.parametrize("name", ["product", "square", "count"])
def test_what_may_be_another_number_is_none(name: str, assume: dict[str, tuple[int, int]]) -> None:
    assert report(SAME[name], assume).verdict is not Verdict.PROVED


def test_the_second_check_agrees() -> None:
    checked = report(SAME["place"], ZEROS_AND_ONES, recheck=True).recheck
    assert checked is not None and checked.agreed == checked.steps and not checked.disagreements
