"""Numbers that mask in loops are read as minus infinity where the largest so far is a number in each turn."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from hlo_verify import Verdict
from hlo_verify.passes.chain.added_masks import with_chosen_masks
from hlo_verify.passes.chain.reached import depending
from hlo_verify.passes.load.load import load
from tests.conftest import SEED
from tests.passes.chain.test_masking_numbers import INFINITE, LARGE, MESH, D, Function, N, attention, report

LEAST = float(jnp.finfo(jnp.float32).min)
BLOCK = 2


def masked(s: jax.Array, keep: jax.Array, fill: float, adds: bool) -> jax.Array:
    return s + jnp.where(keep, 0.0, fill) if adds else jnp.where(keep, s, fill)


def in_units(s: jax.Array, largest: jax.Array, carried: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, ...]:
    """A turn: the largest so far, the sum of exponentials in its units, and the average."""
    total, rescale = jnp.maximum(largest, s.max(-1)), jnp.exp(largest - jnp.maximum(largest, s.max(-1)))
    p = jnp.exp(s - total[:, None])
    return total, carried[0] * rescale + p.sum(-1), carried[1] * rescale[:, None] + p


def over_blocks(
    fill: float,
    *,
    adds: bool = True,
    start: float = INFINITE,
    block: Callable[[Any], Any] = lambda t: t,
    sees: Callable[[Any, Any], Any] = lambda row, key: row >= key,
    turn: Callable[..., Any] = in_units,
    gives: Callable[..., Any] = lambda largest, total, average: average / total[:, None],
) -> Function:
    """Scores of rows, block by block of the keys; what is averaged is one."""

    def program(scores: jax.Array) -> Any:
        def body(t: Any, carried: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            keys = block(t) * BLOCK + jnp.arange(BLOCK)
            s = lax.dynamic_slice(scores, (0, block(t) * BLOCK), (N, BLOCK))
            keep = sees(jnp.arange(N)[:, None], keys)
            return tuple(turn(masked(s, keep, fill, adds), carried[0], carried[1:]))

        start_ = jnp.full((N,), start), jnp.zeros((N,)), jnp.zeros((N, BLOCK))
        return gives(*lax.fori_loop(0, N // BLOCK, body, start_))

    return program


def is_read(program: Function, *given: jax.ShapeDtypeStruct) -> bool:
    text = jax.jit(program).trace(*given).lower(lowering_platforms=("cpu",)).as_text()
    return with_chosen_masks(load(text), may_assume=True) is not None


SCORES = jax.ShapeDtypeStruct((N, N), jnp.float32)

READ: dict[str, dict[str, Any]] = {
    "from minus infinity": {},
    "from the number that masks": {"start": "fill"},
    "chosen": {"adds": False},
    "logarithms": {"gives": lambda largest, total, average: largest + jnp.log(total)},
    "the largest": {"gives": lambda largest, total, average: largest},
    "the last blocks first, where all rows see the last key": {
        "block": lambda t: N // BLOCK - 1 - t,
        "sees": lambda row, key: row <= key,
    },
}


@pytest.mark.drawn(8)
@pytest.mark.parametrize("fill", [-1e9, LARGE, LEAST])
@pytest.mark.parametrize("name", READ)
def test_what_is_read(name: str, fill: float) -> None:
    """Floating point gives the same of what is read otherwise."""
    how, other = dict(READ[name]), dict(READ[name])
    if how.get("start") == "fill":
        how["start"], other["start"] = fill, INFINITE
    program = over_blocks(fill, **how)
    assert is_read(program, SCORES)
    scores = np.random.default_rng(SEED).standard_normal((N, N)).astype(np.float32)
    np.testing.assert_array_equal(program(scores), over_blocks(INFINITE, **other)(scores))


def apart(s: jax.Array, largest: jax.Array, carried: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, ...]:
    """A block in units of its own largest, merged with what there is."""
    own = s.max(-1)
    p = jnp.exp(s - own[:, None])
    total = jnp.maximum(largest, own)
    a, b = jnp.exp(largest - total), jnp.exp(own - total)
    return total, carried[0] * a + p.sum(-1) * b, carried[1] * a[:, None] + p * b[:, None]


def least(s: jax.Array, largest: jax.Array, carried: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, ...]:
    return in_units(s, jnp.minimum(largest, s.min(-1)), carried)


def guarded(s: jax.Array, largest: jax.Array, carried: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, ...]:
    """Minus infinity would be told from the number that masks."""
    total = jnp.maximum(largest, s.max(-1))
    safe = jnp.where(jnp.isinf(total), 0.0, total)
    p, rescale = jnp.exp(s - safe[:, None]), jnp.exp(largest - safe)
    return total, carried[0] * rescale + p.sum(-1), carried[1] * rescale[:, None] + p


NOT_READ: dict[str, dict[str, Any]] = {
    "rows that see nothing at first": {"block": lambda t: N // BLOCK - 1 - t},
    "a row that never sees anything": {"sees": lambda row, key: row > key},
    "a block in its own units": {"turn": apart},
    "the least": {"turn": least},
    "a guard, where rows see nothing at first": {"turn": guarded, "block": lambda t: N // BLOCK - 1 - t},
    "the total asked for": {
        "gives": lambda largest, total, average: jnp.where(largest > -1e29, average.sum(-1), 0.0),
        "block": lambda t: N // BLOCK - 1 - t,
    },
}


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("name", NOT_READ)
def test_what_is_not(name: str, adds: bool) -> None:
    """In some turn a row's largest is no number, and what is made of it neither."""
    assert not is_read(over_blocks(LARGE, adds=adds, **NOT_READ[name]), SCORES)


