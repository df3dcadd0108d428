"""A scatter of several operands is taken apart only where what is added is made of the updates alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed, floats
from tests.support.pairs import REPLICATED, module, on

SCALAR = "tensor<f32>"


def scatter(added: str, other: str = "%b", operation: str = "add") -> str:
    """A module that scatters `%u` and `%v` into `%a` and `other`, for the first of which only there is a result."""
    given = [("a", "tensor<4xf32>"), ("b", "tensor<4xf32>"), ("n", "tensor<2xi32>")]
    given += [("u", "tensor<2xf32>"), ("v", "tensor<2xf32>")]
    numbers = "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
    body = f"""
    %m = stablehlo.negate %b : tensor<4xf32>
    %r:2 = "stablehlo.scatter"(%a, {other}, %n, %u, %v) ({{
      ^bb0(%x: {SCALAR}, %y: {SCALAR}, %s: {SCALAR}, %t: {SCALAR}):
        %least = stablehlo.minimum %s, {added} : {SCALAR}
        %p = stablehlo.{operation} %x, %least : {SCALAR}
        %q = stablehlo.add %y, %t : {SCALAR}
        stablehlo.return %p, %q : {SCALAR}, {SCALAR}
    }}) {{scatter_dimension_numbers = #stablehlo.scatter<{numbers}>}}
      : (tensor<4xf32>, tensor<4xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    return %r#0 : tensor<4xf32>"""
    arguments = ", ".join(f"%{name}: {kind} {on(REPLICATED)}" for name, kind in given)
    return module(arguments, f"tensor<4xf32> {on(REPLICATED)}", body)


def verdict(logical: str, partitioned: str) -> Verdict:
    return hlo_verify.verify(logical, partitioned, refute=False).verdict


def test_what_is_made_of_the_updates_alone_does_not_depend_on_the_other_operand() -> None:
    assert verdict(scatter("%t"), scatter("%t", "%m")) is Verdict.PROVED


def test_what_is_made_of_the_other_operand_does() -> None:
    assert verdict(scatter("%y"), scatter("%y")) is Verdict.PROVED
    assert verdict(scatter("%y"), scatter("%y", "%m")) is Verdict.UNKNOWN


def test_what_is_not_added_depends_on_all() -> None:
    assert verdict(scatter("%t", operation="multiply"), scatter("%t", "%m", "multiply")) is Verdict.UNKNOWN
    assert verdict(scatter("%t"), scatter("%t", operation="subtract")) is Verdict.UNKNOWN


@pytest.mark.parametrize(
    "bounded",
    [
        "%least = stablehlo.minimum %k, %y : tensor<i32>",
        "%least = stablehlo.clamp %k, %y, %s : tensor<i32>",
        "%least = stablehlo.remainder %y, %k : tensor<i32>",
        """%c = stablehlo.compare LT, %y, %k : (tensor<i32>, tensor<i32>) -> tensor<i1>
           %least = stablehlo.select %c, %s, %t : tensor<i1>, tensor<i32>""",
    ],
)
def test_an_integer_is_made_of_what_it_is_computed_of(bounded: str) -> None:
    """Bounds and remainders of integers, and comparisons with them, are index expressions."""

    def integers(other: str) -> str:
        least = "%least = stablehlo.minimum %s, %y : tensor<i32>"
        constant = "%k = stablehlo.constant dense<7> : tensor<i32>\n"
        return scatter("%y", other).replace("f32", "i32").replace(least, constant + bounded)

    assert verdict(integers("%b"), integers("%b")) is Verdict.PROVED
    assert verdict(integers("%b"), integers("%m")) is Verdict.UNKNOWN


MESH = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))


def overwritten(x: Any, n: Any, v: Any, rows: Callable[[Any], Any] = lambda row: row) -> Any:
    """Each row's elements at places that may coincide become others."""
    return x.at[rows(jnp.arange(x.shape[0]))[:, None], n].set(v)


@pytest.mark.parametrize(
    ("local", "expected"),
    [
        (overwritten, Verdict.PROVED),
        (lambda x, n, v: overwritten(x, n, v, lambda row: 3 - row), Verdict.UNKNOWN),
        (lambda x, n, v: overwritten(x, n, v, lambda row: row + 1), Verdict.UNKNOWN),
        (lambda x, n, v: overwritten(x, n[:, ::-1], v[:, ::-1]), Verdict.UNKNOWN),
        (lambda x, n, v: overwritten(x, n, v[:, ::-1]), Verdict.UNKNOWN),
        (lambda x, n, v: overwritten(x[:, ::-1], n, v), Verdict.UNKNOWN),
        (lambda x, n, v: overwritten(x, n[::-1], v), Verdict.UNKNOWN),
        (lambda x, n, v: overwritten(x, n[:3], v[:3], lambda row: row[:3]), Verdict.UNKNOWN),
    ],
    ids=["right", "rows exchanged", "shifted", "other order", "updates", "operand", "places", "fewer rows"],
)
def test_updates_of_a_row_depend_on_that_row_alone(local: Callable[..., Any], expected: Verdict) -> None:
    """Which of two updates of an element wins is not known: but it is the same in the same row of a shard."""
    shapes = [((16, 6), jnp.float32), ((16, 3), jnp.int32), ((16, 3), jnp.float32)]
    placed = Placed(MESH, P("x"), P("x"), [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes])
    assert verdict(*placed.pair(overwritten, local)) is expected


GRID = AbstractMesh((2, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)


def local_part(turn: int = 1, off: int = 0, axes: tuple[str, str] = ("a", "b")) -> Callable[..., Any]:
    """Overwrite 8 by 4 elements of 16 by 8 where the places that are given for the whole lie among them."""

    def local(x: Any, m: Any, n: Any, v: Any) -> Any:
        rows, columns = m - 8 * jax.lax.axis_index(axes[0]) + off, n - 4 * jax.lax.axis_index(axes[1])
        return written(x, rows[::turn], columns[::turn], v[::turn])

    return local


def written(x: Any, m: Any, n: Any, v: Any) -> Any:
    return x.at[m, n].set(v, mode="drop", wrap_negative_indices=False)


@pytest.mark.parametrize(
    ("local", "expected"),
    [
        (local_part(), Verdict.PROVED),
        (local_part(turn=-1), Verdict.UNKNOWN),
        (local_part(off=1), Verdict.UNKNOWN),
        (local_part(axes=("b", "a")), Verdict.UNKNOWN),
    ],
    ids=["right", "other order", "shifted", "axes exchanged"],
)
def test_a_part_of_the_operand_is_overwritten_by_itself(local: Callable[..., Any], expected: Verdict) -> None:
    """On two updates of one element the same one wins in a part as in the whole, whatever the order is."""
    shapes = [jax.ShapeDtypeStruct((16, 8), "float32"), *[jax.ShapeDtypeStruct((6,), "int32")] * 2]
    shapes.append(jax.ShapeDtypeStruct((6,), "float32"))
    specs = (P("a", "b"), P(), P(), P())
    mapped = jax.shard_map(local, mesh=GRID, in_specs=specs, out_specs=P("a", "b"))
    traced = (jax.jit(function).trace(*shapes) for function in (written, mapped))
    assert hlo_verify.verify(*traced, devices=4, refute=False).verdict is expected


@pytest.mark.parametrize("way", ["max", "min"])
def test_the_greatest_of_what_devices_update(way: str) -> None:
    """The first device starts from the operand, the others from what changes nothing; so XLA splits the updates."""

    def whole(x: Any, n: Any, v: Any) -> Any:
        return getattr(x.at[n], way)(v)

    def local(x: Any, n: Any, v: Any) -> Any:
        start = jnp.where(jax.lax.axis_index("x") == 0, x, -jnp.inf if way == "max" else jnp.inf)
        return getattr(jax.lax, f"p{way}")(whole(start, n, v), "x")

    shapes = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in (((16, 6), "float32"), ((8,), "int32"))]
    shapes.append(jax.ShapeDtypeStruct((8, 6), "float32"))
    mapped = jax.shard_map(local, mesh=MESH, in_specs=(P(), P("x"), P("x")), out_specs=P())
    traced = (jax.jit(function).trace(*shapes) for function in (whole, mapped))
    assert hlo_verify.verify(*traced, devices=4, refute=False).verdict is Verdict.PROVED


def counted_from_the_end(y: Any) -> Any:
    return jnp.where(y < 0, y + 8, y)


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (counted_from_the_end, Verdict.PROVED),
        (lambda y: jnp.where(y < 1, y + 8, y), Verdict.REFUTED),
        (lambda y: jnp.where(y < 0, y + 7, y), Verdict.REFUTED),
        (lambda y: jnp.clip(y, 0, 7), Verdict.REFUTED),
    ],
)
def test_an_update_lands_where_its_index_is(place: Callable[[Any], Any], expected: Verdict) -> None:
    """`.at[i].add`, whose index may count from the end, against a row of each class that is compared with it."""

    def landed(y: Any, u: Any) -> Any:
        return jnp.zeros((6, 8)).at[jnp.arange(6), y].add(u, mode="drop")

    def compared(y: Any, u: Any) -> Any:
        return jnp.where(place(y)[:, None] == jnp.arange(8), u[:, None], 0.0)

    shapes = jax.ShapeDtypeStruct((6,), jnp.int32), jax.ShapeDtypeStruct((6,), jnp.float32)
    found = hlo_verify.verify(*(jax.jit(f).trace(*shapes) for f in (landed, compared)))
    assert found.verdict is expected


