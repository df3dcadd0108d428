"""A function in front of a module's own: what it makes of its arguments is what the module computes with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hlo_verify.evaluate import dense, evaluate
from hlo_verify.evaluate.blocks import of_devices
from hlo_verify.passes.load.front import Taken, Writer, as_they_are, is_plain, put_in_front
from hlo_verify.passes.load.load import load
from hlo_verify.program.element_types import DTYPES
from hlo_verify.program.ir import Module

TEXT = """module @m attributes {mhlo.num_partitions = 3 : i32} {
func.func public @main(%x: tensor<2x3xf32>, %y: tensor<3xi32>) -> (tensor<2x3xf32>, tensor<3xi32>) {
  %z = stablehlo.negate %x : tensor<2x3xf32>
  return %z, %y : tensor<2x3xf32>, tensor<3xi32>
}
}
"""


def _results(module: Module, devices: int, *arguments: Any) -> list[list[list[float]]]:
    found = evaluate(module, [of_devices(np.asarray(each)[None]) for each in arguments], devices).results
    return [[dense(each, d).tolist() for d in range(devices)] for each in found if each is not None]


def test_every_operation() -> None:
    module = load(TEXT)

    def enter(writer: Writer, given: list[Any]) -> list[Any]:
        (row,) = given
        held = writer.held(writer.padded(row, 1, 9), 1, (0, 3, 6), 3)
        return [writer.scaled(writer.spread(held, (2, 3)), 2), writer.zeros(1)]

    def leave(writer: Writer, given: list[Any]) -> list[Any]:
        negated, zeros = given
        return [writer.summed(writer.sliced(negated, 0, 1, 1), 3), writer.added(zeros, zeros), negated]

    gives = [("sum", None), ("zeros", None), ("all", None)]
    made = put_in_front(module, [Taken(0, "row", (1, 7))], enter, leave, gives)
    assert made.argument_names == ("row",) and made.result_names == ("sum", "zeros", "all")
    assert made.partitions == 3 and is_plain(made)
    sums, zeros, all_ = _results(made, 3, np.arange(7.0, dtype=np.float32)[None])
    assert all_ == [[[-0.0, -2.0, -4.0]] * 2, [[-6.0, -8.0, -10.0]] * 2, [[-12.0, 0.0, 0.0]] * 2]
    assert sums == [[[-18.0, -10.0, -14.0]]] * 3 and zeros == [[0, 0, 0]] * 3


def test_what_is_left_as_it_is() -> None:
    module = load(TEXT)
    made = put_in_front(module, as_they_are(module), lambda writer, given: given)
    assert made.argument_names == module.argument_names and made.result_names == module.result_names
    given = np.ones((2, 3), np.float32), np.arange(3, dtype=np.int32)
    assert _results(made, 1, *given) == _results(module, 1, *given)


@pytest.mark.parametrize("dtype", [each for each in DTYPES if each != "f8E8M0FNU"])  # which has no zero
def test_zeros_of_every_type(dtype: str) -> None:
    """Of complex ones, of which jaxlib 0.10 takes no constant, too."""
    text = TEXT.replace("tensor<3xi32>", f"tensor<3x{dtype}>")
    made = put_in_front(load(text), [Taken(0, "x", (2, 3))], lambda writer, given: [*given, writer.zeros(1)])
    _, zeros = _results(made, 3, np.ones((2, 3), np.float32))
    assert zeros == [[0, 0, 0]] * 3
