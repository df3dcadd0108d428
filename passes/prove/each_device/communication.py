"""Collectives, where what every device holds is known by itself.

The groups are those of the walk for all devices, with all that is refused there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from hlo_verify.diagnostics import Unsupported
from hlo_verify.index import expr
from hlo_verify.ops.collectives import reducer_of
from hlo_verify.ops.groups import device_of, even_groups, sources_of
from hlo_verify.ops.movement import concatenated
from hlo_verify.ops.regions import combine, operand_term
from hlo_verify.ops.values import Context, UnsupportedError, Value, factor, lighten, positions
from hlo_verify.passes.prove.each_device.machine import Handler, Machine, Values
from hlo_verify.program.ir import Op, TensorType
from hlo_verify.terms import algebra
from hlo_verify.terms.neighbours import joined, spread
from hlo_verify.terms.term import ZERO, Poly

Groups = list[list[int]]


def _rows(op: Op, context: Context, ordered: bool = True) -> Groups:
    """Groups of one size that cover every device."""
    device_of(context)
    groups: Groups = even_groups(op, context, ordered).tolist()
    return groups


def _of_groups(groups: Groups, made: Callable[[list[int]], Sequence[Value]]) -> Values:
    """What each device holds, where `made` gives it for the members of a group."""
    found: dict[int, Value] = {}
    for group in groups:
        found.update(zip(group, made(group), strict=True))
    return tuple(found[k] for k in range(len(found)))


def glued(parts: Sequence[Value], dimension: int, type_: TensorType) -> Value:
    """Equal parts put end to end along a dimension.

    Where they are one term at places that are equally far apart, so is the whole: `x[2*n + i]` for n = 0, 1, … is `x`.
    """
    size = parts[0].shape[dimension]
    place = expr.fresh("f", len(parts))
    term = spread([part.term for part in parts], place)
    if term is None or not size:
        return Value(type_, concatenated([(part, size) for part in parts], dimension, positions(type_.shape)))
    where = list(positions(type_.shape))
    member, where[dimension] = expr.floor_divmod(where[dimension], size)
    whole = algebra.substitute(term, {place: expr.of_var(other := expr.fresh("f", len(parts)))})
    return Value(type_, algebra.substitute(Value(parts[0].type, whole).at(where), {other: member}))


def added(terms: Sequence[Poly], dtype: str) -> Poly:
    """The sum of what some devices hold."""
    return lighten(joined(algebra.add(*terms)), dtype)


def _combined(reducer: str, values: Sequence[Value], dtype: str) -> Poly:
    """The reduction of what the members of a group hold."""
    terms = [operand_term(reducer, value, dtype) for value in values]
    if reducer == "sum":
        return added(terms, dtype)
    light = [factor(term, dtype) if len(term.items) > 1 else term for term in terms]
    return lighten(reduce(lambda a, b: combine(reducer, a, b, dtype), light), dtype)


def _all_reduce(machine: Machine, op: Op, args: list[Values], context: Context) -> list[Values]:
    reducer, groups = reducer_of(op, context), _rows(op, context, ordered=False)

    def reduced(values: Values, type_: TensorType) -> Values:
        def of(group: list[int]) -> list[Value]:
            machine.spend(1)
            term = _combined(reducer, [values[k] for k in group], type_.dtype)
            return [Value(type_, term)] * len(group)

        return _of_groups(groups, of)

    return [reduced(*each) for each in zip(args, op.types, strict=True)]


def _reduce_scatter(machine: Machine, op: Op, args: list[Values], context: Context) -> list[Values]:
    reducer, groups = reducer_of(op, context), _rows(op, context)
    dimension = op.attributes["scatter_dimension"]

    def scattered(values: Values, type_: TensorType) -> Values:
        def of(group: list[int]) -> list[Value]:
            machine.spend(len(group))
            parts = [[_part(values[k], dimension, rank, type_) for k in group] for rank in range(len(group))]
            return [Value(type_, _combined(reducer, part, type_.dtype)) for part in parts]

        return _of_groups(groups, of)

    return [scattered(*each) for each in zip(args, op.types, strict=True)]


def _part(value: Value, dimension: int, n: int, type_: TensorType) -> Value:
    """The n-th of the parts of that type along a dimension."""
    where = list(positions(type_.shape))
    where[dimension] = expr.shift(where[dimension], n * type_.shape[dimension])
    return Value(type_, value.at(where))


def _all_gather(machine: Machine, op: Op, args: list[Values], context: Context) -> list[Values]:
    groups, dimension = _rows(op, context), op.attributes["all_gather_dim"]

    def gathered(values: Values, type_: TensorType) -> Values:
        def of(group: list[int]) -> list[Value]:
            machine.spend(1)
            return [glued([values[k] for k in group], dimension, type_)] * len(group)

        return _of_groups(groups, of)

    return [gathered(*each) for each in zip(args, op.types, strict=True)]


def _all_to_all(machine: Machine, op: Op, args: list[Values], context: Context) -> list[Values]:
    """Member r of a group receives the r-th piece of every member, put end to end."""
    groups = _rows(op, context)
    split, concat = op.attributes["split_dimension"], op.attributes["concat_dimension"]
    count = op.attributes.get("split_count", len(groups[0]))
    if count != len(groups[0]):
        raise UnsupportedError(f"all_to_all of {count} pieces in groups of {len(groups[0])}", Unsupported.GROUPS)

    def exchanged(values: Values, type_: TensorType) -> Values:
        shape = list(values[0].shape)
        shape[split] //= count
        piece = TensorType(tuple(shape), type_.dtype)

        def of(group: list[int]) -> list[Value]:
            machine.spend(len(group))
            return [glued([_part(values[k], split, r, piece) for k in group], concat, type_) for r in range(len(group))]

        return _of_groups(groups, of)

    return [exchanged(*each) for each in zip(args, op.types, strict=True)]


def _forwarded(machine: Machine, op: Op, args: list[Values], context: Context) -> list[Values]:
    """A device with a source receives its value; one without receives zeros."""
    device_of(context)
    sources = sources_of(op, context).tolist()
    return [
        tuple(Value(type_, ZERO) if source < 0 else Value(type_, values[source].term) for source in sources)
        for values, type_ in zip(args, op.types, strict=True)
    ]


HANDLERS: dict[str, Handler] = {
    "all_reduce": _all_reduce,
    "reduce_scatter": _reduce_scatter,
    "all_gather": _all_gather,
    "all_to_all": _all_to_all,
    "collective_permute": _forwarded,
    "collective_broadcast": _forwarded,
}
