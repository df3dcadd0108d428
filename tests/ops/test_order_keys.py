"""What elements are ordered by: in numbers, and in programs that put the same in order in another spelling."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax, nn
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.evaluate.balls import precision
from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.memory import Memory
from hlo_verify.ops.elements import replaced
from hlo_verify.ops.order_keys import key_of
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import ABS, EXPONENTIAL, INVERSE, LOG, SQRT, real
from hlo_verify.terms.laws import apply
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ONE, Poly, number, tensor
from tests.support.law_meanings import Terms, agree
from tests.support.lowering import Placed, floats

# In numbers

VALUES = (Fraction(-1, 2), Fraction(0), Fraction(1, 2))
"""Small ones, so that powers of powers are told apart in so many bits."""

BITS = 2000


class Drawn:
    """A random term of the elements x(v) and y(v), and of a and b, which are the same for all."""

    def __init__(self, seed: int) -> None:
        self.random, self.v = random.Random(seed), expr.fresh("v", 7)
        self.x, self.y = (_element(name, (self.v,)) for name in "xy")
        self.same = [_element(name, ()) for name in "ab"]
        self.term = self.random.choice([self.x, algebra.subtract(self.y, self.x)])
        for _ in range(self.random.randint(1, 5)):
            self.term = self._wrapped(self.term)

    def _wrapped(self, p: Poly) -> Poly:
        a, c = self.random.choice(self.same), self.random.choice((-2, -1, 2))
        exponential = apply(EXPONENTIAL, (p,))
        more = algebra.add(exponential, ONE)
        ways: list[Callable[[], Poly]] = [
            lambda: algebra.add(p, a),
            lambda: algebra.scale(p, c),
            lambda: algebra.multiply(p, a),
            lambda: algebra.multiply(p, apply(EXPONENTIAL, (a,))),
            lambda: algebra.multiply(p, algebra.scale(apply(INVERSE, (algebra.add(ONE, apply(ABS, (a,))),)), c)),
            lambda: exponential,
            lambda: apply(INVERSE, (more,)),
            lambda: algebra.multiply(exponential, apply(INVERSE, (more,))),
            lambda: algebra.multiply(exponential, apply(INVERSE, (algebra.add(more, self._of(self.y)),))),
            lambda: apply(LOG, (more,)),
            lambda: apply(SQRT, (more,)),
            lambda: apply(real(self.random.choice(("tanh", "atan", "erf", "abs", "cosine"))), (p,)),
            lambda: algebra.power(p, self.random.choice((2, 3))),
            lambda: algebra.add(p, self.random.choice((self.x, self._of(self.y)))),
            lambda: algebra.multiply(p, self._of(self.x)),
        ]
        return self.random.choice(ways)()

    @staticmethod
    def _of(p: Poly) -> Poly:
        return apply(EXPONENTIAL, (p,))

    def at(self, p: Poly, x: Fraction, y: Fraction) -> Any:
        """The value for one element."""
        given = {self.x: x, self.y: y, self.same[0]: Fraction(-3, 4), self.same[1]: Fraction(1, 3)}
        there = replaced(p, {atom: number(n) for q, n in given.items() if (atom := q.atom) is not None})
        return Terms({}, {}).poly(there)


def _element(name: str, places: tuple[Var, ...]) -> Poly:
    source = tensor("argument", name, "f32", tuple(v.size for v in places))
    return algebra.read(source, tuple(map(expr.of_var, places)))


def _order(a: Any, b: Any) -> int:
    return 0 if a.overlaps(b) else 1 if a > b else -1


@pytest.mark.drawn(40)
@pytest.mark.parametrize("seed", range(400))
def test_elements_are_in_the_order_of_their_keys(seed: int) -> None:
    with Memory().on(), precision(BITS):
        drawn = Drawn(seed)
        key = key_of(drawn.term, [drawn.v])
        again = key.again(key.term)
        elements = list(product(VALUES, VALUES[::2]))
        found = [drawn.at(key.upwards, *each) for each in elements]
        wanted = [drawn.at(drawn.term, *each) for each in elements]
        for each, value in zip(elements, wanted, strict=True):
            assert agree(drawn.at(again, *each), value), drawn.term
        pairs = list(product(range(len(elements)), repeat=2))
        assert all(_order(found[m], found[n]) == _order(wanted[m], wanted[n]) for m, n in pairs), (drawn.term, key)


def test_squares_are_multiplied_out_where_that_leaves_less() -> None:
    """`sum k. (a(k) - x(v, k))**2` is in the opposite order of `sum k. 2*a(k)*x(v, k) - x(v, k)**2`."""
    with Memory().on():
        v, k = expr.fresh("v", 5), expr.fresh("k", 3)
        x, a = _element("x", (v, k)), _element("a", (k,))
        distance = algebra.subtract(a, x)
        key = key_of(reduce_sum([k], algebra.power(distance, 2)), [v])
        twice = algebra.subtract(algebra.scale(algebra.multiply(a, x), 2), algebra.power(x, 2))
        assert key.upwards is algebra.scale(reduce_sum([k], twice), -1)


def test_what_may_be_no_number_stays() -> None:
    """Where `log(a)` is none, so are all elements."""
    with Memory().on():
        v = expr.fresh("v", 5)
        x, a = _element("x", (v,)), _element("a", ())
        for p in (algebra.add(x, apply(LOG, (a,))), apply(LOG, (x,)), algebra.multiply(x, apply(INVERSE, (a,)))):
            assert key_of(p, [v]).term is p


def test_what_may_be_no_number_is_in_the_order_that_it_has_without_numbers_beside_it() -> None:
    """Gumbel's noise, `-log(-log(u))`, is none where u is not between 0 and 1."""
    with Memory().on():
        v = expr.fresh("v", 5)
        u, x, a, b = _element("u", (v,)), _element("x", (v,)), _element("a", ()), _element("b", ())
        noisy = algebra.subtract(x, apply(LOG, (algebra.scale(apply(LOG, (u,)), -1),)))
        key = key_of(algebra.scale(algebra.add(noisy, a), -3), [v])
        assert key.term is noisy and not key.ascending
        assert key.again(key.term) is algebra.scale(algebra.add(noisy, a), -3)
        kept = algebra.add(noisy, apply(LOG, (b,)))
        assert key_of(algebra.add(kept, a), [v]).term is algebra.add(kept, a)


