"""Loops that mix the bits of integers, as functions of single elements.

JAX's random numbers come from a cipher (threefry): a loop of a few rounds, of additions, rotations and exclusive ors.
What it leaves at a place depends on what it started from at that place, and on nothing else of these tensors:

    leaves[i, j] = rounds(counter[i, j], key[i])

Such a loop is a function of these elements. It has a name by what it computes of them, as its iterations are written
out once for scalars, so that it has the same name in both modules, for tensors of any shape. Nothing else needs to be
known of a cipher: equal keys and equal counters give equal numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace

from hlo_verify.limits import allows
from hlo_verify.memory import per_session
from hlo_verify.ops import bits, comparison, constants, conversion, elementwise
from hlo_verify.ops.counting import Shape
from hlo_verify.ops.single_elements import Element, NotByElementError, Place, Turn, may_go_by_element, turn_of
from hlo_verify.ops.values import Context, Rule, UnsupportedError, Value, positions
from hlo_verify.program.ir import Name, Op, TensorType, captured
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import Function
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Number, Poly, Read, Tensor, number, tensor

BY_ELEMENT: Mapping[str, Rule] = {
    **elementwise.RULES,
    **bits.RULES,
    **comparison.RULES,
    **conversion.RULES,
    **constants.RULES,
}

_operands: Callable[[], dict[tuple[int, str], Tensor]] = per_session("operands of loops at an element", dict)
_outcomes: Callable[[], dict[Hashable, tuple[Poly, ...] | None]] = per_session("loops at an element", dict)
_functions: Callable[[], dict[tuple[str, Poly], Function]] = per_session("functions that loops are", dict)


def by_element(op: Op, args: Sequence[Value], context: Context, shape: Shape) -> list[Value] | None:
    """The results of a loop that mixes bits, where each element goes its own way; else None."""
    if shape.unbounded is not None or not may_go_by_element(op.regions[1]):
        return None
    around = {name: context.environment[name] for name in dict.fromkeys(captured(op))}
    given = dict(zip(op.regions[1].arguments, args, strict=True)) | around
    results = []
    try:
        for k, type_ in enumerate(op.types):
            if k in shape.invariant:
                results.append(Value(type_, args[k].term))
                continue
            start = op.regions[1].arguments[k], positions(type_.shape)
            turn = turn_of(op, {name: value.type for name, value in around.items()}, start)
            results.append(Value(type_, _left(turn, start, given, context, shape)))
    except NotByElementError:
        return None
    return results


def _left(turn: Turn, start: Element, given: Mapping[Name, Value], context: Context, shape: Shape) -> Poly:
    """What a loop leaves at the element that `turn` is about. Raises `NotByElementError`."""
    initial = [given[name].at(place) for name, place in turn.elements]
    names = list(given)
    known = {
        n: term.constant
        for n, ((name, place), term) in enumerate(zip(turn.elements, initial, strict=True))
        if term.constant is not None and (names.index(name) in shape.counters or _is_looked_up(place, given[name]))
    }
    outcomes = _written_out(turn, known, context, shape.trips)
    n = turn.elements.index(start)
    return _function_of(outcomes[n], turn.dtypes[n], [term for k, term in enumerate(initial) if k not in known])


def _is_looked_up(place: Place, value: Value) -> bool:
    """Whether an element is one of a table: that of a given number."""
    return any(size > 1 and not e.items for e, size in zip(place, value.shape, strict=True))


def _written_out(turn: Turn, known: Mapping[int, Number], context: Context, trips: int) -> tuple[Poly, ...]:
    """What elements are after all iterations, as terms in what they were before: a number where that is known."""
    key = turn.text, tuple(known.items()), trips
    found = _outcomes()
    if key not in found:
        found[key] = _run(turn, known, context, trips)
    outcomes = found[key]
    if outcomes is None:
        raise NotByElementError
    return outcomes


def _run(turn: Turn, known: Mapping[int, Number], context: Context, trips: int) -> tuple[Poly, ...] | None:
    if not allows("operations_at_an_element", trips * len(turn.ops)):
        return None
    plain = replace(context, observe=None, unsupported={})
    values, operands = [], 0
    for n, dtype in enumerate(turn.dtypes):
        term = number(known[n]) if n in known else algebra.read(_operand(operands, dtype), ())
        operands += n not in known
        values.append(Value(TensorType((), dtype), term))
    for _ in range(trips):
        now = dict(enumerate(values))
        for op in turn.ops:
            try:
                (now[op.results[0]],) = BY_ELEMENT[op.name](op, [now[v] for v in op.operands], plain)
            except UnsupportedError:
                return None
        values = [now[v] for v in turn.results]
    return tuple(value.term for value in values)


def _operand(n: int, dtype: str) -> Tensor:
    """What stands, before the first iteration, for the n-th of the elements that are no known numbers."""
    found = _operands().get((n, dtype))
    if found is None:
        found = _operands()[n, dtype] = tensor("opaque", f"operand{n}", dtype, ())
    return found


def _function_of(outcome: Poly, dtype: str, initial: Sequence[Poly]) -> Poly:
    """An outcome where the elements were `initial` before: a function of machine integers, as are the rules that made
    it."""
    if outcome.constant is not None:
        return outcome
    for (n, own), operand in _operands().items():
        # another type's integer is the same number, but its term stands for what it is in that type
        if own == dtype and isinstance(outcome.atom, Read) and outcome.atom.tensor is operand:
            return initial[n]
    if dtype == "i1":
        raise NotByElementError
    known = _functions()
    function = known.get((dtype, outcome))
    if function is None:
        function = known[dtype, outcome] = Function("rounds", gives=dtype, attributes=(("number", len(known)),))
    return apply(function, tuple(initial))
