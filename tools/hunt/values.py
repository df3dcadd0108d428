"""Arguments with small whole numbers, so that sums and products are exact in whatever order they are taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

DRAWS = 3
"""Different arguments of one case: any small numbers; all different; indices that lie outside too."""

Kind = tuple[str, tuple[int, ...], int, bool]
"""Type, sizes, what integers are below of, and whether all are different."""


def draw(kinds: Sequence[Kind], seed: int) -> list[np.ndarray[Any, Any]]:
    generator = np.random.default_rng(seed)
    return [_one(*kind, seed % DRAWS, generator) for kind in kinds]


def _one(
    dtype: str, shape: tuple[int, ...], below: int, distinct: bool, way: int, generator: np.random.Generator
) -> np.ndarray[Any, Any]:
    size = int(np.prod(shape))
    if dtype.startswith(("int", "uint")):
        if distinct:
            found = generator.permutation(max(below, size))[:size]
        elif below:
            low, high = (-below - 3, below + 3) if way == 2 else (0, below)
            found = generator.integers(max(low, 0) if dtype.startswith("uint") else low, high, size)
        else:
            found = generator.integers(-4, 5, size)
    elif way == 1:
        found = generator.permutation(size) - size // 2
    else:
        found = generator.integers(-3, 5, size)
    return np.asarray(found, dtype).reshape(shape)
