"""Pipelines whose microbatches go round several times in one loop: each device has a layer, or two, of every round, and
looks up in each turn which round a microbatch is in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import jax.numpy as jnp
import pytest
from jax import Array, lax

from hlo_verify import Verdict
from hlo_verify.index import expr
from hlo_verify.ops.lines import Line, Way
from hlo_verify.session import Session
from tests.ops import test_pipelines_in_rounds
from tests.passes.prove.each_device.programs import turned


@dataclass(frozen=True)
class Pipeline(test_pipelines_in_rounds.Pipeline):
    """What was made goes round a ring, and the first device takes from it what is no new microbatch."""

    def local(self, ws: Array, x: Array) -> Array:
        n, v, m, me = self.stages, self.rounds, self.batches, lax.axis_index("s")
        late = n * v - 1 - (self.wrong == "slot")
        ring = turned(n, 1 + (self.wrong == "rotation"))
        if self.wrong == "open":
            ring = ring[:-1] if ring[-1] == (n - 1, 0) else ring[1:]

        def turn(carry: tuple[Array, Array], t: Array) -> tuple[tuple[Array, Array], Array]:
            state, out = carry
            is_new = (me == 0) & ((t < m) | (self.wrong == "taken"))
            h = jnp.where(is_new, x[jnp.minimum(t, m - 1)], state)
            own = jnp.clip((t if self.wrong == "round" else t - me) // n, 0, v - 1 - (self.wrong == "fewer"))
            for w in lax.dynamic_index_in_dim(ws[:, 0], own, keepdims=False):
                h = jnp.tanh(h @ w)
            if self.wrong == "odd_turn":
                h = jnp.where((t == n) & (me == 0), 2 * h, h)
            slot, is_last = jnp.clip(t - late, 0, m - 1), me == n - 1 - (self.wrong == "stage")
            if self.form == "slots":
                out = jnp.where(is_last & (t >= late), out.at[slot].set(h), out)
            elif self.form == "kept":
                out = out.at[slot].set(jnp.where(is_last, h, out[slot]))
            return (lax.ppermute(h, "s", ring), out), h

        turns = jnp.arange(m + n * v - 1 - (self.wrong == "short"))
        (_, out), every = lax.scan(turn, (jnp.zeros_like(x[0]), jnp.zeros_like(x)), turns)
        return lax.psum(jnp.where(me == n - 1, every[-m:], 0) if self.form == "list" else out, "s")


PLAIN = Pipeline()
FEW = replace(PLAIN, stages=4, batches=3)
RIGHT = {
    "slots": PLAIN,
    "kept": replace(PLAIN, form="kept", rounds=4, batches=64),
    "list": replace(FEW, form="list", rounds=3),
    "layers": replace(PLAIN, stages=8, layers=2),
    "two_devices": replace(PLAIN, stages=2, batches=2),
}
WRONG = "slot rotation open taken round fewer odd_turn stage short by_device".split()


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", RIGHT)
def test_rounds_in_one_loop(name: str) -> None:
    assert RIGHT[name].verdict() is Verdict.PROVED


@pytest.mark.drawn(2)
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", ["slots", "few", "kept"])
def test_wrong_rounds_in_one_loop(name: str, wrong: str) -> None:
    own = {"slots": replace(PLAIN, stages=8), "few": FEW, "kept": replace(FEW, form="kept")}[name]
    assert replace(own, wrong=wrong).verdict() is Verdict.UNKNOWN


@pytest.mark.drawn(1)
@pytest.mark.parametrize("batches", [5, 8])
def test_more_microbatches_than_devices(batches: int) -> None:
    """The first device takes a new one then while others come back."""
    assert replace(FEW, batches=batches).verdict() is Verdict.UNKNOWN


@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_which_microbatch_and_place(stages: int, rounds: int) -> None:
    """Against all places of a device and all microbatches, for every turn."""
    with Session().on():
        way = Way(Line(expr.fresh("d", stages), 1, stages, is_down=False), 1, 0, (), rounds)
        places = range(stages * rounds)
        for turn, me in product(range(stages * (rounds + 1) - 1), range(stages)):
            batch, place = way.batch_and_place(expr.constant(turn), expr.constant(me))
            works = 0 <= batch.const < stages and place.const in places
            there = [(turn - k, k) for k in places if k % stages == me and 0 <= turn - k < stages]
            assert there == [(batch.const, place.const)] * works
            assert all(way.device_at(expr.constant(k)) is expr.constant(k % stages) for k in places)
