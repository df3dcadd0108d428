"""Elementwise functions on arrays of intervals: each result holds the exact values of all numbers in the operands.

numpy documents its elementary functions of 64-bit floats to be off by less than 4 units in the last place, whatever
vector library computes them, and the C library (`erf`, `erfc`) by less than 1. `SLACK` is four times that, and tests
compare them with Arb. What has no rule here, or an argument at which a function has a pole, is not known: Arb is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hlo_verify.evaluate import special
from hlo_verify.evaluate.balls import UNDEFINED
from hlo_verify.evaluate.functions import REAL as FLOATS
from hlo_verify.evaluate.intervals import (
    INTERVALS,
    STEP,
    TINY,
    Kernel,
    add_at,
    hull,
    in_pieces,
    interval,
    is_point,
    outward,
)
from hlo_verify.evaluate.maps import Array
from hlo_verify.evaluate.unknown import UnknownError

SLACK = 16
"""The steps (`STEP`) that an elementary function's value is moved outward by."""

LIMITED = 2.0**20
"""Sines and cosines of larger numbers are not computed: nothing is said of how well those are reduced."""

SHORT = 2.0**-900
"""Products of two short numbers that are larger than this are exact."""

MOST_FACTORS = 64
"""Powers by whole numbers up to this are products."""

Function = Callable[..., Array]


def _piecewise(kernel: Kernel) -> Function:
    return lambda *arrays: in_pieces(kernel, *arrays)


def _settled(low: Array, high: Array, *operands: Array) -> tuple[Array, Array]:
    """The bounds, NaN where nothing is known. An infinity is one only if an operand is: the others are too large."""
    odd = ~(np.isfinite(low) & np.isfinite(high))
    if odd.any():
        infinite = np.zeros(odd.shape, np.bool_)
        for operand in operands:
            infinite |= np.isinf(operand["low"])
        odd &= ~(infinite & (low == high))
        low, high = (np.where(odd, np.nan, x) for x in (low, high))
    return low, high


# Arithmetic


def _sum(a: Array, b: Array, c: Array, d: Array) -> tuple[Array, Array]:
    """a + b rounded down and c + d rounded up, where not exact: Knuth's sum of two gives the rounding error."""
    bounds = []
    for x, y in ((a, b), (c, d)):
        found = x + y
        rest = found - x
        bounds.append((found, (x - (found - rest)) + (y - rest)))
    (low, below), (high, above) = bounds
    down, up = np.abs(low) * STEP, np.abs(high) * STEP
    low = np.where((below >= 0) | np.isinf(low), low, low - down)
    return low, np.where((above <= 0) | np.isinf(high), high, high + up)


def _add(a: Array, b: Array) -> tuple[Array, Array]:
    return _settled(*_sum(a["low"], b["low"], a["high"], b["high"]), a, b)


def _subtract(a: Array, b: Array) -> tuple[Array, Array]:
    return _settled(*_sum(a["low"], -b["high"], a["high"], -b["low"]), a, b)


def _multiply(a: Array, b: Array) -> tuple[Array, Array]:
    if is_point(a).all() and is_point(b).all():
        return _point_product(a, b)
    if (a["low"] >= 0).all() and (b["low"] >= 0).all():
        return _positive_product(a, b)
    return _settled(*_signed(*_moved(*_extremes(np.multiply, a, b)), a, b))


def _extremes(function: np.ufunc, a: Array, b: Array) -> tuple[Array, Array]:
    """The least and the largest of what a function makes of the bounds."""
    ends = [[x["low"]] if is_point(x).all() else [x["low"], x["high"]] for x in (a, b)]
    first, *others = (function(one, other) for one in ends[0] for other in ends[1])
    low = high = first
    for each in others:
        low, high = np.minimum(low, each), np.maximum(high, each)
    return low, high


def _point_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Products of single numbers; exact where both are short."""
    x, y = a["low"], b["low"]
    product = x * y
    is_short = (x.astype(np.float32) == x) & (y.astype(np.float32) == y)
    is_exact = (is_short & (np.abs(product) > SHORT)) | (x == 0) | (y == 0)
    low, high = _signed(*_moved(product, product), a, b)
    return _settled(np.where(is_exact, product, low), np.where(is_exact, product, high))


def _positive_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Products of what is not negative; 0 where a factor is."""
    low, high = _moved(a["low"] * b["low"], a["high"] * b["high"])
    vanishes = (a["high"] == 0) | (b["high"] == 0)
    return _settled(np.maximum(low, 0.0), np.where(vanishes, 0.0, high), a, b)


