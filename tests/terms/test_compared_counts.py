"""What a count says of those counted, where floats are compared: never what floats do not say."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from hlo_verify.index import expr
from hlo_verify.terms import algebra, laws
from hlo_verify.terms.functions import IS_ZERO, POSITIVE, Function
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Apply, Poly, Read, number, tensor

SIZE = 12
FACTORS = [np.float32(c) for c in (0.1, 0.3, 0.37, 0.5, 0.7, 0.9, 1.1, 1 / 3, 3.0, 1e-6, 70.1)]


def counted(name: str, size: int) -> Poly:
    """How many elements of an argument are positive."""
    v = expr.fresh("v", size)
    element = algebra.read(tensor("argument", name, "f32", (size,)), (expr.of_var(v),))
    return reduce_sum([v], laws.apply(POSITIVE, (element,)))


def said(p: Poly) -> str:
    """Of how many of those counted something has to hold: of all, any, or neither; no word for anything else."""
    if p.constant is not None:
        return "always" if p.constant else "never"
    asked = {atom.args[0].atom if isinstance(atom, Apply) else atom for mono, _ in p.items for atom, _ in mono}
    kinds = {atom.tensor.kind for atom in asked if isinstance(atom, Read)}
    negated = "not " if dict(p.items).get(()) else ""
    return {frozenset({"min"}): negated + "all", frozenset({"max"}): negated + "any"}.get(frozenset(kinds), "")


HOLDS: dict[str, Callable[[int, int], bool]] = {
    "always": lambda n, most: True,
    "never": lambda n, most: False,
    "all": lambda n, most: n == most,
    "not all": lambda n, most: n < most,
    "any": lambda n, most: n > 0,
    "not any": lambda n, most: n == 0,
}


def exactly(x: np.float32) -> Fraction:
    return Fraction(float(x))


def near(x: np.float32) -> list[np.float32]:
    """Numbers that a person may compare with where that is meant: also as written in six places, and a little less."""
    written = np.float32(round(float(x), 6))
    around = [np.nextafter(x, np.float32(-99)), x, np.nextafter(x, np.float32(99))]
    return [*around, written, np.float32(x * np.float32(0.99))]


def asked(total: Poly) -> Iterator[tuple[Callable[[np.float32, np.float32], bool], str]]:
    """What is said of a sum, less a number, being more than 0, less, or 0."""
    yield operator.gt, said(laws.apply(POSITIVE, (total,)))
    yield operator.lt, said(laws.apply(POSITIVE, (algebra.scale(total, -1),)))
    yield operator.eq, said(laws.apply(IS_ZERO, (total,)))


@pytest.mark.parametrize("factor", FACTORS)
def test_a_multiple_of_a_count(factor: np.float32) -> None:
    """Compared with what none, one, all but one and all of them come to."""
    n, decided = counted("x", SIZE), 0
    for threshold in (t for k in (0, 1, SIZE - 1, SIZE) for t in near(factor * np.float32(k))):
        total = algebra.add(algebra.scale(n, exactly(factor)), number(-exactly(threshold)))
        for compare, answer in asked(total):
            decided += bool(answer)
            for k in range(SIZE + 1) if answer else ():
                assert compare(factor * np.float32(k), threshold) == HOLDS[answer](k, SIZE)
    assert decided


@pytest.mark.parametrize("factors", list(product(FACTORS[:6], FACTORS[4:8])), ids=str)
def test_multiples_of_two_counts(factors: tuple[np.float32, np.float32]) -> None:
    first, second = factors
    total = algebra.add(*(algebra.scale(counted(name, 3), exactly(c)) for name, c in zip("xy", factors, strict=True)))
    for threshold in (t for k in (0, 3) for t in near(first * np.float32(k) + second * np.float32(k))):
        for compare, answer in asked(algebra.add(total, number(-exactly(threshold)))):
            for k, m in product(range(4), repeat=2) if answer else ():
                there = first * np.float32(k) + second * np.float32(m)
                assert compare(there, threshold) == HOLDS[answer](k + m, 6)


@pytest.mark.parametrize("size", [10007, 3 << 20, 1 << 25])
def test_many_are_counted_and_averaged(size: int) -> None:
    """Numbers of elements, and fractions of them, are no literals that were rounded."""
    for factor in (Fraction(1), Fraction(1, size)):
        total = algebra.add(algebra.scale(counted("x", size), factor), number(-factor * size))
        assert said(laws.apply(IS_ZERO, (total,))) == "all"


def value(p: Poly, xs: tuple[int, ...], y: int) -> Fraction | None:
    """A condition, for which of the elements of x are positive, and whether y is; None where it asks for a count."""
    total = Fraction(0)
    for mono, c in p.items:
        held = []
        for atom, _ in mono:
            of = atom.args[0].atom if isinstance(atom, Apply) else atom
            kind = of.tensor.kind if isinstance(of, Read) else "sum"
            if kind == "sum":
                return None
            held.append({"max": any(xs), "min": all(xs), "argument": bool(y)}[kind])
        total += Fraction(c) * all(held)
    return total


@pytest.mark.parametrize("function", [POSITIVE, IS_ZERO], ids=str)
@pytest.mark.parametrize(("factor", "more"), list(product((-2, -1, 1, 2), (-3, -1, 1, 3))))
def test_a_count_beside_a_truth_value(factor: int, more: int, function: Function) -> None:
    """`2*count + [y > 0] > 0` where any of those counted holds, or y is positive."""
    held = laws.apply(POSITIVE, (algebra.read(tensor("argument", "y", "f32", ()), ()),))
    said_of = 0
    for least in range(-8, 9):
        total = algebra.add(algebra.scale(counted("x", 3), factor), algebra.scale(held, more), number(least))
        found = laws.apply(function, (total,))
        for xs, y in product(product((0, 1), repeat=3), (0, 1)):
            whole, answer = factor * sum(xs) + more * y + least, value(found, xs, y)
            assert answer is None or answer == (whole > 0 if function == POSITIVE else whole == 0)
        said_of += found.constant is None and value(found, (0, 0, 0), 0) is not None
    assert said_of
