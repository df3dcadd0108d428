"""The terms whose values index expressions take: the rows of a lookup, what is rounded to a place."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_verify.index.expr import Opaque
from hlo_verify.terms.term import Atom, Poly, indices, value_of


def values_in_places(atom: Atom) -> Iterator[Poly]:
    """The terms whose values an atom's own index expressions take, those of integers within integers too."""
    pending = list(indices(atom))
    while pending:
        for part, _ in pending.pop().items:
            if isinstance(part, Opaque):
                pending += part.exprs
                if part.term is not None:
                    yield value_of(part)
