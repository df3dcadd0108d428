"""What is read at a place that a truth value decides: `x[m]` is `m ? x[1] : x[0]` for an m that is 0 or 1."""

from __future__ import annotations

from hlo_verify.index.expr import Opaque
from hlo_verify.terms import algebra
from hlo_verify.terms.guards import interval
from hlo_verify.terms.places import with_values
from hlo_verify.terms.term import ONE, Atom, Guard, Poly, Read, indices, number, value_of


def by_truths(p: Poly) -> Poly:
    """The same term, with each read and guard on its surface whose place hangs on a truth value chosen by that."""
    if not any(_truth_of(atom) is not None for mono, _ in p.items for atom, _ in mono):
        return p
    return algebra.with_atoms(p, _chosen)


def _truth_of(atom: Atom) -> Poly | None:
    """The first truth value whose number a place is made of."""
    for e in indices(atom) if isinstance(atom, Read | Guard) else ():
        for part, _ in e.items:
            truth = value_of(part) if isinstance(part, Opaque) and part.operator == "value" else None
            if truth is not None and isinstance(truth.atom, Read) and truth.atom.boolean:
                return truth
    return None


def _chosen(atom: Atom) -> Poly | None:
    truth = _truth_of(atom)
    if truth is None or not isinstance(atom, Read | Guard):
        return None
    held, other = (by_truths(_there(atom, truth, number(n))) for n in (1, 0))
    return algebra.add(algebra.multiply(truth, held), algebra.multiply(algebra.subtract(ONE, truth), other))


def _there(atom: Read | Guard, truth: Poly, n: Poly) -> Poly:
    """An atom where a truth value in its places is a number."""
    es = [with_values(e, lambda value: n if value is truth else value) for e in indices(atom)]
    if isinstance(atom, Guard):
        return interval(es[0], atom.lo, atom.hi)
    return algebra.read(atom.tensor, es)
