"""scatter: every update lands where its index says, or nowhere.

`result[p] = operand[p] ⊕ (⊕ over updates u that land on p. update[u])` for a commutative ⊕. Where the region
overwrites, the same holds if no two updates land on one element, and where all that land on one are the same there
the element is that, if any lands (`same_updates`); where it adds to each operand something that it computes of all
updates alone, that is the update. Otherwise the result is a function of the whole operands.

A window that lies partly outside is skipped as a whole by some of XLA's implementations, while StableHLO's
specification applies the part that lies inside. Which of the two holds is a truth value of its own here, so that a
proof holds for both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque, Var
from hlo_verify.ops.comparison import choices_of
from hlo_verify.ops.elementwise import choice
from hlo_verify.ops.indexing import equals, heed_claims, index_at, one_by_one
from hlo_verify.ops.permutations import by_rank, summed
from hlo_verify.ops.regions import added, combine, computed, monoids, neutral, operand_term, reduce_terms, region_terms
from hlo_verify.ops.same_updates import one_of
from hlo_verify.ops.slots import told_apart
from hlo_verify.ops.values import (
    Context,
    Rule,
    Value,
    as_index,
    factor,
    lighten,
    operand_of_type,
    position,
    remap,
)
from hlo_verify.program.ir import Function, Op
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.counts import given_by
from hlo_verify.terms.definitions import define
from hlo_verify.terms.functions import WINDOWS_LAND
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import ONE, ZERO, Poly


@dataclass(frozen=True, slots=True)
class Landing:
    """The updates that may land on an element: their index `at`, for every value of `bound`, where `lands`."""

    bound: tuple[Var, ...]
    at: tuple[Index, ...]
    lands: Poly
    places: tuple[Index, ...]
    """Where an update goes in the dimensions that its index decides."""
    elements: tuple[Index, ...]
    """Where the element is in these."""


def landing(op: Op, operand: Value, indices: Value, updates: tuple[int, ...]) -> Landing:
    """Which updates land at the positional variables of the operand.

    Window dimensions that no index moves and batching dimensions give the update's index directly.
    """
    numbers = op.attributes["scatter_dimension_numbers"]
    window_dims, inserted = numbers["update_window_dims"], numbers["inserted_window_dims"]
    batching, vector = numbers["input_batching_dims"], numbers["index_vector_dim"]
    to_operand = numbers["scatter_dims_to_operand_dims"]
    shape = operand.shape
    where = [position(k, n) for k, n in enumerate(shape)]
    window_of = dict(
        zip((k for k in range(len(shape)) if k not in inserted and k not in batching), window_dims, strict=True)
    )
    batch_dims = [d for d in range(len(updates)) if d not in window_dims]
    known: dict[int, Index] = {}
    lands = ONE
    for k, d in window_of.items():
        if k not in to_operand:
            known[d] = where[k]
            lands = algebra.multiply(lands, guards.interval(where[k], 0, updates[d] - 1))
    for k, b in zip(batching, numbers["scatter_indices_batching_dims"], strict=True):
        known[batch_dims[b if b < vector else b - 1]] = where[k]
    bound = {d: expr.fresh("f", n) for d, n in enumerate(updates) if d not in known}
    at = [known[d] if d in known else expr.of_var(bound[d]) for d in range(len(updates))]
    for k in range(len(shape)):
        if k in inserted and k not in to_operand:
            lands = algebra.multiply(lands, guards.interval(where[k], 0, 0))
    batch = [at[d] for d in batch_dims]
    fits, places = ONE, []
    for n, k in enumerate(to_operand):
        start = index_at(indices, batch, vector, n)
        offset = at[window_of[k]] if k in window_of else expr.constant(0)
        width = updates[window_of[k]] if k in window_of else 1
        here, e = _start(start, expr.subtract(where[k], offset), whole=width > 1)
        lands = algebra.multiply(lands, here)
        places.append(expr.add(e, offset))
        if width > 1:
            fits = algebra.multiply(fits, guards.interval(e, 0, shape[k] - width))
    if fits is not ONE:
        partly = algebra.multiply(algebra.logical_not(fits), apply(WINDOWS_LAND, ()))
        lands = algebra.multiply(lands, algebra.add(fits, partly))
    return Landing(tuple(bound.values()), tuple(at), lands, tuple(places), tuple(where[k] for k in to_operand))


def _start(start: Value, target: Index, *, whole: bool) -> tuple[Poly, Index]:
    """Where a start index is a target, and what it is there: of `where(ok, j, n)`, by which what is not ok is dropped
    as it lands past the end, `ok` and j = target, and j; the index itself where it is asked for as a whole."""
    e = as_index(start)
    if not whole and any(isinstance(part, Opaque) for part, _ in e.items):
        choices = [(on, here, equals(here.term, here.type.dtype, target)) for on, here in choices_of(start)]
        landing = [each for each in choices if each[2] is not ZERO]
        if len(landing) == 1:
            on, here, _ = landing[0]
            lands, e = _start(here, target, whole=False)
            return algebra.multiply(on, lands), e
    return equals(start.term, start.type.dtype, target), e


def _scatter(op: Op, args: list[Value], context: Context) -> list[Value]:
    count = len(op.types)
    operands, indices, updates = args[:count], args[count], args[count + 1 :]
    if 0 in updates[0].shape:
        return [Value(type_, operand_of_type(v, type_.dtype)) for type_, v in zip(op.types, operands, strict=True)]
    reducers = _reducers(op.regions[0], context)
    place = landing(op, operands[0], indices, updates[0].shape)
    heed_claims(op, context, indices, operands[0].shape, lambda: at_most_once(place))
    landed: list[Poly] | None
    if reducers is None:
        reducers, landed = ("sum",) * count, _added(op, place, updates, context)
    elif "set" in reducers and not (op.attributes.get("unique_indices") or at_most_once(place)):
        return _overwritten(op, args, place, context)
    else:
        landed = [
            remap(factor(operand_term(reducer, update, result.dtype), result.dtype), update.shape, place.at)
            for reducer, update, result in zip(reducers, updates, op.types, strict=True)
        ]
    if landed is None:
        once = _computed_once(op, operands, place, updates, context) if at_most_once(place) else None
        return once or _function_of_rows(op, args, place, context)
    return [
        Value(result, lighten(_landed(reducer, place, operand, term, result.dtype), result.dtype))
        for reducer, operand, term, result in zip(reducers, operands, landed, op.types, strict=True)
    ]


def _overwritten(op: Op, args: list[Value], place: Landing, context: Context) -> list[Value]:
    """The results where updates may overwrite one another, which does not matter if they are one at an element."""
    updates = [
        one_of(place.bound, zip(place.places, place.elements, strict=True), remap(v.term, v.shape, place.at))
        for v in args[len(op.types) + 1 :]
    ]
    if None in updates:
        return _function_of_rows(op, args, place, context)
    is_hit = reduce_terms("or", place.bound, by_rank(place.bound, place.lands))
    results = []
    for type_, update, operand in zip(op.types, updates, args, strict=False):
        assert update is not None
        here = choice(is_hit, update, operand_of_type(operand, type_.dtype), type_.dtype, context)
        results.append(Value(type_, lighten(here, type_.dtype)))
    return results


def _computed_once(
    op: Op, operands: Sequence[Value], place: Landing, updates: Sequence[Value], context: Context
) -> list[Value] | None:
    """What the region makes of an element and the one update that lands there: `x.at[k].apply(jnp.sin)` is the sine at
    k. None where the region is not understood."""
    region = op.regions[0]
    own = [operand_of_type(v, type_.dtype) for v, type_ in zip(operands, op.types, strict=True)]
    theirs = []
    for v, type_ in zip(updates, region.argument_types[len(op.types) :], strict=True):
        there = remap(factor(operand_of_type(v, type_.dtype), type_.dtype), v.shape, place.at)
        theirs.append(summed(place.bound, algebra.multiply(place.lands, there)))
    given = [Value(type_, term) for type_, term in zip(region.argument_types, [*own, *theirs], strict=True)]
    made = computed(region, given, context)
    if made is None:
        return None
    is_hit = summed(place.bound, place.lands)
    return [
        Value(type_, lighten(choice(is_hit, value.term, base, type_.dtype, context), type_.dtype))
        for type_, value, base in zip(op.types, made, own, strict=True)
    ]


def _added(op: Op, place: Landing, updates: Sequence[Value], context: Context) -> list[Poly] | None:
    """What the updates that land add to each operand; None where the region does anything else."""
    region = op.regions[0]
    types = region.argument_types[len(op.types) :]
    terms = [
        remap(operand_term("sum", v, type_.dtype), v.shape, place.at) for v, type_ in zip(updates, types, strict=True)
    ]
    return added(region, [Value(type_, term) for type_, term in zip(types, terms, strict=True)], context)


def _reducers(region: Function, context: Context) -> tuple[str, ...] | None:
    count = len(region.results)
    if region.results == region.arguments[count:]:
        return ("set",) * count
    return monoids(region, context)


def _landed(reducer: str, place: Landing, operand: Value, term: Poly, dtype: str) -> Poly:
    """The result of one operand, at its positional variables, where a term of `place` is the update."""
    base = operand_term(reducer, operand, dtype)
    bound, lands = place.bound, place.lands
    if reducer == "sum":
        return algebra.add(base, summed(bound, algebra.multiply(lands, term)))
    if reducer == "set":
        covered = summed(bound, lands)
        kept = algebra.multiply(algebra.logical_not(covered), factor(base, dtype))
        return algebra.add(kept, summed(bound, algebra.multiply(lands, term)))
    candidates = algebra.select(lands, term, neutral(reducer, dtype))
    return combine(reducer, base, reduce_terms(reducer, bound, candidates), dtype)


def at_most_once(place: Landing) -> bool:
    """Whether no two updates that differ in their bound variables can land on one element."""
    bound = [v for v in place.bound if v.size > 1]
    if not bound:
        return True
    return told_apart(place.places, bound, given_by(place.lands)) or _differ(place.places, bound)


def _differ(places: Sequence[Index], bound: Sequence[Var]) -> bool:
    """Whether all places differ, computed one by one where they depend on nothing else."""
    columns = one_by_one(places, bound) if all(e.free <= set(bound) for e in places) else None
    if not columns:
        return False
    return len(np.unique(np.stack(columns), axis=1).T) == len(columns[0])


@dataclass(frozen=True, slots=True)
class _Rows:
    """The dimensions of the operand along which an update is its own row: only updates of one row land there.

    In `x.at[arange(4), columns].set(updates)`, update u lands at [u, columns[u]]: what becomes of row 2 depends on
    update 2 alone. There `fixed` is (0,), u is `[row]` at the element [row, column], and `inside` says that there is
    such an update: row < 4.
    """

    fixed: tuple[int, ...]
    of: dict[Var, Index]
    """For each variable of the updates that goes with such a dimension, its value at an element of the result."""
    inside: Poly

    @classmethod
    def among(cls, place: Landing, numbers: Mapping[str, Any], shape: tuple[int, ...]) -> _Rows:
        rows: dict[Var, Index] = {}
        fixed: list[int] = []
        inside = ONE
        for k, e in zip(numbers["scatter_dims_to_operand_dims"], place.places, strict=True):
            own = [v for v in place.bound if v in e.free]
            if k not in numbers["inserted_window_dims"] or len(own) != 1 or own[0] in rows:
                continue
            rest = expr.subtract(e, expr.of_var(own[0]))
            if own[0] not in rest.free:
                rows[own[0]] = expr.subtract(position(k, shape[k]), rest)
                fixed.append(k)
                inside = algebra.multiply(inside, guards.interval(rows[own[0]], 0, own[0].size - 1))
        return cls(tuple(fixed), rows, inside)


class _Scattered(NamedTuple):
    """What tells such functions apart, besides their arguments."""

    region: tuple[Poly, ...]
    dimension_numbers: tuple[tuple[str, Any], ...]
    unique_indices: bool
    fixed: tuple[int, ...]
    operands: tuple[str, ...]
    """Their element types."""
    others: tuple[str, ...]
    """The element types of the indices and the updates."""


def _function_of_rows(op: Op, args: list[Value], place: Landing, context: Context) -> list[Value]:
    """A scatter that overwrites in no known order, or whose reducer is not recognised: at every element a function of
    what was there and, for each update in its order, of whether it lands there and of what it is.

    So a part of the operand may be updated by itself: the same updates land on an element of it. Where an update goes
    along a dimension may be its own place there (an iota that is part of the index): then only updates from one place
    can land on an element (`_Rows`). What becomes of it depends on those alone, in their order.
    """
    numbers = op.attributes["scatter_dimension_numbers"]
    rows = _Rows.among(place, numbers, op.types[0].shape)
    operands, updates = args[: len(op.types)], args[len(op.types) + 1 :]
    key = _Scattered(
        region_terms(op.regions[0], context),
        tuple(sorted((k, v) for k, v in numbers.items())),
        bool(op.attributes.get("unique_indices")),
        rows.fixed,
        tuple(v.type.dtype for v in operands),
        tuple(v.type.dtype for v in args[len(op.types) :]),
    )
    substitution = algebra.Substitution(dict(rows.of))
    bodies = (
        *(operand_of_type(v, v.type.dtype) for v in operands),
        substitution.poly(place.lands),
        *(substitution.poly(remap(v.term, v.shape, place.at)) for v in updates),
    )
    bound = [v for v in place.bound if v not in rows.of]
    results = []
    for n, (type_, operand) in enumerate(zip(op.types, operands, strict=True)):
        landed = define("scatter", bound, bodies, attributes=(key, n), ordered=True, dtype=type_.dtype)
        results.append(Value(type_, algebra.select(rows.inside, landed, operand_of_type(operand, type_.dtype))))
    return results


RULES: dict[str, Rule] = {"scatter": _scatter}
