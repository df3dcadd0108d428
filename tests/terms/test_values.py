"""What numbers alone are made of has a value or not."""

from __future__ import annotations

import pytest

from hlo_verify.terms import algebra
from hlo_verify.terms.functions import COMPLEX, INVERSE, LOG, POWER, SQRT, Function, real
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Poly, number

SMALL = apply(real("power", 2), (number(0.95), number(2**31 - 1)))
ROOT = apply(SQRT, (number(2),))


def one_less(p: Poly) -> Poly:
    return algebra.subtract(number(1), p)


@pytest.mark.parametrize(
    ("function", "args", "is_number"),
    [
        (INVERSE, (one_less(SMALL),), True),
        (LOG, (one_less(SMALL),), True),
        (LOG, (algebra.subtract(SMALL, number(1)),), False),
        (INVERSE, (algebra.subtract(apply(real("cosine"), (number(0),)), number(1)),), False),
        (INVERSE, (algebra.subtract(apply(real("cosine"), (number(1),)), number(1)),), True),
        (INVERSE, (algebra.subtract(apply(real("exponential"), (apply(LOG, (ROOT,)),)), ROOT),), False),
        (SQRT, (algebra.subtract(number(1), ROOT),), False),
        (POWER, (algebra.subtract(ROOT, number(1)), ROOT), True),
        (INVERSE, (apply(COMPLEX, (number(1), number(1))),), False),
    ],
)
def test_functions_of_numbers(function: Function, args: tuple[Poly, ...], is_number: bool) -> None:
    found = apply(function, args)
    assert (found.doubt == 0) is is_number or found.atom is None
