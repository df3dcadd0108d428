"""Loops that go round a ring are proved against what they come to, and against nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import permutations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.index import expr
from hlo_verify.ops.rotating import rotation
from tests.ops.test_running import verdict
from tests.support.lowering import Placed, floats

RING = AbstractMesh((2, 4), ("x", "ring"))
Pairs = list[tuple[int, int]]
FORWARD: Pairs = [(i, (i + 1) % 4) for i in range(4)]
BACKWARD: Pairs = [(i, (i - 1) % 4) for i in range(4)]


def ring_verdict(reference: Callable[..., jax.Array], local: Callable[..., jax.Array]) -> Verdict:
    """Of attention of queries, keys and values that are split round a ring, as the queries are."""
    split = P("x", "ring", None)
    placed = Placed(RING, split, split, floats(*[(4, 12, 3)] * 3))
    return hlo_verify.verify(*placed.pair(reference, local), refute=False).verdict


def linear(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    return jnp.einsum("hqk,hkd->hqd", jnp.einsum("hqd,hkd->hqk", q, k), v)


def ring_of_sums(turns: int = 4, of_keys: Pairs = FORWARD, of_values: Pairs = FORWARD) -> Callable[..., jax.Array]:
    def local(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        def turn(_: Any, carried: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            total, k, v = carried
            moved = lax.ppermute(k, "ring", of_keys), lax.ppermute(v, "ring", of_values)
            return total + linear(q, k, v), *moved

        return lax.fori_loop(0, turns, turn, (jnp.zeros_like(q), k, v))[0]

    return local


TWICE: Pairs = [(i, (i + 2) % 4) for i in range(4)]
SWAPS: Pairs = [(0, 1), (1, 0), (2, 3), (3, 2)]
OPEN: Pairs = FORWARD[:3]
CROSSED: Pairs = [(0, 2), (2, 1), (1, 3), (3, 0)]


def test_what_goes_round_a_ring_is_all_there_is() -> None:
    assert ring_verdict(linear, ring_of_sums()) is Verdict.PROVED
    assert ring_verdict(linear, ring_of_sums(4, BACKWARD, BACKWARD)) is Verdict.PROVED


@pytest.mark.drawn(4)
@pytest.mark.parametrize(
    ("turns", "of_keys", "of_values"),
    [
        (3, FORWARD, FORWARD),
        (5, FORWARD, FORWARD),
        (8, FORWARD, FORWARD),
        (4, FORWARD, BACKWARD),
        (4, TWICE, TWICE),
        (4, SWAPS, SWAPS),
        (4, OPEN, OPEN),
        (4, CROSSED, FORWARD),
        (4, FORWARD, [(i, i) for i in range(4)]),
    ],
)
def test_what_goes_round_otherwise_is_not(turns: int, of_keys: Pairs, of_values: Pairs) -> None:
    assert ring_verdict(linear, ring_of_sums(turns, of_keys, of_values)) is Verdict.UNKNOWN


Block = Callable[[Any, Any], Any]


def ring_of_blocks(block: Block, pairs: Pairs = FORWARD) -> Verdict:
    """Of a product of matrices whose columns and rows are split round a ring: each turn's columns with its rows."""

    def local(x: jax.Array, w: jax.Array) -> jax.Array:
        d, rows = lax.axis_index("ring"), x.shape[1]

        def turn(t: Any, carried: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            total, x = carried
            here = lax.dynamic_slice_in_dim(w, block(d, t) * rows, rows)
            return total + x @ here, lax.ppermute(x, "ring", pairs)

        return lax.fori_loop(0, 4, turn, (jnp.zeros((x.shape[0], w.shape[1])), x))[0]

    placed = Placed(RING, (P("x", "ring"), P()), P("x"), floats((6, 8), (8, 5)))
    return hlo_verify.verify(*placed.pair(jnp.matmul, local), refute=False).verdict


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    "block",
    [
        lambda d, t: (d - t) % 4,
        lambda d, t: (d - t + 4) % 4,
        lambda d, t: d - t - 4 * ((d - t) // 4),
        lambda d, t: lax.rem(d - t, 4),  # JAX counts what is negative from the end
    ],
)
def test_the_block_of_a_turn_may_be_written_in_many_ways(block: Block) -> None:
    assert ring_of_blocks(block) is Verdict.PROVED
    assert ring_of_blocks(block, BACKWARD) is Verdict.UNKNOWN


@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    "block",
    [
        lambda d, t: (d + t) % 4,
        lambda d, t: (t - d) % 4,
        lambda d, t: (d - t) % 3,
        lambda d, t: lax.rem(d - t, 4) + 4,
        lambda d, t: (d - t) // 4 + t,
        lambda d, t: abs(d - t),
    ],
)
def test_another_block_is_not(block: Block) -> None:
    assert ring_of_blocks(block) is Verdict.UNKNOWN


