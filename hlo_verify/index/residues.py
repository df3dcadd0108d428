"""What an index expression is modulo a number, and intervals that have none of its values.

4*((d + 3) mod 8) - 4*d        is 12 more than a multiple of 32: never between 0 and 11
"""

from __future__ import annotations

from math import gcd

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque
from hlo_verify.memory import once_a_session


@once_a_session
def congruent(e: Index) -> tuple[int, int]:
    """Numbers (m, k) such that every value of an expression is k more than a multiple of m; (0, k) if all are k.

    In place of a remainder modulo n that is taken c times stands what is divided, up to multiples of `c*n`.
    """
    step = gcd(*(c * a.args[0] for a, c in e.items if isinstance(a, Opaque) and a.operator == "mod"))
    unwound = expr.unwound(e, step) if step else e
    return gcd(step, *(c for _, c in unwound.items)), unwound.const


def is_never_between(e: Index, lo: int, hi: int) -> bool:
    """Whether no value of an expression lies in `[lo, hi]`, as that is shorter than what all its values differ by."""
    step, first = congruent(e)
    return lo + (first - lo) % step > hi if step else not lo <= first <= hi


def divided(form: Index, lo: int | None, hi: int | None) -> tuple[Index, int | None, int | None] | None:
    """The question whether a form lies between two bounds, divided by what all coefficients have in common: `3 <= 2*e
    <= 7` is `2 <= e <= 3`."""
    g = gcd(*(c for _, c in form.items))
    if g == 1:
        return None
    smaller = expr.build(0, [(a, c // g) for a, c in form.items])
    return smaller, None if lo is None else -(-lo // g), None if hi is None else hi // g
