"""A power whose exponent only a case, or an element, makes a number is the product there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed, floats

MESH = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))


def columns(*exponents: int) -> Callable[[Any], Any]:
    return lambda x: jnp.stack([x**n for n in exponents], 1)


@pytest.mark.parametrize(
    ("whole", "local", "expected"),
    [
        (lambda x: jnp.vander(x, 4), columns(3, 2, 1, 0), Verdict.PROVED),
        (lambda x: x[:, None] ** jnp.arange(4.0), columns(0, 1, 2, 3), Verdict.PROVED),
        (lambda x: x[:, None] ** jnp.arange(-2.0, 2.0), columns(-2, -1, 0, 1), Verdict.PROVED),
        (lambda x: jnp.vander(x, 4), columns(0, 1, 2, 3), Verdict.UNKNOWN),
        (lambda x: jnp.vander(x, 4), columns(3, 2, 2, 0), Verdict.UNKNOWN),
        (lambda x: jnp.vander(x, 4), lambda x: columns(3, 2, 1, 0)(x).at[:, 3].set(x - x), Verdict.UNKNOWN),
        (lambda x: x[:, None] ** jnp.arange(4.0), lambda x: jnp.abs(columns(0, 1, 2, 3)(x)), Verdict.UNKNOWN),
        (lambda x: x[:, None] ** (jnp.arange(3.0) + 0.5), columns(0, 1, 2), Verdict.UNKNOWN),
    ],
)
def test_powers_of_a_table(whole: Callable[..., Any], local: Callable[..., Any], expected: Verdict) -> None:
    x = np.linspace(-2, 2, 8).astype(np.float32)
    with np.errstate(invalid="ignore"):
        is_same = np.allclose(whole(x), local(x), equal_nan=True)
    assert is_same is (expected is Verdict.PROVED)
    pair = Placed(MESH, P("x"), P("x"), floats((8,))).pair(whole, local)
    assert hlo_verify.verify(*pair, refute=False).verdict is expected
