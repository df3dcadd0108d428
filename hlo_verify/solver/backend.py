"""Whether formulas are equal: one question, one answer, by Z3."""

from __future__ import annotations

import time
from dataclasses import dataclass

import z3

MODEL = 2000
"""The most characters of a model that are kept."""


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
    """Ask Z3, pair by pair: first whether the difference vanishes when it is multiplied out, then for a model.

    `milliseconds` are for all pairs together.
    """
    context = z3.Context()
    assertions = list(z3.parse_smt2_string(query.text, ctx=context))
    deadline = time.monotonic() + milliseconds / 1000
    for n, assertion in enumerate(assertions[query.axioms :]):
        a, b = assertion.children()
        left = int((deadline - time.monotonic()) * 1000)
        if left <= 0:
            return Unknown(f"no answer within {milliseconds} ms")
        rest = z3.simplify(a - b, som=True, hoist_mul=False)
        if z3.is_rational_value(rest) and rest.numerator_as_long() == 0:
            continue
        solver = z3.Solver(ctx=context)
        solver.set("timeout", left)
        solver.add(*assertions[: query.axioms])
        solver.add(rest != 0)
        answer = solver.check()
        if answer == z3.sat:
            return Different(n, str(solver.model())[:MODEL])
        if answer != z3.unsat:
            return Unknown(f"no answer within {milliseconds} ms ({solver.reason_unknown()})")
    return Equal()
