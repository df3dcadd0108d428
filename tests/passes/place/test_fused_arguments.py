"""Arguments that are several tensors in one: which are, and that a module which takes them apart computes the same."""

from __future__ import annotations

import numpy as np
import pytest

from hlo_verify.evaluate import dense, evaluate
from hlo_verify.evaluate.blocks import of_devices
from hlo_verify.passes.load.load import load
from hlo_verify.passes.place.fused_arguments import segments, taken_apart

SLICED = """
    %f = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :
      (tensor<2x3xf32>, tensor<3xNxf32>) -> tensor<2xNxf32>
    %q = stablehlo.slice %f [0:2, 0:A] : (tensor<2xNxf32>) -> tensor<2xAxf32>
    %k = stablehlo.slice %f [0:2, A:N] : (tensor<2xNxf32>) -> tensor<2xBxf32>
    return %q, %k : tensor<2xAxf32>, tensor<2xBxf32>
"""
SHAPED = """
    %f = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :
      (tensor<2x3xf32>, tensor<3xNxf32>) -> tensor<2xNxf32>
    %q = stablehlo.reshape %f : (tensor<2xNxf32>) -> tensor<2xAxBxf32>
    %k = stablehlo.negate %x : tensor<2x3xf32>
    return %q, %k : tensor<2xAxBxf32>, tensor<2x3xf32>
"""


def text(body: str, whole: int, first: int, second: int) -> str:
    """A module with an argument of `whole` columns."""
    results = body.rsplit(":", 1)[1].strip()
    text = (
        "module @m {\nfunc.func public @main(%x: tensor<2x3xf32>, %w: tensor<3xNxf32>, %y: tensor<1xf32>) -> "
        f"({results}) {{{body}}}\n}}\n"
    )
    return text.replace("N", str(whole)).replace("A", str(first)).replace("B", str(second))


@pytest.mark.parametrize(
    ("body", "whole", "part", "sizes"),
    [
        (SLICED, (12, 8, 4), (6, 4, 2), [(8, 4)]),
        (SLICED, (12, 8, 4), (6, 3, 3), []),
        (SHAPED, (12, 3, 4), (6, 3, 2), [(4, 4, 4)]),
        (SHAPED, (12, 6, 2), (6, 3, 2), []),
    ],
    ids=["cut at the same places", "cut elsewhere", "as many equal parts", "fewer heads"],
)
def test_what_is_several_in_one(
    body: str, whole: tuple[int, int, int], part: tuple[int, int, int], sizes: list[tuple[int, ...]]
) -> None:
    modules = load(text(body, *whole)), load(text(body, *part))
    assert list(segments(*modules, 1, 1)) == sizes


def test_the_same_is_computed_of_the_parts() -> None:
    module = load(text(SLICED, 12, 8, 4))
    apart = taken_apart(taken_apart(module, 1, 1, (8, 3, 1)), 0, 0, (1, 1))
    assert apart.argument_names == (
        "arg0[0:1]", "arg0[1:2]", "arg1[:, 0:8]", "arg1[:, 8:11]", "arg1[:, 11:12]", "arg2",
    )  # fmt: skip
    assert [kind.shape for kind in apart.main.argument_types] == [(1, 3), (1, 3), (3, 8), (3, 3), (3, 1), (1,)]
    generator = np.random.default_rng(0)
    x, w, y = (generator.normal(size=shape) for shape in ((2, 3), (3, 12), (1,)))
    given = [[x, w, y], [x[:1], x[1:], w[:, :8], w[:, 8:11], w[:, 11:], y]]
    found = [
        evaluate(each, [of_devices(array[None]) for array in arrays], 1).results
        for each, arrays in zip((module, apart), given, strict=True)
    ]
    for one, other in zip(*found, strict=True):
        assert one is not None and other is not None
        np.testing.assert_allclose(dense(one, 0), dense(other, 0))
