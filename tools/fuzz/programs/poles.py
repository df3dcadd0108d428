"""What computes something beside that may be no number, and makes nothing of it: right only where that is a number."""

from __future__ import annotations

import random

from tools.fuzz.programs.program import Builder, Node
from tools.fuzz.programs.rewriting import Way


def _beside_a_pole(b: Builder, n: Node, rng: random.Random) -> int | None:
    """The result, and 0 times a logarithm, root or quotient of an operand, or that less itself."""
    kind = b.kind(n.outputs[0])
    of = rng.choice(n.inputs)
    if not kind.is_float or b.kind(of) != kind:
        return None
    found = b.op(n.op, n.inputs, kind, **n.attributes)
    pole = b.same("divide", of, of) if (name := rng.choice(["log", "sqrt", "divide"])) == "divide" else b.same(name, of)
    if name == "divide" and rng.random() < 0.5:
        return b.same("multiply", found, pole)
    nothing = b.same("multiply", pole, b.like(0, pole)) if rng.random() < 0.5 else b.same("subtract", pole, pole)
    return b.same("add", found, nothing)


OPERATIONS = frozenset("add subtract multiply maximum minimum negate abs tanh exponential sine cosine select".split())

WAYS: list[Way] = [(OPERATIONS, _beside_a_pole)]
"""For which operations, and how."""
