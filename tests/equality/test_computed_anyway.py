"""What the reference divides by in any case is not 0; what it divides by under a condition may be."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

from hlo_verify import Verdict
from tests.equality.test_scalars import Function, verdict

DIVIDED: dict[str, tuple[Function, Function]] = {
    "a quotient of what is clipped": (lambda x, y: jnp.minimum(x, 2) / x, lambda x, y: jnp.where(x > 2, 2 / x, 1)),
    "a quotient of itself": (lambda x, y: y * x / x, lambda x, y: y),
    "other: a quotient of a clipped quotient, which is 0 where that is infinite": (
        lambda x, y: jnp.minimum(x / y, 2) / (x / y),
        lambda x, y: jnp.where(x / y > 2, 2 / (x / y), 1),
    ),
    "other: a quotient of a clipped quotient where it is none": (
        lambda x, y: jnp.where(y == 0, 1, jnp.minimum(x / y, 2) / (x / y)),
        lambda x, y: jnp.where(x / y > 2, 2 / (x / y), 1),
    ),
    "other: a quotient of a clipped quotient beside another": (
        lambda x, y: jnp.where(x > 1, jnp.minimum(x / y, 2) / (x / y), 1) + 1 / x,
        lambda x, y: jnp.where(x / y > 2, jnp.where(x > 1, 2 / (x / y), 1), 1) + 1 / x,
    ),
    "other: a clipped quotient where it is none": (
        lambda x, y: jnp.where(x == 0, 0, jnp.minimum(x, 2) / x),
        lambda x, y: jnp.where(x > 2, 2 / x, 1),
    ),
    "other: a clipped quotient beside none": (
        lambda x, y: jnp.where(x != 0, jnp.minimum(x, 2) / x, y),
        lambda x, y: jnp.where(x > 2, 2 / x, 1),
    ),
    "other: a clipped quotient above 0": (
        lambda x, y: jnp.where(x > 0, jnp.minimum(x, 2) / x, 0),
        lambda x, y: jnp.where(x > 2, 2 / x, jnp.where(x >= 0, 1, 0)),
    ),
    "other: a quotient of what is cut off at 0": (
        lambda x, y: jnp.where(x > 0, x * y / x**2 * x, 0),
        lambda x, y: jnp.where(x >= 0, y, 0),
    ),
    "other: a quotient that another choice has": (
        lambda x, y: jnp.where(x == 0, 3, 1 / x) * x + jnp.where(y > 0, 1, 1),
        lambda x, y: 2 + 0 * x,
    ),
    "other: a pole that a minimum takes": (
        lambda x, y: jnp.minimum(1 / (x * x), 5) * y,
        lambda x, y: x / x * (jnp.minimum(1 / (x * x), 5) * y),
    ),
    "other: a pole that a function is 1 at": (
        lambda x, y: jnp.tanh(1 / x**2) * y,
        lambda x, y: x / x * jnp.tanh(1 / x**2) * y,
    ),
    "other: a pole that is divided by": (lambda x, y: y / (1 + 1 / x**2), lambda x, y: x / x * (y / (1 + 1 / x**2))),
    "other: what is no number is 0": (lambda x, y: jnp.nan_to_num(x / x), lambda x, y: 1 + 0 * x),
    "other: clipped on the side of a device": (
        lambda x, y: jnp.where(x > 2, 2 / x, 1),
        lambda x, y: jnp.minimum(x, 2) / x,
    ),
}


@pytest.mark.parametrize("name", DIVIDED)
def test_what_is_divided_by_in_any_case_is_not_0(name: str) -> None:
    """`NUMBERS` of test_scalars, and choices among such quotients, are drawn there."""
    assert (verdict(*DIVIDED[name]) is Verdict.PROVED) is not name.startswith("other")