def test_what_is_the_same_for_all_is_no_key() -> None:
    with Memory().on():
        v, a = expr.fresh("v", 5), _element("a", ())
        assert key_of(apply(EXPONENTIAL, (a,)), [v]).term is apply(EXPONENTIAL, (a,))
        assert key_of(a, [v]).term is a


# In programs

MESH = AbstractMesh((4,), ("d",))
ROWS, COLUMNS, EVERYWHERE = P("d"), P(None, "d"), P()
Body = Callable[..., Any]


def verdict(reference: Body, local: Body, shapes: list[tuple[int, ...]], given: Any, wanted: Any) -> Verdict:
    return hlo_verify.verify(*Placed(MESH, given, wanted, floats(*shapes)).pair(reference, local), refute=False).verdict


def best(p: jax.Array) -> jax.Array:
    return jnp.argmax(p, -1)


def distances(x: jax.Array, e: jax.Array) -> jax.Array:
    return ((x[:, None] - e) ** 2).sum(-1)


SPELLINGS: dict[str, tuple[Body, Body, list[Body]]] = {
    "argmax of probabilities": (lambda x: best(nn.softmax(x)), best, [lambda x: best(-x), lambda x: best(x * x)]),
    "argmax at a temperature": (
        lambda x: best(nn.log_softmax(x / 0.7)),
        best,
        [lambda x: best(x / -0.7), lambda x: best(jnp.abs(x))],
    ),
    "argmax of gates": (lambda x: best(nn.sigmoid(x)), best, [lambda x: best(nn.silu(x))]),
    "argmax with Gumbel's noise": (
        lambda x: best(nn.log_softmax(x) - jnp.log(-jnp.log(x * x))),
        lambda x: best(x - jnp.log(-jnp.log(x * x))),
        [lambda x: best(x + jnp.log(-jnp.log(x * x)))],
    ),
    "argmin of losses": (lambda x: jnp.argmin(-nn.log_softmax(x), -1), best, [lambda x: jnp.argmin(x, -1)]),
    "argmax of a multiple that may be negative": (lambda x: best(x * x[:, :1]), lambda x: best(x * x[:, :1]), [best]),
    "argmax of what differs by place": (lambda x: best(x + jnp.arange(6.0)), lambda x: best(x + jnp.arange(6)), [best]),
    "the last of equal ones": (lambda x: best(jnp.exp(x)), best, [lambda x: 5 - best(x[:, ::-1])]),
    "the best two of probabilities": (
        lambda x: lax.top_k(nn.softmax(x), 2)[1],
        lambda x: lax.top_k(x, 2)[1],
        [lambda x: lax.top_k(-x, 2)[1], lambda x: lax.top_k(x, 2)[1][:, ::-1]],
    ),
    "the best two, and how good they are": (
        lambda x: lax.top_k(nn.sigmoid(x), 2)[0],
        lambda x: nn.sigmoid(lax.top_k(x, 2)[0]),
        [lambda x: nn.sigmoid(-lax.top_k(-x, 2)[0]), lambda x: lax.top_k(x, 2)[0]],
    ),
    "gates of the best two": (
        lambda x: (lambda v: v / v.sum(-1, keepdims=True))(lax.top_k(nn.softmax(x), 2)[0]),
        lambda x: nn.softmax(lax.top_k(x, 2)[0]),
        [lambda x: nn.softmax(lax.top_k(x, 3)[0])[:, :2], lambda x: lax.top_k(nn.softmax(x), 2)[0]],
    ),
    "a sort of multiples": (
        lambda x: jnp.sort(2 * x + 1),
        lambda x: 2 * jnp.sort(x) + 1,
        [lambda x: 2 * jnp.sort(x), lambda x: 1 - 2 * jnp.sort(x)],
    ),
    "an order of powers": (
        lambda x: jnp.argsort(jnp.exp(-x)),
        lambda x: jnp.argsort(-x),
        [jnp.argsort, lambda x: jnp.argsort(x)[:, ::-1]],
    ),
    "a median": (
        lambda x: jnp.sort(jnp.exp(x))[:, 2],
        lambda x: jnp.exp(jnp.sort(x)[:, 2]),
        [lambda x: jnp.exp(jnp.sort(x)[:, 3])],
    ),
    "what is read at the best": (
        lambda x: jnp.take_along_axis(nn.softmax(x), best(x)[:, None], -1)[:, 0],
        lambda x: nn.softmax(x).max(-1),
        [lambda x: nn.softmax(x).min(-1), lambda x: nn.sigmoid(x).max(-1)],
    ),
    "what is read at the best two": (
        lambda x: jnp.take_along_axis(nn.softmax(x), lax.top_k(x, 2)[1], -1),
        lambda x: lax.top_k(nn.softmax(x), 2)[0],
        [lambda x: lax.top_k(nn.softmax(x), 2)[0][:, ::-1], lambda x: lax.top_k(nn.sigmoid(x), 2)[0]],
    ),
}


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", SPELLINGS)
def test_the_same_order_in_another_spelling(name: str) -> None:
    reference, right, wrong = SPELLINGS[name]
    assert verdict(reference, right, [(8, 6)], ROWS, ROWS) is Verdict.PROVED
    for other in wrong:
        assert verdict(reference, other, [(8, 6)], ROWS, ROWS) is not Verdict.PROVED


