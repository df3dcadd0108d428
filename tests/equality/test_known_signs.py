"""What is known of terms in a case: what follows from the signs of two of them and that none is lost."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.equality.effort import Effort
from hlo_verify.equality.known_signs import Region
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import ABS, EXPONENTIAL
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Atom, Poly, number, tensor
from tests.support.lowering import Placed


def argument(name: str, dtype: str = "f32") -> Poly:
    return algebra.read(tensor("argument", name, dtype, ()), ())


def times(*factors: Poly | int | Fraction) -> Poly:
    total = number(1)
    for factor in factors:
        total = algebra.expanded(total, factor if isinstance(factor, Poly) else number(factor))
    return total


def test_what_follows_from_the_signs_of_two_terms() -> None:
    with Session().on() as session:
        a, r, c, k = (argument(name) for name in "arck")
        up, down = (apply(EXPONENTIAL, (argument(name),)) for name in "uv")
        less = algebra.subtract
        region = Region(Effort(100, session=session), [(a, True), (less(r, number(2)), True)])
        assert not region.exists((times(a, less(number(2), r)), True))
        assert region.exists((times(a, less(r, number(3))), True))
        assert region.exists((times(a, less(number(3), r)), True))
        region.known = [(a, False), (less(r, number(2)), True)]  # a may be 0: then the product is, too
        assert not region.exists((times(a, less(r, number(2))), True))
        assert region.exists((times(a, less(number(2), r)), False))
        region.known = [(less(c, r), True), (less(k, r), True), (less(c, k), True)]
        assert not region.exists((less(times(less(c, r), less(c, r)), times(less(k, r), less(k, r))), False))
        assert region.exists((less(times(c, c), times(k, k)), False))  # r may be far below 0, and c between k and -k
        ratio = times(up, algebra.power_of(down, -1))
        region.known = [(less(ratio, number(Fraction(6, 5))), True), (a, True)]
        assert not region.exists((less(times(down, Fraction(4, 5)), up), True))
        assert not region.exists((times(a, less(ratio, number(1))), False))
        assert region.exists((times(a, less(ratio, number(2))), False))


def value(p: Poly, at: dict[Atom, Fraction]) -> Fraction:
    total = Fraction(0)
    for mono, c in p.items:
        product = Fraction(c)
        for atom, n in mono:
            product *= at[atom] ** int(n)
        total += product
    return total


def drawn(way: random.Random, atoms: list[Poly]) -> Poly:
    """A sum of few products."""
    parts = (times(way.randrange(-2, 3), *way.choices(atoms, k=way.randrange(3))) for _ in range(way.randrange(1, 4)))
    return algebra.add(*parts)


@pytest.mark.parametrize("seed", range(12))
def test_a_case_that_a_point_lies_in_exists(seed: int) -> None:
    """Random polynomials, small enough for signs to be close, of which the signs at a random point are known."""
    way = random.Random(seed)
    with Session().on() as session:
        free = [argument(name) for name in "xy"] + [argument("n", "i32")]
        w = argument("w")
        signed = [apply(EXPONENTIAL, (argument("z"),)), apply(ABS, (w,))]
        for _ in range(12):
            at: dict[Atom, Fraction] = {}
            for p in (*free, *signed):
                assert p.atom is not None
                k = way.randrange(1, 4) if p is signed[0] else way.randrange(0, 4) if p is signed[1] else None
                k = way.randrange(-3, 4) if k is None else k
                at[p.atom] = Fraction(k) if p is free[2] else Fraction(k, way.randrange(1, 3))
            at[w.atom] = at[signed[1].atom]  # the square of a size is that of the number
            atoms = [*free, *signed, algebra.power_of(signed[0], -1)]

            terms = [drawn(way, atoms) for _ in range(way.randrange(2, 6))]
            facts = [(p, value(p, at) > 0) for p in terms]
            assert Region(Effort(100, session=session), facts[:-1]).exists(facts[-1])


MESH = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))
Function = Callable[[jax.Array, jax.Array], jax.Array]


def clipped(x: jax.Array, y: jax.Array) -> jax.Array:
    """What PPO maximises: y is an advantage, and x the logarithm of a ratio."""
    r = jnp.exp(x)
    return jnp.minimum(r * y, jnp.clip(r, 0.8, 1.2) * y)


def by_sign(bound: float) -> Function:
    def chosen(x: jax.Array, y: jax.Array) -> jax.Array:
        r = jnp.exp(x)
        return jnp.where(y > bound, jnp.minimum(r, 1.2), jnp.maximum(r, 0.8)) * y

    return chosen


def greater(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.maximum((x - 1) ** 2, (y - 1) ** 2)


PAIRS: dict[str, tuple[Function, Function]] = {
    "weight's sign": (clipped, by_sign(0)),
    "bound by the weight's sign": (
        clipped,
        lambda x, y: jnp.minimum(jnp.exp(x) * y, jnp.where(y >= 0, 1.2 * y, 0.8 * y)),
    ),
    "weight's sign, of a quotient": (lambda x, y: clipped(x - y, y), lambda x, y: by_sign(0)(x - y, y)),
    "square of the greater size": (greater, lambda x, y: jnp.maximum(jnp.abs(1 - x), jnp.abs(y - 1)) ** 2),
    "square of the size that is chosen": (
        greater,
        lambda x, y: jnp.where(jnp.abs(x - 1) >= jnp.abs(y - 1), (x - 1) ** 2, (y - 1) ** 2),
    ),
    "quotient out of bounds": (
        lambda x, y: jnp.where(jnp.abs(jnp.exp(x - y) - 1) > 0.2, x, y),
        lambda x, y: jnp.where(jnp.clip(jnp.exp(x - y), 0.8, 1.2) == jnp.exp(x - y), y, x),
    ),
    "other: great weights alone": (clipped, by_sign(0.5)),
    "other: bound by no sign": (clipped, lambda x, y: jnp.minimum(jnp.exp(x) * y, 1.2 * y)),
    "other: opposite sign": (clipped, lambda x, y: -by_sign(0)(x, -y)),
    "other: square of the greater": (greater, lambda x, y: jnp.maximum(jnp.abs(1 - x), y - 1) ** 2),
    "other: square of the lesser": (greater, lambda x, y: jnp.minimum(jnp.abs(1 - x), jnp.abs(y - 1)) ** 2),
}


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", PAIRS)
def test_choices_by_a_sign_are_of_the_product(name: str) -> None:
    numbers = np.random.default_rng(0).standard_normal((2, 8, 8)).astype(np.float32)
    reference, local = PAIRS[name]
    same = np.allclose(*(np.asarray(f(*map(jnp.asarray, numbers))) for f in PAIRS[name]), atol=1e-5)
    assert same is not name.startswith("other")
    placed = Placed(MESH, (P("x"), P("x")), P("x"), [jax.ShapeDtypeStruct((8, 3), "float32")] * 2)
    found = hlo_verify.verify(*placed.pair(reference, local), refute=False).verdict
    assert found is (Verdict.PROVED if same else Verdict.UNKNOWN)
