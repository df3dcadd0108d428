"""Pipelines as people write them, in loops, proved by the walk for all devices; and nothing that is nearly right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import Array, lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.limits import Limits

LIMITS = Limits(devices_apart=1, unrolled_turns=1)

Function = Callable[..., Any]


def layer(x: Array, w: Array) -> Array:
    return jnp.tanh(x @ w)


def block(x: Array, w: Array) -> Array:
    return x + jax.nn.gelu(x * lax.rsqrt(jnp.mean(x**2, -1, keepdims=True) + 1e-5) @ w) @ w.T


def gelu(x: Array, w: Array) -> Array:
    return jax.nn.gelu(x @ w)


def relu(x: Array, w: Array) -> Array:
    return jax.nn.relu(x @ w) @ w.T


@dataclass(frozen=True)
class Pipeline:
    """Each device has some layers; microbatches go from one to the next."""

    stages: int = 64
    batches: int = 8
    layers: int = 1
    function: Function = layer
    form: str = "slots"
    """How what the last stage makes is kept: in slots, in slots that are written anew in place, in slots that are
    written over (the next one, or the first until the last stage has something, on all devices or on the last one), or
    in a list of all turns."""
    hands_on_first: bool = False
    is_ring: bool = True
    is_backwards: bool = False
    is_flat: bool = False
    """Whether the rows of all microbatches lie in one dimension."""
    copies: int = 1
    is_outer: bool = True
    gradient: tuple[int, ...] = ()
    """By what the gradient of a loss is taken, if it is."""
    wrong: str = ""

    def whole(self, ws: Array, x: Array) -> Array:
        return lax.scan(lambda h, w: (self.function(h, w), None), x, ws, reverse=self.is_backwards)[0]  # type: ignore[no-any-return]

    def local(self, ws: Array, x: Array) -> Array:
        n, m = self.stages, self.batches
        me = lax.axis_index("s")
        first, last = (n - 1, 0) if self.is_backwards else (0, n - 1)
        step = (-1 if self.is_backwards else 1) * (2 if self.wrong == "rotation" else 1)
        pairs = [(k, (k + step) % n) for k in range(n) if self.is_ring or k != last]
        if self.wrong == "turned":
            pairs = [(target, source) for source, target in pairs]
        xs = x.reshape(m, -1, x.shape[-1])

        def turn(carry: tuple[Array, Array], t: Array) -> tuple[tuple[Array, Array], Array | None]:
            state, out = carry
            if self.hands_on_first:
                state = lax.ppermute(state, "s", pairs)
            given = xs[jnp.clip(t - (self.wrong == "late"), 0, m - 1)]
            made = jnp.where(me == first + (self.wrong == "first"), given, state)
            for k in range(self.layers):
                w = ws[k - (self.wrong == "layers")]
                is_learned = self.wrong != "unlearned" or k < self.layers - 1
                made = self.function(made, w if is_learned else lax.stop_gradient(w))
            if self.wrong == "odd_turn":
                made = jnp.where(t == n, lax.stop_gradient(made), made)
            if self.wrong == "odd_device":
                made = jnp.where(me == n // 2, 2 * made, made)
            out = self.put(out, made, t, me)
            state = made if self.hands_on_first else lax.ppermute(made, "s", pairs)
            if self.wrong == "stopped":
                state = jnp.where(me == last, state, lax.stop_gradient(state))
            return (state, out), made if self.form == "list" else None

        turns = m + n - 1 - (self.wrong == "short")
        start = jnp.full_like(xs[0], jnp.nan if self.wrong == "undefined" else 0)
        (_, out), all_ = lax.scan(turn, (start, jnp.zeros_like(xs)), jnp.arange(turns))
        if self.form == "list":
            out = all_[turns - m - (self.wrong == "sliced") :][:m]
        if self.form in ("list", "over", "first_over", "rows_over"):
            out = jnp.where(me == last + (self.wrong == "stage"), out, 0)
        out = out[::-1] if self.wrong == "reversed" else out
        return (out if self.wrong == "no_sum" else lax.psum(out, "s")).reshape(x.shape)

    def put(self, out: Array, made: Array, t: Array, me: Array) -> Array:
        """The slots after a turn."""
        n, m = self.stages, self.batches
        first, last = (n - 1, 0) if self.is_backwards else (0, n - 1)
        late = n - 1 + (self.wrong == "slot")
        if self.form == "slots":
            kept = (t >= late) & ((me == last) | (self.wrong == "any"))
            out = jnp.where(kept, out.at[jnp.maximum(t - late, 0)].set(made), out)
        elif self.form == "in_place":
            slot = jnp.clip(t - late, 0, m - 1)
            kept = (t >= n - 1) & ((me == last) | (self.wrong == "any"))
            out = out.at[slot].set(jnp.where(kept, made, out[slot]))
        elif self.form == "over":
            out = lax.dynamic_update_index_in_dim(out, made, (t - late) % m, 0)
        elif self.form in ("first_over", "rows_over"):
            slot = jnp.clip(t - late, self.wrong == "lower", m - 1 - (self.wrong == "upper"))
            size = len(made) if self.form == "rows_over" else 1
            out = lax.dynamic_update_slice_in_dim(
                out.reshape(m * size, -1, 3), made.reshape(size, -1, 3), slot * size, 0
            )
            out = out.reshape(m, -1, 3)
        elif self.form in ("kept", "kept_in_dim"):
            slot = jnp.clip(t - late, self.wrong == "lower", m - 1 - (self.wrong == "upper"))
            kept = (me == last - (self.wrong == "stage")) | (self.wrong == "any")
            kept |= (self.wrong == "leaks") & (t < late) & (me == first)
            if self.form == "kept":
                out = out.at[slot].set(jnp.where(kept, made, out[slot]))
            else:
                made_or_old = jnp.where(kept, made, lax.dynamic_index_in_dim(out, slot, keepdims=False))
                out = lax.dynamic_update_index_in_dim(out, made_or_old, slot, 0)
        return out

    def slope(self, function: Function) -> Function:
        def loss(ws: Array, x: Array) -> Array:
            return jnp.mean(function(ws, x) ** 2 * jnp.arange(x.size).reshape(x.shape))

        return jax.grad(loss, self.gradient)

    def verdict(self, recheck: bool = False) -> Verdict:
        axes = {"s": self.stages} if self.copies == 1 else {"s": self.stages, "r": self.copies}
        if self.is_outer:
            axes = dict(reversed(axes.items()))
        mesh = AbstractMesh(tuple(axes.values()), tuple(axes), axis_types=(AxisType.Auto,) * len(axes))
        rows = P(None, "r") if self.copies > 1 else P()
        local = jax.shard_map(self.local, mesh=mesh, in_specs=(P("s"), rows), out_specs=rows, check_vma=False)
        x = (self.batches * 2, 3) if self.is_flat else (self.batches, 2 * self.copies, 3)
        functions = [self.whole, local] if not self.gradient else [self.slope(each) for each in (self.whole, local)]
        shapes = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((self.stages * self.layers, 3, 3), x)]
        pair = (jax.jit(function).trace(*shapes) for function in functions)
        return hlo_verify.verify(*pair, refute=False, limits=LIMITS, recheck=recheck).verdict


PLAIN = Pipeline()
RIGHT = {
    "slots": PLAIN,
    "256": replace(PLAIN, stages=256),
    "one_batch": replace(PLAIN, batches=1, is_ring=False),
    "few_batches": replace(PLAIN, batches=3),
    "over": replace(PLAIN, form="over"),
    "in_place": replace(PLAIN, form="in_place"),
    "first_over": replace(PLAIN, form="first_over"),
    "rows_over": replace(PLAIN, form="rows_over"),
    "kept": replace(PLAIN, form="kept", hands_on_first=True),
    "kept_in_dim": replace(PLAIN, form="kept_in_dim", stages=4, batches=7),
    "list": replace(PLAIN, form="list"),
    "hands_on_first": replace(PLAIN, hands_on_first=True, is_ring=False),
    "backwards": replace(PLAIN, is_backwards=True),
    "blocks": replace(PLAIN, function=block, is_flat=True),
    "layers": replace(PLAIN, layers=4),
    "copies": replace(PLAIN, stages=16, copies=2),
    "inner_copies": replace(PLAIN, stages=16, copies=2, is_outer=False, form="list"),
}


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", RIGHT)
def test_pipelines(name: str) -> None:
    assert RIGHT[name].verdict() is Verdict.PROVED


SLOPE = replace(PLAIN, gradient=(0,), form="list")
RIGHT_SLOPES = {
    "list": SLOPE,
    "256": replace(SLOPE, stages=256),
    "inner_copies": replace(RIGHT["inner_copies"], gradient=(0,)),
    "few_stages": replace(SLOPE, stages=5),
    **{
        name: replace(RIGHT[name], gradient=(0,))
        for name in "slots in_place kept kept_in_dim few_batches backwards copies".split()
    },
    "first_over": replace(PLAIN, form="first_over", gradient=(0, 1)),
    "rows_over": replace(PLAIN, form="rows_over", stages=4, gradient=(0,)),
    "nine_turns": replace(PLAIN, form="first_over", stages=4, batches=6, gradient=(0,)),
    "ten_turns": replace(PLAIN, form="first_over", stages=8, batches=3, gradient=(0,)),
    "by_inputs": replace(SLOPE, gradient=(1,)),
    "by_both": replace(SLOPE, form="slots", gradient=(0, 1)),
    "by_inputs_backwards": replace(RIGHT["backwards"], gradient=(1,)),
    "by_inputs_copies": replace(RIGHT["inner_copies"], gradient=(1,)),
    "by_inputs_as_many": replace(SLOPE, batches=64, gradient=(1,)),
    "layers": replace(SLOPE, layers=2),
    "gelu": replace(SLOPE, function=gelu),
    "relu": replace(SLOPE, function=relu),
    "layers_slots": replace(SLOPE, form="slots", layers=2, gradient=(0, 1)),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", RIGHT_SLOPES)
def test_gradients_of_pipelines(name: str) -> None:
    assert RIGHT_SLOPES[name].verdict() is Verdict.PROVED


IN_ALL = "rotation turned late first short no_sum stopped undefined reversed odd_turn odd_device"
WRONG_SLOPES = [
    replace(SLOPE, form=form, wrong=wrong, gradient=(by,))
    for form, others in (("list", "sliced stage"), ("slots", "slot any"))
    for wrong in f"{IN_ALL} {others}".split()
    for by in (0, 1)
]
WRONG_SLOPES += [
    replace(SLOPE, form=form, layers=2, wrong=wrong)
    for wrong in "rotation late first short stopped reversed layers unlearned odd_turn odd_device".split()
    for form in ("list", "slots")
]
WRONG_SLOPES += [replace(SLOPE, form="in_place", wrong=wrong) for wrong in ("slot", "any", "reversed")]
WRONG_SLOPES += [replace(SLOPE, form="first_over", wrong=wrong) for wrong in "slot lower upper short stage".split()]
WRONG_SLOPES += [replace(SLOPE, form="kept", wrong=wrong) for wrong in "slot lower upper short stage any leaks".split()]
WRONG_SLOPES += [
    replace(SLOPE, function=function, wrong=wrong)
    for function, some in ((gelu, "stopped odd_device"), (relu, "late stopped"))
    for wrong in some.split()
]


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    "pipeline",
    WRONG_SLOPES,
    ids=lambda each: f"{each.form}_{each.wrong}_{each.gradient[0]}_{each.layers}_{each.function.__name__}",
)
@pytest.mark.parametrize("stages", [4, 16])
def test_wrong_gradients_of_pipelines(pipeline: Pipeline, stages: int) -> None:
    assert replace(pipeline, stages=stages).verdict() is Verdict.UNKNOWN


def test_the_second_check_finds_nothing_wrong() -> None:
    assert Pipeline(stages=4, layers=2, batches=3).verdict(recheck=True) is Verdict.PROVED


@pytest.mark.slow
def test_the_second_check_finds_nothing_wrong_in_a_gradient() -> None:
    assert replace(SLOPE, stages=4, batches=2).verdict(recheck=True) is Verdict.PROVED


WRONG = [
    *(
        replace(PLAIN, wrong=wrong)
        for wrong in ("rotation", "turned", "late", "first", "slot", "any", "short", "no_sum")
    ),
    *(replace(PLAIN, form="list", wrong=wrong) for wrong in ("late", "sliced", "stage", "short", "no_sum")),
    *(replace(PLAIN, form="in_place", wrong=wrong) for wrong in ("slot", "any", "short")),
    *(replace(PLAIN, form="over", wrong=wrong) for wrong in ("slot", "stage", "short")),
    *(replace(PLAIN, form="first_over", wrong=wrong) for wrong in ("slot", "lower", "upper", "short", "stage")),
    *(replace(PLAIN, form="kept", wrong=each) for each in "slot lower upper short stage any leaks".split()),
    *(replace(PLAIN, hands_on_first=True, wrong=wrong) for wrong in ("rotation", "late", "slot")),
    replace(PLAIN, layers=2, wrong="layers"),
    replace(RIGHT["copies"], wrong="rotation"),
    replace(RIGHT["backwards"], wrong="turned"),
    replace(PLAIN, is_flat=True, wrong="late"),
]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("pipeline", WRONG, ids=lambda each: f"{each.form}_{each.wrong}")
@pytest.mark.parametrize("stages", [4, 64])
def test_wrong_pipelines(pipeline: Pipeline, stages: int) -> None:
    assert replace(pipeline, stages=stages).verdict() is Verdict.UNKNOWN
