"""Where a reference divides by 0 and is finite, a device that is no number there is not what it is."""

from __future__ import annotations

import jax.numpy as jnp
import pytest
from jax import Array

from hlo_verify import Verdict
from tests.equality.test_scalars import Function, verdict

POLES: dict[str, tuple[Function, Function]] = {
    "a quotient of a clipped quotient, which is 0 where that is infinite": (
        lambda x, y: jnp.minimum(x / y, 2) / (x / y),
        lambda x, y: jnp.where(x / y > 2, 2 / (x / y), 1),
    ),
    "a quotient of a clipped quotient where it is none": (
        lambda x, y: jnp.where(y == 0, 1, jnp.minimum(x / y, 2) / (x / y)),
        lambda x, y: jnp.where(x / y > 2, 2 / (x / y), 1),
    ),
    "a quotient of a clipped quotient beside another": (
        lambda x, y: jnp.where(x > 1, jnp.minimum(x / y, 2) / (x / y), 1) + 1 / x,
        lambda x, y: jnp.where(x / y > 2, jnp.where(x > 1, 2 / (x / y), 1), 1) + 1 / x,
    ),
    "a clipped quotient where it is none": (
        lambda x, y: jnp.where(x == 0, 0, jnp.minimum(x, 2) / x),
        lambda x, y: jnp.where(x > 2, 2 / x, 1),
    ),
    "a clipped quotient beside none": (
        lambda x, y: jnp.where(x != 0, jnp.minimum(x, 2) / x, y),
        lambda x, y: jnp.where(x > 2, 2 / x, 1),
    ),
    "a clipped quotient above 0": (
        lambda x, y: jnp.where(x > 0, jnp.minimum(x, 2) / x, 0),
        lambda x, y: jnp.where(x > 2, 2 / x, jnp.where(x >= 0, 1, 0)),
    ),
    "a quotient of what is cut off at 0": (
        lambda x, y: jnp.where(x > 0, x * y / x**2 * x, 0),
        lambda x, y: jnp.where(x >= 0, y, 0),
    ),
    "a quotient that another choice has": (
        lambda x, y: jnp.where(x == 0, 3, 1 / x) * x + jnp.where(y > 0, 1, 1),
        lambda x, y: 2 + 0 * x,
    ),
    "a pole that a minimum takes": (
        lambda x, y: jnp.minimum(1 / (x * x), 5) * y,
        lambda x, y: x / x * (jnp.minimum(1 / (x * x), 5) * y),
    ),
    "a pole that a function is 1 at": (
        lambda x, y: jnp.tanh(1 / x**2) * y,
        lambda x, y: x / x * jnp.tanh(1 / x**2) * y,
    ),
    "a pole that is divided by": (lambda x, y: y / (1 + 1 / x**2), lambda x, y: x / x * (y / (1 + 1 / x**2))),
    "a norm that clips": (
        lambda x, y: x * jnp.minimum(1, 1 / jnp.sqrt((x * x).sum())),
        lambda x, y: x * jnp.minimum(1, jnp.sqrt((x * x).sum()) / (x * x).sum()),
    ),
    "a positive part under a pole": (
        lambda x, y: y * jnp.tanh(1 / jnp.maximum(x, 0)),
        lambda x, y: y * jnp.tanh(jnp.maximum(x, 0) / jnp.maximum(x, 0) ** 2),
    ),
    "a root under a pole": (
        lambda x, y: y * jnp.tanh(1 / jnp.sqrt(jnp.maximum(x, 0))),
        lambda x, y: y * jnp.tanh(jnp.sqrt(jnp.maximum(x, 0)) / jnp.maximum(x, 0)),
    ),
    "a root's cube under a pole": (
        lambda x, y: y * jnp.minimum(1 / (x * x).sum(), 5),
        lambda x, y: y * jnp.minimum(jnp.sqrt((x * x).sum()) / jnp.sqrt((x * x).sum()) ** 3, 5),
    ),
    "a sum of sizes under a pole": (
        lambda x, y: y / (1 + 1 / abs(x).sum()),
        lambda x, y: y / (1 + abs(x).sum() / abs(x).sum() ** 2),
    ),
    "what is no number is 0": (lambda x, y: jnp.nan_to_num(x / x), lambda x, y: 1 + 0 * x),
    "clipped on the side of a device": (
        lambda x, y: jnp.where(x > 2, 2 / x, 1),
        lambda x, y: jnp.minimum(x, 2) / x,
    ),
}


POLES |= {
    f"in a sum: {name}": (
        lambda x, y, of=of: jnp.sum(y * of(1 / (x * x)), -1),
        lambda x, y, of=of: jnp.sum(x / x * y * of(1 / (x * x)), -1),
    )
    for name, of in {
        "minimum": lambda q: jnp.minimum(q, 5),
        "tanh": jnp.tanh,
        "quotient": lambda q: 1 / (1 + q),
    }.items()
}


def root(x: Array) -> Array:
    return jnp.sqrt(x * x + 4 * x**4)


POLES |= {
    f"of a root: {name}": (
        lambda x, y, of=of: y * of(1 / root(x) ** 2),
        lambda x, y, of=of: root(x) / root(x) * y * of(1 / root(x) ** 2),
    )
    for name, of in {"tanh": jnp.tanh, "quotient": lambda q: 1 / (1 + q)}.items()
}
POLES |= {
    f"around a sum: {name}": (
        lambda x, y, of=of: of(jnp.sum(1 / (x * x), -1)),
        lambda x, y, of=of: of(jnp.sum(x / (x * x * x), -1)),
    )
    for name, of in {"exponential": lambda q: jnp.exp(-q), "minimum": lambda q: jnp.minimum(q, 5)}.items()
}


@pytest.mark.parametrize("name", POLES)
def test_a_pole_that_is_absorbed_excuses_nothing(name: str) -> None:
    """`NUMBERS` of test_scalars, and choices among such quotients, are drawn there."""
    assert verdict(*POLES[name]) is not Verdict.PROVED
