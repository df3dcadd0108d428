"""Random block-constant arguments that stay block-constant as a program takes them apart."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hlo_verify.evaluate.blocks import Blocks
from hlo_verify.evaluate.maps import Array, first_of_each
from hlo_verify.evaluate.numbers import bounds, is_complex, is_integer, storage


def default_scale(shape: Sequence[int]) -> float:
    """The size of floats so that a matrix product keeps the size of what it is multiplied with.

    That is one over the square root of the dimension that weights are usually contracted in, the last but one.
    """
    return 1.0 if len(shape) < 2 else 1.0 / math.sqrt(max(1, shape[-2]))


def random_argument(
    shape: Sequence[int],
    dtype: str,
    generator: np.random.Generator,
    *,
    tiles: Sequence[int] | None = None,
    scale: float | None = None,
    integers: int = 8,
    detail: int = 4,
    positive: bool = False,
    real: type = np.float64,
) -> Blocks:
    """A logical argument, for 1 device.

    A dimension that is no longer than `detail` has a class for each index. Any other has at most `detail` classes: one
    for each combination of a colour of the shard (of `tiles[k]`) and of a bit or two of the position in the shard, so
    that a reshape which takes powers of two apart makes no more of them.

    Floats are ±[0.1, 1] times `scale` (`default_scale` of the shape where it is not given), positive ones if asked;
    integers are in [0, integers).
    """
    tiles = (1,) * len(shape) if tiles is None else tiles
    maps = [np.zeros(1, np.int64)]
    maps += [classes_of(n, t, generator, detail) for n, t in zip(shape, tiles, strict=True)]
    counts = [int(c.max(initial=0)) + 1 for c in maps]
    kind = storage(dtype, np.dtype(real))
    if dtype == "i1":
        return Blocks(tuple(maps), generator.integers(0, 2, counts).astype(bool))
    if is_integer(dtype):
        return Blocks(tuple(maps), _integers(counts, min(integers, bounds(dtype)[1] + 1), generator).astype(kind))
    size = default_scale(shape) if scale is None else scale
    values = _floats(counts, size, positive, generator)
    if is_complex(dtype):
        return Blocks(tuple(maps), (values + 1j * _floats(counts, size, positive, generator)).astype(kind))
    return Blocks(tuple(maps), values.astype(kind))


def _floats(counts: Sequence[int], scale: float, positive: bool, generator: np.random.Generator) -> Array:
    values = generator.uniform(0.1, 1.0, counts) * scale
    return values if positive else values * generator.choice([-1.0, 1.0], counts)


def _integers(counts: Sequence[int], limit: int, generator: np.random.Generator) -> Array:
    """Random integers, spread over their range so that few are equal."""
    total = math.prod(counts)
    start = generator.uniform(0, limit)
    values = (start + np.arange(total) * limit / total + generator.uniform(0, 0.5, total) * limit / total) % limit
    return generator.permutation(values.astype(np.int64)).reshape(counts)


def classes_of(size: int, tiles: int, generator: np.random.Generator, detail: int) -> Array:
    """A random map of a dimension of that size, cut in so many tiles, into at most `detail` classes, if not fewer."""
    if size <= max(detail, 1):
        return np.arange(size)
    if detail <= 1:
        return np.zeros(size, np.int64)
    local = -(-size // tiles)
    shard, position = np.arange(size) // local, np.arange(size) % local
    cut = tiles > 1
    bits = _log2(detail) - (1 if cut else 0)
    wanted = min(tiles, detail if local == 1 else max(2, detail // 2)) if cut else 1
    while wanted << bits > detail and bits:
        bits -= 1
    number = _colours(shard.max() + 1, wanted, generator)[shard]
    number = number * 2**bits + _bits(position, local, bits, generator)
    return first_of_each(number)[1]


def _log2(n: int) -> int:
    return n.bit_length() - 1


def _colours(count: int, wanted: int, generator: np.random.Generator) -> Array:
    """A random colour for each shard; each colour occurs."""
    if wanted >= count:
        return np.arange(count)
    return generator.permutation(np.concatenate([np.arange(wanted), generator.integers(0, wanted, count - wanted)]))


def _bits(position: Array, local: int, count: int, generator: np.random.Generator) -> Array:
    """A number made of a few random bits of the position, low ones that divide the shard evenly if there are any."""
    if local == 1 or not count:
        return np.zeros_like(position)
    even = _log2(local & -local)
    usable = even if even else _log2(local)
    chosen = generator.permutation(usable)[:count]
    if not len(chosen):
        return (position > 0).astype(np.int64)
    return np.asarray(sum(((position >> int(b)) & 1) << n for n, b in enumerate(chosen)))
