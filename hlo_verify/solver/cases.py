"""Equality of guarded terms at every point of their variables, at full size.

`vanishes(p)` shows that a term is 0 for all values of its index variables. It takes definitions that
differ apart (sums of equal ranges become one sum of the combined body), splits into the cases in which
every guard is decided, asks Z3 which cases exist, and in each case lets index expressions that are equal
throughout it be one expression; what is left must cancel. Every step is exact, so True is a proof; False
means only that none was found.

A question is abandoned past `CASES` cases: the guards of a term number few wherever this is of use.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise, product
from math import prod
from typing import TypeGuard

import z3

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque, Var
from hlo_verify.solver import settling
from hlo_verify.solver.alignment import alignments, links
from hlo_verify.solver.integers import Effort, Integers
from hlo_verify.solver.unrolling import unrolled
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.functions import apply
from hlo_verify.terms.term import (
    ONE,
    ZERO,
    Apply,
    Atom,
    Guard,
    Ix,
    Monomial,
    Number,
    Poly,
    Read,
    Tensor,
    atoms,
    indices,
    make_guard,
    make_poly,
    monomial_skey,
)

CASES = 600
"""The most cases, and QUESTIONS the most questions to Z3, that one comparison may take."""

QUESTIONS = 2500

DEPTH = 4
"""How deep definitions are taken apart."""

ALIGNMENTS = 6
"""The most ways of aligning the bound variables of one sum with another's."""

TERMS = 40
"""The most monomials of a question."""


def equal(found: Poly, expected: Poly, inside: Poly = ONE, total: Effort | None = None) -> bool:
    """Whether two terms are equal wherever `inside` (a product of guards) holds.

    `total` is the effort that this and other comparisons may take together.
    """
    if found is expected:
        return True
    effort = Effort(QUESTIONS) if total is None else Effort(min(QUESTIONS, total.left), total.refused, total.anew)
    spent = effort.left
    difference = algebra.multiply(inside, algebra.subtract(found, expected))
    result = effort.left > 0 and (vanishes(difference, effort) or _vanishes_for_each(difference, effort))
    if total is not None:
        total.left -= spent - effort.left
    return result


def vanishes(p: Poly, effort: Effort, depth: int = DEPTH) -> bool:
    """Whether a term is 0 for all values of its index variables."""
    if p is ZERO:
        return True
    effort.left -= 1 + len(p.items) // 4
    if len(p.items) > TERMS or depth < 0 or effort.left <= 0:
        return False
    without = _without_name(p)
    if without is not None:
        return vanishes(without, effort, depth)
    decided = settling.settled(p, effort)
    if decided is not p:
        return vanishes(decided, effort, depth)
    return not _differs_somewhere(p) and (_sums_vanish(p, effort, depth) or _by_cases(p, effort, depth))


ENUMERATED = 16
"""The most values of a variable that are looked at one by one."""


def _vanishes_for_each(p: Poly, effort: Effort) -> bool:
    """Whether a term is 0 for each of the few values of a variable that it looks up in tables, clamps or divides."""
    p = opened(p)
    inner = {
        v for a in atoms(p) for e in indices(a) for part, _ in e.items if isinstance(part, Opaque) for v in part.free
    }
    v = max((v for v in inner if v.size <= ENUMERATED), key=lambda v: (v.size, v.uid), default=None)
    if v is None:
        return False
    return all(vanishes(algebra.substitute(p, {v: expr.constant(n)}), effort) for n in range(v.size))


POINTS = 6
"""At so many points a term is looked at before it is decided case by case."""


def _differs_somewhere(p: Poly) -> bool:
    """Whether a term is plainly not 0 at one of a few points: a quick way to refuse."""
    generator = random.Random(0)
    variables = sorted((v for v in p.free if v.size < expr.UNBOUNDED), key=lambda v: v.uid)
    for _ in range(POINTS):
        here = algebra.substitute(p, {v: expr.constant(generator.randrange(v.size)) for v in variables})
        if here is not ZERO and not _is_open(here) and (_is_plain(here) or _is_balanced(here)):
            return True
    return False


def _is_plain(p: Poly) -> bool:
    """Whether a term reads no definitions."""
    return not any(isinstance(a, Read) and a.tensor.bodies for a in atoms(p))


def _is_balanced(p: Poly) -> bool:
    """Whether a term's monomials differ only in where they read: what does not cancel then differs."""
    totals: dict[int, Number] = defaultdict(int)
    for mono, c in p.items:
        totals[monomial_skey(mono)] += c
    return not any(totals.values())


