"""Between which numbers integers lie that hang on no argument, and that those which floats do not hold are rounded."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.evaluate.blocks import Blocks, every_element
from hlo_verify.evaluate.interpret import evaluate
from hlo_verify.passes.load.integer_bounds import IntegerBounds
from hlo_verify.passes.load.load import load
from hlo_verify.passes.load.made_by import Made
from hlo_verify.program.ir import Module, Name, value_types
from tests.support.places import DEVICES, GIVEN, MESH, PLACES, own, places, verdict

OfPlaces = Callable[[jax.Array], jax.Array]
LARGE = 1 << 24
"""The first number that has a neighbour which single precision does not hold."""
STEPS: list[Callable[[jax.Array, jax.Array], jax.Array]] = [
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * 3 + 1,
    lambda a, b: jnp.maximum(a, b),
    lambda a, b: jnp.where(b > 3, a, b + 2),
    lambda a, b: lax.rem(a, b * b + 1),
    lambda a, b: lax.div(a, b * b + 1),
    lambda a, b: abs(a) ^ abs(b),
    lambda a, b: abs(a) & abs(b),
    lambda a, b: -a,
    lambda a, b: jnp.clip(a, -5, 9),
    lambda a, b: jnp.sign(a) + b,
    lambda a, b: abs(a) >> 1,
    lambda a, b: lax.switch(lax.rem(abs(b), 2), [lambda: a + 1, lambda: b]),
    lambda a, b: a.astype(jnp.int8).astype(jnp.int32),
    lambda a, b: a.astype(jnp.uint32).astype(jnp.int32),
]


def program(generator: random.Random) -> Callable[[jax.Array], jax.Array]:
    """Loops that carry three integers, each of which becomes something of two of them."""
    turns = [generator.randrange(1, 6) for _ in range(2)]
    ways = [(generator.choice(STEPS), generator.randrange(3), generator.randrange(4)) for _ in range(3)]
    starts = [generator.randrange(-20, 20) for _ in range(3)]

    def turn(i: jax.Array, held: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        of = (*held, i.astype(jnp.int32))
        return tuple(way(of[k], of[n]) for way, k, n in ways)

    def both(i: jax.Array, held: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        return lax.fori_loop(0, turns[1], turn, turn(i, held)) if generator.random() < 0.5 else turn(i, held)

    def computed(x: jax.Array) -> jax.Array:
        held = lax.fori_loop(0, turns[0], both, tuple(map(jnp.int32, starts)))
        return x * sum(held[1:], held[0])

    return computed


def bounds_of(module: Module) -> IntegerBounds:
    made = Made(value_types(module.main), 1)
    made.read(module.main)
    return made.bounds


def counted_in_bytes(step: int, most: int) -> jax.Array:
    """2^20 for every turn of a counter that is a byte."""
    start = jnp.int8(-128), jnp.int32(0)
    held = lax.while_loop(lambda c: c[0] <= most, lambda c: (c[0] + jnp.int8(step), c[1] + 2**20), start)
    return held[1]


@pytest.mark.parametrize("seed", range(12))
def test_no_number_of_a_run_lies_outside(seed: int) -> None:
    generator = random.Random(f"{seed} of integers")
    for _ in range(4):
        module = load(jax.jit(program(generator)).lower(jnp.float32(1)).as_text())
        found, seen = bounds_of(module).ranges, dict[Name, list[int]]()

        def watch(name: Name, value: Blocks | None, seen: dict[Name, list[int]] = seen) -> None:
            if value is not None and value.values.dtype.kind in "iu":
                seen.setdefault(name, []).extend(map(int, every_element(value).reshape(-1)))

        evaluate(module, [None], 1, observe=watch)
        assert seen
        for name in found.keys() & seen.keys():
            low, high = found[name]
            assert low <= min(seen[name]) <= max(seen[name]) <= high, (name, found[name], seen[name])


FLOATS: list[Callable[[jax.Array, jax.Array], jax.Array]] = [
    lambda a, b: a + b,
    lambda a, b: a - b * 2.0,
    lambda a, b: a * b,
    lambda a, b: a * 3.0 + 1.0,
    lambda a, b: a * 0.1 + b,
    lambda a, b: a / 3.0,
    lambda a, b: a + 2.0**24,
    lambda a, b: jnp.maximum(a, b) - 0.5,
    lambda a, b: jnp.where(b > 3, a, b + 2.0),
    lambda a, b: -abs(a) + jnp.sign(b),
    lambda a, b: lax.rem(a, 7.0) + b,
    lambda a, b: jnp.flip(a) + jnp.sum(b),
    lambda a, b: jnp.sqrt(abs(a)) * b,
    lambda a, b: a.astype(jnp.int32).astype(jnp.float32) + b,
    lambda a, b: a.astype(jnp.bfloat16).astype(jnp.float32) + b,
    lambda a, b: jnp.where(a == b, jnp.inf, a),
    lambda a, b: a + jnp.array([2.0**24, 1.0, -3.0, 0.5]),
    lambda a, b: lax.clamp(0.0, a * 0.1, 3.0) + b,
    lambda a, b: lax.while_loop(lambda c: c[0] < 5.0, lambda c: (c[0] + 2.0, c[1] + b), (0.0, a))[1],
]


@pytest.mark.parametrize("seed", range(12))
def test_floats_with_bounds_are_whole_numbers_that_are_not_rounded(seed: int) -> None:
    """What single precision gives of them is what double precision does, between the bounds."""
    generator = random.Random(f"{seed} of floats")
    for _ in range(4):
        ways = [(generator.choice(FLOATS), generator.randrange(3), generator.randrange(3)) for _ in range(6)]
        turns = generator.randrange(1, 5)

        def computed(x: jax.Array, ways: Any = ways, turns: int = turns) -> jax.Array:
            held = [jnp.arange(4.0), 5.0 - lax.iota(jnp.float32, 4) * 2.0, jnp.full(4, 3.0)]
            for way, k, n in ways:
                held[(k + n) % 3] = way(held[k], held[n])
            return x * lax.fori_loop(0, turns, lambda _, c: c + held[0], held[1]) + held[2]

        module = load(jax.jit(computed).lower(jnp.float32(1)).as_text())
        found, seen = bounds_of(module).ranges, dict[Name, Any]()

        def watch(name: Name, value: Blocks | None, seen: dict[Name, Any] = seen) -> None:
            if value is not None and value.values.dtype.kind == "f":
                seen[name] = np.append(seen.get(name, []), every_element(value).reshape(-1))

        evaluate(module, [None], 1, observe=watch)
        for name in found.keys() & seen.keys():
            low, high = found[name]
            assert (seen[name] == np.floor(seen[name])).all(), name
            assert (seen[name].astype(np.float32) == seen[name]).all(), name
            assert low <= seen[name].min() <= seen[name].max() <= high, name


@pytest.mark.parametrize(
    ("made", "is_rounded"),
    [
        (lambda i: i + 2.0, False),
        (lambda i: i * i - 3.0, False),
        (lambda i: i + 0.5, True),
        (lambda i: i + 2.0**24, True),
        (lambda i: (i - 2.0**24) + 7.0, False),
        (lambda i: i * 2.0**21, True),
        (lambda i: i.astype(jnp.bfloat16) * 2, False),
        (lambda i: i.astype(jnp.bfloat16) * 64, True),
        (lambda i: i / 3.0, True),
        (lambda i: lax.clamp(0.0, i, 3.0) * 2.0, False),
        (lambda i: lax.clamp(0.0, i * 0.1, 3.0) * 2.0, True),
        (lambda i: jnp.where(i > 1, i, jnp.inf) + 1.0, True),
    ],
)
def test_which_sums_and_products_of_places_are_rounded(made: OfPlaces, is_rounded: bool) -> None:
    module = load(jax.jit(lambda x: x * made(jnp.arange(16.0))).lower(jnp.zeros(16)).as_text())
    known = Made(value_types(module.main), 1)
    known.read(module.main)
    assert bool(known.rounded) == is_rounded


@pytest.mark.parametrize(
    ("function", "high"),
    [
        (lambda: lax.fori_loop(0, 10, lambda i, c: c + i, 0), 100),
        (lambda: lax.fori_loop(3, 10, lambda i, c: c + 2, 5), 19),
        (lambda: lax.fori_loop(0, 10, lambda i, c: i, 0), 10),
        (lambda: lax.scan(lambda c, _: (c + 2, c), jnp.int32(5), None, length=8)[1][3], 21),
        (lambda: lax.cond(jnp.arange(8).sum() > 3, lambda: 7, lambda: 300), 300),
        (lambda: lax.fori_loop(0, 3, lambda i, c: c + lax.fori_loop(0, 4, lambda j, d: d + 1, 0), 0), 12),
        (lambda: lax.fori_loop(0, 10, lambda i, c: c * 2, 1), None),
        (lambda: counted_in_bytes(65, 59), 3 * 2**20),
        (lambda: counted_in_bytes(65, 84), None),  # 67 and 65 are -124 in a byte, and so on
    ],
)
def test_what_loops_and_branches_give(function: Callable[[], jax.Array], high: int | None) -> None:
    module = load(jax.jit(lambda x: x * function()).lower(jnp.float32(1)).as_text())
    types = value_types(module.main)
    converted = [
        op.operands[0] for op in module.main.ops if op.name == "convert" and types[op.operands[0]].dtype == "i32"
    ]
    found = bounds_of(module).ranges.get(converted[-1])
    assert (found and found[1]) == high


def after(integers: jax.Array, least: int = LARGE) -> jax.Array:
    """Which integers are greater, as floats."""
    return integers.astype(jnp.float32) > least


def counted(start: int) -> jax.Array:
    return lax.scan(lambda c, _: (c + 1, c), jnp.int32(start), None, length=PLACES)[1]


def added(start: int) -> jax.Array:
    return lax.map(lambda i: i + start, jnp.arange(PLACES))


def chosen(start: int) -> jax.Array:
    return lax.map(lambda i: lax.cond(i < 1, lambda: start, lambda: start + 1), jnp.arange(PLACES))


def in_each_turn(start: int) -> jax.Array:
    return lax.map(lambda i: 1.0 * after(i + start, start), jnp.arange(PLACES))


@pytest.mark.parametrize("made", [counted, added, chosen, in_each_turn])
def test_floats_decide_of_integers_that_they_do_not_hold(made: Callable[[int], jax.Array]) -> None:
    """In floats 2^24 + 1 is 2^24, so that the place behind the first is no greater one."""
    is_made = made is in_each_turn

    def whole(start: int) -> jax.Array:
        return made(start) if is_made else after(made(start), start)

    def behind_the_first() -> jax.Array:
        return own(places()) >= 1

    assert not np.array_equal(np.asarray(whole(LARGE)), np.arange(PLACES) >= 1)
    assert verdict(lambda: whole(LARGE), behind_the_first) is Verdict.UNKNOWN
    assert verdict(lambda: whole(3), behind_the_first) is Verdict.PROVED
    assert verdict(lambda: whole(LARGE), lambda: own(whole(LARGE))) is Verdict.PROVED


def test_the_number_of_a_device_in_a_loop() -> None:
    def local() -> jax.Array:
        size = PLACES // DEVICES
        return after(lax.map(lambda i: lax.axis_index("d") * size + i, jnp.arange(size)), 0)

    assert verdict(lambda: jnp.arange(PLACES) >= 1, local) is Verdict.PROVED


@pytest.mark.parametrize(("first", "expected"), [(0, Verdict.PROVED), (1, Verdict.UNKNOWN)])
def test_places_that_a_device_counts_in_floats(first: int, expected: Verdict) -> None:
    """As XLA splits `arange` of floats: places of its own, and a float that is its first one."""

    def signs(x: jax.Array, weights: jax.Array, name: str = "") -> jax.Array:
        masked = jnp.where(weights == 0, -jnp.inf, x)
        most = lax.pmax(jnp.max(masked), name) if name else jnp.max(masked)
        added = jnp.sum(weights * jnp.exp(masked - most))
        return x * jnp.sign(lax.psum(added, name) if name else added)

    def local(x: jax.Array) -> jax.Array:
        size = PLACES // DEVICES
        start = (lax.axis_index("d") * size + first).astype(jnp.float32)
        return signs(x, lax.iota(jnp.float32, size) + start, "d")

    mapped = jax.shard_map(local, mesh=MESH, in_specs=P("d"), out_specs=P("d"), check_vma=False)
    found = hlo_verify.check(lambda x: signs(x, places()), mapped, GIVEN, refute=False)
    assert found.verdict is expected
