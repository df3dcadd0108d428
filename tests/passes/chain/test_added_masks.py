"""Numbers that are added to scores mask as those that are put in their place, where exponentials are taken."""

from __future__ import annotations

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
from hlo_verify.passes.chain.added_masks import with_chosen_masks
from hlo_verify.passes.load.load import load
from tests.conftest import SEED
from tests.passes.chain.test_masking_numbers import (
    HARMFUL,
    HARMLESS,
    INFINITE,
    KEEP,
    LARGE,
    MASK,
    MESH,
    SCORES,
    D,
    Function,
    N,
    X,
    attention,
    in_rows,
    masked,
    report,
)

Adding = Callable[[Any, float], Any]

ADDED: dict[str, Adding] = {
    "a choice": lambda keep, fill: jnp.where(keep, 0.0, fill),
    "a product": lambda keep, fill: (1.0 - jnp.asarray(keep).astype(jnp.float32)) * fill,
    "a product of what goes": lambda keep, fill: fill * jnp.logical_not(keep).astype(jnp.float32),
}


def on_queries(added: Adding, fill: float, *, early: int = 0, scale: float = 1.0) -> Function:
    """Devices have queries, and add what masks to their scores."""

    def local(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        keep = lax.axis_index("d") * 2 + jnp.arange(2)[:, None] >= jnp.arange(N) + early
        return jax.nn.softmax(scale * (q @ k.T) + added(keep, fill), -1) @ v

    return jax.shard_map(local, mesh=MESH, in_specs=(P("d"), P(), P()), out_specs=P("d"))


def on_keys(added: Adding, fill: float, *, own: bool) -> Function:
    """Devices have keys, of which some see none of their own; with `own`, the largest of these is subtracted."""

    def local(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        keep = jnp.arange(N)[:, None] >= lax.axis_index("d") * 2 + jnp.arange(2)
        scores = q @ k.T + added(keep, fill)
        largest = scores.max(-1, keepdims=True)
        e = jnp.exp(scores - (largest if own else lax.pmax(largest, "d")))
        return lax.psum(e @ v, "d") / lax.psum(e.sum(-1, keepdims=True), "d")

    return jax.shard_map(local, mesh=MESH, in_specs=(P(), P("d"), P("d")), out_specs=P(), check_vma=False)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", ADDED)
@pytest.mark.parametrize("fills", [(INFINITE, LARGE), (LARGE, -1e9), (-1e9, -1e9)], ids=str)
def test_what_is_added_masks_as_what_chooses(name: str, fills: tuple[float, float]) -> None:
    found = report(attention(fills[0]), on_queries(ADDED[name], fills[1]))
    assert found.verdict is Verdict.PROVED, found
    said = [said for said in found.assumptions if "being added" in said or "as minus infinity" in said]
    assert said and not any("not all of them" in each for each in said)


def test_a_reference_that_adds() -> None:
    def added(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        return jax.nn.softmax(q @ k.T + jnp.where(KEEP, 0.0, -1e9), -1) @ v

    whole = jax.shard_map(attention(INFINITE), mesh=MESH, in_specs=(P(),) * 3, out_specs=P())
    assert report(added, whole).verdict is Verdict.PROVED


WRONG = {
    "a key early": on_queries(ADDED["a choice"], -1e9, early=1),
    "another scale": on_queries(ADDED["a product"], -1e9, scale=0.5),
    "too small a number": on_queries(ADDED["a choice"], -10.0),
    "a number that is added to all": on_queries(lambda keep, fill: fill, -1e9),
    "what is not masked is shifted": on_queries(lambda keep, fill: jnp.where(keep, jnp.arange(N) / 8, fill), -1e9),
    "kept the wrong way": on_queries(lambda keep, fill: jnp.where(keep, fill, 0.0), -1e9),
    "the largest of its own": on_keys(ADDED["a choice"], -1e9, own=True),
}


@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_stays_so(name: str) -> None:
    assert report(attention(INFINITE), WRONG[name]).verdict is not Verdict.PROVED


def gradients(function: Function) -> Function:
    """Of what a program gives, times whatever comes back, by all that it is given."""
    return lambda q, k, v, back: jax.vjp(function, q, k, v)[1](back)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", ADDED)
def test_gradients(name: str) -> None:
    """The largest is held constant: how it would change is in them, and nothing hangs on that."""
    found = report(gradients(attention(INFINITE)), gradients(on_queries(ADDED[name], -1e9)), X, X, X, X)
    assert found.verdict is Verdict.PROVED, found


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", ["a key early", "another scale", "too small a number"])
def test_gradients_of_what_is_wrong(name: str) -> None:
    found = report(gradients(attention(INFINITE)), gradients(WRONG[name]), X, X, X, X)
    assert found.verdict is not Verdict.PROVED, found


@pytest.mark.parametrize("scale", [3**-0.5, 0.577])
def test_gradients_of_scores_by_a_root(scale: float) -> None:
    """What masks is read otherwise, and so is the number that scores are multiplied by: a rounding of the root of 3."""

    def whole(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        return jax.nn.softmax(jnp.where(KEEP, q @ k.T / np.sqrt(np.float32(3)), INFINITE), -1) @ v

    local = on_queries(ADDED["a choice"], -1e9, scale=scale)
    found = hlo_verify.check(gradients(whole), gradients(local), X, X, X, X, refute=False, time_limit=60)
    assert (found.verdict is Verdict.PROVED) == (scale == 3**-0.5), found


@pytest.mark.parametrize("name", HARMFUL)
def test_what_nothing_hangs_on(name: str) -> None:
    def function(s: jax.Array, is_given: bool) -> tuple[Any, ...]:
        made = HARMFUL[name](s + jnp.where(KEEP, 0.0, -1e9))
        return (jax.nn.softmax(s + jnp.where(KEEP, 0.0, -1e9), -1), *([made] if is_given else []))

    assert readings(lambda s: function(s, is_given=False), SCORES)
    assert not readings(lambda s: function(s, is_given=True), SCORES)


def readings(function: Function, *given: jax.ShapeDtypeStruct) -> bool:
    """Whether a program is read as one whose masks choose."""
    text = jax.jit(function).trace(*given).lower(lowering_platforms=("cpu",)).as_text()
    return with_chosen_masks(load(text), may_assume=True) is not None


def test_a_device_that_sees_nothing() -> None:
    """Of what one device has, all may be masked, and the largest of these is no number that is subtracted there: where
    all are masked, scores that are shifted are not those that are replaced."""
    assert not readings(on_keys(ADDED["a choice"], -1e9, own=True), X, X, X)
    assert not readings(on_keys(ADDED["a choice"], -1e9, own=False), X, X, X)


def padded(added: Adding, after: Function) -> Function:
    return lambda s, keep: after(s + added(keep, -1e9))


@pytest.mark.parametrize("name", ADDED)
def test_a_mask_that_may_leave_nothing(name: str) -> None:
    """Scores that are all shifted have a softmax of their own, which minus infinity has not, and is said."""
    rows = in_rows(padded(ADDED[name], lambda s: jax.nn.softmax(s, -1)))
    found = report(masked(INFINITE), rows, SCORES, MASK)
    assert found.verdict is Verdict.PROVED
    assert sum("not all of them are masked" in said for said in found.assumptions) == 2
    assert not readings(padded(ADDED[name], lambda s: jax.nn.logsumexp(s, -1)), SCORES, MASK)
    assert not readings(padded(ADDED[name], lambda s: jnp.exp(s - s.max(-1, keepdims=True) * 0.5)), SCORES, MASK)


def test_a_reference_that_is_a_number_where_nothing_is_left() -> None:
    """A row of which nothing is left is a mean where a number takes the place of scores, and a softmax where it is
    added."""
    added = padded(ADDED["a choice"], lambda s: jax.nn.softmax(s, -1))
    assert report(masked(-1e9), in_rows(added), SCORES, MASK).verdict is not Verdict.PROVED
    assert report(added, in_rows(masked(-1e9)), SCORES, MASK).verdict is not Verdict.PROVED
    assert report(added, in_rows(masked(INFINITE)), SCORES, MASK).verdict is not Verdict.PROVED


def in_a_branch(added: Function) -> Function:
    """In a branch that hardly any argument takes, the first row is masked as a whole."""

    def program(s: jax.Array, flag: jax.Array) -> jax.Array:
        other = jnp.arange(N)[:, None] > 0 * jnp.arange(N)
        return jax.nn.softmax(lax.cond(flag == 12345, lambda s: added(s, other), lambda s: added(s, KEEP), s), -1)

    return program


def in_some_turns(added: Function) -> Function:
    """Likewise, after so many turns."""

    def program(s: jax.Array, flag: jax.Array) -> jax.Array:
        turns = (flag == 12345).astype(jnp.int32)
        other = jnp.arange(N)[:, None] > 0 * jnp.arange(N)
        return jax.nn.softmax(lax.fori_loop(0, turns, lambda _, s: added(s, other), added(s, KEEP)), -1)

    return program


def until_it_is_done(added: Function) -> Function:
    """Likewise, after a turn or none, as what is carried says: each row has its last element everywhere then."""

    def program(s: jax.Array, flag: jax.Array) -> jax.Array:
        def turn(carried: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            return carried[0] & False, jnp.broadcast_to(carried[1][:, -1:], (N, N))

        start = flag == 12345, added(s, KEEP)
        return jax.nn.softmax(lax.while_loop(lambda carried: carried[0], turn, start)[1], -1)

    return program


@pytest.mark.parametrize("somewhere", [in_a_branch, in_some_turns, until_it_is_done])
def test_a_mask_that_an_argument_decides(somewhere: Callable[[Function], Function]) -> None:
    """That something is left is shown of no mask that hangs on an argument: a row may be a mean here, a softmax
    there."""
    chosen, added = (
        somewhere(each)
        for each in (lambda s, keep: jnp.where(keep, s, -1e9), lambda s, keep: s + jnp.where(keep, 0.0, -1e9))
    )
    flag = jax.ShapeDtypeStruct((), jnp.int32)
    split = jax.shard_map(added, mesh=MESH, in_specs=(P(), P()), out_specs=P(), check_vma=False)
    assert report(chosen, split, SCORES, flag).verdict is not Verdict.PROVED
    text = jax.jit(added).trace(SCORES, flag).lower(lowering_platforms=("cpu",)).as_text()
    assert with_chosen_masks(load(text)) is None


NO_MASKS: dict[str, Function] = {
    "a float that may be any": lambda s, m: jax.nn.softmax(s + (1.0 - m) * -1e9, -1),
    "a sum of masks alone": lambda s, m: jax.nn.softmax(jnp.where(KEEP, 0.0, -1e9) + jnp.where(KEEP.T, 0.0, -1e9), -1),
    "two of truths": lambda s, m: jax.nn.softmax(s + (2.0 - (m > 0)) * -1e9, -1),
    "a table": lambda s, m: jax.nn.softmax(s + jnp.where(KEEP, m, -1e9), -1),
    "minus infinity": lambda s, m: jax.nn.softmax(s + jnp.where(KEEP, 0.0, INFINITE), -1),
    "minus infinity times 0": lambda s, m: jax.nn.softmax(
        s + (1.0 - (m > 0.0).astype(jnp.float32)) * INFINITE + jnp.where(KEEP, 0.0, -1e9), -1
    ),
    "a threshold that is given": lambda s, m: jnp.where(s + jnp.where(KEEP, 0.0, -1e9) >= m, 1.0, 2.0) * s,
    "a threshold near it": lambda s, m: jnp.where((s + jnp.where(KEEP, 0.0, -1e9)) * 0.9 >= -9e8, 1.0, 2.0) * s,
    "what masks twice as much": lambda s, m: jax.nn.softmax(jnp.where(KEEP, 0.0, -1e9) * 1e-6 + s, -1),
}


@pytest.mark.parametrize("name", NO_MASKS)
def test_what_does_not_mask(name: str) -> None:
    assert not readings(NO_MASKS[name], SCORES, SCORES)


def with_rows(function: Function) -> Function:
    """Scores of which each row keeps some, masked by what is added."""
    return lambda s: function(s + jnp.where(KEEP, 0.0, LARGE))


@pytest.mark.parametrize("name", HARMFUL)
def test_what_differs(name: str) -> None:
    assert not readings(with_rows(HARMFUL[name]), SCORES)


@pytest.mark.parametrize("name", [name for name in HARMLESS if name not in ("in a branch",)])
def test_what_is_the_same_of_both(name: str) -> None:
    """It is read otherwise, and floating point gives the same of both."""
    if name != "what is left masked again":  # the condition is written twice there
        assert readings(with_rows(HARMLESS[name]), SCORES)
    scores = np.random.default_rng(SEED).standard_normal((N, N)).astype(np.float32)
    one = HARMLESS[name](jnp.where(KEEP, scores, -1e9))
    np.testing.assert_array_equal(one, HARMLESS[name](scores + jnp.where(KEEP, 0.0, np.float32(-1e9))))


def test_grouped_queries() -> None:
    """One spelling of a block against another: heads are repeated, or queries are grouped."""

    def whole(q: jax.Array, k: jax.Array) -> jax.Array:
        scores = jnp.where(KEEP, jnp.einsum("qhd,khd->hqk", q, jnp.repeat(k, 2, 1)) / np.sqrt(D), INFINITE)
        return jnp.einsum("hqk,khd->qhd", jax.nn.softmax(scores, -1), jnp.repeat(k, 2, 1))

    def local(q: jax.Array, k: jax.Array, scale: float = D**-0.5) -> jax.Array:
        keep = jnp.arange(N)[:, None] >= jnp.arange(N)
        scores = jnp.einsum("qgrd,kgd->grqk", q.reshape(N, -1, 2, D), k) * scale
        p = jax.nn.softmax(scores + jnp.where(keep, 0.0, -1e9), -1)
        return jnp.einsum("grqk,kgd->qgrd", p, k).reshape(q.shape)

    heads, keys = (jax.ShapeDtypeStruct((N, n, D), jnp.float32) for n in (8, 4))
    split = {"mesh": MESH, "in_specs": P(None, "d"), "out_specs": P(None, "d")}
    assert report(whole, jax.shard_map(local, **split), heads, keys).verdict is Verdict.PROVED
    wrong = jax.shard_map(lambda q, k: local(q, k, 0.4), **split)
    assert report(whole, wrong, heads, keys).verdict is not Verdict.PROVED
