"""Loops turn by turn, and branches by device."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from hlo_verify.diagnostics import Unsupported
from hlo_verify.index import expr
from hlo_verify.ops.control import selected
from hlo_verify.ops.values import Context, UnsupportedError, Value, known_integer, lighten
from hlo_verify.passes.prove.each_device.machine import Handler, Machine, Values, same
from hlo_verify.program.ir import Op, TensorType
from hlo_verify.program.op_families import communicates


def _while(machine: Machine, op: Op, args: list[Values], context: Context) -> list[Values]:
    """A loop turn by turn. Devices whose condition no longer holds keep what they have, and may not be needed by others
    that go on."""
    condition, body = op.regions
    talks = any(map(communicates, op.regions))
    values = [_typed(each, type_) for each, type_ in zip(args, op.types, strict=True)]
    for turn in range(context.session.limits.turns_by_device + 1):
        here = replace(context, iterations=(*context.iterations, expr.constant(turn)))
        (tests,) = machine.run(condition, values, here)
        going = {k: test.term.constant for k, test in enumerate(tests)}
        if not set(going.values()) <= {0, 1} or (talks and len(set(going.values())) > 1):
            said = "a loop whose number of iterations is not known on each device"
            raise UnsupportedError(said, Unsupported.BRANCH if talks else Unsupported.LOOP)
        if not any(going.values()):
            return values
        if turn == context.session.limits.turns_by_device:
            break
        after = machine.run(body, values, here)
        values = [
            tuple(
                Value(type_, lighten(new.term, type_.dtype)) if going[k] else old
                for k, (old, new) in enumerate(zip(before, each, strict=True))
            )
            for before, each, type_ in zip(values, after, op.types, strict=True)
        ]
    context.session.reached("turns_by_device")
    raise UnsupportedError("a loop of many iterations", Unsupported.BRANCH if talks else Unsupported.LOOP)


def _typed(values: Values, type_: TensorType) -> Values:
    return tuple(Value(type_, value.term) for value in values)


def _case(machine: Machine, op: Op, args: list[Values], context: Context) -> list[Values]:
    """What the branch gives that a device takes; a selection where that is not known."""
    index, operands = args[0], args[1:]
    taken = [_taken(value, len(op.regions)) for value in index]
    apart = (not same([value.term for value in index]) and len(set(taken)) > 1) or None in taken
    if apart and not same([value.term for value in index]) and any(map(communicates, op.regions)):
        raise UnsupportedError(
            "a branch in which devices may communicate, and that only some of them take", Unsupported.BRANCH
        )
    needed: Collection[int] = range(len(op.regions)) if None in taken else {n for n in taken if n is not None}
    outcomes = {
        n: machine.run(region, operands if region.arguments else [], context)
        for n, region in enumerate(op.regions)
        if n in needed
    }
    return [
        tuple(_chosen(op, n, k, index[k], taken[k], outcomes, type_) for k in range(machine.devices))
        for n, type_ in enumerate(op.types)
    ]


def _taken(index: Value, count: int) -> int | None:
    """Which branch is taken; the last one for an index out of range. None where that is not known."""
    found = known_integer(index)
    if found is None:
        return None
    if index.type.dtype == "i1":
        return 0 if found else 1
    return found if 0 <= found < count else count - 1


def _chosen(
    op: Op,
    n: int,
    k: int,
    index: Value,
    taken: int | None,
    outcomes: dict[int, list[Values]],
    type_: TensorType,
) -> Value:
    if taken is not None:
        return Value(type_, outcomes[taken][n][k].term)
    terms: Sequence[Value] = [outcomes[branch][n][k] for branch in range(len(op.regions))]
    return Value(type_, selected(index, [value.term for value in terms], type_.dtype))


HANDLERS: dict[str, Handler] = {"while": _while, "case": _case, "if": _case}
