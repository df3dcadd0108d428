"""Random index expressions and terms, each with the numbers that it stands for, computed without the prover.

Everything is a function of a few variables; its numbers are an object array with one dimension for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import settings
from hypothesis import strategies as st

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Poly, Tensor, number, tensor
from tests.support.evaluate import Evaluator, objects
from tests.support.functions import call, function

Array = npt.NDArray[Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]

SIZES = (1, 2, 3, 4, 6, 8, 12)

many = settings(max_examples=max(48, settings.default.max_examples if settings.default else 0))
"""For tests of which an example takes a millisecond."""


@dataclass(frozen=True, slots=True)
class Space:
    """The variables that expressions are functions of."""

    variables: tuple[Var, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(v.size for v in self.variables)

    @property
    def grid(self) -> dict[Var, Array]:
        axes = np.ogrid[tuple(slice(n) for n in self.shape)]
        return {v: axis.astype(object) for v, axis in zip(self.variables, axes, strict=True)}

    def spread(self, values: Any) -> Array:
        """Values as an array over the whole space."""
        return np.broadcast_to(np.asarray(values, dtype=object), self.shape)


def space(draw: Draw, most: int = 3, kind: str = "x") -> Space:
    sizes = draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=most))
    return Space(tuple(expr.var(kind, n, size) for n, size in enumerate(sizes)))


def renaming(draw: Draw, outer: Space, inner: Space) -> tuple[dict[Var, Index], tuple[Array, ...]]:
    """Expressions over one space for the variables of another, and where in that one they lead: an index array each."""
    mapping: dict[Var, Index] = {}
    places = []
    for v in outer.variables:
        new = index(draw, inner, 1)
        mapping[v] = expr.modulo(new.it, v.size)
        places.append((new.values % v.size).astype(int))
    return mapping, tuple(places)


@dataclass(frozen=True, slots=True)
class Numbered:
    """An expression (of one kind or another) and its value for all values of the variables."""

    it: Any
    values: Array


def each(function: Callable[..., Any], *arrays: Any) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(np.frompyfunc(function, len(arrays), 1)(*arrays), dtype=object)


def affine(draw: Draw, where: Space) -> Numbered:
    """A constant and a few multiples of variables or of their digits."""
    e, values = expr.constant(0), where.spread(0)
    for _ in range(draw(st.integers(0, 3))):
        v = draw(st.sampled_from(where.variables))
        c = draw(st.sampled_from((-12, -4, -3, -2, -1, 1, 1, 2, 3, 4, 6, 8, 24)))
        part, digits = expr.of_var(v), where.grid[v]
        if draw(st.booleans()):
            low, radix = draw(st.sampled_from((1, 2, 3, 4))), draw(st.sampled_from((2, 3, 4)))
            part, digits = expr.digit_of(part, low, radix), digits // low % radix
        e = expr.add(e, expr.scale(part, c))
        values = values + c * digits
    k = draw(st.integers(-6, 6))
    return Numbered(expr.shift(e, k), where.spread(values + k))


def index(draw: Draw, where: Space, depth: int = 2) -> Numbered:
    """An affine expression, or a quotient, remainder, clamp, table, sum or multiple of such."""
    if depth == 0:
        return affine(draw, where)
    kind = draw(st.sampled_from(("affine", "div", "mod", "clamp", "table", "add", "scale")))
    if kind == "affine":
        return affine(draw, where)
    a = index(draw, where, depth - 1)
    m = draw(st.sampled_from((1, 2, 3, 4, 5, 6, 12)))
    if kind == "div":
        return Numbered(expr.floor_div(a.it, m), a.values // m)
    if kind == "mod":
        return Numbered(expr.modulo(a.it, m), a.values % m)
    if kind == "scale":
        return Numbered(expr.scale(a.it, m - 4), a.values * (m - 4))
    if kind == "clamp":
        lo = draw(st.integers(-4, 4))
        hi = lo + draw(st.integers(0, 8))
        return Numbered(expr.clamp(a.it, lo, hi), each(lambda x: max(lo, min(x, hi)), a.values))
    if kind == "table":
        table = tuple(draw(st.lists(st.integers(-5, 5), min_size=m, max_size=m)))
        inside = expr.modulo(a.it, m)
        return Numbered(expr.lookup(table, inside), each(lambda x: table[x % m], a.values))
    b = index(draw, where, depth - 1)
    return Numbered(expr.add(a.it, b.it), a.values + b.values)


def evaluated(e: Index | Poly, where: Space, evaluator: Evaluator | None = None) -> Array:
    """The numbers that an expression stands for, by `evaluate`."""
    evaluator = evaluator or Evaluator({})
    found = evaluator.index(e, where.grid) if isinstance(e, Index) else evaluator.poly(e, where.grid)
    return where.spread(found)


@dataclass(slots=True)
class Data:
    """Tensors with their elements, made up as they are read."""

    tensors: dict[Tensor, Array]
    rng: np.random.Generator

    @property
    def evaluator(self) -> Evaluator:
        return Evaluator(self.tensors)

    def make(self, sizes: Sequence[int], dtype: str) -> Tensor:
        made = tensor("argument", f"t{len(self.tensors)}", dtype, tuple(sizes))
        count = {"f32": (-8, 9), "i1": (0, 2), "i8": (-128, 128), "positive": (1, 9)}[dtype]
        self.tensors[made] = objects(self.rng.integers(*count, size=tuple(sizes)))
        if dtype == "f32":
            self.tensors[made] = each(lambda x: Fraction(x, 2), self.tensors[made])
        return made


def data(draw: Draw) -> Data:
    return Data({}, np.random.default_rng(draw(st.integers(0, 2**32 - 1))))


def read(draw: Draw, where: Space, known: Data, dtype: str = "f32") -> Numbered:
    """A tensor, old or new, at affine indices; guarded where they may lie outside."""
    wanted = [t for t in known.tensors if t.dtype == dtype]
    if wanted and draw(st.booleans()):
        source = draw(st.sampled_from(wanted))
    else:
        source = known.make(draw(st.lists(st.integers(1, 12), max_size=2)), dtype)
    at, inside, values = [], number(1), []
    for size in source.shape:
        e = affine(draw, where)
        inside = algebra.multiply(inside, guards.interval(e.it, 0, size - 1))
        at.append(e.it)
        values.append(e.values)
    elements = known.tensors[source]

    def element(*indices: int) -> Any:
        outside = any(not 0 <= i < n for i, n in zip(indices, source.shape, strict=True))
        return 0 if outside else elements[indices]

    numbers = where.spread(each(element, *values) if values else elements[()])
    return Numbered(algebra.multiply(inside, algebra.read(source, at)), numbers)


def truth(draw: Draw, where: Space, known: Data) -> Numbered:
    """A guard, or a boolean that is read."""
    if draw(st.integers(0, 3)) == 0:
        return read(draw, where, known, "i1")
    e = index(draw, where, 1)
    lo = draw(st.none() | st.integers(-6, 12))
    hi = draw(st.none() | st.integers(-6, 12))
    holds = each(lambda x: int((lo is None or lo <= x) and (hi is None or x <= hi)), e.values)
    return Numbered(guards.interval(e.it, lo, hi), holds)


FUNCTIONS = ("maximum", "minimum", "abs", "tanh:real->real", "positive", "zero", "less", "equal")


def poly(draw: Draw, where: Space, known: Data, depth: int = 2) -> Numbered:
    """A term of real numbers."""
    if depth == 0:
        kind = draw(st.sampled_from(("read", "read", "index", "number", "guard")))
        if kind == "read":
            return read(draw, where, known)
        if kind == "index":
            e = index(draw, where, 1)
            return Numbered(algebra.of_index(e.it), e.values)
        if kind == "guard":
            return truth(draw, where, known)
        c = Fraction(draw(st.integers(-6, 6)), draw(st.integers(1, 3)))
        return Numbered(number(c), where.spread(c))
    kind = draw(st.sampled_from(("leaf", "add", "multiply", "scale", "select", "not", "apply", "square")))
    if kind == "leaf":
        return poly(draw, where, known, 0)
    if kind == "not":
        a = truth(draw, where, known)
        return Numbered(algebra.logical_not(a.it), each(lambda x: 1 - x, a.values))
    a = poly(draw, where, known, depth - 1)
    if kind == "scale":
        c = Fraction(draw(st.integers(-4, 4)), draw(st.integers(1, 3)))
        return Numbered(algebra.scale(a.it, c), a.values * c)
    if kind == "square":
        return Numbered(algebra.power(a.it, 2), a.values * a.values)
    b = poly(draw, where, known, depth - 1)
    if kind == "add":
        return Numbered(algebra.add(a.it, b.it), a.values + b.values)
    if kind == "multiply":
        return Numbered(algebra.multiply(a.it, b.it), a.values * b.values)
    if kind == "select":
        c = truth(draw, where, known)
        return Numbered(
            algebra.select(c.it, a.it, b.it), each(lambda p, x, y: x if p else y, c.values, a.values, b.values)
        )
    name = draw(st.sampled_from(FUNCTIONS))
    arguments = (a, b) if name in ("maximum", "minimum", "less", "equal") else (a,)
    applied = apply(function(name), tuple(x.it for x in arguments))
    return Numbered(applied, each(lambda *xs: call(name, xs), *(x.values for x in arguments)))


def assert_equal(found: Array, wanted: Array, context: object = "") -> None:
    """Exactly, but for floats that transcendental functions gave."""
    close = each(lambda x, y: x == y or abs(float(x) - float(y)) <= 1e-9 * max(1.0, abs(float(y))), found, wanted)
    assert close.all(), f"{context}\nfound\n{found}\nwanted\n{wanted}"
