"""Where a module repeats itself: which operations do the same, and where one layer ends and the next one begins."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from hlo_verify.ops import SHAREABLE
from hlo_verify.program.attributes import fingerprint
from hlo_verify.program.element_types import is_float
from hlo_verify.program.ir import Function, Name, Op

Key = tuple[Any, ...]
Colors = npt.NDArray[np.uint64]
Graph = dict[int, set[int]]

REPEATED = 3
"""So many operations in equal surroundings are a repetition."""

RADIUS = 2
"""How far the surroundings of an operation reach."""

BOUNDARIES = 8
"""The most signatures of values between layers."""


class Keys:
    """Numbers for what operations do: equal numbers, equal functions of their operands."""

    def __init__(self) -> None:
        self._frozen: dict[int, tuple[Any, Any]] = {}
        self._numbers: dict[Key, int] = {}
        self._of: dict[int, tuple[int | None, Op]] = {}  # the operation too, so that its id stays taken

    def of(self, op: Op) -> int | None:
        """The number of an operation; None if its results depend on more than it says of itself."""
        found = self._of.get(id(op))
        if found is None:
            key = self._key(op)
            number = None if key is None else self._numbers.setdefault(key, len(self._numbers))
            found = self._of[id(op)] = (number, op)
        return found[0]

    def _key(self, op: Op) -> Key | None:
        if op.name not in SHAREABLE:
            return None
        regions = tuple(map(self._region, op.regions))
        types = tuple([(type_.shape, type_.dtype) for type_ in op.types])
        return None if None in regions else (op.name, types, self.attributes(op), regions)

    def attributes(self, op: Op) -> Key:
        """The attributes; of a channel only that it has one."""
        return tuple(
            [
                (name, self._freeze(value) if name != "channel_id" else bool(value))
                for name, value in op.attributes.items()
            ]
        )

    def _freeze(self, value: Any) -> Any:
        """The fingerprint of an attribute, worked out once: equal attributes are one object."""
        found = self._frozen.get(id(value))
        if found is None:
            # the value too, so that its id stays taken
            found = self._frozen[id(value)] = (fingerprint(value), value)
        return found[0]

    def _region(self, region: Function) -> Key | None:
        """A region without the names of its values; None if it refers to values around it."""
        names = {argument: n for n, argument in enumerate(region.arguments)}
        ops = []
        for op in region.ops:
            inner = tuple(map(self._region, op.regions))
            if None in inner or any(operand not in names for operand in op.operands):
                return None
            ops.append((op.name, tuple(names[v] for v in op.operands), op.types, self.attributes(op), inner))
            for result in op.results:
                names[result] = len(names)
        if any(result not in names for result in region.results):
            return None
        return region.argument_types, tuple(ops), tuple(names[v] for v in region.results)


def boundaries(function: Function, keys: Keys) -> frozenset[Name]:
    """The values that lie between a module's equal layers; empty if it has none.

    Operations in equal surroundings have one signature. Signatures and what uses what make a graph in which the layers
    of a network are a loop (a forward and a backward one, in a train step). The boundaries are values of few signatures
    without which no loop is left, such as the residual stream: its value after each layer is all that the next one
    needs to know.
    """
    ops = function.ops
    surroundings = _Surroundings(function, keys)
    signatures = surroundings.signatures()
    members: dict[int, list[int]] = defaultdict(list)
    for n, signature in enumerate(signatures):
        members[signature].append(n)
    uses: Graph = {signature: set() for signature, found in members.items() if len(found) >= REPEATED}
    for source, target in surroundings.edges():
        if signatures[source] in uses and signatures[target] in uses:
            uses[signatures[source]].add(signatures[target])
    places = {signature for signature in uses if all(_is_place(ops[n], keys) for n in members[signature])}
    chosen = [n for signature in _feedback(uses, places) for n in members[signature]]
    # What goes into the first layer and comes out of the last one is made or used otherwise than between two layers.
    found: set[int] = set()
    for colors in (surroundings.next_to(), surroundings.fates()):
        wanted = {(colors[n], ops[n].types) for n in chosen}
        found.update(n for n, op in enumerate(ops) if (colors[n], op.types) in wanted)
    return frozenset(ops[n].results[0] for n in found if _is_place(ops[n], keys))


def _is_place(op: Op, keys: Keys) -> bool:
    """Whether an operation can be the last of a layer: its one result is a tensor of numbers that is known exactly."""
    return len(op.results) == 1 and is_float(op.types[0].dtype) and keys.of(op) is not None and op.name != BARRIER


BARRIER = "optimization_barrier"
"""An operation that gives back its operands as they are; several share one only for a compiler's sake."""


