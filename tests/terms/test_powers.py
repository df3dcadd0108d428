"""Powers of one base, and of its multiples, have one form, in whatever order they are multiplied and wherever they are
read: the law of inverses writes `inverse(2*x + 1)` as `inverse(x + 1/2)/2`, and so do products."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from itertools import combinations_with_replacement, permutations
from math import prod

import numpy as np
import pytest

from hlo_verify.index import expr
from hlo_verify.session import Session
from hlo_verify.terms import algebra, sums
from hlo_verify.terms.functions import EXPONENTIAL, INVERSE, SQRT, real
from hlo_verify.terms.laws import apply
from hlo_verify.terms.powers import of_number
from hlo_verify.terms.term import ONE, Apply, Number, Poly, atoms, number, tensor
from tests.support.evaluate import Evaluator

SCALES = [1, 3, Fraction(1, 7168), Fraction(1, 4096), Fraction(2, 3)]


def powers(scale: Fraction) -> dict[str, Poly]:
    """Powers of the mean of squares and a small number: a root, its inverse, the inverse of the whole."""
    x = algebra.read(tensor("argument", "x", "f32", (4,), skey=1), (expr.of_var(expr.var("i", "", 4)),))
    base = algebra.add(number(Fraction(1, 10**6)), algebra.scale(algebra.multiply(x, x), scale))
    root = apply(SQRT, (base,))
    return {"s": root, "q": apply(INVERSE, (root,)), "v": apply(INVERSE, (base,))}


def products(factors: Sequence[Poly]) -> set[Poly]:
    return {reduce(algebra.multiply, order) for order in permutations(factors)}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(
    ("text", "same"),
    [("qq", "v"), ("qqs", "q"), ("vs", "q"), ("vsq", "v"), ("qqqq", "vv"), ("qqqss", "q"), ("vvs", "vq")],
)
def test_powers_of_one_base_have_one_form(scale: Fraction, text: str, same: str) -> None:
    with Session().on():
        known = powers(scale)
        (found,) = products([known[c] for c in text]) | products([known[c] for c in same])
        here, other = expr.var("i", "", 4), expr.var("j", "", 4)
        there = algebra.substitute(found, {here: expr.of_var(other)})
        assert algebra.substitute(there, {other: expr.of_var(here)}) is found


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("text", "other"), [("qq", "q"), ("vs", "s"), ("qqq", "v"), ("vq", "vv")])
def test_other_powers_are_others(scale: Fraction, text: str, other: str) -> None:
    with Session().on():
        known = powers(scale)
        assert products([known[c] for c in text]).isdisjoint(products([known[c] for c in other]))


def test_roots_of_multiples_stay_apart() -> None:
    """`sqrt(2*b) * sqrt(3*b)` is a multiple of b that is no rational one."""
    with Session().on():
        root = powers(Fraction(1))["s"]
        base = algebra.multiply(root, root)
        two, three = (apply(SQRT, (algebra.scale(base, k),)) for k in (2, 3))
        assert len(products([two, three])) == 1
        assert algebra.multiply(two, two) is algebra.scale(base, 2)


@pytest.mark.parametrize("is_a_sum", [True, False])
def test_powers_of_multiples_are_the_same_number(is_a_sum: bool) -> None:
    """Roots of two multiples stay apart, and their squares are inverses of one."""
    with Session().on():
        source = tensor("argument", "x", "f32", (1,))
        x = algebra.read(source, (expr.constant(0),))
        base = algebra.add(number(1), algebra.multiply(x, x)) if is_a_sum else apply(EXPONENTIAL, (x,))
        roots = [apply(SQRT, (algebra.scale(base, k),)) for k in (1, 2, 3)]
        factors = [base, apply(INVERSE, (base,)), *roots, *(apply(INVERSE, (root,)) for root in roots)]
        evaluator = Evaluator({source: np.array([0.75])})
        values = {factor: float(evaluator.poly(factor, {})) for factor in factors}
        for several in combinations_with_replacement(factors, 5):
            ordered = several[::2] + several[1::2]
            found = evaluator.poly(reduce(algebra.multiply, ordered), {})
            assert np.isclose(float(found), prod(values[factor] for factor in several)), ordered


@pytest.mark.parametrize(
    ("text", "other", "are_same"),
    [
        ("ovv", "v", False),
        ("sv", "q", False),
        ("qq", "v", True),
        ("qqqs", "v", False),
        ("qqqs", "qvs", True),
        ("oq", "s", False),
        ("ov", "", False),
        ("oov", "o", False),
        ("sq", "", False),
        ("ovv", "vv", False),
    ],
)
def test_what_may_be_0_does_not_cancel(text: str, other: str, are_same: bool) -> None:
    with Session().on():
        v = expr.fresh("v", 4)
        x = algebra.read(tensor("argument", "x", "f32", (4,)), (expr.of_var(v),))
        base = sums.reduce_sum([v], algebra.multiply(x, x))
        root = apply(SQRT, (base,))
        known = {"o": base, "s": root, "q": apply(INVERSE, (root,)), "v": apply(INVERSE, (base,))}
        found, expected = (reduce(algebra.multiply, (known[c] for c in name), ONE) for name in (text, other))
        assert (found is expected) is are_same


@pytest.mark.parametrize("k", [Fraction(n, d) for d in (2, 4, 5, 8, 16) for n in (-3, -1, 1, 3)])
def test_powers_that_square_roots_make(k: Fraction) -> None:
    """`x**(1/4)` is the root of a root, and `x**(1/5)` is none; each is the power that it was."""
    with Session().on():
        source = tensor("argument", "x", "f32", (1,))
        x = algebra.read(source, (expr.constant(0),))
        found = apply(real("power"), (x, number(k)))
        is_named = any(isinstance(a, Apply) and a.function == real("power") for a in atoms(found))
        assert is_named is (k.denominator in (5, 16))
        root = reduce(lambda p, _: apply(SQRT, (p,)), range(k.denominator.bit_length() - 1), x)
        assert (found is root) is (k in (Fraction(1, 2), Fraction(1, 4), Fraction(1, 8)))
        for value in (0.3, 7.5):
            assert np.isclose(float(Evaluator({source: np.array([value])}).poly(found, {})), value ** float(k))


@pytest.mark.parametrize("n", [-3, -1, Fraction(-1, 8), Fraction(1, 2), Fraction(-3, 4), Fraction(1, 3)])
def test_powers_of_multiples_of_exponentials(n: Number) -> None:
    """By numbers: what is rational is multiplied out, and nothing else is; of what is negative, whole powers alone."""
    x = algebra.read(tensor("argument", "x", "f32", (4,), skey=1), (expr.of_var(expr.var("i", "", 4)),))
    exponential = apply(EXPONENTIAL, (x,))
    root = Fraction(n).denominator
    for r in (Fraction(3, 2), Fraction(1, 10), Fraction(5)):
        ((mono, factor),) = algebra.power_of(algebra.scale(exponential, r**root), n).items
        assert mono == ((exponential.atom, n),)
        assert factor == r ** Fraction(n).numerator
        if root > 1:
            for c in (r**root + 1, 2 * r**root, -(r**root)):
                assert algebra.power_of(algebra.scale(exponential, c), n).atom is not None


def test_roots_of_numbers_that_are_too_large() -> None:
    """No power is computed that is larger than what it is compared with."""
    assert of_number(2, Fraction(1, 2**60)) is None
    assert of_number(Fraction(1, 2), Fraction(13421773, 2**27)) is None
    assert of_number(0, Fraction(-1, 2)) is None
    assert of_number(1, Fraction(13421773, 2**27)) == 1