def softmax(q: jax.Array, k: jax.Array, v: jax.Array, sink: float = 0.0) -> jax.Array:
    weights = jnp.exp(jnp.einsum("hqd,hkd->hqk", q, k))
    total = jnp.sum(weights, axis=-1, keepdims=True) + sink
    return jnp.einsum("hqk,hkd->hqd", weights, v) / total


Start = tuple[float, float]
"""The greatest score and the sum of weights before any key."""


def ring_of_softmax(change: str = "", start: Start = (-math.inf, 0.0)) -> Callable[..., jax.Array]:
    def local(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        def turn(_: Any, carried: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            largest, total, output, k, v = carried
            scores = jnp.einsum("hqd,hkd->hqk", q, k)
            here = jnp.max(scores, axis=-1)
            larger = here if change == "forgotten" else jnp.maximum(largest, here)
            if change == "least":
                larger = jnp.minimum(largest, here)
            weights, rescale = jnp.exp(scores - larger[..., None]), jnp.exp(largest - larger)
            if change == "inverted":
                rescale = jnp.exp(larger - largest)
            of_output = jnp.ones_like(rescale) if change == "output left" else rescale
            if change == "of another query":
                of_output = rescale[:, ::-1]
            total = total * rescale + jnp.sum(weights, axis=-1) * (2 if change == "doubled" else 1)
            output = output * of_output[..., None] + jnp.einsum("hqk,hkd->hqd", weights, v)
            moved = lax.ppermute((k, v), "ring", FORWARD)
            return larger, total, output, *moved

        shape = q.shape[:2]
        state = jnp.full(shape, start[0]), jnp.full(shape, start[1]), jnp.zeros_like(q), k, v
        largest, total, output, _, _ = lax.fori_loop(0, 4, turn, state)
        if change == "unnormalized":
            return output
        if change == "in units of its own":
            return output / (total * jnp.exp(largest))[..., None]
        return output / total[..., None]

    return local


def test_online_softmax_round_a_ring_is_softmax() -> None:
    assert ring_verdict(softmax, ring_of_softmax()) is Verdict.PROVED
    assert ring_verdict(softmax, ring_of_softmax(start=(0.0, 0.0))) is Verdict.PROVED
    assert ring_verdict(partial(softmax, sink=2.0), ring_of_softmax(start=(0.0, 2.0))) is Verdict.PROVED


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    "change",
    [
        "least",
        "inverted",
        "output left",
        "of another query",
        "doubled",
        "unnormalized",
        "in units of its own",
    ],
)
def test_a_rescale_gone_wrong_is_not(change: str) -> None:
    assert ring_verdict(softmax, ring_of_softmax(change)) is Verdict.UNKNOWN


def test_units_cancel_whatever_they_are() -> None:
    """In units of a turn's own maximum, the exponentials may overflow; over the reals they are the same softmax."""
    assert ring_verdict(softmax, ring_of_softmax("forgotten")) is Verdict.PROVED


def test_a_sum_in_units_of_an_infinity_starts_from_nothing() -> None:
    """Whatever a sum starts from is lost with exp(-infinity) at the first turn: it adds nothing, and is no sink."""
    assert ring_verdict(partial(softmax, sink=2.0), ring_of_softmax(start=(-math.inf, 2.0))) is Verdict.UNKNOWN
    assert ring_verdict(partial(softmax, sink=1.0), ring_of_softmax(start=(0.0, 2.0))) is Verdict.UNKNOWN


def ring_of_maxima(
    seen: Callable[[jax.Array, jax.Array, jax.Array, Any], jax.Array], largest: float | tuple[float, ...]
) -> Callable[..., jax.Array]:
    """Softmax in units of running maxima of what is seen of a turn's scores, from a query's first maximum on."""

    def local(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        def turn(t: Any, carried: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            largest, total, output, k, v = carried
            scores = jnp.einsum("hqd,hkd->hqk", q, k)
            larger = jnp.maximum(largest, jnp.max(seen(scores, q, k, t), axis=-1))
            weights, rescale = jnp.exp(scores - larger[..., None]), jnp.exp(largest - larger)
            total = total * rescale + jnp.sum(weights, axis=-1)
            output = output * rescale[..., None] + jnp.einsum("hqk,hkd->hqd", weights, v)
            return larger, total, output, *lax.ppermute((k, v), "ring", FORWARD)

        shape = q.shape[:2]
        start = jnp.broadcast_to(jnp.array(largest, jnp.float32), shape)
        _, total, output, _, _ = lax.fori_loop(0, 4, turn, (start, jnp.zeros(shape), jnp.zeros_like(q), k, v))
        return output / total[..., None]

    return local


def plus_infinity_for_later_keys(scores: jax.Array, q: jax.Array, k: jax.Array, t: Any) -> jax.Array:
    device, rows = lax.axis_index("ring"), q.shape[1]
    return causal(q, k, device * rows, (device - t) % 4 * rows, math.inf, own=True)


def and_at_each_turn(*numbers: float) -> Callable[..., jax.Array]:
    return lambda scores, q, k, t: scores + jnp.asarray(np.array(numbers, np.float32))[t]


def all_of_them(scores: jax.Array, q: jax.Array, k: jax.Array, t: Any) -> jax.Array:
    return scores


@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    ("seen", "largest", "expected"),
    [
        (all_of_them, 0.0, Verdict.PROVED),
        (all_of_them, (-math.inf, 0.0, 1.0), Verdict.PROVED),
        (and_at_each_turn(1, 0, 2, 3), -math.inf, Verdict.PROVED),
        (all_of_them, math.inf, Verdict.UNKNOWN),
        (all_of_them, (0.0, math.inf, 1.0), Verdict.UNKNOWN),
        (plus_infinity_for_later_keys, 0.0, Verdict.UNKNOWN),
        (and_at_each_turn(-math.inf, 0, 2, 3), -math.inf, Verdict.UNKNOWN),  # the first turn sees nothing
        (and_at_each_turn(0, math.inf, 2, 3), -math.inf, Verdict.UNKNOWN),
    ],
)
def test_a_unit_is_a_number(
    seen: Callable[..., jax.Array], largest: float | tuple[float, ...], expected: Verdict
) -> None:
    """In units of an infinity, 0 / 0 is computed, or the difference of two infinities."""
    assert ring_verdict(softmax, ring_of_maxima(seen, largest)) is expected


def causal(q: jax.Array, k: jax.Array, first_query: Any, first_key: Any, masked: float, own: bool) -> jax.Array:
    """Scores, `masked` where the key is later than the query; or where it is the query's, unless `own`."""
    queries, keys = first_query + jnp.arange(q.shape[1]), first_key + jnp.arange(k.shape[1])
    seen = queries[:, None] >= keys[None, :] + (0 if own else 1)
    return jnp.where(seen, jnp.einsum("hqd,hkd->hqk", q, k), masked)


def ring_of_causal(
    first: int = 0, *, masked: float = -math.inf, own: bool = True, offset: int = 0
) -> Callable[..., jax.Array]:
    """Causal attention; the block of the first turn is that of so many devices before."""

    def local(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        device, rows = lax.axis_index("ring"), q.shape[1]

        def turn(t: Any, carried: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            largest, total, output, k, v = carried
            source = (device - t - first) % 4
            scores = causal(q, k, device * rows + offset, source * rows, masked, own)
            larger = jnp.maximum(largest, jnp.max(scores, axis=-1))
            weights, rescale = jnp.exp(scores - larger[..., None]), jnp.exp(largest - larger)
            total = total * rescale + jnp.sum(weights, axis=-1)
            output = output * rescale[..., None] + jnp.einsum("hqk,hkd->hqd", weights, v)
            return larger, total, output, *lax.ppermute((k, v), "ring", FORWARD)

        for _ in range(first):
            k, v = lax.ppermute((k, v), "ring", FORWARD)
        shape = q.shape[:2]
        state = jnp.full(shape, -math.inf), jnp.zeros(shape), jnp.zeros_like(q), k, v
        _, total, output, _, _ = lax.fori_loop(0, 4, turn, state)
        return output / total[..., None]

    return local


def causal_softmax(q: jax.Array, k: jax.Array, v: jax.Array, masked: float = -math.inf, own: bool = True) -> jax.Array:
    weights = jax.nn.softmax(causal(q, k, 0, 0, masked, own), axis=-1)
    return jnp.einsum("hqk,hkd->hqd", weights, v)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("masked", [-math.inf, -1e30])
def test_scores_may_be_masked(masked: float) -> None:
    assert ring_verdict(partial(causal_softmax, masked=masked), ring_of_causal(masked=masked)) is Verdict.PROVED
    wrong = ring_of_causal(masked=masked, offset=1)
    assert ring_verdict(partial(causal_softmax, masked=masked), wrong) is Verdict.UNKNOWN


@pytest.mark.slow
def test_a_first_turn_may_not_be_masked_by_infinities_only() -> None:
    """The greatest score is minus infinity then, and the difference of two of them is no number."""
    assert ring_verdict(causal_softmax, ring_of_causal(1)) is Verdict.UNKNOWN
    assert ring_verdict(partial(causal_softmax, own=False), ring_of_causal(own=False)) is Verdict.UNKNOWN
    assert ring_verdict(partial(causal_softmax, masked=-1e30), ring_of_causal(1, masked=-1e30)) is Verdict.PROVED


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        (lambda t, skip: 2, Verdict.PROVED),
        (lambda t, skip: t, Verdict.UNKNOWN),
        (lambda t, skip: skip % 4, Verdict.UNKNOWN),
    ],
)
def test_the_unit_of_a_sum_is_one_element_of_the_maxima(
    unit: Callable[[Any, jax.Array], Any], expected: Verdict
) -> None:
    """Each column has a maximum; where every turn has the sum in units of another column's, nothing cancels."""

    def local(x: jax.Array) -> jax.Array:
        def turn(t: Any, carried: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            largest, total, weighted, skip = carried
            row = lax.dynamic_index_in_dim(x, t, keepdims=False)
            larger = jnp.maximum(largest, row)
            now, then = (lax.dynamic_index_in_dim(m, unit(t, skip), keepdims=False) for m in (largest, larger))
            rescale, weights = jnp.exp(now - then), jnp.exp(row - then)
            return larger, total * rescale + weights, weighted * rescale + weights * row, skip + t * t

        start = jnp.full(4, -1.0), jnp.zeros(4), jnp.zeros(4), jnp.int32(0)
        _, total, weighted, _ = lax.fori_loop(0, 4, turn, start)
        return lax.psum(weighted / total, "x")

    def reference(x: jax.Array) -> jax.Array:
        parts = jnp.exp(x).reshape(2, 4, 4)
        return jnp.sum(jnp.sum(parts * x.reshape(2, 4, 4), axis=1) / jnp.sum(parts, axis=1), axis=0)

    assert verdict(reference, local, rows=4) is expected


@given(
    low=st.integers(1, 3),
    radix=st.integers(2, 5),
    above=st.integers(1, 3),
    step=st.integers(1, 9),
    turns=st.integers(0, 9),
)
def test_rotations_of_devices(low: int, radix: int, above: int, step: int, turns: int) -> None:
    device = expr.var("d", "", low * radix * above)
    digit = expr.digit_of(expr.of_var(device), low, radix)
    reached = expr.modulo(expr.shift(digit, step), radix)
    source = expr.add(expr.of_var(device), expr.scale(expr.subtract(reached, digit), low))
    found = rotation(source, device)
    if step % radix == 0:
        assert found is None
        return
    assert found is not None
    for d in range(device.size):
        at = d
        for _ in range(turns):
            at += low * ((at // low + step) % radix - at // low % radix)
        where = expr.substitute(found(expr.constant(turns)), {device: expr.constant(d)})
        assert where is expr.constant(at)


def test_permutations_that_are_rotations() -> None:
    """Of all digits or of one; and of two that are counted in either order (`tables.Ring`), but of nothing else."""
    device, start = expr.var("d", "", 4), np.arange(4)
    shifted = [tuple((d + c) % 4 for d in range(4)) for c in (1, 2, 3)]
    flipped = [tuple(d ^ bit for d in range(4)) for bit in (1, 2)]
    swapped = [(0, 2, 1, 3)[d] for d in range(4)]
    counted_from_the_other = [tuple(swapped[order[swapped[d]]] for d in range(4)) for order in shifted]
    for order in permutations(range(4)):
        found = rotation(expr.lookup(order, expr.of_var(device)), device)
        assert (found is not None) == (order in shifted + flipped + counted_from_the_other)
        after = start
        for turns in range(5 if found is not None else 0):
            reached = [expr.substitute(found(expr.constant(turns)), {device: expr.constant(d)}).const for d in start]
            assert np.array_equal(reached, after)
            after = np.array(order)[after]
