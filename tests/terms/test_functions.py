"""Functions of terms say by fields what they are, print as one text, and are equal if that is."""

from __future__ import annotations

import ast
import operator
import random
import re
from collections.abc import Callable
from dataclasses import astuple, fields
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hlo_verify.evaluate import enclosures
from hlo_verify.evaluate.balls import NAN, UNDEFINED, precision
from hlo_verify.passes.recheck import formulas
from hlo_verify.terms import functions, rounding_laws
from hlo_verify.terms.functions import (
    EQUAL_IN_TOTAL,
    EXPONENTIAL,
    INFINITE_EXPONENTIAL,
    PROPERTIES,
    Function,
    Properties,
    real,
    typed,
    wrap,
)
from tests.support.law_meanings import Balls, ball

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (EXPONENTIAL, "exponential"),
        (INFINITE_EXPONENTIAL, "exponential:real->real"),
        (real("multiply", 2), "multiply:real,real->real"),
        (wrap("ui8"), "wrap:ui8"),
        (EQUAL_IN_TOTAL, "equal:total"),
        (typed("bitcast_convert", ("i8", "i8"), "f16", {"part": 0}), "bitcast_convert:i8,i8->f16,part=0"),
        (
            typed("reduce_precision", ("real",), "real", {"mantissa_bits": 7, "exponent_bits": 8}),
            "reduce_precision:real->real,exponent_bits=8,mantissa_bits=7",
        ),
    ],
)
def test_a_function_prints_all_that_tells_it_apart(function: Function, text: str) -> None:
    assert str(function) == text


def test_functions_are_equal_if_all_of_it_is() -> None:
    assert real("tanh") == Function("tanh", ("real",), "real")
    assert hash(real("tanh")) == hash(Function("tanh", ("real",), "real"))
    assert len({EXPONENTIAL, INFINITE_EXPONENTIAL, Function("exponential", gives="i8"), real("tanh")}) == 4


def test_a_name_holds_no_more_than_a_name() -> None:
    with pytest.raises(AssertionError, match="more than a name"):
        Function("tanh:real->real")


def test_constants_are_told_apart() -> None:
    found = [value for value in vars(functions).values() if isinstance(value, Function)]
    assert len(set(found)) == len(found)


LANGUAGE = re.compile(r"[a-z_0-9]+:[a-z0-9,<>]*->.*|(less|equal|wrap|truncate|positive):\w*")


def test_nothing_takes_functions_apart_by_text() -> None:
    for path in [*(ROOT / "hlo_verify").glob("*/*.py"), *(ROOT / "passes").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not LANGUAGE.fullmatch(node.value), f"{path}:{node.lineno}: {node.value}"
            if isinstance(node, ast.Attribute) and node.attr in ("partition", "split", "startswith", "removeprefix"):
                assert not ast.unparse(node.value).endswith(".function"), f"{path}:{node.lineno}"


# What is said of functions, asked of numbers

DRAWN = random.Random(0)
NUMBERS = [
    *map(Fraction, ("0", "1/2", "-1/2", "1/1000", "1", "-1", "3/2", "-5/2", "30", "-30")),
    *(Fraction(DRAWN.randint(-4000, 4000), DRAWN.choice([1, 7, 1000, 4096])) for _ in range(40)),
]
PAIRS = [(a, b) for a in NUMBERS for b in DRAWN.sample(NUMBERS, 8)]
WHOLES = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}
COMPARED = {"equal": "EQ", "less": "LT", "less_or_equal": "LE", "equal_in_floats": "EQ", "greater_in_floats": "GT"}


def value(name: str, *args: Fraction) -> Any:
    """What the evaluator gives, as a ball; None where it gives no number."""
    if name in WHOLES:
        return ball(WHOLES[name](*(arg.numerator for arg in args)))
    if name == "is_finite":
        return ball(1)
    if name in COMPARED:
        found = enclosures.compared(COMPARED[name], False)(*map(ball, args))
        return None if found is UNDEFINED else ball(int(found))
    found = Balls().call(name.removesuffix("_in_floats"), list(map(ball, args)))
    return found if found is not UNDEFINED and found.is_finite() else None


