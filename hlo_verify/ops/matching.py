"""Loops of the partitioned module, matched by induction with loops of the logical module.

What a device carries is guessed to be a shard of what the logical loop carries at the same iteration, and the guess is
an induction hypothesis. It is given up for every component whose initial value or whose next value does not agree with
it, and the rest is checked again, until what is left holds. Where data decide how often a loop goes round, conditions
must be equal in every iteration too: then both loops end after the same one.

Where a shard lies is guessed from its initial value first (a block of an argument stays one), then from the annotation
of the logical loop and from the placements that the modules mention (`LoopBook.place`). A component is compared with
the logical one at its own place first, then with others: programs that two people wrote carry the same in any order.

A device may carry a multiple of a shard: the gradient of a mean over its own rows is as many times that over all rows
as there are devices that share them, in every iteration. Which multiple that is shows in the initial values, or after
one iteration from these where they are 0; the induction says whether it is that multiple ever after.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from hlo_verify.equality import cases
from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.limits import limit_of
from hlo_verify.ops.counting import Shape, counter_at, goes_on, iterate
from hlo_verify.ops.induction import Loop, LoopBook, Placement, Reading, book_of, kind_of_numbers
from hlo_verify.ops.resting import resting
from hlo_verify.ops.turns import views
from hlo_verify.ops.values import Context, Kept, Value, position, positions
from hlo_verify.program.element_types import is_float
from hlo_verify.program.ir import Op
from hlo_verify.terms import algebra
from hlo_verify.terms.addition import plain
from hlo_verify.terms.in_ranges import in_ranges
from hlo_verify.terms.term import ONE, ZERO, Number, Poly, Read, Tensor, tensor


@dataclass(frozen=True, slots=True)
class Relation:
    """A guess at what a device carries: a shard of a component of the logical loop."""

    component: int
    placement: Placement
    multiple: Number = 1
    """How many times that shard it is."""


@dataclass(frozen=True, slots=True)
class Match:
    """What an induction leaves: the components in an iteration `turn`, and in the end; arbitrary values where a
    component is among the `lost`, of which nothing is known."""

    loop: Loop
    state: list[Value]
    results: list[Value]
    lost: frozenset[int]
    relations: Mapping[int, Relation]


def matched_loop(op: Op, args: list[Value], context: Context, shape: Shape) -> Match | None:
    """The loop as the logical loop of as many iterations has it with which most components agree. Another one is looked
    at no longer than it may be better: a component of which nothing holds stays lost, whatever is guessed of others."""
    best: Match | None = None
    for loop in _candidates(op, context, shape):
        for multiples in (None, Multiples(op, args, context, shape, loop)):
            if multiples is not None and not (book_of(context).may_try and multiples.has_some()):
                continue
            match = _induct(op, args, context, shape, loop, len(best.lost) if best else len(args) + 1, multiples)
            if match is None:
                continue
            if loop.test is not None:
                match = _ended(op, args, context, shape, match)
            if match is None:
                continue
            if best is None or len(match.lost) < len(best.lost):
                best = match
            if not match.lost:
                return best
    return best


def _candidates(op: Op, context: Context, shape: Shape) -> Iterator[Loop]:
    """The loops that a loop may match: of as many iterations, then views of others, if that is how loops are read."""
    yield from _partners(op, context, shape)
    if book_of(context).reading is not Reading.NAMED and shape.unbounded is None:
        for loop in book_of(context).loops:
            yield from views(loop, shape.trips)


def _ended(op: Op, args: list[Value], context: Context, shape: Shape, match: Match) -> Match | None:
    """What is left of a match where data decide when both loops end: all of it if each iteration takes place on every
    device if, and only if, it does in the logical loop; or what rests on a device that ends before."""
    loop, effort = match.loop, book_of(context).effort
    test = goes_on(op, match.state, context, expr.of_var(loop.t))
    if loop.test is not None and cases.equal(test, loop.test, total=effort):
        return match
    rests = resting(op, test, loop, match.relations, context)
    if not rests:
        return None
    relations = {k: relation for k, relation in match.relations.items() if k in rests}
    results = _results(op, args, context, shape, loop, relations)
    return replace(match, results=results, lost=match.lost | match.relations.keys() - rests, relations=relations)


def _partners(op: Op, context: Context, shape: Shape) -> list[Loop]:
    """The logical loops of as many iterations: those with as many components first, and those of the same line."""
    is_bounded = shape.unbounded is None
    loops = [
        loop for loop in book_of(context).loops if loop.t.size == shape.trips and (loop.test is None) == is_bounded
    ]
    alike = [loop for loop in loops if len(loop.state) == len(op.types)]
    others = [loop for loop in loops if len(loop.state) != len(op.types)]
    alike.sort(key=lambda loop: loop.op.location != op.location)
    others.sort(key=lambda loop: loop.op.location != op.location)
    return [*alike, *others[: limit_of("loop_partners")]]


def _induct(
    op: Op,
    args: list[Value],
    context: Context,
    shape: Shape,
    loop: Loop,
    fewest: int,
    multiples: Multiples | None = None,
) -> Match | None:
    """What the loop has of a logical one, or has as a multiple of it; None where that is known to lose as many
    components as the `fewest` that any has lost before."""
    if context.kept is None or not context.kept.holds_in(context):
        context = replace(context)
        context.kept = Kept(context)
    options: dict[int, Iterator[Relation]] = {}
    guesses: dict[int, Relation] = {}
    open_ = [k for k in range(len(args)) if k not in shape.invariant and k not in shape.counters]
    for k in open_:
        relations = _relations(op, args[k], k, loop, book_of(context), multiples)
        options[k] = _noted(relations, loop, book_of(context))
        _take_next(guesses, options, k)
    now, next_ = expr.of_var(loop.t), Shards(loop.after, book_of(context))
    unknown = {k: _unknown("carried", k, op) for k in open_}
    wrong: list[int] = []
    while len(open_) - len(guesses) < fewest:
        state = []
        for k, type_ in enumerate(op.types):
            if k in shape.invariant:
                state.append(Value(type_, args[k].term))
            elif k in shape.counters:
                state.append(counter_at(shape, k, now, type_))
            else:
                arbitrary = algebra.read(unknown[k], (*context.execution, now, *positions(type_.shape)))
                state.append(Value(type_, _related(loop.state, guesses.get(k), arbitrary)))
        wrong.clear()
        with book_of(context).trying(lambda: bool(wrong)):
            after = iterate(op, state, context, now)
            wrong.extend(k for k, guess in guesses.items() if not next_.agree(after[k], guess))
        if not wrong:
            results = _results(op, args, context, shape, loop, guesses)
            return Match(loop, state, results, frozenset(open_) - set(guesses), guesses)
        if not book_of(context).may_try:
            guesses.clear()
            continue
        # One at a time: that others are wrong may be the fault of this one.
        if not any(_take_next(guesses, options, k) for k in wrong):
            for k in wrong:
                del guesses[k]
    return None


def _results(
    op: Op, args: list[Value], context: Context, shape: Shape, loop: Loop, guesses: Mapping[int, Relation]
) -> list[Value]:
    results = []
    for k, type_ in enumerate(op.types):
        if k in shape.invariant:
            results.append(Value(type_, args[k].term))
        elif k in shape.counters:
            results.append(counter_at(shape, k, expr.constant(shape.trips), type_))
        else:
            end = _unknown("loop result", k, op)
            arbitrary = algebra.read(end, (*context.execution, *positions(type_.shape)))
            results.append(Value(type_, _related(loop.final, guesses.get(k), arbitrary)))
    return results


def _unknown(what: str, k: int, op: Op) -> Tensor:
    type_ = op.types[k]
    return tensor("opaque", f"{what} {k}", type_.dtype, type_.shape, location=op.location)


def _noted(relations: Iterator[Relation], loop: Loop, book: LoopBook) -> Iterator[Relation]:
    """The relations; before each the names are noted that a shard so placed has on the way."""
    for relation in relations:
        place = relation.placement
        for left, name in loop.between if place.inside is ONE else ():
            j = relation.component
            book.named[kind_of_numbers(left[j].type), left[j].at(place.indices)] = name[j].at(place.indices)
        yield relation


def _take_next(guesses: dict[int, Relation], options: Mapping[int, Iterator[Relation]], k: int) -> bool:
    """Guess that a component is what the next of its options says, if there is one."""
    guess = next(options[k], None)
    if guess is not None:
        guesses[k] = guess
    return guess is not None


def _relations(
    op: Op, initial: Value, k: int, loop: Loop, book: LoopBook, multiples: Multiples | None
) -> Iterator[Relation]:
    """The guesses with which a component starts as it should: as the logical component at its own place (by case
    distinction too), or as another one (by construction)."""
    order = sorted(range(len(loop.state)), key=lambda j: j != k)
    left = limit_of("loop_relations")
    for j in order:
        for placement in _placements(op, initial, k, j, loop, book):
            guess = Relation(j, placement, 1 if multiples is None else multiples.of(k, j, placement))
            if j != k and initial.term is not algebra.scale(loop.initial[j].at(placement.indices), guess.multiple):
                continue
            if j == k and not Shards(loop.initial, book).agree(initial, guess):
                continue
            if not left:
                return
            left -= 1
            yield guess


def _placements(op: Op, initial: Value, k: int, j: int, loop: Loop, book: LoopBook) -> Iterator[Placement]:
    """The placements in which component k may be a shard of the logical component j, each once."""
    whole, shard = loop.state[j].type, op.types[k]
    if len(whole.shape) != len(shard.shape) or kind_of_numbers(whole) != kind_of_numbers(shard):
        return
    seen = set()
    first = _started(initial, loop.initial[j])
    for placement in (*([first] if first else ()), *book.place(loop.op, op, j, whole, shard)):
        if (placement.indices, placement.inside) not in seen:
            seen.add((placement.indices, placement.inside))
            yield placement


def _started(initial: Value, logical: Value) -> Placement | None:
    """Where a shard lies by its initial value, if both that and the logical one are read of one tensor, each dimension
    of the logical one at its own index."""
    mine, other = initial.term.atom, logical.term.atom
    if not isinstance(mine, Read) or not isinstance(other, Read) or mine.tensor is not other.tensor:
        return None
    where: list[Index] = []
    for n, size in enumerate(logical.shape):
        if size == 1:
            where.append(expr.constant(0))
            continue
        at = [e for e, own in zip(mine.indices, other.indices, strict=True) if own is position(n, size)]
        if len(at) != 1 or at[0].lo < 0 or at[0].hi >= size:
            return None
        where.append(at[0])
    return Placement(tuple(where), ONE)


def _related(logical: Sequence[Value], relation: Relation | None, arbitrary: Poly) -> Poly:
    """A device's shard of a logical component; arbitrary past its end, or where nothing is known."""
    if relation is None:
        return arbitrary
    inside = relation.placement.inside
    shard = algebra.scale(logical[relation.component].at(relation.placement.indices), relation.multiple)
    term = algebra.multiply(inside, shard)
    return algebra.add(term, algebra.multiply(algebra.logical_not(inside), arbitrary))


