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
from hlo_verify.evaluate import dense, of_dense
from hlo_verify.evaluate.interpret import evaluate
from hlo_verify.passes.chain.masking_numbers import masked_alike
from hlo_verify.passes.load.load import load
from hlo_verify.program.ir import Module
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


@pytest.mark.drawn(1)
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


@pytest.mark.drawn(2)
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


@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    "asks",
    [
        lambda p: jnp.where(jnp.isnan(p), 0.0, p),
        lambda p: jnp.where(p > 0, p, 0.0),
        lambda p: jnp.where(jnp.isfinite(p), p, 0.0),
        jnp.nan_to_num,
        lambda p: lax.fori_loop(0, 2, lambda i, x: jnp.where(x > 0, x, 0.0), p),
        lambda p: lax.cond(p[0, 0] > 0, lambda x: x, lambda x: 0 * x, p),
    ],
    ids=["isnan", "greater", "isfinite", "nan_to_num", "loop", "cond"],
)
def test_a_program_that_asks_for_nan(asks: Function) -> None:
    """The reference has 0 for a row that is masked as a whole, devices have a mean."""
    scores = jax.ShapeDtypeStruct((N, N), jnp.float32)

    def whole(s: jax.Array, keep: jax.Array) -> jax.Array:
        return asks(masked(INFINITE)(s, keep))

    assert report(whole, in_rows(masked(LARGE)), scores, MASK).verdict is not Verdict.PROVED


def with_largest(largest: Function) -> Callable[[float], Function]:
    """A softmax that goes on where all is masked."""

    def masked(fill: float) -> Function:
        def function(s: jax.Array, keep: jax.Array) -> jax.Array:
            scores = jnp.where(keep, s, fill)
            e = jnp.exp(scores - largest(scores.max(-1, keepdims=True)))
            return e / (e.sum(-1, keepdims=True) + 1e-9)

        return function

    return masked


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    "largest",
    [lambda m: jnp.maximum(m, -1e20), lambda m: jnp.maximum(m, 0.0), lambda m: jnp.minimum(m, 80.0) * 0.5],
    ids=["a number", "zero", "something else"],
)
@pytest.mark.parametrize("pair", [(INFINITE, LARGE), (-1e9, LARGE)], ids=str)
def test_a_program_that_goes_on_with_another_number(largest: Function, pair: tuple[float, float]) -> None:
    """Of a row that is masked as a whole, minus infinity leaves 0, and a number a mean or something else."""
    scores, program = jax.ShapeDtypeStruct((N, N), jnp.float32), with_largest(largest)
    found = report(program(pair[0]), in_rows(program(pair[1])), scores, MASK)
    assert found.verdict is not Verdict.PROVED or not any("not all of them" in said for said in found.assumptions)
    if pair[0] == INFINITE:
        assert found.verdict is not Verdict.PROVED


