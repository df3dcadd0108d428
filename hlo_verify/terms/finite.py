"""Where a term is no infinity, though the program writes some: the greatest of scores that minus infinity masks.

Arguments are no infinities, nor is what is computed of finite numbers (an assumption that reports name). What a loop
carries, or an operation gives that is not understood, may be one; where only infinities count that a term shows, it is
taken for a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, product

import numpy as np

from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.limits import limit_of
from hlo_verify.memory import per_session
from hlo_verify.terms.addition import scale
from hlo_verify.terms.certain_poles import has_some, is_outside_somewhere
from hlo_verify.terms.doubts import INFINITE, NUMBER
from hlo_verify.terms.functions import (
    EXPONENTIAL,
    EXTREMA,
    INFINITE_EXPONENTIAL,
    INFINITY,
    IS_ZERO,
    MAXIMUM,
    POSITIVE,
)
from hlo_verify.terms.ordered import VALUES, is_ordered
from hlo_verify.terms.term import ONE, ZERO, Apply, Atom, Guard, Monomial, Number, Poly, Read, Tensor, make_poly, reads

BY_SIGN = (POSITIVE, IS_ZERO)
"""Functions that say what the sign of a term is."""


@dataclass(frozen=True, slots=True)
class Finite:
    """What is known of terms, where values that nothing is known of may be infinite, or may not."""

    unknown_may_be: bool
    _may_be: dict[Atom, bool] = field(default_factory=dict)
    _numbers: dict[Poly, bool] = field(default_factory=dict)
    _definitions: dict[Tensor, bool] = field(default_factory=dict)
    _elements: dict[Read, bool] = field(default_factory=dict)
    _below: dict[Poly, bool] = field(default_factory=dict)
    _nowhere: dict[Poly, bool] = field(default_factory=dict)

    def surely(self, p: Poly) -> bool:
        """Whether a term is no infinity, whatever the arguments and its variables are.

        A maximum is none if no element is plus infinity and one of them (the first or last along each dimension) is
        finite. What has a truth value as a factor is none if the others are.
        """
        found = self._numbers.get(p)
        if found is None:
            found = all(atom.boolean or self.is_number(atom) for mono, _ in p.items for atom, _ in mono)
            self._numbers[p] = found
        return found

    def never_above(self, p: Poly) -> bool:
        """Whether a term is a finite number or minus infinity, whatever the arguments and its variables are."""
        found = self._below.get(p)
        if found is None:
            found = self._below[p] = all(self._is_never_above(mono, c) for mono, c in p.items)
        return found

    def is_number(self, atom: Atom) -> bool:
        """Whether an atom is no infinity, likewise."""
        if not self._may_be_infinite(atom):
            return True
        if isinstance(atom, Apply):
            if atom.function == MAXIMUM:
                return all(map(self.never_above, atom.args)) and any(map(self.surely, atom.args))
            if atom.function in (EXPONENTIAL, INFINITE_EXPONENTIAL):
                return self.never_above(atom.args[0])
            if not any(map(self._shows_one, atom.args)) or not all(map(self.surely, atom.args)):
                return False
            return not is_outside_somewhere(atom.function, atom.args)
        if not isinstance(atom, Read) or not atom.tensor.bodies or has_some(atom):
            return False
        return self._is_defined(atom)

    def _is_defined(self, atom: Read) -> bool:
        """Whether an element of a definition, of which some infinity is a part, is a number.

        All elements are looked at first, as they are the same for all reads. One by itself may be a number where
        conditions on its place spare it the infinity, or where its place is a number.
        """
        source = atom.tensor
        everywhere = self._definitions.get(source)
        if everywhere is None:
            everywhere = self._are_numbers(source.kind, source.bound, source.bodies)
            self._definitions[source] = everywhere
        if everywhere or source.kind not in ("term", "max", "sum"):
            return everywhere
        if all(e.free for e in atom.indices) and self._is_none_anywhere(source):
            return False
        found = self._elements.get(atom)
        if found is None:
            from hlo_verify.terms.definitions import unfold  # definitions and laws are made of this

            found = self._elements[atom] = self._are_numbers(source.kind, *unfold(atom))
        return found

    def _are_numbers(self, kind: str, bound: Sequence[Var], bodies: Sequence[Poly]) -> bool:
        if all(map(self.surely, bodies)):
            return True
        if kind not in ("term", "max"):
            return False
        (body,) = bodies
        if not self.never_above(body):
            return False
        return self._is_one_surely(chain(at_ends_and_conditions(bound, body), _at_one_in_order(bound, body)))

    def _is_one_surely(self, elements: Iterator[Poly]) -> bool:
        """Whether one of some elements is a number, whatever the place is: of `max k. k != i ? s[k] : -inf` the first
        or the last, as both would be masked for no i."""
        from hlo_verify.terms.products import multiply

        none = ONE
        for element in elements:
            none = multiply(none, self._infinite_where(element))
            if none is ZERO:
                return True
            if len(none.items) > limit_of("finite_elements"):
                return False
        return False

    def _infinite_where(self, p: Poly) -> Poly:
        """What is not 0 where conditions on places say that a term may be infinite; 0 where it surely is none."""
        from hlo_verify.terms.products import add

        found = []
        for mono, _ in _unnamed(p).items:
            if all(atom.boolean or self.is_number(atom) for atom, _ in mono):
                continue
            found.append(make_poly(((tuple(item for item in mono if isinstance(item[0], Guard)), 1),)))
        return add(*found) if found else ZERO

    def _is_never_above(self, mono: Monomial, c: Number) -> bool:
        """Likewise of a product: finite numbers, or one that is never above them, where some conditions hold."""
        infinite = [(atom, n) for atom, n in mono if not atom.boolean and not self.is_number(atom)]
        if not infinite:
            return True
        ((atom, n), *others) = infinite
        if others or n != 1 or any(a is not atom and not a.boolean for a, _ in mono):
            return False
        if isinstance(atom, Apply) and atom.function == INFINITY:
            return c < 0
        if c < 0:
            return False
        if isinstance(atom, Apply) and atom.function == MAXIMUM:
            return all(map(self.never_above, atom.args))
        return (
            isinstance(atom, Read) and atom.tensor.kind in ("term", "max") and self.never_above(atom.tensor.bodies[0])
        )

    def _is_none_anywhere(self, source: Tensor) -> bool:
        """Whether no element of a definition is seen to be a number, but at places that are numbers themselves: an
        infinity takes part in it under no condition. `1/iota` is one at 3."""
        return source.kind not in EXTREMA and any(map(self._is_nowhere_a_number, source.bodies))

    def _is_nowhere_a_number(self, p: Poly) -> bool:
        found = self._nowhere.get(p)
        if found is None:
            bare = (mono for mono, _ in p.items if not any(atom.boolean for atom, _ in mono))
            found = self._nowhere[p] = any(self._is_no_number(atom) for mono in bare for atom, _ in mono)
        return found

    def _is_no_number(self, atom: Atom) -> bool:
        """Whether an atom is not seen to be a number at any places likewise."""
        if isinstance(atom, Apply):
            if atom.function in (MAXIMUM, EXPONENTIAL, INFINITE_EXPONENTIAL):
                return False
            return self._is_one_by_its_names(atom) or any(map(self._is_nowhere_a_number, atom.args))
        return isinstance(atom, Read) and bool(atom.tensor.bodies) and self._is_none_anywhere(atom.tensor)

    def _is_one_by_its_names(self, atom: Apply) -> bool:
        """Whether a function is infinite itself, as far as is known, of values with names: their signs are the same at
        all places, where those of places hang on these."""
        args = [arg.atom for arg in atom.args]
        are_names = all(isinstance(arg, Read) and arg.tensor.kind == "term" for arg in args)
        return are_names and bool(atom.doubt & INFINITE) and not any(map(self._shows_one, atom.args))

    def _may_be_infinite(self, atom: Atom) -> bool:
        """Whether some infinity may take part in what an atom computes."""
        found = self._may_be.get(atom)
        if found is None:
            if isinstance(atom, Apply):
                found = bool(atom.doubt & INFINITE) or any(map(self._shows_one, atom.args))
            elif isinstance(atom, Read):
                bodies = atom.tensor.bodies
                found = (
                    any(map(self._shows_one, bodies)) or has_some(atom)
                    if bodies
                    else bool(atom.doubt & INFINITE) or self._may_hold_one(atom.tensor)
                )
            else:
                found = False
            self._may_be[atom] = found
        return found

    def _shows_one(self, p: Poly) -> bool:
        return any(self._may_be_infinite(atom) for mono, _ in p.items for atom, _ in mono)

    def _may_hold_one(self, source: Tensor) -> bool:
        if source.kind == "constant" and source.values is not None:
            return source.values.dtype.kind not in "biu" and not bool(np.isfinite(source.values).all())
        return source.kind not in ("argument", NUMBER) and self.unknown_may_be


def at_ends_and_conditions(bound: Sequence[Var], p: Poly) -> Iterator[Poly]:
    """Some elements of a term over some variables: the first or last along each, and those at conditions."""
    from hlo_verify.terms.substitution import substitute

    for where in islice(product(*((0, v.size - 1) for v in bound)), limit_of("finite_elements")):
        yield substitute(p, {v: expr.constant(n) for v, n in zip(bound, where, strict=True)})
    yield from _at_conditions(bound, p)


def _at_conditions(bound: Sequence[Var], p: Poly) -> Iterator[Poly]:
    """The elements at which conditions begin or end to hold, where these are elements whatever the place is: of `max
    k<8. 0 <= i - k <= 3 ? s[k] : -inf` those at k = i and k = i - 3, the first of which is one for i < 8; and of `max
    k<8. e[k] = e[i] ? s[k] : -inf` the one at k = i."""
    from hlo_verify.terms.counts import coinciding, solved  # counts are made of terms
    from hlo_verify.terms.substitution import substitute

    p = _unnamed(p)
    held = dict.fromkeys(a for mono, _ in p.items for a, _ in mono if isinstance(a, Guard))
    for guard, v in islice(((guard, v) for guard in held for v in bound), limit_of("finite_elements")):
        ends = (expr.constant(end) for end in (guard.lo, guard.hi) if end is not None)
        solutions = (place for end in ends if (place := solved(guard.form, end, v)) is not None)
        for place in chain(coinciding(guard.form, v), (e for e in solutions if e.free.isdisjoint(bound))):
            if place.lo >= 0 and place.hi < v.size:
                yield substitute(p, {v: place})


def _at_one_in_order(bound: Sequence[Var], p: Poly) -> Iterator[Poly]:
    """The element that one in order is, where conditions compare elements with it: of `max k. s[k] >= t ? s[k] : -inf`
    for t as the third, or the greatest, of `s[k]`, the element at which t is attained, whichever that is."""
    from hlo_verify.terms.products import with_atoms

    p = _unnamed(p)
    asked = dict.fromkeys(a for mono, _ in p.items for a, _ in mono if isinstance(a, Apply) and a.function in BY_SIGN)
    for atom in islice((a for a in asked if len(bound) == 1), limit_of("finite_elements")):
        compared = atom.args[0]
        if not compared.doubt and any(_attains(compared, read, bound[0]) for read in reads(compared)):
            there: dict[Atom, Poly] = {}
            for other in asked:
                if other.args[0] is compared or other.args[0] is scale(compared, -1):
                    there[other] = ONE if other.function == IS_ZERO else ZERO
            yield with_atoms(p, there.get)


def _unnamed(p: Poly) -> Poly:
    """What a term is, where it is a name of one."""
    from hlo_verify.terms.definitions import unfold  # definitions and laws are made of this

    atom = p.atom
    return unfold(atom)[1][0] if isinstance(atom, Read) and atom.tensor.kind == "term" else p


def _attains(p: Poly, atom: Read, v: Var) -> bool:
    """Whether a term is 0 where an element is the one that an extremum, or a value in order, is."""
    from hlo_verify.terms.definitions import unfold
    from hlo_verify.terms.rebuilding import rebuilt
    from hlo_verify.terms.substitution import substitute

    if v in atom.free or not (atom.tensor.kind in EXTREMA or is_ordered(atom, VALUES)):
        return False
    bound, (body,) = unfold(atom)
    if [w.size for w in bound] != [v.size]:
        return False
    return rebuilt(p, {atom: substitute(body, {bound[0]: expr.of_var(v)})}, {}) is ZERO


if_unknown_may_be = per_session("finite whatever is not known", lambda: Finite(unknown_may_be=True))
as_shown = per_session("finite as shown", lambda: Finite(unknown_may_be=False))
