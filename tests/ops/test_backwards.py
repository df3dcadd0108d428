"""Orders from the greatest element on, by `descending=True`, by opposites, and by what is looked at from the end."""

from __future__ import annotations

from collections.abc import Callable

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
from hlo_verify.ops.backwards import forwards
from hlo_verify.ops.in_order import order
from hlo_verify.terms import algebra
from hlo_verify.terms.term import number, of_atom
from tests.support.lowering import Placed
from tests.support.structural_laws import Case, at, bound

MESH = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
COUNT = 6
FLOATS = jax.ShapeDtypeStruct((COUNT,), jnp.float32)
INTEGERS = jax.ShapeDtypeStruct((COUNT,), jnp.int32)
Body = Callable[..., jax.Array]


def verdict(reference: Body, local: Body, argument: jax.ShapeDtypeStruct, **assumed: object) -> Verdict:
    def of_all(x: jax.Array) -> jax.Array:
        return local(lax.all_gather(x, "x", tiled=True))

    pair = Placed(MESH, P("x"), P(), [argument]).pair(reference, of_all)
    return hlo_verify.verify(*pair, refute=False, assume=assumed or None).verdict


def best(x: jax.Array) -> jax.Array:
    return lax.top_k(x, COUNT)[1]


def downwards(x: jax.Array) -> jax.Array:
    return jnp.argsort(x, descending=True)


def turned(x: jax.Array) -> jax.Array:
    """The same, by hand: of equal ones the last comes first from the end, and first from there."""
    return COUNT - 1 - jnp.argsort(x[::-1])[::-1]


def others_greater(x: jax.Array) -> jax.Array:
    i = jnp.arange(COUNT)
    return jnp.sum((x > x[:, None]) | ((x == x[:, None]) & (i < i[:, None])), axis=1)


SAME: dict[str, tuple[Body, Body]] = {
    "the best": (best, downwards),
    "turned by hand": (best, turned),
    "read there": (lambda x: jnp.sort(x)[::-1], lambda x: x[downwards(x)]),
    "ranks by counts": (others_greater, lambda x: jnp.argsort(downwards(x))),
    "ranks by a scatter": (
        lambda x: jnp.argsort(best(x)),
        lambda x: jnp.zeros(COUNT, jnp.int32).at[downwards(x)].set(jnp.arange(COUNT)),
    ),
    "ranks of what is turned": (
        lambda x: jnp.argsort(best(x)),
        lambda x: COUNT - 1 - jnp.argsort(jnp.argsort(x[::-1]))[::-1],
    ),
    "ranks downwards": (jnp.argsort, lambda x: downwards(jnp.argsort(jnp.argsort(x)))[::-1]),
    "summed up": (lambda x: jnp.sum(x * x), lambda x: jnp.sum(x[jnp.argsort(x[::-1])] ** 2)),
    "put back from the end": (
        lambda x: x,
        lambda x: jnp.zeros_like(x).at[jnp.argsort(x)[::-1]].set(jnp.sort(x)[::-1]),
    ),
}

OTHERS: dict[str, tuple[Body, Body]] = {
    "upwards, from the end": (best, lambda x: jnp.argsort(x)[::-1]),
    "not turned back": (best, lambda x: COUNT - 1 - jnp.argsort(x[::-1])),
    "its places as they are": (best, lambda x: jnp.argsort(x[::-1])[::-1]),
    "the opposites' last": (best, lambda x: COUNT - 1 - jnp.argsort(-x[::-1])[::-1]),
    "put back the other way": (
        lambda x: x,
        lambda x: jnp.zeros_like(x).at[jnp.argsort(x)[::-1]].set(jnp.sort(x)),
    ),
    "ranks for an order": (downwards, lambda x: jnp.argsort(downwards(x))),
    "ranks upwards": (lambda x: jnp.argsort(best(x)), lambda x: COUNT - 1 - jnp.argsort(jnp.argsort(x))),
}


@pytest.mark.parametrize("argument", [FLOATS, INTEGERS], ids=["floats", "integers"])
@pytest.mark.parametrize("name", SAME)
def test_what_is_counted_from_the_other_end(name: str, argument: jax.ShapeDtypeStruct) -> None:
    assert verdict(*SAME[name], argument) is Verdict.PROVED


@pytest.mark.drawn(4)
@pytest.mark.parametrize("argument", [FLOATS, INTEGERS], ids=["floats", "integers"])
@pytest.mark.parametrize("name", OTHERS)
def test_other_orders_are_not(name: str, argument: jax.ShapeDtypeStruct) -> None:
    assert verdict(*OTHERS[name], argument) is not Verdict.PROVED


def test_opposites_of_integers_that_are_no_least_ones() -> None:
    """`-x` of the least integer is that one again; where x is known not to be it, what is added does not count."""
    for other in (downwards, best, lambda x: jnp.argsort(5 - x)):
        assert verdict(lambda x: jnp.argsort(-x), other, INTEGERS) is not Verdict.PROVED
        assert verdict(lambda x: jnp.argsort(-x), other, INTEGERS, x=(0, 7)) is Verdict.PROVED


@pytest.mark.parametrize("seed", range(80))
def test_the_laws_keep_the_value(seed: int) -> None:
    """Of keys that are looked at from the end, negative, moved, and orders or ranks themselves; many are equal."""
    with Memory().on():
        case = Case(seed)
        size, dtype, ascending = 6, case.random.choice(("f32", "i32")), case.random.random() < 0.5
        (x, _), v = case.make(size), bound(size)
        xs = [case.random.randint(0, 2) for _ in range(size)]
        case.known.tensors[x] = np.array(xs, dtype=object)
        key = at(x, v)
        for _ in range(case.random.randrange(3)):
            w = bound(size)
            key = order(w, algebra.substitute(key, {v: expr.of_var(w)}), expr.of_var(v), "i32", ascending=True)
            xs = _order(xs)
        if case.random.random() < 0.5:
            key = algebra.substitute(key, {v: expr.subtract(expr.constant(size - 1), expr.of_var(v))})
            xs = xs[::-1]
        sign, more = case.random.choice((1, -1)), case.random.randint(-2, 2)
        key = algebra.add(algebra.scale(key, sign), number(more))
        wanted = _order([sign * k if ascending else -sign * k for k in xs])
        found = order(v, key, case.i, dtype, ascending=ascending)
        assert (case.value(found) == case.each(lambda i, j: wanted[i])).all()


def _order(xs: list[int]) -> list[int]:
    return sorted(range(len(xs)), key=lambda k: xs[k])


def test_a_term_is_turned_once() -> None:
    with Memory().on():
        case = Case(0)
        (x, _), v = case.make(6), bound(6)
        upwards = at(x, expr.of_var(v))
        backwards = algebra.substitute(upwards, {v: expr.subtract(expr.constant(5), expr.of_var(v))})
        assert forwards(v, backwards) is upwards
        assert forwards(v, upwards) is None
        assert forwards(v, algebra.multiply(upwards, backwards)) is None
        assert upwards.atom is not None
        assert forwards(v, of_atom(upwards.atom)) is None