HARMLESS: dict[str, Function] = {
    "softmax": lambda s: jax.nn.softmax(s, -1),
    "scaled": lambda s: jax.nn.softmax(s * 0.125, -1),
    "a logarithm of sums": lambda s: jax.nn.logsumexp(s, -1),
    "an argmax": lambda s: jnp.argmax(s, -1),
    "the largest": lambda s: s.max(-1),
    "a threshold": lambda s: jnp.where(s > 0.0, 1.0, 0.0),
    "what saturates": jnp.tanh,
    "in a branch": lambda s: lax.cond(s[0, 0] > 5.0, jnp.tanh, jnp.exp, s),
    "what is left masked again": lambda s: jnp.where(KEEP[:N], jax.nn.log_softmax(s, -1), 0.0),
}
HARMFUL: dict[str, Function] = {
    "a result": lambda s: s,
    "a sum": lambda s: s.sum(-1),
    "a mean": lambda s: s.mean(-1),
    "the least": lambda s: s.min(-1),
    "the k largest": lambda s: lax.top_k(s, 3)[0],
    "an opposite": lambda s: jnp.exp(-s),
    "a product": lambda s: s @ s,
    "a scale that leaves little": lambda s: jax.nn.softmax(s * 1e-28, -1),
    "a loop": lambda s: lax.fori_loop(0, 3, lambda i, x: x + s, s),
    "what is subtracted": lambda s: jnp.exp(1.0 - s),
    "an order": lambda s: jnp.sort(s, -1),
    "what is not far below in another scale": lambda s: jnp.where(s * 0.5 > LARGE, 1.0, 0.0),
    "what one of two branches hands on": lambda s: lax.cond(
        s[0, 0] > 5.0, lambda t, e: t, lambda t, e: e, s, jnp.exp(s)
    ),
    "a threshold near what masks": lambda s: jnp.where(s * 0.9 > -9e8, 1.0, 0.0),
    "a threshold that is a mask": lambda s: jnp.where(s > -1e20, 1.0, 0.0),
    "masks of either": lambda s: jnp.where(s > jnp.where(KEEP.T, s, -1e9), 1.0, 0.0),
    "scales one after another": lambda s: jnp.exp(s * 1e-2 * 1e-2 * 1e-2 * 1e-2),
    "a scale in each turn": lambda s: jnp.exp(lax.fori_loop(0, 90, lambda i, x: x * 0.5, s)),
    "a branch": lambda s: lax.cond(s[0, 0] > 1, lambda x: x, lambda x: 0 * x, s),
    "a branch that has it": lambda s: (
        jnp.exp(s) + lax.cond(s[0, 0] > 1, lambda: jnp.where(KEEP, 1.0, LARGE), lambda: KEEP + 0.0)
    ),
    "a branch that hands it on": lambda s: lax.cond(s[0, 0] > 1, lambda: s, lambda: KEEP + 0.0),
    "integers": lambda s: s.astype(jnp.int32),
}


READ_IN_PART: dict[str, Function] = {
    "logarithms of what is masked": lambda s: jax.nn.log_softmax(s, -1),
    "a sum of some of them": lambda s: jnp.where(np.tri(N, k=-1), jax.nn.log_softmax(s, -1), 0.0).sum(-1),
    "elements": lambda s: jax.nn.log_softmax(s, -1)[:, 0],
    "a sum of scores": lambda s: jax.nn.logsumexp(s, -1) + s.sum(-1),
    "a product with their softmax": lambda s: (jax.nn.softmax(s, -1) * s).sum(-1),
    "thresholds and scores": lambda s: s * jnp.where(s > 0.0, 1.0, 2.0),
}
"""Exponentials of what is masked, and more: that takes it as it stands."""

NO_MASKS: dict[str, Function] = {
    "a threshold": lambda s: jnp.where(s > -1e9, s, 0.0),
    "a shift": lambda s: jnp.exp(s + -1e9),
    "a product": lambda s: jnp.exp(s * -1e9),
}


@pytest.mark.parametrize("name", NO_MASKS)
def test_what_does_not_mask(name: str) -> None:
    """Numbers that something is compared with or shifted by, as times in nanoseconds are."""
    assert not readings(NO_MASKS[name], in_rows(jnp.tanh), SCORES)


def read_in_all_ways(whole: Function, local: Function, *given: jax.ShapeDtypeStruct) -> list[Module]:
    """The program, and what it is read as."""
    modules = (jax.jit(each).trace(*given).lower(lowering_platforms=("cpu",)) for each in (whole, local))
    first, second = (load(module.as_text()) for module in modules)
    return [first, *masked_alike(first, second, Session())]


def readings(whole: Function, local: Function, *given: jax.ShapeDtypeStruct) -> int:
    """In how many ways a program is read otherwise."""
    return len(read_in_all_ways(whole, local, *given)) - 1


SCORES = jax.ShapeDtypeStruct((N, N), jnp.float32)


@pytest.mark.parametrize("fills", [(-1e9, LARGE), (INFINITE, LARGE)])
def test_a_threshold_that_is_given(fills: tuple[float, float]) -> None:
    """It may be less than one of the numbers and more than the other."""

    def above(fill: float) -> Function:
        return lambda s, least: jnp.where(jnp.where(KEEP, s, fill) >= least, 1.0, 2.0) * s

    one, other = map(above, fills)
    assert not readings(one, jax.shard_map(other, mesh=MESH, in_specs=(P(), P()), out_specs=P()), SCORES, SCORES)


