"""Updates by subtraction, and by a computation of which each element has one at the most."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from hlo_verify.evaluate import dense, evaluate, of_dense
from hlo_verify.passes.load.load import load

UPDATES: dict[str, Callable[..., Any]] = {
    "subtracted": lambda x, k, u: x.at[k].subtract(u),
    "rows subtracted": lambda x, k, u: x.reshape(4, 2).at[k % 4].subtract(jnp.stack([u, 2 * u], 1)),
}
APART: dict[str, Callable[..., Any]] = {
    "applied": lambda x, k, u: x.at[3:7].apply(jnp.sin),
    "applied to rows": lambda x, k, u: x.reshape(4, 2).at[2].apply(lambda a: a * a - 1),
    "applied outside": lambda x, k, u: x.at[jnp.array([1, 9, 4])].apply(jnp.tanh, mode="drop"),
    "subtracted from": lambda x, k, u: lax.scatter_apply(
        x, jnp.array([[2], [5]]), lambda a: 3 - a, lax.ScatterDimensionNumbers((), (0,), (0,)), update_shape=(2,)
    ),
}


def arguments(dtype: str, seed: int = 0) -> list[np.ndarray[Any, Any]]:
    generator = np.random.default_rng(seed)
    x, u = (generator.integers(-3, 200, size).astype(dtype) for size in (8, 6))
    return [x, np.array([5, 2, 5, 0, 5, 2], np.int32), u]


def evaluated(function: Callable[..., Any], given: list[np.ndarray[Any, Any]]) -> Any:
    return evaluate(load(jax.jit(function, keep_unused=True).lower(*given).as_text()), [of_dense(a) for a in given], 1)


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "int8"])
@pytest.mark.parametrize("name", UPDATES)
def test_updates_are_subtracted_as_often_as_they_occur(name: str, dtype: str) -> None:
    given = arguments(dtype)
    (found,) = evaluated(UPDATES[name], given).results
    np.testing.assert_array_equal(dense(found, 0), np.asarray(jax.jit(UPDATES[name])(*given)))


@pytest.mark.parametrize("name", APART)
def test_what_is_computed_of_one_element_and_its_update(name: str) -> None:
    given = arguments("float32")
    (found,) = evaluated(APART[name], given).results
    np.testing.assert_allclose(dense(found, 0), np.asarray(jax.jit(APART[name])(*given)), rtol=1e-5)


def test_the_order_of_several_computations_is_nobodys_knowledge() -> None:
    found = evaluated(lambda x, k, u: x.at[k].apply(jnp.sin), arguments("float32"))
    assert tuple(found.results) == (None,)
    assert found.unknown
