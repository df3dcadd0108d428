"""Constants that a person rounded: read as what the other module computes, by name, where a rounding stays one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed

MESH = AbstractMesh((4,), ("x",))
FLOATS = jax.ShapeDtypeStruct((8, 7), jnp.float32)

Body = Callable[..., Any]

ROUNDED: dict[str, tuple[Body, Body]] = {
    "a moving average": (lambda x: 0.9 * x + 0.1 * x * x, lambda x: x + 0.1 * (x * x - x)),
    "a slow moving average": (lambda x: 0.999 * x + 0.001 * x * x, lambda x: x + 0.001 * (x * x - x)),
    "a third": (lambda x: x / 3, lambda x: x * np.float32(1 / 3)),
    "a mean": (lambda x: x.mean(-1), lambda x: x.sum(-1) * np.float32(1 / 7)),
    "a root": (lambda x: x / jnp.sqrt(2.0), lambda x: x * np.float32(2**-0.5)),
    "a rounded root": (lambda x: x / np.float32(math.sqrt(2)), lambda x: x * np.float32(2**-0.5)),
    "the root of a size": (lambda x: x / jnp.sqrt(23.0), lambda x: x * np.float32(23**-0.5)),
    "a logarithm": (lambda x: jnp.tanh(x) / np.float32(math.log(10)), lambda x: jnp.tanh(x) * np.float32(0.4342945)),
    "an average beside the sign of another": (
        lambda x: jnp.sign(0.9 * x + 0.1 * x * x) + 0.99 * x + 0.01 * x * x,
        lambda x: x + 0.01 * (x * x - x) + jnp.sign(x * 0.9 + x * x * 0.1),
    ),
    "a decay that is one of two products": (
        lambda x: x - 0.001 * (jnp.tanh(x) + 0.1 * x) + 0.01 * x * x,
        lambda x: x * np.float32(0.9999) + 0.01 * x * x - 0.001 * jnp.tanh(x),
    ),
    "a stencil": (
        lambda x: x + sum((jnp.tanh(k * x) - x) * 0.1 for k in range(6)),
        lambda x: 0.4 * x + 0.1 * sum(jnp.tanh(k * x) for k in range(6)),
    ),
    "a tenth in two spellings": (
        lambda x: x / 30 + jnp.tanh(x / 10) * 3e-4 * (0.1 * x + 0.9 * x * x),
        lambda x: x * (1 / 30) + 0.1 * x * 3e-4 * jnp.tanh(0.1 * x) + 0.9 * x * x * jnp.tanh(x * 0.1) * 3e-4,
    ),
    "smooth labels": (
        lambda x: -(1 - 0.1) * (jnp.tanh(x) - jnp.exp(x)) - 0.1 * (x - jnp.exp(x)),
        lambda x: jnp.exp(x) - 0.9 * jnp.tanh(x) - 0.1 * x,
    ),
    "gelu": (
        lambda x: jax.nn.gelu(x, approximate=False),
        lambda x: 0.5 * x * (1 + jax.lax.erf(x / np.float32(2**0.5))),
    ),
}


def report(one: Body, other: Body, **how: Any) -> hlo_verify.Report:
    return hlo_verify.verify(*Placed(MESH, P("x"), P("x"), [FLOATS]).pair(one, other), **how)


@pytest.mark.drawn(8)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("name", ROUNDED)
def test_a_rounding_is_said(name: str, turned: bool) -> None:
    one, other = ROUNDED[name]
    found = report(other, one) if turned else report(one, other)
    assert found.verdict is Verdict.PROVED, found.results[0].reason
    assert any("rounded" in said for said in found.assumptions)


WRONG: dict[str, tuple[Body, Body]] = {
    "another average": (lambda x: 0.9 * x + 0.1 * x * x, lambda x: x + 0.11 * (x * x - x)),
    "a third, in two digits": (lambda x: x / 3, lambda x: x * np.float32(0.33)),
    "a neighbour of a third": (lambda x: x / 3, lambda x: x * np.nextafter(np.float32(1 / 3), np.float32(1))),
    "an average beside the sign of that": (
        lambda x: jnp.sign(0.9 * x + 0.1 * x * x) + 0.99 * x + 0.01 * x * x,
        lambda x: x + 0.01 * (x * x - x) + jnp.sign(x + 0.1 * (x * x - x)),
    ),
    "a decay that is none of two products": (
        lambda x: x - 0.001 * (jnp.tanh(x) + 0.1 * x) + 0.01 * x * x,
        lambda x: x * np.float32(0.9998) + 0.01 * x * x - 0.001 * jnp.tanh(x),
    ),
    "a stencil of five": (
        lambda x: x + sum((jnp.tanh(k * x) - x) * 0.1 for k in range(5)),
        lambda x: 0.4 * x + 0.1 * sum(jnp.tanh(k * x) for k in range(5)),
    ),
    "the sign of what a stencil leaves": (
        lambda x: jnp.sign(x - 0.07 * x - 0.07 * x - 0.07 * x - (x - 0.07 * x - 0.07 * x - 0.07 * x)) + x * x,
        lambda x: jnp.sign(x - 0.07 * x - 0.07 * x - 0.07 * x - 0.79 * x) + x * x,
    ),
    "labels that are smoothed more": (
        lambda x: -(1 - 0.1) * (jnp.tanh(x) - jnp.exp(x)) - 0.1 * (x - jnp.exp(x)),
        lambda x: jnp.exp(x) - 0.9 * jnp.tanh(x) - 0.2 * x,
    ),
    "nothing left but a rounding": (
        lambda x: (x / 3 * 3 - x) * 1e9 + x,
        lambda x: (x * np.float32(1 / 3) * 3 - x) * 1e9 + x,
    ),
    "nothing left of two spellings": (
        lambda x: (x / 10 - 0.1 * x) * 1e9 + x / 30,
        lambda x: x * (1 / 30),
    ),
    "the sign of two spellings": (
        lambda x: jnp.sign(x / 10 - 0.1 * x + 1e-30) + x / 30,
        lambda x: jnp.sign(jnp.full_like(x, 1e-30)) + x * (1 / 30),
    ),
    "a step at what is left": (
        lambda x: jnp.where(x * 3 / 3 > x, x, -x),
        lambda x: jnp.where(x * 3 * np.float32(1 / 3) > x, x, -x),
    ),
}

ROOT, LOGARITHM = np.float32(2**0.5), np.float32(math.log(2))


def beside(number: np.float32) -> Any:
    return np.nextafter(number, np.float32(9))


WRONG |= {
    "little left of a root": (
        lambda x: (x * jnp.sqrt(2.0) - x * ROOT) * 1e8 + x,
        lambda x: (x * beside(ROOT) - x * ROOT) * 1e8 + x,
    ),
    "little left of a logarithm": (
        lambda x: (x * jnp.log(2.0) - x * LOGARITHM) * 1e8 + x,
        lambda x: (x * beside(LOGARITHM) - x * LOGARITHM) * 1e8 + x,
    ),
    "little left of another function": (
        lambda x: (x * jnp.sqrt(2.0) - x * jnp.sinh(1.1462158)) * 1e8 + x,
        lambda x: (x * beside(ROOT) - x * jnp.sinh(1.1462158)) * 1e8 + x,
    ),
    "a step at a root": (
        lambda x: jnp.where(x * jnp.sqrt(2.0) < x * beside(ROOT), x, -x),
        lambda x: jnp.where(x * beside(ROOT) < x * beside(ROOT), x, -x),
    ),
    "a decision by a root": (
        lambda x: x * (jnp.sqrt(2.0) < jnp.asarray(beside(ROOT))),
        lambda x: x * (jnp.asarray(beside(ROOT)) < jnp.asarray(beside(ROOT))),
    ),
}

STEPS: dict[str, Callable[[Any], Any]] = {
    "floor": jnp.floor,
    "ceil": jnp.ceil,
    "round": jnp.round,
    "truncate": jnp.trunc,
    "integer": lambda x: x.astype(jnp.int32),
    "remainder": lambda x: jax.lax.rem(x, jnp.float32(2)),
    "mod": lambda x: jnp.mod(x, 2),
    "sign": jnp.sign,
    "inside": lambda x: jnp.tanh(jnp.floor(x) + 1),
}
WRONG |= {
    name: (lambda x, of=of: of(x / 3 * 3 - 6), lambda x, of=of: of(x * np.float32(1 / 3) * 3 - 6))
    for name, of in STEPS.items()
}


@pytest.mark.drawn(3)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_rounding_is_not_proved(name: str, turned: bool) -> None:
    one, other = WRONG[name]
    found = report(other, one) if turned else report(one, other)
    assert found.verdict is not Verdict.PROVED, found.assumptions


def test_the_greatest_floats_are_constants_too() -> None:
    """`nan_to_num` writes them: what they are divided by may make more of them than a float can be."""
    x = jax.ShapeDtypeStruct((8,), jnp.float64)
    with jax.enable_x64(True):
        one = jax.jit(lambda x: x / jnp.maximum(x, 0.5)).trace(x)
        other = jax.jit(lambda x: jnp.nan_to_num(x / jnp.maximum(x, 0.4999999))).trace(x)
    assert hlo_verify.verify(one, other, refute=False).verdict is not Verdict.PROVED
