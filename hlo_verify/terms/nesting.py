"""How much there is to a term where it is written out: what makes it anew looks at each part wherever it occurs.

A term of integers may hold another one in an index expression, that one a third, and so on: each is one object, and
twice as long as the one in it.
"""

from __future__ import annotations

from hlo_verify.index.expr import Index, Opaque
from hlo_verify.memory import once_a_session
from hlo_verify.terms.term import Apply, Poly, indices, value_of


@once_a_session
def nesting(p: Poly) -> int:
    """The number of atoms in a term, in arguments of functions and in index expressions too, but not in definitions."""
    return sum(
        1 + sum(map(nesting, atom.args)) if isinstance(atom, Apply) else 1 + sum(map(_inside, indices(atom)))
        for mono, _ in p.items
        for atom, _ in mono
    )


@once_a_session
def _inside(e: Index) -> int:
    return sum(
        1 + sum(map(_inside, part.exprs)) + (0 if part.term is None else nesting(value_of(part)))
        for part, _ in e.items
        if isinstance(part, Opaque)
    )
