"""What a term computes that may be no number, so that what is computed for nothing else is not lost by algebra.

Two terms that are equal as sums of products of numbers are equal as values where all that they compute is a number. Of
the expected term that is taken for granted. The found one computes numbers where each function that it takes outside of
a domain is taken of the same argument by the expected one too, under no more conditions: `sqrt(E[x*x] - E[x]*E[x])` is
a number, as `sqrt(E[(x - E[x])**2])` is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from hlo_verify.equality.labelling import Labelling
from hlo_verify.equality.multiples import ABOVE_ZERO, DEFINED, NOT_BELOW_ZERO, NOT_ZERO
from hlo_verify.equality.summands import Steps
from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.memory import once_a_session
from hlo_verify.terms import algebra, signs
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.doubts import INFINITE, INTEGRAL, is_partial
from hlo_verify.terms.functions import INFINITY, SQRT, ZERO_TIMES, Function
from hlo_verify.terms.losses import separated
from hlo_verify.terms.places import values_in_places
from hlo_verify.terms.poles import WRITTEN_OUT
from hlo_verify.terms.term import (
    ONE,
    Apply,
    Atom,
    Monomial,
    Poly,
    Read,
    Tensor,
    make_apply,
    make_poly,
    of_atom,
)

AtAll = tuple[Tensor, tuple[Index, ...]]


@dataclass(frozen=True, slots=True)
class Computed:
    """A part that may be no number: for which values of which variables, and under which conditions."""

    bound: tuple[Var, ...]
    conditions: Poly
    atom: Atom

    def numbers(self, labelling: Labelling, *, selected: bool) -> frozenset[int]:
        """What the part is, for each range of its variables, under its conditions or anywhere."""
        what = _condition(self.atom) if isinstance(self.atom, Apply) else self.atom
        return self._numbers_of(of_atom(what), labelling, selected=selected)

    def shown(self, labelling: Labelling) -> frozenset[int]:
        """What else is known wherever the part is computed: of a term that is seen to have one sign, that it has."""
        args = self.atom.args if isinstance(self.atom, Apply) and not _is_complex(self.atom) else ()
        of = args[-1] if args else ONE
        sign = signs.of(of)
        if of.constant is not None or sign not in (signs.POSITIVE, signs.NEGATIVE):
            return frozenset()
        above = of if sign == signs.POSITIVE else algebra.scale(of, -1)
        known = [of_atom(make_apply(Function(DEFINED, variant=what), (above,))) for what in _OF_POSITIVE]
        return frozenset[int]().union(*(self._numbers_of(p, labelling, selected=False) for p in known))

    def _numbers_of(self, what: Poly, labelling: Labelling, *, selected: bool) -> frozenset[int]:
        body = algebra.expanded(self.conditions, what) if selected else what
        summands = labelling.unfolding.over([v for v in self.bound if v in body.free], body)
        return frozenset(labelling.of_summand(summand, {})[0] for summand in summands)


_CONDITIONS = {
    "inverse": NOT_ZERO,
    "divide": NOT_ZERO,
    "remainder": NOT_ZERO,
    "log": ABOVE_ZERO,
    "rsqrt": ABOVE_ZERO,
    "sqrt": NOT_BELOW_ZERO,
}
"""What the last argument of functions has to be."""

_OF_POSITIVE = (NOT_ZERO, ABOVE_ZERO, NOT_BELOW_ZERO)
"""What is so of something positive."""


def _is_complex(atom: Apply) -> bool:
    return any(dtype.startswith("complex") for dtype in atom.function.takes)


def _condition(atom: Apply) -> Apply:
    """Where a function has a value, as a function of which only that is known that its name says."""
    function = atom.function
    what = None if _is_complex(atom) else _CONDITIONS.get(function.name)
    if what is None:
        return make_apply(Function(DEFINED, variant=str(function)), atom.args)
    of = atom.args[-1]
    if what in (NOT_ZERO, ABOVE_ZERO) and isinstance(of.atom, Apply) and of.atom.function == SQRT:
        what, of = NOT_ZERO, of.atom.args[0]  # a root is a part by itself
    return make_apply(Function(DEFINED, variant=what), (of,))


def parts_in_doubt(p: Poly, steps: Steps, *, whatever_holds: bool = False) -> Iterator[Computed]:
    """The parts of a term of which it is not known by themselves that they are numbers. Each factor that is looked at
    takes a step: what many definitions read is looked at wherever they do, but for who asks of parts `whatever_holds`,
    each of which is there once."""
    return _Parts(steps, only_doubtful=True, seen=set() if whatever_holds else None).of((), ONE, p)


def for_all_values(read: Read, bound: Collection[Var]) -> tuple[AtAll, tuple[Var, ...]]:
    """What is read for all values of some variables, whatever these are called; and those of them that are in it."""
    names: dict[Var, Index] = {}
    for e in read.indices:
        for v in sorted(e.free.intersection(bound), key=lambda v: v.uid):
            names.setdefault(v, expr.of_var(expr.var("b", len(names), v.size)))
    renaming = algebra.Substitution(names)
    return (read.tensor, tuple(map(renaming.index, read.indices))), tuple(names)


def are_numbers(found: Poly, expected: Poly, labelling: Labelling) -> bool:
    """Whether all that the found term computes is a number wherever that holds of the expected one. Raises
    `SpentError`."""
    if not _is_in_doubt(found):
        return True
    computed = list(_Parts(labelling.steps, only_doubtful=False).of((), ONE, expected))
    known = frozenset[int]().union(*(part.numbers(labelling, selected=bool(part.atom.doubt)) for part in computed))
    open_ = [part for part in parts_in_doubt(found, labelling.steps) if not _is_known(part, known, labelling)]
    if not open_:
        return True
    shown = known.union(*(part.shown(labelling) for part in computed))
    return all(_is_known(part, shown, labelling) for part in open_)


def _is_known(part: Computed, known: frozenset[int], labelling: Labelling) -> bool:
    return any(part.numbers(labelling, selected=selected) <= known for selected in (True, False))


@dataclass(frozen=True, slots=True)
class _Parts:
    """Parts of a term at values of variables bound around it, where some conditions hold."""

    steps: Steps
    only_doubtful: bool
    seen: set[tuple[Poly | AtAll, bool]] | None = None
    """What was looked at, where conditions do not matter, and whether that was for parts without infinities."""

    def of(self, bound: tuple[Var, ...], around: Poly, p: Poly, is_finite: bool = False) -> Iterator[Computed]:
        """Infinities are no parts of what `is_finite`."""
        if self._is_seen(p, is_finite):
            return
        for mono, _ in separated(p):
            conditions = algebra.expanded(around, _conditions(mono)) if self.seen is None else around
            for atom, _ in mono:
                self.steps.take()
                if not self.only_doubtful or _holds_doubt(atom):
                    yield from self._of_atom(bound, conditions, atom, is_finite)

    def _of_atom(self, bound: tuple[Var, ...], around: Poly, atom: Atom, is_finite: bool) -> Iterator[Computed]:
        for read in values_in_places(atom):
            yield from self.of(bound, around, read, is_finite)
        if isinstance(atom, Apply):
            is_open = is_partial(atom.function) and atom.function != ZERO_TIMES
            is_open = is_open and not (is_finite and atom.function == INFINITY)
            if is_open and (atom.doubt or not self.only_doubtful):
                yield Computed(bound, around, atom)
            for arg in atom.args:
                yield from self.of(bound, around, arg, is_finite or _has_no_infinities(atom))
        elif isinstance(atom, Read):
            if self.seen is not None and self._is_seen(for_all_values(atom, bound)[0], is_finite):
                return
            if atom.doubt and atom.tensor.kind not in WRITTEN_OUT:
                yield Computed(bound, around, atom)
            if atom.tensor.bodies:
                own, bodies = unfold(atom)
                for body in bodies:
                    yield from self.of((*bound, *own), around, body, is_finite or _has_no_infinities(atom))

    def _is_seen(self, what: Poly | AtAll, is_finite: bool) -> bool:
        """Whether that was looked at before, or is from now on."""
        if self.seen is None or (what, is_finite) in self.seen:
            return self.seen is not None
        self.seen.add((what, is_finite))
        return False


def _conditions(mono: Monomial) -> Poly:
    return make_poly(((tuple(item for item in mono if item[0].boolean), 1),))


def _has_no_infinities(atom: Atom) -> bool:
    """Whether a value is seen to be a number though infinities take part in it, as in the greatest of scores that some
    mask. A truth value is known whatever it is one of, and says nothing of them."""
    given = atom.function.gives if isinstance(atom, Apply) else atom.tensor.dtype if isinstance(atom, Read) else ""
    return not (atom.boolean or atom.doubt & INFINITE or INTEGRAL.fullmatch(given))


@once_a_session
def _is_in_doubt(p: Poly) -> bool:
    """Whether a term may be no number, or hides something that may be none: a truth value or an integer is known, of
    whatever it is one."""
    return any(_holds_doubt(atom) for mono, _ in p.items for atom, _ in mono)


@once_a_session
def _holds_doubt(atom: Atom) -> bool:
    inside = atom.args if isinstance(atom, Apply) else atom.tensor.bodies if isinstance(atom, Read) else ()
    return bool(atom.doubt) or any(map(_is_in_doubt, (*inside, *values_in_places(atom))))
