"""The last place so far where something holds, counted along a split dimension: in levels, whatever it is made of."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.equality.summands import Steps
from hlo_verify.equality.written_out import same_written_out
from hlo_verify.index import expr
from hlo_verify.session import Session
from hlo_verify.terms import algebra, extrema, guards
from hlo_verify.terms.functions import MAXIMUM, MINIMUM, wrap
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import ONE, Poly, number, tensor
from tests.support.lowering import Placed
from tests.support.structural_laws import at, bound

COUNT, SPLIT = 8, 2
MESH = AbstractMesh((SPLIT,), ("x",))
PART = COUNT // SPLIT
PLACES = jnp.arange(COUNT)
Local = Callable[[jax.Array], jax.Array]


def last_so_far(x: jax.Array) -> jax.Array:
    return lax.cummax(jnp.where(x > 0, PLACES, 0))


def by_device(
    holds: Callable[[jax.Array], jax.Array] = lambda x: x > 0, shift: int = 0, own: int = 0, size: int = PART
) -> Local:
    """The last place of a device's own, or of those before it."""

    def local(x: jax.Array) -> jax.Array:
        me = lax.axis_index("x")
        so_far = lax.cummax(jnp.where(holds(x), me * size + jnp.arange(PART) + shift, 0))
        ends = lax.all_gather(so_far[-1], "x")
        return jnp.maximum(so_far, jnp.max(jnp.where(jnp.arange(SPLIT) < me + own, ends, 0)))

    return local


def by_mask(x: jax.Array) -> jax.Array:
    """Of all places, those that are not after each."""
    whole = lax.all_gather(x, "x", tiled=True)
    mine = lax.axis_index("x") * PART + jnp.arange(PART)
    return jnp.max(jnp.where((whole > 0) & (mine[:, None] >= PLACES), PLACES, 0), 1)


WRONG: dict[str, Local] = {
    "another condition": by_device(lambda x: x > 1),
    "the next place": by_device(shift=1),
    "the device's own end": by_device(own=1),
    "no device before": by_device(own=-SPLIT),
    "parts that overlap": by_device(size=PART - 1),
}


def verdict(local: Local, dtype: str = "int32") -> Verdict:
    placed = Placed(MESH, (P("x"),), P("x"), [jax.ShapeDtypeStruct((COUNT,), dtype)])
    return hlo_verify.verify(*placed.pair(last_so_far, local), refute=False).verdict


@pytest.mark.parametrize("local", [by_device(), by_mask], ids=["by device", "by mask"])
def test_last_places_so_far(local: Local) -> None:
    assert verdict(local) is Verdict.PROVED


@pytest.mark.parametrize("name", WRONG)
def test_others_are_not(name: str) -> None:
    assert verdict(WRONG[name]) is not Verdict.PROVED


def chosen(source: str, *, low: int = 0, first: bool = False, count: int = 3) -> Poly:
    """The last place where an integer of three is positive, or the first one; a number where none is."""
    v = bound(count)
    x = algebra.as_index(at(tensor("argument", source, "i32", (count,)), v), -(2**31), 2**31 - 1)
    holds = guards.interval(x, 1, None)
    place = algebra.of_index(expr.of_var(v))
    other = algebra.scale(algebra.subtract(ONE, holds), count if first else low)
    p = algebra.add(algebra.multiply(holds, place), other)
    return extrema.reduce_extremum("min" if first else "max", [v], p)


def said(low: int, first: bool, x: tuple[int, ...]) -> int:
    places = [k for k, each in enumerate(x) if each > 0]
    if first:
        return min([*places, len(x)])
    return max([*places, low]) if len(places) < len(x) else len(x) - 1


