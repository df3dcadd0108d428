"""Equality of guarded terms at every point of their variables, at full size.

`vanishes(p)` shows that a term is 0 for all values of its index variables. Definitions that differ are taken apart
first: two sums over equal ranges become one sum of the combined body. Then the term is split into the cases in which
every guard is decided, and Z3 is asked which cases exist. In each of these, index expressions that are equal throughout
the case become one expression, and what is left must cancel: `[i < 3]*x[i] - [i < 3]*x[min(i, 2)]` is `x[i] - x[i]` in
the case `i < 3`, and 0 in the other. Every step is exact, so True is a proof; False means only that none was found.

A question is abandoned past so many cases (`Limits.cases`): the guards of a term number few wherever this is of use.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial, reduce
from math import prod
from typing import TYPE_CHECKING

from hlo_verify.equality import (
    decided_places,
    few_candidates,
    few_integers,
    known_numbers,
    multisets,
    of_functions,
    settling,
    thresholds,
)
from hlo_verify.equality.aligned_sums import Part, as_one_sum, few_left, infinite_beside, sum_of
from hlo_verify.equality.effort import Effort
from hlo_verify.equality.greatest_sums import same_greatest_sum
from hlo_verify.equality.opening import computed_with, opened, without_common_sums, without_name
from hlo_verify.equality.pieces_of_forms import in_case, is_within, pieces_between, truth_on, variable_on
from hlo_verify.equality.prefixes import by_parts
from hlo_verify.equality.quick_refusal import comparable, differs_somewhere, is_open, pattern
from hlo_verify.equality.quotients import same_quotients
from hlo_verify.equality.rational_functions import divides, same_rational_function
from hlo_verify.equality.sides import apart, both, together
from hlo_verify.equality.told_integers import with_told
from hlo_verify.equality.turned_extrema import both_turned
from hlo_verify.equality.unrolling import unrolled, written_out
from hlo_verify.equality.zero_one import same_network
from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque, Var
from hlo_verify.limits import Limits, allows
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.guards import interval
from hlo_verify.terms.rebuilding import rebuilt
from hlo_verify.terms.term import (
    ONE,
    ZERO,
    Atom,
    Guard,
    Monomial,
    Number,
    Poly,
    Read,
    atoms,
    indices,
    make_poly,
)

if TYPE_CHECKING:
    import z3

    from hlo_verify.equality.integers import Integers


def equal(
    found: Poly,
    expected: Poly,
    inside: Poly = ONE,
    total: Effort | None = None,
    most: int | None = None,
    limit: str = "comparison_steps",
) -> bool:
    """Whether two terms are equal wherever `inside` (a product of guards) holds.

    `total` is the effort that this and other comparisons may take together, `most` what this one may, and `limit` what
    that is called.
    """
    if found is expected:
        return True
    total = Effort(Limits().comparison_steps) if total is None else total
    total.could_be.clear()
    if total.left <= 0:
        return False
    most = total.session.limits.comparison_steps if most is None else most
    found, expected = known_numbers.both_decided(*both_turned(found, expected), total.session)
    if total.within(most, lambda part: same_network(found, expected, part), limit):
        return True
    if same_quotients(found, expected, inside) or same_greatest_sum(found, expected, total.session, inside):
        return True
    if same_rational_function(found, expected, total.session):
        return True
    elements = multisets.as_sums(found, expected)
    if elements is not None and total.within(most, lambda part: _equal_somehow(*elements, inside, part), limit):
        return True
    if total.within(most, lambda part: _equal_somehow(found, expected, inside, part), limit):
        return True
    return bool(total.could_be) and total.within(most, lambda part: _equal_apart(found, expected, inside, part), limit)


def _equal_apart(found: Poly, expected: Poly, inside: Poly, effort: Effort) -> bool:
    """Whether two terms are equal by what their conditions ask of parts: these are more, and further apart."""
    effort.is_apart, effort.refused = True, {}
    effort.always = known_numbers.Always(expected, effort.session)
    return vanishes(algebra.expanded(inside, apart(found, expected)), effort)


def _equal_somehow(found: Poly, expected: Poly, inside: Poly, effort: Effort) -> bool:
    effort.always = known_numbers.Always(expected, effort.session)
    return found is expected or _vanishes_somehow(algebra.expanded(inside, apart(found, expected)), effort)


def _vanishes_somehow(p: Poly, effort: Effort) -> bool:
    ways = vanishes, _vanishes_for_each, _vanishes_written_out, _vanishes_by_parts, _vanishes_by_truths
    return any(way(p, effort) for way in ways)


def vanishes(p: Poly, effort: Effort, depth: int | None = None) -> bool:
    """Whether a term is 0 for all values of its index variables."""
    depth = effort.session.limits.comparison_depth if depth is None else depth
    if together(p) is ZERO or not all(v.size for v in p.free):  # of a tensor without elements, there is nothing to show
        return True
    if effort.left <= 0:
        return False
    effort.session.check()
    effort.left -= 1 + len(p.items) // 4
    if depth < 0:
        effort.session.reached("comparison_depth")
    if not allows("question_terms", len(p.items)) or depth < 0 or effort.left <= 0:
        return False
    without = without_name(p)
    if without is not None:
        return vanishes(without, effort, depth)
    decided = decided_places.by_truths(settling.settled(p, effort))
    if effort.is_apart:
        decided = thresholds.taken_apart(decided)
    elif not effort.could_be and thresholds.taken_apart(decided) is not decided:
        effort.could_be.append(decided)
    if decided is not p:
        return vanishes(decided, effort, depth)
    if not differs_somewhere(p) and (_sums_vanish(p, effort, depth) or _by_cases(p, effort, depth)):
        return True
    from hlo_verify.equality.scalars import is_zero  # imports Z3, which few proofs ask

    fewer = of_functions.with_one_for_two(p, partial(_vanishes_inside, effort=effort, depth=depth - 1))
    return is_zero(p, effort) if fewer is None else vanishes(fewer, effort, depth - 1)


def _vanishes_inside(p: Poly, effort: Effort, depth: int) -> bool:
    """Whether what two functions are of differs by nothing: sums up to a place are parted there, too."""
    if differs_somewhere(p):
        return False
    return vanishes(p, effort, depth) or (depth > 0 and _vanishes_by_parts(p, effort, depth))


def _vanishes_for_each(p: Poly, effort: Effort) -> bool:
    """Whether a term is 0 for each of the few values of a variable that it looks up in tables, clamps or divides."""
    if effort.left <= 0:
        return False
    p = opened(p)
    inner = {
        v for a in atoms(p) for e in indices(a) for part, _ in e.items if isinstance(part, Opaque) for v in part.free
    }
    most = effort.session.limits.enumerated_values
    v = max((v for v in inner if v.size <= most), key=lambda v: (v.size, v.uid), default=None)
    if inner and v is None:
        effort.session.reached("enumerated_values")
    return v is not None and all(vanishes(algebra.substitute(p, {v: expr.constant(n)}), effort) for n in range(v.size))


def _vanishes_written_out(p: Poly, effort: Effort) -> bool:
    """Whether a term is 0 because what sums over few values add up cancels, addend by addend."""
    if effort.left <= 0:
        return False
    added_up, most = written_out(opened(p), effort.session), effort.session.limits.written_out_steps
    return added_up is not None and effort.within(most, lambda part: vanishes(added_up, part), "written_out_steps")


def _vanishes_by_parts(p: Poly, effort: Effort, depth: int | None = None) -> bool:
    """Whether a term is 0 because sums up to a place are those of earlier parts and of a part's own elements."""
    parts = by_parts(opened(p)) if effort.left > 0 else None
    return parts is not None and vanishes(parts, effort, depth)


