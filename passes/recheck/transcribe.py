"""The prover's terms written out plainly (`passes.recheck.plain`), with chosen definitions taken apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque, Var
from hlo_verify.passes.recheck.plain import (
    ZERO,
    Add,
    Affine,
    Call,
    Element,
    Entry,
    Expr,
    Gate,
    Made,
    Num,
    OfIndex,
    Power,
    Reduce,
    Row,
    Symbol,
    as_affine,
    clamp,
    digit,
    row_major,
    sum_of,
    table,
    times,
    whole,
    within,
)
from hlo_verify.program.allowed_values import Values
from hlo_verify.program.element_types import is_float
from hlo_verify.terms.functions import INFINITY, NAN, ZERO_TIMES
from hlo_verify.terms.term import Apply, Atom, Guard, Ix, Poly, Read, Tensor, value_of

BEST = frozenset({"argmax", "argmin"})

TRANSPARENT = frozenset({"term", "sum", "max", "min", "product"}) | BEST
"""Kinds of definitions whose meaning is written here."""


class Functions:
    """Names of the functions that definitions of any other kind are, of their elements."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], str] = {}

    def name(self, source: Tensor) -> str:
        """A name: definitions that differ in nothing but their elements have the same."""
        key = (source.kind, source.attributes, tuple(v.size for v in source.bound), len(source.bodies), source.own)
        return self._known.setdefault(key, f"{source.kind} {len(self._known)}")


class Opening:
    """Writes the prover's terms plainly; reads of the `opened` definitions are what they are defined to be."""

    def __init__(self, opened: frozenset[Tensor], constants: bool = False, functions: Functions | None = None) -> None:
        self.opened = opened
        self.functions = functions or Functions()
        self.symbols: dict[Tensor, Symbol] = {}
        """The tensors that were read, as they are called in what was written."""
        self._written: dict[tuple[object, ...], tuple[Expr, tuple[Affine, ...]]] = {}
        self.constants = constants
        """Whether elements of constant arrays are numbers; else such an array is as any other tensor."""

    def symbol(self, source: Tensor) -> Symbol:
        """A tensor by a name."""
        found = self.symbols.get(source)
        if found is None:
            assumed = _between(source) if source.kind == "constant" else source.assumed
            found = self.symbols[source] = Symbol(source.name, source.kind, source.dtype, assumed)
        return found

    def definition(self, source: Tensor, where: tuple[Affine, ...]) -> Expr:
        """What a definition is at some indices. Raises `BudgetError` past so many of them."""
        key = (source, *map(_key, where))
        found = self._written.get(key)
        if found is None:
            within("recheck_openings", len(self._written) + 1, "definitions to take apart")
            env: dict[Var, Affine] = dict(zip(source.params, where, strict=False))
            bound = tuple(expr.fresh("f", v.size) for v in source.bound)
            env.update(zip(source.bound, map(whole, bound), strict=True))
            bodies = tuple(self.term(body, env) for body in source.bodies)
            if source.kind in BEST:
                made: Expr = Row(source.kind, bound, bodies)
            elif source.kind not in TRANSPARENT:
                made = Made(self.functions.name(source), bound, bodies, where[len(source.params) :])
            else:
                made = bodies[0] if source.kind == "term" else Reduce(source.kind, bound, bodies[0])
            found = self._written[key] = made, where
        return found[0]

    def term(
        self,
        p: Poly,
        env: Mapping[Var, Affine],
        instead: Mapping[Tensor, Callable[[tuple[Affine, ...]], Expr]] | None = None,
    ) -> Expr:
        """A term where some variables are index expressions; the others are themselves.

        What it reads itself of some tensors, not what its definitions read of them, may be something else `instead`.
        """
        return _Scope(self, env, instead or {}).poly(p)


