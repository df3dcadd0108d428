"""A random partitioner: each operation of a program for one device on shards, with communication as it needs it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tools.fuzz.programs.collectives import Wires, move
from tools.fuzz.programs.elementwise import NAMES
from tools.fuzz.programs.halos import batched, shifted
from tools.fuzz.programs.placing import Layout, Mesh, whole
from tools.fuzz.programs.program import Block, Builder, Function, Kind, Node

Placed = tuple[int, Layout]


MESHES = ((2,), (4,), (3,), (2, 2), (2, 2), (2, 3), (2, 4), (2, 2, 2))


def random_mesh(rng: random.Random) -> Mesh:
    sizes = rng.choice(MESHES)
    order = list(range(math.prod(sizes)))
    if rng.random() < 0.3:
        rng.shuffle(order)
    return Mesh(("a", "b", "c")[: len(sizes)], sizes, tuple(order))


def random_layout(kind: Kind, mesh: Mesh, rng: random.Random, uneven: float = 0.1) -> Layout:
    """Each axis splits a dimension, or none; shards are mostly of equal sizes."""
    layout = whole(len(kind.shape))
    for axis in rng.sample(mesh.names, len(mesh.names)):
        if not kind.shape or rng.random() < 0.3:
            continue
        dim = rng.randrange(len(kind.shape))
        wanted = layout.with_dim(dim, (*layout.dims[dim], axis))
        if wanted.is_even(mesh, kind) or (rng.random() < uneven and kind.shape[dim] > 1):
            layout = wanted
    return layout


@dataclass(slots=True)
class Partitioner:
    """Lowers blocks; `placed` says where each value of the logical program is, and how it lies."""

    logical: Function
    wires: Wires
    placed: dict[int, Placed]

    @property
    def builder(self) -> Builder:
        return self.wires.builder

    @property
    def mesh(self) -> Mesh:
        return self.wires.mesh

    @property
    def random(self) -> random.Random:
        return self.wires.random

    def kind(self, value: int) -> Kind:
        """The logical type."""
        return self.logical.kinds[value]

    def layout(self, value: int) -> Layout:
        return self.placed[value][1]

    def at(self, value: int, layout: Layout) -> int:
        """A logical value, lying so."""
        found, old = self.placed[value]
        if old == layout:
            return found
        return move(self.wires, found, self.kind(value), old, layout)

    def whole(self, value: int) -> int:
        return self.at(value, whole(len(self.kind(value).shape)))

    def even(self, layout: Layout, kind: Kind) -> Layout:
        """The layout without addends and without dimensions that shards do not divide."""
        dims = (axes if n % self.mesh.size(axes) == 0 else () for n, axes in zip(kind.shape, layout.dims, strict=True))
        return Layout(tuple(dims))

    def block(self, block: Block) -> None:
        for node in block.nodes:
            found = RULES.get(node.op, elementwise if node.op in NAMES else everywhere)(self, node)
            self.placed.update(zip(node.outputs, found, strict=True))

    def inside(self, block: Block, layouts: Sequence[Layout], wanted: Sequence[Layout]) -> Block:
        """A region, on shards that lie so, with results that do."""
        kinds = [
            layout.local(self.mesh, self.kind(value)) for value, layout in zip(block.arguments, layouts, strict=True)
        ]
        region = self.builder.region(kinds)
        inner = Partitioner(self.logical, self.wires.inside(region), dict(self.placed))
        inner.placed.update(
            zip(block.arguments, zip(region.block.arguments, layouts, strict=True), strict=True)
        )  # fmt: skip
        inner.block(block)
        results = [inner.at(value, layout) for value, layout in zip(block.results, wanted, strict=True)]
        region.block.results = tuple(results)
        return region.block


def partition(
    logical: Function, mesh: Mesh, takes: Sequence[Layout], gives: Sequence[Layout], rng: random.Random
) -> Function:
    """What each device runs."""
    function = Function()
    builder = Builder(function, function.body)
    parts = Partitioner(logical, Wires(builder, mesh, rng), {})
    for value, layout in zip(logical.body.arguments, takes, strict=True):
        parts.placed[value] = builder.argument(layout.local(mesh, logical.kinds[value])), layout
    parts.block(logical.body)
    function.body.results = tuple(
        parts.at(value, layout) for value, layout in zip(logical.body.results, gives, strict=True)
    )
    return function


# Rules: the values of an operation's results, each with its layout


def everywhere(parts: Partitioner, node: Node) -> list[Placed]:
    """Every device does all of it."""
    inputs = [parts.whole(value) for value in node.inputs]
    kinds = [parts.kind(value) for value in node.outputs]
    found = parts.builder.many(node.op, inputs, kinds, **node.attributes)
    return [(value, whole(len(kind.shape))) for value, kind in zip(found, kinds, strict=True)]


def elementwise(parts: Partitioner, node: Node) -> list[Placed]:
    result = parts.kind(node.outputs[0])
    full = [value for value in node.inputs if parts.kind(value).shape == result.shape]
    layouts = [parts.layout(value) for value in full]
    layout = parts.random.choice(layouts)
    if node.op in ("add", "subtract") and layouts[0] == layouts[1] and result.dtype != "i1":
        pass  # sums of addends are addends
    elif not (node.op == "negate" and result.dtype != "i1"):
        layout = Layout(layout.dims)
    if parts.random.random() < 0.15:
        layout = random_layout(result, parts.mesh, parts.random, 0.05)
    if any(axis not in parts.layout(value).partial for value in full for axis in layout.partial):
        layout = Layout(layout.dims)
    inputs = [parts.at(value, layout) if value in full else parts.whole(value) for value in node.inputs]
    return [(parts.builder.op(node.op, inputs, layout.local(parts.mesh, result), **node.attributes), layout)]


def constant(parts: Partitioner, node: Node) -> list[Placed]:
    value, kind = node.attributes["value"], parts.kind(node.outputs[0])
    if isinstance(value, list):
        return everywhere(parts, node)
    layout = random_layout(kind, parts.mesh, parts.random)
    return [(parts.builder.constant(value, layout.local(parts.mesh, kind)), layout)]


def iota(parts: Partitioner, node: Node) -> list[Placed]:
    kind, dim = parts.kind(node.outputs[0]), node.attributes["dim"]
    layout = random_layout(kind, parts.mesh, parts.random)
    local = layout.local(parts.mesh, kind)
    found = parts.builder.op("iota", (), local, dim=dim)
    if layout.dims[dim]:
        start = parts.builder.convert(parts.wires.offset(layout.dims[dim], local.shape[dim]), kind.dtype)
        found = parts.builder.same("add", found, parts.builder.broadcast(start, local.shape))
    return [(found, layout)]


def transpose(parts: Partitioner, node: Node) -> list[Placed]:
    (a,), order = node.inputs, node.attributes["order"]
    value, layout = parts.placed[a]
    return [(parts.builder.transpose(value, order), Layout(tuple(layout.dims[k] for k in order), layout.partial))]


def broadcast(parts: Partitioner, node: Node) -> list[Placed]:
    (a,), dims = node.inputs, node.attributes["dims"]
    kind = parts.kind(node.outputs[0])
    old = parts.layout(a)
    grown = [k for k, n in zip(dims, parts.kind(a).shape, strict=True) if kind.shape[k] != n]
    layout = whole(len(kind.shape))
    for k, axes in zip(dims, old.dims, strict=True):
        layout = layout if k in grown else layout.with_dim(k, axes)
    source = Layout(tuple(layout.dims[k] for k in dims))
    free = [axis for axis in parts.mesh.names if axis not in layout.used]
    new = [k for k in range(len(kind.shape)) if k not in dims]
    if free and new and parts.random.random() < 0.5:
        wanted = layout.with_dim(parts.random.choice(new), (parts.random.choice(free),))
        layout = wanted if wanted.is_even(parts.mesh, kind) else layout
    value = parts.at(a, source)
    return [(parts.builder.broadcast(value, layout.local(parts.mesh, kind).shape, dims), layout)]


def along(parts: Partitioner, node: Node) -> list[Placed]:
    """Along the dimensions that an operation changes, every device has all of the tensor."""
    result = parts.kind(node.outputs[0])
    source = parts.kind(node.inputs[0])
    changed = {k for k, (n, m) in enumerate(zip(source.shape, result.shape, strict=True)) if n != m}
    changed |= set(node.attributes.get("dims", ())) | {node.attributes.get("dim")}
    if node.op == "slice":
        changed |= {k for k, by in enumerate(node.attributes["strides"]) if by > 1}
    layout = parts.layout(node.inputs[0])
    layout = Layout(tuple(() if k in changed else axes for k, axes in enumerate(layout.dims)))
    full = [value for value in node.inputs if parts.kind(value).shape]
    inputs = [parts.at(value, layout) if value in full else parts.whole(value) for value in node.inputs]
    attributes = dict(node.attributes)
    if node.op == "slice":
        attributes["limits"] = tuple(
            limit if k in changed else n
            for k, (limit, n) in enumerate(
                zip(attributes["limits"], layout.local(parts.mesh, source).shape, strict=True)
            )
        )
    kinds = [layout.local(parts.mesh, parts.kind(value)) for value in node.outputs]
    found = parts.builder.many(node.op, inputs, kinds, **attributes)
    return [(value, layout) for value in found]


def pad(parts: Partitioner, node: Node) -> list[Placed]:
    by_halo = shifted(parts, node) if parts.random.random() < 0.7 else None
    if by_halo is not None:
        return by_halo
    result, source = parts.kind(node.outputs[0]), parts.kind(node.inputs[0])
    changed = {
        k
        for k, ends in enumerate(zip(*(node.attributes[n] for n in ("low", "high", "inner")), strict=True))
        if any(ends)
    }
    if any(n != m and k not in changed for k, (n, m) in enumerate(zip(source.shape, result.shape, strict=True))):
        return everywhere(parts, node)
    layout = parts.layout(node.inputs[0])
    layout = Layout(tuple(() if k in changed else axes for k, axes in enumerate(layout.dims)))
    inputs = [parts.at(node.inputs[0], layout), parts.whole(node.inputs[1])]
    return [(parts.builder.op("pad", inputs, layout.local(parts.mesh, result), **node.attributes), layout)]


def reduce(parts: Partitioner, node: Node) -> list[Placed]:
    (a,), dims, combine = node.inputs, node.attributes["dims"], node.attributes["combine"]
    kind, (value, layout) = parts.kind(a), parts.placed[a]
    if layout.partial and combine != "add":
        layout = Layout(layout.dims)
        value = parts.at(a, layout)
    split = [k for k in dims if layout.dims[k]]
    for k in split:
        if kind.shape[k] % parts.mesh.size(layout.dims[k]):
            value = parts.wires.masked(value, kind, layout, k, combine)
    axes = [axis for k in split for axis in layout.dims[k]]
    kept = tuple(axes for k, axes in enumerate(layout.dims) if k not in dims)
    start = node.attributes.get("start")
    if start is not None and (axes or layout.partial) and parts.random.random() < 0.7:
        found = parts.builder.reduce(value, dims, combine)
        found = parts.wires.all_reduce(found, [*axes, *layout.partial], combine)
        return [(parts.builder.same(combine, found, parts.builder.like(start, found)), Layout(kept))]
    found = parts.builder.reduce(value, dims, combine, start)  # each device may start with it: right for maxima
    if axes and combine == "add" and kind.dtype != "i1" and parts.random.random() < 0.6:
        return [(found, Layout(kept, (*layout.partial, *axes)))]
    if axes:
        found = parts.wires.all_reduce(found, axes, combine)
    return [(found, Layout(kept, layout.partial))]


def dot(parts: Partitioner, node: Node) -> list[Placed]:
    if node.attributes["batch"][0]:
        return batched(parts, node)
    a, b = node.inputs
    (over_a,), (over_b,) = node.attributes["contract"]
    first = parts.even(parts.layout(a), parts.kind(a))
    second = whole(2).with_dim(over_b, first.dims[over_a])
    free = tuple(axis for axis in parts.layout(b).dims[1 - over_b] if axis not in first.used)
    wanted = second.with_dim(1 - over_b, free)
    second = wanted if wanted.is_even(parts.mesh, parts.kind(b)) else second
    layout = Layout((first.dims[1 - over_a], second.dims[1 - over_b]), first.dims[over_a])
    result = layout.local(parts.mesh, parts.kind(node.outputs[0]))
    inputs = parts.at(a, first), parts.at(b, second)
    found = parts.builder.op("dot_general", inputs, result, **node.attributes)
    return [(found, layout)]


def reshape(parts: Partitioner, node: Node) -> list[Placed]:
    """Splitting the first dimension, or merging it with later ones, leaves shards of it as they are."""
    (a,) = node.inputs
    old, new = parts.kind(a), parts.kind(node.outputs[0])
    axes = parts.layout(a).dims[0] if old.shape and new.shape else ()
    count = parts.mesh.size(axes)
    if not axes or old.shape[0] % count or new.shape[0] % count:
        return everywhere(parts, node)
    source, target = (whole(len(kind.shape)).with_dim(0, axes) for kind in (old, new))
    return [(parts.builder.reshape(parts.at(a, source), *target.local(parts.mesh, new).shape), target)]


def gather(parts: Partitioner, node: Node) -> list[Placed]:
    """Rows of a table that is split by rows: each device looks up those it has, with zeros elsewhere, and adds them."""
    table, index = node.inputs
    kind, result = parts.kind(table), parts.kind(node.outputs[0])
    layout = parts.even(parts.layout(table), kind)
    axes = layout.dims[0]
    builder, rows = parts.builder, parts.whole(index)
    if not axes or kind.dtype == "i1" or (parts.kind(index).bits < 32 and parts.random.random() < 0.5):
        layout = layout.with_dim(0, ())
        found = builder.op("gather", (parts.at(table, layout), rows), layout.local(parts.mesh, result))
        return [(found, layout)]
    local = layout.local(parts.mesh, kind)
    wide = builder.kind(rows).dtype if builder.kind(rows).dtype in ("i32", "i64") else "i64"
    if builder.kind(rows).dtype == "ui64":
        layout = layout.with_dim(0, ())
        return [(builder.op("gather", (parts.at(table, layout), rows), layout.local(parts.mesh, result)), layout)]
    rows = builder.convert(rows, wide)
    scalar = Kind((), wide)
    rows = builder.same("clamp", *_scalars(builder, scalar, rows, 0, kind.shape[0] - 1))
    start = builder.convert(parts.wires.offset(axes, local.shape[0]), wide)
    mine = builder.same("subtract", rows, builder.broadcast(start, builder.kind(rows).shape))
    low = builder.compare("GE", mine, builder.like(0, mine))
    high = builder.compare("LT", mine, builder.like(local.shape[0], mine))
    inside = builder.reshape(builder.same("and", low, high), builder.kind(rows).shape[0])
    part = layout.with_dim(0, ()).local(parts.mesh, result)
    found = builder.op("gather", (parts.at(table, layout), mine), part)
    mask = builder.broadcast(inside, part.shape, [0])
    found = builder.op("select", (mask, found, builder.like(0, found)), part)
    return [(found, Layout(((), *layout.dims[1:]), axes))]


def _scalars(builder: Builder, scalar: Kind, a: int, low: int, high: int) -> tuple[int, int, int]:
    """Operands of a clamp; the last one gives the result's type, so all are of it."""
    shape = builder.kind(a).shape
    return builder.constant(low, scalar.shaped(*shape)), a, builder.constant(high, scalar.shaped(*shape))


