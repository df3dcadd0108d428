"""Control flow: loops by induction on the lineage of what they carry, branches as selections.

A loop of the logical module, with a counter and a fixed number of iterations, gives every carried tensor
a name: its value at the start of iteration t, and its value at the end. A loop of the partitioned module
is matched with one of those: carried shards are guessed to be shards of the logical carried tensors at
the same t, and the guess is an induction hypothesis. It is dropped for every component whose initial value
or whose next value does not agree with it, and the rest is checked again, until what is left holds. A loop
with no counterpart is taken in closed form where all that it carries has one (`running`), and else unrolled where its
iterations are few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from hlo_verify.diagnostics import Unsupported
from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.ir import Function, Op, TensorType
from hlo_verify.ops import devices
from hlo_verify.ops.running import Closing
from hlo_verify.ops.values import (
    Context,
    Rule,
    UnsupportedError,
    Value,
    as_index,
    factor,
    integer_range,
    is_integer,
    lighten,
    positions,
)
from hlo_verify.solver import cases
from hlo_verify.solver.integers import Effort
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.term import Guard, Poly, tensor

UNROLL_LIMIT = 64
"""The most iterations of a loop without a counterpart that are unrolled."""

SHORT = 4
"""A loop of no more iterations that is matched in part is unrolled instead."""

EFFORT = 300
"""The most steps of case distinction for all loops together."""

_UNCOUNTED = 1 << 30


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop of the logical module: `state[j]` at the start of iteration `t`, `after[j]` one later,
    `final[j]` at the end."""

    op: Op
    t: Var
    initial: tuple[Value, ...]
    state: tuple[Value, ...]
    after: tuple[Value, ...]
    final: tuple[Value, ...]


Place = Callable[[Op, Op, int, TensorType, TensorType], "list[Placement]"]


@dataclass(frozen=True, slots=True)
class Placement:
    """A guess at how a carried tensor is sharded: logical indices of a device's element, and whether it exists."""

    indices: tuple[Index, ...]
    inside: Poly


@dataclass(slots=True)
class LoopBook:
    """The logical module's loops, for the partitioned module's loops to be matched with.

    `place` gives the candidate placements of one carried tensor, most likely first.
    """

    place: Place
    loops: list[Loop] = field(default_factory=list)
    effort: Effort = field(default_factory=lambda: Effort(EFFORT))


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a loop's text says: the trip count, which components never change, and which count."""

    trips: int
    invariant: frozenset[int]
    counters: dict[int, tuple[int, int]]
    """Component to (start, step)."""


def _while(op: Op, args: list[Value], context: Context) -> list[Value]:
    shape = _shape(op, args, context)
    if shape.trips == 0:
        return [Value(kind, value.term) for kind, value in zip(op.types, args, strict=True)]
    if context.side == "logical":
        return _logical_loop(op, args, context, shape)
    lost, found = _matched_loop(op, args, context, shape)
    if found is not None and not lost:
        return found
    closed = _closed_loop(op, args, context, shape)
    if closed is not None:
        return closed
    if found is not None and shape.trips > SHORT:
        return found
    if shape.trips > UNROLL_LIMIT:
        raise UnsupportedError(
            f"a loop of {shape.trips} iterations that no loop of the logical module matches", Unsupported.LOOP
        )
    return _unrolled(op, args, context, shape)