def _vanishes_by_truths(p: Poly, effort: Effort) -> bool:
    """Whether a term is 0 because extrema, indices of best elements and conditions on counts ask the same of the same
    truth values."""
    if effort.left <= 0:
        return False
    p = opened(p)
    told = few_candidates.told_apart(p)
    if told is not None and (vanishes(told, effort) or _vanishes_by_truths(told, effort)):
        return True
    stepped = few_integers.in_steps(p)
    if stepped is not None and (vanishes(stepped, effort) or _vanishes_by_parts(stepped, effort)):
        return True

    def is_zero(rest: Poly) -> bool:
        return not differs_somewhere(rest) and (vanishes(rest, effort) or _vanishes_written_out(rest, effort))

    fewer = few_integers.with_truths_for_counts(p if stepped is None else stepped, is_zero)
    return fewer is not None and (vanishes(fewer, effort) or _vanishes_by_parts(fewer, effort))


def _sums_vanish(p: Poly, effort: Effort, depth: int) -> bool:
    """Whether the sums over equal ranges cancel as one sum of their bodies, and the rest by itself, or in that sum.

    Where they are over two numbers of values, the longer ones may be what the others add up turn by turn.
    """
    p = without_common_sums(p)
    groups: dict[tuple[int, Monomial], list[Part]] = {}
    rest: dict[Monomial, Number] = {}
    for mono, c in p.items:
        read = sum_of(mono)
        if read is None:
            rest[mono] = c
        else:
            infinite = infinite_beside(mono, read)
            inside = tuple(item for item in mono if item not in infinite)
            groups.setdefault((prod(v.size for v in read.tensor.bound), infinite), []).append((inside, c, read))
    alike = any(len({read.tensor for _, _, read in parts}) > 1 for parts in groups.values())
    if alike and all(_vanish_together(parts, ZERO, effort, depth - 1) for parts in groups.values()):
        if vanishes(algebra.build(rest), effort, depth - 1):
            return True
    elif alike and rest and len(groups) == 1:
        (((count, infinite), parts),) = groups.items()
        beside = algebra.build(rest)
        if not infinite and _vanish_together(parts, algebra.scale(beside, Fraction(1, count)), effort, depth - 1):
            return True
        few = () if infinite or p.doubt else few_left(parts, effort)
        if any(vanishes(algebra.add(left, beside), effort, depth - 1) for left in few):
            return True
    if effort.left <= 0:
        return False
    sums = [read for parts in groups.values() for _, _, read in parts]
    return any(vanishes(rebuilt(p, turns, {}), effort, depth) for turns in unrolled(sums, effort.session))


