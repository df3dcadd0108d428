"""Sums of what stands at each place in order, by what devices add up at their own elements' ranks."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.index import expr
from hlo_verify.memory import Memory
from hlo_verify.ops.in_order import order
from hlo_verify.ops.permutations import summed
from hlo_verify.terms import algebra
from hlo_verify.terms.term import ONE
from tests.support.lowering import Placed
from tests.support.structural_laws import Case, at, bound

MESH = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
COUNT, LOCAL = 6, 3
ARGUMENTS = [jax.ShapeDtypeStruct((COUNT,), jnp.float32)] * 2
Body = Callable[[jax.Array, jax.Array], jax.Array]


def verdict(reference: Body, local: Body) -> Verdict:
    pair = Placed(MESH, (P("x"), P("x")), P(), ARGUMENTS).pair(reference, local)
    return hlo_verify.verify(*pair, refute=False).verdict


def gain(s: jax.Array, g: jax.Array) -> jax.Array:
    """The discounted cumulative gain of items with scores s and relevances g."""
    return jnp.sum((2.0 ** g[jnp.argsort(-s)] - 1) / jnp.log2(jnp.arange(COUNT) + 2.0))


def gathered(x: jax.Array) -> jax.Array:
    return lax.all_gather(x, "x", tiled=True)


def own(x: jax.Array) -> jax.Array:
    return lax.dynamic_slice_in_dim(x, lax.axis_index("x") * LOCAL, LOCAL)


def ahead(s: jax.Array, ties: bool = True) -> jax.Array:
    """How many items come before each of a device's own."""
    others, i = gathered(s), own(jnp.arange(COUNT))
    equal = (others == s[:, None]) & (jnp.arange(COUNT) < i[:, None])
    return jnp.sum((others > s[:, None]) | equal if ties else others > s[:, None], axis=1)


def discounted(g: jax.Array, rank: jax.Array) -> jax.Array:
    return lax.psum(jnp.sum((2.0**g - 1) / jnp.log2(rank + 2.0)), "x")


SAME: dict[str, Body] = {
    "by counts": lambda s, g: discounted(g, ahead(s)),
    "by two sorts": lambda s, g: discounted(g, own(jnp.argsort(jnp.argsort(-gathered(s))))),
    "in order": lambda s, g: gain(gathered(s), gathered(g)),
}

OTHERS: dict[str, Body] = {
    "by an order": lambda s, g: discounted(g, own(jnp.argsort(-gathered(s)))),
    "upwards": lambda s, g: discounted(g, own(jnp.argsort(jnp.argsort(gathered(s))))),
    "equal ones at one rank": lambda s, g: discounted(g, ahead(s, ties=False)),
    "one place further": lambda s, g: discounted(g, ahead(s) + 1),
}


@pytest.mark.parametrize("name", SAME)
def test_gains_of_items_by_their_ranks(name: str) -> None:
    assert verdict(gain, SAME[name]) is Verdict.PROVED


@pytest.mark.parametrize("name", OTHERS)
def test_other_gains_are_not(name: str) -> None:
    assert verdict(gain, OTHERS[name]) is not Verdict.PROVED


@pytest.mark.parametrize("seed", range(60))
def test_the_sum_is_kept(seed: int) -> None:
    """Of products of what is read at a place, at its rank, and at its rank from the other end."""
    with Memory().on():
        case = Case(seed)
        (x, _), (y, ys), (z, zs), v, w = case.make(6), case.make(6), case.make(6), bound(6), bound(6)
        case.known.tensors[x] = xs = np.array([case.random.randint(0, 2) for _ in range(6)], dtype=object)
        ranks = list(xs)
        key = at(x, w)
        for _ in range(case.random.choice((1, 2, 2, 2))):
            key = order(w, key, expr.of_var(w), "i32", ascending=True)
            ranks = sorted(range(6), key=lambda k, before=tuple(ranks): before[k])
        places, numbers = expr.of_var(v), list(range(6))
        if case.random.random() < 0.3:
            places, numbers = expr.subtract(expr.constant(5), places), numbers[::-1]
        rank = algebra.as_index(algebra.substitute(key, {w: places}), 0, 5)
        factors = [(at(y, v), list(ys)), (at(z, rank), [zs[ranks[k]] for k in numbers])]
        if case.random.random() < 0.3:
            factors.append((algebra.of_index(rank), [ranks[k] for k in numbers]))
        term = ONE
        for factor, _ in factors:
            term = algebra.multiply(term, factor)
        wanted = sum(prod(values[k] for _, values in factors) for k in range(6))
        assert (case.value(summed([v], term)) == case.each(lambda i, j: wanted)).all()
