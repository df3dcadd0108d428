"""Conditions among formulas, as decisions: which of a few truths are asked, one after the other, to tell.

A condition is a number that is 0 or 1 as it is made of such: `1 - a*b`, `a + b - a*b`. As a polynomial it has up to
2^n terms of n truths, of which a solver for real numbers makes nothing; as a decision, asked in the order of the
nodes, it is one only (R. E. Bryant, Graph-Based Algorithms for Boolean Function Manipulation, 1986, theorem 1).

    1 - a*b      a ? (b ? 0 : 1) : 1
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hlo_verify.passes.recheck.graph import Node, Nodes
from hlo_verify.terms.term import Number

Decision = int
"""The number of a decision; equal ones have the same."""

MOST = 50000
"""Decisions of one graph past which what is made of conditions is a number as any other."""


class _TooManyError(Exception):
    """There would be too many decisions."""


@dataclass(slots=True)
class Conditions:
    """The decisions of a graph. `made[d]` is a number, or a truth with the decisions if it holds and if not."""

    graph: Nodes
    made: list[Number | tuple[Node, Decision, Decision]] = field(default_factory=list)
    _known: dict[Number | tuple[Node, Decision, Decision], Decision] = field(default_factory=dict)
    _applied: dict[tuple[object, Decision, Decision], Decision] = field(default_factory=dict)
    _of: dict[Node, Decision | None] = field(default_factory=dict)

    def of(self, n: Node) -> Decision | None:
        """The decision that a node is; None where it is not made of truths, or is more than 0 or 1."""
        if n not in self._of:
            try:
                found = self._decision(n)
            except _TooManyError:
                found = None
            self._of[n] = found if found is not None and self._is_truth(found) else None
        return self._of[n]

    def _decision(self, n: Node) -> Decision | None:
        node = self.graph.nodes[n]
        if node[0] == "number":
            return self._leaf(node[1])
        if self.graph.is_boolean(n):
            return self._ask(n, self._leaf(1), self._leaf(0))
        if node[0] not in ("sum", "product", "choose"):
            return None
        parts = [(m, 1) for m in node[1:]] if node[0] == "choose" else node[2] if node[0] == "sum" else node[1]
        decisions = [self.of(m) for m, _ in parts]
        known = [d for d in decisions if d is not None]
        if len(known) < len(decisions):
            return None
        if node[0] == "choose":
            condition, a, b = known
            opposite = self._both(_plus, self._leaf(1), self._both(_times, self._leaf(-1), condition))
            return self._both(_plus, self._both(_times, condition, a), self._both(_times, opposite, b))
        if node[0] == "product":
            total = self._leaf(1)
            for d in known:
                total = self._both(_times, total, d)
            return total
        total = self._leaf(node[1])
        for d, (_, c) in zip(known, parts, strict=True):
            total = self._both(_plus, total, self._both(_times, self._leaf(c), d))
        return total

    def _is_truth(self, d: Decision) -> bool:
        todo, seen = [d], set[Decision]()
        while todo:
            found = self.made[todo.pop()]
            if not isinstance(found, tuple):
                if found not in (0, 1):
                    return False
                continue
            todo += {found[1], found[2]} - seen
            seen.update(found[1:])
        return True

    def _leaf(self, value: Number) -> Decision:
        return self._made(value.numerator if value.denominator == 1 else value)

    def _ask(self, truth: Node, holds: Decision, fails: Decision) -> Decision:
        return holds if holds == fails else self._made((truth, holds, fails))

    def _made(self, key: Number | tuple[Node, Decision, Decision]) -> Decision:
        found = self._known.get(key)
        if found is None:
            if len(self.made) >= MOST:
                raise _TooManyError
            found = self._known[key] = len(self.made)
            self.made.append(key)
        return found

    def _both(self, operation: Callable[[Number, Number], Number], a: Decision, b: Decision) -> Decision:
        """An operation on the numbers of two decisions."""
        key = operation, a, b
        known = self._applied.get(key)
        if known is not None:
            return known
        one, other = self.made[a], self.made[b]
        if not isinstance(one, tuple) and not isinstance(other, tuple):
            return self._leaf(operation(one, other))
        truth = min(found[0] for found in (one, other) if isinstance(found, tuple))
        holds, fails = (
            [found[k] if isinstance(found, tuple) and found[0] == truth else d for d, found in ((a, one), (b, other))]
            for k in (1, 2)
        )
        made = self._ask(truth, self._both(operation, *holds), self._both(operation, *fails))
        self._applied[key] = made
        return made


def _times(a: Number, b: Number) -> Number:
    return a * b


def _plus(a: Number, b: Number) -> Number:
    return a + b