def scatter(parts: Partitioner, node: Node) -> list[Placed]:
    """Updates to the rows of a table that is split by rows: each device takes what falls into its own."""
    table, index, update = node.inputs
    kind = parts.kind(table)
    layout = parts.even(parts.layout(table), kind)
    builder, axes = parts.builder, layout.dims[0]
    dtype = parts.kind(index).dtype
    rows = parts.whole(index)
    spread = Layout(((), *layout.dims[1:]))
    if axes and dtype in ("i32", "i64"):
        start = builder.convert(parts.wires.offset(axes, layout.local(parts.mesh, kind).shape[0]), dtype)
        # Wrapping is as well as out of range: no row is so far away.
        rows = builder.same("subtract", rows, builder.broadcast(start, builder.kind(rows).shape))
    else:
        layout = layout.with_dim(0, ())
    inputs = parts.at(table, layout), rows, parts.at(update, spread)
    return [(builder.op("scatter", inputs, layout.local(parts.mesh, kind), **node.attributes), layout)]


def loop(parts: Partitioner, node: Node) -> list[Placed]:
    test, body = node.regions
    layouts = [parts.even(parts.layout(value), parts.kind(value)) for value in node.inputs]
    if parts.random.random() < 0.3:
        layouts = [random_layout(parts.kind(value), parts.mesh, parts.random, 0) for value in node.inputs]
    inputs = [parts.at(value, layout) for value, layout in zip(node.inputs, layouts, strict=True)]
    regions = [parts.inside(test, layouts, [whole(0)]), parts.inside(body, layouts, layouts)]
    kinds = [parts.builder.kind(value) for value in inputs]
    return list(zip(parts.builder.many("while", inputs, kinds, regions), layouts, strict=True))


