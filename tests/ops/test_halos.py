"""Values put end to end that are one function of the place, and programs whose windows reach into other shards."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.ops.halos import one_function
from hlo_verify.ops.movement import concatenated
from hlo_verify.ops.values import Value, position
from hlo_verify.program.ir import TensorType
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.definitions import define
from hlo_verify.terms.term import Poly, tensor
from tests.support.evaluate import Evaluator

OWN = 4


def rows(start: int, size: int, d: Index) -> Index:
    """The rows of the whole that device d has from its own row `start` on."""
    own = position(0, size) if size > 1 else expr.constant(0)
    return expr.add(expr.scale(d, OWN), expr.shift(own, start))


def pieces(draw: random.Random, read: Callable[[Index], Poly], d: Index, devices: int) -> list[tuple[Value, int]]:
    """A shard between rows of those beside it, of which some are others than they ought to be."""
    before, behind = draw.randrange(3), draw.randrange(3)
    found = []
    for start, size in ((-before, before), (0, OWN), (OWN, behind)):
        if size:
            place = rows(start + draw.choice((0, 0, 0, 0, 0, 1, -1)), size, d)
            held = guards.interval(place, draw.choice((0, 0, 0, 1)), devices * OWN - draw.choice((1, 1, 1, 0)))
            term = algebra.scale(algebra.multiply(held, read(place)), draw.choice((1, 1, 1, 1, 2)))
            found.append((Value(TensorType((size,), "f32"), term), size))
    return found


@pytest.mark.parametrize("devices", [2, 3])
@pytest.mark.parametrize("kind", ["tensor", "definition", "two tensors"])
def test_one_function_is_what_the_pieces_are(kind: str, devices: int) -> None:
    """At every place on every device; of halos of up to two rows that are right it is found."""
    x, y = (tensor("argument", name, "f32", (devices * OWN,)) for name in "xy")
    v, device = expr.fresh("v", 2), expr.fresh("d", devices)
    draw, found = random.Random(7), 0

    def read(place: Index) -> Poly:
        if kind == "definition":
            return define("sum", [v], (algebra.read(x, [expr.add(place, expr.of_var(v))]),))
        first = algebra.read(x, [place])
        return algebra.multiply(first, algebra.read(y, [place])) if kind == "two tensors" else first

    evaluator = Evaluator({t: [draw.randrange(1, 99) for _ in range(devices * OWN)] for t in (x, y)})
    for _ in range(300):
        parts = pieces(draw, read, expr.of_var(device), devices)
        size = sum(n for _, n in parts)
        where = (position(0, size),)
        together = one_function(parts, 0, where[0])
        if together is None:
            continue
        found += 1
        type_ = TensorType((size,), "f32")
        given, expected = (
            evaluator.value(Value(type_, p), {device: devices}) for p in (together, concatenated(parts, 0, where))
        )
        assert (given == expected).all(), (parts, together)
    assert found > 20


ROWS = jax.ShapeDtypeStruct((2, 32, 3), jnp.float32)


def smoothed(x: Any, pad: Any) -> Any:
    """Sums of three means of three rows each; what lies around them is what `pad` puts there."""
    means = lax.reduce_window(pad(jnp.tanh(x)), 0.0, lax.add, (1, 3, 1), (1, 1, 1), "VALID") / 3
    return lax.reduce_window(pad(means), 0.0, lax.add, (1, 3, 1), (1, 1, 1), "VALID")


def zeros(x: Any) -> Any:
    return jnp.pad(x, ((0, 0), (1, 1), (0, 0)))


def halo(kind: str, devices: int) -> Callable[[Any], Any]:
    def around(x: Any) -> Any:
        up, down = [(k - 1, k) for k in range(1, devices)], [(k, k - 1) for k in range(1, devices)]
        if kind == "round the ring":
            up.append((devices - 1, 0))
        before = lax.ppermute(x[:, :1] if kind == "first row" else x[:, -1:], "x", up)
        behind = lax.ppermute(x[:, :1], "x", up if kind == "same way" else down)
        return jnp.concatenate([behind, x, before] if kind == "exchanged" else [before, x, behind], 1)

    return around


def proved(kind: str, devices: int) -> bool:
    mesh = AbstractMesh((devices,), ("x",), axis_types=(AxisType.Auto,))
    around = halo(kind, devices)
    mapped = jax.shard_map(lambda x: smoothed(x, around), mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"))
    traced = [jax.jit(function).trace(ROWS) for function in (lambda x: smoothed(x, zeros), mapped)]
    return hlo_verify.verify(*traced, devices=devices, refute=False).verdict is Verdict.PROVED


@pytest.mark.parametrize("devices", [2, 4])
def test_windows_of_windows_over_halos(devices: int) -> None:
    assert proved("right", devices)


@pytest.mark.parametrize("devices", [2, 4])
@pytest.mark.parametrize("kind", ["round the ring", "first row", "same way", "exchanged"])
def test_other_halos(kind: str, devices: int) -> None:
    assert not proved(kind, devices)
