"""How much sums move with roundings where they select: averages of weights that a skipped step leaves as they are."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.passes.chain.moving_sums import Addend, growth
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.term import Atom, tensor
from tests.passes.chain.test_amplified import KIND, Program, both, judged, three_thirds
from tests.support.lowering import Placed

MESH = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))
Step = Callable[..., jax.Array]


def average(w: jax.Array, e: jax.Array, g: jax.Array, ok: jax.Array) -> jax.Array:
    return jnp.where(ok, 0.99 * e + 0.01 * (w - 0.1 * g), e)


def nudged(e: jax.Array, wanted: jax.Array, rate: float | jax.Array = 0.01) -> jax.Array:
    return e + rate * (wanted - e)


STEPS: dict[str, tuple[Step, bool]] = {
    "a step towards the weights": (lambda w, e, g, ok: jnp.where(ok, nudged(e, w - 0.1 * g), e), True),
    "where it is not skipped": (lambda w, e, g, ok: jnp.where(~ok, e, nudged(e, w - 0.1 * g)), True),
    "by a rate that is 0": (lambda w, e, g, ok: nudged(e, w - 0.1 * g, jnp.where(ok, 0.01, 0)), True),
    "another rate": (lambda w, e, g, ok: jnp.where(ok, nudged(e, w - 0.1 * g, 0.0101), e), False),
    "weights as they were": (lambda w, e, g, ok: jnp.where(ok, nudged(e, w), e), False),
    "none where it is skipped": (lambda w, e, g, ok: jnp.where(ok, nudged(e, w - 0.1 * g), 0), False),
    "the other way round": (lambda w, e, g, ok: jnp.where(ok, e, nudged(e, w - 0.1 * g)), False),
}


@pytest.mark.parametrize("name", STEPS)
def test_averages_that_a_step_may_skip(name: str) -> None:
    step, is_same = STEPS[name]
    shapes = [*[jax.ShapeDtypeStruct((8,), "float32")] * 3, jax.ShapeDtypeStruct((), "bool")]
    placed = Placed(MESH, (P("x"), P("x"), P("x"), P()), P("x"), shapes)
    assert (hlo_verify.verify(*placed.pair(average, step), refute=False).verdict is Verdict.PROVED) is is_same


def selected(p: Program, value: str, other: str, direction: str = "GT") -> str:
    """y > 0 ? value : other"""
    test = p.add(f"compare {direction}, %y, {p.constant(0.0)}, FLOAT : ({KIND}, {KIND}) -> tensor<4xi1>")
    return p.add(f"select {test}, {value}, {other} : tensor<4xi1>, {KIND}")


def cancels_where_it_is_selected(p: Program, c: str) -> None:
    """(y > 0 ? x * c * 3 : 0) - x: there is -x beside it elsewhere, and nothing where it is."""
    p.apply("subtract", selected(p, three_thirds(p, c), p.constant(0.0)), "%x")


def is_kept_elsewhere(p: Program, c: str) -> None:
    """y > 0 ? x * c * 2.997 : x: what is added to an x is a thousandth of it, and there is none to be added to."""
    selected(p, p.apply("multiply", p.apply("multiply", "%x", c), p.constant(2.997)), "%x")


def has_one_sign(p: Program, c: str) -> None:
    """(y > 0 ? c : 0) - (y < 0 ? c : 0)"""
    p.apply("subtract", selected(p, c, p.constant(0.0)), selected(p, c, p.constant(0.0), "LT"))


def is_not_there_where_another_is(p: Program, c: str) -> None:
    """y > 0 ? x : tanh(x * c): there is no tanh(x * c) less tanh(x * c) where y is positive."""
    selected(p, "%x", p.apply("tanh", p.apply("multiply", "%x", c)))


def cancels_in_a_function_that_is_selected(p: Program, c: str) -> None:
    """(y > 0 ? x : tanh(x * c * 3)) - (y > 0 ? 0 : tanh(x))"""
    one = selected(p, "%x", p.apply("tanh", three_thirds(p, c)))
    p.apply("subtract", one, selected(p, p.constant(0.0), p.apply("tanh", "%x")))


COVERED = [is_kept_elsewhere, has_one_sign, is_not_there_where_another_is]


@pytest.mark.parametrize("build", [*COVERED, cancels_where_it_is_selected, cancels_in_a_function_that_is_selected])
def test_a_rounding_is_covered_where_it_stays_one_in_every_case(build: Callable[[Program, str], None]) -> None:
    equal, reason = judged(*both(build))
    assert equal
    assert ("all that is left is that rounding" in reason) is (build not in COVERED)
    assert not reason or build not in COVERED


def masked(scores: jax.Array) -> jax.Array:
    return jnp.where(np.tri(4, dtype=bool), scores, -jnp.inf)


SCALED: dict[str, tuple[Step, bool]] = {
    "multiplied": (lambda s: jax.nn.softmax(masked(s * 2**-0.5)), True),
    "masked first": (lambda s: jax.nn.softmax(masked(s) * 2**-0.5), True),
    "by another number": (lambda s: jax.nn.softmax(masked(s * 0.7071)), False),
    "over columns": (lambda s: jax.nn.softmax(masked(s * 2**-0.5), axis=1), False),
}


@pytest.mark.parametrize("name", SCALED)
def test_masked_scores_that_the_rounding_of_a_root_scales(name: str) -> None:
    scaled, is_same = SCALED[name]
    placed = Placed(MESH, (P("x"),), P("x"), [jax.ShapeDtypeStruct((8, 4, 4), "float32")])
    pair = placed.pair(lambda s: jax.nn.softmax(masked(s / np.sqrt(2))), scaled)
    assert (hlo_verify.verify(*pair, refute=False).verdict is Verdict.PROVED) is is_same


@pytest.mark.parametrize("seed", range(20))
def test_it_is_looked_at_in_every_case(seed: int) -> None:
    """By trying all values of the conditions, of which none hangs on another."""
    choose = random.Random(seed)
    with Session().on():
        flags, numbers = (_atoms(dtype) for dtype in ("i1", "f32"))
        addends = [_addend(choose, flags, numbers) for _ in range(choose.randint(1, 6))]
        wanted: list[Fraction | None] = []
        for held in product((True, False), repeat=len(flags)):
            true = {atom for atom, holds in zip(flags, held, strict=True) if holds}
            here = [a for a in addends if all(atom in true for atom, _ in a.conditions)]
            wanted += [_of_one([a for a in here if a.product == ((x, 1),)]) for x in numbers]
        found = growth(addends)
    assert found == (None if None in wanted else max(one for one in wanted if one is not None))


def _atoms(dtype: str) -> list[Atom]:
    found = [algebra.read(tensor("argument", f"{dtype}{n}", dtype, ()), ()).atom for n in range(2)]
    return [atom for atom in found if atom is not None]


def _addend(choose: random.Random, flags: Sequence[Atom], numbers: Sequence[Atom]) -> Addend:
    conditions = tuple((atom, 1) for atom in flags if choose.random() < 0.5)
    size, moves = Fraction(choose.choice((-2, -1, 1, 2))), Fraction(choose.choice((0, 1, 3)))
    product = ((choose.choice(numbers), 1),)
    rounded = ((choose.choice(numbers), int(moves) + 2),), product
    return Addend(conditions, product, rounded, size, choose.random() < 0.9, moves)


def _of_one(each: Sequence[Addend]) -> Fraction | None:
    """Multiples of one number are added up before anything is asked of them."""
    added = [
        replace(one, size=size)
        for k, one in enumerate(each)
        if one.rounded not in [other.rounded for other in each[:k]]
        and (size := sum((a.size for a in each if a.rounded == one.rounded), Fraction(0)))
    ]
    moved = sum((abs(a.size) * a.roundings for a in added), Fraction(0))
    total = sum((a.size for a in added), Fraction(0))
    if moved and (not total or (len(added) > 1 and not all(a.is_known for a in added))):
        return None
    return moved / abs(total) if moved else Fraction(0)
