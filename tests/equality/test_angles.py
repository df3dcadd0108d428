"""Sines and cosines of sums and multiples of angles, in other spellings and by numbers."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from math import cos, prod, sin

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.equality import angles
from hlo_verify.memory import Memory
from hlo_verify.terms import algebra
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Apply, Atom, Poly, Read, number, tensor
from tests.support.lowering import Placed, floats

MESH = AbstractMesh((4,), ("x",))
Function = Callable[[jax.Array, jax.Array], jax.Array]


def value(p: Poly, at: dict[Atom, float]) -> float:
    def of(atom: Atom) -> float:
        if isinstance(atom, Read):
            return at[atom]
        assert isinstance(atom, Apply)
        return (sin if atom.function == angles.SINE else cos)(value(atom.args[0], at))

    return sum(float(c) * prod(of(atom) ** float(n) for atom, n in mono) for mono, c in p.items)


@pytest.mark.parametrize("seed", range(30))
def test_parts_of_angles_by_numbers(seed: int) -> None:
    draw = random.Random(seed)
    with Memory().on():
        x, y = (algebra.read(tensor("argument", name, "f32", ()), ()) for name in "xy")
        products = [x, y, algebra.times(x, y), number(1)]
        made = []
        for _ in range(3):
            angle = algebra.add(
                *(algebra.scale(p, Fraction(draw.randint(-3, 3), draw.choice((1, 2, 3)))) for p in products)
            )
            atom = apply(draw.choice(angles.OF_ANGLES), (angle,)).items
            made += [a for mono, _ in atom for a, _ in mono if isinstance(a, Apply)]
        at: dict[Atom, float] = {p.atom: draw.uniform(-2, 2) for p in (x, y) if p.atom is not None}
        found = angles.images(made)
        for atom, image in found.items():
            assert value(image, at) == pytest.approx(value(algebra.add(_whole(atom)), at))
            assert angles.reduced(image) is image


def _whole(atom: Atom) -> Poly:
    assert isinstance(atom, Apply)
    return apply(atom.function, atom.args)


def test_many_turns_are_left_alone() -> None:
    with Memory().on():
        x = algebra.read(tensor("argument", "x", "f32", ()), ())
        made = [apply(angles.SINE, (algebra.scale(x, n),)).atom for n in (1, 100)]
        assert not angles.images([a for a in made if isinstance(a, Apply)])


def verdict(reference: Function, local: Function) -> Verdict:
    placed = Placed(MESH, (P("x"), P("x")), P("x"), floats((8, 3), (8, 3)))
    return hlo_verify.verify(*placed.pair(reference, local), refute=False).verdict


SAME: dict[str, tuple[Function, Function]] = {
    "on the circle": (lambda x, y: jnp.sin(x) ** 2 + jnp.cos(x) ** 2, lambda x, y: jnp.ones_like(x)),
    "fourth powers": (lambda x, y: jnp.sin(x) ** 4 - jnp.cos(x) ** 4, lambda x, y: 1 - 2 * jnp.cos(x) ** 2),
    "twice": (lambda x, y: jnp.sin(2 * x), lambda x, y: 2 * jnp.sin(x) * jnp.cos(x)),
    "thrice": (lambda x, y: jnp.cos(3 * x), lambda x, y: 4 * jnp.cos(x) ** 3 - 3 * jnp.cos(x)),
    "half": (lambda x, y: 2 * jnp.sin(x / 2) ** 2, lambda x, y: 1 - jnp.cos(x)),
    "difference": (
        lambda x, y: jnp.cos(x - y),
        lambda x, y: jnp.cos(x) * jnp.cos(y) + jnp.sin(x) * jnp.sin(y),
    ),
    "sum to product": (
        lambda x, y: jnp.sin(x + y) + jnp.sin(x - y),
        lambda x, y: 2 * jnp.sin(x) * jnp.cos(y),
    ),
    "as a divisor": (lambda x, y: y / (1 + jnp.sin(x) ** 2), lambda x, y: y / (2 - jnp.cos(x) ** 2)),
    "with a maximum": (
        lambda x, y: jnp.maximum(x, y) * (jnp.sin(x) ** 2 + jnp.cos(x) ** 2),
        lambda x, y: jnp.where(x > y, x, y),
    ),
}
OTHER: dict[str, tuple[Function, Function]] = {
    "on another circle": (lambda x, y: jnp.sin(x) ** 2 + jnp.cos(y) ** 2, lambda x, y: jnp.ones_like(x)),
    "a hyperbola": (lambda x, y: jnp.cos(x) ** 2 - jnp.sin(x) ** 2, lambda x, y: jnp.ones_like(x)),
    "once": (lambda x, y: jnp.sin(2 * x), lambda x, y: 2 * jnp.sin(x) * jnp.cos(y)),
    "sum": (
        lambda x, y: jnp.cos(x + y),
        lambda x, y: jnp.cos(x) * jnp.cos(y) + jnp.sin(x) * jnp.sin(y),
    ),
    "of the opposite": (
        lambda x, y: jnp.sin(x - y),
        lambda x, y: jnp.cos(x) * jnp.sin(y) - jnp.sin(x) * jnp.cos(y),
    ),
    "no root of the square": (lambda x, y: jnp.sqrt(1 - jnp.cos(x) ** 2), lambda x, y: jnp.sin(x)),
    "of no number": (
        lambda x, y: jnp.sin(jnp.log(x)) ** 2 + jnp.cos(jnp.log(x)) ** 2,
        lambda x, y: jnp.ones_like(x),
    ),
    "of an infinity": (
        lambda x, y: jnp.sin(jnp.where(x > 0, jnp.inf, x)) ** 2 + jnp.cos(jnp.where(x > 0, jnp.inf, x)) ** 2,
        lambda x, y: jnp.ones_like(x),
    ),
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.usefixtures("prover_alone")
def test_spellings_are_the_same(name: str) -> None:
    assert verdict(*SAME[name]) is Verdict.PROVED


@pytest.mark.parametrize("name", OTHER)
@pytest.mark.usefixtures("prover_alone")
def test_other_functions_are_not(name: str) -> None:
    assert verdict(*OTHER[name]) is not Verdict.PROVED


FREQUENCIES = np.asarray([1.0, 0.25, 0.0625], np.float32)


def turned(x: jax.Array, angle: jax.Array) -> jax.Array:
    """Pairs of elements, turned as rotary embeddings do."""
    a, b = x[..., :3], x[..., 3:]
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.concatenate([a * c - b * s, a * s + b * c], -1)


@pytest.mark.parametrize(("sign", "expected"), [(1, True), (-1, False)])
@pytest.mark.usefixtures("prover_alone")
def test_scores_by_relative_places(sign: int, expected: bool) -> None:
    """What queries and keys are turned by only counts by how far they are apart."""

    def reference(q: jax.Array, k: jax.Array) -> jax.Array:
        places = jnp.arange(8.0)[:, None] * FREQUENCIES
        return turned(q, places) @ turned(k, places).T

    def local(q: jax.Array, k: jax.Array) -> jax.Array:
        k = lax.all_gather(k, "x", tiled=True)
        mine = 2 * lax.axis_index("x") + jnp.arange(2)
        apart = (mine[:, None] - jnp.arange(8)).astype(jnp.float32)[..., None] * FREQUENCIES * sign
        return (turned(jnp.broadcast_to(q[:, None], (2, 8, 6)), apart) * k).sum(-1)

    placed = Placed(MESH, (P("x"), P("x")), P("x"), floats((8, 6), (8, 6)))
    found = hlo_verify.verify(*placed.pair(reference, local), refute=False)
    assert (found.verdict is Verdict.PROVED) is expected
