"""How many tokens are accepted, or come before an end: the first place that holds, in other spellings."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.equality.summands import Steps
from hlo_verify.equality.written_out import same_written_out
from hlo_verify.index import expr
from hlo_verify.session import Session
from hlo_verify.terms import algebra, extrema
from hlo_verify.terms.functions import POSITIVE
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import ONE, Poly, number, tensor
from tests.support.lowering import Placed
from tests.support.structural_laws import at, bound

MESH = AbstractMesh((2,), ("x",))
COUNT = 3
PLACES = jnp.arange(COUNT)
Spelling = Callable[[jax.Array], jax.Array]

OF = {"int32": lambda x: x != 1, "float32": lambda x: x < 0.5}
"""What is accepted, of tokens and of numbers."""
SAME: dict[str, Spelling] = {
    "best": lambda ok: jnp.where((~ok).any(-1), jnp.argmax(~ok, -1), COUNT),
    "least": lambda ok: jnp.where(ok.all(-1), COUNT, jnp.argmin(ok, -1)),
    "products": lambda ok: jnp.sum(jnp.cumprod(ok.astype(jnp.int32), -1), -1),
    "least place": lambda ok: jnp.min(jnp.where(ok, COUNT, PLACES), -1),
}
OTHER: dict[str, Spelling] = {
    "of none, the first": lambda ok: jnp.argmax(~ok, -1),
    "of none, the last": lambda ok: jnp.where((~ok).any(-1), jnp.argmax(~ok, -1), COUNT - 1),
    "the first accepted": lambda ok: jnp.where((~ok).any(-1), jnp.argmax(ok, -1), COUNT),
    "the last": lambda ok: jnp.where((~ok).any(-1), COUNT - 1 - jnp.argmax(~ok[:, ::-1], -1), COUNT),
    "one of them": lambda ok: jnp.where(ok.any(-1), COUNT, jnp.argmin(ok, -1)),
    "sum": lambda ok: jnp.sum(ok.astype(jnp.int32), -1),
    "greatest place": lambda ok: jnp.max(jnp.where(ok, -1, PLACES), -1),
    "least of none": lambda ok: jnp.min(jnp.where(ok, COUNT - 1, PLACES), -1),
}


def verdict(name: str, reference: Spelling, local: Spelling) -> Verdict:
    placed = Placed(MESH, (P("x"),), P("x"), [jax.ShapeDtypeStruct((4, COUNT), name)])
    pair = placed.pair(lambda x: reference(OF[name](x)), lambda x: local(OF[name](x)))
    return hlo_verify.verify(*pair, refute=False).verdict


@pytest.mark.parametrize("name", [name for name in SAME if name != "best"])
@pytest.mark.parametrize("dtype", OF)
def test_the_first_place_in_another_spelling(dtype: str, name: str) -> None:
    assert verdict(dtype, SAME[name], SAME["best"]) is Verdict.PROVED


@pytest.mark.parametrize("name", OTHER)
def test_another_place_is_not(name: str) -> None:
    ok = np.array([[a, b, c] for a in (False, True) for b in (False, True) for c in (False, True)])
    expected = [SAME[each](jnp.asarray(ok)).tolist() for each in SAME]
    assert all(each == expected[0] for each in expected)
    assert OTHER[name](jnp.asarray(ok)).tolist() != expected[0]
    for dtype in OF:
        assert verdict(dtype, SAME["best"], OTHER[name]) is not Verdict.PROVED


@pytest.mark.parametrize("extremum", ["max", "min"])
@pytest.mark.parametrize("factor", [2, -2])
def test_the_sign_of_an_extremum_is_of_all_or_of_one(extremum: str, factor: int) -> None:
    """`5 - 2*max x > 0` where `5 - 2*x[v] > 0` for each v, `5 + 2*max x > 0` for one."""
    with Session().on() as session:
        x, v = tensor("argument", "x", "f32", (COUNT,)), bound(COUNT)

        def sign(p: Poly) -> Poly:
            return apply(POSITIVE, (algebra.add(algebra.scale(p, factor), number(5)),))

        whole = sign(extrema.reduce_extremum(extremum, [v], at(x, v)))
        each = [sign(algebra.read(x, [expr.constant(n)])) for n in range(COUNT)]
        none = reduce(algebra.expanded, [algebra.subtract(ONE, p) for p in each])
        found = {True: reduce(algebra.expanded, each), False: algebra.subtract(ONE, none)}
        of_all = (extremum == "min") is (factor > 0)
        for is_all, p in found.items():
            assert same_written_out(whole, p, ONE, session, Steps(1000)) is (is_all is of_all)
