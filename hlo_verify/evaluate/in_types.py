"""Numbers that a floating-point type holds: what an argument of it may be."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from hlo_verify.evaluate.maps import Array
from hlo_verify.program.element_types import DTYPES, finfo

CHUNK = 1 << 20
"""So many elements are worked on at a time: on the way to one element there are several others."""


def part_type(dtype: str) -> str:
    """Of complex numbers the type of their parts, of others the type."""
    return dtype.removeprefix("complex<").removesuffix(">")


def rounded(values: Array, dtype: str) -> Array:
    """Each number as the type holds it, in place."""
    held = DTYPES[part_type(dtype)]
    for part in chunks(values):
        part[:] = part.astype(held)
    return values


def chunks(values: Array) -> Iterator[Array]:
    """The elements, not too many at a time."""
    flat = values.reshape(-1)
    return (flat[start : start + CHUNK] for start in range(0, flat.size, CHUNK))


def is_unsigned(dtype: str) -> bool:
    """Whether a type holds positive numbers alone."""
    return float(finfo(part_type(dtype)).min) > 0


def held_scale(scale: float, dtype: str) -> float:
    """The scale, or the nearest one at which a type holds [0.1, 1] times it as numbers that have all digits, or as many
    of them as there are."""
    limits = finfo(part_type(dtype))
    return min(max(scale, 16 * float(limits.smallest_normal)), float(limits.max))


def nearest_held(value: float, dtype: str, admits: Callable[[float], bool]) -> float:
    """The number, as the type holds it or the next one of the type, so that it is admitted; itself if none is."""
    limits, type_ = finfo(dtype), np.dtype(DTYPES[dtype]).type
    near = type_(min(max(value, float(limits.min)), float(limits.max)))
    for held in (near, *(np.nextafter(near, type_(end)) for end in (limits.max, limits.min))):
        if admits(float(held)):
            return float(held)
    return value