@dataclass(slots=True)
class Multiples:
    """Which multiples of what a logical loop carries a loop seems to carry, by greatest common factors of coefficients:
    those of the initial values or, where these are 0, of what the first iteration makes of them."""

    op: Op
    args: list[Value]
    context: Context
    shape: Shape
    loop: Loop
    _made: tuple[Sequence[Value], Sequence[Value]] | None = None

    def has_some(self) -> bool:
        """Whether any component at its own place seems to be another multiple than 1."""
        if self.loop.test is not None or self.shape.unbounded is not None:
            return False
        skipped = {*self.shape.invariant, *self.shape.counters}
        for k in (k for k in range(min(len(self.args), len(self.loop.state))) if k not in skipped):
            places = _placements(self.op, self.args[k], k, k, self.loop, book_of(self.context))
            place = next(places, None)
            if place is not None and self.of(k, k, place) != 1:
                return True
        return False

    def of(self, k: int, j: int, place: Placement) -> Number:
        """The multiple of the logical component j, at that place, that component k seems to be."""
        if not is_float(self.op.types[k].dtype):
            return 1
        own, whole = self.args[k].term, self.loop.initial[j].at(place.indices)
        if own is ZERO and whole is ZERO:
            ours, theirs = self._after_first()
            if not theirs:
                return 1
            own, whole = ours[k].term, theirs[j].at(place.indices)
        return _ratio(own, whole)

    def _after_first(self) -> tuple[Sequence[Value], Sequence[Value]]:
        """What either loop carries after its first iteration."""
        if self._made is None:
            theirs = self.loop.first()
            pure = replace(self.context, observe=None, unsupported={}, kept=None)
            zero = expr.constant(0)
            state = list(self.args)
            for k in self.shape.counters:
                state[k] = counter_at(self.shape, k, zero, self.op.types[k])
            self._made = (iterate(self.op, state, pure, zero) if theirs else ()), theirs
        return self._made


