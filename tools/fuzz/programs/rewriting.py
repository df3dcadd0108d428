"""Write operations of a program in another way, loops unrolled or peeled among them."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tools.fuzz.programs.program import Block, Builder, Function, Node, inlined
from tools.fuzz.programs.spellings import REWRITES, Rewrite

Way = tuple[frozenset[str], Rewrite]


def rewrite_some(function: Function, rng: random.Random, count: int, ways: Sequence[Way]) -> list[str]:
    """Write that many of those operations in another way that there are ways for."""
    done = []
    for _ in range(count):
        places = [(block, n) for block in function.body.blocks() for n in block.nodes if len(n.outputs) == 1]
        fitting = [(way, [place for place in places if place[1].op in ops]) for ops, way in ways]
        fitting = [each for each in fitting if each[1]]
        if not fitting:
            break
        way, here = rng.choice(fitting)
        block, node = rng.choice(here)
        if _replace(function, block, node, way, rng):
            done.append(f"{node.op}: {way.__name__.strip('_')}")
    return done


def rewrite(function: Function, rng: random.Random, count: int) -> list[str]:
    """Write that many operations in another way. Returns the names of what was done."""
    done = []
    for _ in range(count):
        blocks = [block for block in function.body.blocks() if block.nodes]
        if not blocks:
            break
        block = rng.choice(blocks)
        node = rng.choice(block.nodes)
        if len(node.outputs) != 1:
            found = _unrolled(function, block, node, rng) if node.op == "while" else None
            done += [] if found is None else [found]
            continue
        ways = [way for way in REWRITES if node.op in way[0]]
        if ways:
            _, way = rng.choice(ways)
            if _replace(function, block, node, way, rng):
                done.append(f"{node.op}: {way.__name__.strip('_')}")
    return done


def _replace(function: Function, block: Block, node: Node, way: Rewrite, rng: random.Random) -> bool:
    builder = Builder(function, Block(()))
    try:
        new = way(builder, node, rng)
    except (ValueError, ZeroDivisionError):
        return False
    (old,) = node.outputs
    if new is None or function.kinds[new] != function.kinds[old]:
        return False
    at = block.nodes.index(node)
    block.nodes[at : at + 1] = builder.block.nodes
    substitute(function, {old: new})
    return True


def substitute(function: Function, names: dict[int, int]) -> None:
    """Use other values in place of some."""
    for block in function.body.blocks():
        block.results = tuple(names.get(value, value) for value in block.results)
        for node in block.nodes:
            node.inputs = tuple(names.get(value, value) for value in node.inputs)


def _unrolled(function: Function, block: Block, node: Node, rng: random.Random) -> str | None:
    """A loop that counts up, unrolled, or with its first turn before it (if it is sure to take one)."""
    count = turns(function, block, node)
    if not count:
        return None
    at, current, whole = block.nodes.index(node), node.inputs, rng.random() < 0.6
    nodes: list[Node] = []
    for _ in range(count if whole else 1):
        values = dict(zip(node.regions[1].arguments, current, strict=True))
        nodes += inlined(function, node.regions[1], values)
        current = tuple(values.get(value, value) for value in node.regions[1].results)
    if whole:
        block.nodes[at : at + 1] = nodes
        substitute(function, dict(zip(node.outputs, current, strict=True)))
        return "unroll"
    node.inputs = current
    block.nodes[at:at] = nodes
    return "peel"


def turns(function: Function, block: Block, node: Node) -> int | None:
    """How many turns a loop takes, if that is plain to see."""
    constants = {
        n.outputs[0]: n.attributes["value"] for b in function.body.blocks() for n in b.nodes if n.op == "constant"
    }
    test, body = node.regions
    start = constants.get(node.inputs[0])
    steps = [n for n in body.nodes if n.outputs[0] == body.results[0] and n.op == "add"]
    limits = [n for n in test.nodes if n.op == "compare" and n.outputs[0] == test.results[0]]
    if start is None or not steps or not limits or limits[0].inputs[0] != test.arguments[0]:
        return None
    step, limit = constants.get(steps[0].inputs[1]), constants.get(limits[0].inputs[1])
    if step is None or limit is None or step <= 0 or limits[0].attributes["direction"] != "LT":
        return None
    return max(0, -(-(limit - start) // step))
