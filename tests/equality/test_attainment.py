"""What stands beside truth values of numbers has to vanish, for each product of them, and at each element of a sum."""

from __future__ import annotations

import pytest

from hlo_verify.equality.attainment import same_beside_truths
from hlo_verify.equality.summands import Steps
from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import INVERSE, IS_ZERO
from hlo_verify.terms.laws import apply
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ONE, Poly, Tensor, tensor


def product_of_three(
    a: Tensor, b: Tensor, c: Tensor, row: Index, *, last_first: bool, transposed: bool = False
) -> Poly:
    """An element of `a @ b @ c`, for a vector c, in one order or the other."""
    j, k = expr.fresh("f", 4), expr.fresh("f", 4)
    first = algebra.read(a, [row, expr.of_var(j)])
    middle = algebra.read(b, [expr.of_var(k), expr.of_var(j)] if transposed else [expr.of_var(j), expr.of_var(k)])
    last = algebra.read(c, [expr.of_var(k)])
    if last_first:
        return reduce_sum([j], algebra.multiply(first, reduce_sum([k], algebra.multiply(middle, last))))
    return reduce_sum([k], algebra.multiply(reduce_sum([j], algebra.multiply(first, middle)), last))


WAYS = {
    "right": ({"last_first": True}, 1, True),
    "another_product": ({"last_first": True, "transposed": True}, 1, False),
    "twice": ({"last_first": True}, 2, False),
}


@pytest.mark.parametrize("is_summed", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_what_stands_beside(way: str, is_summed: bool) -> None:
    how, times, is_right = WAYS[way]
    with Session().on() as session:
        a, b, c = (tensor("argument", name, "f32", (4,) * n) for name, n in zip("abc", (2, 2, 1), strict=True))
        x = tensor("argument", "x", "f32", (4, 2))
        row = expr.var("i", "", 4)
        place = expr.of_var(row)
        attained = [
            apply(IS_ZERO, (algebra.subtract(algebra.read(x, [place, expr.constant(n)]), algebra.read(c, [place])),))
            for n in (0, 1)
        ]
        found, expected = product_of_three(a, b, c, place, last_first=False), product_of_three(a, b, c, place, **how)

        def made(*factors: Poly) -> Poly:
            one, other = (algebra.multiply(truth, factor) for truth, factor in zip(attained, factors, strict=True))
            term = algebra.add(one, algebra.scale(other, 3))
            return reduce_sum([row], term) if is_summed else term

        wanted = algebra.scale(expected, times)
        assert same_beside_truths(made(found, found), made(found, wanted), ONE, session, Steps(5000)) is is_right
        assert not same_beside_truths(
            made(found, wanted), made(wanted, algebra.add(found, ONE)), ONE, session, Steps(5000)
        )


def test_without_truths_there_is_nothing_to_tell() -> None:
    with Session().on() as session:
        a, b, c = (tensor("argument", name, "f32", (4,) * n) for name, n in zip("abc", (2, 2, 1), strict=True))
        place = expr.of_var(expr.var("i", "", 4))
        sides = [product_of_three(a, b, c, place, last_first=each) for each in (False, True)]
        assert not same_beside_truths(sides[0], sides[1], ONE, session, Steps(5000))


def test_what_may_be_no_number() -> None:
    """0 times the inverse of what may be 0 is no 0."""
    with Session().on() as session:
        a, b, c = (tensor("argument", name, "f32", (4,) * n) for name, n in zip("abc", (2, 2, 1), strict=True))
        place = expr.of_var(expr.var("i", "", 4))
        truth = apply(IS_ZERO, (algebra.read(c, [place]),))
        inverse = apply(INVERSE, (algebra.read(c, [place]),))
        sides = [
            algebra.times(algebra.times(truth, inverse), product_of_three(a, b, c, place, last_first=each))
            for each in (False, True)
        ]
        assert not same_beside_truths(sides[0], sides[1], ONE, session, Steps(5000))
