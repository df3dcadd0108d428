"""Minus infinity and numbers far below all scores mask alike where exponentials are taken, and comparisons made."""

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
from hlo_verify import Report, Verdict
from hlo_verify.passes.chain.masking_numbers import masked_alike
from hlo_verify.passes.load.load import load
from hlo_verify.session import Session
from tests.conftest import SEED

Function = Callable[..., Any]
N, D = 8, 4
INFINITE, LARGE, LEAST = -float("inf"), -1e30, float(jnp.finfo(jnp.float32).min)
X = jax.ShapeDtypeStruct((N, D), jnp.float32)
MESH = jax.sharding.AbstractMesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
KEEP = np.tril(np.ones((N, N), bool))


def attention(fill: float) -> Function:
    return lambda q, k, v: jax.nn.softmax(jnp.where(KEEP, q @ k.T, fill), -1) @ v


def on_queries(fill: float, *, zeros: bool = False, early: int = 0) -> Function:
    """Devices have queries; a row is masked by a number, or its exponentials are by zeros as well."""

    def local(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        keep = lax.axis_index("d") * 2 + jnp.arange(2)[:, None] >= jnp.arange(N) + early
        scores = jnp.where(keep, q @ k.T, fill)
        e = jnp.exp(scores - scores.max(-1, keepdims=True))
        e = jnp.where(keep, e, 0.0) if zeros else e
        return e / e.sum(-1, keepdims=True) @ v

    return jax.shard_map(local, mesh=MESH, in_specs=(P("d"), P(), P()), out_specs=P("d"))


def on_keys(fill: float, *, own: bool = False) -> Function:
    """Devices have keys; with `own`, each takes the largest of its own scores, which is wrong."""

    def local(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        keep = jnp.arange(N)[:, None] >= lax.axis_index("d") * 2 + jnp.arange(2)
        scores = jnp.where(keep, q @ k.T, fill)
        largest = scores.max(-1, keepdims=True)
        e = jnp.exp(scores - (largest if own else lax.pmax(largest, "d")))
        return lax.psum(e @ v, "d") / lax.psum(e.sum(-1, keepdims=True), "d")

    return jax.shard_map(local, mesh=MESH, in_specs=(P(), P("d"), P("d")), out_specs=P(), check_vma=False)


def report(whole: Function, local: Function, *given: jax.ShapeDtypeStruct) -> Report:
    """No witness is looked for, so that what is wrong is not refuted before."""
    return hlo_verify.check(whole, local, *(given or (X, X, X)), refute=False)


PAIRS = [(INFINITE, LARGE), (LARGE, INFINITE), (-1e9, LEAST)]


@pytest.mark.parametrize("pair", PAIRS, ids=str)
@pytest.mark.parametrize("local", [on_queries, on_keys])
def test_numbers_mask_alike(pair: tuple[float, float], local: Function) -> None:
    found = report(attention(pair[0]), local(pair[1]))
    assert found.verdict is Verdict.PROVED, found
    (said,) = [said for said in found.assumptions if "masks scores" in said]
    assert "not all of them" not in said


def test_a_number_beside_zeros() -> None:
    assert report(attention(LARGE), on_queries(LARGE, zeros=True)).verdict is Verdict.PROVED


WRONG = {
    "a key early": lambda fill: on_queries(fill, early=1),
    "the largest of its own": lambda fill: on_keys(fill, own=True),
    "too small a number": lambda fill: on_queries(-1.0),
}


@pytest.mark.parametrize("pair", [(INFINITE, LARGE), (LARGE, INFINITE)], ids=str)
@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_stays_so(name: str, pair: tuple[float, float]) -> None:
    assert report(attention(pair[0]), WRONG[name](pair[1])).verdict is not Verdict.PROVED


MASK = jax.ShapeDtypeStruct((N, N), jnp.bool_)


def masked(fill: float) -> Function:
    return lambda s, keep: jax.nn.softmax(jnp.where(keep, s, fill), -1)


def in_rows(function: Function) -> Function:
    return jax.shard_map(function, mesh=MESH, in_specs=P("d"), out_specs=P("d"))


def test_a_mask_that_may_leave_nothing() -> None:
    """Minus infinity makes NaN of a row of which nothing is left, and a number does not."""
    scores = jax.ShapeDtypeStruct((N, N), jnp.float32)
    found = report(masked(INFINITE), in_rows(masked(LARGE)), scores, MASK)
    assert found.verdict is Verdict.PROVED
    assert any("not all of them are masked" in said for said in found.assumptions)
    assert report(masked(LARGE), in_rows(masked(INFINITE)), scores, MASK).verdict is not Verdict.PROVED


def test_two_numbers_under_a_mask_that_may_leave_nothing() -> None:
    """Of scores that are all masked, their largest is subtracted, whatever it is; as a result it is another number."""
    scores = jax.ShapeDtypeStruct((N, N), jnp.float32)
    assert report(masked(-1e9), in_rows(masked(LARGE)), scores, MASK).verdict is Verdict.PROVED

    def largest(fill: float) -> Function:
        return lambda s, keep: jax.nn.logsumexp(jnp.where(keep, s, fill), -1)

    assert report(largest(-1e9), in_rows(largest(LARGE)), scores, MASK).verdict is not Verdict.PROVED


@pytest.mark.parametrize(
    "asks",
    [
        lambda p: jnp.where(jnp.isnan(p), 0.0, p),
        lambda p: jnp.where(p > 0, p, 0.0),
        lambda p: jnp.where(jnp.isfinite(p), p, 0.0),
        jnp.nan_to_num,
    ],
    ids=["isnan", "greater", "isfinite", "nan_to_num"],
)
def test_a_program_that_asks_for_nan(asks: Function) -> None:
    """The reference has 0 for a row that is masked as a whole, devices have a mean."""
    scores = jax.ShapeDtypeStruct((N, N), jnp.float32)

    def whole(s: jax.Array, keep: jax.Array) -> jax.Array:
        return asks(masked(INFINITE)(s, keep))

    assert report(whole, in_rows(masked(LARGE)), scores, MASK).verdict is not Verdict.PROVED


HARMLESS: dict[str, Function] = {
    "softmax": lambda s: jax.nn.softmax(s, -1),
    "scaled": lambda s: jax.nn.softmax(s * 0.125, -1),
    "a logarithm of sums": lambda s: jax.nn.logsumexp(s, -1),
    "an argmax": lambda s: jnp.argmax(s, -1),
    "the largest": lambda s: s.max(-1),
    "a threshold": lambda s: jnp.where(s > 0.0, 1.0, 0.0),
    "what saturates": jnp.tanh,
    "what is left masked again": lambda s: jnp.where(KEEP[:N], jax.nn.log_softmax(s, -1), 0.0),
}
HARMFUL: dict[str, Function] = {
    "a result": lambda s: s,
    "a sum": lambda s: s.sum(-1),
    "a mean": lambda s: s.mean(-1),
    "the least": lambda s: s.min(-1),
    "the k largest": lambda s: lax.top_k(s, 3)[0],
    "an opposite": lambda s: jnp.exp(-s),
    "logarithms of what is masked": lambda s: jax.nn.log_softmax(s, -1),
    "a product": lambda s: s @ s,
    "a scale that leaves little": lambda s: jax.nn.softmax(s * 1e-28, -1),
    "a loop": lambda s: lax.fori_loop(0, 3, lambda i, x: x + s, s),
    "what is subtracted": lambda s: jnp.exp(1.0 - s),
    "an order": lambda s: jnp.sort(s, -1),
}


def readings(function: Function, fill: float) -> int:
    """In how many ways a program is read of which each device has some rows."""
    scores = jax.ShapeDtypeStruct((N, N), jnp.float32)
    whole = jax.jit(lambda s: function(jnp.where(KEEP, s, fill)))
    modules = (jax.jit(each).trace(scores).lower(lowering_platforms=("cpu",)) for each in (whole, in_rows(lambda s: s)))
    return len(list(masked_alike(*(load(module.as_text()) for module in modules), Session())))


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_the_same_of_both(name: str) -> None:
    """It is read otherwise, and floating point gives the same of both."""
    function = HARMLESS[name]
    if name != "what is left masked again":  # the condition is written twice there
        assert readings(function, LARGE)
    scores = np.random.default_rng(SEED).standard_normal((N, N)).astype(np.float32)
    one, other = (function(jnp.where(KEEP, scores, fill)) for fill in (INFINITE, LARGE))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", HARMFUL)
def test_what_differs(name: str) -> None:
    assert not readings(HARMFUL[name], LARGE)


def test_what_is_masked_again() -> None:
    def function(fill: float) -> Function:
        return lambda s, keep: jnp.where(keep, jax.nn.log_softmax(jnp.where(keep, s, fill), -1), 0.0)

    scores, mask = (jax.ShapeDtypeStruct((N, N), dtype) for dtype in (jnp.float32, jnp.bool_))
    assert report(function(INFINITE), in_rows(function(LARGE)), scores, mask).verdict is Verdict.PROVED
