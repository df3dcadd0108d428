"""Gradients of causal attention in rings that leave out, do not choose or mask what no query sees, and take a device's
own keys first, or in their turn."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import pytest
from jax import Array, lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.passes.prove.each_device.programs import Function, on, turned

Carry = tuple[Array, ...]


@dataclass(frozen=True)
class Causal:
    devices: int = 2
    block: int = 2
    how: str = "left_out"
    own_first: bool = True
    loop: bool = False
    wrong: str = ""

    def pair(self) -> tuple[str, str]:
        placed = on({"i": self.devices}, (P("i"),) * 4, (P("i"),) * 3, *[(self.devices * self.block, 2)] * 4)
        local = jax.shard_map(self.local, mesh=placed.mesh, in_specs=(P("i"),) * 3, out_specs=P("i"), check_vma=False)
        return placed.lowered(slope(self.whole)), placed.lowered(slope(local))

    def whole(self, q: Array, k: Array, v: Array) -> Array:
        seen = jnp.tril(jnp.ones((len(q), len(q)), bool))
        return jax.nn.softmax(jnp.where(seen, q @ k.T, -jnp.inf)) @ v

    def local(self, q: Array, k: Array, v: Array) -> Array:
        me, n = lax.axis_index("i"), self.devices
        carry = jnp.full((self.block,), -jnp.inf), jnp.zeros(self.block), jnp.zeros_like(q)

        def with_block(carry: Carry, k: Array, v: Array, owner: Array) -> Carry:
            most, total, out = carry
            rows, columns = (self.block * device + jnp.arange(self.block) for device in (me, owner))
            scores = q @ k.T
            scores = scores if self.wrong == "unmasked" else jnp.where(rows[:, None] >= columns, scores, -jnp.inf)
            greatest = lax.stop_gradient(jnp.maximum(most, scores.max(1)))
            weights, rescaled = jnp.exp(scores - greatest[:, None]), jnp.exp(most - greatest)
            again = 1 if self.wrong == "not_rescaled" else rescaled[:, None]
            return greatest, total * rescaled + weights.sum(1), out * again + weights @ v

        def turn(t: int | Array, carry: Carry) -> Carry:
            k, v, *sums = carry
            if self.own_first:
                k, v = (lax.ppermute(x, "i", turned(n, 1)) for x in (k, v))
            owner = (me - t) % n
            is_seen = owner < me if self.own_first or self.wrong == "late" else owner <= me
            if self.how == "left_out":
                sums = lax.cond(is_seen, lambda: with_block(tuple(sums), k, v, owner), lambda: tuple(sums))
            else:
                new = with_block(tuple(sums), k, v, owner)
                chosen = [jnp.where(is_seen, a, b) for a, b in zip(new, sums, strict=True)]
                sums = chosen if self.how == "not_chosen" else list(new)
            if not self.own_first:
                k, v = (lax.ppermute(x, "i", turned(n, 1)) for x in (k, v))
            return k, v, *sums

        carry = k, v, *(with_block(carry, k, v, me) if self.own_first else carry)
        first, last = int(self.own_first), n - (self.wrong == "short")
        if self.loop:
            carry = lax.fori_loop(first, last, turn, carry)
        else:
            for t in range(first, last):
                carry = turn(t, carry)
        _, _, _, total, out = carry
        return out / total[:, None]


def slope(function: Function) -> Function:
    """What a gradient of its result comes to, by queries, keys and values."""
    return lambda q, k, v, by_result: jax.vjp(function, q, k, v)[1](by_result)


RIGHT = [Causal(how=how, own_first=first) for how in ("left_out", "not_chosen", "masked") for first in (True, False)]
RIGHT += [Causal(how=how, own_first=first, loop=True) for how in ("left_out", "masked") for first in (True, False)]
RIGHT += [Causal(4, how="masked", own_first=False), Causal(4), Causal(3, 1, loop=True)]
WRONG = [
    Causal(how=how, wrong=wrong) for how in ("left_out", "masked") for wrong in ("unmasked", "not_rescaled", "short")
]
WRONG += [Causal(own_first=False, wrong="short"), Causal(4, how="masked", own_first=False, wrong="not_rescaled")]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("ring", RIGHT, ids=str)
def test_gradients(ring: Causal) -> None:
    assert hlo_verify.verify(*ring.pair(), refute=False).verdict is Verdict.PROVED


@pytest.mark.drawn(1)
@pytest.mark.parametrize("ring", WRONG, ids=str)
def test_wrong_gradients(ring: Causal) -> None:
    assert hlo_verify.verify(*ring.pair(), refute=False).verdict is Verdict.UNKNOWN
