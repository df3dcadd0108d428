"""One edit that mostly changes what a program computes."""

from __future__ import annotations

import random
from collections.abc import Callable

from tools.fuzz.programs.program import COMPLEX, Block, Builder, Function, Kind, Node
from tools.fuzz.programs.rewriting import substitute

Edit = Callable[[Function, Block, Node, random.Random], bool]
"""Whether it could be made."""

TRIES = 30
"""Places that are tried before a program is left as it is."""


def mutate(function: Function, rng: random.Random) -> str | None:
    """What was edited, or None where nothing fits."""
    places = [(block, node) for block in function.body.blocks() for node in block.nodes]
    for _ in range(TRIES if places else 0):
        block, node = rng.choice(places)
        edits = [edit for edit, fits in EDITS if fits is None or node.op in fits]
        edit = rng.choice(edits)
        if edit(function, block, node, rng):
            return f"{node.op}: {edit.__name__.strip('_')}"
    return None


def _visible(function: Function, block: Block, node: Node) -> list[int]:
    """Values of the block before an operation."""
    found = list(block.arguments)
    for each in block.nodes:
        if each is node:
            break
        found += each.outputs
    return found


def _operand(function: Function, block: Block, node: Node, rng: random.Random) -> bool:
    """Another value of the same type."""
    if not node.inputs:
        return False
    k = rng.randrange(len(node.inputs))
    kind = function.kinds[node.inputs[k]]
    others = [v for v in _visible(function, block, node) if function.kinds[v] == kind and v != node.inputs[k]]
    if not others:
        return False
    node.inputs = (*node.inputs[:k], rng.choice(others), *node.inputs[k + 1 :])
    return True


def _swap(function: Function, block: Block, node: Node, rng: random.Random) -> bool:
    if len(node.inputs) < 2:
        return False
    a, b = rng.sample(range(len(node.inputs)), 2)
    inputs = list(node.inputs)
    if function.kinds[inputs[a]] != function.kinds[inputs[b]]:
        return False
    inputs[a], inputs[b] = inputs[b], inputs[a]
    node.inputs = tuple(inputs)
    return inputs[a] != inputs[b]


def _drop(function: Function, block: Block, node: Node, rng: random.Random) -> bool:
    """An operand in place of the result."""
    if len(node.outputs) != 1:
        return False
    kind = function.kinds[node.outputs[0]]
    others = [v for v in node.inputs if function.kinds[v] == kind]
    if not others:
        return False
    block.nodes.remove(node)
    substitute(function, {node.outputs[0]: rng.choice(others)})
    return True


def _twice(function: Function, block: Block, node: Node, rng: random.Random) -> bool:
    """The operation is applied to its own result."""
    if len(node.outputs) != 1 or not node.inputs or node.regions:
        return False
    (output,) = node.outputs
    if function.kinds[node.inputs[0]] != function.kinds[output]:
        return False
    again = node.copy()
    middle = function.fresh(function.kinds[output])
    node.outputs = (middle,)
    again.inputs = (middle, *node.inputs[1:])
    block.nodes.insert(block.nodes.index(node) + 1, again)
    return True


SIMILAR = [
    "add subtract multiply maximum minimum and or xor mulhi".split(), "divide remainder".split(),
    "shift_right_logical shift_right_arithmetic shift_left".split(), "negate abs not sign".split(),
    "popcnt count_leading_zeros".split(),
]  # fmt: skip


def _function(function: Function, block: Block, node: Node, rng: random.Random) -> bool:
    kind = function.kinds[node.outputs[0]]
    names = next((names for names in SIMILAR if node.op in names), [])
    if kind.dtype == "i1":
        names = [name for name in names if name in ("and", "or", "xor")]
    elif not kind.is_integer:
        names = [name for name in names if name not in ("and", "or", "xor", "not", "mulhi")]
    elif kind.dtype[0] == "u":
        names = [name for name in names if name not in ("abs", "sign")]
    others = [name for name in names if name != node.op]
    if not others:
        return False
    node.op = rng.choice(others)
    return True


