"""Updates that overwrite an element and are one there, whichever of them wins.

    x.at[n].set(c)        at p is  c    where any n(u) = p, else x[p]
    x.at[n].set(f(x[n]))  at p is  f(x[p])    likewise

An update that lands on an element may be read at the place where it lands, which is that element's own: where it then
depends no longer on which update it is, all that land there are the same. So are tokens marked as seen, masked, or
penalised.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque, Var
from hlo_verify.ops.elements import with_integer
from hlo_verify.terms.term import Poly


def one_of(bound: Sequence[Var], landings: Iterable[tuple[Index, Index]], update: Poly) -> Poly | None:
    """An update at the element that it lands on, as a term without the bound variables, which say which update it is;
    None where it hangs on them. Each landing is the index of an update in a dimension, and that of the element."""
    for place, element in landings:
        if update.free.isdisjoint(bound):
            break
        found = _looked_up(place, bound)
        if found is not None:
            part, c = found
            rest = expr.subtract(place, expr.scale(expr.of_atom(part), c))
            update = with_integer(update, part, expr.scale(expr.subtract(element, rest), c))
    return update if update.free.isdisjoint(bound) else None


def _looked_up(place: Index, bound: Sequence[Var]) -> tuple[Opaque, int] | None:
    """The only integer in a place that is looked up for each update, and its factor, 1 or -1."""
    parts = [(part, c) for part, c in place.items if isinstance(part, Opaque)]
    if len(parts) != 1 or abs(parts[0][1]) != 1 or parts[0][0].free.isdisjoint(bound):
        return None
    return parts[0]
