"""Roots and inverses of one term are one power of it: numbers, batch norms and their gradients, and what is no root."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.equality.roots import joined
from hlo_verify.index import expr
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import INVERSE, SQRT
from hlo_verify.terms.term import ONE, ZERO, Monomial, make_apply, make_poly, number, of_atom, tensor
from tests.support.evaluate import Evaluator
from tests.support.expressions import many
from tests.support.lowering import Placed, floats

Function = Callable[..., Any]

VALUES = tensor("argument", "x", "f32", (2,))
READS = [algebra.read(VALUES, [expr.constant(n)]) for n in range(2)]
DIFFERENCE = algebra.subtract(READS[0], algebra.scale(READS[1], 3))
"""What may be negative, for all that is known of it."""

SUMS = [algebra.add(algebra.power(x, 2), number(n)) for n, x in enumerate(READS, 1)]
"""What is positive."""

BASES = [DIFFERENCE, READS[0], number(5), number(Fraction(2, 7)), number(Fraction(1, 12)), *SUMS]


def root(base: int) -> Any:
    return make_apply(SQRT, (BASES[base],))


def factor(kind: str, base: int, times: int) -> Any:
    if kind == "sqrt":
        return root(base)
    return make_apply(
        INVERSE, (of_atom(root(base)) if kind == "inverse of a root" else algebra.scale(BASES[base], times),)
    )


factors = st.tuples(
    st.sampled_from(["sqrt", "inverse of a root", "inverse"]),
    st.integers(0, 6),
    st.sampled_from([1, -1, 3, -2]),
)


@many
@given(st.lists(st.tuples(factors, st.integers(1, 4)), min_size=1, max_size=4), st.floats(4, 9), st.floats(0.1, 1))
def test_a_product_is_the_same_number(of: list[tuple[Any, int]], a: float, b: float) -> None:
    powers = {factor(*each): n for each, n in of}
    mono: Monomial = tuple(sorted(powers.items(), key=lambda item: item[0].uid))
    evaluator, product = Evaluator({VALUES: np.array([a, b])}), make_poly(((mono, 1),))
    wanted, found, times = float(evaluator.poly(product, {})), joined(mono), 1.0
    while found is not None:  # one base after the other
        assert np.isclose(times * float(evaluator.poly(found, {})), wanted)
        (rest, c), *others = found.items
        times, found = times * float(c), None if others else joined(rest)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("kind", ["sqrt", "inverse of a root"])
def test_powers_of_a_root_are_written_in_one_way(kind: str, n: int) -> None:
    found = joined(((factor(kind, 0, 1), n),))
    assert (found is None) == (n == 1)
    if found is not None and n % 2 == 0:
        whole = BASES[0] if kind == "sqrt" else of_atom(factor("inverse", 0, 1))
        expected = algebra.power_of(whole, n // 2)
        assert found is (expected if kind == "sqrt" else algebra.expanded(ONE, expected))


@pytest.mark.parametrize("kind", ["sqrt", "inverse of a root"])
def test_a_root_beside_an_inverse_of_nothing_stays(kind: str) -> None:
    """Which `1/(0*x)` is, that a program may hold."""
    nothing = make_apply(INVERSE, (ZERO,))
    assert joined(((factor(kind, 0, 1), 1), (nothing, 1))) is None
    squared, alone = joined(((factor(kind, 0, 1), 2), (nothing, 1))), joined(((factor(kind, 0, 1), 2),))
    assert squared is not None and alone is not None
    assert squared is algebra.expanded(of_atom(nothing), alone)


@pytest.mark.parametrize("root", [jnp.sqrt, lax.rsqrt])
def test_a_root_divided_by_nothing_is_compared(root: Function) -> None:
    placed = Placed(jax.sharding.AbstractMesh((2,), ("d",)), (P("d"), P("d")), P("d"), floats((4,), (4,)))
    pair = placed.pair(lambda x, y: root(x) / (0 * y), lambda x, y: root(x) / (0 * y * (y / y)))
    assert hlo_verify.verify(*pair, refute=False).verdict is Verdict.UNKNOWN


def centred(x: jax.Array, less: int = 0, epsilon: float = 1e-5) -> jax.Array:
    m = x.mean(0)
    v = ((x - m) ** 2).sum(0) / (x.shape[0] - less)
    return (x - m) / jnp.sqrt(v + epsilon)


def of_squares(x: jax.Array) -> jax.Array:
    m = x.mean(0)
    return (x - m) * lax.rsqrt((x * x).mean(0) - m * m + 1e-5)


def shards(x: jax.Array, *, is_centred: bool) -> jax.Array:
    m = lax.pmean(x.mean(0), "d")
    v = lax.pmean(((x - m) ** 2).mean(0), "d") if is_centred else lax.pmean((x * x).mean(0), "d") - m * m
    return (x - m) * lax.rsqrt(v + 1e-5)


def gradient(norm: Function, power: int) -> Function:
    return lambda x, w: jax.grad(lambda x: (norm(x) ** power * w).sum())(x)


def verdict(reference: Function, local: Function) -> Verdict:
    placed = Placed(jax.sharding.AbstractMesh((4,), ("d",)), (P("d"), P("d")), P("d"), floats((8, 6), (8, 6)))
    return hlo_verify.verify(*placed.pair(reference, local), refute=False).verdict


@pytest.mark.drawn(1)
@pytest.mark.parametrize("power", [1, 2, 3])
@pytest.mark.parametrize("is_centred", [True, False])
def test_gradients_of_a_batch_norm(*, is_centred: bool, power: int) -> None:
    """A variance is a mean of squares, or a difference of which it is not seen that it is none below 0."""

    def local(x: jax.Array) -> jax.Array:
        return shards(x, is_centred=is_centred)

    for reference in (centred, of_squares):
        assert verdict(gradient(reference, power), gradient(local, power)) is Verdict.PROVED
    for wrong in (lambda x: centred(x, less=1), lambda x: centred(x, epsilon=2e-5), lambda x: 2 * centred(x)):
        assert verdict(gradient(wrong, power), gradient(local, power)) is Verdict.UNKNOWN


def spread(x: jax.Array, y: jax.Array) -> jax.Array:
    """A difference of sums, which may have any sign."""
    return lax.psum((x * y).sum(0), "d") - lax.psum(y.sum(0), "d")


def spread_of_all(x: jax.Array, y: jax.Array) -> jax.Array:
    return ((x - 1) * y).sum(0)


@pytest.mark.parametrize(
    ("reference", "local", "expected"),
    [
        (lambda u: jnp.sqrt(u) * jnp.sqrt(u), lambda u: jnp.sqrt(u) ** 2, Verdict.PROVED),
        (lambda u: jnp.sqrt(u) ** 4, lambda u: u * u, Verdict.PROVED),  # where the reference has a value
        (lambda u: u * u, lambda u: jnp.sqrt(u) ** 4, Verdict.UNKNOWN),
        (lambda u: 1 / u, lambda u: (1 / jnp.sqrt(u)) ** 2, Verdict.UNKNOWN),
        (lambda u: 1 / jnp.sqrt(u), lambda u: jnp.sqrt(u) / u, Verdict.UNKNOWN),  # of 0, an infinity and no number
        (lambda u: 1 / jnp.sqrt(u), lambda u: jnp.sqrt(u) / (2 * u), Verdict.UNKNOWN),
        (lambda u: 1 / u, lambda u: jnp.sqrt(-u) ** 2 / (u * -u), Verdict.UNKNOWN),
        (lambda u: u / jnp.sqrt(u * u), lambda u: jnp.ones_like(u), Verdict.UNKNOWN),
    ],
)
def test_a_root_is_none_of_what_may_be_negative(reference: Function, local: Function, expected: Verdict) -> None:
    assert verdict(lambda x, y: x * reference(spread_of_all(x, y)), lambda x, y: x * local(spread(x, y))) is expected


def positive(u: jax.Array) -> jax.Array:
    return 1 + u * u


def another(w: jax.Array) -> jax.Array:
    return 2 + 0.5 * jnp.abs(w)


@pytest.mark.parametrize(
    ("reference", "local", "expected"),
    [
        (
            lambda u, w: jnp.sqrt(positive(u) * another(w)),
            lambda u, w: jnp.sqrt(positive(u)) * jnp.sqrt(another(w)),
            Verdict.PROVED,
        ),
        (
            lambda u, w: 1 / (jnp.sqrt(2 * positive(u)) * jnp.sqrt(another(w))),
            lambda u, w: lax.rsqrt(another(w) * (positive(u) + positive(u))),
            Verdict.PROVED,
        ),
        (lambda u, w: u * w / jnp.sqrt(12.0), lambda u, w: w * (u * jnp.sqrt(3.0)) / 6, Verdict.PROVED),
        (lambda u, w: u * w / jnp.sqrt(12.0), lambda u, w: w * (u * jnp.sqrt(3.0)) / 5, Verdict.UNKNOWN),
        (
            lambda u, w: jnp.sqrt((u - w) * (u + w)),
            lambda u, w: jnp.sqrt(u - w) * jnp.sqrt(u + w),  # none where both are negative
            Verdict.UNKNOWN,
        ),
        (
            lambda u, w: jnp.sqrt(positive(u) + another(w)),
            lambda u, w: jnp.sqrt(positive(u)) * jnp.sqrt(another(w)),
            Verdict.UNKNOWN,
        ),
        (
            lambda u, w: jnp.sqrt(positive(u) * another(w)),
            lambda u, w: jnp.sqrt(positive(u)) * jnp.sqrt(another(w) + 1),
            Verdict.UNKNOWN,
        ),
    ],
)
def test_roots_of_sums_are_a_root_of_their_product(reference: Function, local: Function, expected: Verdict) -> None:
    assert verdict(reference, local) is expected


def modulus(u: jax.Array) -> jax.Array:
    return jnp.abs(lax.complex(u, 2 * u))


@pytest.mark.parametrize("of", [lambda u: u, lambda u: 3 * jnp.abs(u), modulus, lambda u: jnp.sqrt(u * u + 4 * u**4)])
def test_a_quotient_by_itself_divides_by_0(of: Function) -> None:
    """It is none there, and a reference may be finite that divides by the same, of which something absorbs that."""

    def absorbed(u: jax.Array) -> jax.Array:
        return jnp.minimum(1 / of(u) ** 2, 5.0)

    placed = Placed(jax.sharding.AbstractMesh((2,), ("d",)), P("d"), P("d"), floats((4,)))
    pair = placed.pair(absorbed, lambda u: of(u) / of(u) * absorbed(u))
    assert hlo_verify.verify(*pair, refute=False).verdict is Verdict.UNKNOWN
    pair = placed.pair(lambda u: jnp.ones_like(of(u)), lambda u: of(u) / of(u))
    assert hlo_verify.verify(*pair).verdict is Verdict.REFUTED
