"""What is looked at in floats before it is worked out: it has to be near 0 where a term is 0, whatever it asks."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest

from hlo_verify import Verdict
from tests.equality.test_scalars import Function, verdict


def slope_of_first(f: Function) -> Function:
    return jax.grad(lambda x, y: jnp.sum(f(x, y)))


def as_number(condition: jax.Array) -> jax.Array:
    return condition.astype(jnp.float32)


def part(condition: Callable[[jax.Array], jax.Array]) -> Function:
    return lambda x, y: jnp.where(condition(jnp.exp(x)), 5.0 / jnp.exp(x), 1.0)


def both(least: float) -> Function:
    return lambda x, y: jnp.where(as_number(x > 0) + as_number(y > 0) > least, 1.0, x)


SAME: dict[str, tuple[Function, Function]] = {
    "part of a positive number": (lambda x, y: jnp.minimum(jnp.exp(x), 5.0) / jnp.exp(x), part(lambda s: s > 5.0)),
    "whether the greater is 0, as a slope asks": (
        slope_of_first(jnp.maximum),
        slope_of_first(lambda x, y: jnp.maximum(x - y, 0.0) + y),
    ),
    "a truth value as a number": (
        lambda x, y: jnp.where(x > 0, y, 0.0),
        lambda x, y: jnp.where((1 - as_number(x > 0)) * -3.0 < 0, 0.0, y),
    ),
    "two truth values added up": (lambda x, y: jnp.where((x > 0) & (y > 0), 1.0, x), both(1.5)),
}

OTHER: dict[str, tuple[Function, Function]] = {
    "part of a positive number": (lambda x, y: jnp.minimum(jnp.exp(x), 5.0) / jnp.exp(x), part(lambda s: s < 5.0)),
    "whether the greater is 0, as a slope asks": (
        slope_of_first(jnp.maximum),
        slope_of_first(lambda x, y: jnp.maximum(y - x, 0.0) + y),
    ),
    "a truth value as a number": (
        lambda x, y: jnp.where(x > 0, y, 0.0),
        lambda x, y: jnp.where((1 - as_number(x > 0)) * 3.0 < 0, 0.0, y),
    ),
    "two truth values added up": (lambda x, y: jnp.where((x > 0) & (y > 0), 1.0, x), both(0.5)),
}


@pytest.mark.parametrize("name", SAME)
def test_another_spelling_is_proved_and_another_function_is_not(name: str) -> None:
    assert verdict(*SAME[name]) is Verdict.PROVED
    assert verdict(*OTHER[name]) is not Verdict.PROVED
