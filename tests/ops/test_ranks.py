"""Ranks: by sorting twice, by counting the elements that come before, and who is one of the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.compare import assert_same
from tests.support.modules import ours

SIZE, MINE = 8, 2
MESH = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))


def sorted_twice(x: jax.Array) -> jax.Array:
    return jnp.argsort(jnp.argsort(x))


def downwards(x: jax.Array) -> jax.Array:
    return jnp.argsort(jnp.argsort(-x))


def joined(less: jax.Array, first: jax.Array) -> jax.Array:
    return less | first


def chosen(less: jax.Array, first: jax.Array) -> jax.Array:
    return jnp.where(less, 1, jnp.where(first, 1, 0))


def added(less: jax.Array, first: jax.Array) -> jax.Array:
    return less.astype(jnp.int32) + first.astype(jnp.int32)


def before(a: Any, i: Any, b: Any, j: Any, join: Any = joined) -> jax.Array:
    """Whether each of some elements at places comes before each of others."""
    return join(a[None] < b[:, None], (a[None] == b[:, None]) & (i[None] < j[:, None]))


def own(x: jax.Array, off: int = 0) -> jax.Array:
    return MINE * lax.axis_index("x") + off + jnp.arange(x.shape[0])


def counted(join: Callable[..., jax.Array], off: int = 0) -> Callable[[jax.Array], jax.Array]:
    """How many of all elements come before those of a device."""
    every = jnp.arange(SIZE)
    return lambda x: before(lax.all_gather(x, "x", tiled=True), every, x, own(x, off), join).sum(1).astype(jnp.int32)


def apart(x: jax.Array) -> jax.Array:
    """The same, by how many are less, and how many of those before are equal."""
    every, i = lax.all_gather(x, "x", tiled=True)[None], own(x)[:, None]
    first = (every == x[:, None]) & (jnp.arange(SIZE)[None] < i)
    return (every < x[:, None]).sum(1) + first.sum(1)


def summed(x: jax.Array) -> jax.Array:
    """The same, of which each device counts its own for all."""
    ahead = before(x, own(x), lax.all_gather(x, "x", tiled=True), jnp.arange(SIZE)).sum(1)
    return lax.psum_scatter(ahead, "x", tiled=True).astype(jnp.int32)


def of_numbers(forms: Iterable[Callable[[jax.Array], jax.Array]]) -> None:
    """What each form is by our rules is what JAX finds, of numbers of which some are equal."""
    function = jax.jit(lambda x: [form(x) for form in forms])
    text = function.lower(jax.ShapeDtypeStruct((SIZE,), jnp.float32)).as_text()
    for seed in range(4):
        x = np.random.default_rng(seed).integers(-2, 2 + seed, SIZE).astype("f")
        for found, expected in zip(ours(text, [x]).results, function(x), strict=True):
            assert_same(found, np.asarray(expected))


def test_a_count_of_those_before_is_a_rank() -> None:
    places = jnp.arange(SIZE)
    of_numbers(
        [lambda x, join=join: before(x, places, x, places, join).sum(1) for join in (joined, chosen, added)]
        + [lambda x: jnp.argsort(jnp.argsort(x))]
    )


def verdict(whole: Any, local: Any, out: Any) -> Verdict:
    shapes = jax.ShapeDtypeStruct((SIZE,), jnp.float32)
    mapped = jax.shard_map(local, mesh=MESH, in_specs=P("x"), out_specs=out, check_vma=False)
    return hlo_verify.verify(*(jax.jit(f).trace(shapes) for f in (whole, mapped)), devices=4).verdict


@pytest.mark.parametrize(
    ("whole", "local"),
    [
        (sorted_twice, counted(joined)),
        (sorted_twice, counted(chosen)),
        (sorted_twice, counted(added)),
        (sorted_twice, apart),
        (sorted_twice, summed),
        (downwards, lambda x: counted(joined)(-x)),
        (lambda x: sorted_twice(jnp.exp(2 * x)), counted(joined)),
    ],
)
def test_ranks_of_elements_that_devices_share(whole: Any, local: Any) -> None:
    assert verdict(whole, local, P("x")) is Verdict.PROVED


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("whole", "local"),
    [
        (sorted_twice, lambda x: counted(joined)(-x)),
        (sorted_twice, counted(lambda less, first: less)),
        (sorted_twice, counted(joined, off=1)),
        (jnp.argsort, counted(joined)),
    ],
)
def test_what_is_no_rank_of_elements_that_devices_share(whole: Any, local: Any) -> None:
    assert verdict(whole, local, P("x")) is Verdict.REFUTED


def among_first(x: jax.Array, k: int) -> jax.Array:
    """Whether each of all elements is one of the k greatest."""
    return (lax.top_k(x, k)[1][None] == jnp.arange(SIZE)[:, None]).any(1)


def marked(x: jax.Array, k: int) -> jax.Array:
    return jnp.zeros(SIZE, bool).at[lax.top_k(x, k)[1]].set(True)


def from_the_end(x: jax.Array, k: int) -> jax.Array:
    """Whether each is one of those that a sort puts last."""
    return jnp.isin(jnp.arange(SIZE), jnp.argsort(x)[-k:])


def kept(x: jax.Array, k: int) -> jax.Array:
    """The k greatest, where they are, and 0 elsewhere."""
    values, places = lax.top_k(x, k)
    return jnp.zeros(SIZE).at[places].set(values)


def added_where(x: jax.Array, k: int) -> jax.Array:
    """What comes first is added by how many come before it."""
    places = jnp.argsort(x)
    return jnp.zeros(SIZE).at[places[:k]].add(jnp.arange(k, dtype=jnp.float32))


def outside_too(x: jax.Array, k: int) -> jax.Array:
    """Whether each of some numbers is the place of one of the k greatest, which those outside are not."""
    return jnp.isin(jnp.arange(-1, SIZE + 2), lax.top_k(x, k)[1])


FIRST = (outside_too, among_first, marked, from_the_end, kept, added_where)


def test_who_is_one_of_the_first_is_told_by_its_rank() -> None:
    of_numbers([lambda x, form=form: form(x, 3) for form in FIRST])


def ranks_of_own(x: jax.Array, *, upwards: bool = False, off: int = 0) -> jax.Array:
    return counted(joined, off)(x if upwards else -x)


def summed_where(x: jax.Array, r: int, **options: Any) -> jax.Array:
    """The element of a rank, which one device has."""
    return lax.psum(jnp.sum(jnp.where(ranks_of_own(x, upwards=True, **options) == r, x, 0)), "x")


def summed_among(x: jax.Array, k: int) -> jax.Array:
    return lax.psum(jnp.sum(x * (ranks_of_own(x) < k)), "x")


def kept_of_a_cache(x: jax.Array) -> jax.Array:
    """The best of all but the last two, and these."""
    return jnp.zeros(SIZE, bool).at[lax.top_k(x[: SIZE - 2], 3)[1]].set(True).at[SIZE - 2 :].set(True)


def kept_of_own(x: jax.Array) -> jax.Array:
    best = lax.top_k(lax.all_gather(x, "x", tiled=True)[: SIZE - 2], 3)[1]
    return jnp.isin(own(x), best) | (own(x) >= SIZE - 2)


def placed(x: jax.Array, **options: Any) -> jax.Array:
    """All elements in order: each device puts its own where their ranks say."""
    ranks = ranks_of_own(x, upwards=True, **options)
    return lax.psum(jnp.zeros(SIZE).at[ranks].add(x), "x")


@pytest.mark.parametrize(
    ("whole", "local", "out"),
    [
        (lambda x: marked(x, 3), lambda x: ranks_of_own(x) < 3, P("x")),
        (lambda x: among_first(x, 3), lambda x: ranks_of_own(x) < 3, P("x")),
        (lambda x: kept(x, 3), lambda x: jnp.where(ranks_of_own(x) < 3, x, 0), P("x")),
        (lambda x: jnp.sort(x)[5], lambda x: summed_where(x, 5), P()),
        (jnp.sort, placed, P()),
        (lambda x: lax.top_k(x, 3)[0].sum(), lambda x: summed_among(x, 3), P()),
        (kept_of_a_cache, kept_of_own, P("x")),
    ],
)
def test_places_in_order_and_ranks_that_devices_count(whole: Any, local: Any, out: Any) -> None:
    assert verdict(whole, local, out) is Verdict.PROVED


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("whole", "local", "out"),
    [
        (lambda x: lax.top_k(x, 3)[0].sum(), lambda x: summed_among(x, 2), P()),
        (lambda x: marked(x, 3), lambda x: ranks_of_own(x) <= 3, P("x")),
        (lambda x: marked(x, 3), lambda x: ranks_of_own(x, off=1) < 3, P("x")),
        (lambda x: from_the_end(x, 3), lambda x: ranks_of_own(x) < 3, P("x")),
        (lambda x: jnp.sort(x)[5], lambda x: summed_where(x, 4), P()),
        (jnp.sort, lambda x: placed(x, off=1), P()),
    ],
)
def test_other_places_and_ranks_that_devices_count(whole: Any, local: Any, out: Any) -> None:
    assert verdict(whole, local, out) is Verdict.REFUTED


def gates_set(x: jax.Array, k: int) -> jax.Array:
    """The softmax of the k greatest, where they are."""
    values, places = lax.top_k(x, k)
    return jnp.zeros(SIZE).at[places].set(jax.nn.softmax(values))


def gates_by_product(x: jax.Array, k: int) -> jax.Array:
    values, places = lax.top_k(x, k)
    return jax.nn.softmax(values) @ jax.nn.one_hot(places, SIZE)


def gates_masked(x: jax.Array, k: int) -> jax.Array:
    """The same, of the softmax of all, what is left of which is divided by its sum."""
    gates = jax.nn.softmax(x) * jax.nn.one_hot(lax.top_k(x, k)[1], SIZE).sum(0)
    return gates / gates.sum()


def only_best(x: jax.Array, k: int, other: float = -jnp.inf) -> jax.Array:
    """The k greatest, and another number in the place of the others."""
    return jnp.where(jax.nn.one_hot(lax.top_k(x, k)[1], SIZE).sum(0) > 0, x, other)


def gates_of_best(x: jax.Array, k: int) -> jax.Array:
    """The same, of scores of which minus infinity masks the others."""
    return jax.nn.softmax(only_best(x, k))


GATES = (gates_set, gates_by_product, gates_masked, gates_of_best)


EXTREMA = (
    lambda x: only_best(x, 3).max(),
    lambda x: only_best(x, 3, jnp.inf).min(),
    lambda x: only_best(-x, 2, 0.5).max(),
    lambda x: (among_first(x, 3) & (x < 1)).any(),
    lambda x: (among_first(x, 3) | (x < 1)).all(),
    lambda x: jax.nn.logsumexp(only_best(x, 3)),
)


def test_extrema_of_the_first_are_those_of_numbers() -> None:
    of_numbers(EXTREMA)


@pytest.mark.parametrize(
    ("whole", "local"),
    [
        (lambda x: lax.top_k(x, 3)[0].min(), lambda x: only_best(x, 3, jnp.inf).min()),
        (lambda x: jnp.exp(lax.top_k(x, 3)[0]).max(), lambda x: jnp.exp(only_best(x, 3)).max()),
        (lambda x: jax.nn.logsumexp(lax.top_k(x, 3)[0]), lambda x: jax.nn.logsumexp(only_best(x, 3))),
    ],
)
def test_reductions_of_the_first_on_every_device(whole: Any, local: Any) -> None:
    assert verdict(whole, lambda x: local(lax.all_gather(x, "x", tiled=True)), P()) is Verdict.PROVED


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("whole", "local"),
    [
        (lambda x: lax.top_k(x, 3)[0].min(), lambda x: only_best(x, 2, jnp.inf).min()),
        (lambda x: lax.top_k(x, 3)[0].max(), lambda x: only_best(x, 3, 0.0).max()),
        (lambda x: lax.top_k(x, 3)[0].max(), lambda x: only_best(-x, 3).max()),
        (lambda x: jax.nn.logsumexp(lax.top_k(x, 3)[0]), lambda x: jax.nn.logsumexp(only_best(x, 4))),
    ],
)
def test_other_reductions_of_the_first(whole: Any, local: Any) -> None:
    """Where infinity masks, enclosures may leave open which of the two is greater."""
    assert verdict(whole, lambda x: local(lax.all_gather(x, "x", tiled=True)), P()) is not Verdict.PROVED


def test_gates_are_those_of_numbers() -> None:
    of_numbers([lambda x, form=form: form(x, 3) for form in (*GATES, lambda x, k: jnp.exp(kept(x, k)))])


def routed(x: jax.Array) -> jax.Array:
    """What three of eight experts, whose weights are an argument as the scores are, make together."""
    values, places = lax.top_k(x, 3)
    return jax.nn.softmax(values) @ jnp.sin(x)[places]


def routed_by(gates: Callable[[jax.Array, int], jax.Array], k: int = 3) -> Callable[[jax.Array], jax.Array]:
    """The same by devices, each with experts of its own."""
    return lambda x: lax.psum(gates(lax.all_gather(x, "x", tiled=True), k)[own(x)] @ jnp.sin(x), "x")


def unnormalised(x: jax.Array, k: int) -> jax.Array:
    return jax.nn.softmax(x) * jax.nn.one_hot(lax.top_k(x, k)[1], SIZE).sum(0)


def of_those_before(x: jax.Array, k: int) -> jax.Array:
    """Gates that are divided by the sum of one less than there are."""
    return unnormalised(x, k) / unnormalised(x, k - 1).sum()


@pytest.mark.parametrize("gates", GATES)
def test_gates_of_the_best_experts(gates: Callable[[jax.Array, int], jax.Array]) -> None:
    def everywhere(x: jax.Array) -> jax.Array:
        every = lax.all_gather(x, "x", tiled=True)
        return gates(every, 3) @ jnp.sin(every)

    assert verdict(routed, routed_by(gates), P()) is Verdict.PROVED
    assert verdict(routed, everywhere, P()) is Verdict.PROVED


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    "local", [routed_by(unnormalised), routed_by(of_those_before), routed_by(gates_masked, 2), routed_by(gates_set, 4)]
)
def test_other_gates_of_the_best_experts(local: Callable[[jax.Array], jax.Array]) -> None:
    assert verdict(routed, local, P()) is Verdict.REFUTED


@pytest.mark.parametrize(("times", "expected"), [(1, Verdict.PROVED), (2, Verdict.UNKNOWN)])
def test_places_in_order_are_written_to_once_each(times: int, expected: Verdict) -> None:
    """In whatever order; a place that is written to twice keeps what came last."""

    def written(x: jax.Array, u: jax.Array, step: int) -> jax.Array:
        return jnp.zeros(SIZE).at[jnp.argsort(x)[jnp.arange(4) // times][::step]].set(u[::step])

    shapes = [jax.ShapeDtypeStruct((SIZE,), jnp.float32), jax.ShapeDtypeStruct((4,), jnp.float32)]
    forms = [lambda x, u: written(x, u, 1), lambda x, u: written(x, u, -1)]
    mapped = jax.shard_map(forms[1], mesh=MESH, in_specs=P(), out_specs=P(), check_vma=False)
    found = hlo_verify.verify(*(jax.jit(f).trace(*shapes) for f in (forms[0], mapped)), devices=4, refute=False)
    assert found.verdict is expected