SEVERAL: dict[str, Callable[[Poly, Poly, Poly], Poly]] = {
    "greatest": lambda a, b, c: apply(MAXIMUM, (a, apply(MAXIMUM, (b, c)))),
    "greatest otherwise": lambda a, b, c: apply(MAXIMUM, (apply(MAXIMUM, (c, a)), b)),
    "least": lambda a, b, c: apply(MINIMUM, (a, apply(MINIMUM, (b, c)))),
    "of both": lambda a, b, c: apply(MAXIMUM, (a, apply(MINIMUM, (b, c)))),
    "of both otherwise": lambda a, b, c: apply(MINIMUM, (apply(MAXIMUM, (a, b)), c)),
    "of two": lambda a, b, c: apply(MAXIMUM, (a, b)),
}
BY_NUMBERS: dict[str, Callable[[int, int, int], int]] = {
    "greatest": lambda a, b, c: max(a, b, c),
    "greatest otherwise": lambda a, b, c: max(a, b, c),
    "least": lambda a, b, c: min(a, b, c),
    "of both": lambda a, b, c: max(a, min(b, c)),
    "of both otherwise": lambda a, b, c: min(max(a, b), c),
    "of two": lambda a, b, c: max(a, b),
}


@pytest.mark.parametrize("one", SEVERAL)
def test_what_is_the_same_is_so_for_numbers(one: str) -> None:
    """Extrema of last and first places and a number, within one another."""
    with Session().on() as session:
        terms = chosen("x"), chosen("y", first=True), number(1)
        for other in SEVERAL:
            if same_written_out(SEVERAL[one](*terms), SEVERAL[other](*terms), ONE, session, Steps(20_000)):
                for x, y in product(product((0, 1), repeat=3), repeat=2):
                    parts = said(0, False, x), said(0, True, y), 1
                    assert BY_NUMBERS[one](*parts) == BY_NUMBERS[other](*parts)


def test_the_same_in_another_order_is_one() -> None:
    with Session().on() as session:
        terms = chosen("x"), chosen("y"), number(1)
        pair = SEVERAL["greatest"](*terms), SEVERAL["greatest otherwise"](*terms)
        assert same_written_out(*pair, ONE, session, Steps(20_000))


@pytest.mark.parametrize(("low", "end", "same"), [(0, 0, True), (-1, -1, True), (-1, 0, False), (0, 1, False)])
def test_a_clamp_that_may_cut_is_kept(low: int, end: int, same: bool) -> None:
    """A clamp of a last place is that place where it lies between the ends for sure."""
    with Session().on() as session:
        whole = chosen("x", low=low)
        e = expr.clamp(expr.of_atom(expr.opaque("value", (), (), -(2**31), 2**31 - 1, whole)), end, 2**31 - 1)
        assert same_written_out(algebra.of_index(e), whole, ONE, session, Steps(20_000)) is same


def test_a_value_that_may_wrap_is_kept() -> None:
    with Session().on() as session:
        large = algebra.scale(chosen("x"), 100)
        assert not same_written_out(apply(wrap("i8"), (large,)), large, ONE, session, Steps(20_000))
        e = expr.of_atom(expr.opaque("value", (), (), -128, 127, large))
        assert not same_written_out(algebra.of_index(e), large, ONE, session, Steps(20_000))


def of_many(pairs: str, order: int = 1, count: int = 12) -> Poly:
    """The last place of twelve where two integers are positive, or one is: too many cases to tell apart."""
    v = bound(count)
    place = expr.of_var(v) if order > 0 else expr.shift(expr.scale(expr.of_var(v), -1), count - 1)
    one, other = (
        guards.interval(algebra.as_index(algebra.read(source, [place]), -(2**31), 2**31 - 1), 1, None)
        for source in MANY
    )
    holds = (
        algebra.multiply(one, other)
        if pairs == "and"
        else algebra.subtract(algebra.add(one, other), algebra.multiply(one, other))
    )
    return extrema.reduce_extremum("max", [v], algebra.multiply(holds, algebra.of_index(place)))


MANY = tuple(tensor("argument", name, "i32", (12,)) for name in "uw")


def test_many_conditions_have_a_name() -> None:
    with Session().on() as session:
        whole = of_many("and")
        for pairs, order in product(("and", "or"), (1, -1)):
            at_end = apply(MAXIMUM, (number(-1), of_many(pairs, order)))
            assert same_written_out(whole, at_end, ONE, session, Steps(200_000)) is (pairs == "and")


def test_numbers_tell_those_apart() -> None:
    draws = [np.random.default_rng(seed).integers(-2, 3, COUNT) for seed in range(30)]
    for local in WRONG.values():
        run = jax.vmap(local, axis_name="x")
        assert any((np.asarray(run(x.reshape(SPLIT, PART))).ravel() != np.asarray(last_so_far(x))).any() for x in draws)
