"""Multiples of roots of 2 and of pi, as an exact GELU and a normal distribution have them, in whatever spelling."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.passes.chain.constant_values import Key
from hlo_verify.passes.chain.irrational_numbers import irrational
from tests.passes.chain.test_masking_numbers import MESH, P

ROOTS = {
    "sqrt(1/2)": math.sqrt(0.5),
    "-2/sqrt(pi)": -2 / math.sqrt(math.pi),
    "sqrt(2 pi)": math.sqrt(2 * math.pi),
    "sqrt(2/pi)": math.sqrt(2 / math.pi),
    "1/sqrt(8 pi)": 1 / math.sqrt(8 * math.pi),
    "log(2)": math.log(2),
    "-1/4*log(10)": -math.log(10) / 4,
    "1/2*log(2 pi)": math.log(2 * math.pi) / 2,
    "3*log(2 pi)": math.log(2 * math.pi) * 3,
    "-784/2*log(2 pi)": -math.log(2 * math.pi) * 392,
    "6*log(2)": math.log(2) * 6,
}


def key(value: float, dtype: type[np.floating] = np.float32) -> Key:
    return "f64" if dtype is np.float64 else "f32", dtype(value).tobytes()


@pytest.mark.parametrize("name", ROOTS)
def test_a_multiple_of_roots(name: str) -> None:
    for dtype in (np.float32, np.float64):
        found = irrational(key(ROOTS[name], dtype))
        assert found is not None and found.is_rounded
        assert math.isclose(float(found.exact), ROOTS[name], rel_tol=1e-6)
        for factor in (1 + 2.0**-18, 1 - 2.0**-18, 0.9901, 2.9003, 1 / 320):
            assert irrational(key(ROOTS[name] * factor, dtype)) is None
    assert irrational(key(ROOTS[name], np.float64)) != irrational(key(ROOTS[name]))


@pytest.mark.parametrize("value", [0.0, 0.5, 2.0, 0.7, 0.70711, 1.4142, 0.3989, math.inf, math.nan])
def test_other_numbers(value: float) -> None:
    assert irrational(key(value)) is None


Slope = Callable[[jax.Array], jax.Array]
ROOT, DENSITY = np.float32(math.sqrt(2)), np.float32(math.sqrt(2 * math.pi))


def gelu(x: jax.Array) -> jax.Array:
    return jax.vmap(jax.grad(lambda h: jax.nn.gelu(h, approximate=False)))(x)


def by_hand(root: float = ROOT, density: float = DENSITY, factor: float = -0.5) -> Slope:
    return lambda x: 0.5 * (1 + lax.erf(x / root)) + x * jnp.exp(factor * x * x) / density


def normal(x: jax.Array) -> jax.Array:
    return jnp.exp(-((x / ROOT) ** 2)) / DENSITY


def spelled_out(x: jax.Array) -> jax.Array:
    """The slope of an exact GELU as jax 0.10 takes it."""
    half = np.float32(math.sqrt(0.5))
    return 0.5 * lax.erfc(-x * half) + 0.5 * x * half * np.float32(2 / math.sqrt(math.pi)) * jnp.exp(-((x * half) ** 2))


BY_JAX = ("exact GELU", "exact GELU by a product", "half of the slope of an error function")
"""Of which newer versions of jax take the slopes by polynomials of the digits of x: these are other functions."""

SLOPES: dict[str, tuple[Slope, Slope]] = {
    "exact GELU spelled out": (spelled_out, by_hand()),
    "exact GELU": (gelu, by_hand()),
    "exact GELU by a product": (
        gelu,
        lambda x: 0.5 * (1 + lax.erf(x * 0.70710678)) + x * jnp.exp(-0.5 * x * x) * 0.39894228,
    ),
    "a normal distribution": (normal, lambda x: 0.39894228 * jnp.exp(-0.5 * x**2)),
    "half of the slope of an error function": (normal, lambda x: jax.vmap(jax.grad(lax.erf))(x / ROOT) / ROOT / 2),
    "other: another density": (gelu, by_hand(density=2.5066)),
    "other: another root": (gelu, by_hand(root=1.4142)),
    "other: another width": (gelu, by_hand(factor=-1.0)),
    "other: without a root": (normal, lambda x: 0.28209479 * jnp.exp(-0.5 * x**2)),
    "other: nothing else is left": (lambda x: (x * DENSITY * 0.39894228 - x) * 1e9, lambda x: 0 * x),
    "other: what a root leaves": (lambda x: (x * ROOT * 0.70710678 - x) * 1e9 + x, lambda x: x),
}


@pytest.mark.parametrize("name", SLOPES)
def test_spellings_with_roots(name: str) -> None:
    """Of those that are other ones, no witness is looked for."""
    if name in BY_JAX and jax.__version_info__ >= (0, 11):
        pytest.skip("jax takes slopes of error functions by polynomials")
    whole, part = SLOPES[name]
    local = jax.shard_map(part, mesh=MESH, in_specs=P("d"), out_specs=P("d"))
    found = hlo_verify.check(whole, local, jax.ShapeDtypeStruct((8,), jnp.float32), refute=False)
    assert (found.verdict is Verdict.PROVED) is not name.startswith("other"), found


@pytest.mark.parametrize("size", [2, 8, 32, 128])
@pytest.mark.parametrize(("units", "expected"), [(0, Verdict.PROVED), (5, Verdict.UNKNOWN), (12, Verdict.UNKNOWN)])
def test_a_root_is_off_by_few_units(size: int, units: int, expected: Verdict) -> None:
    """However many operations would round it so: `sqrt(2)` multiplied by itself seven times is off by 12."""
    root = (np.float32(size**0.5).view(np.int32) + np.int32(units)).view(np.float32)
    given = jax.ShapeDtypeStruct((8,), jnp.float32)
    mapped = jax.shard_map(lambda x: x * np.float32(size**-0.5), mesh=MESH, in_specs=P("d"), out_specs=P("d"))
    assert hlo_verify.check(lambda x: x / root, mapped, given, refute=False).verdict is expected


@pytest.mark.parametrize("units", [-3, -2, -1, 0, 1, 2, 3])
def test_logarithms_that_people_wrote_are_next_to_them(units: int) -> None:
    """Two numbers that both were read as one logarithm were PROVED equal, three units on either side of it."""
    number = np.float32(math.log(2))
    for _ in range(abs(units)):
        number = np.nextafter(number, np.float32(math.copysign(2, units)))
    assert (irrational(("f32", number.tobytes())) is not None) == (abs(units) <= 1)


@pytest.mark.parametrize("units", [1, 2])
def test_two_numbers_are_not_one_logarithm(units: int) -> None:
    """Where neither program takes it: each would be next to it, and their sum of roundings apart."""
    number, other = np.float32(math.log(2)), np.float32(math.log(2))
    for _ in range(units):
        other = np.nextafter(other, np.float32(1))
    programs = [lambda p, k=k: p * k for k in (number, other)]
    local = jax.shard_map(programs[1], mesh=MESH, in_specs=P("d"), out_specs=P("d"))
    assert hlo_verify.check(programs[0], local, jnp.zeros(8), refute=False).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("number", [np.finfo(np.float64).max, np.finfo(np.float64).smallest_subnormal])
def test_the_ends_of_a_type_are_no_logarithms(number: np.float64) -> None:
    assert irrational(("f64", number.tobytes())) is None


def test_logarithms_in_few_digits_are_any_number() -> None:
    assert irrational(("bf16", ml_dtypes.bfloat16(math.log(2)).tobytes())) is None


def shared(s: jax.Array, t: jax.Array) -> jax.Array:
    """A divergence of Jensen and Shannon, of rows that are distributions."""
    p, q = jax.nn.softmax(s), jax.nn.softmax(t)
    return (p * jnp.log(p / ((p + q) / 2))).sum(-1)


def shared_by_logarithms(two: float) -> Callable[..., jax.Array]:
    def run(s: jax.Array, t: jax.Array) -> jax.Array:
        p, q = jax.nn.log_softmax(s), jax.nn.log_softmax(t)
        return (jnp.exp(p) * (p - jnp.log(jnp.exp(p) + jnp.exp(q)) + np.float32(two))).sum(-1)

    return run


@pytest.mark.parametrize(
    ("two", "verdict"),
    [(math.log(2), Verdict.PROVED), (math.log(2) * (1 + 1e-5), Verdict.UNKNOWN), (math.log(3), Verdict.UNKNOWN)],
)
def test_a_mean_of_two_by_logarithms(two: float, verdict: Verdict) -> None:
    x = jax.ShapeDtypeStruct((4, 3), jnp.float32)
    local = jax.shard_map(shared_by_logarithms(two), mesh=MESH, in_specs=(P("d"), P("d")), out_specs=P("d"))
    report = hlo_verify.verify(jax.jit(shared).trace(x, x), jax.jit(local).trace(x, x), devices=4, refute=False)
    assert report.verdict is verdict


@pytest.mark.parametrize("dimensions", [1, 3, 10])
@pytest.mark.parametrize(("factor", "verdict"), [(1, Verdict.PROVED), (1 + 1e-5, Verdict.UNKNOWN)])
def test_a_density_of_some_dimensions(dimensions: int, factor: float, verdict: Verdict) -> None:
    """One adds a logarithm in each dimension, the other all of them as one number."""
    added = np.float32(dimensions / 2 * math.log(2 * math.pi) * factor)
    whole = jax.jit(lambda v: -0.5 * jnp.log(2 * jnp.pi * v).sum(-1))

    def part(v: jax.Array) -> jax.Array:
        return -0.5 * jnp.log(v).sum(-1) - added

    local = jax.jit(jax.shard_map(part, mesh=MESH, in_specs=P("d"), out_specs=P("d")))
    x = jax.ShapeDtypeStruct((4, dimensions), jnp.float32)
    assert hlo_verify.verify(whole.trace(x), local.trace(x), devices=4, refute=False).verdict is verdict
