"""What a loop's text says of it: how many iterations it has, which components never change, and which count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hlo_verify.diagnostics import Unsupported
from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.ops.values import Context, UnsupportedError, Value, as_index, integer_range, positions
from hlo_verify.program.element_types import INTEGER_RANGES, is_integer
from hlo_verify.program.ir import Function, Op, TensorType
from hlo_verify.program.op_families import communicates, is_identity
from hlo_verify.terms import algebra
from hlo_verify.terms.term import Guard, Poly, tensor

UNCOUNTED = 1 << 30

ENDLESS = "a loop that never ends"
OF_UNKNOWN_COUNT = "a loop whose number of iterations is not known"
OVERFLOWS = "a loop counter that overflows"
MAY_NOT_END = frozenset((OF_UNKNOWN_COUNT, OVERFLOWS))
"""Why a loop is not understood of which nothing shows that it ends."""


COUNT = "count"
"""How the iteration is called at which a condition is read. Each loop has its own, as loops may lie in conditions."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a loop's text says: the trip count, which components never change, and which count.

    Where data decide how often it goes round, `unbounded` says so, the trip count is more than anything, and nothing
    counts: a counter might overflow.
    """

    trips: int
    invariant: frozenset[int]
    counters: dict[int, tuple[int, int]]
    """Component to (start, step)."""
    unbounded: UnsupportedError | None = None


def shape_of(op: Op, args: list[Value], context: Context) -> Shape:
    """The trip count from the condition, evaluated with every counter as an affine function of the iteration."""
    condition, body = op.regions
    producers = {result: inner for inner in body.ops for result in inner.results}
    invariant = set()
    counters: dict[int, tuple[int, int]] = {}
    for k, (argument, result) in enumerate(zip(body.arguments, body.results, strict=True)):
        if argument == result:
            invariant.add(k)
            continue
        start = args[k].term.constant
        is_number = args[k].shape == () and is_integer(args[k].type.dtype)
        step = _step(result, argument, body, producers, context) if is_number else None
        if isinstance(start, int) and step:
            counters[k] = (as_index(args[k]).const, step)
    t = expr.fresh(COUNT, _steps_that_fit(counters, op))
    values = []
    for k, value in enumerate(args):
        if k in counters:
            start, step = counters[k]
            at = expr.shift(expr.scale(expr.of_var(t), step), start)
            values.append(Value(value.type, algebra.of_index(at)))
        else:
            values.append(value if k in invariant else _anything(k, value.type))
    (test,) = context.run(condition, values, context)
    trips = _count(test.term, t)
    if trips is None:
        meet_in(op, args, context)
        if test.term.constant is not None:
            whatever = [_anything(k, value.type) if k in counters else value for k, value in enumerate(values)]
            (test,) = context.run(condition, whatever, replace(context, observe=None, unsupported={}))
            raise UnsupportedError(OVERFLOWS if test.term.constant is None else ENDLESS, Unsupported.LOOP)
        return Shape(UNCOUNTED, frozenset(invariant), {}, UnsupportedError(OF_UNKNOWN_COUNT, Unsupported.LOOP))
    if any(not _fits(op.types[k].dtype, start + step * trips) for k, (start, step) in counters.items()):
        meet_in(op, args, context)
        raise UnsupportedError(OVERFLOWS, Unsupported.LOOP)
    return Shape(trips, frozenset(invariant), counters)


def _anything(k: int, type_: TensorType) -> Value:
    """Any value of a component."""
    unknown = tensor("opaque", f"carried {k}", type_.dtype, type_.shape)
    return Value(type_, algebra.read(unknown, positions(type_.shape)))


def meet_in(op: Op, args: list[Value], context: Context) -> None:
    """Note where some devices may wait in a loop for others that never come, which its results need not show.

    Raises `UnsupportedError` where the loop itself may end earlier on some of them.
    """
    if any(map(communicates, op.regions)) and _may_end_apart(op, args, context):
        raise UnsupportedError(
            "a loop in which devices may communicate, and that ends earlier on some of them", Unsupported.BRANCH
        )


def _may_end_apart(op: Op, args: list[Value], context: Context) -> bool:
    """Whether the condition may hold on some devices and not on others: if it depends on what differs between them at
    the start, or after an iteration from what they have in common. Branches and loops inside of which devices may part
    are noted."""
    device = context.device or context.mesh
    if device is None:
        return False
    unknown = [tensor("opaque", f"carried {k}", type_.dtype, type_.shape) for k, type_ in enumerate(op.types)]
    known = len(context.loops or ())
    varying = {k for k, value in enumerate(args) if device in value.term.free}
    while True:
        pure = replace(context, observe=None, unsupported={})
        values = [
            Value(
                type_, algebra.read(unknown[k], (*(context.execution if k in varying else ()), *positions(type_.shape)))
            )
            for k, type_ in enumerate(op.types)
        ]
        (test,) = context.run(op.regions[0], values, pure)
        after = context.run(op.regions[1], values, pure)
        if context.loops is not None:
            context.loops.forget(known)
        more = {k for k, value in enumerate(after) if device in value.term.free} - varying
        if device in test.term.free or not more:
            parting = {key: said for key, said in pure.unsupported.items() if said.code is Unsupported.BRANCH}
            context.unsupported.update(parting)
            return device in test.term.free
        varying |= more


def _steps_that_fit(counters: dict[int, tuple[int, int]], op: Op) -> int:
    """For how many iterations no counter overflows: the trip count is below, or the loop is not understood."""
    steps = UNCOUNTED
    for k, (start, step) in counters.items():
        lo, hi = integer_range(op.types[k].dtype)
        steps = min(steps, ((hi - start) // step if step > 0 else (start - lo) // -step) + 1)
    return steps


def _fits(dtype: str, value: int) -> bool:
    lo, hi = integer_range(dtype)
    return lo <= value <= hi


def _step(result: int, argument: int, body: Function, producers: dict[int, Op], context: Context) -> int | None:
    """What an iteration adds to a counter, in one or several constant steps (a body that was unrolled)."""
    total = 0
    while True:
        result = _annotated(result, producers)
        if result == argument:
            return total
        op = producers.get(result)
        if op is None or op.name not in ("add", "subtract") or op.types[0].dtype not in INTEGER_RANGES:
            return None
        first, second = op.operands
        step = _constant(second, body, producers, context)
        if step is None and op.name == "add":
            first, step = second, _constant(first, body, producers, context)
        if step is None:
            return None
        total += step if op.name == "add" else -step
        result = first


def _annotated(value: int, producers: dict[int, Op]) -> int:
    """The value that annotations were put on (in a manual region JAX writes them on every counter)."""
    while value in producers and is_identity(producers[value]) and len(producers[value].results) == 1:
        (value,) = producers[value].operands
    return value


def _constant(value: int, body: Function, producers: dict[int, Op], context: Context) -> int | None:
    """The number that a scalar always is, in a loop's body or around it.

    The body's own values may be in the environment too, as they were when it last ran.
    """
    value = _annotated(value, producers)
    source = producers.get(value)
    if source is not None:
        return int(source.attributes["value"].flat[0]) if source.name == "constant" else None
    around = None if value in body.arguments else context.environment.get(value)
    constant = None if around is None else around.term.constant
    return constant if isinstance(constant, int) else None


def _count(test: Poly, t: Var) -> int | None:
    """The number of iterations for which a condition holds: only `t div low <= n` with t itself says so exactly."""
    constant = test.constant
    if constant is not None:
        return 0 if constant == 0 else None
    guard = test.atom
    if not isinstance(guard, Guard) or guard.lo is not None or guard.hi is None or len(guard.form.items) != 1:
        return None
    digit, c = guard.form.items[0]
    if c == 1 and isinstance(digit, expr.Digit) and digit.var is t and digit.top:
        return digit.low * (guard.hi + 1)  # t div low <= hi
    return None


def counter_at(shape: Shape, k: int, t: Index, type_: TensorType) -> Value:
    """What a counter is at iteration t."""
    start, step = shape.counters[k]
    return Value(type_, algebra.of_index(expr.shift(expr.scale(t, step), start)))


def goes_on(op: Op, values: Sequence[Value], context: Context, turn: Index) -> Poly:
    """Whether a loop goes round in that iteration, from what it carries before."""
    (test,) = context.run(op.regions[0], values, replace(context, iterations=(*context.iterations, turn)))
    return test.term


def iterate(op: Op, values: Sequence[Value], context: Context, turn: Index) -> list[Value]:
    """What a loop carries after that iteration, from what it carries before.

    What is new each time is another tensor in each iteration, so that the iteration is part of the context: a variable
    where one iteration stands for all, a number where the loop is unrolled.
    """
    return context.run(op.regions[1], values, replace(context, iterations=(*context.iterations, turn)))
