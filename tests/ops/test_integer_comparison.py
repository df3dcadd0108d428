"""Integers are equal where their difference is 0 in their type, wrapped or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.index import expr
from hlo_verify.memory import Memory
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms import algebra
from hlo_verify.terms.machine import zero_together
from hlo_verify.terms.term import number, tensor

EVERY = np.arange(-128, 128)


@pytest.mark.parametrize("dtype", ["i8", "ui8"])
@pytest.mark.parametrize("factor", [1, -1])
@pytest.mark.parametrize("offset", [-300, -256, -255, -200, -128, -127, -5, 0, 1, 100, 127, 128, 255, 256, 400])
def test_zero_together(dtype: str, factor: int, offset: int) -> None:
    lo, hi = INTEGER_RANGES[dtype]
    with Memory().on():
        v = expr.var("v", "", 3)
        x = algebra.read(tensor("argument", "x", dtype, ()), ())
        place = algebra.scale(algebra.of_index(expr.of_var(v)), 7)
        e = zero_together(algebra.add(algebra.scale(x, factor), place, number(offset)), lo, hi)
        if e is None:
            return
        ((atom, c),) = [(a, c) for a, c in e.items if isinstance(a, expr.Opaque)]
        assert (atom.lo, atom.hi) == (lo, hi)
        for value in range(lo, hi + 1):
            for place_of in range(3):
                rest = sum(c * place_of for a, c in e.items if isinstance(a, expr.Digit))
                is_zero = c * value + rest + e.const == 0
                assert is_zero == ((factor * value + 7 * place_of + offset) % 256 == 0)


def test_most_differences_of_a_place_are_seen() -> None:
    with Memory().on():
        x = algebra.read(tensor("argument", "x", "i32", ()), ())
        assert zero_together(algebra.add(x, number(-8)), *INTEGER_RANGES["i32"]) is not None
        assert zero_together(algebra.add(x, number((1 << 31) + 1)), *INTEGER_RANGES["i32"]) is None
        assert zero_together(algebra.scale(x, 3), *INTEGER_RANGES["i32"]) is None


def verdict(one: Any, other: Any) -> Verdict:
    x = jax.ShapeDtypeStruct((256,), jnp.int8)
    texts = [jax.jit(f).trace(x).lower(lowering_platforms=("cpu",)).as_text() for f in (one, other)]
    return hlo_verify.verify(*texts, refute=False).verdict


@pytest.mark.drawn(20)
@pytest.mark.parametrize(("less", "wanted"), [(5, 3), (100, 20), (100, 100), (-100, -100), (-128, 127), (-128, -128)])
@pytest.mark.parametrize("guess", [-128, -56, -1, 0, 8, 9, 56, 120, 127])
def test_equal_after_a_subtraction(less: int, wanted: int, guess: int) -> None:
    """By all values of the type: never PROVED where they differ."""
    found = verdict(lambda x: x - np.int8(less) == np.int8(wanted), lambda x: x == np.int8(guess))
    is_right = bool(((((EVERY - less + 128) % 256 - 128) == wanted) == (guess == EVERY)).all())
    assert is_right or found is Verdict.UNKNOWN


@pytest.mark.parametrize(("less", "wanted"), [(5, 3), (100, 20), (-100, 20), (127, -127)])
def test_the_right_one(less: int, wanted: int) -> None:
    right = np.int8((less + wanted + 128) % 256 - 128)
    found = verdict(lambda x: x - np.int8(less) == np.int8(wanted), lambda x: x == right)
    assert found is Verdict.PROVED


CHOSEN = {
    "what is chosen": (lambda p, x: p & (x + 1 >= 4), True),
    "what is chosen, and the other": (lambda p, x: jnp.where(p, x + 1 >= 4, False), True),
    "before it wraps": (lambda p, x: p & (x >= 3), False),
    "the other way": (lambda p, x: ~p & (x + 1 >= 4), False),
    "either": (lambda p, x: p | (x + 1 >= 4), False),
    "one less": (lambda p, x: p & (x + 1 >= 3), False),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_what_a_truth_value_chooses_is_compared_as_that(name: str) -> None:
    other, is_right = CHOSEN[name]

    def chosen(p: Any, x: Any) -> Any:
        return jnp.where(jnp.all(p > 0), x + 1, 0) >= 4

    arguments = jax.ShapeDtypeStruct((3,), jnp.float32), jax.ShapeDtypeStruct((256,), jnp.int8)
    texts = [
        jax.jit(f).trace(*arguments).lower(lowering_platforms=("cpu",)).as_text()
        for f in (chosen, lambda p, x: other(jnp.all(p > 0), x))
    ]
    assert (hlo_verify.verify(*texts, refute=False).verdict is Verdict.PROVED) is is_right


COUNTED = {"!=": jnp.not_equal, "==": jnp.equal, "<": jnp.less}
"""How an element is compared with the one before it."""


def counted_round_a_ring(name: str, shift: int, devices: int = 4) -> Callable[[jax.Array], jax.Array]:
    """How many elements up to each one are so, where the one before a device's first is that device's neighbour's."""
    own_first = [(d, (d + shift) % devices) for d in range(devices)]

    def counted(x: jax.Array) -> jax.Array:
        before = jnp.concatenate([lax.ppermute(x[-1:], "x", own_first), x[:-1]])
        here = jnp.cumsum(COUNTED[name](x, before).astype(jnp.int32))
        totals = lax.all_gather(here[-1], "x")
        return here + jnp.where(jnp.arange(devices) < lax.axis_index("x"), totals, 0).sum()

    mesh = AbstractMesh((devices,), ("x",), axis_types=(AxisType.Auto,))
    return jax.shard_map(counted, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)


@pytest.mark.parametrize("name", COUNTED)
def test_what_is_compared_in_pieces_is_so_in_each(name: str) -> None:
    """`x != (y where p, else z)` is `x != y` where p, as `x < y` is; and not 1 less `x = y` there."""
    x = jax.ShapeDtypeStruct((12,), jnp.int32)

    def counted(x: jax.Array) -> jax.Array:
        return jnp.cumsum(COUNTED[name](x, jnp.roll(x, 1)).astype(jnp.int32))

    assert hlo_verify.check(counted, counted_round_a_ring(name, 1), x, refute=False).verdict is Verdict.PROVED
    assert hlo_verify.check(counted, counted_round_a_ring(name, 2), x, refute=False).verdict is Verdict.UNKNOWN
