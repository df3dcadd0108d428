"""Functions of a few integers written down as plain data, which can be built as terms in several ways, changed a
little, and computed with numbers. Tensors are functions of all integers, so that no index lies outside.

A recipe is a tuple: its kind, then numbers and recipes. Variables are numbered from the outside in; `sum`, `max` and
`min` bind the next number.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.terms import algebra, extrema, guards, sums
from hlo_verify.terms.definitions import named
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Poly, Tensor, number, tensor
from tests.support.functions import function

Draw = Callable[[st.SearchStrategy[Any]], Any]
Recipe = tuple[Any, ...]
Number = int | Fraction

UNARY = ("unknown", "abs", "positive", "zero")
BINARY = ("maximum", "minimum", "less", "equal")
SIZES = (2, 3, 4, 6)
RANKS = {"a": 1, "b": 1, "c": 2, "p": 1}
"""The tensors that recipes read; `p` holds truth values."""


def index(draw: Draw, count: int) -> Recipe:
    """A constant and multiples of variables, perhaps divided, wrapped or clamped."""
    variables, factors = st.integers(0, count - 1), st.sampled_from((1, 1, 1, 2, 3, -1))
    pairs = [(draw(variables), draw(factors)) for _ in range(draw(st.integers(0, 2)) if count else 0)]
    e: Recipe = ("affine", draw(st.integers(-2, 2)), tuple(pairs))
    kind = draw(st.sampled_from(("plain", "plain", "plain", "div", "mod", "clamp")))
    if kind == "plain":
        return e
    if kind == "clamp":
        return (kind, e, draw(st.integers(-1, 1)), draw(st.integers(1, 4)))
    return (kind, e, draw(st.integers(2, 4)))


def condition(draw: Draw, count: int) -> Recipe:
    lo = draw(st.integers(-2, 4))
    return ("within", index(draw, count), lo, lo + draw(st.integers(0, 4)))


def read(draw: Draw, count: int) -> Recipe:
    name = draw(st.sampled_from(sorted(RANKS)))
    return ("read", name, *(index(draw, count) for _ in range(RANKS[name])))


def recipe(draw: Draw, count: int, depth: int) -> Recipe:
    """A function of that many variables."""
    if depth == 0:
        kind = draw(st.sampled_from(("read", "read", "read", "number", "condition", "index")))
        if kind == "read":
            return read(draw, count)
        if kind == "condition":
            return condition(draw, count)
        return index(draw, count) if kind == "index" else ("number", draw(st.integers(-3, 3)))
    kind = draw(st.sampled_from(("leaf", "add", "multiply", "select", "sum", "sum", "max", "min", "unary", "binary")))
    if kind == "leaf":
        return recipe(draw, count, 0)
    if kind in ("sum", "max", "min"):
        return (kind, draw(st.sampled_from(SIZES)), recipe(draw, count + 1, depth - 1))
    a = recipe(draw, count, depth - 1)
    if kind == "unary":
        return ("apply", draw(st.sampled_from(UNARY)), a)
    b = recipe(draw, count, depth - 1)
    if kind == "binary":
        return ("apply", draw(st.sampled_from(BINARY)), a, b)
    return (kind, condition(draw, count), a, b) if kind == "select" else (kind, a, b)


def parts(r: Any, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Every number, name and recipe within, with the way to it."""
    yield path, r
    if isinstance(r, tuple):
        for n, part in enumerate(r):
            yield from parts(part, (*path, n))


def replaced(r: Any, path: tuple[int, ...], new: Any) -> Any:
    if not path:
        return new
    return (*r[: path[0]], replaced(r[path[0]], path[1:], new), *r[path[0] + 1 :])


FAMILIES = (UNARY, BINARY, ("sum", "max", "min"), ("add", "multiply"))


def mutated(draw: Draw, r: Recipe) -> Recipe:
    """The recipe with one number moved, one name changed, or the last two operands swapped."""
    choices: list[tuple[tuple[int, ...], Any]] = []
    for path, part in parts(r):
        above = _at(r, path[:-1]) if path else ()
        if isinstance(part, int):
            is_variable = above[0] not in KINDS and path[-1] == 0  # of a pair of variable and coefficient
            is_size = above[0] in ("sum", "max", "min", "div", "mod")
            if not is_variable:
                choices += [(path, n) for n in (SIZES if is_size else (part + 1, part - 1)) if n != part]
        elif isinstance(part, str):
            families = [("a", "b")] if above[0] == "read" and path[-1] == 1 else FAMILIES
            choices += [(path, other) for family in families if part in family for other in family if other != part]
        elif part and (part[0] == "select" or (part[0] == "read" and len(part) == 4)):
            choices.append((path, (*part[:2], part[3], part[2])))
    path, new = draw(st.sampled_from(choices))
    result: Recipe = replaced(r, path, new)
    return result


KINDS = frozenset("affine div mod clamp within read number add multiply select sum max min apply".split())


def _at(r: Any, path: tuple[int, ...]) -> Any:
    for n in path:
        r = r[n]
    return r


# The numbers.


