"""Terms that are one term at places side by side, joined: what a program adds up, or puts together, piece by piece.

    f(0) + f(1) + f(2)                             = sum v<3. f(v)
    sum v<4. f(v)  +  sum v<2. f(v + 4)            = sum v<6. f(v)
    sum v<4. f(v)  +  f(4)                         = sum v<5. f(v)

`spread` finds f: two terms of one structure differ in constants alone, and where all constants are equally far apart
from one term to the next, they are multiples of a variable. It goes through definitions, since a definition of
device 2 has device 2's offsets in it. What it gives is equal to each term by congruence: equal parts make equal wholes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.limits import allows
from hlo_verify.looking import look
from hlo_verify.memory import once_a_session, per_session
from hlo_verify.terms import algebra, guards, picking
from hlo_verify.terms.at_constants import at_constants, remade
from hlo_verify.terms.definitions import at_places, fresh_places, unfold
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.laws import apply
from hlo_verify.terms.places import spread_values
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import (
    Apply,
    Atom,
    Guard,
    Ix,
    Monomial,
    Number,
    Poly,
    Read,
    Tensor,
    make_poly,
    mix,
    monomial_skey,
    of_atom,
)
from hlo_verify.terms.used import used

SORTED_BY = 32
"""Constants by which terms are sorted: terms that differ in none of these are seldom neighbours."""


def spread(terms: Sequence[Poly], place: Var) -> Poly | None:
    """A term that is the n-th of those where `place` is n; None where none is found."""
    known = _spreads()
    found = known.setdefault(place.size, _Spread(expr.var("place", -place.size, place.size))).poly(tuple(terms))
    return None if found is None else algebra.substitute(found, {known[place.size].place: expr.of_var(place)})


class _ApartError(Exception):
    """Terms that differ in more than constants that are equally far apart."""


class _Spread:
    """Makes one term of several; each combination of subterms, and of definitions, once."""

    def __init__(self, place: Var) -> None:
        self.place = place
        self._place = expr.of_var(place)
        self._memo: dict[tuple[int, ...], Poly | None] = {}
        self._tensors: dict[tuple[Tensor, ...], tuple[list[Var], Poly] | None] = {}

    def poly(self, terms: tuple[Poly, ...]) -> Poly | None:
        """The one term, if there is one."""
        if all(p is terms[0] for p in terms):
            return terms[0]
        key = tuple(p.uid for p in terms)
        if key not in self._memo:
            try:
                self._memo[key] = self._made(terms)
            except _ApartError:
                self._memo[key] = None
        return self._memo[key]

    def _one(self, terms: tuple[Poly, ...]) -> Poly:
        found = self.poly(terms)
        if found is None:
            raise _ApartError
        return found

    def _made(self, terms: tuple[Poly, ...]) -> Poly:
        constants = tuple(next((c for mono, c in p.items if not mono), 0) for p in terms)
        others = [sorted((item for item in p.items if item[0]), key=_key_of_addend) for p in terms]
        if len({len(items) for items in others}) != 1:
            raise _ApartError
        image: dict[Atom, Poly] = {}
        for addends in zip(*others, strict=True):
            if any(c != addends[0][1] for _, c in addends):
                raise _ApartError
            self._product(tuple(mono for mono, _ in addends), image)
        first = make_poly(tuple(item for item in terms[0].items if item[0]))
        made = algebra.with_atoms(first, image.get)
        return made if not any(constants) else algebra.add(made, self._number(constants))

    def _product(self, monos: tuple[Monomial, ...], image: dict[Atom, Poly]) -> None:
        """Note what each factor of the first product becomes. One factor can only become one thing."""
        if len({len(mono) for mono in monos}) != 1:
            raise _ApartError
        for factors in zip(*(sorted(mono, key=_key_of_factor) for mono in monos), strict=True):
            if any(power != factors[0][1] for _, power in factors):
                raise _ApartError
            made = self._atom(tuple(atom for atom, _ in factors))
            if image.setdefault(factors[0][0], made) is not made:
                raise _ApartError

    def _number(self, constants: tuple[Number, ...]) -> Poly:
        if all(c == constants[0] for c in constants):
            return algebra.scale(make_poly((((), 1),)), constants[0])
        if not all(isinstance(c, int) for c in constants):
            raise _ApartError
        return algebra.of_index(self._index(tuple(expr.constant(int(c)) for c in constants)))

    def _atom(self, atoms: tuple[Atom, ...]) -> Poly:
        first = atoms[0]
        if all(atom is first for atom in atoms):
            return of_atom(first)
        if len({type(atom) for atom in atoms}) != 1:
            raise _ApartError
        if isinstance(first, Read):
            return self._read(atoms)  # type: ignore[arg-type]
        if isinstance(first, Apply):
            return self._apply(atoms)  # type: ignore[arg-type]
        if isinstance(first, Ix):
            return algebra.of_index(self._index(tuple(atom.index for atom in atoms)))  # type: ignore[union-attr]
        return self._guard(atoms)  # type: ignore[arg-type]

    def _read(self, reads: tuple[Read, ...]) -> Poly:
        sources = tuple(read.tensor for read in reads)
        if len({len(read.indices) for read in reads}) != 1:
            raise _ApartError
        indices = [self._index(each) for each in zip(*(read.indices for read in reads), strict=True)]
        if all(source is sources[0] for source in sources):
            return algebra.read(sources[0], indices)
        if sources not in self._tensors:
            self._tensors[sources] = self._definition(sources)
        found = self._tensors[sources]
        if found is None:
            raise _ApartError
        return algebra.substitute(found[1], dict(zip(found[0], indices, strict=True)))

    def _definition(self, sources: tuple[Tensor, ...]) -> tuple[list[Var], Poly] | None:
        """A definition that is the n-th of those at the place n, read at some variables."""
        first = sources[0]
        if not first.bodies or len({_frame(source) for source in sources}) != 1:
            return None
        if any(source.attributes != first.attributes or source.seal is not None for source in sources):
            return None
        places = fresh_places(len(first.params) + first.own)
        at = tuple(map(expr.of_var, places))
        bound, there = at_places(first, at[: len(first.params)])
        try:
            bodies = [
                self._one(tuple(map(there.poly, each)))
                for each in zip(*(source.bodies for source in sources), strict=True)
            ]
        except _ApartError:
            return None
        return places, remade(first, bound, tuple(bodies), at[len(first.params) :])

    def _apply(self, atoms: tuple[Apply, ...]) -> Poly:
        function = atoms[0].function
        if any(atom.function != function or len(atom.args) != len(atoms[0].args) for atom in atoms):
            raise _ApartError
        args = [atom.args for atom in atoms]
        if function.properties.commutative:
            args = [tuple(sorted(own, key=lambda p: (p.skey, _constants(p)))) for own in args]
        return apply(function, tuple(map(self._one, zip(*args, strict=True))))

    def _guard(self, atoms: tuple[Guard, ...]) -> Poly:
        form = self._index(tuple(atom.form for atom in atoms))
        lower, upper = [atom.lo for atom in atoms], [atom.hi for atom in atoms]
        if len({lo is None for lo in lower}) != 1 or len({hi is None for hi in upper}) != 1:
            raise _ApartError
        above = algebra.multiply(self._beyond(form, lower, 1), self._beyond(form, upper, -1))
        if None in lower or None in upper:
            return above
        apart = {hi - lo for lo, hi in zip(lower, upper, strict=True) if lo is not None and hi is not None}
        if len(apart) != 1:
            return above
        start = self._index(tuple(expr.constant(lo) for lo in lower if lo is not None))
        return guards.interval(expr.subtract(form, start), 0, apart.pop())

    def _beyond(self, form: Index, bounds: Sequence[int | None], sign: int) -> Poly:
        """Where a form is at least (sign 1) or at most (-1) what bounds it."""
        known = tuple(expr.constant(bound) for bound in bounds if bound is not None)
        if not known:
            return guards.interval(expr.constant(0), 0, 0)
        return guards.interval(expr.scale(expr.subtract(form, self._index(known)), sign), 0, None)

    def _index(self, own: tuple[Index, ...]) -> Index:
        if all(e is own[0] for e in own):
            return own[0]
        es = spread_values(own, self._one)
        first = es[0]
        step = es[1].const - first.const
        if any(e.items != first.items or e.const != first.const + n * step for n, e in enumerate(es)):
            raise _ApartError
        return expr.add(first, expr.scale(self._place, step))


def _frame(source: Tensor) -> tuple[Any, ...]:
    """What definitions of one structure have in common."""
    sizes = tuple(v.size for v in source.bound)
    return source.kind, sizes, len(source.params), source.own, len(source.bodies), source.dtype


_spreads: Callable[[], dict[int, _Spread]] = per_session("terms at equal distances", dict)


def _key_of_addend(item: tuple[Monomial, Number]) -> tuple[Any, ...]:
    return monomial_skey(item[0]), item[1], _constants(make_poly((item,)))


def _key_of_factor(item: tuple[Atom, Number]) -> tuple[Any, ...]:
    return item[0].skey, item[1], _constants(of_atom(item[0]))


@once_a_session
def _constants(p: Poly) -> tuple[int, ...]:
    """The first constants in a term, in an order that does not hang on what they are, as far as structure tells parts
    apart: what sorts terms of one structure by how far on they are."""
    found: list[tuple[int, ...]] = []
    for mono, _ in p.items:
        for atom, _ in mono:
            if isinstance(atom, Read):
                inner = tuple(c for body in atom.tensor.bodies for c in _constants(body))
                found.append((atom.skey, *(e.const for e in atom.indices), *inner))
            elif isinstance(atom, Apply):
                found.append((atom.skey, *(c for arg in atom.args for c in _constants(arg))))
            elif isinstance(atom, Guard):
                found.append((atom.skey, atom.lo or 0, atom.hi or 0))
    return tuple(c for part in sorted(found) for c in part)[:SORTED_BY]


# Sums

Flat = tuple[tuple[Var, ...], Poly]
"""A product as the sum of a term over some variables."""

_joined: Callable[[], dict[tuple[Poly, bool], Poly]] = per_session("sums joined piece by piece", dict)


IDLE = 4
"""So often in a row a sum may become no shorter: what two addends are together may go with others only later."""


def joined(p: Poly, *, is_near: bool = False) -> Poly:
    """The term, in which what is added up piece by piece is one sum; two elements are, with `is_near`, only where they
    are side by side."""
    if len(p.items) < 2 or not allows("joined_terms", len(p.items)):
        return p
    known = _joined()
    if (p, is_near) not in known:
        whole = p
        idle, least = 0, len(p.items)
        while idle < IDLE and (shorter := _shorter(whole, is_near)) is not None:
            idle = 0 if len(shorter.items) < least else idle + 1
            whole, least = shorter, min(least, len(shorter.items))
        known[p, is_near] = known[whole, is_near] = whole
    return known[p, is_near]


def _shorter(p: Poly, is_near: bool) -> Poly | None:
    """The term with two of its addends joined: two elements side by side first, then such as are further apart. Of
    `x[0] + x[1] + x[2] + x[3] + x[14]` nothing is left over that way but the last one."""
    groups: dict[tuple[Number, int], list[Monomial]] = {}
    for mono, c in p.items:
        if mono:
            groups.setdefault((c, _loose(mono)), []).append(mono)
    for near in (True,) if is_near else (True, False):
        for (c, _), monos in groups.items():
            for one, other in combinations(monos, 2):
                whole = _together(one, other) if _are_near(one, other) is near else None
                if whole is not None:
                    used("sum piece by piece")
                    rest = make_poly(tuple(item for item in p.items if item[0] is not one and item[0] is not other))
                    return algebra.add(rest, algebra.scale(whole, c))
    return None


def _are_near(one: Monomial, other: Monomial) -> bool:
    """Whether two products are no single elements, or such as have places side by side."""
    apart = picking.distance(one, other)
    if apart is not None or _sum_of(one) is not None or _sum_of(other) is not None:
        return apart in (None, 1)
    first, second = (_constants(make_poly(((mono, 1),))) for mono in (one, other))
    return all(abs(a - b) <= 1 for a, b in zip(first, second, strict=False))


_pairs: Callable[[], dict[tuple[Monomial, Monomial], Poly | None]] = per_session("neighbouring products", dict)


def _together(one: Monomial, other: Monomial) -> Poly | None:
    """The sum of two products, as one sum."""
    known = _pairs()
    key = one, other
    if key not in known:
        look()
        known[key] = next(_sums(_flat(one), _flat(other)), None)
    return known[key]


def _sums(one: Flat, other: Flat) -> Iterator[Poly]:
    if [v.size for v in one[0]] == [v.size for v in other[0]]:
        there: dict[Var, Index] = {w: expr.of_var(v) for v, w in zip(one[0], other[0], strict=True)}
        yield from picking.picked(one[0], one[1], algebra.substitute(other[1], there), spread)
    for first, second in ((one, other), (other, one)):
        if first[0] and len(second[0]) == len(first[0]):
            yield from _followed(first, second)
        elif first[0] and len(second[0]) == len(first[0]) - 1:
            yield from _with_one_more(first, second)
    if not one[0] and not other[0]:
        v = expr.fresh("f", 2)
        term = spread(sorted((one[1], other[1]), key=lambda p: (picking.looked_up(p), _constants(p))), v)
        if term is not None and v in term.free:
            yield reduce_sum([v], term)


def _followed(first: Flat, second: Flat) -> Iterator[Poly]:
    """The sum over a range and over the next one.

    What stands in its place is looked at in both ranges: beyond its own a term may say anything, as a table does.
    """
    (bound, body), (others, other_body) = first, second
    for n, v in enumerate(bound):
        rest = [*bound[:n], *bound[n + 1 :]]
        for m, w in enumerate(others):
            left = [*others[:m], *others[m + 1 :]]
            if [a.size for a in rest] != [a.size for a in left]:
                continue
            whole = expr.fresh("f", v.size + w.size)
            mapping: dict[Var, Index] = {a: expr.of_var(b) for a, b in zip(left, rest, strict=True)}
            here = algebra.substitute(other_body, mapping)
            both = algebra.substitute(body, {v: expr.of_var(whole)})
            behind = algebra.substitute(both, {whole: expr.shift(expr.of_var(w), v.size)})
            if here is behind and algebra.substitute(both, {whole: expr.of_var(v)}) is body:
                yield reduce_sum([whole, *rest], both)


def _with_one_more(first: Flat, second: Flat) -> Iterator[Poly]:
    """The sum over a range, and a term at the place behind it or before it; looked at in both, as above."""
    (bound, body), (others, other_body) = first, second
    for n, v in enumerate(bound):
        rest = [*bound[:n], *bound[n + 1 :]]
        if [a.size for a in rest] != [a.size for a in others]:
            continue
        mapping: dict[Var, Index] = {a: expr.of_var(b) for a, b in zip(others, rest, strict=True)}
        here = at_constants(algebra.substitute(other_body, mapping))
        for at, start in ((v.size, 0), (0, -1)):
            whole = expr.fresh("f", v.size + 1)
            all_ = algebra.substitute(body, {v: expr.shift(expr.of_var(whole), start)})
            if at_constants(algebra.substitute(all_, {whole: expr.constant(at)})) is not here:
                continue
            if algebra.substitute(all_, {whole: expr.shift(expr.of_var(v), -start)}) is body:
                yield reduce_sum([whole, *rest], all_)


def _flat(mono: Monomial) -> Flat:
    """A product with sums among its factors, as one sum of products."""
    bound: list[Var] = []
    while (read := _sum_of(mono)) is not None:
        more, (body,) = unfold(read)
        whole = algebra.product_with(mono, {read: body}.get)
        if len(whole.items) != 1 or whole.items[0][1] != 1:
            break
        bound += more
        mono = whole.items[0][0]
    return tuple(bound), make_poly(((mono, 1),))


def _sum_of(mono: Monomial) -> Read | None:
    """A sum among the factors of a product, which may be taken apart: infinities do not distribute."""
    if any(atom.doubt & INFINITE for atom, _ in mono):
        return None
    sums = (atom for atom, n in mono if isinstance(atom, Read) and atom.tensor.kind == "sum" and n == 1)
    return next((read for read in sums if read.tensor.seal is None), None)


def _loose(mono: Monomial) -> int:
    """The structure of a product, the same for a sum over more or fewer values."""
    return mix(*sorted(_factors(mono)))


def _factors(mono: Monomial) -> list[int]:
    read = _sum_of(mono)
    own = [picking.structure(atom, n) for atom, n in mono if atom is not read]
    if read is None:
        return own
    return own + (_factors(read.tensor.bodies[0].items[0][0]) if len(read.tensor.bodies[0].items) == 1 else [read.skey])
