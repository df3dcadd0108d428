"""Control flow: loops by induction or in closed form, branches as selections.

A loop of the partitioned module that matches none of the logical module (`matching`) is taken in closed form where
all that it carries has one (`running`), and else unrolled where its iterations are few.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

from hlo_verify.diagnostics import Unsupported
from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.ops import after_first
from hlo_verify.ops.counting import Shape, counter_at, iterate, meet_in, shape_of
from hlo_verify.ops.element_loops import by_element
from hlo_verify.ops.induction import Reading, book_of, is_around, logical_loop
from hlo_verify.ops.matching import Match, matched_loop
from hlo_verify.ops.pipelining import piped_loop
from hlo_verify.ops.running import Closing
from hlo_verify.ops.running_maxima import Instead, Maxima
from hlo_verify.ops.values import Context, Rule, UnsupportedError, Value, as_index, factor, lighten
from hlo_verify.program.ir import Op, operations
from hlo_verify.program.op_families import communicates
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.no_number import infinity
from hlo_verify.terms.term import Poly

SHORT = 4
"""A loop of no more iterations that is matched in part is unrolled instead."""


def _while(op: Op, args: list[Value], context: Context) -> list[Value]:
    shape = shape_of(op, args, context)
    try:
        return _left(op, args, context, shape)
    except UnsupportedError as error:
        if error is not shape.unbounded:
            meet_in(op, args, context)
        raise


def _left(op: Op, args: list[Value], context: Context, shape: Shape) -> list[Value]:
    """What a loop leaves. Raises `UnsupportedError` where nothing is known of it."""
    if shape.trips == 0:
        return [Value(type_, value.term) for type_, value in zip(op.types, args, strict=True)]
    functions = by_element(op, args, context, shape)
    if functions is not None:
        return functions
    if context.side == "logical":
        is_written_out = _is_written_out(op, context, shape)
        return (_unrolled if is_written_out else logical_loop)(op, args, context, shape)
    book = book_of(context)
    match: Match | None = None
    with book.trying(lambda: match is not None and bool(match.lost)):
        match = matched_loop(op, args, context, shape)
    if match is not None and (shape.unbounded or not match.lost):
        return match.results
    if shape.unbounded:
        raise shape.unbounded
    piped = piped_loop(op, args, context, shape)
    if piped is not None:
        return piped
    if _is_written_out(op, context, shape):
        return _unrolled(op, args, context, shape)
    if match is None:
        closed = _closed_loop(op, args, context, shape)
        return _unrolled_if_short(op, args, context, shape) if closed is None else closed
    return _in_another_way(op, args, context, shape, match)


def _in_another_way(op: Op, args: list[Value], context: Context, shape: Shape, match: Match) -> list[Value]:
    """What a loop leaves of which a logical loop matches a part."""
    book = book_of(context)
    closed: list[Value] | None = None
    lost: Collection[int] = match.lost
    if book.may_try:
        with book.trying(lambda: closed is None):
            closed = _closed_loop(op, args, context, shape)
    if closed is not None:
        return closed
    if not book.may_try:
        return match.results
    with book.trying(lambda: bool(lost)):
        lost, results = _completed(op, args, context, match)
    if not lost or shape.trips > SHORT or not book.may_try:
        return results
    return _unrolled_if_short(op, args, context, shape)


def _unrolled_if_short(op: Op, args: list[Value], context: Context, shape: Shape) -> list[Value]:
    """What a loop leaves, turn by turn. Raises `UnsupportedError` where it has too many of them."""
    is_long = shape.trips > context.session.limits.unrolled_turns
    if is_long:
        context.session.reached("unrolled_turns")
    if is_long or _goes_back(context):
        raise UnsupportedError(
            f"a loop of {shape.trips} iterations that no loop of the logical module matches", Unsupported.LOOP
        )
    return _unrolled(op, args, context, shape)


def _goes_back(context: Context) -> bool:
    """Whether a loop comes behind a pipeline, as its gradient does, in the reading in which what the logical module's
    loops leave has names: it is made of what each turn of theirs left, which other readings have as it is."""
    book = book_of(context)
    return book.reading is Reading.NAMED and bool(book.piped)


def _closed_loop(op: Op, args: list[Value], context: Context, shape: Shape) -> list[Value] | None:
    """The loop's results where all that it carries has a closed form.

    What is not understood in an iteration is another value in each, so that nothing of it may be summed up.
    """
    t = expr.fresh("t", shape.trips)
    turn = expr.of_var(t)
    known = {k: args[k] for k in shape.invariant}
    known |= {k: counter_at(shape, k, turn, op.types[k]) for k in shape.counters}
    pure, device = replace(context, observe=None, unsupported={}), context.device or context.mesh

    def last_values(around: Context) -> dict[int, Value] | None:
        def closing(numbers: Collection[int] = (), maxima: Maxima | None = None) -> Closing:
            iterated = partial(iterate, op, context=around, turn=turn)
            return Closing(t, device, args, known, iterated, maxima=maxima, numbers=numbers)

        def with_numbers(maxima: Collection[int]) -> dict[int, Value] | None:
            return after_first.last_values(op, closing, maxima, first, context.session)

        if is_around(op):
            ends = with_numbers([k for k, value in enumerate(args) if value.term is infinity(-1)])
            if ends is not None:
                return ends
        plain = closing(maxima=_maxima(op, around, turn))
        ends = plain.last_values()
        return with_numbers(plain.seen) if ends is None else ends

    def first() -> list[Value]:
        zero = expr.constant(0)
        counted = {k: counter_at(shape, k, zero, op.types[k]) for k in shape.counters}
        return iterate(op, [counted.get(k, value) for k, value in enumerate(args)], pure, zero)

    ends = last_values(pure)
    if ends is None or pure.unsupported:
        return None
    if context.observe is not None:  # now that an iteration's values are worth a look
        last_values(context)
    last = {k: counter_at(shape, k, expr.constant(shape.trips), op.types[k]) for k in shape.counters}
    return [Value(type_, (ends | known | last)[k].term) for k, type_ in enumerate(op.types)]


def _maxima(op: Op, context: Context, turn: Index) -> Maxima | None:
    """The running maxima by name, of which this loop may have more; None where something stands in for operations."""
    is_plain = all(e is expr.of_var(v) for e in context.execution for v in e.free)
    if context.instead is not None or not is_plain:
        return None

    def iterated(state: list[Value], instead: Instead) -> list[Value]:
        return iterate(op, state, replace(context, instead=instead), turn)

    book = book_of(context)
    return Maxima(context.execution, iterated, context.session, book.maxima, book.totals)


def _completed(op: Op, args: list[Value], context: Context, match: Match) -> tuple[set[int], list[Value]]:
    """The results of a loop of which some components are matched: others may have a closed form, which depends on the
    matched ones alone; and which are left, of which nothing is known."""
    t, pure = match.loop.t, replace(context, observe=None, unsupported={})
    known = {k: value for k, value in enumerate(match.state) if k not in match.lost}
    turn, device = expr.of_var(t), context.device or context.mesh
    ends = Closing(t, device, args, known, lambda state: iterate(op, state, pure, turn)).closed()
    if pure.unsupported:
        ends = {}
    return set(match.lost - ends.keys()), [ends.get(k, value) for k, value in enumerate(match.results)]


def _is_written_out(op: Op, context: Context, shape: Shape) -> bool:
    """Whether a short loop is written out before anything else is made of it; the operations are noted then."""
    book, limits = book_of(context), context.session.limits
    if shape.trips > limits.unrolled_turns:
        return False
    book.has_short = True
    if book.reading is not Reading.WRITTEN_OUT:
        return False
    book.written_out += shape.trips * sum(1 for _ in operations(op.regions[1]))
    if book.written_out > limits.written_out_operations:
        context.session.reached("written_out_operations")
    return book.written_out <= limits.written_out_operations


def _unrolled(op: Op, args: list[Value], context: Context, shape: Shape) -> list[Value]:
    values = list(args)
    for n in range(shape.trips):
        turn = expr.constant(n)
        for k in shape.counters:
            values[k] = counter_at(shape, k, turn, op.types[k])
        values = [
            Value(type_, lighten(value.term, type_.dtype))
            for type_, value in zip(op.types, iterate(op, values, context, turn), strict=True)
        ]
    return values


def _case(op: Op, args: list[Value], context: Context) -> list[Value]:
    """A selection among the branches' results."""
    (index,) = args[:1]
    device = context.device or context.mesh
    if device is not None and device in index.term.free and any(map(communicates, op.regions)):
        raise UnsupportedError(
            "a branch in which devices may communicate, and that only some of them take", Unsupported.BRANCH
        )
    outcomes = [
        context.run(region, args[1:], context) if region.arguments else context.run(region, [], context)
        for region in op.regions
    ]
    return [
        Value(type_, selected(index, [outcome[n].term for outcome in outcomes], type_.dtype))
        for n, type_ in enumerate(op.types)
    ]


def selected(index: Value, terms: Sequence[Poly], dtype: str) -> Poly:
    """What the branch gives that an index takes, or a truth value; the last branch for an index out of range."""
    if all(term is terms[0] for term in terms):
        return terms[0]
    if index.type.dtype == "i1":
        tests = [index.term, algebra.logical_not(index.term)]
    else:
        e = as_index(index)
        tests = [guards.interval(expr.shift(e, -n), 0, 0) for n in range(len(terms) - 1)]
        tests.append(algebra.logical_not(guards.interval(e, 0, len(terms) - 2)))
    picked = [algebra.multiply(test, factor(term, dtype)) for test, term in zip(tests, terms, strict=True)]
    return lighten(algebra.add(*picked), dtype)


RULES: dict[str, Rule] = {"while": _while, "case": _case, "if": _case}
