"""Integer terms that a machine holds alike: multiples of the number of the type's values are none."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from hlo_verify.index import expr
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms import algebra
from hlo_verify.terms.machine import are_congruent, least_multiples, remainder
from hlo_verify.terms.term import ZERO, Poly, number, tensor

TYPES = ("i4", "ui4", "i8", "ui8")


def element(name: str, dtype: str) -> Poly:
    return algebra.read(tensor("argument", name, dtype, ()), ())


def drawn(draw: random.Random, atoms: list[Poly], most: int) -> list[tuple[int, list[int]]]:
    return [
        (draw.randint(-most, most), [draw.randrange(len(atoms)) for _ in range(draw.randrange(3))]) for _ in range(3)
    ]


def polynomial(parts: list[tuple[int, list[int]]], atoms: list[Poly]) -> Poly:
    found = ZERO
    for c, which in parts:
        product = number(c)
        for n in which:
            product = algebra.multiply(product, atoms[n])
        found = algebra.add(found, product)
    return found


def value(parts: list[tuple[int, list[int]]], at: list[int]) -> int:
    total = 0
    for c, which in parts:
        for n in which:
            c *= at[n]
        total += c
    return total


@pytest.mark.parametrize("dtype", TYPES)
def test_what_is_congruent_is_one_number(dtype: str) -> None:
    draw, (lo, hi) = random.Random(dtype), INTEGER_RANGES[dtype]
    atoms, count, seen = [element(name, dtype) for name in "xy"], hi - lo + 1, [0, 0]
    for _ in range(120):
        parts = drawn(draw, atoms, 2 * count)
        by = draw.choice([1, count, count // 2])
        others = [(c + by * draw.randint(-2, 2), which) for c, which in parts]
        same = are_congruent(polynomial(parts, atoms), polynomial(others, atoms), lo, hi)
        points = [[draw.randint(lo, hi) for _ in atoms] for _ in range(20)]
        differ = any((value(parts, at) - value(others, at)) % count for at in points)
        assert not (same and differ), (parts, others)
        assert same or by != count
        seen[same] += 1
    assert all(seen)


@pytest.mark.parametrize("dtype", TYPES)
def test_factors_are_those_nearest_to_zero(dtype: str) -> None:
    lo, hi = INTEGER_RANGES[dtype]
    x, count = element("x", dtype), hi - lo + 1
    assert least_multiples(algebra.scale(x, count - 1), lo, hi) is algebra.scale(x, -1)
    assert least_multiples(algebra.scale(x, count), lo, hi) is ZERO
    assert least_multiples(algebra.scale(x, count // 2), lo, hi) is algebra.scale(x, -count // 2)


def test_neither_of_truth_values_nor_of_what_is_no_integer() -> None:
    """`a + b - 2*a*b` is `a != b`, and `a + b` is not; 256 times a real number, or times a half, is not 0."""
    a, b, real = element("a", "i1"), element("b", "i1"), element("r", "f32")
    both = algebra.subtract(algebra.add(a, b), algebra.scale(algebra.multiply(a, b), 2))
    assert not are_congruent(both, algebra.add(a, b), *INTEGER_RANGES["i1"])
    lo, hi = INTEGER_RANGES["ui8"]
    x = element("x", "ui8")
    for p in (algebra.scale(real, 256), algebra.add(algebra.scale(x, 256), algebra.scale(x, Fraction(1, 2)))):
        assert least_multiples(p, lo, hi) is p
        assert not are_congruent(p, ZERO, lo, hi)


@pytest.mark.parametrize("dtype", TYPES)
def test_remainders_of_what_wraps(dtype: str) -> None:
    """By a power of two `c*x + k` has the remainder of its machine value; by any other number that is asked."""
    lo, hi = INTEGER_RANGES[dtype]
    count = hi - lo + 1
    v = expr.var("x", "", count)
    x = expr.shift(expr.of_var(v), lo)
    for c in (-3, -1, 1, 2, 5):
        for k in (-7, 0, 9):
            whole = expr.shift(expr.scale(x, c), k)
            for m in (1, 2, 4, 8):
                e = remainder(algebra.of_index(whole), m, lo, hi)
                for n in range(0, count, 3):
                    at = expr.substitute(e, {v: expr.constant(n)})
                    held = (c * (n + lo) + k - lo) % count + lo
                    assert at is expr.constant(held % m)
    wraps = algebra.of_index(expr.scale(x, 3))
    assert remainder(wraps, 3, lo, hi) is not expr.constant(0)
