"""Loops of both modules are matched by induction where nobody says how anything is split: shards are seen by what they
start from, and by the borders of manual regions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.equality import cases
from hlo_verify.ops import matching
from hlo_verify.terms.term import Poly
from tests.support.lowering import floats

Function = Callable[..., Any]

MESH = AbstractMesh((4,), ("x",))
STEPS = 100
"""More than are unrolled."""

COLUMNS, ROWS = P(None, "x"), P("x")


def regional(local: Function, given: Any, wanted: Any, mesh: AbstractMesh = MESH) -> Function:
    return jax.shard_map(local, mesh=mesh, in_specs=given, out_specs=wanted, check_vma=False)


def lowered(function: Function, shapes: tuple[tuple[int, ...], ...]) -> str:
    """A module without any placement of its arguments and results. (It is for as many devices as there are here.)"""
    text = str(jax.jit(function).trace(*floats(*shapes)).lower(lowering_platforms=("cpu",)).as_text())
    return text.replace("num_partitions = 1 ", "num_partitions = 4 ")


def verdict(reference: Function, distributed: Function, *shapes: tuple[int, ...]) -> Verdict:
    pair = lowered(reference, shapes), lowered(distributed, shapes)
    return hlo_verify.verify(*pair, refute=False).verdict


def gathered(h: jax.Array) -> jax.Array:
    return lax.all_gather(h, "x", axis=1, tiled=True)


def recurrence(multiply: Function, scanned: bool = True) -> Function:
    def scan(h: jax.Array, w: jax.Array) -> jax.Array:
        return lax.scan(lambda h, _: (jnp.tanh(multiply(h, w)), None), h, None, length=STEPS)[0]

    def loop(h: jax.Array, w: jax.Array) -> jax.Array:
        return lax.fori_loop(0, STEPS, lambda _, h: jnp.tanh(multiply(h, w)), h)

    return scan if scanned else loop


@pytest.mark.drawn(1)
@pytest.mark.parametrize("scanned", [True, False])
def test_columns_go_through_a_loop(scanned: bool) -> None:
    reference, given, shapes = recurrence(jnp.matmul), (COLUMNS, COLUMNS), ((2, 8), (8, 8))
    local = recurrence(lambda h, w: gathered(h) @ w, scanned)
    assert verdict(reference, regional(local, given, COLUMNS), *shapes) is Verdict.PROVED
    wrong = recurrence(lambda h, w: lax.ppermute(gathered(h) @ w, "x", [(0, 1), (1, 0), (2, 2), (3, 3)]), scanned)
    assert verdict(reference, regional(wrong, given, COLUMNS), *shapes) is Verdict.UNKNOWN


def test_a_shard_starts_one_device_further() -> None:
    """What is carried is the next device's rows, until the end."""

    def local(h: jax.Array, w: jax.Array) -> jax.Array:
        back = [(n, (n - 1) % 4) for n in range(4)]
        last = recurrence(jnp.matmul)(lax.ppermute(h, "x", back), w)
        return lax.ppermute(last, "x", [(b, a) for a, b in back])

    reference, shapes = recurrence(jnp.matmul), ((8, 4), (4, 4))
    assert verdict(reference, regional(local, (ROWS, P()), ROWS), *shapes) is Verdict.PROVED


def swapped(first: int, multiply: Function) -> Function:
    """A loop that carries rows and a total in one order or the other."""

    def function(a: jax.Array, w: jax.Array) -> jax.Array:
        def step(_: Any, carried: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, ...]:
            rows, total = carried[first], carried[1 - first]
            rows = jnp.tanh(multiply(rows, w))
            new = rows, 0.9 * total + rows
            return new[first], new[1 - first]

        start = a, a + a
        return lax.fori_loop(0, STEPS, step, (start[first], start[1 - first]))[1 - first]

    return function


def test_components_stand_in_another_order() -> None:
    reference, local = swapped(0, jnp.matmul), swapped(1, lambda h, w: gathered(h) @ w)
    given, shapes = (COLUMNS, COLUMNS), ((2, 8), (8, 8))
    assert verdict(reference, regional(local, given, COLUMNS), *shapes) is Verdict.PROVED


def test_what_is_carried_besides() -> None:
    """A loop that carries a counter of its own, and a value that nobody asks for."""

    def local(h: jax.Array, w: jax.Array) -> jax.Array:
        def step(c: tuple[jax.Array, ...], _: None) -> tuple[tuple[jax.Array, ...], None]:
            n, h, other = c
            return (n + 1, jnp.tanh(gathered(h) @ w), 2 * other + h), None

        return lax.scan(step, (jnp.int32(0), h, h), None, length=STEPS)[0][1]

    given, shapes = (COLUMNS, COLUMNS), ((2, 8), (8, 8))
    assert verdict(recurrence(jnp.matmul), regional(local, given, COLUMNS), *shapes) is Verdict.PROVED


def mean_of(values: jax.Array, w: jax.Array) -> jax.Array:
    return lax.psum(values @ w, "x")


IN_A_REGION = regional(mean_of, (COLUMNS, ROWS), P())
FORGOTTEN = regional(jnp.matmul, (COLUMNS, ROWS), P())


