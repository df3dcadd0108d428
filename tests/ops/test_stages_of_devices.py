"""Products of what a stage of a pipeline selects, a stage a device: new inputs on the first, what it got elsewhere."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.limits import Limits
from tests.support.lowering import Placed, floats

ROWS, WIDE, OUT, TURNS = 6, 8, 8, 5


def block(h: jax.Array, w: jax.Array) -> jax.Array:
    scaled = h * lax.rsqrt(jnp.mean(h**2, -1, keepdims=True) + 1e-5)
    return jnp.einsum("sbk,skn->sbn", scaled, w) * jax.nn.silu(jnp.einsum("sbk,skn->sbn", h, w))


def whole(x: jax.Array, y: jax.Array, w: jax.Array) -> jax.Array:
    """The stages lie side by side."""
    is_first = lax.broadcasted_iota(int, x.shape, 0) == 0

    def turn(h: jax.Array, _: None) -> tuple[jax.Array, None]:
        return block(jnp.where(is_first, x, jnp.roll(h, 1, 0)), w), None

    return lax.scan(turn, y, None, length=TURNS)[0]


def local(x: jax.Array, y: jax.Array, w: jax.Array, first: int = 0, step: int = 1) -> jax.Array:
    stages = lax.axis_size("s")
    pairs = [(n, (n + step) % stages) for n in range(stages)]

    def turn(h: jax.Array, _: None) -> tuple[jax.Array, None]:
        return block(jnp.where(lax.axis_index("s") == first, x, lax.ppermute(h, "s", pairs)), w), None

    return lax.scan(turn, y, None, length=TURNS)[0]


def verdict(stages: int, **how: int) -> Verdict:
    mesh = AbstractMesh((stages,), ("s",))
    shapes = floats((stages, ROWS, WIDE), (stages, ROWS, WIDE), (stages, WIDE, OUT))
    pair = Placed(mesh, (P("s"), P("s"), P("s")), P("s"), shapes).pair(whole, lambda *args: local(*args, **how))
    limits = Limits(devices_apart=1, unrolled_turns=1)
    return hlo_verify.verify(*pair, refute=False, limits=limits).verdict


@pytest.mark.parametrize("stages", [2, 4, 64])
def test_what_stages_select_is_multiplied_in_pieces(stages: int) -> None:
    assert verdict(stages) is Verdict.PROVED


@pytest.mark.parametrize("how", [{"first": 1}, {"step": 2}])
def test_other_stages_are_not_the_same(how: dict[str, int]) -> None:
    assert verdict(4, **how) is not Verdict.PROVED
