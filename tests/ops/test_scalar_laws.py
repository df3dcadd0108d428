"""What people spell in other ways than a reference does: roots, logarithms, extrema, choices, bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
ROWS, COLUMNS = P("x"), P(None, "x")
FLOATS = jax.ShapeDtypeStruct((8, 8), jnp.float32)
INTEGERS = jax.ShapeDtypeStruct((8, 8), jnp.int32)

Body = Callable[..., Any]


def report(reference: Body, local: Body, argument: Any, **how: Any) -> hlo_verify.Report:
    """Of a function of rows."""
    return hlo_verify.verify(*Placed(MESH, ROWS, ROWS, [argument]).pair(reference, local), **how)


def of_columns(reference: Body, local: Body, to: P = COLUMNS) -> hlo_verify.Report:
    """Of a function of columns that communicates."""
    return hlo_verify.verify(*Placed(MESH, COLUMNS, to, [FLOATS]).pair(reference, local), refute=False)


def one(x: jax.Array) -> jax.Array:
    """Something positive."""
    return x * x + 1


def elementwise(f: Body) -> Body:
    return jax.vmap(jax.vmap(jax.grad(f)))


def logsumexp(x: jax.Array) -> jax.Array:
    most = x.max(-1)
    return most + jnp.log(jnp.exp(x - most[:, None]).sum(-1))


ROOTS: dict[str, tuple[Body, Body]] = {
    "quotient by a root": (lambda x: x / jnp.sqrt(one(x)), lambda x: x * lax.rsqrt(one(x))),
    "quotient by a root of anything": (lambda x: 3 / jnp.sqrt(x), lambda x: 3 * lax.rsqrt(x)),
    "power of minus a half": (lambda x: lax.rsqrt(one(x)), lambda x: one(x) ** -0.5),
    "power of a half": (lambda x: jnp.sqrt(one(x)), lambda x: one(x) ** 0.5),
    "power of minus one": (lambda x: 1 / one(x), lambda x: one(x) ** -1.0),
    "power of three halves": (lambda x: one(x) ** 1.5, lambda x: one(x) * jnp.sqrt(one(x))),
    "power of minus three halves": (lambda x: one(x) ** -1.5, lambda x: lax.rsqrt(one(x)) / one(x)),
    "third power of an inverse root": (lambda x: one(x) ** -1.5, lambda x: lax.rsqrt(one(x)) ** 3),
    "square of a root": (one, lambda x: jnp.sqrt(one(x)) * jnp.sqrt(one(x))),
    "root of a square": (jnp.abs, lambda x: jnp.sqrt(x * x)),
    "root of a multiple": (lambda x: jnp.sqrt(4 * one(x)), lambda x: 2 * jnp.sqrt(one(x))),
    "root of a literal": (lambda x: x / jnp.sqrt(4.0), lambda x: x * 0.5),
    "inverse root of a literal": (lambda x: x * lax.rsqrt(64.0), lambda x: x / 8),
    "root of an exponential": (lambda x: jnp.sqrt(jnp.exp(x)), lambda x: jnp.exp(x / 2)),
    "square of a norm": (lambda x: jnp.linalg.norm(x, axis=-1) ** 2, lambda x: (x * x).sum(-1)),
    "rounded up": (lambda x: jnp.ceil(3 * x), lambda x: -jnp.floor(-x * 3)),
    "integers rounded up": (
        lambda x: jnp.ceil(jnp.clip(x, -9, 9)).astype(jnp.int32),
        lambda x: -jnp.floor(jnp.clip(-x, -9, 9)).astype(jnp.int32),
    ),
    "rounded up of a maximum": (lambda x: jnp.ceil(x).max(-1), lambda x: -jnp.floor(-x.max(-1))),
    "deviation": (lambda x: jnp.std(x, -1) ** 2, lambda x: jnp.var(x, -1)),
    "moments": (lambda x: 2 / (jnp.sqrt(x * x / 0.25) + 1), lambda x: 2 / (2 * jnp.abs(x) + 1)),
    "gradient of an inverse root": (elementwise(lambda v: lax.rsqrt(v * v + 1)), lambda x: -x * lax.rsqrt(one(x)) ** 3),
}

EXPONENTIALS: dict[str, tuple[Body, Body]] = {
    "inverse of a power": (lambda x: 1 / 3.0**x, lambda x: 3.0**-x),
    "power of a sum": (lambda x: 2.0**x * 2.0**x, lambda x: 2.0 ** (2 * x)),
    "exponential of a logarithm": (lambda x: jnp.exp(x + jnp.log(one(x))), lambda x: jnp.exp(x) * one(x)),
    "exponential less a logarithm": (lambda x: jnp.exp(x - jnp.log(one(x))), lambda x: jnp.exp(x) / one(x)),
    "logarithms of a product": (lambda x: jnp.log(one(x)).sum(-1), lambda x: jnp.log(jnp.prod(one(x), -1))),
    "logarithm of a product of exponentials": (lambda x: x.sum(-1), lambda x: jnp.log(jnp.prod(jnp.exp(x), -1))),
    "logarithm of a running product": (
        lambda x: jnp.cumsum(jnp.log(one(x)), -1),
        lambda x: jnp.log(jnp.cumprod(one(x), -1)),
    ),
    "logarithm of a square": (lambda x: jnp.log(x * x), lambda x: 2 * jnp.log(jnp.abs(x))),
    "logarithm of a square of a product": (
        lambda x: jnp.log(3 * x**4 * x[:, ::-1] ** 2),
        lambda x: jnp.log(3.0) + 2 * jnp.log(jnp.abs(x * x * x[:, ::-1])),
    ),
    "tangent": (jnp.tan, lambda x: jnp.sin(x) / jnp.cos(x)),
    "tangent of the opposite": (lambda x: jnp.tan(-x), lambda x: -jnp.tan(x)),
    "half a logarithm": (lambda x: jnp.log(jnp.sqrt(one(x))), lambda x: 0.5 * jnp.log(one(x))),
    "logarithm of a quotient": (lambda x: x - jnp.log(2 + x * x), lambda x: jnp.log(jnp.exp(x) / (2 + x * x))),
    "logarithm of a mean": (
        lambda x: jnp.log(jnp.mean(jnp.exp(x), -1)),
        lambda x: jax.nn.logsumexp(x, -1) - jnp.log(8.0),
    ),
    "logarithm of one more": (lambda x: jnp.log1p(x * x), lambda x: jnp.log(1 + x * x)),
    "exponential less one": (jnp.expm1, lambda x: jnp.exp(x) - 1),
    "logistic": (jax.nn.sigmoid, lambda x: jnp.exp(x) / (1 + jnp.exp(x))),
    "log of a sum of exponentials": (lambda x: jax.nn.logsumexp(x, -1), logsumexp),
    "unshifted": (lambda x: jax.nn.logsumexp(x, -1), lambda x: jnp.log(jnp.exp(x).sum(-1))),
    "softmax by its logarithm": (lambda x: jnp.exp(jax.nn.log_softmax(x, -1)), lambda x: jax.nn.softmax(x, -1)),
    "logarithm of a softmax": (lambda x: jax.nn.log_softmax(x, -1), lambda x: jnp.log(jax.nn.softmax(x, -1))),
    "gradient of a log of a sum": (
        lambda x: jax.grad(lambda y: jax.nn.logsumexp(y, -1).sum())(x),
        lambda x: jax.nn.softmax(x, -1),
    ),
}

CHOICES: dict[str, tuple[Body, Body]] = {
    "relu": (jax.nn.relu, lambda x: jnp.where(x > 0, x, 0)),
    "relu, equal": (jax.nn.relu, lambda x: jnp.where(x >= 0, x, 0)),
    "relu, turned": (jax.nn.relu, lambda x: jnp.where(x < 0, 0, x)),
    "relu as a product": (jax.nn.relu, lambda x: x * (x > 0)),
    "relu of a sum": (lambda x: jax.nn.relu(x + 1), lambda x: (x + 1) * (x + 1 > 0)),
    "square of relu": (lambda x: jax.nn.relu(x) ** 2, lambda x: jnp.where(x > 0, x * x, 0)),
    "relu times its argument": (lambda x: jax.nn.relu(x) ** 2, lambda x: jax.nn.relu(x) * x),
    "gradient of relu squared": (elementwise(lambda v: jax.nn.relu(v) ** 2), lambda x: 2 * jax.nn.relu(x)),
    "mask of relu": (lambda x: jnp.where(x > 0, jnp.tanh(x), 0), lambda x: jnp.tanh(x) * (jax.nn.relu(x) > 0)),
    "leaky": (lambda x: jax.nn.leaky_relu(x, 0.25), lambda x: jnp.maximum(x, 0.25 * x)),
    "clipped divisor": (lambda x: jnp.where(x > 1.0, 1.0 / x, 1.0), lambda x: 1.0 / jnp.maximum(x, 1.0)),
    "absolute value": (jnp.abs, lambda x: jnp.where(x < 0, -x, x)),
    "absolute value as a maximum": (jnp.abs, lambda x: jnp.maximum(x, -x)),
    "absolute values in a product": (lambda x: jnp.abs(x) * jnp.abs(x + 0), lambda x: x * x),
    "sign of a square": (lambda x: (x * x > 0) * 1.0, lambda x: (x != 0) * 1.0),
    "sign of an absolute value": (lambda x: (jnp.abs(x) > 0) * 1.0, lambda x: (x != 0) * 1.0),
    "sign of a maximum": (
        lambda x: (jnp.maximum(x, x * x - 1) > 0) * 1.0,
        lambda x: ((x > 0) | (x * x - 1 > 0)) * 1.0,
    ),
    "its own format": (jnp.tanh, lambda x: lax.reduce_precision(jnp.tanh(x), 8, 23)),
}

BITS: dict[str, tuple[Body, Body]] = {
    "low bits": (lambda x: x & 7, lambda x: x % 8),
    "lowest bit": (lambda x: x & 1, lambda x: x % 2),
    "low bits of low bits": (lambda x: x & 7, lambda x: lax.rem(x & 7, 8)),
    "middle bits": (lambda x: (x >> 4) & 15, lambda x: (x // 16) % 16),
}


@pytest.mark.drawn(25)
@pytest.mark.parametrize("name", [*ROOTS, *EXPONENTIALS, *CHOICES])
def test_another_spelling_is_proved(name: str) -> None:
    found = report(*{**ROOTS, **EXPONENTIALS, **CHOICES}[name], FLOATS, refute=False)
    assert found.verdict is Verdict.PROVED, found.results[0].reason


@pytest.mark.parametrize("name", BITS)
def test_bits_are_digits(name: str) -> None:
    assert report(*BITS[name], INTEGERS, refute=False).verdict is Verdict.PROVED


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    "name", ["quotient by a root", "root of a square", "rounded up", "deviation", "inverse of a power", "relu"]
)
def test_the_second_check_does_not_disagree(name: str) -> None:
    found = report(*{**ROOTS, **EXPONENTIALS, **CHOICES}[name], FLOATS, refute=False, recheck=True)
    assert found.verdict is Verdict.PROVED and found.recheck and not found.recheck.disagreements


WRONG: dict[str, tuple[Body, Body]] = {
    "logarithms of factors of any sign": (lambda x: jnp.log(x).sum(-1), lambda x: jnp.log(jnp.prod(x, -1))),
    "logarithm of the sum": (lambda x: jnp.log(one(x)).sum(-1), lambda x: jnp.log(one(x).sum(-1))),
    "rounded down": (jnp.ceil, jnp.floor),
    "one more than rounded down": (jnp.ceil, lambda x: jnp.floor(x) + 1),
    "rounded down of a minimum": (lambda x: jnp.ceil(x).max(-1), lambda x: -jnp.floor(-x.min(-1))),
    "root of a square with its sign": (lambda x: x, lambda x: jnp.sqrt(x * x)),
    "summand in a root": (lambda x: 1 / (jnp.sqrt((x * x).sum(-1)) + 1), lambda x: lax.rsqrt((x * x).sum(-1) + 1)),
    "half a power": (lambda x: one(x) ** 1.5, lambda x: jnp.sqrt(one(x))),
    "logarithm of a sum": (lambda x: jnp.log(one(x)), lambda x: jnp.log(x * x)),
    "logarithm of a square without its sign": (lambda x: jnp.log(x * x), lambda x: 2 * jnp.log(x)),
    "logarithm of a third power": (lambda x: jnp.log(x**3), lambda x: 3 * jnp.log(jnp.abs(x))),
    "logarithm of an opposite": (lambda x: jnp.log(-x * x), lambda x: 2 * jnp.log(jnp.abs(x))),
    "logarithm of half a square": (lambda x: jnp.log(x * x / 2), lambda x: 2 * jnp.log(jnp.abs(x) / 2)),
    "inverse of a tangent": (jnp.tan, lambda x: jnp.cos(x) / jnp.sin(x)),
    "tangent without its sign": (jnp.tan, lambda x: jnp.sin(jnp.abs(x)) / jnp.cos(x)),
    "mask with zero": (lambda x: jnp.where(x > 0, 1.0, 0.0), lambda x: jnp.where(jax.nn.relu(x) >= 0, 1.0, 0.0)),
    "smallest of two": (lambda x: jnp.maximum(x, 1.0), lambda x: jnp.where(x < 1.0, x, 1.0)),
    "clipped the other way": (lambda x: jnp.where(x > 1.0, 1.0 / x, 1.0), lambda x: 1.0 / jnp.minimum(x, 1.0)),
    "absolute value of a sum": (lambda x: jnp.abs(x + 1), lambda x: jnp.abs(x) + 1),
    "fewer bits": (jnp.tanh, lambda x: lax.reduce_precision(jnp.tanh(x), 5, 3)),
}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_law_is_not_proved(name: str) -> None:
    assert report(*WRONG[name], FLOATS, refute=name != "fewer bits").verdict is not Verdict.PROVED


def test_remainders_of_negative_numbers_are_no_bits() -> None:
    assert report(lambda x: x & 7, lambda x: lax.rem(x, 8), INTEGERS).verdict is Verdict.REFUTED


# Across devices


def split_logsumexp(x: jax.Array, everywhere: bool = True) -> jax.Array:
    most = lax.pmax(x.max(-1), "x") if everywhere else x.max(-1)
    return most + jnp.log(lax.psum(jnp.exp(x - most[:, None]).sum(-1), "x"))


def merged(x: jax.Array) -> jax.Array:
    own = jax.nn.logsumexp(x, -1)
    return jax.nn.softmax(x, -1) * jnp.exp(own - jax.nn.logsumexp(lax.all_gather(own, "x"), 0))[:, None]


def flash(x: jax.Array) -> jax.Array:
    """The mean of x by its softmax, of each device's own log of a sum."""
    most = x.max(-1)
    weights = jnp.exp(x - most[:, None])
    total = weights.sum(-1)
    mean, own = (weights * x).sum(-1) / total, most + jnp.log(total)
    share = jnp.exp(own - lax.pmax(own, "x"))
    return lax.psum(mean * share, "x") / lax.psum(share, "x")


