"""Lay out two small graphs side by side, in levels: operands above their users, matched nodes on one level.

The method is Sugiyama's, for some dozens of nodes: levels by longest paths; points on the way for edges that pass a
level; order within levels by barycenters; places by moving nodes towards the mean of their neighbours as far as others
leave room. Nothing depends on hashes, so that a graph has one picture.

Source: K. Sugiyama, S. Tagawa, M. Toda, Methods for visual understanding of hierarchical system structures (1981).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

SWEEPS = 8
"""Over all levels, down and up in turn."""

BETWEEN = 12
"""Nodes of a level are so far from each other at least."""

APART = 34
"""Between levels."""

THIN = 6.0
"""Room for an edge that passes a level."""

Edge = tuple[str, str]
Key = tuple[str, ...]
"""A node by its name, or a point of an edge by the edge's two names and its level."""


@dataclass(frozen=True, slots=True)
class Size:
    """Of a node."""

    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Layout:
    """Where nodes are (left, top, size), the points that each edge goes by, and what all of it takes."""

    places: dict[str, tuple[float, float, Size]]
    routes: dict[Edge, list[tuple[float, float]]]
    width: float
    height: float


def lay_out(
    left: Mapping[str, Size],
    right: Mapping[str, Size],
    left_edges: Sequence[Edge],
    right_edges: Sequence[Edge],
    matches: Sequence[Edge],
) -> tuple[Layout, Layout]:
    """Both graphs, on common levels where the matches allow it: no two matched pairs may cross in time."""
    levels = _common(left, right, left_edges, right_edges, matches)
    heights: dict[int, float] = {}
    for sizes, one in zip((left, right), levels, strict=True):
        for name, size in sizes.items():
            heights[one[name]] = max(heights.get(one[name], 0.0), size.height)
    tops, at = {}, 0.0
    for level in sorted(heights):
        tops[level] = at
        at += heights[level] + APART
    laid = [
        _one(sizes, edges, level, tops, heights)
        for sizes, edges, level in zip((left, right), (left_edges, right_edges), levels, strict=True)
    ]
    return laid[0], laid[1]


def _common(
    left: Mapping[str, Size],
    right: Mapping[str, Size],
    left_edges: Sequence[Edge],
    right_edges: Sequence[Edge],
    matches: Sequence[Edge],
) -> tuple[dict[str, int], dict[str, int]]:
    """The level of each node. Matches are taken one by one, each unless the two graphs would no longer be in order."""
    names = [f"l{name}" for name in left] + [f"r{name}" for name in right]
    edges = [(f"l{a}", f"l{b}") for a, b in left_edges] + [(f"r{a}", f"r{b}") for a, b in right_edges]
    stands_for = {name: name for name in names}
    found = _levels(stands_for, edges)
    for a, b in matches:
        old, new = stands_for[f"r{b}"], stands_for[f"l{a}"]
        tried = {name: new if root == old else root for name, root in stands_for.items()}
        if (levels := _levels(tried, edges)) is not None:
            stands_for, found = tried, levels
    if found is None:  # a loop, which is no dataflow: as the nodes are listed
        return {name: n for n, name in enumerate(left)}, {name: n for n, name in enumerate(right)}
    order = {level: n for n, level in enumerate(sorted(set(found.values())))}
    level_of = {name: order[found[stands_for[name]]] for name in names}
    return {name: level_of[f"l{name}"] for name in left}, {name: level_of[f"r{name}"] for name in right}


def _levels(stands_for: Mapping[str, str], edges: Sequence[Edge]) -> dict[str, int] | None:
    """The length of the longest path to each node, but what has no operands stands right above its first user; None
    where there is a loop."""
    users: dict[str, list[str]] = {root: [] for root in stands_for.values()}
    waiting = dict.fromkeys(users, 0)
    for a, b in edges:
        users[stands_for[a]].append(stands_for[b])
        waiting[stands_for[b]] += 1
    ready = [name for name, count in waiting.items() if not count]
    found = dict.fromkeys(ready, 0)
    for name in ready:
        for user in users[name]:
            found[user] = max(found.get(user, 0), found[name] + 1)
            waiting[user] -= 1
            if not waiting[user]:
                ready.append(user)
    if len(ready) < len(users):
        return None
    entered = {user for names in users.values() for user in names}
    return found | {
        name: min(found[user] for user in to) - 1 for name, to in users.items() if to and name not in entered
    }


