"""Structural keys of terms: equal for terms that differ in where they are evaluated and in the names of variables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque, Var
from hlo_verify.terms.term import Apply, Atom, Guard, Ix, Monomial, Number, Poly, Read, mix, value_of


class Keys:
    """Structural keys of subterms, aware of the bound variables and blind to free index expressions."""

    def __init__(self, colors: dict[Var, int]) -> None:
        self.colors = colors
        self.seen: dict[Var, list[int]] = {v: [] for v in colors}
        self._memo: dict[int, int] = {}

    def _is_plain(self, free: frozenset[Var]) -> bool:
        """Whether nothing with those variables is told apart here."""
        return free.isdisjoint(self.colors)

    def index(self, e: Index, inside: int) -> int:
        """The key of an index expression; `inside` is that of the place where it occurs."""
        if e.free.isdisjoint(self.colors):
            return 0
        parts = []
        for atom, c in e.items:
            if isinstance(atom, Digit):
                if atom.var in self.colors:
                    parts.append(mix(self.colors[atom.var], atom.low, atom.radix, c))
                    self.seen[atom.var].append(mix(inside, atom.low, atom.radix, c))
            elif not atom.free.isdisjoint(self.colors):
                inner = [self.index(x, mix(inside, c)) for x in atom.exprs]
                if atom.term is not None:
                    inner.append(self.poly(value_of(atom)))
                parts.append(mix(atom.operator, c, *inner))
        return mix(*sorted(parts))

    def atom(self, a: Atom) -> int:
        if self._is_plain(a.free):
            return a.skey
        found = self._memo.get(a.uid)
        if found is None:
            if isinstance(a, Read):
                k = a.tensor.skey
                found = mix(k, *(self.index(e, mix(k, n)) for n, e in enumerate(a.indices)))
            elif isinstance(a, Apply):
                parts = [self.poly(p) for p in a.args]
                found = mix(str(a.function), *(sorted(parts) if a.function.properties.commutative else parts))
            elif isinstance(a, Ix):
                found = mix("ix", self.index(a.index, 1))
            else:
                form, lo, hi = oriented(a)
                found = mix("guard", lo is None, hi is None, self.index(form, 2))
            self._memo[a.uid] = found
        return found

    def monomial(self, mono: Monomial) -> int:
        return mix(*sorted(mix(self.atom(a), n) for a, n in mono))

    def poly(self, p: Poly) -> int:
        if self._is_plain(p.free):
            return p.skey
        found = self._memo.get(p.uid)
        if found is None:
            found = mix(*sorted(mix(self.monomial(mono), c) for mono, c in p.items))
            self._memo[p.uid] = found
        return found


def colors_of(bound: Sequence[Var], bodies: Sequence[Poly]) -> dict[Var, int]:
    """What tells bound variables apart, whatever they are called: sizes, places, and what is left of the bodies where
    one of them is marked.

    In `[x[a] < x[b]]` both are places of x. With a marked, the lesser element is, and with b, the greater one.
    """
    keys = Keys({v: mix(v.size, 0) for v in bound})
    for body in bodies:
        keys.poly(body)
    colors = {v: mix(v.size, *sorted(keys.seen[v])) for v in bound}
    alike = Counter(colors.values())
    marked = {v: _marked(v, colors, bodies) for v in bound if alike[colors[v]] > 1}
    differ = {color for color in alike if len({key for v, key in marked.items() if colors[v] == color}) > 1}
    return {v: mix(color, marked[v]) if color in differ else color for v, color in colors.items()}


def _marked(v: Var, colors: dict[Var, int], bodies: Sequence[Poly]) -> int:
    """The key of bodies in which a variable is told from the others."""
    keys = Keys(colors | {v: mix(colors[v], 0)})
    return mix(*map(keys.poly, bodies))


def key_of_addend(keys: Keys, item: tuple[Monomial, Number]) -> tuple[Any, ...]:
    """What addends are ordered by."""
    return keys.monomial(item[0]), item[1]


def key_of_factor(keys: Keys, item: tuple[Atom, Number]) -> tuple[Any, ...]:
    """What factors are ordered by."""
    return keys.atom(item[0]), item[1]


def key_of_part(keys: Keys, item: tuple[expr.Atom, int]) -> tuple[Any, ...]:
    """What the multiples in an index expression are ordered by: digits first, then values of terms."""
    atom, c = item
    if isinstance(atom, Opaque) and atom.term is not None:
        return 1, keys.poly(value_of(atom)), c
    return 0, keys.index(expr.of_atom(atom), 0), c


class Placed(Keys):
    """Keys that tell free index expressions apart too, each by all the places where it occurs.

    In `norm(q) * norm(k) * score(q, k)` the first two have the same structure; q and k do not.
    """

    def __init__(self, colors: dict[Var, int], bodies: Sequence[Poly]) -> None:
        super().__init__(colors)
        self._where: dict[Index, list[int]] = {}
        self._places: dict[Index, int] = {}
        for body in bodies:
            self.poly(body)
        self._places = {e: mix(*sorted(where)) for e, where in self._where.items()}
        self._memo.clear()

    def _is_plain(self, free: frozenset[Var]) -> bool:
        return not free

    def index(self, e: Index, inside: int) -> int:
        if not e.free:
            return 0
        free, other = split(e, self.colors)
        parts = [super().index(e, inside)]
        if free:
            parts.append(self._place(expr.build(0, free), inside))
        for atom, c in other:
            if isinstance(atom, Opaque):
                parts += [self.index(x, mix(inside, c)) for x in atom.exprs]
                parts += [self.poly(value_of(atom))] if atom.term is not None else []
        return mix(*parts)

    def _place(self, base: Index, inside: int) -> int:
        opposite = expr.scale(base, -1)
        base = opposite if opposite in self._where else base
        self._where.setdefault(base, []).append(inside)
        return self._places.get(base, 0)


def split(e: Index, bound: Collection[Var]) -> tuple[list[tuple[expr.Atom, int]], list[tuple[expr.Atom, int]]]:
    """The part of an index expression that a parameter stands for, and the other atoms: bound, or opaque.

    A rotation is a place to read at, like any other, if it is free of bound variables; so is a quotient of digits and
    rotations.
    """
    free: list[tuple[expr.Atom, int]] = []
    other: list[tuple[expr.Atom, int]] = []
    for atom, c in e.items:
        if isinstance(atom, Opaque):
            is_free = (atom.operator == "mod" or _is_quotient(atom)) and atom.free.isdisjoint(bound)
        else:
            is_free = atom.var not in bound
        (free if is_free else other).append((atom, c))
    return free, other


def _is_quotient(atom: Opaque) -> bool:
    """Whether an opaque integer is a quotient of digits and rotations, as a digit is one of a variable."""
    inner = [a for e in atom.exprs for a, _ in e.items if isinstance(a, Opaque)]
    return atom.operator == "div" and all(a.operator == "mod" and _is_of_digits(a.exprs[0]) for a in inner)


def _is_of_digits(e: Index) -> bool:
    return not any(isinstance(a, Opaque) for a, _ in e.items)


def oriented(a: Guard) -> tuple[Index, int | None, int | None]:
    """A guard as `lo <= form <= hi` with the sign of the form chosen by its bounds, not by its variables."""
    lo, hi = a.lo, a.hi
    if lo is None:
        flip = True
    elif hi is None:
        flip = False
    else:
        flip = (abs(hi), -lo - hi) < (abs(lo), lo + hi)
    if not flip:
        return a.form, lo, hi
    return expr.scale(a.form, -1), (None if hi is None else -hi), (None if lo is None else -lo)
