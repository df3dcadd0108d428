"""What elements are ordered by (`terms.order_keys`), with sums of squares multiplied out.

argmin v. sum k. (a(k) - x(v, k))**2      is      argmax v. sum k. 2*a(k)*x(v, k) - x(v, k)**2
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from hlo_verify.equality import opening
from hlo_verify.index.expr import Var
from hlo_verify.terms import order_keys
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.order_keys import Key, less_addends
from hlo_verify.terms.rebuilding import rebuilt
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Atom, Poly, Read


def key_of(p: Poly, bound: Iterable[Var]) -> Key:
    """What elements are ordered by over variables, for a term."""
    return order_keys.key_of(p, bound, _of_sums)


def _of_sums(p: Poly, live: Collection[Var]) -> Key | None:
    """`sum k. (a(k) - x(v, k))**2` by `sum k. x(v, k)**2 - 2*a(k)*x(v, k)`: what is added up without the elements."""
    there: dict[Atom, Poly] = {}
    for atom in (a for mono, _ in p.items for a, n in mono if n == 1):
        if not isinstance(atom, Read) or atom.tensor.kind != "sum":
            continue
        bound, (body,) = unfold(atom)
        addends = opening.opened(body)
        if len(addends.items) > 1:
            there[atom] = reduce_sum(bound, addends)
    return less_addends(rebuilt(p, there, {}), live) if there else None
