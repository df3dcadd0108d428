"""Terms written out plainly: what the re-check reasons about, with none of the prover's normal forms.

An expression is a tree over reads of tensors at index expressions; nothing is sorted, merged or cancelled when it is
built. `Opening` writes the prover's terms this way, with chosen definitions taken apart; `passes.meanings` writes the
meaning of an operation this way. A digit of an index expression is `(base div low) mod radix`; a radix of None is no
remainder. Indices and elements are mathematical integers and reals here: that integers wrap is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hlo_verify.index.expr import UNBOUNDED, Var
from hlo_verify.limits import allows, limit_of
from hlo_verify.program.allowed_values import Values
from hlo_verify.terms.functions import Function
from hlo_verify.terms.term import Number


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """`const + sum of coefficient * part`."""

    const: int
    items: tuple[tuple[Part, int], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Clamp:
    """`max(lo, min(inner, hi))`."""

    inner: Affine
    lo: int
    hi: int


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """`values[inner]`."""

    values: tuple[int, ...]
    inner: Affine


@dataclass(frozen=True, slots=True, eq=False)
class Integer:
    """The value of an integer term."""

    term: Expr


Base = Var | Affine | Clamp | Table | Integer


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """`(base div low) mod radix`."""

    base: Base
    low: int = 1
    radix: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Num:
    """A number."""

    value: Number


@dataclass(frozen=True, slots=True, eq=False)
class Symbol:
    """A tensor of which nothing is known here but its element type, what kind of tensor the prover takes it for, of an
    argument which values the user says that it has, and between which numbers a constant's floats are."""

    name: str
    kind: str
    dtype: str
    assumed: Values | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Element:
    """`tensor[indices]`, a free function of its indices."""

    tensor: Symbol
    indices: tuple[Affine, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """An element of a constant array at a row-major position."""

    values: Any
    at: Affine


@dataclass(frozen=True, slots=True, eq=False)
class Add:
    """The sum of some terms."""

    terms: tuple[Expr, ...]
    collects: bool = False
    """Whether equal terms add up before any is computed, as in the prover's terms: `-inf + c * inf` is 0 where c is."""


@dataclass(frozen=True, slots=True, eq=False)
class Times:
    """The product of some terms. A factor that is 0 or 1 comes before what it guards."""

    factors: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Power:
    """`base ** exponent`; only an exponential has exponents that are no natural numbers."""

    base: Expr
    exponent: Number


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A function of terms."""

    function: Function
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class OfIndex:
    """An index expression as a number."""

    index: Affine


@dataclass(frozen=True, slots=True, eq=False)
class Gate:
    """1 where `lo <= form <= hi`, else 0; None is no bound."""

    form: Affine
    lo: int | None
    hi: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Choose:
    """`a` where the condition is 1, `b` where it is 0."""

    condition: Expr
    a: Expr
    b: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Reduce:
    """The sum, product, maximum or minimum of a term over variables."""

    reducer: str
    bound: tuple[Var, ...]
    body: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """`argmax` or `argmin` of terms for all values of variables, in their order: the index of the best of pairs.

    `bodies` are value and index, and an initial pair.
    """

    function: str
    bound: tuple[Var, ...]
    bodies: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """What a function that is known by its name makes of terms, each for all values of those of the variables that it
    depends on, in their order, at some indices: a fold, elements in an order that a region says."""

    function: str
    bound: tuple[Var, ...]
    bodies: tuple[Expr, ...]
    at: tuple[Affine, ...]


Expr = Num | Element | Entry | Add | Times | Power | Call | OfIndex | Gate | Choose | Reduce | Row | Made

ZERO, ONE = Num(0), Num(1)

GREATER = Function("greater", ("real", "real"), "i1")
"""Whether a number, or an infinity, is greater than another."""


def whole(variable: Var) -> Affine:
    """The variable; one with a single value is 0."""
    return Affine(0, ((Part(variable), 1),)) if variable.size > 1 else Affine(0)


def sum_of(*parts: tuple[Affine, int], const: int = 0) -> Affine:
    """The sum of multiples of index expressions, and of a constant."""
    items: dict[tuple[int, int, int | None], tuple[Part, int]] = {}
    for e, factor in parts:
        const += e.const * factor
        for part, c in e.items:
            key = (id(part.base), part.low, part.radix)
            before = items[key][1] if key in items else 0
            items[key] = (part, before + c * factor)
    return Affine(const, tuple((part, c) for part, c in items.values() if c))


def plus(e: Affine, offset: int) -> Affine:
    """`e + offset`."""
    return Affine(e.const + offset, e.items)


def digit(e: Affine, low: int, radix: int | None = None) -> Affine:
    """`(e div low) mod radix`, of a digit the digit within it."""
    if low == 1 and radix is None:
        return e
    if radix == 1:
        return Affine(0)
    if not e.items:
        quotient = e.const // low
        return Affine(quotient if radix is None else quotient % radix)
    if len(e.items) == 1 and e.items[0][1] == 1 and not e.const:
        part = e.items[0][0]
        if part.radix is None:
            return Affine(0, ((Part(part.base, part.low * low, radix), 1),))
        if part.radix % (low * (radix or 1)) == 0:
            return Affine(0, ((Part(part.base, part.low * low, radix or part.radix // low), 1),))
    return Affine(0, ((Part(e, low, radix), 1),))


def clamp(e: Affine, lo: int, hi: int) -> Affine:
    """`max(lo, min(e, hi))`."""
    if not e.items:
        return Affine(max(lo, min(e.const, hi)))
    return Affine(0, ((Part(Clamp(e, lo, hi)), 1),))


def table(values: Sequence[int], e: Affine) -> Affine:
    """`values[e]`."""
    if not e.items and 0 <= e.const < len(values):
        return Affine(int(values[e.const]))
    return Affine(0, ((Part(Table(tuple(int(v) for v in values), e)), 1),))


def as_affine(term: Expr) -> Affine:
    """The value of an integer term as an index expression."""
    if isinstance(term, OfIndex):
        return term.index
    if isinstance(term, Num) and isinstance(term.value, int):
        return Affine(term.value)
    if isinstance(term, Add):
        return sum_of(*((as_affine(t), 1) for t in term.terms))
    if isinstance(term, Times):
        numbers = [f.value for f in term.factors if isinstance(f, Num)]
        rest = [f for f in term.factors if not isinstance(f, Num)]
        if len(rest) == 1 and all(isinstance(n, int) for n in numbers):
            factor = 1
            for n in numbers:
                factor *= int(n)
            return sum_of((as_affine(rest[0]), factor))
    return Affine(0, ((Part(Integer(term)), 1),))


def add(*terms: Expr) -> Expr:
    """The sum."""
    return terms[0] if len(terms) == 1 else Add(terms)


def times(*factors: Expr) -> Expr:
    """The product."""
    return factors[0] if len(factors) == 1 else Times(factors)


def minus(a: Expr, b: Expr) -> Expr:
    """`a - b`."""
    return Add((a, Times((Num(-1), b))))


def children(node: Expr) -> tuple[Expr, ...]:
    """The terms directly inside a term; those of its index expressions are not among them."""
    if isinstance(node, Add):
        return node.terms
    if isinstance(node, Times):
        return node.factors
    if isinstance(node, Call):
        return node.args
    if isinstance(node, Power):
        return (node.base,)
    if isinstance(node, Choose):
        return node.condition, node.a, node.b
    if isinstance(node, Row | Made):
        return node.bodies
    return (node.body,) if isinstance(node, Reduce) else ()


def indices(node: Expr) -> tuple[Affine, ...]:
    """The index expressions directly inside a term."""
    if isinstance(node, Element):
        return node.indices
    if isinstance(node, Entry):
        return (node.at,)
    if isinstance(node, OfIndex):
        return (node.index,)
    if isinstance(node, Made):
        return node.at
    return (node.form,) if isinstance(node, Gate) else ()


class BudgetError(Exception):
    """A question that would grow too large."""


def within(limit: str, count: int, what: str) -> None:
    """Raise `BudgetError` where there are more of them than the limit of that name allows."""
    if not allows(limit, count):
        raise BudgetError(f"more than {limit_of(limit)} {what}")


def row_major(shape: Sequence[int], where: Sequence[Affine]) -> Affine:
    """The position of an element among all, the last dimension running fastest."""
    parts = []
    stride = 1
    for size, e in zip(reversed(shape), reversed(where), strict=True):
        parts.append((e, stride))
        stride *= size
    return sum_of(*parts)


def tensors_of(terms: Iterable[Expr]) -> set[Symbol]:
    """Every tensor that terms read, in index expressions too."""
    return {node.tensor for node in nodes_of(terms) if isinstance(node, Element)}


def nodes_of(terms: Iterable[Expr]) -> list[Expr]:
    """Every term inside some terms, those in index expressions too, each once."""
    found: dict[int, Expr] = {}
    todo = list(terms)
    while todo:
        node = todo.pop()
        if id(node) not in found:
            found[id(node)] = node
            todo.extend(children(node))
            for e in indices(node):
                todo.extend(_inside(e))
    return list(found.values())


def _inside(e: Affine) -> list[Expr]:
    found: list[Expr] = []
    for part, _ in e.items:
        base = part.base
        if isinstance(base, Integer):
            found.append(base.term)
        elif isinstance(base, Affine):
            found.extend(_inside(base))
        elif isinstance(base, Clamp | Table):
            found.extend(_inside(base.inner))
    return found


def is_unbounded(v: Var) -> bool:
    """Whether a variable takes every integer."""
    return v.size >= UNBOUNDED


def fraction(value: Number) -> Fraction:
    """A number as an exact fraction."""
    return Fraction(value)
