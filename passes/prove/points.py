"""Terms at a few points: a quick way to refuse that two are equal."""

from __future__ import annotations

import random
from collections.abc import Callable

from hlo_verify.equality import opening
from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.limits import allows
from hlo_verify.terms import algebra, losses
from hlo_verify.terms.term import ZERO, Guard, Poly


def agree_at_points(found: Poly, expected: Poly, inside: Poly, differ: Callable[[Poly], bool]) -> bool:
    """Whether two terms agree where an element exists, as far as a few points show; `differ` says of a difference that
    did not cancel at one that it never will."""
    generator = random.Random(0)
    difference = algebra.expanded(inside, algebra.difference(found, expected))
    if not allows("question_terms", len(difference.items)):
        return False
    variables = sorted((v for v in difference.free if v.size < expr.UNBOUNDED), key=lambda v: v.uid)
    for _ in range(3):
        point: dict[Var, Index] = {v: expr.constant(generator.randrange(v.size)) for v in variables}
        here = losses.without_zeros(opening.opened(algebra.substitute(difference, point)))
        decided = not any(isinstance(a, Guard) for mono, _ in here.items for a, _ in mono)
        if here is not ZERO and decided and differ(here):
            return False
    return True
