"""How much memory the values of an evaluation take that are held at one time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hlo_verify.evaluate.blocks import Blocks
from hlo_verify.evaluate.maps import Array

SMALL = 1 << 10
"""Arrays of no more bytes are not counted."""

BALL = 16
"""Floats of 64 bits that one ball takes as much memory as."""


@dataclass(slots=True)
class Held:
    """The arrays of values, each once, however many values are views of it."""

    elements: float = 0.0
    """In all of them, as if each were a float of 64 bits."""
    _values: dict[int, int] = field(default_factory=dict)
    """How many values are views of an array, by its id, which is taken while it is held."""

    def add(self, value: Blocks | None) -> None:
        """One more value is held."""
        array = _whole(value)
        if array is None:
            return
        count = self._values.get(id(array), 0)
        self._values[id(array)] = count + 1
        if not count:
            self.elements += _elements(array)

    def drop(self, value: Blocks | None) -> None:
        """A value that was held is no longer."""
        array = _whole(value)
        if array is None:
            return
        count = self._values.pop(id(array)) - 1
        if count:
            self._values[id(array)] = count
        else:
            self.elements -= _elements(array)


def _whole(value: Blocks | None) -> Array | None:
    """The array that a value's is a part or a view of; None where that is hardly any memory."""
    if value is None or value.values.nbytes <= SMALL:
        return None
    array = value.values
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _elements(array: Array) -> float:
    return array.size * BALL if array.dtype == object else array.nbytes / 8
