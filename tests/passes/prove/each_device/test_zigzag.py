"""Rows in the order of a zigzag, so that each device has early and late ones: against a reference in plain order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.index import expr
from hlo_verify.passes.prove.each_device.comparison import _ranges
from hlo_verify.terms import algebra
from hlo_verify.terms.term import tensor
from tests.support.lowering import floats

Function = Callable[..., Any]
ROWS, MASKED = 16, -1e30


def order(devices: int) -> np.ndarray[Any, Any]:
    chunks = np.arange(ROWS).reshape(2 * devices, -1)
    return np.concatenate([np.concatenate([chunks[k], chunks[2 * devices - 1 - k]]) for k in range(devices)])


def zigzag(local: Function, devices: int, back: Function = np.argsort, count: int = 1) -> Function:
    """A program of each device, on rows in that order, with its results put back."""
    mesh = AbstractMesh((devices,), ("i",), axis_types=(AxisType.Auto,))
    mapped = jax.shard_map(local, mesh=mesh, in_specs=(P("i"),) * count, out_specs=P("i"), check_vma=False)

    def function(*args: jax.Array) -> jax.Array:
        rows = order(devices)
        return mapped(*(x[rows] for x in args))[back(rows)]  # type: ignore[no-any-return]

    return function


def places(devices: int, late: int = 1) -> jax.Array:
    """Where a device's rows are in plain order."""
    half, here = ROWS // (2 * devices), lax.axis_index("i")
    return jnp.concatenate([here * half + jnp.arange(half), (2 * devices - late - here) * half + jnp.arange(half)])


def is_proved(reference: Function, function: Function, *shapes: tuple[int, ...]) -> bool:
    traced = [jax.jit(f).trace(*floats(*shapes)) for f in (reference, function)]
    return hlo_verify.verify(*traced, refute=False).verdict is Verdict.PROVED


def weighted(x: jax.Array) -> jax.Array:
    return jnp.tanh(x) * jnp.arange(ROWS)[:, None]


WEIGHTED: dict[str, tuple[Function, bool]] = {
    "right": (lambda n: zigzag(lambda x: jnp.tanh(x) * places(n)[:, None], n), True),
    "not_put_back": (lambda n: zigzag(lambda x: jnp.tanh(x) * places(n)[:, None], n, back=np.sort), False),
    "put_on": (lambda n: zigzag(lambda x: jnp.tanh(x) * places(n)[:, None], n, back=lambda rows: rows), False),
    "other_late_rows": (lambda n: zigzag(lambda x: jnp.tanh(x) * places(n, 2)[:, None], n), False),
}


@pytest.mark.parametrize("name", WEIGHTED)
@pytest.mark.parametrize("devices", [2, 4])
def test_rows_that_know_their_place(name: str, devices: int) -> None:
    made, is_right = WEIGHTED[name]
    if (name, devices) == ("put_on", 2):
        devices = 4  # on two devices this order is its own inverse
    assert is_proved(weighted, made(devices), (ROWS, 3)) is is_right


def causal(q: jax.Array, k: jax.Array, v: jax.Array, masked: float = MASKED) -> jax.Array:
    scores = jnp.where(jnp.tril(jnp.ones((ROWS, ROWS), bool)), q @ k.T, masked)
    return jax.nn.softmax(scores, -1) @ v


def scattered(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """The same of rows that are in the order of a zigzag, which it puts back by a scatter."""
    rows = order(4)
    return causal(*(jnp.zeros_like(x).at[rows].set(x) for x in (q, k, v)))[rows]


@dataclass(frozen=True)
class Ring:
    """Keys and values, and where they are in plain order, go round a ring."""

    devices: int = 4
    masked: float = MASKED
    loop: bool = False
    wrong: str = ""

    def __call__(self, q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        n, own = self.devices, places(self.devices)
        around = [(i, (i + 1) % n) for i in range(n)]

        def turn(_: Any, carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            most, total, result, k, v, keys = carry
            seen = own[:, None] >= (own if self.wrong == "own_keys" else keys)[None]
            seen = own[:, None] > keys[None] if self.wrong == "strict" else seen
            scores = jnp.where(seen, q @ k.T, self.masked)
            greatest = jnp.maximum(most, scores.max(-1))
            p, scale = jnp.exp(scores - greatest[:, None]), jnp.exp(most - greatest)
            total = total * scale + p.sum(-1)
            result = result * (1.0 if self.wrong == "not_rescaled" else scale[:, None]) + p @ v
            return greatest, total, result, *(lax.ppermute(x, "i", around) for x in (k, v, keys))

        carry = jnp.full(len(q), self.masked), jnp.zeros(len(q)), jnp.zeros_like(q), k, v, own
        turns = n - 1 if self.wrong == "short" else n
        if self.loop:
            carry = lax.fori_loop(0, turns, turn, carry)
        else:
            carry = reduce(lambda now, t: turn(t, now), range(turns), carry)
        return carry[2] / carry[1][:, None]


RINGS = [Ring(2), Ring(), Ring(masked=-np.inf), Ring(loop=True), Ring(8, masked=-np.inf)]
WRONG = [
    *(Ring(2, wrong=wrong) for wrong in ("own_keys", "not_rescaled")),
    *(Ring(wrong=wrong) for wrong in ("own_keys", "not_rescaled", "short", "strict")),
    *(Ring(masked=-np.inf, wrong=wrong) for wrong in ("own_keys", "not_rescaled", "short", "strict")),
]


def _case(ring: Ring) -> Any:
    """Of more than two devices each takes many seconds."""
    return pytest.param(ring, id=str(ring), marks=pytest.mark.slow if ring.devices > 2 else ())


@pytest.mark.drawn(1)
@pytest.mark.parametrize("ring", [_case(ring) for ring in (*RINGS, *WRONG)])
def test_causal_attention(ring: Ring) -> None:
    reference = partial(causal, masked=ring.masked)
    shapes = [(ROWS, 4)] * 3
    assert is_proved(reference, zigzag(ring, ring.devices, count=3), *shapes) is (not ring.wrong)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["", "own_keys"])
def test_a_reference_that_puts_rows_back(wrong: str) -> None:
    mesh = AbstractMesh((4,), ("i",), axis_types=(AxisType.Auto,))
    mapped = jax.shard_map(Ring(wrong=wrong), mesh=mesh, in_specs=(P("i"),) * 3, out_specs=P("i"), check_vma=False)
    assert is_proved(scattered, mapped, *[(ROWS, 4)] * 3) is (not wrong)


def test_ranges_end_where_a_table_goes_on_otherwise() -> None:
    v = expr.var("p", 0, 8)
    x = tensor("argument", "x", "f32", (16,))
    values = (0, 1, 6, 7, 2, 3, 4, 12)
    term = algebra.read(x, [expr.table(values, expr.of_var(v))])
    cells = _ranges(v, (term,), 1)
    assert cells[0][0] == 0
    assert cells[-1][1] == 8
    for start, stop in cells:
        assert len(set(np.diff(values[start:stop]))) <= 1
