"""Loops of the logical module that compute the same have one name, whatever else is between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from hlo_verify.ops.induction import LoopBook
from hlo_verify.ops.values import Context, Value, positions
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.interpret import run
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.term import tensor
from tests.support.lowering import floats

STEPS = 100
"""More than are unrolled."""

BETWEEN = 5
"""Loops that are numbered between those that are the same, so that these have other names."""

Step = Callable[[jax.Array, jax.Array, float], jax.Array]
Loop = Callable[[jax.Array, jax.Array], jax.Array]

STEPS_OF: dict[str, Step] = {
    "a product": lambda x, w, c: jnp.tanh(c * (x @ w) + x),
    "two products": lambda x, w, c: jnp.tanh(c * (x @ w) + jnp.sin(w @ x.T).T),
    "a product of products": lambda x, w, c: c * jnp.sin(x @ w) * jnp.cos((w * w) @ x.T).T,
    "a maximum": lambda x, w, c: jnp.max(c * x[:, :, None] * w + w * jnp.sin(x)[:, None, :], axis=1),
    "a sum of functions": lambda x, w, c: jnp.sum(jnp.sin(c * x[:, :, None] * w + jnp.exp(x)[:, None, :]), axis=1),
    "a choice": lambda x, w, c: jnp.sum(jnp.where(x[:, :, None] > w, c * x[:, :, None], x[:, None, :]), axis=1),
}


def loop(step: Step, c: float, steps: int = STEPS) -> Loop:
    return lambda a, w: lax.fori_loop(0, steps, lambda t, x: step(x, w, c), a)


def loops_of(*parts: Loop) -> int:
    """How many loops there are names for in a program that adds up some."""

    def function(a: jax.Array, w: jax.Array) -> jax.Array:
        return sum((jnp.sin(part(a, w)) for part in parts), jnp.zeros_like(a))

    module = load(jax.jit(function).lower(*floats((8, 6), (6, 6))).as_text())
    with Session().on() as session:
        book = LoopBook(lambda *_: [], session)
        values = [
            Value(kind, algebra.read(tensor("argument", name, kind.dtype, kind.shape), positions(kind.shape)))
            for name, kind in zip(module.argument_names, module.main.argument_types, strict=True)
        ]
        run(module.main, values, replace(Context(None, 1, 1, run), loops=book))
        return len(book)


@pytest.mark.parametrize("step", STEPS_OF)
def test_loops_are_the_same_whatever_their_names_are(step: str) -> None:
    """Names have a part in the order of what definitions depend on."""
    same = loop(STEPS_OF[step], 0.5)
    others = [loop(STEPS_OF[step], n + 2.0) for n in range(BETWEEN)]
    assert loops_of(same, *(part for other in others for part in (other, same))) == 1 + BETWEEN


@pytest.mark.parametrize("step", STEPS_OF)
def test_loops_that_differ_are_not_the_same(step: str) -> None:
    by = STEPS_OF[step]
    others: list[Loop] = [
        loop(by, 0.25),
        loop(by, 0.5, STEPS + 1),
        lambda a, w: loop(by, 0.5)(2 * a, w),
        lambda a, w: loop(by, 0.5)(a, w.T),
        loop(lambda x, w, c: by(x, w, c) + w[0], 0.5),
        lambda a, w: lax.fori_loop(0, STEPS, lambda t, x: by(x, w, 0.5) * jnp.float32(t), a),
    ]
    assert loops_of(loop(by, 0.5), *others) == 1 + len(others)