class _Scope:
    def __init__(
        self,
        opening: Opening,
        env: Mapping[Var, Affine],
        instead: Mapping[Tensor, Callable[[tuple[Affine, ...]], Expr]],
    ) -> None:
        self.opening = opening
        self.env = env
        self.instead = instead
        self.memo: dict[int, Expr] = {}
        self.indices: dict[int, Affine] = {}

    def poly(self, p: Poly) -> Expr:
        found = self.memo.get(p.uid)
        if found is None:
            terms = []
            for mono, c in p.items:
                factors: list[Expr] = [Num(c)] if c != 1 or not mono else []
                gates = [item for item in mono if item[0].boolean]
                rest = [item for item in mono if not item[0].boolean]
                for atom, n in (*gates, *rest):
                    factors.append(self.atom(atom) if n == 1 else Power(self.atom(atom), n))
                terms.append(times(*factors))
            found = self.memo[p.uid] = _sum(terms)
        return found

    def atom(self, a: Atom) -> Expr:
        found = self.memo.get(a.uid)
        if found is None:
            if isinstance(a, Read):
                found = self._read(a)
            elif isinstance(a, Ix):
                found = OfIndex(self.index(a.index))
            elif isinstance(a, Guard):
                found = Gate(self.index(a.form), a.lo, a.hi)
            else:
                found = self._call(a)
            self.memo[a.uid] = found
        return found

    def _call(self, a: Apply) -> Expr:
        if a.function == ZERO_TIMES and not _writes_infinities(a.args):
            return ZERO  # a claim is checked where all else that takes part is a number
        args = tuple(self.poly(p) for p in a.args)
        return args[0] if a.function.name == "wrap" else Call(a.function, args)

    def _read(self, a: Read) -> Expr:
        source = a.tensor
        where = tuple(self.index(e) for e in a.indices)
        if source in self.instead:
            return self.instead[source](where)
        if source in self.opening.opened:
            return self.opening.definition(source, where)
        if self.opening.constants and source.kind == "constant":
            return Entry(source.values, row_major(source.shape, where))
        return Element(self.opening.symbol(source), where)

    def index(self, e: Index) -> Affine:
        found = self.indices.get(e.uid)
        if found is None:
            parts = [(self._part(atom), c) for atom, c in e.items]
            found = self.indices[e.uid] = sum_of(*parts, const=e.const)
        return found

    def _part(self, atom: Digit | Opaque) -> Affine:
        if isinstance(atom, Digit):
            base = self.env.get(atom.var)
            return digit(whole(atom.var) if base is None else base, atom.low, None if atom.top else atom.radix)
        if atom.operator == "value":
            return as_affine(self.poly(value_of(atom)))
        inner = self.index(atom.exprs[0])
        if atom.operator == "mod":
            return digit(inner, 1, atom.args[0])
        if atom.operator == "div":
            return digit(inner, atom.args[0])
        if atom.operator == "clamp":
            return clamp(inner, *atom.args)
        return table(atom.args[0], inner)


def _sum(terms: list[Expr]) -> Expr:
    if len(terms) < 2:
        return terms[0] if terms else ZERO
    return Add(tuple(terms), collects=True)


def _writes_infinities(terms: Iterable[Poly]) -> bool:
    """Whether an infinity is written in terms, or inside of their functions."""
    todo, seen = list(terms), set[int]()
    while todo:
        p = todo.pop()
        if p.uid not in seen:
            seen.add(p.uid)
            functions = [atom for mono, _ in p.items for atom, _ in mono if isinstance(atom, Apply)]
            if any(atom.function in (INFINITY, NAN) for atom in functions):
                return True
            todo += [arg for atom in functions for arg in atom.args]
    return False


def _key(e: Affine) -> tuple[object, ...]:
    return e.const, *((id(part.base), part.low, part.radix, c) for part, c in e.items)


def _between(source: Tensor) -> Values | None:
    """From the least to the greatest of a constant's floats; None of other types, and where some are no numbers."""
    if source.values is None or not source.values.size or not is_float(source.dtype):
        return None
    elements = source.values.astype(float)
    if not np.isfinite(elements).all():
        return None
    return Values(Fraction(float(elements.min())), Fraction(float(elements.max())))
