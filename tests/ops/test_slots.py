"""Rows in slots: each goes to a place of its own, in a buffer of its expert's, and is read there again."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed

MESH = AbstractMesh((2,), ("e",))
EXPERTS, ROWS, WIDTH = 2, 6, 3
Body = Callable[..., jax.Array]
SHAPES = [
    jax.ShapeDtypeStruct((2 * ROWS, WIDTH), jnp.float32),
    jax.ShapeDtypeStruct((WIDTH, EXPERTS), jnp.float32),
    jax.ShapeDtypeStruct((EXPERTS, WIDTH, 4), jnp.float32),
]


def layer(x: jax.Array, router: jax.Array, weights: jax.Array) -> jax.Array:
    """What each row's expert makes of it."""
    return jnp.einsum("td,tdf->tf", x, weights[jnp.argmax(x @ router, -1)])


def exchanged(buffers: jax.Array, weights: jax.Array) -> jax.Array:
    """What the experts of all devices make of the rows in their buffers."""
    there = lax.all_to_all(buffers, "e", 0, 1, tiled=True)
    return lax.all_to_all(jnp.einsum("ecd,edf->ecf", there, weights), "e", 1, 0, tiled=True)


def numbered(form: str, expert: jax.Array) -> jax.Array:
    """The number of each row among those of its expert."""
    mine = jax.nn.one_hot(expert, EXPERTS, dtype=jnp.int32)
    same = expert[:, None] == expert
    before = jnp.arange(ROWS)[:, None] - jnp.arange(ROWS)
    match form:
        case "by a running count":
            return jnp.take_along_axis(jnp.cumsum(mine, 0) - 1, expert[:, None], 1)[:, 0]
        case "by a running count of floats":
            return ((jnp.cumsum(mine * 1.0, 0) * mine).sum(-1) - 1).astype(jnp.int32)
        case "by a masked sum":
            return (jnp.cumsum(mine, 0) * mine).sum(-1) - 1
        case "from the end":
            return (jnp.cumsum(mine[::-1], 0)[::-1] * mine).sum(-1) - 1
        case "by those before":
            return jnp.where(same & (before > 0), 1, 0).sum(1)
        case "by those after":
            return jnp.where(same & (before < 0), 1, 0).sum(1)
        case "by those up to it":
            return jnp.where(same & (before >= 0), 1, 0).sum(1) - 1
        case "two rows in a slot":
            return ((jnp.cumsum(mine, 0) * mine).sum(-1) - 1) // 2
        case "by those two before":
            return jnp.where(same & (before > 1), 1, 0).sum(1)
        case "by all but itself":
            return jnp.where(same & (before != 0), 1, 0).sum(1)
        case "by those of one expert":
            return jnp.cumsum(mine[:, 0]) - mine[:, 0]
        case "by those of the other":
            return jnp.where(~same & (before >= 0), 1, 0).sum(1)
        case "by a window":
            return jnp.where(same & (before >= 0) & (before < 3), 1, 0).sum(1) - 1
        case _:
            raise ValueError(form)


def scattered(form: str, x: jax.Array, router: jax.Array, weights: jax.Array) -> jax.Array:
    expert = jnp.argmax(x @ router, -1)
    slot = numbered(form, expert)
    made = exchanged(jnp.zeros((EXPERTS, ROWS, WIDTH)).at[expert, slot].set(x), weights)
    return made[expert, slot]


def in_one_dimension(form: str, x: jax.Array, router: jax.Array, weights: jax.Array) -> jax.Array:
    """Expert and number in one place: with too few places for an expert, those of two overlap."""
    expert = jnp.argmax(x @ router, -1)
    each = ROWS if form == "apart" else ROWS - 1
    slot = expert * each + numbered("by a running count", expert)
    buffers = jnp.zeros((EXPERTS * ROWS, WIDTH)).at[slot].set(x).reshape(EXPERTS, ROWS, WIDTH)
    return exchanged(buffers, weights).reshape(EXPERTS * ROWS, -1)[slot]


