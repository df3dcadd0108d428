"""Clipping by a norm and scaling by the greatest size, in the spellings that people have for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import permutations

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed

Array = jax.Array
Clip = Callable[[Array, Array, Array], Array]

MESH = AbstractMesh((4,), ("x",))

CLIPS: dict[str, Clip] = {
    "least": lambda g, n, s: g * jnp.minimum(1.0, 2.0 / n),
    "divided by the greatest": lambda g, n, s: 2.0 * g / jnp.maximum(n, 2.0),
    "by the greatest of 1": lambda g, n, s: g / jnp.maximum(1.0, n / 2),
    "by where it is greater": lambda g, n, s: g * jnp.where(n > 2.0, 2.0 / n, 1.0),
    "as optax": lambda g, n, s: jnp.where(n < 2.0, g, (g / n) * 2.0),
    "by the square": lambda g, n, s: g * jnp.where(s > 4.0, 2.0 * lax.rsqrt(s), 1.0),
    "least of the square": lambda g, n, s: g * jnp.minimum(1.0, 2.0 * lax.rsqrt(s)),
    "root of the greatest": lambda g, n, s: 2 * g * lax.rsqrt(jnp.maximum(4.0, s)),
}
OTHER: dict[str, Clip] = {
    "another bound": lambda g, n, s: g * jnp.where(s > 2.0, 2.0 * lax.rsqrt(s), 1.0),
    "greatest": lambda g, n, s: g * jnp.maximum(1.0, 2.0 / n),
    "the other way round": lambda g, n, s: g * jnp.where(n < 2.0, 2.0 / n, 1.0),
    "not by the root": lambda g, n, s: g * jnp.minimum(1.0, 2.0 / s),
    "less than the square": lambda g, n, s: g * jnp.where(s - 1 > 4.0, 2.0 * lax.rsqrt(s), 1.0),
}
SIZES: dict[str, Callable[[Array], Array]] = {
    "of absolute values": lambda x: jnp.max(jnp.abs(x), 1),
    "of both ends": lambda x: jnp.maximum(x.max(1), -x.min(1)),
    "of opposites": lambda x: jnp.maximum((-x).max(1), x.max(1)),
    "less the least": lambda x: -jnp.minimum(-x.max(1), x.min(1)),
}
OTHER_SIZES: dict[str, Callable[[Array], Array]] = {
    "of one end": lambda x: jnp.maximum(x.max(1), x.min(1)),
    "least": lambda x: jnp.minimum(x.max(1), -x.min(1)),
    "of other elements": lambda x: jnp.maximum(x.max(1), -x[:, 1:].min(1)),
    "of the least size": lambda x: jnp.min(jnp.abs(x), 1),
}


def verdict(reference: Callable[[Array], Array], local: Callable[[Array], Array]) -> Verdict:
    placed = Placed(MESH, (P("x"),), P("x"), [jax.ShapeDtypeStruct((8, 3), "float32")])
    return hlo_verify.verify(*placed.pair(reference, local), refute=False).verdict


def clipped(clip: Clip, g: Array, among_devices: bool = False) -> Array:
    s = jnp.sum(g * g)
    s = lax.psum(s, "x") if among_devices else s
    return clip(g, jnp.sqrt(s), s)


@pytest.mark.parametrize("name", CLIPS)
def test_clips_are_one(name: str) -> None:
    for usual in ("least", "by the greatest of 1", "as optax"):
        for one, other in ((name, usual), (usual, name)):
            local = partial(clipped, CLIPS[other], among_devices=True)
            assert verdict(partial(clipped, CLIPS[one]), local) is Verdict.PROVED, (one, other)


def adam(scale: Clip, g: Array, among_devices: bool = False) -> Array:
    """What is clipped is under a root, where no cases are told apart."""
    s = jnp.sum(g * g)
    n = jnp.sqrt(lax.psum(s, "x") if among_devices else s)
    clipped = g * scale(g, n, s)
    return clipped / (jnp.sqrt(0.1 * clipped * clipped + 0.5) + 1e-3)


def test_what_is_clipped_is_made_more_of() -> None:
    least: Clip = lambda g, n, s: jnp.minimum(1.0, 1.0 / (n + 1e-6))  # noqa: E731
    where: Clip = lambda g, n, s: jnp.where(n + 1e-6 > 1.0, 1.0 / (n + 1e-6), 1.0)  # noqa: E731
    other: Clip = lambda g, n, s: jnp.where(n > 1.0, 1.0 / (n + 1e-6), 1.0)  # noqa: E731
    for one, two in ((least, where), (where, least)):
        assert verdict(partial(adam, one), partial(adam, two, among_devices=True)) is Verdict.PROVED
    assert verdict(partial(adam, least), partial(adam, other, among_devices=True)) is not Verdict.PROVED


@pytest.mark.parametrize("name", OTHER)
def test_other_clips_are_not(name: str) -> None:
    one = CLIPS["as optax"]
    for a, b in ((one, OTHER[name]), (OTHER[name], one)):
        assert verdict(partial(clipped, a), partial(clipped, b, among_devices=True)) is not Verdict.PROVED


def test_what_may_be_negative_is_divided_by_otherwise() -> None:
    """`minimum(1, 2/x)` is -2 at -1, where `2/maximum(x, 2)` is 1; and a root of a square is its size."""
    for one, other in (
        (lambda x: jnp.minimum(1.0, 2.0 / x), lambda x: 2.0 / jnp.maximum(x, 2.0)),
        (lambda x: jnp.where(x > 2.0, 1.0, 0.0), lambda x: jnp.where(x * x > 4.0, 1.0, 0.0)),
        (lambda x: jnp.where(jnp.sqrt(x * x) > -2.0, 1.0, 0.0), lambda x: jnp.where(x * x > 4.0, 1.0, 0.0)),
    ):
        assert verdict(one, other) is not Verdict.PROVED
        assert verdict(other, one) is not Verdict.PROVED


@pytest.mark.parametrize("one, other", list(permutations(SIZES, 2)))
def test_sizes_are_one(one: str, other: str) -> None:
    assert verdict(SIZES[one], SIZES[other]) is Verdict.PROVED


@pytest.mark.parametrize("name", OTHER_SIZES)
def test_other_sizes_are_not(name: str) -> None:
    for size in SIZES.values():
        assert verdict(size, OTHER_SIZES[name]) is not Verdict.PROVED


def test_sizes_in_bytes_wrap() -> None:
    """-128 has no opposite among bytes: the greatest of it and of its opposite is -128, and its size 128."""
    placed = Placed(MESH, (P("x"),), P("x"), [jax.ShapeDtypeStruct((8, 3), "int8")])
    wide = lambda x: SIZES["of absolute values"](x.astype("int32"))  # noqa: E731
    bytewise = lambda x: SIZES["of opposites"](x).astype("int32")  # noqa: E731
    assert hlo_verify.verify(*placed.pair(wide, bytewise)).verdict is Verdict.REFUTED
