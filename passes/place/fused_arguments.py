"""Arguments that are several tensors in one: the weights of queries, keys and values, or of gates and their inputs.

A device that holds a shard of each does not hold a contiguous shard of the whole. A module is made to take the tensors
one by one, and to put them together itself: then every argument lies as arguments do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod
from typing import Any

from hlo_verify.passes.load.front import Taken, Writer, as_they_are, put_in_front
from hlo_verify.program.ir import Module, Name, TensorType


def segments(logical: Module, partitioned: Module, n: int, k: int) -> Iterator[tuple[int, ...]]:
    """The sizes of the tensors that dimension `k` of argument `n` may consist of, by how both modules take values of
    its size apart: at the same places, or in as many equal parts."""
    whole, part = (module.main.argument_types[n].shape[k] for module in (logical, partitioned))
    ours, theirs = _breaks(logical, whole), _breaks(partitioned, part)
    for points in sorted(ours):
        scaled = tuple(point * part // whole for point in points)
        if scaled in theirs and all(point * part % whole == 0 for point in points):
            ends = (0, *points, whole)
            yield tuple(b - a for a, b in pairwise(ends))


def _breaks(module: Module, size: int) -> set[tuple[int, ...]]:
    """Where dimensions of that size are split: by slices that are next to each other, or by a reshape."""
    types: dict[Name, TensorType] = dict(zip(module.main.arguments, module.main.argument_types, strict=True))
    sliced: dict[tuple[Name, int], set[int]] = {}
    found: set[tuple[int, ...]] = set()
    for op in module.main.ops:
        types.update(zip(op.results, op.types, strict=True))
        if op.name == "slice":
            bounds = zip(op.attributes["start_indices"], op.attributes["limit_indices"], strict=True)
            for k, (start, limit) in enumerate(bounds):
                if types[op.operands[0]].shape[k] == size:
                    sliced.setdefault((op.operands[0], k), set()).update({int(start), int(limit)} - {0, size})
        elif op.name == "reshape":
            given, shape = types[op.operands[0]].shape, op.types[0].shape
            before = {prod(given[:k]) for k, length in enumerate(given) if length == size}
            for k, (count, length) in enumerate(pairwise(shape)):
                if count > 1 and count * length == size and prod(shape[:k]) in before:
                    found.add(tuple(range(length, size, length)))
    return found | {tuple(sorted(points)) for points in sliced.values() if points}


def taken_apart(module: Module, n: int, k: int, sizes: Sequence[int]) -> Module:
    """The module with argument `n` replaced by arguments that are its parts of those sizes along dimension `k`."""
    ends = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
    shape = module.main.argument_types[n].shape
    parts = [
        Taken(n, f"{module.argument_names[n]}[{':, ' * k}{a}:{b}]", (*shape[:k], b - a, *shape[k + 1 :]))
        for a, b in pairwise(ends)
    ]
    takes = as_they_are(module)
    takes[n : n + 1] = parts

    def enter(writer: Writer, given: list[Any]) -> list[Any]:
        joined = writer.joined(given[n : n + len(sizes)], k, shape)
        return [*given[:n], joined, *given[n + len(sizes) :]]

    return put_in_front(module, takes, enter)