def _shape(op: Op, args: list[Value], context: Context) -> _Shape:
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
        step = _step(result, argument, body, producers, context)
        if isinstance(start, int) and step and args[k].shape == () and is_integer(args[k].type.dtype):
            counters[k] = (as_index(args[k]).const, step)
    t = expr.var("t", "count", _steps_that_fit(counters, op))
    values = []
    for k, value in enumerate(args):
        if k in counters:
            start, step = counters[k]
            at = expr.shift(expr.scale(expr.of_var(t), step), start)
            values.append(Value(value.type, algebra.of_index(at)))
        elif k in invariant:
            values.append(value)
        else:
            unknown = tensor("opaque", f"carried {k}", value.type.dtype, value.shape)
            values.append(Value(value.type, algebra.read(unknown, positions(value.shape))))
    (test,) = context.run(condition, values, context)
    trips = _count(test.term, t)
    if trips is None:
        raise UnsupportedError("a loop whose number of iterations is not known", Unsupported.LOOP)
    if any(not _fits(op.types[k].dtype, start + step * trips) for k, (start, step) in counters.items()):
        raise UnsupportedError("a loop counter that overflows", Unsupported.LOOP)
    return _Shape(trips, frozenset(invariant), counters)


def _steps_that_fit(counters: dict[int, tuple[int, int]], op: Op) -> int:
    """For how many iterations no counter overflows: the trip count is below, or the loop is not understood."""
    steps = _UNCOUNTED
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
    while result != argument:
        op = producers.get(result)
        if op is None or op.name not in ("add", "subtract") or op.types[0].dtype not in algebra.INTEGER_RANGES:
            return None
        first, second = op.operands
        step = _constant(second, body, producers, context)
        if step is None and op.name == "add":
            first, step = second, _constant(first, body, producers, context)
        if step is None:
            return None
        total += step if op.name == "add" else -step
        result = first
    return total


def _constant(value: int, body: Function, producers: dict[int, Op], context: Context) -> int | None:
    """The number that a scalar always is, in a loop's body or around it.

    The body's own values may be in the environment too, as they were when it last ran.
    """
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


def _iterate(op: Op, values: Sequence[Value], context: Context) -> list[Value]:
    body = op.regions[1]
    return context.run(body, values, context)


def _at(shape: _Shape, k: int, t: Index, kind: TensorType) -> Value:
    start, step = shape.counters[k]
    return Value(kind, algebra.of_index(expr.shift(expr.scale(t, step), start)))


def _logical_loop(op: Op, args: list[Value], context: Context, shape: _Shape) -> list[Value]:
    """Inside a manual region, what a loop carries depends on the device; where the initial values and an iteration
    depend on some digits of its number alone, so does that, by induction."""
    if context.device is None:
        return _named_loop(op, args, context, shape, ())
    device = context.device
    initial = [value.term for value in args]
    part = devices.projection(initial, device)
    place = len(context.loops.loops)
    while True:
        results = _named_loop(op, args, context, shape, (part,))
        terms = [*initial, *(value.term for value in context.loops.loops[place].after)]
        if part is expr.of_var(device) or devices.depends_only_on(terms, device, part):
            return results
        del context.loops.loops[place:]
        wider = devices.projection(terms, device)
        part = expr.of_var(device) if wider is part else wider


def _named_loop(op: Op, args: list[Value], context: Context, shape: _Shape, device: tuple[Index, ...]) -> list[Value]:
    """The loop's results, with names for what it carries: tensors indexed by `device` and the counters around."""
    t = expr.fresh("t", shape.trips)
    now = expr.of_var(t)
    outer = (*device, *context.iterations)
    state, final = [], []
    for k, (kind, value) in enumerate(zip(op.types, args, strict=True)):
        if k in shape.invariant:
            state.append(Value(kind, value.term))
            final.append(Value(kind, value.term))
        elif k in shape.counters:
            state.append(_at(shape, k, now, kind))
            final.append(_at(shape, k, expr.constant(shape.trips), kind))
        else:
            name = f"loop{len(context.loops.loops)}"
            carried = tensor("loop", f"{name}.carry{k}", kind.dtype, kind.shape, location=op.location)
            result = tensor("loop", f"{name}.result{k}", kind.dtype, kind.shape, location=op.location)
            state.append(Value(kind, algebra.read(carried, (*outer, now, *positions(kind.shape)))))
            final.append(Value(kind, algebra.read(result, (*outer, *positions(kind.shape)))))
    place = len(context.loops.loops)
    context.iterations.append(now)
    after = _iterate(op, state, context)
    context.iterations.pop()
    context.loops.loops.insert(place, Loop(op, t, tuple(args), tuple(state), tuple(after), tuple(final)))
    return final


