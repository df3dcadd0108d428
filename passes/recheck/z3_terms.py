"""Formulas as SMT-LIB text: reals, integers and free functions, with the laws of exponentials as ground instances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hlo_verify.passes.recheck.conditions import Conditions, Decision
from hlo_verify.passes.recheck.formulas import Graph, common_measure
from hlo_verify.passes.recheck.graph import Node, Unknown, Whole
from hlo_verify.program.allowed_values import Values
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms.functions import INVERSE, SQRT, Function

INTEGERS = frozenset(INTEGER_RANGES) - {"i1"}

ROUNDED = {
    "floor": "(and (<= {0} {1}) (< (- {1} {0}) 1.0))",
    "ceil": "(and (>= {0} {1}) (< (- {0} {1}) 1.0))",
    "round_nearest_even": "(and (<= (- {0} {1}) 0.5) (<= (- {1} {0}) 0.5))",
    "round_nearest_afz": "(and (<= (- {0} {1}) 0.5) (<= (- {1} {0}) 0.5))",
}
"""How far a whole number {0} is from the number {1} that it is rounded from."""


@dataclass(frozen=True, slots=True)
class Script:
    """SMT-LIB text: declarations, `axioms` assertions, then `(assert (distinct a b))` for each pair, in order."""

    text: str
    axioms: int


def script(graph: Graph, pairs: Sequence[tuple[Node, Node]]) -> Script:
    """That pairs of formulas differ, as text."""
    return _Writer(graph, pairs).script()


class _Writer:
    def __init__(self, graph: Graph, pairs: Sequence[tuple[Node, Node]]) -> None:
        self.graph = graph
        self.pairs = pairs
        self.lines: list[str] = []
        self.axioms: list[str] = []
        self.done: dict[Node, str] = {}
        self.declared: set[str] = set()
        live = self._live()
        self.symbolic = {
            graph.nodes[n][1] for n in live if graph.nodes[n][0] == "read" and _has_unknown(graph.nodes[n][2])
        }
        self.infinite: dict[Node, bool] = {}
        self.conditions = Conditions(graph)
        self.measures: dict[Node, Fraction] = {}
        exponents: dict[Node, set[Fraction]] = {}
        for n in live:
            if graph.nodes[n][0] == "exp":
                exponents.setdefault(graph.nodes[n][1], set()).add(graph.nodes[n][2])
        for m, found in exponents.items():
            self.measures[m] = common_measure(found)
        self.inverted = {m for m, found in exponents.items() if min(found) < 0}
        called = [graph.nodes[n][1] for n in live if graph.nodes[n][0] == "call"]
        names = {f.name for f in called if isinstance(f, Function)}
        of_functions = any(graph.nodes[n][0] == "integer" and graph.nodes[graph.nodes[n][1]][0] == "call" for n in live)
        self.is_cut_to_integers = "truncate" in names or (of_functions and not names.isdisjoint(ROUNDED))

    def _live(self) -> set[Node]:
        found: set[Node] = set()
        todo = [n for pair in self.pairs for n in pair]
        while todo:
            n = todo.pop()
            if n not in found:
                found.add(n)
                todo.extend(operands(self.graph, n))
        return found

    def script(self) -> Script:
        ends = [f"(assert (distinct {self.real(a)} {self.real(b)}))" for a, b in self.pairs]
        return Script("\n".join([*self.lines, *self.axioms, *ends, ""]), len(self.axioms))

    def _declare(self, name: str, arguments: Sequence[str], sort: str) -> str:
        if name not in self.declared:
            self.declared.add(name)
            self.lines.append(f"(declare-fun {name} ({' '.join(arguments)}) {sort})")
        return name

    def _define(self, n: Node, body: str, sort: str) -> str:
        name = f"n{n}"
        self.lines.append(f"(define-fun {name} () {sort} {body})")
        return name

    def real(self, n: Node) -> str:
        """A node as a real term. Nodes are numbered after their operands, so this never recurses deeply twice."""
        if n not in self.done:
            pending = [n]
            while pending:
                m = pending[-1]
                missing = [k for k in operands(self.graph, m) if k not in self.done]
                if missing:
                    pending.extend(missing)
                else:
                    pending.pop()
                    if m not in self.done:
                        self.done[m] = self._text(m)
        return self.done[n]

    def _text(self, n: Node) -> str:
        node = self.graph.nodes[n]
        operator = node[0]
        if operator == "number":
            return number(node[1])
        if operator == "symbol":
            return self._declare(str(node[1]), (), "Real")
        if operator == "read":
            return self._read(n, str(node[1]), node[2], str(node[3]))
        if operator in ("sum", "product", "choose") and (decision := self.conditions.of(n)) is not None:
            return self._define(n, f"(ite {self._holds(decision)} 1.0 0.0)", "Real")
        if operator == "sum":
            parts = [number(node[1])] if node[1] else []
            parts += [self.done[m] if c == 1 else f"(* {number(c)} {self.done[m]})" for m, c in node[2]]
            return self._define(n, f"(+ {' '.join(parts)})" if len(parts) > 1 else parts[0], "Real")
        if operator == "product":
            where = [d for d in (self.conditions.of(m) for m, _ in node[1]) if d is not None]
            factors = [self.done[m] for m, k in node[1] for _ in range(k) if self.conditions.of(m) is None]
            text = f"(* {' '.join(factors)})" if len(factors) > 1 else factors[0] if factors else "1.0"
            if where:
                text = f"(ite (and {' '.join(map(self._holds, where))}) {text} 0.0)"
            text = self._define(n, text, "Real")
            if self.is_cut_to_integers and len(factors) == 2:
                self._quotient(text, node[1])
            return text
        if operator == "choose":
            c, a, b = (self.done[m] for m in node[1:])
            asked = self.conditions.of(node[1])
            return self._define(n, f"(ite {f'(= {c} 1.0)' if asked is None else self._holds(asked)} {a} {b})", "Real")
        if operator == "greater":
            return self._define(n, f"(ite (> {self.done[node[1]]} 0.0) 1.0 0.0)", "Real")
        if operator == "is_zero":
            return self._define(n, f"(ite (= {self.done[node[1]]} 0.0) 1.0 0.0)", "Real")
        if operator in ("max", "min"):
            self._between_infinities(node[1])
            return self._extremum(n, str(operator), [self.done[m] for m in node[1]])
        if operator == "exp":
            return self._exponential(n, node[1], node[2])
        if operator == "call":
            args = [self.done[m] for m in node[2]]
            name = self._declare(f"|f {node[1]} {len(args)}|", ["Real"] * len(args), "Real")
            text = self._define(n, f"({name} {' '.join(args)})", "Real") if args else name
            if node[1] == SQRT:
                self.axioms.append(
                    f"(assert (or (< {args[0]} 0.0) (and (>= {text} 0.0) (= (* {text} {text}) {args[0]}))))"
                )
            if self.graph.is_boolean(n):
                self.axioms.append(f"(assert (or (= {text} 0.0) (= {text} 1.0)))")
            if self.is_cut_to_integers and isinstance(node[1], Function):
                self._whole_number(node[1], text, args)
            return text
        return self._integral(n, node)

    def _holds(self, decision: Decision) -> str:
        """That a condition holds."""
        found = self.conditions.made[decision]
        if not isinstance(found, tuple):
            return "true" if found else "false"
        name = f"c{decision}"
        if name not in self.declared:
            truth, holds, fails = found[0], *map(self._holds, found[1:])
            self.lines.append(f"(define-fun {name} () Bool (ite (= {self.done[truth]} 1.0) {holds} {fails}))")
            self.declared.add(name)
        return name

    def _quotient(self, text: str, factors: Sequence[tuple[Node, int]]) -> None:
        """That `a * inverse(b)` is no greater than 1 where a is no greater than b, which are both positive, say."""
        for (m, _), (other, _) in zip(factors, factors[::-1], strict=True):
            node = self.graph.nodes[other]
            if node[0] == "call" and node[1] == INVERSE:
                a, b = self.done[m], self.done[node[2][0]]
                inside = f"(and (<= (- 1.0) {text}) (<= {text} 1.0))"
                self.axioms.append(f"(assert (or (> {a} {b}) (< {a} (- {b})) {inside}))")

    def _whole_number(self, function: Function, text: str, args: Sequence[str]) -> None:
        """That what is rounded is a whole number near to it, and so is the integer of what lies in a type's range: the
        next one towards 0."""
        if function.is_real and function.name in ROUNDED:
            self.axioms.append(f"(assert (is_int {text}))")
            self.axioms.append(f"(assert {ROUNDED[function.name].format(text, args[0])})")
        elif function.name == "truncate":
            low, high = map(whole, INTEGER_RANGES[function.gives])
            x, off = args[0], f"(- {args[0]} {text})"
            fits = f"(and (<= {low} {x}) (<= {x} {high}))"
            near = f"(ite (>= {x} 0.0) (and (<= 0.0 {off}) (< {off} 1.0)) (and (< (- 1.0) {off}) (<= {off} 0.0)))"
            cut = f"(ite (is_int {x}) (= {text} {x}) (and (is_int {text}) {near}))"
            self.axioms.append(f"(assert (or (not {fits}) {cut}))")

    def _integral(self, n: Node, node: tuple[Any, ...]) -> str:
        operator = node[0]
        if operator == "affine":
            parts = [str(node[1]) if node[1] >= 0 else f"(- {-node[1]})"]
            parts += [f"(* {c if c >= 0 else f'(- {-c})'} {self.done[m]})" for m, c in node[2]]
            return self._define(n, f"(+ {' '.join(parts)})", "Int")
        if operator == "real":
            return f"(to_real {self.done[node[1]]})"
        if operator == "integer":
            inner = self.graph.nodes[node[1]]
            if inner[0] == "read" and inner[3] in INTEGERS:
                return self.done[node[1]].removeprefix("(to_real ").removesuffix(")")
            return f"(to_int {self.done[node[1]]})"
        if operator == "between":
            e = self.done[node[1]]
            bounds = [f"(>= {e} {whole(node[2])})"] if node[2] is not None else []
            bounds += [f"(<= {e} {whole(node[3])})"] if node[3] is not None else []
            return self._define(n, f"(ite (and {' '.join(bounds)}) 1.0 0.0)", "Real")
        e = self._whole(node[2] if operator == "table" else node[1])
        if operator == "digit":
            quotient = e if node[2] == 1 else f"(div {e} {node[2]})"
            return self._define(n, quotient if node[3] is None else f"(mod {quotient} {node[3]})", "Int")
        if operator == "clamp":
            lo, hi = whole(node[2]), whole(node[3])
            return self._define(n, f"(ite (< {e} {lo}) {lo} (ite (> {e} {hi}) {hi} {e}))", "Int")
        values: Sequence[int] = node[1]
        text = whole(values[-1])
        for k in range(len(values) - 2, -1, -1):
            text = f"(ite (<= {e} {k}) {whole(values[k])} {text})"
        return self._define(n, text, "Int")

    def _whole(self, e: Whole) -> str:
        return whole(e) if isinstance(e, int) else self.done[e.node]

    def _read(self, n: Node, name: str, where: Sequence[Whole], sort: str) -> str:
        target = "Int" if sort in INTEGERS else "Real"
        if name in self.symbolic:
            self._declare(name, ["Int"] * len(where), target)
            text = f"({name} {' '.join(map(self._whole, where))})" if where else name
        else:
            text = self._declare("_".join([name, *map(str, where)]).replace("-", "m"), (), target)
        if sort == "i1":
            self.axioms.append(f"(assert (or (= {text} 0.0) (= {text} 1.0)))")
        assumed = self.graph.assumed.get(name)
        if sort not in INTEGERS:
            self.axioms += [] if assumed is None else bounds_of(text, assumed)
            return text
        lo, hi = INTEGER_RANGES[sort] if assumed is None else assumed.integers
        self.axioms.append(f"(assert (and (<= {whole(lo)} {text}) (<= {text} {whole(hi)})))")
        return f"(to_real {text})"

    def _between_infinities(self, args: Sequence[Node]) -> None:
        """That what an extremum is of, where no infinity stands for it, is less than the one, and greater than the
        other. Nothing else is known of them: whatever numbers there are, some are beyond all of these."""
        infinity = self.graph.infinity
        if not any(self._has_infinity(m) for m in args):
            return
        todo: list[tuple[Node, list[str]]] = [(m, []) for m in args]
        while todo:
            m, unless = todo.pop()
            node = self.graph.nodes[m]
            if node[0] == "choose" and self._has_infinity(m):
                condition = f"(= {self.done[node[1]]} 1.0)"
                todo += [(node[2], [*unless, f"(not {condition})"]), (node[3], [*unless, condition])]
            elif not self._has_infinity(m):
                name = self._declare(str(self.graph.nodes[infinity][1]), (), "Real")
                inside = f"(and (< (- {name}) {self.done[m]}) (< {self.done[m]} {name}))"
                self.axioms.append(f"(assert (or {' '.join([*unless, inside])}))" if unless else f"(assert {inside})")

    def _has_infinity(self, n: Node) -> bool:
        found = self.infinite.get(n)
        if found is None:
            todo, seen = [n], {n}
            while todo:
                inside = set(operands(self.graph, todo.pop())) - seen
                seen |= inside
                todo += inside
            found = self.infinite[n] = self.graph.infinity in seen
        return found

    def _extremum(self, n: Node, reducer: str, args: list[str]) -> str:
        sign = ">=" if reducer == "max" else "<="
        if reducer not in self.declared:
            self.declared.add(reducer)
            self.lines.append(f"(define-fun {reducer}2 ((a Real) (b Real)) Real (ite ({sign} a b) a b))")
        text = args[0]
        for arg in args[1:]:
            text = f"({reducer}2 {text} {arg})"
        return self._define(n, text, "Real")

    def _exponential(self, n: Node, m: Node, exponent: Fraction) -> str:
        measure = self.measures[m]
        base = f"e{m}"
        if base not in self.declared:
            if "|f exp|" not in self.declared:
                self.axioms.append("(assert (= (|f exp| 0.0) 1.0))")  # of a product that a condition makes 0
            self._declare("|f exp|", ["Real"], "Real")
            self.declared.add(base)
            arg = self.done[m] if measure == 1 else f"(* {number(measure)} {self.done[m]})"
            self.lines.append(f"(define-fun {base} () Real (|f exp| {arg}))")
            if m in self.inverted:
                self.lines.append(f"(define-fun r{base} () Real (|f exp| (- {arg})))")
                self.axioms.append(f"(assert (= (* {base} r{base}) 1.0))")
            self.axioms.append(f"(assert (> {base} 0.0))")
        count = exponent / measure
        factors = [base if count > 0 else f"r{base}"] * abs(int(count))
        return factors[0] if len(factors) == 1 else self._define(n, f"(* {' '.join(factors)})", "Real")


def operands(graph: Graph, n: Node) -> list[Node]:
    """The nodes directly inside a node."""
    node = graph.nodes[n]
    operator = node[0]
    if operator in ("number", "symbol"):
        return []
    if operator == "read":
        return [e.node for e in node[2] if isinstance(e, Unknown)]
    if operator in ("sum", "affine"):
        return [m for m, _ in node[2]]
    if operator == "product":
        return [m for m, _ in node[1]]
    if operator in ("max", "min"):
        return list(node[1])
    if operator == "call":
        return list(node[2])
    if operator == "choose":
        return list(node[1:])
    if operator in ("digit", "clamp"):
        return [node[1].node] if isinstance(node[1], Unknown) else []
    if operator == "table":
        return [node[2].node] if isinstance(node[2], Unknown) else []
    return [node[1]]


def _has_unknown(where: Sequence[Whole]) -> bool:
    return any(isinstance(e, Unknown) for e in where)


def bounds_of(text: str, assumed: Values) -> list[str]:
    """That a real number is one of some values."""
    ends = ((assumed.least, "{0} {1}"), (assumed.greatest, "{1} {0}"))
    return [
        f"(assert ({'<' if excluded else '<='} {order.format(number(bound), text)}))"
        for (bound, order), excluded in zip(ends, assumed.excluded, strict=True)
        if bound is not None
    ]


def whole(value: int) -> str:
    """An integer."""
    return str(value) if value >= 0 else f"(- {-value})"


def number(value: Fraction | int) -> str:
    """An exact real number."""
    value = Fraction(value)
    text = (
        f"{abs(value.numerator)}.0" if value.denominator == 1 else f"(/ {abs(value.numerator)}.0 {value.denominator}.0)"
    )
    return text if value >= 0 else f"(- {text})"