def _constant(function: Function, block: Block, node: Node, rng: random.Random) -> bool:
    value, kind = node.attributes["value"], function.kinds[node.outputs[0]]
    if isinstance(value, list):
        if len(value) < 2:
            return False
        value = list(value)
        a, b = rng.sample(range(len(value)), 2)
        if rng.random() < 0.5:
            value[a], value[b] = value[b], value[a]
        else:
            value[a] = value[b]
        changed = value != node.attributes["value"]
        node.attributes["value"] = value
        return changed
    if kind.dtype == "i1":
        node.attributes["value"] = not value
        return True
    if kind.is_float or kind.dtype == COMPLEX:
        node.attributes["value"] = rng.choice([value + 1, -value, value * 2, 0.0])
        return True
    bits = kind.bits
    low, high = (0, 2**bits - 1) if kind.dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    node.attributes["value"] = min(max(rng.choice([value + 1, value - 1, value * 2, 0, -value]), low), high)
    return bool(node.attributes["value"] != value)


def _direction(function: Function, block: Block, node: Node, rng: random.Random) -> bool:
    names = ["LT", "GT"] if node.op == "sort" else ["EQ", "NE", "LT", "LE", "GT", "GE"]
    node.attributes["direction"] = rng.choice([name for name in names if name != node.attributes["direction"]])
    return True


def _ties(function: Function, block: Block, node: Node, rng: random.Random) -> bool:
    node.attributes["ties"] = "GT" if node.attributes["ties"] == "LT" else "LT"
    return True


def _reducer(function: Function, block: Block, node: Node, rng: random.Random) -> bool:
    kind = function.kinds[node.outputs[0]]
    if kind.dtype == COMPLEX:
        return False
    names = ["and", "or", "xor"] if kind.dtype == "i1" else ["add", "maximum", "minimum"]
    names += ["and", "or", "xor", "multiply"] if kind.is_integer else []
    node.attributes["combine"] = rng.choice([name for name in names if name != node.attributes["combine"]])
    return True


def _start(function: Function, block: Block, node: Node, rng: random.Random) -> bool:
    """A reduction that starts with another number."""
    if "start" in node.attributes and rng.random() < 0.5:
        del node.attributes["start"]
    else:
        node.attributes["start"] = rng.randrange(2)
    return True


def _groups(function: Function, block: Block, node: Node, rng: random.Random) -> bool:
    """Other groups of the same size, or the same devices in another order."""
    rows = node.attributes["groups"]
    size = len(rows[0])
    devices = [d for row in rows for d in row]
    mixed = rng.sample(devices, len(devices))
    if rng.random() < 0.3 and len(rows) > 1:
        mixed = [row[k] for k in range(max(map(len, rows))) for row in rows if k < len(row)]
    new = [mixed[k : k + size] for k in range(0, len(mixed), size)]
    if node.op == "all_reduce" and rng.random() < 0.2:
        at = rng.randrange(1, len(mixed))
        new = [mixed[:at], mixed[at:]]
    node.attributes["groups"] = new
    return new != rows


def _pairs(function: Function, block: Block, node: Node, rng: random.Random) -> bool:
    pairs = [list(pair) for pair in node.attributes["pairs"]]
    way = rng.choice(["turn", "leave out", "exchange", "rotate"])
    if way == "turn":
        pairs = [pair[::-1] for pair in pairs]
    elif way == "leave out" and len(pairs) > 1:
        pairs.pop(rng.randrange(len(pairs)))
    elif len(pairs) > 1:
        a, b = rng.sample(range(len(pairs)), 2)
        pairs[a][1], pairs[b][1] = pairs[b][1], pairs[a][1]
    changed = sorted(pairs) != sorted(node.attributes["pairs"])
    node.attributes["pairs"] = pairs
    return changed


