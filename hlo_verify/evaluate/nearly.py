"""Numbers of which some digits alone are sure."""

from __future__ import annotations

from typing import Any

import numpy as np
from flint import arb

from hlo_verify.evaluate.intervals import INTERVALS, exact, interval, middle
from hlo_verify.evaluate.maps import Array

SURE = {"f64": 45, "f32": 20, "f16": 10, "bf16": 7}
"""How many binary digits are right of what a few operations on floats give: `element_types.sure_digits`, which the
evaluator has for itself."""
FEW = 3
"""The same of narrower types."""


def nearly(values: Array, dtype: str) -> Array:
    """Enclosures of what floats of a type may give in place of each number; 0 is 0."""
    off = 2.0 ** -SURE.get(dtype, FEW)
    if values.dtype == INTERVALS:
        low, high = values["low"], values["high"]
        return interval(low - np.abs(low) * off, high + np.abs(high) * off)
    about = arb(1, off)

    def each(x: Any) -> Any:
        return x * about if isinstance(x, arb) and x.is_finite() else x

    return np.asarray(np.frompyfunc(each, 1, 1)(values), object)


def decided(values: Array) -> Array:
    """The numbers in the middle of enclosures."""
    if values.dtype == INTERVALS:
        return exact(middle(values))
    return np.asarray(np.frompyfunc(lambda x: x.mid() if isinstance(x, arb) else x, 1, 1)(values), object)
