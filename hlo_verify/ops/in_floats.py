"""Comparisons and roundings that floats may decide otherwise than real numbers (`passes.load.float_jumps`).

Of numbers that hang on no argument they come out one way, nobody knows which: they are functions of the numbers and of
how these were made.
"""

from __future__ import annotations

from dataclasses import replace

from hlo_verify.ops.values import Context, Rule, Value, result, whole
from hlo_verify.program.element_types import is_float
from hlo_verify.program.ir import IN_FLOATS, MADE_BY, Op
from hlo_verify.program.op_families import CHOOSES, HAS_EDGES, JUMPS, at_edge
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import EQUAL_IN_FLOATS, GREATER_IN_FLOATS, typed
from hlo_verify.terms.laws import apply
from hlo_verify.terms.roundings import shows_roundings
from hlo_verify.terms.term import Poly

SEEN = JUMPS - {"remainder", "sign"}
"""Roundings that laws say nothing of where floats may round a multiple of a place otherwise."""


def compared(direction: str, a: Poly, b: Poly, made_by: str = "") -> Poly:
    """A comparison, by `GT`, `LE`, `EQ` or `NE`, of numbers that were made so, if that is known."""
    function = GREATER_IN_FLOATS if direction in ("GT", "LE") else EQUAL_IN_FLOATS
    test = apply(replace(function, attributes=((MADE_BY, made_by),) if made_by else ()), (a, b))
    return algebra.logical_not(test) if direction in ("LE", "NE") else test


def rounded(op: Op, args: list[Value]) -> list[Value]:
    """Another operation that is marked, of numbers that were made as its mark says."""
    given = op.types[0].dtype
    function = typed(
        f"{op.name}_in_floats",
        ("real",) * len(args),
        "real" if is_float(given) else given,
        {MADE_BY: op.attributes[IN_FLOATS]},
    )
    return result(op, apply(function, tuple(arg.term for arg in args)))


def chosen(op: Op, args: list[Value]) -> list[Value]:
    """An operation that compares elements with each other, and is marked: functions of all elements."""
    made_by = op.attributes[IN_FLOATS], tuple(map(str, op.types))
    return [Value(type_, whole(f"{op.name}_in_floats", (*made_by, n), args, type_)) for n, type_ in enumerate(op.types)]


def near_edge(op: Op, args: list[Value]) -> list[Value]:
    """The operands of a root, an inverse, ..., of which the one that floats may have on either side of an edge, or at
    it, is some number of those made so."""
    made_by = {MADE_BY: op.attributes[IN_FLOATS]}
    k = at_edge(op.name)
    near = apply(typed("near_edge_in_floats", ("real",), "real", made_by), (args[k].term,))
    return [*args[:k], replace(args[k], term=near), *args[k + 1 :]]


def unless_marked(rule: Rule) -> Rule:
    """The rule of an operation that is not marked, or of numbers that show how they were rounded: laws see to these."""

    def checked(op: Op, args: list[Value], context: Context) -> list[Value]:
        is_marked = IN_FLOATS in op.attributes
        if is_marked and op.name in CHOOSES:
            return chosen(op, args)
        if is_marked and op.name in HAS_EDGES:
            return rule(op, near_edge(op, args), context)
        is_hidden = is_marked and not (op.name in SEEN and shows_roundings(args[0].term))
        return rounded(op, args) if is_hidden else rule(op, args, context)

    return checked
