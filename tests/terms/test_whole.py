"""What is known of how large a term is beside another one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from hlo_verify.index import expr
from hlo_verify.terms import algebra, whole
from hlo_verify.terms.functions import ABS, MAXIMUM, real
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Poly, number, of_atom, tensor
from tests.support.evaluate import Evaluator

SIZE = 50
rng = np.random.default_rng(5)
V = expr.var("v", 0, SIZE)
X, Y = (tensor("argument", name, "f32", (SIZE,)) for name in "xy")
VALUES = Evaluator({X: rng.normal(size=SIZE), Y: rng.normal(size=SIZE)})
x, y = (algebra.read(source, [expr.of_var(V)]) for source in (X, Y))
sizes = apply(ABS, (x,)), apply(ABS, (y,))


def most(*terms: Poly) -> Poly:
    return apply(MAXIMUM, terms)


PRODUCT = algebra.multiply(*sizes)
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
}


@pytest.mark.parametrize("name", BOUNDS)
def test_a_share_bounds(name: str) -> None:
    """Of an element, a place, and functions of an element, some of which have absolute values that are no one atom."""
    at = {V: np.arange(SIZE)}
    parts = (x, y, algebra.of_index(expr.shift(expr.of_var(V), -20)), apply(real("sine"), (x,)), algebra.subtract(x, y))
    for part in (atom for p in parts for mono, _ in p.items for atom, _ in mono):
        found = whole.share(part, BOUNDS[name])
        if found is not None:
            size = np.abs(np.asarray(VALUES.poly(of_atom(part), at), float))
            assert np.all(size <= float(found) * np.asarray(VALUES.poly(BOUNDS[name], at), float) + 1e-12)
    own = whole.share(x.items[0][0][0][0], BOUNDS[name])
    assert (own is None) == ("product" in name or "another" in name or "square" in name)


@pytest.mark.parametrize("name", BOUNDS)
def test_what_is_no_one_atom_is_no_share_of_another_that_is_none(name: str) -> None:
    """`|x - y|` is no part of a product, though neither is an atom."""
    assert whole._share(apply(real("floor"), (algebra.subtract(x, y),)), BOUNDS[name]) is None
    assert whole._share(algebra.subtract(x, y), BOUNDS[name]) is None
