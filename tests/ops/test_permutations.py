"""Rows that are put in the order of something, worked on, and put back."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed

MESH = AbstractMesh((2,), ("x",))
ROWS = 6
Body = Callable[..., jax.Array]


def verdict(reference: Body, local: Body, *, split: bool) -> Verdict:
    rows = P("x") if split else P()
    shapes = [
        jax.ShapeDtypeStruct((ROWS, 3), jnp.float32),
        jax.ShapeDtypeStruct((ROWS,), jnp.int32),
        jax.ShapeDtypeStruct((4, 3, 5), jnp.float32),
    ]
    placed = Placed(MESH, (rows, rows, P()), rows, shapes)
    return hlo_verify.verify(*placed.pair(reference, local), refute=False).verdict


def layer(x: jax.Array, expert: jax.Array, weights: jax.Array) -> jax.Array:
    """What each row's expert makes of it."""
    return jnp.einsum("td,tdf->tf", x, weights[expert])


def put_back(form: str, x: jax.Array, expert: jax.Array, weights: jax.Array) -> jax.Array:
    order = jnp.argsort(expert)
    made = layer(x[order], expert[order], weights)
    empty = jnp.zeros_like(made)
    match form:
        case "set":
            return empty.at[order].set(made)
        case "set over others":
            return (empty + 7).at[order].set(made)
        case "add":
            return empty.at[order].add(made)
        case "gathered":
            return made[jnp.argsort(order)]
        case "gathered from elsewhere":
            return made[jnp.argsort(expert)]
        case "in another order":
            return empty.at[jnp.argsort(-expert)].set(made)
        case "once more in order":
            return made[order]
        case "left in order":
            return made
        case "another expert's":
            return empty.at[order].set(layer(x[order], expert, weights))
        case "half of the rows":
            return empty.at[order[: ROWS // 4]].set(made[: ROWS // 4])
        case "added to others":
            return (empty + 7).at[order].add(made)
        case "by experts":
            return empty.at[expert].set(made)
        case "sorted experts":
            return empty.at[jnp.sort(expert)].set(made)
        case _:
            raise AssertionError(form)


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("form", ["set", "set over others", "add", "gathered"])
def test_what_is_put_back_is_where_it_was(form: str, split: bool) -> None:
    assert verdict(layer, lambda *args: put_back(form, *args), split=split) is Verdict.PROVED


@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    "form",
    [
        "gathered from elsewhere",
        "in another order",
        "once more in order",
        "left in order",
        "another expert's",
        "half of the rows",
        "added to others",
        "by experts",
        "sorted experts",
    ],
)
def test_other_rows_are_not(form: str) -> None:
    for split in (False, True):
        assert verdict(layer, lambda *args: put_back(form, *args), split=split) is not Verdict.PROVED


def test_sums_and_extrema_in_any_order() -> None:
    def ordered(reduce: Body) -> Body:
        return lambda x, expert, weights: reduce(jnp.sin(x[jnp.argsort(expert)]), 0) + 0 * x

    def plain(reduce: Body) -> Body:
        return lambda x, expert, weights: reduce(jnp.sin(x), 0) + 0 * x

    for reduce in (jnp.sum, jnp.max, jnp.min):
        assert verdict(plain(reduce), ordered(reduce), split=False) is Verdict.PROVED

    def weighted(x: jax.Array, expert: jax.Array, weights: jax.Array) -> jax.Array:
        order = jnp.argsort(expert)
        return jnp.sum(x[order] * jnp.sin(x), 0) + 0 * x

    assert verdict(plain(lambda x, axis: jnp.sum(x * x, axis)), weighted, split=False) is not Verdict.PROVED


def test_permutations_that_hang_on_one_another_may_meet() -> None:
    """Each column is a permutation of the rows, and each row one of the columns: two updates may have both in common,
    and the later one stays. Rows that are permuted each by itself meet nowhere."""
    shapes = [jax.ShapeDtypeStruct((2, 2), jnp.float32)] * 4
    placed = Placed(MESH, (P(),) * 4, P(), shapes)

    def crossed(x: jax.Array, k: jax.Array, other: jax.Array, u: jax.Array, turned: bool = False) -> jax.Array:
        rows, columns = jnp.argsort(k, axis=1), jnp.argsort(other, axis=0)
        return x.at[rows.T, columns.T].set(u.T) if turned else x.at[rows, columns].set(u)

    def by_row(x: jax.Array, k: jax.Array, other: jax.Array, u: jax.Array, turned: bool = False) -> jax.Array:
        rows, columns = jnp.broadcast_to(jnp.arange(2)[:, None], (2, 2)), jnp.argsort(k, axis=1)
        return x.at[rows.T, columns.T].set(u.T) if turned else x.at[rows, columns].set(u)

    def found(body: Callable[..., jax.Array]) -> Verdict:
        pair = placed.pair(body, lambda *given: body(*given, turned=True))
        return hlo_verify.verify(*pair, refute=False).verdict

    assert found(by_row) is Verdict.PROVED
    assert found(crossed) is Verdict.UNKNOWN


COUNTED: dict[str, tuple[Body, Body]] = {
    "added up": (lambda k, x: jnp.sum(k), lambda k, x: jnp.sum(lax.sort((x, k), num_keys=1)[1].astype(jnp.float32))),
    "written to": (
        lambda k, x: jnp.sum(x),
        lambda k, x: jnp.sum(jnp.zeros_like(x).at[lax.sort((x, k), num_keys=1)[1]].set(x, mode="promise_in_bounds")),
    ),
}


@pytest.mark.parametrize(
    ("dtype", "count", "wanted"), [("uint8", 256, Verdict.PROVED), ("uint8", 257, Verdict.UNKNOWN)]
)
@pytest.mark.parametrize("form", COUNTED)
def test_what_counts_in_a_type_that_is_too_small_takes_values_twice(
    form: str, dtype: str, count: int, wanted: Verdict
) -> None:
    whole, local = COUNTED[form]
    placed = Placed(MESH, (P(),), P(), [jax.ShapeDtypeStruct((count,), jnp.float32)])
    pair = placed.pair(
        lambda x: whole(jnp.arange(count, dtype=jnp.float32), x), lambda x: local(lax.iota(dtype, count), x)
    )
    assert hlo_verify.verify(*pair, refute=False).verdict is wanted


ROWWISE: dict[str, Callable[[jax.Array], jax.Array]] = {
    "softmax": lambda x: jax.nn.softmax(x, axis=1),
    "norm": lambda x: (x - x.mean(1, keepdims=True)) * lax.rsqrt(x.var(1, keepdims=True) + 1e-5),
    "quotient of a maximum": lambda x: x / x.max(1, keepdims=True),
    "two layers": lambda x: jax.nn.relu(x @ jnp.ones((3, 4))) @ jnp.ones((4, 3)),
    "sort": lambda x: jnp.sort(x, axis=1),
}


def _beside(f: Callable[[jax.Array], jax.Array], places: Callable[[jax.Array], jax.Array]) -> Body:
    def there(x: jax.Array, expert: jax.Array, weights: jax.Array) -> jax.Array:
        order = jnp.argsort(expert)
        return f(x[order])[places(order)]

    return there


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", ROWWISE)
@pytest.mark.parametrize("split", (False, True))
def test_functions_of_rows_are_put_back(name: str, split: bool) -> None:
    f = ROWWISE[name]
    assert verdict(lambda x, *_: f(x), _beside(f, jnp.argsort), split=split) is Verdict.PROVED


@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", ROWWISE)
@pytest.mark.parametrize(
    "places",
    (lambda p: p, lambda p: jnp.argsort(p)[::-1], jnp.argsort),
    ids=("in order twice", "other end", "of places"),
)
def test_others_are_not_put_back(name: str, places: Callable[[jax.Array], jax.Array]) -> None:
    f = ROWWISE[name]

    def of_two(x: jax.Array) -> jax.Array:  # each row's function hangs on where the row is
        return f(x + jnp.cumsum(x, axis=0)) if places is jnp.argsort else f(x)

    assert verdict(lambda x, *_: of_two(x), _beside(of_two, places), split=False) is not Verdict.PROVED