def multiplied(form: str, x: jax.Array, router: jax.Array, weights: jax.Array) -> jax.Array:
    """Rows brought to their slots, and back, by products with ones and zeros."""
    mine = jax.nn.one_hot(jnp.argmax(x @ router, -1), EXPERTS)
    slot = (jnp.cumsum(mine, 0) * mine - 1).astype(jnp.int32)
    slot = jnp.where(slot >= 0, slot // 2, slot) if form == "two rows in a slot" else slot
    held = jax.nn.one_hot(slot, ROWS if form != "of too few" else ROWS - 1) * mine[..., None]
    made = exchanged(jnp.einsum("tec,td->ecd", held, x), weights)
    return jnp.einsum("tec,ecf->tf", held, made)


def answer(body: Body) -> tuple[Verdict, bool]:
    """The verdict, and whether the two are equal for some numbers."""
    placed = Placed(MESH, (P("e"), P(), P("e")), P("e"), SHAPES)
    report = hlo_verify.verify(*placed.pair(layer, body), refute=False)
    return report.verdict, all(_are_equal(body, seed) for seed in range(4))


def _are_equal(body: Body, seed: int) -> bool:
    draw = np.random.default_rng(seed)
    args = [draw.standard_normal(shape.shape).astype(np.float32) for shape in SHAPES]
    if seed % 2:  # all rows are of one expert
        args[:2] = abs(args[0]), abs(args[1]) * [[1, -1]]
    split = [args[0].reshape(2, ROWS, WIDTH), args[2].reshape(2, 1, WIDTH, 4)]
    made = jax.vmap(lambda x, w: body(x, args[1], w), axis_name="e")(*split)
    return np.allclose(made.reshape(2 * ROWS, -1), layer(*args), rtol=1e-4, atol=1e-5)


RIGHT = (
    "by a running count",
    "by a running count of floats",
    "by a masked sum",
    "from the end",
    "by those before",
    "by those after",
    "by those up to it",
)
WRONG = (
    "two rows in a slot",
    "by those two before",
    "by all but itself",
    "by those of one expert",
    "by those of the other",
    "by a window",
)


@pytest.mark.parametrize("form", RIGHT)
def test_rows_are_found_in_their_slots(form: str) -> None:
    assert answer(lambda *args: scattered(form, *args)) == (Verdict.PROVED, True)


@pytest.mark.parametrize("form", WRONG)
def test_rows_that_share_a_slot_are_not(form: str) -> None:
    assert answer(lambda *args: scattered(form, *args)) == (Verdict.UNKNOWN, False)


@pytest.mark.parametrize("form", ["apart", "overlapping"])
def test_slots_in_one_dimension(form: str) -> None:
    right = form == "apart"
    assert answer(lambda *args: in_one_dimension(form, *args)) == (
        (Verdict.PROVED if right else Verdict.UNKNOWN),
        right,
    )


@pytest.mark.parametrize("form", ["of enough", "of too few", "two rows in a slot"])
def test_slots_by_products(form: str) -> None:
    right = form == "of enough"
    assert answer(lambda *args: multiplied(form, *args)) == ((Verdict.PROVED if right else Verdict.UNKNOWN), right)


def two_best(router: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    weights, experts = lax.top_k(jax.nn.softmax(x @ router), 2)
    return weights / weights.sum(-1, keepdims=True), experts


def of_the_best(form: str, x: jax.Array, router: jax.Array, weights: jax.Array) -> jax.Array:
    """What each device's own expert makes of all rows, weighted by those that it is one of the best of."""
    share, experts = two_best(router, x)
    own = lax.axis_index("e")
    if form == "by the best alone":
        share, experts = share[:, :1], experts[:, :1]
    mine = jnp.where(experts == (own + 1 if form == "by the next one" else own), share, 0).sum(-1)
    return lax.psum(mine[:, None] * (x @ weights[0]), "e")


@pytest.mark.parametrize("form", ["by its own", "by the best alone", "by the next one"])
def test_the_two_best_are_weights_of_ones_own_expert(form: str) -> None:
    shapes = [
        SHAPES[0],
        jax.ShapeDtypeStruct((WIDTH, 4), jnp.float32),
        jax.ShapeDtypeStruct((4, WIDTH, 4), jnp.float32),
    ]

    def layer(x: jax.Array, router: jax.Array, weights: jax.Array) -> jax.Array:
        share, experts = two_best(router, x)
        return jnp.einsum("tk,td,tkdf->tf", share, x, weights[experts])

    placed = Placed(AbstractMesh((4,), ("e",)), (P(), P(), P("e")), P(), shapes)
    report = hlo_verify.verify(*placed.pair(layer, lambda *args: of_the_best(form, *args)), refute=False)
    assert (report.verdict is Verdict.PROVED) is (form == "by its own")
