"""What the expected side of a comparison computes whatever conditions say: where that is no number, nothing is asked of
the other side.

    minimum(s, 5)/s = [s > 5]*5/s + [s <= 5]        the one divides by s, which is not 0 then

Of `1/n - [c]/n`, which is not computed where c holds, n may be 0; and of `minimum(1/n, 5)`, which is 5 there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hlo_verify.equality.sides import EXPECTED, is_of
from hlo_verify.terms.doubts import INFINITE, TOTAL
from hlo_verify.terms.functions import INVERSE, ZERO_TIMES
from hlo_verify.terms.term import Apply, Atom, Monomial, Poly


@dataclass(slots=True)
class Anyway:
    """The functions that are factors of the expected side of a comparison, whether or not they have a value."""

    _is_always: dict[Apply, bool] = field(default_factory=dict)

    @staticmethod
    def of(p: Poly) -> Anyway:
        """Those of a term of two sides."""
        found = Anyway()
        for mono, _ in p.items:
            if is_of(mono, EXPECTED):
                found._note(mono, any(atom.boolean and not is_of(((atom, n),), EXPECTED) for atom, n in mono))
        return found

    def _note(self, mono: Monomial, is_chosen: bool) -> None:
        """Factors alone: what a function has of an infinite argument may be a number."""
        for atom, n in mono:
            if isinstance(atom, Apply) and atom.doubt and atom.function != ZERO_TIMES and n > 0:
                self._is_always[atom] = self._is_always.get(atom, True) and not is_chosen

    def not_zero(self) -> frozenset[Poly]:
        """What is divided by in any case."""
        return frozenset(a.args[0] for a, is_so in self._is_always.items() if is_so and a.function == INVERSE)

    def is_doubted(self, p: Poly) -> bool:
        """Whether a term may be no number where all of these are."""
        return bool(p.doubt) and any(self.is_atom_doubted(atom) for mono, _ in p.items for atom, _ in mono)

    def is_atom_doubted(self, atom: Atom) -> bool:
        """The same of a factor."""
        if not atom.doubt:
            return False
        if atom.doubt & INFINITE or not isinstance(atom, Apply):
            return True
        if self._is_always.get(atom):
            return False
        return atom.function.name not in TOTAL or any(map(self.is_doubted, atom.args))
