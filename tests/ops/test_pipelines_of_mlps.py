"""Gradients of pipelines whose stages are what people have: two products with biases, a GELU and a residual."""

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

LIMITS = Limits(devices_apart=1, unrolled_turns=1)
BATCHES, ROWS, WIDE, INNER = 4, 2, 3, 5

Weights = tuple[Array, ...]


@dataclass(frozen=True)
class Pipeline:
    """A block a device, or more; the gradient by all weights."""

    stages: int = 64
    layers: int = 1
    activation: Callable[[Any], Any] = jax.nn.gelu
    is_residual: bool = True
    form: str = "list"
    wrong: str = ""

    def block(self, h: Array, weights: Weights) -> Array:
        up, up_bias, down, down_bias = weights
        made = self.activation(h @ up + up_bias) @ down + down_bias
        return h + made if self.is_residual else made

    def whole(self, weights: Weights, x: Array) -> Array:
        return lax.scan(lambda h, w: (self.block(h, w), None), x, weights)[0]  # type: ignore[no-any-return]

    def between(self, h: Array, t: Array) -> Array:
        """What goes from one layer of a device to the next."""
        n, me = self.stages, lax.axis_index("s")
        if self.wrong == "between_on_one":
            return jnp.where(me == n // 2, 2 * h, h)
        if not self.wrong.startswith("between"):
            return h
        places = {"between_first": me == 0, "between_last": me == n - 1, "between_in_turn": t == n}
        return jnp.where(places[self.wrong], lax.stop_gradient(h), h)

    def local(self, weights: Weights, x: Array) -> Array:
        n, me = self.stages, lax.axis_index("s")
        is_late = self.wrong == "late"

        def turn(carry: tuple[Array, Array], t: Array) -> tuple[tuple[Array, Array], Array | None]:
            state, out = carry
            h = jnp.where(me == 0, x[jnp.clip(t - is_late, 0, BATCHES - 1)], state)
            for k in range(self.layers):
                own = tuple(w[k] for w in weights)
                h = self.block(h, (own[0], *(w[0] for w in weights[1:])) if self.wrong == "biases" else own)
                if k < self.layers - 1:
                    h = self.between(h, t)
            if self.wrong == "odd_device":
                h = jnp.where(me == n // 2, 2 * h, h)
            if self.wrong == "residual":
                h = h - jnp.where(t == n, state, 0)
            if self.form == "slots":
                kept = (t >= n - 1) & (me == n - 1)
                out = jnp.where(kept, out.at[jnp.clip(t - (n - 1), 0, BATCHES - 1)].set(h), out)
            handed = lax.ppermute(h, "s", [(k, (k + 1) % n) for k in range(n)])
            if self.wrong == "stopped":
                handed = jnp.where(me == n - 1, handed, lax.stop_gradient(handed))
            return (handed, out), h if self.form == "list" else None

        (_, out), every = lax.scan(turn, (jnp.zeros_like(x[0]), jnp.zeros_like(x)), jnp.arange(BATCHES + n - 1))
        out = every[n - 1 :] if self.form == "list" else out
        return lax.psum(jnp.where(me == n - 1, out, 0), "s")

    def verdict(self) -> Verdict:
        n = self.stages
        mesh = AbstractMesh((n,), ("s",), axis_types=(AxisType.Auto,))
        local = jax.shard_map(self.local, mesh=mesh, in_specs=(P("s"), P()), out_specs=P(), check_vma=False)
        blocks = n * self.layers
        weights_of = (blocks, WIDE, INNER), (blocks, INNER), (blocks, INNER, WIDE), (blocks, WIDE)
        shapes = *weights_of, (BATCHES, ROWS, WIDE)
        *weights, x = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes)

        def slope(function: Callable[..., Array]) -> Any:
            return jax.jit(jax.grad(lambda w, x: jnp.mean(function(w, x) ** 2))).trace(tuple(weights), x)

        return hlo_verify.verify(slope(self.whole), slope(local), refute=False, limits=LIMITS).verdict


GELU = Pipeline()
TANH = replace(GELU, activation=jnp.tanh)
LAYERS = replace(TANH, layers=2)
slow = pytest.mark.slow


RIGHT = {
    "tanh": TANH,
    "tanh_2": replace(TANH, stages=2),
    "tanh_4_plain": replace(TANH, stages=4, is_residual=False),
    "layers": LAYERS,
    "layers_2": replace(LAYERS, stages=2),
    "layers_4_plain": replace(LAYERS, stages=4, is_residual=False),
    "layers_4_slots": replace(LAYERS, stages=4, is_residual=False, form="slots"),
    "layers_6_slots": replace(LAYERS, stages=6, is_residual=False, form="slots"),
    "gelu": GELU,
    "gelu_2": replace(GELU, stages=2),
    "gelu_4": replace(GELU, stages=4),
    "gelu_slots": replace(GELU, form="slots"),
    "gelu_plain": replace(GELU, is_residual=False),
}


@pytest.mark.parametrize(
    "name", [each if each.startswith("tanh") else pytest.param(each, marks=slow) for each in RIGHT]
)
def test_gradients(name: str) -> None:
    assert RIGHT[name].verdict() is Verdict.PROVED


@pytest.mark.parametrize("stages", [4, *(pytest.param(count, marks=slow) for count in (2, 64))])
@pytest.mark.parametrize(
    "wrong", ["stopped", *(pytest.param(each, marks=slow) for each in ("late", "odd_device", "residual"))]
)
@pytest.mark.parametrize("pipeline", [TANH, pytest.param(GELU, marks=slow)], ids=["tanh", "gelu"])
def test_wrong_gradients(pipeline: Pipeline, wrong: str, stages: int) -> None:
    assert replace(pipeline, stages=stages, wrong=wrong).verdict() is Verdict.UNKNOWN


BETWEEN = ["between_on_one", "between_first", "between_last", "between_in_turn"]


@slow
@pytest.mark.parametrize("stages", [2, 4, 64])
@pytest.mark.parametrize("wrong", BETWEEN)
def test_wrong_between_layers(wrong: str, stages: int) -> None:
    pipeline = replace(LAYERS, is_residual=False, form="slots")
    assert replace(pipeline, stages=stages, wrong=wrong).verdict() is Verdict.UNKNOWN


@slow
@pytest.mark.parametrize("stages", [2, 4, 64])
@pytest.mark.parametrize("wrong", ["stopped", "late", "odd_device", "residual", "biases", *BETWEEN])
def test_wrong_gradients_of_layers(wrong: str, stages: int) -> None:
    assert replace(LAYERS, stages=stages, wrong=wrong).verdict() is Verdict.UNKNOWN
