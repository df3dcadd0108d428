"""What operations with windows and gaps compute, and random bits of a state, by numpy alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tools.fuzz.programs.elementwise import DTYPES, Array, combine
from tools.fuzz.programs.program import Kind, Node, identity

MIXED = np.uint64(0x9E3779B97F4A7C15)
"""An odd number whose multiples look random."""


def padded(a: Array, value: Array, low: Sequence[int], high: Sequence[int], inner: Sequence[int]) -> Array:
    """An array (inputs, devices, *shape) with edges, which may be negative, and with gaps between its elements."""
    sizes = [n + max(n - 1, 0) * gap for n, gap in zip(a.shape[2:], inner, strict=True)]
    wide = np.empty((*a.shape[:2], *sizes), a.dtype)
    wide[...] = value.reshape(value.shape + (1,) * len(sizes))
    wide[(slice(None), slice(None), *(slice(None, None, gap + 1) for gap in inner))] = a
    shape = [n + x + y for n, x, y in zip(sizes, low, high, strict=True)]
    found = np.empty((*a.shape[:2], *shape), a.dtype)
    found[...] = value.reshape(value.shape + (1,) * len(shape))
    kept = [slice(max(-x, 0), max(n + min(y, 0), 0)) for x, y, n in zip(low, high, sizes, strict=True)]
    places = [slice(max(x, 0), max(n - max(y, 0), 0)) for x, y, n in zip(low, high, shape, strict=True)]
    found[(slice(None), slice(None), *places)] = wide[(slice(None), slice(None), *kept)]
    return found


def windows(a: Array, node: Node, dtype: str) -> Array:
    """What is in each window along a dimension, reduced; past the ends is what a reducer leaves as it is."""
    dim, size, name = node.attributes["dim"], node.attributes["size"], node.attributes["combine"]
    by, apart = node.attributes["stride"], node.attributes["dilation"]
    ends = [[x if k == dim else 0 for k in range(a.ndim - 2)] for x in (*node.attributes["edges"], 0)]
    nothing = np.full(a.shape[:2], identity(name, dtype)).astype(a.dtype)
    wide = np.moveaxis(padded(a, nothing, *ends), 2 + dim, 2)
    reach = (size - 1) * apart + 1
    starts = range(0, wide.shape[2] - reach + 1, by)
    found = [combine(name, wide[:, :, start : start + reach : apart], 2) for start in starts]
    shape = (*wide.shape[:2], 0, *wide.shape[3:])
    return np.moveaxis(np.stack(found, 2) if found else np.empty(shape, a.dtype), 2, 2 + dim)


def bits(state: Array, results: Sequence[Kind]) -> list[Array]:
    """A new state and random bits: nobody knows which, but the same state gives the same."""
    with np.errstate(over="ignore"):
        key = np.zeros(state.shape[:2], np.uint64)
        for k in range(state.shape[2]):
            key = _mixed(key ^ state[:, :, k].astype(np.uint64))
        found = []
        for number, kind in enumerate(results):
            count = int(np.prod(kind.shape, dtype=int))
            places = np.arange(count, dtype=np.uint64).reshape(kind.shape) + np.uint64(1000 * (number + 1) + count)
            mixed = _mixed(key.reshape(key.shape + (1,) * len(kind.shape)) + places * MIXED)
            found.append((mixed >> np.uint64(64 - kind.bits)).astype(DTYPES[kind.dtype]))
    return found


def _mixed(a: Array) -> Array:
    a = (a ^ (a >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    a = (a ^ (a >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(a ^ (a >> np.uint64(31)))
