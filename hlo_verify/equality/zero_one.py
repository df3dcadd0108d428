"""Networks of minima and maxima, and values in order, compared by the 0-1 principle.

    minimum(maximum(minimum(a, b), c), maximum(a, b))  =  the middle one of a, b, c

Minima, maxima and the k-th of some values go with every function that keeps order: it may be applied before or after.
Were two of them different for some numbers, they would be so for the zeros and ones that say which of these numbers are
at least the greater of the two results (Knuth, The Art of Computer Programming 3, 5.3.4, theorem Z). So two are equal
for all numbers if they are for all zeros and ones. Elements are any terms that are numbers; that one is twice another,
or a constant, is not used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from math import prod

from hlo_verify.equality.effort import Effort
from hlo_verify.equality.opening import opened
from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.limits import allows, limit_of
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.functions import MAXIMUM, MINIMUM
from hlo_verify.terms.ordered import VALUES, is_ordered
from hlo_verify.terms.term import Apply, Atom, Guard, Poly, Read, atoms, indices

NODES_A_STEP = 16


class TooManyError(Exception):
    """More elements than are told apart, or more steps than there are."""


@dataclass(frozen=True, slots=True)
class Node:
    """The k-th greatest of some operands, from 1 on (a maximum is the first one); an element where there are none."""

    place: int
    operands: tuple[Node, ...] = ()


@dataclass(slots=True)
class _Network:
    """The elements met so far, by number, and what terms are made of them."""

    effort: Effort
    elements: dict[Poly, int] = field(default_factory=dict)
    known: dict[tuple[Poly, int], Node] = field(default_factory=dict)
    made: int = 0

    def of(self, p: Poly, sign: int = 1) -> Node:
        """A term, or its opposite."""
        key = p, sign
        if key not in self.known:
            self.made += 1
            if self.made % NODES_A_STEP == 0:
                self.effort.left -= 1
            if self.effort.left <= 0:
                raise TooManyError
            self.known[key] = self._made(opened(p), sign)
        return self.known[key]

    def _made(self, p: Poly, sign: int) -> Node:
        ((mono, c),) = p.items if len(p.items) == 1 else (((), 0),)
        if len(mono) == 1 and mono[0][1] == 1 and abs(c) == 1:
            sign = int(sign * c)
            found = self._of_atom(mono[0][0], sign)
            if found is not None:
                return found
            p = algebra.scale(p, c)
        return self._element(algebra.scale(p, sign))

    def _element(self, p: Poly) -> Node:
        if p.doubt or (p not in self.elements and not allows("ordered_elements", len(self.elements) + 1)):
            raise TooManyError
        return Node(self.elements.setdefault(p, len(self.elements)))

    def _of_atom(self, atom: Atom, sign: int) -> Node | None:
        """An extremum, or a value in order; the greatest of opposites is the opposite of the least."""
        if isinstance(atom, Apply) and atom.function in (MAXIMUM, MINIMUM):
            operands = tuple(self.of(arg, sign) for arg in atom.args)
            return Node(1 if (atom.function == MAXIMUM) == (sign > 0) else len(operands), operands)
        if not isinstance(atom, Read) or not atom.tensor.bodies or not _is_network(atom):
            return None
        bound, (body,) = unfold(atom)
        operands = tuple(self.of(there, sign) for there in _each(body, bound))
        if is_ordered(atom, VALUES):
            place = atom.indices[-1]
            if place.items or not 0 <= place.const < len(operands):  # of no place, where a condition around it says no
                return None
            return Node(len(operands) - place.const if sign > 0 else place.const + 1, operands)
        return Node(1 if (atom.tensor.kind == "max") == (sign > 0) else len(operands), operands)


def _is_network(atom: Atom) -> bool:
    if isinstance(atom, Apply):
        return atom.function in (MAXIMUM, MINIMUM)
    return isinstance(atom, Read) and (is_ordered(atom, VALUES) or atom.tensor.kind in ("max", "min"))


def _each(p: Poly, bound: tuple[Var, ...]) -> Iterator[Poly]:
    if prod(v.size for v in bound) > limit_of("ordered_elements"):
        raise TooManyError
    for values in product(*(range(v.size) for v in bound)):
        yield algebra.substitute(p, dict(zip(bound, map(expr.constant, values), strict=True)))


def same_network(found: Poly, expected: Poly, effort: Effort) -> bool:
    """Whether two terms are the same minima, maxima and values in order of the same elements."""
    if effort.left <= 0 or not _may_be(found, expected):
        return False
    places = _places(found) | _places(expected)
    if prod(v.size for v in places) > limit_of("ordered_elements"):
        return False
    variables = sorted(places, key=lambda v: v.uid)
    return all(
        _same(algebra.substitute(found, there), algebra.substitute(expected, there), effort)
        for values in product(*(range(v.size) for v in variables))
        for there in [dict(zip(variables, map(expr.constant, values), strict=True))]
    )


def _may_be(found: Poly, expected: Poly) -> bool:
    """Whether one side has values in order, or both have minima and maxima of each other."""
    inside = [{_kind(atom) for atom in atoms(opened(p))} for p in (found, expected)]
    return any("sort" in kinds for kinds in inside) or all({"max", "min"} <= kinds for kinds in inside)


def _kind(atom: Atom) -> str:
    if isinstance(atom, Apply):
        return {MAXIMUM: "max", MINIMUM: "min"}.get(atom.function, "")
    return atom.tensor.kind if isinstance(atom, Read) and _is_network(atom) else ""


def _places(p: Poly) -> frozenset[Var]:
    """The variables that say which value in order it is, or that a guard asks of."""
    found: set[Var] = set()
    for atom in atoms(opened(p)):
        if is_ordered(atom, VALUES):
            found |= atom.indices[-1].free
        elif isinstance(atom, Guard):
            found |= atom.form.free
        elif isinstance(atom, Read) and _is_network(atom):
            found |= {v for e in indices(atom) for v in e.free}
    return frozenset(found)


def _same(found: Poly, expected: Poly, effort: Effort) -> bool:
    if found is expected:
        return True
    network = _Network(effort)
    try:
        nodes = [network.of(p) for p in (found, expected)]
    except TooManyError:
        return False
    return _table(nodes[0], len(network.elements)) == _table(nodes[1], len(network.elements))


def _table(node: Node, count: int) -> int:
    """The values of a node for all zeros and ones of the elements: one bit for each choice of these."""
    whole = (1 << (1 << count)) - 1
    tables: dict[int, int] = {}

    def of(node: Node) -> int:
        if id(node) not in tables:
            tables[id(node)] = ranked(node) if node.operands else _element(node.place, count)
        return tables[id(node)]

    def ranked(node: Node) -> int:
        at_least = [whole, *([0] * node.place)]
        for operand in map(of, node.operands):
            for k in range(node.place, 0, -1):
                at_least[k] |= at_least[k - 1] & operand
        return at_least[node.place]

    return of(node)


def _element(n: int, count: int) -> int:
    """For each choice of ones and zeros, the n-th of them: 2**n zeros, 2**n ones, and so on."""
    half = 1 << n
    table = ((1 << half) - 1) << half
    for k in range(n + 1, count):
        table |= table << (1 << k)
    return table
