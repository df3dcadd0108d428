"""The terms whose values index expressions take: the rows of a lookup, what is rounded to a place."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque
from hlo_verify.terms.machine import as_index
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


def with_values(e: Index, image: Callable[[Poly], Poly]) -> Index:
    """An index expression with the images of the terms whose values it takes; the same object where these are."""
    parts: list[Index] = []
    rest: list[tuple[expr.Atom, int]] = []
    for atom, c in e.items:
        if isinstance(atom, Digit):
            rest.append((atom, c))
        else:
            parts.append(expr.scale(_with_value(atom, image), c))
    return expr.add(expr.build(e.const, rest), *parts) if parts else e


def _with_value(atom: Opaque, image: Callable[[Poly], Poly]) -> Index:
    if atom.operator == "value":
        found = image(value_of(atom))
        return expr.of_atom(atom) if found is atom.term else as_index(found, atom.lo, atom.hi)
    inner = with_values(atom.exprs[0], image)
    return expr.of_atom(atom) if inner is atom.exprs[0] else expr.again(atom, inner)
