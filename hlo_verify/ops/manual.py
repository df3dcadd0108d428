"""Per-device regions inside a global module: `sdy.manual_computation` and the custom calls that XLA makes of it.

Entering a region, a device reads its shard. Leaving it, each element is read from a device that owns it;
along mesh axes that the sharding does not mention, a device reads its own copy, so a result that is not the
same on all of them stays a function of the device and equals nothing that is not.
"""

from __future__ import annotations

from dataclasses import replace

from hlo_verify.index import expr, tables
from hlo_verify.index.expr import Digit, Index, Var
from hlo_verify.ir import Op
from hlo_verify.ops.opaque import CUSTOM_CALLS
from hlo_verify.ops.values import Context, Rule, UnsupportedError, Value, position_var, positions
from hlo_verify.sharding import Sharding, parse_sharding
from hlo_verify.terms import algebra


def enter(value: Value, sharding: Sharding, device: Var) -> list[Index]:
    """The global index of every element of a device's shard; only even shardings have a meaning here."""
    if sharding.addends is not None or sharding.only is not None:
        raise UnsupportedError("a manual region with unreduced or single-device operands")
    sharding = sharding.spread(device.size)
    indices = []
    for k, (size, tiles) in enumerate(zip(value.shape, sharding.tiles, strict=True)):
        if size % tiles:
            raise UnsupportedError(f"a manual region whose sharding splits {size} elements into {tiles} parts")
        start = expr.scale(tables.fit(sharding.coordinates[:, k], device), size // tiles)
        indices.append(expr.add(start, expr.of_var(position_var(k, size // tiles))))
    return indices


def owner(sharding: Sharding, wanted: list[Index], device: Var) -> Index:
    """The device with the wanted shard coordinates that shares every other digit with this one."""
    sharding = sharding.spread(device.size)
    d = expr.of_var(device)
    moved = d
    coordinates = [tables.fit(sharding.coordinates[:, k], device) for k in range(len(wanted))]
    for e, target in zip(coordinates, wanted, strict=True):
        for atom, c in e.items:
            if not isinstance(atom, Digit) or c <= 0:
                raise UnsupportedError("a manual region over a permuted mesh")
            mine = expr.of_atom(atom)
            theirs = expr.digit_of(target, c, atom.radix)
            moved = expr.add(moved, expr.scale(expr.subtract(theirs, mine), atom.low))
    for e, target in zip(coordinates, wanted, strict=True):
        if expr.substitute(e, {device: moved}) is not target:
            raise UnsupportedError("a manual region whose sharding is no product of mesh axes")
    return moved


def leave(value: Value, sharding: Sharding, shape: tuple[int, ...], device: Var) -> Value:
    """The global tensor made of every device's shard."""
    if sharding.addends is not None or sharding.only is not None:
        raise UnsupportedError("a manual region with unreduced or single-device results")
    mapping: dict[Var, Index] = {}
    wanted = []
    for k, (size, local) in enumerate(zip(shape, value.shape, strict=True)):
        shard, within = expr.floor_divmod(positions(shape)[k], local)
        wanted.append(shard)
        if local > 1:
            mapping[position_var(k, local)] = within
        if size != local * sharding.tiles[k]:
            raise UnsupportedError("a manual region whose shards are not equal")
    mapping[device] = owner(sharding, wanted, device)
    return Value(replace(value.type, shape=shape), algebra.substitute(value.term, mapping))


def _manual_computation(op: Op, args: list[Value], context: Context) -> list[Value]:
    if context.mesh is None or context.device is not None:
        raise UnsupportedError("a manual region inside of another")
    mesh = op.attributes["mesh"]
    if any(size > 1 and axis not in op.attributes["manual_axes"] for axis, size in mesh.axes):
        raise UnsupportedError("a manual region over some of the mesh's axes only")
    device = context.mesh
    inner = replace(context, device=device, partitions=device.size, replicas=1)
    body = op.regions[0]
    shards = []
    for value, sharding, kind in zip(args, op.attributes["in_shardings"], body.argument_types, strict=True):
        if sharding is None or sharding.devices != device.size:
            raise UnsupportedError("a manual region over other devices than the module's")
        shards.append(Value(kind, value.at(enter(value, sharding, device))))
    results = context.run(body, shards, inner)
    return [
        leave(value, sharding, kind.shape, device)
        for value, sharding, kind in zip(results, op.attributes["out_shardings"], op.types, strict=True)
    ]


def _annotated(op: Op, rank: int, context: Context) -> tuple[Sharding, Var]:
    text = op.attributes.get("sharding")
    if context.mesh is None or not isinstance(text, str):
        raise UnsupportedError(f"{op.attributes.get('call_target_name')} without a sharding")
    (sharding,) = parse_sharding(text, [rank], context.mesh.size)
    if sharding is None:
        raise UnsupportedError("a manual region without the sharding of its operand")
    return sharding, context.mesh


def _to_shard(op: Op, args: list[Value], context: Context) -> list[Value]:
    """SPMDFullToShardShape: the operand's own annotation says how it is split."""
    (value,) = args
    sharding = context.annotations.get(op.operands[0])
    if sharding is None or context.mesh is None:
        raise UnsupportedError("SPMDFullToShardShape of a value without a sharding")
    (placed,) = parse_sharding(sharding, [len(value.shape)], context.mesh.size)
    if placed is None:
        return [Value(op.types[0], value.term)]
    return [Value(op.types[0], value.at(enter(value, placed, context.mesh)))]


def _to_full(op: Op, args: list[Value], context: Context) -> list[Value]:
    """SPMDShardToFullShape: the result's annotation says how the shards make it up."""
    (kind,) = op.types
    sharding, device = _annotated(op, kind.rank, context)
    return [Value(kind, leave(args[0], sharding, kind.shape, device).term)]


CUSTOM_CALLS["SPMDFullToShardShape"] = _to_shard
CUSTOM_CALLS["SPMDShardToFullShape"] = _to_full

RULES: dict[str, Rule] = {"sdy.manual_computation": _manual_computation}
