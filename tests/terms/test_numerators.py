"""A name of quotients by one denominator is a quotient of a name, and of nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from hlo_verify.equality import cases
from hlo_verify.equality.quotients import same_quotients
from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import named
from hlo_verify.terms.functions import INVERSE, POSITIVE, Function
from hlo_verify.terms.laws import apply
from hlo_verify.terms.numerators import numerators
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Poly, Tensor, number, tensor

TANH = Function("tanh")
TENSORS: dict[str, Tensor] = {}
"""The arguments of a session: those of another would have numbers that this one gives too."""


@pytest.fixture(autouse=True)
def session() -> Iterator[None]:
    with Session().on():
        TENSORS.update((name, tensor("argument", name, "f32", (8,))) for name in "xyde")
        yield


def place() -> Var:
    return expr.var("i", "", 8)


def at(name: str) -> Poly:
    return algebra.read(TENSORS[name], [expr.of_var(place())])


def over(p: Poly, d: Poly) -> Poly:
    return algebra.multiply(p, apply(INVERSE, (algebra.add(number(1), algebra.multiply(d, d)),)))


def square(p: Poly) -> Poly:
    return reduce_sum([place()], algebra.multiply(p, p))


def added() -> Poly:
    return algebra.add(at("x"), at("y"))


Pair = Callable[[], tuple[Poly, Poly]]
RIGHT: dict[str, Pair] = {
    "a quotient": lambda: (named(over(added(), at("d"))), over(named(added()), at("d"))),
    "a multiple": lambda: (
        named(algebra.scale(over(added(), at("d")), 3)),
        over(named(algebra.scale(added(), 3)), at("d")),
    ),
    "by two": lambda: (named(over(over(added(), at("d")), at("e"))), over(over(named(added()), at("e")), at("d"))),
    "within a sum": lambda: (square(named(over(added(), at("d")))), square(over(named(added()), at("d")))),
    "within another name": lambda: (
        named(algebra.add(named(over(added(), at("d"))), algebra.multiply(at("x"), at("y")))),
        algebra.add(over(named(added()), at("d")), algebra.multiply(at("x"), at("y"))),
    ),
}
WRONG: dict[str, Pair] = {
    "by another": lambda: (named(over(added(), at("d"))), over(named(added()), at("e"))),
    "once more": lambda: (named(over(added(), at("d"))), over(over(named(added()), at("d")), at("d"))),
    "of one summand": lambda: (named(algebra.add(over(at("x"), at("d")), at("y"))), over(named(added()), at("d"))),
    "by each its own": lambda: (
        named(algebra.add(over(at("x"), at("d")), over(at("y"), at("e")))),
        over(named(added()), at("d")),
    ),
    "of a difference": lambda: (
        named(over(algebra.subtract(at("x"), at("y")), at("d"))),
        over(named(added()), at("d")),
    ),
    "squares within a sum": lambda: (
        square(named(over(added(), at("d")))),
        reduce_sum([place()], over(named(added()), at("d"))),
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_the_same(name: str) -> None:
    found, expected = RIGHT[name]()
    assert cases.equal(found, expected)
    assert same_quotients(found, expected, number(1))
    assert numerators(numerators(found)) is numerators(found)


@pytest.mark.parametrize("name", WRONG)
def test_others(name: str) -> None:
    found, expected = WRONG[name]()
    assert not cases.equal(found, expected)
    assert not same_quotients(found, expected, number(1))


def where(condition: str, p: Poly) -> Poly:
    return algebra.multiply(apply(POSITIVE, (at(condition),)), p)


@pytest.mark.parametrize("conditions", [("x", "y"), ("x", None), (None, None)])
@pytest.mark.parametrize("is_number", [False, True])
def test_what_is_divided_by_under_conditions_alone(conditions: tuple[str | None, ...], is_number: bool) -> None:
    """`where(x > 0, d/n, 0) + where(y > 0, e/n, 0)` is a number for n = 0 where neither holds, and a quotient of the
    sum by n is none."""
    by = at("d") if not is_number else algebra.add(number(1), algebra.multiply(at("d"), at("d")))
    parts = [
        algebra.multiply(algebra.multiply(at(x), at("e")), apply(INVERSE, (by,)))
        if condition is None
        else where(condition, algebra.multiply(at(x), apply(INVERSE, (by,))))
        for condition, x in zip(conditions, "xy", strict=True)
    ]
    p = named(algebra.add(*parts))
    assert (numerators(p) is p) is (not is_number and None not in conditions)


def test_what_names_are_made_of_is_a_graph() -> None:
    """Sums that read the one below twice each: they are as many as the levels, and the ways to the lowest 2**levels."""

    def levels(p: Poly) -> Poly:
        for _ in range(20):
            k = expr.fresh("k", 8)
            everywhere = reduce_sum([k], apply(TANH, (algebra.substitute(p, {place(): expr.of_var(k)}),)))
            p = named(algebra.add(everywhere, apply(TANH, (p,))))
        return p

    found, expected = levels(named(over(added(), at("d")))), levels(over(named(added()), at("d")))
    assert numerators(found) is numerators(expected)
    assert numerators(levels(named(over(added(), at("e"))))) is not numerators(expected)
