"""Elements in order: the best of parts' best, sorts of sorted parts, orders and their inverses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.index import expr
from hlo_verify.memory import Memory
from hlo_verify.ops.in_order import in_order, order, values
from hlo_verify.terms import algebra
from tests.support.lowering import Placed
from tests.support.structural_laws import Case, at, bound

MESH = AbstractMesh((4,), ("x",))
COLUMNS, EVERYWHERE = P(None, "x"), P()
ROWS, COUNT, LOCAL = 2, 24, 6
FLOATS = jax.ShapeDtypeStruct((ROWS, COUNT), jnp.float32)
INTEGERS = jax.ShapeDtypeStruct((ROWS, COUNT), jnp.int32)
Body = Callable[..., Any]


def verdict(reference: Body, local: Body, argument: jax.ShapeDtypeStruct = FLOATS) -> Verdict:
    pair = Placed(MESH, COLUMNS, EVERYWHERE, [argument]).pair(reference, local)
    return hlo_verify.verify(*pair, refute=False).verdict


def gathered(x: jax.Array) -> jax.Array:
    return lax.all_gather(x, "x", axis=1, tiled=True)


def best(x: jax.Array, k: int) -> tuple[jax.Array, jax.Array]:
    return tuple(lax.top_k(x, k))


def of_best(x: jax.Array, k: int, handed: int | None = None, stride: int = LOCAL) -> tuple[jax.Array, jax.Array]:
    """The k best, of those that each device hands on."""
    value, index = lax.top_k(x, k if handed is None else handed)
    value, index = gathered(value), gathered(index + stride * lax.axis_index("x"))
    value, which = lax.top_k(value, k)
    return value, jnp.take_along_axis(index, which, axis=1)


def by_sorting(x: jax.Array, k: int) -> jax.Array:
    """Their indices, by an order of the opposites."""
    value, index = lax.top_k(x, k)
    which = jnp.argsort(-gathered(value), axis=1)[:, :k]
    return jnp.take_along_axis(gathered(index + LOCAL * lax.axis_index("x")), which, axis=1)


def beams(x: jax.Array, score: Body) -> tuple[jax.Array, ...]:
    """The three best of two beams' continuations: their values, whose they are, and which."""
    value, index = lax.top_k((score(x)[:, None] + x).reshape(-1), 3)
    return value, index // COUNT, index % COUNT


def beams_by_devices(x: jax.Array, score: Body, stride: int = LOCAL) -> tuple[jax.Array, ...]:
    """Of the best of each beam on each device."""
    value, index = lax.top_k(score(x)[:, None] + x, 3)
    value, index = gathered(value), gathered(index + stride * lax.axis_index("x"))
    value, which = lax.top_k(value.reshape(-1), 3)
    return value, which // (3 * 4), index.reshape(-1)[which]


def by_rows(x: jax.Array) -> jax.Array:
    return jnp.arange(1.0, 3.0)


def cut_off(x: jax.Array) -> jax.Array:
    """Of the second beam, none is better than another."""
    return jnp.array([0.0, -jnp.inf])


def interleaved(x: jax.Array, k: int) -> tuple[jax.Array, jax.Array]:
    """The first of each device, then the second of each: equal ones come in another order."""
    value, index = lax.top_k(x, k)
    value, index = (
        lax.all_gather(part, "x", axis=2).reshape(ROWS, -1) for part in (value, index + LOCAL * lax.axis_index("x"))
    )
    value, which = lax.top_k(value, k)
    return value, jnp.take_along_axis(index, which, axis=1)