def _dimension(function: Function, block: Block, node: Node, rng: random.Random) -> bool:
    """Along another dimension of the same size."""
    (dim, shape) = node.attributes["dim"], function.kinds[node.outputs[0]].shape
    if node.op not in ("iota", "sort", "concatenate", "all_gather", "reduce_scatter") or len(shape) < 2:
        return False
    same = [k for k, n in enumerate(shape) if k != dim and n == shape[dim]]
    if node.op in ("concatenate", "all_gather", "reduce_scatter"):
        before = function.kinds[node.inputs[0]].shape
        same = [k for k in same if before[k] == before[dim] and n_all(function, node, k, dim)]
        if same:
            return False  # the other sizes do not fit
    if not same:
        return False
    node.attributes["dim"] = rng.choice(same)
    return True


def n_all(function: Function, node: Node, k: int, dim: int) -> bool:
    return all(function.kinds[v].shape[k] == function.kinds[v].shape[dim] for v in node.inputs)


def _order(function: Function, block: Block, node: Node, rng: random.Random) -> bool:
    """Other dimensions change places: where sizes do not fit, elements keep their order."""
    order, (a,) = node.attributes["order"], node.inputs
    if len(order) < 2:
        return False
    new = tuple(rng.sample(order, len(order)))
    shape = function.kinds[a].shape
    if [shape[k] for k in new] != [shape[k] for k in order]:
        return False
    node.attributes["order"] = new
    return new != order


def _broadcast(function: Function, block: Block, node: Node, rng: random.Random) -> bool:
    dims = node.attributes["dims"]
    if len(dims) == 0:
        return False
    source, shape = function.kinds[node.inputs[0]].shape, function.kinds[node.outputs[0]].shape
    new = tuple(rng.sample(range(len(shape)), len(dims)))
    if any(n not in (1, shape[k]) for n, k in zip(source, new, strict=True)):
        return False
    node.attributes["dims"] = new
    return new != dims


def _slice(function: Function, block: Block, node: Node, rng: random.Random) -> bool:
    k = rng.randrange(len(node.attributes["starts"])) if node.attributes["starts"] else None
    if k is None:
        return False
    size, by = function.kinds[node.inputs[0]].shape[k], rng.choice([-1, 1])
    starts, limits = list(node.attributes["starts"]), list(node.attributes["limits"])
    starts[k], limits[k] = starts[k] + by, limits[k] + by
    if starts[k] < 0 or limits[k] > size:
        return False
    node.attributes |= {"starts": tuple(starts), "limits": tuple(limits)}
    return True


def _pad(function: Function, block: Block, node: Node, rng: random.Random) -> bool:
    if not node.attributes["low"]:
        return False
    k, by = rng.randrange(len(node.attributes["low"])), rng.choice([-1, 1])
    low, high = list(node.attributes["low"]), list(node.attributes["high"])
    low[k], high[k] = low[k] + by, high[k] - by
    n = function.kinds[node.inputs[0]].shape[k]
    if n + min(low[k], 0) + min(high[k], 0) < 0:
        return False
    node.attributes |= {"low": tuple(low), "high": tuple(high)}
    return True


def _reverse(function: Function, block: Block, node: Node, rng: random.Random) -> bool:
    """An operand is reversed along a dimension, or rotated by one."""
    places = [k for k, v in enumerate(node.inputs) if any(n > 1 for n in function.kinds[v].shape)]
    if not places:
        return False
    k = rng.choice(places)
    kind = function.kinds[node.inputs[k]]
    dim = rng.choice([dim for dim, n in enumerate(kind.shape) if n > 1])
    builder = Builder(function, Block(()))
    if rng.random() < 0.5:
        new = builder.same("reverse", node.inputs[k], dims=(dim,))
    else:
        starts = [1 if j == dim else 0 for j in range(len(kind.shape))]
        ends = [1 if j == dim else n for j, n in enumerate(kind.shape)]
        parts = builder.slice(node.inputs[k], starts, kind.shape), builder.slice(node.inputs[k], [0] * len(ends), ends)
        new = builder.concatenate(parts, dim)
    at = block.nodes.index(node)
    block.nodes[at:at] = builder.block.nodes
    node.inputs = (*node.inputs[:k], new, *node.inputs[k + 1 :])
    return True