def _is_same_in_ranges(found: Poly, expected: Poly, inside: Poly) -> bool:
    """Whether two terms of a turn are one where definitions are made for the ranges of what they are read at: a loop
    that goes back counts down what another counted up."""
    if found is expected:
        return True
    found, expected = (in_ranges(algebra.multiply(inside, p)) for p in (found, expected))
    return found is expected


def _ratio(own: Poly, whole: Poly) -> Number:
    """How many times one term another seems to be; 1 where either is 0."""
    if not own.items or not whole.items:
        return 1
    return plain(Fraction(algebra.content(own)) / algebra.content(whole))


@dataclass(slots=True)
class Shards:
    """A device's shards of what a logical loop carries. Each is worked out and compared once, however many guesses at
    other components are given up one after another: a value that is wrong makes most others wrong."""

    logical: Sequence[Value]
    book: LoopBook
    _at: dict[tuple[int, tuple[Index, ...]], Poly] = field(default_factory=dict)
    _agree: dict[tuple[Poly, Poly, Poly], bool] = field(default_factory=dict)

    def agree(self, found: Value, relation: Relation) -> bool:
        """Whether a value is its shard of a logical one, where that exists."""
        j, place = relation.component, relation.placement
        expected = self._at.get((j, place.indices))
        if expected is None:
            expected = self._at[j, place.indices] = self.logical[j].at(place.indices)
        asked = found.term, algebra.scale(expected, relation.multiple), place.inside
        if asked not in self._agree:
            is_seen = self.book.by_hand and _is_same_in_ranges(*asked)
            self._agree[asked] = is_seen or cases.equal(*asked, self.book.effort)
        return self._agree[asked]
