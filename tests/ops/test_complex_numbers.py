"""Parts and absolute values of complex numbers, in the spellings that people have for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.memory import Memory
from hlo_verify.ops.complex_numbers import imaginary_part, make_complex, modulus, real_part
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import LOG
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import number
from tests.support.lowering import Placed, floats
from tests.support.structural_laws import Case, at

MESH = AbstractMesh((4,), ("d",))
Way = Callable[[Any], Any]


@pytest.mark.drawn(5)
@pytest.mark.parametrize("seed", range(20))
def test_parts_and_the_modulus_by_counting(seed: int) -> None:
    """Of sums of products of numbers with two parts, real ones and conditions."""
    with Memory().on():
        case = Case(seed)
        made = [(case.make(6), case.make(6)) for _ in range(3)]
        terms = [make_complex(at(x, case.i), at(y, case.i)) for (x, _), (y, _) in made]
        numbers = [lambda i, xs=xs, ys=ys: complex(xs[i], ys[i]) for (_, xs), (_, ys) in made]
        (real, reals), parts, values = case.make(6), [], []
        for _ in range(case.random.randrange(1, 3)):
            chosen = [case.random.randrange(3) for _ in range(case.random.randrange(1, 4))]
            c, scaled = case.random.choice((1, -2)), case.random.random() < 0.5
            factors = [number(c), *(terms[n] for n in chosen), *([at(real, case.i)] if scaled else [])]
            parts.append(reduce(algebra.times, factors))
            values.append(
                lambda i, c=c, chosen=chosen, scaled=scaled: math.prod(
                    [c, *(numbers[n](i) for n in chosen), *([float(reals[i])] if scaled else [])]
                )
            )
        p = algebra.add(*parts)
        size = modulus(p)
        wanted = [sum(value(i) for value in values) for i in range(6)]
        for found, of in ((real_part(p), lambda z: z.real), (imaginary_part(p), lambda z: z.imag)):
            assert case.value(found)[:, 0].tolist() == pytest.approx([of(z) for z in wanted])
        squared = algebra.times(size, size)
        assert case.value(squared)[:, 0].tolist() == pytest.approx([abs(z) ** 2 for z in wanted])


def test_parts_of_what_may_be_no_number_are_not_multiplied_out() -> None:
    """Infinity times i has a real part that is none."""
    with Memory().on():
        case = Case(0)
        (x, _), (y, _) = case.make(6), case.make(6)
        z = make_complex(apply(LOG, (at(x, case.i),)), at(y, case.i))
        w = make_complex(at(x, case.i), at(y, case.i))
        assert real_part(algebra.times(z, w)).atom is not None


def power(z: Any) -> Any:
    return jnp.abs(z) ** 2


RIGHT: dict[str, tuple[Way, Way]] = {
    "both parts squared": (power, lambda z: z.real**2 + z.imag**2),
    "times the conjugate": (power, lambda z: (z * jnp.conj(z)).real),
    "a modulus": (jnp.abs, lambda z: jnp.sqrt(jnp.real(z) * jnp.real(z) + jnp.imag(z) * jnp.imag(z))),
    "of a product": (lambda z: jnp.abs(z * (1 + 2j)), lambda z: jnp.sqrt(5 * power(z))),
    "cross spectrum": (
        lambda z: (z * jnp.conj(z[::-1])).imag,
        lambda z: z.imag * z[::-1].real - z.real * z[::-1].imag,
    ),
    "turned": (
        lambda z: (z * lax.complex(0.6, 0.8)).real,
        lambda z: 0.6 * z.real - 0.8 * z.imag,
    ),
    "an exponential": (lambda z: jnp.exp(z).imag, lambda z: jnp.exp(z.real) * jnp.sin(z.imag)),
    "turned by an angle": (
        lambda z: (z * jnp.exp(1j * z.real)).real,
        lambda z: z.real * jnp.cos(z.real) - z.imag * jnp.sin(z.real),
    ),
    "scaled": (lambda z: jnp.abs(-3 * z), lambda z: 3 * jnp.abs(z)),
    "a difference": (
        lambda z: power(z - z[::-1]),
        lambda z: (z.real - z.real[::-1]) ** 2 + (z.imag - z.imag[::-1]) ** 2,
    ),
}
WRONG: dict[str, tuple[Way, Way]] = {
    "no conjugate": (power, lambda z: (z * z).real),
    "parts subtracted": (power, lambda z: z.real**2 - z.imag**2),
    "a sum of sizes": (jnp.abs, lambda z: jnp.abs(z.real) + jnp.abs(z.imag)),
    "turned back": (lambda z: (z * lax.complex(0.6, 0.8)).real, lambda z: 0.6 * z.real + 0.8 * z.imag),
    "no square": (power, jnp.abs),
    "no size": (lambda z: jnp.exp(z).imag, lambda z: jnp.sin(z.imag)),
    "turned by the opposite angle": (
        lambda z: (z * jnp.exp(-1j * z.real)).real,
        lambda z: z.real * jnp.cos(z.real) - z.imag * jnp.sin(z.real),
    ),
}


def verdict(one: Way, other: Way) -> Verdict:
    """Of transforms of rows that are split."""
    placed = Placed(MESH, P("d"), P("d"), floats((8, 6)))
    pair = placed.pair(
        lambda x: jnp.apply_along_axis(one, 1, jnp.fft.rfft(x)),
        lambda x: jnp.apply_along_axis(other, 1, jnp.fft.rfft(x)),
    )
    return hlo_verify.verify(*pair, refute=False).verdict


@pytest.mark.parametrize("name", RIGHT)
def test_spellings_are_the_same(name: str) -> None:
    assert verdict(*RIGHT[name]) is Verdict.PROVED


@pytest.mark.parametrize("name", WRONG)
def test_other_functions_are_not(name: str) -> None:
    assert verdict(*WRONG[name]) is not Verdict.PROVED


E = jnp.exp
PARTS: dict[str, tuple[Way, Way]] = {
    "times i": (lambda z: 1j * z, lambda z: lax.complex(-z.imag, z.real)),
    "a sum": (lambda z: jnp.conj(z.sum()), lambda z: jnp.conj(z).sum()),
    "a sum of products": (lambda z: jnp.conj((z * z[::-1]).sum()), lambda z: jnp.vdot(z, jnp.conj(z)[::-1])),
    "a sum of squares": (lambda z: (z * jnp.conj(z)).sum(), lambda z: (z.real**2 + z.imag**2).sum() + 0j),
    "an exponential": (lambda z: E(1j * z.real), lambda z: lax.complex(jnp.cos(z.real), jnp.sin(z.real))),
    "an exponential of both": (lambda z: E(z), lambda z: E(z.real) * lax.complex(jnp.cos(z.imag), jnp.sin(z.imag))),
    "turned twice": (lambda z: z * E(1j * z.real) * E(-2j * z.real), lambda z: z * E(-1j * z.real)),
}
OTHERS: dict[str, tuple[Way, Way]] = {
    "times minus i": (lambda z: 1j * z, lambda z: lax.complex(z.imag, -z.real)),
    "exchanged": (lambda z: 1j * z, lambda z: lax.complex(z.imag, z.real)),
    "no conjugate": (lambda z: jnp.conj(z.sum()), lambda z: z.sum()),
    "the real part alone": (lambda z: z, lambda z: z.real + 0j),
    "the other part alone": (lambda z: z, lambda z: 1j * z.imag),
    "turned back": (lambda z: E(1j * z.real), lambda z: E(-1j * z.real)),
    "of a sum": (lambda z: E(z.sum()), lambda z: E(z).sum()),
    "of an infinity": (
        lambda z: E(jnp.where(z.real > 0, jnp.inf, z.real) * 1j) * 0,
        lambda z: 0 * z,
    ),
}


def split_verdict(one: Way, other: Way) -> Verdict:
    shapes = [jax.ShapeDtypeStruct((8, 6), "complex64")]
    placed = Placed(MESH, P("d"), P("d"), shapes)
    pair = placed.pair(lambda x: jnp.apply_along_axis(one, 1, x), lambda x: jnp.apply_along_axis(other, 1, x))
    return hlo_verify.verify(*pair, refute=False).verdict


@pytest.mark.usefixtures("prover_alone")
@pytest.mark.parametrize("name", PARTS)
def test_numbers_are_the_same_by_their_parts(name: str) -> None:
    assert split_verdict(*PARTS[name]) is Verdict.PROVED


@pytest.mark.usefixtures("prover_alone")
@pytest.mark.parametrize("name", OTHERS)
def test_numbers_of_which_a_part_differs_are_not(name: str) -> None:
    assert split_verdict(*OTHERS[name]) is not Verdict.PROVED


@pytest.mark.usefixtures("prover_alone")
@pytest.mark.parametrize(("reduce", "expected"), [(lax.psum, True), (lax.pmean, False)])
def test_conjugates_of_what_devices_add_up(reduce: Any, expected: bool) -> None:
    placed = Placed(MESH, P("d"), P(), [jax.ShapeDtypeStruct((8, 3), "complex64")])
    pair = placed.pair(lambda z: jnp.conj(z.sum(0)), lambda z: reduce(jnp.conj(z).sum(0), "d"))
    assert (hlo_verify.verify(*pair, refute=False).verdict is Verdict.PROVED) is expected
