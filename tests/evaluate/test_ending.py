"""Loops that surely end, and those of which nothing is known that is made of what they give."""

from __future__ import annotations

import numpy as np
import pytest

from hlo_verify.evaluate import evaluate, of_dense
from hlo_verify.evaluate.ending import surely_ends
from hlo_verify.evaluate.state import OPERATION
from hlo_verify.passes.load.load import load
from hlo_verify.program.ir import operations

LOOP = """
func.func @main(%p: tensor<TYPE>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %b = stablehlo.constant dense<BOUND> : tensor<TYPE>
  %r:2 = stablehlo.while(%i = %p, %s = %x) : tensor<TYPE>, tensor<4xf32>
   cond {
    %t = stablehlo.compare TEST : (tensor<TYPE>, tensor<TYPE>) -> tensor<i1>
    stablehlo.return %t : tensor<i1>
  } do {
    %c = stablehlo.constant dense<STEP> : tensor<TYPE>
    %j = stablehlo.NEXT : tensor<TYPE>
    %u = stablehlo.tanh %s : tensor<4xf32>
    stablehlo.return %j, %u : tensor<TYPE>, tensor<4xf32>
  }
  %y = stablehlo.negate %r#1 : tensor<4xf32>
  return %y : tensor<4xf32>
}
"""


def written(test: str, next_: str, bound: int, step: int, dtype: str) -> str:
    parts = {"TYPE": dtype, "BOUND": str(bound), "TEST": test, "STEP": str(step), "NEXT": next_}
    text = LOOP
    for name, part in parts.items():
        text = text.replace(name, part)
    return text


TESTS = [f"{way}, {sides}" for way in ("LT", "LE", "GT", "GE", "NE", "EQ") for sides in ("%i, %b", "%b, %i")]
NEXT = ["add %i, %c", "add %c, %i", "subtract %i, %c", "subtract %c, %i", "multiply %i, %c", "add %i, %i"]
EDGES = {"i8": (-128, -127, -125, 0, 5, 125, 126, 127), "ui8": (0, 1, 5, 253, 254, 255)}
DIRECTIONS = {"LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal}
DIRECTIONS |= {"NE": np.not_equal, "EQ": np.equal}


def ends(test: str, next_: str, bound: int, step: int, dtype: str) -> bool:
    """Whether it does from every one of the 256 numbers there are, carried out."""
    kind = np.dtype(dtype.replace("ui", "uint") if dtype[0] == "u" else dtype.replace("i", "int"))
    b, c, i = kind.type(bound), np.array(step).astype(kind), np.arange(256).astype(np.uint8).view(kind)
    way, sides = test.split(", ", 1)
    name, names = next_.split(" ", 1)
    with np.errstate(all="ignore"):
        for _ in range(257):
            goes_on = DIRECTIONS[way](*([i, b] if sides == "%i, %b" else [b, i]))
            a, d = ({"%i": i, "%c": c}[each] for each in names.split(", "))
            i = np.where(goes_on, getattr(np, name)(a, d), i).astype(kind)
    return not goes_on.any()


@pytest.mark.parametrize("dtype", EDGES)
def test_a_loop_that_is_said_to_end_does(dtype: str) -> None:
    """For each form, bound and step: carried out from every start."""
    said = 0
    for test in TESTS:
        module = load(written(test, "add %i, %c", 1, 1, dtype))
        forms = [load(written(test, next_, 1, 1, dtype)) for next_ in NEXT]
        assert len(module.main.ops) == 3
        for next_, form in zip(NEXT, forms, strict=True):
            (loop,) = (op for op in form.main.ops if op.name == "while")
            constants = [op.results[0] for op in operations(form.main) if op.name == "constant"]
            steps = (1, 2, 3, 127) if dtype[0] == "u" else (-128, -3, -1, 0, 1, 2, 3, 127)
            for bound in EDGES[dtype]:
                for step in steps:
                    if surely_ends(loop, dict(zip(constants, (bound, step), strict=True))):
                        said += 1
                        assert ends(test, next_, bound, step, dtype), (test, next_, bound, step)
    assert said > 50


@pytest.mark.parametrize(
    ("test", "next_", "bound", "step"),
    [
        ("LT, %i, %b", "add %i, %c", 8, 1),
        ("GT, %b, %i", "add %c, %i", 8, 3),
        ("GT, %i, %b", "subtract %i, %c", 0, 1),
        ("GE, %i, %b", "add %i, %c", 0, -1),
    ],
)
def test_what_a_loop_gives_that_counts_vanishes(test: str, next_: str, bound: int, step: int) -> None:
    """From the least number, which would take more turns than are allowed for, or none."""
    found = evaluate(load(written(test, next_, bound, step, "i32")), given(-(2**31)), 1, only=[0])
    assert found.results[0] is not None and found.work < 10 * OPERATION


@pytest.mark.parametrize(
    ("test", "next_", "bound", "step"),
    [
        ("LT, %i, %b", "add %i, %c", 8, 0),
        ("LT, %i, %b", "subtract %i, %c", 8, 1),
        ("LE, %i, %b", "add %i, %c", 2**31 - 1, 1),
        ("NE, %i, %b", "add %i, %c", 8, 2),
    ],
)
def test_what_a_loop_gives_that_may_never_end_has_no_value(test: str, next_: str, bound: int, step: int) -> None:
    found = evaluate(load(written(test, next_, bound, step, "i32")), given(-1), 1, only=[0])
    assert found.results[0] is None


def given(start: int) -> list:  # type: ignore[type-arg]
    return [of_dense(np.array(start, np.int32)), of_dense(np.zeros(4))]
