"""Other ways to write what depends on which device runs it: branches that some devices enter, groups of unequal sizes,
permutes in parts, arithmetic with the device's number.

Some are right only for some meshes or groups: evaluation tells which.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tools.fuzz.programs.placing import Mesh
from tools.fuzz.programs.program import Builder, Kind, Node
from tools.fuzz.programs.spellings import Rewrite

NUMBER = Kind((), "ui32")
IDEMPOTENT = ("maximum", "minimum", "and", "or")
"""Reducers of which a second turn changes nothing."""

Way = Callable[[Builder, Node, random.Random, Mesh], int | None]


def rewrites(mesh: Mesh) -> list[tuple[frozenset[str], Rewrite]]:
    """For which operations of a program for the devices of a mesh, and how."""

    def of(way: Way) -> Rewrite:
        def rewrite(builder: Builder, node: Node, rng: random.Random) -> int | None:
            return way(builder, node, rng, mesh)

        rewrite.__name__ = way.__name__
        return rewrite

    return [(ops, of(way)) for ops, way in WAYS]


def _is_one_of(b: Builder, devices: Sequence[int], mesh: Mesh, rng: random.Random) -> int:
    """Whether the device that runs this is one of those: by a table, or by comparisons."""
    device = b.op("partition_id", (), NUMBER)
    if rng.random() < 0.5:
        table = b.constant([d in devices for d in range(mesh.devices)], Kind((mesh.devices,), "i1"))
        return b.reshape(b.dynamic_slice(table, [b.convert(device, "i32")], [1]))
    found = b.compare("EQ", device, b.like(devices[0], device))
    for each in devices[1:]:
        found = b.same("or", found, b.compare("EQ", device, b.like(each, device)))
    return found


def _in_branches(b: Builder, n: Node, rng: random.Random, mesh: Mesh) -> int | None:
    """The same in both branches of an `if`: whole groups of devices go the same way, or, seldom, any devices do."""
    rows = n.attributes.get("groups") or [[d] for d in range(mesh.devices)]
    if n.op == "collective_permute" or (n.op in COLLECTIVES and rng.random() < 0.2):
        rows = [[d] for d in range(mesh.devices)] if rng.random() < 0.3 else [list(range(mesh.devices))]
    chosen = rng.sample(rows, rng.randrange(1, len(rows) + 1))
    test = _is_one_of(b, [d for row in chosen for d in row], mesh, rng)
    blocks = []
    for _ in range(2):
        region = b.region()
        found = region.op(n.op, n.inputs, b.kind(n.outputs[0]), **n.attributes)
        region.block.results = (found,)
        blocks.append(region.block)
    return b.many("if", [test], [b.kind(n.outputs[0])], blocks)[0]


def _skipped_by_some(b: Builder, n: Node, rng: random.Random, mesh: Mesh) -> int | None:
    """Devices that are alone in what they communicate, or any, take their operand instead."""
    kind = b.kind(n.outputs[0])
    if b.kind(n.inputs[0]) != kind:
        return None
    alone = [row[0] for row in n.attributes.get("groups", []) if len(row) == 1]
    skipping = alone or [rng.randrange(mesh.devices)]
    blocks = [b.region(), b.region()]
    blocks[0].block.results = (n.inputs[0],)
    blocks[1].block.results = (blocks[1].op(n.op, n.inputs, kind, **n.attributes),)
    return b.many("if", [_is_one_of(b, skipping, mesh, rng)], [kind], [each.block for each in blocks])[0]


def _groups_of_unequal_sizes(b: Builder, n: Node, rng: random.Random, mesh: Mesh) -> int | None:
    """A sum over groups, of the sums over parts of them that have unequal sizes."""
    rows, kind, combine = n.attributes["groups"], b.kind(n.outputs[0]), n.attributes["combine"]
    if combine not in ("add", "or", "xor") or min(map(len, rows)) < 2 or len(rows) * len(rows[0]) != mesh.devices:
        return None
    parts = []
    for row in rows:
        at = rng.randrange(1, len(row))
        mixed = rng.sample(row, len(row))
        parts += [mixed[:at], mixed[at:]]
    first = b.op("all_reduce", n.inputs, kind, combine=combine, groups=parts)
    leads = b.broadcast(_is_one_of(b, [part[0] for part in parts], mesh, rng), kind.shape)
    kept = b.op("select", (leads, first, b.like(0, first)), kind)
    return b.op("all_reduce", (kept,), kind, combine=combine, groups=rows)


def _again_in_a_loop(b: Builder, n: Node, rng: random.Random, mesh: Mesh) -> int | None:
    """A reduction that changes nothing the second time, in a loop of one to three turns; of others, one turn."""
    kind = b.kind(n.outputs[0])
    if b.kind(n.inputs[0]) != kind:
        return None
    count = rng.randrange(1, 4) if n.attributes.get("combine") in IDEMPOTENT else 1
    return _turns(b, n.inputs[0], lambda inner, x: inner.op(n.op, (x,), kind, **n.attributes), count)


def _turns(b: Builder, start: int, step: Callable[[Builder, int], int], count: int) -> int:
    """A loop of so many turns over one value."""
    kinds = [Kind((), "i32"), b.kind(start)]
    test, body = b.region(kinds), b.region(kinds)
    test.block.results = (test.compare("LT", test.block.arguments[0], test.constant(count, kinds[0])),)
    number, value = body.block.arguments
    body.block.results = (body.same("add", number, body.constant(1, kinds[0])), step(body, value))
    return b.many("while", [b.constant(0, kinds[0]), start], kinds, [test.block, body.block])[1]


# Permutes


def _in_two_parts(b: Builder, n: Node, rng: random.Random, mesh: Mesh) -> int | None:
    """Some pairs and then the others: what gets nothing has zeros."""
    pairs = rng.sample(n.attributes["pairs"], len(n.attributes["pairs"]))
    if len(pairs) < 2:
        return None
    at = rng.randrange(1, len(pairs))
    parts = [b.same("collective_permute", n.inputs[0], pairs=part) for part in (pairs[:at], pairs[at:])]
    kind = b.kind(n.inputs[0])
    names = ["add", "or"] if kind.is_integer else ["or"] if kind.dtype == "i1" else ["add"]
    return b.same(rng.choice([*names, "maximum"]), *parts)


def _by_way_of(b: Builder, n: Node, rng: random.Random, mesh: Mesh) -> int | None:
    """To another device first, and from there to where it belongs."""
    on_the_way = rng.sample(range(mesh.devices), mesh.devices)
    first = [[d, on_the_way[d]] for d in range(mesh.devices)]
    second = [[on_the_way[source], target] for source, target in n.attributes["pairs"]]
    there = b.same("collective_permute", n.inputs[0], pairs=first)
    return b.same("collective_permute", there, pairs=second)


def _from_all(b: Builder, n: Node, rng: random.Random, mesh: Mesh) -> int | None:
    """All devices' values, of which each takes the one that it gets; those that get nothing take zeros, or do not."""
    kind, source = b.kind(n.inputs[0]), {target: source for source, target in n.attributes["pairs"]}
    one = b.reshape(n.inputs[0], 1, *kind.shape)
    every = b.op(
        "all_gather", (one,), kind.shaped(mesh.devices, *kind.shape), groups=[list(range(mesh.devices))], dim=0
    )
    if 0 in kind.shape:
        return None
    device = b.convert(b.op("partition_id", (), NUMBER), "i32")
    table = b.constant([source.get(d, 0) for d in range(mesh.devices)], Kind((mesh.devices,), "i32"))
    row = b.reshape(b.dynamic_slice(table, [device], [1]))
    starts = [row, *(b.constant(0, Kind((), "i32")) for _ in kind.shape)]
    found = b.reshape(b.dynamic_slice(every, starts, [1, *kind.shape]), *kind.shape)
    if len(source) == mesh.devices or rng.random() < 0.2:
        return found
    gets = b.broadcast(_is_one_of(b, sorted(source), mesh, rng), kind.shape)
    return b.op("select", (gets, found, b.like(0, found)), kind)