def _moved(low: Array, high: Array) -> tuple[Array, Array]:
    """Rounded products and quotients moved outward, by more where they may have lost all their digits."""
    down, up = outward(low, high)
    if not np.minimum(np.abs(low), np.abs(high)).min(initial=1.0) >= TINY:  # or there is a NaN
        down, up = down - TINY * STEP, up + TINY * STEP
    return down, up


def _signed(low: Array, high: Array, a: Array, b: Array) -> tuple[Array, Array]:
    """The bounds of products or quotients, no further than the signs of the operands allow."""
    if (low * high).min(initial=1.0) > 0:
        return low, high
    positive = ((a["low"] >= 0) & (b["low"] >= 0)) | ((a["high"] <= 0) & (b["high"] <= 0))
    negative = ((a["low"] >= 0) & (b["high"] <= 0)) | ((a["high"] <= 0) & (b["low"] >= 0))
    vanishes = ((a["low"] == 0) & (a["high"] == 0)) | ((b["low"] == 0) & (b["high"] == 0))
    positive, negative = positive | vanishes, negative | vanishes
    return np.where(positive & (low < 0), 0.0, low), np.where(negative & (high > 0), 0.0, high)


def _divide(a: Array, b: Array) -> tuple[Array, Array]:
    if (a["low"] >= 0).all() and (b["low"] > 0).all():
        return _positive_quotient(a, b)
    low, high = _signed(*_moved(*_extremes(np.true_divide, a, b)), a, b)
    pole = (b["low"] <= 0) & (b["high"] >= 0)
    return _settled(*(np.where(pole, np.nan, x) for x in (low, high)))


def _positive_quotient(a: Array, b: Array) -> tuple[Array, Array]:
    """Quotients of what is not negative by what is positive; 0 where the dividend is."""
    low, high = _moved(a["low"] / b["high"], a["high"] / b["low"])
    return _settled(np.maximum(low, 0.0), np.where(a["high"] == 0, 0.0, high))


def _square(a: Array) -> tuple[Array, Array]:
    size = interval(*_abs(a))
    return _multiply(size, size)


def _abs(a: Array) -> tuple[Array, Array]:
    low, high = a["low"], a["high"]
    least = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    return least, np.maximum(np.abs(low), np.abs(high))


def larger(a: Array, b: Array) -> tuple[Array, Array]:
    return np.maximum(a["low"], b["low"]), np.maximum(a["high"], b["high"])


def smaller(a: Array, b: Array) -> tuple[Array, Array]:
    return np.minimum(a["low"], b["low"]), np.minimum(a["high"], b["high"])


def negated(a: Array) -> Array:
    """Minus the elements."""
    return interval(-a["high"], -a["low"])


def _power(a: Array, b: Array) -> Array:
    """By one whole number for all elements, or of positive numbers."""
    first = float(b["low"].reshape(-1)[0])
    is_one = bool((b["low"] == first).all() and (b["high"] == first).all())
    if is_one and abs(first) <= MOST_FACTORS and first == round(first):
        return _whole_power(np.array(np.broadcast_to(a, np.broadcast_shapes(a.shape, b.shape))), int(first))
    return REAL["exponential"](REAL["multiply"](b, REAL["log"](a)))


def _whole_power(a: Array, exponent: int) -> Array:
    result, base, left = interval(np.ones(a.shape), 1.0), a, abs(exponent)
    if exponent % 2 == 0 and exponent:
        base, left = REAL["square"](a), left // 2
    while left:
        result = REAL["multiply"](result, base) if left % 2 else result
        left //= 2
        base = REAL["multiply"](base, base) if left else base
    return REAL["divide"](interval(np.ones(a.shape), 1.0), result) if exponent < 0 else result


# Elementary functions


