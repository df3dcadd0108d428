"""Terms where an index expression lies in an interval."""

from __future__ import annotations

from hlo_verify.index.expr import Index
from hlo_verify.terms import guards
from hlo_verify.terms.addition import build
from hlo_verify.terms.products import mapped, multiply
from hlo_verify.terms.term import ZERO, Guard, Monomial, Poly


def where(p: Poly, form: Index, lo: int | None, hi: int | None) -> Poly:
    """The term where a form lies in an interval, without the conditions on it that then hold:
    `[e <= 3]*a + [e >= 4]*b` is `a` where e is 2 at most. What is selected stays one selection: `t - [c]*t` computes no
    t where c holds."""
    if not any(isinstance(g, Guard) and g.form is form for mono, _ in p.items for g, _ in mono):
        return p

    def image(mono: Monomial) -> Poly:
        own = next((g for g, _ in mono if isinstance(g, Guard) and g.form is form), None)
        if own is None:
            return build({mono: 1})
        # a bound that the interval does not reach is idle, and is left out
        low = own.lo if own.lo is not None and (lo is None or own.lo > lo) else None
        high = own.hi if own.hi is not None and (hi is None or own.hi < hi) else None
        if (low is not None and hi is not None and low > hi) or (high is not None and lo is not None and high < lo):
            return ZERO
        rest = build({tuple(item for item in mono if item[0] is not own): 1})
        return multiply(guards.interval(form, low, high), rest)

    return mapped(p, image)
