"""Ways to bring a value from one layout to another, each spelled in several ways, one of which is drawn."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tools.fuzz.programs.placing import Layout, Mesh
from tools.fuzz.programs.program import Block, Builder, Kind, identity

RING = 4
"""A ring of more devices is not made: proofs of it take long."""
RARE = 0.4
"""How often rings may be drawn at all."""


@dataclass(slots=True)
class Wires:
    """What moves values between devices, in a program of one device that is being built."""

    builder: Builder
    mesh: Mesh
    random: random.Random

    def inside(self, builder: Builder) -> Wires:
        return Wires(builder, self.mesh, self.random)

    def zero(self, dtype: str = "i32") -> int:
        return self.builder.constant(0, Kind((), dtype))

    def coordinate(self, axes: Sequence[str]) -> int:
        """A device's number along some axes: from a table, or computed where the mesh is in order."""
        builder, numbers = self.builder, self.mesh.coordinates(axes)
        device = builder.op("partition_id", (), Kind((), "ui32"))
        device = builder.convert(device, "i32")
        if numbers == list(range(len(numbers))):
            return device
        count, stride = self.mesh.size(axes), _stride(numbers)
        if stride and self.random.random() < 0.6:
            if stride > 1:
                device = builder.same("divide", device, builder.constant(stride, Kind((), "i32")))
            return builder.same("remainder", device, builder.constant(count, Kind((), "i32")))
        table = builder.constant(numbers, Kind((len(numbers),), "i32"))
        return builder.reshape(builder.dynamic_slice(table, [device], [1]))

    def offset(self, axes: Sequence[str], size: int) -> int:
        number = self.coordinate(axes)
        if size == 1:
            return number
        return self.builder.same("multiply", number, self.builder.constant(size, Kind((), "i32")))

    def shuffled(self, groups: list[list[int]], inside: bool = False) -> list[list[int]]:
        """The groups in another order, and the devices of each too where that changes nothing."""
        rows = [self.random.sample(row, len(row)) if inside else list(row) for row in groups]
        return self.random.sample(rows, len(rows)) if self.random.random() < 0.5 else rows

    # One step each

    def all_reduce(self, a: int, axes: Sequence[str], combine: str = "add") -> int:
        builder, count = self.builder, self.mesh.size(axes)
        kind = builder.kind(a)
        ways = ["plain"] * 4
        if len(axes) == 2:
            ways.append("by axis")
        if any(n % count == 0 and n for n in kind.shape):
            ways += ["scatter"]
        if kind.dtype != "i1" or combine in ("and", "or", "maximum", "minimum"):
            ways += ["gather"]
        ways += ["ring", "loop"] if count <= RING and self.random.random() < RARE else []
        way = self.random.choice(ways)
        if way == "by axis":
            for axis in self.random.sample(list(axes), 2):
                a = self.all_reduce(a, [axis], combine)
            return a
        groups = self.mesh.groups(axes)
        if way == "scatter":
            dim = self.random.choice([k for k, n in enumerate(kind.shape) if n and n % count == 0])
            shape = list(kind.shape)
            shape[dim] //= count
            rows = self.shuffled(groups, inside=True)
            part = builder.op("reduce_scatter", (a,), kind.shaped(*shape), groups=rows, dim=dim, combine=combine)
            return builder.op("all_gather", (part,), kind, groups=rows, dim=dim)
        if way == "gather":
            one = builder.reshape(a, 1, *kind.shape)
            rows = self.shuffled(groups, inside=True)
            every = builder.op("all_gather", (one,), kind.shaped(count, *kind.shape), groups=rows, dim=0)
            return builder.reduce(every, [0], combine)
        if way == "loop":
            turn, body = self.turns(count - 1, [kind, kind])
            part, total = body.block.arguments[1:]
            part = self.inside(body).rotate(part, axes)
            body.block.results = (*body.block.results, part, body.same(combine, total, part))
            return builder.many("while", [self.zero(), a, a], [Kind((), "i32"), kind, kind], [turn, body.block])[2]
        if way == "ring":
            total = part = a
            for _ in range(count - 1):
                part = self.rotate(part, axes)
                total = builder.same(combine, total, part)
            return total
        return builder.op("all_reduce", (a,), kind, groups=self.shuffled(groups, inside=True), combine=combine)

    def turns(self, count: int, kinds: Sequence[Kind]) -> tuple[Block, Builder]:
        """The condition of a loop that takes so many turns, and its body, which counts."""
        counter = Kind((), "i32")
        test, body = (self.builder.region([counter, *kinds]) for _ in "tb")
        test.block.results = (test.compare("LT", test.block.arguments[0], test.constant(count, counter)),)
        body.block.results = (body.same("add", body.block.arguments[0], body.constant(1, counter)),)
        return test.block, body

    def rotate(self, a: int, axes: Sequence[str], by: int = 1) -> int:
        """What the device before (by so many) along the axes holds."""
        pairs = [
            [row[k], row[(k + by) % len(row)]] for row in self.mesh.groups(axes) for k in range(len(row))
        ]  # fmt: skip
        return self.builder.same("collective_permute", a, pairs=self.random.sample(pairs, len(pairs)))

    def all_gather(self, a: int, dim: int, axes: Sequence[str]) -> int:
        builder, count = self.builder, self.mesh.size(axes)
        kind = builder.kind(a)
        shape = list(kind.shape)
        shape[dim] *= count
        wide, size = kind.shaped(*shape), kind.shape[dim]
        ways = ["plain", "plain", "plain", "sum", "by axis"]
        ways += ["ring", "loop", "broadcasts"] if count <= RING and self.random.random() < RARE else []
        way = self.random.choice(ways)
        if way == "by axis" and len(axes) == 2:
            return self.all_gather(self.all_gather(a, dim, axes[1:]), dim, axes[:1])
        if way == "sum":
            combine = "or" if kind.dtype == "i1" else self.random.choice(["add", "or"] if kind.is_integer else ["add"])
            empty = builder.constant(0, wide)
            starts = [self.offset(axes, size) if k == dim else self.zero() for k in range(len(shape))]
            placed = builder.update(empty, a, starts)
            return self.all_reduce(placed, axes, combine)
        if way == "ring":
            found, part = builder.constant(0, wide), a
            number = self.coordinate(axes)
            for turn in range(count):
                found = self.place(found, part, number, builder.constant(turn, Kind((), "i32")), dim, count)
                part = self.rotate(part, axes) if turn < count - 1 else part
            return found
        if way == "loop":
            test, body = self.turns(count, [kind, wide])
            turn, part, found = body.block.arguments
            inside = self.inside(body)
            found = inside.place(found, part, self.coordinate(axes), turn, dim, count)
            body.block.results = (*body.block.results, inside.rotate(part, axes), found)
            start = [self.zero(), a, builder.constant(0, wide)]
            return builder.many("while", start, [Kind((), "i32"), kind, wide], [test, body.block])[2]
        groups = self.mesh.groups(axes)
        if way == "broadcasts":
            rolled = [[row[k:] + row[:k] for row in groups] for k in range(count)]
            parts = [builder.same("collective_broadcast", a, groups=rows) for rows in rolled]
            return builder.concatenate(parts, dim)
        return builder.op("all_gather", (a,), wide, groups=self.shuffled(groups), dim=dim)

    def place(self, found: int, part: int, number: int, turn: int, dim: int, count: int) -> int:
        """After so many turns of a ring, the part of the device that is as many before, where it belongs."""
        builder, shape = self.builder, self.builder.kind(part).shape
        owner = builder.same("subtract", number, turn)
        owner = builder.same("add", owner, builder.constant(count, Kind((), "i32")))
        owner = builder.same("remainder", owner, builder.constant(count, Kind((), "i32")))
        start = builder.same("multiply", owner, builder.constant(shape[dim], Kind((), "i32")))
        return builder.update(found, part, [start if k == dim else self.zero() for k in range(len(shape))])

    def own(self, a: int, dim: int, axes: Sequence[str]) -> int:
        """A device's own shard of a dimension that it holds whole; past the end, zeros."""
        builder, count = self.builder, self.mesh.size(axes)
        kind = builder.kind(a)
        size = -(-kind.shape[dim] // count)
        missing = size * count - kind.shape[dim]
        if missing:
            none = [0] * len(kind.shape)
            after = [missing if k == dim else 0 for k in range(len(kind.shape))]
            a = builder.pad(a, self.zero_of(kind.dtype), none, after)
        starts = [self.offset(axes, size) if k == dim else self.zero() for k in range(len(kind.shape))]
        sizes = [size if k == dim else n for k, n in enumerate(kind.shape)]
        return builder.dynamic_slice(a, starts, sizes)

    def zero_of(self, dtype: str) -> int:
        return self.builder.constant(0, Kind((), dtype))

    def exchange(self, a: int, split: int, dim: int, axes: Sequence[str]) -> int:
        """Split one dimension over the axes that another one was split over."""
        builder, count = self.builder, self.mesh.size(axes)
        if self.random.random() < 0.3:
            return self.own(self.all_gather(a, dim, axes), split, axes)
        kind = builder.kind(a)
        shape = list(kind.shape)
        shape[split] //= count
        shape[dim] *= count
        rows = self.shuffled(self.mesh.groups(axes))
        return builder.op("all_to_all", (a,), kind.shaped(*shape), groups=rows, split=split, dim=dim)

    def masked(self, a: int, kind: Kind, layout: Layout, dim: int, combine: str) -> int:
        """What a device holds, with what leaves a reduction as it is past the end of the tensor's dimension."""
        builder, axes = self.builder, layout.dims[dim]
        local = builder.kind(a)
        number = builder.op("iota", (), local.of("i32"), dim=dim)
        start = builder.broadcast(self.offset(axes, local.shape[dim]), local.shape)
        place = builder.same("add", number, start)
        inside = builder.compare("LT", place, builder.like(kind.shape[dim], place))
        nothing = builder.like(identity(combine, kind.dtype), a)
        return builder.op("select", (inside, a, nothing), local)


def _stride(numbers: Sequence[int]) -> int:
    """By what to divide a device's number for these, modulo how many there are; 0 where there is no such number."""
    count = max(numbers) + 1
    for stride in range(1, len(numbers) + 1):
        if all(device // stride % count == number for device, number in enumerate(numbers)):
            return stride
    return 0


def move(wires: Wires, a: int, kind: Kind, old: Layout, new: Layout) -> int:
    """A value of a (whole) type from one layout to another, which has addends over no more axes than the old one."""
    mesh = wires.mesh
    if 0 in kind.shape:  # nothing to move, and nothing that may be moved
        return wires.builder.constant(0, new.local(mesh, kind))
    close = [axis for axis in old.partial if axis not in new.partial]
    if close:
        dims = [k for k, axes in enumerate(new.dims) if axes and axes[0] in close and not old.dims[k]]
        even = [k for k in dims if kind.shape[k] % mesh.size(new.dims[k][:1]) == 0]
        if even and wires.random.random() < 0.6:
            dim, axes = even[0], new.dims[even[0]][:1]
            local = wires.builder.kind(a)
            shape = [n // mesh.size(axes) if k == dim else n for k, n in enumerate(local.shape)]
            rows = wires.shuffled(mesh.groups(axes))
            a = wires.builder.op(
                "reduce_scatter", (a,), local.shaped(*shape), groups=rows, dim=dim, combine="add"
            )  # fmt: skip
            close = [axis for axis in close if axis not in axes]
            old = old.with_dim(dim, axes)
        if close:
            a = wires.all_reduce(a, close)
    for dim, n in enumerate(kind.shape):
        axes, wanted = old.dims[dim], new.dims[dim]
        if axes and axes != wanted:
            targets = [
                k
                for k, each in enumerate(new.dims)
                if k != dim and each == axes and not old.dims[k] and not wanted
                and kind.shape[k] % mesh.size(axes) == 0 and n % mesh.size(axes) == 0
            ]  # fmt: skip
            if targets and wires.random.random() < 0.7:
                a = wires.exchange(a, targets[0], dim, axes)
                old = old.with_dim(dim, ()).with_dim(targets[0], axes)
                continue
            a = wires.all_gather(a, dim, axes)
            local = wires.builder.kind(a)
            if local.shape[dim] != n:
                limits = [n if k == dim else size for k, size in enumerate(local.shape)]
                a = wires.builder.slice(a, [0] * len(limits), limits)
            old = old.with_dim(dim, ())
    for dim in range(len(kind.shape)):
        if new.dims[dim] and old.dims[dim] != new.dims[dim]:
            a = wires.own(a, dim, new.dims[dim])
            old = old.with_dim(dim, new.dims[dim])
    return a
