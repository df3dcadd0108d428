"""Terms as sums of products of factors, over all bound variables at once: networks of sums and products.

    sum j. (sum k. x[i,k]*a[k,j]) * b[j,l]     =  sum j,k. x[i,k] * a[k,j] * b[j,l]     where the inner sum is opened
    sum d<4. sum k<4. x[4*d + k]*y[4*d + k]    =  sum n<16. x[n]*y[n]
    sum k<4. x[k]*y[k]                         =  sum k<2. x[k]*y[k] + x[2]*y[2] + x[3]*y[3]     cut at 2 and 3

Which definitions are opened, and where ranges are cut, is given: what both sides of a comparison have stays closed.
Products are distributed over sums here, and zeros are dropped, as numbers allow it. So terms that may be infinite are
not taken apart, and of what may be undefined the caller shows that it is not (`computed`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from hlo_verify.equality.choices import by_runs, exponential_by_cases, narrowed
from hlo_verify.equality.multiples import BY_SIGN
from hlo_verify.equality.roots import joined
from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Var
from hlo_verify.limits import allows
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import define, unfold
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.factors import apart
from hlo_verify.terms.fixing import eliminated
from hlo_verify.terms.functions import INVERSE, ZERO_TIMES
from hlo_verify.terms.laws import apply
from hlo_verify.terms.merging import merge_in
from hlo_verify.terms.root_laws import by_primes
from hlo_verify.terms.sums import components
from hlo_verify.terms.term import (
    Apply,
    Atom,
    Ix,
    Monomial,
    Number,
    Poly,
    Read,
    Tensor,
    make_apply,
    make_ix,
    make_poly,
    of_atom,
)
from hlo_verify.terms.told_places import told

SIZE_OF_A_STEP = 40
"""How large a product is that takes a step to be rewritten, in factors and indices, and a sum, in variables."""

MADE = "made to compare"
"""What tells sums that are made here from those of the modules, which may be closed."""

Place = tuple[Tensor, int]
"""A tensor and which of its indices."""

Cuts = Mapping[Place, Collection[int]]
"""Where the range of a variable is cut that goes along an index of a tensor."""


class SpentError(Exception):
    """More steps than there may be."""


@dataclass(slots=True)
class Steps:
    """How many more steps there may be: a step is a product that is rewritten, or a factor that is looked at."""

    left: int

    def take(self, size: int = 0) -> None:
        """Take a step, and one more for so many factors and indices that a product has."""
        self.left -= 1 + size // SIZE_OF_A_STEP
        if self.left < 0:
            raise SpentError


@dataclass(frozen=True, slots=True)
class Summand:
    """`times * sum over bound of product`."""

    bound: tuple[Var, ...]
    product: Monomial
    times: Number

    @property
    def body(self) -> Poly:
        return make_poly(((self.product, 1),))


def as_written(p: Poly) -> tuple[Summand, ...]:
    """The products that a term is the sum of."""
    return tuple(Summand((), mono, c) for mono, c in p.items)


Rewritten = Sequence[tuple[Sequence[Var], Poly]]
"""What a sum of products is the same as: sums over variables of terms."""


@dataclass(slots=True)
class Unfolding:
    """Takes terms apart into summands, all in the same way."""

    opened: frozenset[Tensor]
    cuts: Cuts
    steps: Steps
    _known: dict[Poly, tuple[Summand, ...]] = field(default_factory=dict)
    _anew: dict[Apply, Poly] = field(default_factory=dict)
    _places: dict[Atom, tuple[tuple[Place, Index], ...]] = field(default_factory=dict)
    _cut_places: dict[Atom, tuple[tuple[Place, Index], ...]] = field(default_factory=dict)
    _definitions: dict[Read, tuple[tuple[Var, ...], tuple[Poly, ...]]] = field(default_factory=dict)

    def of(self, p: Poly) -> tuple[Summand, ...]:
        """The summands of a term in which no infinity takes part."""
        found = self._known.get(p)
        if found is None:
            found = self._known[p] = tuple(self.over((), p))
        return found

    def over(self, bound: Sequence[Var], p: Poly) -> Iterator[Summand]:
        """The summands of a sum over some variables."""
        todo = [(tuple(bound), mono, c) for mono, c in p.items]
        while todo:
            own, mono, c = todo.pop()
            self.steps.take(sum(atom.weight for atom, _ in mono) * (1 + len(own) // SIZE_OF_A_STEP))
            rewritten = self._rewritten(own, mono)
            if rewritten is None:
                yield Summand(own, mono, c)
            else:
                todo += [(tuple(b), m, c * k) for b, body in rewritten for m, k in body.items]

    def again(self, summands: Sequence[Summand]) -> tuple[Summand, ...]:
        """The same sum, where more is opened or cut than before."""
        return tuple(
            Summand(part.bound, part.product, part.times * summand.times)
            for summand in summands
            for part in self.over(summand.bound, summand.body)
        )

    def definition(self, read: Read) -> tuple[tuple[Var, ...], tuple[Poly, ...]]:
        """What an opened definition is of, at one place; the same variables whenever it is asked for."""
        found = self._definitions.get(read)
        if found is None:
            found = self._definitions[read] = unfold(read)
        return found

    def is_opened(self, source: Tensor) -> bool:
        """Whether a definition is taken apart."""
        return source in self.opened or source.attributes == MADE

    def _rewritten(self, bound: tuple[Var, ...], mono: Monomial) -> Rewritten | None:
        if any(isinstance(atom, Apply) and atom.function == ZERO_TIMES for atom, _ in mono):
            return []
        opened = self._opened(bound, mono)
        if opened is not None:
            return opened
        occurring = frozenset[Var]().union(*(atom.free for atom, _ in mono))
        if not occurring.issuperset(bound):
            count = 1
            for v in bound:
                count *= 1 if v in occurring else v.size
            return [([v for v in bound if v in occurring], algebra.build({mono: count}))]
        if bound:
            fewer = eliminated(bound, mono)
            if fewer is not None:
                return [fewer]
            merged = merge_in(bound, (make_poly(((mono, 1),)),))
            if merged is not None:
                return [(merged[0], merged[1][0])]
            known = told(bound, mono)
            if known is not None:
                return [(bound, known)]
            runs = by_runs(mono, bound)
            if runs is not None:
                return [(bound, runs)]
            parts = narrowed(mono, bound)
            if parts is not None:
                return [([smaller.get(v, v) for v in bound], body) for smaller, body in parts]
            pieces = self._cut(bound, mono) if self.cuts else None
            if pieces is not None:
                return pieces
        return (
            self._applied(bound, mono)
            or _roots_joined(bound, mono)
            or _logarithms_parted(bound, mono)
            or _places_added(bound, mono)
        )

    def _opened(self, bound: tuple[Var, ...], mono: Monomial) -> Rewritten | None:
        for atom, n in mono:
            if isinstance(atom, Read) and self._is_sum(atom) and isinstance(n, int) and n > 0:
                own, (body, *_) = unfold(atom) if atom.tensor.bound else self.definition(atom)
                if body.doubt & INFINITE:
                    continue
                rest = make_poly(((_less_one(mono, atom), 1),))
                return [((*bound, *own), algebra.expanded(rest, body))]
        return None

    def _is_sum(self, atom: Read) -> bool:
        return atom.tensor.kind in ("sum", "term") and self.is_opened(atom.tensor)

    def _applied(self, bound: tuple[Var, ...], mono: Monomial) -> Rewritten | None:
        """The product with the laws applied that a function has of what its arguments are, taken apart."""
        for atom, n in mono:
            cases = exponential_by_cases(atom, n) if isinstance(atom, Apply) else None
            if cases is not None:
                rest = make_poly(((tuple(item for item in mono if item[0] is not atom), 1),))
                return [(bound, algebra.expanded(rest, cases))]
            if isinstance(atom, Apply) and not any(arg.doubt & INFINITE for arg in atom.args):
                anew = self._apply_anew(atom)
                if anew.atom is not atom:
                    rest = make_poly(((tuple(item for item in mono if item[0] is not atom), 1),))
                    return [(bound, algebra.expanded(rest, algebra.power_of(anew, n)))]
        return None

    def _apply_anew(self, atom: Apply) -> Poly:
        found = self._anew.get(atom)
        if found is None:
            args = tuple(map(self._written, atom.args))
            if atom.function in BY_SIGN:
                args = (apart(args[0])[1],)  # a positive factor decides nothing
            found = of_atom(atom) if args == atom.args else apply(atom.function, args)
            self._anew[atom] = found
            if isinstance(found.atom, Apply):
                self._anew.setdefault(found.atom, found)
        return found

    def divided_by(self, several: Collection[Poly]) -> frozenset[Poly]:
        """What is divided by where it is divided by some terms: `1/(2*n)` is `1/2` times the inverse of n."""
        wholes = [self._apply_anew(make_apply(INVERSE, (p,))) for p in several]
        products = [whole.items[0][0] for whole in wholes if len(whole.items) == 1]
        return frozenset(
            atom.args[0]
            for mono in products
            for atom, _ in mono
            if isinstance(atom, Apply) and atom.function == INVERSE
        )

    def _written(self, p: Poly) -> Poly:
        """A term as the sum of its summands, each of them by itself."""
        return algebra.build({}) if not p.items else _total([self._as_term(summand) for summand in self.of(p)])

    def _as_term(self, summand: Summand) -> Poly:
        bound = frozenset(summand.bound)
        result = make_poly(((tuple(i for i in summand.product if bound.isdisjoint(i[0].free)), summand.times),))
        within = [item for item in summand.product if not bound.isdisjoint(item[0].free)]
        for own, items in components(summand.bound, within):
            mono = tuple(sorted(items, key=lambda item: item[0].uid))
            part = define("sum", own, (make_poly(((mono, 1),)),), attributes=MADE)
            result = algebra.expanded(result, part)
        return result

    def places(self, mono: Monomial) -> Iterator[tuple[Place, Index]]:
        """Where tensors are read, in the arguments of functions too."""
        for atom, _ in mono:
            if isinstance(atom, Read):
                for n, e in enumerate(atom.indices):
                    yield (atom.tensor, n), e
            yield from self._places_inside(atom)

    def ends(self, summands: Sequence[Summand], free: Collection[Var]) -> Cuts:
        """Where the ranges begin and end that summands go through, and the numbers at which they read, for each place;
        `free` variables are not bound by any."""
        found: dict[Place, set[int]] = defaultdict(set)
        for place, e in (each for summand in summands for each in self.places(summand.product)):
            v = along(e, e.free.difference(free))
            if v is not None or not e.items:
                found[place].update((e.const, e.const + (1 if v is None else v.size)))
        return {place: points for place, points in found.items() if len(points) > 2}

    def _places_inside(self, atom: Atom) -> tuple[tuple[Place, Index], ...]:
        found = self._places.get(atom)
        if found is None:
            self.steps.take()
            several: Sequence[Poly] = ()
            if isinstance(atom, Apply):
                several = atom.args
            elif isinstance(atom, Read) and self.is_opened(atom.tensor):
                several = self.definition(atom)[1]
            monos = [mono for p in several for mono in self._products(p)]
            found = self._places[atom] = tuple(dict.fromkeys(each for mono in monos for each in self.places(mono)))
        return found

    def _places_cut(self, atom: Atom) -> tuple[tuple[Place, Index], ...]:
        """Where an atom reads tensors that are cut."""
        found = self._cut_places.get(atom)
        if found is None:
            found = tuple(each for each in self.places(((atom, 1),)) if each[0] in self.cuts)
            self._cut_places[atom] = found
        return found

    def _products(self, p: Poly) -> Iterator[Monomial]:
        """What a term is the sum of: as it is written, where it may be infinite."""
        return (mono for mono, _ in p.items) if p.doubt & INFINITE else (summand.product for summand in self.of(p))

    def _cut(self, bound: tuple[Var, ...], mono: Monomial) -> Rewritten | None:
        for place, e in (each for atom, _ in mono for each in self._places_cut(atom)):
            if e.free.isdisjoint(bound):
                continue
            v = along(e, bound)
            far = _far_apart(e, bound) if v is None else None
            if far is not None:
                body = make_poly(((mono, 1),))
                rest = [w for w in bound if w is not far]
                return [(rest, algebra.substitute(body, {far: expr.constant(n)})) for n in range(far.size)]
            inner = sorted(at - e.const for at in self.cuts.get(place, ()) if v and 0 < at - e.const < v.size)
            if v is None or not inner:
                continue
            body = make_poly(((mono, 1),))
            rest = [w for w in bound if w is not v]
            return [self._part(rest, body, v, start, end) for start, end in pairwise((0, *inner, v.size))]
        return None

    def _part(self, rest: list[Var], body: Poly, v: Var, start: int, end: int) -> tuple[list[Var], Poly]:
        """The part of a sum where one of its variables lies in a range."""
        smaller = expr.fresh("f", end - start)
        there = algebra.substitute(body, {v: expr.shift(expr.of_var(smaller), start)})
        return [*rest, smaller] if smaller.size > 1 else rest, there


def _total(parts: Sequence[Poly]) -> Poly:
    terms: dict[Monomial, Number] = defaultdict(int)
    for part in parts:
        for mono, c in part.items:
            terms[mono] += c
    return algebra.build(terms)


def _less_one(mono: Monomial, atom: Atom) -> Monomial:
    """A product with one factor less."""
    lessened = ((a, n - 1 if a is atom else n) for a, n in mono)
    return tuple((a, n) for a, n in lessened if n)


def _roots_joined(bound: tuple[Var, ...], mono: Monomial) -> Rewritten | None:
    product = joined(mono)
    return None if product is None else [(bound, product)]


def _logarithms_parted(bound: tuple[Var, ...], mono: Monomial) -> Rewritten | None:
    """The logarithm of a number as the sum of those of its factors: what laws take out of a logarithm as a factor
    depends on how its argument is written."""
    for atom, n in mono:
        parts = by_primes(atom) if isinstance(atom, Apply) and n == 1 else None
        if parts is not None:
            return [(bound, algebra.expanded(make_poly(((_less_one(mono, atom), 1),)), parts))]
    return None


def _places_added(bound: tuple[Var, ...], mono: Monomial) -> Rewritten | None:
    """An index value as the sum of its digits: how they are written together depends on the names of variables."""
    for atom, n in mono:
        if isinstance(atom, Ix) and isinstance(n, int) and n > 0 and len(atom.index.items) > 1:
            rest = _less_one(mono, atom)
            parts = [(make_ix(expr.of_atom(part)), c) for part, c in atom.index.items]
            each = [(algebra.multiply_monomials(rest, ((part, 1),)), c) for part, c in parts]
            return [(bound, make_poly(((found[0], c * found[1]),))) for found, c in each if found is not None]
    return None


def along(e: Index, bound: Collection[Var]) -> Var | None:
    """The bound variable that an index is, but for a constant."""
    if len(e.items) != 1:
        return None
    (part, c) = e.items[0]
    whole = isinstance(part, Digit) and part.low == 1 and part.top and c == 1 and part.var in bound
    return part.var if isinstance(part, Digit) and whole else None


def _far_apart(e: Index, bound: Collection[Var]) -> Var | None:
    """The bound variable of few values that goes furthest at each step of those that an index is made of."""
    steps = {
        part.var: abs(c)
        for part, c in e.items
        if isinstance(part, Digit) and part.low == 1 and part.top and part.var in bound and abs(c) > 1
    }
    v = max(steps, key=lambda v: (steps[v], v.uid), default=None)
    return v if v is not None and allows("enumerated_values", v.size) else None