CODES: dict[str, tuple[Body, bool]] = {
    "multiplied out": (lambda x, e: jnp.argmin((e * e).sum(-1) - 2 * x @ e.T, -1), True),
    "roots": (lambda x, e: jnp.argmin(jnp.sqrt(distances(x, e)), -1), True),
    "products": (lambda x, e: jnp.argmax(x @ e.T - 0.5 * (e * e).sum(-1), -1), True),
    "another sign": (lambda x, e: jnp.argmin((e * e).sum(-1) + 2 * x @ e.T, -1), False),
    "of directions": (lambda x, e: jnp.argmax(x @ e.T, -1), False),
    "less of the squares": (lambda x, e: jnp.argmax(x @ e.T - (e * e).sum(-1), -1), False),
    "the farthest": (lambda x, e: jnp.argmax(distances(x, e), -1), False),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", CODES)
def test_the_nearest_code(name: str) -> None:
    local, is_right = CODES[name]
    found = verdict(lambda x, e: jnp.argmin(distances(x, e), -1), local, [(8, 3), (5, 3)], (ROWS, P()), ROWS)
    assert (found is Verdict.PROVED) is is_right


def _greedy(h: jax.Array, w: jax.Array, change: str = "") -> jax.Array:
    """The best of a vocabulary that is split, by probabilities within each device and across them."""
    z = h @ w
    size, total = z.shape[1], jnp.exp(z).sum(-1, keepdims=True)
    p = jnp.exp(z) / (total if change == "its own total" else lax.psum(total, "d"))
    value, index = p.max(-1), best(-p if change == "the worst of each" else p)
    index += (1 if change == "another stride" else size) * lax.axis_index("d")
    which = best(lax.all_gather(-value if change == "the worst device" else value, "d", axis=1))
    return jnp.take_along_axis(lax.all_gather(index, "d", axis=1), which[:, None], 1)[:, 0]


@pytest.mark.parametrize("change", ["", "its own total", "the worst of each", "another stride", "the worst device"])
def test_the_best_of_a_split_vocabulary(change: str) -> None:
    found = verdict(
        lambda h, w: best(nn.softmax(h @ w)),
        lambda h, w: _greedy(h, w, change),
        [(5, 3), (3, 8)],
        (EVERYWHERE, COLUMNS),
        EVERYWHERE,
    )
    assert (found is Verdict.PROVED) is (change == "")


def _least(distances: jax.Array, places: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The least of each row and its place, the first one of those that are equal."""

    def less(a: tuple[jax.Array, jax.Array], b: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        first = (a[0] < b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
        return jnp.where(first, a[0], b[0]), jnp.where(first, a[1], b[1])

    return lax.reduce((distances, places), (jnp.float32(jnp.inf), jnp.int32(0)), less, (1,))


def _from_codes(x: jax.Array, e: jax.Array) -> jax.Array:
    """With so much in it that is the same for all codes that the least of a part is given a name."""
    same = sum(jnp.sin(n * x).sum(-1, keepdims=True) for n in range(1, 9))
    return (x * x).sum(-1, keepdims=True) - 2 * x @ e.T + (e * e).sum(-1) + same


def _nearest_of_parts(x: jax.Array, e: jax.Array, change: str) -> jax.Array:
    """As XLA has the least of a dimension that is split: of the least of each part."""
    d = _from_codes(-x if change == "another sign" else x, e)
    stride = d.shape[1] - (change == "another stride")
    value, place = _least(d, lax.broadcasted_iota(jnp.int32, d.shape, 1) + stride * lax.axis_index("d"))
    value = value - (place % 2 if change == "some less" else 0)
    return _least(*(lax.all_gather(each, "d", axis=1) for each in (value, place)))[1]


@pytest.mark.parametrize("change", ["", "another sign", "another stride", "some less"])
def test_the_nearest_of_codes_that_are_split(change: str) -> None:
    found = verdict(
        lambda x, e: jnp.argmin(_from_codes(x, e), -1),
        lambda x, e: _nearest_of_parts(x, e, change),
        [(5, 3), (8, 3)],
        (EVERYWHERE, ROWS),
        EVERYWHERE,
    )
    assert (found is Verdict.PROVED) is (change == "")
