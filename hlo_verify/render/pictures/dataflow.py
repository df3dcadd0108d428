"""A picture of the dataflow around a fault: the logical and the partitioned module side by side, matched values linked.

Matched operations stand on one level, so that both sides are read in step; links go straight across where they can.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hlo_verify.render.pictures.layout import Layout, Size, lay_out
from hlo_verify.render.pictures.sheet import FONT, SMALL, Sheet, number, shortened, width_of

MOST_NODES = 24
"""Of a side: what is nearest to the fault. More are counted, not drawn."""

MARGIN = 12
NARROW, WIDE = 64, 164
"""A node's width: at least, and at most."""

LINE = 14
TOP = 58
"""What title and headings take."""


@dataclass(frozen=True, slots=True)
class Node:
    """An operation or argument. `name` is told apart from others of its side by that alone; `label` is what it is
    called, `details` are further lines (type, lineage), and `at_fault` marks the operation that a finding is about."""

    name: str
    label: str
    details: tuple[str, ...] = ()
    at_fault: bool = False


@dataclass(frozen=True, slots=True)
class Side:
    """A module's part of the picture. `edges` go from the name of an operand to that of its user; names that no node
    has are passed over. `left_out` counts operations around these that are not told."""

    title: str
    nodes: tuple[Node, ...]
    edges: tuple[tuple[str, str], ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Dataflow:
    """Both modules around a fault; `matches` are pairs of a logical and a partitioned name: the one is a shard of the
    other. A value may be matched with several."""

    logical: Side
    partitioned: Side
    matches: tuple[tuple[str, str], ...] = ()


def dataflow_picture(flow: Dataflow, *, style: bool = True) -> str:
    """The two sides as SVG. Without `style` it is for a page that has `sheet.STYLE`.

    Raises ValueError where two nodes of a side have one name.
    """
    sides = [_nearest(side, flow.matches, n) for n, side in enumerate((flow.logical, flow.partitioned))]
    for side in sides:
        if len({node.name for node in side.nodes}) != len(side.nodes):
            raise ValueError("two nodes of a side have one name")
    known = [{node.name for node in side.nodes} for side in sides]
    matches = [pair for pair in dict.fromkeys(flow.matches) if pair[0] in known[0] and pair[1] in known[1]]
    label = [{node.name: node.label for node in side.nodes} for side in sides]
    matches.sort(key=lambda pair: label[0][pair[0]] != label[1][pair[1]])  # level is with its like before others
    edges = [_between(side.edges, names) for side, names in zip(sides, known, strict=True)]
    sizes = [{node.name: _size(node) for node in side.nodes} for side in sides]
    left, right = lay_out(sizes[0], sizes[1], edges[0], edges[1], matches)
    title = "The dataflow around the fault"
    sheet = Sheet(title, _said(sides, matches))
    sheet.text(MARGIN, MARGIN + FONT, title, "strong")
    widths = [max(one.width, width_of(side.title), NARROW) for one, side in zip((left, right), sides, strict=True)]
    gap = 56 if matches else 30
    corners = (MARGIN, MARGIN + widths[0] + gap)
    _links(sheet, matches, (left, right), corners)
    height = max(left.height, right.height)
    columns = zip(sides, (left, right), corners, widths, edges, _numbered(matches), strict=True)
    for side, one, corner, width, between, marks in columns:
        sheet.text(corner, MARGIN + FONT + 22, shortened(side.title, width), "soft")
        _edges(sheet, between, one, corner)
        _nodes(sheet, side.nodes, one, corner, marks)
        if side.left_out:
            sheet.text(corner, TOP + height + 18, f"{side.left_out} more not drawn", "soft small")
    bottom = TOP + height + (24 if any(side.left_out for side in sides) else 6)
    if matches:
        bottom += SMALL + 2
        sheet.text(MARGIN, bottom, "blue, with one number: a value and its shards; red: the fault", "soft small")
    return sheet.finished(corners[1] + widths[1] + MARGIN, bottom + MARGIN, style=style)


def _between(edges: Sequence[tuple[str, str]], names: set[str]) -> list[tuple[str, str]]:
    """The edges between known nodes, each once."""
    return [(a, b) for a, b in dict.fromkeys(edges) if a in names and b in names and a != b]


def _nearest(side: Side, matches: Sequence[tuple[str, str]], which: int) -> Side:
    """A side without the nodes that are far from the fault, or from what is matched where the fault is elsewhere."""
    if len(side.nodes) <= MOST_NODES:
        return side
    near: dict[str, list[str]] = {node.name: [] for node in side.nodes}
    for a, b in _between(side.edges, set(near)):
        near[a].append(b)
        near[b].append(a)
    at_fault = [node.name for node in side.nodes if node.at_fault]
    matched = [pair[which] for pair in matches if pair[which] in near]
    queue = at_fault or matched or [side.nodes[-1].name]
    seen = dict.fromkeys(queue)
    for name in queue:
        for other in near[name]:
            if other not in seen:
                seen[other] = None
                queue.append(other)
    kept = set([*seen, *(node.name for node in side.nodes if node.name not in seen)][:MOST_NODES])
    nodes = tuple(node for node in side.nodes if node.name in kept)
    return Side(side.title, nodes, side.edges, side.left_out + len(side.nodes) - len(nodes))


def _size(node: Node) -> Size:
    widest = max([width_of(node.label), *(width_of(line, SMALL) for line in node.details)])
    return Size(min(max(widest + 16, NARROW), WIDE), 22 + LINE * len(node.details[:3]))


def _nodes(sheet: Sheet, nodes: Sequence[Node], layout: Layout, corner: float, marks: Mapping[str, int]) -> None:
    for node in nodes:
        x, y, size = layout.places[node.name]
        x, y = x + corner, y + TOP
        told = "\n".join((node.label, *node.details))
        sheet.box(x, y, size.width, size.height, "panel", told=told)
        if node.at_fault:
            sheet.box(x - 2, y - 2, size.width + 4, size.height + 4, "wrong", fill="none", stroke=3)
        elif node.name in marks:
            sheet.box(x, y, size.width, size.height, "link", stroke=1.8)
        look = "wrong" if node.at_fault else "strong"
        sheet.text(x + size.width / 2, y + 15, shortened(node.label, size.width - 12), look, middle=True)
        if node.name in marks:
            sheet.mark(x, y, str(marks[node.name]))
        for n, line in enumerate(node.details[:3]):
            said = shortened(line, size.width - 10, SMALL)
            sheet.text(x + size.width / 2, y + 15 + LINE * (n + 1), said, "soft small", middle=True)


def _edges(sheet: Sheet, edges: Sequence[tuple[str, str]], layout: Layout, corner: float) -> None:
    """Each edge from below its operand to above its user, by the points that the layout keeps free for it."""
    for a, b in edges:
        points = [(x + corner, y + TOP) for x, y in layout.routes[a, b]]
        text = f"M{number(points[0][0])} {number(points[0][1])}"
        for (x1, y1), (x2, y2) in pairwise(points):
            middle = (y1 + y2) / 2
            text += f"C{number(x1)} {number(middle)} {number(x2)} {number(middle)} {number(x2)} {number(y2)}"
        sheet.path(text, "edge", stroke=1.3)
        sheet.head(*points[-1], 0, 1)


def _links(
    sheet: Sheet, matches: Sequence[tuple[str, str]], layouts: tuple[Layout, Layout], corners: tuple[float, float]
) -> None:
    """Behind everything, a dashed line from each value to its shards, where no node stands between."""
    for a, b in matches:
        x1, y1, one = layouts[0].places[a]
        x2, y2, two = layouts[1].places[b]
        right, left = x1 + one.width, x2
        y1, y2 = y1 + one.height / 2, y2 + two.height / 2
        if any(x >= right and y < y1 < y + size.height for x, y, size in layouts[0].places.values()):
            continue
        if any(x + size.width <= left and y < y2 < y + size.height for x, y, size in layouts[1].places.values()):
            continue
        begin, end = (right + corners[0], y1 + TOP), (left + corners[1], y2 + TOP)
        middle = (begin[0] + end[0]) / 2
        points = [begin, (middle, begin[1]), (middle, end[1]), end]
        first, *others = (f"{number(x)} {number(y)}" for x, y in points)
        sheet.path(f"M{first}C{' '.join(others)}", "link", stroke=1.5, dashed=True)


def _numbered(matches: Sequence[tuple[str, str]]) -> tuple[dict[str, int], dict[str, int]]:
    """The numbers by which matched nodes of both sides are told: those that are matched with each other have one."""
    left: dict[str, int] = {}
    right: dict[str, int] = {}
    for a, b in matches:
        here = left.get(a, right.get(b, len({*left.values(), *right.values()}) + 1))
        left.setdefault(a, here)
        right.setdefault(b, here)
    return left, right


def _said(sides: Sequence[Side], matches: Sequence[tuple[str, str]]) -> str:
    """The picture in words."""
    labels: list[Mapping[str, str]] = [{node.name: node.label for node in side.nodes} for side in sides]
    said = [f"{side.title}: {', '.join(node.label for node in side.nodes)}." for side in sides]
    faults = [node.label for side in sides for node in side.nodes if node.at_fault]
    said += [f"The fault is at {', '.join(faults)}."] if faults else []
    pairs = ", ".join(f"{labels[0][a]} and {labels[1][b]}" for a, b in matches)
    return " ".join([*said, *([f"Matched: {pairs}."] if pairs else [])])
