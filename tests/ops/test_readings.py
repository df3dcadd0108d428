"""Loops that add up in one module what the other adds up across devices or without a loop, and loops that are written
out in one module, in whole or in part: they are not equal turn by turn, but once they are read in another way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.limits import Limits
from hlo_verify.ops import induction
from hlo_verify.ops.peeled import Peeled, peeled
from tests.ops.test_matching import Function, lowered, regional, verdict

MANY = 100
"""More turns than are written out."""


def gradient(w: jax.Array, x: jax.Array) -> jax.Array:
    return jax.grad(lambda w: jnp.sum(jnp.tanh(x @ w)))(w)


def accumulated(w: jax.Array, xs: jax.Array) -> jax.Array:
    return lax.scan(lambda g, x: (g + gradient(w, x), None), jnp.zeros_like(w), xs)[0]


def with_momentum(w: jax.Array, xs: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A sum of what hangs on a recurrence, which has no closed form."""

    def step(c: tuple[jax.Array, ...], x: jax.Array) -> tuple[tuple[jax.Array, ...], None]:
        h, g = c
        return (jnp.tanh(0.5 * h + 1), g + h * gradient(w, x)), None

    return lax.scan(step, (jnp.zeros_like(w), jnp.zeros_like(w)), xs)[0]


ACCUMULATE = (4, 5), (MANY, 8, 4)
BATCH = P(), P(None, "x")


def test_a_gradient_is_summed_up_after_the_loop() -> None:
    right = regional(lambda w, xs: lax.psum(accumulated(w, xs), "x"), BATCH, P())
    assert verdict(accumulated, right, *ACCUMULATE) is Verdict.PROVED
    assert verdict(lambda w, xs: accumulated(w, xs) / MANY, lambda w, xs: right(w, xs) / MANY, *ACCUMULATE) is (
        Verdict.PROVED
    )


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    "wrong",
    [
        accumulated,
        lambda w, xs: lax.pmean(accumulated(w, xs), "x"),
        lambda w, xs: lax.psum(accumulated(w, xs[:-1]), "x"),
    ],
    ids=["forgotten", "mean", "too short"],
)
def test_a_gradient_that_is_summed_up_otherwise(wrong: Function) -> None:
    assert verdict(accumulated, regional(wrong, BATCH, P()), *ACCUMULATE) is Verdict.UNKNOWN


@pytest.mark.slow
def test_a_sum_that_hangs_on_a_recurrence() -> None:
    def local(w: jax.Array, xs: jax.Array) -> tuple[jax.Array, jax.Array]:
        h, g = with_momentum(w, xs)
        return h, lax.psum(g, "x")

    def summed_twice(w: jax.Array, xs: jax.Array) -> tuple[jax.Array, jax.Array]:
        h, g = with_momentum(w, xs)
        return lax.psum(h, "x"), lax.psum(g, "x")

    outputs = P(), P()
    assert verdict(with_momentum, regional(local, BATCH, outputs), *ACCUMULATE) is Verdict.PROVED
    assert verdict(with_momentum, regional(summed_twice, BATCH, outputs), *ACCUMULATE) is Verdict.UNKNOWN


def test_the_sum_of_the_loop_s_carried_tensor_itself_is_none() -> None:
    """What is added hangs on what was added: the sum over devices of each is no shard of one."""

    def grown(w: jax.Array, xs: jax.Array) -> jax.Array:
        return lax.scan(lambda g, x: (g + 0.1 * g * jnp.sum(x), None), w, xs)[0]

    local = regional(lambda w, xs: lax.psum(grown(w, xs), "x") / 4, BATCH, P())
    assert verdict(grown, local, *ACCUMULATE) is Verdict.UNKNOWN