@dataclass(frozen=True, slots=True)
class Monotone:
    """A function that only rises, or only falls, from the argument `least` on; its values are between `floor` and
    `roof`. `steps` is what its floats may be off by; 0 of what is exact."""

    inside: Callable[[Array], Array]
    steps: float = SLACK
    least: float = -np.inf
    floor: float = -np.inf
    roof: float = np.inf
    falls: bool = False
    has_signs: bool = False
    """Whether its values have the signs of its arguments."""

    def __call__(self, a: Array) -> tuple[Array, Array]:
        low, high = (self.inside(a[side]) for side in (("high", "low") if self.falls else ("low", "high")))
        if self.steps:
            low, high = outward(low, high, self.steps)
            low, high = np.maximum(low - TINY, self.floor), np.minimum(high + TINY, self.roof)
        if self.has_signs:
            low = np.where((a["low"] >= 0) & (low < 0), 0.0, low)
            high = np.where((a["high"] <= 0) & (high > 0), 0.0, high)
        outside = ~(a["low"] >= self.least) | np.isinf(a["low"])
        if outside.any():
            low, high = (np.where(outside, np.nan, x) for x in (low, high))
        return _settled(low, high)


def _exponential(a: Array) -> tuple[Array, Array]:
    low, high = Monotone(np.exp, floor=0.0)(a)
    vanishes = a["high"] == -np.inf
    return (np.where(vanishes, 0.0, low), np.where(vanishes, 0.0, high)) if vanishes.any() else (low, high)


def _wave(function: Callable[[Array], Array]) -> Kernel:
    """A sine or a cosine, which changes by no more than its argument."""

    def kernel(a: Array) -> tuple[Array, Array]:
        low, high = a["low"], a["high"]
        centre = low / 2 + high / 2
        off = (np.maximum(high - centre, centre - low) + SLACK * STEP) * (1 + 4 * STEP)
        found = np.where(np.abs(centre) < LIMITED, function(centre), np.nan)
        return np.maximum(found - off - STEP, -1.0), np.minimum(found + off + STEP, 1.0)

    return kernel


def _even(function: Monotone) -> Kernel:
    return lambda a: function(interval(*_abs(a)))


def _finite(a: Array) -> Array:
    """Whether elements are finite."""
    low = a["low"]
    return decided(np.isfinite(low), np.isinf(low))


REAL: dict[str, Function] = {
    "add": _piecewise(_add),
    "subtract": _piecewise(_subtract),
    "multiply": _piecewise(_multiply),
    "divide": _piecewise(_divide),
    "power": _power,
    "maximum": _piecewise(larger),
    "minimum": _piecewise(smaller),
    "negate": negated,
    "abs": _piecewise(_abs),
    "square": _piecewise(_square),
    "exponential": _piecewise(_exponential),
    "exponential_minus_one": _piecewise(Monotone(np.expm1, floor=-1.0, has_signs=True)),
    "log": _piecewise(Monotone(np.log, least=5e-324)),
    "log_plus_one": _piecewise(Monotone(np.log1p, least=-1 + STEP, has_signs=True)),
    "sqrt": _piecewise(Monotone(np.sqrt, 1, least=0.0, floor=0.0, has_signs=True)),
    "rsqrt": _piecewise(Monotone(FLOATS["rsqrt"], 4, least=5e-324, floor=0.0, falls=True)),
    "cbrt": _piecewise(Monotone(np.cbrt, has_signs=True)),
    "sine": _piecewise(_wave(np.sin)),
    "cosine": _piecewise(_wave(np.cos)),
    "tanh": _piecewise(Monotone(np.tanh, floor=-1.0, roof=1.0, has_signs=True)),
    "logistic": _piecewise(Monotone(FLOATS["logistic"], 2 * SLACK, floor=0.0, roof=1.0)),
    "erf": _piecewise(Monotone(special.FUNCTIONS["erf"], floor=-1.0, roof=1.0, has_signs=True)),
    "erfc": _piecewise(Monotone(special.FUNCTIONS["erfc"], floor=0.0, roof=2.0, falls=True)),
    "atan": _piecewise(Monotone(np.arctan, has_signs=True)),
    "asinh": _piecewise(Monotone(np.arcsinh, has_signs=True)),
    "sinh": _piecewise(Monotone(np.sinh, has_signs=True)),
    "cosh": _piecewise(_even(Monotone(np.cosh, floor=1.0))),
    "sign": _piecewise(Monotone(np.sign, 0)),
    "floor": _piecewise(Monotone(np.floor, 0)),
    "ceil": _piecewise(Monotone(np.ceil, 0)),
    "round_nearest_afz": _piecewise(Monotone(FLOATS["round_nearest_afz"], 0)),
    "round_nearest_even": _piecewise(Monotone(np.rint, 0)),
    "is_finite": _finite,
}


# Decisions