def opened(p: Poly) -> Poly:
    """The term with all named terms on its surface taken apart, as far as that does not make it too long."""
    while p.items:
        without = _without_name(p)
        if without is None:
            break
        p = without
    return p


def _without_name(p: Poly) -> Poly | None:
    """The term with one named term on its surface taken apart; None if it has none, or if it would grow too long.

    First of those that are made of others, so that what both sides of a comparison are made of stays whole.
    """
    growth: dict[Tensor, int] = defaultdict(int)
    for mono, _ in p.items:
        own: dict[Tensor, int] = defaultdict(lambda: 1)
        for a, n in mono:
            if _is_name(a) and isinstance(n, int):
                own[a.tensor] *= len(a.tensor.bodies[0].items) ** n
        for name, size in own.items():
            growth[name] += size - 1
    for name in sorted(_outermost(set(growth)), key=lambda name: (growth[name], name.uid)):
        if len(p.items) + growth[name] <= 2 * TERMS:  # something may cancel
            return _opened_name(p, name)
    return None


def _is_name(a: Atom) -> TypeGuard[Read]:
    return isinstance(a, Read) and a.tensor.kind == "term"


def _outermost(names: set[Tensor]) -> list[Tensor]:
    heights = {name: _height(name) for name in names}
    return [name for name, height in heights.items() if height == max(heights.values())]


@lru_cache(maxsize=1 << 16)
def _height(name: Tensor) -> int:
    """How many layers of names a named term has."""
    inside = {a.tensor for a in atoms(name.bodies[0]) if _is_name(a)}
    return 1 + max(map(_height, inside), default=0)


def _opened_name(p: Poly, name: Tensor) -> Poly | None:
    result = ZERO
    for mono, c in p.items:
        product: Poly = algebra.scale(ONE, c)
        for atom, n in mono:
            factor = make_poly(((((atom, n),), 1),))
            if _is_name(atom) and atom.tensor is name and isinstance(n, int):
                factor = algebra.power(unfold(atom)[1][0], n)
            if len(product.items) * len(factor.items) > TERMS:
                return None
            product = algebra.multiply(product, factor)
        result = algebra.add(result, product)
    return result


def _sum_of(mono: Monomial) -> Read | None:
    """The one sum among a monomial's factors."""
    sums = [a for a, n in mono if isinstance(a, Read) and a.tensor.kind == "sum" and n == 1]
    return sums[0] if len(sums) == 1 else None


Part = tuple[Monomial, Number, Read]


def _sums_vanish(p: Poly, effort: Effort, depth: int) -> bool:
    """Whether the sums over equal ranges cancel as one sum of their bodies, and the rest by itself.

    Where they are over two numbers of values, the longer ones may be what the others add up turn by turn.
    """
    groups: dict[int, list[Part]] = {}
    rest: dict[Monomial, Number] = {}
    for mono, c in p.items:
        read = _sum_of(mono)
        if read is None:
            rest[mono] = c
        else:
            groups.setdefault(prod(v.size for v in read.tensor.bound), []).append((mono, c, read))
    alike = any(len({read.tensor for _, _, read in parts}) > 1 for parts in groups.values())
    if (
        alike
        and all(any(vanishes(body, effort, depth - 1) for body in _joined(parts)) for parts in groups.values())
        and vanishes(algebra.build(rest), effort, depth - 1)
    ):
        return True
    sums = [read for parts in groups.values() for _, _, read in parts]
    return any(vanishes(_rebuilt(p, turns, {}), effort, depth) for turns in unrolled(sums))


def _joined(parts: list[Part]) -> Iterator[Poly]:
    """The body that has to vanish under the sum, for every way of aligning bound variables with those of the finest."""
    first = max(range(len(parts)), key=lambda n: len(parts[n][2].tensor.bound))
    common, (body, *_) = unfold(parts[first][2])
    joined = links(body, common)
    most = 1 if len(parts) > 4 else ALIGNMENTS
    choices = [
        [body] if n == first else list(islice(alignments(read, common, joined), most))
        for n, (_, _, read) in enumerate(parts)
    ]
    for bodies in islice(product(*choices), ALIGNMENTS * ALIGNMENTS):
        total = ZERO
        for (mono, c, read), own in zip(parts, bodies, strict=True):
            outside = make_poly(((tuple(item for item in mono if item[0] is not read), c),))
            total = algebra.add(total, algebra.multiply(outside, own))
        yield total


