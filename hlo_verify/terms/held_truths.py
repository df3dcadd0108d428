"""Conditions that hold wherever a product is not 0, in the places of its other factors.

    [p] x[[p]*e + [not p]*c]   =   [p] x[e]

So what is looked up where a mask holds is looked up at the place that is meant there, whatever stands for it
elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable

from hlo_verify.memory import once_a_session
from hlo_verify.terms import guards
from hlo_verify.terms.places import values_in_places, with_values
from hlo_verify.terms.term import ONE, Apply, Atom, Guard, Monomial, Poly, Read, of_atom
from hlo_verify.terms.used import used


def told(mono: Monomial) -> tuple[Monomial, Poly] | None:
    """A product as the factors that stay, and what another one is where its conditions hold; None where all stay."""
    conditions = [atom for atom, _ in mono if atom.boolean]
    for item in mono if conditions else ():
        atom, n = item
        held = {p for p in _asked(atom) if _is_held(p, (other for other in conditions if other is not atom))}
        if held and not atom.doubt:
            from hlo_verify.terms.products import power_of  # products are made with this

            image = power_of(_where(atom, held), n)
            if len(image.items) <= 1:
                used("condition in a place")
                return tuple(other for other in mono if other is not item), image
    return None


@once_a_session
def _asked(atom: Atom) -> frozenset[Atom]:
    """The conditions that are factors in what an atom's places take the values of; a function's arguments' too."""
    if isinstance(atom, Apply):
        return frozenset().union(*(_asked(inner) for arg in atom.args for mono, _ in arg.items for inner, _ in mono))
    if not isinstance(atom, Read | Guard):
        return frozenset()
    return frozenset(
        inner for value in values_in_places(atom) for mono, _ in value.items for inner, _ in mono if inner.boolean
    )


def _is_held(asked: Atom, conditions: Iterable[Atom]) -> bool:
    """Whether a condition holds where all of these do."""
    return any(
        asked is held
        or (isinstance(asked, Guard) and isinstance(held, Guard) and guards.intersect(held, asked) is held)
        for held in conditions
        if not isinstance(held, Guard) or (isinstance(asked, Guard) and held.form is asked.form)
    )


def _where(atom: Atom, held: set[Atom]) -> Poly:
    """An atom where those conditions hold."""
    from hlo_verify.terms.laws import apply  # likewise
    from hlo_verify.terms.products import read, with_atoms

    if held.isdisjoint(_asked(atom)):
        return of_atom(atom)
    if isinstance(atom, Apply):
        return apply(atom.function, tuple(with_atoms(arg, lambda a: _where(a, held)) for arg in atom.args))

    def there(value: Poly) -> Poly:
        return with_atoms(value, lambda a: ONE if a in held else None)

    if isinstance(atom, Guard):
        return guards.interval(with_values(atom.form, there), atom.lo, atom.hi)
    assert isinstance(atom, Read)
    return read(atom.tensor, [with_values(e, there) for e in atom.indices])
