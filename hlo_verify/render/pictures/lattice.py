"""Cells over some axes, as meshes and index spaces are drawn: the last axis to the right, the one before it downwards,
and a panel for each position of those before these.

Of many positions the first ones and the last one are drawn. A single axis is drawn in rows of a few cells each.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hlo_verify.render.pictures.sheet import FONT, SMALL, Sheet, fitted, shortened, shown, width_of

MOST_CELLS = 64
"""Of a lattice. More than that nobody reads, and a page with many pictures stays small."""

ROW = 8
"""Cells of a row where there is but one axis; half as many of wide ones."""

NARROW, WIDE = 44, 150
"""A cell's width: at least, and at most."""

LINE = FONT + 3
GAP = 18
"""What stands for positions that are left out takes so much."""

BETWEEN = 22
"""Between panels."""

ACROSS = 640
"""Panels that reach further begin a new row of panels."""

Position = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """A direction: its name, and a label for each position."""

    name: str
    labels: tuple[str, ...]

    @property
    def size(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, slots=True)
class Cell:
    """What is drawn at a position: lines of text on a colour (none: the picture's own), hatched, marked as wrong, with
    an outline of a colour of its own; `told` is shown to who points at it."""

    lines: tuple[str, ...]
    fill: str = ""
    hatched: bool = False
    wrong: bool = False
    outline: str = ""
    told: str = ""