def _one(
    sizes: Mapping[str, Size],
    edges: Sequence[Edge],
    level: Mapping[str, int],
    tops: Mapping[int, float],
    heights: Mapping[int, float],
) -> Layout:
    """One graph on given levels."""
    rows: dict[int, list[Key]] = {}
    for name in sizes:
        rows.setdefault(level[name], []).append((name,))
    chains = {}
    for a, b in edges:
        down = level[a] < level[b]
        between: list[Key] = [(a, b, str(n)) for n in range(level[a] + 1, level[b])] if down else []
        for point in between:
            rows.setdefault(int(point[2]), []).append(point)
        chains[a, b] = [(a,), *between, (b,)]
    above: dict[Key, list[Key]] = {}
    below: dict[Key, list[Key]] = {}
    for chain in chains.values():
        for one, other in pairwise(chain):
            above.setdefault(other, []).append(one)
            below.setdefault(one, []).append(other)
    ordered = _ordered(rows, above, below)
    widths = {key: sizes[key[0]].width if len(key) == 1 else THIN for row in ordered for key in row}
    middles = _placed(ordered, widths, above, below)
    places = {
        name: (middles[(name,)] - size.width / 2, tops[level[name]] + (heights[level[name]] - size.height) / 2, size)
        for name, size in sizes.items()
    }
    routes = {edge: _route(edge, chain, middles, places, tops, heights) for edge, chain in chains.items()}
    width = max((x + size.width for x, _, size in places.values()), default=0.0)
    width = max([width, *(x for route in routes.values() for x, _ in route)])
    return Layout(places, routes, width, max((y + size.height for _, y, size in places.values()), default=0.0))


def _route(
    edge: Edge,
    chain: Sequence[Key],
    middles: Mapping[Key, float],
    places: Mapping[str, tuple[float, float, Size]],
    tops: Mapping[int, float],
    heights: Mapping[int, float],
) -> list[tuple[float, float]]:
    """From the lower border of one node to the upper one of another, straight through the levels between."""
    _, y, size = places[edge[0]]
    points = [(middles[chain[0]], y + size.height)]
    for point in chain[1:-1]:
        top = tops[int(point[2])]
        points += [(middles[point], top), (middles[point], top + heights[int(point[2])])]
    return [*points, (middles[chain[-1]], places[edge[1]][1])]


def _ordered(
    rows: Mapping[int, list[Key]], above: Mapping[Key, list[Key]], below: Mapping[Key, list[Key]]
) -> list[list[Key]]:
    """The rows, each in an order in which edges cross little."""
    best = [list(rows[level]) for level in sorted(rows)]
    fewest, current = _crossings(best, below), [list(row) for row in best]
    for sweep in range(SWEEPS):
        neighbours = below if sweep % 2 else above
        at = {key: n for row in current for n, key in enumerate(row)}
        for row in reversed(current) if sweep % 2 else current:
            mean = {
                key: sum(at[other] for other in neighbours[key]) / len(neighbours[key])
                if neighbours.get(key)
                else at[key]
                for key in row
            }
            row.sort(key=mean.__getitem__)
            at |= {key: n for n, key in enumerate(row)}
        crossings = _crossings(current, below)
        if crossings < fewest:
            best, fewest = [list(row) for row in current], crossings
    return best


def _crossings(rows: Sequence[Sequence[Key]], below: Mapping[Key, list[Key]]) -> int:
    """How many pairs of edges between neighbouring rows cross."""
    at = {key: n for row in rows for n, key in enumerate(row)}
    count = 0
    for row in rows:
        ends = [at[other] for key in row for other in sorted(below.get(key, ()), key=at.__getitem__)]
        count += sum(1 for n, one in enumerate(ends) for other in ends[n + 1 :] if other < one)
    return count


def _placed(
    rows: Sequence[Sequence[Key]],
    widths: Mapping[Key, float],
    above: Mapping[Key, list[Key]],
    below: Mapping[Key, list[Key]],
) -> dict[Key, float]:
    """The middle of each node, from 0 on to the right."""
    middles: dict[Key, float] = {}
    for row in rows:
        _pack(row, dict.fromkeys(row, 0.0), widths, middles)
    for sweep in range(SWEEPS):
        for row in reversed(rows) if sweep % 2 else rows:
            wished = {}
            for key in row:
                near = [*above.get(key, ()), *below.get(key, ())]
                wished[key] = sum(middles[other] for other in near) / len(near) if near else middles[key]
            _pack(row, wished, widths, middles)
    least = min((middles[key] - widths[key] / 2 for row in rows for key in row), default=0.0)
    return {key: middle - least for key, middle in middles.items()}


def _pack(
    row: Sequence[Key], wished: Mapping[Key, float], widths: Mapping[Key, float], middles: dict[Key, float]
) -> None:
    """Put a row's nodes in order as near to where they are wished as others leave room: neighbours that would overlap
    move together, to the mean of what they wish (pool adjacent violators)."""
    offsets, at = [], 0.0
    for n, key in enumerate(row):
        at += (widths[row[n - 1]] + widths[key]) / 2 + BETWEEN if n else 0.0
        offsets.append(at)
    pools: list[tuple[float, int]] = []
    for key, offset in zip(row, offsets, strict=True):
        total, count = wished[key] - offset, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            before = pools.pop()
            total, count = total + before[0], count + before[1]
        pools.append((total, count))
    means = [total / count for total, count in pools for _ in range(count)]
    for key, offset, mean in zip(row, offsets, means, strict=True):
        middles[key] = offset + mean