@dataclass(slots=True)
class _Split:
    """The state of a case distinction: the conditions of the case at hand, and how many more may be looked at."""

    integers: Integers
    depth: int
    budget: int
    path: list[z3.BoolRef]

    def possible(self, condition: z3.BoolRef) -> bool:
        return self.integers.possible(*self.path, condition)


def _by_cases(p: Poly, effort: Effort, depth: int) -> bool:
    if not _is_open(p):
        return False
    return _split(p, _Split(Integers([e for a in atoms(p) for e in indices(a)], effort), depth, CASES, []))


def _is_open(p: Poly) -> bool:
    """Whether cases could make a difference: normal forms without guards and opaque integers are final."""
    for atom in atoms(p):
        if isinstance(atom, Guard):
            return True
        if any(not isinstance(part, Digit) for e in indices(atom) for part, _ in e.items):
            return True
    sources = {a.tensor for a in atoms(p) if isinstance(a, Read) and a.tensor.bodies}
    return any(_comparable(a, b) for a in sources for b in sources if a.uid < b.uid)


def _comparable(x: Tensor, y: Tensor) -> bool:
    """Whether two definitions could be equal: of one kind and type, over equal ranges, of the same things."""
    if (x.kind, x.attributes, x.dtype) != (y.kind, y.attributes, y.dtype) or _leaves(x) != _leaves(y):
        return False
    return [v.size for v in x.bound] == [v.size for v in y.bound]


def _split(p: Poly, state: _Split) -> bool:
    """Decide the guards form by form; every case that exists must cancel."""
    if p is ZERO:
        return True
    state.budget -= 1
    if state.budget < 0 or state.integers.effort.left <= 0:
        return False
    guards = {a for a in atoms(p) if isinstance(a, Guard)}
    if not guards:
        return _cancels(p, state)
    form = min(guards, key=lambda g: g.uid).form
    own = [g for g in guards if g.form is form]
    for piece in _pieces(form, own):
        condition = state.integers.holds(piece)
        if not state.possible(condition):
            continue
        state.path.append(condition)
        here = _rebuilt(p, {g: ONE if _within(piece, g) else ZERO for g in own}, {})
        value = _value(piece)
        proved = _split(
            settling.settled(algebra.substitute(here, value), state.integers.effort) if value else here, state
        )
        state.path.pop()
        if not proved:
            return False
    return True


def _pieces(form: Index, guards: list[Guard]) -> list[Guard]:
    """The intervals of a form between the ends of some guards on it."""
    ends = sorted({end for g in guards for end in (g.lo, None if g.hi is None else g.hi + 1) if end is not None})
    return [make_guard(form, start, None if end is None else end - 1) for start, end in pairwise([None, *ends, None])]


def _value(piece: Guard) -> dict[Var, Index]:
    """The variable that has one value only on a piece, with that value; empty if the form is no variable."""
    form = piece.form
    least = form.lo if piece.lo is None else max(piece.lo, form.lo)
    most = form.hi if piece.hi is None else min(piece.hi, form.hi)
    (atom, factor), *others = form.items
    if least != most or others or factor != 1 or not isinstance(atom, Digit) or expr.of_var(atom.var) is not form:
        return {}
    return {atom.var: expr.constant(least)}


def _within(piece: Guard, g: Guard) -> bool:
    """Whether a guard holds on all of a piece, which no end of it divides."""
    above = g.lo is None or (piece.lo is not None and piece.lo >= g.lo)
    return above and (g.hi is None or (piece.hi is not None and piece.hi <= g.hi))


def _rebuilt(p: Poly, on_atom: dict[Atom, Poly], on_index: dict[Index, Index]) -> Poly:
    """p with some atoms replaced, and index expressions by others."""
    result = ZERO
    for mono, c in p.items:
        product: Poly = algebra.scale(ONE, c)
        kept: list[tuple[Atom, Number]] = []
        for atom, n in mono:
            new = _rebuilt_atom(atom, on_atom, on_index)
            if new is None:
                kept.append((atom, n))
                continue
            product = algebra.multiply(product, algebra.power_of(new, n))
        if kept:
            mono_kept = tuple(sorted(kept, key=lambda item: item[0].uid))
            product = algebra.multiply(product, make_poly(((mono_kept, 1),)))
        result = algebra.add(result, product)
    return result


