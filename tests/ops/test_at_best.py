"""The best of a whole from what devices hand each other: the ways in which programs pick the best device's index."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed, floats

ROWS, DEVICES, SHARD = 3, 4, 6
WHOLE = DEVICES * SHARD
MESH = AbstractMesh((2, 2), ("x", "y"))
BOTH = ("x", "y")

Body = Callable[..., jax.Array]


def verdict(reference: Body, local: Body, dtype: str = "float32", count: int = 1) -> Verdict:
    """Of the best column of each row of matrices whose columns lie on all devices."""
    shapes = [jax.ShapeDtypeStruct((ROWS, WHOLE), dtype)] * count
    placed = Placed(MESH, (P(None, BOTH),) * count, P(), shapes)
    return hlo_verify.verify(*placed.pair(reference, local), refute=False).verdict


def device() -> jax.Array:
    return lax.axis_index("x") * 2 + lax.axis_index("y")


def best(x: jax.Array, least: bool = False) -> jax.Array:
    return jnp.argmin(x, axis=1) if least else jnp.argmax(x, axis=1)


def picked(form: str, x: jax.Array, least: bool = False, stride: int = SHARD) -> jax.Array:
    """The best column, by the best device's word."""
    values, pick = (jnp.min, jnp.argmin) if least else (jnp.max, jnp.argmax)
    value, index = values(x, axis=1), pick(x, axis=1)
    everywhere = lax.all_gather(value, BOTH)
    first = pick(everywhere, axis=0)
    indices = lax.all_gather(index + stride * device(), BOTH)
    match form:
        case "taken":
            return jnp.take_along_axis(indices, first[None], axis=0)[0]
        case "at two places":
            return indices[first, jnp.arange(ROWS)]
        case "side by side":
            across = jnp.stack([everywhere, everywhere], 2)[:, :, 0].T
            return jnp.take_along_axis(indices.T, pick(across, axis=1)[:, None], axis=1)[:, 0]
        case "one-hot":
            return jnp.sum(jnp.where(jnp.arange(DEVICES)[:, None] == first, indices, 0), axis=0)
        case "one-hot product":
            return jnp.einsum("dn,dn->n", jax.nn.one_hot(first, DEVICES, axis=0, dtype=jnp.int32), indices)
        case "from one device":
            return lax.psum(jnp.where(first == device(), index + stride * device(), 0), BOTH)
        case "numbered at last":
            return first * stride + jnp.take_along_axis(lax.all_gather(index, BOTH), first[None], axis=0)[0]
        case "least of gathered":
            return jnp.min(jnp.where(everywhere == values(everywhere, axis=0), indices, WHOLE), axis=0)
        case "least of all":
            whole = (lax.pmin if least else lax.pmax)(value, BOTH)
            return lax.pmin(jnp.where(value == whole, index + stride * device(), jnp.iinfo(jnp.int32).max), BOTH)
        case "not beaten":
            whole = (lax.pmin if least else lax.pmax)(value, BOTH)
            attains = value <= whole if least else value >= whole
            return lax.pmin(jnp.where(attains, index + stride * device(), WHOLE), BOTH)
        case "element by element":
            whole = (lax.pmin if least else lax.pmax)(value, BOTH)
            columns = jnp.where(x == whole[:, None], jnp.arange(SHARD) + stride * device(), WHOLE)
            return lax.pmin(jnp.min(columns, axis=1), BOTH)
        case _:
            raise AssertionError(form)


FORMS = (
    "taken",
    "at two places",
    "side by side",
    "one-hot",
    "one-hot product",
    "from one device",
    "numbered at last",
    "least of gathered",
    "least of all",
    "not beaten",
    "element by element",
)


@pytest.mark.drawn(12)
@pytest.mark.parametrize(("dtype", "least"), [("float32", False), ("int32", True), ("bfloat16", True)])
@pytest.mark.parametrize("form", FORMS)
def test_the_best_of_the_whole(form: str, dtype: str, least: bool) -> None:
    assert verdict(partial(best, least=least), partial(picked, form, least=least), dtype) is Verdict.PROVED


@pytest.mark.drawn(1)
@pytest.mark.parametrize("form", FORMS)
def test_the_other_extremum_or_other_numbers_are_not(form: str) -> None:
    for dtype in ("float32", "int32"):
        assert verdict(partial(best, least=True), partial(picked, form), dtype) is not Verdict.PROVED
        for stride in (SHARD - 1, SHARD + 1):
            assert verdict(best, partial(picked, form, stride=stride), dtype) is not Verdict.PROVED


def last(x: jax.Array) -> jax.Array:
    return WHOLE - 1 - jnp.argmax(x[:, ::-1], axis=1)


@pytest.mark.drawn(8)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("form", FORMS)
def test_the_last_of_equal_ones_is_another(form: str, dtype: str) -> None:
    assert verdict(last, partial(picked, form), dtype) is not Verdict.PROVED