def applied(function: Callable[[Any], Any], off: int = 0) -> Callable[..., Any]:
    """Apply a function to the element of 16 that is at a place, on the device that has it."""

    def local(x: Any, k: Any) -> Any:
        mine = 4 * jax.lax.axis_index("x") + jnp.arange(4)
        return jnp.where(mine == k + off, function(x), x)

    return local


@pytest.mark.parametrize(
    ("local", "expected"),
    [
        (applied(jnp.sin), Verdict.PROVED),
        (applied(jnp.cos), Verdict.UNKNOWN),
        (applied(lambda x: -jnp.sin(x)), Verdict.UNKNOWN),
        (applied(jnp.sin, off=1), Verdict.UNKNOWN),
        (lambda x, k: jnp.sin(x), Verdict.UNKNOWN),
    ],
    ids=["right", "another function", "another sign", "off by one", "everywhere"],
)
def test_one_update_is_what_the_region_makes_of_the_element(local: Callable[..., Any], expected: Verdict) -> None:
    placed = Placed(MESH, (P("x"), P()), P("x"), [*floats((16,)), jax.ShapeDtypeStruct((), jnp.int32)])
    pair = placed.pair(lambda x, k: x.at[k].apply(jnp.sin), local)
    assert hlo_verify.verify(*pair, refute=False, assume=["k in [0, 16)"]).verdict is expected


