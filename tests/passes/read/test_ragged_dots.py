"""Products in groups are what JAX computes, and what a device does to its part of one is told from what it must not."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from jax import lax

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.evaluate import dense, evaluate
from hlo_verify.evaluate.blocks import of_devices
from hlo_verify.passes.load.load import load
from hlo_verify.passes.read.ragged_dots import SAID
from tests.support.pairs import REPLICATED, module, on

Array = npt.NDArray[Any]
Dimensions = tuple[list[int], list[int], list[int], list[int], int, list[int]]
"""Batching and contracted dimensions of either side, the ragged one, and those of groups."""

PLAIN: Dimensions = ([], [], [1], [1], 0, [0])
BY_GROUP: Dimensions = ([], [], [0], [0], 0, [])
KINDS = {"float32": "f32", "bfloat16": "bf16", "int32": "i32", "int64": "i64", "uint32": "ui32", "int8": "i8"}


def kind(array: Array) -> str:
    return f"tensor<{''.join(f'{n}x' for n in array.shape)}{KINDS[str(array.dtype)]}>"


def operation(dimensions: Dimensions, kinds: str, dialect: str = "chlo", operands: str = "%x, %w, %s") -> str:
    one, other, first, second, ragged, groups = dimensions
    dot = (
        f"lhs_batching_dimensions = {one}, rhs_batching_dimensions = {other}, "
        f"lhs_contracting_dimensions = {first}, rhs_contracting_dimensions = {second}"
    )
    dot = dot if dialect == "chlo" else f"dot_dimension_numbers = #mhlo.dot<{dot}>"
    numbers = f"{dot}, lhs_ragged_dimensions = [{ragged}], rhs_group_dimensions = {groups}"
    said = f"{{ragged_dot_dimension_numbers = #{dialect}.ragged_dot<{numbers}>}}"
    return f'%p = "{dialect}.ragged_dot"({operands}) {said} : {kinds}'


@pytest.mark.parametrize("dialect", ["chlo", "mhlo"])
@pytest.mark.parametrize(
    ("dimensions", "shapes"),
    [
        (PLAIN, ((7, 3), (4, 3, 5), (4,))),
        (([], [], [0], [2], 1, [0]), ((3, 7), (4, 5, 3), (4,))),
        (([0], [1], [2], [2], 1, [0]), ((2, 7, 3), (4, 2, 3, 5), (4,))),
        (([0], [1], [3], [2], 2, [0]), ((2, 3, 7, 3), (4, 2, 3, 5), (2, 3, 4))),
        (([1], [0], [2], [2], 0, [1]), ((7, 2, 3), (2, 4, 3, 5), (2, 4))),
        (BY_GROUP, ((7, 3), (7, 5), (4,))),
        (([1], [0], [0, 3], [2, 1], 0, []), ((7, 2, 3, 4), (2, 4, 7, 5), (2, 4))),
        (([1], [0], [3, 0], [1, 2], 0, []), ((7, 2, 3, 4), (2, 4, 7, 5), (2, 4, 4))),
        (([1], [0], [0, 3], [2, 1], 0, []), ((7, 2, 3, 4), (2, 4, 7, 5), (4,))),
    ],
)
def test_a_product_in_groups_is_what_jax_computes(
    dimensions: Dimensions, shapes: tuple[tuple[int, ...], ...], dialect: str
) -> None:
    """With groups that are empty, that leave elements over, and that want more than there are."""
    rng = np.random.default_rng(0)
    one, other, first, second, ragged, groups = dimensions
    numbers = lax.RaggedDotDimensionNumbers((((*first,), (*second,)), ((*one,), (*other,))), [ragged], groups)
    for most, dtype in ((3, "int32"), (2, "uint32"), (5, "int64")):
        x, w = (rng.integers(-4, 5, shape).astype(np.float32) for shape in shapes[:2])
        sizes = rng.integers(0, most + 1, shapes[2])
        wanted = np.asarray(lax.ragged_dot_general(x, w, sizes.astype(np.int32), numbers))
        sizes = sizes.astype(dtype)
        kinds = f"({kind(x)}, {kind(w)}, {kind(sizes)}) -> {kind(wanted)}"
        text = (
            f"func.func public @main(%x: {kind(x)}, %w: {kind(w)}, %s: {kind(sizes)}) -> {kind(wanted)} {{\n"
            f"{operation(dimensions, kinds, dialect)}\nreturn %p : {kind(wanted)}\n}}"
        )
        found = evaluate(load(text), [of_devices(each[None]) for each in (x, w, sizes)], 1)
        assert not found.unknown and found.results[0] is not None
        np.testing.assert_array_equal(dense(found.results[0], 0), wanted)


X, W = np.zeros((8, 4), np.float32), np.zeros((4, 4, 8), np.float32)
SIZES = np.zeros(4, np.int32)
SPLITS = {
    "columns": (PLAIN, "{replicated}", "{devices=[1,1,4]<=[4]}", "{devices=[1,4]<=[4]}", "tensor<8x2xf32>", False),
    "contracted": (PLAIN, "{devices=[1,4]<=[4]}", "{devices=[1,4,1]<=[4]}", "{replicated}", "tensor<8x8xf32>", True),
    "rows of groups": (
        BY_GROUP,
        "{devices=[1,4]<=[4]}",
        "{replicated}",
        "{devices=[1,4,1]<=[4]}",
        "tensor<4x1x8xf32>",
        False,
    ),
}
SUM = """%r = "stablehlo.all_reduce"(%p) <{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>,
    channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (TYPE) -> TYPE"""
SAME = "%r = stablehlo.optimization_barrier %p : TYPE"
TURNED = "%t = stablehlo.reverse %s, dims = [0] : tensor<4xi32>\n"
PARTS = {
    "columns": ("tensor<8x4xf32>", "tensor<4x4x2xf32>"),
    "contracted": ("tensor<8x1xf32>", "tensor<4x1x8xf32>"),
    "rows of groups": ("tensor<8x1xf32>", "tensor<8x8xf32>"),
}


def split(name: str, before: str = "", operands: str = "%x, %w, %s", forgets: bool = False) -> tuple[str, str]:
    """A product in groups, and what four devices make of it."""
    dimensions, left, right, placed, part, is_summed = SPLITS[name]
    w = W if dimensions is PLAIN else np.zeros((8, 8), np.float32)
    whole = "tensor<8x8xf32>" if dimensions is PLAIN else "tensor<4x4x8xf32>"
    logical = module(
        f"%x: {kind(X)} {on(left)}, %w: {kind(w)} {on(right)}, %s: {kind(SIZES)} {on(REPLICATED)}",
        f"{whole} {on(placed)}",
        operation(dimensions, f"({kind(X)}, {kind(w)}, {kind(SIZES)}) -> {whole}") + f"\nreturn %p : {whole}",
    )
    one, other = PARTS[name]
    product = operation(dimensions, f"({one}, {other}, {kind(SIZES)}) -> {part}", "mhlo", operands)
    last = (SUM if is_summed and not forgets else SAME).replace("TYPE", part)
    body = f"{before}{product}\n{last}\nreturn %r : {part}"
    return logical, module(f"%x: {one}, %w: {other}, %s: {kind(SIZES)}", part, body)


WRONG = {
    "columns, other groups": split("columns", TURNED, "%x, %w, %t"),
    "columns, other matrices": split(
        "columns", "%t = stablehlo.reverse %w, dims = [0] : tensor<4x4x2xf32>\n", "%x, %t, %s"
    ),
    "contracted, other groups": split("contracted", TURNED, "%x, %w, %t"),
    "contracted, a sum left out": split("contracted", forgets=True),
    "rows of groups, other groups": split("rows of groups", TURNED, "%x, %w, %t"),
}


@pytest.mark.drawn(3)
@pytest.mark.parametrize("mistake", WRONG)
def test_other_groups_and_sums_left_out_are_refuted(mistake: str) -> None:
    assert hlo_verify.verify(*WRONG[mistake]).verdict is Verdict.REFUTED


@pytest.mark.parametrize("name", SPLITS)
def test_products_in_groups_are_split_as_products_are(name: str) -> None:
    report = hlo_verify.verify(*split(name))
    assert report.verdict is Verdict.PROVED and SAID in report.assumptions


@pytest.mark.parametrize(
    ("dimensions", "x", "w", "sizes", "result"),
    [
        (([0], [0], [2], [1], 0, []), (4, 2, 3), (4, 3, 5), np.zeros(2, np.int32), (4, 2, 5)),
        (PLAIN, (300, 3), (4, 3, 5), np.zeros(4, np.int8), (300, 5)),
    ],
    ids=["groups of a batching dimension", "sizes in a type that has not all places"],
)
def test_what_is_not_known_of_groups_is_not_proved(
    dimensions: Dimensions, x: tuple[int, ...], w: tuple[int, ...], sizes: Array, result: tuple[int, ...]
) -> None:
    left, right, wanted = (np.zeros(shape, np.float32) for shape in (x, w, result))
    kinds = f"({kind(left)}, {kind(right)}, {kind(sizes)}) -> {kind(wanted)}"
    text = module(
        f"%x: {kind(left)}, %w: {kind(right)}, %s: {kind(sizes)}",
        kind(wanted),
        operation(dimensions, kinds) + f"\nreturn %p : {kind(wanted)}",
        1,
    )
    assert hlo_verify.verify(text, text, devices=1).verdict is Verdict.UNKNOWN


def test_a_product_is_computed_in_the_type_of_its_result() -> None:
    x, w = np.zeros((8, 4), ml_dtypes.bfloat16), np.zeros((4, 4, 8), ml_dtypes.bfloat16)
    kinds = f"({kind(x)}, {kind(w)}, {kind(SIZES)}) -> tensor<8x8xf32>"
    text = module(
        f"%x: {kind(x)}, %w: {kind(w)}, %s: {kind(SIZES)}",
        "tensor<8x8xf32>",
        operation(PLAIN, kinds) + "\nreturn %p : tensor<8x8xf32>",
        1,
    )
    assert hlo_verify.verify(text, text, devices=1).verdict is Verdict.PROVED