@dataclass(frozen=True, slots=True)
class Size:
    """Of a cell, and the space between two."""

    width: float
    height: float
    space: float


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a lattice takes, and the middle of each cell that was drawn."""

    width: float
    height: float
    middles: dict[Position, tuple[float, float]]
    cell: Size


def draw(
    sheet: Sheet, x: float, y: float, axes: Sequence[Axis], cell: Callable[[Position], Cell], space: float = 0
) -> Drawn:
    """Draw cells with their axes at a place of a sheet, with some space between cells."""
    counts = fitted([axis.size for axis in axes], MOST_CELLS)
    drawn = [shown(axis.size, count) for axis, count in zip(axes, counts, strict=True)]
    cells = {at: cell(at) for at in itertools.product(*([n for n in one if n is not None] for one in drawn))}
    width = min(max([NARROW, *(width_of(line) + 12 for one in cells.values() for line in one.lines)]), WIDE)
    height = max(len(one.lines) for one in cells.values()) * LINE + 9
    size = Size(width, height, space)
    if len(axes) == 1 and axes[0].size > _a_row(size):
        return _wrapped(sheet, x, y, axes[0], drawn[0], cells, size)
    return _panels(sheet, x, y, axes, drawn, cells, size)


def _one(sheet: Sheet, x: float, y: float, cell: Cell, size: Size) -> tuple[float, float]:
    """Draw a cell; its middle."""
    width, height = size.width, size.height
    kind = "cell" if cell.fill else "panel"
    sheet.box(x, y, width, height, kind, fill=cell.fill, stroke=2 if cell.fill else 1, told=cell.told)
    if cell.hatched:
        sheet.hatch(x + 1, y + 1, width - 2, height - 2)
    if cell.outline:
        sheet.box(x + 2.5, y + 2.5, width - 5, height - 5, "outline", fill="none", stroke=3, outline=cell.outline)
    if cell.wrong:
        sheet.box(x + 1.5, y + 1.5, width - 3, height - 3, "wrong", fill="none", stroke=2.5, dashed=True)
    on = " on" if cell.fill else ""
    top = y + (height - len(cell.lines) * LINE) / 2 + FONT - 1
    for n, line in enumerate(cell.lines):
        look = f"{'strong' if n == 0 and len(cell.lines) > 1 else ''}{on}".strip()
        sheet.text(x + width / 2, top + n * LINE, shortened(line, width - 8), look, middle=True)
    return x + width / 2, y + height / 2


def _a_row(size: Size) -> int:
    """How many cells a row has where there is but one axis."""
    return ROW if size.width * ROW <= ACROSS + BETWEEN else ROW // 2


def _wrapped(
    sheet: Sheet,
    x: float,
    y: float,
    axis: Axis,
    drawn: tuple[int | None, ...],
    cells: dict[Position, Cell],
    size: Size,
) -> Drawn:
    """One long axis, in rows."""
    a_row = _a_row(size)
    width, height = size.width, size.height
    sheet.text(x, y + FONT, f"{axis.name} → ({axis.size} in all, row by row)", "soft small")
    top = y + FONT + 10
    middles: dict[Position, tuple[float, float]] = {}
    for n, at in enumerate(drawn):
        left, above = x + n % a_row * (width + size.space), top + n // a_row * (height + size.space)
        if at is None:
            sheet.text(left + width / 2, above + height / 2 + 4, "⋯", "soft", middle=True)
        else:
            middles[(at,)] = _one(sheet, left, above, cells[(at,)], size)
    rows = (len(drawn) + a_row - 1) // a_row
    return Drawn(a_row * (width + size.space) - size.space, top + rows * (height + size.space) - y, middles, size)


def _steps(drawn: tuple[int | None, ...], size: float, space: float) -> tuple[list[float], float]:
    """Where the positions of an axis begin, and how long it is."""
    begins, at = [], 0.0
    for one in drawn:
        begins.append(at)
        at += (GAP if one is None else size) + space
    return begins, at - space


def _panels(
    sheet: Sheet,
    x: float,
    y: float,
    axes: Sequence[Axis],
    drawn: Sequence[tuple[int | None, ...]],
    cells: dict[Position, Cell],
    size: Size,
) -> Drawn:
    rows = axes[-2] if len(axes) > 1 else None
    left = 0.0
    if rows is not None:
        labels = [rows.labels[at] for at in drawn[-2] if at is not None]
        left = max(width_of(label, SMALL) for label in (*labels, f"{rows.name} ↓")) + 8
    across = _steps(drawn[-1], size.width, size.space)[1] if axes else size.width
    down = _steps(drawn[-2], size.height, size.space)[1] if rows is not None else size.height
    header = (SMALL + 6) * 2 if axes else 0
    outer = [before for before in itertools.product(*drawn[:-2]) if None not in before] if len(axes) > 2 else [()]
    titled = SMALL + 8 if len(axes) > 2 else 0
    a_row = max(1, int((ACROSS + BETWEEN) // (left + across + BETWEEN)))
    middles: dict[Position, tuple[float, float]] = {}
    for n, before in enumerate(outer):
        at_x, at_y = x + n % a_row * (left + across + BETWEEN), y + n // a_row * (titled + header + down + BETWEEN)
        if titled:
            said = ", ".join(f"{axis.name} {axis.labels[at or 0]}" for axis, at in zip(axes, before, strict=False))
            sheet.text(at_x + left, at_y + SMALL, said, "strong small")
        inner = tuple(at for at in before if at is not None)
        _panel(sheet, (at_x + left, at_y + titled + header), axes, drawn, (inner, cells, size), middles)
    columns, lines = min(a_row, len(outer)), -(-len(outer) // a_row)
    whole = columns * (left + across + BETWEEN) - BETWEEN, lines * (titled + header + down + BETWEEN) - BETWEEN
    return Drawn(*whole, middles, size)


def _panel(
    sheet: Sheet,
    corner: tuple[float, float],
    axes: Sequence[Axis],
    drawn: Sequence[tuple[int | None, ...]],
    held: tuple[Position, dict[Position, Cell], Size],
    middles: dict[Position, tuple[float, float]],
) -> None:
    """The cells over the last two axes, with their labels."""
    x, y = corner
    before, cells, size = held
    width, height = size.width, size.height
    columns: tuple[int | None, ...] = drawn[-1] if axes else ()
    lines: tuple[int | None, ...] = drawn[-2] if len(axes) > 1 else ()
    lefts, tops = _steps(columns, width, size.space)[0], _steps(lines, height, size.space)[0]
    if axes:
        sheet.text(x, y - SMALL - 10, f"{axes[-1].name} →", "soft small")
    for at, left in zip(columns, lefts, strict=True):
        label = "⋯" if at is None else shortened(axes[-1].labels[at], width, SMALL)
        sheet.text(x + left + (GAP if at is None else width) / 2, y - 5, label, "soft small", middle=True)
    for at, top in zip(lines, tops, strict=True):
        middle = y + top + (GAP if at is None else height) / 2 + SMALL / 3
        sheet.text(x - 5, middle, "⋯" if at is None else axes[-2].labels[at], "soft small", end=True)
    if lines:
        sheet.text(x - 5, y - 5, f"{axes[-2].name} ↓", "soft small", end=True)
    for (row, top), (column, left) in itertools.product(
        zip(lines or (0,), tops or [0.0], strict=True), zip(columns or (0,), lefts or [0.0], strict=True)
    ):
        if row is not None and column is not None:
            here = (*before, *((row,) if lines else ()), *((column,) if columns else ()))
            middles[here] = _one(sheet, x + left, y + top, cells[here], size)