def computing(line: str) -> str:
    """A module in which what comes of an element and its update is computed, for two updates of one element maybe."""
    numbers = "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
    body = f"""
    %r = "stablehlo.scatter"(%a, %n, %u) ({{
      ^bb0(%x: {SCALAR}, %s: {SCALAR}):
        {line}
        stablehlo.return %p : {SCALAR}
    }}) {{scatter_dimension_numbers = #stablehlo.scatter<{numbers}>}}
      : (tensor<4xf32>, tensor<2x1xi32>, tensor<2xf32>) -> tensor<4xf32>
    return %r : tensor<4xf32>"""
    given = [("a", "tensor<4xf32>"), ("n", "tensor<2x1xi32>"), ("u", "tensor<2xf32>")]
    arguments = ", ".join(f"%{name}: {kind} {on(REPLICATED)}" for name, kind in given)
    return module(arguments, f"tensor<4xf32> {on(REPLICATED)}", body)


def test_several_updates_of_one_element_are_computed_one_after_the_other() -> None:
    """`sin(sin(x))` where both land: no sine of what is there wherever one lands."""
    sine, same = f"%p = stablehlo.sine %x : {SCALAR}", f"%p = stablehlo.maximum %x, %x : {SCALAR}"
    hit = """
    %i = stablehlo.iota dim = 0 : tensor<2x4xi32>
    %f = stablehlo.reshape %n : (tensor<2x1xi32>) -> tensor<2xi32>
    %m = stablehlo.broadcast_in_dim %f, dims = [0] : (tensor<2xi32>) -> tensor<2x4xi32>
    %j = stablehlo.iota dim = 1 : tensor<2x4xi32>
    %e = stablehlo.compare EQ, %m, %j : (tensor<2x4xi32>, tensor<2x4xi32>) -> tensor<2x4xi1>
    %z = stablehlo.constant dense<false> : tensor<i1>
    %h = stablehlo.reduce(%e init: %z) applies stablehlo.or across dimensions = [0]
      : (tensor<2x4xi1>, tensor<i1>) -> tensor<4xi1>
    %s = stablehlo.sine %a : tensor<4xf32>
    %r = stablehlo.select %h, %s, %a : tensor<4xi1>, tensor<4xf32>
    return %r : tensor<4xf32>"""
    given = [("a", "tensor<4xf32>"), ("n", "tensor<2x1xi32>"), ("u", "tensor<2xf32>")]
    arguments = ", ".join(f"%{name}: {kind} {on(REPLICATED)}" for name, kind in given)
    once = module(arguments, f"tensor<4xf32> {on(REPLICATED)}", hit)
    assert verdict(computing(sine), computing(sine)) is Verdict.PROVED
    assert verdict(once, computing(sine)) is Verdict.UNKNOWN
    assert verdict(computing(same), computing(sine)) is Verdict.UNKNOWN
