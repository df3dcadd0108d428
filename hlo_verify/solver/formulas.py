"""Formulas over a small instance: a graph of real and integer operations, equal ones shared, written as SMT-LIB.

Building applies only what holds by the names of the operations: sums and products are flat and in one order, numbers
are folded, and the laws of functions (`exp(a + b) = exp(a) exp(b)`, `1/(c*a*b) = (1/c) (1/a) (1/b)`, ...) are applied
to the arguments that occur. Whether two formulas are equal is for Z3 to say (`solver.backend`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from typing import Any

from hlo_verify.solver.plain import BudgetError
from hlo_verify.terms.term import BOOLEAN_FUNCTIONS, Number

Node = int
Monomial = tuple[tuple[Node, int], ...]
Polynomial = dict[Monomial, Number]

EXPANSION = 100
"""The most monomials that an argument of a function is multiplied out to."""

LONGEST = 1500
"""The most monomials of a sum that is looked at for what does not depend on its variable."""

LIMIT = 25_000
"""The most nodes of a question."""

BOOLEAN = frozenset({"between", "greater", "is_zero"})

COMMUTATIVE = frozenset({"and", "or", "xor", "equal"})


@dataclass(frozen=True, slots=True)
class Unknown:
    """An integer that depends on what tensors hold."""

    node: Node


Whole = int | Unknown


class Graph:
    """Nodes are numbers; equal ones have the same. A node's operation and operands are `nodes[n]`."""

    def __init__(self) -> None:
        self.nodes: list[tuple[Any, ...]] = []
        self._known: dict[tuple[Any, ...], Node] = {}
        self._expanded: dict[Node, Polynomial | None] = {}
        self._made_of: dict[Node, frozenset[Node]] = {}
        self.zero, self.one = self.number(0), self.number(1)
        self.infinity = self._node(("symbol", "infinity"))

    def _node(self, key: tuple[Any, ...]) -> Node:
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self.nodes)
            self.nodes.append(key)
            if found > LIMIT:
                raise BudgetError(f"more than {LIMIT} terms at the small instance")
        return found

    def number(self, value: Number) -> Node:
        return self._node(("number", value.numerator if value.denominator == 1 else value))

    def value(self, n: Node) -> Number | None:
        """The value of a number, else None."""
        node = self.nodes[n]
        return node[1] if node[0] == "number" else None

    # integers

    def affine(self, parts: Iterable[tuple[Whole, int]], const: int) -> Whole:
        """The sum of multiples of integers; known where all of them are."""
        sums: dict[Node, int] = {}
        for e, c in parts:
            if isinstance(e, int):
                const += c * e
                continue
            node = self.nodes[e.node]
            if node[0] == "affine":
                const += c * node[1]
                for n, k in node[2]:
                    sums[n] = sums.get(n, 0) + k * c
            else:
                sums[e.node] = sums.get(e.node, 0) + c
        live = tuple(sorted((n, c) for n, c in sums.items() if c))
        if not const and len(live) == 1 and live[0][1] == 1:
            return Unknown(live[0][0])
        return Unknown(self._node(("affine", const, live))) if live else const

    def operation(self, kind: str, *args: object) -> Unknown:
        """An integer operation (`digit`, `clamp`, `table`, `integer`) on what is not known."""
        return Unknown(self._node((kind, *args)))

    def read(self, name: str, where: Sequence[Whole], sort: str) -> Node:
        """An element of a tensor; `sort` is Real, or an integer type, whose range it then has."""
        return self._node(("read", name, tuple(where), sort))

    def of_integer(self, e: Whole) -> Node:
        """An integer as a number."""
        return self.number(e) if isinstance(e, int) else self._node(("real", e.node))

    def between(self, e: Whole, lo: int | None, hi: int | None) -> Node:
        """1 where an integer lies between two bounds."""
        if isinstance(e, int):
            return self.one if (lo is None or lo <= e) and (hi is None or e <= hi) else self.zero
        node = self.nodes[e.node]
        if node[0] == "affine":  # lo <= c + e <= hi is lo - c <= e <= hi - c, and c - hi <= -e <= c - lo
            const, sign = node[1], 1 if node[2][0][1] > 0 else -1
            rest = self.affine([(e, sign)], -sign * const)
            assert isinstance(rest, Unknown)
            ends = (None if lo is None else sign * (lo - const)), (None if hi is None else sign * (hi - const))
            lo, hi = ends if sign > 0 else ends[::-1]
            e = rest
        return self._node(("between", e.node, lo, hi))

    # reals

    def is_boolean(self, n: Node) -> bool:
        """Whether a node is 0 or 1."""
        node = self.nodes[n]
        if node[0] == "call" and str(node[1]).partition(":")[0] in BOOLEAN_FUNCTIONS:
            return True
        return node[0] in BOOLEAN or (node[0] == "read" and node[3] == "i1") or n in (self.zero, self.one)

    def add(self, parts: Iterable[tuple[Node, Number]]) -> Node:
        """A linear combination."""
        const: Number = 0
        sums: dict[Node, Number] = {}
        for n, c in parts:
            node = self.nodes[n]
            if node[0] == "number":
                const += c * node[1]
            elif node[0] == "sum":
                const += c * node[1]
                for m, k in node[2]:
                    sums[m] = sums.get(m, 0) + c * k
            else:
                sums[n] = sums.get(n, 0) + c
        live = tuple(sorted((n, c) for n, c in sums.items() if c))
        if not live:
            return self.number(const)
        if not const and len(live) == 1 and live[0][1] == 1:
            return live[0][0]
        return self._node(("sum", const, live))

    def multiply(self, factors: Sequence[Node]) -> Node:
        """A product."""
        coefficient: Number = 1
        powers: dict[Node, int] = {}
        exponents: dict[Node, Fraction] = {}
        todo = list(factors)
        while todo:
            n = todo.pop()
            node = self.nodes[n]
            if node[0] == "number":
                coefficient *= node[1]
            elif node[0] == "product":
                for m, k in node[1]:
                    todo.extend([m] * k)
            elif node[0] == "sum" and not node[1] and len(node[2]) == 1:
                ((m, c),) = node[2]
                coefficient *= c
                todo.append(m)
            elif node[0] == "exp":
                exponents[node[1]] = exponents.get(node[1], Fraction(0)) + node[2]
            else:
                powers[n] = 1 if self.is_boolean(n) else powers.get(n, 0) + 1
        if not coefficient:
            return self.zero
        for m, exponent in exponents.items():
            if exponent:
                powers[self._node(("exp", m, exponent))] = 1
        return self._scaled(self._product(powers), coefficient)

    def _product(self, powers: dict[Node, int]) -> Node:
        live = tuple(sorted(powers.items()))
        if not live:
            return self.one
        if len(live) == 1 and live[0][1] == 1:
            return live[0][0]
        return self._node(("product", live))

    def _scaled(self, n: Node, c: Number) -> Node:
        return n if c == 1 else self.add([(n, c)])

    def choose(self, condition: Node, a: Node, b: Node) -> Node:
        """`a` where the condition is 1, else `b`."""
        if a == b or condition == self.one:
            return a
        return b if condition == self.zero else self._node(("choose", condition, a, b))

    def positive(self, n: Node) -> Node:
        c = self.value(n)
        if c is not None:
            return self.one if c > 0 else self.zero
        return self._node(("greater", n))

    def is_zero(self, n: Node) -> Node:
        c = self.value(n)
        if c is not None:
            return self.one if c == 0 else self.zero
        return self._node(("is_zero", n))

    def extremum(self, kind: str, args: Iterable[Node]) -> Node:
        """The greatest (`max`) or least (`min`) of some numbers; infinity is larger than all others."""
        found = set(args)
        for n in list(found):
            sign = self._infinite(n)
            if sign and len(found) > 1:
                if (sign > 0) == (kind == "max"):
                    return n
                found.discard(n)
        if len(found) == 1:
            return found.pop()
        numbers = [c for c in map(self.value, found) if c is not None]
        if len(numbers) > 1:
            found = {n for n in found if self.value(n) is None}
            found.add(self.number(max(numbers) if kind == "max" else min(numbers)))
        return self._node((kind, tuple(sorted(found)))) if len(found) > 1 else found.pop()

    def _infinite(self, n: Node) -> int:
        if n == self.infinity:
            return 1
        node = self.nodes[n]
        if node[0] == "sum" and len(node[2]) == 1 and node[2][0][0] == self.infinity:
            return 1 if node[2][0][1] > 0 else -1
        return 0

    def power(self, n: Node, exponent: Number) -> Node:
        if isinstance(exponent, int) and exponent >= 0:
            return self.multiply([n] * exponent)
        node = self.nodes[n]
        if node[0] == "exp":
            return self.multiply([self._node(("exp", node[1], node[2] * Fraction(exponent)))])
        if node[0] == "product" and all(self.nodes[m][0] == "exp" for m, _ in node[1]):
            return self.multiply([self.power(m, Fraction(exponent) * k) for m, k in node[1]])
        return self._node(("call", "power", (n, self.number(exponent))))

    # functions

    def expand(self, n: Node) -> Polynomial | None:
        """A node multiplied out; None if that is long."""
        if n not in self._expanded:
            self._expanded[n] = self._expand(n)
        return self._expanded[n]

    def _expand(self, n: Node) -> Polynomial | None:
        node = self.nodes[n]
        total: Polynomial = {}
        if node[0] == "number":
            return {(): node[1]} if node[1] else {}
        if node[0] == "sum":
            if node[1]:
                total[()] = node[1]
            for m, c in node[2]:
                part = self.expand(m)
                if part is None:
                    return None
                for mono, k in part.items():
                    total[mono] = total.get(mono, 0) + c * k
        elif node[0] == "product":
            total = {(): 1}
            for m, k in node[1]:
                part = self.expand(m)
                if part is None:
                    return None
                for _ in range(k):
                    total = self._multiplied(total, part)
                    if len(total) > EXPANSION:
                        return None
        else:
            return {((n, 1),): 1}
        total = {mono: c for mono, c in total.items() if c}
        return total if len(total) <= EXPANSION else None

    def _multiplied(self, a: Polynomial, b: Polynomial) -> Polynomial:
        total: Polynomial = {}
        for ma, ca in a.items():
            for mb, cb in b.items():
                mono = self._times(ma, mb)
                total[mono] = total.get(mono, 0) + ca * cb
        return total

    def _times(self, a: Monomial, b: Monomial) -> Monomial:
        node = self.multiply([n for n, k in (*a, *b) for _ in range(k)])
        if node == self.one:
            return ()
        found = self.nodes[node]
        return found[1] if found[0] == "product" else ((node, 1),)

    def common(self, a: Node, b: Node) -> Node:
        """What two sums have in common when they are multiplied out.

        A product that is in both is made of what both are made of: everything else counts as 0 from the start.
        """
        if a == b:
            return a
        shared = self._leaves(a) & self._leaves(b)
        p, q = self._within(a, shared, {}), self._within(b, shared, {})
        return self.of_monomials({mono: c for mono, c in p.items() if q.get(mono) == c})

    def same_multiplied_out(self, a: Node, b: Node) -> bool:
        """Whether two nodes are one polynomial: the exact normal form of a small instance. False also if it is long."""
        shared = self._leaves(a) | self._leaves(b)
        try:
            return self._within(a, shared, {}) == self._within(b, shared, {})
        except BudgetError:
            return False

    def _leaves(self, n: Node) -> frozenset[Node]:
        """What a node is made of by sums and products."""
        found = self._made_of.get(n)
        if found is None:
            node = self.nodes[n]
            if node[0] in ("sum", "product"):
                parts = node[2] if node[0] == "sum" else node[1]
                found = frozenset().union(*(self._leaves(m) for m, _ in parts))
            else:
                found = frozenset((n,))
            self._made_of[n] = found
        return found

    def _within(self, n: Node, shared: frozenset[Node], memo: dict[Node, Polynomial]) -> Polynomial:
        """A node multiplied out, without the products that have a factor that is neither shared nor an exponential."""
        found = memo.get(n)
        if found is not None:
            return found
        node = self.nodes[n]
        total: Polynomial = {}
        if node[0] == "sum":
            if node[1]:
                total[()] = node[1]
            for m, c in node[2]:
                for mono, k in self._within(m, shared, memo).items():
                    total[mono] = total.get(mono, 0) + c * k
        elif node[0] == "product":
            total = {(): 1}
            for m, k in node[1]:
                part = self._within(m, shared, memo)
                for _ in range(k):
                    total = self._multiplied(total, part)
        elif node[0] == "number":
            total = {(): node[1]}
        elif n in shared or node[0] == "exp":
            total = {((n, 1),): 1}
        total = {mono: c for mono, c in total.items() if c}
        if len(total) > LONGEST:
            raise BudgetError("sums too long to see what does not depend on a dimension")
        memo[n] = total
        return total

    def of_monomials(self, p: Polynomial) -> Node:
        """The sum of products, in one order."""
        return self.add((self._product(dict(mono)), c) for mono, c in p.items())

    def call(self, function: str, args: Sequence[Node]) -> Node:
        """A function of terms, by its law if it has one; of a choice, the choice of its values."""
        for k, n in enumerate(args):
            node = self.nodes[n]
            if node[0] == "choose":
                a, b = ([*args[:k], m, *args[k + 1 :]] for m in node[2:])
                return self.choose(node[1], self.call(function, a), self.call(function, b))
        if function == "exponential":
            return self._exponential(args[0])
        if function == "inverse":
            return self._inverse(args[0])
        if function == "log":
            return self._log(args[0])
        if function == "infinity":
            return self.infinity
        if function == "sqrt" and args[0] in (self.zero, self.one):
            return args[0]
        if function in ("maximum", "minimum"):
            return self.extremum(function[:3], args)
        if function == "positive":
            return self.positive(args[0])
        if function == "zero":
            return self.is_zero(args[0])
        if function.startswith("power:real"):
            exponent = self.value(args[1])
            if exponent is not None and exponent in range(5):
                return self.multiply([args[0]] * int(exponent))
        if function.partition(":")[0] in COMMUTATIVE:
            args = sorted(args)
        expanded = [self.expand(n) for n in args]
        plain = [n if p is None else self.of_monomials(p) for n, p in zip(args, expanded, strict=True)]
        return self._node(("call", function, tuple(plain)))

    def _exponential(self, n: Node) -> Node:
        # exp(a + c*b) = exp(a) * exp(c*b); exp(a - infinity) = 0
        p = self.expand(n)
        if p is None:
            return self._node(("exp", n, Fraction(1)))
        infinite = p.get(((self.infinity, 1),))
        if infinite is not None and infinite < 0:
            return self.zero
        return self.multiply([self._node(("exp", self._product(dict(mono)), c)) for mono, c in p.items()])

    def _inverse(self, n: Node) -> Node:
        # 1/(c * a * exp(b)) = (1/c) * (1/a) * exp(-b), of a sum what all its terms have in common
        p = self.expand(n)
        if p is None or not p:
            return self._node(("call", "inverse", (n,)))
        common = self._common(p)
        rest = self.expand(self.multiply([n, *(self.power(e, -1) for e in common)])) if common else p
        assert rest is not None
        factors = [self.power(e, -1) for e in common]
        if len(rest) == 1:
            ((mono, c),) = rest.items()
            factors += [self._node(("call", "inverse", (m,))) for m, k in mono for _ in range(k)]
        else:
            c = rest[min(rest)]
            factors.append(
                self._node(("call", "inverse", (self.of_monomials({m: Fraction(k) / c for m, k in rest.items()}),)))
            )
        return self.multiply([self.number(Fraction(1) / c), *factors])

    def _common(self, p: Polynomial) -> list[Node]:
        """Exponentials that divide every monomial."""
        sets = [{n for n, _ in mono if self.nodes[n][0] == "exp"} for mono in p]
        return sorted(set.intersection(*sets)) if sets else []

    def _log(self, n: Node) -> Node:
        # log(exp(a) * b) = a + log(b)
        p = self.expand(n)
        if n == self.one:
            return self.zero
        common = self._common(p) if p else []
        if not common:
            return self._node(("call", "log", (n if p is None else self.of_monomials(p),)))
        rest = self.multiply([n, *(self.power(e, -1) for e in common)])
        parts = [(self.nodes[e][1], self.nodes[e][2]) for e in common]
        return self.add([*parts, (self.call("log", [rest]), 1)])


def common_measure(values: Iterable[Fraction]) -> Fraction:
    """The greatest number of which all are multiples."""
    found = list(values)
    denominator = lcm(*(v.denominator for v in found))
    return Fraction(gcd(*(int(v * denominator) for v in found)), denominator)
