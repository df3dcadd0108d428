"""Simpler values for an argument, for inputs that a reader can take in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from hlo_verify.evaluate import Blocks, allows, nearest
from hlo_verify.evaluate.numbers import is_float
from hlo_verify.program.allowed_values import Values
from hlo_verify.program.ir import TensorType


def plainer(blocks: Blocks, type_: TensorType, allowed: Values | None) -> Iterator[Blocks]:
    """Simpler values for an argument that the user allows, the simplest first."""
    return (plain for plain in _plainer(blocks, type_) if allows(allowed, plain))


def _plainer(blocks: Blocks, type_: TensorType) -> Iterator[Blocks]:
    if type_.dtype == "i1" or blocks.values.size == 0:
        return
    for value in (0, 1):
        yield _filled(blocks, value)
    if is_float(type_.dtype):
        for step in (1.0, 0.5, 0.125):
            rounded = np.round(blocks.values / step) * step
            if not np.array_equal(rounded, blocks.values) and np.any(rounded):
                yield replace(blocks, values=rounded)


def filled(blocks: Blocks, value: int, type_: TensorType, allowed: Values | None) -> Blocks:
    """An argument of one number everywhere: that one, or one that the user allows."""
    if allowed is None or (allowed.admits(value, value) and value % allowed.multiple == 0):
        return _filled(blocks, value)
    if is_float(type_.dtype):
        return _filled(blocks, nearest(allowed, float(value)))
    least, greatest = allowed.integers
    return _filled(blocks, greatest // allowed.multiple * allowed.multiple if value > greatest else least)


def _filled(blocks: Blocks, value: float) -> Blocks:
    classes = tuple(np.zeros_like(each) for each in blocks.classes)
    return replace(blocks, classes=classes, values=np.full((1,) * blocks.values.ndim, value, blocks.values.dtype))
