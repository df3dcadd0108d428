"""Devices by other numbers: by their places in the mesh, where its devices are in an irregular order.

A proof has the axes of a mesh as digits of the device's number. Where devices are in the order of a ring (0, 1, 3, 2),
or in any other, no digits give the axes: tables are left, which neither cancel nor add up. But which number a device
has is a matter of convention. Of devices that are numbered by place, the module with all its shardings, groups and
permutes is a module as good as the first one, and proved just when that is; a device that asks for its number finds it
in a table.

Example: with `x` split as `[0, 1, 3, 2]` says, device 3 holds the third quarter. By place, it is device 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from hlo_verify.index import expr, tables
from hlo_verify.index.expr import Digit, Index
from hlo_verify.ops.groups import channel
from hlo_verify.ops.values import UnsupportedError
from hlo_verify.program.ir import Fresh, Function, Module, Op, TensorType, fresh_in, operations
from hlo_verify.program.op_families import BY_PARTITION, COLLECTIVES, communicates_itself
from hlo_verify.program.pair import is_global
from hlo_verify.program.sharding import Sharding

Numbers = npt.NDArray[np.int64]


def by_place(logical: Module, partitioned: Module, devices: int) -> tuple[Module, Module] | None:
    """The pair with its devices numbered by their places in the mesh; None where their own numbers do as well, or where
    something hangs on these that is not known."""
    if max(logical.replicas, partitioned.replicas) > 1 or is_global(partitioned):
        return None
    shardings = [sharding for module in (logical, partitioned) for sharding in _shardings(module)]
    order = _order(shardings, devices)
    if order is None or not all(map(_can_be, (*operations(logical.main), *operations(partitioned.main)))):
        return None
    numbering = _Numbering(order)
    return numbering.module(logical, is_local=False), numbering.module(partitioned, is_local=True)


def _shardings(module: Module) -> list[Sharding]:
    return list(dict.fromkeys(each for each in (*module.argument_shardings, *module.result_shardings) if each))


def _order(shardings: Iterable[Sharding], devices: int) -> Numbers | None:
    """The device at each place of the mesh, as most shardings have it; None where those are digits of its number."""
    known = [each.spread(devices) for each in shardings if each.devices in (1, devices)]
    columns = {column.tobytes(): column for each in known for column in each.coordinates.T}
    device = expr.var("d", "", devices)

    def irregular(order: Numbers | None) -> int:
        moved = (column if order is None else column[order] for column in columns.values())
        return sum(not _is_regular(tables.fit(column, device)) for column in moved)

    least, best = irregular(None), None
    orders: dict[bytes, Numbers] = {}  # nearly always, one
    for each in sorted(known, key=lambda each: -len(np.unique(each.coordinates, axis=0))) if least else ():
        order = np.lexsort((each.numbers, each.others, *reversed(each.coordinates.T)))
        orders.setdefault(order.tobytes(), order)
    for order in orders.values():
        left = irregular(order)
        if left < least:
            least, best = left, order
    return best


def _is_regular(e: Index) -> bool:
    """Whether an expression is made of digits and rotations of them, and looks up no table."""
    others = [atom for atom, _ in e.items if not isinstance(atom, Digit)]
    return all(atom.operator != "table" and all(map(_is_regular, atom.exprs)) for atom in others)


def _can_be(op: Op) -> bool:
    """Whether it is known what an operation does with numbers of devices."""
    if op.name == "sdy.manual_computation" or "manual" in str(op.attributes.get("sharding")):
        return False
    if not communicates_itself(op):
        return True
    if op.name not in COLLECTIVES or op.name == "custom_call":
        return False
    try:
        # among all partitions, without saying so, those are in the order of their numbers
        return op.name in ("all_reduce", "collective_permute") or _numbers_devices(op) or channel(op) <= 0
    except UnsupportedError:
        return False


def _numbers_devices(op: Op) -> bool:
    """Whether an operation's groups or pairs are numbers of devices, not of replicas, of which there is but one."""
    if op.name == "collective_permute":
        return channel(op) > 0
    return bool(op.attributes.get("use_global_device_ids")) or (channel(op) > 0 and op.name in BY_PARTITION)


class _Numbering:
    """Other numbers for all devices: `order[n]` is the device that is now number n."""

    def __init__(self, order: Numbers) -> None:
        self.order = order
        self.places = np.argsort(order)
        self._arrays: dict[int, tuple[object, Numbers]] = {}
        self._placed: dict[Sharding, Sharding] = {}

    def module(self, module: Module, is_local: bool) -> Module:
        """The module with other numbers; only one that each device runs (`is_local`) has any in its operations."""
        fresh = fresh_in(module.main)
        return replace(
            module,
            main=self.function(module.main, fresh) if is_local else module.main,
            argument_shardings=tuple(map(self.sharding, module.argument_shardings)),
            result_shardings=tuple(map(self.sharding, module.result_shardings)),
        )

    def sharding(self, sharding: Sharding | None) -> Sharding | None:
        if sharding is None:
            return None
        found = self._placed.get(sharding)
        if found is None:
            whole = sharding.spread(len(self.order))
            found = self._placed[sharding] = Sharding(
                whole.tiles,
                np.ascontiguousarray(whole.coordinates[self.order]),
                whole.others[self.order],
                None if whole.addends is None else whole.addends[self.order],
                None if whole.only is None else int(self.places[whole.only]),
            )
        return found

    def function(self, function: Function, fresh: Fresh) -> Function:
        ops: list[Op] = []
        for op in function.ops:
            if op.regions:
                op = replace(op, regions=tuple(self.function(region, fresh) for region in op.regions))
            ops += self._own_number(op, fresh) if op.name == "partition_id" else [self._renumbered(op)]
        return replace(function, ops=tuple(ops))

    def _renumbered(self, op: Op) -> Op:
        if op.name not in COLLECTIVES or not _numbers_devices(op):
            return op
        name = "source_target_pairs" if op.name == "collective_permute" else "replica_groups"
        given = op.attributes[name]
        if id(given) not in self._arrays:
            old = np.asarray(given, np.int64)
            new = np.where(old < 0, -1, self.places[old]) if old.size else old
            if not old.size and op.name != "collective_permute":  # all of them, in the order of their numbers
                new = self.places[None, :]
            self._arrays[id(given)] = given, new
        return replace(op, attributes={**op.attributes, name: self._arrays[id(given)][1]})

    def _own_number(self, op: Op, fresh: Fresh) -> list[Op]:
        """What a device's own number was, in a table of all."""
        (number,), (type_,) = op.results, op.types
        place, table, entry = fresh.some(3)
        row = TensorType((len(self.order),), type_.dtype)
        one = TensorType((1,), type_.dtype)
        values = self.order.astype(np.uint32)
        return [
            replace(op, results=(place,)),
            Op("constant", (), (table,), (row,), {"value": values}, (), op.location, op.source),
            Op("dynamic_slice", (table, place), (entry,), (one,), {"slice_sizes": (1,)}, (), op.location, op.source),
            Op("reshape", (entry,), (number,), (type_,), {}, (), op.location, op.source),
        ]
