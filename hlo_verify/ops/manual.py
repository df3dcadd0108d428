"""Per-device regions inside a global module: `sdy.manual_computation` and the custom calls that XLA makes of it.

Inside a region that is manual over some axes of the mesh, every value is a tensor for each position along those axes;
the other axes are XLA's to use, and no value may depend on them. So a term inside depends on the device through its
digits along the manual axes. Entering, a device reads its block of the whole tensor. Leaving, each element is read from
the device that owns its block and has every other digit in common with this one: along axes that the sharding does not
mention, a device reads its own copy, and a result that is not the same on all of them stays a function of the device.

Entering, a device may be handed an addend of a tensor (`unreduced`). Which addends there are nothing says but that they
add up to the tensor: all but the first are any numbers, and the first is what these leave of it.

Where blocks do not divide a dimension, the last ones are filled with zeros, as XLA's partitioner does it
(`SPMDFullToShardShape` pads with zeros), and what lies past the end is dropped when leaving.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hlo_verify.diagnostics import Unsupported
from hlo_verify.index import expr, tables
from hlo_verify.index.expr import Index, Var
from hlo_verify.ops.values import (
    Context,
    Rule,
    UnsupportedError,
    Value,
    factor,
    position,
    position_var,
    positions,
)
from hlo_verify.program.element_types import is_float, is_integer
from hlo_verify.program.ir import Op
from hlo_verify.program.mesh import AxisReference
from hlo_verify.program.sharding import Sharding, parse_local
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ONE, Poly, tensor

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Border:
    """How a tensor is split into blocks at the border of a region.

    `blocks[d, k]` is the block along dimension k that device d works on, of `counts[k]`; `addends[d]` its addend, of
    `addend_count`; `others[d]` numbers the devices with the same block and addend.
    """

    counts: tuple[int, ...]
    blocks: Numbers
    others: Numbers
    addends: Numbers
    addend_count: int = 1

    def owner(self, wanted: Sequence[Index], addend: Index, device: Var) -> Index:
        """The device with that block and that addend that has everything else in common with this one."""
        columns = [*self.blocks.T, self.addends]
        sizes = (*self.counts, self.addend_count)
        copies = int(self.others.max()) + 1
        number, place = self.others, copies
        asked = tables.fit(self.others, device)
        for column, size, e in zip(columns[::-1], sizes[::-1], (*wanted, addend)[::-1], strict=True):
            number = number + place * column
            asked = expr.add(asked, expr.scale(e, place))
            place *= size
        if place != device.size or not np.array_equal(np.sort(number), np.arange(place)):
            raise UnsupportedError(
                "a manual region whose blocks are not all on the same number of devices", Unsupported.MANUAL
            )
        pair = expr.var("owner", 0, place)
        return expr.substitute(tables.fit(np.argsort(number), pair), {pair: asked})


def block(size: int, local: int, count: int, takes_or_gives: str) -> None:
    """Raise `UnsupportedError` where so many blocks of that size do not make up a dimension."""
    if local != -(-size // count):
        raise UnsupportedError(
            f"a manual region that {takes_or_gives} {local} of {size} elements in {count} blocks", Unsupported.MANUAL
        )


def enter(value: Value, shape: tuple[int, ...], border: Border, device: Var) -> Poly:
    """A device's block, of that shape, of a whole tensor; zero past its end."""
    indices = []
    inside = ONE
    for k, (size, local, count) in enumerate(zip(value.shape, shape, border.counts, strict=True)):
        block(size, local, count, "takes")
        start = expr.scale(tables.fit(border.blocks[:, k], device), local)
        e = expr.add(start, position(k, local))
        if local * count > size:
            inside = algebra.multiply(inside, guards.interval(e, 0, size - 1))
        indices.append(e)
    return algebra.multiply(inside, value.at(indices))


def addends(value: Value, border: Border, context: Context, device: Var) -> Value:
    """A device's addend of a tensor; itself where there is but one."""
    if border.addend_count == 1:
        return value
    type_, number = value.type, tables.fit(border.addends, device)
    if context.iterations or not (is_float(type_.dtype) or is_integer(type_.dtype)):  # other addends in every turn
        raise UnsupportedError("a manual region that is handed addends of a tensor", Unsupported.MANUAL)
    made = tensor("argument", "addends", type_.dtype, (border.addend_count, *type_.shape))
    where = positions(type_.shape)
    u = expr.fresh("u", border.addend_count - 1)
    others = reduce_sum([u], algebra.read(made, (expr.shift(expr.of_var(u), 1), *where)))
    left = algebra.subtract(factor(value.term, type_.dtype), others)
    own = algebra.read(made, (number, *where))
    parts = (guards.interval(number, 0, 0), left), (guards.interval(number, 1, None), own)
    return Value(type_, algebra.add(*(algebra.multiply(on, part) for on, part in parts)))


def leave(value: Value, shape: tuple[int, ...], border: Border, device: Var) -> Poly:
    """The whole tensor, of that shape, made of every device's block."""
    mapping: dict[Var, Index] = {}
    wanted = []
    for k, (size, local, count) in enumerate(zip(shape, value.shape, border.counts, strict=True)):
        block(size, local, count, "gives")
        owner, inside = expr.floor_divmod(positions(shape)[k], local) if local else (positions(shape)[k],) * 2
        wanted.append(owner)
        if local > 1:
            mapping[position_var(k, local)] = inside
    if border.addend_count > 1 and value.type.dtype == "i1":
        raise UnsupportedError("a manual region that gives addends of truth values", Unsupported.MANUAL)
    u = expr.fresh("u", border.addend_count)
    mapping[device] = border.owner(wanted, expr.of_var(u), device)
    term = algebra.substitute(value.term, mapping)
    return reduce_sum([u], term) if border.addend_count > 1 else term