def by_stages(x: jax.Array, axes: tuple[str, ...]) -> jax.Array:
    """The best of one axis of the mesh after the other."""
    value, index = jnp.max(x, axis=1), jnp.argmax(x, axis=1) + SHARD * device()
    for axis in axes:
        values = lax.all_gather(value, axis)
        first = jnp.argmax(values, axis=0)[None]
        value = jnp.take_along_axis(values, first, axis=0)[0]
        index = jnp.take_along_axis(lax.all_gather(index, axis), first, axis=0)[0]
    return index


def handed_on(form: str, x: jax.Array, y: jax.Array) -> jax.Array:
    """What stands beside the best column, which each device hands on with its own best value."""
    own = jnp.argmax(x, axis=1)
    value, beside = (jnp.take_along_axis(z, own[:, None], axis=1)[:, 0] for z in (x, y))
    first = jnp.argmax(lax.all_gather(value, BOTH), axis=0)
    match form:
        case "taken":
            return jnp.take_along_axis(lax.all_gather(beside, BOTH), first[None], axis=0)[0]
        case "by its owner":
            return lax.psum(jnp.where(first == device(), beside, 0), BOTH)
        case "one-hot product":
            return jnp.einsum("dn,dn->n", jax.nn.one_hot(first, DEVICES, axis=0), lax.all_gather(beside, BOTH))
        case "its first":
            return jnp.take_along_axis(lax.all_gather(y[:, 0], BOTH), first[None], axis=0)[0]
        case "of the first device":
            return lax.all_gather(beside, BOTH)[0]
        case "by the least":
            least = jnp.argmin(lax.all_gather(value, BOTH), axis=0)
            return lax.psum(jnp.where(least == device(), beside, 0), BOTH)
        case "by another value":
            other = jnp.argmax(lax.all_gather(jnp.max(x * y, axis=1), BOTH), axis=0)
            return lax.psum(jnp.where(other == device(), beside, 0), BOTH)
    raise ValueError(form)


