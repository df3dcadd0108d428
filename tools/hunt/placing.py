"""Draw meshes, and where values lie on them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from math import prod

from tools.hunt.case import Spec

MESHES = (
    ((2,), 6), ((4,), 6), ((8,), 3), ((3,), 2), ((6,), 1), ((5,), 1),
    ((2, 2), 8), ((2, 4), 3), ((4, 2), 3), ((2, 3), 1), ((3, 2), 1), ((2, 2, 2), 1),
)  # fmt: skip
"""With how often they are drawn."""


def draw_mesh(rng: random.Random) -> tuple[int, ...]:
    meshes, weights = zip(*MESHES, strict=True)
    return rng.choices(meshes, weights)[0]


def draw_spec(
    shape: Sequence[int], axes: Mapping[str, int], rng: random.Random, *, even: bool = True, often: float = 0.6
) -> Spec:
    """Each axis splits one dimension, or none. Where it has to be `even`, shards divide their dimension."""
    spec: list[tuple[str, ...]] = [() for _ in shape]
    names = list(axes)
    rng.shuffle(names)
    for name in names:
        if not shape or rng.random() > often:
            continue
        fits = [d for d in range(len(shape)) if not even or divides(shape[d], (*spec[d], name), axes)]
        fits = [d for d in fits if shape[d] > 1]
        if fits:
            chosen = rng.choice(fits)
            spec[chosen] = (*spec[chosen], name)
    return tuple(spec)


def divides(size: int, names: Sequence[str], axes: Mapping[str, int]) -> bool:
    return size % prod(axes[name] for name in names) == 0
