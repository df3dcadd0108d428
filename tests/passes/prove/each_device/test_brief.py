"""Pipelines written out in Python are seen to be right on each device at once, and what is nearly right is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import Array, lax
from jax.sharding import PartitionSpec as P

from hlo_verify.limits import Limits
from hlo_verify.meter import TERM
from hlo_verify.passes.diagnose.examine import prove
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.each_device.apart import Apart
from hlo_verify.program.ir import Module
from hlo_verify.report import Verdict
from hlo_verify.session import Session
from tests.passes.prove.each_device.programs import on, turned

Function = Callable[..., Any]


@dataclass(frozen=True)
class Pipeline:
    """Stages of one layer each, on as many devices; or of several that come round again."""

    kind: str
    stages: int = 4
    rounds: int = 1
    wrong: str = ""

    def whole(self, ws: Array, x: Array) -> Array:
        return lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, ws.reshape(-1, 3, 3))[0]  # type: ignore[no-any-return]

    def rotating(self, ws: Array, x: Array) -> Array:
        """As JAX's documentation has it: inputs and outputs go round as well, each device has a share of them."""
        n = self.stages
        me, state, out = lax.axis_index("s"), jnp.zeros_like(x), jnp.zeros_like(x)
        for t in range(2 * n - 1 - (self.wrong == "short")):
            state = jnp.where(me == 0, x, state)
            if not (self.wrong == "odd_turn" and t == n):
                state = jnp.tanh(state @ ws[0])
            out = jnp.where(me == n - 1, state, out)
            state = lax.ppermute(state, "s", turned(n, 1))
            x = lax.ppermute(x, "s", turned(n, -1 if self.wrong == "turned" else 1))
            out = lax.ppermute(out, "s", turned(n, 2 if self.wrong == "rotation" and t == n else 1))
            if self.wrong == "odd_device":
                out = jnp.where((me == 1) & (t == 2 * n - 2), 2 * out, out)
        return lax.ppermute(out, "s", turned(n, 1))

    def circular(self, ws: Array, x: Array) -> Array:
        """Each device has a layer of every round."""
        n, r = self.stages, self.rounds
        me, state, out = lax.axis_index("s"), jnp.zeros_like(x[0]), jnp.zeros_like(x)
        for t in range(n + n * r - 1 - (self.wrong == "short")):
            now = ws[jnp.clip((t - (0 if self.wrong == "odd_turn" and t == n else me)) // n, 0, r - 1), 0]
            state = jnp.where((me == 0) & (t < n), x[min(t, n - 1)], state)
            state = jnp.tanh(state @ now)
            if self.wrong == "odd_device":
                state = jnp.where(me == 1, 2 * state, state)
            if t >= n * r - 1:
                out = jnp.where(me == n - 1, out.at[t - (n * r - 1)].set(state), out)
            state = lax.ppermute(state, "s", turned(n, {"turned": -1, "rotation": 2}.get(self.wrong, 1)))
        return lax.psum(out, "s")

    def pair(self, by: int | None = None) -> tuple[Module, Module]:
        n, is_rotating = self.stages, self.kind == "rotating"
        weights, inputs = (P("s"), P("s")) if is_rotating else (P(None, "s"), P())
        placed = on(
            {"s": n}, (weights, inputs), inputs, (n, 3, 3) if is_rotating else (self.rounds, n, 3, 3), (n, 2, 3)
        )
        local = getattr(self, self.kind)
        if by is None:
            first, second = placed.pair(self.whole, local)
            return load(first), load(second)
        slopes = (jax.grad(lambda *given, f=f: jnp.sum(f(*given) ** 2), by) for f in (self.whole, placed.mapped(local)))
        first, second = map(placed.lowered, slopes)
        return load(first), load(second)


ROTATING, CIRCULAR = Pipeline("rotating"), Pipeline("circular", stages=3, rounds=2)
RIGHT = {"rotating": ROTATING, "rotating_on_8": replace(ROTATING, stages=8), "circular": CIRCULAR}


def is_seen(pair: tuple[Module, Module], **limits: int) -> bool:
    with Session(replace(Limits(), **limits)).on() as session:
        session.meter.begin(TERM * 1_000_000)
        return Apart(*pair, session, [0]).proves_briefly(0)


@pytest.mark.parametrize("name", RIGHT)
def test_pipelines_are_seen_to_be_right(name: str) -> None:
    pair = RIGHT[name].pair()
    assert is_seen(pair)
    assert not is_seen(pair, operations_apart=100)
    assert not is_seen(pair, terms_apart=50)


@pytest.mark.parametrize("wrong", ["short", "turned", "rotation", "odd_turn", "odd_device"])
@pytest.mark.parametrize("pipeline", [ROTATING, CIRCULAR], ids=lambda each: each.kind)
def test_wrong_pipelines_are_not(pipeline: Pipeline, wrong: str) -> None:
    assert not is_seen(replace(pipeline, wrong=wrong).pair())


@pytest.mark.drawn(1)
@pytest.mark.parametrize("by", [0, 1])
def test_their_gradients(by: int) -> None:
    assert prove(*replace(ROTATING, stages=2).pair(by)).verdict is Verdict.PROVED
    assert prove(*replace(ROTATING, stages=2, wrong="odd_device").pair(by)).verdict is Verdict.UNKNOWN


def test_what_seems_wrong_is_not_looked_at() -> None:
    with Session().on() as session:
        assert not Apart(*ROTATING.pair(), session, [0], seems_wrong=True).may_be_brief
