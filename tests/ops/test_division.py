"""Division of integers by numbers of either sign, and of integers that wrap before it."""

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
from hlo_verify.index import expr
from hlo_verify.ops.division import quotient, rest
from hlo_verify.ops.values import Value
from hlo_verify.program.ir import TensorType
from hlo_verify.terms import algebra
from hlo_verify.terms.term import number
from tests.support.lowering import Placed

Function = Callable[[jax.Array], jax.Array]


@pytest.mark.parametrize("m", [-128, -7, -4, -1, 1, 3, 8, 127])
def test_by_a_number(m: int) -> None:
    """What StableHLO says of each value: quotients round towards 0, and wrap."""
    v = expr.var("x", "", 256)
    value = Value(TensorType((), "i8"), algebra.of_index(expr.shift(expr.of_var(v), -128)))
    for n in range(-128, 128):
        at = algebra.Substitution({v: expr.constant(n + 128)})
        whole = abs(n) // abs(m) * (1 if (n < 0) == (m < 0) else -1)
        assert algebra.substitute(quotient(value, m), at.mapping) is number(whole)
        assert algebra.substitute(rest(value, m), at.mapping) is number(n - m * whole)


EIGHT = [
    (lambda x: x + np.uint8(200), lambda x: x - np.uint8(56), lambda x: x - np.uint8(55)),
    (lambda x: ~x, lambda x: np.uint8(255) - x, lambda x: np.uint8(254) - x),
    (lambda x: x * np.uint8(255), lambda x: -x, lambda x: x),
    (lambda x: x * x * np.uint8(128), lambda x: x * np.uint8(128) * x * np.uint8(255), lambda x: x * x),
    (
        lambda x: (x + np.uint8(200)) // np.uint8(3),
        lambda x: (x - np.uint8(56)) // np.uint8(3),
        lambda x: x // np.uint8(3),
    ),
    (
        lambda x: (x + np.uint8(200)).astype(jnp.float32),
        lambda x: (x - np.uint8(56)).astype(jnp.float32),
        lambda x: x.astype(jnp.float32) - 56,
    ),
    (lambda x: (x * np.uint8(3)) % np.uint8(8), lambda x: (x * np.uint8(11)) % np.uint8(8), lambda x: x % np.uint8(8)),
]
WORDS = [
    (lambda k: lax.div(k, jnp.int32(-3)), lambda k: -lax.div(k, jnp.int32(3)), lambda k: lax.div(k, jnp.int32(3))),
    (lambda k: lax.rem(k, jnp.int32(-3)), lambda k: lax.rem(k, jnp.int32(3)), lambda k: k % 3),
    (lambda k: (-k) % 8, lambda k: (8 - k % 8) % 8, lambda k: 8 - k % 8),
    (lambda k: (3 * k + 5) % 4, lambda k: (1 - k) % 4, lambda k: (1 + k) % 4),
    (lambda k: (k + 1) & 7, lambda k: (k - 7) % 8, lambda k: lax.rem(k + 1, jnp.int32(8))),
    (lambda k: (k + 1) & 56, lambda k: (k - 63) & 56, lambda k: (k - 31) & 56),
    (lambda k: k.astype(jnp.uint8), lambda k: (k & 255).astype(jnp.uint8), lambda k: (k & 127).astype(jnp.uint8)),
    (lambda k: (k & 255).astype(jnp.int8), lambda k: k.astype(jnp.int8), lambda k: (k & 127).astype(jnp.int8)),
]


def verdict(reference: Function, local: Function, dtype: str) -> Verdict:
    placed = Placed(AbstractMesh((4,), ("x",)), (P("x"),), P("x"), [jax.ShapeDtypeStruct((8,), dtype)])
    report = hlo_verify.verify(*placed.pair(reference, local), refute=False, recheck=True)
    assert report.recheck is None or not report.recheck.disagreements
    return report.verdict


@pytest.mark.parametrize("n", range(len(EIGHT)))
def test_multiples_of_the_number_of_values_are_none(n: int, prover_alone: None) -> None:
    assert verdict(EIGHT[n][0], EIGHT[n][1], "uint8") is Verdict.PROVED
    assert verdict(EIGHT[n][0], EIGHT[n][2], "uint8") is not Verdict.PROVED


@pytest.mark.parametrize("n", range(len(WORDS)))
def test_of_what_may_wrap(n: int, prover_alone: None) -> None:
    assert verdict(WORDS[n][0], WORDS[n][1], "int32") is Verdict.PROVED
    assert verdict(WORDS[n][0], WORDS[n][2], "int32") is not Verdict.PROVED


def test_not_by_what_divides_no_power_of_two(prover_alone: None) -> None:
    """`(k + 2**31) + 2**31` is k, and its remainder by 3 after the first step is another; `3*k` wraps."""
    assert verdict(lambda k: (3 * k) % 3, jnp.zeros_like, "int32") is not Verdict.PROVED
    assert verdict(lambda k: (k + 3) % 3, lambda k: k % 3, "int32") is not Verdict.PROVED


def test_a_roll_by_a_variable(prover_alone: None) -> None:
    """Places are counted backwards from any integer, so that they wrap; a roll the other way is another."""
    given = [jax.ShapeDtypeStruct((8,), "float32"), jax.ShapeDtypeStruct((), "int32")]
    placed = Placed(AbstractMesh((4,), ("x",)), (P("x"), P()), P("x"), given)

    def rolled(sign: int) -> Callable[[jax.Array, jax.Array], jax.Array]:
        def local(x: jax.Array, k: jax.Array) -> jax.Array:
            places = 2 * lax.axis_index("x") + jnp.arange(2)
            return lax.all_gather(x, "x", tiled=True)[(places - sign * k) % 8]

        return local

    assert hlo_verify.verify(*placed.pair(jnp.roll, rolled(1))).verdict is Verdict.PROVED
    assert hlo_verify.verify(*placed.pair(jnp.roll, rolled(-1))).verdict is Verdict.REFUTED
