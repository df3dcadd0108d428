"""Flags of several arrays: a step that is skipped where a gradient is no number, as loss scaling does."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.passes.prove.each_device.programs import on

Flags = Callable[[jax.Array, jax.Array], jax.Array]


def small(a: jax.Array) -> jax.Array:
    """A flag of each element that numbers decide."""
    return jnp.abs(a) < 1


def of_stack(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(t) & small(t)) for t in (a, b)]))


def skipped(p: jax.Array, a: jax.Array, b: jax.Array) -> jax.Array:
    return lax.cond(of_stack(a, b), lambda: p - a, lambda: p)


def one_by_one(a: jax.Array, b: jax.Array) -> jax.Array:
    ok = jnp.array(True)
    for t in (a, b):
        ok &= (jnp.isfinite(t) & small(t)).all()
    return lax.pmin(ok.astype(jnp.int32), "i") > 0


def of_first(a: jax.Array, b: jax.Array) -> jax.Array:
    return lax.pmin((jnp.isfinite(a) & jnp.isfinite(b) & small(a)).all().astype(jnp.float32), "i") == 1.0


def counted(a: jax.Array, b: jax.Array) -> jax.Array:
    bad = [jnp.sum(~jnp.isfinite(t) | ~small(t)) for t in (a, b)]
    return lax.psum(bad[0] + bad[1], "i") == 0


def counted_in_numbers(a: jax.Array, b: jax.Array) -> jax.Array:
    good = [jnp.sum(jnp.isfinite(t) & small(t), dtype=jnp.float32) for t in (a, b)]
    return lax.psum(sum(good), "i") > 15


def all_but_one(a: jax.Array, b: jax.Array) -> jax.Array:
    good = [jnp.sum(jnp.isfinite(t) & small(t), dtype=jnp.float32) for t in (a, b)]
    return lax.psum(sum(good), "i") > 14


def on_one_device(a: jax.Array, b: jax.Array) -> jax.Array:
    return one_by_one(a, b) | (jnp.isfinite(a) & small(a)).all()


@pytest.mark.parametrize(
    ("flags", "is_right"),
    [
        (one_by_one, True),
        (counted, True),
        (counted_in_numbers, True),
        (all_but_one, False),
        (on_one_device, False),
        (of_first, False),
    ],
)
def test_a_step_is_skipped_where_one_of_several_flags_says_so(flags: Flags, is_right: bool) -> None:
    def by_hand(p: jax.Array, a: jax.Array, b: jax.Array) -> jax.Array:
        return jnp.where(flags(a, b), p - a, p)

    pair = on({"i": 4}, (P("i"), P("i"), P("i")), P("i"), (8,), (8,), (8,)).pair(skipped, by_hand)
    assert (hlo_verify.verify(*pair, refute=False).verdict is Verdict.PROVED) is is_right
