"""Counts of the elements that are the greatest, where what they are compared by is multiplied by other numbers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.index import expr
from hlo_verify.terms import algebra, signs, sums
from hlo_verify.terms.attained import counts_the_best
from hlo_verify.terms.extrema import reduce_extremum
from hlo_verify.terms.functions import EXPONENTIAL, IS_ZERO, real
from hlo_verify.terms.laws import apply, divide
from hlo_verify.terms.term import ONE, Poly, tensor
from tests.support.lowering import floats

SIZE = 3
A, B = (tensor("argument", name, "f32", (SIZE,)) for name in "ab")
PLACE = expr.fresh("v", SIZE)


def at(source: Any) -> Poly:
    return algebra.read(source, (expr.of_var(PLACE),))


def length() -> Poly:
    """A number that is surely above 0."""
    return apply(real("sqrt"), (algebra.add(ONE, algebra.multiply(at(B), at(B))),))


def count(best: Poly, divisor: Poly) -> Poly:
    """How many elements are so many times the best one."""
    asked = algebra.subtract(at(A), algebra.multiply(best, divisor))
    return sums.reduce_sum([PLACE], apply(IS_ZERO, (asked,)))


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("divisor", [length, lambda: apply(EXPONENTIAL, (at(B),))])
def test_one_quotient_is_the_best(kind: str, divisor: Callable[[], Poly]) -> None:
    best = reduce_extremum(kind, [PLACE], divide(at(A), divisor()))
    assert counts_the_best(count(best, divisor()))
    assert signs.of(count(best, divisor())) == signs.POSITIVE


@pytest.mark.parametrize(
    "divisor",
    [
        length,  # what is compared is not what the best is of
        lambda: at(B),  # may be 0
        lambda: algebra.multiply(at(B), at(B)),
        lambda: algebra.add(ONE, at(B)),
    ],
)
def test_the_best_of_others_may_be_none(divisor: Callable[[], Poly]) -> None:
    best = reduce_extremum("max", [PLACE], at(A))
    assert not counts_the_best(count(best, divisor()))
    assert signs.of(count(best, divisor())) & signs.ZERO


def test_numbers_say_so_too() -> None:
    values = [Fraction(n, 2) for n in range(-3, 4)]
    lengths = [(Fraction(1), Fraction(2), Fraction(1, 3)), (Fraction(5), Fraction(5), Fraction(1, 7))]
    for row, divisors in product(product(values, repeat=SIZE), lengths):
        best = max(a / d for a, d in zip(row, divisors, strict=True))
        assert sum(a == best * d for a, d in zip(row, divisors, strict=True)) >= 1


def attention(w: jax.Array, x: jax.Array, t: jax.Array, is_own: bool, keep: int | None, scale: float) -> jax.Array:
    """A loss of attention between rows of length 1, by heads; the softmax as it is written by hand, through maxima."""
    rows = x * lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5)
    q = jnp.einsum("te,hed->htd", rows, w)
    scores = scale * jnp.einsum("htd,se->hts", q, rows[:, :1])
    if keep is not None:
        rank = jnp.arange(len(x))
        scores = jnp.where(rank[:, None] + keep >= rank, scores, -1e9)
    if is_own:
        shares = jnp.exp(scores - jnp.max(scores, axis=-1, keepdims=True))
        shares /= jnp.sum(shares, axis=-1, keepdims=True)
    else:
        shares = jax.nn.softmax(scores)
    return jnp.sum(jnp.einsum("hts,se->hte", shares, rows) * t)


@pytest.mark.parametrize("keep", [None, 0])
@pytest.mark.parametrize("wrong", [None, "scale", "mask"])
def test_gradients_of_attention_between_rows_of_length_1(keep: int | None, wrong: str | None) -> None:
    mesh = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
    other = {"scale": (keep, 0.7), "mask": (1 if keep == 0 else 0, 0.5), None: (keep, 0.5)}[wrong]

    def reference(w: jax.Array, x: jax.Array, t: jax.Array) -> jax.Array:
        return jax.grad(attention)(w, x, t, False, keep, 0.5)

    def local(w: jax.Array, x: jax.Array, t: jax.Array) -> jax.Array:
        return jax.grad(attention)(w, x, t, True, *other)

    split = jax.shard_map(local, mesh=mesh, in_specs=(P("x"), P(), P("x")), out_specs=P("x"), check_vma=False)
    found = hlo_verify.check(reference, split, *floats((2, 2, 1), (3, 2), (2, 3, 2)))
    assert found.verdict is (Verdict.REFUTED if wrong else Verdict.PROVED)
