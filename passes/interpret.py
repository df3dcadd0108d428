"""The interpreter: read the operands, apply the operation's rule, write the results."""

from __future__ import annotations

from collections.abc import Sequence

from hlo_verify.ir import Function, Op
from hlo_verify.ops import RULES
from hlo_verify.ops.values import Context, UnsupportedError, Value


def run(function: Function, arguments: Sequence[Value], context: Context) -> list[Value]:
    """The results of a function or region, as terms."""
    environment = context.environment
    environment.update(zip(function.arguments, arguments, strict=True))
    for op in function.ops:
        values = interpret(op, [environment[v] for v in op.operands], context)
        if context.observe is not None:
            values = context.observe(op, values)
        environment.update(zip(op.results, values, strict=True))
    return [environment[v] for v in function.results]


def interpret(op: Op, operands: list[Value], context: Context) -> list[Value]:
    """The results of one operation; opaque where its meaning is not known exactly."""
    rule = RULES.get(op.name)
    if rule is None:
        return context.opaque(op, f"{op.name} has no rule")
    try:
        return rule(op, operands, context)
    except UnsupportedError as error:
        return context.opaque(op, str(error))
