"""Step functions: terms whose guards on one index expression say which of several terms they are.

[i <= 3]*a + [i >= 4]*b        is a where i <= 3, and b where i >= 4
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from hlo_verify.index.expr import Index, Var
from hlo_verify.limits import allows, limit_of
from hlo_verify.terms.addition import build
from hlo_verify.terms.guards import interval, order
from hlo_verify.terms.term import Guard, Monomial, Number, Poly


@dataclass(frozen=True, slots=True)
class Piece:
    """What a term is where a form lies in an interval; an end that is None is open."""

    form: Index
    lo: int | None
    hi: int | None
    term: Poly

    @property
    def on(self) -> Poly:
        return interval(self.form, self.lo, self.hi)


def steps(p: Poly, bound: Sequence[Var] = ()) -> list[tuple[Poly, Poly]]:
    """A guarded term as disjoint, exhaustive guards on one form, each with the term where it holds; see `pieces`."""
    return [(piece.on, piece.term) for piece in pieces(p, bound)]


def pieces(p: Poly, bound: Sequence[Var] = ()) -> list[Piece]:
    """A guarded term as pieces whose intervals are disjoint and exhaustive.

    The form is free of the bound variables; empty if no guard has such a form. Every piece has guards on fewer forms
    than the term, so that taking pieces of pieces ends: merging what is left of a sum can bring back a form.
    """
    held = (a for mono, _ in p.items for a, _ in mono if isinstance(a, Guard))
    guard = min((g for g in held if g.free.isdisjoint(bound)), key=order, default=None)
    count = len(forms(p))
    if guard is None or not allows("step_forms", count) or len(p.items) > 3 * limit_of("step_pieces"):
        return []
    form = guard.form
    breakpoints: set[int] = set()
    parts: list[tuple[int | None, int | None, Monomial, Number]] = []
    for mono, c in p.items:
        own = next((a for a, _ in mono if isinstance(a, Guard) and a.form is form), None)
        lo, hi = (own.lo, own.hi) if own is not None else (None, None)
        breakpoints.update(x for x in (lo, None if hi is None else hi + 1) if x is not None)
        parts.append((lo, hi, tuple(item for item in mono if item[0] is not own), c))
    if not allows("step_pieces", len(breakpoints) + 1):
        return []
    edges = [None, *sorted(breakpoints), None]
    found = []
    for start, end in pairwise(edges):
        last = None if end is None else end - 1
        here: dict[Monomial, Number] = {}
        for lo, hi, mono, c in parts:
            if _covers(lo, hi, start, last):
                here[mono] = here.get(mono, 0) + c
        found.append(Piece(form, start, last, build(here)))
    if any(len(forms(piece.term)) >= count for piece in found):
        return []
    return [piece for piece in found if piece.on.items]


def forms(*several: Poly) -> set[Index]:
    """The index expressions that the guards of some terms are about."""
    return {a.form for p in several for mono, _ in p.items for a, _ in mono if isinstance(a, Guard)}


def _covers(lo: int | None, hi: int | None, start: int | None, last: int | None) -> bool:
    """Whether an interval holds all of a piece between two neighbouring breakpoints."""
    above = lo is None or (start is not None and start >= lo)
    return above and (hi is None or (last is not None and last <= hi))
