"""The interpreter: read the operands, apply the operation's rule, write the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hlo_verify.diagnostics import Unsupported
from hlo_verify.ops import RULES
from hlo_verify.ops.values import Context, UnsupportedError, Value
from hlo_verify.program.ir import Function, Op
from hlo_verify.program.sharding import automatic
from hlo_verify.terms.in_line import in_line


def run(function: Function, arguments: Sequence[Value], context: Context) -> list[Value]:
    """The results of a function or region, as terms."""
    environment = context.environment
    environment.update(zip(function.arguments, arguments, strict=True))
    kept = context.kept if context.kept is not None and context.kept.holds_in(context) else None
    for op in function.ops:
        operands = [environment[v] for v in op.operands]
        values = _seen(op, operands, context) if kept is None else kept.once(op, operands, context, _seen)
        environment.update(zip(op.results, values, strict=True))
    return [environment[v] for v in function.results]


def _seen(op: Op, operands: list[Value], context: Context) -> list[Value]:
    values = interpret(op, operands, context)
    if context.compilers_device is not None:
        values = [Value(value.type, in_line(value.term, context.compilers_device)) for value in values]
    if context.loops is not None and context.side == "partitioned":
        values = context.loops.by_name(values)
    if context.observe is not None:
        values = context.observe(op, values)
    return values if context.instead is None else context.instead(op, values)


def interpret(op: Op, operands: list[Value], context: Context) -> list[Value]:
    """The results of one operation; opaque where its meaning is not known exactly."""
    context.session.check()
    sharding = op.attributes.get("sharding")
    if context.mesh is not None and isinstance(sharding, str) and not sharding.startswith("#sdy."):
        numbers = automatic(sharding, context.mesh.size) if "manual" in sharding else None
        if numbers is not None:
            # inside a region that XLA flattened: what runs here is each device's own program
            size = context.mesh.size
            context = replace(context, device=context.mesh, partitions=size, replicas=1, automatic=numbers)
    rule = RULES.get(op.name)
    if rule is None:
        return context.opaque(op, f"{op.name} has no rule", Unsupported.OPERATION)
    try:
        if context.worked_out is not None:
            return context.worked_out.results(op, operands, context, rule)
        return rule(op, operands, context)
    except UnsupportedError as error:
        return context.opaque(op, str(error), error.code)
