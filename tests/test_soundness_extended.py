"""Infinities and NaN are values, and no unknowns that cancel: laws of numbers, asked of expressions with infinities.

Each law is a pair of expressions that are equal for numbers. They are evaluated in IEEE arithmetic, with the constants
and inputs at hand; where a result is a number in one and another one, or none, in the other, it must not be proved.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

import hlo_verify
from hlo_verify import Verdict
from tests.support.pairs import REPLICATED, module, on

SIZE = 4
SEED = int(os.environ.get("HLO_VERIFY_SEED", "0")) or random.SystemRandom().randrange(1 << 30)
RANDOM_PAIRS = 40


@dataclass(frozen=True)
class Expression:
    """An operation on expressions; without any, an argument or a constant."""

    name: str
    of: tuple[Expression, ...] = ()

    def __add__(self, other: Expression) -> Expression:
        return Expression("add", (self, other))

    def __sub__(self, other: Expression) -> Expression:
        return Expression("subtract", (self, other))

    def __mul__(self, other: Expression) -> Expression:
        return Expression("multiply", (self, other))

    def __truediv__(self, other: Expression) -> Expression:
        return Expression("divide", (self, other))


X, Y, M = (Expression(name) for name in "xym")
ZERO, ONE, INFINITY, MINUS, NAN = (Expression(name) for name in ("0.0", "1.0", "inf", "-inf", "nan"))
CONSTANTS = {"0.0": "0.0", "1.0": "1.0", "inf": "0x7F800000", "-inf": "0xFF800000", "nan": "0x7FC00000"}


def call(name: str, *of: Expression) -> Expression:
    return Expression(name, of)


def where(a: Expression, b: Expression) -> Expression:
    return call("select", M, a, b)


COMPARISONS = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater}
COMPARISONS["GE"] = np.greater_equal
DIGITS = 9
"""Numbers are compared as if they were rounded to so many digits after the point: no rounding may decide."""

EVALUATED: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "exponential": np.exp,
    "tanh": np.tanh,
    "log": np.log,
    "negate": np.negative,
    "select": np.where,
    "total": lambda a: np.broadcast_to(a.sum(), (SIZE,)),
}


def evaluated(e: Expression, inputs: dict[str, np.ndarray]) -> np.ndarray:
    with np.errstate(all="ignore"):
        if e.of:
            parts = [evaluated(part, inputs) for part in e.of]
            if e.name in COMPARISONS:
                return COMPARISONS[e.name](*(np.round(part, DIGITS) for part in parts)).astype(np.float64)
            return EVALUATED[e.name](*parts)
        return inputs[e.name] if e.name in inputs else np.full(SIZE, float(e.name))


def written(e: Expression) -> str:
    """A body that leaves `%r`."""
    lines = ["%zero = stablehlo.constant dense<0.0> : tensor<f32>"]
    names: dict[Expression, str] = {X: "%x", Y: "%y", M: "%m"}

    def name(part: Expression) -> str:
        if part not in names:
            operands = [name(inner) for inner in part.of]
            names[part] = f"%v{len(names)}"
            lines.extend(_operation(part, operands, names[part]))
        return names[part]

    lines.append(f"%r = stablehlo.add {name(e)}, {name(ZERO)} : TYPE")
    return "\n".join(lines)


def _operation(e: Expression, operands: list[str], found: str) -> list[str]:
    given = ", ".join(operands)
    if e.name in CONSTANTS:
        return [f"{found} = stablehlo.constant dense<{CONSTANTS[e.name]}> : TYPE"]
    if e.name in COMPARISONS:
        return [
            f"{found}t = stablehlo.compare {e.name}, {given} : (TYPE, TYPE) -> TRUTHS",
            f"{found} = stablehlo.convert {found}t : (TRUTHS) -> TYPE",
        ]
    if e.name == "total":
        return [
            f"{found}s = stablehlo.reduce({given} init: %zero) applies stablehlo.add across dimensions = [0]"
            " : (TYPE, tensor<f32>) -> tensor<f32>",
            f"{found} = stablehlo.broadcast_in_dim {found}s, dims = [] : (tensor<f32>) -> TYPE",
        ]
    return [f"{found} = stablehlo.{e.name} {given} : {'TRUTHS, ' if e.name == 'select' else ''}TYPE"]


def verdict(logical: Expression, partitioned: Expression) -> Verdict:
    vector, truths = f"tensor<{SIZE}xf32>", f"tensor<{SIZE}xi1>"
    names = f"%x: {vector}", f"%y: {vector}", f"%m: {truths}"
    bodies = [
        f"{written(e)}\nreturn %r : TYPE".replace("TYPE", vector).replace("TRUTHS", truths)
        for e in (logical, partitioned)
    ]
    replicated = ", ".join(f"{name} {on(REPLICATED)}" for name in names)
    whole = module(replicated, f"{vector} {on(REPLICATED)}", bodies[0], 2)
    return hlo_verify.verify(whole, module(", ".join(names), vector, bodies[1], 2), refute=False).verdict


def same(logical: Expression, partitioned: Expression, generator: random.Random) -> bool:
    """Whether the second expression is what the first is, wherever that is a number."""
    for _ in range(12):
        inputs = {name: np.array([generator.choice((-3.0, -1.0, 0.5, 2.0)) for _ in range(SIZE)]) for name in "xy"}
        inputs["m"] = np.array([generator.random() < 0.5 for _ in range(SIZE)])
        a, b = evaluated(logical, inputs), evaluated(partitioned, inputs)
        if not np.allclose(b[np.isfinite(a)], a[np.isfinite(a)], rtol=1e-9, atol=1e-9):
            return False
    return True


def laws(k: Expression, b: Expression) -> dict[str, tuple[Expression, Expression]]:
    """Pairs that are equal where k, and b, are numbers."""
    return {
        "cancel": (X, X + k - k),
        "absorb": (X, (X + k) - (k + ZERO)),
        "annihilate": (X * ZERO, X * ZERO * k),
        "minus itself": (ZERO, k - k),
        "over itself": (ONE, k / k),
        "three less one": (call("exponential", ZERO - (k + k)), call("exponential", ZERO - (k + k + k - k))),
        "distribute": (call("tanh", (X + Y) * k), call("tanh", X * k + Y * k)),
        "masked difference": (where(X, ZERO), where(X, k) - where(ZERO, k)),
        "masked sum": (call("total", where(X, ZERO)), call("total", where(X, k)) - call("total", where(ZERO, k))),
        "exponentials": (ONE, call("exponential", X + k) / call("exponential", k + X)),
        "logarithm": (k + X, call("log", call("exponential", k + X))),
        "maxima": (ZERO, call("maximum", X, k) - call("maximum", k, X)),
        "minima": (X, X + call("minimum", X, k) - call("minimum", k, X)),
        "is it itself": (ONE, call("EQ", X + k - k, X)),
        "is it no NaN": (ZERO, call("NE", X + (k - call("maximum", X, k)), X + (k - call("maximum", X, k)))),
        "greater or not": (ONE, call("GT", X + k, Y * k) + call("LE", X + k, Y * k)),
        "equal to itself": (ONE, call("EQ", k + X, X + k)),
        "factor of a mask": (where(X, ZERO), call("select", M, ONE, ZERO) * where(X, k)),
        "one half": (X + k, where(X + k, ZERO) + where(ZERO, X + k)),
        "no product": (ZERO, where(k, ZERO) * where(ZERO, b)),
        "vanishing exponential": (call("exponential", k + MINUS), k * ZERO),
        "greatest of all": (ONE / call("maximum", k, INFINITY), ONE / (INFINITY + k * ZERO)),
        "least of all": (ONE / call("minimum", k, MINUS), ONE / (MINUS + k * ZERO)),
    }


CONSTANTS_OF_ALL_KINDS = {
    "inf": INFINITY,
    "-inf": MINUS,
    "nan": NAN,
    "1/0": ONE / ZERO,
    "0/0": ZERO / ZERO,
    "log 0": call("log", ZERO),
    "max(x, inf)": call("maximum", X, INFINITY),
    "masked": where(Y, MINUS),
}
"""Values that are no numbers, all of them or some."""


@pytest.mark.parametrize("law", laws(X, Y))
@pytest.mark.parametrize("constant", CONSTANTS_OF_ALL_KINDS)
def test_laws_of_numbers(law: str, constant: str) -> None:
    k = CONSTANTS_OF_ALL_KINDS[constant]
    for pair in laws(k, INFINITY)[law], laws(k, INFINITY)[law][::-1]:
        if not same(*pair, random.Random(0)):
            assert verdict(*pair) is not Verdict.PROVED


@pytest.mark.parametrize("law", ["cancel", "annihilate", "distribute", "masked difference", "maxima", "one half"])
def test_they_hold_of_numbers(law: str) -> None:
    assert verdict(*laws(Y, Y)[law]) is Verdict.PROVED


def grown(generator: random.Random, depth: int) -> Expression:
    """Some expression."""
    if depth == 0 or generator.random() < 0.15:
        return generator.choice((X, Y, X, Y, ZERO, ONE, INFINITY, MINUS, NAN))
    name = generator.choice(
        ("add", "subtract", "multiply", "select", "maximum", "minimum", "exponential", "GT", "EQ", "LE")
    )
    parts = [grown(generator, depth - 1) for _ in range(1 if name == "exponential" else 2)]
    return call(name, *([M] if name == "select" else []), *parts)


def rewritten(e: Expression, generator: random.Random) -> Expression:
    """Another expression that would be equal if all were numbers."""
    parts = tuple(rewritten(part, generator) for part in e.of)
    e = Expression(e.name, parts)
    choice = generator.randrange(8)
    if e is M or e.name in ("m",):
        return e
    if choice == 0:
        other = grown(generator, 1)
        return (e + other) - other
    if choice == 1 and e.name in ("add", "multiply", "maximum", "minimum"):
        return Expression(e.name, parts[::-1])
    if choice == 2 and e.name == "multiply" and parts[0].name == "add":
        return parts[0].of[0] * parts[1] + parts[0].of[1] * parts[1]
    if choice == 3 and e.name == "subtract" and parts[0] == parts[1]:
        return ZERO
    if choice == 4:
        return e + grown(generator, 1) * ZERO
    if choice == 5:
        return where(e, e)
    if choice == 6 and e.name == "exponential" and parts[0].name == "add":
        return call("exponential", parts[0].of[0]) * call("exponential", parts[0].of[1])
    return e


def test_random_rewriting() -> None:
    print(f"HLO_VERIFY_SEED={SEED}")
    generator = random.Random(SEED)
    for number in range(RANDOM_PAIRS):
        e = grown(generator, 3)
        other = rewritten(e, generator)
        if not same(e, other, random.Random(number)):
            assert verdict(e, other) is not Verdict.PROVED, (SEED, number, e, other)