BEST: dict[str, tuple[Body, Body]] = {
    "values and indices": (lambda x: best(x, 3), lambda x: of_best(x, 3)),
    "more than are asked for": (lambda x: best(x, 3), lambda x: of_best(x, 3, 5)),
    "all of them": (lambda x: best(x, 8), lambda x: of_best(x, 8, LOCAL)),
    "one": (lambda x: best(x, 1), lambda x: of_best(x, 1)),
    "an order of the opposites": (lambda x: best(x, 3)[1], lambda x: by_sorting(x, 3)),
    "values in any order of parts": (lambda x: best(x, 3)[0], lambda x: interleaved(x, 3)[0]),
    "the last ones of a sort": (
        lambda x: best(x, 3)[0],
        lambda x: jnp.sort(gathered(jnp.sort(x, axis=1)[:, -3:]), axis=1)[:, ::-1][:, :3],
    ),
    "the least ones": (
        lambda x: jnp.sort(x, axis=1)[:, :2],
        lambda x: -lax.top_k(gathered(-lax.top_k(-x, 2)[0]) * -1, 2)[0],
    ),
    "the third": (lambda x: best(x, 3)[0][:, -1], lambda x: jnp.sort(gathered(lax.top_k(x, 3)[0]), axis=1)[:, -3]),
    "a sum": (lambda x: best(x, 2)[0].sum(1), lambda x: of_best(x, 2)[0].sum(1)),
    "a sort of sorted parts": (
        lambda x: jnp.sort(x, axis=1),
        lambda x: jnp.sort(gathered(jnp.sort(x, axis=1)), axis=1),
    ),
    "beams": (lambda x: beams(x, by_rows), lambda x: beams_by_devices(x, by_rows)),
    "the least": (lambda x: jnp.sort(x, axis=1)[:, 0], lambda x: lax.pmin(x.min(1), "x")),
    "the median": (lambda x: jnp.median(x, axis=1), lambda x: jnp.median(gathered(jnp.sort(x, axis=1)), axis=1)),
}

NOT_BEST: dict[str, tuple[Body, Body]] = {
    "less than are asked for": (lambda x: best(x, 3), lambda x: of_best(x, 3, 2)),
    "another number of columns": (lambda x: best(x, 3), lambda x: of_best(x, 3, stride=LOCAL - 1)),
    "equal ones in another order": (lambda x: best(x, 3)[1], lambda x: interleaved(x, 3)[1]),
    "the least ones": (lambda x: best(x, 3)[0], lambda x: -lax.top_k(gathered(lax.top_k(-x, 3)[0]), 3)[0][:, ::-1]),
    "upwards": (lambda x: best(x, 3)[0], lambda x: of_best(x, 3)[0][:, ::-1]),
    "the second": (lambda x: best(x, 3)[0][:, -1], lambda x: jnp.sort(gathered(x), axis=1)[:, -2]),
    "not sorted": (lambda x: jnp.sort(x, axis=1), lambda x: gathered(jnp.sort(x, axis=1))),
    "of one device": (lambda x: best(x, 3)[0], lambda x: lax.top_k(x, 3)[0]),
    "beams of other places": (lambda x: beams(x, by_rows), lambda x: beams_by_devices(x, by_rows, LOCAL - 1)),
    "other beams": (lambda x: beams(x, by_rows), lambda x: beams_by_devices(x, lambda x: by_rows(x)[::-1])),
    "whose beams": (lambda x: beams(x, by_rows)[1], lambda x: beams_by_devices(x, by_rows)[1] * 2),
    "a beam that is cut off": (lambda x: beams(x, cut_off), lambda x: beams_by_devices(x, cut_off)),
    "the last of equal ones": (
        lambda x: jnp.argsort(x, axis=1),
        lambda x: jnp.argsort(-gathered(x), axis=1)[:, ::-1],
    ),
}


@pytest.mark.drawn(10)
@pytest.mark.parametrize("argument", [FLOATS, INTEGERS], ids=["floats", "integers"])
@pytest.mark.parametrize("name", BEST)
def test_the_best_of_the_best_are_the_best(name: str, argument: jax.ShapeDtypeStruct) -> None:
    if argument is INTEGERS and name in {"an order of the opposites", "the least ones", "the median", "beams"}:
        return  # -x of the least integer is that again; a mean of two integers is no element
    assert verdict(*BEST[name], argument) is Verdict.PROVED


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", NOT_BEST)
def test_others_are_not(name: str) -> None:
    assert verdict(*NOT_BEST[name]) is not Verdict.PROVED


def of_logarithms(body: Body) -> Body:
    return lambda x: body(jnp.log(x))


