"""Pictures of a mesh: which device holds what of a tensor, whom a collective joins, and the tensor's own index space
with the devices of each block.

Equal blocks have equal colours, different blocks different ones, as `jax.debug.visualize_array_sharding` has it.
Addends of a sum that is still to be taken are hatched; what is no shard of any logical value has a dashed frame.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from hlo_verify.render.pictures import lattice
from hlo_verify.render.pictures.lattice import MOST_CELLS, Axis, Cell, Position
from hlo_verify.render.pictures.placement import Block, Mesh, Placement, ranges, told
from hlo_verify.render.pictures.sheet import (
    FONT,
    MOST_COLOURS,
    SMALL,
    Sheet,
    colours,
    listed,
    number,
    shortened,
    width_of,
)

MARGIN = 12
LEAST = 320
"""Units that a picture is wide at least, so that its text is not magnified."""

ONE_LINE = 18
FEW = 4
"""Characters of an index that stands in one line, where the last axis has but a few devices. Otherwise each dimension
that is split has a line."""

SPACE = 26
"""Between devices, where arrows go."""

MOST_LINES = 4
"""Dimensions of an index that have a line of their own."""

OUTLINES = ("#0b62b8", "#c4244a", "#2c7a2c", "#8a4fbf", "#b35900", "#00777f", "#a0246e", "#5b5f00")
"""Of groups; further ones repeat them, and the group's name stands in the cell."""


