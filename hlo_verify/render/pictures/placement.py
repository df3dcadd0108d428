"""Which device holds which block of a tensor, as plain data: what `mesh` draws.

A block is told by its range of each dimension. Devices that hold copies name one block. Addends of a value that is not
summed yet are blocks that differ in their `addend` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Box = tuple[tuple[int, int], ...]
"""For each dimension the first index, and the one behind the last."""


@dataclass(frozen=True, slots=True)
class Mesh:
    """Named axes over devices, outermost first. `devices` has the device at each position, in row-major order; it is
    empty where that is the position itself."""

    axes: tuple[tuple[str, int], ...]
    devices: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        found = 1
        for _, size in self.axes:
            found *= size
        return found

    def device(self, position: Sequence[int]) -> int:
        """The device at a position, which has a number for each axis."""
        number = 0
        for at, (_, size) in zip(position, self.axes, strict=True):
            number = number * size + at
        return self.devices[number] if self.devices else number


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a tensor. `box` are its indices; where they are no ranges, or not known, it is None and `said` tells
    what is known. `addend` numbers it among values that are to be summed. Of what is no shard of any logical value
    `is_shard` is false."""

    box: Box | None = None
    said: str = ""
    addend: int | None = None
    is_shard: bool = True


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a tensor lies: `holds[device]` is a number of a block, or None where the device has nothing of it."""

    tensor: str
    shape: tuple[int, ...]
    blocks: tuple[Block, ...]
    holds: tuple[int | None, ...]

    def __post_init__(self) -> None:
        if len(set(self.blocks)) != len(self.blocks):
            raise ValueError("a block is named twice, so that its copies would not look alike")
        if not all(held is None or 0 <= held < len(self.blocks) for held in self.holds):
            raise ValueError("a device holds a block that there is not")
        if not all(block.box is None or len(block.box) == len(self.shape) for block in self.blocks):
            raise ValueError(f"a block's ranges are not those of {len(self.shape)} dimensions")

    def held(self, device: int) -> int | None:
        return self.holds[device] if device < len(self.holds) else None

    @property
    def holders(self) -> tuple[tuple[int, ...], ...]:
        """The devices of each block."""
        found: list[list[int]] = [[] for _ in self.blocks]
        for device, held in enumerate(self.holds):
            if held is not None:
                found[held].append(device)
        return tuple(map(tuple, found))


def of_tiles(
    tensor: str,
    shape: Sequence[int],
    tiles: Sequence[int],
    coordinates: Sequence[Sequence[int]],
    addends: Sequence[int] | None = None,
    only: int | None = None,
) -> Placement:
    """The placement that a sharding states: `tiles` shards along each dimension, of which device d holds the one at
    `coordinates[d]`, as `hlo_verify.program.sharding.Sharding` has them. The last shard of a dimension may be short.

    >>> of_tiles("x", (8,), (3,), [[0], [1], [2]]).blocks[2].box
    ((6, 8),)
    """
    pieces = [-(-size // count) for size, count in zip(shape, tiles, strict=True)]
    numbers: dict[Block, int] = {}
    holds: list[int | None] = []
    for device, at in enumerate(coordinates):
        if only is not None and device != only:
            holds.append(None)
            continue
        box = tuple(
            (min(int(c) * piece, size), min((int(c) + 1) * piece, size))
            for c, piece, size in zip(at, pieces, shape, strict=True)
        )
        block = Block(box, addend=None if addends is None else int(addends[device]))
        holds.append(numbers.setdefault(block, len(numbers)))
    return Placement(tensor, tuple(shape), tuple(numbers), tuple(holds))


def no_shard(tensor: str, shape: Sequence[int], devices: int, said: str = "") -> Placement:
    """What all devices have of a value that is no shard of any logical one."""
    return Placement(tensor, tuple(shape), (Block(None, said, is_shard=False),), (0,) * devices)


def told(block: Block, shape: Sequence[int]) -> str:
    """A block as an index.

    >>> told(Block(((0, 4), (0, 16))), (8, 16)), told(Block(()), ())
    ('[0:4, :]', 'the value')
    """
    if block.box is None:
        return block.said or "not known"
    if not block.box:
        return "the value"
    if all(whole == ":" for whole in ranges(block, shape)):
        return "all of it"
    return f"[{', '.join(ranges(block, shape))}]"


def ranges(block: Block, shape: Sequence[int]) -> list[str]:
    """The range of each dimension; of a whole one `:`."""
    pairs = zip(block.box or (), shape, strict=True)
    return [":" if (low, high) == (0, size) else f"{low}:{high}" for (low, high), size in pairs]