def listed(start: Function, before: bool) -> Function:
    """Running sums, with or without the last element, and the sums of them."""

    def function(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        def step(c: tuple[jax.Array, ...], row: jax.Array) -> tuple[tuple[jax.Array, ...], jax.Array]:
            total, sums = c
            new = total + row
            return (new, sums + new), total if before else new

        zero = start(x)
        (_, sums), every = lax.scan(step, (zero, zero), x)
        return sums, every

    return function


@pytest.mark.drawn(1)
@pytest.mark.parametrize("before", [False, True])
def test_running_sums(before: bool) -> None:
    """Devices hold columns; in the reference sums are taken of all places before."""

    def reference(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        rows = jnp.arange(MANY)
        is_before = (rows[:, None] > rows if before else rows[:, None] >= rows)[:, :, None]
        every = jnp.sum(jnp.where(is_before, x[None], 0), 1)
        upto = jnp.sum(jnp.where((rows[:, None] >= rows)[:, :, None], x[None], 0), 1)
        return jnp.sum(upto, 0), every

    columns, shape = P(None, "x"), (MANY, 8)
    outputs = P("x"), columns
    right = listed(lambda x: jnp.zeros_like(x[0]), before)
    assert verdict(reference, regional(right, columns, outputs), shape) is Verdict.PROVED
    wrong = listed(lambda x: jnp.zeros_like(x[0]), not before)
    assert verdict(reference, regional(wrong, columns, outputs), shape) is Verdict.UNKNOWN
    from_the_first = listed(lambda x: x[0], before)
    assert verdict(reference, regional(from_the_first, columns, outputs), shape) is Verdict.UNKNOWN


TURNS = 6


def cell(multiply: Function, h: jax.Array, x: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.tanh(x + multiply(h, w))


def scanned(multiply: Function, peeled: int = 0, unroll: int = 1) -> Function:
    def function(xs: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array]:
        h, first = jnp.zeros_like(xs[0]), []
        for x in xs[:peeled]:
            h = cell(multiply, h, x, w)
            first.append(h)

        def step(h: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
            h = cell(multiply, h, x, w)
            return h, h

        h, rest = lax.scan(step, h, xs[peeled:], unroll=unroll)
        return h, jnp.concatenate([jnp.stack(first), rest]) if peeled else rest

    return function


def written(multiply: Function, last: int = TURNS) -> Function:
    def function(xs: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array]:
        h, every = jnp.zeros_like(xs[0]), []
        for x in (*xs[:last], *xs[last - 1 : last] * 0)[:TURNS]:
            h = cell(multiply, h, x, w)
            every.append(h)
        return h, jnp.stack(every)

    return function


def gathered(h: jax.Array, w: jax.Array) -> jax.Array:
    return lax.all_gather(h, "x", axis=1, tiled=True) @ w


FORMS: dict[str, Callable[..., Any]] = {
    "scanned": scanned,
    "written out": written,
    "its first turn peeled": lambda multiply: scanned(multiply, peeled=1),
    "two turns at a time": lambda multiply: scanned(multiply, unroll=2),
    "four turns at a time": lambda multiply: scanned(multiply, unroll=4),
}

RECURRENCE = (TURNS, 2, 8), (8, 8)
SPLIT = (P(None, None, "x"), P(None, "x"))
SPLIT_RESULTS = (P(None, "x"), P(None, None, "x"))


@pytest.mark.drawn(4)
@pytest.mark.parametrize("reference", ["scanned", "written out"])
@pytest.mark.parametrize("local", FORMS)
def test_forms_of_one_recurrence(reference: str, local: str) -> None:
    whole = FORMS[reference](jnp.matmul)
    right = regional(FORMS[local](gathered), SPLIT, SPLIT_RESULTS)
    assert verdict(whole, right, *RECURRENCE) is Verdict.PROVED


@pytest.mark.drawn(1)
@pytest.mark.parametrize("form", ["scanned", "written out"])
def test_a_recurrence_that_loses_its_last_input(form: str) -> None:
    wrong = regional(written(gathered, last=TURNS - 1), SPLIT, SPLIT_RESULTS)
    assert verdict(FORMS[form](jnp.matmul), wrong, *RECURRENCE) is Verdict.UNKNOWN


def combine(a: tuple[jax.Array, ...], b: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
    return a[0] * b[0], b[0] * a[1] + b[1]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("length", [5, 8, 12])
@pytest.mark.parametrize("is_right", [True, False])
def test_an_associative_scan(length: int, is_right: bool) -> None:
    def reference(a: jax.Array, x: jax.Array) -> jax.Array:
        def step(h: jax.Array, each: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
            h = each[0] * h + each[1]
            return h, h

        return lax.scan(step, jnp.zeros(8), (a, x))[1]

    def local(a: jax.Array, x: jax.Array) -> jax.Array:
        joined = combine if is_right else lambda a, b: (a[0] * b[0], a[0] * b[1] + a[1])
        return lax.associative_scan(joined, (a, x))[1]

    columns = P(None, "x")
    found = verdict(reference, regional(local, (columns, columns), columns), (length, 8), (length, 8))
    assert found is (Verdict.PROVED if is_right else Verdict.UNKNOWN)


def test_what_may_be_written_out_is_a_limit() -> None:
    pair = (
        lowered(written(jnp.matmul), RECURRENCE),
        lowered(regional(scanned(gathered), SPLIT, SPLIT_RESULTS), RECURRENCE),
    )
    limits = Limits(written_out_operations=10, unrolled_turns=3, devices_apart=1)
    assert hlo_verify.verify(*pair, refute=False, limits=limits).verdict is Verdict.UNKNOWN


def recurrence(multiply: Function, before: int = 0, after: int = 0, at_once: int = 1, lost: int = 0) -> Function:
    """A long recurrence, of which turns are made before and after the loop and some at once; it may lose inputs."""

    def function(xs: jax.Array, w: jax.Array) -> jax.Array:
        h = jnp.zeros_like(xs[0])
        for x in xs[:before]:
            h = cell(multiply, h, x, w)
        behind = len(xs) - after
        h = lax.scan(lambda h, x: (cell(multiply, h, x, w), None), h, xs[before : behind - lost], unroll=at_once)[0]
        for x in xs[behind:]:
            h = cell(multiply, h, x, w)
        return h

    return function


LONG = (MANY, 2, 8), (8, 8)


APART = [(1, 0, 1), (0, 1, 1), (1, 1, 1), (2, 1, 1), (0, 0, 2), (0, 0, 3), (1, 1, 2), (0, 2, 7)]
"""Turns before a long loop, turns after it, and turns at once."""


@pytest.mark.drawn(3)
@pytest.mark.parametrize("asked", APART)
def test_long_loops_with_turns_apart(asked: tuple[int, int, int]) -> None:
    before, after, at_once = asked
    local = regional(recurrence(gathered, before, after, at_once), SPLIT, SPLIT_RESULTS[0])
    assert verdict(recurrence(jnp.matmul), local, *LONG) is Verdict.PROVED


def test_single_turns_are_made_for_loops_that_leave_some_out(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def noted(*given: Any) -> Peeled:
        made.append(given)
        return peeled(*given)

    monkeypatch.setattr(induction, "peeled", noted)
    for asked in (0, 0, 2), (0, 0, 3):
        assert not made
        local = regional(recurrence(gathered, *asked), SPLIT, SPLIT_RESULTS[0])
        assert verdict(recurrence(jnp.matmul), local, *LONG) is Verdict.PROVED
    assert len(made) == 1


@pytest.mark.drawn(1)
@pytest.mark.parametrize("asked", [(1, 0, 1), (0, 1, 1), (1, 1, 1)])
def test_long_loops_that_lose_a_turn(asked: tuple[int, int, int]) -> None:
    before, after, at_once = asked
    local = regional(recurrence(gathered, before, after, at_once, lost=1), SPLIT, SPLIT_RESULTS[0])
    assert verdict(recurrence(jnp.matmul), local, *LONG) is Verdict.UNKNOWN


@pytest.mark.drawn(1)
@pytest.mark.parametrize("wrong", ["first", "last", "order"])
def test_a_turn_apart_that_is_another(wrong: str) -> None:
    """The first turn starts from ones; the last one takes the input before; two turns change places."""

    def local(xs: jax.Array, w: jax.Array) -> jax.Array:
        h = jnp.ones_like(xs[0]) if wrong == "first" else jnp.zeros_like(xs[0])
        inner = xs[jnp.array([1, 0, *range(2, MANY)])] if wrong == "order" else xs
        h = cell(gathered, h, inner[0], w)
        h = lax.scan(lambda h, x: (cell(gathered, h, x, w), None), h, inner[1:-1])[0]
        return cell(gathered, h, xs[-2] if wrong == "last" else xs[-1], w)

    found = verdict(recurrence(jnp.matmul), regional(local, SPLIT, SPLIT_RESULTS[0]), *LONG)
    assert found is Verdict.UNKNOWN


def squares(once: bool, narrow: bool = True) -> str:
    """A recurrence of i8 and the sum of its values as i32, one turn at a time or two; what the first of these leaves
    is narrow, as what is carried is, or was computed as an i32."""

    def following(c: jax.Array, x: jax.Array) -> jax.Array:
        return c * c + x

    def step(_: int, carried: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        c, total, x = carried
        total += c.astype("int32")
        if once:
            return following(c, x), total, x
        left = following(c, x)
        wide = left.astype("int32") if narrow else following(c.astype("int32"), x.astype("int32"))
        return following(left, x), total + wide, x

    def function(c: jax.Array, total: jax.Array, x: jax.Array) -> tuple[jax.Array, ...]:
        return lax.fori_loop(0, MANY if once else MANY // 2, step, (c, total, x))

    given = [jax.ShapeDtypeStruct((4,), dtype) for dtype in ("int8", "int32", "int8")]
    return str(jax.jit(function).trace(*given).lower(lowering_platforms=("cpu",)).as_text())


def test_names_of_integers_are_for_their_own_type() -> None:
    """A sum that wraps in i8 does not in i32, though their terms are equal."""
    reference = squares(once=True)
    assert hlo_verify.verify(reference, squares(once=False), refute=False).verdict is Verdict.PROVED
    assert hlo_verify.verify(reference, squares(once=False, narrow=False), refute=False).verdict is Verdict.UNKNOWN