def around(form: str, multiply: Function) -> Function:
    """A product inside of a loop or branch."""

    def function(h: jax.Array, w: jax.Array) -> jax.Array:
        if form == "cond":
            return lax.cond(h[0, 0] > 0, lambda h: jnp.tanh(multiply(h, w)), lambda h: h, h)
        if form == "scan":
            return lax.scan(lambda h, _: (jnp.tanh(multiply(h, w)), None), h, None, length=STEPS)[0]
        return lax.fori_loop(0, STEPS, lambda _, h: jnp.tanh(multiply(h, w)), h)

    return function


@pytest.mark.parametrize("form", ["cond", "scan", "loop"])
def test_a_region_inside_of_control_flow(form: str) -> None:
    reference, shapes = around(form, jnp.matmul), ((2, 8), (8, 8))
    assert verdict(reference, around(form, IN_A_REGION), *shapes) is Verdict.PROVED
    assert verdict(reference, around(form, FORGOTTEN), *shapes) is Verdict.UNKNOWN


def test_what_a_region_in_a_loop_leaves_different_on_each_device() -> None:
    """A quarter of the sum of what devices hold is that only where they all hold the same."""

    def distributed(x: jax.Array, w: jax.Array) -> jax.Array:
        start = regional(lambda w: w, ROWS, P())(w)
        mean = regional(lambda a: lax.psum(a, "x") / 4, P(), P())
        first = regional(lambda a: lax.psum(jnp.where(lax.axis_index("x") == 0, a, 0), "x"), P(), P())
        return first(lax.fori_loop(0, STEPS, lambda _, a: mean(a) + x, start))

    def reference(x: jax.Array, w: jax.Array) -> jax.Array:
        return STEPS * x + w[:2]

    assert verdict(reference, distributed, (2, 3), (8, 3)) is Verdict.UNKNOWN


def test_a_branch_that_only_some_devices_take_around_a_region() -> None:
    """The others never arrive at the sum."""

    def around(multiply: Function, is_first: Function) -> Function:
        return lambda h, w: lax.cond(is_first(), lambda: h @ w, lambda: multiply(h, w))

    reference, shapes = around(jnp.matmul, lambda: True), ((2, 8), (8, 8))
    on_some = regional(lambda: lax.axis_index("x") == 0, (), P())
    assert verdict(reference, around(IN_A_REGION, on_some), *shapes) is Verdict.UNKNOWN
    on_all = regional(lambda: lax.axis_size("x") == 4, (), P())
    assert verdict(reference, around(IN_A_REGION, on_all), *shapes) is Verdict.PROVED


def test_components_are_compared_once_while_others_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many that hang on the one that is wrong, each is given up in a turn of its own: what others become is not
    compared again for that."""
    compared: Counter[tuple[Poly, ...]] = Counter()
    equal = cases.equal

    def counted(found: Poly, expected: Poly, inside: Poly, *rest: Any) -> bool:
        compared[found, expected, inside] += 1
        return equal(found, expected, inside, *rest)

    def turn(h: tuple[jax.Array, ...], _: Any) -> tuple[tuple[jax.Array, ...], None]:
        own_mean, *others = h
        after = (jnp.sin(before) * own for before, own in zip(h, others, strict=False))
        return (own_mean - jnp.mean(own_mean, axis=0), *after), None

    def function(*h: jax.Array) -> jax.Array:
        return lax.scan(turn, h, None, length=STEPS)[0][-1]

    monkeypatch.setattr(cases, "equal", counted)
    shapes = ((8, 4),) * 5
    assert verdict(function, regional(function, (ROWS,) * 5, ROWS), *shapes) is Verdict.UNKNOWN
    *carried, result = sorted(compared.values())
    assert carried[-1] == 1
    assert result <= 3  # in a brief look, case by case, and on each device


@pytest.mark.parametrize("is_right", [True, False])
def test_another_loop_is_looked_at_no_longer_than_it_may_be_better(
    monkeypatch: pytest.MonkeyPatch, is_right: bool
) -> None:
    """Of the second loop's components two start from something else, which is more than the first one loses."""
    walked: list[int] = []
    iterate, induct = matching.iterate, matching._induct

    def counted(*given: Any) -> list[Any]:
        walked[-1] += 1
        return iterate(*given)

    def induction(*given: Any) -> matching.Match | None:
        walked.append(0)
        return induct(*given)

    def loops(first: jax.Array, second: jax.Array, mean: Function = lambda h: h) -> jax.Array:
        def turn(h: tuple[jax.Array, jax.Array], _: Any) -> tuple[tuple[jax.Array, jax.Array], None]:
            return (jnp.sin(h[0]), mean(jnp.cos(h[1]) * h[0])), None

        before = lax.scan(turn, (first, second), None, length=STEPS)[0]
        after = lax.scan(turn, (before[1] * 2, before[0] * 3), None, length=STEPS)[0]
        return before[0] + after[0] + after[1]

    def distributed(first: jax.Array, second: jax.Array) -> jax.Array:
        return loops(first, second) if is_right else loops(first, second, lambda h: h - jnp.mean(h))

    monkeypatch.setattr(matching, "iterate", counted)
    monkeypatch.setattr(matching, "_induct", induction)
    shapes = ((8, 4),) * 2
    whole = verdict(loops, regional(distributed, (ROWS,) * 2, ROWS), *shapes)
    assert whole is (Verdict.PROVED if is_right else Verdict.UNKNOWN)
    if is_right:
        assert walked[0] == 1
    else:
        assert walked[0] > 1
        assert walked[1] == 0  # the second loop of the reference, beside the first one of the devices
