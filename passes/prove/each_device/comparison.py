"""Whether two terms are equal on one device, block by block.

The ends of the pieces that either term is put together from are the ends of blocks, so that in each of them it is one
piece. Equal terms there are equal by construction, once the constants in them are in the definitions (`at_constants`),
case by case, or as sums of products.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod

from hlo_verify.equality import cases
from hlo_verify.equality.attainment import same_beside_truths
from hlo_verify.equality.block_by_block import in_blocks
from hlo_verify.equality.by_element import same_by_element
from hlo_verify.equality.effort import Effort
from hlo_verify.equality.networks import same_network
from hlo_verify.equality.summands import Steps
from hlo_verify.equality.turn_by_turn import same_turn_by_turn
from hlo_verify.equality.without_names import without_names
from hlo_verify.equality.written_out import same_written_out
from hlo_verify.equality.written_with_names import seen_written_out
from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque, Var
from hlo_verify.index.interned import made
from hlo_verify.index.tables import turns
from hlo_verify.ops.values import Value, position_var
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.at_constants import at_constants
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.in_ranges import in_ranges, made_in_ranges, read_at
from hlo_verify.terms.term import ZERO, Guard, Poly, Read, atoms, indices

VAIN = 20
"""The part of all definitions for ranges that may be made without success: a wrong module has many results."""


@dataclass(frozen=True, slots=True, eq=False)
class Allowed:
    """What the comparisons of all results together may still take."""

    effort: Effort
    network: Steps
    written: Steps
    ranged: Steps
    """Those of comparisons with the ranges of places in definitions."""
    vain: Steps
    """How many definitions may still be made for these in vain."""
    by_element: Steps

    @property
    def session(self) -> Session:
        return self.effort.session

    @classmethod
    def of(cls, session: Session) -> Allowed:
        """What the session's limits allow."""
        limits = session.limits
        return cls(
            effort=Effort(limits.comparison_steps, session=session),
            network=Steps(limits.network_steps),
            written=Steps(limits.written_out_elements),
            ranged=Steps(limits.network_steps),
            vain=Steps(limits.definitions_in_ranges // VAIN),
            by_element=Steps(limits.written_out_elements),
        )

    @classmethod
    def briefly(cls, session: Session) -> Allowed:
        """What one comparison may take that is only tried."""
        limits = session.limits
        return cls(
            effort=Effort(limits.guess_steps, session=session),
            network=Steps(limits.guess_network_steps),
            written=Steps(0),
            ranged=Steps(limits.guess_network_steps),
            vain=Steps(limits.definitions_in_ranges // VAIN),
            by_element=Steps(0),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Comparisons of what a device holds with what it should hold."""

    devices: int
    allowed: Allowed
    is_by_hand: bool
    until: float = math.inf
    """How many terms may be there before another block, or another way, is looked at."""

    def are_equal_by_element(self, pairs: Sequence[tuple[Value, Poly, Poly]]) -> bool:
        """Whether terms are equal element by element, along what conditions cut of dimensions that are split."""
        left = self.allowed.by_element.left
        if not self.is_by_hand or left <= 0:
            return False
        sides = [
            (algebra.expanded(inside, value.term), algebra.expanded(inside, expected))
            for value, expected, inside in pairs
        ]
        is_same = same_by_element(sides, self.allowed.session, self.allowed.by_element)
        if is_same:
            self.allowed.by_element.left = left
        return is_same

    def are_equal(self, value: Value, expected: Poly, inside: Poly, *, briefly: bool = False) -> bool:
        """Whether what a device holds is a term where an element exists; `briefly`, whether that is seen at once."""
        found = value.term
        if found is expected:
            return True
        own = [position_var(k, size) for k, size in enumerate(value.shape) if size > 1]
        for cell in self._cells(own, found, expected, inside):
            if made() > self.until:
                return False
            there = [algebra.substitute(p, cell) for p in (found, expected, inside)]
            if there[2] is not ZERO and not self._are_equal_there(*there, briefly=briefly):
                return False
        return True

    def _are_equal_there(self, found: Poly, expected: Poly, inside: Poly, *, briefly: bool) -> bool:
        if found is expected:
            return True
        found, expected = at_constants(found), at_constants(expected)
        if found is expected:
            return True
        if not self.is_by_hand and self._are_seen_written_out(found, expected, inside):
            return True
        if without_names(found) is without_names(expected):
            return True
        ways = [
            self._block_by_block,
            self._by_turns_or_in_ranges,
            self._by_cases,
            self._as_network,
            self._are_equal_written_out,
        ]
        if briefly:
            ways = [self._structurally, self._block_by_block]
        elif self.until < math.inf:  # the terms of ranges are many, and few guesses need them
            ways = [self._as_network, self._by_cases, self._by_turns_or_in_ranges]
        return any(made() <= self.until and way(found, expected, inside) for way in ways)

    def _block_by_block(self, found: Poly, expected: Poly, inside: Poly) -> bool:
        """Whether one term is a sum over blocks, of which the other one has each as an addend."""
        pairs = in_blocks(found, expected)
        return bool(pairs) and all(self._are_blocks_equal(p, q, inside) for p, q in pairs)

    def _are_blocks_equal(self, found: Poly, expected: Poly, inside: Poly) -> bool:
        """Whether terms are equal whose definitions have been made in their ranges already, to see what is a pair."""
        return any(self._are_equal_in_ranges(found, expected, inside, deeply=each) for each in (False, True))

    def _structurally(self, found: Poly, expected: Poly, inside: Poly) -> bool:
        """Turn by turn, or as one term where the ranges of places are in definitions."""
        session = self.allowed.session
        if same_turn_by_turn(found, expected, inside, Effort(session.limits.brief_steps, session=session)):
            return True
        return self.allowed.vain.left > 0 and self._in_ranges(found, expected, inside, (False,))

    def _by_turns_or_in_ranges(self, found: Poly, expected: Poly, inside: Poly) -> bool:
        left = self.allowed.effort.left
        deeply = (False, True) if self.allowed.vain.left > 0 else ()
        if not same_turn_by_turn(found, expected, inside, self.allowed.effort) and not self._in_ranges(
            found, expected, inside, deeply
        ):
            return False
        self.allowed.effort.left = left  # what is equal takes few steps, on each of many devices
        return True

    def _in_ranges(self, found: Poly, expected: Poly, inside: Poly, deeply: Sequence[bool]) -> bool:
        before = made_in_ranges()
        is_same = any(self._are_equal_in_ranges(found, expected, inside, deeply=each) for each in deeply)
        self.allowed.vain.left -= 0 if is_same else made_in_ranges() - before
        return is_same

    def _by_cases(self, found: Poly, expected: Poly, inside: Poly) -> bool:
        left = self.allowed.effort.left
        if not cases.equal(found, expected, inside, self.allowed.effort):
            return False
        self.allowed.effort.left = left
        return True

    def _as_network(self, found: Poly, expected: Poly, inside: Poly) -> bool:
        left = self.allowed.network.left
        if left <= 0 or not same_network(found, expected, self.allowed.session, inside, self.allowed.network):
            return False
        self.allowed.network.left = left
        return True

    def _are_equal_written_out(self, found: Poly, expected: Poly, inside: Poly) -> bool:
        """Whether two terms are equal at each of few elements, where all is written out that these are made of."""
        session, written = self.allowed.session, self.allowed.written
        elements = self._elements(found, expected, inside) if written.left > 0 else None
        return elements is not None and all(same_written_out(*each, session, written) for each in elements)

    def _are_seen_written_out(self, found: Poly, expected: Poly, inside: Poly) -> bool:
        """The same of what a compiler partitioned, in few steps, before anything else: most of what it puts together
        from pieces has the same sums in it."""
        elements = self._elements(found, expected, inside)
        steps = Steps(self.allowed.session.limits.written_out_elements)
        return elements is not None and all(seen_written_out(*each, steps) for each in elements)

    def _elements(self, *terms: Poly) -> Iterator[tuple[Poly, Poly, Poly]] | None:
        """Terms at each of few elements; None where there are more."""
        places = sorted(frozenset[Var]().union(*(p.free for p in terms)), key=lambda v: v.uid)
        if prod(v.size for v in places) > self.allowed.session.limits.elements_apart:
            return None
        return (_at(terms, dict(zip(places, map(expr.constant, each), strict=True))) for each in _all(places))

    def _are_equal_in_ranges(self, found: Poly, expected: Poly, inside: Poly, *, deeply: bool) -> bool:
        """Whether two terms are one once the ranges of places are in definitions, in each block between the ends of the
        conditions that are left then; with `deeply` also whether they are equal there as sums of products."""
        found, expected = in_ranges(found), in_ranges(expected)
        if found is expected:
            return True
        own = sorted(found.free | expected.free, key=lambda v: v.uid)
        cells = list(self._cells(own, *_with_names((found, expected, inside))))
        if len(cells) > 1:
            there = ([algebra.substitute(p, cell) for p in (found, expected, inside)] for cell in cells)
            return all(p[2] is ZERO or self._are_equal_in_ranges(*p, deeply=deeply) for p in there)
        left = self.allowed.ranged.left
        if not deeply or left <= 0 or not self._are_sums_of_equal_products(found, expected, inside):
            return False
        self.allowed.ranged.left = left
        return True

    def _are_sums_of_equal_products(self, found: Poly, expected: Poly, inside: Poly) -> bool:
        session, steps = self.allowed.session, self.allowed.ranged
        beside = same_beside_truths(found, expected, inside, session, steps)
        return beside or same_network(found, expected, session, inside, steps)

    def _cells(self, own: Sequence[Var], *terms: Poly) -> Iterator[dict[Var, Index]]:
        """The blocks between the ends of the guards on positions, and of what one device of a region gives."""
        ranges = [_ranges(v, terms, self.devices) for v in own]
        if prod(map(len, ranges)) > self.allowed.session.limits.blocks_by_device:
            self.allowed.session.reached("blocks_by_device")
            ranges = [[(0, v.size)] for v in own]
        for chosen in product(*ranges):
            mapping: dict[Var, Index] = {}
            for v, (start, stop) in zip(own, chosen, strict=True):
                if (start, stop) != (0, v.size):
                    # a position of a smaller block is the same variable of another size
                    mapping[v] = expr.shift(expr.of_var(expr.var(v.prefix, v.key, stop - start)), start)
            yield mapping


def _all(places: Sequence[Var]) -> Iterator[tuple[int, ...]]:
    return product(*(range(v.size) for v in places))


def _at(terms: Sequence[Poly], here: dict[Var, Index]) -> tuple[Poly, Poly, Poly]:
    found, expected, inside = (algebra.substitute(p, here) for p in terms)
    return found, expected, inside


def _with_names(terms: Sequence[Poly]) -> list[Poly]:
    """Some terms, and what terms are that they read by a name."""
    found = dict.fromkeys(terms)
    names = set[Read]()
    todo = list(terms)
    while todo:
        read = (atom for atom in atoms(todo.pop()) if isinstance(atom, Read) and atom.tensor.kind == "term")
        here = [atom for atom in dict.fromkeys(read) if atom not in names]
        names.update(here)
        new = [body for atom in here for body in unfold(atom)[1] if body not in found]
        found |= dict.fromkeys(new)
        todo += new
    return list(found)


def _ranges(v: Var, terms: Sequence[Poly], devices: int) -> list[tuple[int, int]]:
    """The parts of a position's range in which no guard on it alone changes, no table of it does but by steps of one
    length, and no digit that may be a device's and is read apart from those below it: `f[4*p[4:8], p]` is `f[0, p]` in
    the first half, and `f[4, p]` in the second."""
    ends = {0, v.size}
    for p in terms:
        for atom in atoms(p):
            for part in (part for e in read_at(atom) for part, _ in e.items):
                if isinstance(part, Opaque) and part.free == {v}:
                    ends |= turns(part, v)
            for digit in (digit for e in indices(atom) for digit, _ in e.items):
                if not isinstance(digit, Digit) or digit.var is not v or not digit.top:
                    continue
                if digit.low > 1 and digit.radix <= devices:
                    ends |= set(range(0, v.size, digit.low))
            if isinstance(atom, Guard) and len(atom.form.items) == 1:
                digit, factor = atom.form.items[0]
                if isinstance(digit, Digit) and digit.var is v and digit.top and factor == 1:
                    ends |= {end * digit.low for end in (atom.lo, None if atom.hi is None else atom.hi + 1) if end}
    return list(pairwise(sorted(end for end in ends if 0 <= end <= v.size)))
