"""Make some operations of a program a function that it calls."""

from __future__ import annotations

import random
from collections.abc import Iterable

from tools.fuzz.programs.program import Block, Function, Node, inlined

MOST = 6
"""Operations of a function."""


def outline(function: Function, rng: random.Random) -> str | None:
    """Some operations in a row become a function; what it is called, or None where there are none."""
    block = rng.choice([block for block in function.body.blocks() if block.nodes] or [function.body])
    if not block.nodes:
        return None
    start = rng.randrange(len(block.nodes))
    end = min(len(block.nodes), start + rng.randrange(1, MOST + 1))
    nodes = block.nodes[start:end]
    made = {value for node in nodes for value in node.outputs}
    later = _used(block.nodes[end:]) | set(block.results)
    gives, takes = sorted(made & later), sorted(_free(nodes))
    if not gives:
        return None
    values = {value: function.fresh(function.kinds[value]) for value in takes}
    arguments = tuple(values[value] for value in takes)
    body = inlined(function, Block((), nodes), values)
    called = Block(arguments, body, tuple(values[value] for value in gives))
    block.nodes[start:end] = [Node("call", tuple(takes), tuple(gives), {}, (called,))]
    return "outline"


def _used(nodes: Iterable[Node]) -> set[int]:
    """All values that operations take, or regions of them give."""
    found: set[int] = set()
    for node in nodes:
        found |= set(node.inputs)
        for region in node.regions:
            found |= _used(region.nodes) | set(region.results)
    return found


def _free(nodes: Iterable[Node]) -> set[int]:
    """The values that operations take from outside."""
    known: set[int] = set()
    found: set[int] = set()
    for node in nodes:
        found |= set(node.inputs) - known
        for region in node.regions:
            inside = {value for each in region.nodes for value in each.outputs} | set(region.arguments)
            found |= (_free(region.nodes) | set(region.results)) - known - inside
        known |= set(node.outputs)
    return found