def computed(r: Recipe, env: tuple[int, ...]) -> Number:
    """The value at a point, by the book."""
    kind = r[0]
    if kind == "number":
        return int(r[1])
    if kind == "affine":
        return int(r[1]) + sum(c * env[v] for v, c in r[2])
    if kind in ("sum", "max", "min"):
        values = [computed(r[2], (*env, n)) for n in range(r[1])]
        return {"sum": sum, "max": max, "min": min}[kind](values)
    if kind == "read":
        return element(r[1], tuple(int(computed(e, env)) for e in r[2:]))
    if kind == "apply":
        return FUNCTIONS[r[1]](*(computed(a, env) for a in r[2:]))
    first = computed(r[1], env)
    if kind == "div":
        return first // r[2]
    if kind == "mod":
        return first % r[2]
    if kind == "clamp":
        return max(r[2], min(first, r[3]))
    if kind == "within":
        return int(r[2] <= first <= r[3])
    if kind == "select":
        return computed(r[2] if first else r[3], env)
    second = computed(r[2], env)
    return first + second if kind == "add" else first * second


def element(name: str, indices: tuple[int, ...]) -> Number:
    """An element of a tensor, any number but the same whenever it is read."""
    drawn = random.Random(f"{name} {indices}")
    return drawn.randrange(2) if name == "p" else Fraction(drawn.randint(-40, 40), 2)


def _unknown(x: Number) -> Number:
    """Like tanh, which stands for it in terms: odd, and between -1 and 1."""
    size = Fraction(random.Random(f"unknown {Fraction(abs(x))}").randint(1, 99), 100)
    return size if x > 0 else -size if x < 0 else 0


FUNCTIONS: dict[str, Callable[..., Number]] = {
    "unknown": _unknown,
    "abs": abs,
    "positive": lambda x: int(x > 0),
    "zero": lambda x: int(x == 0),
    "maximum": max,
    "minimum": min,
    "less": lambda a, b: int(a < b),
    "equal": lambda a, b: int(a == b),
}


# The terms.


class Builder:
    """Builds recipes as terms over the same tensors, every time in a way of its own where there are several."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {
            name: tensor("argument", name, "i1" if name == "p" else "f32", (100,) * rank)
            for name, rank in RANKS.items()
        }

    def build(self, r: Recipe, variables: tuple[Index, ...], way: random.Random) -> Poly:
        p = self._build(r, variables, way)
        return named(p) if way.random() < 0.1 else p

    def _build(self, r: Recipe, variables: tuple[Index, ...], way: random.Random) -> Poly:
        kind = r[0]
        if kind in ("affine", "div", "mod", "clamp"):
            return algebra.of_index(self.index(r, variables))
        if kind == "number":
            return number(r[1])
        if kind == "read":
            return algebra.read(self.tensors[r[1]], [self.index(e, variables) for e in r[2:]])
        if kind == "within":
            return self._within(r, variables, way)
        if kind in ("sum", "max", "min"):
            return self._reduced(r, variables, way)
        operands = [self.build(a, variables, way) for a in r[1:] if isinstance(a, tuple)]
        if kind == "apply":
            name = "tanh:real->real" if r[1] == "unknown" else r[1]
            return apply(function(name), tuple(operands))
        if kind == "select":
            chosen, a, b = operands
            if way.random() < 0.5:
                return algebra.select(chosen, a, b)
            return algebra.add(b, algebra.multiply(algebra.subtract(a, b), chosen))
        if way.random() < 0.5:
            operands = operands[::-1]
        return algebra.add(*operands) if kind == "add" else algebra.multiply(*operands)

    def index(self, r: Recipe, variables: tuple[Index, ...]) -> Index:
        if r[0] == "affine":
            return expr.shift(expr.add(*(expr.scale(variables[v], c) for v, c in r[2]), expr.constant(0)), r[1])
        e = self.index(r[1], variables)
        if r[0] == "clamp":
            return expr.clamp(e, r[2], r[3])
        return expr.floor_div(e, r[2]) if r[0] == "div" else expr.modulo(e, r[2])

    def _within(self, r: Recipe, variables: tuple[Index, ...], way: random.Random) -> Poly:
        e, lo, hi = self.index(r[1], variables), r[2], r[3]
        if way.random() < 0.3:
            return algebra.multiply(guards.interval(e, lo, None), guards.interval(e, None, hi))
        if way.random() < 0.3:
            return algebra.subtract(guards.interval(e, None, hi), guards.interval(e, None, lo - 1))
        return guards.interval(e, lo, hi)

    def _reduced(self, r: Recipe, variables: tuple[Index, ...], way: random.Random) -> Poly:
        kind, size, body = r
        m = way.choice([n for n in range(1, size + 1) if size % n == 0])
        low, high = expr.fresh("f", m), expr.fresh("f", size // m)
        bound = expr.add(expr.of_var(low), expr.scale(expr.of_var(high), m))
        p = self.build(body, (*variables, bound), way)
        if kind == "sum":
            inner = sums.reduce_sum([low], p) if way.random() < 0.5 else None
            return sums.reduce_sum([low, high], p) if inner is None else sums.reduce_sum([high], inner)
        stepwise = way.random() < 0.5
        inner = extrema.reduce_extremum(kind, [high], p) if stepwise else p
        return extrema.reduce_extremum(kind, [low] if stepwise else [high, low], inner)
