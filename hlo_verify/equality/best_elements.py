"""The indices of best elements, where one of the elements is known to be the best."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_verify.index.expr import Index
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.definitions import define
from hlo_verify.terms.places import values_in_places, with_values
from hlo_verify.terms.rebuilding import rebuilt
from hlo_verify.terms.term import Atom, Guard, Ix, Poly, Read, atoms, number

BEST = {"argmax": "max", "argmin": "min"}
"""What indices of best elements are the best of."""


def bests_in_places(atom: Atom) -> Iterator[Read]:
    """The indices of best elements that an atom's own index expressions are computed with."""
    for value in values_in_places(atom):
        yield from _bests(value)


def _bests(p: Poly) -> Iterator[Read]:
    return (a for a in atoms(p) if isinstance(a, Read) and a.tensor.kind in BEST and a.tensor.seal is None)


def at_best(atom: Atom, best: Read, n: int) -> Poly:
    """The atom, where the index of a best element is n."""

    def place(e: Index) -> Index:
        return with_values(e, lambda p: rebuilt(p, {best: number(n)}, {}))

    if isinstance(atom, Ix):
        return algebra.of_index(place(atom.index))
    if isinstance(atom, Guard):
        return guards.interval(place(atom.form), atom.lo, atom.hi)
    assert isinstance(atom, Read)
    return algebra.read(atom.tensor, [place(e) for e in atom.indices])


def wins(kind: str, dtype: str, value: Poly, values: list[Poly]) -> Poly:
    """That one of some different numbers is the first best one: by name, which says all that it depends on."""
    if len(values) == 1:
        return number(1)
    return define("wins", (), (value, *values), attributes=(kind, dtype), ordered=True, dtype="i1")
