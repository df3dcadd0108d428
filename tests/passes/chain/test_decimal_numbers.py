"""Decimals and small fractions that people wrote, which sums and products of others have to agree with."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.passes.chain.decimal_numbers import decimal_number, decimals
from tests.passes.chain.test_masking_numbers import MESH, P

MEANT = {
    0.1: "1/10",
    -0.65: "-13/20",
    1e-8: "1/100000000",
    1 / 3: "1/3",
    -4 / 3: "-4/3",
    17 / 35: "17/35",
    123.456: "15432/125",
}


def key(value: float, dtype: type[np.floating] = np.float32) -> tuple[str, bytes]:
    return {np.float64: "f64", np.float32: "f32"}[dtype], dtype(value).tobytes()


@pytest.mark.parametrize("value", MEANT)
def test_what_a_number_is_read_as(value: float) -> None:
    for dtype in (np.float32, np.float64):
        found = decimal_number(key(value, dtype))
        assert found is not None and found.is_as_computed
        assert found.exact == Fraction(MEANT[value])


@pytest.mark.parametrize("value", MEANT)
def test_a_number_beside_it_is_another(value: float) -> None:
    for up in (-np.inf, np.inf):
        assert decimal_number(key(np.nextafter(np.float32(value), np.float32(up)))) is None


@pytest.mark.parametrize(
    "value", [0.0, -0.0, 0.5, 3.0, 2.0**-30, 0.1234567, 1e-12, 1e30, np.pi, np.inf, -np.inf, np.nan, 1e-42]
)
def test_other_numbers(value: float) -> None:
    """Those that are exact, have many digits, or are made of numbers that their type does not hold."""
    assert decimal_number(key(value)) is None


def test_numbers_in_few_bits_are_no_decimals() -> None:
    assert decimal_number(("bf16", ml_dtypes.bfloat16(0.1).tobytes())) is None
    assert decimal_number(("f16", np.float16(0.1).tobytes())) is None


def test_two_numbers_are_never_read_as_one() -> None:
    rng = np.random.default_rng(0)
    near = [np.float32(round(x, d)) for x in rng.normal(size=100) for d in range(1, 7)]
    several = {key(n) for x in near for n in (x, np.nextafter(x, np.float32(9)), np.nextafter(x, np.float32(-9)))}
    read = decimals(several)
    assert len({x.exact for x in read.values()}) == len(read)


Step = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]
"""One step in time, of an element and those before and behind it."""


def _in_turns(steps: tuple[float, ...]) -> Callable[[jax.Array], jax.Array]:
    """A mean over the devices that is updated with one after another, by such parts."""

    def run(x: jax.Array) -> jax.Array:
        every = lax.all_gather(x, "d")
        mean = every[0]
        for k, step in enumerate(steps):
            mean = mean + (every[k + 1] - mean) * step
        return mean

    return run


def advected(u: jax.Array) -> jax.Array:
    return u - 0.1 * u - 0.2 * u - 0.05 * u + 0.3 * jnp.roll(u, 1) + 0.05 * jnp.roll(u, -1)


def with_halo(own: float, before: float = 0.3, behind: float = 0.05) -> Callable[[jax.Array], jax.Array]:
    def run(u: jax.Array) -> jax.Array:
        left = lax.ppermute(u[-1:], "d", [(d, (d + 1) % 4) for d in range(4)])
        right = lax.ppermute(u[:1], "d", [((d + 1) % 4, d) for d in range(4)])
        padded = jnp.concatenate([left, u, right])
        return own * u + before * padded[:-2] + behind * padded[2:]

    return run


PAIRS: dict[str, tuple[Callable[..., jax.Array], Callable[..., jax.Array]]] = {
    "a stencil": (advected, with_halo(0.65)),
    "several steps of a sum": (lambda u: u - 0.1 * u - 0.2 * u, lambda u: 0.7 * u),
    "thirds": (
        lambda u: (4 * u - jnp.sin(u) + 0.2 * jnp.cos(u)) / 3,
        lambda u: u + (u - jnp.sin(u)) / 3 + jnp.cos(u) * (0.2 / 3),
    ),
    "a sum in a function": (lambda u: jnp.tanh(u - 0.1 * u - 0.2 * u), lambda u: jnp.tanh(0.7 * u)),
    "other: another coefficient": (advected, with_halo(0.66)),
    "other: the neighbours exchanged": (advected, with_halo(0.65, 0.05, 0.3)),
    "other: the next decimal": (advected, with_halo(0.650001)),
    "other: a few units beside": (advected, with_halo(float(np.float32(0.65)) * (1 + 2.0**-21))),
    "other: nothing is left": (lambda u: 1e9 * (u - 0.1 * u - 0.9 * u), lambda u: 0 * u),
    "other: what little is left": (lambda u: 1.00001 * u - u, lambda u: 1e-5 * u),
    "other: it is beside something": (lambda u: 1e9 * (0.3 * u - 0.1 * u - 0.2 * u) + u, lambda u: u),
    "other: in a function": (lambda u: jnp.exp(1e9 * (0.3 * u - 0.1 * u - 0.2 * u)), lambda u: jnp.exp(0 * u)),
    "other: a divisor": (lambda u: u / (0.3 - 0.1 * jnp.exp(0 * u) - 0.2), lambda u: u / (0 * u)),
    "other: a step": (lambda u: jnp.floor(10 * (u - 0.1 * u - 0.2 * u)), lambda u: jnp.floor(7 * u)),
    "other: a threshold": (
        lambda u: jnp.where(u - 0.1 * u - 0.2 * u > 0.7 * jnp.sin(u), 1.0, 0.0),
        lambda u: jnp.where(0.7 * u > 0.7 * jnp.sin(u), 1.0, 0.0),
    ),
}


@pytest.mark.usefixtures("prover_alone")
@pytest.mark.parametrize("name", PAIRS)
def test_what_is_computed_of_decimals(name: str) -> None:
    """Of those that are other ones, no witness is looked for."""
    whole, part = PAIRS[name]
    local = jax.shard_map(part, mesh=MESH, in_specs=P("d"), out_specs=P("d"), check_vma=False)
    found = hlo_verify.check(whole, local, jax.ShapeDtypeStruct((8,), jnp.float32), refute=False)
    assert (found.verdict is Verdict.PROVED) is not name.startswith("other"), found


@pytest.mark.parametrize(
    ("steps", "is_one"),
    [((1 / 2, 1 / 3, 1 / 4), True), ((1 / 2, 1 / 4, 1 / 3), False), ((1 / 2, 0.3333, 1 / 4), False)],
)
def test_a_mean_that_is_updated(steps: tuple[float, ...], is_one: bool) -> None:
    local = jax.shard_map(_in_turns(steps), mesh=MESH, in_specs=P("d"), out_specs=P(), check_vma=False)
    found = hlo_verify.check(
        lambda x: x.reshape(4, 2).mean(0), local, jax.ShapeDtypeStruct((8,), jnp.float32), refute=False
    )
    assert (found.verdict is Verdict.PROVED) is is_one, found
