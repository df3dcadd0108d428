"""Blocks of transformers that people split along the sequence: what stands for a residual stream is that, and nothing
else."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Report, Verdict
from hlo_verify.equality import opening
from hlo_verify.index import expr
from hlo_verify.ops.best import index_of_best
from hlo_verify.ops.values import Value, position, positions
from hlo_verify.passes.prove.stand_ins import StandIns
from hlo_verify.program.ir import TensorType
from hlo_verify.session import Session
from hlo_verify.terms import algebra, sums
from hlo_verify.terms.extrema import reduce_extremum
from hlo_verify.terms.functions import INFINITY, INVERSE, LOG
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import ONE, Poly, tensor

MESH = jax.sharding.AbstractMesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
B, S, D, H, E, F = 2, 8, 4, 4, 2, 8
SHAPES = ((D,), (D,), (3, D, H, E), (H, E, D), (D, F), (F, D))
SPLIT = (P(), P(), P(None, None, "x"), P("x"), P(None, "x"), P("x"))


def norm(x: jax.Array, g: jax.Array) -> jax.Array:
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * g


def by_squares(x: jax.Array, g: jax.Array) -> jax.Array:
    mean = jnp.mean(x, -1, keepdims=True)
    return g * (x - mean) / jnp.sqrt(jnp.mean(x * x, -1, keepdims=True) - mean * mean + 1e-5)


def reference(masked: float, attends: bool) -> Callable[..., jax.Array]:
    def whole(x: jax.Array, *weights: jax.Array) -> jax.Array:
        for g1, g2, wqkv, wo, w1, w2 in zip(*(weights[k::6] for k in range(6)), strict=True):
            if attends:
                q, k, v = jnp.einsum("bsd,kdhe->kbshe", norm(x, g1), wqkv)
                scores = jnp.einsum("bqhe,bkhe->bhqk", q, k) / math.sqrt(E)
                scores = jnp.where(jnp.tril(jnp.ones((S, S), bool)), scores, masked)
                x = x + jnp.einsum("bhqk,bkhe,hed->bqd", jax.nn.softmax(scores), v, wo)
            x = x + jax.nn.gelu(norm(x, g2) @ w1) @ w2
        return x

    return whole


def on_devices(
    masked: float,
    attends: bool,
    reach: int = 0,
    adds: Callable[[jax.Array, jax.Array], jax.Array] = jnp.add,
    scale: float = E**-0.5,
    second: Callable[[jax.Array, jax.Array], jax.Array] = by_squares,
) -> Callable[..., jax.Array]:
    def local(x: jax.Array, *weights: jax.Array) -> jax.Array:
        for g1, g2, wqkv, wo, w1, w2 in zip(*(weights[k::6] for k in range(6)), strict=True):
            if attends:
                h = lax.all_gather(by_squares(x, g1), "x", axis=1, tiled=True)
                q, k, v = (jnp.einsum("bsd,dhe->bhse", h, w) for w in wqkv)
                at = jnp.arange(S)
                scores = jnp.where(at[:, None] + reach >= at, q @ k.swapaxes(-1, -2) * scale, masked)
                e = jnp.exp(scores - scores.max(-1, keepdims=True))
                o = (e @ v) / e.sum(-1, keepdims=True)
                x = x + lax.psum_scatter(jnp.einsum("bhse,hed->bsd", o, wo), "x", scatter_dimension=1, tiled=True)
            h = lax.all_gather(second(x, g2), "x", axis=1, tiled=True)
            x = adds(x, lax.psum_scatter(jax.nn.gelu(h @ w1) @ w2, "x", scatter_dimension=1, tiled=True))
        return x

    return local


def report(layers: int, masks: tuple[float, float], attends: bool = True, **changed: Any) -> Report:
    refute, recheck = changed.pop("refute", True), changed.pop("recheck", False)
    specs, shapes = (P(None, "x"), *SPLIT * layers), ((B, S, D), *SHAPES * layers)
    local = jax.shard_map(on_devices(masks[1], attends, **changed), mesh=MESH, in_specs=specs, out_specs=P(None, "x"))
    arguments = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    return hlo_verify.check(reference(masks[0], attends), local, *arguments, refute=refute, recheck=recheck)


INFINITE, LARGE = -math.inf, -1e30


@pytest.mark.parametrize("layers", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("masks", [(INFINITE, INFINITE), pytest.param((INFINITE, LARGE), marks=pytest.mark.slow)])
def test_blocks_whose_masks_scales_and_norms_are_spelled_otherwise(layers: int, masks: tuple[float, float]) -> None:
    found = report(layers, masks)
    assert found.verdict is Verdict.PROVED, found
    assert any("0.707106769" in said for said in found.assumptions)


def test_a_second_check_agrees() -> None:
    found = report(2, (INFINITE, INFINITE), attends=False, recheck=True)
    assert found.verdict is Verdict.PROVED, found
    assert found.recheck is not None and not found.recheck.disagreements


WRONG: dict[str, dict[str, Any]] = {
    "a later score is seen": {"reach": 1},
    "another scale": {"scale": 0.7},
    "half of the residual": {"adds": lambda x, y: 0.5 * x + y},
    "half of the stream is normalised": {"second": lambda x, g: norm(0.5 * x, g)},
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.slow
def test_wrong_blocks(name: str) -> None:
    attends = name in ("a later score is seen", "another scale")
    found = report(1, (INFINITE, INFINITE), attends, refute=attends, **WRONG[name])
    assert found.verdict is (Verdict.REFUTED if attends else Verdict.UNKNOWN)


X, Y = (tensor("argument", name, "f32", (4, 8)) for name in "xy")


def total(p: Poly) -> Poly:
    """The sum along rows of a term of i and j, at i."""
    k = expr.fresh("k", 8)
    return sums.reduce_sum([k], value(p).at((position(0, 4), expr.of_var(k))))


def of_all(p: Poly) -> Poly:
    i, k = expr.fresh("i", 4), expr.fresh("k", 8)
    return sums.reduce_sum([i, k], value(p).at((expr.of_var(i), expr.of_var(k))))


def value(p: Poly) -> Value:
    return Value(TensorType((4, 8), "f32"), p)


def test_a_sum_of_definitions_is_stood_for() -> None:
    with Session().on():
        x, y = (algebra.read(source, positions((4, 8))) for source in (X, Y))
        stream = algebra.add(x, total(algebra.multiply(x, y)))
        stand_ins = StandIns()
        stand = stand_ins.of(value(stream))
        assert stand is not None and stand_ins.of(value(stream)) is stand
        assert len(stand.term.items) == 1 and stand_ins.opened(stand.term) is stream
        later = stand_ins.of(value(algebra.add(stand.term, total(stand.term))))
        assert later is not None
        assert opening.arguments(later.term).isdisjoint({X, Y})
        assert opening.arguments(stand_ins.opened(later.term)) == {X, Y}


def test_one_term_of_several_shapes_is_stood_for_in_each() -> None:
    """The mean of all, as a number and as what is kept of both dimensions: terms have no shapes."""
    with Session().on():
        x = algebra.read(X, positions((4, 8)))
        whole = algebra.add(*map(of_all, (x, algebra.multiply(x, x))))
        stand_ins = StandIns()
        for shape in ((), (1, 1), (1,), (4, 8)):
            stand = stand_ins.of(Value(TensorType(shape, "f32"), whole))
            assert stand is not None and stand.shape == shape
            assert stand_ins.opened(stand.term) is whole


def test_views_open_what_one_side_is_not_about() -> None:
    with Session().on():
        x, y = (algebra.read(source, positions((4, 8))) for source in (X, Y))
        stand_ins = StandIns()
        first = stand_ins.of(value(algebra.add(x, total(y))))
        assert first is not None
        second = stand_ins.of(value(algebra.add(first.term, total(algebra.multiply(first.term, y)))))
        assert second is not None
        views = [[opening.arguments(p) for p in view] for view in stand_ins.views(second.term, first.term)]
        (stand,) = opening.arguments(first.term)
        assert views == [[{stand, Y}, {stand}], [{X, Y}, {X, Y}]]
        assert next(stand_ins.views(second.term, second.term)) == (second.term, second.term)
        assert list(stand_ins.views(x, y)) == [(x, y)]


def test_what_may_be_no_number_is_not_stood_for() -> None:
    """Nor what more is known of than that it is one: `1 + sum x^2` is positive."""
    with Session().on():
        x, y = (algebra.read(source, positions((4, 8))) for source in (X, Y))
        infinite = apply(INFINITY, ())
        for p in (
            algebra.add(x, total(apply(LOG, (y,)))),
            algebra.add(x, apply(INVERSE, (total(y),))),
            algebra.add(x, total(y), infinite),
            algebra.add(ONE, total(algebra.multiply(x, x))),
            algebra.add(x, y),
            total(x),
        ):
            assert StandIns().of(value(p)) is None, p


@pytest.mark.parametrize("extremum", ["max", "min"])
def test_what_is_the_greatest_of_an_opened_value_is_asked_once_more(extremum: str) -> None:
    """`argmax k. v[i, k]`, of what stands for `z - max z`, is `argmax k. z[i, k]` there, and not another row's."""
    z = tensor("argument", "z", "f32", (4, 6))
    row, column = expr.fresh("i", 4), expr.fresh("k", 6)
    i, k = expr.of_var(row), expr.of_var(column)
    type_ = TensorType((4, 6), "f32")
    at = positions(type_.shape)
    greatest = reduce_extremum(extremum, [v := expr.fresh("v", 6)], algebra.read(z, (at[0], expr.of_var(v))))
    value = Value(type_, algebra.subtract(algebra.read(z, at), greatest))
    stands = StandIns()
    stand = stands.of(value)
    assert stand is not None

    def best(p: Poly) -> Poly:
        worst = algebra.scale(apply(INFINITY, ()), -1 if extremum == "max" else 1)
        pair, first = (p, algebra.of_index(expr.of_var(column))), (worst, algebra.ZERO)
        return index_of_best(extremum, [column], pair, first, ("f32", "i32"))

    opened = stands.opened(best(stand.at([i, k])))
    assert opened is best(algebra.read(z, (i, k)))
    assert opened is not best(algebra.read(z, (expr.constant(0), k)))
    assert row in opened.free
    assert stands.opened(reduce_extremum(extremum, [column], stand.at([i, k]))) is algebra.ZERO
