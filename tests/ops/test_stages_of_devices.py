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


def normal(h: jax.Array) -> jax.Array:
    return h * lax.rsqrt(jnp.mean(h**2, -1, keepdims=True) + 1e-5)


def block(h: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.einsum("sbk,skn->sbn", normal(h), w) * jax.nn.silu(jnp.einsum("sbk,skn->sbn", h, w))


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


@pytest.mark.slow
@pytest.mark.parametrize("how", [{"first": 1}, {"step": 2}])
def test_other_stages_are_not_the_same(how: dict[str, int]) -> None:
    assert verdict(4, **how) is not Verdict.PROVED


def joined(a: jax.Array, b: jax.Array, g: jax.Array) -> jax.Array:
    """The gradient by the weights of what is joined, as multi-token prediction joins states and embeddings."""
    return jnp.tanh(jnp.concatenate([normal(a), normal(b)], 1).T @ g)


def in_windows(a: jax.Array, b: jax.Array, g: jax.Array, first: int = 1) -> jax.Array:
    """Columns of each device go round in a ring: which are of the one part, and which of the other, hangs on turns."""
    h, n, me = jnp.concatenate([normal(a), normal(b)], 1), lax.axis_size("s"), lax.axis_index("s")
    width = h.shape[1] // n
    pairs = [(k, (k - 1) % n) for k in range(n)]

    def turn(t: int, total: jax.Array) -> jax.Array:
        start = (me + t + first) % n * width
        return lax.ppermute(total, "s", pairs) + lax.dynamic_slice_in_dim(h, start, width, 1).T @ g

    return jnp.tanh(lax.fori_loop(0, n, turn, jnp.zeros((width, g.shape[1]))))


@pytest.mark.parametrize(
    ("stages", "first", "found"), [(4, 1, Verdict.PROVED), (16, 1, Verdict.PROVED), (4, 2, Verdict.UNKNOWN)]
)
def test_windows_of_what_is_joined(stages: int, first: int, found: Verdict) -> None:
    shapes = floats((2 * stages, 4 * stages), (2 * stages, 4 * stages), (2 * stages, OUT))
    placed = Placed(AbstractMesh((stages,), ("s",)), (P("s"), P("s"), P("s")), P("s"), shapes)
    pair = placed.pair(joined, lambda *args: in_windows(*args, first=first))
    assert hlo_verify.verify(*pair, refute=False, limits=Limits(devices_apart=1, unrolled_turns=1)).verdict is found