def in_a_branch(s: jax.Array, flag: jax.Array) -> jax.Array:
    """A branch that some argument takes in the turn in which nothing is left of a row."""

    def body(t: Any, carried: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        keep = jnp.arange(N)[:, None] >= t * BLOCK + jnp.arange(BLOCK)
        scores = lax.dynamic_slice(s, (0, t * BLOCK), (N, BLOCK)) + jnp.where(keep, 0.0, LARGE)
        is_taken = (t == 0) | (flag == 12345)
        own = lax.cond(is_taken, lambda x: jnp.exp(x - x.max(-1, keepdims=True)), lambda x: 0 * s[:, :BLOCK], scores)
        return carried[0] + own.sum(-1), *carried[1:]

    return lax.fori_loop(0, N // BLOCK, body, (jnp.zeros((N,)),))[0]


def in_more_turns(s: jax.Array, flag: jax.Array) -> jax.Array:
    """Turns that some argument adds, in which nothing is left of a row."""

    def body(t: Any, total: jax.Array) -> jax.Array:
        scores = s + jnp.where(jnp.arange(N)[:, None] >= t + jnp.arange(N), 0.0, LARGE)
        return total + jax.nn.softmax(scores, -1)

    return lax.fori_loop(0, 1 + (flag == 12345).astype(jnp.int32), body, jnp.zeros((N, N)))


def in_each_turn(s: jax.Array, flag: jax.Array) -> jax.Array:
    """A mask that an argument makes."""

    def body(t: Any, total: jax.Array) -> jax.Array:
        scores = s + jnp.where(jnp.arange(N)[:, None] + flag >= jnp.arange(N), 0.0, LARGE)
        return total + jax.nn.softmax(scores, -1)

    return lax.fori_loop(0, 2, body, jnp.zeros((N, N)))


@pytest.mark.parametrize("program", [in_a_branch, in_more_turns, in_each_turn])
def test_what_an_argument_has_a_say_in(program: Function) -> None:
    """Zeros show nothing of it: where the flag is another, rows are masked as a whole."""
    flag = jax.ShapeDtypeStruct((), jnp.int32)
    assert not is_read(program, SCORES, flag)
    assert is_read(lambda s: program(s, jnp.int32(0)), SCORES)


def test_what_depends_on_arguments_through_loops_and_branches() -> None:
    def program(x: jax.Array, n: jax.Array) -> Any:
        def body(t: Any, carried: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            a, b, c, d = carried
            return a + 1.0, b + c, c + x, lax.cond(t > 1, lambda: d, lambda: d + 1.0)

        kept = lax.fori_loop(0, 3, body, (jnp.float32(0),) * 4)
        turned = lax.fori_loop(0, n, lambda t, a: a + 1.0, jnp.float32(0))
        return *kept, turned, lax.cond(x > 0, lambda: jnp.float32(1), lambda: jnp.float32(2))

    scalars = jax.ShapeDtypeStruct((), jnp.float32), jax.ShapeDtypeStruct((), jnp.int32)
    main = load(jax.jit(program).trace(*scalars).lower(lowering_platforms=("cpu",)).as_text()).main
    found = depending(main)
    assert [value in found for value in main.results] == [False, True, True, False, True, True]


def ring(fill: float, *, adds: bool, start: float, skips: bool, early: int = 0, first: int = 0) -> Function:
    """Causal attention; keys go round, from the own ones on; with `skips`, only those that are seen are looked at."""

    def local(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        d, n, rows = lax.axis_index("d"), 4, N // 4

        def turn(t: Any, carried: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            *state, k, v = carried
            at = (d - t - first) % n

            def look(state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
                largest, total, output = state
                keep = d * rows + jnp.arange(rows)[:, None] >= at * rows + jnp.arange(rows) + early
                s = masked(q @ k.T, keep, fill, adds)
                larger = jnp.maximum(largest, s.max(-1))
                p, rescale = jnp.exp(s - larger[:, None]), jnp.exp(largest - larger)
                return larger, total * rescale + p.sum(-1), output * rescale[:, None] + p @ v

            seen = lax.cond(at <= d, look, lambda state: state, tuple(state)) if skips else look(tuple(state))
            return *seen, *lax.ppermute((k, v), "d", [(i, (i + 1) % n) for i in range(n)])

        start_ = jnp.full((rows,), start), jnp.zeros((rows,)), jnp.zeros((rows, D))
        _, total, output, *_ = lax.fori_loop(0, n, turn, (*lax.pcast(start_, ("d",), to="varying"), k, v))
        return output / total[:, None]

    return jax.shard_map(local, mesh=MESH, in_specs=P("d"), out_specs=P("d"))


@pytest.mark.drawn(3)
@pytest.mark.parametrize("skips", [False, True])
@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize(("reference", "fill", "start"), [(INFINITE, LARGE, LARGE), (LEAST, LEAST, INFINITE)])
def test_causal_rings(reference: float, fill: float, start: float, adds: bool, skips: bool) -> None:
    found = report(attention(reference), ring(fill, adds=adds, start=start, skips=skips))
    assert found.verdict is Verdict.PROVED, found
    assert any("exponentials of either are 0" in said for said in found.assumptions)


WRONG: dict[str, dict[str, Any]] = {"a key early": {"early": 1}, "the keys of another": {"first": 1}}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("how", [{"adds": True, "skips": False}, {"adds": False, "skips": True}], ids=str)
def test_wrong_rings(name: str, how: dict[str, bool]) -> None:
    wrong = ring(LARGE, start=INFINITE, **how, **WRONG[name])
    assert report(attention(INFINITE), wrong).verdict is not Verdict.PROVED


def left_by(bound: Callable[[jax.Array], jax.Array]) -> Callable[..., Function]:
    """The largest of scores that a bound, or a shift, keeps from being minus infinity; a row sees nothing at first."""

    def program(fill: float) -> Function:
        def function(s: jax.Array, rare: jax.Array) -> jax.Array:
            def body(t: Any, total: jax.Array) -> jax.Array:
                x = jnp.where(jnp.arange(N) >= N - t, s, fill)
                return total + jnp.exp(bound(x)).sum(-1)

            return jnp.where(rare == 12345, lax.fori_loop(0, 2, body, jnp.zeros(s.shape[:1])), 0.0)

        return function

    return program


HUGE: dict[str, Callable[[], jax.Array]] = {
    "a product": lambda: jnp.full((), 1e5) * jnp.full((), 1e25),
    "a power of two": lambda: (jnp.full((), 1, jnp.int32) << 30).astype(jnp.float32) ** 3,
    "a bitcast": lambda: lax.bitcast_convert_type(jnp.full((), 0x7E80, jnp.int32) << 16, jnp.float32),
    "doubled in a loop": lambda: lax.fori_loop(0, 100, lambda i, x: 2 * x, jnp.float32(1)),
    "a table's": lambda: (jnp.array([1e5, 2e5]) * jnp.array([1e25, 1e25]))[0],
    "a quotient": lambda: jnp.full((), 1.0) / jnp.full((), 0.0),
    "a logarithm": lambda: -jnp.log(jnp.full((), 0.0)),
}

BOUNDS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "where a reduction starts": lambda x: x - x.max(-1, keepdims=True, initial=LARGE),
    "a number that masks": lambda x: x - jnp.maximum(x.max(-1, keepdims=True), LARGE),
    "a number above scaled ones": lambda x: 1e-2 * x - jnp.maximum((1e-2 * x).max(-1, keepdims=True), -1e8),
    "a shift": lambda x: x + 1e30,
    "many shifts": lambda x: lax.fori_loop(0, 4000, lambda i, x: x + 4e5, 1e-2 * x),
    **{
        f"{how} {name}": partial(use, number)
        for name, number in HUGE.items()
        for how, use in (
            ("a bound that is", lambda number, x: x - jnp.maximum(x.max(-1, keepdims=True), -number())),
            ("a shift by", lambda number, x: jnp.minimum(x + number(), 0.0)),
        )
    },
}


@pytest.mark.parametrize("starts", [False, True])
def test_a_bound_that_an_argument_gives(starts: bool) -> None:
    """Zeros show nothing of it: it may be below what masks."""

    def program(s: jax.Array, bound: jax.Array) -> jax.Array:
        def body(t: Any, carried: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            x = jnp.where(jnp.arange(N) >= N - t, s, LARGE)  # nothing is left in the first turn
            largest = jnp.maximum(x.max(-1), carried[0] if starts else bound)
            return largest, carried[1] + jnp.exp(x - largest[:, None]).sum(-1)

        return lax.fori_loop(0, 2, body, (bound, jnp.zeros(N)))[1]

    assert not is_read(program, SCORES, jax.ShapeDtypeStruct((N,), jnp.float32))


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("fills", [(INFINITE, LARGE), (LARGE, INFINITE)], ids=str)
def test_a_number_that_takes_the_place_of_minus_infinity(name: str, fills: tuple[float, float]) -> None:
    """Of a row that sees nothing, exponentials of what masks are 1 there, and 0 of minus infinity: for few arguments,
    so that no numbers tell."""
    first, second = (left_by(BOUNDS[name])(fill) for fill in fills)
    rows = jax.shard_map(second, mesh=MESH, in_specs=(P("d"), P()), out_specs=P("d"), check_vma=False)
    found = report(first, rows, SCORES, jax.ShapeDtypeStruct((), jnp.int32))
    assert found.verdict is not Verdict.PROVED


@pytest.mark.drawn(2)
@pytest.mark.parametrize("infinite", [lambda: jnp.inf, *HUGE.values()], ids=["infinity", *HUGE])
@pytest.mark.parametrize("fills", [(INFINITE, -1e9), (-1e9, INFINITE)], ids=str)
def test_scores_that_an_argument_makes_infinite(fills: tuple[float, float], infinite: Callable[[], Any]) -> None:
    """They are below what masks: the largest is minus infinity, or what masks."""

    def program(fill: float) -> Function:
        def function(s: jax.Array, padding: jax.Array) -> jax.Array:
            x = jnp.where(jnp.arange(N) >= 2, s - jnp.where(padding > 1e6, infinite(), 0.0), fill)
            largest = x.max(-1)
            return jnp.exp(x - jnp.where(jnp.isinf(largest), 0.0, largest)[:, None]).sum(-1) * (padding[0] > 1e6)

        return function

    rows = jax.shard_map(program(fills[1]), mesh=MESH, in_specs=(P("d"), P()), out_specs=P("d"))
    found = report(program(fills[0]), rows, SCORES, jax.ShapeDtypeStruct((N,), jnp.float32))
    assert found.verdict is not Verdict.PROVED
