"""Every law of the table is true of numbers, is used as it is written, and needs its condition."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest
import z3

from hlo_verify.evaluate import unary
from hlo_verify.evaluate.balls import INFINITY, MINUS_INFINITY, NAN, precision
from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.terms import algebra, extremum_laws, machine
from hlo_verify.terms.functions import LOG, PROPERTIES
from hlo_verify.terms.laws import FUNCTIONS, LAWS, TABLE, apply
from hlo_verify.terms.patterns import Law
from hlo_verify.terms.term import Poly, Tensor, number, tensor
from hlo_verify.terms.used import counts
from tests.support import law_meanings
from tests.support.functions import bounds
from tests.support.functions import function as function_of
from tests.support.law_draws import DRAWN, HOLDS, USUAL
from tests.support.law_meanings import Balls, Reals, Terms, agree, ball, evaluated

BY_NAME = {law.name: law for law in TABLE}
BITS = 128
DRAWS = 60
MILLISECONDS = 20_000
POINTS = tuple(Fraction(n, 2) for n in (-7, -4, -2, -1, 0, 1, 2, 3, 6))
POWERS = range(-3, 5)
SMALL = ("i8", "ui8")
"""Machine integers are asked about in these types, bit by bit."""

RATIONAL = frozenset(
    {
        "inverse of a number",
        "inverse of a multiple",
        "a number is positive",
        "a multiple is positive",
        "a number is zero",
        "a multiple is zero",
        "absolute value of a number",
        "even power",
        "odd power",
        extremum_laws.NESTED,
        extremum_laws.REPEATED,
        extremum_laws.NUMBERS,
        extremum_laws.CLAMPED,
        extremum_laws.INTEGER,
        extremum_laws.EXCEEDED,
    }
)
"""Laws that Z3 proves, of all real numbers at once. The others are asked of balls, infinities and NaN included."""

MACHINE = frozenset({machine.WRAPPED, machine.FITS})
"""Laws that Z3 proves of bit vectors."""

FACTORS = {
    "inverse of a product": "b",
    "inverse of a common factor": "c",
    "inverse of a product of sums": "abc",
    "logarithm of an exponential": "a",
    "power no more known by name": "a",
}
"""What is finite, as its exponential is a factor: the condition of another law, by which it became one. A sum in which
an infinity may take part is not looked at as a product."""

TRUE_ANYWAY = {
    "inverse of a number": "1/0 is undefined on both sides: there is no such number to write",
    "whole power": "it is true of any power: a negative one is one of the inverse",
    "power by an inverse": "it is true of any power: a positive one stays as it is",
    "rounding of a number": "it is true of all numbers; near a jump, what a machine makes of them is another",
    "exponential of a choice": "it is true of any truth value; numbers have better laws",
    "exponential known by name": "another name for the same function",
    "exponential no more known by name": "another name for the same function",
    "multiplication known by name": "a product asks the same again, and is known by name where it does not hold",
}
"""Conditions that say when a law is of use, and why it holds without them."""


def functions(law: Law) -> list[str]:
    """The functions that a law is of."""
    left = ast.parse(law.left, mode="eval").body
    assert isinstance(left, ast.Call) and isinstance(left.func, ast.Name)
    return list(map(str, law.functions)) if left.func.id == "f" else [str(FUNCTIONS.get(left.func.id, left.func.id))]


def letters(law: Law) -> list[str]:
    texts = (law.left, law.right)
    return sorted(
        {n.id for t in texts for n in ast.walk(ast.parse(t)) if isinstance(n, ast.Name) and len(n.id) == 1} - {"f"}
    )


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(TABLE)
    assert {*RATIONAL, *MACHINE, *FACTORS, *TRUE_ANYWAY} <= BY_NAME.keys()


# What the table says, of numbers


def counterexamples(law: Law, function: str, with_condition: bool) -> bool:
    """Whether there are numbers for which a law is wrong."""
    if law.name in MACHINE:
        return function.partition(":")[2] in SMALL and _of_bits(law, function, with_condition)
    if law.name in RATIONAL:
        return any(_of_reals(law, function, n, with_condition) for n in (POWERS if "power" in law.left else [0]))
    return _of_balls(law, function, with_condition)


def _is_satisfiable(*conditions: Any) -> bool:
    solver = z3.Solver()
    solver.set("timeout", MILLISECONDS)
    solver.add(*conditions)
    found = solver.check()
    assert found != z3.unknown, conditions
    return bool(found == z3.sat)


def _of_reals(law: Law, function: str, n: int, with_condition: bool) -> bool:
    values = {name: z3.Real(name) for name in letters(law)}
    pairs: dict[str, Any] = {name: (value, z3.BoolVal(True)) for name, value in values.items()}
    if "power" in law.left:
        pairs["n"] = n
    condition = z3.BoolVal(True)
    if law.name in INTEGERS:
        condition, pairs["right"] = INTEGERS[law.name](function, *(values[name] for name in "nm"))
    elif law.when:
        condition = eval(law.when, {**values, "n": n})
    left, is_left = evaluated(law.left, pairs, Reals(), function)
    right, is_right = pairs.get("right") or evaluated(law.right, pairs, Reals(), function)
    held = [condition] if with_condition else []
    return _is_satisfiable(*held, z3.Or(is_left != is_right, z3.And(is_left, left != right)))


def _clamped(function: str, n: Any, m: Any) -> tuple[Any, Any]:
    """An integer between -5 and 9, and the extremum as it is written: a clamp between such ends."""
    lo, hi = (m, z3.If(m > 9, m, 9)) if function == "maximum" else (z3.If(m < -5, m, -5), m)
    clamped = z3.If(n < lo, lo, z3.If(n > hi, hi, n))
    return z3.And(n == z3.ToReal(z3.Int("i")), n >= -5, n <= 9), (clamped, z3.BoolVal(True))


def _beyond(function: str, n: Any, m: Any) -> tuple[Any, Any]:
    return (n >= m if function == "maximum" else n <= m), (n, z3.BoolVal(True))


INTEGERS = {extremum_laws.INTEGER: _clamped, extremum_laws.EXCEEDED: _beyond}


def _of_bits(law: Law, function: str, with_condition: bool) -> bool:
    dtype = function.partition(":")[2]
    (lo, hi), x = bounds(dtype), z3.Int("x")
    held = law_meanings.machine(dtype)(x)
    right = (x - lo) % (hi - lo + 1) + lo if law.name == machine.WRAPPED else x
    condition = z3.And(x >= lo, x <= hi) if law.when and with_condition else z3.BoolVal(True)
    return _is_satisfiable(condition, x > -600, x < 600, held != right)


def _of_balls(law: Law, function: str, with_condition: bool) -> bool:
    draw = random.Random(f"{law.name} {function}")
    special = [INFINITY, MINUS_INFINITY, NAN]
    with precision(BITS):
        for _ in range(DRAWS):
            at: dict[str, Any] = {}
            for name in letters(law):
                at[name] = ball(draw.choice((0, 1) if name == "p" else POINTS))
                if name in "abc" and name not in FACTORS.get(law.name, "") and draw.random() < 0.3:
                    at[name] = draw.choice(special)
                if name in "km":
                    at[name] = ball(draw.choice([point for point in POINTS if point or law.when == "k != 0"]))
            if with_condition and law.name in HOLDS and not HOLDS[law.name](at):
                continue
            left, right = (evaluated(text, at, Balls(), function) for text in (law.left, law.right))
            if not agree(left, right):
                return True
    return False


@pytest.mark.drawn(30)
@pytest.mark.parametrize("name", BY_NAME)
def test_a_law_is_true_of_numbers(name: str) -> None:
    for function in functions(BY_NAME[name]):
        assert not counterexamples(BY_NAME[name], function, with_condition=True), function


@pytest.mark.parametrize("kind", ["even", "odd"])
def test_the_functions_that_are_neither_even_nor_odd(kind: str) -> None:
    law = BY_NAME[f"{kind} function"]
    known = {name for name, of in PROPERTIES.items() if getattr(of, kind)}
    linear = {"negate"} if kind == "odd" else {"square"}
    for other in unary.REAL.keys() - known - linear:
        assert counterexamples(law, f"{other}:real->real", with_condition=True), other


# What is done with terms


@dataclass
class Draw:
    """Terms that stand for letters, with their values."""

    of: random.Random
    elements: dict[Tensor, Any] = field(default_factory=dict)
    variables: dict[Var, int] = field(default_factory=dict)

    def read(self, dtype: str, value: Any) -> Poly:
        made = tensor("argument", f"t{len(self.elements)}", dtype, ())
        self.elements[made] = value
        return algebra.read(made, ())

    def real(self) -> Poly:
        return self.read("f32", self.of.choice(POINTS))

    def truth(self) -> Poly:
        return self.read("i1", self.of.randrange(2))

    def number(self) -> Poly:
        return number(self.of.choice([point for point in POINTS if point not in (0, 1)]))

    def positive_number(self) -> Poly:
        return number(self.of.choice([point for point in POINTS if point > 1]))

    def square(self) -> Poly:
        return number(self.of.choice(POINTS) ** 2)

    def half(self) -> Poly:
        return number(Fraction(2 * self.of.randrange(-3, 4) + 1, self.of.choice((2, 4, 8))))

    def negative_power(self) -> Poly:
        return number(self.of.randrange(-4, 0))

    def minus_thirds(self) -> Poly:
        return number(Fraction(-3 * self.of.randrange(3) - self.of.choice((1, 2)), 3))

    def whole(self) -> Poly:
        return number(self.of.randrange(-300, 300))

    def power(self) -> Poly:
        return number(self.of.choice(POWERS))

    def high_power(self) -> Poly:
        """One that is not multiplied out."""
        return number(self.of.choice((17, 18)))

    def byte(self) -> Poly:
        return self.read("i8", self.of.randrange(-128, 128))

    def place(self) -> Poly:
        v = expr.fresh("v", 2)
        self.variables[v] = self.of.randrange(2)
        return algebra.of_index(expr.of_var(v))

    def positive(self) -> Poly:
        return apply(function_of("cosh:real->real"), (self.real(),))

    def sum(self) -> Poly:
        return algebra.add(self.real(), algebra.scale(self.real(), 3))

    def undefined(self) -> Poly:
        """Something that may be no number. What 0 would do here is left open: its logarithm is undefined as well."""
        return apply(LOG, (self.read("f32", self.of.choice([point for point in POINTS if point])),))

    def infinite(self) -> Poly:
        return algebra.scale(apply(function_of("infinity"), ()), self.of.choice((-1, 1)))

    def minus_infinity(self) -> Poly:
        """Minus infinity, which the term does not tell."""
        return apply(LOG, (number(0),))

    def infinity(self) -> Poly:
        return apply(function_of("infinity"), ())

    def any(self) -> Poly:
        return getattr(self, self.of.choice(("real", "undefined", "infinite", "minus_infinity")))()  # type: ignore[no-any-return]

    def number_or_none(self) -> Poly:
        return getattr(self, self.of.choice(("real", "undefined")))()  # type: ignore[no-any-return]

    def doubtful(self) -> Poly:
        return getattr(self, self.of.choice(("infinite", "undefined")))()  # type: ignore[no-any-return]


def built(text: str, given: Mapping[str, Poly], function: str) -> Poly:
    """A side of a law as a term."""
    return _built(ast.parse(text, mode="eval").body, given, function)


def _built(node: ast.expr, given: Mapping[str, Poly], function: str) -> Poly:
    if isinstance(node, ast.Constant):
        return number(node.value)
    if isinstance(node, ast.Name):
        return apply(function_of(node.id), ()) if node.id in ("infinity", "nan") else given[node.id]
    if isinstance(node, ast.UnaryOp):
        return algebra.scale(_built(node.operand, given, function), -1)
    if isinstance(node, ast.BinOp):
        a, b = (_built(part, given, function) for part in (node.left, node.right))
        if isinstance(node.op, ast.Mult):
            return (
                algebra.multiply(a, b)
                if isinstance(node.left, ast.Name) and node.left.id == "p"
                else algebra.times(a, b)
            )
        return algebra.add(a, b) if isinstance(node.op, ast.Add) else algebra.subtract(a, b)
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    if node.func.id == "best":
        return algebra.scale(apply(function_of("infinity"), ()), 1 if function == "maximum" else -1)
    name = function if node.func.id == "f" else FUNCTIONS.get(node.func.id, node.func.id)
    return apply(function_of(str(name)), tuple(_built(argument, given, function) for argument in node.args))


def instances(law: Law, text: str, function: str, drawn: Mapping[str, str]) -> Iterator[tuple[bool, bool, Poly]]:
    """Random terms for a text: whether the law was used, whether its value is right, and the term."""
    draw = random.Random(f"{law.name} {function} {text}")
    for _ in range(DRAWS):
        one = Draw(draw)
        names = {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name) and len(n.id) == 1} - {"f"}
        given = {name: getattr(one, {**USUAL, **drawn}[name])() for name in sorted(names)}
        if law.name == extremum_laws.EXCEEDED:
            given = {"m": one.place(), "n": algebra.add(one.place(), number(5 if function == "maximum" else -5))}
        before = counts().get(law.name, 0)
        found = built(text, given, function)
        is_used = counts().get(law.name, 0) > before
        with precision(BITS):
            values = Terms(one.elements, one.variables)
            numbers = {name: values.poly(p) for name, p in given.items()}
            wanted = evaluated(text, numbers, Balls(), function)
            yield is_used, agree(values.poly(found), wanted), found


@pytest.mark.drawn(30)
@pytest.mark.parametrize("name", BY_NAME)
def test_a_law_is_used_and_keeps_the_value(name: str) -> None:
    law = BY_NAME[name]
    for function in functions(law):
        made = list(instances(law, law.left, function, DRAWN.get(name, {})))
        wrong = [found for _, is_right, found in made if not is_right]
        assert not wrong, (function, wrong[0])
        assert any(is_used for is_used, _, _ in made), f"no instance of {name} for {function}"


# What conditions are for

WITHOUT: dict[str, tuple[str, dict[str, str]]] = {
    "exponential of minus infinity": ("exp(a - infinity)", {"a": "minus_infinity"}),
    "exponential of a sum": ("exp(a + b) * inverse(exp(c + b))", {"b": "infinity"}),
}
"""Terms that come out wrong where the condition of a law is left out."""


@pytest.mark.parametrize("name", [law.name for law in TABLE if law.when])
def test_a_condition_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    law = BY_NAME[name]
    seen = [counterexamples(law, function, with_condition=False) for function in functions(law)]
    if name in WITHOUT:
        text, drawn = WITHOUT[name]
        (function,) = functions(law)
        assert all(is_right for _, is_right, _ in instances(law, text, function, drawn))
        (rule,) = (rule for rule in LAWS[function_of(function)] if rule.law is law)
        monkeypatch.setattr(rule, "holds", None)
        seen.append(not all(is_right for _, is_right, _ in instances(law, text, function, drawn)))
    assert any(seen) != (name in TRUE_ANYWAY)