def _as_a_permute(b: Builder, n: Node, rng: random.Random, mesh: Mesh) -> int | None:
    """An exchange of shards as a permute of each, put together again."""
    rows, split, dim = n.attributes["groups"], n.attributes["split"], n.attributes["dim"]
    kind, count = b.kind(n.inputs[0]), len(n.attributes["groups"][0])
    size = kind.shape[split] // count
    place = {device: k for row in rows for k, device in enumerate(row)}
    if size == 0 or len(place) != mesh.devices or count > 4:
        return None
    number = _from_table(b, [place[d] for d in range(mesh.devices)])
    shape, wide = list(kind.shape), list(kind.shape)
    shape[split] = size
    wide[split], wide[dim] = wide[split] // count, wide[dim] * count
    found = b.constant(0, kind.shaped(*wide))
    for by in range(count):
        target = _modulo(b, b.same("add", number, b.like(by, number)), count)
        starts = [_times(b, target, size) if k == split else b.like(0, number) for k in range(len(shape))]
        piece = b.dynamic_slice(n.inputs[0], starts, shape)
        pairs = [[row[k], row[(k + by) % count]] for row in rows for k in range(count)]
        piece = b.same("collective_permute", piece, pairs=pairs)
        source = _modulo(b, b.same("add", number, b.like(count - by, number)), count)
        starts = [_times(b, source, shape[dim]) if k == dim else b.like(0, number) for k in range(len(shape))]
        found = b.update(found, piece, starts)
    return found


