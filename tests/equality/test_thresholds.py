"""What conditions ask of extrema, sizes and logarithms, asked of what these are of."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.equality.thresholds import taken_apart
from hlo_verify.evaluate.balls import precision
from hlo_verify.index import expr
from hlo_verify.limits import Limits
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import ABS, LOG, MAXIMUM, MINIMUM, POSITIVE, Function, real
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Poly, number, tensor
from tests.support.law_meanings import Terms, agree
from tests.support.lowering import Placed

NAMES = "xyz"
DRAWN = (-2, 0, 3)
EXP = real("exponential")
Formula = Callable[..., Poly]


def of(function: Function, *args: Poly) -> Poly:
    return apply(function, args)


def plus(p: Poly, q: Poly, factor: int = 1) -> Poly:
    return algebra.add(p, algebra.scale(q, factor))


def times(p: Poly, q: Poly) -> Poly:
    return algebra.multiply(p, q)


def squared(p: Poly) -> Poly:
    return times(p, p)


APART: dict[str, Formula] = {
    "greatest": lambda x, y, z: plus(of(MAXIMUM, x, y), z),
    "below the greatest": lambda x, y, z: plus(z, of(MAXIMUM, x, y), -2),
    "least": lambda x, y, z: plus(of(MINIMUM, x, y, z), x),
    "below the least": lambda x, y, z: plus(z, of(MINIMUM, x, y), -1),
    "size": lambda x, y, z: plus(of(ABS, x), y),
    "below a size": lambda x, y, z: plus(y, of(ABS, x), -1),
    "below a size of what may be none": lambda x, y, z: plus(y, of(ABS, of(LOG, x)), -1),
    "least of what may be none": lambda x, y, z: plus(of(MINIMUM, of(LOG, x), of(LOG, y)), z),
    "greatest beside what may be none": lambda x, y, z: plus(of(MAXIMUM, x, y), of(LOG, z)),
    "positive factor": lambda x, y, z: plus(times(of(MAXIMUM, x, y), of(EXP, z)), z),
    "in an exponential": lambda x, y, z: plus(of(EXP, of(MINIMUM, x, y)), z),
    "opposite in an exponential": lambda x, y, z: plus(of(EXP, plus(z, of(MINIMUM, x, y), -1)), z),
    "two": lambda x, y, z: plus(of(MAXIMUM, x, y), of(MINIMUM, x, z)),
    "logarithm": lambda x, y, z: plus(y, of(LOG, of(EXP, plus(of(EXP, x), z))), 1),
    "logarithm of a square": lambda x, y, z: plus(y, of(LOG, plus(squared(x), squared(z))), -1),
    "above a logarithm": lambda x, y, z: plus(of(LOG, plus(squared(x), number(1))), y),
    "two logarithms": lambda x, y, z: plus(
        of(LOG, plus(squared(x), number(1))), of(LOG, plus(of(EXP, y), number(1))), -2
    ),
}
"""What is asked of parts, if it is one of an extremum, size or logarithm at all."""

WHOLE: dict[str, Formula] = {
    "greatest of what may be none": lambda x, y, z: plus(of(MAXIMUM, of(LOG, x), y), z),
    "factor of any sign": lambda x, y, z: plus(times(of(MAXIMUM, x, y), z), number(-1)),
    "twice": lambda x, y, z: plus(of(EXP, of(MAXIMUM, x, y)), of(MAXIMUM, x, y), -3),
    "beside itself": lambda x, y, z: plus(times(of(MAXIMUM, x, y), of(EXP, plus(z, of(MAXIMUM, x, y), -1))), z),
    "power": lambda x, y, z: plus(squared(of(MAXIMUM, x, y)), number(-1)),
    "logarithm of any sign": lambda x, y, z: plus(y, of(LOG, x), -1),
    "logarithm beside what may be none": lambda x, y, z: plus(of(LOG, y), of(LOG, squared(x)), -1),
    "part of a logarithm": lambda x, y, z: plus(y, algebra.scale(of(LOG, plus(squared(x), number(1))), 0.5), -1),
}
"""What stays as it is."""


def both(formula: Formula) -> tuple[Poly, Poly, tuple[Any, ...]]:
    letters = tuple(tensor("argument", name, "f32", ()) for name in NAMES)
    whole = of(POSITIVE, formula(*(algebra.read(each, []) for each in letters)))
    return whole, taken_apart(whole), letters


@pytest.mark.parametrize("name", [*APART, *WHOLE])
def test_parts_hold_where_the_whole_does(name: str) -> None:
    with Session().on(), precision(128):
        whole, parts, letters = both({**APART, **WHOLE}[name])
        for drawn in product(DRAWN, repeat=len(letters)):
            values = Terms(dict(zip(letters, drawn, strict=True)), {})
            assert agree(values.poly(whole), values.poly(parts)), drawn


def test_a_long_sum_of_extrema_stays() -> None:
    """Taken apart it has 2**24 conditions."""
    with Session().on():
        x = tensor("argument", "x", "f32", (24,))
        parts = (of(MAXIMUM, number(0), algebra.read(x, [expr.constant(n)])) for n in range(24))
        whole = of(POSITIVE, reduce(algebra.add, parts))
        assert taken_apart(whole) is whole


@pytest.mark.parametrize("name", WHOLE)
def test_what_may_hold_elsewhere_stays(name: str) -> None:
    with Session().on():
        whole, parts, _ = both(WHOLE[name])
        assert parts is whole


@pytest.mark.parametrize(("count", "is_apart"), [(3, True), (40, False)])
def test_what_gives_too_many_products_stays(count: int, is_apart: bool) -> None:
    """`[maximum(x1, y1) > 2] [maximum(x2, y2) > 2] ..`: each gives three products."""
    with Session().on():
        x, y = (tensor("argument", name, "f32", (count,)) for name in "xy")
        pairs = [[algebra.read(each, (expr.constant(n),)) for each in (x, y)] for n in range(count)]
        whole = reduce(algebra.multiply, (of(POSITIVE, plus(of(MAXIMUM, *pair), number(-2))) for pair in pairs))
        parts = taken_apart(whole)
        assert (len(parts.items) == 3**count) if is_apart else parts is whole


Accepts = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]
SAME: dict[str, tuple[Accepts, Accepts]] = {
    "of a quotient": (lambda p, q, u: u < jnp.minimum(1, p / q), lambda p, q, u: u * q < p),
    "of an exponential": (
        lambda p, q, u: u < jnp.minimum(1, p / q),
        lambda p, q, u: u < jnp.exp(jnp.minimum(0, jnp.log(p) - jnp.log(q))),
    ),
    "of a logarithm": (lambda p, q, u: u < p / q, lambda p, q, u: jnp.log(u) < jnp.log(p) - jnp.log(q)),
    "Metropolis": (lambda p, q, u: u < jnp.exp(p - q), lambda p, q, u: q - p < -jnp.log(u)),
    "size": (lambda p, q, u: abs(p - q) < u, lambda p, q, u: (p - q < u) & (p > q - u)),
    "outside": (lambda p, q, u: abs(p - q) > u, lambda p, q, u: (p - q > u) | (p < q - u)),
    "clipped": (lambda p, q, u: jnp.clip(p, -1, q) > u, lambda p, q, u: (q > u) & (p > u)),
}
OTHER: dict[str, tuple[Accepts, Accepts]] = {
    "the other way": (lambda p, q, u: u < jnp.minimum(1, p / q), lambda p, q, u: u * p < q),
    "one bound": (lambda p, q, u: abs(p - q) < u, lambda p, q, u: p - q < u),
    "either": (lambda p, q, u: abs(p - q) < u, lambda p, q, u: (p - q < u) | (p > q - u)),
    "both": (lambda p, q, u: abs(p - q) > u, lambda p, q, u: (p - q > u) & (p < q - u)),
    "another power": (lambda p, q, u: u < p / q, lambda p, q, u: 2 * jnp.log(u) < jnp.log(p) - jnp.log(q)),
    "no maximum": (lambda p, q, u: u < jnp.maximum(1, p / q), lambda p, q, u: u * q < p),
}


def verdict(reference: Accepts, local: Accepts) -> Verdict:
    placed = Placed(AbstractMesh((2,), ("x",)), (P("x"),) * 3, P("x"), [jax.ShapeDtypeStruct((4,), jnp.float32)] * 3)

    def chosen(accepts: Accepts) -> Callable[..., jax.Array]:
        return lambda p, q, u: jnp.where(accepts(p, q, u), p, u)

    pair = placed.pair(chosen(reference), chosen(local))
    assume = {"p": "positive", "q": "positive", "u": (0.0, 0.9)}
    return hlo_verify.verify(*pair, assume=assume, refute=False).verdict


@pytest.mark.parametrize("name", SAME)
def test_a_condition_in_another_spelling(name: str) -> None:
    assert verdict(*SAME[name]) is Verdict.PROVED


@pytest.mark.parametrize("name", OTHER)
def test_another_condition_is_not(name: str) -> None:
    assert verdict(*OTHER[name]) is not Verdict.PROVED


def test_conditions_are_taken_apart_where_nothing_else_shows_it() -> None:
    """By its parts this is 0 in more cases than are tried, and by what is asked of it in a few."""

    def bounds(x: jax.Array, y: jax.Array, z: jax.Array) -> tuple[jax.Array, jax.Array]:
        rest = 1 + y + jnp.minimum(x, y) - jnp.minimum(jnp.maximum(z, 0.5), x + y)
        return 1 + jnp.maximum(x, 0.5), rest

    def whole(x: jax.Array, y: jax.Array, z: jax.Array) -> jax.Array:
        size, rest = bounds(x, y, z)
        return jnp.where(z > 0, jnp.where(jnp.abs(size) < rest, x, y), x)

    def in_parts(x: jax.Array, y: jax.Array, z: jax.Array) -> jax.Array:
        size, rest = bounds(x, y, z)
        return jnp.where(z > 0, jnp.where((size < rest) & (-size < rest), x, y), x)

    placed = Placed(AbstractMesh((2,), ("x",)), (P("x"),) * 3, P("x"), [jax.ShapeDtypeStruct((4,), jnp.float32)] * 3)
    limits = Limits(total_steps=1000)
    assert hlo_verify.verify(*placed.pair(whole, in_parts), refute=False, limits=limits).verdict is Verdict.PROVED
