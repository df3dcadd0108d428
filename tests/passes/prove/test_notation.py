"""What people are shown: which elements of which logical tensor a value is."""

from __future__ import annotations

from fractions import Fraction

import pytest

from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.ops.values import positions
from hlo_verify.passes.prove.notation import Notation, apart, number
from hlo_verify.program.ir import Location, Op
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.term import Read, tensor

SHAPE = (8, 4, 128)
FIRST, SECOND, THIRD = positions(SHAPE)
D = expr.of_var(expr.var("d", "", 8))


def flat(i: Index, j: Index) -> Index:
    """`4*i + j`: two dimensions as one."""
    return expr.add(expr.scale(i, 4), j)


def lineage(known: tuple[Index, ...], seen: tuple[Index, ...]) -> str:
    """What is shown for a read at `seen` of the tensor that the logical result reads at `known`."""
    source = tensor("opaque", "x", "f32", ())
    result, shard = (algebra.read(source, at).atom for at in (known, seen))
    assert isinstance(result, Read) and isinstance(shard, Read)
    notation = Notation(())
    where = Location("dot", (("/home/me/train.py", 57),))
    notation.learn(Op("dot_general", (), (), (), location=where), SHAPE, result)
    return notation.lineage(shard)


@pytest.mark.parametrize(
    ("known", "seen", "text"),
    [
        pytest.param(
            (FIRST, SECOND, THIRD), (expr.add(FIRST, expr.scale(D, 8)), SECOND, THIRD), "8*d + i,j,k", id="a shard"
        ),
        pytest.param((THIRD, SECOND, FIRST), (THIRD, D, expr.constant(3)), "3,d,k", id="parameters in another order"),
        pytest.param((SECOND, THIRD), (SECOND, THIRD), "…,j,k", id="a dimension that the tensor does not tell apart"),
        pytest.param(
            (expr.scale(FIRST, 128), SECOND, THIRD),
            (expr.scale(D, 128), SECOND, THIRD),
            "d,j,k",
            id="a multiple of a position",
        ),
        pytest.param(
            (flat(FIRST, SECOND), THIRD), (flat(D, SECOND), THIRD), "d,j,k", id="two positions in one parameter"
        ),
        pytest.param(
            (FIRST, SECOND, THIRD, expr.modulo(THIRD, 64)),
            (FIRST, SECOND, D, D),
            "i,j,d",
            id="a position and a part of it",
        ),
        pytest.param(
            (expr.subtract(FIRST, SECOND), SECOND, THIRD),
            (D, SECOND, THIRD),
            "…,j,k",
            id="a difference does not say its parts",
        ),
    ],
)
def test_a_lineage_is_a_position_in_the_logical_result(
    known: tuple[Index, ...], seen: tuple[Index, ...], text: str
) -> None:
    assert lineage(known, seen) == f"dot_general@train.py:57[{text}]"


@pytest.mark.parametrize(
    ("shown", "value"),
    [
        ("1/7962624", Fraction(1, 7962624)),
        ("-7/26", Fraction(-7, 26)),
        ("1.2", Fraction(5033165, 4194304)),
        ("4294967295", 2**32 - 1),
        ("1.07151e+301", 2**1000),
        ("1.99506e+3010", 2**10000),
        ("5.01237e-3011", Fraction(1, 2**10000)),
    ],
)
def test_numbers_that_people_can_read(shown: str, value: Fraction | int) -> None:
    assert number(value) == shown


def test_terms_with_numbers_of_thousands_of_digits() -> None:
    """Python itself writes no integer of more than 4300 digits."""
    large = Fraction(3**20000, 2**20001)
    pieces = [algebra.scale(guards.interval(FIRST, lo, lo + 1), large) for lo in (0, 2)]
    total = algebra.add(*pieces)
    assert total is algebra.scale(guards.interval(FIRST, 0, 3), large)
    assert "e+3521" in repr(total)


@pytest.mark.parametrize(
    ("a", "b", "texts"),
    [
        (Fraction(3, 10), Fraction(1, 3), ("3/10", "1/3")),
        (Fraction(5033165, 2**24), Fraction(3, 10), ("0.300000012", "0.3")),
        (Fraction(5033165, 2**24), Fraction(5033166, 2**24), ("0.300000012", "0.300000072")),
        (Fraction(1 + 10**30, 10**30), 1, (f"{1 + 10**30}/{10**30}", "1")),
    ],
)
def test_numbers_that_differ_are_seen_to(a: Fraction, b: Fraction, texts: tuple[str, str]) -> None:
    assert apart(a, b) == texts
