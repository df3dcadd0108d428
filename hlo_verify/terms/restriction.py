"""Terms where an index expression lies in an interval."""

from __future__ import annotations

from hlo_verify.index.expr import Index
from hlo_verify.terms import guards
from hlo_verify.terms.addition import build
from hlo_verify.terms.products import add, multiply
from hlo_verify.terms.term import Guard, Poly


def where(p: Poly, form: Index, lo: int | None, hi: int | None) -> Poly:
    """The term where a form lies in an interval, without the conditions on it that then hold:
    `[e <= 3]*a + [e >= 4]*b` is `a` where e is 2 at most."""
    if not any(isinstance(g, Guard) and g.form is form for mono, _ in p.items for g, _ in mono):
        return p
    result = []
    for mono, c in p.items:
        own = next((g for g, _ in mono if isinstance(g, Guard) and g.form is form), None)
        if own is None:
            result.append(build({mono: c}))
            continue
        # a bound that the interval does not reach is idle, and is left out
        low = own.lo if own.lo is not None and (lo is None or own.lo > lo) else None
        high = own.hi if own.hi is not None and (hi is None or own.hi < hi) else None
        if (low is not None and hi is not None and low > hi) or (high is not None and lo is not None and high < lo):
            continue
        rest = build({tuple(item for item in mono if item[0] is not own): c})
        result.append(multiply(guards.interval(form, low, high), rest))
    return add(*result)
