"""Random numbers are functions of keys and counters, element by element, whatever the shapes are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax, random
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed

Program = Callable[..., Any]

X = jax.ShapeDtypeStruct((8, 6), jnp.float32)
KEY = jax.ShapeDtypeStruct((2,), jnp.uint32)
KEYS = jax.ShapeDtypeStruct((8, 2), jnp.uint32)
ROWS, WHOLE = P("x"), P()

DRAWS: dict[str, Program] = {
    "bernoulli": lambda key, shape: random.bernoulli(key, 0.9, shape).astype(jnp.float32),
    "uniform": random.uniform,
    "normal": random.normal,
    "categorical": lambda key, shape: random.categorical(key, jnp.arange(6.0), shape=shape).astype(jnp.float32),
    "randint": lambda key, shape: random.randint(key, shape, 0, 10).astype(jnp.float32),
    "permutation": lambda key, shape: random.permutation(key, 12)[: shape[0] * shape[1]].reshape(shape) * 1.0,
    "truncated_normal": lambda key, shape: random.truncated_normal(key, -2.0, 2.0, shape),
    "gumbel": random.gumbel,
}


@pytest.fixture(params=[True, False], ids=["partitionable", "not partitionable"])
def _counters(request: pytest.FixtureRequest) -> Any:
    """The two ways in which counters are given to elements."""
    with jax.threefry_partitionable(request.param):
        yield


def device() -> jax.Array:
    return lax.axis_index("x")


def verdict(whole: Program, local: Program, keys: Any = KEY, at: P = WHOLE, refute: bool = False) -> Verdict:
    """Of functions of keys, given as integers, and of an array that is split over the rows."""
    placed = Placed(AbstractMesh((4,), ("x",)), (at, ROWS), ROWS, [keys, X])

    def wrapped(program: Program) -> Program:
        return lambda key, x: program(random.wrap_key_data(key), x)

    modules = placed.pair(wrapped(whole), wrapped(local))
    return hlo_verify.verify(*modules, refute=refute).verdict


def by_row(draw: Program) -> Program:
    """Rows two by two, each pair with its own key of four."""
    return lambda keys, x: (x.reshape(4, 2, 6) + jax.vmap(lambda key: draw(key, (2, 6)))(keys)).reshape(8, 6)


def folded(draw: Program) -> Program:
    return lambda key, x: by_row(draw)(jax.vmap(lambda n: random.fold_in(key, n))(jnp.arange(4)), x)


def concatenated(key: jax.Array, x: jax.Array) -> jax.Array:
    return x + jnp.concatenate([random.uniform(random.fold_in(key, n), (2, 6)) for n in range(4)])


@pytest.mark.drawn(1)
@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_keys_are_folded_with_the_number_of_a_device(draw: Program) -> None:
    right = verdict(folded(draw), lambda key, x: x + draw(random.fold_in(key, device()), x.shape))
    wrong = verdict(folded(draw), lambda key, x: x + draw(random.fold_in(key, device() + 1), x.shape))
    assert (right, wrong) == (Verdict.PROVED, Verdict.UNKNOWN)


@pytest.mark.drawn(2)
@pytest.mark.usefixtures("_counters")
@pytest.mark.parametrize("name", ["uniform", "categorical"])
def test_keys_are_split_like_the_data(name: str) -> None:
    def whole(keys: jax.Array, x: jax.Array) -> jax.Array:
        return jax.vmap(lambda key, row: row * DRAWS[name](key, (1, 6))[0])(keys, x)

    def wrong(keys: jax.Array, x: jax.Array) -> jax.Array:
        return whole(keys[::-1], x)

    assert verdict(whole, whole, KEYS, ROWS) is Verdict.PROVED
    assert verdict(whole, wrong, KEYS, ROWS) is Verdict.UNKNOWN


@pytest.mark.drawn(1)
@pytest.mark.usefixtures("_counters")
def test_one_key_for_each_device_of_those_that_all_split() -> None:
    def whole(key: jax.Array, x: jax.Array) -> jax.Array:
        return by_row(random.normal)(random.split(key, 4), x)

    def local(first: Any) -> Program:
        return lambda key, x: x + random.normal(random.split(key, 4)[first()], x.shape)

    assert verdict(whole, local(device)) is Verdict.PROVED
    assert verdict(whole, local(lambda: (device() + 1) % 4)) is Verdict.UNKNOWN
    assert verdict(whole, local(lambda: 0)) is Verdict.UNKNOWN


@pytest.mark.drawn(1)
@pytest.mark.usefixtures("_counters")
def test_written_out_for_each_device() -> None:
    right = verdict(concatenated, lambda key, x: x + random.uniform(random.fold_in(key, device()), x.shape))
    wrong = verdict(concatenated, lambda key, x: x + random.uniform(random.fold_in(key, 3 - device()), x.shape))
    assert (right, wrong) == (Verdict.PROVED, Verdict.UNKNOWN)


def masked(key: jax.Array, x: jax.Array, mask: Program | None = None, rate: float = 0.8) -> jax.Array:
    kept = random.bernoulli(key, 0.8, (8, 6))
    return jnp.where(kept if mask is None else mask(kept), x / rate, 0)


@pytest.mark.drawn(1)
@pytest.mark.usefixtures("_counters")
def test_a_mask_is_drawn_whole_and_cut() -> None:
    def cut(step: int, rate: float = 0.8) -> Program:
        return lambda key, x: masked(key, x, lambda m: lax.dynamic_slice_in_dim(m, step * device(), 2), rate)

    assert verdict(masked, cut(2)) is Verdict.PROVED
    assert verdict(masked, cut(1)) is Verdict.UNKNOWN
    assert verdict(masked, cut(2, 1.0)) is Verdict.UNKNOWN
    assert verdict(masked, lambda key, x: jnp.where(random.bernoulli(key, 0.8, x.shape), x / 0.8, 0)) is Verdict.UNKNOWN


def test_counters_in_another_order() -> None:
    def turned(key: jax.Array, x: jax.Array) -> jax.Array:
        return x + lax.dynamic_slice_in_dim(random.uniform(key, (6, 8)).T, 2 * device(), 2)

    def flat(key: jax.Array, x: jax.Array) -> jax.Array:
        return x + lax.dynamic_slice_in_dim(random.uniform(key, (48,)).reshape(8, 6), 2 * device(), 2)

    whole = lambda key, x: x + random.uniform(key, x.shape)  # noqa: E731
    assert (verdict(whole, flat), verdict(whole, turned)) == (Verdict.PROVED, Verdict.UNKNOWN)


@pytest.mark.slow
def test_a_wrong_key_is_refuted() -> None:
    same = verdict(concatenated, lambda key, x: x + random.uniform(random.fold_in(key, 0), x.shape), refute=True)
    assert same is Verdict.REFUTED


# Loops of any kind: what a loop leaves has to be a function of single elements for this

MIXED = jax.ShapeDtypeStruct((8, 4), jnp.uint32)


def rounds(turns: int, turn: Program) -> Program:
    return lambda a, b: lax.fori_loop(0, turns, lambda t, c: turn(t, *c), (a, b))[0]


def xors(t: jax.Array, a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    return (a ^ (b << 3)) + jnp.uint32(7), b ^ (a >> 5)


def of_loops(whole: Program, local: Program) -> Verdict:
    """Of two arrays of integers of which the first is split over rows, in an order that no loop is matched with."""
    placed = Placed(AbstractMesh((4,), ("x",)), (ROWS, WHOLE), ROWS, [MIXED, jax.ShapeDtypeStruct((4,), jnp.uint32)])

    def columns(a: jax.Array, b: jax.Array) -> jax.Array:
        return jnp.stack([local(a[:, n], jnp.broadcast_to(b[n], a.shape[:1])) for n in range(4)], 1)

    modules = placed.pair(lambda a, b: whole(a, jnp.broadcast_to(b, a.shape)), columns)
    return hlo_verify.verify(*modules, refute=False).verdict


def reversed_(t: jax.Array, a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    return a[::-1] ^ (b << 3), b


WRONG_TURNS: dict[str, Program] = {
    "another shift": lambda t, a, b: ((a ^ (b << 4)) + jnp.uint32(7), b ^ (a >> 5)),
    "another number": lambda t, a, b: ((a ^ (b << 3)) + jnp.uint32(8), b ^ (a >> 5)),
    "another order": lambda t, a, b: (a ^ ((b << 3) + jnp.uint32(7)), b ^ (a >> 5)),
    "a sign": lambda t, a, b: (
        (a ^ (b << 3)) + jnp.uint32(7),
        b ^ lax.bitcast_convert_type(lax.bitcast_convert_type(a, jnp.int32) >> 5, jnp.uint32),
    ),
    "exchanged": lambda t, a, b: xors(t, a, b)[::-1],
}


def test_what_a_loop_leaves_is_a_function_of_its_elements() -> None:
    assert of_loops(rounds(5, xors), rounds(5, xors)) is Verdict.PROVED


def test_loops_of_another_length() -> None:
    assert of_loops(rounds(5, xors), rounds(6, xors)) is Verdict.UNKNOWN


@pytest.mark.drawn(2)
@pytest.mark.parametrize("turn", WRONG_TURNS.values(), ids=WRONG_TURNS)
def test_loops_that_do_something_else(turn: Program) -> None:
    assert of_loops(rounds(5, xors), rounds(5, turn)) is Verdict.UNKNOWN


def test_elements_that_move_are_not_taken_for_others() -> None:
    assert of_loops(rounds(5, reversed_), rounds(5, reversed_)) is not Verdict.PROVED
    assert of_loops(rounds(3, reversed_), rounds(3, lambda t, a, b: (a ^ (b << 3), b))) is not Verdict.PROVED


def test_a_table_is_looked_up() -> None:
    table = np.array([1, 7, 11, 13], np.uint32)

    def looked_up(which: int) -> Program:
        def program(a: jax.Array, b: jax.Array) -> jax.Array:
            def turn(t: jax.Array, carried: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
                a, b, now, later = carried
                return (a ^ (b << now[0])) + (b >> now[which]), b + a, later, now

            return lax.fori_loop(0, 5, turn, (a, b, jnp.asarray(table), jnp.asarray(table[::-1])))[0]

        return program

    assert of_loops(looked_up(1), looked_up(1)) is Verdict.PROVED
    assert of_loops(looked_up(1), looked_up(2)) is Verdict.UNKNOWN


def test_an_element_that_is_widened_is_what_it_was_in_its_own_type() -> None:
    """Sums of i8 wrap before they become elements of i32."""
    narrow = jax.ShapeDtypeStruct((8,), jnp.int8)
    placed = Placed(AbstractMesh((4,), ("x",)), (ROWS, ROWS), ROWS, [narrow, narrow])

    def carried(c: jax.Array) -> jax.Array:
        def turn(_: jax.Array, now: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            return now[0], now[0].astype(jnp.int32), now[2] ^ 1

        return lax.fori_loop(0, 5, turn, (c, c.astype(jnp.int32), c))[1]

    def wide(a: jax.Array, b: jax.Array) -> jax.Array:
        return a.astype(jnp.int32) + b.astype(jnp.int32)

    def found(whole: Program) -> Verdict:
        return hlo_verify.verify(*placed.pair(whole, lambda a, b: carried(a + b)), refute=False).verdict

    assert found(lambda a, b: carried(a + b)) is Verdict.PROVED
    assert found(wide) is Verdict.UNKNOWN


# Programs that draw: layers one after another, keys that the program writes itself, masks of a split hidden layer


def layers(cut: Program, first: int = 0) -> Program:
    """Three layers with a mask each, of a key that is folded with the layer's number."""

    def program(key: jax.Array, x: jax.Array) -> jax.Array:
        def layer(n: jax.Array, h: jax.Array) -> jax.Array:
            return jnp.tanh(h) * cut(random.bernoulli(random.fold_in(key, n + first), 0.9, (8, 6))) / 0.9

        return lax.fori_loop(0, 3, layer, x)

    return program


def own_rows(whole: jax.Array) -> jax.Array:
    return lax.dynamic_slice_in_dim(whole, 2 * device(), 2)


def test_masks_in_a_loop() -> None:
    assert verdict(layers(lambda mask: mask), layers(own_rows)) is Verdict.PROVED
    assert verdict(layers(lambda mask: mask), layers(own_rows, 1)) is Verdict.UNKNOWN


@pytest.mark.parametrize("seed", [42, 43])
def test_keys_that_a_program_writes(seed: int) -> None:
    def whole(_: jax.Array, x: jax.Array) -> jax.Array:
        return x + jnp.concatenate([random.normal(random.fold_in(random.key(42), n), (2, 6)) for n in range(4)])

    def local(_: jax.Array, x: jax.Array) -> jax.Array:
        return x + random.normal(random.fold_in(random.key(seed), device()), x.shape)

    assert verdict(whole, local) is (Verdict.PROVED if seed == 42 else Verdict.UNKNOWN)
