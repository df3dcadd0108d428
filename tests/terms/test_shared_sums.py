"""Sums under conditions that are positive together, and maxima of what such conditions leave."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.terms import algebra, finite, guards, signs, sums
from hlo_verify.terms.extrema import reduce_extremum
from hlo_verify.terms.functions import EXPONENTIAL, INFINITY
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Poly, tensor
from tests.support.lowering import floats


def among(k: Index, i: Index, lo: int | None, hi: int | None) -> Poly:
    return guards.interval(expr.subtract(k, i), lo, hi)


PARTS: dict[str, tuple[Callable[[Index, Index, Index], tuple[Poly, ...]], Callable[[int, int, int], bool]]] = {
    "others": (lambda k, i, _: (among(k, i, None, -1), among(k, i, 1, None)), lambda k, i, _: k != i),
    "others of two": (
        lambda k, i, j: (
            algebra.multiply(algebra.logical_not(among(k, i, 0, 0)), among(k, j, None, -1)),
            algebra.multiply(algebra.logical_not(among(k, i, 0, 0)), among(k, j, 1, None)),
        ),
        lambda k, i, j: k not in (i, j),
    ),
    "before": (lambda k, i, _: (among(k, i, None, -1),), lambda k, i, _: k < i),
    "before or there": (lambda k, i, _: (among(k, i, None, 0),), lambda k, i, _: k <= i),
    "apart": (lambda k, i, _: (among(k, i, None, -2), among(k, i, 2, None)), lambda k, i, _: abs(k - i) > 1),
}


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("name", list(PARTS))
def test_what_is_positive_or_a_number_has_an_element_everywhere(name: str, size: int) -> None:
    """Of rows that conditions leave nothing of, for some place, neither is claimed."""
    parts, holds = PARTS[name]
    i, j, k = (expr.fresh(each, size) for each in "ijk")
    scores = tensor("argument", "s", "f32", (size,))
    score = algebra.read(scores, (expr.of_var(k),))
    conditions = parts(expr.of_var(k), expr.of_var(i), expr.of_var(j))
    weight = apply(EXPONENTIAL, (score,))
    total = algebra.add(*(sums.reduce_sum([k], algebra.multiply(each, weight)) for each in conditions))
    masked = algebra.select(algebra.add(*conditions), score, algebra.scale(apply(INFINITY, ()), -1))
    best = reduce_extremum("max", [k], masked)
    everywhere = all(any(holds(a, b, c) for a in range(size)) for b, c in product(range(size), repeat=2))
    is_positive, is_number = signs.of(total) == signs.POSITIVE, finite.as_shown().surely(best)
    if not everywhere:
        assert not is_positive
        assert not is_number
    elif name in ("others", "before or there"):
        assert is_positive
        assert is_number
        assert not signs.of(best) & signs.BEYOND


def loss(w: jax.Array, x: jax.Array, first: int | jax.Array, kept: int | jax.Array, rows: int = 2) -> jax.Array:
    """A contrastive loss (NT-Xent) of some rows among all less each row itself, the first of which is `kept`; written
    in another way than where all rows are there."""
    z = jnp.tanh(x @ w)
    scores = lax.dynamic_slice_in_dim(z, first, rows) @ z.T
    other = (jnp.arange(rows) + kept)[:, None] != jnp.arange(len(x))
    if rows < len(x):
        among = jax.nn.logsumexp(scores, axis=1, b=other.astype(jnp.float32))
    else:
        among = jax.nn.logsumexp(jnp.where(other, scores, -jnp.inf), axis=1)
    return jnp.sum(among - scores[:, 0])


@pytest.mark.parametrize("wrong", [None, "mask", "mean"])
def test_gradients_of_a_loss_among_all_other_rows(wrong: str | None) -> None:
    def local(w: jax.Array, x: jax.Array) -> jax.Array:
        first = lax.axis_index("x") * 2
        gradient = jax.grad(loss)(w, x, first, 0 if wrong == "mask" else first)
        return (lax.pmean if wrong == "mean" else lax.psum)(gradient, "x")

    def reference(w: jax.Array, x: jax.Array) -> jax.Array:
        return jax.grad(loss)(w, x, 0, 0, 4)

    mesh = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
    split = jax.shard_map(local, mesh=mesh, in_specs=(P(), P()), out_specs=P(), check_vma=False)
    found = hlo_verify.check(reference, split, *floats((2, 2), (4, 2)))
    assert found.verdict is (Verdict.REFUTED if wrong else Verdict.PROVED)
