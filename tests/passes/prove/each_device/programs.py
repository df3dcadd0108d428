"""Programs of each device, with the whole function that they compute, and others that are nearly right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from tests.support.lowering import Placed, Specs, floats

Function = Callable[..., Any]


@dataclass(frozen=True)
class Program:
    """A whole function, what each device runs, and what is wrong with other versions of that."""

    placed: Placed
    whole: Function
    local: Callable[..., Function]
    """With keywords, a version of it; without, the right one."""
    wrong: dict[str, dict[str, Any]] = field(default_factory=dict)

    def pair(self, wrong: str | None = None) -> tuple[str, str]:
        return self.placed.pair(self.whole, self.local(**self.wrong[wrong] if wrong else {}))


def on(axes: dict[str, int], given: Specs, wanted: Specs, *shapes: tuple[int, ...]) -> Placed:
    return Placed(
        AbstractMesh(tuple(axes.values()), tuple(axes), axis_types=(AxisType.Auto,) * len(axes)),
        given,
        wanted,
        floats(*shapes),
    )


PROGRAMS: dict[str, Program] = {}


def program(placed: Placed, whole: Function, **wrong: dict[str, Any]) -> Callable[[Callable[..., Function]], None]:
    def note(local: Callable[..., Function]) -> None:
        PROGRAMS[local.__name__] = Program(placed, whole, local, wrong)

    return note


def turned(n: int, by: int) -> list[tuple[int, int]]:
    return [(i, (i + by) % n) for i in range(n)]


@program(
    on({"i": 4}, (P("i"), P(None, "i")), P(None, "i"), (8, 6), (6, 8)),
    lambda x, w: x @ w,
    early={"place": 1},
    back={"step": 1},
    short={"turns": 3},
    twice={"turns": 5},
)
def gathers_rows(turns: int = 4, place: int = 0, step: int = -1) -> Function:
    """Rows of a product come round a ring, and each is put where it belongs: the place counts down with a remainder."""

    def local(x: jax.Array, w: jax.Array) -> jax.Array:
        out = jnp.zeros((8, w.shape[1]))
        for turn in range(turns):
            start = 2 * ((lax.axis_index("i") + step * turn + place) % 4)
            out = lax.dynamic_update_slice(out, x @ w, (start, 0)) if turn < 4 else out + 1
            x = lax.ppermute(x, "i", turned(4, 1))
        return out

    return local


@program(
    on({"i": 3}, (P(None, "i"), P("i")), P("i"), (9, 6), (6, 4)),
    lambda x, w: jnp.tanh(x @ w),
    place={"first": 2},
    scaled={"by": 2.0},
    backwards={"by_turn": -1},
)
def scatters_sums(first: int = 1, by: float = 1.0, by_turn: int = 1) -> Function:
    """Sums go round a ring while each device adds its addend, as in a reduce-scatter."""

    def local(x: jax.Array, w: jax.Array) -> jax.Array:
        i = lax.axis_index("i")

        def addend(turn: Any) -> jax.Array:
            return lax.dynamic_slice_in_dim(x, 3 * lax.rem(i + first + by_turn * turn + 3, 3), 3, 0) @ w

        def step(turn: Any, total: jax.Array) -> jax.Array:
            return lax.ppermute(total, "i", turned(3, -1)) + by * addend(turn)

        return jnp.tanh(lax.fori_loop(1, 3, step, addend(0)))

    return local


@program(
    on({"a": 3, "b": 3}, (P("a", "b"), P("a", "b")), P("a", "b"), (6, 6), (6, 9)),
    lambda x, y: x @ y,
    unskewed={"skew": 0},
    onesided={"down": 0},
    doubled={"down": 2},
)
def cannon(skew: int = 1, down: int = 1) -> Function:
    def local(x: jax.Array, y: jax.Array) -> jax.Array:
        rows = [(3 * i + j, 3 * i + (j - i * skew) % 3) for i in range(3) for j in range(3)]
        columns = [(3 * i + j, 3 * ((i - j) % 3) + j) for i in range(3) for j in range(3)]
        x, y = lax.ppermute(x, ("a", "b"), rows), lax.ppermute(y, ("a", "b"), columns)
        total = x @ y
        for _ in range(2):
            x, y = lax.ppermute(x, "b", turned(3, -1)), lax.ppermute(y, "a", turned(3, -down))
            total += x @ y
        return total

    return local


@program(
    on({"s": 4}, (P("s"), P()), P(), (4, 5, 5), (3, 2, 5)),
    lambda ws, x: jnp.stack([_through(ws, row) for row in x]),
    hurried={"late": 2},
    reordered={"by": -1},
)
def pipeline(late: int = 3, by: int = 1) -> Function:
    """Each device has a layer; microbatches go from one to the next."""

    def local(w: jax.Array, x: jax.Array) -> jax.Array:
        stage, state, out = lax.axis_index("s"), jnp.zeros((2, 5)), jnp.zeros((3, 2, 5))
        for turn in range(6):
            state = jnp.where(stage == 0, x[min(turn, 2)], state)
            state = jnp.sin(state @ w[0])
            done = max(turn - late, 0)
            out = jnp.where((stage == 3) & (turn >= late) & (done < 3), out.at[min(done, 2)].set(state), out)
            state = lax.ppermute(state, "s", turned(4, by))
        return lax.psum(out, "s")

    return local


def _through(ws: jax.Array, row: jax.Array) -> jax.Array:
    for w in ws:
        row = jnp.sin(row @ w)
    return row


@program(
    on({"i": 2, "j": 3}, P("i", "j"), P("i", "j"), (4, 12)),
    lambda x: jnp.roll(x, (2, -4), (0, 1)),
    other={"table": (1, 2, 0, 4, 5, 3)},
    some={"kept": 5},
)
def table(table: tuple[int, ...] = (4, 5, 3, 1, 2, 0), kept: int = 6) -> Function:
    def local(x: jax.Array) -> jax.Array:
        me = 3 * lax.axis_index("i") + lax.axis_index("j")
        sources = jnp.array(table)[me]
        every = lax.all_gather(lax.all_gather(x, "j"), "i").reshape(6, 2, 4)
        return jnp.where(me < kept, every[sources], x)

    return local


@program(
    on({"i": 4}, P("i"), P("i"), (8, 3)),
    lambda x: jnp.cumsum(x, 0),
    inclusive={"less": 1},
    parity={"half": 3},
)
def by_branches(less: int = 0, half: int = 2) -> Function:
    """What a device adds, it finds by branches on its number."""

    def local(x: jax.Array) -> jax.Array:
        i, totals = lax.axis_index("i"), lax.all_gather(x.sum(0), "i")
        before = [lambda t, n=n: t[: n + less].sum(0) if n + less else 0 * t[0] for n in range(4)]
        lower = lax.switch(i % 4, before, totals)
        return jnp.cumsum(x, 0) + lax.cond(i // half == 0, lambda t: t + 0, lambda t: 1 * t, lower) * (half == 2)

    return local


@program(
    on({"i": 4}, (P("i"), P()), P(), (8, 5), (5,)),
    lambda x, w: jnp.sum(jnp.exp(x * w) ** 2),
    mean={"all_": lambda t: lax.pmean(t, "i")},
    half={"all_": lambda t: lax.psum(t, "i", axis_index_groups=((0, 1), (2, 3)))},
)
def by_halves(all_: Function | None = None) -> Function:
    """A sum over all devices by two exchanges between neighbours."""

    def local(x: jax.Array, w: jax.Array) -> jax.Array:
        total = jnp.sum(jnp.exp(x * w) ** 2)
        if all_ is not None:
            return all_(total)
        for far in (1, 2):
            total += lax.ppermute(total, "i", [(k, k ^ far) for k in range(4)])
        return total

    return local


@program(
    on({"i": 4}, (P("i"), P()), (P(), P()), (4, 3, 3), (2, 3)),
    lambda w, x: jax.value_and_grad(lambda x: jnp.sum(_through(w, x) ** 2))(x),
    short={"layers": 3},
    unscaled={"power": 3},
)
def gathered_layers(layers: int = 4, power: int = 2) -> Function:
    """The gradient of layers that are gathered one by one."""

    def loss(x: jax.Array, w: jax.Array) -> jax.Array:
        for k in range(layers):
            own = jnp.where(lax.axis_index("i") == k, w[0], 0)
            x = jnp.sin(x @ lax.psum(own, "i"))
        return jnp.sum(x**power)

    return lambda w, x: jax.value_and_grad(loss)(x, w)
