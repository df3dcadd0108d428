"""A clamp is its end where a condition says that it lies there: `where(n > 1, f(maximum(n, 1)), f(1))`."""

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
from hlo_verify.equality.pieces_of_forms import without_clamp
from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from tests.support.lowering import Placed

MESH = AbstractMesh((2,), ("x",))
COUNT, MOST = 4, 6
Spelling = Callable[[jax.Array], jax.Array]

SAME: dict[str, dict[str, Spelling]] = {
    "inverse": {
        "whole": lambda n: 1 / jnp.maximum(n, 1),
        "above the end": lambda n: jnp.where(n > 1, 1 / jnp.maximum(n, 1), 1.0),
        "from the end on": lambda n: jnp.where(n >= 1, 1 / jnp.maximum(n, 1), 1.0),
        "below it": lambda n: jnp.where(n < 1, 1.0, 1 / jnp.maximum(n, 1)),
    },
    "function": {
        "whole": lambda n: 1 / (1 + jnp.minimum(n, 3)),
        "below the end": lambda n: jnp.where(n < 3, 1 / (1 + n), 0.25),
        "above it": lambda n: jnp.where(n > 3, 0.25, 1 / (1 + jnp.minimum(n, 3))),
    },
    "between": {
        "whole": lambda n: 1 / jnp.clip(n, 2, 4),
        "by cases": lambda n: jnp.where(n <= 2, 0.5, jnp.where(n >= 4, 0.25, 1 / jnp.clip(n, 2, 4))),
    },
}
OTHER: dict[str, dict[str, Spelling]] = {
    "inverse": {
        "above the next": lambda n: jnp.where(n > 2, 1 / jnp.maximum(n, 1), 1.0),
        "another end": lambda n: jnp.where(n > 1, 1 / jnp.maximum(n, 3), 1.0),
        "another value": lambda n: jnp.where(n > 1, 1 / jnp.maximum(n, 1), 0.0),
        "the other way": lambda n: jnp.where(n > 1, 1.0, 1 / jnp.maximum(n, 1)),
    },
    "function": {
        "from one before": lambda n: jnp.where(n < 2, 1 / (1 + n), 0.25),
        "up to the next": lambda n: jnp.where(n < 5, 1 / (1 + n), 0.25),
        "another value": lambda n: jnp.where(n > 3, 0.5, 1 / (1 + jnp.minimum(n, 3))),
    },
    "between": {
        "the ends exchanged": lambda n: jnp.where(n <= 2, 0.25, jnp.where(n >= 4, 0.5, 1 / jnp.clip(n, 2, 4))),
        "one end alone": lambda n: jnp.where(n <= 2, 0.5, 1 / jnp.maximum(n, 2)),
    },
}
OF: dict[str, Callable[[jax.Array], jax.Array]] = {
    "integers": lambda x: x,
    "counts": lambda x: jnp.sum(jnp.arange(MOST) < x[:, None], 1),
}


def verdict(of: str, reference: Spelling, local: Spelling) -> Verdict:
    placed = Placed(MESH, (P("x"),), P("x"), [jax.ShapeDtypeStruct((COUNT,), "int32")])
    pair = placed.pair(lambda x: reference(OF[of](x)), lambda x: local(OF[of](x)))
    return hlo_verify.verify(*pair, refute=False, assume={"x": (0, MOST + 1)}).verdict


@pytest.mark.parametrize("of", OF)
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in SAME for name in SAME[kind] if name != "whole"])
def test_what_is_chosen_beside_a_clamp(kind: str, name: str, of: str) -> None:
    assert verdict(of, SAME[kind]["whole"], SAME[kind][name]) is Verdict.PROVED


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in OTHER for name in OTHER[kind]])
def test_another_choice_is_not(kind: str, name: str) -> None:
    n = jnp.arange(MOST + 1)
    for spelling in SAME[kind].values():
        np.testing.assert_allclose(spelling(n), SAME[kind]["whole"](n))
    assert not np.allclose(OTHER[kind][name](n), SAME[kind]["whole"](n))
    for of in OF:
        assert verdict(of, SAME[kind]["whole"], OTHER[kind][name]) is not Verdict.PROVED


def test_a_clamp_is_what_it_is_always() -> None:
    """Of all values of two variables for which some condition holds."""
    v, w = expr.fresh("v", 4), expr.fresh("w", 3)
    e = expr.clamp(expr.add(expr.of_var(v), expr.of_var(w)), 2, 4)

    def value(form: Index, a: int, b: int) -> int:
        there = expr.substitute(form, {v: expr.constant(a), w: expr.constant(b)})
        assert not there.items
        return there.const

    for least, most in product(range(-1, 6), repeat=2):
        there = [(a, b) for a, b in product(range(4), range(3)) if least <= a + b <= most]
        found = without_clamp(
            e,
            lambda other, there=there: all(value(e, a, b) == value(other, a, b) for a, b in there),  # type: ignore[misc]
        )
        if there:
            sums = {a + b for a, b in there}
            assert (found is None) == (min(sums) < 2 < max(sums) or min(sums) < 4 < max(sums))
            assert found is None or all(value(e, a, b) == value(found, a, b) for a, b in there)
    assert without_clamp(expr.of_var(v), lambda other: True) is None
