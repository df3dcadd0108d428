"""The greatest or the least of places, asked of each of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
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
from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Var
from hlo_verify.session import Session
from hlo_verify.terms import algebra, extrema, guards
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.extreme_places import asked_of_places, range_of_places
from hlo_verify.terms.term import Apply, Guard, Ix, Poly, Read, number, tensor, value_of
from tests.support.lowering import Placed
from tests.support.structural_laws import at, bound

COUNT = 3
Places = Callable[[Poly, Poly], Poly]
CHOSEN: dict[str, Places] = {
    "the first": lambda m, i: algebra.add(algebra.multiply(m, i), algebra.scale(algebra.subtract(number(1), m), COUNT)),
    "the last": lambda m, i: algebra.subtract(algebra.multiply(m, algebra.add(i, number(1))), number(1)),
    "from the end": lambda m, i: algebra.scale(algebra.multiply(m, i), -2),
    "of two": lambda m, i: algebra.add(algebra.multiply(m, i), algebra.scale(algebra.subtract(m, number(1)), 2)),
}
"""What is chosen at a place by whether something holds there."""


def value(p: Poly, held: Mapping[int, int], there: Mapping[Var, int]) -> Fraction:
    """A term, with the truth value of each place, and the values of variables."""
    total = Fraction(0)
    for mono, c in p.items:
        factors = [_atom(atom, held, there) for atom, _ in mono]
        total += Fraction(c) * int(np.prod([1, *factors]))
    return total


def _atom(atom: Any, held: Mapping[int, int], there: Mapping[Var, int]) -> int:
    assert not isinstance(atom, Apply)
    if isinstance(atom, Ix):
        return _index(atom.index, held, there)
    if isinstance(atom, Guard):
        x = _index(atom.form, held, there)
        return int((atom.lo is None or atom.lo <= x) and (atom.hi is None or x <= atom.hi))
    assert isinstance(atom, Read)
    if atom.tensor.kind == "argument":
        return held[_index(atom.indices[0], held, there)]
    own, (body,) = unfold(atom)
    ways = [dict(zip(own, each, strict=True)) for each in product(*(range(v.size) for v in own))]
    found = [value(body, held, {**there, **way}) for way in ways]
    return int({"max": max, "min": min, "term": sum}[atom.tensor.kind](found))


def _index(e: Index, held: Mapping[int, int], there: Mapping[Var, int]) -> int:
    parts = (
        there[part.var] // part.low % part.radix if isinstance(part, Digit) else value(value_of(part), held, there)
        for part, _ in e.items
    )
    return int(e.const + sum(c * part for (_, c), part in zip(e.items, parts, strict=True)))


@pytest.mark.parametrize("factor", [1, -1, 2])
@pytest.mark.parametrize("extremum", ["max", "min"])
@pytest.mark.parametrize("name", CHOSEN)
def test_a_condition_on_the_best_place_is_one_on_each(name: str, extremum: str, factor: int) -> None:
    asked_of = 0
    for lo, hi in product([None, *range(-4, 5, 2)], repeat=2):
        with Session().on():
            m, v, w = tensor("argument", "m", "i1", (COUNT,)), bound(COUNT), bound(2)
            body = CHOSEN[name](at(m, v), algebra.of_index(expr.of_var(v)))
            best = extrema.reduce_extremum(extremum, [v], body)
            assert best.atom is None or range_of_places(best.atom) is not None
            form = expr.add(expr.scale(algebra.as_index(best, -9, 9), factor), expr.of_var(w))
            whole = guards.interval(form, lo, hi)
            if not isinstance(whole.atom, Guard):
                continue
            parts = asked_of_places(whole.atom)
            if parts is None:
                continue
            asked_of += 1
            for each in product((0, 1), repeat=COUNT):
                for there in range(2):
                    case = dict(enumerate(each)), {w: there}
                    assert value(whole, *case) == value(parts, *case), (lo, hi, each, there)
    assert asked_of > 2


Spelling = Callable[[jax.Array], jax.Array]
LENGTH = 8
HERE = jnp.arange(LENGTH)


def first(x: jax.Array) -> jax.Array:
    """Where each element is first."""
    return jnp.min(jnp.where(x[:, None] == x[None], HERE, LENGTH), axis=1)


SAME: dict[str, tuple[Spelling, Spelling]] = {
    "no earlier one": (
        lambda x: first(x) == HERE,
        lambda x: ~((x[:, None] == x[None]) & (HERE[None] < HERE[:, None])).any(1),
    ),
    "none before": (
        lambda x: jnp.min(jnp.where(x > 0, HERE, LENGTH), keepdims=True) >= 3,
        lambda x: ~(x[:3] > 0).any(keepdims=True),
    ),
    "some after": (
        lambda x: jnp.max(jnp.where(x > 0, HERE, -1), keepdims=True) > 4,
        lambda x: (x[5:] > 0).any(keepdims=True),
    ),
    "not at": (
        lambda x: jnp.max(jnp.where(x > 0, HERE, -1), keepdims=True) != LENGTH - 1,
        lambda x: x[-1:] <= 0,
    ),
}
OTHER: dict[str, tuple[Spelling, Spelling]] = {
    "no other one": (
        lambda x: first(x) == HERE,
        lambda x: ~((x[:, None] == x[None]) & (HERE[None] != HERE[:, None])).any(1),
    ),
    "itself too": (
        lambda x: first(x) == HERE,
        lambda x: ~((x[:, None] == x[None]) & (HERE[None] <= HERE[:, None])).any(1),
    ),
    "one more": (SAME["none before"][0], lambda x: ~(x[:4] > 0).any(keepdims=True)),
    "one fewer": (SAME["some after"][0], lambda x: (x[6:] > 0).any(keepdims=True)),
    "some before": (SAME["some after"][0], lambda x: ~(x[:5] > 0).any(keepdims=True)),
    "where it is": (SAME["not at"][0], lambda x: x[-1:] > 0),
    "of none": (
        lambda x: jnp.min(jnp.where(x > 0, HERE, 0), keepdims=True) >= 3,
        lambda x: ~(x[:3] > 0).any(keepdims=True),
    ),
}


def verdict(whole: Spelling, local: Spelling) -> Verdict:
    placed = Placed(AbstractMesh((2,), ("x",)), (P(),), P(), [jax.ShapeDtypeStruct((LENGTH,), jnp.int32)])
    return hlo_verify.verify(*placed.pair(whole, local), refute=False).verdict


@pytest.mark.parametrize("name", SAME)
def test_where_the_first_or_last_one_is_in_another_spelling(name: str) -> None:
    assert verdict(*SAME[name]) is Verdict.PROVED


@pytest.mark.parametrize("name", OTHER)
def test_another_place_is_not(name: str) -> None:
    drawn = np.random.default_rng(0).integers(-1, 2, (64, LENGTH))
    assert any((OTHER[name][0](jnp.asarray(x)) != OTHER[name][1](jnp.asarray(x))).any() for x in drawn)
    assert verdict(*OTHER[name]) is not Verdict.PROVED
