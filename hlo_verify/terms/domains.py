"""Conditions under which functions of what is never negative have values.

[n > 0] * s/n        is a number, for a count n and a number s
"""

from __future__ import annotations

from collections.abc import Collection

from hlo_verify.memory import once_a_session
from hlo_verify.terms import signs
from hlo_verify.terms.doubts import is_defined_of_positive
from hlo_verify.terms.functions import POSITIVE
from hlo_verify.terms.term import Apply, Atom, Number, Poly


@once_a_session
def where_defined(atom: Atom | None) -> Poly | None:
    """The condition that what a function is of is positive, where it is a number that is never negative, and the
    function has a value for it then; None of other atoms."""
    from hlo_verify.terms.laws import apply  # laws are about products

    if not isinstance(atom, Apply) or len(atom.args) != 1 or not is_defined_of_positive(atom):
        return None
    (given,) = atom.args
    is_either = not given.doubt and not signs.of(given) & ~(signs.ZERO | signs.POSITIVE)
    return apply(POSITIVE, (given,)) if is_either else None


def is_defined_beside(atom: Atom, factors: Collection[tuple[Atom, Number]]) -> bool:
    """Whether some factors have the condition among them under which an atom has a value."""
    defined = where_defined(atom)
    if defined is None or len(defined.items) != 1:
        return False
    ((mono, c),) = defined.items
    return c == 1 and {asked for asked, _ in mono} <= {asked for asked, _ in factors}
