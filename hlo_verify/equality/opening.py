"""Named terms taken apart, and what terms are made of in the end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from math import prod
from typing import TypeGuard

from hlo_verify.index.expr import Index, Opaque
from hlo_verify.limits import limit_of
from hlo_verify.memory import once_a_session
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.functions import INFINITY, Function
from hlo_verify.terms.term import Apply, Atom, Poly, Read, Tensor, atoms, indices, reads, value_of


def opened(p: Poly) -> Poly:
    """The term with all named terms on its surface taken apart, as far as that does not make it too long."""
    while p.items:
        without = without_name(p)
        if without is None:
            break
        p = without
    return p


def without_name(p: Poly) -> Poly | None:
    """The term with one named term on its surface taken apart; None if it has none, or if it would grow too long.

    First of those that are made of others, so that what both sides of a comparison are made of stays whole.
    """
    growth: dict[Tensor, int] = defaultdict(int)
    most = limit_of("question_terms")
    for mono, _ in p.items:
        own: dict[Tensor, int] = defaultdict(lambda: 1)
        for a, n in mono:
            if _is_name(a) and isinstance(n, int):
                own[a.tensor] *= len(a.tensor.bodies[0].items) ** min(n, most)  # exp(1e30*x) is a power
        for name, size in own.items():
            growth[name] += size - 1
    for name in sorted(_outermost(set(growth)), key=lambda name: (growth[name], name.uid)):
        if len(p.items) + growth[name] <= 2 * most:  # something may cancel
            return _opened_name(p, name)
    return None


def is_open_sum(atom: Atom) -> TypeGuard[Read]:
    """Whether an atom is a sum that may be looked into."""
    return isinstance(atom, Read) and atom.tensor.kind == "sum" and atom.tensor.seal is None


def without_common_sums(p: Poly) -> Poly:
    """The term without those sums that are a factor of each of its addends: it is 0 where what is left is.

    So of `s*sum v. f - s*sum w. g` the two sums are left to be compared. A sum that may be no number stays.
    """
    first, *others = [dict(mono) for mono, _ in p.items] or [{}]
    common = [a for a in first if isinstance(a, Read) and a.tensor.kind == "sum" and not a.doubt]
    common = [a for a in common if all(other.get(a) == first[a] for other in others)]
    if not others or not common:
        return p
    return algebra.build({tuple((a, n) for a, n in mono if a not in common): c for mono, c in p.items})


def with_infinities(p: Poly) -> Poly | None:
    """The term with those names taken apart behind which an infinity is an addend; None if it grew too long."""
    while True:
        name = next(
            (a.tensor for mono, _ in p.items for a, _ in mono if _is_name(a) and _adds_infinity(a.tensor)), None
        )
        if name is None:
            return p
        without = _opened_name(p, name)
        if without is None:
            return None
        p = without


@once_a_session
def _adds_infinity(name: Tensor) -> bool:
    inside = [a for mono, _ in name.bodies[0].items for a, _ in mono]
    return any(
        (isinstance(a, Apply) and a.function == INFINITY) or (_is_name(a) and _adds_infinity(a.tensor)) for a in inside
    )


def _is_name(a: Atom) -> TypeGuard[Read]:
    return isinstance(a, Read) and a.tensor.kind == "term"


def _outermost(names: set[Tensor]) -> list[Tensor]:
    heights = {name: _height(name) for name in names}
    return [name for name, height in heights.items() if height == max(heights.values())]


@once_a_session
def _height(name: Tensor) -> int:
    """How many layers of names a named term has."""
    inside = {a.tensor for a in atoms(name.bodies[0]) if _is_name(a)}
    return 1 + max(map(_height, inside), default=0)


def _opened_name(p: Poly, name: Tensor) -> Poly | None:
    own: dict[Atom, Poly] = {}
    for mono, _ in p.items:
        here = [(a, n) for a, n in mono if _is_name(a) and a.tensor is name and isinstance(n, int)]
        own.update((a, unfold(a)[1][0]) for a, _ in here if a not in own)
        if prod(len(algebra.power_of(own[a], n).items) for a, n in here) > limit_of("question_terms"):
            return None
    return algebra.with_atoms(p, own.get)


@once_a_session
def leaves(source: Tensor) -> frozenset[Tensor | Function]:
    """The tensors and functions that a definition is made of, in the end."""
    if not source.bodies:
        return frozenset((source,))
    return frozenset[Tensor | Function]().union(*map(ingredients, source.bodies))


def ingredients(p: Poly) -> frozenset[Tensor | Function]:
    """The tensors and functions that a term is made of in the end, in its indices and conditions too."""
    found: set[Tensor | Function] = set()
    for atom in atoms(p):
        if isinstance(atom, Read):
            found |= leaves(atom.tensor)
        elif isinstance(atom, Apply):
            found.add(atom.function)
        for e in indices(atom):
            found |= computed_with(e)
    return frozenset(found)


@once_a_session
def computed_with(e: Index) -> frozenset[Tensor | Function]:
    """What the integers are made of that an index expression computes with."""
    found: set[Tensor | Function] = set()
    for atom, _ in e.items:
        if isinstance(atom, Opaque):
            found.update(*map(computed_with, atom.exprs))
            if atom.term is not None:
                found |= ingredients(value_of(atom))
    return frozenset(found)


def arguments(p: Poly) -> frozenset[Tensor]:
    """The modules' arguments that a term is about in the end."""
    return frozenset(leaf for leaf in ingredients(p) if isinstance(leaf, Tensor) and leaf.kind == "argument")


READS = 20
"""How many reads may be looked at for each definition."""


def made_of_few(terms: Iterable[Poly], most: int) -> bool:
    """Whether terms are made of no more definitions than that, and read few things: otherwise it is not counted."""
    seen: set[Tensor] = set()
    todo, count = list(terms), 0
    while todo:
        for read in reads(todo.pop()):
            count += 1
            if read.tensor not in seen:
                seen.add(read.tensor)
                todo += read.tensor.bodies
            if len(seen) > most or count > READS * most:
                return False
    return True