def readings_of_scores(function: Function, fill: float) -> int:
    """The same, where each device has some rows of scores."""
    return readings(lambda s: function(jnp.where(KEEP, s, fill)), in_rows(lambda s: s), SCORES)


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_the_same_of_both(name: str) -> None:
    """It is read otherwise, and floating point gives the same of both."""
    function = HARMLESS[name]
    if name != "what is left masked again":  # the condition is written twice there
        assert readings_of_scores(function, LARGE)
    scores = np.random.default_rng(SEED).standard_normal((N, N)).astype(np.float32)
    one, other = (function(jnp.where(KEEP, scores, fill)) for fill in (INFINITE, LARGE))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", READ_IN_PART)
def test_what_takes_masks_as_they_stand(name: str) -> None:
    """The reading has the numbers of the program, to the last digit: large as what masks is, none of it is lost."""
    function = READ_IN_PART[name]
    given = of_dense(np.random.default_rng(SEED).standard_normal((N, N)))
    module, *others = read_in_all_ways(lambda s: function(jnp.where(KEEP, s, LARGE)), in_rows(jnp.tanh), SCORES)
    (found,) = evaluate(module, [given], 1).results
    assert others and found is not None
    for other in others:
        (read,) = evaluate(other, [given], 1).results
        assert read is not None
        np.testing.assert_array_equal(dense(read, 0), dense(found, 0))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", READ_IN_PART)
def test_what_is_left_of_masks_differs(name: str) -> None:
    """Minus infinity is no number that masks, where it is left in a result."""
    function = READ_IN_PART[name]
    one, other = (lambda s, fill=fill: function(jnp.where(KEEP, s, fill)) for fill in (LARGE, INFINITE))
    on_all = jax.shard_map(other, mesh=MESH, in_specs=P(), out_specs=P(), check_vma=False)
    is_same = name in ("a sum of some of them", "elements")
    assert (report(one, on_all, SCORES).verdict is Verdict.PROVED) == is_same


@pytest.mark.parametrize("name", HARMFUL)
def test_what_differs(name: str) -> None:
    assert not readings_of_scores(HARMFUL[name], LARGE)


def test_what_is_masked_again() -> None:
    def function(fill: float) -> Function:
        return lambda s, keep: jnp.where(keep, jax.nn.log_softmax(jnp.where(keep, s, fill), -1), 0.0)

    scores, mask = (jax.ShapeDtypeStruct((N, N), dtype) for dtype in (jnp.float32, jnp.bool_))
    assert report(function(INFINITE), in_rows(function(LARGE)), scores, mask).verdict is Verdict.PROVED


TABLE = np.where(np.arange(N)[:, None] + np.arange(N) > 2, 0, 1)  # the first row leaves something, the last all
TABLE[3] = 1


def by_table(fill: float) -> Function:
    rows = np.where(TABLE, np.float32(fill), np.float32(0))
    return lambda s, k: jax.nn.softmax(s + jnp.asarray(rows)[jnp.clip(k, 0, N - 1)], -1)


@pytest.mark.parametrize("index", ["an argument", "a number"])
def test_what_is_masked_by_a_row_of_a_table(index: str) -> None:
    """A row that masks all is not seen where the index is 0; of one that is known all is seen."""
    k = jax.ShapeDtypeStruct((), jnp.int32)
    whole = by_table(LARGE) if index == "an argument" else lambda s, k: by_table(LARGE)(s, 1) * k
    local = jax.shard_map(lambda s, k: s * k, mesh=MESH, in_specs=(P("d"), P()), out_specs=P("d"))
    assert bool(readings(whole, local, SCORES, k)) == (index == "a number")


def test_a_branch_that_may_leave_nothing() -> None:
    """The largest of scores is taken in a branch, where it is no more a number than elsewhere."""

    def function(fill: float) -> Function:
        return lambda s, keep: lax.cond(s[0, 0] > 9.0, masked(fill), lambda s, _: s, s, keep)

    assert not readings(function(LARGE), in_rows(function(INFINITE)), SCORES, MASK)


def test_two_numbers_mask_another_row_each() -> None:
    """Where nothing is left, the greater of two masks is."""

    def function(fill: float) -> Function:
        return lambda s, keep: jax.nn.softmax(jnp.where(KEEP, jnp.where(keep, s, fill), LARGE), -1)

    assert not readings(function(-1e9), in_rows(masked(LARGE)), SCORES, MASK)
