"""Elements that are looked up, and NaN where no element is: functions of them, before they are looked up and after."""

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
from tests.support.lowering import floats

Function = Callable[..., jax.Array]
DEVICES = 4
ROWS, CLASSES = 16, 10


def verdict(whole: Function, local: Function, ins: Any, out: Any, *floating: tuple[int, ...], rows: int = 8) -> Verdict:
    placed = on({"i": DEVICES}, ins, out)
    placed = replace(placed, arguments=[*floats(*floating), jax.ShapeDtypeStruct((rows,), jnp.int32)])
    return hlo_verify.verify(*placed.pair(whole, local), refute=False).verdict


def taken(x: jax.Array, rows: jax.Array, **how: Any) -> jax.Array:
    return jnp.take(x, rows, axis=0, **how)


# Places that hang on a sum


@pytest.mark.parametrize("by", [-1, 1, 3])
@pytest.mark.parametrize("how", ["fill", "clip"])
def test_places_beside_those_that_are_given(by: int, how: str) -> None:
    def whole(x: jax.Array, rows: jax.Array) -> jax.Array:
        return taken(x, rows + by, mode=how)

    def beside(x: jax.Array, rows: jax.Array) -> jax.Array:
        return taken(x, rows + by + 1, mode=how)

    placed = (P(), P("i")), P("i"), (6,)
    assert verdict(whole, whole, *placed) is Verdict.PROVED
    assert verdict(whole, beside, *placed) is Verdict.UNKNOWN


# One function of numbers

STRICT: dict[str, Callable[[jax.Array], jax.Array]] = {
    "tanh": jnp.tanh,
    "negative": jnp.negative,
    "affine": lambda x: 3 * x + 1,
    "silu": jax.nn.silu,
    "relu": jax.nn.relu,
    "clip": lambda x: jnp.clip(x, -1, 1),
    "sign": jnp.sign,
    "logarithm": jnp.log,
    "inverse": lambda x: 1 / (x * x + 2),
    "power": lambda x: jnp.power(jnp.abs(x) + 1, 1.7),
    "softplus": jax.nn.softplus,
    "several": lambda x: jnp.exp(x) * x + jnp.tanh(x),
    "softmax": jax.nn.softmax,
    "greatest": lambda x: x - jnp.max(x, -1, keepdims=True),
}
FORGETFUL: dict[str, Callable[[jax.Array], jax.Array]] = {
    "is_nan": lambda x: jnp.isnan(x).astype(jnp.float32),
    "is_positive": lambda x: (x > 0).astype(jnp.float32),
    "power of 0": lambda x: x ** jnp.zeros_like(x),
    "chosen relu": lambda x: jnp.where(x > 0, x, 0.0),
    "is_finite": lambda x: jnp.isfinite(x).astype(jnp.float32),
    "without nan": jnp.nan_to_num,
    "equal to itself": lambda x: (x == x).astype(jnp.float32),
    "not less": lambda x: jnp.where(x < 0, 1.0, 2.0),
}


def commuted(f: Function, how: dict[str, Any]) -> Verdict:
    def whole(x: jax.Array, rows: jax.Array) -> jax.Array:
        return f(taken(x, rows))

    def local(x: jax.Array, rows: jax.Array) -> jax.Array:
        return taken(f(x), rows, **how)

    return verdict(whole, local, (P(), P("i")), P("i"), (CLASSES, 3))


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", STRICT)
def test_what_is_made_of_nan_is_nan(name: str) -> None:
    assert commuted(STRICT[name], {}) is Verdict.PROVED


@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", FORGETFUL)
def test_what_is_asked_of_nan_is_not(name: str) -> None:
    assert commuted(FORGETFUL[name], {}) is not Verdict.PROVED


@pytest.mark.drawn(2)
@pytest.mark.parametrize("how", [{"fill_value": 0.0}, {"mode": "clip"}, {"mode": "wrap"}])
def test_another_fill_is_another_function(how: dict[str, Any]) -> None:
    assert commuted(jnp.tanh, how) is not Verdict.PROVED


# Losses


def picked(x: jax.Array, labels: jax.Array) -> jax.Array:
    return jnp.take_along_axis(x, labels[:, None], axis=-1)[:, 0]


def focal(x: jax.Array, labels: jax.Array, power: float = 2.0) -> jax.Array:
    logs = picked(jax.nn.log_softmax(x), labels)
    return -jnp.mean((1 - jnp.exp(logs)) ** power * logs)


def focal_of_all(x: jax.Array, labels: jax.Array, power: float = 2.0, shared: bool = True) -> jax.Array:
    """Of all classes, of which labels pick one."""
    logs = jax.nn.log_softmax(x)
    own = -jnp.mean(picked((1 - jnp.exp(logs)) ** power * logs, labels))
    return lax.pmean(own, "i") if shared else own


def focal_by_hand(x: jax.Array, labels: jax.Array, count: int = ROWS) -> jax.Array:
    shifted = x - jnp.max(x, -1, keepdims=True)
    logs = picked(shifted, labels) - jnp.log(jnp.sum(jnp.exp(shifted), -1))
    return lax.psum(-jnp.sum((1 - jnp.exp(logs)) ** 2 * logs), "i") / count


def entropy(x: jax.Array, labels: jax.Array) -> jax.Array:
    return -jnp.mean(picked(jax.nn.log_softmax(x), labels))


def entropy_of_sums(x: jax.Array, labels: jax.Array, ahead: int = 0) -> jax.Array:
    return lax.pmean(jnp.mean(jax.nn.logsumexp(x, -1) - picked(x, labels + ahead)), "i")


def entropy_row_by_row(x: jax.Array, labels: jax.Array, count: int = ROWS) -> jax.Array:
    def step(total: jax.Array, row: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        return total + jax.nn.logsumexp(row[0]) - jnp.take(*row), None

    return lax.psum(lax.scan(step, jnp.float32(0), (x, labels))[0], "i") / count


LOSSES: dict[str, tuple[Function, Function, bool]] = {
    "of all": (focal, focal_of_all, True),
    "by hand": (focal, focal_by_hand, True),
    "half a power": (partial(focal, power=1.5), partial(focal_of_all, power=1.5), True),
    "another power": (focal, partial(focal_of_all, power=3.0), False),
    "no power": (focal, partial(focal_of_all, power=0.0), False),
    "its own alone": (focal, partial(focal_of_all, shared=False), False),
    "another count": (focal, partial(focal_by_hand, count=ROWS - 1), False),
    "of sums": (entropy, entropy_of_sums, True),
    "row by row": (entropy, entropy_row_by_row, True),
    "another label": (entropy, partial(entropy_of_sums, ahead=1), False),
    "row by row of fewer": (entropy, partial(entropy_row_by_row, count=12), False),
}


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", LOSSES)
def test_losses_of_labels(name: str) -> None:
    whole, local, is_right = LOSSES[name]
    found = verdict(whole, local, (P("i"), P("i")), P(), (ROWS, CLASSES), rows=ROWS)
    assert (found is Verdict.PROVED) is is_right