def rms(x: jax.Array) -> jax.Array:
    return x * lax.rsqrt(lax.psum((x * x).sum(-1, keepdims=True), "x") / 8 + 1e-5)


SPLIT: dict[str, tuple[Body, Body, P]] = {
    "log of a sum": (lambda x: jax.nn.logsumexp(x, -1), split_logsumexp, P()),
    "merged logs of sums": (
        lambda x: jax.nn.logsumexp(x, -1),
        lambda x: jax.nn.logsumexp(lax.all_gather(jax.nn.logsumexp(x, -1), "x"), 0),
        P(),
    ),
    "softmax": (lambda x: jax.nn.softmax(x, -1), merged, COLUMNS),
    "flash": (lambda x: (jax.nn.softmax(x, -1) * x).sum(-1), flash, P()),
    "rms": (lambda x: x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-5), rms, COLUMNS),
}


@pytest.mark.parametrize("name", SPLIT)
def test_exponentials_over_devices(name: str) -> None:
    found = of_columns(*SPLIT[name])
    assert found.verdict is Verdict.PROVED, found.results[0].reason


def test_a_local_maximum_in_a_sum_over_devices() -> None:
    found = of_columns(lambda x: jax.nn.logsumexp(x, -1), lambda x: split_logsumexp(x, everywhere=False), P())
    assert found.verdict is not Verdict.PROVED


@pytest.mark.parametrize("is_wrong", [False, True])
def test_a_one_hot_of_what_may_wrap(is_wrong: bool) -> None:
    """`y - 8*d` may wrap, and is none of the places of the device if it does."""

    def local(x: jax.Array, y: jax.Array) -> jax.Array:
        own = y - (8 + is_wrong) * lax.axis_index("x")
        return x.T @ (jnp.arange(8) == own[:, None]).astype(jnp.float32)

    arguments = [jax.ShapeDtypeStruct((8, 4), jnp.float32), jax.ShapeDtypeStruct((8,), jnp.int32)]
    pair = Placed(MESH, P(), COLUMNS, arguments).pair(lambda x, y: x.T @ jax.nn.one_hot(y, 32), local)
    assert (hlo_verify.verify(*pair, refute=False).verdict is Verdict.PROVED) is not is_wrong
