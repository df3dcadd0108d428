"""Training steps of pipelines along one axis of a mesh, with data and tensor parallelism along others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array, lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.index import expr
from hlo_verify.limits import Limits
from hlo_verify.ops.lines import Line, stays_beside
from hlo_verify.ops.values import Context
from hlo_verify.passes.prove.interpret import run
from hlo_verify.program.ir import Op

LIMITS = Limits(devices_apart=1, unrolled_turns=1)
BATCHES, ROWS, WIDE = 4, 2, 4

Loss = Callable[..., Array]


@dataclass(frozen=True)
class Step:
    """The loss of all rows, or its gradients; each device has those of its own rows."""

    axes: dict[str, int] = field(default_factory=lambda: {"data": 2, "stage": 7})
    joins: str = "sum"
    """How products with a matrix split over devices are joined: by a sum, or by what devices put together after they
    have sent it round."""
    gradient: bool = True
    by_hand: bool = True
    """Whether a person adds gradients up over devices, or JAX does."""
    is_mean: bool = True
    function: Callable[[Array], Array] = jnp.tanh
    wrong: str = ""

    def size(self, axis: str) -> int:
        return self.axes.get(axis, 1)

    def whole(self, a: Array, b: Array, x: Array, y: Array) -> Array:
        h, _ = lax.scan(lambda h, w: (self.function(h @ w[0]) @ w[1], None), x, (a, b))
        return (jnp.mean if self.is_mean else jnp.sum)((h - y) ** 2)

    def local(self, a: Array, b: Array, x: Array, y: Array) -> Array:
        """The loss of a device's own rows, on the last stage."""
        n, me = self.size("stage"), lax.axis_index("stage")

        def turn(state: Array, t: Array) -> tuple[Array, Array]:
            given = jnp.where(me == 0, x[jnp.clip(t, 0, BATCHES - 1)], state)
            made = self._joined(self.function(given @ a[0]), b[0])
            if self.wrong == "twice_by_stage":
                made = 2 * made - lax.stop_gradient(made)
            if self.wrong == "rows_of_others":
                made = lax.ppermute(made, "data", [(0, 1), (1, 0)])
            return lax.ppermute(made, "stage", [(k, (k + 1) % n) for k in range(n)]), made

        start = jnp.zeros(x.shape[1:])
        if not self.by_hand:
            start = lax.pcast(start, ("stage", *(axis for axis in self.axes if axis == "data")), to="varying")
        _, made = lax.scan(turn, start, jnp.arange(BATCHES + n - 1))
        loss = (jnp.mean if self.is_mean else jnp.sum)((made[n - 1 :] - y) ** 2)
        if self.wrong == "twice_on_one":
            loss = jnp.where(lax.axis_index("data") == 0, 2 * loss, loss)
        return jnp.where(me == n - 1, loss, 0)

    def _joined(self, h: Array, w: Array) -> Array:
        """The product of what devices have parts of along the contracted dimension."""
        n = self.size("tensor")
        if n == 1:
            return h @ w
        if self.joins == "sum":
            return lax.psum(h @ w, "data" if self.wrong == "group" else "tensor")
        stages = self.size("stage")
        pairs = [(s * n + k, s * n + (k + 1) % n) for s in range(stages) for k in range(n)]
        pairs_of_rows = pairs if self.wrong != "odd_stage" else [*pairs[:n], *((k, k) for k in range(n, stages * n))]
        h, w = (lax.ppermute(each, ("stage", "tensor"), p) for each, p in ((h, pairs_of_rows), (w, pairs)))
        h, w = lax.all_gather(h, "tensor", axis=1, tiled=True), lax.all_gather(w, "tensor", axis=0, tiled=True)
        return h @ w

    def over_devices(self, *args: Array) -> Array | tuple[Array, ...]:
        over = lax.pmean if self.is_mean != (self.wrong == "mean") else lax.psum
        if self.gradient and self.by_hand:
            slopes = jax.grad(self.local, (0, 1))(*args)
            return slopes if self.wrong == "own_rows" else jax.tree.map(lambda g: over(g, "data"), slopes)
        loss = lax.psum(self.local(*args), "stage")
        return over(loss, "data") if "data" in self.axes else loss

    def functions(self, mesh: AbstractMesh | jax.sharding.Mesh) -> tuple[Loss, Loss]:
        tensor = "tensor" if "tensor" in self.axes else None
        rows = P(None, "data" if "data" in self.axes else None)
        weights = P("stage", None, tensor), P("stage", tensor)
        is_own = self.gradient and self.by_hand
        outs = weights if is_own else P()
        local = jax.shard_map(
            self.over_devices, mesh=mesh, in_specs=(*weights, rows, rows), out_specs=outs, check_vma=not self.by_hand
        )
        if not self.gradient:
            return self.whole, local
        return jax.grad(self.whole, (0, 1)), local if is_own else jax.grad(local, (0, 1))

    def shapes(self) -> list[jax.ShapeDtypeStruct]:
        x = (BATCHES, ROWS * self.size("data"), WIDE)
        return [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((self.size("stage"), WIDE, WIDE),) * 2 + (x, x)]

    def verdict(self) -> Verdict:
        mesh = AbstractMesh(tuple(self.axes.values()), tuple(self.axes), axis_types=(AxisType.Auto,) * len(self.axes))
        pair = (jax.jit(function).trace(*self.shapes()) for function in self.functions(mesh))
        return hlo_verify.verify(*pair, refute=False, limits=LIMITS).verdict


