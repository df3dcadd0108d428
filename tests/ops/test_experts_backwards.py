"""Gradients of experts that rows choose: by the best score, or by the best ones, each with its weight."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.equality import cases
from hlo_verify.index import expr
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.functions import EXPONENTIAL, Function
from hlo_verify.terms.laws import apply
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Poly, tensor
from tests.support.lowering import floats

EXPERTS = 4
MESH = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))

Loss = Callable[..., jax.Array]


def best(x: jax.Array, router: jax.Array, weights: jax.Array, t: jax.Array) -> jax.Array:
    """Each row goes to the expert with the best score."""
    chosen = jnp.argmax(x @ router, axis=-1)
    return jnp.sum(jnp.tanh(jnp.einsum("td,tdf->tf", x, weights[chosen])) * t)


def best_sent(wrong: str | None, x: jax.Array, router: jax.Array, weights: jax.Array, t: jax.Array) -> jax.Array:
    """Rows are 0 for all other experts: each device makes those of its own experts."""
    chosen = jnp.argmax(x @ router, axis=-1)
    hot = jax.nn.one_hot(chosen + (wrong == "next expert"), EXPERTS)
    sent = lax.all_to_all(hot.T[:, :, None] * x, "x", 0, 1, tiled=True)
    made = jnp.tanh(jnp.einsum("etd,edf->etf", sent, weights))
    back = lax.all_to_all(made, "x", 1, 0, tiled=True)
    kept = hot * hot.sum(0) if wrong == "by how many" else hot
    return lax.psum(jnp.sum(jnp.einsum("te,etf->tf", kept, back) * t), "x")


def two(x: jax.Array, router: jax.Array, weights: jax.Array, t: jax.Array) -> jax.Array:
    """What the two best experts make of a row, each with its weight."""
    scores, chosen = lax.top_k(x @ router, 2)
    made = jnp.tanh(jnp.einsum("td,edf->tef", x, weights))
    weighed = jnp.take_along_axis(made, chosen[:, :, None], axis=1) * jax.nn.softmax(scores)[:, :, None]
    return jnp.sum(weighed * t[:, None])


def two_masked(wrong: str | None, x: jax.Array, router: jax.Array, weights: jax.Array, t: jax.Array) -> jax.Array:
    """Each device makes what its experts make of all rows, with weights that are 0 where they are not chosen."""
    scores, chosen = lax.top_k(x @ router, 2)
    gates = jax.nn.softmax(scores)
    hot = jax.nn.one_hot(chosen[:, ::-1] if wrong == "each other's weights" else chosen, EXPERTS)
    gates = lax.stop_gradient(gates) if wrong == "weights held constant" else gates
    all_gates = jnp.sum(hot * gates[:, :, None], axis=1)
    own = lax.dynamic_slice_in_dim(all_gates, lax.axis_index("x") * 2, 2, axis=1)
    made = jnp.einsum("te,tef->tf", own, jnp.tanh(jnp.einsum("td,edf->tef", x, weights)))
    return jnp.sum(lax.psum(made, "x") * t)


def switched(x: jax.Array, router: jax.Array, weights: jax.Array, t: jax.Array) -> jax.Array:
    """The best expert's row by its weight, and a loss that keeps experts equally busy."""
    gates = jax.nn.softmax(x @ router)
    hot = jax.nn.one_hot(jnp.argmax(gates, axis=-1), EXPERTS)
    made = jnp.einsum("te,tef->tf", hot * gates, jax.nn.relu(jnp.einsum("td,edf->tef", x, weights)))
    return jnp.mean((made - t) ** 2) + 0.25 * jnp.sum(hot.mean(0) * gates.mean(0))


def switched_rows(wrong: str | None, x: jax.Array, router: jax.Array, weights: jax.Array, t: jax.Array) -> jax.Array:
    """Each device has its own rows, and knows how busy the experts are with all."""
    busy = jax.nn.one_hot(jnp.argmax(x @ router, axis=-1), EXPERTS).mean(0)
    busy = busy if wrong == "a device's own" else lax.pmean(busy, "x")
    gates = jax.nn.softmax(x @ router)
    chosen = jnp.argmin(gates, axis=-1) if wrong == "the worst" else jnp.argmax(gates, axis=-1)
    made = jnp.take_along_axis(gates, chosen[:, None], 1) * jax.nn.relu(jnp.einsum("td,tdf->tf", x, weights[chosen]))
    return lax.pmean(jnp.mean((made - t) ** 2) + 0.25 * jnp.sum(busy * gates.mean(0)), "x")


ROWS = P("x")


@pytest.mark.parametrize(
    ("reference", "local", "given", "argument", "wrong"),
    [
        *((best, best_sent, (ROWS, P(), ROWS, ROWS), 2, w) for w in (None, "next expert", "by how many")),
        *(
            (two, two_masked, (P(), P(), ROWS, P()), 0, w)
            for w in (None, "each other's weights", "weights held constant")
        ),
        *((switched, switched_rows, (ROWS, P(), P(), ROWS), n, w) for n, w in ((1, None), (2, None), (1, "the worst"))),
        (switched, switched_rows, (ROWS, P(), P(), ROWS), 1, "a device's own"),
    ],
)
def test_gradients(reference: Loss, local: Loss, given: tuple[P, ...], argument: int, wrong: str | None) -> None:
    def loss(*operands: jax.Array) -> jax.Array:
        return local(wrong, *operands)

    distributed = jax.shard_map(loss, mesh=MESH, in_specs=given, out_specs=P(), check_vma=False)
    shapes = floats((4, 2), (2, EXPERTS), (EXPERTS, 2, 2), (4, 2))
    found = hlo_verify.check(jax.grad(reference, argument), jax.grad(distributed, argument), *shapes)
    assert found.verdict is (Verdict.REFUTED if wrong else Verdict.PROVED)


@pytest.mark.parametrize("shape", ["equal", "next", "at most"])
@pytest.mark.parametrize("is_named", [False, True])
def test_what_is_looked_up_in_a_definition_is_told_by_a_condition(shape: str, is_named: bool) -> None:
    """`[e[i] = k]*f(sum j. w[e[i], j])` is `[e[i] = k]*f(sum j. w[k, j])`, and under another condition it is not."""
    i, k, j = expr.fresh("i", 6), expr.fresh("k", EXPERTS), expr.fresh("j", 3)
    looked_up = tensor("argument", "e", "i32", (6,))
    weights = tensor("argument", "w", "f32", (EXPERTS, 3))
    entry = algebra.as_index(algebra.read(looked_up, (expr.of_var(i),)), 0, EXPERTS - 1)
    ahead = expr.subtract(entry, expr.of_var(k))
    condition = guards.interval(ahead, None if shape == "at most" else int(shape == "next"), int(shape == "next"))

    def made(row: expr.Index) -> Poly:
        total = reduce_sum([j], apply(EXPONENTIAL, (algebra.read(weights, (row, expr.of_var(j))),)))
        return apply(Function("unknown"), (total,)) if is_named else total

    one, other = (algebra.multiply(condition, made(row)) for row in (entry, expr.of_var(k)))
    assert cases.equal(one, other) is (shape == "equal")
