"""Weights that decay with distance: as a table, as powers of positions, and by a recurrence, in chunks over devices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.passes.prove.each_device.programs import on

Function = Callable[..., Any]
DECAY, DEVICES, LENGTH = 0.5, 4, 8
SHAPES = (LENGTH, 2), (LENGTH, 2), (LENGTH, 1)
OWN = LENGTH // DEVICES


def by_table(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    distance = np.arange(LENGTH)[:, None] - np.arange(LENGTH)
    return (q @ k.T * np.where(distance < 0, 0, DECAY**distance).astype(np.float32)) @ v


def by_powers(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    distance = jnp.arange(LENGTH)[:, None] - jnp.arange(LENGTH)
    return (q @ k.T * jnp.where(distance >= 0, DECAY ** distance.astype(jnp.float32), 0)) @ v


def by_turns(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    def turn(state: jax.Array, now: Any) -> tuple[jax.Array, jax.Array]:
        q, k, v = now
        state = DECAY * state + k[:, None] * v
        return state, q @ state

    return lax.scan(turn, jnp.zeros((q.shape[1], v.shape[1])), (q, k, v))[1]


def in_chunks(
    q: jax.Array, k: jax.Array, v: jax.Array, handed: float = DECAY**OWN, first: int = 1, own: bool = False
) -> jax.Array:
    here, at = lax.axis_index("i"), np.arange(OWN)
    inside = (q @ k.T * np.tril(DECAY ** (at[:, None] - at).astype(np.float32))) @ v
    states = lax.all_gather(jnp.einsum("tk,tv,t->kv", k, v, (DECAY ** (OWN - 1 - at)).astype(np.float32)), "i")
    before = jnp.zeros(states.shape[1:])
    for n in range(DEVICES):
        before = jnp.where(n <= here if own else n < here, handed * before + states[n], before)
    return inside + (DECAY ** (at + first)).astype(np.float32)[:, None] * (q @ before)


def of_all_keys(q: jax.Array, k: jax.Array, v: jax.Array, late: int = 0) -> jax.Array:
    k, v = (lax.all_gather(x, "i", tiled=True) for x in (k, v))
    distance = lax.axis_index("i") * OWN + jnp.arange(OWN)[:, None] - jnp.arange(LENGTH) - late
    return (q @ k.T * jnp.where(distance >= 0, jnp.power(DECAY, distance.astype(jnp.float32)), 0)) @ v


LOCAL: dict[str, tuple[Function, bool]] = {
    "in_chunks": (in_chunks, True),
    "of_all_keys": (of_all_keys, True),
    "handed_on_by_one": (partial(in_chunks, handed=DECAY), False),
    "a_step_early": (partial(in_chunks, first=0), False),
    "its_own_twice": (partial(in_chunks, own=True), False),
    "a_key_late": (partial(of_all_keys, late=1), False),
}


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", LOCAL)
@pytest.mark.parametrize("reference", [by_table, by_powers, by_turns])
def test_decay(reference: Function, name: str) -> None:
    local, is_right = LOCAL[name]
    placed = on({"i": DEVICES}, (P("i"),) * 3, P("i"), *SHAPES)
    found = hlo_verify.verify(*placed.pair(reference, local), refute=False).verdict
    assert (found is Verdict.PROVED) is is_right