ROWS_ALONE = Step()
ALL = {"data": 2, "stage": 7, "tensor": 2}
LOSSES = {
    "sum": Step(ALL, gradient=False, by_hand=False),
    "gather": Step(ALL, joins="gather", gradient=False),
    "stages_first": Step({"stage": 7, "tensor": 4, "data": 2}, gradient=False, is_mean=False),
}
STEPS = {
    "rows": ROWS_ALONE,
    "rows_64": replace(ROWS_ALONE, axes={"stage": 64, "data": 4}),
    "three_rows": replace(ROWS_ALONE, axes={"data": 3, "stage": 5}, function=jax.nn.relu),
    "added": replace(ROWS_ALONE, is_mean=False),
    "by_jax": replace(ROWS_ALONE, by_hand=False),
    "all": Step(ALL, by_hand=False),
    "all_64": Step({"stage": 64, "data": 2, "tensor": 2}, by_hand=False),
}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", LOSSES)
def test_losses_of_pipelines_on_meshes(name: str) -> None:
    assert LOSSES[name].verdict() is Verdict.PROVED


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", STEPS)
def test_gradients_of_pipelines_on_meshes(name: str) -> None:
    assert STEPS[name].verdict() is Verdict.PROVED


FEW = {"data": 2, "stage": 3}
FEW_OF_ALL = {"data": 2, "stage": 3, "tensor": 2}
WRONG = [
    *(
        Step(FEW, function=jnp.square, wrong=wrong)
        for wrong in "mean own_rows twice_by_stage twice_on_one rows_of_others".split()
    ),
    *(Step(FEW_OF_ALL, gradient=False, wrong=wrong) for wrong in "group mean rows_of_others".split()),
    Step(FEW_OF_ALL, joins="gather", gradient=False, wrong="odd_stage"),
    *(
        Step(FEW_OF_ALL, by_hand=False, function=jnp.square, wrong=wrong)
        for wrong in "twice_by_stage twice_on_one".split()
    ),
    Step(FEW, is_mean=False, function=jnp.square, wrong="mean"),
]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("step", WRONG, ids=lambda each: f"{each.wrong}_{each.joins}_{each.gradient}_{each.by_hand}")
def test_wrong_pipelines_on_meshes(step: Step) -> None:
    assert step.verdict() is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("groups", "stays"),
    [
        ([[0, 1], [2, 3], [4, 5], [6, 7]], True),
        ([[0, 1], [3, 2], [4, 5], [6, 7]], False),
        ([[0, 4], [1, 5], [2, 6], [3, 7]], True),
        ([[0, 5], [1, 4], [2, 7], [3, 6]], True),
        ([[0, 4], [1, 5], [2, 7], [3, 6]], False),
        ([[0, 2], [1, 3], [4, 6], [5, 7]], False),
        ([[0, 1], [2, 3], [4, 5]], False),
        ([[0, 1, 4, 5], [2, 3, 6, 7]], True),
        ([[0, 1], [2, 3], [4, 5], [6, -1], [7, -1]], False),
        ([[0], [1], [2], [3], [4], [5], [6], [7]], True),
    ],
)
def test_what_stays_beside_a_line(groups: list[list[int]], stays: bool) -> None:
    """Of 2 × 2 × 2 devices whose lines are along the second axis."""
    device = expr.var("d", 0, 8)
    attributes = {"replica_groups": np.array(groups), "channel_id": 1, "use_global_device_ids": True}
    op, context = Op("all_reduce", (), (), (), attributes), Context(device, 8, 1, run)
    assert stays_beside(op, Line(device, 2, 2, is_down=False), context) is stays
