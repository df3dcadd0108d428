"""What a loop carries is a number in every turn where it starts from one and a turn makes numbers of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.limits import Limits

N = 2
LIMITS = Limits(devices_apart=1, unrolled_turns=1)
"""With these no loop is written out."""
Body = Callable[..., Any]


def split(body: Body, ins: Any, outs: Any) -> Body:
    mesh = jax.sharding.AbstractMesh((N,), ("d",), axis_types=(AxisType.Auto,))
    return jax.shard_map(body, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=False)


def floats(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def norm(h: Any) -> Any:
    return (h - h.mean(-1, keepdims=True)) / jnp.sqrt(h.var(-1, keepdims=True) + 1e-5)


def same_norm(h: Any) -> Any:
    c = h - jnp.sum(h, -1, keepdims=True) / h.shape[-1]
    return c * lax.rsqrt(jnp.mean(jnp.square(c), -1, keepdims=True) + 1e-5)


def layers(w: Any, g: Any, x: Any, of: Body) -> Any:
    return lax.scan(lambda h, p: (h + jnp.tanh((of(h) * p[1]) @ p[0]), None), x, (w, g))[0]


def gradients(w: Any, g: Any, x: Any, t: Any) -> Any:
    return jax.grad(lambda w, g: jnp.sum((layers(w, g, x, norm) - t) ** 2), (0, 1))(w, g)


def step(of: Body, times: float) -> Body:
    """FSDP: weights that are gathered layer by layer, whose gradients are scattered, and rows that are split."""

    def local(w: Any, g: Any, x: Any, t: Any) -> Any:
        def loss(w: Any, g: Any) -> Any:
            def layer(h: Any, p: Any) -> Any:
                w, g = (lax.all_gather(q, "d", axis=q.ndim - 1, tiled=True) for q in p)
                return h + jnp.tanh((of(h) * g) @ w), None

            return jnp.sum((lax.scan(jax.checkpoint(layer), x, (w, g))[0] - t) ** 2)

        a, b = jax.grad(loss, (0, 1))(w, g)
        return a, b * times

    return split(local, (P(None, None, "d"), P(None, "d"), P("d"), P("d")), (P(None, None, "d"), P(None, "d")))


@pytest.mark.parametrize(
    ("of", "times", "expected"),
    [(same_norm, 1, Verdict.PROVED), (same_norm, 2, Verdict.UNKNOWN), (lambda h: h, 1, Verdict.UNKNOWN)],
    ids=["right", "doubled", "without the norm"],
)
def test_gradients_of_normed_layers(of: Body, times: float, expected: Verdict) -> None:
    """The reference keeps what its norm made on the way, and the devices make it anew from what came into a layer."""
    given = floats(3, 2, 2), floats(3, 2), floats(4, 2), floats(4, 2)
    pair = (jax.jit(function).trace(*given) for function in (gradients, step(of, times)))
    found = hlo_verify.verify(*pair, refute=False, limits=LIMITS)
    assert found.verdict is expected


def total(x: Any) -> Any:
    """Rows that are added up one after another."""
    return lax.fori_loop(0, 3, lambda t, s: s + x[t], jnp.zeros(4))


def beside(first: float, turn: Body) -> Body:
    """The same, and 0 times what a loop carries beside it."""

    def local(x: Any) -> Any:
        def body(t: Any, state: Any) -> Any:
            s, h = state
            return s + x[t] + 0.0 * h, turn(h, x[t])

        return lax.fori_loop(0, 3, body, (jnp.zeros(2), jnp.full(2, first)))[0]

    return split(local, P(None, "d"), P("d"))


@pytest.mark.parametrize(
    ("first", "turn", "expected"),
    [
        (0.0, lambda h, x: h + x, Verdict.PROVED),
        (0.0, lambda h, x: jnp.exp(h) - jnp.tanh(x), Verdict.PROVED),
        (-jnp.inf, jnp.maximum, Verdict.UNKNOWN),
        (1.0, lambda h, x: 1 / (h - 1), Verdict.UNKNOWN),
        (1.0, lambda h, x: h / x, Verdict.UNKNOWN),
        (1.0, lambda h, x: jnp.log(h * x), Verdict.UNKNOWN),
    ],
    ids=["sum", "exponential", "maximum", "divided by 0", "divided", "logarithm"],
)
def test_nothing_times_what_is_carried(first: float, turn: Body, expected: Verdict) -> None:
    """It is nothing where all turns carry numbers: a maximum starts from minus infinity, and a quotient may be none."""
    found = hlo_verify.check(total, beside(first, turn), floats(3, 4), refute=False)
    assert found.verdict is expected
