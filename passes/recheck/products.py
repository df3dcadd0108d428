"""Formulas multiplied out: what two sums have in common, and whether two formulas are one polynomial.

A product is a number of exponentials and other factors. Products of exponentials, `exp(a) * exp(b / 2)`, are made once
and have numbers: there are few of them, of many factors each, and products of products ask for the same ones again.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from hlo_verify.passes.recheck.formulas import Graph
from hlo_verify.passes.recheck.graph import Node
from hlo_verify.passes.recheck.plain import BudgetError, within
from hlo_verify.terms.term import Number

Factors = tuple[tuple[Node, int], ...]
"""Factors that are no exponentials, with their powers, in order."""

Monomial = tuple[int, Factors]
"""The number of a product of exponentials, and the other factors."""

Sum = dict[Monomial, Number]

SUM, SIDE = "recheck_sum_products", "recheck_compared_products"
"""The limits of what is multiplied out to see what a sum has in common with another, and to compare sides of a step."""

CANCELLING = 8
"""So many products may be made for each that a limit allows to be left: many are equal, or cancel."""


class Exponentials:
    """Products of exponentials by number; 0 is that of none."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.powers: list[dict[Node, Fraction]] = [{}]
        self._known: dict[tuple[tuple[Node, Fraction], ...], int] = {(): 0}
        self._of: dict[Node, int] = {}
        self._times: dict[tuple[int, int], int] = {}

    def of(self, n: Node) -> int:
        """An exponential."""
        found = self._of.get(n)
        if found is None:
            _, base, power = self.graph.nodes[n]
            found = self._of[n] = self._number({base: power})
        return found

    def times(self, a: int, b: int) -> int:
        """The product of two."""
        if not a or not b:
            return a or b
        key = (a, b) if a < b else (b, a)
        found = self._times.get(key)
        if found is None:
            powers = dict(self.powers[a])
            for base, power in self.powers[b].items():
                powers[base] = powers.get(base, Fraction(0)) + power
            found = self._times[key] = self._number({base: power for base, power in powers.items() if power})
        return found

    def _number(self, powers: dict[Node, Fraction]) -> int:
        key = tuple(sorted(powers.items()))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self.powers)
            self.powers.append(powers)
        return found

    def factors(self, number: int) -> list[Node]:
        """The exponentials of a product."""
        return [self.graph.exponential(base, power) for base, power in self.powers[number].items()]


class Products:
    """Formulas of one graph, multiplied out."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.exponentials = Exponentials(graph)
        self._made_of: dict[Node, frozenset[Node]] = {}
        self._sides: dict[Node, Sum] = {}

    def common(self, a: Node, b: Node) -> Node:
        """What two sums have in common when they are multiplied out.

        A product that is in both is made of what both are made of: everything else counts as 0 from the start.
        """
        if a == b:
            return a
        shared = self._leaves(a) & self._leaves(b)
        p, q = self._sum(a, shared, {}, SUM), self._sum(b, shared, {}, SUM)
        return self.graph.add((self._node(mono), c) for mono, c in p.items() if q.get(mono) == c)

    def same(self, a: Node, b: Node) -> bool:
        """Whether two nodes are one polynomial: the exact normal form of a small instance. False also if it is long."""
        try:
            return self._sum(a, None, self._sides, SIDE) == self._sum(b, None, self._sides, SIDE)
        except BudgetError:
            return False

    def _node(self, mono: Monomial) -> Node:
        number, others = mono
        return self.graph.multiply([*self.exponentials.factors(number), *(n for n, k in others for _ in range(k))])

    def _leaves(self, n: Node) -> frozenset[Node]:
        """What a node is made of by sums and products."""
        found = self._made_of.get(n)
        if found is None:
            node = self.graph.nodes[n]
            if node[0] in ("sum", "product"):
                parts = node[2] if node[0] == "sum" else node[1]
                found = frozenset().union(*(self._leaves(m) for m, _ in parts))
            else:
                found = frozenset((n,))
            self._made_of[n] = found
        return found

    def _sum(self, n: Node, shared: frozenset[Node] | None, memo: dict[Node, Sum], limit: str) -> Sum:
        """A node multiplied out; of `shared` factors, without the products that have one that is neither one of these
        nor an exponential.

        Raises `BudgetError` where there are more products than the limit of that name allows.
        """
        found = memo.get(n)
        if found is not None:
            return found
        node = self.graph.nodes[n]
        if node[0] == "sum":
            parts = ((self._sum(m, shared, memo, limit), c) for m, c in node[2])
            total = _added(({(0, ()): node[1]} if node[1] else {}), parts)
        elif node[0] == "product":
            total = {(0, ()): 1}
            for m, k in node[1]:
                part = self._sum(m, shared, memo, limit)
                for _ in range(k):
                    within(limit, len(total) * len(part) // CANCELLING, "products to multiply out")
                    total = self._multiplied(total, part)
        elif node[0] == "number":
            total = {(0, ()): node[1]} if node[1] else {}
        elif node[0] == "exp":
            total = {(self.exponentials.of(n), ()): 1}
        else:
            total = {(0, ((n, 1),)): 1} if shared is None or n in shared else {}
        within(limit, len(total), "products of a sum")
        memo[n] = total
        return total

    def _multiplied(self, a: Sum, b: Sum) -> Sum:
        times, total = self.exponentials.times, Sum()
        for (exponentials, factors), c in a.items():
            for (others, beside), k in b.items():
                mono = times(exponentials, others), self.graph.merged(factors, beside)
                total[mono] = total.get(mono, 0) + c * k
        return {mono: c for mono, c in total.items() if c}


def _added(start: Sum, parts: Iterable[tuple[Sum, Number]]) -> Sum:
    total = start
    for part, c in parts:
        for mono, k in part.items():
            total[mono] = total.get(mono, 0) + c * k
    return {mono: c for mono, c in total.items() if c}
