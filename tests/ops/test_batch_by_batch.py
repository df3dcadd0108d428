"""Programs that run one microbatch after another through all layers, against pipelines and devices that share them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import pytest
from jax import Array, lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.limits import Limits
from hlo_verify.ops import control
from hlo_verify.ops.counting import Shape
from hlo_verify.ops.induction import Reading, book_of, logical_loop
from hlo_verify.ops.values import ARBITRARY, Context, Value
from hlo_verify.program.ir import Op
from hlo_verify.terms.term import Read
from tests.ops.test_pipelining import Pipeline

LIMITS = Limits(devices_apart=1, unrolled_turns=1)


@dataclass(frozen=True)
class BatchByBatch(Pipeline):
    """A loop over microbatches around the loop over layers."""

    stages: int = 16
    batches: int = 4
    outer: str = "map"

    def whole(self, ws: Array, x: Array) -> Array:
        def layers(h: Array) -> Array:
            return lax.scan(lambda h, w: (self.function(h, w), None), h, ws)[0]  # type: ignore[no-any-return]

        if self.outer == "map":
            return lax.map(layers, x)  # type: ignore[no-any-return]
        if self.outer == "slots":
            return lax.fori_loop(0, len(x), lambda n, out: out.at[n].set(layers(x[n])), jnp.zeros_like(x))  # type: ignore[no-any-return]

        def turn(before: Array, own: Array) -> tuple[Array, Array]:
            made = layers(own + before if self.outer == "linked" else own)
            return made, made

        return lax.scan(turn, jnp.zeros_like(x[0]), x, reverse=self.outer == "backwards")[1]  # type: ignore[no-any-return]


MAP = BatchByBatch()
SLOPE = replace(MAP, gradient=(0, 1))
RIGHT = {
    "map": MAP,
    "64": replace(MAP, stages=64, form="list"),
    "backwards": replace(MAP, outer="backwards"),
    "slots": replace(MAP, outer="slots", layers=2),
    "slope": SLOPE,
    "slope_scan": replace(SLOPE, stages=5, outer="scan", form="list", gradient=(0,)),
}


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", RIGHT)
def test_batch_by_batch(name: str) -> None:
    assert RIGHT[name].verdict() is Verdict.PROVED


WRONG = {
    **{wrong: replace(MAP, stages=3, wrong=wrong) for wrong in ("reversed", "odd_device", "late")},
    "stopped": replace(SLOPE, stages=3, wrong="stopped"),
    "linked": replace(MAP, stages=3, outer="linked"),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", WRONG)
def test_nothing_that_is_nearly_right(name: str) -> None:
    assert WRONG[name].verdict() is Verdict.UNKNOWN


def summed(linked: str) -> Callable[[Array], Array]:
    """What microbatches come to, one after another: through layers that begin with the sum so far, that read it
    inside, or that do not."""

    def function(x: Array) -> Array:
        def turn(total: Array, own: Array) -> tuple[Array, None]:
            start = own + total if linked == "start" else own
            seen = total if linked == "inside" else jnp.zeros_like(total)
            made = lax.scan(lambda h, _: (jnp.tanh(h * 2) + seen, None), start, length=5)[0]
            return total + made, None

        return lax.scan(turn, jnp.zeros_like(x[0]), x)[0]  # type: ignore[no-any-return]

    return function


@pytest.mark.parametrize("linked", ["", "start", "inside"])
def test_what_hangs_on_turns_before_is_no_sum(linked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops inside have names that say whether they are made of what the loop around carried."""
    kinds = []

    def seen(op: Op, args: list[Value], context: Context, shape: Shape) -> list[Value]:
        left = logical_loop(op, args, context, shape)
        if book_of(context).reading is Reading.SUMMED and not context.iterations:
            kinds.extend(atom.tensor.kind for value in left if isinstance(atom := value.term.atom, Read))
            assert not any(v.prefix == ARBITRARY for loop in book_of(context).loops for v in loop.after[0].term.free)
        return left

    monkeypatch.setattr(control, "logical_loop", seen)
    mesh = AbstractMesh((4,), ("d",), axis_types=(AxisType.Auto,))
    local = jax.shard_map(
        lambda x: lax.psum(jnp.sin(x[0]), "d"), mesh=mesh, in_specs=P("d"), out_specs=P(), check_vma=False
    )
    x = jax.ShapeDtypeStruct((8, 3), jnp.float32)
    pair = (jax.jit(function).trace(x) for function in (summed(linked), local))
    assert hlo_verify.verify(*pair, refute=False, limits=LIMITS).verdict is Verdict.UNKNOWN
    assert ("loop" in kinds) == bool(linked)
    assert kinds
