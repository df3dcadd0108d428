"""Bins of numbers, as people compute them: cut to an integer, rounded down before, clipped as floats or as integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed, floats

MESH = AbstractMesh((4,), ("d",))
WITHIN = "x in [0.0, 4.0)"

Bin = Callable[[Any], Any]


def cut(x: Any) -> Any:
    return x.astype(jnp.int32)


def down(x: Any) -> Any:
    return jnp.floor(x).astype(jnp.int32)


RIGHT: dict[str, tuple[Bin, Bin, str | None]] = {
    "cut": (down, cut, WITHIN),
    "of halves": (lambda x: cut(x / 0.5) // 2, lambda x: down(2 * x) >> 1, WITHIN),
    "bounded": (
        lambda x: jnp.clip(cut(x * 1.5), 0, 3),
        lambda x: jnp.clip(jnp.floor(1.5 * x), 0, 3).astype("int32"),
        WITHIN,
    ),
    "modulo": (lambda x: (down(x) + 1) % 4, lambda x: jnp.where(cut(x) == 3, 0, cut(x) + 1), WITHIN),
}
WRONG: dict[str, tuple[Bin, Bin, str | None]] = {
    "may be negative": (down, cut, "x in [-1.0, 4.0)"),
    "of anything": (down, cut, None),
    "up": (lambda x: jnp.ceil(x).astype(jnp.int32), cut, WITHIN),
    "the end": (lambda x: (down(x) + 1) % 4, lambda x: jnp.where(cut(x) == 3, 0, cut(x) + 1), "x in [0.0, 4.0]"),
    "the last is another": (lambda x: jnp.minimum(cut(x), 2), cut, WITHIN),
    "negative, bounded": (lambda x: jnp.maximum(down(x), -1), lambda x: jnp.maximum(cut(x), -1), "x in [-2.0, 3.0)"),
}


def verdict(one: Bin, other: Bin, said: str | None) -> Verdict:
    """Of numbers added up in bins of a table, and the same by devices."""

    def reference(x: Any, w: Any) -> Any:
        return jnp.zeros(4).at[one(x)].add(w)

    def local(x: Any, w: Any) -> Any:
        return lax.psum(w @ jax.nn.one_hot(other(x), 4), "d")

    pair = Placed(MESH, P("d"), P(), floats((8,), (8,))).pair(reference, local)
    return hlo_verify.verify(*pair, assume=[said] if said else None, refute=False, recheck=True).verdict


@pytest.mark.parametrize("name", RIGHT)
def test_bins_are_the_same(name: str) -> None:
    assert verdict(*RIGHT[name]) is Verdict.PROVED


@pytest.mark.parametrize("name", WRONG)
def test_other_bins_are_not(name: str) -> None:
    assert verdict(*WRONG[name]) is not Verdict.PROVED
