"""Pipelines whose microbatches go round several times in one loop: each device has a layer, or two, of every round, and
looks up in each turn which round a microbatch is in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, product
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest
from jax import Array, lax

from hlo_verify import Verdict
from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.ops.iterations import Iteration
from hlo_verify.ops.lines import Line, Way
from hlo_verify.ops.pipelining import _Pipeline
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.term import ONE
from tests.ops import test_pipelines_in_rounds
from tests.passes.prove.each_device.programs import turned


@dataclass(frozen=True)
class Pipeline(test_pipelines_in_rounds.Pipeline):
    """What was made goes round a ring, and the first device takes from it what is no new microbatch."""

    def local(self, ws: Array, x: Array) -> Array:
        n, v, m, me = self.stages, self.rounds, self.batches, lax.axis_index("s")
        late = n * v - 1 - (self.wrong == "slot")
        ring = turned(n, 1 + (self.wrong == "rotation"))
        if self.wrong == "open":
            ring = ring[:-1] if ring[-1] == (n - 1, 0) else ring[1:]

        def turn(carry: tuple[Array, Array], t: Array) -> tuple[tuple[Array, Array], Array]:
            state, out = carry
            is_new = (me == 0) & ((t < m) | (self.wrong == "taken"))
            h = jnp.where(is_new, x[jnp.minimum(t, m - 1)], state)
            own = jnp.clip(
                (t if self.wrong == "round" else t - me + (self.wrong == "early")) // n,
                0,
                v - 1 - (self.wrong == "fewer"),
            )
            for w in lax.dynamic_index_in_dim(ws[:, 0], own, keepdims=False):
                h = jnp.tanh(h @ w)
            if self.wrong == "odd_turn":
                h = jnp.where((t == n) & (me == 0), 2 * h, h)
            slot, is_last = jnp.clip(t - late, 0, m - 1), me == n - 1 - (self.wrong == "stage")
            if self.form == "slots":
                out = jnp.where(is_last & (t >= late), out.at[slot].set(h), out)
            elif self.form == "kept":
                out = out.at[slot].set(jnp.where(is_last, h, out[slot]))
            return (lax.ppermute(h, "s", ring), out), h

        turns = jnp.arange(m + n * v - 1 - (self.wrong == "short"))
        (_, out), every = lax.scan(turn, (jnp.zeros_like(x[0]), jnp.zeros_like(x)), turns)
        return lax.psum(jnp.where(me == n - 1, every[-m:], 0) if self.form == "list" else out, "s")


PLAIN = Pipeline()
FEW = replace(PLAIN, stages=4, batches=3)
RIGHT = {
    "slots": PLAIN,
    "kept": replace(PLAIN, form="kept", rounds=4, batches=64),
    "list": replace(FEW, form="list", rounds=3),
    "layers": replace(PLAIN, stages=8, layers=2),
    "two_devices": replace(PLAIN, stages=2, batches=2),
}
WRONG = "slot rotation open taken round fewer odd_turn stage short by_device".split()


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", RIGHT)
def test_rounds_in_one_loop(name: str) -> None:
    assert RIGHT[name].verdict() is Verdict.PROVED


@pytest.mark.drawn(2)
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", ["slots", "few", "kept"])
def test_wrong_rounds_in_one_loop(name: str, wrong: str) -> None:
    own = {"slots": replace(PLAIN, stages=8), "few": FEW, "kept": replace(FEW, form="kept")}[name]
    assert replace(own, wrong=wrong).verdict() is Verdict.UNKNOWN


@pytest.mark.drawn(1)
@pytest.mark.parametrize("batches", [5, 8])
def test_more_microbatches_than_devices(batches: int) -> None:
    """The first device takes a new one then while others come back."""
    assert replace(FEW, batches=batches).verdict() is Verdict.UNKNOWN


@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_which_microbatch_and_place(stages: int, rounds: int) -> None:
    """Against all places of a device and all microbatches, for every turn."""
    with Session().on():
        way = Way(Line(expr.fresh("d", stages), 1, stages, is_down=False), 1, 0, (), rounds)
        places = range(stages * rounds)
        for turn, me in product(range(stages * (rounds + 1) - 1), range(stages)):
            batch, place = way.batch_and_place(expr.constant(turn), expr.constant(me))
            works = 0 <= batch.const < stages and place.const in places
            there = [(turn - k, k) for k in places if k % stages == me and 0 <= turn - k < stages]
            assert there == [(batch.const, place.const)] * works
            assert all(way.device_at(expr.constant(k)) is expr.constant(k % stages) for k in places)


@dataclass(frozen=True)
class Gradient(Pipeline):
    """The gradients of its weights and of its microbatches."""

    def whole(self, ws: Array, x: Array) -> Array:
        return jax.grad(lambda *args: jnp.sum(Pipeline.whole(self, *args) ** 2), (0, 1))(ws, x)  # type: ignore[no-any-return]

    def placed(self, ws: Array, x: Array) -> Array:
        return jax.grad(lambda *args: jnp.sum(Pipeline.placed(self, *args) ** 2), (0, 1))(ws, x)  # type: ignore[no-any-return]


GRADIENT = Gradient(stages=4, form="list")
GRADIENTS = {
    "list": replace(GRADIENT, stages=64),
    "few": replace(GRADIENT, batches=3, rounds=3),
    "kept": replace(GRADIENT, form="kept"),
}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    assert GRADIENTS[name].verdict() is Verdict.PROVED


@pytest.mark.drawn(1)
@pytest.mark.parametrize("wrong", "open taken round early fewer odd_turn short by_device".split())
def test_wrong_gradients(wrong: str) -> None:
    assert replace(GRADIENT, wrong=wrong).verdict() is Verdict.UNKNOWN


def every(*free: Var) -> Iterator[dict[Var, Index]]:
    """All values of variables."""
    for values in product(*(range(v.size) for v in free)):
        yield dict(zip(free, map(expr.constant, values), strict=True))


@pytest.mark.parametrize("batches", [1, 2, 3])
@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_idle_turns(rounds: int, batches: int) -> None:
    """Each turn in which a device works on no microbatch is among those that are looked at, and no other is."""
    stages, trips = 3, batches + 3 * rounds - 1
    with Session().on():
        way = Way(Line(expr.fresh("d", stages), 1, stages, is_down=False), 1, 0, (), rounds)
        loop = SimpleNamespace(way=way, line=way.line, shape=SimpleNamespace(trips=trips))
        for place in range(stages * rounds):
            works = {k + n for k in range(place % stages, stages * rounds, stages) for n in range(batches)}
            found = set()
            for turn, idle in Iteration._idle_turns(loop, expr.constant(place), batches):  # type: ignore[arg-type]
                found |= {
                    expr.substitute(turn, at).const for at in every(*turn.free) if algebra.substitute(idle, at) is ONE
                }
            assert found == set(range(trips)) - works


@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("is_gradient", [False, True])
def test_all_places(stages: int, rounds: int, is_gradient: bool) -> None:
    """Those that are looked at are all that hand something on; the first one is by itself, and so are both ends."""
    with Session().on():
        way = Way(Line(expr.fresh("d", stages), 1, stages, is_down=False), 1, 0, (), rounds)
        count = way.places - is_gradient
        kinds = []
        for place in _Pipeline._places(SimpleNamespace(way=way, line=way.line), count):  # type: ignore[arg-type]
            kinds.append({expr.substitute(place, at).const for at in every(*place.free)})
        assert sorted(chain(*kinds)) == list(range(count))
        assert kinds[0] == {0}