def _matched_loop(op: Op, args: list[Value], context: Context, shape: _Shape) -> tuple[int, list[Value] | None]:
    """How many components have no lineage in the logical loop that matches best, and the loop's results."""
    best: tuple[int, list[Value]] | None = None
    candidates = [loop for loop in context.loops.loops if loop.t.size == shape.trips and len(loop.state) == len(args)]
    candidates.sort(key=lambda loop: loop.op.location != op.location)
    for loop in candidates:
        lost, results = _induct(op, args, context, shape, loop)
        if best is None or lost < best[0]:
            best = (lost, results)
        if lost == 0:
            break
    return (0, None) if best is None else best


def _closed_loop(op: Op, args: list[Value], context: Context, shape: _Shape) -> list[Value] | None:
    """The loop's results where all that it carries has a closed form.

    What is not understood in an iteration is another value in each, so that nothing of it may be summed up.
    """
    t = expr.fresh("t", shape.trips)
    known = {k: args[k] for k in shape.invariant}
    known |= {k: _at(shape, k, expr.of_var(t), op.types[k]) for k in shape.counters}
    pure = replace(context, observe=None, unsupported={}, iterations=[*context.iterations, expr.of_var(t)])
    ends = Closing(t, context.device, args, known, lambda state: _iterate(op, state, pure)).last_values()
    if ends is None or pure.unsupported:
        return None
    if context.observe is not None:  # now that an iteration's values are worth a look
        seen = replace(context, iterations=pure.iterations)
        Closing(t, context.device, args, known, lambda state: _iterate(op, state, seen)).last_values()
    last = {k: _at(shape, k, expr.constant(shape.trips), op.types[k]) for k in shape.counters}
    return [Value(kind, (ends | known | last)[k].term) for k, kind in enumerate(op.types)]


def _induct(op: Op, args: list[Value], context: Context, shape: _Shape, loop: Loop) -> tuple[int, list[Value]]:
    """How many components have no lineage, and the loop's results."""
    options: dict[int, Iterator[Placement]] = {}
    places: dict[int, Placement] = {}
    for k, kind in enumerate(op.types):
        if k in shape.invariant or k in shape.counters:
            continue
        candidates = context.loops.place(loop.op, op, k, loop.state[k].type, kind)
        options[k] = _agreeing(args[k], loop, k, candidates, context.loops.effort)
        _take_next(places, options, k)
    now = expr.of_var(loop.t)
    unknown = {
        k: tensor("opaque", f"carried {k}", kind.dtype, kind.shape, location=op.location)
        for k, kind in enumerate(op.types)
    }
    while True:
        state = []
        for k, kind in enumerate(op.types):
            if k in shape.invariant:
                state.append(Value(kind, args[k].term))
            elif k in shape.counters:
                state.append(_at(shape, k, now, kind))
            else:
                arbitrary = algebra.read(unknown[k], (*_outside(context), now, *positions(kind.shape)))
                state.append(Value(kind, _placed(loop.state[k], places.get(k), arbitrary)))
        after = _iterate(op, state, context)
        wrong = [
            k for k, place in places.items() if not _agrees(after[k].term, loop.after[k], place, context.loops.effort)
        ]
        if not wrong:
            break
        # One at a time: that others are wrong may be the fault of this one.
        if not any(_take_next(places, options, k) for k in wrong):
            for k in wrong:
                del places[k]
    results = []
    for k, kind in enumerate(op.types):
        if k in shape.invariant:
            results.append(Value(kind, args[k].term))
        elif k in shape.counters:
            results.append(_at(shape, k, expr.constant(shape.trips), kind))
        else:
            end = tensor("opaque", f"loop result {k}", kind.dtype, kind.shape, location=op.location)
            arbitrary = algebra.read(end, (*_outside(context), *positions(kind.shape)))
            results.append(Value(kind, _placed(loop.final[k], places.get(k), arbitrary)))
    lost = len(op.types) - len(shape.invariant) - len(shape.counters) - len(places)
    return lost, results


