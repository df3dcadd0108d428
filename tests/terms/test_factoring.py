"""Sums that are products of two: what is found is one, and a denominator is one however it was multiplied out."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

from hlo_verify import Verdict, check
from hlo_verify.limits import Limits
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.factoring import two_factors
from hlo_verify.terms.term import ONE, Poly, number, tensor

ATOMS = [algebra.read(tensor("argument", name, "f32", ()), ()) for name in "abcdefgh"]


def drawn(choose: random.Random, atoms: list[Poly]) -> Poly:
    """A sum of two to four products of some atoms, with whole factors."""
    total = algebra.scale(ONE, choose.randint(-3, 3))
    while len(total.items) < 2 or choose.random() < 0.4:
        product = number(choose.choice((-3, -1, 1, 2, 5)))
        for atom in choose.sample(atoms, choose.randint(1, len(atoms))):
            product = algebra.expanded(product, algebra.power(atom, choose.randint(1, 2)))
        total = algebra.add(total, product)
    return total


@pytest.mark.parametrize("seed", range(40))
def test_what_is_found_are_factors(seed: int) -> None:
    choose = random.Random(seed)
    left, right = drawn(choose, ATOMS[:3]), drawn(choose, ATOMS[3:6])
    product = algebra.expanded(left, right)
    found = two_factors(product)
    assert found is not None
    assert algebra.expanded(*found) is product


@pytest.mark.parametrize("seed", range(40))
def test_what_is_no_product_is_taken_for_none(seed: int) -> None:
    """A product with one coefficient changed, or with a summand more or less: two factors would multiply to it."""
    choose = random.Random(seed)
    product = algebra.expanded(drawn(choose, ATOMS[:3]), drawn(choose, ATOMS[3:6]))
    mono, c = choose.choice(product.items)
    terms = dict(product.items)
    terms[mono] = choose.choice((0, c + 1, 2 * c))
    other = algebra.build(terms)
    found = two_factors(other)
    assert found is None or algebra.expanded(*found) is other


def test_a_long_sum_is_not_looked_at() -> None:
    for most in (3, 4):
        session = Session(Limits(factored_terms=most))
        with session.on():
            a, b = (algebra.read(tensor("argument", name, "f32", ()), ()) for name in "ab")
            product = algebra.expanded(algebra.add(a, ONE), algebra.add(b, ONE))
            assert (two_factors(product) is None) == (most < 4)
        assert ("factored_terms" in session.spent().limits) == (most < 4)


# The step of Adam, as optax writes it, and as XLA's algebraic simplifier does: `m/p/q` is `m/(p*q)`.

Step = Callable[[Any, Any, Any], Any]
SHAPES = (jax.ShapeDtypeStruct((8,), jnp.float32), jax.ShapeDtypeStruct((8,), jnp.float32))
COUNT = jax.ShapeDtypeStruct((), jnp.int32)


def count(t: Any) -> Any:
    return jnp.where(t < 2147483647, t + 1, 2147483647)


def adam(m: Any, v: Any, t: Any) -> Any:
    return m / (1 - 0.9 ** count(t)) / (jnp.sqrt(v / (1 - 0.999 ** count(t))) + 1e-8)


def joined(m: Any, v: Any, t: Any) -> Any:
    return m / ((1 - 0.9 ** count(t)) * (jnp.sqrt(v / (1 - 0.999 ** count(t))) + 1e-8))


def one_sign(m: Any, v: Any, t: Any) -> Any:
    return m / ((1 + 0.9 ** count(t)) * (jnp.sqrt(v / (1 - 0.999 ** count(t))) + 1e-8))


def one_moment(m: Any, v: Any, t: Any) -> Any:
    return m / ((1 - 0.9 ** count(t)) * (jnp.sqrt(v / (1 - 0.9 ** count(t))) + 1e-8))


def one_turn(m: Any, v: Any, t: Any) -> Any:
    return m / ((1 - 0.9**t) * (jnp.sqrt(v / (1 - 0.999 ** count(t))) + 1e-8))


def one_root(m: Any, v: Any, t: Any) -> Any:
    return m / ((1 - 0.9 ** count(t)) * (v / (1 - 0.999 ** count(t)) + 1e-8))


def updated(step: Step) -> Step:
    """With moments that are heavy terms, which have names."""

    def whole(m: Any, v: Any, t: Any) -> Any:
        gradient = jnp.tanh(m) * jnp.exp(-v) + jnp.sin(m * v) / 3
        return step(0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2, t)

    return whole


def verdict(step: Step, around: Callable[[Step], Step] = lambda step: step) -> Verdict:
    mesh, split = AbstractMesh((4,), ("d",)), P("d")
    distributed = jax.shard_map(around(step), mesh=mesh, in_specs=(split, split, P()), out_specs=split)
    return check(around(adam), distributed, *SHAPES, COUNT).verdict


def test_two_divisions_are_one() -> None:
    assert verdict(joined) is Verdict.PROVED


def test_two_divisions_of_named_terms_are_one() -> None:
    assert verdict(joined, updated) is Verdict.PROVED


@pytest.mark.drawn(1)
@pytest.mark.parametrize("step", [one_sign, one_moment, one_turn, one_root])
def test_another_denominator_is_none(step: Step) -> None:
    assert verdict(step) is not Verdict.PROVED
    assert verdict(step, updated) is not Verdict.PROVED