def _vanish_together(parts: list[Part], beside: Poly, effort: Effort, depth: int) -> bool:
    """Whether sums are 0 as one sum, with something added to each of its elements: of `sum j<4. (t[j] - q)` the q is
    out of it, as `4*q`, and functions of each `t[j] - q` are not."""
    return any(vanishes(algebra.add(body, beside), effort, depth) for _, body in as_one_sum(parts, effort))


@dataclass(slots=True)
class _Split:
    """The state of a case distinction: the conditions of the case at hand, and how many more may be looked at."""

    integers: Integers
    depth: int
    budget: int
    path: list[z3.BoolRef]
    pieces: dict[Index, Guard]
    """Where each form that was looked at lies."""

    def possible(self, condition: z3.BoolRef) -> bool:
        return self.integers.possible(*self.path, condition)

    def is_always(self, e: Index, other: Index) -> bool:
        """Whether two index expressions are one wherever the conditions hold."""
        return not self.possible(self.integers.of(e) != self.integers.of(other))


def _by_cases(p: Poly, effort: Effort, depth: int) -> bool:
    if not is_open(p):
        return False
    from hlo_verify.equality.integers import Integers  # likewise

    integers = Integers([e for a in atoms(p) for e in indices(a)], effort)
    return _split(p, _Split(integers, depth, effort.session.limits.cases, [], {}))