def _take_next(places: dict[int, Placement], options: dict[int, Iterator[Placement]], k: int) -> bool:
    """Guess that a component is placed as the next of its options says, if there is one."""
    place = next(options[k], None)
    if place is not None:
        places[k] = place
    return place is not None


def _agreeing(
    initial: Value, loop: Loop, k: int, candidates: Sequence[Placement], effort: Effort
) -> Iterator[Placement]:
    """The placements in which a component starts as its counterpart does."""
    return (place for place in candidates if _agrees(initial.term, loop.initial[k], place, effort))


def _outside(context: Context) -> tuple[Index, ...]:
    """What an arbitrary value may depend on: the device, and the iterations of loops around that are taken as one."""
    device = () if context.device is None else (expr.of_var(context.device),)
    return (*device, *context.iterations)


def _placed(logical: Value, place: Placement | None, arbitrary: Poly) -> Poly:
    """A device's shard of a logical value; arbitrary past its end, or where nothing is known."""
    if place is None:
        return arbitrary
    term = algebra.multiply(place.inside, logical.at(place.indices))
    return algebra.add(term, algebra.multiply(algebra.logical_not(place.inside), arbitrary))


def _agrees(found: Poly, logical: Value, place: Placement, effort: Effort) -> bool:
    """Whether a term is its shard of a logical value, where that exists."""
    return cases.equal(found, logical.at(place.indices), place.inside, effort)


def _unrolled(op: Op, args: list[Value], context: Context, shape: _Shape) -> list[Value]:
    values = list(args)
    for n in range(shape.trips):
        for k in shape.counters:
            values[k] = _at(shape, k, expr.constant(n), op.types[k])
        values = [
            Value(kind, lighten(value.term, kind.dtype))
            for kind, value in zip(op.types, _iterate(op, values, context), strict=True)
        ]
    return values


COLLECTIVES = frozenset(
    "all_reduce reduce_scatter all_gather all_to_all collective_permute collective_broadcast".split()
)


def _communicates(function: Function) -> bool:
    return any(op.name in COLLECTIVES or any(map(_communicates, op.regions)) for op in function.ops)


def _case(op: Op, args: list[Value], context: Context) -> list[Value]:
    """A selection among the branches' results; the last branch for an index out of range."""
    (index,) = args[:1]
    count = len(op.regions)
    if index.type.dtype == "i1":
        tests = [index.term, algebra.logical_not(index.term)]
    else:
        e = as_index(index)
        tests = [guards.interval(expr.shift(e, -n), 0, 0) for n in range(count - 1)]
        last = guards.interval(e, 0, count - 2)
        tests.append(algebra.logical_not(last))
    if context.device is not None and context.device in index.term.free and any(map(_communicates, op.regions)):
        raise UnsupportedError("a branch with collectives that only some devices take", Unsupported.BRANCH)
    outcomes = [
        context.run(region, args[1:], context) if region.arguments else context.run(region, [], context)
        for region in op.regions
    ]
    results = []
    for n, kind in enumerate(op.types):
        terms = [outcome[n].term for outcome in outcomes]
        if all(term is terms[0] for term in terms):
            results.append(Value(kind, terms[0]))
            continue
        picked = [algebra.multiply(test, factor(term, kind.dtype)) for test, term in zip(tests, terms, strict=True)]
        results.append(Value(kind, lighten(algebra.add(*picked), kind.dtype)))
    return results


RULES: dict[str, Rule] = {"while": _while, "case": _case, "if": _case}
