"""Limits that a Z3 solver keeps by itself, and what it says when one is reached."""

from __future__ import annotations

import z3

from hlo_verify.equality.backend import Limit, Limits, Unknown


def limit(solver: z3.Solver, limits: Limits) -> None:
    """Make a solver keep limits, question by question. One that ran out of memory may have no answer ever after."""
    if limits.milliseconds:
        solver.set("timeout", limits.milliseconds)
    solver.set("rlimit", limits.steps)  # to Z3 too 0 is none
    if limits.megabytes:
        solver.set("max_memory", limits.megabytes)  # of all that Z3 has in this process


def satisfiable(solver: z3.Solver, limits: Limits, *conditions: z3.BoolRef) -> bool | Unknown:
    """Whether what was asserted and the conditions can hold together. `limits` are those the solver keeps."""
    try:
        answer = solver.check(*conditions)
        why = solver.reason_unknown() if answer == z3.unknown else ""
    except z3.Z3Exception as error:
        answer, why = z3.unknown, str(error)
    if not why:
        return bool(answer == z3.sat)
    if "incomplete" in why:
        return Unknown(why)
    return Unknown(f"no answer within {limits} ({why})", Limit.MEMORY if "memory" in why else Limit.TIME)
