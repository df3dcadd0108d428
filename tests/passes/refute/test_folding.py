"""What is computed of constants is enclosed with what its type rounds it to."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb

from hlo_verify.evaluate import balls
from hlo_verify.evaluate.intervals import exact, interval
from hlo_verify.passes.load.load import load
from hlo_verify.passes.refute.folding import computed_of_constants, folded
from hlo_verify.program.element_types import DTYPES, finfo

TYPES = ["f64", "f32", "bf16", "f16", "f8E5M2", "f8E4M3FN"]


@pytest.mark.parametrize("dtype", TYPES)
def test_the_number_that_a_type_rounds_to_is_in_it(dtype: str, seed: int) -> None:
    """Numbers of all sizes; of one that is too large nothing is known, and what the type has is left as it is."""
    drawn = np.random.default_rng(seed)
    info = finfo(dtype)
    exponents = drawn.uniform(float(info.minexp) - 8, float(info.maxexp) - 1, 400)
    values = np.concatenate([drawn.choice([-1, 1], 400) * 2.0**exponents, [0.0, 1.0, -0.5, float(info.max)]])
    with np.errstate(all="ignore"):
        rounded = values.astype(DTYPES[dtype]).astype(float)
    found = folded(exact(values), dtype)
    known = ~np.isnan(found["low"])
    assert ((found["low"] <= rounded) & (rounded <= found["high"]))[known].all() and known[np.abs(values) < 1].all()
    assert ((found["low"] <= values) & (values <= found["high"]))[known].all()
    for value, near, there in zip(values[::7], rounded[::7], known[::7], strict=True):
        (ball,) = folded(np.array([arb(value)], object), dtype)
        assert not there or (ball.contains(arb(value)) and ball.contains(arb(near)))
    own = rounded[np.isfinite(rounded)]
    assert (folded(exact(own), dtype) == exact(own)).all()
    assert all(a == b for a, b in zip(folded(balls.exact(own), dtype), balls.exact(own), strict=True))


def test_what_is_no_number_of_a_type() -> None:
    beyond, infinite = folded(interval(np.array([1e60, np.inf]), np.array([1e60, np.inf])), "f32")
    assert np.isnan(beyond["low"]) and infinite["low"] == np.inf
    beyond, infinite = folded(np.array([arb("1e60"), arb("inf")], object), "f32")
    assert not beyond.is_finite() and infinite == arb("inf")


def test_which_values_are_computed_of_constants() -> None:
    """Not what is moved, what hangs on an argument, or integers; inside of a region too."""
    module = load("""
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %c = stablehlo.constant dense<6.0> : tensor<bf16>
      %t = stablehlo.tanh %c : tensor<bf16>
      %w = stablehlo.convert %t : (tensor<bf16>) -> tensor<f32>
      %b = stablehlo.broadcast_in_dim %w, dims = [] : (tensor<f32>) -> tensor<4xf32>
      %i = stablehlo.iota dim = 0 : tensor<4xf16>
      %n = stablehlo.iota dim = 0 : tensor<4xi32>
      %y = stablehlo.multiply %x, %b : tensor<4xf32>
      %r = stablehlo.while(%k = %y) : tensor<4xf32>
        cond { %z = stablehlo.constant dense<false> : tensor<i1>
          stablehlo.return %z : tensor<i1> }
        do { %q = stablehlo.constant dense<1.0> : tensor<4xf32>
          %e = stablehlo.exponential %q : tensor<4xf32>
          %m = stablehlo.multiply %k, %e : tensor<4xf32>
          stablehlo.return %m : tensor<4xf32> }
      return %r : tensor<4xf32>
    }
    """)
    assert list(computed_of_constants(module.main).values()) == ["bf16", "f32", "f16", "f32"]
