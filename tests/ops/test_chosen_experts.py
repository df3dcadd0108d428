"""Gradients of routers that give each row to its best expert, whose probability scales what that makes: each device is
one expert, and adds up what it makes for the rows that chose it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict

EXPERTS, ROWS = 4, 8
MESH = AbstractMesh((EXPERTS,), ("x",), axis_types=(AxisType.Auto,))
SHAPES = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((3, EXPERTS), (EXPERTS, 3, 2), (ROWS, 3), (ROWS, 2))]

Loss = Callable[[jax.Array, jax.Array], jax.Array]
LOSSES: dict[str, Loss] = {
    "a product": lambda y, t: jnp.sum(y * t),
    "squares": lambda y, t: jnp.sum((y - t) ** 2),
}


def chosen(by: str, gate: jax.Array, x: jax.Array) -> jax.Array:
    """The expert of each row."""
    match by:
        case "probability":
            return jnp.argmax(jax.nn.softmax(x @ gate), axis=-1)
        case "score":
            return jnp.argmax(x @ gate, axis=-1)
        case "other scores":
            return jnp.argmax(x @ lax.stop_gradient(gate * gate), axis=-1)
        case _:
            return jnp.argmin(x @ gate, axis=-1)


def whole(by: str, loss: Loss, gate: jax.Array, w: jax.Array, x: jax.Array, t: jax.Array) -> jax.Array:
    p = jax.nn.softmax(x @ gate) * jax.nn.one_hot(chosen(by, gate, x), EXPERTS)
    return loss(jnp.einsum("be,bi,eij->bj", p, x, w), t)


def local(by: str, loss: Loss, wrong: str, gate: jax.Array, w: jax.Array, x: jax.Array, t: jax.Array) -> jax.Array:
    d = lax.axis_index("x")
    p, best = jax.nn.softmax(x @ gate), chosen(by, gate, x)
    own = lax.dynamic_index_in_dim(p, (d + 1) % EXPERTS if wrong == "next" else d, axis=1)
    mine = jnp.where((best == d)[:, None], jnp.square(own) if wrong == "square" else own, 0.0)
    return loss(lax.psum(mine * (x @ w[0]), "x"), t)


def verdict(by: str, loss: str, wrong: str = "", local_by: str = "") -> Verdict:
    """Of the router's gradient."""

    def gradient(*args: jax.Array) -> jax.Array:
        return lax.pmean(jax.grad(partial(local, local_by or by, LOSSES[loss], wrong))(*args), "x")

    given = P(), P("x"), P(), P()
    parts = jax.shard_map(gradient, mesh=MESH, in_specs=given, out_specs=P(), check_vma=False)
    reference = jax.jit(jax.grad(partial(whole, by, LOSSES[loss])))
    return hlo_verify.verify(reference.trace(*SHAPES), jax.jit(parts).trace(*SHAPES), refute=False).verdict


@pytest.mark.parametrize("by", ["probability", "score", "other scores"])
@pytest.mark.parametrize("loss", LOSSES)
def test_each_device_is_an_expert(by: str, loss: str) -> None:
    assert verdict(by, loss) is Verdict.PROVED


@pytest.mark.parametrize(
    "wrong",
    [
        {"wrong": "next"},
        {"wrong": "square"},
        {"local_by": "least"},
        {"local_by": "other scores"},
    ],
    ids=["another's probability", "its square", "the least", "other scores"],
)
def test_other_routers_are_not(wrong: dict[str, str]) -> None:
    assert verdict("probability", "a product", **wrong) is not Verdict.PROVED
