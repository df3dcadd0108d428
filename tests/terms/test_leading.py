"""What gives a sum its scale: the same wherever the same function of other tensors stands."""

from __future__ import annotations

from fractions import Fraction

import pytest

from hlo_verify.index import expr
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import SQRT
from hlo_verify.terms.laws import apply
from hlo_verify.terms.patterns import leading
from hlo_verify.terms.term import Poly, number, tensor


def element(name: str) -> Poly:
    return algebra.read(tensor("argument", name, "f32", (4,)), (expr.of_var(expr.var("i", 0, 4)),))


@pytest.mark.parametrize("n", range(8))
def test_the_scale_does_not_depend_on_names(n: int) -> None:
    with Session().on():
        x, y = element(f"x{n}"), element(f"y{n}")
        mean = algebra.add(number(Fraction(1, 100000)), algebra.scale(x, Fraction(1, 4096)))
        both = algebra.add(algebra.scale(x, 3), algebra.scale(y, -2))
        assert leading(mean) == Fraction(1, 4096)
        assert leading(both) == -2
        for k in (3, Fraction(-1, 2)):
            for term in (mean, both, algebra.difference(x, y)):
                assert leading(algebra.scale(term, k)) == k * leading(term)


@pytest.mark.parametrize("n", range(8))
def test_a_root_is_written_in_one_way(n: int) -> None:
    """`sqrt(x/4096 + 1e-5)` was `sqrt(x + 0.04096)/64` of some tensors, and of others as it stands."""
    with Session().on():
        square = algebra.multiply(element(f"x{n}"), element(f"x{n}"))
        mean = algebra.add(number(Fraction(1, 100000)), algebra.scale(square, Fraction(1, 4096)))
        whole = algebra.add(square, number(Fraction(4096, 100000)))
        assert apply(SQRT, (mean,)) is algebra.scale(apply(SQRT, (whole,)), Fraction(1, 64))
