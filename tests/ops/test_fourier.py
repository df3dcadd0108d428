"""Fourier transforms along several dimensions are those along one after another, in any order, and no others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed

Function = Callable[[jax.Array], jax.Array]

MESH = AbstractMesh((4,), ("x",))
fft, ifft = jnp.fft.fft, jnp.fft.ifft


def handed(x: jax.Array, split: int, joined: int) -> jax.Array:
    return lax.all_to_all(x, "x", split, joined, tiled=True)


def in_turn(first: Function, second: Function) -> Function:
    """One transform of the device's rows, and one of its columns."""
    return lambda x: handed(second(handed(first(x), 1, 0)), 0, 1)


def verdict(reference: Function, local: Function, shape: Sequence[int]) -> Verdict:
    placed = Placed(MESH, (P("x"),), P("x"), [jax.ShapeDtypeStruct(shape, "complex64")])
    return hlo_verify.verify(*placed.pair(reference, local), refute=False).verdict


def rows(x: jax.Array) -> jax.Array:
    return fft(x, axis=1)


def columns(x: jax.Array) -> jax.Array:
    return fft(x, axis=0)


def outer(x: jax.Array) -> jax.Array:
    return x[:, :, None] * x[:, None]


SAME: dict[str, tuple[Function, Function, Sequence[int]]] = {
    "rows and columns": (jnp.fft.fft2, in_turn(rows, columns), (8, 8)),
    "inverse": (
        jnp.fft.ifft2,
        in_turn(lambda x: ifft(x, axis=1), lambda x: ifft(x, axis=0)),
        (8, 4),
    ),
    "transposed": (lambda x: jnp.fft.fft2(x).T, lambda x: fft(handed(rows(x), 1, 0).T, axis=1), (8, 8)),
    "planes and lines": (jnp.fft.fftn, in_turn(lambda x: jnp.fft.fft2(x, axes=(1, 2)), columns), (8, 4, 6)),
    "batched": (jnp.fft.fft2, lambda x: fft(fft(x, axis=1), axis=2), (4, 6, 5)),
    "batched the other way": (jnp.fft.fft2, lambda x: fft(fft(x, axis=2), axis=1), (4, 6, 6)),
    "symmetric": (lambda x: jnp.fft.fft2(outer(x)), lambda x: fft(fft(outer(x), axis=2), axis=1), (4, 6)),
}
OTHER: dict[str, tuple[Function, Function, Sequence[int]]] = {
    "rows twice": (jnp.fft.fft2, in_turn(rows, rows), (8, 8)),
    "one of them inverse": (jnp.fft.fft2, in_turn(rows, lambda x: ifft(x, axis=0)), (8, 8)),
    "not transposed back": (jnp.fft.fft2, lambda x: fft(handed(rows(x), 1, 0).T, axis=1), (8, 8)),
    "one dimension twice": (jnp.fft.fft2, lambda x: fft(fft(x, axis=2), axis=2), (4, 6, 6)),
    "another place": (lambda x: jnp.fft.fft2(outer(x)), lambda x: jnp.fft.fft2(outer(x))[:, :, ::-1], (4, 6)),
    "no transform of the rest": (jnp.fft.fftn, in_turn(lambda x: fft(x, axis=1), columns), (8, 4, 6)),
}


@pytest.mark.parametrize("name", SAME)
def test_transforms_in_turn(name: str) -> None:
    assert verdict(*SAME[name]) is Verdict.PROVED


@pytest.mark.parametrize("name", OTHER)
def test_other_transforms(name: str) -> None:
    assert verdict(*OTHER[name]) is not Verdict.PROVED


def test_what_is_transformed_in_turn_in_numbers() -> None:
    x = np.random.default_rng(0).standard_normal((4, 6, 5)) + 1j
    expected = np.fft.fftn(x, axes=(1, 2))
    for first, second in ((1, 2), (2, 1)):
        np.testing.assert_allclose(np.fft.fft(np.fft.fft(x, axis=first), axis=second), expected)


WAVES = np.fft.fftfreq(8, 1 / 8).astype(np.float32)


def derivative(x: jax.Array, waves: np.ndarray) -> jax.Array:
    """By wave numbers along the columns."""
    return ifft(1j * waves[:, None] * fft(x, axis=0), axis=0)


@pytest.mark.parametrize(("waves", "found"), [(WAVES, True), (np.abs(WAVES), False), (WAVES[::-1].copy(), False)])
def test_wave_numbers_along_another_dimension(waves: np.ndarray, found: bool) -> None:
    """The same numbers in a column and in a row."""

    def local(x: jax.Array) -> jax.Array:
        return handed(ifft(fft(handed(x, 1, 0).T) * (1j * waves)).T, 0, 1)

    assert (verdict(lambda x: derivative(x, WAVES), local, (8, 8)) is Verdict.PROVED) is found


Parts = tuple[Callable[..., jax.Array], Callable[..., jax.Array], Callable[..., jax.Array]]

