"""Losses, clipping and merged attention in the spellings of their authors, shared out over devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.passes.prove.each_device.programs import on

DEVICES = 4
Function = Callable[..., Any]


def verdict(reference: Function, local: Function, ins: Any, outs: Any, *shapes: tuple[int, ...]) -> Verdict:
    placed = on({"i": DEVICES}, ins, outs, *shapes)
    return hlo_verify.verify(*placed.pair(reference, local), refute=False).verdict


# Clipping by a norm over all devices


def norm(g: jax.Array, shared: bool = True) -> jax.Array:
    total = jnp.sum(g**2)
    return jnp.sqrt(lax.psum(total, "i") if shared else total)


def clipped(g: jax.Array) -> jax.Array:
    return g * jnp.minimum(1.0, 2.0 / (norm(g, shared=False) + 1e-6))


CLIPPED: dict[str, tuple[Function, bool]] = {
    "where": (lambda g: jnp.where(norm(g) + 1e-6 > 2.0, g * (2.0 / (norm(g) + 1e-6)), g), True),
    "maximum": (lambda g: 2.0 * g / jnp.maximum(2.0, norm(g) + 1e-6), True),
    "no_eps_in_where": (lambda g: jnp.where(norm(g) > 2.0, g * (2.0 / (norm(g) + 1e-6)), g), False),
    "other_bound": (lambda g: g / jnp.maximum(2.0, norm(g) + 1e-6), False),
    "own_norm": (lambda g: 2.0 * g / jnp.maximum(2.0, norm(g, shared=False) + 1e-6), False),
    "grown": (lambda g: g * jnp.maximum(1.0, 2.0 / (norm(g) + 1e-6)), False),
}


@pytest.mark.parametrize("name", CLIPPED)
def test_clipping_by_a_norm(name: str) -> None:
    local, is_right = CLIPPED[name]
    assert (verdict(clipped, local, (P("i"),), P("i"), (8, 3)) is Verdict.PROVED) is is_right


# Partial results of attention with logarithms of sums, merged round a ring


def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    return jax.nn.softmax(k @ q / 4.0) @ v


def merged(
    q: jax.Array, k: jax.Array, v: jax.Array, turns: int = DEVICES - 1, of: Function = jnp.logaddexp, by: int = 1
) -> jax.Array:
    scores = k @ q / 4.0
    result, total = jax.nn.softmax(scores) @ v, jax.nn.logsumexp(scores)
    others = result, total
    for _ in range(turns):
        others = tuple(lax.ppermute(x, "i", [(n, (n + by) % DEVICES) for n in range(DEVICES)]) for x in others)
        both = of(total, others[1])
        result = result * jnp.exp(total - both) + others[0] * jnp.exp(others[1] - both)
        total = both
    return result


def by_hand(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.maximum(a, b) + jnp.log1p(jnp.exp(-jnp.abs(a - b)))


def by_the_least(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.minimum(a, b) + jnp.log1p(jnp.exp(jnp.abs(a - b)))


MERGED: dict[str, tuple[Function, bool]] = {
    "library": (merged, True),
    "by_hand": (partial(merged, of=by_hand), True),
    "by_the_least": (partial(merged, of=by_the_least), True),
    "backwards": (partial(merged, by=-1), True),
    "a_turn_short": (partial(merged, turns=DEVICES - 2), False),
    "two_at_a_time": (partial(merged, by=2), False),
    "of_the_maximum": (partial(merged, of=jnp.maximum), False),
    "least_without_distance": (partial(merged, of=lambda a, b: jnp.minimum(a, b) + jnp.log1p(jnp.exp(a - b))), False),
}


@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", MERGED)
def test_partial_results_are_merged_by_their_logarithms(name: str) -> None:
    local, is_right = MERGED[name]
    ins = (P(), P("i"), P("i"))
    assert (verdict(attention, local, ins, P(), (8,), (16, 8), (16, 8)) is Verdict.PROVED) is is_right


# A contrastive loss of normalized rows: logsumexp asks whether scores are finite, which no row is known to be


def unit(x: jax.Array) -> jax.Array:
    return x / jnp.linalg.norm(x, axis=-1, keepdims=True)


def contrastive(a: jax.Array, b: jax.Array) -> jax.Array:
    scores, rows = unit(a) @ unit(b).T / 0.5, jnp.arange(a.shape[0])
    return -(jax.nn.log_softmax(scores, 1)[rows, rows].mean() + jax.nn.log_softmax(scores, 0)[rows, rows].mean())


def shared(a: jax.Array, b: jax.Array, own: bool = True, times: float = 0.5) -> jax.Array:
    a, b = unit(a), unit(b)
    whole_a, whole_b = (lax.all_gather(x, "i", tiled=True) for x in (a, b))
    rows = jnp.arange(a.shape[0]) + lax.axis_index("i") * a.shape[0] * own

    def loss(scores: jax.Array) -> jax.Array:
        return jnp.mean(jax.nn.logsumexp(scores, -1) - scores[jnp.arange(len(rows)), rows])

    return lax.pmean(loss(a @ whole_b.T / 0.5) + loss(b @ whole_a.T / times), "i")


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("local", "is_right"), [(shared, True), (partial(shared, own=False), False), (partial(shared, times=0.25), False)]
)
def test_a_contrastive_loss(local: Function, is_right: bool) -> None:
    found = verdict(contrastive, local, (P("i"), P("i")), P(), (8, 4), (8, 4))
    assert (found is Verdict.PROVED) is is_right


# Attention over a band of keys, of which devices take the last ones from their neighbour


def banded(q: jax.Array, k: jax.Array, v: jax.Array, width: int = 4) -> jax.Array:
    row, key = jnp.arange(len(q))[:, None], jnp.arange(len(k))[None]
    scores = jnp.where((row >= key) & (row - key < width), q @ k.T, -jnp.inf)
    return jax.nn.softmax(scores, -1) @ v


def with_a_halo(
    q: jax.Array, k: jax.Array, v: jax.Array, width: int = 4, first: int = 0, late: int = 0, filled: float = -jnp.inf
) -> jax.Array:
    here, count = lax.axis_index("i"), len(q)
    k, v = (jnp.concatenate([lax.ppermute(x, "i", [(n, n + 1) for n in range(DEVICES - 1)]), x]) for x in (k, v))
    row = here * count + jnp.arange(count)[:, None]
    key = (here - 1) * count + jnp.arange(2 * count)[None]
    held = (row >= key + late) & (row - key < width) & (key >= first)
    return jax.nn.softmax(jnp.where(held, q @ k.T, filled), -1) @ v


BANDS: dict[str, tuple[Function, bool]] = {
    "right": (with_a_halo, True),
    "before_the_first": (partial(with_a_halo, first=-8), False),
    "wider": (partial(with_a_halo, width=5), False),
    "none_of_its_own": (partial(with_a_halo, late=1), False),
    "filled_with_zeros": (partial(with_a_halo, filled=0.0), False),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", BANDS)
def test_attention_over_a_band(name: str) -> None:
    local, is_right = BANDS[name]
    found = verdict(banded, local, (P("i"),) * 3, P("i"), (32, 4), (32, 4), (32, 4))
    assert (found is Verdict.PROVED) is is_right


# Causal attention in a ring, written out, with minus infinity in place of later keys


def causal(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    return jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((len(q), len(k)), bool)), q @ k.T, -jnp.inf), -1) @ v


def in_a_ring(
    q: jax.Array, k: jax.Array, v: jax.Array, turns: int = DEVICES, by: int = 1, back: int = 0, is_rescaled: bool = True
) -> jax.Array:
    here, own = lax.axis_index("i"), jnp.arange(len(q))
    most, total, result = jnp.full(len(q), -jnp.inf), jnp.zeros(len(q)), jnp.zeros_like(q)
    for turn in range(turns):
        rows, keys = here * len(q) + own[:, None], (here - turn) % DEVICES * len(q) + own[None]
        scores = jnp.where(rows >= keys - back, q @ k.T, -jnp.inf)
        greatest = jnp.maximum(most, scores.max(-1))
        p, scale = jnp.exp(scores - greatest[:, None]), jnp.exp(most - greatest)
        total = total * (scale if is_rescaled else 1.0) + p.sum(-1)
        result, most = result * scale[:, None] + p @ v, greatest
        k, v = (lax.ppermute(x, "i", [(n, (n + by) % DEVICES) for n in range(DEVICES)]) for x in (k, v))
    return result / total[:, None]


RINGS: dict[str, tuple[Function, bool]] = {
    "right": (in_a_ring, True),
    "the_next_key_too": (partial(in_a_ring, back=1), False),
    "the_other_way": (partial(in_a_ring, by=-1), False),
    "a_turn_short": (partial(in_a_ring, turns=DEVICES - 1), False),
    "total_not_rescaled": (partial(in_a_ring, is_rescaled=False), False),
}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", RINGS)
def test_a_causal_ring_written_out(name: str) -> None:
    local, is_right = RINGS[name]
    found = verdict(causal, local, (P("i"),) * 3, P("i"), (16, 4), (16, 4), (16, 4))
    assert (found is Verdict.PROVED) is is_right


# What the reference does not compute decides no question


def finite(x: jax.Array, other: float = 7.0) -> jax.Array:
    return jnp.where(jnp.isfinite(x), x, other)


def same(x: jax.Array, other: float = 7.0) -> jax.Array:
    return jnp.where(x == x, x, other)


def squared(x: jax.Array) -> jax.Array:
    return jnp.square(1 / x)


ASKED: dict[str, tuple[Function, Function, bool]] = {
    "divided": (lambda x: 2 / x, lambda x: 2 * finite(1 / x), True),
    "no_other_number": (lambda x: 2 * jnp.log(x), lambda x: 2 * same(jnp.log(x)), True),
    "all_rows_of_all": (lambda x: jnp.sum(1 / x), lambda x: lax.psum(jnp.sum(finite(1 / x)), "i"), True),
    "nothing_divided": (lambda x: x, lambda x: x * jnp.isfinite(1 / x), False),
    "divided_where_it_may_be": (
        lambda x: jnp.where(x > 0, 1 / x, 0),
        lambda x: jnp.where(x > 0, 1 / x, 0) + jnp.where(jnp.isfinite(1 / x), 0, 1.0),
        False,
    ),
    "divided_either_way": (
        lambda x: jnp.where(x > 0, 1 / x, 2 / x),
        lambda x: jnp.where(jnp.isfinite(1 / x), jnp.where(x > 0, 1 / x, 2 / x), 7.0),
        True,
    ),
    "divided_one_way": (
        lambda x: jnp.where(x > 0, 1 / x, 2.0),
        lambda x: jnp.where(jnp.isfinite(1 / x), jnp.where(x > 0, 1 / x, 2.0), 7.0),
        False,
    ),
    "never_below_0": (lambda x: jnp.where(squared(x) >= 0, squared(x), -squared(x)), squared, True),
    "no_number_is_not_above_0": (lambda x: jnp.where(squared(x) >= 0, x, 3.0), lambda x: x, False),
    "0_for_no_number": (lambda x: jnp.where(jnp.isfinite(1 / x), 1 / x, 0), lambda x: 1 / x, False),
    "7_for_no_number": (lambda x: finite(1 / x, 0.0), lambda x: finite(1 / x, 7.0), False),
    "0_for_another": (lambda x: 1 / x + finite(2 / (x + 1), 0.0), lambda x: 1 / x + 2 / (x + 1), False),
    "asked_there_too": (lambda x: jnp.where(jnp.isfinite(1 / x), x, 3.0), lambda x: x, False),
    "divided_by_another": (lambda x: 2 / (x + 1), lambda x: 2 * finite(1 / x) + 2 / (x + 1) - 2 / x, False),
    "rows_of_one_device": (
        lambda x: jnp.sum(1 / x[:2]) + 0 * x,
        lambda x: lax.psum(jnp.where(lax.axis_index("i") == 0, jnp.sum(1 / x), 0.0), "i") + 0 * finite(1 / x),
        False,
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_whether_something_is_a_number(name: str) -> None:
    reference, local, is_right = ASKED[name]
    outs = P() if name == "all_rows_of_all" else P("i")
    assert (verdict(reference, local, (P("i"),), outs, (8,)) is Verdict.PROVED) is is_right


# Losses with smooth labels, and of vectors that are made as long as one another


def smooth(z: jax.Array, y: jax.Array) -> jax.Array:
    labels = 0.5 * jax.nn.one_hot(y, 24) + 0.5 / 16
    return -jnp.sum(labels * jax.nn.log_softmax(z), -1)


def smooth_of_split(z: jax.Array, y: jax.Array, weight: float = 1 / 32) -> jax.Array:
    most = lax.pmax(jnp.max(z, -1), "i")
    log_sum = most + jnp.log(lax.psum(jnp.sum(jnp.exp(z - most[:, None]), -1), "i"))
    hot = jax.nn.one_hot(y - 6 * lax.axis_index("i"), 6)
    return 0.5 * (log_sum - lax.psum(jnp.sum(z * hot, -1), "i")) + weight * (
        24 * log_sum - lax.psum(jnp.sum(z, -1), "i")
    )


def smoothing(whole: Function, local: Function) -> Verdict:
    placed = on({"i": DEVICES}, (P(None, "i"), P()), P(), (5, 24), (5,))
    placed = replace(placed, arguments=[placed.arguments[0], jax.ShapeDtypeStruct((5,), "int32")])
    return hlo_verify.verify(*placed.pair(whole, local), refute=False, assume={"y": (0, 24)}).verdict


@pytest.mark.parametrize(("weight", "is_right"), [(1 / 32, True), (1 / 16, False)])
def test_smooth_labels(weight: float, is_right: bool) -> None:
    found = smoothing(smooth, partial(smooth_of_split, weight=weight))
    assert (found is Verdict.PROVED) is is_right


def smooth_in_decimals(z: jax.Array, y: jax.Array) -> jax.Array:
    labels = (1 - 0.1) * jax.nn.one_hot(y, 24) + 0.1 / 24
    return -jnp.sum(labels * jax.nn.log_softmax(z), -1)


def smooth_in_decimals_of_split(z: jax.Array, y: jax.Array, alpha: float = 0.1) -> jax.Array:
    most = lax.pmax(jnp.max(z, -1), "i")
    log_sum = most + jnp.log(lax.psum(jnp.sum(jnp.exp(z - most[:, None]), -1), "i"))
    hot = jax.nn.one_hot(y - 6 * lax.axis_index("i"), 6)
    own, every = (lax.psum(jnp.sum(score, -1), "i") for score in (z * hot, z))
    return log_sum - (1 - alpha) * own - alpha * every / 24


@pytest.mark.parametrize(("alpha", "is_right"), [(0.1, True), (0.2, False)])
def test_smooth_labels_whose_weights_are_decimals(alpha: float, is_right: bool) -> None:
    """0.9 and 0.1 add up to 1 but for their roundings: all of the logarithm is left."""
    found = smoothing(smooth_in_decimals, partial(smooth_in_decimals_of_split, alpha=alpha))
    assert (found is Verdict.PROVED) is is_right


def contrasted(a: jax.Array, b: jax.Array) -> jax.Array:
    z = unit(a) @ unit(b).T
    return jax.nn.logsumexp(z, -1) - jnp.diagonal(z)


def contrasted_shards(a: jax.Array, b: jax.Array, shift: int = 0) -> jax.Array:
    rows = jnp.arange(2)
    z = jax.nn.log_softmax(unit(a) @ lax.all_gather(unit(b), "i", tiled=True).T)
    return -z[rows, rows + 2 * lax.axis_index("i") + shift]


@pytest.mark.parametrize(("shift", "is_right"), [(0, True), (-1, False)])
def test_a_contrast_of_unit_vectors(shift: int, is_right: bool) -> None:
    """A reference asks whether the greatest score is finite, which it is where its own result is."""
    local = partial(contrasted_shards, shift=shift)
    found = verdict(contrasted, local, (P("i"), P("i")), P("i"), (8, 3), (8, 3))
    assert (found is Verdict.PROVED) is is_right


@pytest.mark.parametrize(("shift", "is_right"), [(0, True), pytest.param(-1, False, marks=pytest.mark.slow)])
def test_gradients_of_a_contrast(shift: int, is_right: bool) -> None:
    """They divide by the absolute value of a sum of exponentials, of which the reference asks the sign too."""

    def of(loss: Function) -> Function:
        return jax.grad(lambda a, b: jnp.sum(loss(a, b)))

    local = of(partial(contrasted_shards, shift=shift))
    found = verdict(of(contrasted), local, (P("i"), P("i")), P("i"), (8, 3), (8, 3))
    assert (found is Verdict.PROVED) is is_right


# What comes first of elements that are equal but for roundings


def first(elements: jax.Array, way: str) -> jax.Array:
    match way:
        case "argmax":
            return jnp.argmax(elements, 0).astype(jnp.float32)
        case "argmin":
            return jnp.argmin(elements, 0).astype(jnp.float32)
        case "sort":
            return lax.sort((elements, jnp.stack([-elements[1], elements[1], elements[0]])), num_keys=1)[1][0]
        case _:
            return lax.top_k(elements.T, 1)[1][:, 0].astype(jnp.float32)


WAYS = ("argmax", "argmin", "sort", "top_k")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("inside", [lambda x: x, jnp.tanh])
def test_roundings_decide_what_comes_first_of_equal_elements(way: str, inside: Function) -> None:
    """Of `0.9*x + 0.1*x` and x, as single precision holds these numbers, x is the greater one: for a positive x."""
    elements = lambda x, y: jnp.stack([inside(0.9 * x + 0.1 * x), inside(x), inside(y)])  # noqa: E731
    equal = lambda x, y: jnp.stack([inside(x), inside(x), inside(y)])  # noqa: E731
    shapes = (P("i"), P("i")), P("i"), (8,), (8,)
    found = verdict(lambda x, y: first(elements(x, y), way), lambda x, y: first(equal(x, y), way), *shapes)
    assert found is not Verdict.PROVED


@pytest.mark.parametrize("way", [way for way in WAYS if way != "sort"])
def test_elements_that_are_rounded_alike_are_in_one_order(way: str) -> None:
    mixed = lambda x: 0.9 * x + 0.1 * x  # noqa: E731
    found = verdict(
        lambda x, y: first(jnp.stack([mixed(x), mixed(y), mixed(x + y)]), way),
        lambda x, y: first(jnp.stack([x, y, x + y]), way),
        *((P("i"), P("i")), P("i"), (8,), (8,)),
    )
    assert found is Verdict.PROVED
