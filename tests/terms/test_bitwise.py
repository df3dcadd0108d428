"""Bits of integers as sums have the numbers that a machine makes, and one form for one function of the bits."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Mapping
from functools import reduce

import pytest

from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.bitwise import written
from hlo_verify.terms.definitions import named
from hlo_verify.terms.functions import typed
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Apply, Atom, Poly, number, tensor

OPERATIONS: Mapping[str, Callable[[int, int], int]] = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}
NAMES = "abc"


def held(value: int, dtype: str) -> int:
    lo, hi = INTEGER_RANGES[dtype]
    return (value - lo) % (hi - lo + 1) + lo


class Drawn:
    """A function of the bits of three integers: as a term that sums of bits make, and of numbers."""

    def __init__(self, draw: random.Random, dtype: str, leaves: Mapping[str, Poly], depth: int) -> None:
        kind = self.kind = "leaf" if not depth else draw.choice(["leaf", "not", *OPERATIONS])
        if kind == "leaf":
            name = draw.choice(NAMES)
            self.of: Callable[[Mapping[str, int]], int] = lambda at: at[name]
            self.term: Poly | None = leaves[name]
        elif kind == "not":
            inner = Drawn(draw, dtype, leaves, depth - 1)
            self.of = lambda at: held(~inner.of(at), dtype)
            self.term = None if inner.term is None else algebra.subtract(number(-1), inner.term)
        else:
            a, b = (Drawn(draw, dtype, leaves, depth - 1) for _ in range(2))
            self.of = lambda at: OPERATIONS[kind](a.of(at), b.of(at))
            both = None if a.term is None or b.term is None else (a.term, b.term)
            self.term = None if both is None else written(typed(kind, (dtype, dtype), dtype), both)


def value(p: Poly, at: Mapping[Atom, int]) -> int:
    """The number, exactly: functions are of what the machine holds."""
    total = 0
    for mono, c in p.items:
        factor = int(c)
        for atom, power in mono:
            if atom in at:
                known = at[atom]
            else:
                assert isinstance(atom, Apply) and atom.function.name == "and"
                known = reduce(operator.and_, (value(arg, at) for arg in atom.args))
            factor *= known**power
        total += factor
    return total


def integers(dtype: str) -> dict[str, Poly]:
    return {name: algebra.read(tensor("argument", name, dtype, ()), ()) for name in NAMES}


@pytest.mark.parametrize("dtype", ["i8", "ui8", "i32", "ui64"])
def test_sums_of_bits_are_the_numbers(dtype: str) -> None:
    draw, (lo, hi) = random.Random(dtype), INTEGER_RANGES[dtype]
    made: dict[tuple[int, ...], Poly] = {}
    with Session().on():
        leaves = integers(dtype)
        one_bit = [dict(zip(NAMES, map(int, f"{n:03b}"), strict=True)) for n in range(8)]
        for _ in range(300):
            drawn = Drawn(draw, dtype, leaves, 3)
            assert drawn.term is not None
            for _ in range(5):
                at = {name: draw.randint(lo, hi) for name in NAMES}
                atoms = {leaves[name].atom: n for name, n in at.items() if leaves[name].atom is not None}
                found, expected = value(drawn.term, atoms), drawn.of(at)
                assert held(found, dtype) == expected
                assert found == expected or drawn.kind == "not"  # which is -1 - a modulo 2^n
            table = tuple(drawn.of(bits) & 1 for bits in one_bit)
            rest = algebra.subtract(made.setdefault(table, drawn.term), drawn.term)
            assert rest.constant is not None and held(int(rest.constant), dtype) == held(0, dtype)


def test_what_is_no_function_of_bits_is_left() -> None:
    with Session().on():
        a, b, c = integers("i32").values()
        xor = typed("xor", ("i32", "i32"), "i32")
        product, wide = algebra.multiply(a, b), algebra.read(tensor("argument", "w", "ui32", ()), ())
        for p in (algebra.add(a, b), algebra.scale(a, 2), product, number(5), algebra.add(a, number(1)), wide):
            assert written(xor, (p, c)) is None
        assert written(typed("xor", ("i1", "i1"), "i1"), (a, b)) is None
        assert written(typed("shift_left", ("i32", "i32"), "i32"), (a, b)) is None


def test_a_sum_that_has_a_name_is_no_number_that_the_machine_holds() -> None:
    """`a + b` wraps: it is its bits modulo 2^n alone."""
    with Session().on():
        a, b, c = integers("i32").values()
        assert written(typed("or", ("i32", "i32"), "i32"), (named(algebra.add(a, b)), c)) is None


def test_few_integers_at_once() -> None:
    with Session().on():
        each = [algebra.read(tensor("argument", f"x{n}", "i32", ()), ()) for n in range(5)]
        xor = typed("xor", ("i32", "i32"), "i32")
        total = each[0]
        for n, p in enumerate(each[1:], 1):
            found = written(xor, (total, p))
            assert (found is None) == (n == 4)
            total = found if found is not None else apply(xor, (total, p))