def branch(parts: Partitioner, node: Node) -> list[Placed]:
    layouts = [random_layout(parts.kind(value), parts.mesh, parts.random, 0) for value in node.outputs]
    test = parts.whole(node.inputs[0])
    regions = [parts.inside(block, [], layouts) for block in node.regions]
    kinds = [layout.local(parts.mesh, parts.kind(v)) for layout, v in zip(layouts, node.outputs, strict=True)]
    return list(zip(parts.builder.many(node.op, [test], kinds, regions), layouts, strict=True))


def argmax(parts: Partitioner, node: Node) -> list[Placed]:
    """Along a dimension that is split: the best of each device, then the best of these."""
    a, index = node.inputs
    kind, dim = parts.kind(a), node.attributes["dim"]
    layout = parts.even(parts.layout(a), kind)
    axes, builder = layout.dims[dim], parts.builder
    kept = Layout(tuple(axes for k, axes in enumerate(layout.dims) if k != dim))
    kinds = [kept.local(parts.mesh, parts.kind(value)) for value in node.outputs]
    found = builder.many("argmax", (parts.at(a, layout), parts.at(index, layout)), kinds, **node.attributes)
    if axes:
        wide = [kind.shaped(parts.mesh.size(axes), *kind.shape) for kind in kinds]
        groups = parts.mesh.groups(axes)
        ones = [builder.reshape(value, 1, *kind.shape) for value, kind in zip(found, kinds, strict=True)]
        every = [
            builder.op("all_gather", (one,), kind, groups=groups, dim=0) for one, kind in zip(ones, wide, strict=True)
        ]
        found = builder.many("argmax", every, kinds, dim=0, ties=node.attributes["ties"])
    return [(value, kept) for value in found]


def call(parts: Partitioner, node: Node) -> list[Placed]:
    """What is called takes the place of the call."""
    (block,) = node.regions
    parts.placed.update(zip(block.arguments, (parts.placed[value] for value in node.inputs), strict=True))
    parts.block(block)
    return [parts.placed[value] for value in block.results]


Rule = Callable[[Partitioner, Node], list[Placed]]

RULES: dict[str, Rule] = {
    "constant": constant, "iota": iota, "transpose": transpose, "broadcast_in_dim": broadcast, "reverse": along,
    "slice": along, "reduce_window": along, "concatenate": along, "sort": along, "pad": pad, "reduce": reduce,
    "dot_general": dot, "reshape": reshape, "gather": gather, "scatter": scatter, "while": loop,
    "if": branch, "case": branch, "argmax": argmax, "call": call,
}  # fmt: skip
