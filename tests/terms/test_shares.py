"""What is known of how large a term is beside another one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from hlo_verify.index import expr
from hlo_verify.terms import algebra, shares
from hlo_verify.terms.functions import ABS, IS_ZERO, MAXIMUM, POSITIVE, real
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Poly, number, of_atom, tensor
from tests.support.evaluate import Evaluator

SIZE = 50
rng = np.random.default_rng(5)
V = expr.var("v", 0, SIZE)
X, Y = (tensor("argument", name, "f32", (SIZE,)) for name in "xy")
VALUES = Evaluator({X: rng.normal(size=SIZE) * (np.arange(SIZE) % 5 > 0), Y: rng.normal(size=SIZE)})
x, y = (algebra.read(source, [expr.of_var(V)]) for source in (X, Y))
sizes = apply(ABS, (x,)), apply(ABS, (y,))


def most(*terms: Poly) -> Poly:
    return apply(MAXIMUM, terms)


def where(condition: Poly, a: Poly, b: Poly) -> Poly:
    return algebra.add(algebra.multiply(condition, a), algebra.multiply(algebra.subtract(number(1), condition), b))


def beyond(k: Fraction | int, sign: int = 1) -> Poly:
    """Whether the size of x is more than a number, or less."""
    return apply(POSITIVE, (algebra.scale(algebra.subtract(sizes[0], number(k)), sign),))


HALF = Fraction(1, 2)
PRODUCT = algebra.multiply(*sizes)
CHOICES = {
    "where it is 0": where(apply(IS_ZERO, (sizes[0],)), number(1), algebra.scale(sizes[0], Fraction(1, 127))),
    "the opposite": algebra.scale(where(apply(IS_ZERO, (sizes[0],)), number(9), sizes[0]), -1),
    "where it is small": where(beyond(HALF, -1), number(Fraction(1, 3)), sizes[0]),
    "where it is not large": where(beyond(HALF), sizes[0], number(-2)),
    "where each is": where(beyond(HALF), algebra.scale(sizes[0], 3), where(beyond(HALF / 2), number(2), number(1))),
}
UNKNOWN = {
    "a choice where the other is 0": where(apply(IS_ZERO, (sizes[1],)), number(1), sizes[0]),
    "a choice where it is large": where(beyond(HALF), number(1), sizes[0]),
    "a choice where it is not small": where(beyond(HALF, -1), sizes[0], number(1)),
    "a choice where it is not 0": where(apply(IS_ZERO, (sizes[0],)), sizes[0], number(1)),
    "a choice where it is negative": where(apply(POSITIVE, (algebra.scale(x, -1),)), number(1), sizes[0]),
    "a choice where it is not positive": where(apply(POSITIVE, (x,)), sizes[0], number(1)),
    "a choice of 0": where(apply(IS_ZERO, (sizes[0],)), number(0), sizes[0]),
    "a choice of another one": where(beyond(HALF), sizes[1], number(1)),
}
BOUNDS = {
    "the size": sizes[0],
    "a part": algebra.scale(sizes[0], Fraction(1, 127)),
    "the greatest": most(*sizes),
    "a part or a number": most(algebra.scale(sizes[0], Fraction(1, 4)), number(Fraction(1, 8))),
    "a part of the greatest": algebra.scale(most(*sizes, number(1)), Fraction(3, 2)),
    "a product": PRODUCT,
    "a product or a number": most(PRODUCT, number(Fraction(1, 8))),
    "another one": sizes[1],
    "a square": most(algebra.power_of(x, 2), number(Fraction(1, 8))),
    **CHOICES,
    **UNKNOWN,
}


@pytest.mark.parametrize("name", BOUNDS)
def test_a_share_bounds(name: str) -> None:
    """Of an element, a place, and functions of an element, some of which have absolute values that are no one atom."""
    at = {V: np.arange(SIZE)}
    parts = (x, y, algebra.of_index(expr.shift(expr.of_var(V), -20)), apply(real("sine"), (x,)), algebra.subtract(x, y))
    for part in (atom for p in parts for mono, _ in p.items for atom, _ in mono):
        found = shares.share(part, BOUNDS[name])
        if found is not None:
            size = np.abs(np.asarray(VALUES.poly(of_atom(part), at), float))
            assert np.all(size <= float(found) * np.abs(np.asarray(VALUES.poly(BOUNDS[name], at), float)) + 1e-12)
    own = shares.share(x.items[0][0][0][0], BOUNDS[name])
    assert (own is None) == ("product" in name or "another" in name or "square" in name or name in UNKNOWN)


@pytest.mark.parametrize("name", BOUNDS)
def test_what_is_no_one_atom_is_no_share_of_another_that_is_none(name: str) -> None:
    """`|x - y|` is no part of a product, though neither is an atom."""
    assert shares.of_size(apply(real("floor"), (algebra.subtract(x, y),)), BOUNDS[name]) is None
    assert shares.of_size(algebra.subtract(x, y), BOUNDS[name]) is None
