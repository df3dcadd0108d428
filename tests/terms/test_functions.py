"""Functions of terms say by fields what they are, print as one text, and are equal if that is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from hlo_verify.terms import functions
from hlo_verify.terms.functions import EQUAL_IN_TOTAL, EXPONENTIAL, INFINITE_EXPONENTIAL, Function, real, typed, wrap

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
