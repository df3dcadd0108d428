"""What is written out turn by turn in Python is a loop: the same in numbers, and proved as one on many devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.evaluate import dense, evaluate, of_dense
from hlo_verify.limits import Limits
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.rolling import rolled
from hlo_verify.program.ir import Module
from tests.passes.prove.each_device.programs import on, turned
from tests.passes.prove.each_device.ring_attention import INFINITE, Ring

LIMITS = Limits(devices_apart=1)

RING = Ring(devices=64)
RINGS = {
    "all_seen": replace(RING, mask="", start=INFINITE),
    "masked": RING,
    "masked_by_infinity": replace(RING, masked=INFINITE, start=INFINITE),
    "of_256": replace(RING, devices=256, mask=""),
}
WRONG = [replace(RING, wrong=wrong) for wrong in ("owner", "strict", "no_rescaling", "short")]
WRONG += [replace(RING, mask="", wrong=wrong) for wrong in ("no_rescaling", "short")]
WRONG += [replace(RING, masked=INFINITE, start=INFINITE, wrong=wrong) for wrong in ("owner", "strict")]


def verdict(ring: Ring) -> Verdict:
    return hlo_verify.verify(*ring.pair(), refute=False, limits=LIMITS).verdict


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", RINGS)
def test_rings(name: str) -> None:
    assert verdict(RINGS[name]) is Verdict.PROVED


@pytest.mark.drawn(1)
@pytest.mark.parametrize("ring", WRONG, ids=str)
@pytest.mark.parametrize("devices", [4, 8])
def test_wrong_rings(ring: Ring, devices: int) -> None:
    assert verdict(replace(ring, devices=devices)) is not Verdict.PROVED


PLACED = on({"i": 4}, (P(None, "i"), P()), P(None, "i"), (8, 8, 3), (3, 3))

Local = Callable[[jax.Array, jax.Array], jax.Array]


def turns(step: Callable[[Any, Any, int], Any], count: int = 8, first: Any = 0.0) -> Local:
    def local(x: jax.Array, w: jax.Array) -> jax.Array:
        h = x[0] + first
        for t in range(count):
            h = step(h, (x, w), t)
        return jnp.broadcast_to(h, x.shape)

    return local


def in_turn(h: jax.Array, given: Any, t: int) -> jax.Array:
    return jnp.tanh(h @ given[1]) + given[0][t]


def counted(h: jax.Array, given: Any, t: int) -> jax.Array:
    start = (lax.axis_index("i") + 3 * t) % 4
    return (
        lax.ppermute(h, "i", turned(4, 1)) * jnp.float32(0.5)
        + lax.dynamic_slice_in_dim(given[0][(5 * t) % 8], start, 1, 0)[0]
    )


def two_ago(pair: Any, given: Any, t: int) -> Any:
    del t
    return pair[1], pair[0] @ given[1]


def of_pairs(x: jax.Array, w: jax.Array) -> jax.Array:
    pair = x[0], x[1]
    for t in range(9):
        pair = two_ago(pair, (x, w), t)
    return jnp.broadcast_to(pair[0] - pair[1], x.shape)


def kept(x: jax.Array, w: jax.Array) -> jax.Array:
    made = [x[0]]
    for _ in range(8):
        made.append(jnp.sin(made[-1] @ w))
    return jnp.stack(made[:8])


def other_last(x: jax.Array, w: jax.Array) -> jax.Array:
    h = x[0]
    for t in range(9):
        h = jnp.sin(h @ (w if t < 8 else w.T)) + x[min(t, 7)]
    return jnp.broadcast_to(h, x.shape)


LOCAL: dict[str, Local] = {
    "in_turn": turns(in_turn),
    "late": turns(in_turn, 6, 1.0),
    "counted": turns(counted),
    "of_pairs": of_pairs,
    "kept": kept,
    "other_last": other_last,
}


@pytest.mark.parametrize("name", LOCAL)
def test_loops_compute_what_was_written_out(name: str) -> None:
    module = load(PLACED.lowered(PLACED.mapped(LOCAL[name])))
    loops = rolled(module)
    assert (loops is not None) == (name != "kept")
    given = [np.random.default_rng(seed).standard_normal(a.shape) for seed, a in enumerate(PLACED.arguments)]
    assert loops is None or _same(module, loops, given)


@pytest.mark.parametrize("wrong", ["", "owner", "short"])
def test_rings_compute_what_was_written_out(wrong: str) -> None:
    ring = Ring(devices=6, wrong=wrong)
    module = load(ring.pair()[1])
    loops = rolled(module)
    assert loops is not None
    assert len(loops.main.ops[-1].regions[0].ops) < len(module.main.ops[-1].regions[0].ops) / 2
    given = [np.random.default_rng(seed).standard_normal((12, 2)) for seed in range(3)]
    assert _same(module, loops, given)


def _same(module: Module, loops: Module, given: list[np.ndarray]) -> bool:
    found = [evaluate(each, [of_dense(a) for a in given], 1).results for each in (module, loops)]
    pairs = [(dense(a, 0), dense(b, 0)) for a, b in zip(*found, strict=True) if a is not None and b is not None]
    return bool(pairs) and all(np.allclose(a, b, rtol=1e-9, atol=1e-9) for a, b in pairs)
