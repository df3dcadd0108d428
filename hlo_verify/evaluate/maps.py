"""Class maps: for every index of a dimension, the class that it falls into.

A map is an array of class numbers, each of which occurs. Maps are interned, so that equal ones are one object and
what was computed for a pair of them is found again.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
ClassMap = npt.NDArray[np.int64]
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Joint:
    """The common refinement of two maps: its own map, and the class of either that each of its classes lies in.

    None for a side whose map it is.
    """

    classes: ClassMap
    left: ClassMap | None
    right: ClassMap | None


@dataclass(slots=True)
class Maps:
    """The maps of an evaluation."""

    _interned: dict[tuple[int, bytes], ClassMap] = field(default_factory=dict)
    _known: dict[int, ClassMap] = field(default_factory=dict)
    _joints: dict[tuple[int, int], Joint] = field(default_factory=dict)
    _weights: dict[int, Array] = field(default_factory=dict)
    _constants: dict[int, ClassMap] = field(default_factory=dict)
    _made: dict[tuple[Any, ...], tuple[list[Any], Any]] = field(default_factory=dict)

    def once(self, make: Callable[..., Made], *given: Any) -> Made:
        """What is made of some objects and integers, once of the same ones: nobody writes to them, or to it. They are
        kept, so that their ids stay taken, but for these maps themselves."""
        key = (make, *(each if isinstance(each, int) else id(each) for each in given))
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = [each for each in given if each is not self], make(*given)
        made: Made = found[1]
        return made

    def intern(self, classes: Array) -> ClassMap:
        """The one object for this map."""
        if id(classes) in self._known:
            return classes
        plain = np.ascontiguousarray(classes, np.int64)
        key = (len(plain), hashlib.blake2b(plain.data, digest_size=16).digest())
        found = self._interned.get(key)
        if found is None:
            if plain.flags.writeable:
                plain = plain.copy() if plain.base is not None else plain
                plain.flags.writeable = False
            self._interned[key] = self._known[id(plain)] = found = plain
        return found

    def constant(self, size: int) -> ClassMap:
        """One class for all indices."""
        if size not in self._constants:
            self._constants[size] = self.intern(np.zeros(size, np.int64))
        return self._constants[size]

    def distinct(self, size: int) -> ClassMap:
        """A class for each index."""
        return self.intern(np.arange(size))

    def weights(self, classes: ClassMap) -> Array:
        """How many indices fall into each class."""
        classes = self.intern(classes)
        if id(classes) not in self._weights:
            self._weights[id(classes)] = np.bincount(classes)
        return self._weights[id(classes)]

    def joint(self, a: ClassMap, b: ClassMap) -> Joint:
        """The common refinement of two maps of one length, which is not 0."""
        a, b = self.intern(a), self.intern(b)
        if a is b:
            return Joint(a, None, None)
        key = (id(a), id(b))
        if key not in self._joints:
            self._joints[key] = self._refine(a, b)
        return self._joints[key]

    def _refine(self, a: ClassMap, b: ClassMap) -> Joint:
        na, nb = int(a.max()) + 1, int(b.max()) + 1
        codes, which = renumber(a * nb + b, na * nb)
        left, right = codes // nb, codes % nb
        if len(codes) == na:
            return Joint(a, None, right)
        if len(codes) == nb:
            return Joint(b, left[np.argsort(right)], None)
        return Joint(self.intern(which), left, right)


PIECE = 1 << 14
"""How many elements are worked on at a time: such as fit into a processor's cache."""


def in_pieces(*arrays: Array) -> Iterator[tuple[tuple[int, ...], list[Array]]]:
    """Arrays of one rank that broadcast, a piece at a time, in the order of their elements: where each piece starts,
    and what it has of every array."""
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    size = math.prod(shape)
    if size <= PIECE:
        yield (0,) * len(shape), list(arrays)
        return
    axis = next(k for k, count in enumerate(shape) if count > 1)
    step = max(1, PIECE * shape[axis] // size)
    for k in range(0, shape[axis], step):
        part = (slice(None),) * axis + (slice(k, k + step),)
        for start, parts in in_pieces(*(a[part] if a.shape[axis] > 1 else a for a in arrays)):
            yield (*start[:axis], k + start[axis], *start[axis + 1 :]), parts


def renumber(codes: Array, limit: int) -> tuple[Array, Array]:
    """The different codes, all below `limit`, in order, and the number of each code among them."""
    if limit > 16 * codes.size + 1024:
        found, which = np.unique(codes, return_inverse=True)
        return found, which.reshape(codes.shape)
    present = np.zeros(limit, np.bool_)
    present[codes] = True
    found = np.flatnonzero(present)
    if len(found) == limit:
        return found, codes
    number = np.cumsum(present) - 1
    return found, number[codes]


def unique_rows(matrix: Array) -> tuple[Array, Array]:
    """Of a matrix of integers, the first of each group of equal rows and the group of each row, by first occurrence."""
    if len(matrix) == 1 or matrix.shape[1] == 0:
        return np.zeros(min(len(matrix), 1), np.int64), np.zeros(len(matrix), np.int64)
    if matrix.shape[1] == 1:
        keys = matrix[:, 0]
    else:
        generator = np.random.default_rng(matrix.shape[1])
        factors = generator.integers(1, 1 << 62, matrix.shape[1], dtype=np.int64) * 2 + 1
        keys = (matrix.astype(np.int64, copy=False) * factors).sum(axis=1)
    first, which = first_of_each(keys)
    if matrix.shape[1] > 1 and not np.array_equal(matrix[first[which]], matrix):  # two rows with one hash
        _, first, which = np.unique(matrix, axis=0, return_index=True, return_inverse=True)
        which = which.reshape(-1)
    return first, which


def first_of_each(keys: Array) -> tuple[Array, Array]:
    """Where each different key occurs first, in order of occurrence, and which of them each key is."""
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[which.reshape(-1)]


def rectangle(matrix: Array) -> tuple[Array, Array, Array]:
    """A matrix of classes as rows and columns: the group of each row, the group of each column, and their table."""
    rows, row_of = unique_rows(matrix)
    reduced = matrix[rows]
    columns, column_of = unique_rows(np.ascontiguousarray(reduced.T))
    return row_of, column_of, reduced[:, columns]
