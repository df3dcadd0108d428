"""Elements as pairs of floats that the exact value lies between: rigorous enclosures of whole arrays at once.

An array of type `INTERVALS` holds for each element a lower and an upper bound. Both are finite, or both the same
infinity, which is then exact, or both NaN: nothing is known. Every operation adds its own rounding error outward.
numpy moves such arrays about as any others, and refuses to calculate with them: an operation without a rule here cannot
be done by mistake.

What is assumed of the machine: addition, subtraction, multiplication, division and square roots of IEEE 754, rounded
to nearest; sums and products of matrices that add rounded (or fused) products in any order, none left out and none
added (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1); elementary functions as
`interval_functions` says.

Two elements with equal bounds need not be equal, but for bounds that are one number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlo_verify.evaluate import maps
from hlo_verify.evaluate.balls import UNDEFINED
from hlo_verify.evaluate.maps import PIECE, Array
from hlo_verify.evaluate.unknown import UnknownError

INTERVALS = np.dtype([("low", np.float64), ("high", np.float64)])
"""The type of arrays of floating-point elements that are intervals."""

STEP = 2.0**-52
"""What a result is moved outward by, times itself: at least half a unit in the last place, which rounding is off by."""

TINY = 1e-290
"""More than all that products lose by underflow."""

WHOLE = 2.0**53
"""Sums of whole numbers are exact below this."""

DENSE, BLOCK = 16, 1 << 20
"""In products of at least so many terms and columns, so many elements are worked on at a time."""


def interval(low: Any, high: Any) -> Array:
    """An array of those bounds."""
    result = np.empty(np.broadcast_shapes(np.shape(low), np.shape(high)), INTERVALS)
    result["low"], result["high"] = low, high
    return result


def exact(values: Any) -> Array:
    """Floats, integers or truth values as intervals; undefined ones, and what is no number, as unknown ones."""
    values = np.asarray(values)
    if values.dtype == object:
        gap = np.asarray(np.frompyfunc(lambda x: x is UNDEFINED, 1, 1)(values)).astype(np.bool_)
        return without(exact(np.where(gap, 0, values).astype(np.int64)), gap)
    if values.dtype.kind not in "fbiu":
        raise UnknownError(f"intervals of {values.dtype}")
    plain = values.astype(np.float64)
    slack = np.abs(plain) * STEP if values.dtype.kind in "iu" else 0.0
    slack = np.where(np.abs(plain) > WHOLE, slack, 0.0) if values.dtype.kind in "iu" else slack
    return interval(plain - slack, plain + slack)


def around(middle: Array, radius: Array) -> Array:
    """The intervals of that middle and radius; a radius of 0 is exact, of one that is infinite nothing is known."""
    radius = np.where(np.isfinite(radius), radius, np.nan)
    low, high = middle - radius, middle + radius
    return interval(*(np.where(radius == 0, middle, x) for x in outward(low, high)))


def without(values: Array, gap: Array) -> Array:
    """The intervals, with nothing known of those where there is a gap."""
    return interval(*(np.where(gap, np.nan, values[side]) for side in ("low", "high")))


def is_point(values: Array) -> Array:
    """Which elements are known exactly."""
    return np.asarray(values["low"] == values["high"])


def middle(values: Array) -> Array:
    """A float within each interval, or nearly; NaN for what is not known."""
    low, high = values["low"], values["high"]
    return np.where(low == high, low, low / 2 + high / 2)


def radius(values: Array) -> float:
    """Half of the largest width; infinite where something is not known, 0 of what is exact."""
    width = np.where(is_point(values), 0.0, values["high"] / 2 - values["low"] / 2)
    return float(np.where(np.isnan(width), np.inf, width).max(initial=0.0))


def outward(low: Array, high: Array, steps: float = 1) -> tuple[Array, Array]:
    """Bounds moved apart by so many steps."""
    return low - np.abs(low) * (steps * STEP), high + np.abs(high) * (steps * STEP)


def hull(a: Array, b: Array) -> Array:
    """What holds both, of finite numbers."""
    low, high = np.minimum(a["low"], b["low"]), np.maximum(a["high"], b["high"])
    return without(interval(low, high), (low != high) & (np.isinf(low) | np.isinf(high)))


Kernel = Callable[..., tuple[Array, Array]]
"""Makes lower and upper bounds of arrays that broadcast."""


def in_pieces(kernel: Kernel, *arrays: Array) -> Array:
    """What a kernel makes of arrays that broadcast, a piece at a time."""
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    result = np.empty(shape, INTERVALS)
    _fill(kernel, result, [a.reshape((1,) * (len(shape) - a.ndim) + a.shape) for a in arrays])
    return result


def _fill(kernel: Kernel, result: Array, arrays: Sequence[Array]) -> None:
    for _, (piece, *parts) in maps.in_pieces(result, *arrays):
        piece["low"], piece["high"] = kernel(*parts)


# Sums and products of matrices


def _growth(terms: int) -> float:
    """What a sum of so many rounded products is off by, relative to the sum of their sizes: more than n u / (1 - n u),
    as much again for the rounding of that sum of sizes, and of the bound itself."""
    return (2 * terms + 8) * STEP


def _are_whole(*arrays: Array) -> bool:
    """Whether all elements are whole numbers."""
    parts = (part for array in arrays for part in (array.reshape(-1)[:PIECE], array))
    return all(bool((part == np.rint(part)).all()) for part in parts)


def _bounded(low: Array, high: Array, size: Array, terms: int, are_whole: bool) -> Array:
    """Sums of so many terms each, with the sums of their sizes."""
    if are_whole and bool((size < WHOLE / 2).all()):
        return interval(low, high)
    off = size * _growth(terms)
    return _finite(interval(low - off, high + off))


def _finite(values: Array) -> Array:
    """The intervals, with nothing known of those that are not finite."""
    odd = ~(np.isfinite(values["low"]) & np.isfinite(values["high"]))
    return without(values, odd) if odd.any() else values


def scaled(values: Array, factors: Array) -> Array:
    """Elements times natural numbers. Raises `UnknownError` for numbers that floats do not hold.

    No multiple of a subnormal number is rounded before it is normal, so that a step covers every rounding; multiples by
    powers of two are exact.
    """
    if factors.max(initial=0) > WHOLE:
        raise UnknownError("a sum of more terms than floats count")
    factors = factors.astype(np.float64)
    are_powers = bool((np.frexp(factors)[0] == 1 / 2).all())

    def bounds(a: Array, factor: Array) -> tuple[Array, Array]:
        low, high = a["low"] * factor, a["high"] * factor
        down, up = (low, high) if are_powers else outward(low, high)
        if np.isfinite(down).all() and np.isfinite(up).all():
            return down, up
        infinite = np.isinf(a["low"]) & (factor > 0)
        odd = ~(infinite | (np.isfinite(down) & np.isfinite(up)))
        down, up = np.where(infinite, low, down), np.where(infinite, high, up)
        return np.where(odd, np.nan, down), np.where(odd, np.nan, up)

    return in_pieces(bounds, values, factors)


def rearranged(values: Array, order: Sequence[int], shape: Sequence[int]) -> Array:
    """The elements with the axes in that order, and then in that shape."""
    return _pairs(values).transpose(order).reshape(shape).view(INTERVALS)


def _pairs(values: Array) -> Array:
    """Both bounds as a complex number: numpy copies those as fast as floats, and pairs one by one. A sum of them is
    the sums of their parts."""
    return values.view(np.complex128)


def weighted_sum(values: Array, weights: Array) -> Array:
    """The sum over the last axis, each element as often as its weight says (a natural number).

    Lower bounds are real parts, and upper bounds imaginary ones. The products of either with the imaginary part of a
    weight, which is 0, are exactly 0, or NaN where a bound is no number: then nothing is known in any case.
    """
    factor = weights.astype(np.complex128)
    rows = np.ascontiguousarray(_pairs(values)).reshape(-1, values.shape[-1])
    result = np.empty(len(rows), INTERVALS)
    step = max(1, PIECE // values.shape[-1])
    for k in range(0, len(rows), step):
        bounds = rows[k : k + step].view(np.float64)
        sums, sizes = rows[k : k + step] @ factor, np.abs(bounds).view(np.complex128) @ factor
        result[k : k + step] = _bounded_pairs(sums, sizes, len(factor), _are_whole(bounds))
    return result.reshape(values.shape[:-1])


def _bounded_pairs(sums: Array, sizes: Array, terms: int, are_whole: bool) -> Array:
    """`_bounded`, of lower bounds as real parts and upper ones as imaginary parts."""
    return _bounded(sums.real, sums.imag, np.maximum(sizes.real, sizes.imag), terms, are_whole)


def total(values: Array, axis: int) -> Array:
    """The sum over an axis, which stays."""
    before, terms, after = values.shape[:axis], values.shape[axis], values.shape[axis + 1 :]
    if math.prod(after) < DENSE or not values.size:
        order = [k for k in range(values.ndim) if k != axis] + [axis]
        inner = rearranged(values, order, (*before, *after, terms))
        return np.expand_dims(weighted_sum(inner, np.ones(terms)), axis)
    slabs = np.ascontiguousarray(_pairs(values)).reshape(-1, terms, math.prod(after))
    result = np.empty((len(slabs), slabs.shape[2]), INTERVALS)
    count, step = (max(1, PIECE // size) for size in (slabs[0].size, slabs.shape[2]))
    for n in range(0, len(slabs), count):
        parts = [slabs[n : n + count, k : k + step] for k in range(0, terms, step)]
        bounds = [part.view(np.float64) for part in parts]
        sums = np.asarray(sum(part.sum(axis=1) for part in parts))
        sizes = np.asarray(sum(np.abs(each).view(np.complex128).sum(axis=1) for each in bounds))
        result[n : n + count] = _bounded_pairs(sums, sizes, terms, _are_whole(*bounds))
    return result.reshape((*before, 1, *after))


def running_sum(values: Array, axis: int) -> Array:
    """For each element along an axis, the sum of those up to it."""
    low, high = (np.cumsum(values[side], axis=axis) for side in ("low", "high"))
    size = np.cumsum(np.maximum(np.abs(values["low"]), np.abs(values["high"])), axis=axis)
    return _bounded(low, high, size, values.shape[axis], _are_whole(values["low"], values["high"]))


def add_at(result: Array, where: tuple[Array, ...], values: Array) -> None:
    """Add values to elements of an array, in place; some may be named several times."""
    are_whole = _are_whole(result["low"], result["high"], values["low"], values["high"])
    size = np.maximum(np.abs(result["low"]), np.abs(result["high"]))
    times = np.ones(result.shape)
    for side in ("low", "high"):
        np.add.at(result[side], where, values[side])
    np.add.at(size, where, np.maximum(np.abs(values["low"]), np.abs(values["high"])))
    np.add.at(times, where, 1.0)
    result[...] = _bounded(result["low"], result["high"], size, int(times.max(initial=1)), are_whole)


def matrix_product(x: Array, y: Array) -> Array:
    """Products of stacks of matrices, some rows at a time."""
    if y.size > x.size:
        return np.swapaxes(matrix_product(np.swapaxes(y, 1, 2), np.swapaxes(x, 1, 2)), 1, 2)
    result = np.empty((*x.shape[:2], y.shape[2]), INTERVALS)
    step = max(1, (BLOCK if min(y.shape[1:]) >= DENSE else PIECE) // sum(y.shape[1:]))
    for a, b, found in zip(x, y, result, strict=True):
        right = _middle_radius(b)
        for k in range(0, len(a), step):
            _multiply_into(found[k : k + step], _middle_radius(a[k : k + step]), right)
    return result


def _multiply_into(result: Array, x: tuple[Array, Array], y: tuple[Array, Array]) -> None:
    """Fill the result with the product of two matrices of intervals, by middles and radii.

    |x y - X Y| <= |X| ry + rx (|Y| + ry) for middles X, Y and radii rx, ry, and what products of floats lose (Rump,
    Fast and parallel interval arithmetic, 1999).
    """
    (a, ra), (b, rb) = x, y
    terms, size_a, size_b = len(b), np.abs(a), np.abs(b)
    product = np.matmul(a, b)
    if not ra.any() and not rb.any() and _are_whole(a, b):
        result[...] = _bounded(product, product, np.matmul(size_a, size_b), terms, are_whole=True)
        return
    off = np.matmul(size_a, rb + size_b * _growth(terms))
    if ra.any():
        off += np.matmul(ra, size_b + rb)
    grown, lost = 1 + _growth(terms), TINY if _may_underflow(size_a + ra, size_b + rb) else 0.0

    def bounds(centre: Array, far: Array) -> tuple[Array, Array]:
        far = far * grown + lost
        low, high = outward(centre - far, centre + far)
        odd = ~(np.isfinite(low) & np.isfinite(high))
        return (np.where(odd, np.nan, low), np.where(odd, np.nan, high)) if odd.any() else (low, high)

    _fill(bounds, result, [product, off])


def _middle_radius(values: Array) -> tuple[Array, Array]:
    """Middles, and radii that are large enough; both NaN for what is not finite."""
    low, high = values["low"], values["high"]
    centre = middle(values)
    far = np.maximum(high - centre, centre - low) * (1 + 2 * STEP)
    return np.where(np.isfinite(centre), centre, np.nan), far


def _may_underflow(a: Array, b: Array) -> bool:
    """Whether a product of elements that are not 0, or its rounding, may be lost."""
    least = [float(np.min(x, where=x > 0, initial=1.0)) for x in (a, b)]
    return math.prod(least) < TINY
