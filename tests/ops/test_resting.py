"""Loops that go round while any row goes on, of which devices have some rows and end before."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Report, Verdict
from hlo_verify.index import expr
from hlo_verify.ops import resting
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.functions import POSITIVE
from hlo_verify.terms.laws import apply
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Tensor, tensor

MESH = AbstractMesh((4,), ("d",), axis_types=(AxisType.Auto,))
WIDTH = 6
Function = Callable[[jax.Array], jax.Array]


def check(whole: Function, local: Function, rows: int, *, refute: bool = False) -> Report:
    mapped = jax.shard_map(local, mesh=MESH, in_specs=P("d"), out_specs=P("d"), check_vma=False)
    return hlo_verify.check(whole, mapped, jax.ShapeDtypeStruct((rows, WIDTH), jnp.float32), refute=refute)


def goes_on(x: jax.Array) -> jax.Array:
    return x > 1


def halved(mask: Function = goes_on, test: Function = lambda x: jnp.any(x > 1)) -> Function:
    return lambda x: lax.while_loop(test, lambda x: jnp.where(mask(x), x / 2, x), x)


def newton(x: jax.Array) -> jax.Array:
    return lax.while_loop(lambda y: jnp.abs(y * y - 2).max() > 1e-3, lambda y: y - (y * y - 2) / (2 * y), 1 + x * x)


def counted(most: int, left: int = 1) -> Function:
    """At most so many turns; what is left of the count, or of the rows."""

    def turn(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        n, x = state
        return n + 1, jnp.where(x > 1, x / 2, x)

    test = lambda state: (state[0] < most) & jnp.any(state[1] > 1)  # noqa: E731
    return lambda x: x * lax.while_loop(test, turn, (0, x))[left]


def until_all_are_done(x: jax.Array) -> jax.Array:
    test = lambda state: (state[0] < 5) & ~jnp.all(state[2])  # noqa: E731
    turn = lambda s: (s[0] + 1, jnp.where(s[2], s[1], s[1] / 2), s[2] | (s[1] < 0.5))  # noqa: E731
    return lax.while_loop(test, turn, (1, x, x > 2))[1]


def of_a_flat_row(x: jax.Array) -> jax.Array:
    """The rows end to end, and asked of as they were."""
    test = lambda y: jnp.any(y.reshape(x.shape) > 1)  # noqa: E731
    return lax.while_loop(test, lambda y: jnp.where(y > 1, y / 2, y), x.reshape(-1)).reshape(x.shape)


def drawn(x: jax.Array) -> jax.Array:
    return jax.random.poisson(jax.random.key(3), 1 + x * x).astype(jnp.float32)


def by_rows(mask: Function) -> Function:
    return lambda x: lax.while_loop(lambda y: jnp.any(y.sum(1) > 1), lambda y: jnp.where(mask(y)[:, None], y / 2, y), x)


RIGHT: dict[str, tuple[Function, Function]] = {
    "elements": (halved(), halved()),
    "rows": (by_rows(lambda y: y.sum(1) > 1), by_rows(lambda y: y.sum(1) > 1)),
    "vmap": (jax.vmap(newton), jax.vmap(newton)),
    "at most so many turns": (counted(50), counted(50)),
    "until all are done": (until_all_are_done, until_all_are_done),
    "a flat row": (of_a_flat_row, of_a_flat_row),
    "another spelling": (
        halved(),
        lambda x: lax.while_loop(lambda y: jnp.any(y > 1), lambda y: y - jnp.where(y > 1, y / 2, 0.0), x),
    ),
    "draws that are refused": (jax.vmap(drawn), jax.vmap(drawn)),
}


@pytest.mark.parametrize("rows", [4, 8])
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_done_stays_as_it_is(name: str, rows: int) -> None:
    assert check(*RIGHT[name], rows).verdict is Verdict.PROVED


def turned(x: jax.Array) -> jax.Array:
    """Whether anything goes on on the device before."""
    return lax.ppermute(jnp.any(x > 1), "d", [(d, (d + 1) % 4) for d in range(4)])


def waking(x: jax.Array) -> jax.Array:
    """What the turn before decided is asked again."""
    turn = lambda s: (s[0] - 1, jnp.where(s[1] > s[0], s[1] / 2, s[1]))  # noqa: E731
    return lax.while_loop(lambda s: jnp.any(s[1] > s[0]), turn, (3, x))[1]


WRONG: dict[str, tuple[Function, Function]] = {
    "all go on": (halved(lambda x: x == x), halved(lambda x: x == x)),
    "less goes on": (halved(lambda x: x > 0.5), halved(lambda x: x > 0.5)),
    "others go on": (halved(lambda x: jnp.roll(x, 1, 1) > 1),) * 2,
    "rows by their first": (halved(test=lambda x: jnp.any(x[:, 0] > 1)),) * 2,
    "a device's rows end before": (halved(), halved(test=lambda x: jnp.any(x > 2))),
    "as the device before": (halved(), halved(test=turned)),
    "until all are": (halved(), halved(test=lambda x: jnp.all(x > 1))),
    "the other limit": (counted(50), counted(2)),
    "the count": (counted(50, left=0), counted(50, left=0)),
    "by a count that goes on": (waking, waking),
}


@pytest.mark.parametrize("rows", [4, 8])
@pytest.mark.parametrize("name", WRONG)
@pytest.mark.usefixtures("prover_alone")
def test_what_may_go_on_is_not_taken_for_done(name: str, rows: int) -> None:
    assert check(*WRONG[name], rows).verdict is not Verdict.PROVED


def test_what_goes_on_is_refuted() -> None:
    assert check(*WRONG["all go on"], 8, refute=True).verdict is Verdict.REFUTED


def test_what_is_asked_is_of_elements_of_shards_alone() -> None:
    """At the start of the same turn: what others carry may go on."""
    carried, other = (tensor("loop", name, "f32", (8,)) for name in "cb")
    t, d, row, any_row = expr.var("t", 0, 9), expr.var("d", 0, 4), expr.var("b", 0, 2), expr.var("b", 1, 8)
    now, first = expr.of_var(t), expr.scale(expr.of_var(d), 2)
    own = expr.add(first, expr.of_var(row))
    shard = resting._Shard(carried, (first,), (2,))

    def is_asked(of: Tensor, turn: expr.Index, at: expr.Index) -> bool:
        asked = apply(POSITIVE, (algebra.read(of, (turn, at)),))
        return resting._hangs_on(asked, t, [shard])

    assert is_asked(carried, now, own)
    assert not is_asked(other, now, own)
    assert not is_asked(carried, now, expr.of_var(any_row))
    assert not is_asked(carried, now, expr.shift(own, 1))
    assert not is_asked(carried, expr.shift(now, 1), own)
    assert not resting._hangs_on(guards.interval(now, 3, None), t, [shard])
    summed = reduce_sum([any_row], algebra.read(carried, (now, expr.of_var(any_row))))
    assert not resting._hangs_on(summed, t, [shard])
    assert resting._hangs_on(reduce_sum([row], algebra.read(carried, (now, own))), t, [shard])
