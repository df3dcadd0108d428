"""Integers that conditions choose: `where(i < 0, i + n, i)`."""

from __future__ import annotations

from hlo_verify.limits import allows
from hlo_verify.terms import algebra
from hlo_verify.terms.conditions import numbers_of
from hlo_verify.terms.steps import steps
from hlo_verify.terms.term import ONE, Guard, Poly, make_poly, of_atom


def chosen(p: Poly) -> list[tuple[Poly, Poly]]:
    """An integer as a step function: where each of its values is; and one that a truth value chooses, by that. Empty if
    there is but one value, or too many."""
    forms = {a.form for mono, _ in p.items for a, _ in mono if isinstance(a, Guard)}
    if not allows("compared_forms", len(forms)):
        return []
    if forms:
        return steps(p)
    choosing = {c for mono, _ in p.items for c, _ in mono if c.boolean and numbers_of(mono)}
    if not choosing or not allows("compared_forms", len(choosing)):
        return []
    chooses = min(choosing, key=lambda c: c.uid)
    without = make_poly(tuple(item for item in p.items if all(a is not chooses for a, _ in item[0])))
    inside = algebra.with_atoms(p, {chooses: ONE}.get)
    on = of_atom(chooses)
    return [(on, inside), (algebra.logical_not(on), without)]
