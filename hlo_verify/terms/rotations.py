"""Sums over a part of the turns round a ring, joined where together they are a sum over all of its places.

    sum_i g((e + a_i) mod n)                             = sum s<n. g(s)    if the a_i are all residues modulo n
    sum_i sum v<k. g((e + a_i + c*v) mod n)              = sum s<n. g(s)    if the a_i + c*v are

This is what the windows of an einsum add up to whose operand goes round a ring of devices, in both directions or by
two places a turn: each takes some of the shards, from where the device is on. If every residue is taken k times, the
sum is k times that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque, Var
from hlo_verify.limits import allows, limit_of
from hlo_verify.memory import once_a_session
from hlo_verify.terms import algebra, ring_of_two
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import (
    Apply,
    Atom,
    Monomial,
    Number,
    Poly,
    Read,
    Tensor,
    atoms,
    indices,
    make_poly,
    monomial_skey,
    value_of,
)
from hlo_verify.terms.used import used


@dataclass(frozen=True, slots=True)
class _Turns:
    """A factor that is a sum over turns of a ring, `turning`, and over other variables."""

    read: Read
    body: Poly
    others: Sequence[Var]
    turning: tuple[Var, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Window:
    """A monomial that is at `(start + r) mod n` for the residues r, where one of its rotations is by so many turns."""

    monomial: Monomial
    turn: Opaque
    start: Index
    residues: tuple[int, ...]
    turns: _Turns | None = None

    @property
    def n(self) -> int:
        """How many places the ring has."""
        n: int = self.turn.args[0]
        return n


@dataclass(frozen=True, slots=True)
class _Part:
    """A window as the sum of `body`, in the variable `place`, over its places."""

    window: _Window
    body: Poly


def joined(p: Poly) -> Poly:
    """p with every set of monomials joined that go round a whole ring together, one of two places or of more."""
    if len(p.items) < 2 or not allows("ring_terms", len(p.items)):
        return p
    p = ring_of_two.joined(p)
    return ring_of_two.shortened(p, _joined_once) if turns(p) else p


def _joined_once(p: Poly) -> Poly | None:
    """p with one such set joined."""
    terms = dict(p.items)
    groups: dict[tuple[Number, int, Poly], list[_Part]] = {}
    for c, part in _candidates(_enough(p)):
        groups.setdefault((c, part.window.n, part.body), []).append(part)
    for (c, n, body), parts in groups.items():
        start = parts[0].window.start
        taken: Counter[int] = Counter()
        members: list[Monomial] = []
        for window in (part.window for part in parts):
            apart = expr.subtract(window.start, start)
            if not apart.items and window.monomial not in members:
                members.append(window.monomial)
                taken.update((apart.const + r) % n for r in window.residues)
        missing = set(range(n)).difference(taken)
        for residue in missing if len(missing) == 1 else ():  # the device's own place is written without a remainder
            there = algebra.substitute(body, {_place(n): expr.modulo(expr.shift(start, residue), n)})
            own = next((mono for mono in ring_of_two.written(there) if terms.get(mono) == c), None)
            if own is not None:
                members.append(own)
                taken[residue] += 1
        times = set(taken.values())
        if len(taken) == n and len(times) == 1 and len(set(members)) == len(members):
            used("turns of a ring")
            rest = make_poly(tuple((mono, k) for mono, k in p.items if mono not in members))
            return algebra.add(rest, algebra.scale(reduce_sum([_place(n)], body), c * times.pop()))
    return None


def is_part_of_turns(p: Poly) -> bool:
    """Whether a term adds up, as far as that can be seen, some turns of one ring in one or both directions, and nothing
    else: light addends at places of a ring that has as many. One in each direction may be the device's own, which is
    written without a remainder."""
    count = len(p.items)
    if count < 2 or not allows("ring_terms", count):
        return False
    most = limit_of("named_weight")
    rings: Counter[int] = Counter()
    for mono, _ in p.items:
        if sum(atom.weight for atom, _ in mono) > most:
            return False
        rings.update({turn.args[0] for atom, _ in mono for turn in _rotations(atom)})
    return any(2 * n >= count and found >= count - 2 and 2 * found > count for n, found in rings.items())


def _enough(p: Poly) -> list[tuple[Monomial, Number]]:
    """The monomials of which there may be as many as a ring has places, or all but one.

    Sums over turns count with all others of the same ring and factor; what is at one place each, with those of the same
    structure alone (`structure`), as the parts of one sum have.
    """
    rings: list[tuple[Monomial, Number, set[tuple[int, int]]]] = []
    places: Counter[tuple[Number, int, int]] = Counter()
    for mono, c in p.items:
        structure, found = 0, {}
        for atom, power in mono:
            if isinstance(atom, Read) and power == 1:
                found.update(_steps(atom.tensor))
        if not found:
            structure = monomial_skey(mono)
            found = {turn.args[0]: 1 for turn in _all_rotations(mono)}
        rings.append((mono, c, {(n, structure) for n in found}))
        for n, count in found.items():
            places[c, n, structure] += count
    return [(mono, c) for mono, c, ns in rings if any(places[c, n, structure] >= n - 1 for n, structure in ns)]


def _candidates(enough: Sequence[tuple[Monomial, Number]]) -> Iterator[tuple[Number, _Part]]:
    """What monomials may be parts of, each with its coefficient: only where windows lie at all places of a ring
    together. One may be missing where the place itself stands without a remainder.

    What an associative scan adds up is full of remainders modulo 2 that are no turns of any ring.
    """
    windows = [(c, window) for mono, c in enough for window in _windows(mono)]
    missing: dict[tuple[Number, int, object], set[int]] = {}
    for c, window in windows:
        left = missing.setdefault((c, window.n, window.start.items), set(range(window.n)))
        left.difference_update((window.start.const + r) % window.n for r in window.residues)
    for c, window in windows:
        left = missing[c, window.n, window.start.items]
        if not left or (len(left) == 1 and _stands_alone(window.start, min(left), window.n)):
            yield from ((c, part) for part in _parts(window))


def _stands_alone(inner: Index, residue: int, n: int) -> bool:
    """Whether an index is written without a remainder modulo n where it is shifted to a residue."""
    own = expr.modulo(expr.shift(inner, residue - inner.const), n)
    return not any(isinstance(atom, Opaque) and atom.operator == "mod" and atom.args == (n,) for atom, _ in own.items)


def _place(n: int) -> Var:
    """The place on a ring of that size."""
    return expr.var("place", n, n)


@once_a_session
def _windows(mono: Monomial) -> tuple[_Window, ...]:
    """The rings that a monomial takes places of, in sums over turns and one at a time."""
    found = []
    for atom, power in mono:
        if isinstance(atom, Read) and power == 1 and _steps(atom.tensor):
            bound, (body,) = unfold(atom)
            for turn, turning in _turned(body, bound):
                n, start, residues = turn.args[0], turn.exprs[0], [0]
                for v in turning:
                    (step,) = (c for digit, c in turn.exprs[0].items if isinstance(digit, Digit) and digit.var is v)
                    start = expr.subtract(start, expr.scale(expr.of_var(v), step))
                    residues = [(r + step * t) % n for r in residues for t in range(v.size)]
                others = [b for b in bound if b not in turning]
                found.append(_Window(mono, turn, start, tuple(residues), _Turns(atom, body, others, turning)))
    return (*found, *(_Window(mono, turn, turn.exprs[0], (0,)) for turn in _all_rotations(mono)))


@once_a_session
def _parts(window: _Window) -> tuple[_Part, ...]:
    """How a window may be a part of a sum over the places of its ring."""
    turned, n, turns = window.turn.exprs[0], window.n, window.turns
    if turns is None:
        whole = make_poly(((window.monomial, 1),))
        there = (
            _AtPlace(turned, n),
            _AtPlace(turned, n, own=True, halves_of=turned.free),  # the own place may be another one on the way
            _AtPlace(turned, n, in_parts=True),
        )
        return tuple(_Part(window, at_place.poly(whole)) for at_place in there)
    found: list[_Part] = []
    if not window.start.free.isdisjoint(turns.turning):
        return ()
    for halves in (False, True) if n % 2 == 0 else (False,):
        at_place = _AtPlace(turned, n, halves_of=window.start.free if halves else frozenset())
        if not at_place.leaves(turns.body, turns.turning):
            others = reduce_sum(turns.others, at_place.poly(turns.body))
            found.append(_Part(window, algebra.product_with(window.monomial, {turns.read: others}.get)))
    return tuple(found)


@once_a_session
def _all_rotations(mono: Monomial) -> tuple[Opaque, ...]:
    """The rotations in the factors of a product, in one order."""
    return tuple(sorted({turn for atom, _ in mono for turn in _rotations(atom)}, key=lambda turn: turn.uid))


def _rotations(atom: Atom) -> frozenset[Opaque]:
    """The rotations in an atom's index expressions, in those of a function's arguments and of terms whose values are
    part of an index, but not in the parts of other opaque ones: only where a digit of the place is taken, as of a ring
    along two mesh axes."""
    if isinstance(atom, Apply):
        return _in_terms(atom.args)
    opaque = [a for e in indices(atom) for a, _ in e.items if isinstance(a, Opaque)]
    digits = (b for a in opaque if a.operator == "div" for b, _ in a.exprs[0].items if isinstance(b, Opaque))
    found = frozenset(a for a in (*opaque, *digits) if a.operator == "mod")
    looked_up = tuple(value for a in opaque for value in _values(a))
    return found | _in_terms(looked_up) if looked_up else found


def _values(atom: Opaque) -> Iterator[Poly]:
    """The terms whose values an opaque integer depends on."""
    if atom.term is not None:
        yield value_of(atom)
    for e in atom.exprs:
        for part, _ in e.items:
            if isinstance(part, Opaque):
                yield from _values(part)


@once_a_session
def _in_terms(terms: tuple[Poly, ...]) -> frozenset[Opaque]:
    return frozenset(turn for p in terms for mono, _ in p.items for a, _ in mono for turn in _rotations(a))


def _turning(p: Poly, v: Var) -> list[Opaque]:
    """The rotations in a term by a variable, each of its values a whole number of steps."""
    found = {
        turn
        for mono, _ in p.items
        for atom, _ in mono
        for turn in _rotations(atom)
        if sum(isinstance(a, Digit) and a.var is v and a.low == 1 and a.top for a, _ in turn.exprs[0].items) == 1
    }
    return sorted(found, key=lambda turn: turn.uid)


def _turned(p: Poly, bound: Sequence[Var]) -> Iterator[tuple[Opaque, tuple[Var, ...]]]:
    """The rotations in a term by variables of a sum: by each, and by all of them together. The turns of a loop are
    counted by two digits where another ring has fewer places, as `mod(2*t + e, 4)` is the same for t and t + 2."""
    together: dict[Opaque, list[Var]] = {}
    for v in bound:
        for turn in _turning(p, v):
            yield turn, (v,)
            together.setdefault(turn, []).append(v)
    yield from ((turn, tuple(turning)) for turn, turning in together.items() if len(turning) > 1)


def turns(p: Poly) -> bool:
    """Whether a factor depends on a place on a ring, so that there may be others of the same sum."""
    factors = (atom for mono, _ in p.items for atom, _ in mono)
    return any(_rotations(atom) or (isinstance(atom, Read) and _steps(atom.tensor)) for atom in factors)


@once_a_session
def _steps(source: Tensor) -> dict[int, int]:
    """The rings that a sum goes round, by their sizes, and how many turns it is of; empty for other definitions."""
    steps: dict[int, int] = {}
    for turn, turning in _turned(source.bodies[0], source.bound) if source.kind == "sum" else ():
        steps[turn.args[0]] = max(steps.get(turn.args[0], 0), prod(v.size for v in turning))
    return steps


class _AtPlace(algebra.Substitution):
    """Puts `(place + r) mod m` in place of every `(turned + r) mod m`, for m that divide n.

    The digit that is turned is such a place too, where it stands by itself; with `own` it is taken for one. So is a
    digit of two values, of which a rotation is written without a remainder: those `halves_of` variables are. With
    `in_parts` the low digits of the one that is turned are, as half way round a ring of 8 `(d + 4) mod 4` is `d mod 4`.
    """

    def __init__(
        self,
        turned: Index,
        n: int,
        own: bool = False,
        halves_of: frozenset[Var] = frozenset(),
        in_parts: bool = False,
    ) -> None:
        super().__init__({v: expr.of_var(v) for v in turned.free})
        self._turned = turned
        self._n = n
        places = [a for a, c in turned.items if isinstance(a, Digit) and c == 1 and a.hi == n - 1]
        self._own = places if own else []
        self._in_parts = {(a.var, a.low) for a in places} if in_parts else ()
        self._halves_of = halves_of if n % 2 == 0 else frozenset()

    def index(self, e: Index) -> Index:
        """The expression with the places on the ring replaced."""
        parts: list[Index] = []
        rest: list[tuple[expr.Atom, int]] = []
        for atom, c in e.items:
            there = None
            if isinstance(atom, Opaque) and self._turned.free & atom.free:
                there = self._opaque(atom)
            elif atom in self._own:
                there = self._turned_to(expr.of_atom(atom), self._n)
            elif self._in_parts and isinstance(atom, Digit) and (atom.var, atom.low) in self._in_parts:
                if atom.hi < self._n - 1 and self._n % (atom.hi + 1) == 0:
                    there = self._turned_to(expr.of_atom(atom), atom.hi + 1)
            elif self._halves_of and atom.hi == 1 and not self._halves_of.isdisjoint(atom.free):
                there = self._turned_to(expr.of_atom(atom), 2)
            if there is None:
                rest.append((atom, c))
            else:
                parts.append(expr.scale(there, c))
        return expr.add(expr.build(e.const, rest), *parts) if parts else e

    def leaves(self, p: Poly, turning: Sequence[Var]) -> bool:
        """Whether the places are not all that depends on the variables that turn: seen before anything is made anew."""
        places = dict.fromkeys(e for atom in atoms(p) for e in indices(atom) if not e.free.isdisjoint(turning))
        if any(not self.index(e).free.isdisjoint(turning) for e in places):
            return True
        return not self.poly(p).free.isdisjoint(turning)

    def _opaque(self, atom: Opaque) -> Index | None:
        """What takes the place of an opaque integer; None if it stays."""
        if atom.operator == "value":
            before, after = value_of(atom), self.poly(value_of(atom))
            return None if after is before else algebra.as_index(after, atom.lo, atom.hi)
        (inner,) = atom.exprs
        there = self._turned_to(inner, atom.args[0]) if atom.operator == "mod" and self._n % atom.args[0] == 0 else None
        if there is not None:
            return there
        changed = self.index(inner)
        return None if changed is inner else expr.again(atom, changed)

    def _turned_to(self, e: Index, m: int) -> Index | None:
        """`e mod m` by the place; None if it is not as far from it everywhere."""
        apart = expr.modulo(expr.subtract(e, self._turned), m)
        return None if apart.items else expr.modulo(expr.shift(expr.of_var(_place(self._n)), apart.const), m)
