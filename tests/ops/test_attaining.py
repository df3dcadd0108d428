"""The first and the last of the elements that attain the best value, by the least or greatest of their indices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed

DEVICES, SHARD = 4, 3
WHOLE = DEVICES * SHARD
MESH = AbstractMesh((DEVICES,), ("x",), axis_types=(AxisType.Auto,))

Body = Callable[[jax.Array], jax.Array]


def verdict(reference: Body, local: Body, dtype: str) -> Verdict:
    """Of the best column of each row of a matrix whose columns are split."""
    placed = Placed(MESH, P(None, "x"), P(), [jax.ShapeDtypeStruct((2, WHOLE), dtype)])
    return hlo_verify.verify(*placed.pair(reference, local), refute=False).verdict


def index_of(x: jax.Array, least: bool, last: bool) -> jax.Array:
    """The best of each row, the first or the last of equal ones."""
    pick = jnp.argmin if least else jnp.argmax
    return x.shape[1] - 1 - pick(x[:, ::-1], axis=1) if last else pick(x, axis=1)


def shard(form: str, x: jax.Array, least: bool, last: bool, otherwise: int | None = None) -> jax.Array:
    """The same on devices that hold some columns each."""
    across, values = (lax.pmin, jnp.min) if least else (lax.pmax, jnp.max)
    value, columns = values(x, axis=1), lax.axis_index("x") * SHARD + jnp.arange(SHARD)
    whole = across(value, "x")
    elsewhere = otherwise if otherwise is not None else -1 if last else WHOLE
    own = index_of(x, least, last) + lax.axis_index("x") * SHARD
    match form:
        case "own":
            index = jnp.where(value == whole, own, elsewhere)
        case "not beaten":
            index = jnp.where(value <= whole if least else value >= whole, own, elsewhere)
        case "each":
            index = jnp.where(x == whole[:, None], columns, elsewhere)
            index = jnp.max(index, axis=1) if last else jnp.min(index, axis=1)
        case "each, negated":
            index = jnp.where(x == whole[:, None], -columns, -elsewhere)
            index = -jnp.min(index, axis=1) if last else -jnp.max(index, axis=1)
        case _:
            raise AssertionError(form)
    if form == "each":
        return lax.pmax(index, "x") if last else lax.pmin(index, "x")
    return -lax.pmin(-index, "x") if last else -lax.pmax(-index, "x")


FORMS = ("own", "not beaten", "each", "each, negated")


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("form", FORMS)
def test_the_first_and_the_last(form: str, dtype: str) -> None:
    for least in (False, True):
        for last in (False, True):
            reference = partial(index_of, least=least, last=last)
            assert verdict(reference, partial(shard, form, least=least, last=last), dtype) is Verdict.PROVED


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("form", FORMS)
def test_another_one_of_equal_ones_is_not_proved(form: str, dtype: str) -> None:
    for last in (False, True):
        reference = partial(index_of, least=False, last=last)
        for local in (
            partial(shard, form, least=False, last=not last),
            partial(shard, form, least=True, last=last),
            partial(shard, form, least=False, last=last, otherwise=WHOLE // 2),
        ):
            assert verdict(reference, local, dtype) is not Verdict.PROVED


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_the_first_of_each_device_and_the_last_device(dtype: str) -> None:
    def local(x: jax.Array) -> jax.Array:
        value, own = jnp.max(x, axis=1), jnp.argmax(x, axis=1) + lax.axis_index("x") * SHARD
        return lax.pmax(jnp.where(value == lax.pmax(value, "x"), own, -1), "x")

    for last in (False, True):
        assert verdict(partial(index_of, least=False, last=last), local, dtype) is not Verdict.PROVED


@pytest.mark.parametrize("start", [-WHOLE, -1, 1])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_other_numbers(start: int, dtype: str) -> None:
    """Elements that are numbered from another number on."""

    def local(by: int, x: jax.Array) -> jax.Array:
        value = lax.pmax(jnp.max(x, axis=1), "x")
        columns = lax.axis_index("x") * SHARD + jnp.arange(SHARD) + start
        index = jnp.where(x == value[:, None], columns, start + WHOLE if by < 0 else start - 1)
        return (lax.pmin(jnp.min(index, 1), "x") if by < 0 else lax.pmax(jnp.max(index, 1), "x")) - start

    for by, last in ((-1, False), (1, True)):
        assert verdict(partial(index_of, least=False, last=last), partial(local, by), dtype) is Verdict.PROVED
        assert verdict(partial(index_of, least=False, last=not last), partial(local, by), dtype) is not Verdict.PROVED


@pytest.mark.parametrize("form", ["value", "index"])
def test_the_least_is_less_the_greatest_of_opposites(form: str) -> None:
    """Of floats; the opposite of the least integer is none."""

    def local(x: jax.Array) -> jax.Array:
        value, own = jnp.min(x, axis=1), jnp.argmin(x, axis=1) + lax.axis_index("x") * SHARD
        least = -lax.pmax(-value, "x")
        return least if form == "value" else lax.pmin(jnp.where(value == least, own, WHOLE), "x")

    def reference(x: jax.Array) -> jax.Array:
        return jnp.min(x, axis=1) if form == "value" else jnp.argmin(x, axis=1)

    assert verdict(reference, local, "float32") is Verdict.PROVED
    if form == "value":
        assert verdict(reference, local, "int32") is not Verdict.PROVED
        assert verdict(lambda x: jnp.max(x, axis=1), local, "float32") is not Verdict.PROVED


@pytest.mark.parametrize(("test", "expected"), [(">=", True), ("==", True), ("<=", False), ("by columns", False)])
def test_scores_with_noise(test: str, expected: bool) -> None:
    """Samples by Gumbel's trick: what random bits are made to is not known to be a number."""
    rows = 2

    def reference(key: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.argmax(x + jax.random.gumbel(key, (rows, WHOLE)), axis=1)

    def local(key: jax.Array, x: jax.Array) -> jax.Array:
        first = lax.axis_index("x") * SHARD
        noise = jax.random.gumbel(key, (rows, WHOLE))
        if test == "by columns":
            noise = jax.random.gumbel(key, (WHOLE, rows)).T
        scores = x + lax.dynamic_slice_in_dim(noise, first, SHARD, 1)
        value, own = jnp.max(scores, axis=1), jnp.argmax(scores, axis=1) + first
        best = lax.pmax(value, "x")
        attains = value == best if test == "==" else value <= best if test == "<=" else value >= best
        return lax.pmin(jnp.where(attains, own, WHOLE), "x")

    shapes = [jax.ShapeDtypeStruct((2,), "uint32"), jax.ShapeDtypeStruct((rows, WHOLE), "float32")]
    placed = Placed(MESH, (P(), P(None, "x")), P(), shapes)
    found = hlo_verify.verify(*placed.pair(reference, local), refute=False).verdict
    assert (found is Verdict.PROVED) is expected


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_rows_of_the_worst_value_there_is(dtype: str) -> None:
    """What is proved of such rows is what a machine computes of them."""
    worst = -np.inf if dtype == "float32" else np.iinfo(np.int32).min
    for least, value in ((False, worst), (True, np.inf if dtype == "float32" else np.iinfo(np.int32).max)):
        rows = np.full((3, WHOLE), value, dtype)
        rows[1, [2, 7]], rows[2] = 0, np.arange(WHOLE) % 5
        for last in (False, True):
            best = (np.min if least else np.max)(rows, axis=1, keepdims=True)
            places = [np.flatnonzero(row) for row in rows == best]
            expected = [place[-1 if last else 0] for place in places]
            assert index_of(jnp.asarray(rows), least, last).tolist() == expected


@pytest.mark.usefixtures("prover_alone")
@pytest.mark.parametrize("test", [">=", "<=", "=="])
@pytest.mark.parametrize("last", [False, True])
def test_no_number_for_all_inputs_attains_nothing(test: str, last: bool) -> None:
    """The mean of what came before is 0/0 at first, whose index an argmax gives, and none is as great."""
    size = WHOLE

    def means(x: jax.Array, places: jax.Array) -> jax.Array:
        before = jnp.arange(size)[None] < places[:, None]
        e = jnp.exp(x)
        return (before * e * x).sum(axis=1) / (before * e).sum(axis=1)

    def reference(x: jax.Array) -> jax.Array:
        scores = means(x, jnp.arange(size))
        return size - 1 - jnp.argmax(scores[::-1]) if last else jnp.argmax(scores)

    def shard(x: jax.Array) -> jax.Array:
        places = lax.axis_index("x") * SHARD + jnp.arange(SHARD)
        scores = means(lax.all_gather(x, "x", tiled=True), places)
        best = lax.pmax(scores.max(), "x")
        attains = {">=": scores >= best, "<=": best <= scores, "==": scores == best}[test]
        if last:
            return lax.pmax(jnp.where(attains, places, -1).max(), "x")
        return lax.pmin(jnp.where(attains, places, size).min(), "x")

    local = jax.shard_map(shard, mesh=MESH, in_specs=P("x"), out_specs=P(), check_vma=False)
    x = jax.ShapeDtypeStruct((size,), jnp.float32)
    assert hlo_verify.check(reference, local, x, refute=False).verdict is Verdict.UNKNOWN
