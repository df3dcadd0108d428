"""Fourier transforms of what complex weights make of another transform, whatever the weights are written as."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.ops.complex_numbers import imaginary_part, make_complex, multiplied_out, real_part, unit
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import named
from hlo_verify.terms.term import ONE, ZERO, number, tensor

Weights = Callable[[jax.Array, jax.Array], jax.Array]
Layer = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]
MESH = AbstractMesh((4,), ("x",))

WEIGHTS: dict[str, Weights] = {
    "added up": lambda a, b: a + 1j * b,
    "the other way round": lambda a, b: b * 1j + a,
    "both at once": lax.complex,
    "other: conjugated": lambda a, b: a - 1j * b,
    "other: exchanged": lambda a, b: lax.complex(b, a),
    "other: without the unit": lambda a, b: a + b + 0j,
    "other: real": lambda a, b: a + 0j * b,
}


def pasted(x: jax.Array, modes: int) -> jax.Array:
    return jnp.zeros((*x.shape[:-1], 5), jnp.complex64).at[..., :modes].set(x[..., :modes])


def padded(x: jax.Array, modes: int) -> jax.Array:
    return jnp.pad(x[..., :modes], ((0, 0), (0, 0), (0, 5 - modes)))


def layer(weights: Weights, *, kept: Callable[[jax.Array, int], jax.Array] = pasted, modes: int = 3) -> Layer:
    """A layer of a Fourier neural operator: of the lowest modes, all channels into all."""

    def run(v: jax.Array, a: jax.Array, b: jax.Array) -> jax.Array:
        made = jnp.einsum("bim,iom->bom", jnp.fft.rfft(v)[..., :3], weights(a, b))
        return jnp.fft.irfft(kept(made, modes), n=8)

    return run


def verdict(local: Layer) -> Verdict:
    """Of what each device makes of its channels, added up."""
    shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((2, 4, 8), (4, 3, 3), (4, 3, 3))]
    summed = jax.shard_map(
        lambda *own: lax.psum(local(*own), "x"), mesh=MESH, in_specs=(P(None, "x"), P("x"), P("x")), out_specs=P()
    )
    pair = jax.jit(layer(WEIGHTS["added up"])).trace(*shapes), jax.jit(summed).trace(*shapes)
    return hlo_verify.verify(*pair, devices=4, refute=False).verdict


@pytest.mark.usefixtures("prover_alone")
@pytest.mark.parametrize("kept", [pasted, padded])
@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_in_any_spelling(name: str, kept: Callable[[jax.Array, int], jax.Array]) -> None:
    found = verdict(layer(WEIGHTS[name], kept=kept))
    assert (found is Verdict.PROVED) is not name.startswith("other")


@pytest.mark.usefixtures("prover_alone")
@pytest.mark.parametrize("modes", [1, 2, 5])
def test_other_modes(modes: int) -> None:
    kept = padded if modes < 5 else (lambda x, _: jnp.concatenate([x, x[..., :2]], -1))
    assert verdict(layer(WEIGHTS["both at once"], kept=kept, modes=modes)) is not Verdict.PROVED


def test_products_of_pairs_are_those_of_complex_numbers() -> None:
    """Of up to three pairs, with names, conditions left out: each part, with numbers in the place of elements."""
    rng = np.random.default_rng(0)
    for count in (1, 2, 3):
        with Session().on():
            whole, expected = number(2), np.complex128(2)
            for _ in range(count):
                re, im = rng.integers(-3, 4, 2)
                whole = algebra.multiply(whole, make_complex(number(int(re)), number(int(im))))
                expected *= complex(re, im)
            found = multiplied_out(whole)
            assert real_part(found).constant == expected.real
            assert imaginary_part(found).constant == expected.imag


def test_a_product_with_a_name() -> None:
    """A sum that has a name is opened where it is of pairs, and stays whole where it is of real numbers."""
    with Session().on():
        a, b, c = (algebra.read(tensor("argument", name, "f32", ()), ()) for name in "abc")
        i = unit()
        product = algebra.multiply(named(algebra.add(a, algebra.multiply(i, b))), make_complex(c, a))
        expected = [(ONE, algebra.subtract(algebra.multiply(a, c), algebra.multiply(a, b)))]
        expected += [(i, algebra.add(algebra.multiply(b, c), algebra.multiply(a, a)))]
        assert multiplied_out(product) is algebra.add(*(algebra.multiply(*each) for each in expected))
        whole = algebra.multiply(named(algebra.add(a, b)), i)
        assert multiplied_out(whole) is whole


def test_the_unit_twice() -> None:
    with Session().on():
        x = algebra.read(tensor("argument", "x", "f32", ()), ())
        twice = algebra.multiply(algebra.multiply(unit(), unit()), x)
        assert multiplied_out(twice) is algebra.scale(x, -1)
        assert multiplied_out(algebra.multiply(twice, twice)) is algebra.multiply(x, x)
        assert real_part(algebra.multiply(unit(), x)) is ZERO