LINEAR: dict[str, Parts] = {
    "sum": (lambda x, y: fft(x + y), lambda x, y: fft(y) + fft(x), lambda x, y: fft(y) - fft(x)),
    "multiple": (lambda x, y: ifft(3 * x - y), lambda x, y: 3 * ifft(x) - ifft(y), lambda x, y: ifft(x) - 3 * ifft(y)),
    "of each row": (
        lambda x, y: fft(x * y[:, :1]),
        lambda x, y: fft(x) * y[:, :1],
        lambda x, y: fft(x) * y[:, 1:2],
    ),
    "what goes along": (lambda x, y: fft(x * y), lambda x, y: fft(y * x), lambda x, y: fft(x) * fft(y)),
    "product": (lambda x, y: fft(x @ y.T), lambda x, y: x @ fft(y.T), lambda x, y: fft(x) @ y.T),
    "real": (
        lambda x, y: jnp.fft.rfft(x.real - 2 * y.imag),
        lambda x, y: jnp.fft.rfft(x.real) - 2 * jnp.fft.rfft(y.imag),
        lambda x, y: jnp.fft.rfft(x.real) - 2 * jnp.fft.rfft(y.real),
    ),
    "to real": (
        lambda x, y: jnp.fft.irfft(x + y / 2, 4),
        lambda x, y: jnp.fft.irfft(x, 4) + jnp.fft.irfft(y, 4) / 2,
        lambda x, y: jnp.fft.irfft(x, 4) * jnp.fft.irfft(y, 4) / 2,
    ),
    "real parts of products": (
        lambda x, y: jnp.fft.irfft(x * y[:, :1], 4),
        lambda x, y: jnp.fft.irfft(y[:, :1] * x, 4),
        lambda x, y: jnp.fft.irfft(x, 4) * y[:, :1].real,
    ),
}


@pytest.mark.parametrize("name", LINEAR)
def test_transforms_are_linear(name: str) -> None:
    """Of the sums and multiples of what is transformed, and not of products along it."""
    whole, right, wrong = LINEAR[name]
    shape = jax.ShapeDtypeStruct((4, 4) if name == "product" else (4, 3), "complex64")
    ins = (P("x"), P()) if name == "product" else (P("x"), P("x"))
    placed = Placed(MESH, ins, P("x"), [shape, shape])
    assert hlo_verify.verify(*placed.pair(whole, right), refute=False).verdict is Verdict.PROVED
    assert hlo_verify.verify(*placed.pair(whole, wrong), refute=False).verdict is not Verdict.PROVED


def test_transforms_of_sums_over_devices() -> None:
    shape = jax.ShapeDtypeStruct((8, 4), "complex64")
    placed = Placed(MESH, (P("x"),), P(), [shape])
    for local, expected in (
        (lambda x: lax.psum(fft(x).sum(0), "x"), True),
        (lambda x: fft(lax.psum(x.sum(0), "x")), True),
        (lambda x: lax.psum(fft(x.sum(0)), "x"), True),
        (lambda x: lax.psum(fft(x, axis=0).sum(0), "x"), False),
        (lambda x: lax.pmean(fft(x).sum(0), "x"), False),
    ):
        found = hlo_verify.verify(*placed.pair(lambda x: fft(x.sum(0)), local), refute=False).verdict
        assert (found is Verdict.PROVED) == expected


def flipped(x: jax.Array) -> jax.Array:
    return x[:, ::-1]


REAL: dict[str, tuple[Function, Function, Function]] = {
    "half of it": (jnp.fft.rfft, lambda x: fft(x)[:, :4], lambda x: fft(x)[:, 1:5]),
    "the first half": (jnp.fft.rfft, lambda x: fft(x)[:, :4], lambda x: fft(x)[:, 3:7]),
    "turned round": (lambda x: jnp.fft.rfft(flipped(x)), lambda x: fft(flipped(x))[:, :4], lambda x: fft(x)[:, :4]),
    "of two dimensions": (
        jnp.fft.rfft2,
        lambda x: handed(fft(handed(jnp.pad(jnp.fft.rfft(x), ((0, 0), (0, 4))), 1, 0), axis=0), 0, 1)[:, :4],
        lambda x: fft(jnp.fft.rfft(x), axis=1),
    ),
    "and back": (lambda x: x + 0j, lambda x: ifft(fft(x)), lambda x: fft(fft(x))),
    "the inverse first": (lambda x: x + 0j, lambda x: fft(ifft(x)), lambda x: 7 * fft(ifft(x))),
    "twice and back": (fft, lambda x: ifft(fft(fft(x))), lambda x: ifft(fft(fft(x)), axis=0)),
    "one of two": (
        lambda x: fft(x[:, :, None] * jnp.arange(7.0), axis=1),
        lambda x: ifft(jnp.fft.fft2(x[:, :, None] * jnp.arange(7.0)), axis=2),
        lambda x: ifft(jnp.fft.fft2(x[:, :, None] * jnp.arange(7.0)), axis=1),
    ),
    "filtered": (
        lambda x: 2 * x + 0j,
        lambda x: ifft(2 * fft(x)),
        lambda x: ifft(fft(x) * jnp.arange(7)),
    ),
    "back from the other end": (lambda x: x + 0j, lambda x: ifft(fft(x)), lambda x: ifft(flipped(fft(x)))),
    "a part of it": (lambda x: x[:, :4] + 0j, lambda x: ifft(fft(x))[:, :4], lambda x: ifft(fft(x)[:, :4])),
}


@pytest.mark.usefixtures("prover_alone")
@pytest.mark.parametrize("name", REAL)
def test_transforms_of_real_numbers_and_back(name: str) -> None:
    whole, right, wrong = REAL[name]
    placed = Placed(MESH, (P("x"),), P("x"), [jax.ShapeDtypeStruct((16, 7), "float32")])
    assert hlo_verify.verify(*placed.pair(whole, right), refute=False).verdict is Verdict.PROVED
    assert hlo_verify.verify(*placed.pair(whole, wrong), refute=False).verdict is not Verdict.PROVED


@pytest.mark.usefixtures("prover_alone")
def test_what_may_be_no_number_is_not_what_is_left() -> None:
    """One element that is none makes all of a row none."""
    placed = Placed(MESH, (P("x"),), P("x"), [jax.ShapeDtypeStruct((16, 7), "float32")])
    pair = placed.pair(lambda x: jnp.log(x) + 0j, lambda x: ifft(fft(jnp.log(x))))
    assert hlo_verify.verify(*pair, refute=False).verdict is not Verdict.PROVED
