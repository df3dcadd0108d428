"""What values of a program seem to be shards of, by numbers alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from hlo_verify.limits import Limits
from hlo_verify.passes.guess import shards as module
from hlo_verify.passes.guess.shards import shards
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.cut_points import Guess
from hlo_verify.program.ir import Module, operations
from hlo_verify.program.pair import device_count
from hlo_verify.session import Session
from tests.passes.prove.each_device.programs import on, turned

Function = Callable[..., Any]

ROWS = P("i")


def pair_of(reference: Function, local: Function, given: Any = ROWS, wanted: Any = ROWS) -> tuple[Module, Module]:
    placed = on({"i": 4}, given, wanted, (8, 3))
    logical, partitioned = map(load, placed.pair(reference, local))
    return logical, partitioned


def named(module: Module, name: str) -> list[int]:
    return [op.results[0] for op in operations(module.main) if op.name == name]


def guesses_of(pair: tuple[Module, Module], name: str, whole: str, turn: int = 0, **limits: Any) -> list[Guess]:
    """The guesses that the value of an operation is a shard of that of another."""
    with Session(Limits(**limits)).on() as session:
        found = shards(*pair, device_count(*pair), session)
    (value,), tensors = named(pair[1], name), named(pair[0], whole)
    return [guess for guess in found.get((value, turn), ()) if guess.whole[0] in tensors]


def test_rows() -> None:
    (guess,) = guesses_of(pair_of(lambda x: jnp.sin(2 * x), lambda x: jnp.sin(x + x)), "sine", "sine")
    assert guess.order == (0, 1)
    assert guess.starts == ((0, 0), (2, 0), (4, 0), (6, 0))


def test_a_turned_block() -> None:
    (guess,) = guesses_of(pair_of(lambda x: jnp.sin(2 * x), lambda x: jnp.sin((x + x).T).T), "sine", "sine")
    assert guess.order == (1, 0)


def test_a_single_place() -> None:
    """Each device's first row alone, without the dimension that it lies along."""
    (guess,) = guesses_of(pair_of(lambda x: jnp.sin(2 * x), lambda x: jnp.sin(x[0] + x[0])), "sine", "sine")
    assert guess.order == (None, 0)
    assert [start[0] for start in guess.starts] == [0, 2, 4, 6]


def test_an_opposite() -> None:
    """Only of what is no block itself."""
    (guess,) = guesses_of(pair_of(lambda x: jnp.sin(2 * x), lambda x: jnp.sin(-x - x)), "sine", "sine")
    assert guess.is_opposite and guess.starts == ((0, 0), (2, 0), (4, 0), (6, 0))
    both = pair_of(lambda x: jnp.sin(2 * x) * jnp.sin(-2 * x), lambda x: jnp.sin(-x - x))
    assert [guess.is_opposite for guess in guesses_of(both, "sine", "sine")] == [False]
    halves = pair_of(lambda x: jnp.sin(2 * x), lambda x: jnp.sin(jnp.where(jnp.arange(3) > 1, x + x, -x - x)))
    assert guesses_of(halves, "sine", "sine") == []


def test_what_came_round() -> None:
    def local(x: jax.Array) -> jax.Array:
        return jnp.sin(2 * lax.ppermute(x, "i", turned(4, 1)))

    (guess,) = guesses_of(pair_of(lambda x: jnp.sin(x + x), local), "sine", "sine")
    assert [start[0] for start in guess.starts] == [6, 0, 2, 4]


def test_each_turn_of_a_loop() -> None:
    def reference(x: jax.Array) -> jax.Array:
        return jnp.sin(jnp.sin(jnp.sin(x)))

    def local(x: jax.Array) -> jax.Array:
        return lax.fori_loop(0, 3, lambda _, x: jnp.sin(x), x)

    pair = pair_of(reference, local)
    found = [guesses_of(pair, "sine", "sine", turn) for turn in range(3)]
    assert [guess.whole[0] for (guess,) in found] == named(pair[0], "sine")
    assert guesses_of(pair, "sine", "sine", 3) == []