def _behind_barriers(function: Function) -> dict[Name, Name]:
    """What stands for the results of barriers: their operands."""
    same: dict[Name, Name] = {}
    for op in function.ops:
        if op.name == BARRIER:
            same.update((result, same.get(v, v)) for result, v in zip(op.results, op.operands, strict=True))
    return same


class _Surroundings:
    """Numbers for operations by what is around them: equal surroundings, equal numbers."""

    def __init__(self, function: Function, keys: Keys) -> None:
        at = {v: (n, k) for n, op in enumerate(function.ops) for k, v in enumerate(op.results)}
        same = _behind_barriers(function)
        edges = [
            (*at[same.get(v, v)], n, slot)
            for n, op in enumerate(function.ops)
            if op.name != BARRIER
            for slot, v in enumerate(op.operands)
            if same.get(v, v) in at
        ]
        lines = Counter(op.location.frames for op in function.ops)  # a line of one operation says nothing
        own = [(keys.of(op), op.location.frames if lines[op.location.frames] > 1 else ()) for op in function.ops]
        numbers: dict[Key, int] = {}  # not `hash`, which differs from one process to the next
        self._own = _scramble(np.array([numbers.setdefault(key, len(numbers)) for key in own], np.uint64))
        source, result, target, slot = np.array(edges, np.uint64).reshape(-1, 4).T
        self._source, self._target = source.astype(np.int64), target.astype(np.int64)
        self._place = _scramble(result * np.uint64(31) + slot)

    def edges(self) -> Iterator[tuple[int, int]]:
        """Which operation's result which one uses."""
        return zip(self._source.tolist(), self._target.tolist(), strict=True)

    def signatures(self) -> list[int]:
        """By everything up to `RADIUS` away."""
        colors = self._own
        for _ in range(RADIUS):
            colors = self._spread(colors)
        return self._numbers(colors)

    def next_to(self) -> list[int]:
        """By what is next to them."""
        return self._numbers(self._spread(self._own))

    def fates(self) -> list[int]:
        """By what becomes of their results, up to `RADIUS` away."""
        colors = self._own
        for _ in range(RADIUS):
            colors = _scramble(colors + np.uint64(5) * self._after(colors))
        return self._numbers(self._after(colors))

    def _spread(self, colors: Colors) -> Colors:
        before = np.zeros_like(colors)
        np.add.at(before, self._target, _scramble(colors[self._source] + self._place))
        return _scramble(colors + np.uint64(3) * before + np.uint64(5) * self._after(colors))

    def _after(self, colors: Colors) -> Colors:
        after = np.zeros_like(colors)
        np.add.at(after, self._source, _scramble(colors[self._target] ^ self._place))
        return after

    def _numbers(self, colors: Colors) -> list[int]:
        numbers: list[int] = np.unique(colors, return_inverse=True)[1].tolist()
        return numbers


def _scramble(x: Colors) -> Colors:
    """A mixing of 64 bits (the finaliser of MurmurHash3)."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        x = (x ^ (x >> np.uint64(33))) * np.uint64(factor)
    return x ^ (x >> np.uint64(33))


def _feedback(uses: Graph, places: set[int]) -> list[int]:
    """A few of the given nodes that every loop of a graph goes through; none if there is no loop, or no such few.

    Of nodes that do equally well, all that are used in several ways: each is a narrow place.
    """
    chosen: list[int] = []
    core = _core(uses)
    while core:
        left = {node: len(_core(_without(core, node))) for node in _loop(core) if node in places}
        if not left:
            return []
        least = min(left.values())
        best = [node for node, size in left.items() if size == least]
        best = [node for node in best if len(core[node]) > 1] or best[:1]
        chosen += best
        if len(chosen) > BOUNDARIES:
            return []
        core = _core(_without(core, *best))
    return chosen


def _without(graph: Graph, *gone: int) -> Graph:
    return {node: targets.difference(gone) for node, targets in graph.items() if node not in gone}


def _core(graph: Graph) -> Graph:
    """The graph without nodes that no loop leads to or away from, over and over."""
    core = {node: set(targets) for node, targets in graph.items()}
    sources: Graph = {node: set() for node in core}
    for node, targets in core.items():
        for target in targets:
            sources[target].add(node)
    todo = [node for node in core if not core[node] or not sources[node]]
    while todo:
        node = todo.pop()
        if node not in core:
            continue
        for target in core.pop(node):
            if target in sources:
                sources[target].discard(node)
                if not sources[target] and target in core:
                    todo.append(target)
        for source in sources.pop(node):
            if source in core:
                core[source].discard(node)
                if not core[source]:
                    todo.append(source)
    return core


def _loop(core: Graph) -> list[int]:
    """Some loop of a graph in which every node leads on."""
    node = min(core)
    position: dict[int, int] = {}
    path: list[int] = []
    while node not in position:
        position[node] = len(path)
        path.append(node)
        node = min(core[node])
    return path[position[node] :]
