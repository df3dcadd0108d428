"""Both places of a ring of two, joined: `f(e) + f(1 - e) = f(0) + f(1) = sum s<2. f(s)`, as a digit e is 0 or 1.

The other place of such a ring is written without a remainder, so that it is told by its sign: `16 - 16*e` is `16*s` at
the place s = 1 - e. That is put where e is subtracted, and nowhere else, as a device may read by its own place as well;
what comes out at s = e has to be the other addend, whatever was put where. Only digits of a device's number are looked
at: turns of loops, and places in a dimension, that have two values are everywhere, and no ring goes along them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TypeGuard

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque, Var
from hlo_verify.memory import once_a_session
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Apply, Atom, Monomial, Number, Poly, Read, indices, make_poly, value_of
from hlo_verify.terms.used import used

_DEVICE = "d"
"""What the variable that stands for a device's number is called."""


def joined(p: Poly) -> Poly:
    """p with every pair of monomials joined that are both places of a ring of two."""
    return shortened(p, _joined_once)


def shortened(p: Poly, once: Callable[[Poly], Poly | None]) -> Poly:
    """p made shorter as often as that can be done once more."""
    while (shorter := once(p)) is not None:
        p = shorter
    return p


def _joined_once(p: Poly) -> Poly | None:
    """p with one such pair joined."""
    if _place() in p.free:  # such a sum is being made
        return None
    terms = dict(p.items)
    alike = Counter((_form(mono), c) for mono, c in p.items)
    for mono, c in p.items:
        for body, owns in _parts(mono) if alike[_form(mono), c] > 1 else ():
            own = next((each for each in owns if each != mono and terms.get(each) == c), None)
            if own is not None:
                used("ring of two")
                rest = make_poly(tuple(item for item in p.items if item[0] not in (mono, own)))
                return algebra.add(rest, algebra.scale(reduce_sum([_place()], body), c))
    return None


@once_a_session
def _form(mono: Monomial) -> tuple[tuple[object, Number], ...]:
    """What a product has in common with the other one of a pair: functions, tensors but for sums, and powers."""
    return tuple(sorted(((_kind(atom), power) for atom, power in mono), key=repr))


def _kind(atom: Atom) -> object:
    if isinstance(atom, Apply):
        return atom.function.name
    if isinstance(atom, Read):
        return "sum" if _is_sum(atom) else atom.tensor.uid
    return type(atom).__name__


def _place() -> Var:
    """The place on a ring of two."""
    return expr.var("side", 2, 2)


@once_a_session
def _parts(mono: Monomial) -> tuple[tuple[Poly, tuple[Monomial, ...]], ...]:
    """What a product is of the place, by each digit that it subtracts, and what that is at the digit's own place."""
    found = []
    for digit in sorted({digit for atom, _ in mono for digit in _subtracted(atom)}, key=lambda digit: digit.uid):
        body = _AtPlace(digit).poly(make_poly(((mono, 1),)))
        own = algebra.substitute(body, {_place(): expr.of_atom(digit)})
        found.append((body, tuple(written(own))))
    return tuple(found)


def written(p: Poly) -> Iterator[Monomial]:
    """A product as it stands, and with its sums as they come out where their places are known: `sum k. f(e, e + k)` is
    one function of e there, and a function of two places at e and e anywhere else."""
    sums = {a: a for mono, _ in p.items for a, _ in mono if isinstance(a, Read) and a.tensor.kind == "sum"}
    remade = algebra.with_atoms(p, lambda a: _resummed(a) if a in sums else None)
    yield from (each.items[0][0] for each in (p, remade) if len(each.items) == 1 and each.items[0][1] == 1)


def _resummed(read: Atom) -> Poly:
    assert isinstance(read, Read)
    bound, (body,) = unfold(read)
    return reduce_sum(bound, body)


def _subtracted(atom: Atom) -> Iterable[Digit]:
    """The digits of two values that an atom's index expressions subtract, those of what is looked up there, or of what
    it adds up."""
    if isinstance(atom, Apply):
        return _in_terms(atom.args)
    if _is_sum(atom) and any(_is_side(a) for e in indices(atom) for a, _ in e.items):
        return _in_terms((unfold(atom)[1][0],))
    parts = [part for e in indices(atom) for part in e.items]
    looked_up = tuple(value_of(a) for a, _ in parts if isinstance(a, Opaque) and a.operator == "value")
    return {*(a for a, c in parts if c < 0 and _is_side(a)), *(_in_terms(looked_up) if looked_up else ())}


def _is_side(a: expr.Atom) -> TypeGuard[Digit]:
    """Whether it is a digit of a device's number that has two values."""
    return a.hi == 1 and isinstance(a, Digit) and a.var.prefix == _DEVICE


def _is_sum(atom: Atom) -> TypeGuard[Read]:
    return isinstance(atom, Read) and atom.tensor.kind == "sum"


@once_a_session
def _in_terms(terms: tuple[Poly, ...]) -> frozenset[Digit]:
    return frozenset(digit for p in terms for mono, _ in p.items for atom, _ in mono for digit in _subtracted(atom))


class _AtPlace(algebra.Substitution):
    """Puts `1 - place` in the place of a digit wherever it is subtracted."""

    def __init__(self, digit: Digit) -> None:
        super().__init__({digit.var: expr.of_var(digit.var)})
        self._digit = digit

    def index(self, e: Index) -> Index:
        const, rest, there = e.const, list[tuple[expr.Atom, int]](), list[Index]()
        for atom, c in e.items:
            if atom is self._digit and c < 0:
                const += c
                there.append(expr.scale(expr.of_var(_place()), -c))
            elif isinstance(atom, Opaque) and atom.operator == "value" and self._digit.var in atom.free:
                there.append(expr.scale(algebra.as_index(self.poly(value_of(atom)), atom.lo, atom.hi), c))
            else:
                rest.append((atom, c))
        return expr.add(expr.build(const, rest), *there) if there else e

    def atom(self, atom: Atom) -> Poly:
        if not _is_sum(atom):
            return super().atom(atom)
        bound, (body,) = unfold(atom)
        return reduce_sum(bound, self.poly(body))
