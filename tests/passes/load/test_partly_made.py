"""Elements that hang on no argument are found in tensors that hang on some, too."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.passes.load.load import load
from hlo_verify.program.ir import IN_FLOATS, operations
from tests.support.places import GIVEN, MESH, PLACES, own, places

OfArgument = Callable[[jax.Array], jax.Array]


def in_the_next_turn(x: jax.Array) -> jax.Array:
    """What a loop carries is of arguments in some rows, and comes to another one."""
    start = jnp.stack([x, places() / 41, x])
    return lax.fori_loop(0, 2, lambda _, rows: jnp.roll(rows, 1, axis=0) * jnp.ones((3, 1)), start)[0]


def into_a_row_in_a_turn(x: jax.Array) -> jax.Array:
    rows = lax.fori_loop(0, 1, lambda k, rows: rows.at[k].set(x), jnp.zeros((2, PLACES)))
    return (rows + jnp.stack([0 * places(), places() / 41]))[1]


def in_a_later_turn(x: jax.Array) -> jax.Array:
    """Three values that a loop carries, each of which is the next one in the next turn."""

    def turned(_: int, carried: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        first, second, third = carried
        return second, third, first

    start = jnp.stack([x, x])
    return lax.fori_loop(0, 2, turned, (start, start, jnp.stack([x, places() / 41])))[0][1]


def handed_to_a_region(x: jax.Array) -> jax.Array:
    spec = P(None, "d")
    rows = jax.shard_map(lambda r: 2 * r, mesh=MESH, in_specs=spec, out_specs=spec)(jnp.stack([x, places() / 82]))
    return rows[1]


MIXED = [
    lambda x: jnp.stack([x, places() / 41])[1],
    lambda x: lax.pad(places() / 41, x[0], [(0, 1, 0)])[:PLACES],
    lambda x: x.at[jnp.arange(PLACES)].set(places() / 41),
    lambda x: lax.dynamic_update_slice(x, places() / 41, (0,)),
    lambda x: jnp.where(x == x, places() / 41, x),
    lambda x: jnp.where(places() < PLACES, places() / 41, x),
    lambda x: jnp.stack([x, places() / 82])[1] * 2,
    lambda x: jnp.sum(jnp.stack([jnp.stack([x, places() / 41]), jnp.stack([x, 0 * places()])]), axis=0)[1],
    lambda x: lax.cond(x[0] * 0 == 0, lambda: places() / 41, lambda: x),
    lambda x: (lax.pad(x, 0.0, [(0, PLACES, 0)]) + lax.pad(places() / 41, 0.0, [(PLACES, 0, 0)]))[PLACES:],
    lambda x: jnp.zeros(2 * PLACES).at[:PLACES].set(x).at[PLACES:].add(places() / 41)[PLACES:],
    lambda x: (jnp.stack([x, places() / 41]) * jnp.stack([x, 0 * x + 1]))[1],
    lambda x: (jnp.tril(x[:, None] * x) + jnp.triu(jnp.ones((PLACES, 1)) * places() / 41, 1))[0, :] * (places() > 0),
    lambda x: jnp.stack([lax.complex(x, x), lax.complex(places() / 41, x)])[1].real,
    lambda x: (jnp.tanh(jnp.stack([x, 0 * places()])) + jnp.stack([0 * places(), places() / 41]))[1],
    lambda x: (jnp.cumsum(jnp.stack([x, 0 * places()]), 1) + jnp.stack([0 * places(), places() / 41]))[1],
    lambda x: (jnp.eye(2) @ jnp.stack([x, 0 * places()]) + jnp.stack([0 * places(), places() / 41]))[1],
    into_a_row_in_a_turn,
    in_the_next_turn,
    in_a_later_turn,
    handed_to_a_region,
]


@pytest.mark.parametrize("mixed", MIXED)
def test_elements_that_hang_on_no_argument_beside_others(mixed: OfArgument) -> None:
    """XLA has 40 at 41, where real numbers are the places themselves."""

    def program(x: jax.Array) -> jax.Array:
        return x * jnp.floor(mixed(x) * 41)

    def real(x: jax.Array) -> jax.Array:
        return x * own(places())

    mapped = jax.shard_map(real, mesh=MESH, in_specs=P("d"), out_specs=P("d"), check_vma=False)
    assert hlo_verify.check(program, mapped, GIVEN, refute=False).verdict is Verdict.UNKNOWN
    if mixed is not handed_to_a_region:
        copied = jax.shard_map(program, mesh=MESH, in_specs=P(), out_specs=P(), check_vma=False)
        assert hlo_verify.check(program, copied, GIVEN, refute=False).verdict is Verdict.PROVED


def test_which_is_greatest_of_elements_that_hang_on_no_argument() -> None:
    def program(x: jax.Array) -> jax.Array:
        rows = jnp.stack([x, jnp.abs(places() / 41 * 41 - places())])
        return x + jnp.argmax(rows, axis=1)[1]

    for other, expected in ((lambda x: x, Verdict.UNKNOWN), (program, Verdict.PROVED)):
        copied = jax.shard_map(other, mesh=MESH, in_specs=P(), out_specs=P(), check_vma=False)
        assert hlo_verify.check(program, copied, GIVEN, refute=False).verdict is expected


def test_how_they_were_made_is_told() -> None:
    """`i / 41` and `i * (1/41)`, and which of two tables lies where."""

    def of(make: OfArgument) -> OfArgument:
        return lambda x: x * jnp.floor(make(x)[1] * 41)

    def divided(x: jax.Array) -> jax.Array:
        return jnp.stack([x, places() / 41, places() * 3 / 123])

    def tripled(x: jax.Array) -> jax.Array:
        return jnp.stack([x, places() * 3 / 123, places() / 41])

    def other(x: jax.Array) -> jax.Array:
        return jnp.stack([x, places() * 3 / 123])

    for a, b in ((divided, tripled), (divided, other)):
        copied = jax.shard_map(of(b), mesh=MESH, in_specs=P(), out_specs=P(), check_vma=False)
        assert hlo_verify.check(of(a), copied, GIVEN, refute=False).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.stack([x, places() / 41]) * x > 0,
        lambda x: jnp.stack([x, places() / 41]).sum(0) + x > 0,
        lambda x: jnp.stack([x, places() / 41]) > x,
        lambda x: x > places() / 41,
        lambda x: lax.fori_loop(0, 3, lambda t, y: y + (y > places() / 41 * t), x),
        lambda x: jnp.concatenate([x, jnp.zeros(PLACES)]) * 3 > 0,
        lambda x: lax.pad(x, 0.0, [(1, 1, 0)]) > 0,
        lambda x: jnp.stack([x, places() / 41]).astype(jnp.bfloat16),
        lambda x: jnp.sort(jnp.concatenate([x, places() / 41])),
        lambda x: jnp.floor((places() / 41)[x.astype(jnp.int32)] * 41),
        lambda x: jnp.searchsorted(jnp.linspace(0, 1, 7), x),
        lambda x: jnp.where(places() > 3, x, -0.7 * float(jnp.finfo(jnp.float32).max)).astype(jnp.bfloat16) > 0,
    ],
)
def test_where_arguments_meet_them_nothing_is_marked(function: OfArgument) -> None:
    """Nor where numbers are exact, or only put in an order among those of arguments."""
    module = load(jax.jit(function).lower(jnp.zeros(PLACES)).as_text())
    assert not any(IN_FLOATS in op.attributes for op in operations(module.main))


def test_each_device_may_have_its_part_of_the_mixed_tensor() -> None:
    """A clip of an argument's rows beside a table's, split over devices."""

    def program(x: jax.Array, table: jax.Array) -> jax.Array:
        rows = jnp.stack([x, table / 41, x])
        return jnp.where(rows > 0, rows, 0.01 * rows)

    spec = P(None, "d")
    mapped = jax.shard_map(
        lambda x: program(x, own(places())), mesh=MESH, in_specs=P("d"), out_specs=spec, check_vma=False
    )
    assert hlo_verify.check(lambda x: program(x, places()), mapped, GIVEN, refute=False).verdict is Verdict.PROVED
