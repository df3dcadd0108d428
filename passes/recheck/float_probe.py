"""A quick look at formulas with floating-point numbers: whether two are worth proving equal, or plainly differ.

Nothing is concluded from it but what to do next.
"""

from __future__ import annotations

import math
from typing import Any
from zlib import crc32

from hlo_verify.passes.recheck.formulas import Graph
from hlo_verify.passes.recheck.graph import Node, Unknown, Whole
from hlo_verify.passes.recheck.z3_terms import operands
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms.functions import INVERSE, LOG, SQRT, real

TOLERANCE = 1e-7


class Guess:
    """Numbers for nodes, with pseudo-random ones for what tensors hold."""

    def __init__(self, graph: Graph, seed: int = 0) -> None:
        self.graph = graph
        self.seed = seed
        self.values: dict[Node, float] = {}
        self._integers: list[int] = []

    def differ(self, a: Node, b: Node) -> bool:
        """Whether two formulas plainly differ."""
        try:
            x, y = self.of(a), self.of(b)
        except (OverflowError, ZeroDivisionError, ValueError):
            return False
        return abs(x - y) > TOLERANCE * max(1.0, abs(x), abs(y))

    def of(self, n: Node) -> float:
        """The value of a node."""
        pending = [n]
        while pending:
            m = pending[-1]
            missing = [k for k in operands(self.graph, m) if k not in self.values]
            if missing:
                pending.extend(missing)
            else:
                pending.pop()
                if m not in self.values:
                    self.values[m] = self._value(m)
        return self.values[n]

    def _value(self, n: Node) -> Any:
        node, values = self.graph.nodes[n], self.values
        operator = node[0]
        if operator == "number":
            return float(node[1])
        if operator == "symbol":
            return 1e9
        if operator == "read":
            where = [int(self._whole(e)) for e in node[2]]
            noise = self._noise(f"{node[1]} {where}")
            if node[3] == "i1":
                return float(noise > 0.5)
            if node[3] in INTEGER_RANGES:
                assumed = self.graph.assumed.get(node[1])
                lo, hi = INTEGER_RANGES[node[3]] if assumed is None else assumed.integers
                return float(max(lo, min(self._integer(f"{node[1]} {where}"), hi)))
            return self._real(node[1], noise)
        if operator == "sum":
            return math.fsum([float(node[1]), *(float(c) * values[m] for m, c in node[2])])
        if operator == "product":
            return math.prod(values[m] ** k for m, k in node[1])
        if operator == "choose":
            return values[node[2]] if values[node[1]] == 1 else values[node[3]]
        if operator == "greater":
            return float(values[node[1]] > 0)
        if operator == "is_zero":
            return float(values[node[1]] == 0)
        if operator in ("max", "min"):
            return (max if operator == "max" else min)(values[m] for m in node[1])
        if operator == "exp":
            return math.exp(float(node[2]) * values[node[1]] / 16)
        if operator == "call":
            value = self._call(str(node[1]), [values[m] for m in node[2]])
            return float(value > 1.3) if self.graph.is_boolean(n) else value
        return self._integral(operator, node)

    def _real(self, name: str, noise: float) -> float:
        """A number for an element of a tensor, of those that it may be."""
        assumed, drawn = self.graph.assumed.get(name), noise + 0.5
        if self.seed % 2 and crc32(f"{noise}".encode()) % 2:  # other seeds are for logarithms, of positive numbers
            drawn = drawn if assumed is not None and not assumed.admits(-drawn, -drawn) else -drawn
        if assumed is None or assumed.admits(drawn, drawn):
            return drawn
        least, greatest = assumed.least, assumed.greatest
        if least is None or greatest is None:
            return float(greatest or 0) - noise - 0.5 if least is None else float(least) + noise + 0.5
        return float(least) + float(greatest - least) * (noise / 2 + 0.25)

    def _integral(self, operator: str, node: tuple[Any, ...]) -> Any:
        values = self.values
        if operator == "affine":
            return node[1] + sum(c * values[m] for m, c in node[2])
        if operator == "integer":
            return math.floor(values[node[1]])
        if operator == "real":
            return values[node[1]]
        if operator == "between":
            e = values[node[1]]
            return float((node[2] is None or node[2] <= e) and (node[3] is None or e <= node[3]))
        e = self._whole(node[2] if operator == "table" else node[1])
        if operator == "digit":
            return e // node[2] if node[3] is None else e // node[2] % node[3]
        if operator == "clamp":
            return max(node[2], min(e, node[3]))
        return node[1][min(max(int(e), 0), len(node[1]) - 1)]

    def _integer(self, name: str) -> int:
        """A small integer; with other seeds than 0, one after the other, also those beside the first and the last bound
        that something is compared with."""
        if not self.seed:
            return round(self._noise(name) * 3)
        if not self._integers:
            ends: dict[Node, set[int]] = {}
            for node in self.graph.nodes:
                if node[0] == "between":
                    ends.setdefault(node[1], set()).update(end for end in node[2:] if end is not None)
            bounds = {end for found in ends.values() if found for end in (min(found), max(found))}
            self._integers = sorted({*range(3), *(end + step for end in bounds for step in (-1, 0, 1))})
        return self._integers[(crc32(name.encode()) + self.seed) % len(self._integers)]

    def _whole(self, e: Whole) -> float:
        return self.values[e.node] if isinstance(e, Unknown) else e

    def _noise(self, text: str) -> float:
        return crc32(f"{self.seed} {text}".encode()) / 2**32

    def _call(self, name: str, args: list[float]) -> float:
        if name in ("argmax", "argmin"):
            sign = 1 if name == "argmax" else -1
            return max(zip(args[::2], args[1::2], strict=True), key=lambda pair: (sign * pair[0], -pair[1]))[1]
        if name == str(INVERSE):
            return 1 / args[0]
        if name == str(LOG):
            return 16 * math.log(args[0])
        if name == str(SQRT):
            return math.sqrt(args[0])
        if name == str(real("power")):
            return math.pow(*args)
        k = self._noise(name) + 0.5
        return 1.3 + math.sin(k + sum((k + 0.3 * n) * a / (1 + abs(a) / 8) for n, a in enumerate(args)))
