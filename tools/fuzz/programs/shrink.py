"""Make a pair that shows something smaller, as long as it shows it: leave out results, arguments and operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tools.fuzz.programs.pair import Pair, with_result
from tools.fuzz.programs.program import Block, Function, Node, prune
from tools.fuzz.programs.rewriting import substitute

ROUNDS = 20


def shrink(pair: Pair, shows: Callable[[Pair], bool]) -> Pair:
    """The smallest pair that still shows it, found greedily."""
    for _ in range(ROUNDS):
        smaller = next((each for each in _smaller(pair) if _is_shown(each, shows)), None)
        if smaller is None:
            return pair
        pair = smaller
    return pair


def _is_shown(pair: Pair, shows: Callable[[Pair], bool]) -> bool:
    try:
        return shows(pair)
    except Exception:  # a program without meaning shows nothing
        return False


def _smaller(pair: Pair) -> Iterator[Pair]:
    if len(pair.gives) > 1:
        for k in range(len(pair.gives)):
            yield with_result(pair, k)
    for both in (True, False):
        yield from _without_operations(pair, both)


def _without_operations(pair: Pair, is_logical: bool) -> Iterator[Pair]:
    """An operation's operand in its place, or a constant."""
    function = pair.logical if is_logical else pair.partitioned
    for number, (block, node) in enumerate(_nodes(function)):
        for operand in range(len(node.inputs) + 1):
            new = function.copy()
            block, node = list(_nodes(new))[number]
            if _without(new, block, node, operand):
                prune(new)
                yield replace(pair, **{"logical" if is_logical else "partitioned": new})


def _nodes(function: Function) -> list[tuple[Block, Node]]:
    return [(block, node) for block in function.body.blocks() for node in block.nodes]


def _without(function: Function, block: Block, node: Node, operand: int) -> bool:
    if len(node.outputs) != 1 or node.op == "constant":
        return False
    kind = function.kinds[node.outputs[0]]
    if operand == len(node.inputs):
        node.op, node.inputs, node.regions = "constant", (), ()
        node.attributes = {"value": 1}
        return True
    if function.kinds[node.inputs[operand]] != kind:
        return False
    block.nodes.remove(node)
    substitute(function, {node.outputs[0]: node.inputs[operand]})
    return True
