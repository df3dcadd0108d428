"""Shapes of HLO: element type, sizes, layout with its tiles and memory space, and how many bytes they take.

Source: xla/shape.proto, xla/layout.cc (how layouts are printed), docs/tiled_layout.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod

_ARRAY = re.compile(r"([a-z]\w*)\[([^\]]*)\](?:\{([^{}]*)\})?")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_TILE = re.compile(r"\(([^)]*)\)")
_SPACE = re.compile(r"S\((\d+)\)")
_ELEMENT_BITS = re.compile(r"E\((\d+)\)")
_SPLIT = re.compile(r"SC\(\d+:([^)]*)\)")
_BITS = re.compile(r"(?:bf|[sufc])(\d+)")
_SPECIAL = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|[()\[\]{},]')
_OPEN, _CLOSED = frozenset("([{"), frozenset(")]}")


@dataclass(frozen=True, slots=True)
class Array:
    """An array: `dtype` as HLO spells it, a size for each dimension, their `order` in memory from minor to major, tiles
    from outer to inner, the memory `space`, and in how many `pieces` it is split over cores. Tokens and opaque values
    have no sizes and no bytes."""

    dtype: str
    sizes: tuple[int, ...] = ()
    order: tuple[int, ...] | None = None
    tiles: tuple[tuple[int | None, ...], ...] = ()
    space: int = 0
    element_bits: int = 0
    pieces: int = 1

    @property
    def bits(self) -> int:
        """Of one element."""
        return self.element_bits or bits_of(self.dtype)

    @property
    def count(self) -> int:
        return prod(self.sizes)

    @property
    def bytes(self) -> int:
        """Of all elements, without the padding of tiles."""
        return (self.count * self.bits + 7) // 8 if self.dtype not in ("token", "opaque") else 0

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.sizes))}]"


@dataclass(frozen=True, slots=True)
class Tuple:
    """A tuple of shapes."""

    parts: tuple[Shape, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.parts))})"


Shape = Array | Tuple
Path = tuple[int, ...]
"""Where in a shape: `()` is the whole, `(1, 0)` the first part of the second part."""


def integers(text: str | None) -> tuple[int, ...]:
    """The numbers of `1,2`, of nothing none. Raises ValueError for what are no numbers."""
    return tuple(int(number) for number in text.split(",") if number.strip()) if text else ()


def spelled(path: Path) -> str:
    """A path as HLO writes it: `{1,0}`."""
    return f"{{{','.join(map(str, path))}}}"


def leaves(shape: Shape, path: Path = ()) -> Iterator[tuple[Path, Array]]:
    """The arrays of a shape, and where they are."""
    if isinstance(shape, Array):
        yield path, shape
        return
    for number, part in enumerate(shape.parts):
        yield from leaves(part, (*path, number))


def at(shape: Shape, path: Path) -> Shape | None:
    """What a shape is at a path; None where it is not so deep."""
    for number in path:
        if not isinstance(shape, Tuple) or number >= len(shape.parts):
            return None
        shape = shape.parts[number]
    return shape


def same(a: Shape, b: Shape) -> bool:
    """Whether two shapes have the same structure, element types and sizes, whatever their layouts."""
    if isinstance(a, Array) and isinstance(b, Array):
        return (a.dtype, a.sizes) == (b.dtype, b.sizes)
    if isinstance(a, Tuple) and isinstance(b, Tuple):
        return len(a.parts) == len(b.parts) and all(map(same, a.parts, b.parts))
    return False


def bits_of(dtype: str) -> int:
    """Of one element of a type; 0 for what has no bytes of its own."""
    if dtype == "pred":
        return 8
    found = _BITS.match(dtype)
    return int(found[1]) if found else 0


@lru_cache(maxsize=1 << 14)
def parse_shape(text: str) -> Shape:
    """A shape as HLO text spells it. Raises ValueError for what is none."""
    text = _COMMENT.sub("", text).strip()
    if text.startswith("b(") and text.endswith(")"):  # a buffer of that shape
        return parse_shape(text[2:-1])
    if not text.startswith("("):
        return _array(text)
    if not text.endswith(")"):
        raise ValueError(f"{text!r} is no shape")
    return Tuple(tuple(parse_shape(part) for part in split(text[1:-1])))


def _array(text: str) -> Array:
    found = _ARRAY.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no shape")
    dtype, sizes_text, layout = found.groups()
    sizes = tuple(int(size.strip().lstrip("<=")) for size in sizes_text.split(",") if size.strip())
    if layout is None:
        return Array(dtype, sizes)
    order_text, _, rest = layout.partition(":")
    order = integers(order_text)
    tiles_text = re.match(r"T((?:\([^)]*\))+)", rest)
    tiles = () if tiles_text is None else tuple(_tile(tile) for tile in _TILE.findall(tiles_text[1]))
    space, element_bits = _SPACE.search(rest), _ELEMENT_BITS.search(rest)
    return Array(
        dtype,
        sizes,
        order,
        tiles,
        int(space[1]) if space else 0,
        int(element_bits[1]) if element_bits else 0,
        prod(one.count(",") + 2 for one in _SPLIT.findall(rest)),
    )


def _tile(text: str) -> tuple[int | None, ...]:
    """The sizes of a tile; `*` combines a dimension with the next."""
    return tuple(None if size.strip() == "*" else int(size) for size in text.split(",") if size.strip())


def split(text: str) -> list[str]:
    """The pieces of a text between commas that stand in no bracket and no string; none of an empty text."""
    pieces, start, depth = [], 0, 0
    for found in _SPECIAL.finditer(text):
        c = found[0]
        if c in _OPEN:
            depth += 1
        elif c in _CLOSED:
            depth -= 1
        elif c == "," and depth == 0:
            pieces.append(text[start : found.start()].strip())
            start = found.end()
    last = text[start:].strip()
    return [*pieces, last] if pieces or last else []
