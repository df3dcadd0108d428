"""The numbers that a sum of multiples of arguments' elements may be, by what the user says of these, of elements of
constants, and of places: `1 - x` for an x in [0, 1) is positive, so is `1 - (i + 0.5)/4` for an i below 4, and so is
`1 - c[t]` for any t where c is the constant (0.9, 0.5)."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from hlo_verify.memory import once_a_session
from hlo_verify.program.allowed_values import Values
from hlo_verify.program.element_types import is_float

if TYPE_CHECKING:
    from hlo_verify.terms.term import Monomial, Number, Poly, Tensor


def of_sum(p: Poly) -> Values | None:
    """The values of a sum of multiples of such floats, places and a constant; None of anything else."""
    total = Values(0, 0)
    for mono, c in p.items:
        part = _of_product(mono)
        if part is None:
            return None
        total = _added(total, _scaled(part, c))
    return total


def _of_product(mono: Monomial) -> Values | None:
    from hlo_verify.terms.term import Ix, Read

    if not mono:
        return Values(1, 1)
    (atom, power), *others = mono
    if not others and power == 1 and isinstance(atom, Ix):
        return Values(atom.index.lo, atom.index.hi)
    if others or power != 1 or not isinstance(atom, Read) or not is_float(atom.tensor.dtype):
        return None
    return _of_constant(atom.tensor) if atom.tensor.kind == "constant" else atom.tensor.assumed


@once_a_session
def _of_constant(source: Tensor) -> Values | None:
    """From the least to the greatest element of a constant; None of one that has none, or some that is no number."""
    values = source.values
    if values is None or not values.size or not bool(np.isfinite(values).all()):
        return None
    return Values(Fraction(float(values.min())), Fraction(float(values.max())))


def are_never_above(lower: Values, upper: Values) -> bool:
    """Whether no number of the first is above any of the second."""
    return lower.greatest is not None and upper.least is not None and lower.greatest <= upper.least


def _scaled(values: Values, c: Number) -> Values:
    ends = [None if bound is None else bound * c for bound in (values.least, values.greatest)]
    if c > 0:
        return Values(ends[0], ends[1], values.excluded)
    return Values(ends[1], ends[0], (values.excluded[1], values.excluded[0]))


def _added(a: Values, b: Values) -> Values:
    """The sums of one of each; an end is excluded where it is of either."""
    least = None if a.least is None or b.least is None else a.least + b.least
    greatest = None if a.greatest is None or b.greatest is None else a.greatest + b.greatest
    excluded = (a.excluded[0] or b.excluded[0], a.excluded[1] or b.excluded[1])
    return Values(least, greatest, excluded)