@pytest.mark.parametrize("name", sorted(BEST.keys() - {"the median"}))  # which asks whether there is NaN
def test_the_best_of_what_may_be_no_number(name: str) -> None:
    """Where it is none, the logical program has stepped outside of a domain too."""
    assert verdict(*map(of_logarithms, BEST[name])) is Verdict.PROVED


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", NOT_BEST)
def test_others_are_not_where_they_may_be_no_numbers(name: str) -> None:
    assert verdict(*map(of_logarithms, NOT_BEST[name])) is not Verdict.PROVED


@pytest.mark.parametrize(
    "no_number", [lambda x: x + 0 * jnp.log(x), lambda x: jnp.exp(jnp.log(x)), lambda x: x * x / x]
)
@pytest.mark.parametrize("name", ["values and indices", "an order of the opposites", "a sum", "a sort of sorted parts"])
def test_what_devices_alone_have_no_number_for_is_another_order(name: str, no_number: Body) -> None:
    reference, local = BEST[name]
    assert verdict(reference, lambda x: local(no_number(x))) is not Verdict.PROVED


def test_the_opposite_of_an_integer_may_be_less() -> None:
    """Of the least integer it is the least one again, which `-x` puts first and the order of x last."""
    assert verdict(lambda x: best(x, 3)[1], lambda x: by_sorting(x, 3), INTEGERS) is not Verdict.PROVED


ORDERS: dict[str, tuple[Body, Body]] = {
    "put back": (lambda x: x, lambda x: _put_back(x, jnp.argsort(x))),
    "of others put back": (lambda x: 2 * x, lambda x: _put_back(2 * x, jnp.argsort(x % 7))),
    "sorted, put back": (lambda x: x, lambda x: jnp.sort(x)[jnp.argsort(jnp.argsort(x))]),
    "sorted downwards, put back": (lambda x: x, lambda x: -jnp.sort(-x)[jnp.argsort(jnp.argsort(-x))]),
    "the inverse by a scatter": (
        lambda x: jnp.argsort(jnp.argsort(x)),
        lambda x: jnp.zeros(COUNT, jnp.int32).at[jnp.argsort(x)].set(jnp.arange(COUNT)),
    ),
    "the order of an inverse": (jnp.argsort, lambda x: jnp.argsort(jnp.argsort(jnp.argsort(x)))),
}

