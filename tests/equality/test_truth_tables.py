"""Functions of what truth values decide, by their cases."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from itertools import product

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.equality import truth_tables
from hlo_verify.index import expr
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.term import ONE, ZERO, Poly, number, tensor
from tests.support.lowering import Placed

COUNT = 3


def truths(n: int = COUNT) -> list[Poly]:
    return [algebra.read(tensor("argument", f"p{k}", "i1", ()), []) for k in range(n)]


def value(p: Poly, held: dict[Poly, int]) -> Fraction:
    atoms = {each.atom: n for each, n in held.items()}
    return sum((Fraction(c) * all(atoms[a] for a, _ in mono) for mono, c in p.items), Fraction(0))


def drawn(letters: list[Poly], rng: random.Random, most: int = 4) -> Poly:
    """A sum of products of truth values with small coefficients."""
    parts = [
        algebra.scale(
            reduce(algebra.multiply, rng.sample(letters, rng.randint(0, len(letters))), ONE), rng.randint(-2, 3)
        )
        for _ in range(rng.randint(1, most))
    ]
    return algebra.add(*parts)


@pytest.mark.parametrize("seed", range(20))
def test_a_guard_holds_in_the_same_cases(seed: int) -> None:
    rng = random.Random(seed)
    with Session().on():
        letters = truths()
        p, n = drawn(letters, rng), rng.randint(-2, 2)
        form = expr.shift(expr.scale(expr.of_atom(expr.opaque("value", (), (), -30, 30, p)), rng.choice((1, -1, 2))), n)
        lo, hi = rng.choice([(None, 1), (0, None), (1, 3), (2, 2)])
        table = truth_tables.of_guard(form, lo, hi)
        assert (table is None) is (p.constant is not None)
        if table is not None:
            factor, found = form.items[0][1], table.written()
            for held in product((0, 1), repeat=COUNT):
                case = dict(zip(letters, held, strict=True))
                whole = factor * value(p, case) + n
                assert value(found, case) == ((lo is None or lo <= whole) and (hi is None or whole <= hi))


@pytest.mark.parametrize("seed", range(10))
def test_an_extremum_is_one_in_each_case(seed: int) -> None:
    rng = random.Random(seed)
    with Session().on():
        letters = truths()
        terms = tuple(drawn(letters, rng) for _ in range(3))
        for is_greatest in (True, False):
            table = truth_tables.of_extremum(terms, is_greatest)
            if table is None:
                assert all(p.constant is not None for p in terms)
                continue
            for held in product((0, 1), repeat=COUNT):
                case = dict(zip(letters, held, strict=True))
                best = (max if is_greatest else min)(value(p, case) for p in terms)
                assert value(table.written(), case) == best


def test_what_else_decides_has_no_table() -> None:
    """Machine values that wrap, numbers, places, and more truth values than are told apart."""
    with Session().on():
        p, q, r = truths()
        total = algebra.add(p, q, r)
        x = algebra.read(tensor("argument", "x", "i32", ()), [])
        many = algebra.add(*truths(20))

        def table(whole: Poly, lo: int = 0, hi: int = 3) -> truth_tables.Table | None:
            return truth_tables.of_guard(expr.of_atom(expr.opaque("value", (), (), lo, hi, whole)), 1, None)

        assert table(total) is not None
        assert table(total, 0, 2) is None
        assert table(algebra.scale(total, Fraction(1, 2))) is None
        assert table(algebra.add(p, x), -100, 100) is None
        assert table(many, 0, 20) is None
        assert truth_tables.of_extremum((p, x), True) is None
        assert truth_tables.of_extremum((number(1), ZERO), True) is None


places = jnp.arange(COUNT)
Spelling = Callable[[jax.Array, jax.Array], jax.Array]
"""Which tokens are kept, of what is accepted and the tokens."""

MASKS: dict[str, Spelling] = {
    "length": lambda ok, _: places < jnp.sum(jnp.cumprod(ok.astype(jnp.int32), -1), -1)[:, None],
    "products": lambda ok, _: jnp.cumprod(ok.astype(jnp.int32), -1) > 0,
    "none before": lambda ok, _: jnp.cumsum((~ok).astype(jnp.int32), -1) == 0,
    "first": lambda ok, _: places < jnp.where((~ok).any(-1), jnp.argmax(~ok, -1), COUNT)[:, None],
    "least": lambda ok, _: places < jnp.min(jnp.where(ok, COUNT, places), -1)[:, None],
}
OTHER: dict[str, Spelling] = {
    "the first too": lambda ok, _: jnp.cumsum((~ok).astype(jnp.int32), -1) <= 1,
    "as many": lambda ok, _: places < jnp.sum(ok.astype(jnp.int32), -1)[:, None],
    "one less": lambda ok, _: jnp.min(jnp.where(ok, COUNT, places), -1)[:, None] > places + 1,
    "the greatest": lambda ok, _: places < jnp.max(jnp.where(ok, COUNT, places), -1)[:, None],
    "each": lambda ok, _: ok,
}


def verdict(reference: Spelling, local: Spelling) -> Verdict:
    placed = Placed(
        AbstractMesh((2,), ("x",)),
        (P("x"), P("x")),
        P("x"),
        [
            jax.ShapeDtypeStruct((2, COUNT), jnp.float32),
            jax.ShapeDtypeStruct((2, COUNT), jnp.int32),
        ],
    )

    def kept(mask: Spelling) -> Callable[..., jax.Array]:
        return lambda u, tokens: jnp.where(mask(u < 0.5, tokens), tokens, -1)

    return hlo_verify.verify(*placed.pair(kept(reference), kept(local)), refute=False).verdict


@pytest.mark.parametrize("name", [name for name in MASKS if name != "length"])
def test_a_mask_of_a_length_in_another_spelling(name: str) -> None:
    assert verdict(MASKS["length"], MASKS[name]) is Verdict.PROVED


@pytest.mark.parametrize("name", OTHER)
def test_another_mask_is_not(name: str) -> None:
    assert verdict(MASKS["length"], OTHER[name]) is not Verdict.PROVED
