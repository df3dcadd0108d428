"""Gradients of pipelines, which add up what each microbatch gives, against those of the whole batch."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.each_device import compare, comparison
from hlo_verify.session import Session

STAGES, BATCHES = 2, 3
MESH = AbstractMesh((STAGES,), ("x",), axis_types=(AxisType.Auto,))
SHAPES = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((STAGES, 2, 2), (BATCHES, 2, 2), (BATCHES, 2, 2))]


def squares(outputs: jax.Array, wanted: jax.Array) -> jax.Array:
    return jnp.mean((outputs - wanted) ** 2)


def reference(weights: jax.Array, x: jax.Array, wanted: jax.Array) -> jax.Array:
    def loss(weights: jax.Array) -> jax.Array:
        h = x
        for n in range(STAGES):
            h = jnp.tanh(h @ weights[n])
        return squares(h, wanted)

    return jax.grad(loss)(weights)


def pipeline(weights: jax.Array, x: jax.Array, wanted: jax.Array, bug: str = "") -> jax.Array:
    me, last = lax.axis_index("x"), STAGES - 1

    def turn(state: jax.Array, t: jax.Array) -> tuple[jax.Array, jax.Array]:
        given = x[jnp.clip(t, 0, BATCHES - 1)]
        h = jnp.tanh(jnp.where(me == 0, given, state) @ weights[0])
        return lax.ppermute(h, "x", [(k, k + 1) for k in range(last)]), h

    _, outputs = lax.scan(turn, jnp.zeros((2, 2)), jnp.arange(BATCHES + last))
    outputs = outputs[last:]
    found = squares(outputs[1:], wanted[1:]) if bug == "batch" else squares(outputs, wanted)
    return lax.psum(jnp.where(me == last, found, 0.0), "x")


def traced(bug: str) -> Iterator[Any]:
    places = (P("x"), P(), P())
    local = jax.shard_map(partial(pipeline, bug=bug), mesh=MESH, in_specs=places, out_specs=P(), check_vma=False)
    return (jax.jit(function).trace(*SHAPES) for function in (reference, jax.grad(local)))


def verdict(bug: str) -> Verdict:
    return hlo_verify.verify(*traced(bug), refute=False).verdict


def test_microbatches_add_up_to_the_batch() -> None:
    assert verdict("") is Verdict.PROVED


@pytest.mark.parametrize("bug", ["batch"])
def test_other_turns_do_not(bug: str) -> None:
    assert verdict(bug) is not Verdict.PROVED


def test_turns_are_looked_at_before_whole_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """On each device: as sums of products, gradients of longer pipelines run into the limit, after seconds."""
    pair = [load(str(each.lower(lowering_platforms=("cpu",)).as_text(debug_info=True))) for each in traced("")]
    monkeypatch.setattr(comparison, "same_network", lambda *_: pytest.fail("a whole sum"))
    with Session().on() as session:
        found = compare.each_device(*pair, session)
        assert found is not None and found.proves(0)
