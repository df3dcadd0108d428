"""Positions times numbers that floats round, compared and cut: nothing is said that floats may not say."""

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

SIZE, DEVICES = 16, 2
MESH = AbstractMesh((DEVICES,), ("x",), axis_types=(AxisType.Auto,))
X = jax.ShapeDtypeStruct((SIZE,), jnp.float32)

Places = Callable[[jax.Array], jax.Array]


def verdict(whole: Places, local: Places) -> Verdict:
    """Of elements that are kept where something is said of their place, all at once and those of each device."""

    def kept(x: jax.Array) -> jax.Array:
        return jnp.where(whole(jnp.arange(SIZE)), x, 0)

    def shard(x: jax.Array) -> jax.Array:
        return jnp.where(local(lax.axis_index("x") * (SIZE // DEVICES) + jnp.arange(SIZE // DEVICES)), x, 0)

    mapped = jax.shard_map(shard, mesh=MESH, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    return hlo_verify.check(kept, mapped, X, refute=False).verdict


NEAR: dict[str, tuple[Places, int]] = {
    "a multiple": (lambda i: 0.1 * i >= 0.3, 3),
    "its opposite": (lambda i: 0.1 * i < 0.3, 3),
    "more than it comes to": (lambda i: 0.7 * i > 8.4, 12),
    "beside a number": (lambda i: 0.1 * i + 0.2 >= 0.3, 1),
    "equal": (lambda i: 0.7 * i == 4.9, 7),
    "beside what takes it up": (lambda i: i + 1e8 > 1e8, 1),
    "the last of a line": (lambda i: jnp.linspace(0, 1, SIZE)[i] >= 0.4, 6),
    "cut": (lambda i: (0.7 * i).astype(jnp.int32) >= 7, 10),
    "rounded down": (lambda i: jnp.floor(0.7 * i) >= 7, 10),
    "no less than a number": (lambda i: jnp.maximum(0.1 * i, 0.7) > 0.7, 7),
    "a square": (lambda i: (0.1 * i) ** 2 > 0.49, 7),
    "through a function": (lambda i: jnp.exp(0.1 * i) > jnp.exp(0.7), 7),
    "by a number and back": (lambda i: jnp.floor(i / 7 * 7) >= 7, 7),
    "as an integer": (lambda i: (i / 7 * 14).astype(jnp.int32) == 2 * i, 7),
    "by its sign": (lambda i: jnp.sign(0.1 * i - 0.7) > 0, 7),
    "by what is left": (lambda i: (0.1 * i) % 0.7 < 0.1, 7),
    "a root": (lambda i: jnp.floor(jnp.sqrt(i.astype(jnp.float32)) ** 2) >= 7, 7),
    "of few digits": (lambda i: i.astype(jnp.bfloat16) * jnp.bfloat16(0.1) >= jnp.bfloat16(0.3), 3),
    "of more digits than there are": (lambda i: 5000001.0 * i + 1 > 5000001.0 * i, 15),
    "by a sum": (lambda i: 0.35 * i < jnp.mean(jnp.arange(8) * 0.1), 1),
}
"""With the place where it hangs on roundings."""


@pytest.mark.parametrize("name", NEAR)
def test_what_floats_may_say_otherwise(name: str) -> None:
    """It is the same where it is said in the same way, and there neither so nor otherwise."""
    asked, place = NEAR[name]
    assert verdict(asked, asked) is Verdict.PROVED
    said = np.asarray(asked(jnp.arange(SIZE)))
    for table in (said, said ^ (np.arange(SIZE) == place)):
        assert verdict(asked, lambda i, table=table: jnp.asarray(table)[i]) is not Verdict.PROVED


def test_numbers_that_were_computed_otherwise() -> None:
    """The same real numbers, by the same operations in another order, or on other constants."""
    ways: list[Places] = [lambda i: i / 7 * 7, lambda i: i * 7 / 7, lambda i: i / 11 * 11]
    for whole in ways:
        for local in ways:
            equal = verdict(lambda i, f=whole: jnp.floor(f(i)) >= i, lambda i, f=local: jnp.floor(f(i)) >= i)
            assert (equal is Verdict.PROVED) == (whole is local)
    assert verdict(lambda i: i / 7 * 7 > i, lambda i: i < i / 7 * 7) is Verdict.PROVED


@pytest.mark.parametrize(
    ("asked", "place"),
    [
        (lambda i: 0.1 * i >= 0.35, 4),
        (lambda i: 0.7 * i > 8.3, 12),
        (lambda i: i / 3 >= 2, 6),
        (lambda i: i * 0.25 > 1.5, 7),
        (lambda i: jnp.linspace(0, 1, SIZE)[i] > 0.5, 8),
        (lambda i: (0.3 * i + 0.05).astype(jnp.int32) >= 2, 7),
        (lambda i: i.astype(jnp.float32) > 2.0**24, SIZE),
    ],
)
def test_what_no_rounding_decides(asked: Places, place: int) -> None:
    assert verdict(asked, lambda i: i >= place) is Verdict.PROVED
    assert verdict(asked, lambda i: i >= place - 1) is not Verdict.PROVED


def of_all(whole: Callable[[jax.Array], jax.Array], local: Callable[[jax.Array], jax.Array], size: int) -> Verdict:
    """Of what is asked of all elements, and of devices' own."""
    x = jax.ShapeDtypeStruct((size,), jnp.bool_)
    mapped = jax.shard_map(local, mesh=MESH, in_specs=P("x"), out_specs=P(), check_vma=False)
    return hlo_verify.check(whole, mapped, x, refute=False).verdict


def mean(holds: jax.Array) -> jax.Array:
    return lax.pmean(jnp.mean(holds.astype(jnp.float32)), "x")


@pytest.mark.parametrize(("size", "is_binary"), [(32, True), (82, False), (96, False)])
def test_a_mean_of_all_may_be_less_than_one(size: int, is_binary: bool) -> None:
    """XLA multiplies by 1/n, and 41 of these are less than 1; fractions of flags may add up to less, too."""
    expected = Verdict.PROVED if is_binary else Verdict.UNKNOWN
    assert of_all(jnp.all, lambda m: mean(m) == 1, size) is expected
    assert of_all(jnp.all, lambda m: lax.psum(jnp.sum(m / size), "x") >= 1, size) is expected
    assert of_all(lambda m: jnp.mean(m.astype(jnp.float32)) == 1, lambda m: mean(m) == 1, size) is Verdict.PROVED
    assert of_all(jnp.any, lambda m: mean(m) > 0, size) is Verdict.PROVED
    assert of_all(jnp.all, lambda m: mean(m) > 1 - 0.5 / size, size) is Verdict.PROVED
