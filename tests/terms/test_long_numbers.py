"""Statements whose coefficients double in length each time, `x = x * (x + x)`, end, and are compared by name."""

from __future__ import annotations

from fractions import Fraction

import pytest

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.limits import Limits
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import MULTIPLY
from hlo_verify.terms.term import Apply, Number, Poly, number, tensor
from tests.passes.place.test_infer import module

SCALAR = "tensor<f32>"
LONG = 1 << 5000
TENSORS = [tensor("argument", name, "f32", ()) for name in "xy"]


def chain(*turns: str) -> str:
    """Turns written out, each of a value `{x}`, in temporaries `{t}`, that gives `{y}`."""
    lines = ["%v0 = stablehlo.add %a0, %a0 : " + SCALAR]
    for n, turn in enumerate(turns):
        lines += turn.format(x=f"%v{n}", y=f"%v{n + 1}", t=f"%t{n}", s=f"%s{n}").splitlines()
    return "\n    ".join(["", *lines, f"%y = stablehlo.negate %v{len(turns)} : {SCALAR}"])


def statement(name: str, result: str, *operands: str) -> str:
    return f"{result} = stablehlo.{name} {', '.join(operands)} : {SCALAR}"


SUM, TWICE = statement("add", "{t}", "{x}", "{x}"), statement("multiply", "{y}", "{x}", "{t}")
DOUBLED, OTHERWISE = f"{SUM}\n{TWICE}", f"{SUM}\n{statement('multiply', '{y}', '{t}', '{x}')}"
SQUARED = statement("multiply", "{y}", "{x}", "{x}")
ADDED = statement("add", "{y}", "{x}", "{x}")
THRICE = f"{SUM}\n{statement('add', '{s}', '{t}', '{x}')}\n{statement('multiply', '{y}', '{x}', '{s}')}"
LOGISTIC = (
    f"{statement('multiply', '{t}', '{x}', '{x}')}\n{statement('subtract', '{s}', '{x}', '{t}')}\n"
    f"{statement('add', '{y}', '{s}', '{s}')}"
)
MIXED = f"{statement('subtract', '{s}', '{x}', '{x}')}\n{statement('add', '{t}', '{x}', '{x}')}\n{TWICE}"


@pytest.mark.parametrize(
    ("one", "other", "wrong"),
    [
        ([DOUBLED] * 40, [OTHERWISE] * 40, [DOUBLED] * 39 + [THRICE]),
        ([DOUBLED] * 40, [MIXED] * 40, [DOUBLED] * 39 + [SQUARED]),
        ([SQUARED] * 60, [SQUARED] * 60, [SQUARED] * 59 + [DOUBLED]),
        ([SQUARED, ADDED] * 30, [SQUARED, ADDED] * 30, [SQUARED, ADDED] * 29 + [ADDED, SQUARED]),
        ([DOUBLED, ADDED] * 40, [OTHERWISE, ADDED] * 40, [DOUBLED, ADDED] * 39 + [ADDED]),
    ],
)
def test_chains_end(one: list[str], other: list[str], wrong: list[str]) -> None:
    logical, right, broken = (module([SCALAR], [("%y", SCALAR)], chain(*turns), 1) for turns in (one, other, wrong))
    assert hlo_verify.verify(logical, right, refute=False).verdict is Verdict.PROVED
    assert hlo_verify.verify(logical, broken, refute=False).verdict is Verdict.UNKNOWN


def elements() -> list[Poly]:
    """Two numbers."""
    return [algebra.read(source, ()) for source in TENSORS]


def by_name(p: Poly) -> tuple[Poly, ...] | None:
    """The factors of a product that is known by its name."""
    return p.atom.args if isinstance(p.atom, Apply) and p.atom.function == MULTIPLY else None


@pytest.mark.parametrize("c", [LONG, -LONG, Fraction(1, LONG), Fraction(LONG + 1, 3)])
def test_what_is_long_is_multiplied_by_name(c: Number) -> None:
    with Session().on() as session:
        x, y = elements()
        a, b = algebra.scale(x, c), algebra.add(algebra.scale(y, c), number(1))
        product = algebra.expanded(a, b)
        assert set(by_name(product) or ()) == {a, b}
        assert product is algebra.expanded(b, a)
        assert "number_bits" in session.spent().limits
        others = [algebra.scale(x, -c), algebra.scale(x, c + 1), x, algebra.scale(y, c), a]
        assert all(algebra.expanded(other, b) is not product for other in others[:-1])
        assert algebra.expanded(number(c), number(c)).constant is None


def test_one_long_factor_is_multiplied_out() -> None:
    with Session().on() as session:
        x, y = elements()
        a, b = algebra.scale(x, LONG), algebra.add(y, number(1))
        assert algebra.expanded(a, b) is algebra.add(algebra.expanded(a, y), a)
        assert algebra.expanded(a, algebra.scale(a, 0)).constant == 0
        assert "number_bits" not in session.spent().limits


def test_the_limit_is_one_of_bits() -> None:
    with Session(Limits(number_bits=8)).on():
        x, y = elements()
        assert by_name(algebra.expanded(number(255), algebra.scale(x, 255))) is None
        assert by_name(algebra.expanded(algebra.scale(y, 256), algebra.scale(x, 256))) is not None
        assert by_name(algebra.expanded(algebra.scale(y, 256), algebra.scale(x, 255))) is None


def test_conditions_hold_of_both_factors() -> None:
    """What is multiplied by name is 0 where one factor is."""
    with Session().on():
        x, y = elements()
        a = algebra.scale(x, LONG)
        product = algebra.expanded(a, algebra.scale(y, LONG))
        assert algebra.substitute(product, {}) is product
        assert algebra.subtract(product, product).constant == 0
        assert algebra.expanded(algebra.scale(product, 0), product).constant == 0