@pytest.mark.parametrize(
    ("reference", "local"),
    [
        (lambda x: jnp.sin(x), lambda x: jnp.sin(x + 1e-6)),
        (lambda x: jnp.sin(x), lambda x: jnp.sin(x[::-1])),
        (lambda x: jnp.sin(x * 0 + 0.5), lambda x: jnp.sin(x * 0) + 0.5),
    ],
    ids=["near", "backwards", "constant"],
)
def test_what_is_no_shard(reference: Function, local: Function) -> None:
    assert guesses_of(pair_of(reference, local), "sine", "sine") == []


def test_what_is_alike_by_chance() -> None:
    """The greatest of some elements is the greatest of all, for some inputs."""

    def reference(x: jax.Array) -> jax.Array:
        return jnp.full((8, 3), x.max())

    def local(x: jax.Array) -> jax.Array:
        return jnp.full((2, 3), lax.ppermute(x, "i", turned(4, 1)).max())

    assert guesses_of(pair_of(reference, local), "reduce", "reduce") == []


def test_what_is_too_large_is_not_guessed() -> None:
    pair = pair_of(lambda x: jnp.sin(2 * x), lambda x: jnp.sin(x + x))
    assert guesses_of(pair, "sine", "sine", guessed_elements=10) == []
    assert guesses_of(pair, "sine", "sine", guessing_work=10) == []


def test_of_many_values_those_in_loops_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def local(x: jax.Array) -> jax.Array:
        return jnp.cos(lax.fori_loop(0, 3, lambda _, x: jnp.sin(x), x))

    pair = pair_of(lambda x: jnp.cos(jnp.sin(jnp.sin(jnp.sin(x)))), local)
    assert guesses_of(pair, "sine", "sine") and guesses_of(pair, "cosine", "cosine")
    monkeypatch.setattr(module, "BLOCKS", 12)
    assert not guesses_of(pair, "sine", "sine") and guesses_of(pair, "cosine", "cosine")


def test_what_is_too_large_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """All elements of arguments were drawn before what is made of them was found to be too large: 3 GB of attention."""
    drawn: list[int] = []
    draw = module.random_argument

    def noted(shape: tuple[int, ...], *args: Any, **options: Any) -> Any:
        drawn.append(math.prod(shape))
        return draw(shape, *args, **options)

    monkeypatch.setattr(module, "random_argument", noted)
    pair = pair_of(lambda x: jnp.sin(x) * 2, lambda x: 2 * jnp.sin(x))
    size = math.prod(pair[0].main.argument_types[0].shape)
    for most in (size - 1, size):
        drawn.clear()
        session = Session(Limits(guessed_elements=most))
        shards(*pair, device_count(*pair), session)
        assert bool(drawn) == (most == size)


def test_shards_of_masked_scores_are_told_apart() -> None:
    """Beside a number that masks, scores are all alike: not every block is every other one."""

    def masked(scores: jax.Array, first: Any) -> jax.Array:
        return jnp.where(first + jnp.arange(len(scores))[:, None] >= jnp.arange(3), scores, -1e30)

    pair = pair_of(lambda x: masked(jnp.sin(2 * x), 0), lambda x: masked(jnp.sin(x + x), lax.axis_index("i") * 2))
    (guess,) = guesses_of(pair, "select", "select")
    assert [start[0] for start in guess.starts] == [0, 2, 4, 6]


def test_what_the_same_operation_makes_comes_first() -> None:
    """Of tensors that are one, as a symmetric one and what is made symmetric of it."""

    def made_symmetric(x: jax.Array) -> jax.Array:
        scores = jnp.sum((x[:, None] - x[None]) ** 2, -1)
        return ((scores + scores.T) / 2)[:, :3]

    def of_products(x: jax.Array) -> jax.Array:
        every = lax.all_gather(x, "i", tiled=True)
        norms = jnp.sum(every * every, 1)
        scores = norms[:, None] - 2 * every @ every.T + norms
        return lax.dynamic_slice_in_dim((scores + scores.T) / 2, 2 * lax.axis_index("i"), 2)[:, :3]

    pair = pair_of(made_symmetric, of_products)
    with Session().on() as session:
        found = shards(*pair, device_count(*pair), session)
    (guesses,) = [found[value, 0] for value in named(pair[1], "divide") if (value, 0) in found]
    (whole,) = named(pair[0], "divide")
    assert guesses[0].whole[0] == whole and len(guesses) > 1
