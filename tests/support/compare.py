"""Whether an evaluated term is what the reference computed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.support.functions import INFINITY, is_integer, wrap
from tests.support.modules import NAMES

Array = npt.NDArray[Any]

TOLERANCE = {"f64": 1e-9, "f32": 2e-5, "f16": 4e-3, "bf16": 3e-2}
"""Relative error that rounding may have made in the reference."""


def _limited(x: Any) -> Any:
    if isinstance(x, complex) or x != x or abs(x) < INFINITY / 2:
        return x
    return math.inf if x > 0 else -math.inf


def assert_same(found: Array, wanted: Array, context: str = "") -> None:
    """Integers must agree exactly, as the machine holds them; floats up to the reference's rounding."""
    dtype = NAMES[wanted.dtype]
    assert found.shape == wanted.shape, f"shape {found.shape}, reference {wanted.shape}\n{context}"
    if is_integer(dtype):
        plain = np.array([wrap(dtype, x) for x in found.flat], dtype=object).reshape(found.shape)
        if dtype == "i1":
            assert all(x in (0, 1) for x in found.flat), f"truth values {found}\n{context}"
        exact = np.array([int(x) for x in wanted.flat], dtype=object).reshape(wanted.shape)
        assert (plain == exact).all(), f"found\n{plain}\nreference\n{exact}\n{context}"
        return
    kind = np.complex128 if dtype.startswith("complex") else np.float64
    with np.errstate(all="ignore"):  # NaN is converted too
        plain = np.array([kind(_limited(x)) for x in found.flat], dtype=kind).reshape(found.shape)
        wanted = wanted.astype(kind)
    tolerance = TOLERANCE.get("f32" if dtype == "complex<f32>" else "f64" if kind is np.complex128 else dtype, 0.3)
    np.testing.assert_allclose(plain, wanted, rtol=tolerance, atol=tolerance, equal_nan=True, err_msg=context)