def decided(is_so: Array, is_not: Array) -> Array:
    """Truth values: undefined where neither is certain."""
    certain = np.asarray(is_so | is_not)
    if certain.all():
        return np.asarray(is_so)
    result = np.asarray(is_so).astype(object)
    result[~certain] = UNDEFINED
    return result


def compared(direction: str, a: Array, b: Array) -> Array:
    """A comparison, element by element; undefined where the intervals do not decide it."""
    if direction in ("GT", "GE"):
        return compared({"GT": "LT", "GE": "LE"}[direction], b, a)
    if direction == "LT":
        return decided(a["high"] < b["low"], a["low"] >= b["high"])
    if direction == "LE":
        return decided(a["high"] <= b["low"], a["low"] > b["high"])
    apart = (a["high"] < b["low"]) | (a["low"] > b["high"])
    equal = is_point(a) & is_point(b) & (a["low"] == b["low"])
    return decided(apart, equal) if direction == "NE" else decided(equal, apart)


def of_itself(a: Array) -> Array:
    """Stands for elements that are compared with themselves: a point where they are known to be numbers."""
    return interval(a["low"], a["low"])


def chosen(condition: Array, a: Array, b: Array) -> Array:
    """`a` where the condition holds, `b` where it does not, and what holds both where that is not known."""
    if condition.dtype != object:
        # numpy copies pairs one by one, and complex numbers as fast as floats
        pairs = (np.ascontiguousarray(x).view(np.complex128) for x in (a, b))
        return np.ascontiguousarray(np.where(condition, *pairs)).view(INTERVALS)
    is_open = np.asarray(np.frompyfunc(lambda x: x is UNDEFINED, 1, 1)(condition)).astype(np.bool_)
    plain = np.where(is_open, False, condition).astype(np.bool_)
    return np.asarray(np.where(is_open, hull(a, b), np.where(plain, a, b)))


def whole(values: Array, least: int, most: int) -> tuple[Array, bool]:
    """Numbers without their fractions, as integers between those bounds; undefined where they are not certain, or
    surely out of bounds, and whether some are that."""
    low, high = np.trunc(values["low"]), np.trunc(values["high"])
    limit = 2.0**63
    outside = (low > most) | (high < least)
    inside = (low == high) & (low >= least) & (high <= most) & (np.abs(low) < limit)
    plain = np.where(inside, low, 0.0).astype(np.int64)
    if inside.all():
        return plain, False
    result = plain.astype(object)
    result[~inside] = UNDEFINED
    return result, bool(outside.any())


def order(key: Array) -> Array:
    """The stable order, ascending, along the first axis. Raises `UnknownError` where intervals overlap."""
    found = np.argsort(key["low"], axis=0, kind="stable")
    inorder = np.take_along_axis(key, found, axis=0)
    a, b = inorder[:-1], inorder[1:]
    if not ((a["high"] < b["low"]) | (is_point(a) & is_point(b) & (a["low"] == b["low"]))).all():
        raise UnknownError("an order of numbers that may be equal")
    return found


class Combined:
    """How elements are combined, as a ufunc of numpy's would: of two arrays, along an axis, at some elements."""

    def __init__(self, name: str, of_bounds: np.ufunc | None = None) -> None:
        self._function, self._of_bounds = REAL[name], of_bounds

    def __call__(self, a: Array, b: Array) -> Array:
        return self._function(a, b)

    def reduce(self, values: Array, axis: int) -> Array:
        """All elements along an axis."""
        if self._of_bounds is not None:
            return interval(*(self._of_bounds.reduce(values[side], axis=axis) for side in ("low", "high")))
        values = np.moveaxis(values, axis, 0)
        while len(values) > 1:
            half = len(values) // 2
            found = self._function(values[:half], values[half : 2 * half])
            values = np.concatenate([found, values[2 * half :]])
        return np.asarray(values[0])

    def at(self, result: Array, where: tuple[Array, ...], values: Array) -> None:
        """Combine values into some elements of an array, in place."""
        if self is COMBINED["add"]:
            add_at(result, where, values)
            return
        if self._of_bounds is None:
            raise UnknownError("products at elements that are named again")
        for side in ("low", "high"):
            self._of_bounds.at(result[side], where, values[side])


COMBINED: dict[str, Combined] = {
    "add": Combined("add"),
    "multiply": Combined("multiply"),
    "maximum": Combined("maximum", np.maximum),
    "minimum": Combined("minimum", np.minimum),
}
