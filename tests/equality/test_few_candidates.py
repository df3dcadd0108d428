"""The best of few elements, told by comparisons: by numbers, ties among them, and as programs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.equality.few_candidates import told_apart
from hlo_verify.index import expr
from hlo_verify.memory import Memory
from hlo_verify.ops.best import index_of_best
from hlo_verify.terms import algebra
from hlo_verify.terms.no_number import infinity
from hlo_verify.terms.term import ONE, ZERO, Poly, number
from tests.support.expressions import Data, Space
from tests.support.lowering import Placed

Program = Callable[..., Any]
WORST: dict[tuple[str, str], Callable[[], Poly]] = {
    ("max", "i1"): lambda: ZERO,
    ("min", "i1"): lambda: ONE,
    ("max", "i8"): lambda: number(-128),
    ("min", "i8"): lambda: number(127),
    ("max", "f32"): lambda: infinity(-1),
    ("min", "f32"): lambda: infinity(1),
}


@pytest.mark.parametrize(("kind", "dtype"), WORST)
@pytest.mark.parametrize("count", [2, 3, 4])
def test_the_best_by_numbers(kind: str, dtype: str, count: int) -> None:
    """Of all ways in which few elements may be equal, the worst value among them."""
    drawn = {"i1": (0, 1), "i8": (-128, 3, 127), "f32": (-1, 2)}[dtype]
    rows = list(product(drawn, repeat=count))
    with Memory().on():
        known = Data({}, np.random.default_rng(0))
        x = known.make((len(rows), count), dtype)
        known.tensors[x] = np.asarray(rows, known.tensors[x].dtype)
        row, v = expr.var("i", "", len(rows)), expr.fresh("v", count)
        element = algebra.read(x, (expr.of_var(row), expr.of_var(v)))
        pair = element, algebra.of_index(expr.of_var(v))
        index = index_of_best(kind, [v], pair, (WORST[kind, dtype](), ZERO), (dtype, "i32"))
        found = told_apart(index)
        assert found is not None
        space, best = Space((row,)), np.argmax if kind == "max" else np.argmin
        values = space.spread(known.evaluator.poly(found, space.grid))
        assert values.astype(int).tolist() == best(np.asarray(rows), 1).tolist()


@pytest.mark.parametrize("initial", [(0, 0), (-128, 1)])
def test_an_initial_pair_that_may_be_better(initial: tuple[int, int]) -> None:
    with Memory().on():
        x, v = Data({}, np.random.default_rng(0)).make((3,), "i8"), expr.fresh("v", 3)
        pair = algebra.read(x, (expr.of_var(v),)), algebra.of_index(expr.of_var(v))
        first = number(initial[0]), number(initial[1])
        assert told_apart(index_of_best("max", [v], pair, first, ("i8", "i32"))) is None


def three(x: jax.Array) -> Any:
    return x.reshape(-1, 3).T


SAME: dict[str, tuple[Program, Program]] = {
    "of three": (
        lambda x: jnp.argmax(x.reshape(-1, 3), 1),
        lambda x: (lambda a, b, c: jnp.where((a >= b) & (a >= c), 0, jnp.where(b >= c, 1, 2)))(*three(x)),
    ),
    "the least of three": (
        lambda x: jnp.argmin(x.reshape(-1, 3), 1),
        lambda x: (lambda a, b, c: jnp.where((a <= b) & (a <= c), 0, jnp.where(b <= c, 1, 2)))(*three(x)),
    ),
    "the first condition": (
        lambda x: jnp.select([x < 0, x < 2, x < 4], [-x, x * x, x + 1], 7),
        lambda x: jnp.where(x < 0, -x, jnp.where(x < 2, x * x, jnp.where(x < 4, x + 1, 7))),
    ),
    "looked up": (
        lambda x: jnp.asarray([5.0, 1.0, 4.0])[jnp.clip(x, 0, 2)],
        lambda x: jnp.select([x <= 0, x == 1], [5.0, 1.0], 4.0),
    ),
}
OTHER: dict[str, tuple[Program, Program]] = {
    "the last of equal ones": (
        lambda x: jnp.argmax(x.reshape(-1, 3), 1),
        lambda x: (lambda a, b, c: jnp.where((a > b) & (a > c), 0, jnp.where(b > c, 1, 2)))(*three(x)),
    ),
    "the greatest for the least": (
        lambda x: jnp.argmin(x.reshape(-1, 3), 1),
        lambda x: (lambda a, b, c: jnp.where((a >= b) & (a >= c), 0, jnp.where(b >= c, 1, 2)))(*three(x)),
    ),
    "the last condition": (
        lambda x: jnp.select([x < 0, x < 2, x < 4], [-x, x * x, x + 1], 7),
        lambda x: jnp.where(x < 4, x + 1, jnp.where(x < 2, x * x, jnp.where(x < 0, -x, 7))),
    ),
    "another default": (
        lambda x: jnp.select([x < 0, x < 2], [-x, x * x], 7),
        lambda x: jnp.where(x < 0, -x, jnp.where(x < 2, x * x, 0)),
    ),
}


def verdict(reference: Program, local: Program, dtype: Any) -> Verdict:
    placed = Placed(AbstractMesh((4,), ("x",)), P("x"), P("x"), [jax.ShapeDtypeStruct((24,), dtype)])
    return hlo_verify.verify(*placed.pair(reference, local), refute=False).verdict


@pytest.mark.usefixtures("prover_alone")
@pytest.mark.parametrize("name", SAME)
def test_spellings_of_a_choice(name: str) -> None:
    assert verdict(*SAME[name], jnp.int32) is Verdict.PROVED


@pytest.mark.usefixtures("prover_alone")
@pytest.mark.parametrize("dtype", [jnp.int32, jnp.float32])
@pytest.mark.parametrize("name", OTHER)
def test_other_choices(name: str, dtype: Any) -> None:
    assert verdict(*OTHER[name], dtype) is not Verdict.PROVED
