"""Formulas decided by Z3: reals, integers and free functions, with laws as ground instances."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import z3

from hlo_verify.equality.backend import Answer, Different, Equal, Limit, Limits, Unknown
from hlo_verify.equality.z3_limits import limit, satisfiable
from hlo_verify.passes.recheck.question import Formulas
from hlo_verify.passes.recheck.z3_terms import script

MODEL = 2000
"""The most characters of a model that are kept."""

ARGUMENTS, ENTRIES = 4, 16
"""The most arguments, and values, of a function that is shown with a model."""


class Z3:
    """Decides formulas pair by pair: first whether the difference vanishes when Z3 multiplies it out, then for a model.

    It has been seen to hang past its time limit and to end its process: pose what may be large in a worker process.
    """

    def decide(self, question: Formulas, limits: Limits) -> Answer:
        """As `Backend.decide`; the time is for all pairs together."""
        written = script(question.graph, question.pairs)
        context = z3.Context()
        assertions = list(z3.parse_smt2_string(written.text, ctx=context))
        deadline = time.monotonic() + limits.milliseconds / 1000
        for n, assertion in enumerate(assertions[written.axioms :]):
            a, b = assertion.children()
            left = int((deadline - time.monotonic()) * 1000)
            if left <= 0:
                return Unknown(f"no answer within {limits}", Limit.TIME)
            rest = z3.simplify(a - b, som=True, hoist_mul=False)
            if z3.is_rational_value(rest) and rest.numerator_as_long() == 0:
                continue
            solver = z3.Solver(ctx=context)
            limit(solver, replace(limits, milliseconds=left))
            solver.add(*assertions[: written.axioms])
            solver.add(rest != 0)
            found = satisfiable(solver, limits)
            if isinstance(found, Unknown):
                return found
            if found:
                return Different(n, _shown(solver.model()))
        return Equal()


def _shown(model: z3.ModelRef) -> str:
    """The numbers of a model as text. What is made of them is left out: it takes seconds to print, and says no more."""
    parts, length = list[str](), 0
    for name in model.decls():
        found = model[name]
        text = _of_numbers(found) if isinstance(found, z3.FuncInterp) else _number(found)
        if text is not None and length < MODEL:
            parts.append(f"{name} = {text}")
            length += len(parts[-1])
    return f"[{', '.join(parts)}]"[:MODEL]


def _number(value: Any) -> str | None:
    is_number = isinstance(value, z3.RatNumRef | z3.IntNumRef | z3.AlgebraicNumRef | z3.BoolRef)
    return str(value) if is_number and z3.is_app(value) and not value.children() else None


def _of_numbers(function: z3.FuncInterp) -> str | None:
    """The values of a function of few arguments; None where these are no numbers."""
    if function.arity() > ARGUMENTS or function.num_entries() > ENTRIES:
        return None
    parts = []
    for n in range(function.num_entries()):
        entry = function.entry(n)
        *given, value = (_number(each) for each in (*map(entry.arg_value, range(entry.num_args())), entry.value()))
        parts.append(f"{' '.join(map(str, given))} -> {value}")
    other = _number(function.else_value())
    return None if other is None or "None" in " ".join(parts) else f"[{', '.join([*parts, f'else -> {other}'])}]"
