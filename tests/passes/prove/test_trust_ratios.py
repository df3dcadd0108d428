"""Rates by the ratio of two norms, which may be 0, as LAMB and LARS have them."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from hlo_verify import Verdict
from tests.passes.prove.test_forms_by_hand import verdict

Ratio = Callable[[jax.Array, jax.Array], jax.Array]


def by_norms(w: jax.Array, u: jax.Array) -> jax.Array:
    a, b = jnp.linalg.norm(w), jnp.linalg.norm(u)
    return w - jnp.where((a > 0) & (b > 0), a / b, 1.0) * u


def of_roots(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.where(a > 0, jnp.where(b > 0, jnp.sqrt(a) / jnp.sqrt(jnp.where(b > 0, b, 1.0)), 1.0), 1.0)


def root_of_ratio(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.where((a > 0) & (b > 0), jnp.sqrt(a / b), 1.0)


@pytest.mark.parametrize(
    ("ratio", "is_right"),
    [
        (of_roots, True),
        (root_of_ratio, True),
        (lambda a, b: jnp.where(a > 0, of_roots(a, b), 0.0), False),
        (lambda a, b: jnp.where(b > 0, jnp.sqrt(a / b), 1.0), False),
        (lambda a, b: jnp.where((a > 1) & (b > 0), of_roots(a, b), 1.0), False),
    ],
)
def test_a_step_in_proportion_to_the_weights(ratio: Ratio, is_right: bool) -> None:
    def local(w: jax.Array, u: jax.Array) -> jax.Array:
        return w - ratio(lax.psum(jnp.sum(w * w), "i"), lax.psum(jnp.sum(u * u), "i")) * u

    found = verdict(by_norms, local, (P("i"), P("i")), P("i"), (8, 2), (8, 2))
    assert (found is Verdict.PROVED) is is_right