def of_one(is_false: Callable[[Fraction, Any, Any], bool]) -> Callable[[str], bool]:
    """Whether some number, the value there and the value of its negative refute a claim."""

    def refuted(name: str) -> bool:
        tried = [(x, value(name, x), value(name, -x)) for x in NUMBERS]
        known = [(x, at, of_negative) for x, at, of_negative in tried if at is not None]
        assert known, name
        return any(is_false(*each) for each in known)

    return refuted


def depends_on_order(name: str) -> bool:
    both = [(value(name, a, b), value(name, b, a)) for a, b in PAIRS]
    return any((x is None) != (y is None) or (x is not None and not x.overlaps(y)) for x, y in both)


def is_no_truth(name: str) -> bool:
    args = PAIRS if name in {**WHOLES, **COMPARED} else [(a,) for a in NUMBERS]
    found = [value(name, *each) for each in args]
    return any(v is not None and not (v.is_zero() or v == 1) for v in found)


def has_another_sign(x: Fraction, at: Any, _: Any) -> bool:
    return not at.contains(0) if x == 0 else bool(at < 0 if x > 0 else at > 0) or at.is_zero()


def is_not_increasing(name: str) -> bool:
    found = [at for x in sorted(set(NUMBERS)) if (at := value(name, x)) is not None]
    return any(a > b or (a == b and a.is_exact()) for a, b in pairwise(found))


REFUTES: dict[str, Callable[[str], bool]] = {
    "commutative": depends_on_order,
    "even": of_one(lambda x, at, of_negative: of_negative is None or not at.overlaps(of_negative)),
    "odd": of_one(lambda x, at, of_negative: of_negative is None or not at.overlaps(-of_negative)),
    "truth": is_no_truth,
    "keeps_sign": of_one(has_another_sign),
    "positive": of_one(lambda x, at, _: not at > 0),
    "none_of_none": lambda name: Balls().call(name, [NAN]) is not NAN,
    "increasing": is_not_increasing,
}
CLAIMS = [(name, each.name) for name, of in PROPERTIES.items() for each in fields(of) if getattr(of, each.name)]


@pytest.mark.parametrize(("name", "claim"), CLAIMS)
def test_what_is_said_of_a_function_is_true_of_numbers(name: str, claim: str) -> None:
    with precision(200):
        assert not REFUTES[claim](name)


WRONG = {
    "commutative": ("power", "divide", "less", "less_or_equal"),
    "even": ("tanh", "exponential", "floor", "sine"),
    "odd": ("cosine", "exponential_minus_one", "floor", "log_plus_one", "abs"),
    "truth": ("abs", "sign", "or"),
    "keeps_sign": ("sine", "tan", "round_nearest_even", "exponential", "abs"),
    "positive": ("exponential_minus_one", "abs", "sqrt", "tanh", "log"),
    "none_of_none": ("is_finite", "positive", "zero", "finite_part"),
    "increasing": ("abs", "tan", "sine", "cosh", "sign", "floor", "erfc", "round_nearest_even", "is_finite"),
}


@pytest.mark.parametrize(("claim", "name"), [(claim, name) for claim, names in WRONG.items() for name in names])
def test_a_wrong_claim_is_found(claim: str, name: str) -> None:
    with precision(200):
        assert REFUTES[claim](name)


def test_every_row_says_something() -> None:
    assert {each.name for each in fields(Properties)} == set(REFUTES)
    assert all(any(astuple(of)) for of in PROPERTIES.values())


@pytest.mark.parametrize(
    ("claim", "names"),
    [("commutative", formulas.COMMUTATIVE), ("even", formulas.EVEN), ("odd", formulas.ODD)],
)
def test_what_the_second_check_says_is_true_of_numbers(claim: str, names: frozenset[str]) -> None:
    """It has a table of its own, so that a wrong row of one is not believed by the other."""
    with precision(200):
        assert not [name for name in names if REFUTES[claim](name)]


@pytest.mark.parametrize("name", rounding_laws.ROUNDED)
def test_both_checks_round_numbers_as_the_evaluator_does(name: str) -> None:
    assert formulas.WHOLE.keys() == rounding_laws.ROUNDED.keys()
    with precision(200):
        for k in (Fraction(n, 4) for n in range(-15, 16)):
            wanted = Balls().call(name, [ball(k)])
            assert wanted == rounding_laws.ROUNDED[name](k) == formulas.WHOLE[name](k), k