@pytest.mark.parametrize("form", ["taken", "by its owner", "one-hot product"])
def test_what_stands_beside_the_best(form: str) -> None:
    def reference(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.take_along_axis(y, best(x)[:, None], axis=1)[:, 0]

    assert verdict(reference, partial(handed_on, form), count=2) is Verdict.PROVED
    backwards = lambda x, y: jnp.take_along_axis(y, WHOLE - 1 - best(x[:, ::-1])[:, None], axis=1)[:, 0]  # noqa: E731
    assert verdict(backwards, partial(handed_on, form), count=2) is not Verdict.PROVED


@pytest.mark.parametrize("form", ["its first", "of the first device", "by the least", "by another value"])
def test_what_stands_beside_another(form: str) -> None:
    def reference(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.take_along_axis(y, best(x)[:, None], axis=1)[:, 0]

    assert verdict(reference, partial(handed_on, form), count=2) is not Verdict.PROVED


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_one_axis_after_the_other(dtype: str) -> None:
    assert verdict(best, lambda x: by_stages(x, ("y", "x")), dtype) is Verdict.PROVED
    assert verdict(best, lambda x: by_stages(x, ("x", "y")), dtype) is not Verdict.PROVED  # of equal ones another


def wrongly(change: str, x: jax.Array) -> jax.Array:
    value, index = jnp.max(x, axis=1), jnp.argmax(x, axis=1)
    everywhere, offset = lax.all_gather(value, BOTH), SHARD * device()
    match change:
        case "the last device of equal ones":
            everywhere, indices = everywhere[::-1], lax.all_gather(index + offset, BOTH)[::-1]
        case "numbered backwards":
            indices = lax.all_gather(index + SHARD * (DEVICES - 1 - device()), BOTH)
        case "numbered as the next device":
            indices = lax.all_gather(index + SHARD * ((device() + 1) % DEVICES), BOTH)
        case "numbered by the other axis first":
            indices = lax.all_gather(index + SHARD * (lax.axis_index("y") * 2 + lax.axis_index("x")), BOTH)
        case "not numbered":
            indices = lax.all_gather(index, BOTH)
        case "the last of a device":
            indices = lax.all_gather(offset + SHARD - 1 - jnp.argmax(x[:, ::-1], axis=1), BOTH)
        case "the worst of a device":
            indices = lax.all_gather(offset + jnp.argmin(x, axis=1), BOTH)
        case "the best of absolute values":
            indices = lax.all_gather(offset + jnp.argmax(jnp.abs(x), axis=1), BOTH)
        case "values of the next device":
            everywhere = jnp.roll(everywhere, 1, axis=0)
            indices = lax.all_gather(index + offset, BOTH)
        case _:
            raise AssertionError(change)
    return jnp.take_along_axis(indices, jnp.argmax(everywhere, axis=0)[None], axis=0)[0]


@pytest.mark.drawn(6)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize(
    "change",
    [
        "the last device of equal ones",
        "numbered backwards",
        "numbered as the next device",
        "numbered by the other axis first",
        "not numbered",
        "the last of a device",
        "the worst of a device",
        "the best of absolute values",
        "values of the next device",
    ],
)
def test_another_index_is_not_proved(change: str, dtype: str) -> None:
    assert verdict(best, partial(wrongly, change), dtype) is not Verdict.PROVED


@pytest.mark.parametrize("form", ["taken", "from one device", "least of gathered", "least of all"])
def test_rows_that_are_masked_out(form: str) -> None:
    """Of a row that minus infinity masks everywhere, the first column is the best."""

    def masked(mask: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.where(mask > 0, x, -jnp.inf)

    def reference(mask: jax.Array, x: jax.Array) -> jax.Array:
        return best(masked(mask, x))

    assert verdict(reference, lambda m, x: picked(form, masked(m, x)), count=2) is Verdict.PROVED
    assert verdict(reference, lambda m, x: picked(form, masked(-m, x)), count=2) is not Verdict.PROVED


def test_a_difference_of_infinities_is_not_zero() -> None:
    """Of a row that is masked out everywhere, no device's difference from the best is 0."""

    def reference(mask: jax.Array, x: jax.Array) -> jax.Array:
        return best(jnp.where(mask > 0, x, -jnp.inf))

    def local(mask: jax.Array, x: jax.Array) -> jax.Array:
        x = jnp.where(mask > 0, x, -jnp.inf)
        value = jnp.max(x, axis=1)
        attains = value - lax.pmax(value, BOTH) == 0
        return lax.pmin(jnp.where(attains, jnp.argmax(x, axis=1) + SHARD * device(), WHOLE), BOTH)

    assert verdict(reference, local, count=2) is not Verdict.PROVED


def test_the_value_at_the_best_index_is_the_best_value() -> None:
    def taken(x: jax.Array, least: bool = False) -> jax.Array:
        return jnp.take_along_axis(x, best(x, least)[:, None], axis=1)[:, 0]

    def of_parts(x: jax.Array) -> jax.Array:
        everywhere = lax.all_gather(jnp.max(x, axis=1), BOTH)
        return jnp.take_along_axis(everywhere, jnp.argmax(everywhere, axis=0)[None], axis=0)[0]

    placed = Placed(MESH, P("x"), P("x"), floats((4, WHOLE)))
    assert hlo_verify.verify(*placed.pair(lambda x: jnp.max(x, axis=1), taken)).verdict is Verdict.PROVED
    assert verdict(lambda x: jnp.max(x, axis=1), of_parts) is Verdict.PROVED
    assert verdict(lambda x: jnp.min(x, axis=1), of_parts) is not Verdict.PROVED


def test_a_greedy_decoder() -> None:
    """The next token's embedding, of a head that is split by the vocabulary."""

    def step(x: jax.Array, head: jax.Array, table: jax.Array, pick: Body = best) -> jax.Array:
        return table[pick(x @ head)]

    shapes = floats((ROWS, 4), (4, WHOLE), (WHOLE, 4))
    placed = Placed(MESH, (P(), P(None, BOTH), P()), P(), shapes)
    found = hlo_verify.verify(*placed.pair(step, partial(step, pick=partial(picked, "taken"))), refute=False)
    assert found.verdict is Verdict.PROVED
    found = hlo_verify.verify(*placed.pair(step, partial(step, pick=partial(wrongly, "not numbered"))), refute=False)
    assert found.verdict is not Verdict.PROVED


SCORES: dict[str, Callable[..., jax.Array]] = {
    "logarithm": lambda x, y: x - jnp.log(y),
    "twice a logarithm": lambda x, y: x - jnp.log(-jnp.log(y)),
    "root": lambda x, y: x + jnp.sqrt(y),
    "scaled": lambda x, y: x / 0.7 - jnp.log(y),
}
"""Of what may be no number, a device's best score has a name."""


def scored(score: str, x: jax.Array, y: jax.Array, by: str = "its own", stride: int = SHARD) -> jax.Array:
    """The best column by scores, where each device looks up its own best score at its index."""
    scores = SCORES[score](x, y)
    index = jnp.argmin(scores, axis=1) if by == "the least" else jnp.argmax(scores, axis=1)
    looked_up = SCORES["root"](x, y) if by == "another score" else scores
    value = jnp.take_along_axis(looked_up, index[:, None], axis=1)[:, 0]
    first = jnp.argmax(lax.all_gather(value, BOTH), axis=0)
    return jnp.take_along_axis(lax.all_gather(index + stride * device(), BOTH), first[None], axis=0)[0]


@pytest.mark.parametrize("score", SCORES)
def test_a_score_that_may_be_no_number(score: str) -> None:
    found = verdict(lambda x, y: best(SCORES[score](x, y)), partial(scored, score), count=2)
    assert found is Verdict.PROVED


@pytest.mark.parametrize("change", [{"by": "the least"}, {"by": "another score"}, {"stride": SHARD - 1}], ids=str)
def test_another_score_that_may_be_no_number(change: dict[str, Any]) -> None:
    found = verdict(lambda x, y: best(SCORES["scaled"](x, y)), partial(scored, "scaled", **change), count=2)
    assert found is not Verdict.PROVED
