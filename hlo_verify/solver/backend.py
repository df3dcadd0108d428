"""Whether formulas are equal: one question, one answer, by Z3."""

from __future__ import annotations

from dataclasses import dataclass

import z3


@dataclass(frozen=True, slots=True)
class Query:
    """Pairs of formulas that should be equal, as text: declarations, `axioms` assertions, then one assertion a pair."""

    text: str
    axioms: int
    pairs: int


@dataclass(frozen=True, slots=True)
class Equal:
    """Every pair is equal, for all values."""


@dataclass(frozen=True, slots=True)
class Different:
    """A pair that differs, and values for which it does."""

    pair: int
    model: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """Neither was found: why, and what it was given."""

    reason: str


Answer = Equal | Different | Unknown


def decide(query: Query, milliseconds: int) -> Answer:
    """Ask Z3, pair by pair: first whether the difference vanishes when it is multiplied out, then for a model."""
    context = z3.Context()
    assertions = z3.parse_smt2_string(query.text, ctx=context)
    axioms = list(assertions)[: query.axioms]
    unknown = None
    for n, assertion in enumerate(list(assertions)[query.axioms :]):
        a, b = assertion.children()
        rest = z3.simplify(a - b, som=True, hoist_mul=False)
        if z3.is_rational_value(rest) and rest.as_fraction() == 0:
            continue
        solver = z3.Solver(ctx=context)
        solver.set("timeout", milliseconds)
        solver.add(*axioms)
        solver.add(rest != 0)
        answer = solver.check()
        if answer == z3.sat:
            return Different(n, str(solver.model())[:2000])
        if answer != z3.unsat:
            unknown = Unknown(f"Z3 gave up ({solver.reason_unknown()}) within {milliseconds} ms")
    return unknown or Equal()