NO_ORDERS: dict[str, tuple[Body, Body]] = {
    "in order once more": (lambda x: x, lambda x: x[jnp.argsort(x)][jnp.argsort(x)]),
    "another order's inverse": (lambda x: x, lambda x: x[jnp.argsort(x)][jnp.argsort(jnp.argsort(-x))]),
    "put back from the other end": (lambda x: x, lambda x: jnp.sort(x)[::-1][jnp.argsort(jnp.argsort(x))]),
    "an order for its inverse": (lambda x: jnp.argsort(jnp.argsort(x)), jnp.argsort),
    "half put back": (lambda x: x, lambda x: x[jnp.argsort(x)][jnp.argsort(jnp.argsort(x)) // 2]),
}


def _put_back(x: jax.Array, places: jax.Array) -> jax.Array:
    return x[places][jnp.argsort(places)]


@pytest.mark.parametrize("name", ORDERS)
def test_an_order_and_its_inverse(name: str) -> None:
    assert _everywhere(*ORDERS[name]) is Verdict.PROVED


@pytest.mark.parametrize("name", NO_ORDERS)
def test_what_is_no_inverse(name: str) -> None:
    assert _everywhere(*NO_ORDERS[name]) is not Verdict.PROVED


def _everywhere(reference: Body, local: Body) -> Verdict:
    pair = Placed(MESH, P(), P(), [jax.ShapeDtypeStruct((COUNT,), jnp.float32)]).pair(reference, local)
    return hlo_verify.verify(*pair, refute=False).verdict


# Networks


def exchanged(x: jax.Array, rounds: int = 4, ascending: bool = True) -> jax.Array:
    """Devices of one element that exchange it with their neighbours, on either side in turn."""
    me = lax.axis_index("x")
    for turn in range(rounds):
        pairs = [(k, k + 1) for k in range(turn % 2, 3, 2)]
        other = lax.ppermute(x, "x", pairs + [(b, a) for a, b in pairs])
        is_low = jnp.isin(me, jnp.array([a for a, _ in pairs]))
        takes_part = jnp.isin(me, jnp.array([k for pair in pairs for k in pair]))
        kept = jnp.where(is_low == ascending, jnp.minimum(x, other), jnp.maximum(x, other))
        x = jnp.where(takes_part, kept, x)
    return x


def merged(x: jax.Array, rounds: int = 4) -> jax.Array:
    """Devices of three sorted elements that keep the lesser or the greater half of their own and a neighbour's."""
    me, x = lax.axis_index("x"), jnp.sort(x)
    for turn in range(rounds):
        pairs = [(k, k + 1) for k in range(turn % 2, 3, 2)]
        other = lax.ppermute(x, "x", pairs + [(b, a) for a, b in pairs])
        both = jnp.sort(jnp.concatenate([x, other]))
        takes_part = jnp.isin(me, jnp.array([k for pair in pairs for k in pair]))
        x = jnp.where(takes_part, jnp.where(jnp.isin(me, jnp.array([a for a, _ in pairs])), both[:3], both[3:]), x)
    return x


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("count", "local", "found"),
    [
        (4, exchanged, True),
        (4, lambda x: exchanged(x, 5), True),
        (4, lambda x: exchanged(x, 3), False),
        (4, lambda x: exchanged(x, ascending=False), False),
        (12, merged, True),
        (12, lambda x: merged(x, 2), False),
    ],
)
def test_devices_that_exchange_elements_sort_them(count: int, local: Body, found: bool) -> None:
    pair = Placed(MESH, P("x"), P("x"), [jax.ShapeDtypeStruct((count,), jnp.float32)]).pair(jnp.sort, local)
    assert (hlo_verify.verify(*pair, refute=False).verdict is Verdict.PROVED) is found


# By counting


@pytest.mark.parametrize("seed", range(60))
def test_the_laws_keep_the_value(seed: int) -> None:
    """The k-th of what parts hand on, where many are equal, and more may be asked for than is known."""
    with Memory().on():
        case = Case(seed)
        parts, size = case.random.choice((2, 3)), case.random.choice((2, 4))
        handed, ascending = case.random.randint(1, size), case.random.random() < 0.5
        (x, _), v, w = case.make(parts * size), bound(parts * handed), bound(size)
        case.known.tensors[x] = xs = np.array([case.random.randint(0, 2) for _ in range(parts * size)], dtype=object)
        part, own = expr.floor_div(expr.of_var(v), handed), expr.modulo(expr.of_var(v), handed)
        element = at(x, expr.add(expr.scale(part, size), expr.of_var(w)))
        from_end = expr.subtract(expr.constant(size - 1), own)
        inner = values(w, element, own if ascending else from_end, "f32")
        asked = expr.floor_div(case.i, 1) if parts * handed >= 6 else expr.constant(0)
        which = order(v, inner, asked, "f32", ascending=ascending)
        index = algebra.as_index(which, 0, v.size - 1)
        mine = order(w, element, own, "f32", ascending=ascending)
        whole = algebra.add(mine, algebra.of_index(expr.scale(part, size)))
        found = in_order(algebra.substitute(whole, {v: index}))
        value = in_order(algebra.substitute(inner, {v: index}))
        wanted, handed_on = _by_hand(list(xs), parts, size, handed, ascending)
        at_i = (lambda i: i) if parts * handed >= 6 else (lambda i: 0)
        assert (case.value(found) == case.each(lambda i, j: wanted[at_i(i)])).all()
        assert (case.value(value) == case.each(lambda i, j: handed_on[at_i(i)])).all()


def _by_hand(xs: list[int], parts: int, size: int, handed: int, ascending: bool) -> tuple[list[int], list[int]]:
    sign = 1 if ascending else -1
    firsts = [
        k
        for p in range(parts)
        for k in sorted(range(p * size, (p + 1) * size), key=lambda k: (sign * xs[k], k))[:handed]
    ]
    firsts = sorted(firsts, key=lambda k: sign * xs[k])
    return firsts, [xs[k] for k in firsts]