@dataclass(frozen=True, slots=True)
class Joined:
    """Whom a collective brings together: groups of devices, or for a permute pairs of a source and a target."""

    name: str
    groups: tuple[tuple[int, ...], ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()


class _Palette:
    """The colours of blocks: by their numbers, so that all pictures of a placement agree; where there are more blocks
    than colours, in the order in which they are drawn."""

    def __init__(self, blocks: int) -> None:
        self.by_number = blocks <= MOST_COLOURS
        self.drawn: dict[int, int] = {}

    def of(self, block: int) -> str:
        number = block if self.by_number else self.drawn.setdefault(block, len(self.drawn))
        return colours(MOST_COLOURS)[number]


def mesh_picture(
    mesh: Mesh, placement: Placement | None = None, joined: Joined | None = None, *, style: bool = True
) -> str:
    """A mesh as a grid of devices, with what each holds and whom a collective joins, as SVG.

    Without `style` the picture is for a page that has `sheet.STYLE`. Raises ValueError for devices that are not those
    of the mesh.
    """
    if mesh.devices and len(mesh.devices) != mesh.size:
        raise ValueError(f"{len(mesh.devices)} devices for a mesh of {mesh.size}")
    once = _alike(mesh, placement, joined)
    axes = [Axis(name, tuple(map(str, range(size)))) for n, (name, size) in enumerate(mesh.axes) if n not in once]
    palette = _Palette(0 if placement is None else len(placement.blocks))
    in_line = placement is None or _is_short(placement, mesh)
    group_of = {} if joined is None else {d: n for n, group in enumerate(joined.groups) for d in group}

    def cell(position: Position) -> Cell:
        device = mesh.device(_whole(position, once))
        group = group_of.get(device)
        return _device(device, placement, palette, None if joined is None or not joined.groups else (group,), in_line)

    sheet = Sheet(_title(mesh, placement, joined), _said(mesh, placement, joined))
    top = _heading(sheet, sheet.title, MARGIN)
    space = SPACE if joined is not None and joined.pairs else 0
    drawn = lattice.draw(sheet, MARGIN, top, axes, cell, space)
    width = _width(drawn.width, sheet.title)
    bottom = top + drawn.height + 6
    if joined is not None and joined.pairs:
        at = {mesh.device(_whole(position, once)): middle for position, middle in drawn.middles.items()}
        _arrows(sheet, joined.pairs, at, drawn.cell)
    alike = [f"alike at all {mesh.axes[n][1]} positions of {mesh.axes[n][0]}" for n in once]
    for line in (*alike, *_legend(mesh, placement, joined, len(drawn.middles))):
        for piece in _folded(line, width - 2 * MARGIN):
            bottom += SMALL + 5
            sheet.text(MARGIN, bottom, piece, "soft small")
    return sheet.finished(width, bottom + MARGIN, style=style)


def array_picture(placement: Placement, *, style: bool = True) -> str:
    """A tensor's index space, cut into blocks, with the devices that hold each, as SVG."""
    axes, cuts = _cut(placement)
    palette = _Palette(len(placement.blocks))
    holders = placement.holders

    def cell(position: Position) -> Cell:
        where = {k: interval[at] for at, (k, interval) in zip(position, cuts, strict=True)}
        here = [n for n, block in enumerate(placement.blocks) if holders[n] and _covers(block, where)]
        return _part(here, placement, palette, holders)

    title = f"{_name(placement)}: the devices of each block"
    sheet = Sheet(title, _said_of_blocks(placement))
    top = _heading(sheet, title, MARGIN)
    drawn = lattice.draw(sheet, MARGIN, top, axes, cell)
    width, bottom = _width(drawn.width, title), top + drawn.height + 6
    loose = [n for n, block in enumerate(placement.blocks) if block.box is None]
    lines = [f"{told(placement.blocks[n], placement.shape)}: devices {listed(holders[n], 6)}" for n in loose[:6]]
    whole = 1
    for axis in axes:
        whole *= axis.size
    lines += [f"{len(drawn.middles)} of {whole} blocks are drawn"] if len(drawn.middles) < whole else []
    for line in lines:
        for piece in _folded(line, width - 2 * MARGIN):
            bottom += SMALL + 5
            sheet.text(MARGIN, bottom, piece, "soft small")
    return sheet.finished(width, bottom + MARGIN, style=style)


def _alike(mesh: Mesh, placement: Placement | None, joined: Joined | None) -> tuple[int, ...]:
    """Of a mesh that is too large to be drawn, the axes along which all devices hold the same."""
    if mesh.size <= MOST_CELLS or placement is None or joined is not None:
        return ()
    held = [placement.held(mesh.devices[n] if mesh.devices else n) for n in range(mesh.size)]
    found, inner = [], mesh.size
    for axis, (_, size) in enumerate(mesh.axes):
        outer, inner = inner, inner // size
        if all(one == held[n - n % outer + n % inner] for n, one in enumerate(held)):
            found.append(axis)
    return tuple(found)


def _whole(position: Position, once: Sequence[int]) -> Position:
    """A position of the mesh, from one without the axes that are drawn once: the first there."""
    found = list(position)
    for axis in once:
        found.insert(axis, 0)
    return tuple(found)


def _name(placement: Placement) -> str:
    return f"{placement.tensor} [{', '.join(map(str, placement.shape))}]" if placement.shape else placement.tensor


def _axes(mesh: Mesh) -> str:
    if not mesh.axes:
        return "one device"
    return f"mesh {' × '.join(f'{name}={size}' for name, size in mesh.axes)}"


def _title(mesh: Mesh, placement: Placement | None, joined: Joined | None) -> str:
    what = [] if placement is None else [_name(placement)]
    what += [] if joined is None else [joined.name]
    return f"{', '.join(what)} on {_axes(mesh)}" if what else _axes(mesh)


def _said(mesh: Mesh, placement: Placement | None, joined: Joined | None) -> str:
    """The picture in words."""
    said = [f"{mesh.size} devices."]
    said += [] if placement is None else [_said_of_blocks(placement)]
    if joined is not None and joined.groups:
        groups = "; ".join(listed(group, 4) for group in joined.groups[:8])
        said.append(f"{joined.name} joins {len(joined.groups)} groups: {groups}{'; …' * (len(joined.groups) > 8)}.")
    if joined is not None and joined.pairs:
        pairs = ", ".join(f"{source} to {target}" for source, target in joined.pairs[:8])
        said.append(f"{joined.name} sends from {pairs}{', …' * (len(joined.pairs) > 8)}.")
    return " ".join(said)


def _said_of_blocks(placement: Placement) -> str:
    holders = placement.holders
    said = [
        f"{_of_block(block, placement)} on devices {listed(holders[n], 4)}"
        for n, block in enumerate(placement.blocks[:8])
        if holders[n]
    ]
    return "; ".join(said) + ("; …" if len(placement.blocks) > 8 else ".")


def _of_block(block: Block, placement: Placement) -> str:
    part = "" if block.addend is None else f", addend {block.addend}"
    return f"{told(block, placement.shape)}{part}" + ("" if block.is_shard else " (no shard of any logical value)")


def _device(
    device: int,
    placement: Placement | None,
    palette: _Palette,
    group: tuple[int | None] | None,
    in_line: bool,
) -> Cell:
    """A device: its number, what it holds, and its group (of a collective that has groups, perhaps none).
    `in_line` is whether there is room for an index in one line."""
    lines, outline = [str(device)], ""
    if group is not None:
        lines.append("no group" if group[0] is None else f"group {group[0]}")
        outline = "" if group[0] is None else OUTLINES[group[0] % len(OUTLINES)]
    if placement is None:
        return Cell(tuple(lines), outline=outline, told=f"device {device}")
    held = placement.held(device)
    if held is None:
        return Cell((*lines, "nothing"), outline=outline, told=f"device {device} holds nothing of {placement.tensor}")
    block = placement.blocks[held]
    return Cell(
        (*lines, *_lines(block, placement, in_line)),
        palette.of(held) if block.is_shard else "",
        hatched=block.addend is not None,
        wrong=not block.is_shard,
        outline=outline,
        told=f"device {device}: {_of_block(block, placement)}",
    )


def _is_short(placement: Placement, mesh: Mesh) -> bool:
    """Whether there is room for indices in one line."""
    longest = max((len(told(block, placement.shape)) for block in placement.blocks), default=0)
    return longest <= (ONE_LINE if mesh.axes and mesh.axes[-1][1] <= FEW else ONE_LINE // 2)


def _lines(block: Block, placement: Placement, in_line: bool) -> list[str]:
    """What a block is, in one line or a few."""
    whole = told(block, placement.shape)
    if block.box is None or in_line:
        lines = [whole] if block.is_shard or block.said else []
    else:
        pairs = enumerate(ranges(block, placement.shape))
        each = [f"d{k} {said}" for k, said in pairs if said != ":"]
        lines = each[:MOST_LINES] + (["…"] if len(each) > MOST_LINES else []) or [whole]
    if block.addend is not None:
        lines.append(f"addend {block.addend}")
    return lines if block.is_shard else [*lines, "no shard"]


def _part(here: Sequence[int], placement: Placement, palette: _Palette, holders: Sequence[Sequence[int]]) -> Cell:
    """A part of the index space, with the blocks that cover it."""
    if not here:
        return Cell(("nobody",), wrong=True, told="no device holds these elements")
    devices = [device for n in here for device in holders[n]]
    blocks = [placement.blocks[n] for n in here]
    boxes = {block.box for block in blocks}
    addends = len({block.addend for block in blocks if block.addend is not None})
    lines = [f"{'devices' if len(devices) > 1 else 'device'} {listed(devices)}"]
    if len(lines[0]) > ONE_LINE:
        lines = [f"{len(devices)} devices", f"{min(devices)}, …"]
    lines += [f"sum of {addends}"] if addends else []
    lines += [f"{len(boxes)} blocks overlap"] if len(boxes) > 1 else []
    said = "; ".join(
        f"{_of_block(placement.blocks[n], placement)} on devices {listed(holders[n], 8)}" for n in here[:8]
    )
    wrong = not all(block.is_shard for block in blocks)
    return Cell(tuple(lines), palette.of(here[0]), hatched=bool(addends), wrong=wrong, told=said)


Cut = tuple[int, tuple[tuple[int, int], ...]]
"""A dimension that blocks split, with its intervals."""


def _cut(placement: Placement) -> tuple[list[Axis], list[Cut]]:
    """The axes of the index space: the dimensions that some block splits, each cut wherever a block begins or ends."""
    axes, cuts = [], []
    boxes = [block.box for block in placement.blocks if block.box is not None]
    for k, size in enumerate(placement.shape):
        ends = sorted({0, size, *(end for box in boxes for end in box[k])})
        intervals = tuple(itertools.pairwise(ends))
        if len(intervals) > 1:
            axes.append(Axis(f"dimension {k}", tuple(f"{low}:{high}" for low, high in intervals)))
            cuts.append((k, intervals))
    return axes, cuts


def _covers(block: Block, where: dict[int, tuple[int, int]]) -> bool:
    if block.box is None:
        return False
    return all(block.box[k][0] <= low and high <= block.box[k][1] for k, (low, high) in where.items())


def _legend(mesh: Mesh, placement: Placement | None, joined: Joined | None, drawn: int) -> list[str]:
    """What is to be known to read the picture."""
    lines = [f"{drawn} of {mesh.size} devices are drawn"] if drawn < mesh.size else []
    if placement is not None:
        lines += [] if _is_short(placement, mesh) else ["d0 is the range of dimension 0, and so on"]
        both = zip(placement.blocks, placement.holders, strict=True)
        copies = {len(holders) for block, holders in both if holders and block.is_shard}
        if len(copies) == 1 and max(copies) > 1:
            lines.append(f"each block has {max(copies)} copies, in one colour")
        if any(block.addend is not None for block in placement.blocks):
            lines.append("hatched: addends, which are still to be summed")
        if not all(block.is_shard for block in placement.blocks):
            lines.append("dashed: not a shard of any logical value")
    if joined is not None and joined.pairs:
        targets = {target for _, target in joined.pairs}
        idle = [device for device in range(mesh.size) if device not in targets]
        lines += [f"nothing is sent to {listed(idle, 4)}: zeros there"] if idle else []
        own = [source for source, target in joined.pairs if source == target]
        lines += [f"to themselves: {listed(own, 4)}"] if own else []
    return lines


def _arrows(
    sheet: Sheet, pairs: Sequence[tuple[int, int]], at: dict[int, tuple[float, float]], cell: lattice.Size
) -> None:
    """An arrow from each source to its target, bent so that there and back do not meet."""
    for source, target in pairs:
        if source not in at or target not in at or source == target:
            continue
        (x1, y1), (x2, y2) = at[source], at[target]
        dx, dy = x2 - x1, y2 - y1
        length = (dx * dx + dy * dy) ** 0.5
        near = abs(dx) <= cell.width + cell.space and abs(dy) <= cell.height + cell.space
        bend = 0 if near else min(length / 6, cell.width / 2 + cell.space)
        middle = (x1 + x2) / 2 - dy / length * bend, (y1 + y2) / 2 + dx / length * bend
        begin, end = _border((x1, y1), middle, cell), _border((x2, y2), middle, cell)
        points = f"M{_pair(begin)}Q{_pair(middle)} {_pair(end)}"
        sheet.path(points, "link", stroke=1.8, told=f"device {source} sends to device {target}")
        sheet.head(*end, end[0] - middle[0], end[1] - middle[1], "linked", 8)


def _pair(point: tuple[float, float]) -> str:
    return f"{number(point[0])} {number(point[1])}"


def _border(middle: tuple[float, float], towards: tuple[float, float], cell: lattice.Size) -> tuple[float, float]:
    """Where a line from the middle of a cell leaves it."""
    dx, dy = towards[0] - middle[0], towards[1] - middle[1]
    part = min((cell.width / 2 + 1) / abs(dx) if dx else 1e9, (cell.height / 2 + 1) / abs(dy) if dy else 1e9)
    return middle[0] + dx * part, middle[1] + dy * part


def _width(drawn: float, title: str) -> float:
    """How wide a picture is: its title has a place too."""
    return max(drawn, LEAST, min(width_of(title), lattice.ACROSS)) + 2 * MARGIN


def _heading(sheet: Sheet, title: str, y: float) -> float:
    """The title above a drawing; where what is below it begins."""
    sheet.text(MARGIN, y + FONT, shortened(title, lattice.ACROSS), "strong")
    return y + FONT + 10


def _folded(line: str, width: float) -> list[str]:
    """A line, in as many as it takes."""
    found = [""]
    for word in line.split(" "):
        longer = f"{found[-1]} {word}".strip()
        if width_of(longer, SMALL) > width and found[-1]:
            found.append(word)
        else:
            found[-1] = longer
    return found
