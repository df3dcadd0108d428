"""The pipeline of JAX's documentation, written out in Python: microbatches come round a ring to the first device, and
go on from the last; a state is kept in a list of one, and nobody writes what is not needed of the last turn."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import Array, lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict

WRONG = "short rotation given other_stage odd_turn odd_device last_turn first_turn turned_back kept"


def verdict(n: int, wrong: str = "") -> Verdict:
    def shift(x: Array, step: int = 1) -> Array:
        return lax.ppermute(x, "s", [(k, (k + step) % n) for k in range(n)])

    def local(ws: Array, inputs: Array) -> Array:
        stage = lax.axis_index("s")
        outputs, state = jnp.zeros_like(inputs), jnp.zeros_like(inputs)
        count = 2 * n - 1 - (wrong == "short")
        for i in range(count):
            state = state.at[0].set(jnp.where(stage == (wrong == "other_stage"), inputs[0], state[0]))
            odd = {"odd_turn": n, "last_turn": count - 1, "first_turn": 0}.get(wrong) == i
            state = jax.vmap(lambda w, x: jax.nn.relu(x @ w))(ws, state) * (2 if odd else 1)
            if wrong == "odd_device":
                state = jnp.where(stage == n // 2, 2 * state, state)
            outputs = outputs.at[0].set(jnp.where((stage == n - 1) | (wrong == "kept"), state[-1], outputs[0]))
            state = jnp.roll(state, 1, axis=0).at[0].set(shift(state[-1], 2 if wrong == "rotation" else 1))
            inputs = shift(inputs, -1 if wrong == "given" else 1)
            outputs = shift(outputs)
        return shift(outputs, -1 if wrong == "turned_back" else 1)

    def whole(ws: Array, x: Array) -> Array:
        return lax.scan(lambda h, w: (jax.nn.relu(h @ w), None), x, ws)[0]  # type: ignore[no-any-return]

    mesh = AbstractMesh((n,), ("s",), axis_types=(AxisType.Auto,))
    mapped = jax.shard_map(local, mesh=mesh, in_specs=(P("s"), P("s")), out_specs=P("s"), check_vma=False)
    shapes = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((n, 3, 3), (n, 2, 3))]
    pair = (jax.jit(function).trace(*shapes) for function in (whole, mapped))
    return hlo_verify.verify(*pair).verdict


@pytest.mark.parametrize("stages", [8, 64])
def test_the_documentation(stages: int) -> None:
    assert verdict(stages) is Verdict.PROVED


@pytest.mark.drawn(1)
@pytest.mark.parametrize("wrong", WRONG.split())
@pytest.mark.parametrize("stages", [4, 8])
def test_nearly_the_documentation(stages: int, wrong: str) -> None:
    assert verdict(stages, wrong) is Verdict.REFUTED
