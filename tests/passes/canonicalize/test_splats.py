"""Constants of one element that is repeated more often than there is memory for: nothing writes it out."""

from __future__ import annotations

import pytest

import hlo_verify
from hlo_verify import Verdict

LARGE = "1000000x1x1000000"


def program(element: str, kind: str) -> str:
    add = "and" if kind == "i1" else "add"
    return f"""module @m attributes {{mhlo.num_partitions = 2 : i32}} {{
func.func public @main(%x: tensor<1x1x8x{kind}>) -> tensor<1x1x8x{kind}> {{
  %c = stablehlo.constant dense<{element}> : tensor<{LARGE}x{kind}>
  %s = stablehlo.slice %c [3:4, 0:1, 5:13] : (tensor<{LARGE}x{kind}>) -> tensor<1x1x8x{kind}>
  %y = stablehlo.{add} %s, %x : tensor<1x1x8x{kind}>
  return %y : tensor<1x1x8x{kind}>
}}
}}
"""


CASES = [
    ("f32", "1.0", "2.0"),
    ("f32", "-0.0", "1.0"),
    ("bf16", "0.1", "0.2"),
    ("i1", "true", "false"),
    ("i64", "3", "2"),
]


@pytest.mark.parametrize(("kind", "element", "other"), [*CASES, ("complex<f32>", "(1.0,2.0)", "(1.0,1.0)")])
def test_no_one_writes_them_out(kind: str, element: str, other: str) -> None:
    whole = program(element, kind)
    assert hlo_verify.verify(whole, whole).verdict is Verdict.PROVED
    assert hlo_verify.verify(whole, program(other, kind)).verdict is Verdict.REFUTED
