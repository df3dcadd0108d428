"""Questions whether something is a number, decided by what the expected term computes.

    is_finite(m) ? m : 0    with    m = max k. s[k]/n[i]    is    m    where the expected term divides by n[i] too

The expected term is taken to be a number, so that each part of it that is computed whatever conditions hold is one:
what divides by 0 nowhere, and takes a logarithm of nothing negative. Nothing of this is said of infinities that the
program writes itself, nor of parts that only conditions, or other such questions, are made of.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hlo_verify.equality.computed import AtAll, for_all_values, parts_in_doubt
from hlo_verify.equality.opening import ingredients
from hlo_verify.equality.summands import SpentError, Steps
from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque, Var
from hlo_verify.limits import allows
from hlo_verify.memory import once_a_session
from hlo_verify.session import Session
from hlo_verify.terms import algebra, guards, signs
from hlo_verify.terms.at_constants import remade
from hlo_verify.terms.conditions import Conditions
from hlo_verify.terms.definitions import named, unfold
from hlo_verify.terms.doubts import INFINITE, INTEGRAL
from hlo_verify.terms.functions import FINITE_PART, IS_FINITE, LESS_OR_EQUAL, ZERO_TIMES
from hlo_verify.terms.laws import apply, greater
from hlo_verify.terms.losses import separated
from hlo_verify.terms.term import ONE, ZERO, Apply, Atom, Guard, Poly, Read, Tensor, of_atom, value_of

ASKED = frozenset({IS_FINITE, FINITE_PART, LESS_OR_EQUAL, ZERO_TIMES})
"""The functions that such questions are asked with: comparisons too, as no number is neither above nor below one."""

KINDS = frozenset({"sum", "max", "min", "term"})
"""The definitions that are made anew."""

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Known:
    """A part that is a number at some places of a tensor: at each index, or wherever it lies in a range."""

    tensor: Tensor
    at: tuple[Index | Range, ...]

    def covers(self, read: Read) -> bool:
        return self.tensor is read.tensor and all(
            at[0] <= e.lo and e.hi <= at[1] if isinstance(at, tuple) else e is at
            for at, e in zip(self.at, read.indices, strict=True)
        )


def both_decided(found: Poly, expected: Poly, session: Session) -> tuple[Poly, Poly]:
    """Both terms with the questions decided that the expected one decides, where that is a number: its own as well."""
    return decided(found, expected, session), decided(expected, expected, session)


def decided(found: Poly, expected: Poly, session: Session) -> Poly:
    """The found term, with the questions decided that the expected one decides, where that is a number; as it is where
    that takes more steps than there may be."""
    if ingredients(found).isdisjoint(ASKED):
        return found
    steps = Steps(session.limits.question_parts)
    try:
        known = _all_known(expected, steps)
        return _Questions(known, steps).decided(found) if known else found
    except SpentError:
        session.reached("question_parts")
        return found


@dataclass(slots=True)
class Always:
    """Whether an expected term computes a function whatever conditions hold, so that it is none where that is none."""

    expected: Poly
    session: Session
    known: dict[Tensor, list[_Known]] | None = None
    """What the expected term computes; None where nothing was asked yet."""

    def __call__(self, atom: Apply) -> bool:
        if self.known is None:
            self.known = {}
            try:
                self.known = _all_known(self.expected, Steps(self.session.limits.question_parts))
            except SpentError:
                self.session.reached("question_parts")
        return _covers(self.known, atom)


def _all_known(expected: Poly, steps: Steps) -> dict[Tensor, list[_Known]]:
    """The parts that the expected term is no number without, by their names."""
    known: dict[Tensor, list[_Known]] = {}
    for bound, read in _computed((), expected, steps, set()):
        place = _known(bound, read)
        if place is not None:
            known.setdefault(place.tensor, []).append(place)
    return known


def _covers(known: Mapping[Tensor, Sequence[_Known]], atom: Atom) -> bool:
    """Whether an atom is one of those parts."""
    read = _named(atom)
    return read is not None and any(place.covers(read) for place in known.get(read.tensor, ()))


def _computed(
    bound: tuple[Var, ...], p: Poly, steps: Steps, seen: set[AtAll]
) -> Iterator[tuple[tuple[Var, ...], Read]]:
    """The parts that a term is no number without, whatever conditions hold, for all values of some variables, each by
    its name and once: what definitions are made of is a graph."""
    for atom in _always(p):
        steps.take()
        if atom.doubt & INFINITE:
            continue
        is_function = isinstance(atom, Apply) and not INTEGRAL.fullmatch(atom.function.gives)
        if not is_function and not isinstance(atom, Read):
            continue
        read = _named(atom)
        if read is not None:
            part, _ = for_all_values(read, bound)
            if part in seen:
                continue
            seen.add(part)
            yield bound, read
        if isinstance(atom, Apply):
            for arg in atom.args:
                yield from _computed(bound, arg, steps, seen)
        elif isinstance(atom, Read) and atom.tensor.kind in KINDS:
            own, (body, *_) = unfold(atom)
            yield from _computed((*bound, *own), body, steps, seen) if all(v.size for v in own) else ()


def _always(p: Poly) -> list[Atom]:
    """The factors that may be no number and are computed in every case of a term's conditions."""
    items = [(mono, c) for mono, c in separated(p) if any(atom.doubt for atom, _ in mono)]
    conditions = Conditions.of([mono for mono, _ in items])
    if not allows("told_apart", conditions.count):
        items = [(mono, c) for mono, c in items if not any(atom.boolean for atom, _ in mono)]
        conditions = Conditions.of([])
    found: dict[Atom, None] | None = None
    for case in conditions.cases():
        here = {atom: None for mono in case.coefficients(items) for atom, _ in mono if atom.doubt}
        found = here if found is None else {atom: None for atom in found if atom in here}
    return list(found or ())


