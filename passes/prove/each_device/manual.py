"""Manual regions of a global module, where every device's blocks are known by themselves."""

from __future__ import annotations

from itertools import product

from hlo_verify.diagnostics import Unsupported
from hlo_verify.ops.manual import Border, block, enter, regions_border, within
from hlo_verify.ops.values import Context, UnsupportedError, Value, positions
from hlo_verify.passes.prove.each_device.communication import added, glued
from hlo_verify.passes.prove.each_device.machine import Handler, Machine, Values
from hlo_verify.program.ir import Op, TensorType


def _manual_computation(machine: Machine, op: Op, args: list[Values], context: Context) -> list[Values]:
    inner, device = within(op, context)
    body = op.regions[0]
    shards = []
    for values, sharding, type_ in zip(args, op.attributes["in_shardings"], body.argument_types, strict=True):
        border = regions_border(sharding, device, is_entered=True)
        known = {value.term.uid: machine.everywhere(_entered(value, type_, border, machine)) for value in values}
        shards.append(tuple(known[value.term.uid][k] for k, value in enumerate(values)))
    results = machine.run(body, shards, inner)
    return [
        _left(machine, values, type_, regions_border(sharding, device))
        for values, sharding, type_ in zip(results, op.attributes["out_shardings"], op.types, strict=True)
    ]


def _entered(value: Value, type_: TensorType, border: Border, machine: Machine) -> Value:
    return Value(type_, enter(value, type_.shape, border, machine.device))


def _left(machine: Machine, values: Values, type_: TensorType, border: Border) -> Values:
    """The whole tensor as each device sees it: each block from the device that has all else in common with it."""
    for size, local, count in zip(type_.shape, values[0].shape, border.counts, strict=True):
        block(size, local, count, "gives")
    if border.addend_count > 1 and type_.dtype == "i1":
        raise UnsupportedError("a manual region that gives addends of truth values", Unsupported.MANUAL)
    owners: dict[tuple[int, ...], int] = {}
    for k in range(machine.devices):
        place = int(border.others[k]), int(border.addends[k]), *map(int, border.blocks[k])
        owners[place] = k
    copies = len({int(n) for n in border.others})
    places = product(range(copies), range(border.addend_count), *map(range, border.counts))
    if len(owners) != machine.devices or set(owners) != set(places):
        raise UnsupportedError(
            "a manual region whose blocks are not all on the same number of devices", Unsupported.MANUAL
        )
    wholes = []
    for other in range(copies):
        machine.spend(border.addend_count)
        addends = [
            _assembled({place[2:]: values[k] for place, k in owners.items() if place[:2] == (other, addend)}, type_)
            for addend in range(border.addend_count)
        ]
        sum_ = addends[0].term if len(addends) == 1 else added([value.term for value in addends], type_.dtype)
        wholes.append(Value(type_, sum_))
    return tuple(wholes[int(other)] for other in border.others)


def _assembled(blocks: dict[tuple[int, ...], Value], type_: TensorType) -> Value:
    """A tensor of its blocks, put end to end along one dimension after another."""
    for k in reversed(range(type_.rank)):
        rows: dict[tuple[int, ...], list[Value]] = {}
        for place in sorted(blocks):
            rows.setdefault(place[:k], []).append(blocks[place])
        blocks = {place: _row(parts, k) for place, parts in rows.items()}
    (whole,) = blocks.values()
    return whole if whole.shape == type_.shape else Value(type_, whole.at(positions(type_.shape)))


def _row(parts: list[Value], k: int) -> Value:
    if len(parts) == 1:
        return parts[0]
    shape = list(parts[0].shape)
    shape[k] *= len(parts)
    return glued(parts, k, TensorType(tuple(shape), parts[0].type.dtype))


HANDLERS: dict[str, Handler] = {"sdy.manual_computation": _manual_computation}
