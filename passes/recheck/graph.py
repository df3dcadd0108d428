"""Operations over a small instance as a graph in which equal ones are shared.

Building applies only what holds by the names of the operations: sums and products are flat and in one order, and
numbers are folded. The laws of functions are in `passes.recheck.formulas`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hlo_verify.passes.recheck.plain import within
from hlo_verify.program.allowed_values import Values
from hlo_verify.terms.functions import POWER, Function
from hlo_verify.terms.term import Number

Node = int

BOOLEAN = frozenset({"between", "greater", "is_zero"})


@dataclass(frozen=True, slots=True)
class Unknown:
    """An integer that depends on what tensors hold."""

    node: Node


Whole = int | Unknown


class Nodes:
    """Nodes are numbers; equal ones have the same. A node's operation and operands are `nodes[n]`."""

    def __init__(self) -> None:
        self.nodes: list[tuple[Any, ...]] = []
        self._known: dict[tuple[Any, ...], Node] = {}
        self.assumed: dict[str, Values] = {}
        """The values that the user allows of elements of tensors, by the names that they are read by."""
        self.zero, self.one = self.number(0), self.number(1)
        self.infinity = self._node(("symbol", "infinity"))
        """A number that is greater than every other one that an extremum is of."""

    def _node(self, key: tuple[Any, ...]) -> Node:
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self.nodes)
            self.nodes.append(key)
            within("recheck_nodes", found, "terms at the small instance")
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

    def operation(self, operator: str, *args: object) -> Unknown:
        """An integer operation (`digit`, `clamp`, `table`, `integer`) on what is not known."""
        return Unknown(self._node((operator, *args)))

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
        if node[0] == "call" and isinstance(node[1], Function) and node[1].properties.truth:
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
        live = tuple(sorted((n, c if c.denominator > 1 else c.numerator) for n, c in sums.items() if c))
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

    def extremum(self, reducer: str, args: Iterable[Node]) -> Node:
        """The greatest (`max`) or least (`min`) of some numbers; infinity is larger than all others."""
        found: set[Node] = set()
        for n in args:
            found.update(self.nodes[n][1] if self.nodes[n][0] == reducer else (n,))
        for n in list(found):
            sign = self._infinite(n)
            if sign and len(found) > 1:
                if (sign > 0) == (reducer == "max"):
                    return n
                found.discard(n)
        if len(found) > 1 and all(map(self.is_boolean, found)):
            found.discard(self.zero if reducer == "max" else self.one)
        if len(found) == 1:
            return found.pop()
        numbers = [c for c in map(self.value, found) if c is not None]
        if len(numbers) > 1:
            found = {n for n in found if self.value(n) is None}
            found.add(self.number(max(numbers) if reducer == "max" else min(numbers)))
        return self._node((reducer, tuple(sorted(found)))) if len(found) > 1 else found.pop()

    def row(self, function: str, args: Sequence[Node]) -> Node:
        """A function of many numbers that is known by its name."""
        return self._node(("call", function, tuple(args)))

    def best(self, function: str, pairs: Iterable[tuple[Node, Node]]) -> Node:
        """The index of the best of pairs of a value and an index (`argmax`, `argmin`), of equal ones the least index.

        The best of some pairs stands for these pairs; an initial value that is worse than all numbers, for none.
        """
        found: set[tuple[Node, Node]] = set()
        for value, index in pairs:
            node = self.nodes[index]
            inside = node[2] if node[0] == "call" and node[1] == function else ()
            parts = list(zip(inside[::2], inside[1::2], strict=True))
            known = bool(parts) and self.extremum(function[3:], [v for v, _ in parts]) == value
            found.update(parts if known else [(value, index)])
        worst = -1 if function == "argmax" else 1
        kept = {pair for pair in found if self._infinite(pair[0]) != worst} or found
        if len(kept) == 1:
            return kept.pop()[1]
        return self.row(function, [n for pair in sorted(kept) for n in pair])

    def _infinite(self, n: Node) -> int:
        if n == self.infinity:
            return 1
        node = self.nodes[n]
        if node[0] == "sum" and len(node[2]) == 1 and node[2][0][0] == self.infinity:
            return 1 if node[2][0][1] > 0 else -1
        return 0

    def power(self, n: Node, exponent: Number) -> Node:
        node = self.nodes[n]
        if isinstance(exponent, int) and exponent >= 0:
            if node[0] != "exp":
                within("recheck_nodes", exponent, "factors in a power")
            if node[0] != "exp" or exponent <= 1:
                return self.multiply([n] * exponent)
        if node[0] == "exp":
            return self.multiply([self._node(("exp", node[1], node[2] * Fraction(exponent)))])
        if node[0] == "product" and all(self.nodes[m][0] == "exp" for m, _ in node[1]):
            return self.multiply([self.power(m, Fraction(exponent) * k) for m, k in node[1]])
        return self._node(("call", POWER, (n, self.number(exponent))))