def _rebuilt_atom(atom: Atom, on_atom: dict[Atom, Poly], on_index: dict[Index, Index]) -> Poly | None:
    if atom in on_atom:
        return on_atom[atom]
    if isinstance(atom, Read):
        if any(e in on_index for e in atom.indices):
            return algebra.read(atom.tensor, [on_index.get(e, e) for e in atom.indices])
    elif isinstance(atom, Ix):
        if atom.index in on_index:
            return algebra.of_index(on_index[atom.index])
    elif isinstance(atom, Apply):
        args = tuple(_rebuilt(a, on_atom, on_index) for a in atom.args)
        if args != atom.args:
            return apply(atom.function, args)
    return None


def _cancels(p: Poly, state: _Split) -> bool:
    """Without guards: make equal index expressions one, and see whether everything cancels."""
    integers = state.integers
    found: dict[Index, None] = {}
    for atom in atoms(p):
        for e in indices(atom):
            found[e] = None
    representatives: list[Index] = []
    merged: dict[Index, Index] = {}
    for e in found:
        for other in representatives:
            if integers.effort.left <= 0:
                return False
            if _may_equal(e, other) and not state.possible(integers.of(e) != integers.of(other)):
                merged[e] = other
                break
        else:
            representatives.append(e)
    reduced = _rebuilt(p, {}, merged) if merged else p
    if reduced is ZERO:
        return True
    reduced = _join_equal_definitions(reduced, state)
    return reduced is ZERO


def _may_equal(a: Index, b: Index) -> bool:
    return a.lo <= b.hi and b.lo <= a.hi


def _join_equal_definitions(p: Poly, state: _Split) -> Poly:
    """Reads of different definitions whose bodies are equal at every point become one."""
    reads = [a for a in dict.fromkeys(atoms(p)) if isinstance(a, Read) and a.tensor.bodies]
    for n, a in enumerate(reads):
        for b in reads[:n]:
            if a.tensor is b.tensor or not _comparable(a.tensor, b.tensor):
                continue
            question = (a.tensor, b.tensor, _pattern([*a.indices, *b.indices]))
            if state.depth <= state.integers.effort.refused.get(question, 0):
                continue
            if _same_definition(a, b, state):
                return _join_equal_definitions(_rebuilt(p, {a: make_poly(((((b, 1),), 1),))}, {}), state)
            if state.integers.effort.left > 0:
                state.integers.effort.refused[question] = state.depth
    return p


def _pattern(indices: list[Index]) -> Hashable:
    """Index expressions but for the names of their variables, which are new ones at every depth of a comparison."""
    numbers: dict[Var, int] = {}
    return tuple(
        (
            e.const,
            *(
                (numbers.setdefault(a.var, len(numbers)), a.var.size, a.low, a.radix, c)
                if isinstance(a, Digit)
                else (a.uid, c)
                for a, c in e.items
            ),
        )
        for e in indices
    )


def forget() -> None:
    """Let go of the definitions looked at so far; see `terms.memory`."""
    settling.forget()
    _leaves.cache_clear()
    _height.cache_clear()


@lru_cache(maxsize=1 << 16)
def _leaves(source: Tensor) -> frozenset[Tensor | str]:
    """The tensors and functions that a definition is made of, in the end."""
    if not source.bodies:
        return frozenset((source,))
    return frozenset[Tensor | str]().union(*map(ingredients, source.bodies))


def ingredients(p: Poly) -> frozenset[Tensor | str]:
    """The tensors and functions that a term is made of, in the end."""
    found: set[Tensor | str] = set()
    for atom in atoms(p):
        if isinstance(atom, Read):
            found |= _leaves(atom.tensor)
        elif isinstance(atom, Apply):
            found.add(atom.function)
    return frozenset(found)


def reads(p: Poly) -> set[Read]:
    """The reads on a term's surface and in the arguments of its functions."""
    return {a for a in atoms(p) if isinstance(a, Read)}


def arguments(p: Poly) -> frozenset[Tensor]:
    """The modules' arguments that a term is about in the end."""
    return frozenset(leaf for leaf in ingredients(p) if isinstance(leaf, Tensor) and leaf.kind == "argument")


def _same_definition(a: Read, b: Read, state: _Split) -> bool:
    x, y = a.tensor, b.tensor
    if state.depth <= 0:
        return False
    extra = len(a.indices) - len(x.params)
    if extra != len(b.indices) - len(y.params) or (extra and a.indices[-extra:] != b.indices[-extra:]):
        return False
    first, bodies = unfold(a)
    second, others = unfold(b)
    mapping = {v: expr.of_var(w) for v, w in zip(second, first, strict=True)}
    return len(bodies) == len(others) and all(
        vanishes(algebra.subtract(body, algebra.substitute(other, mapping)), state.integers.effort, state.depth - 1)
        for body, other in zip(bodies, others, strict=True)
    )
