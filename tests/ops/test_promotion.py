"""Operations whose results are wider than their operands: what wraps does so in the operand's type, before."""

from __future__ import annotations

import pytest

import hlo_verify
from hlo_verify import Verdict
from tests.support.pairs import REPLICATED, module, on

ADD = "({ ^bb0(%a: tensor<i32>, %b: tensor<i32>):\n %c = stablehlo.add %a, %b : tensor<i32>\n"
ADD += " stablehlo.return %c : tensor<i32> })"

PROMOTED = {
    "a reduction of nothing": (
        "%e = stablehlo.constant dense<> : tensor<0x4xi8>\n"
        "%t = stablehlo.slice %s [0:1] : (tensor<4xi8>) -> tensor<1xi8>\n"
        "%u = stablehlo.reshape %t : (tensor<1xi8>) -> tensor<i8>\n"
        f'%r = "stablehlo.reduce"(%e, %u) <{{dimensions = array<i64: 0>}}> {ADD}'
        " : (tensor<0x4xi8>, tensor<i8>) -> tensor<4xi32>",
        "%t = stablehlo.slice WIDE [0:1] : (tensor<4xi32>) -> tensor<1xi32>\n"
        "%r = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<1xi32>) -> tensor<4xi32>",
    ),
    "a scatter of nothing": (
        "%i = stablehlo.constant dense<> : tensor<0x1xi32>\n%e = stablehlo.constant dense<> : tensor<0xi8>\n"
        '%r = "stablehlo.scatter"(%s, %i, %e) <{scatter_dimension_numbers = #stablehlo.scatter<'
        f"inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> {ADD}"
        " : (tensor<4xi8>, tensor<0x1xi32>, tensor<0xi8>) -> tensor<4xi32>",
        "%r = stablehlo.add WIDE, %zeros : tensor<4xi32>",
    ),
    "a reduction of one element": (
        "%e = stablehlo.reshape %s : (tensor<4xi8>) -> tensor<1x4xi8>\n%u = stablehlo.constant dense<0> : tensor<i8>\n"
        f'%r = "stablehlo.reduce"(%e, %u) <{{dimensions = array<i64: 0>}}> {ADD}'
        " : (tensor<1x4xi8>, tensor<i8>) -> tensor<4xi32>",
        "%r = stablehlo.add WIDE, %zeros : tensor<4xi32>",
    ),
}
"""An operation on `%s`, a sum in i8, and what it is of the sum as i32."""

ZEROS = "%zeros = stablehlo.constant dense<0> : tensor<4xi32>\n"
BEFORE = ZEROS + "%s = stablehlo.add %x, %x : tensor<4xi8>\n"
AFTER = ZEROS + "%w = stablehlo.convert %x : (tensor<4xi8>) -> tensor<4xi32>\n"


def verdict(logical: str, partitioned: str) -> Verdict:
    texts = (
        module(
            f"%x: tensor<4xi8> {on(REPLICATED)}",
            f"tensor<4xi32> {on(REPLICATED)}",
            f"{b}\nreturn %r : tensor<4xi32>",
            1,
        )
        for b in (logical, partitioned)
    )
    return hlo_verify.verify(*texts, refute=False).verdict


@pytest.mark.parametrize("name", PROMOTED)
def test_what_is_promoted_has_wrapped(name: str) -> None:
    """127 + 127 is -2 in i8, and 254 in i32."""
    narrow, wide = PROMOTED[name]
    wrapped = "%k = stablehlo.convert %s : (tensor<4xi8>) -> tensor<4xi32>\n" + wide.replace("WIDE", "%k")
    summed = "%k = stablehlo.add %w, %w : tensor<4xi32>\n" + wide.replace("WIDE", "%k")
    assert verdict(BEFORE + narrow, BEFORE + wrapped) is Verdict.PROVED
    assert verdict(BEFORE + narrow, AFTER + summed) is Verdict.UNKNOWN
