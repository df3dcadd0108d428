"""What a walk over both modules has passed: logical tensors that devices hold, each taken for a tensor of its own.

A value of the last layer is made of all the layers before it. Whether it is a shard of that layer's result does not
depend on what these computed, as long as both sides read the same tensors of them:

    devices      tanh(X7[16*d + i]*w[7] + [d < 3 or i < 15]*X7[16*d + i + 1])
    logical      tanh(X7[i]*w[7] + [i < 63]*X7[i + 1])

So X7, a definition that reaches back to the arguments, is taken for an argument here. What holds for any tensor in its
place holds for this one. The reverse is not so: that X7 is nowhere negative, or 0 at its end, is not seen any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hlo_verify.equality import opening
from hlo_verify.index import expr
from hlo_verify.terms import signs
from hlo_verify.terms.finite import if_unknown_may_be
from hlo_verify.terms.renaming import Leaves, Renaming
from hlo_verify.terms.term import Poly, Tensor, make_read, of_atom, tensor

COMPLEX = "complex<f64>"
"""What is taken for complex, as a definition has no element type where it is no integer: `1 + X7*X7` may be 0 then."""


@dataclass(slots=True)
class Frontier:
    """The tensors that stand for definitions, so far."""

    _stands: dict[Tensor, Tensor] = field(default_factory=dict)
    _open: set[Tensor] = field(default_factory=set)
    """Definitions for which nothing may stand."""
    _renaming: Renaming | None = None

    def pass_by(self, definitions: Iterable[Tensor]) -> None:
        """Let tensors stand for definitions from here on.

        An argument is taken for a number wherever it is read, so a definition has to be one.
        """
        for source in sorted(definitions, key=lambda source: source.uid):
            if source in self._stands or source in self._open:
                continue
            read = make_read(source, tuple(map(expr.of_var, source.params)))
            if not if_unknown_may_be().surely(of_atom(read)):
                self._open.add(source)
                continue
            dtype = COMPLEX if signs.of_atom(read) & signs.BEYOND else source.dtype
            self._stands[source] = tensor("argument", source.name, dtype, (), doubt=read.doubt)
            self._renaming = None

    def view(self, p: Poly) -> Poly:
        """The term about what stands for definitions."""
        if self._renaming is None:
            self._renaming = Renaming(self._stands, _Standing(self._stands))
        return self._renaming.poly(p)

    def both(self, p: Poly, q: Poly) -> tuple[Poly, Poly] | None:
        """Two terms about the same tensors, those that stand for definitions as far as both are about them; None where
        that is none, or they are about other tensors in the end."""
        stands = self._stands
        while True:
            renaming = Renaming(stands, _Standing(stands))
            views = renaming.poly(p), renaming.poly(q)
            apart = opening.arguments(views[0]) ^ opening.arguments(views[1])
            lone = {source for source, stand in stands.items() if stand in apart}
            if not lone:
                return None if apart or views == (p, q) else views
            stands = {source: stand for source, stand in stands.items() if source not in lone}


class _Standing(Leaves):
    """The tensors that terms are about, not looking into those for which others stand."""

    def __init__(self, stands: dict[Tensor, Tensor]) -> None:
        super().__init__()
        self._stands = stands

    def tensor(self, source: Tensor) -> frozenset[Tensor]:
        """The leaves of a definition; any other tensor is one itself."""
        return frozenset((source,)) if source in self._stands else super().tensor(source)
