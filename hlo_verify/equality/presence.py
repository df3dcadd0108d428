"""Comparisons where something is there, and where nothing is: means and softmaxes that guard an empty mask.

    n > 0 ? s/n : 0     with    n = sum v. m(v),  s = sum v. m(v)*x(v)        and    s / maximum(n, 1)

If some m(v) holds, n is positive, and at least 1 as a count: both are s/n. If none does, every sum of what has m(v) as
a factor is 0, and both are 0. Whether some m(v) holds is asked by `max v. m(v)`, and as the sign of a sum of positive
numbers times m(v). A sum of squares, or of what else is never negative, is 0 where each of its numbers is: whether one
of them is not is asked like whether a truth value holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, permutations

from hlo_verify.equality.divided import where_divided
from hlo_verify.equality.effort import Effort
from hlo_verify.equality.implied import Held, conditions_of, is_any_implied
from hlo_verify.equality.masked_parts import in_choices
from hlo_verify.equality.opening import is_open_sum, opened
from hlo_verify.equality.where_numbers import MASKS, where_number
from hlo_verify.index import expr
from hlo_verify.index.expr import Opaque, Var
from hlo_verify.limits import allows, limit_of
from hlo_verify.terms import algebra, signs
from hlo_verify.terms.bounds import that_fits
from hlo_verify.terms.conditions import numbers_of
from hlo_verify.terms.counts import range_of_count
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.extrema import reduce_boolean, reduce_extremum
from hlo_verify.terms.functions import FINITE_PART, INVERSE, IS_ZERO, LOG, MAXIMUM, POSITIVE, ZERO_TIMES
from hlo_verify.terms.guards import complement, interval_atom
from hlo_verify.terms.laws import apply
from hlo_verify.terms.no_number import infinity, with_nan
from hlo_verify.terms.rebuilding import rebuilt
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import (
    ONE,
    ZERO,
    Apply,
    Atom,
    Guard,
    Ix,
    Monomial,
    Poly,
    Read,
    atoms,
    make_poly,
    of_atom,
    value_of,
)
from hlo_verify.terms.truths import is_count, is_product, sign_of

Same = Callable[[Poly, Poly], bool]


@dataclass(frozen=True, slots=True)
class Presence:
    """Truth values of which some hold, or none."""

    bound: tuple[Var, ...]
    held: Poly
    """One of them: a product of conditions on the bound variables."""

    @property
    def selects(self) -> bool:
        """Whether it is a condition, and no number that is 0 or is not."""
        ((mono, _),) = self.held.items
        return all(atom.boolean for atom, _ in mono)

    @property
    def condition(self) -> tuple[Atom, ...]:
        """That some of them hold, as conditions."""
        return conditions_of(reduce_boolean("or", self.bound, self.held))

    @property
    def opposite(self) -> tuple[Atom, ...]:
        """That none of them does, as a condition, where a single one says so."""
        asked = self.condition
        if len(asked) != 1 or not isinstance(asked[0], Guard):
            return ()
        outside = _outside(asked[0])
        return tuple(each for each in outside if isinstance(each, Guard)) if len(outside) == 1 else ()

    def is_in(self, bound: Sequence[Var], products: Sequence[Monomial]) -> bool:
        """Whether each of some products has one of them as a factor, for all values of the bound variables."""
        if all(is_any_implied(self.bound, self.held, [a for a, _ in mono if a.boolean]) for mono in products):
            return True
        own = [{atom for atom, _ in mono} for mono in products]
        return any(all(held <= each for each in own) for held in self._over(bound))

    def is_same(self, other: Presence) -> bool:
        """Whether they are the same truth values."""
        ((mono, _),) = other.held.items
        own = {atom for atom, _ in mono}
        return len(self.bound) == len(other.bound) and any(held == own for held in self._over(other.bound))

    def has(self, atom: Atom) -> bool:
        """Whether one of them holds wherever a condition does, so that none of them does where that is one of them."""
        if is_any_implied(self.bound, self.held, (atom,)):
            return True
        only, other = _element(self.held.atom), _element(atom)
        if only is None or other is None or only.tensor is not other.tensor:
            return False
        if isinstance(self.held.atom, Read) is not isinstance(atom, Read):
            return False
        free = {expr.of_var(v): v for v in self.bound}
        if any(only.indices.count(e) > 1 for e in free):
            return False
        return all(
            (e.lo >= 0 and e.hi < free[own].size) if own in free else own is e
            for own, e in zip(only.indices, other.indices, strict=True)
        )

    def lacks(self, atom: Atom) -> bool:
        """Whether one of them holds wherever a condition does not."""
        if not isinstance(atom, Guard):
            return False
        return all(isinstance(each, Guard) and self.has(each) for each in _outside(atom))

    def _over(self, bound: Sequence[Var]) -> Iterator[set[Atom]]:
        """The conditions of one of them, over some of those variables."""
        for chosen in islice(permutations(bound, len(self.bound)), limit_of("alignments")):
            if all(v.size == w.size for v, w in zip(self.bound, chosen, strict=True)):
                mapping = {v: expr.of_var(w) for v, w in zip(self.bound, chosen, strict=True)}
                there = algebra.substitute(self.held, mapping)
                if len(there.items) == 1 and there.items[0][1] == 1:
                    yield {atom for atom, _ in there.items[0][0]}


def _outside(guard: Guard) -> list[Guard | bool]:
    """Where a guard does not hold: on one side, or on either."""
    return [interval_atom(guard.form, *at) for at in complement(guard)]


def _element(atom: Atom | None) -> Read | None:
    """The truth value that is read, or the number whose sign is asked; None of other conditions."""
    if atom is None or isinstance(atom, Read):
        return atom
    asked = sign_of(of_atom(atom))
    return asked.atom if asked is not None and isinstance(asked.atom, Read) else None


def same_by_presence(found: Poly, expected: Poly, same: Same, effort: Effort, held: Held = (), depth: int = 0) -> bool:
    """Whether two terms are the same where some of the truth values hold that they ask for, and where none does.

    Where none does, the logical one, `expected`, may divide by 0: nothing is asked of such inputs.

    Each time that they are told apart is a step of `effort`; by what an extremum is masked by, a third of the brief
    ones, as what is compared then is long. What is right is told apart by few: each second one within another counts
    for one more.
    """
    if effort.left <= 0:
        return False
    found, expected = (_of_counts(p) for p in where_divided(opened(found), opened(expected)))
    if found is expected:
        return True

    def agree(one: Poly, other: Poly, held: Held) -> bool:
        return one is other or same(one, other) or same_by_presence(one, other, same, effort, held, depth + 1)

    presence = next((each for p in (expected, found) for each in _masking(p)), None)
    effort.left -= depth // 2 + (1 if presence is None else limit_of("brief_steps") // 3)
    if presence is None:
        presence = next((each for p in (found, expected) for each in _asked(p)), None)
    if presence is None:
        one, other = in_choices(found, held), in_choices(expected, held)
        if one is found and other is expected:
            return False
        return agree(one, other, held)
    for some in (True, False):
        if not some and _divides_by_none(expected, presence):
            continue  # there, the logical module has stepped outside of a domain
        here = (*held, *(presence.condition if some else presence.opposite))
        one, other = (in_choices(_where(p, presence, some), here) for p in (found, expected))
        if not agree(one, other, here):
            return False
    return True


def never_zero(expected: Poly) -> frozenset[Poly]:
    """Counts, and sums of positive numbers under conditions, that are not 0 where a logical term is a number: in
    `s/n`, s is a sum of what has the conditions of n as factors, and 0/0 is none, whatever is made of it."""
    numbers = Counter(numbers_of(mono) for mono, _ in expected.items)
    found: set[Poly] = set()
    for mono, _ in expected.items:
        if numbers[mono] == 1:  # computed, whatever conditions others are under
            found |= {atom.args[0] for atom, _ in mono if isinstance(atom, Apply) and _is_none_by_none(atom, mono)}
    return frozenset(found)


def _is_none_by_none(divided: Apply, mono: Monomial) -> bool:
    """Whether a product is divided by what is positive where some truth values hold, and has a sum as a factor that
    is 0 where none of them does."""
    counted = divided.args[0].atom if divided.function == INVERSE else None
    if counted is None:
        return False
    asked = counted if isinstance(counted, Read) and is_count(counted) else _positive_sum(counted)
    if asked is None:
        return False
    presence = _over_truths(asked)
    return any(_is_sum_of(atom, presence) for atom, _ in mono)


def _is_sum_of(atom: Atom | None, presence: Presence) -> bool:
    """Whether an atom is a sum of what has one of the truth values as a factor: 0 where none of them holds. A number
    that is 0 selects nothing: `0 * x/w` is computed."""
    if atom is None or not is_open_sum(atom):
        return False
    bound, (body,) = unfold(atom)
    if not presence.selects and (atom.doubt or body.doubt):
        return False
    return bool(body.items) and presence.is_in(bound, [mono for mono, _ in body.items])


def _divides_by_none(p: Poly, presence: Presence) -> bool:
    """Whether a term divides by a sum of what has one of the truth values as a factor, where none of them holds."""
    left = {atom: ZERO for atom in atoms(p) if atom.boolean and presence.has(atom)}
    products = [mono for mono, _ in rebuilt(p, left, {}).items]
    numbers = Counter(map(numbers_of, products))
    return any(
        numbers[mono] == 1 and any(_is_divided(atom, presence) for atom, _ in mono) for mono in products
    )  # what conditions select may not be computed: `numbers` of it has no conditions


def _is_divided(atom: Atom, presence: Presence) -> bool:
    if not isinstance(atom, Apply) or atom.doubt & INFINITE:
        return False  # by what is 0 for all arguments a program divides as it means to
    if atom.function == ZERO_TIMES:
        return any(_is_divided(each, presence) for mono, _ in atom.args[0].items for each, _ in mono)
    return atom.function == INVERSE and _is_sum_of(atom.args[0].atom, presence)


def _of_counts(p: Poly) -> Poly:
    """A term of what counts are, where their machine values are taken that cannot wrap."""
    there: dict[Atom, Poly] = {}
    for atom in atoms(p):
        counted = that_fits(atom)
        if counted is not None:
            there[atom] = counted
    return rebuilt(p, there, {}) if there else p


def _asked(p: Poly) -> Iterator[Presence]:
    """The truth values of which a term asks whether some hold."""
    for atom in sorted(atoms(p), key=lambda a: a.uid):
        found = _presence(atom)
        if found is not None:
            yield found


def _masking(p: Poly, within: frozenset[Var] = frozenset()) -> Iterator[Presence]:
    """The truth values of which some have to hold for an extremum to be a number that infinities mask, which is the
    same for all values of the variables that sums around it are over."""
    if not p.doubt & INFINITE:
        return
    for atom in sorted(atoms(p), key=lambda a: a.uid):
        if not isinstance(atom, Read) or not atom.doubt & INFINITE:
            continue
        found = _masked_by(atom) if atom.free.isdisjoint(within) else None
        if found is not None:
            yield found[0]
        elif atom.tensor.kind in ("sum", "term") and atom.tensor.seal is None:
            bound, (body,) = unfold(atom)
            yield from _masking(body, within.union(bound))


def _masked_by(atom: Atom) -> tuple[Presence, int] | None:
    """The truth values of which some have to hold for an extremum to be a number, and the sign of the infinity that it
    is where none does; None of other atoms."""
    if not isinstance(atom, Read) or not atom.doubt & INFINITE or atom.tensor.kind not in MASKS:
        return None
    found = where_number(of_atom(atom))
    own = None if found is None else _of_truth(found[0])
    return None if found is None or own is None else (own, found[1])


def _of_truth(p: Poly) -> Presence | None:
    """A truth value as one of those of which some hold."""
    own = None if p.atom is None else _presence(p.atom)
    return own or (Presence((), p) if is_product(p) else None)


def _presence(atom: Atom) -> Presence | None:
    """The truth values of which an atom asks whether some hold; None of other atoms."""
    if isinstance(atom, Read) and atom.boolean and atom.tensor.kind == "max" and atom.tensor.seal is None:
        bound, (body,) = unfold(atom)
        return Presence(tuple(bound), body) if is_product(body) else None
    greatest = sign_of(of_atom(atom))
    if greatest is not None and isinstance(greatest.atom, Read) and greatest.atom.tensor.kind == "max":
        bound, (body,) = unfold(greatest.atom)  # [max v. f(v) > 0] is max v. [f(v) > 0]
        held = apply(POSITIVE, (body,))
        return Presence(tuple(bound), held) if is_product(held) else None
    counted = _at_least_one(atom) if _at_least_one(atom) is not None else _summed(atom)
    if counted is None:
        return None
    return _over_truths(counted)


def _over_truths(counted: Read) -> Presence:
    """The truth values that a count counts, or under which a sum has addends."""
    bound, (body,) = unfold(counted)
    return Presence(tuple(bound), make_poly(((_needed(body.items[0][0]) or (), 1),)))


def _needed(mono: Monomial) -> Monomial | None:
    """The factors that must not be 0 for a product to be positive, which it is then; None where it may not be."""
    either = signs.ZERO | signs.POSITIVE
    held = [item for item in mono if item[0].boolean or signs.of_product((item,)) == either]
    others = tuple(item for item in mono if item not in held)
    return tuple((atom, 1) for atom, _ in held) if held and signs.of_product(others) == signs.POSITIVE else None


def _at_least_one(atom: Atom) -> Read | None:
    """The count whose maximum with 1 an atom is."""
    counted: Atom | None = None
    if isinstance(atom, Apply) and atom.function == MAXIMUM and len(atom.args) == 2 and ONE in atom.args:
        counted = next((arg.atom for arg in atom.args if arg is not ONE), None)
    elif isinstance(atom, Ix) and len(atom.index.items) == 1 and not atom.index.const:
        ((part, c),) = atom.index.items
        if isinstance(part, Opaque) and part.operator == "clamp" and part.lo == c == 1:
            (e,) = part.exprs
            inner = e.items[0][0] if len(e.items) == 1 and e.items[0][1] == 1 and not e.const else None
            if isinstance(inner, Opaque) and inner.operator == "value" and inner.hi <= part.hi:
                counted = value_of(inner).atom
                most = None if counted is None else range_of_count(counted)
                if most is None or not inner.lo <= most[0] <= most[1] <= inner.hi:
                    return None  # it may wrap
    return counted if isinstance(counted, Read) and is_count(counted) else None


def _summed(atom: Atom) -> Read | None:
    """The sum of positive numbers, each times some conditions, whose sign an atom asks."""
    return (
        _positive_sum(atom.args[0].atom) if isinstance(atom, Apply) and atom.function in (POSITIVE, IS_ZERO) else None
    )


def _positive_sum(counted: Atom | None) -> Read | None:
    """A sum of positive numbers, each times some conditions; None of another term."""
    if counted is None or not is_open_sum(counted):
        return None
    _, (body,) = unfold(counted)
    if len(body.items) != 1 or body.doubt:
        return None
    ((mono, c),) = body.items
    return counted if c > 0 and _needed(mono) is not None else None


def _where(p: Poly, presence: Presence, some: bool) -> Poly:
    """What a term is where some of the truth values hold, or where none does."""
    there: dict[Atom, Poly] = {}
    for atom in atoms(p):
        own = _presence(atom)
        is_own = own is not None and own.is_same(presence)
        counted = _at_least_one(atom)
        if is_own and counted is not None:
            there[atom] = of_atom(counted) if some else ONE
        elif is_own:
            there[atom] = ONE if some != (isinstance(atom, Apply) and atom.function == IS_ZERO) else ZERO
        elif not some and (presence.has(atom) or (not atom.boolean and _is_sum_of(atom, presence))):
            there[atom] = ZERO
        elif not some and presence.lacks(atom):
            there[atom] = ONE
        elif (masked := _masked_by(atom)) is not None and masked[0].is_same(presence):
            there[atom] = apply(FINITE_PART, (of_atom(atom),)) if some else infinity(masked[1])
        elif isinstance(atom, Read):
            inside = _inside(atom, presence, some)
            if inside is not None:
                there[atom] = inside
    there |= dict.fromkeys(_logarithms_of_nothing(p, there), infinity(-1))
    return opened(with_nan(rebuilt(p, there, {})))


def _logarithms_of_nothing(p: Poly, there: Mapping[Atom, Poly]) -> list[Atom]:
    """The logarithms in a term that are of 0 once other atoms are replaced, if they may have been infinities for all
    laws that it went through."""
    logarithms = [a for a in atoms(p) if isinstance(a, Apply) and a.function == LOG and a.doubt & INFINITE]
    return [a for a in logarithms if a.args[0] is not ZERO and rebuilt(a.args[0], there, {}) is ZERO]


def _inside(atom: Read, presence: Presence, some: bool) -> Poly | None:
    """What a sum or a name is where some of the truth values hold, or none does; None if it does not hang on that."""
    kind = atom.tensor.kind
    if kind not in ("sum", "term", *(() if some else MASKS)) or atom.tensor.seal is not None:
        return None
    bound, (body,) = unfold(atom)
    if not allows("opened_weight", body.weight):
        return None
    inside = _where(body, presence, some)
    if inside is body:
        return None
    return reduce_extremum(kind, bound, inside) if kind in MASKS else reduce_sum(bound, inside)
