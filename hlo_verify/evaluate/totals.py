"""Sums, differences and multiples of elements as they are held: floats, integers, balls or intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlo_verify.evaluate import balls, enclosures, interval_functions, intervals
from hlo_verify.evaluate.intervals import INTERVALS
from hlo_verify.evaluate.maps import Array

ENCLOSED = {
    "maximum": np.frompyfunc(enclosures.larger, 2, 1),
    "minimum": np.frompyfunc(enclosures.smaller, 2, 1),
}
UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
}


def ufunc(reducer: str, values: Array) -> Any:
    """How elements of an array are combined; objects are enclosures, or integers of which some are undefined."""
    if values.dtype == INTERVALS:
        return interval_functions.COMBINED[reducer]
    return UFUNCS[reducer] if values.dtype != object else ENCLOSED.get(reducer, UFUNCS[reducer])


def scaled(values: Array, factors: Array) -> Array:
    """Elements times natural numbers."""
    if (factors == 1).all() and np.broadcast_shapes(values.shape, factors.shape) == values.shape:
        return values
    if values.dtype == INTERVALS:
        return intervals.scaled(values, factors)
    return np.asarray(values * factors.astype(values.dtype))


def rearranged(values: Array, order: Sequence[int], shape: Sequence[int]) -> Array:
    """The elements with the axes in that order, and then in that shape."""
    if values.dtype == INTERVALS:
        return intervals.rearranged(values, order, shape)
    return np.transpose(values, order).reshape(shape)


def total(values: Array, axis: int) -> Array:
    """The sum over an axis, which stays."""
    if values.dtype == INTERVALS:
        return intervals.total(values, axis)
    return np.asarray(values.sum(axis=axis, keepdims=True, dtype=values.dtype))


def weighted_sum(values: Array, weights: Array) -> Array:
    """The sum over the last axis, each element as often as its weight says."""
    if values.dtype == INTERVALS:
        return intervals.weighted_sum(values, weights)
    return np.asarray(values @ weights.astype(values.dtype))


def running_sum(values: Array, axis: int) -> Array:
    """For each element along an axis, the sum of those up to it."""
    if values.dtype == INTERVALS:
        return intervals.running_sum(values, axis)
    return np.asarray(np.cumsum(values, axis=axis, dtype=values.dtype))


def difference(a: Array, b: Array) -> Array:
    """`a - b`."""
    return interval_functions.REAL["subtract"](a, b) if a.dtype == INTERVALS else np.asarray(a - b)


def negated(values: Array) -> Array:
    return interval_functions.negated(values) if values.dtype == INTERVALS else np.asarray(-values)


def matrix_product(x: Array, y: Array) -> Array:
    """Products of stacks of matrices."""
    if x.dtype == INTERVALS:
        return intervals.matrix_product(x, y)
    return balls.matrix_product(x, y) if x.dtype == object else np.matmul(x, y)


def is_zero(values: Array) -> bool:
    """Whether all elements are exactly zero."""
    if values.dtype == INTERVALS:
        return not (values["low"].any() or values["high"].any())
    return balls.is_zero(values)


def certain_order(key: Array) -> Array:
    """The stable order, ascending, along the first axis. Raises `UnknownError` where enclosures overlap."""
    if key.dtype == INTERVALS:
        return interval_functions.order(key)
    return balls.certain_order(key) if key.dtype == object else np.argsort(key, axis=0, kind="stable")


def rounded(values: Array) -> Array:
    """Enclosures of real numbers as floats, NaN where nothing is known; native values as they are."""
    if values.dtype == INTERVALS:
        return intervals.middle(values)
    return balls.rounded(values) if values.dtype == object else values


def are_same(a: Array, b: Array) -> Array:
    """Element by element, which enclosures are of numbers that are surely equal."""
    if a.dtype == INTERVALS:
        return np.asarray(intervals.is_point(a) & intervals.is_point(b) & (a["low"] == b["low"]))
    return balls.are_same(a, b)


def without(values: Array, gap: Array) -> Array:
    """The enclosures or integers, with nothing known of those where there is a gap."""
    return intervals.without(values, gap) if values.dtype == INTERVALS else balls.without(values, gap)


def is_enclosure(values: Array) -> bool:
    """Whether an array holds enclosures, or integers of which some are undefined."""
    return values.dtype == object or values.dtype == INTERVALS
