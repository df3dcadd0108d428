"""Random block-constant arguments that stay block-constant as a program takes them apart."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hlo_verify.evaluate.blocks import Blocks
from hlo_verify.evaluate.in_types import chunks, held_scale, is_unsigned, nearest_held, rounded
from hlo_verify.evaluate.maps import Array, first_of_each
from hlo_verify.evaluate.numbers import bounds, is_complex, is_integer, storage
from hlo_verify.program.allowed_values import Values

MOST_OF_WINDOW = 4096
"""Integers more than are needed of which different ones are drawn."""

IN_ORDER = 4096
"""Elements along a dimension in which a user says something of their order; where there are more, they are alike."""

DIMENSIONS = 32
"""Of so many dimensions maps are kept: a model has a dozen."""

CONTRACTED = 4096
"""The longest dimension that `default_scale` takes for one that weights are contracted in."""


Dimension = tuple[int, int]
"""A dimension: its size, and how many shards it has."""


def default_scale(shape: Sequence[int]) -> float:
    """The size of floats for which values stay moderate: one over the dimension that weights are contracted in.

    Block-constant elements add up in step, so that a sum over n of them grows like n, not like its square root. Vectors
    (biases, scales of norms) have size 1.
    """
    return 1.0 if len(shape) < 2 else 1.0 / max(1, min(CONTRACTED, max(shape[:-1])))


def random_argument(
    shape: Sequence[int],
    dtype: str,
    generator: np.random.Generator,
    *,
    tiles: Sequence[int] | None = None,
    scale: float | None = None,
    integers: int = 8,
    detail: int | Sequence[int] = 4,
    positive: bool = False,
    outside: int = 0,
    edges: bool = False,
    plain: Collection[Dimension] = (),
    real: type = np.float64,
    assumed: Values | None = None,
) -> Blocks:
    """A logical argument, for 1 device, of values that the user allows.

    A dimension that is no longer than `detail` (one number, or one for each dimension) has a class for each index. Any
    other has at most `detail` classes: one for each combination of a colour of the shard (of `tiles[k]`) and of a bit
    or two of the position in the shard, so that a reshape which takes powers of two apart makes no more of them. Which
    shards look alike, and which bits count, is the same for all arguments that are drawn from one generator. Dimensions
    that are `plain` are of one class.

    Floats are exact in their type, and ±[0.1, 1] times `scale` (`default_scale` of the shape where it is not given),
    positive ones if asked; integers are in [0, integers), and some as far `outside` of it if asked; one that is alone
    is above (1) or below (-1). With `edges`, they are such as wrap or are rounded in one way or another: the least and
    greatest integers and the like, and halves.
    """
    tiles = (1,) * len(shape) if tiles is None else tiles
    maps = [np.zeros(1, np.int64)]
    details = (detail,) * len(shape) if isinstance(detail, int) else detail
    if assumed is not None and shape and (assumed.ascending or assumed.distinct):
        details, plain = (*details[:-1], shape[-1] if shape[-1] <= IN_ORDER else 1), ()
    structure = structure_of(generator)
    maps += [
        classes_of(n, t, structure, 1 if (n, t) in plain else d) for n, t, d in zip(shape, tiles, details, strict=True)
    ]
    counts = [int(c.max(initial=0)) + 1 for c in maps]
    stored = storage(dtype, np.dtype(real))
    if dtype == "i1":
        return Blocks(tuple(maps), generator.integers(0, 2, counts).astype(bool))
    if assumed is not None and is_integer(dtype):
        is_wide = outside != 0 or edges
        drawn = _multiples_of(assumed, counts, integers, is_wide, generator)
        return Blocks(tuple(maps), arranged(assumed, drawn).astype(stored))
    size = default_scale(shape) if scale is None else scale
    if assumed is not None:
        values = rounded(_floats(counts, held_scale(size, dtype), positive, generator), dtype)
        allowed = arranged(assumed, _floats_of(assumed, values, dtype, generator))
        return Blocks(tuple(maps), allowed.astype(stored, copy=False))
    if edges:
        return Blocks(tuple(maps), _edges(counts, dtype, positive, generator).astype(stored))
    if is_integer(dtype):
        limit = min(integers, bounds(dtype)[1] + 1)
        drawn = _integers(counts, limit, generator)
        if outside:
            low, high = bounds(dtype)
            away = generator.choice([-limit, 0, 0, limit], counts) if drawn.size > 1 else outside * limit
            drawn = np.clip(drawn + away, low, min(high, bounds("i64")[1]))
        return Blocks(tuple(maps), drawn.astype(stored))
    size = held_scale(size, dtype)
    values = rounded(_floats(counts, size, positive or is_unsigned(dtype), generator), dtype)
    if is_complex(dtype):
        values = values + 1j * rounded(_floats(counts, size, positive, generator), dtype)
    return Blocks(tuple(maps), values.astype(stored, copy=False))


def _floats(counts: Sequence[int], scale: float, positive: bool, generator: np.random.Generator) -> Array:
    values = generator.uniform(0.1, 1.0, counts)
    for part in chunks(values):
        part *= scale
        if not positive:
            part *= generator.choice([-1.0, 1.0], part.size)
    return values


def _edges(counts: Sequence[int], dtype: str, positive: bool, generator: np.random.Generator) -> Array:
    """Numbers at which operations on a type change what they do."""
    if is_integer(dtype):
        low, high = bounds(dtype)
        middle = (high + low + 1) // 2
        near = {edge + step for edge in (low, middle, high // 2 + 1, 0, high) for step in (-1, 0, 1)}
        every = generator.permutation(np.array([n for n in sorted(near) if low <= n <= high], object))
        return np.resize(every, math.prod(counts)).reshape(counts)
    halves = generator.integers(1 if positive else -9, 10, counts) / 2
    return rounded(np.asarray(np.where(halves == 0, 0.5, np.abs(halves) if is_unsigned(dtype) else halves)), dtype)


def _integers(counts: Sequence[int], limit: int, generator: np.random.Generator) -> Array:
    """Random integers, spread over their range so that few are equal; every other one at the border of a shard."""
    total = math.prod(counts)
    steps = (generator.uniform() + np.arange(total) + generator.uniform(0, 0.5, total)) * (limit / total) % limit
    pieces = 2 ** generator.integers(1, max(2, limit.bit_length()), total)
    local = -(-limit // pieces)
    borders = steps.astype(np.int64) // local * local - generator.integers(0, 2, total)
    values = np.where(np.arange(total) % 2 == 0, steps, np.clip(borders, 0, limit - 1))
    return generator.permutation(values.astype(np.int64)).reshape(counts)


def _integers_of(
    assumed: Values, counts: Sequence[int], reach: int, is_wide: bool, generator: np.random.Generator
) -> Array:
    """Integers that the user allows: of those that are in [0, reach), where there are such; else, and if asked, of all,
    the first and the last among them and those next to that interval."""
    least, greatest = assumed.integers
    if not is_wide and least < reach and greatest >= 0:
        least, greatest = max(least, 0), min(greatest, reach - 1)
        return least + _integers(counts, greatest - least + 1, generator)
    total = math.prod(counts)
    near = {least, least + 1, greatest - 1, greatest, (least + greatest) // 2, -reach, -1, 0, reach - 1, reach}
    ends = [n for n in sorted(near) if least <= n <= greatest]
    drawn = [least + int(u * (greatest - least + 1)) for u in generator.uniform(size=total)]
    chosen = generator.integers(0, len(ends) + 2, total)
    values = [ends[k] if k < len(ends) else min(n, greatest) for k, n in zip(chosen, drawn, strict=True)]
    return np.array(values, object).reshape(counts)


def _multiples_of(
    assumed: Values, counts: Sequence[int], reach: int, is_wide: bool, generator: np.random.Generator
) -> Array:
    """Integers that the user allows: multiples, and different ones along the last dimension, if that is said."""
    least, greatest = assumed.integers
    m = assumed.multiple
    whole = Values(-(-least // m), greatest // m + 1, (False, True))
    if not assumed.distinct:
        return _integers_of(whole, counts, -(-reach // m), is_wide, generator) * m
    first, last = whole.integers
    size = counts[-1] if counts[1:] else 1
    start = 0 if not is_wide and first <= 0 and last >= size else first
    window = min(last - start + 1, size if is_wide else max(size, -(-reach // m)), MOST_OF_WINDOW + size)
    rows = [start + generator.permutation(window)[:size] for _ in range(math.prod(counts) // max(size, 1))]
    return np.array(rows, object).reshape(counts) * m


def arranged(assumed: Values, values: Array) -> Array:
    """The elements in order along the last dimension, if that is said of them."""
    return np.sort(values, axis=-1) if assumed.ascending and values.ndim > 1 else values


def _floats_of(assumed: Values, values: Array, dtype: str, generator: np.random.Generator) -> Array:
    """The floats, with others in the place of those that the user does not allow."""
    flat = values.reshape(-1)
    for k, value in enumerate(flat):
        if not assumed.admits(value, value):
            flat[k] = nearest(assumed, float(-value), dtype, float(generator.uniform()))
    return values


def nearest(assumed: Values, value: float, dtype: str, share: float = 0.5) -> float:
    """A number of the type that the user allows: the given one if it is; else one that is such a share of the way from
    the least to the greatest, or beyond the only bound by as much as the given one is away from it."""

    def is_allowed(number: float) -> bool:
        return assumed.admits(number, number)

    least, greatest = (None if bound is None else float(bound) for bound in (assumed.least, assumed.greatest))
    away = abs(value) or 1.0
    if is_allowed(value):
        found = value
    elif least is not None and greatest is not None:
        found = least + (greatest - least) * (share / 2 + 0.25) if least < greatest else least
    else:
        found = least + away if least is not None else (greatest or 0.0) - away
    return nearest_held(found, dtype, is_allowed)


def allows(assumed: Values | None, blocks: Blocks) -> bool:
    """Whether all elements of an argument are such as the user allows."""
    if assumed is None or blocks.values.size == 0:
        return True
    if not assumed.admits(blocks.values.min().item(), blocks.values.max().item()):
        return False
    if assumed.multiple != 1 and any(int(value) % assumed.multiple for value in blocks.values.flat):
        return False
    if not (assumed.ascending or assumed.distinct) or len(blocks.shape) == 0:
        return True
    rows = blocks.values[..., blocks.classes[-1]]
    in_order = np.sort(rows, axis=-1)
    if assumed.ascending and not np.array_equal(rows, in_order):
        return False
    return not assumed.distinct or not (in_order[..., 1:] == in_order[..., :-1]).any()


@lru_cache(maxsize=DIMENSIONS)
def one_class(size: int) -> Array:
    """The map of a dimension of that size whose indices are all alike; one object, which nobody writes to."""
    found = np.zeros(size, np.int64)
    found.flags.writeable = False
    return found


@lru_cache(maxsize=DIMENSIONS)
def classes_of(size: int, tiles: int, structure: Structure, detail: int) -> Array:
    """A map of a dimension of that size, split in so many tiles, into at most `detail` classes, if not fewer. It is one
    object for all arguments: those of a train step with 126 layers took 2 GB. Nobody writes to it."""
    found = _classes_of(size, tiles, structure, detail)
    found.flags.writeable = False
    return found


def _classes_of(size: int, tiles: int, structure: Structure, detail: int) -> Array:
    if size <= max(detail, 1):
        return np.arange(size)
    if detail <= 1:
        return one_class(size)
    local = -(-size // tiles)
    shard, position = np.arange(size) // local, np.arange(size) % local
    bits = _log2(detail)
    colours = 1
    if tiles > 1:
        colours = min(tiles, detail if local == 1 else max(2, detail // 2))
        while colours << bits > detail and bits:
            bits -= 1
    number = structure.colours(int(shard.max()) + 1, colours)[shard]
    return first_of_each(number * 2**bits + structure.bits(position, local, bits))[1]


def _log2(n: int) -> int:
    return n.bit_length() - 1


@dataclass(frozen=True, slots=True)
class Structure:
    """Which shards look alike and which bits of a position count: a function of a seed, the same for all arguments.

    Dimensions of different arguments that meet in a program are then split alike, and few classes come of them.
    """

    seed: int

    def colours(self, count: int, wanted: int) -> Array:
        """A random colour for each of some shards; each colour occurs."""
        if wanted >= count:
            return np.arange(count)
        generator = np.random.default_rng((self.seed, count, wanted))
        more = generator.integers(0, wanted, count - wanted)
        return generator.permutation(np.concatenate([np.arange(wanted), more]))

    def bits(self, position: Array, local: int, count: int) -> Array:
        """A number made of a few bits of the position, such as divide the shard evenly if there are any."""
        if local == 1 or not count:
            return np.zeros_like(position)
        usable = _log2(local & -local) or _log2(local)
        order = np.random.default_rng((self.seed, 1)).permutation(32)
        chosen = order[order < usable][:count]
        return np.asarray(sum(((position >> int(b)) & 1) << n for n, b in enumerate(chosen)))


def structure_of(generator: np.random.Generator) -> Structure:
    """The structure that belongs to a generator: one for all draws from it."""
    entropy = getattr(generator.bit_generator.seed_seq, "entropy", None)
    parts = entropy if isinstance(entropy, list | tuple) else [entropy]
    return Structure(sum(int(part or 0) * (k + 1) for k, part in enumerate(parts)) % (1 << 32))
