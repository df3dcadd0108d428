"""Formulas decided by Z3: reals, integers and free functions, with laws as ground instances."""

from __future__ import annotations

import time
from dataclasses import replace

import z3

from hlo_verify.equality.backend import Answer, Different, Equal, Limit, Limits, Unknown
from hlo_verify.equality.z3_limits import limit, satisfiable
from hlo_verify.passes.recheck.question import Formulas
from hlo_verify.passes.recheck.z3_terms import script

MODEL = 2000
"""The most characters of a model that are kept."""

ARGUMENTS = 4
"""The most arguments of a function that is shown with a model."""


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
    """A model as text, without functions of many arguments, which take seconds to print."""
    parts = (f"{name} = {model[name]}" for name in model.decls() if name.arity() <= ARGUMENTS)
    return f"[{', '.join(parts)}]"[:MODEL]
