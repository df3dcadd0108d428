"""Windows and halos, element by element along what is cut: sums over channels stay, and numbers are what they were.

Two convolutions, one after the other, as a whole and in parts with halos; and what is written out of random windows.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.equality.by_element import Cut, Writing, same_by_element
from hlo_verify.equality.summands import SpentError, Steps
from hlo_verify.index import expr
from hlo_verify.session import Session
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.definitions import named
from hlo_verify.terms.functions import LOG
from hlo_verify.terms.laws import apply
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Poly
from tests.support.expressions import Array
from tests.support.structural_laws import Case, at, bound

DEVICES = 2
MESH = AbstractMesh((DEVICES,), ("i",))


# Terms


def window(case: Case, size: int) -> tuple[Poly, Array]:
    """A window over an array with channels, at i and j: padded, with two layers in one another, a part with a name."""
    (x, xs), (w, ws), v, c = case.make(6, 2), case.make(size, 2, 3), bound(size), bound(2)
    low = case.random.randrange(size)
    place = expr.shift(expr.add(case.i, expr.of_var(v)), -low)
    held = guards.interval(place, 0, 5)
    term = reduce_sum([v, c], algebra.multiply(held, algebra.multiply(at(w, v, c, case.j), at(x, place, c))))
    inside = [
        [sum(float(ws[k, :, j] @ xs[i + k - low]) for k in range(size) if 0 <= i + k - low < 6) for j in range(3)]
        for i in range(6)
    ]
    limit = case.random.randrange(6)
    choice = guards.interval(case.i, None, limit)
    (y, ys) = case.make(6, 3)
    whole = algebra.add(algebra.multiply(choice, term), algebra.multiply(at(y, case.i, case.j), named_twice(term)))
    return whole, case.each(lambda i, j: (i <= limit) * inside[i][j] + ys[i, j] * (2 * inside[i][j] + 1))


def named_twice(p: Poly) -> Poly:
    return named(algebra.add(algebra.scale(p, 2), algebra.of_index(expr.constant(1))))


@pytest.mark.parametrize("seed", range(12))
def test_what_is_written_out_has_the_same_value(seed: int) -> None:
    with Session().on():
        case = Case(seed)
        p, wanted = window(case, case.random.choice((1, 2, 3)))
        assert np.allclose(case.value(p).astype(float), wanted.astype(float))
        cut = Cut.of([p])
        writing = Writing(cut, Steps(10_000))
        assert case.space.variables[0] in cut.variables(p)
        for i in range(6):
            there = writing.of(algebra.substitute(p, {case.space.variables[0]: expr.constant(i)}))
            assert np.allclose(case.value(there).astype(float)[0], wanted.astype(float)[i])


def test_channels_are_not_cut() -> None:
    with Session().on():
        case = Case(1)
        p, _ = window(case, 3)
        assert {v.size for v in Cut.of([p]).variables(p)} == {6}


def test_terms_of_other_windows_differ() -> None:
    with Session().on() as session:
        case, terms = Case(0), []
        (x, _), (w, _) = case.make(6), case.make(3)
        for low in (0, 1):
            v = bound(3)
            place = expr.shift(expr.add(case.i, expr.of_var(v)), -low)
            held = guards.interval(place, 0, 5)
            terms.append(reduce_sum([v], algebra.multiply(held, algebra.multiply(at(w, v), at(x, place)))))
        assert not same_by_element([(terms[0], terms[1])], session, Steps(10_000))
        assert same_by_element([(terms[0], terms[0])], session, Steps(10_000))


def test_it_ends_with_its_steps_and_says_so() -> None:
    with Session().on() as session:
        p, _ = window(Case(3), 3)
        with pytest.raises(SpentError):
            writing = Writing(Cut.of([p]), Steps(2))
            writing.are_same(p, algebra.scale(p, 2))
        assert not same_by_element([(p, algebra.scale(p, 2))], session, Steps(2))
        assert "written_out_elements" in session.spent().limits


def test_what_may_be_no_number_stays_so() -> None:
    """`0 * log(x)` is none where x is negative: written out, it is not dropped."""
    with Session().on() as session:
        case = Case(0)
        (x, _), v = case.make(6), bound(2)
        place = expr.add(case.i, expr.of_var(v))
        term = reduce_sum([v], algebra.multiply(guards.interval(place, 0, 5), apply(LOG, (at(x, place),))))
        gone = algebra.add(term, algebra.scale(term, -1))
        assert not same_by_element([(gone, algebra.scale(term, 0))], session, Steps(10_000))


# Programs


def convolved(x: jax.Array, w: jax.Array, padding: tuple[int, int]) -> jax.Array:
    return lax.conv_general_dilated(x, w, (1,), [padding], dimension_numbers=("NHC", "HIO", "NHC"))


def with_halo(x: jax.Array, swapped: bool) -> jax.Array:
    forwards = [(k, k + 1) for k in range(DEVICES - 1)]
    before = lax.ppermute(x[:, -1:], "i", forwards)
    after = lax.ppermute(x[:, :1], "i", [(n, k) for k, n in forwards])
    return jnp.concatenate([after, x, before] if swapped else [before, x, after], 1)


def loss(layers: list[jax.Array], x: jax.Array, wrong: str = "", split: bool = False) -> jax.Array:
    for n, w in enumerate(layers):
        x = convolved(with_halo(x, wrong == "halo" and n == 1), w, (0, 0)) if split else convolved(x, w, (1, 1))
        x = jnp.tanh(x)
    total = jnp.sum(x**2)
    return lax.psum(total, "i") if split else total


def verdict(wrong: str) -> Verdict:
    shapes = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((1, 6, 2), (3, 2, 2), (3, 2, 2))]

    def whole(x: jax.Array, *layers: jax.Array) -> jax.Array:
        return loss(list(layers), x)

    def local(x: jax.Array, *layers: jax.Array) -> jax.Array:
        return loss(list(layers), x, wrong, split=True)

    places = (P(None, "i"), P(), P())
    parts = jax.shard_map(local, mesh=MESH, in_specs=places, out_specs=P(), check_vma=False)
    pair = (jax.jit(jax.grad(each)).trace(*shapes) for each in (whole, parts))
    return hlo_verify.verify(*pair, refute=False).verdict


@pytest.mark.drawn(1)
@pytest.mark.parametrize("wrong", ["", "halo"])
def test_gradients_of_two_convolutions_with_halos(wrong: str) -> None:
    assert (verdict(wrong) is Verdict.PROVED) is (wrong == "")


def smoothed(x: jax.Array, before: jax.Array, after: jax.Array, sign: int) -> jax.Array:
    padded = jnp.concatenate([before, x, after])
    return 0.25 * padded[:-2] + 0.5 * x + sign * 0.25 * padded[2:]


def stencil(x: jax.Array, y: jax.Array, steps: int, split: bool = False, sign: int = 1) -> jax.Array:
    there = list(pairwise([*range(DEVICES), 0]))
    for _ in range(steps):
        if split:
            before = lax.ppermute(x[-1:], "i", there)
            x = smoothed(x, before, lax.ppermute(x[:1], "i", [(n, k) for k, n in there]), sign)
        else:
            x = smoothed(x, x[-1:], x[:1], 1)
    total = jnp.sum((x - y) ** 2)
    return lax.psum(total, "i") if split else total


@pytest.mark.parametrize("sign", [1, -1])
def test_gradients_of_three_steps_of_a_periodic_stencil(sign: int) -> None:
    shapes = [jax.ShapeDtypeStruct((12,), jnp.float32)] * 2
    local = partial(stencil, steps=3, split=True, sign=sign)
    parts = jax.shard_map(local, mesh=MESH, in_specs=(P("i"), P("i")), out_specs=P(), check_vma=False)
    pair = (jax.jit(jax.grad(each)).trace(*shapes) for each in (partial(stencil, steps=3), parts))
    found = hlo_verify.verify(*pair, refute=False).verdict
    assert (found is Verdict.PROVED) is (sign == 1)