def _split(p: Poly, state: _Split) -> bool:
    """Decide the guards form by form; every case that exists must cancel."""
    if together(p) is ZERO:
        return True
    state.budget -= 1
    if state.budget < 0:
        state.integers.effort.session.reached("cases")
    if state.budget < 0 or state.integers.effort.left <= 0:
        return False
    guards = dict.fromkeys(a for a in atoms(p) if isinstance(a, Guard))
    if not guards:
        return _cancels(p, state)
    # Sums of guards on several forms of one variable may bring back a guard that was decided before.
    decided: dict[Atom, Poly] = {g: truth for g in guards if (truth := truth_on(g, state.pieces)) is not None}
    if len(decided) == len(guards):
        return _split(rebuilt(p, decided, {}), state)
    form = min(guards.keys() - decided.keys(), key=lambda g: g.uid).form
    own = [g for g in guards if g.form is form]
    before = state.pieces.get(form)
    for piece in pieces_between(form, own if before is None else [*own, before]):
        condition = state.integers.holds(piece)
        if not state.possible(condition):
            continue
        state.path.append(condition)
        state.pieces[form] = piece
        here = rebuilt(p, {g: ONE if is_within(piece, g) else ZERO for g in own}, {})
        value = variable_on(piece)
        proved = _split(
            settling.settled(algebra.substitute(here, value), state.integers.effort) if value else here, state
        )
        state.path.pop()
        if not proved:
            break
    else:
        proved = True
    state.pieces.pop(form, None)
    if before is not None:
        state.pieces[form] = before
    return proved


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
        own = in_case(e, partial(state.is_always, e), state.pieces.values())
        for other in representatives:
            if integers.effort.left <= 0:
                return False
            if own is other or (_may_equal(own, other) and state.is_always(own, other)):
                own = other
                break
        else:
            representatives.append(own)
        if own is not e:
            merged[e] = own
    reduced = with_told(rebuilt(p, {}, merged) if merged else p, state.pieces.values())
    if together(reduced) is ZERO or together(_join_equal_definitions(reduced, state)) is ZERO:
        return True
    return divides(reduced) and same_rational_function(*both(reduced), state.integers.effort.session)


def _may_equal(a: Index, b: Index) -> bool:
    return a.lo <= b.hi and b.lo <= a.hi


def _join_equal_definitions(p: Poly, state: _Split) -> Poly:
    """Reads of different definitions whose bodies are equal at every point become one."""
    reads = [a for a in dict.fromkeys(atoms(p)) if isinstance(a, Read) and a.tensor.bodies]
    told = frozenset(made for g in state.pieces.values() if g.lo == g.hi is not None for made in computed_with(g.form))
    for n, a in enumerate(reads):
        for b in reads[:n]:
            if a.tensor is b.tensor or not comparable(a.tensor, b.tensor, told):
                continue
            known = _known_of(a.free | b.free, state.pieces)
            ends = [(g.lo, g.hi) for g in known]
            question = (a.tensor, b.tensor, pattern([*a.indices, *b.indices, *(g.form for g in known)]), *ends)
            if state.depth <= state.integers.effort.refused.get(question, 0):
                continue
            if _same_definition(a, b, known, state):
                return _join_equal_definitions(rebuilt(p, {a: make_poly(((((b, 1),), 1),))}, {}), state)
            if state.integers.effort.left > 0:
                state.integers.effort.refused[question] = state.depth
    return p


def _known_of(variables: frozenset[Var], pieces: dict[Index, Guard]) -> tuple[Guard, ...]:
    """What the case at hand says of some variables alone."""
    return tuple(g for g in pieces.values() if g.free <= variables and not (g.lo is None and g.hi is None))


def _same_definition(a: Read, b: Read, known: tuple[Guard, ...], state: _Split) -> bool:
    """Whether two definitions have one body wherever what is known holds."""
    x, y = a.tensor, b.tensor
    if state.depth <= 0:
        return False
    extra = len(a.indices) - len(x.params)
    if extra != len(b.indices) - len(y.params) or (extra and a.indices[-extra:] != b.indices[-extra:]):
        return False
    first, bodies = unfold(a)
    second, others = unfold(b)
    mapping = {v: expr.of_var(w) for v, w in zip(second, first, strict=True)}
    inside = reduce(algebra.multiply, (interval(g.form, g.lo, g.hi) for g in known), ONE)
    return len(bodies) == len(others) and all(
        vanishes(
            algebra.expanded(inside, apart(body, algebra.substitute(other, mapping))),
            state.integers.effort,
            state.depth - 1,
        )
        for body, other in zip(bodies, others, strict=True)
    )
