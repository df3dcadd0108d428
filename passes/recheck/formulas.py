"""Formulas over a small instance: nodes multiplied out, and the laws of functions.

All terms are real numbers; what may be infinite is made of several of them (`extended`). The laws
(`exp(a + b) = exp(a) exp(b)`, `1/(c*a*b) = (1/c) (1/a) (1/b)`, ...) are applied to the arguments that occur.
Whether two formulas are equal is for Z3 to say (`equality.backend`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from math import ceil, copysign, floor, gcd, lcm, trunc

from hlo_verify.limits import allows
from hlo_verify.passes.recheck.graph import Node, Nodes
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms.functions import (
    EXPONENTIAL,
    EXTREMA,
    INVERSE,
    IS_ZERO,
    LOG,
    POSITIVE,
    SQRT,
    Function,
    real,
)
from hlo_verify.terms.term import Number

Monomial = tuple[tuple[Node, int], ...]
Polynomial = dict[Monomial, Number]

EVEN = frozenset({"abs", "cosh", "cosine"})

ODD = frozenset(
    (
        "asin asinh atan atanh bessel_i1e cbrt erf erf_inv round_nearest_afz round_nearest_even sign sine sinh tan tanh"
    ).split()
)

COMMUTATIVE = frozenset({"and", "or", "xor", "equal", "add_in_floats", "multiply_in_floats"})


class Graph(Nodes):
    """Nodes with the laws of arithmetic and of functions."""

    def __init__(self) -> None:
        super().__init__()
        self._expanded: dict[Node, Polynomial | None] = {}
        self._called: dict[tuple[Function, tuple[Node, ...]], Node] = {}

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
                    if not allows("recheck_products", len(total)):
                        return None
        else:
            return {((n, 1),): 1}
        total = {mono: c for mono, c in total.items() if c}
        return total if allows("recheck_products", len(total)) else None

    def _multiplied(self, a: Polynomial, b: Polynomial) -> Polynomial:
        total: Polynomial = {}
        for ma, ca in a.items():
            for mb, cb in b.items():
                mono = self._times(ma, mb)
                total[mono] = total.get(mono, 0) + ca * cb
        return total

    def _times(self, a: Monomial, b: Monomial) -> Monomial:
        if any(self.nodes[n][0] == "exp" for n, _ in a) and any(self.nodes[n][0] == "exp" for n, _ in b):
            node = self.multiply([n for n, k in (*a, *b) for _ in range(k)])
            if node == self.one:
                return ()
            found = self.nodes[node]
            return found[1] if found[0] == "product" else ((node, 1),)
        return self.merged(a, b)

    def merged(self, a: Monomial, b: Monomial) -> Monomial:
        """The factors of two products, of which one has no exponentials."""
        if not a or not b:
            return a or b
        powers = dict(a)
        for n, k in b:
            powers[n] = 1 if self.is_boolean(n) else powers.get(n, 0) + k
        return tuple(sorted(powers.items()))

    def exponential(self, base: Node, power: Fraction) -> Node:
        """A power of the exponential of a node."""
        return self._node(("exp", base, power))

    def of_monomials(self, p: Polynomial) -> Node:
        """The sum of products, in one order."""
        return self.add((self._product(dict(mono)), c) for mono, c in p.items())

    def call(self, function: Function, args: Sequence[Node]) -> Node:
        """A function of numbers, by its law if it has one; of a choice, the choice of its values."""
        key = function, tuple(args)
        found = self._called.get(key)
        if found is None:
            found = self._called[key] = self._call(function, args)
        return found

    def _call(self, function: Function, args: Sequence[Node]) -> Node:
        for k, n in enumerate(args):
            node = self.nodes[n]
            if node[0] == "choose":
                a, b = ([*args[:k], m, *args[k + 1 :]] for m in node[2:])
                return self.choose(node[1], self.call(function, a), self.call(function, b))
        if function == EXPONENTIAL:
            return self._exponential(args[0])
        if function == INVERSE:
            return self._inverse(args[0])
        if function == LOG:
            return self._log(args[0])
        if function == SQRT and args[0] in (self.zero, self.one):
            return args[0]
        for reducer, extremum in EXTREMA.items():
            if function == extremum:
                return self.extremum(reducer, args)
        if function == POSITIVE:
            return self.positive(args[0])
        if function == IS_ZERO:
            return self.is_zero(args[0])
        if function.name == "power" and function.is_real:
            exponent = self.value(args[1])
            if (
                exponent is not None
                and exponent.denominator <= 2
                and allows("recheck_powers", ceil(abs(Fraction(exponent))))
            ):
                if exponent >= 0 and exponent.denominator == 1:
                    return self.multiply([args[0]] * int(exponent))
                return self._power(args[0], Fraction(exponent))
        if function.name == "truncate":
            low, high = INTEGER_RANGES[function.gives]
            number = self.value(args[0])
            if number is not None and low <= number <= high:
                return self.number(trunc(number))
        if function.is_real and function.name in WHOLE and (number := self.value(args[0])) is not None:
            return self.number(WHOLE[function.name](Fraction(number)))
        if function.is_real and function.name in MADE_OF_OTHERS and not function.attributes:
            return MADE_OF_OTHERS[function.name](self, args[0])
        if function.name in COMMUTATIVE:
            args = sorted(args)
        expanded = [self.expand(n) for n in args]
        plain = [n if p is None else self.of_monomials(p) for n, p in zip(args, expanded, strict=True)]
        odd = self._is_odd(function, args)
        if odd is None or not expanded[0] or expanded[0][min(expanded[0])] > 0:
            return self.zero if odd and plain[0] == self.zero else self._node(("call", function, tuple(plain)))
        turned = self._node(("call", function, (self._scaled(plain[0], -1), *plain[1:])))
        return self._scaled(turned, -1) if odd else turned

    def _power(self, base: Node, exponent: Fraction) -> Node:
        """A negative power, or half of one."""
        factors = [base] * int(abs(exponent))
        if exponent.denominator == 2:
            factors.append(self.call(SQRT, [base]))
        if exponent < 0:
            factors = [self.call(INVERSE, [n]) for n in factors]
        return self.multiply(factors)

    def _is_odd(self, function: Function, args: Sequence[Node]) -> bool | None:
        """Whether `f(-x) = -f(x)`; False if it is `f(x)`, None if it is neither."""
        name = function.name
        if not function.is_real or function.attributes:
            return None
        exponent = self.value(args[1]) if name == "power" else None
        if exponent is not None and exponent.denominator == 1:
            return exponent.numerator % 2 == 1
        return True if name in ODD else False if name in EVEN else None

    def _exponential(self, n: Node) -> Node:
        # exp(a + c*b) = exp(a) * exp(c*b)
        p = self.expand(n)
        if p is None:
            return self._node(("exp", n, Fraction(1)))
        return self.multiply([self._node(("exp", self._product(dict(mono)), c)) for mono, c in p.items()])

    def _inverse(self, n: Node) -> Node:
        # 1/(c * a * exp(b)) = (1/c) * (1/a) * exp(-b), of a sum as its exponentials have it
        p = self.expand(n)
        if p is None or not p:
            return self._node(("call", INVERSE, (n,)))
        shared = self._shared(p)
        rest = self._without(p, shared) if shared else p
        factors = [self.power(e, -1) for e in shared]
        if len(rest) == 1:
            ((mono, c),) = rest.items()
            factors += [self._node(("call", INVERSE, (m,))) for m, k in mono for _ in range(k)]
        else:
            c = rest[min(rest)]
            rest = {m: Fraction(k) / c for m, k in rest.items()}
            factors.append(self._node(("call", INVERSE, (self.of_monomials(rest),))))
        return self.multiply([self.number(Fraction(1) / c), *factors])

    def _shared(self, p: Polynomial) -> list[Node]:
        """Exponentials by which a sum is divided to be written in one way, whichever of its terms it was divided by
        before: then none has a negative power, and none is in all terms. Of exp(-b)*x + y it is exp(-b): exp(b)*y + x
        is left.
        """
        powers: dict[Node, list[Fraction]] = {}
        for mono in p:
            for n, k in mono:
                if self.nodes[n][0] == "exp":
                    powers.setdefault(self.nodes[n][1], []).append(self.nodes[n][2] * k)
        zero = Fraction(0)
        least = {m: min(found) if len(found) == len(p) else min(zero, *found) for m, found in powers.items()}
        return [self.exponential(m, c) for m, c in sorted(least.items()) if c]

    def _without(self, p: Polynomial, shared: Sequence[Node]) -> Polynomial:
        """A sum divided by exponentials: it has as many terms as before."""
        divisor = self.expand(self.multiply([self.power(e, -1) for e in shared]))
        assert divisor is not None
        return self._multiplied(p, divisor)

    def _log(self, n: Node) -> Node:
        # log(exp(a) * b) = a + log(b)
        p = self.expand(n)
        if n == self.one:
            return self.zero
        shared = self._shared(p) if p else []
        if p is None or not shared:
            return self._node(("call", LOG, (n if p is None else self.of_monomials(p),)))
        rest = self.of_monomials(self._without(p, shared))
        parts = [(self.nodes[e][1], self.nodes[e][2]) for e in shared]
        return self.add([*parts, (self.call(LOG, [rest]), 1)])


def _inverse_root(graph: Graph, x: Node) -> Node:
    return graph.call(INVERSE, [graph.call(SQRT, [x])])


def _logistic(graph: Graph, x: Node) -> Node:
    opposite = graph.call(EXPONENTIAL, [graph._scaled(x, -1)])
    return graph.call(INVERSE, [graph.add([(graph.one, 1), (opposite, 1)])])


def _tangent(graph: Graph, x: Node) -> Node:
    inverse = graph.call(INVERSE, [graph.call(real("cosine"), [x])])
    return graph.multiply([graph.call(real("sine"), [x]), inverse])


def _of_exponentials(sign: int) -> Callable[[Graph, Node], Node]:
    """Half of `exp(x)` and of `exp(-x)`, with a sign."""

    def made(graph: Graph, x: Node) -> Node:
        one, other = (graph.call(EXPONENTIAL, [graph._scaled(x, k)]) for k in (1, -1))
        return graph.add([(one, Fraction(1, 2)), (other, Fraction(sign, 2))])

    return made


def _hyperbolic_tangent(graph: Graph, x: Node) -> Node:
    p = graph.expand(x)
    if p and p[min(p)] < 0:
        return graph._scaled(_hyperbolic_tangent(graph, graph._scaled(x, -1)), -1)
    return graph.add([(_logistic(graph, graph._scaled(x, 2)), 2), (graph.one, -1)])


def _complement(graph: Graph, x: Node) -> Node:
    return graph.add([(graph.one, 1), (graph.call(real("erf"), [x]), -1)])


MADE_OF_OTHERS: dict[str, Callable[[Graph, Node], Node]] = {
    "abs": lambda graph, x: graph.extremum("max", [x, graph._scaled(x, -1)]),
    "rsqrt": _inverse_root,
    "log_plus_one": lambda graph, x: graph.call(LOG, [graph.add([(graph.one, 1), (x, 1)])]),
    "exponential_minus_one": lambda graph, x: graph.add([(graph.call(EXPONENTIAL, [x]), 1), (graph.one, -1)]),
    "logistic": _logistic,
    "cosh": _of_exponentials(1),
    "sinh": _of_exponentials(-1),
    "tan": _tangent,
    "tanh": _hyperbolic_tangent,
    "erfc": _complement,
}
"""Functions of a real number by what they are made of."""


WHOLE: dict[str, Callable[[Fraction], int]] = {
    "floor": floor,
    "ceil": ceil,
    "round_nearest_even": round,
    "round_nearest_afz": lambda k: trunc(k + Fraction(copysign(1, k)) / 2),
}
"""The whole numbers that a number is rounded to."""


def common_measure(values: Iterable[Fraction]) -> Fraction:
    """The greatest number of which all are multiples."""
    found = list(values)
    denominator = lcm(*(v.denominator for v in found))
    return Fraction(gcd(*(int(v * denominator) for v in found)), denominator)
