"""Special functions that numpy does not have."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np

from hlo_verify.evaluate.maps import Array


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    def safe(x: float) -> float:
        try:
            return function(float(x))
        except (ValueError, OverflowError):
            return math.nan

    vectorized = np.frompyfunc(safe, 1, 1)

    def rule(a: Array) -> Array:
        return np.asarray(vectorized(a)).astype(a.dtype)

    return rule


def _erf_inverse(x: float) -> float:
    if abs(x) >= 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    if x == 0:
        return x
    y = NormalDist().inv_cdf((1 + x) / 2) / math.sqrt(2) if -1 < x < 1 and 0 < (1 + x) / 2 < 1 else 0.0
    for _ in range(3):  # Newton's method, for the last digits
        slope = 2 / math.sqrt(math.pi) * math.exp(-y * y)
        error = math.erfc(-y) - (1 + x) if x < 0 else (1 - x) - math.erfc(y)
        y -= error / slope
    return y


def _log_gamma(x: float) -> float:
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


def _digamma(x: float) -> float:
    if x <= 0:
        if x == math.floor(x):
            return math.nan
        return _digamma(1 - x) - math.pi / math.tan(math.pi * x)
    total = 0.0
    while x < 12:
        total -= 1 / x
        x += 1
    y = 1 / (x * x)
    tail = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132 - y * (691 / 32760 - y / 12))))))
    return total + math.log(x) - 0.5 / x - tail


FUNCTIONS: dict[str, Callable[..., Array]] = {
    "erf": _each(math.erf),
    "erfc": _each(math.erfc),
    "erf_inv": _each(_erf_inverse),
    "lgamma": _each(_log_gamma),
    "digamma": _each(_digamma),
}
