"""The greatest or least of several integers, compared with numbers.

[maximum(a, b) <= n]  is  [a <= n] [b <= n]   as flags of what began anew are joined
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms import guards
from hlo_verify.terms.functions import MAXIMUM, MINIMUM
from hlo_verify.terms.machine import as_index
from hlo_verify.terms.products import multiply, subtract
from hlo_verify.terms.term import ZERO, Apply, Ix, Poly, Read, value_of
from hlo_verify.terms.used import used

Bound = int | None


def asked_of_extremum(form: Index, lo: Bound, hi: Bound) -> Poly | None:
    """`[lo <= maximum(a, b) <= hi]` of integers, by what is asked of each: whether both are at most `hi`, less whether
    both are below `lo`. The form may have other parts beside that."""
    for atom, c in form.items:
        extremum = value_of(atom).atom if isinstance(atom, Opaque) and atom.operator == "value" else None
        if not isinstance(extremum, Apply) or extremum.function not in (MAXIMUM, MINIMUM):
            continue
        parts = [_integer(p) for p in extremum.args]
        if None in parts:
            continue
        rest = expr.subtract(form, expr.scale(expr.of_atom(atom), c))
        forms = [expr.add(rest, expr.scale(e, c)) for e in parts if e is not None]
        if (extremum.function == MAXIMUM) == (c > 0):
            within, beyond = _all_within(forms, None, hi), ZERO if lo is None else _all_within(forms, None, lo - 1)
        else:
            within, beyond = _all_within(forms, lo, None), ZERO if hi is None else _all_within(forms, hi + 1, None)
        if within is not None and beyond is not None:
            used("each of those that an extremum is of")
            return subtract(within, beyond)
    return None


def _all_within(forms: Sequence[Index], lo: Bound, hi: Bound) -> Poly | None:
    """Whether all lie in an interval, as one product. None if that is a sum of products: of extrema of extrema there
    are too many."""
    found = [guards.interval(e, lo, hi) for e in forms]
    return reduce(multiply, found) if all(len(each.items) < 2 for each in found) else None


def _integer(p: Poly) -> Index | None:
    """An integer that is one element, a place or a number, as an index expression."""
    atom, n = p.atom, p.constant
    if isinstance(n, int):
        return expr.constant(n)
    if isinstance(atom, Ix):
        return atom.index
    ends = INTEGER_RANGES.get(atom.tensor.dtype) if isinstance(atom, Read) and not atom.tensor.bodies else None
    return None if ends is None else as_index(p, *ends)
