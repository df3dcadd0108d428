"""Sums that are products of two sums with no atom in common: `a*c + a*d + b*c + b*d` is `(a + b) * (c + d)`.

Products are expanded, so that a denominator `(1 - a) * (sqrt(v) + e)` is a sum of four, and its inverse is not seen to
be that of the two. Which atoms belong together is guessed: in a product of two sums the power of an atom of one says
nothing of that of an atom of the other, so that as many summands have both as the numbers of those that have either
one say. A guess counts where the product of what it gives is the sum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from math import gcd

from hlo_verify.limits import allows, limit_of
from hlo_verify.terms.addition import build, content, plain, scale
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.products import expanded
from hlo_verify.terms.steps import steps
from hlo_verify.terms.term import Atom, Guard, Monomial, Number, Poly, Read

_Powers = dict[Atom, Number]


def two_factors(p: Poly) -> tuple[Poly, Poly] | None:
    """Two sums, each of two or more summands and without an atom in common, whose product a term is; None where no such
    are found."""
    count = len(p.items)
    if count < 4 or p.doubt & INFINITE or not allows("factored_terms", count):
        return None
    rows = [dict(mono) for mono, _ in p.items]
    atoms = list(dict.fromkeys(atom for row in rows for atom in row))
    by_atom = {atom: Counter(row.get(atom, 0) for row in rows) for atom in atoms}
    if any(gcd(count, *powers.values()) == 1 for powers in by_atom.values()):
        return None  # each power of an atom of one factor stands beside every summand of the other
    for group in _together(atoms, rows, by_atom):
        found = _apart(p, group)
        if found is not None:
            return found
    return None


def in_factors(p: Poly) -> tuple[Poly, Poly] | None:
    """The same of a term that may be known by name; a factor that is heavy has a name of its own then, as it has where
    a program computes it by itself."""
    atom = p.atom
    body = _body(atom)
    factors = two_factors(p if body is None else body)
    if factors is None or body is None:
        return factors
    return _there(factors[0], atom), _there(factors[1], atom)


def cases_of_name(p: Poly) -> list[tuple[Poly, Poly]]:
    """What a term that is known by name is where a number that the program is given lies in an interval, with the
    condition; empty if it hangs on none such. `1 - b**n`, with `n` clamped so that it does not wrap, is a choice."""
    atom = p.atom
    body = _body(atom)
    guards = () if body is None else (a for mono, _ in body.items for a, _ in mono if isinstance(a, Guard))
    if body is None or any(g.free for g in guards):
        return []
    return [(on, _there(piece, atom)) for on, piece in steps(body)]


def _body(atom: Atom | None) -> Poly | None:
    """What a name is of; None of anything else."""
    if not isinstance(atom, Read) or atom.tensor.kind != "term" or atom.tensor.own or atom.doubt & INFINITE:
        return None
    return atom.tensor.bodies[0]


def _there(p: Poly, atom: Atom | None) -> Poly:
    """A part of what a name is of, where the name is read: by a name of its own if it is heavy, as a multiple of it."""
    from hlo_verify.terms.definitions import named  # whose names are made by laws
    from hlo_verify.terms.substitution import substitute

    assert isinstance(atom, Read)
    p = substitute(p, dict(zip(atom.tensor.params, atom.indices, strict=True)))
    if p.weight <= limit_of("named_weight"):
        return p
    is_positive = sum(c > 0 for _, c in p.items) * 2 >= len(p.items)
    amount = Fraction(content(p)) * (1 if is_positive else -1)
    return scale(named(scale(p, 1 / amount)), amount)


def _together(atoms: list[Atom], rows: list[_Powers], by_atom: dict[Atom, Counter[Number]]) -> Iterator[set[Atom]]:
    """Groups of atoms whose powers depend on one another, the smallest first."""
    groups: list[set[Atom]] = []
    for atom in atoms:
        mine = {atom}
        rest = []
        for group in groups:
            if any(_depend(atom, other, rows, by_atom) for other in group):
                mine |= group
            else:
                rest.append(group)
        groups = [*rest, mine]
    yield from sorted(groups, key=len) if len(groups) > 1 else ()


def _depend(a: Atom, b: Atom, rows: list[_Powers], by_atom: dict[Atom, Counter[Number]]) -> bool:
    both = Counter((row.get(a, 0), row.get(b, 0)) for row in rows)
    count = len(rows)
    return any(both[m, n] * count != by_atom[a][m] * by_atom[b][n] for m in by_atom[a] for n in by_atom[b])


def _apart(p: Poly, group: set[Atom]) -> tuple[Poly, Poly] | None:
    """The factor that is made of a group of atoms, and the other one."""
    beside: dict[Monomial, dict[Monomial, Number]] = {}
    for mono, c in p.items:
        own = tuple(item for item in mono if item[0] in group)
        rest = tuple(item for item in mono if item[0] not in group)
        beside.setdefault(own, {})[rest] = c
    first = min(beside, key=len)
    other = build(beside[first])
    (least, at_least), *_ = beside[first].items()
    ours: dict[Monomial, Number] = {}
    for own, rests in beside.items():
        if least not in rests:
            return None
        ours[own] = plain(Fraction(rests[least]) / Fraction(at_least))
    factor = build(ours)
    if len(factor.items) < 2 or len(other.items) < 2 or expanded(factor, other) is not p:
        return None
    return factor, other
