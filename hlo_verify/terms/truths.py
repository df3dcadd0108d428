"""Truth values in numbers: counts of them, and the greatest or least of them.

    max v. (1 - p(v))   is  1 - min v. p(v)
    max v. [f(v) > 0]   is  [max v. f(v) > 0]
    minimum(p, q)       is  p q                   as flags of several arrays are stacked
    min v. p(v) q(v)    is  (min v. p(v)) (min v. q(v))

where p and q are 1 or 0.
"""

from __future__ import annotations

from functools import reduce
from math import prod

from hlo_verify.index.expr import Var
from hlo_verify.limits import allows
from hlo_verify.memory import once_a_session
from hlo_verify.terms.functions import MAXIMUM, POSITIVE, Function
from hlo_verify.terms.products import add, multiply, subtract
from hlo_verify.terms.term import (
    ONE,
    Apply,
    Atom,
    Poly,
    Read,
    make_poly,
    of_atom,
)
from hlo_verify.terms.used import used

Arguments = tuple[Poly, ...]
Bound = int | None


@once_a_session
def is_truth(p: Poly) -> bool:
    """Whether a term is surely 1 or 0, in each case of the conditions that it is made of."""
    if not all(atom.boolean for mono, _ in p.items for atom, _ in mono):
        return False
    from hlo_verify.terms.conditions import Conditions  # which is built on guards

    conditions = Conditions.of(mono for mono, _ in p.items)
    if not allows("sign_cases", conditions.count):
        return False
    return all(sum(case.coefficients(p.items).values()) in (0, 1) for case in conditions.cases())


def opposite(p: Poly) -> Poly | None:
    """The product of truth values that a term is 1 less; None if it is no such difference."""
    if len(p.items) != 2 or dict(p.items).get(()) != 1:
        return None
    ((mono, c),) = (item for item in p.items if item[0])
    return make_poly(((mono, 1),)) if c == -1 and all(atom.boolean for atom, _ in mono) else None


def sign_of(p: Poly) -> Poly | None:
    """What a term asks the sign of, if that is a number; None if it asks anything else."""
    atom = p.atom
    if isinstance(atom, Apply) and atom.function == POSITIVE and not atom.args[0].doubt:
        return atom.args[0]
    return None


def is_count(atom: Atom) -> bool:
    """Whether a sum counts truth values, wherever it is read."""
    return (
        isinstance(atom, Read)
        and atom.tensor.kind == "sum"
        and atom.tensor.seal is None
        and is_product(atom.tensor.bodies[0])
    )


@once_a_session
def what_is_counted(atom: Atom) -> tuple[tuple[Var, ...], Poly] | None:
    """What a sum counts: variables, which are always the same for a sum, and conditions on them."""
    return _of_truths(atom, "sum")


@once_a_session
def what_is_asked(atom: Atom) -> tuple[tuple[Var, ...], Poly] | None:
    """Of what conditions a maximum says whether any holds, or the sign of one, and the variables that these hang on."""
    from hlo_verify.terms.definitions import unfold  # which is built on guards
    from hlo_verify.terms.laws import apply

    greatest = atom.args[0].atom if isinstance(atom, Apply) and atom.function == POSITIVE else None
    if not isinstance(greatest, Read):
        return _of_truths(atom, "max")
    if greatest.tensor.kind != "max" or greatest.tensor.seal is not None or greatest.doubt:
        return None
    bound, (body,) = unfold(greatest)
    held = apply(POSITIVE, (body,))
    return (bound, held) if is_product(held) else None


def _of_truths(atom: Atom, kind: str) -> tuple[tuple[Var, ...], Poly] | None:
    from hlo_verify.terms.definitions import unfold  # which is built on guards

    if not isinstance(atom, Read) or atom.tensor.kind != kind or atom.tensor.seal is not None:
        return None
    if not is_product(atom.tensor.bodies[0]):
        return None
    bound, (body,) = unfold(atom)
    return (bound, body) if is_product(body) else None  # at its place, conditions may be decided


def is_product(p: Poly) -> bool:
    """Whether a term is a product of truth values."""
    return len(p.items) == 1 and all(c == 1 and mono and all(atom.boolean for atom, _ in mono) for mono, c in p.items)


def joined(function: Function, terms: list[Poly]) -> list[Poly]:
    """The terms of an extremum with one in place of all that are truth values: whether all hold, or any does."""
    flags = [p for p in terms if is_truth(p)]
    if len(flags) < 2:
        return terms
    if function == MAXIMUM:
        flags = [subtract(ONE, p) for p in flags]
    if any(len(p.items) > 1 for p in flags) and not allows("multiplied_terms", prod(len(p.items) for p in flags)):
        return terms
    used("extremum of truth values")
    both = reduce(multiply, flags)
    return [*(p for p in terms if not is_truth(p)), subtract(ONE, both) if function == MAXIMUM else both]


def each_of(reducer: str, p: Poly) -> list[Poly]:
    """The truth values of which all hold where a term is 1, of a least one; those of which any does, of a greatest.
    There are none but the term itself where it is no such product."""
    if reducer == "min":
        return [of_atom(atom) for atom, _ in p.items[0][0]] if is_product(p) else [p]
    atoms = {atom for mono, _ in p.items for atom, _ in mono}
    if len(atoms) < 2 or not is_truth(p) or not allows("multiplied_terms", 1 << len(atoms)):
        return [p]
    none = reduce(multiply, (subtract(ONE, of_atom(atom)) for atom in sorted(atoms, key=lambda a: a.uid)))
    return [of_atom(atom) for atom in atoms] if add(p, none) is ONE else [p]
