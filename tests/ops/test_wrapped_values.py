"""Places on a ring that are values of an argument, which a condition wraps: remainders, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed

Choice = Callable[[jax.Array], jax.Array]

MESH = AbstractMesh((2,), ("x",))
NEXT: dict[str, Choice] = {
    "at the last": lambda x: jnp.where(x == 7, 0, x + 1),
    "before the last": lambda x: jnp.where(x < 7, x + 1, 0),
    "behind the end": lambda x: jnp.where(x + 1 >= 8, x + 1 - 8, x + 1),
    "not at the last": lambda x: jnp.where(x != 7, x + 1, 0),
}
BEFORE: dict[str, Choice] = {
    "at the first": lambda x: jnp.where(x == 0, 7, x - 1),
    "below nothing": lambda x: jnp.where(x - 1 < 0, x + 7, x - 1),
    "above nothing": lambda x: jnp.where(x > 0, x - 1, 7),
}


def verdict(reference: Choice, local: Choice, values: str = "x in [0, 8)") -> Verdict:
    placed = Placed(MESH, (P("x"),), P("x"), [jax.ShapeDtypeStruct((6,), "int32")])
    return hlo_verify.verify(*placed.pair(reference, local), assume=[values], refute=False).verdict


def assert_truth(reference: Choice, local: Choice, low: int, high: int) -> None:
    """That it is not proved if it is wrong for a value."""
    values = jnp.arange(low, high)
    if (reference(values) != local(values)).any():
        assert verdict(reference, local, f"x in [{low}, {high})") is not Verdict.PROVED


@pytest.mark.parametrize("name", NEXT)
def test_the_next_place(name: str) -> None:
    assert verdict(lambda x: (x + 1) % 8, NEXT[name]) is Verdict.PROVED
    assert_truth(lambda x: (x + 1) % 8, NEXT[name], 0, 9)


@pytest.mark.parametrize("name", BEFORE)
def test_the_place_before(name: str) -> None:
    assert verdict(lambda x: (x - 1) % 8, BEFORE[name]) is Verdict.PROVED
    assert_truth(lambda x: (x - 1) % 8, BEFORE[name], -1, 8)


def test_choices_of_all_kinds() -> None:
    """What is proved is so for all values: bounds, what is chosen and remainders one off, and larger steps."""
    values = np.arange(8)
    proved = 0
    for bound, (above, below), size, step in product((6, 7), ((0, 1), (-7, 1), (-6, 2), (0, 2)), (8,), (1, 2)):

        def choice(x, bound=bound, above=above, below=below, of=jnp):
            return of.where(x >= bound, above if above == 0 else x + above, x + below)

        found = verdict(lambda x, size=size, step=step: (x + step) % size, choice)
        if (choice(values, of=np) != (values + step) % size).any():
            assert found is not Verdict.PROVED, (bound, above, below, size, step)
        proved += found is Verdict.PROVED
    assert proved == 3
