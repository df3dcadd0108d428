"""Whether any or all elements are so, as programs for several devices ask it: by counts, extrema and products."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed

MESH = AbstractMesh((4,), ("x",))
EVERYWHERE = P()
COUNT, LOCAL = 12, 3
FLOATS = jax.ShapeDtypeStruct((COUNT,), jnp.float32)
Body = Callable[..., jax.Array]


def verdict(reference: Body, local: Body, to: P = EVERYWHERE, argument: jax.ShapeDtypeStruct = FLOATS) -> Verdict:
    pair = Placed(MESH, P("x"), to, [argument]).pair(reference, local)
    return hlo_verify.verify(*pair, refute=False).verdict


def some(x: jax.Array) -> jax.Array:
    return jnp.any(x > 0)


def every(x: jax.Array) -> jax.Array:
    return jnp.all(x > 0)


def count(x: jax.Array, dtype: str = "int32") -> jax.Array:
    return lax.psum(jnp.sum((x > 0).astype(dtype)), "x")


RIGHT: dict[str, tuple[Body, Body]] = {
    "any: a count is positive": (some, lambda x: count(x) > 0),
    "any: a count is not 0": (some, lambda x: count(x) != 0),
    "any: devices are counted": (some, lambda x: lax.psum(some(x).astype(int), "x") >= 1),
    "any: a count of floats": (some, lambda x: count(x, "float32") > 0.5),
    "any: a mean": (some, lambda x: lax.pmean(jnp.mean(x > 0), "x") > 0),
    "any: a maximum of truth values": (some, lambda x: lax.pmax(some(x).astype(int), "x") == 1),
    "any: a maximum": (some, lambda x: lax.pmax(x.max(), "x") > 0),
    "any: not as many of the others": (some, lambda x: lax.psum(jnp.sum(x <= 0), "x") < COUNT),
    "none": (lambda x: ~some(x), lambda x: count(x) == 0),
    "all: a count": (every, lambda x: count(x) == COUNT),
    "all: a count is not less": (every, lambda x: count(x) >= COUNT),
    "all: devices are counted": (every, lambda x: lax.psum(every(x).astype(int), "x") == 4),
    "all: a minimum of truth values": (every, lambda x: lax.pmin(every(x).astype(int), "x").astype(bool)),
    "all: a minimum": (every, lambda x: lax.pmin(x.min(), "x") > 0),
    "all: none of the others": (every, lambda x: lax.psum(jnp.sum(x <= 0), "x") == 0),
    "all: a product": (every, lambda x: lax.all_gather((x > 0).astype(int), "x").prod() == 1),
    "all: finite": (
        lambda x: jnp.all(jnp.isfinite(x)),
        lambda x: lax.psum(jnp.sum(~jnp.isfinite(x)), "x") == 0,
    ),
}

WRONG: dict[str, tuple[Body, Body]] = {
    "any: more than one": (some, lambda x: count(x) > 1),
    "any: not less than 0": (some, lambda x: count(x) >= 0),
    "any: zeros too": (some, lambda x: lax.psum(jnp.sum(x >= 0), "x") > 0),
    "any: of every device": (some, lambda x: lax.psum(some(x).astype(int), "x") == 4),
    "any: a mean of more than a half": (some, lambda x: lax.pmean(jnp.mean(x > 0), "x") > 0.5),
    "any: of one device": (some, lambda x: jnp.sum(x > 0) > 0),
    "all: but one": (every, lambda x: count(x) >= COUNT - 1),
    "all: and one more": (every, lambda x: count(x) == COUNT + 1),
    "all: of a device's": (every, lambda x: count(x) == LOCAL),
    "all: the greatest": (every, lambda x: lax.pmax(x.max(), "x") > 0),
    "all: zeros too": (every, lambda x: lax.psum(jnp.sum(x < 0), "x") == 0),
    "all: some": (every, lambda x: lax.psum(some(x).astype(int), "x") == 4),
}


@pytest.mark.parametrize("name", RIGHT)
def test_it_is_told_from_counts_and_extrema(name: str) -> None:
    assert verdict(*RIGHT[name]) is Verdict.PROVED


@pytest.mark.parametrize("name", WRONG)
def test_other_numbers_say_something_else(name: str) -> None:
    assert verdict(*WRONG[name]) is not Verdict.PROVED


def test_a_count_that_wraps_says_nothing() -> None:
    """Of 256 elements that are all positive, 8 bits count none."""
    many = jax.ShapeDtypeStruct((256,), jnp.float32)

    def counted(x: jax.Array, dtype: str) -> jax.Array:
        own = lax.reduce((x > 0).astype(dtype), jnp.zeros((), dtype), lax.add, (0,))
        return lax.psum(own, "x") > 0

    assert verdict(some, lambda x: counted(x, "uint16"), argument=many) is Verdict.PROVED
    assert verdict(some, lambda x: counted(x, "uint8"), argument=many) is not Verdict.PROVED


def so_far(x: jax.Array) -> jax.Array:
    return jnp.cumprod((x > 0).astype(int))


def own(x: jax.Array) -> jax.Array:
    return lax.dynamic_slice_in_dim(x, lax.axis_index("x") * LOCAL, LOCAL)


@pytest.mark.parametrize(
    ("local", "found"),
    [
        (lambda x: jnp.cumsum(x <= 0) == 0, Verdict.PROVED),
        (lambda x: jnp.cumsum(x <= 0) <= 1, Verdict.UNKNOWN),
        (lambda x: jnp.cumsum(x < 0) == 0, Verdict.UNKNOWN),
        (lambda x: jnp.cumsum(x > 0) == jnp.arange(COUNT), Verdict.UNKNOWN),
        (lambda x: jnp.cumsum(x <= 0) > 0, Verdict.UNKNOWN),
    ],
)
def test_whether_all_so_far_are_so(local: Body, found: Verdict) -> None:
    """How many of a draft's tokens are accepted: those before the first that is not."""
    everywhere = lambda x: lax.all_gather(x, "x", tiled=True)  # noqa: E731
    assert verdict(so_far, lambda x: own(local(everywhere(x)).astype(int)), P("x")) is found
    assert verdict(lambda x: so_far(x).sum(), lambda x: local(everywhere(x)).astype(int).sum()) is found


