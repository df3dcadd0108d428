"""An integer that is looked up, where a condition of a sum tells which one it is.

    sum v. [e(v) = i] f(v) g(e(v))   =   sum v. [e(v) = i] f(v) g(i)   =   g(i) * sum v. [e(v) = i] f(v)

So what every row looks up of its group (a mean, a scale, a maximum) is the group's where rows are added up by groups.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque, Var
from hlo_verify.memory import once_a_session
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.domains import where_defined
from hlo_verify.terms.functions import MAXIMUM
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Apply, Atom, Guard, Ix, Number, Poly, Read, number, value_of
from hlo_verify.terms.truths import is_count
from hlo_verify.terms.used import used


def told(bound: Sequence[Var], items: Sequence[tuple[Atom, Number]]) -> Poly | None:
    """A product with what a condition of it says an integer is in that integer's place in its other factors; None if
    no condition says one that depends on the variables, or if no factor is about it.

    What is looked up stays where it is if at the other place it may be no number, and in the other conditions: a row's
    number among the rows of its group is found by what it compares. What divides by a sum that is positive where a row
    has addends of it does so where the sum is positive: of a group without rows, no row looks up anything.
    """
    for guard, _ in items:
        if not isinstance(guard, Guard) or guard.lo != guard.hi or guard.lo is None:
            continue
        for entry, c in guard.form.items:
            if not isinstance(entry, Opaque) or abs(c) != 1 or entry.free.isdisjoint(bound):
                continue
            rest = expr.subtract(guard.form, expr.scale(expr.of_atom(entry), c))
            place = expr.scale(expr.shift(rest, -guard.lo), -c)
            if place.free.isdisjoint(bound) and entry.lo <= place.lo and place.hi <= entry.hi:
                found = _telling(entry, place).product(items)
                if found is not None:
                    used("what a condition tells")
                    return found
    return None


class _Told:
    """Puts an index expression in the place of an integer. Each factor is looked at once: a count of what sums over
    rows ask about stands in many of them, and is written out to see whether it is about that integer."""

    def __init__(self, entry: Opaque, place: Index) -> None:
        self.entry, self.place = entry, place
        self._known: dict[Atom, Poly | None] = {}
        read = value_of(entry).atom if entry.operator == "value" else None
        kept = INTEGER_RANGES.get(read.tensor.dtype) if isinstance(read, Read) else None
        self.read = read if kept and kept[0] <= entry.lo and entry.hi <= kept[1] else None

    def product(self, items: Sequence[tuple[Atom, Number]]) -> Poly | None:
        changed: dict[Atom, Poly] = {}
        for atom, _ in items:
            if not atom.boolean and not atom.free.isdisjoint(self.entry.free):
                found = self._atom(atom)
                if found is not None and found.doubt & ~atom.doubt:
                    defined = where_defined(found.atom)
                    found = None if defined is None else algebra.multiply(defined, found)
                if found is not None:
                    changed[atom] = found
        return algebra.product_with(tuple(items), changed.get) if changed else None

    def _atom(self, atom: Atom) -> Poly | None:
        """What an atom is of the place; None if it is not about the integer."""
        if atom not in self._known:
            self._known[atom] = self._found(atom)
        return self._known[atom]

    def _found(self, atom: Atom) -> Poly | None:
        if atom is self.read:
            return algebra.of_index(self.place)
        if isinstance(atom, Read):
            places = [self._index(e) for e in atom.indices]
            return self._inside(atom) if _are(places, atom.indices) else algebra.read(atom.tensor, places)
        if isinstance(atom, Ix):
            index = self._index(atom.index)
            return None if index is atom.index else algebra.of_index(index)
        if isinstance(atom, Guard):
            form = self._index(atom.form)
            return None if form is atom.form else guards.interval(form, atom.lo, atom.hi)
        args = [algebra.with_atoms(p, self._atom) for p in atom.args] if isinstance(atom, Apply) else []
        return None if _are(args, atom.args) else apply(atom.function, tuple(args))

    def _inside(self, atom: Read) -> Poly | None:
        """A count of what is compared with the integer, as that of the place: how many there are of what an element is.

        It is one at least, as the element is one of them, and is so under the condition alone.
        """
        if not is_count(atom) or not self.entry.free <= atom.free:
            return None
        from hlo_verify.terms.counts import range_of_count  # counts are sums, as this is about
        from hlo_verify.terms.sums import reduce_sum

        bound, (body,) = unfold(atom)
        inside = algebra.with_atoms(body, self._atom)
        if inside is body:
            return None
        found, least = reduce_sum(bound, inside), range_of_count(atom)
        return found if least is None or least[0] < 1 else apply(MAXIMUM, (found, number(least[0])))

    def _index(self, e: Index) -> Index:
        if self.entry.free.isdisjoint(e.free):
            return e
        parts = [expr.constant(e.const)]
        for atom, c in e.items:
            parts.append(expr.scale(expr.of_atom(atom) if isinstance(atom, Digit) else self._opaque(atom), c))
        return expr.add(*parts)

    def _opaque(self, atom: Opaque) -> Index:
        if atom is self.entry:
            return self.place
        if atom.operator == "value":
            found = algebra.with_atoms(value_of(atom), self._atom)
            return expr.of_atom(atom) if found is atom.term else algebra.as_index(found, atom.lo, atom.hi)
        inner = self._index(atom.exprs[0])
        return expr.of_atom(atom) if inner is atom.exprs[0] else expr.again(atom, inner)


_telling = once_a_session(_Told)


def _are(one: Sequence[object], other: Sequence[object]) -> bool:
    return all(a is b for a, b in zip(one, other, strict=True))
