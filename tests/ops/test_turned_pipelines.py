"""Pipelines whose inputs and outputs go round as well, as those of JAX's documentation: each device has a share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

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

Carry = tuple[Array, Array, Array]


@dataclass(frozen=True)
class Pipeline:
    """A layer and a microbatch a device. The first device takes the inputs in the order in which they come by."""

    stages: int = 64
    loop: str = "fori"
    way: int = 1
    activation: Callable[[Any], Any] = jnp.tanh
    wrong: str = ""

    def whole(self, ws: Array, x: Array) -> Array:
        return lax.scan(lambda h, w: (self.activation(h @ w), None), x, ws, reverse=self.way < 0)[0]  # type: ignore[no-any-return]

    def local(self, ws: Array, x: Array) -> Array:
        n, me = self.stages, lax.axis_index("s")
        first, last = (0, n - 1) if self.way > 0 else (n - 1, 0)

        def moved(value: Array, name: str) -> Array:
            by = {f"{name}_twice": 2, f"{name}_back": -1}.get(self.wrong, 1)
            return lax.ppermute(value, "s", turned(n, by * self.way))

        def turn(t: Array | int, carry: Carry) -> Carry:
            state, given, out = carry
            state = jnp.where(me == first + (self.wrong == "first") * self.way, given, state)
            state = self.activation(state @ ws[0])
            if self.wrong == "odd_device":
                state = jnp.where(me == n // 2, 2 * state, state)
            if self.wrong == "odd_turn":
                state = jnp.where(jnp.asarray(t) == n, state**2, state)
            out = jnp.where(me == last - (self.wrong == "stage") * self.way, state, out)
            if self.wrong == "odd_output":
                out = jnp.where((jnp.asarray(t) == n + 1) & (me == 1), 2 * out, out)
            if self.wrong == "sum":
                out = out + given
            return moved(state, "state"), moved(given, "inputs"), moved(out, "outputs")

        turns = 2 * n - 1 + {"short": -1, "long": 1}.get(self.wrong, 0)
        carry: Carry = (jnp.zeros_like(x), x, jnp.zeros_like(x))
        if self.loop == "python":
            for t in range(turns):
                carry = turn(t, carry)
        elif self.loop == "scan":
            carry = lax.scan(lambda carry, t: (turn(t, carry), None), carry, jnp.arange(turns))[0]
        else:
            carry = lax.fori_loop(0, turns, turn, carry)
        return carry[2] if self.wrong == "last" else moved(carry[2], "")

    def verdict(self) -> Verdict:
        mesh = AbstractMesh((self.stages,), ("s",), axis_types=(AxisType.Auto,))
        local = jax.shard_map(self.local, mesh=mesh, in_specs=P("s"), out_specs=P("s"), check_vma=False)
        shapes = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((self.stages, 3, 3), (self.stages, 2, 3))]
        pair = (jax.jit(function).trace(*shapes) for function in (self.whole, local))
        return hlo_verify.verify(*pair, refute=False, limits=LIMITS).verdict


FORI = Pipeline()
RIGHT = {
    "fori": FORI,
    "256": replace(FORI, stages=256),
    "few_stages": replace(FORI, stages=5),
    "scan": replace(FORI, loop="scan", activation=jax.nn.relu),
    "python": replace(FORI, loop="python"),
    "backwards": replace(FORI, way=-1),
}


@pytest.mark.parametrize("name", RIGHT)
def test_pipelines(name: str) -> None:
    assert RIGHT[name].verdict() is Verdict.PROVED


WRONG = [f"{name}_{way}" for name in ("state", "inputs", "outputs") for way in ("twice", "back")]
WRONG += "first stage odd_device odd_turn odd_output sum short long last".split()


@pytest.mark.drawn(4)
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("stages", [4, *(pytest.param(count, marks=pytest.mark.slow) for count in (8, 64))])
def test_wrong_pipelines(wrong: str, stages: int) -> None:
    assert replace(FORI, stages=stages, wrong=wrong).verdict() is Verdict.UNKNOWN