def _from_table(b: Builder, numbers: Sequence[int]) -> int:
    device = b.convert(b.op("partition_id", (), NUMBER), "i32")
    table = b.constant(list(numbers), Kind((len(numbers),), "i32"))
    return b.reshape(b.dynamic_slice(table, [device], [1]))


def _modulo(b: Builder, a: int, count: int) -> int:
    return b.same("remainder", a, b.like(count, a))


def _times(b: Builder, a: int, by: int) -> int:
    return b.same("multiply", a, b.like(by, a))


# The device's number


def _number(b: Builder, n: Node, rng: random.Random, mesh: Mesh) -> int | None:
    p, count = b.op("partition_id", (), NUMBER), mesh.devices
    c = b.like(rng.choice(range(2, count + 2)), p)
    way = rng.choice("parts xor table bits from_the_end counted turns clamped wrapped shifted".split())
    if way == "parts":
        return b.same("add", b.same("multiply", b.same("divide", p, c), c), b.same("remainder", p, c))
    if way == "xor":
        return b.same("xor", b.same("xor", p, c), c)
    if way == "table":
        return b.convert(_from_table(b, list(range(count))), "ui32")
    if way == "bits":
        return b.same("and", p, b.like(rng.choice([count - 1, 7, 15]), p))
    if way == "from_the_end":
        last = b.like(count - 1, p)
        return b.same("subtract", last, b.same("subtract", last, p))
    if way == "counted":
        total = b.like(0, p)
        for k in range(1, count):
            total = b.same("add", total, b.convert(b.compare("GE", p, b.like(k, p)), "ui32"))
        return total
    if way == "turns":
        return _as_many_turns(b, p)
    if way == "clamped":
        return b.op("clamp", (b.like(0, p), p, b.like(rng.choice([count - 1, count, count - 2]), p)), NUMBER)
    if way == "wrapped":
        return b.same("add", b.same("subtract", p, c), c)
    narrow = rng.choice(["ui8", "i8", "i16", "i64"])
    one = b.convert(p, narrow)
    back = b.same("shift_right_logical", b.same("shift_left", one, b.like(rng.choice([1, 5, 6]), one)), b.like(1, one))
    return b.convert(one if rng.random() < 0.6 else back, "ui32")


def _as_many_turns(b: Builder, p: int) -> int:
    """A loop that takes as many turns as the device's number says."""
    test, body = b.region([NUMBER, NUMBER]), b.region([NUMBER, NUMBER])
    test.block.results = (test.compare("LT", test.block.arguments[0], p),)
    body.block.results = tuple(body.same("add", v, body.like(1, v)) for v in body.block.arguments)
    zero = b.like(0, p)
    return b.many("while", [zero, zero], [NUMBER, NUMBER], [test.block, body.block])[1]


COLLECTIVES = frozenset(
    "all_reduce reduce_scatter all_gather all_to_all collective_broadcast collective_permute".split()
)

WAYS: list[tuple[frozenset[str], Way]] = [
    (COLLECTIVES | {"add", "multiply", "reduce", "dot_general"}, _in_branches),
    (COLLECTIVES | {"negate", "abs", "add"}, _skipped_by_some),
    (frozenset(["all_reduce"]), _groups_of_unequal_sizes),
    (frozenset(["all_reduce", "collective_permute", "collective_broadcast"]), _again_in_a_loop),
    (frozenset(["collective_permute"]), _in_two_parts),
    (frozenset(["collective_permute"]), _by_way_of),
    (frozenset(["collective_permute"]), _from_all),
    (frozenset(["all_to_all"]), _as_a_permute),
    (frozenset(["partition_id"]), _number),
]
"""For which operations, and how."""
