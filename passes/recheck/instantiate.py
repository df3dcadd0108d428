"""A term at one element of a small instance: sums are written out, and indices that depend on no tensor are numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from typing import Protocol

import numpy as np

from hlo_verify.index.expr import Var
from hlo_verify.passes.recheck.at_infinities import call
from hlo_verify.passes.recheck.extended import Arithmetic, Extended, Term, Value
from hlo_verify.passes.recheck.formulas import Graph
from hlo_verify.passes.recheck.graph import Node, Unknown, Whole
from hlo_verify.passes.recheck.plain import (
    Add,
    Affine,
    BudgetError,
    Call,
    Choose,
    Clamp,
    Element,
    Entry,
    Expr,
    Gate,
    Integer,
    Made,
    Num,
    OfIndex,
    Part,
    Power,
    Reduce,
    Row,
    Symbol,
    Times,
    children,
    indices,
    within,
)
from hlo_verify.passes.recheck.products import Products
from hlo_verify.passes.recheck.rulers import ends_of
from hlo_verify.program.allowed_values import Values
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms.functions import EXPONENTIAL, INFINITY, INVERSE, MULTIPLY, NAN
from hlo_verify.terms.term import Number


class Sizes(Protocol):
    """How large everything is in an instance (`shape_reduction.Instance`)."""

    def number(self, ruler: object, n: int) -> int: ...
    def pieces(self, v: Var) -> list[tuple[int, int, int]]: ...
    def size(self, v: Var) -> int: ...
    def place(self, node: Expr, k: int) -> object: ...
    def ruler_of(self, part: Part) -> object: ...


Env = Mapping[Var, int]


class Expansion:
    """Expands terms of one question into one graph."""

    def __init__(self, sizes: Sizes, graph: Graph) -> None:
        self.sizes = sizes
        self.graph = graph
        self.arithmetic = Arithmetic(graph)
        self.products = Products(graph)
        self.tensors: dict[Symbol, str] = {}
        self.steps = 0
        self._infinite: dict[int, bool] = {}
        self._free: dict[int, tuple[Var, ...]] = {}
        self._memo: dict[tuple[int, ...], Value] = {}
        self._plans: dict[tuple[int, object], tuple[int, list[tuple[Part, int, int, int | None]]]] = {}
        self._kept: list[object] = []

    def term(self, node: Expr, env: Env) -> Value:
        """A term where the variables have values."""
        key = (id(node), *(env[v] for v in self.free(node)))
        found = self._memo.get(key)
        if found is None:
            self.steps += 1
            within("recheck_steps", self.steps, "steps at the small instance")
            found = self._memo[key] = self._term(node, env)
        return found

    def free(self, node: Expr) -> tuple[Var, ...]:
        """The variables that a term depends on."""
        found = self._free.get(id(node))
        if found is None:
            variables: dict[Var, None] = {}
            for child in children(node):
                variables.update(dict.fromkeys(self.free(child)))
            for e in indices(node):
                self._variables(e, variables)
            if isinstance(node, Reduce | Row | Made):
                for v in node.bound:
                    variables.pop(v, None)
            found = self._free[id(node)] = tuple(variables)
            self._kept.append(node)
        return found

    def _writes_infinities(self, node: Expr) -> bool:
        """Whether an infinity, or what is none, is written in a term."""
        found = self._infinite.get(id(node))
        if found is None:
            if isinstance(node, Entry):
                found = node.values.dtype.kind not in "biu" and not bool(np.isfinite(node.values.astype(float)).all())
            elif isinstance(node, Call) and node.function in (INFINITY, NAN):
                found = True
            else:
                found = any(map(self._writes_infinities, children(node)))
            self._infinite[id(node)] = found
            self._kept.append(node)
        return found

    def _variables(self, e: Affine, found: dict[Var, None]) -> None:
        for part, _ in e.items:
            base = part.base
            if isinstance(base, Var):
                found[base] = None
            elif isinstance(base, Affine):
                self._variables(base, found)
            elif isinstance(base, Integer):
                found.update(dict.fromkeys(self.free(base.term)))
            else:
                self._variables(base.inner, found)

    def number(self, node: Expr, env: Env) -> Node:
        """A term that is a number wherever a program writes infinities. Raises `BudgetError` of any other."""
        found = self.term(node, env)
        if isinstance(found, Extended):
            raise BudgetError("an infinity in the place of an integer or a condition")
        return found

    def _term(self, node: Expr, env: Env) -> Value:
        graph = self.graph
        if isinstance(node, Num):
            return graph.number(node.value)
        if isinstance(node, Element):
            where = [self.index(e, self.sizes.place(node, k), env) for k, e in enumerate(node.indices)]
            return self._read(node.tensor, where)
        if isinstance(node, Add):
            return self._sum(node, env)
        if isinstance(node, Times):
            return self.arithmetic.collected([self._product(node, env)])
        if isinstance(node, Call) and node.function == MULTIPLY and not self._writes_infinities(node):
            factors = []
            for arg in node.args:
                factors.append(self.number(arg, env))
                if factors[-1] == graph.zero:
                    break
            return graph.multiply(factors)
        if isinstance(node, Call):
            return call(self.arithmetic, node.function, [self.term(a, env) for a in node.args])
        if isinstance(node, Power):
            return self._power(node, env)
        if isinstance(node, OfIndex):
            return graph.of_integer(self.index(node.index, self.sizes.place(node, 0), env))
        if isinstance(node, Gate):
            return self._gate(node, env)
        if isinstance(node, Choose):
            condition = self.number(node.condition, env)
            if condition in (graph.zero, graph.one):
                return self.term(node.a if condition == graph.one else node.b, env)
            return self.arithmetic.choose(condition, self.term(node.a, env), self.term(node.b, env))
        if isinstance(node, Entry):
            return self._entry(node, env)
        if isinstance(node, Row):
            return self._row(node, env)
        if isinstance(node, Made):
            return self._made(node, env)
        return self._reduce(node, env)

    def _read(self, source: Symbol, where: list[Whole]) -> Node:
        name = self.tensors.get(source)
        if name is None:
            name = self.tensors[source] = f"t{len(self.tensors)}"
            if source.assumed is not None:
                if source.assumed.says_more:
                    raise BudgetError(f"what is assumed of {source.name}: {source.assumed}")
                self.graph.assumed[name] = self._assumed(source, source.assumed)
        return self.graph.read(name, where, source.dtype if source.dtype in INTEGER_RANGES else "Real")

    def _assumed(self, source: Symbol, values: Values) -> Values:
        """The values that a tensor has in the instance; integers are measured as indices are."""
        if source.dtype not in INTEGER_RANGES:
            return values
        least, end = (self.sizes.number(("integer", source), n) for n in ends_of(values))
        return Values(least, end, (False, True))

    def _sum(self, node: Add, env: Env) -> Value:
        if not node.collects:
            return self.arithmetic.add([self.term(t, env) for t in node.terms])
        return self.arithmetic.collected([self._product(t, env) for t in node.terms])

    def _product(self, node: Expr, env: Env) -> Term:
        """A product, with the factors that are conditions: where one does not hold, nothing is computed."""
        number: Number = 1
        selecting: list[Node] = []
        factors: list[Value] = []
        for factor in node.factors if isinstance(node, Times) else [node]:
            if isinstance(factor, Num):
                number *= factor.value
                continue
            found = self.term(factor, env)
            if isinstance(found, Extended) or isinstance(factor, OfIndex | Entry | Power):
                factors.append(found)
            elif found == self.graph.zero and not isinstance(factor, Call):
                return Term(0, (), ())
            else:
                selecting.append(found)
        if not any(isinstance(factor, Extended) for factor in factors):
            return Term(number, (), (*selecting, *factors))
        conditions = [n for n in selecting if self.arithmetic.is_condition(n)]
        return Term(number, tuple(conditions), (*(n for n in selecting if n not in conditions), *factors))

    def _power(self, node: Power, env: Env) -> Value:
        n = node.exponent
        natural = isinstance(n, int) and n >= 0
        if isinstance(node.base, Call) and node.base.function == EXPONENTIAL and not natural:
            inner = self.term(node.base.args[0], env)
            return call(self.arithmetic, EXPONENTIAL, [self.arithmetic.scaled(inner, n)])
        base = self.term(node.base, env)
        if not isinstance(base, Extended):
            return self.graph.power(base, n)
        if not isinstance(n, int):
            raise BudgetError("a power of an infinity")
        found = self.arithmetic.multiply([base] * abs(n))
        return found if natural else call(self.arithmetic, INVERSE, [found])

    def _gate(self, node: Gate, env: Env) -> Node:
        ruler = self.sizes.place(node, 0)
        lo = None if node.lo is None else self.sizes.number(ruler, node.lo)
        hi = None if node.hi is None else self.sizes.number(ruler, node.hi + 1) - 1
        return self.graph.between(self.index(node.form, ruler, env), lo, hi)

    def _entry(self, node: Entry, env: Env) -> Value:
        at = self.index(node.at, self.sizes.place(node, 0), env)
        if not isinstance(at, int):
            raise BudgetError("a constant array read where a tensor says")
        value = node.values.reshape(-1)[at]
        dtype = getattr(value, "dtype", None)
        if dtype is not None and dtype.kind in "biu":
            return self.graph.number(int(value))
        x = float(value)
        if math.isnan(x):
            return self.arithmetic.nothing()
        if math.isinf(x):
            return self.arithmetic.infinity(1 if x > 0 else -1)
        return self.graph.number(Fraction(x))

    def _reduce(self, node: Reduce, env: Env) -> Value:
        digits = [(v, *piece) for v in node.bound for piece in self.sizes.pieces(v)]
        return self._over(node, digits, {**env, **dict.fromkeys(node.bound, 0)})

    def _over(self, node: Reduce, digits: list[tuple[Var, int, int, int]], env: dict[Var, int]) -> Value:
        """The reduction over the digits that are left, where the others have values."""
        if not digits:
            return self.term(node.body, env)
        (v, weight, count, whole), *rest = digits
        parts = [self._over(node, rest, {**env, v: env[v] + weight * n}) for n in range(count)]
        if node.reducer == "sum":
            if count < whole:  # more infinities of those that are there change nothing
                beside = [self.arithmetic.extended(n).number for n in parts[count // 2 - 1 : count // 2 + 1]]
                parts.append(self.graph.add([(self.products.common(*beside), whole - count)]))
            return self.arithmetic.add(parts)
        if node.reducer == "product":
            if count < whole:
                raise BudgetError("a product over a dimension that would be made smaller")
            return self.arithmetic.multiply(parts)
        return self.arithmetic.extremum(node.reducer, parts)

    def _row(self, node: Row, env: Env) -> Node:
        digits = [[(v, weight, n) for n in range(count)] for v in node.bound for weight, count, _ in self._pieces(v)]
        bodies, initial = node.bodies[:2], node.bodies[2:]
        rows = []
        for place in product(*digits):
            here = {**env, **dict.fromkeys(node.bound, 0)}
            for v, weight, n in place:
                here[v] += weight * n
            rows.append(tuple(self._grounded(body, here) for body in bodies))
        if initial:
            rows.append(tuple(self._grounded(body, env) for body in initial))
            return self.graph.best(node.function, [(row[0], row[1]) for row in rows])
        return self.graph.row(node.function, [n for row in rows for n in row])

    def _made(self, node: Made, env: Env) -> Node:
        given = []
        for body in node.bodies:
            bound = [v for v in node.bound if v in self.free(body)]
            for place in product(*(range(self.sizes.size(v)) for v in bound)):
                given.append(self._grounded(body, {**env, **dict(zip(bound, place, strict=True))}))
        at = [self.index(e, self.sizes.place(node, k), env) for k, e in enumerate(node.at)]
        return self.graph.row(node.function, [*given, *map(self.graph.of_integer, at)])

    def _grounded(self, node: Expr, env: Env) -> Node:
        return self.arithmetic.grounded(self.term(node, env))

    def _pieces(self, v: Var) -> list[tuple[int, int, int]]:
        """The digits of a variable from the highest down: their values are in the order of the variable's."""
        return self.sizes.pieces(v)[::-1]

    def index(self, e: Affine, ruler: object, env: Env) -> Whole:
        """An index expression on a ruler."""
        key = (id(e), ruler)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._plan(e, ruler)
            self._kept.append(e)
        const, items = plan
        return self.graph.affine(((self._digit(part, low, radix, env), c) for part, c, low, radix in items), const)

    def _plan(self, e: Affine, ruler: object) -> tuple[int, list[tuple[Part, int, int, int | None]]]:
        items = []
        for part, c in e.items:
            own = self.sizes.ruler_of(part)
            low = self.sizes.number(own, part.low)
            radix = None if part.radix is None else self.sizes.number(own, part.low * part.radix) // low
            items.append((part, self.sizes.number(ruler, c), low, radix))
        return self.sizes.number(ruler, e.const), items

    def _digit(self, part: Part, low: int, radix: int | None, env: Env) -> Whole:
        base = part.base
        if isinstance(base, Var):
            value: Whole = env[base]
        elif isinstance(base, Affine):
            value = self.index(base, self.sizes.ruler_of(part), env)
        elif isinstance(base, Integer):
            value = self._integer(self.number(base.term, env))
        elif isinstance(base, Clamp):
            ruler = self.sizes.ruler_of(part)
            inner = self.index(base.inner, ruler, env)
            lo, hi = self.sizes.number(ruler, base.lo), self.sizes.number(ruler, base.hi + 1) - 1
            value = max(lo, min(inner, hi)) if isinstance(inner, int) else self.graph.operation("clamp", inner, lo, hi)
        else:
            inner = self.index(base.inner, ("entries", id(base)), env)
            if isinstance(inner, Unknown):
                value = self.graph.operation("table", base.values, inner)
            else:
                value = base.values[min(max(inner, 0), len(base.values) - 1)]
        if isinstance(value, int):
            quotient = value // low
            return quotient if radix is None else quotient % radix
        if low == 1 and radix is None:
            return value
        return self.graph.operation("digit", value, low, radix)

    def _integer(self, n: Node) -> Whole:
        value = self.graph.value(n)
        if value is not None and value.denominator == 1:
            return int(value)
        return self.graph.operation("integer", n)