BESIDE: dict[str, Body] = {
    "a float": lambda x: lax.all_gather(x, "x").sum(),
    "a choice of fractions": lambda x: jnp.where(lax.all_gather(x, "x").sum() > 0, 0.5, 0.0),
    "a fraction of a count": lambda x: 0.5 * lax.psum(jnp.sum(x < 0).astype(jnp.float32), "x"),
    "an integer": lambda x: jnp.float32(-3),
}


@pytest.mark.parametrize("name", BESIDE)
def test_a_count_and_what_may_be_a_fraction_may_be_one(name: str) -> None:
    """Only beside integers a count is never one half."""
    found = verdict(lambda x: jnp.array(False), lambda x: count(x, "float32") + BESIDE[name](x) == 0.5)
    assert found is (Verdict.PROVED if name == "an integer" else Verdict.UNKNOWN)


# Counts as integers, as real numbers, and what is divided by them


def integers(x: jax.Array) -> jax.Array:
    return jnp.sum(x > 0)


def mean(x: jax.Array) -> jax.Array:
    return jnp.sum(jnp.where(x > 0, x, 0.0)) / jnp.maximum(integers(x), 1)


def total(x: jax.Array) -> jax.Array:
    return lax.psum(jnp.sum(x * (x > 0)), "x")


def real(x: jax.Array) -> jax.Array:
    return count(x, "float32")


def narrow(x: jax.Array) -> jax.Array:
    return lax.psum(jnp.sum(x > 0, dtype="int8"), "x").astype("float32")


def masked(x: jax.Array) -> jax.Array:
    return jnp.sum(jnp.where(x != 3, x, 0.0)) / jnp.maximum(jnp.sum(x != 3), 1)


def others(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return lax.psum(jnp.sum(x * (x != 3).astype("float32")), "x"), lax.psum(jnp.sum((x != 3).astype("float32")), "x")


DIVIDED: dict[str, tuple[Body, Body]] = {
    "a mean of truth values": (lambda x: jnp.mean(x > 0), lambda x: count(x) / COUNT),
    "at least one": (mean, lambda x: total(x) / jnp.maximum(real(x), 1.0)),
    "one if none, of integers": (mean, lambda x: total(x) / jnp.where(count(x) == 0, 1, count(x))),
    "one if none, of numbers": (mean, lambda x: total(x) / jnp.where(real(x) > 0, real(x), 1.0)),
    "nothing if none": (mean, lambda x: jnp.where(real(x) > 0, total(x) / real(x), 0.0)),
    "nothing if none, of integers": (mean, lambda x: jnp.where(count(x) == 0, 0.0, total(x) / count(x))),
    "what is not 3": (masked, lambda x: jnp.where(others(x)[1] > 0, others(x)[0] / others(x)[1], 0.0)),
    "small numbers": (
        lambda x: jnp.sum(jnp.argmax(jnp.stack([x, -x, 2 * x]), 0)) / 2,
        lambda x: lax.psum(jnp.argmax(jnp.stack([x, -x, 2 * x]), 0).astype("float32").sum(), "x") * 0.5,
    ),
    "no more than some": (lambda x: jnp.minimum(integers(x) / 4, 1.0), lambda x: jnp.minimum(real(x), 4.0) * 0.25),
}

DIVIDED_WRONG: dict[str, tuple[Body, Body]] = {
    "a mean of a device's": (lambda x: jnp.mean(x > 0), lambda x: count(x) / LOCAL),
    "at least two": (mean, lambda x: total(x) / jnp.maximum(real(x), 2.0)),
    "two if none or one": (mean, lambda x: total(x) / jnp.where(real(x) > 1, real(x), 2.0)),
    "nothing if one": (mean, lambda x: jnp.where(real(x) > 1, total(x) / real(x), 0.0)),
    "of all": (mean, lambda x: jnp.where(real(x) > 0, lax.psum(x.sum(), "x") / real(x), 0.0)),
    "one if none": (integers, lambda x: jnp.where(count(x) > 0, count(x), 1)),
    "as many as fit": (lambda x: jnp.mean(x > 0), lambda x: narrow(x) / x.size / 4),
    "as much as fits": (
        lambda x: jnp.sum(jnp.argmax(jnp.stack([x, -x, 2 * x]), 0)) / 2,
        lambda x: lax.psum(jnp.argmax(jnp.stack([x, -x, 2 * x]), 0).astype("int8").sum(dtype="int8"), "x") * 0.5,
    ),
}


@pytest.mark.parametrize("name", DIVIDED)
def test_counts_divide(name: str) -> None:
    integers = jax.ShapeDtypeStruct((COUNT,), jnp.int32)
    assert verdict(*DIVIDED[name], argument=integers if name == "what is not 3" else FLOATS) is Verdict.PROVED


@pytest.mark.parametrize("name", DIVIDED_WRONG)
def test_other_counts_do_not(name: str) -> None:
    many = jax.ShapeDtypeStruct((512,), jnp.float32) if "fit" in name else FLOATS
    assert verdict(*DIVIDED_WRONG[name], argument=many) is not Verdict.PROVED
