"""What comparators order by, as JAX and others write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.ops.comparators import first_key, order_of
from hlo_verify.ops.regions import best_of_pairs
from hlo_verify.passes.load.load import load
from hlo_verify.program.ir import Function, operations
from tests.support.lowering import Placed


def comparator(sort: Callable[..., Any], *arguments: Any) -> Function:
    text = jax.jit(sort).lower(*arguments).as_text()
    (op,) = (op for op in operations(load(text, devices=1).main) if op.name == "sort")
    return op.regions[0]


def written(compare: str, dtype: str = "f32", more: str = "", kind: str = "FLOAT") -> Function:
    text = f"""
func.func @main(%x: tensor<4x{dtype}>) -> tensor<4x{dtype}> {{
  %y = "stablehlo.sort"(%x) <{{dimension = 0 : i64, is_stable = true}}> ({{
  ^bb0(%a: tensor<{dtype}>, %b: tensor<{dtype}>):
    {more}
    %c = stablehlo.compare {compare}, {kind} : (tensor<{dtype}>, tensor<{dtype}>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }}) : (tensor<4x{dtype}>) -> tensor<4x{dtype}>
  return %y : tensor<4x{dtype}>
}}"""
    (op,) = (op for op in operations(load(text, devices=1).main) if op.name == "sort")
    return op.regions[0]


FLOATS, INTEGERS = jnp.zeros(4), jnp.zeros(4, jnp.int32)


def test_what_jax_writes() -> None:
    assert order_of(comparator(jnp.sort, FLOATS)) == (0, True)
    assert order_of(comparator(jnp.argsort, INTEGERS)) == (0, True)
    assert order_of(comparator(lambda x, y: lax.sort((x, y), num_keys=1), FLOATS, INTEGERS)) == (0, True)


@pytest.mark.parametrize(
    ("compare", "found"),
    [("LT, %a, %b", (0, True)), ("GT, %b, %a", (0, True)), ("GT, %a, %b", (0, False)), ("LE, %a, %b", None)],
)
def test_which_comes_first(compare: str, found: tuple[int, bool] | None) -> None:
    assert order_of(written(compare)) == found


def test_what_orders_otherwise() -> None:
    assert order_of(comparator(lambda x, y: lax.sort((x, y), num_keys=2), INTEGERS, INTEGERS)) is None
    assert order_of(written("LT, %a, %b", kind="TOTALORDER")) is None  # which puts -0 before 0
    constant = "%k = stablehlo.constant dense<1.0> : tensor<f32>"
    assert order_of(written("LT, %a, %k", more=constant)) is None
    absolute = "%p = stablehlo.abs %a : tensor<f32>\n%q = stablehlo.abs %b : tensor<f32>"
    assert order_of(written("LT, %p, %q", more=absolute)) is None
    lower = "%p = stablehlo.minimum %a, %b : tensor<f32>"
    assert order_of(written("LT, %p, %b", more=lower)) is None


def test_zero_in_it_is_tried() -> None:
    """Negative numbers come last here: that is no order of the numbers."""
    text = """
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %n = stablehlo.compare LT, %a, %z, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %p = stablehlo.select %n, %z, %a : tensor<i1>, tensor<f32>"""
    assert order_of(written("LT, %p, %b", more=text)) is None


@pytest.mark.parametrize(("dtype", "own", "other"), [("i8", "SIGNED", "UNSIGNED"), ("ui8", "UNSIGNED", "SIGNED")])
def test_integers_are_compared_as_what_they_are(dtype: str, own: str, other: str) -> None:
    assert order_of(written("LT, %a, %b", dtype, kind=own)) == (0, True)
    assert order_of(written("LT, %a, %b", dtype, kind=other)) is None


def best(kind: str, of_indices: str) -> Function:
    text = f"""
func.func @main(%x: tensor<4xf32>) -> tensor<ui8> {{
  %i = stablehlo.iota dim = 0 : tensor<4xui8>
  %w = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %z = stablehlo.constant dense<0> : tensor<ui8>
  %r:2 = "stablehlo.reduce"(%x, %i, %w, %z) <{{dimensions = array<i64: 0>}}> ({{
  ^bb0(%a: tensor<f32>, %j: tensor<ui8>, %b: tensor<f32>, %k: tensor<ui8>):
    %g = stablehlo.compare GT, %a, %b, {kind} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %e = stablehlo.compare EQ, %a, %b, {kind} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %l = stablehlo.compare LT, %j, %k, {of_indices} : (tensor<ui8>, tensor<ui8>) -> tensor<i1>
    %f = stablehlo.and %e, %l : tensor<i1>
    %p = stablehlo.or %g, %f : tensor<i1>
    %v = stablehlo.select %g, %a, %b : tensor<i1>, tensor<f32>
    %q = stablehlo.select %p, %j, %k : tensor<i1>, tensor<ui8>
    stablehlo.return %v, %q : tensor<f32>, tensor<ui8>
  }}) : (tensor<4xf32>, tensor<4xui8>, tensor<f32>, tensor<ui8>) -> (tensor<f32>, tensor<ui8>)
  return %r#1 : tensor<ui8>
}}"""
    (op,) = (op for op in operations(load(text, devices=1).main) if op.name == "reduce")
    return op.regions[0]


@pytest.mark.parametrize(
    ("kind", "of_indices", "found"),
    [("FLOAT", "UNSIGNED", "max"), ("FLOAT", "SIGNED", None), ("TOTALORDER", "UNSIGNED", None)],
)
def test_the_best_of_pairs_is_by_numbers(kind: str, of_indices: str, found: str | None) -> None:
    """In the total order 0 is better than -0, which are one number."""
    assert best_of_pairs(best(kind, of_indices)) == found


def two_keys(lines: str) -> Function:
    text = f"""
func.func @main(%x: tensor<4xf32>, %y: tensor<4xi32>) -> tensor<4xf32> {{
  %r:2 = "stablehlo.sort"(%x, %y) <{{dimension = 0 : i64, is_stable = true}}> ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %j: tensor<i32>, %k: tensor<i32>):
    %l = stablehlo.compare LT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %g = stablehlo.compare GT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %e = stablehlo.compare EQ, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %m = stablehlo.compare LT, %j, %k, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %f = stablehlo.compare EQ, %j, %k, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    {lines}
    stablehlo.return %c : tensor<i1>
  }}) : (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>)
  return %r#0 : tensor<4xf32>
}}"""
    (op,) = (op for op in operations(load(text, devices=1).main) if op.name == "sort")
    return op.regions[0]


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        (("and %e, %m", "or %l, %p"), (0, True)),
        (("and %m, %e", "or %p, %g"), (0, False)),
        (("and %f, %l", "or %m, %p"), (1, True)),
        (("and %f, %m", "or %l, %p"), None),  # a stray `or` of the other key
        (("or %e, %m", "or %l, %p"), None),  # equal ones are before each other
        (("or %e, %m", "and %l, %p"), None),
        (("and %e, %m", "or %m, %p"), (1, True)),  # the other key alone
        (("and %e, %m", "xor %l, %p"), (0, True)),
    ],
)
def test_what_decides_before_others_are_asked(parts: tuple[str, str], found: tuple[int, bool] | None) -> None:
    lines = [f"%{name} = stablehlo.{part} : tensor<i1>" for name, part in zip("pc", parts, strict=True)]
    assert first_key(two_keys("\n".join(lines))) == found


def test_keys_of_jax_come_in_order_the_first_first() -> None:
    three = comparator(lambda x, y, z: lax.sort((x, y, z), num_keys=3), FLOATS, INTEGERS, FLOATS)
    assert first_key(three) == (0, True)
    assert order_of(three) is None


SHAPES = [jax.ShapeDtypeStruct((8,), "float32"), jax.ShapeDtypeStruct((8,), "int32")]


@pytest.mark.parametrize(
    ("local", "expected"),
    [
        (lambda x, y: jnp.sort(x), Verdict.PROVED),
        (lambda x, y: jnp.sort(x)[::-1], Verdict.UNKNOWN),
        (lambda x, y: x, Verdict.UNKNOWN),
        (lambda x, y: x[jnp.argsort(y)], Verdict.UNKNOWN),
    ],
)
def test_the_first_key_comes_out_as_it_does_alone(local: Callable[..., Any], expected: Verdict) -> None:
    placed = Placed(AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,)), P(), P(), SHAPES)
    pair = placed.pair(lambda x, y: lax.sort((x, y), num_keys=2)[0], local)
    assert hlo_verify.verify(*pair, refute=False).verdict is expected


def test_the_second_key_does_not() -> None:
    placed = Placed(AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,)), P(), P(), SHAPES)
    pair = placed.pair(lambda x, y: lax.sort((x, y), num_keys=2)[1], lambda x, y: jnp.sort(y))
    assert hlo_verify.verify(*pair, refute=False).verdict is Verdict.UNKNOWN
