"""What devices exchange, in numpy: what each collective gives every device."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tools.fuzz.programs.elementwise import Array, combine
from tools.fuzz.programs.program import Node


def _grouped(a: Array, groups: list[list[int]], result: Callable[[list[Array]], list[Array]]) -> Array:
    """What each device gets of what those of its group hold."""
    found: dict[int, Array] = {}
    for group in groups:
        found |= dict(zip(group, result([a[:, d] for d in group]), strict=True))
    return np.stack([found[d] for d in range(a.shape[1])], axis=1)


def _all_reduce(node: Node, a: Array) -> Array:
    def result(parts: list[Array]) -> list[Array]:
        return [combine(node.attributes["combine"], np.stack(parts), 0)] * len(parts)

    return _grouped(a, node.attributes["groups"], result)


def _all_gather(node: Node, a: Array) -> Array:
    def result(parts: list[Array]) -> list[Array]:
        return [np.concatenate(parts, axis=1 + node.attributes["dim"])] * len(parts)

    return _grouped(a, node.attributes["groups"], result)


def _reduce_scatter(node: Node, a: Array) -> Array:
    def result(parts: list[Array]) -> list[Array]:
        whole = combine(node.attributes["combine"], np.stack(parts), 0)
        return np.split(whole, len(parts), axis=1 + node.attributes["dim"])

    return _grouped(a, node.attributes["groups"], result)


def _all_to_all(node: Node, a: Array) -> Array:
    def result(parts: list[Array]) -> list[Array]:
        pieces = [np.split(part, len(parts), axis=1 + node.attributes["split"]) for part in parts]
        rows = (list(row) for row in zip(*pieces, strict=True))
        return [np.concatenate(row, axis=1 + node.attributes["dim"]) for row in rows]

    return _grouped(a, node.attributes["groups"], result)


def _permute(node: Node, a: Array) -> Array:
    found = np.zeros_like(a)
    for source, target in node.attributes["pairs"]:
        found[:, target] = a[:, source]
    return found


def _broadcast(node: Node, a: Array) -> Array:
    found = np.zeros_like(a)
    for group in node.attributes["groups"]:
        found[:, group] = a[:, group[:1]]
    return found


COLLECTIVES: dict[str, Callable[[Node, Array], Array]] = {
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "collective_permute": _permute,
    "collective_broadcast": _broadcast,
}
