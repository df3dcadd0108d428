"""Sums and their powers, of which each side has names for other parts, are one; what is found to be one has one value.

Random sums of products, put together in another order and with definitions for other parts of them.
"""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise

import pytest

from hlo_verify.equality.summands import Steps
from hlo_verify.equality.written_with_names import seen_written_out
from hlo_verify.index import expr
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import define, unfold
from hlo_verify.terms.functions import Function
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import ONE, Apply, Poly, Read, number, tensor

X = tensor("argument", "x", "f32", (6,))
TANH = Function("tanh", ("real",), "real")


def x(n: int) -> Poly:
    return algebra.read(X, [expr.constant(n)])


def named(p: Poly) -> Poly:
    return define("term", (), (p,))


def value(p: Poly, numbers: list[Fraction]) -> Fraction:
    """A term in numbers, by nothing of the prover's algebra; a polynomial stands for tanh."""
    total = Fraction(0)
    for mono, c in p.items:
        part = Fraction(c)
        for atom, n in mono:
            if isinstance(atom, Apply):
                own = value(atom.args[0], numbers) * 3 + 7
            elif isinstance(atom, Read) and atom.tensor is X:
                own = numbers[atom.indices[0].const]
            else:
                assert isinstance(atom, Read)
                own = value(unfold(atom)[1][0], numbers)
            part *= own ** int(n)
        total += part
    return total


def drawn(rng: random.Random, depth: int, parts: list[Poly]) -> Poly:
    """A sum or product of earlier ones, under a name or not."""
    for _ in range(depth):
        one, other = rng.choice(parts), rng.choice(parts)
        way = rng.randrange(3)
        joined = algebra.multiply(one, other) if way == 1 else algebra.add(one, other)
        made = apply(TANH, (one,)) if way == 0 else joined
        parts.append(named(made) if rng.random() < 0.5 else made)
    return parts[-1]


def scanned(order: list[list[int]]) -> Poly:
    """What a recurrence comes to, by an association."""
    a, b = ([x(k) for k in range(3)], [x(k) for k in range(3, 6)])

    def joined(group: list[int]) -> tuple[Poly, Poly]:
        first, second = a[group[0]], b[group[0]]
        for k in group[1:]:
            first, second = algebra.multiply(a[k], first), algebra.add(algebra.multiply(a[k], named(second)), b[k])
        return first, second

    whole = joined(order[0])
    for group in order[1:]:
        first, second = joined(group)
        whole = (algebra.multiply(first, whole[0]), algebra.add(algebra.multiply(first, named(whole[1])), second))
    return whole[1]


def gelu(h: Poly, h_again: Poly) -> Poly:
    cube = algebra.multiply(algebra.multiply(h, h_again), h)
    inner = algebra.add(algebra.scale(h_again, Fraction(4, 5)), algebra.scale(cube, Fraction(1, 28)))
    return algebra.multiply(h, algebra.add(ONE, apply(TANH, (inner,))))


def test_the_gelu_of_a_scan() -> None:
    with Session().on():
        one, other = scanned([[0], [1], [2]]), scanned([[0], [1, 2]])
        assert one is not other
        same = gelu(named(one), one), gelu(other, named(other))
        assert seen_written_out(*same, ONE, Steps(2000))
        assert not seen_written_out(same[0], gelu(other, named(algebra.add(other, x(0)))), ONE, Steps(2000))
        assert not seen_written_out(same[0], algebra.add(same[1], x(0)), ONE, Steps(2000))
        assert not seen_written_out(*same, ONE, Steps(5))


def powers() -> dict[str, Poly]:
    """Powers of sums that have a factor more, or another number: each of another value."""
    h, twice = algebra.add(x(1), x(2)), algebra.add(algebra.scale(x(1), 2), algebra.scale(x(2), 2))
    scaled = algebra.add(algebra.multiply(x(0), x(1)), algebra.multiply(x(0), x(2)))
    uneven = algebra.add(x(1), algebra.scale(x(2), 2))
    square = algebra.power(named(h), 2)
    found = {
        "h^2": square,
        "(2h)^2": algebra.power(named(twice), 2),
        "(x h)^2": algebra.power(named(scaled), 2),
        "(x1 + 2 x2)^2": algebra.power(named(uneven), 2),
        "h^3": algebra.power(named(h), 3),
        "(x1 + 2 x2) h^2": algebra.expanded(uneven, square),
        "2 h h^2": algebra.expanded(twice, square),
        "x h h^2": algebra.expanded(scaled, square),
    }
    return {name: algebra.add(p, x(3)) for name, p in found.items()}


def test_powers_of_other_sums() -> None:
    with Session().on():
        h = algebra.add(x(1), x(2))
        pieces = algebra.add(algebra.expanded(h, algebra.power(named(h), 2)), x(3))
        assert seen_written_out(pieces, powers()["h^3"], ONE, Steps(2000))
        for name, p in powers().items():
            same = [other for other, q in powers().items() if seen_written_out(p, q, ONE, Steps(2000))]
            assert same == [name]


@pytest.mark.parametrize("number_of_draw", range(30))
def test_what_is_one_has_one_value(number_of_draw: int, seed: int) -> None:
    rng = random.Random(seed * 100 + number_of_draw)
    with Session().on():
        leaves = [x(k) for k in range(4)] + [number(2)]
        terms = [drawn(random.Random(rng.random()), rng.choice((3, 5, 7)), list(leaves)) for _ in range(8)]
        again = [algebra.subtract(named(algebra.add(p, x(0))), x(0)) for p in terms]
        assert all(seen_written_out(p, q, ONE, Steps(20_000)) for p, q in zip(terms, again, strict=True))
        terms += [algebra.add(algebra.multiply(p, q), q) for p, q in pairwise(again)]
        numbers = [[Fraction(rng.randint(-9, 9), rng.randint(1, 5)) for _ in range(6)] for _ in range(3)]
        for p in terms:
            for q in terms:
                if seen_written_out(p, q, ONE, Steps(20_000)):
                    assert [value(p, each) for each in numbers] == [value(q, each) for each in numbers]
