"""Pipelines that microbatches go through several times: each device has a layer, or two, of every round."""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import pytest
from jax import Array, lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.limits import Limits
from tests.passes.prove.each_device.programs import turned

LIMITS = Limits(devices_apart=1, unrolled_turns=1)


@dataclass(frozen=True)
class Pipeline:
    """One loop a round, each of which begins with what the last device of the one before made."""

    stages: int = 64
    rounds: int = 2
    layers: int = 1
    batches: int = 4
    form: str = "slots"
    wrong: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rounds, devices, and layers of each in each."""
        return self.rounds, self.stages, self.layers

    def whole(self, ws: Array, x: Array) -> Array:
        return lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, ws)[0]  # type: ignore[no-any-return]

    def round(self, ws: Array, x: Array) -> Array:
        n, m, me = self.stages, self.batches, lax.axis_index("s")

        def turn(carry: tuple[Array, Array], t: Array) -> tuple[tuple[Array, Array], Array | None]:
            state, out = carry
            h = jnp.where(me == 0, x[jnp.clip(t - (self.wrong == "late"), 0, m - 1)], state)
            for w in ws:
                h = jnp.tanh(h @ w)
            if self.wrong == "odd_device":
                h = jnp.where(me == n // 2, 2 * h, h)
            if self.form == "slots":
                kept = (t >= n - 1) & (me == n - 1 - (self.wrong == "stage"))
                out = jnp.where(kept, out.at[jnp.clip(t - (n - 1), 0, m - 1)].set(h), out)
            return (lax.ppermute(h, "s", turned(n, 1 + (self.wrong == "rotation"))), out), h

        (_, out), every = lax.scan(turn, (jnp.zeros_like(x[0]), jnp.zeros_like(x)), jnp.arange(m + n - 1))
        return lax.psum(out if self.form == "slots" else jnp.where(me == n - 1, every[n - 1 :], 0), "s")

    def local(self, ws: Array, x: Array) -> Array:
        """Of the weights of all rounds, a device's own."""
        h = x
        for k in range(self.rounds - (self.wrong == "fewer")):
            own = {"reversed": self.rounds - 1 - k, "first": 0}.get(self.wrong, k)
            h = self.round(ws[own, 0], x if self.wrong == "anew" else h)
        return h

    def placed(self, ws: Array, x: Array) -> Array:
        mesh = AbstractMesh((self.stages,), ("s",), axis_types=(AxisType.Auto,))
        local = jax.shard_map(self.local, mesh=mesh, in_specs=(P(None, "s"), P()), out_specs=P(), check_vma=False)
        if self.wrong == "by_device":
            n, rounds, layers = self.stages, self.rounds, self.layers
            return local(ws.reshape(n, rounds, layers, 3, 3).swapaxes(0, 1), x)  # type: ignore[no-any-return]
        return local(ws.reshape(*self.shape, 3, 3), x)  # type: ignore[no-any-return]

    def verdict(self) -> Verdict:
        layers = self.rounds * self.stages * self.layers
        shapes = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((layers, 3, 3), (self.batches, 2, 3))]
        pair = (jax.jit(function).trace(*shapes) for function in (self.whole, self.placed))
        return hlo_verify.verify(*pair, refute=False, limits=LIMITS).verdict


PLAIN = Pipeline()
RIGHT = {
    "slots": PLAIN,
    "list": replace(PLAIN, form="list"),
    "three": replace(PLAIN, stages=8, rounds=3),
    "two_devices": replace(PLAIN, stages=2),
    "layers": replace(PLAIN, stages=4, layers=2, form="list"),
}
SLOW = pytest.mark.slow
WRONG = "late odd_device stage rotation reversed first anew fewer by_device".split()


@pytest.mark.parametrize("name", RIGHT)
def test_rounds(name: str) -> None:
    assert RIGHT[name].verdict() is Verdict.PROVED


@pytest.mark.parametrize(
    "wrong", [pytest.param(each, marks=[] if each in ("reversed", "by_device") else SLOW) for each in WRONG]
)
@pytest.mark.parametrize(
    "name", ["layers", *(pytest.param(each, marks=SLOW) for each in ("list", "three", "two_devices"))]
)
def test_wrong_rounds(name: str, wrong: str) -> None:
    form = "slots" if wrong == "stage" else RIGHT[name].form
    assert replace(RIGHT[name], form=form, wrong=wrong).verdict() is Verdict.UNKNOWN