# sdy.manual_computation


def regions_border(sharding: Sharding | None, device: Var, *, is_entered: bool = False) -> Border:
    """The border that a sharding over manual axes alone says."""
    if sharding is None or sharding.devices not in (1, device.size):
        raise UnsupportedError("a manual region over other devices than the module's", Unsupported.MANUAL)
    if sharding.only is not None:
        raise UnsupportedError("a manual region on a single device", Unsupported.MANUAL)
    sharding = sharding.spread(device.size)
    if is_entered and sharding.addend_count > 1:
        raise UnsupportedError("a manual region that is handed addends of a tensor", Unsupported.MANUAL)
    return Border(sharding.tiles, sharding.coordinates, sharding.others, sharding.numbers, sharding.addend_count)


def within(op: Op, context: Context) -> tuple[Context, Var]:
    """What surrounds the operations of a manual region, and the devices."""
    device, mesh = context.mesh, op.attributes["mesh"]
    if device is None:
        raise UnsupportedError("a manual region in a device's own program", Unsupported.MANUAL)
    if mesh is None or mesh.size != device.size:
        raise UnsupportedError("a manual region over other devices than the module's", Unsupported.MANUAL)
    manual = context.manual | set(op.attributes["manual_axes"])
    automatic = mesh.digits([AxisReference(axis) for axis, _ in mesh.axes if axis not in manual])[1]
    inner = replace(context, device=device, partitions=device.size, replicas=1, manual=manual, automatic=automatic)
    return inner, device


def _manual_computation(op: Op, args: list[Value], context: Context) -> list[Value]:
    inner, device = within(op, context)
    body = op.regions[0]
    shards = []
    for value, sharding, type_ in zip(args, op.attributes["in_shardings"], body.argument_types, strict=True):
        border = regions_border(sharding, device)
        own = addends(value, border, context, device)
        shards.append(Value(type_, enter(own, type_.shape, border, device)))
    return [
        Value(type_, leave(value, type_.shape, regions_border(sharding, device), device))
        for value, sharding, type_ in zip(
            context.run(body, shards, inner), op.attributes["out_shardings"], op.types, strict=True
        )
    ]


# SPMDFullToShardShape and SPMDShardToFullShape


def _subgroups(text: object, shape: tuple[int, ...], device: Var) -> Sharding:
    """A placement within the manual subgroups of an annotation."""
    found = parse_local(text, [len(shape)], device.size)[0] if isinstance(text, str) else None
    if found is None or not found.is_plain:
        raise UnsupportedError("the border of a manual region without the shardings of both sides", Unsupported.MANUAL)
    return found.spread(device.size)


def _border_between(outer: Sharding, inner: Sharding, whole: tuple[int, ...], local: tuple[int, ...]) -> Border:
    """The border between a tensor's sharding outside of a region and that of its blocks inside.

    A dimension's tiles outside are its blocks, each in as many tiles as the dimension has inside.
    """
    counts, columns, within = [], [], outer.others
    radix = int(outer.others.max()) + 1
    for k, (size, part) in enumerate(zip(whole, local, strict=True)):
        tiles, tile = outer.tiles[k], outer.coordinates[:, k]
        count = tiles // inner.tiles[k] if tiles % inner.tiles[k] == 0 else max(1, size // max(part, 1))
        if -(-size // count) != part:
            count = max(1, size // max(part, 1))
        if tiles % count:
            raise UnsupportedError(
                f"the border of a manual region between {tiles} tiles and {count} blocks", Unsupported.MANUAL
            )
        rest = tiles // count
        counts.append(count)
        columns.append(tile // rest)
        within, radix = within + radix * (tile % rest), radix * rest
    blocks = np.stack(columns, axis=1) if columns else np.zeros((outer.devices, 0), np.int64)
    if inner.manual is None:
        raise UnsupportedError("the border of a manual region without manual axes", Unsupported.MANUAL)
    _, first, which = np.unique(inner.manual, return_index=True, return_inverse=True)
    if not np.array_equal(blocks[first[which.reshape(-1)]], blocks):
        raise UnsupportedError(
            "the border of a manual region whose blocks are split over axes that are not manual", Unsupported.MANUAL
        )
    return Border(tuple(counts), blocks, within, np.zeros(outer.devices, np.int64))


def _device(op: Op, context: Context) -> Var:
    if context.mesh is None:
        raise UnsupportedError(f"{op.attributes.get('call_target_name')} in a device's own program", Unsupported.MANUAL)
    return context.mesh


def _to_shard(op: Op, args: list[Value], context: Context) -> list[Value]:
    """SPMDFullToShardShape: the shardings of its operand and its result say which blocks there are."""
    (value,), (type_,) = args, op.types
    device = _device(op, context)
    outer = _subgroups(op.attributes.get("operand_sharding"), value.shape, device)
    inner = _subgroups(op.attributes.get("sharding"), type_.shape, device)
    return [Value(type_, enter(value, type_.shape, _border_between(outer, inner, value.shape, type_.shape), device))]


def _to_full(op: Op, args: list[Value], context: Context) -> list[Value]:
    """SPMDShardToFullShape: likewise."""
    (value,), (type_,) = args, op.types
    device = _device(op, context)
    outer = _subgroups(op.attributes.get("sharding"), type_.shape, device)
    inner = _subgroups(op.attributes.get("operand_sharding"), value.shape, device)
    return [Value(type_, leave(value, type_.shape, _border_between(outer, inner, type_.shape, value.shape), device))]


CUSTOM_CALLS: dict[str, Rule] = {"SPMDFullToShardShape": _to_shard, "SPMDShardToFullShape": _to_full}
"""Meanings of custom calls, by target."""

RULES: dict[str, Rule] = {"sdy.manual_computation": _manual_computation}