def _named(atom: Atom) -> Read | None:
    """A part by the name of what it is a function of places."""
    read = atom if isinstance(atom, Read) else named(algebra.add(of_atom(atom), ONE)).atom
    return read if isinstance(read, Read) else None


def _known(bound: Collection[Var], read: Read) -> _Known | None:
    """Where a part is computed."""
    own: list[Var] = []
    at: list[Index | Range] = []
    for e in read.indices:
        v = _alone(e, bound)
        if v is None and not e.free.isdisjoint(bound):
            return None
        own += [] if v is None else [v]
        at.append(e if v is None else (e.lo, e.hi))
    return _Known(read.tensor, tuple(at)) if len(set(own)) == len(own) else None


def _alone(e: Index, bound: Collection[Var]) -> Var | None:
    """The bound variable that an index is, but for a constant."""
    if len(e.items) != 1:
        return None
    ((digit, c),) = e.items
    whole = isinstance(digit, Digit) and c == 1 and expr.of_var(digit.var) is expr.of_atom(digit)
    return digit.var if isinstance(digit, Digit) and whole and digit.var in bound else None


@dataclass(frozen=True, slots=True)
class _Questions:
    """Decides the questions of terms by what is known to be a number."""

    known: dict[Tensor, list[_Known]]
    steps: Steps
    opened: set[Var] = field(default_factory=set)
    """The variables of definitions that were opened, of which nothing is known."""
    made: dict[AtAll, tuple[tuple[Var, ...], Poly | None]] = field(default_factory=dict)
    """What was made of definitions, and at which variables: many read the same."""

    def decided(self, p: Poly) -> Poly:
        images: dict[Atom, Poly] = {}
        for atom in dict.fromkeys(a for mono, _ in p.items for a, _ in mono):
            self.steps.take()
            image = self._image(atom)
            if image is not None:
                images[atom] = image
        return algebra.with_atoms(p, images.get) if images else p

    def _are_known(self, terms: Sequence[Poly]) -> bool:
        """Whether all parts of some terms are numbers that may be none."""
        for p in terms:
            if p.doubt & INFINITE:
                return False
            parts = parts_in_doubt(p, self.steps, whatever_holds=True)
            if not all(_covers(self.known, part.atom) for part in parts):
                return False
        return True

    def _image(self, atom: Atom) -> Poly | None:
        """What a factor is with its questions decided; None where that is the factor."""
        if isinstance(atom, Apply):
            if atom.function in ASKED and self._are_known(atom.args):
                return _answer(atom)
            if all(ingredients(arg).isdisjoint(ASKED) for arg in atom.args):
                return None
            args = tuple(map(self.decided, atom.args))
            return None if args == atom.args else apply(atom.function, args)
        if isinstance(atom, Guard):
            form = self._index(atom.form)
            return None if form is atom.form else guards.interval(form, atom.lo, atom.hi)
        if not isinstance(atom, Read) or atom.tensor.kind not in KINDS or not _asks(atom.tensor):
            return None
        what, places = for_all_values(atom, self.opened)
        if what not in self.made:
            self.made[what] = places, self._made_anew(atom)
        before, image = self.made[what]
        return image and algebra.substitute(image, dict(zip(before, map(expr.of_var, places), strict=True)))

    def _made_anew(self, atom: Read) -> Poly | None:
        """A definition with its questions decided; None where there are none to decide."""
        bound, (body, *_) = unfold(atom)
        self.opened.update(bound)
        inside = self.decided(body)
        if inside is body:
            return None
        return remade(atom.tensor, bound, (inside,), ())

    def _index(self, e: Index) -> Index:
        """An index expression, with questions decided that it takes for integers."""
        parts = [expr.constant(e.const)]
        for part, c in e.items:
            whole = expr.of_atom(part)
            if isinstance(part, Opaque) and part.operator == "value":
                answer = self.decided(value_of(part))
                whole = whole if answer is part.term else algebra.as_index(answer, part.lo, part.hi)
            parts.append(expr.scale(whole, c))
        return expr.add(*parts)


def _answer(atom: Apply) -> Poly:
    """What a question is of numbers."""
    if atom.function == LESS_OR_EQUAL:
        more = algebra.subtract(*atom.args)
        sign = signs.of(more)
        is_told = sign == signs.POSITIVE or not sign & (signs.POSITIVE | signs.BEYOND)
        return (ZERO if sign == signs.POSITIVE else ONE) if is_told else algebra.logical_not(greater(*atom.args))
    return ONE if atom.function == IS_FINITE else atom.args[0] if atom.function == FINITE_PART else ZERO


@once_a_session
def _asks(source: Tensor) -> bool:
    """Whether a definition has such a question in it."""
    return not all(ingredients(body).isdisjoint(ASKED) for body in source.bodies)