def _one_device(function: Function, block: Block, node: Node, rng: random.Random) -> bool:
    """On one device the result is another."""
    kind = function.kinds[node.outputs[0]]
    if len(node.outputs) != 1 or node.op == "partition_id":
        return False
    builder = Builder(function, Block(()))
    device = builder.op("partition_id", (), Kind((), "ui32"))
    mine = builder.compare("EQ", device, builder.constant(rng.randrange(2), Kind((), "ui32")))
    mine = builder.broadcast(mine, kind.shape)
    (old,) = node.outputs
    middle = function.fresh(kind)
    other = builder.same("not", middle) if kind.dtype == "i1" else builder.same("add", middle, builder.like(1, middle))
    new = builder.op("select", (mine, other, middle), kind)
    node.outputs = (middle,)
    builder.block.nodes[-1].outputs = (old,)
    at = block.nodes.index(node) + 1
    block.nodes[at:at] = builder.block.nodes
    return bool(new)


def _window(function: Function, block: Block, node: Node, rng: random.Random) -> bool:
    """Windows that start one earlier, or later."""
    low, high = node.attributes["edges"]
    by = rng.choice([-1, 1])
    node.attributes["edges"] = (low + by, high - by)
    return function.kinds[node.inputs[0]].shape[node.attributes["dim"]] + min(low + by, 0) + min(high - by, 0) >= 0


def _gap(function: Function, block: Block, node: Node, rng: random.Random) -> bool:
    """A shift the other way."""
    low, high = node.attributes["low"], node.attributes["high"]
    node.attributes |= {"low": high, "high": low}
    return bool(low != high)


def _state(function: Function, block: Block, node: Node, rng: random.Random) -> bool:
    """Random bits of the state before, or of another one."""
    others = [v for v in _visible(function, block, node) if function.kinds[v] == function.kinds[node.inputs[0]]]
    node.inputs = (rng.choice(others),)
    return True


def _branches(function: Function, block: Block, node: Node, rng: random.Random) -> bool:
    regions = list(node.regions)
    a, b = rng.sample(range(len(regions)), 2)
    regions[a], regions[b] = regions[b], regions[a]
    node.regions = tuple(regions)
    return True


def _carried(function: Function, block: Block, node: Node, rng: random.Random) -> bool:
    """A loop hands on a value as it got it, or two in each other's place."""
    body = node.regions[1]
    if len(body.results) < 2:
        return False
    k = rng.randrange(1, len(body.results))
    others = [
        v for v in body.arguments if function.kinds[v] == function.kinds[body.results[k]] and v != body.results[k]
    ]
    if not others:
        return False
    body.results = (*body.results[:k], rng.choice(others), *body.results[k + 1 :])
    return True


EDITS: list[tuple[Edit, frozenset[str] | None]] = [
    (_operand, None),
    (_swap, None),
    (_drop, None),
    (_twice, None),
    (_function, None),
    (_one_device, None),
    (_reverse, None),
    (_constant, frozenset(["constant"])),
    (_constant, frozenset(["constant"])),
    (_direction, frozenset(["compare", "sort"])),
    (_ties, frozenset(["argmax"])),
    (_reducer, frozenset(["reduce", "reduce_window", "all_reduce", "reduce_scatter", "scatter"])),
    (_start, frozenset(["reduce"])),
    (_groups, frozenset(["all_reduce", "reduce_scatter", "all_gather", "all_to_all", "collective_broadcast"])),
    (_groups, frozenset(["all_reduce", "reduce_scatter", "all_gather", "all_to_all", "collective_broadcast"])),
    (_pairs, frozenset(["collective_permute"])),
    (_dimension, frozenset(["iota", "sort"])),
    (_order, frozenset(["transpose"])),
    (_broadcast, frozenset(["broadcast_in_dim"])),
    (_slice, frozenset(["slice"])),
    (_pad, frozenset(["pad"])),
    (_window, frozenset(["reduce_window"])),
    (_gap, frozenset(["pad"])),
    (_state, frozenset(["rng_bit_generator"])),
    (_branches, frozenset(["if", "case"])),
    (_carried, frozenset(["while"])),
]
"""Edits, and which operations they are for (None: all)."""
