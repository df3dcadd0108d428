"""Arguments that are drawn are numbers of their type: of any other, devices compute something else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hlo_verify.evaluate import nearest, random_argument
from hlo_verify.evaluate.functions import of_bits, to_bits
from hlo_verify.evaluate.in_types import is_unsigned
from hlo_verify.evaluate.unknown import UnknownError
from hlo_verify.passes.refute.search import Search
from hlo_verify.program.allowed_values import Values
from hlo_verify.program.element_types import DTYPES, finfo, is_float
from tests.passes.refute.test_search import pair

FLOATS = [dtype for dtype in DTYPES if is_float(dtype)]
SCALES = (1e-42, 1e-30, 1e-9, 1e-4, 1.0, 1024.0, 1e5, 1e30)


def of_the_type(values: np.ndarray[Any, Any], dtype: str) -> bool:
    """Whether elements are what they are of the type, each of them, and not 0 or without an end."""
    held = values.astype(DTYPES[dtype]).astype(values.dtype)
    return bool((held == values).all() and np.isfinite(held).all() and held.all())


@pytest.mark.parametrize("dtype", [*FLOATS, "complex<f32>", "complex<f64>"])
@pytest.mark.parametrize("scale", SCALES)
def test_what_is_drawn_is_held_by_its_type(dtype: str, scale: float) -> None:
    for edges in (False, True):
        generator = np.random.default_rng(0)
        values = random_argument((64,), dtype, generator, detail=64, scale=scale, edges=edges).values
        assert of_the_type(values, dtype)
        assert len(np.unique(np.abs(values))) > 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_what_a_user_allows_is_held_by_its_type(dtype: str) -> None:
    """Within bounds that are no numbers of the type: 0.3 is none of any."""
    if is_unsigned(dtype):
        return
    for assumed in (Values(0.3, None), Values(0.3, 1.3), Values(None, -0.3), Values(-1.3, None, (True, True))):
        for scale in SCALES:
            drawn = random_argument(
                (64,), dtype, np.random.default_rng(0), detail=64, scale=scale, assumed=assumed
            ).values
            assert of_the_type(drawn, dtype)
            assert all(assumed.admits(value, value) for value in drawn.flat)
        plain = nearest(assumed, 1e9, dtype)
        assert assumed.admits(plain, plain)
        assert of_the_type(np.array([plain]), dtype)


LEAST = """
    %z = stablehlo.constant dense<0.0> : tensor<8xf32>
    %s = stablehlo.constant dense<LEAST> : tensor<8xf32>
    %w = stablehlo.convert %x : (TYPE) -> tensor<8xf32>
    %a = stablehlo.abs %w : tensor<8xf32>
    %c = stablehlo.compare LE, %a, %z : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %y = stablehlo.select %c, %z, %w : tensor<8xi1>, tensor<8xf32>
    %r = stablehlo.convert %y : (tensor<8xf32>) -> TYPE
"""


@pytest.mark.parametrize("dtype", ["f16", "f8E4M3FN", "f8E5M2", "f8E4M3FNUZ"])
def test_what_differs_for_no_number_of_the_type_is_no_difference(dtype: str) -> None:
    """Less than the least one is 0 of them, and more than the greatest is none."""
    body = LEAST.replace("LEAST", repr(float(finfo(dtype).smallest_subnormal)))
    for new in ("LT, %a, %s", "LE, %a, %z"):
        assert Search(pair(f"tensor<8x{dtype}>", "x", "r", body, "LE, %a, %z", new)).find([0]) == set()
    assert Search(pair(f"tensor<8x{dtype}>", "x", "r", body, "LE, %a, %z", "GT, %a, %s")).find([0]) == {0}


def test_the_bits_of_short_floats() -> None:
    """Each pattern of 16 bits is a number of bf16 or NaN, and 1 + 2**-8 has none."""
    patterns = np.arange(1 << 16, dtype=np.uint16)
    found = of_bits(patterns, "bf16", np.float64)
    plain = patterns & 0x7FFF <= 0x7F80
    assert np.isnan(found[~plain]).all()
    assert np.array_equal(found[plain], patterns[plain].view(DTYPES["bf16"]).astype(np.float64))
    assert np.array_equal(to_bits(found[plain], "bf16"), patterns[plain])
    with pytest.raises(UnknownError):
        to_bits(np.array([1 + 2.0**-8]), "bf16")
