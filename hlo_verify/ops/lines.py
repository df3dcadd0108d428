"""Lines of devices that hand on what they made in a loop, and the ways in which that may be microbatches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Var
from hlo_verify.limits import limit_of
from hlo_verify.ops.devices import indices
from hlo_verify.ops.groups import Members, process_groups, sources_of
from hlo_verify.ops.induction import Loop, kind_of_numbers
from hlo_verify.ops.values import Context, UnsupportedError, Value, positions
from hlo_verify.program.ir import Op, TensorType
from hlo_verify.program.op_families import REGION, communicates, is_identity
from hlo_verify.terms import algebra
from hlo_verify.terms.term import Number, Poly


@dataclass(frozen=True, slots=True)
class Line:
    """Devices in lines of `count`: the places are a digit of the device's number, or count down with it."""

    device: Var
    low: int
    count: int
    is_down: bool

    @property
    def place(self) -> Index:
        digit = expr.digit_of(expr.of_var(self.device), self.low, self.count)
        return expr.subtract(expr.constant(self.count - 1), digit) if self.is_down else digit

    def at(self, place: Index) -> Index:
        """The device at a place of a device's own line."""
        whole = expr.of_var(self.device)
        digit = expr.digit_of(whole, self.low, self.count)
        there = expr.subtract(expr.constant(self.count - 1), place) if self.is_down else place
        return expr.add(whole, expr.scale(expr.subtract(there, digit), self.low))


@dataclass(frozen=True, slots=True)
class Passed:
    """A component that is handed on: which value an iteration makes for that, and whether it is carried as it was made
    (and handed on at the start of the next turn), or as it was received."""

    component: int
    made: int
    is_received: bool
    op: Op
    sources: Members

    def lines(self, device: Var, count: int) -> list[Line]:
        """The lines of so many devices that it is handed on along: none, one way, or, in rings of two, both ways."""
        return list(lines_of(self.sources, device, count))


@dataclass(frozen=True, slots=True)
class Guess:
    """What is made is a microbatch of a component of the logical loop, or a device's shard of it: along which dimension
    microbatches lie, and for each dimension of a microbatch which block of it a device has."""

    component: int
    dimension: int
    batches: int
    blocks: tuple[Index, ...]
    is_gradient: bool = False
    """Whether the last microbatch comes first, and what is handed on is 0 where a device works on none, and by the last
    device of a line: so it is with gradients."""

    is_turned_over: bool = False
    """Whether it is the other way round: a loop around the logical one may begin with the last microbatch, too."""

    turned: int = 0
    """The step in which they come by where the first device has them of a ring, beginning with its own; 0 where not."""

    multiple: Number = 1
    """How many times that it is: a gradient of a mean over a device's own rows is as many times that over all of them
    as there are devices that share them."""

    def microbatch(self, whole: Value, batch: Index, shape: Sequence[int]) -> Poly:
        """The element of the microbatch that comes as the `batch`-th."""
        if self.is_gradient != self.is_turned_over:
            batch = expr.subtract(expr.constant(self.batches - 1), batch)
        if self.turned:
            own = 0 if self.turned < 0 else self.batches - 1
            batch = expr.modulo(expr.shift(expr.scale(batch, self.turned), own), self.batches)
        where = [
            expr.add(own, expr.scale(block, size))
            for own, block, size in zip(positions(shape), self.blocks, shape, strict=True)
        ]
        if len(whole.shape) > len(shape):
            where.insert(self.dimension, batch)
        else:
            where[self.dimension] = expr.add(where[self.dimension], expr.scale(batch, shape[self.dimension]))
        return algebra.scale(whole.at(where), self.multiple)


@dataclass(frozen=True, slots=True)
class Way:
    """A way in which lines of devices may make turns of a logical loop: a place so many at once, from the `first` on.
    Where there are fewer places than that takes, others follow in other loops, or in this one: microbatches go round
    once more."""

    line: Line
    at_once: int
    first: int
    own: tuple[Passed, ...]
    """What is handed on along the line."""
    rounds: int = 1
    """How often microbatches go round the line in this loop. Places are counted on, so that a device is at several."""

    @property
    def places(self) -> int:
        return self.line.count * self.rounds

    @property
    def starts(self) -> list[int]:
        """The turns that rounds begin with; of later ones, the last turns of the round before, too."""
        around = self.line.count * self.at_once
        return [self.first, *(self.first + n * around - self.at_once for n in range(1, self.rounds))]

    def device_at(self, place: Index) -> Index:
        """The device at a place in the line of a device, in any round."""
        return self.line.at(expr.modulo(place, self.line.count))

    def batch_and_place(self, turn: Index, place: Index) -> tuple[Index, Index]:
        """Of which microbatch a device at a place of its line may make something in a turn, and at which place of all
        rounds: microbatches of a round are no more than devices."""
        batch = expr.subtract(turn, place)
        if self.rounds == 1:
            return batch, place
        batch = expr.modulo(batch, self.line.count)
        return batch, expr.subtract(turn, batch)

    def turn(self, place: Index) -> Index:
        """The first of the turns that a place makes."""
        return expr.shift(expr.scale(place, self.at_once), self.first)

    @property
    def end(self) -> int:
        """The turn after the last one that a line makes."""
        return self.first + self.places * self.at_once


@dataclass(frozen=True, slots=True, eq=False)
class Piped:
    """A component of a logical loop that lines of devices make turn by turn."""

    loop: Loop
    component: int
    is_gradient: bool
    way: Way

    @property
    def line(self) -> Line:
        return self.way.line

    def is_before(self, loop: Loop, way: Way) -> bool:
        """Whether lines make the turns of a loop before those that others make."""
        return self.loop is loop and self.line == way.line and self.way.end == way.first


def ways(
    passed: Sequence[Passed], loops: Sequence[Loop], device: Var, known: Sequence[Piped]
) -> list[tuple[Loop, Way]]:
    """The logical loops of which turns may be what is handed on, and the ways in which they may be: those first that go
    on where another pipeline ended, then those of as many turns a place as others, as gradients are, and of loops of
    which none is known, as a gradient's is another."""
    every = [(loop, way) for loop in loops for way in _ways(passed, loop, device, known)]
    seen = {(each.way.at_once, each.line.count) for each in known}

    def order(each: tuple[Loop, Way]) -> tuple[bool, bool, bool]:
        loop, way = each
        is_first = not any(piped.is_before(loop, way) for piped in known)
        is_other = (way.at_once, way.line.count) not in seen
        return is_first, is_other, any(piped.loop is loop for piped in known)

    return sorted(every, key=order)


def _ways(passed: Sequence[Passed], loop: Loop, device: Var, known: Sequence[Piped]) -> Iterator[Way]:
    """All of a loop's turns, or a part of them. Of a ring of two, the line that is known comes last, as a gradient goes
    back."""
    lines_known = [each.line for each in known]
    most = limit_of("turns_at_once")
    for rounds in range(1, most + 1):
        for at_once in range(1, most + 1):
            count, left = divmod(loop.t.size, rounds * at_once)
            lines = [[] if left else each.lines(device, count) for each in passed]
            for line in sorted(next((some for some in lines if some), []), key=lambda line: line in lines_known):
                own = tuple(each for each, its in zip(passed, lines, strict=True) if line in its)
                if rounds > 1 and all((each.sources >= 0).all() for each in own):
                    yield Way(line, at_once, 0, own, rounds)
                yield from (Way(line, at_once, n * count * at_once, own) for n in range(rounds))


def communicates_inside(op: Op) -> bool:
    """Whether a loop has regions inside in which devices communicate, or that are manual themselves."""
    inner = [each for each in op.regions[1].ops if each.regions]
    return any(each.name == REGION or any(map(communicates, each.regions)) for each in inner)


def stays_beside(op: Op, line: Line, context: Context) -> bool:
    """Whether devices communicate with devices at the same place of other lines alone, and at each place likewise."""
    try:
        if "source_target_pairs" in op.attributes:
            members = sources_of(op, context)[:, None]
        elif "replica_groups" in op.attributes:
            groups = process_groups(op, context)
            if (groups < 0).any():
                return False
            members = np.full((line.device.size, groups.shape[1]), -1, np.int64)
            members[groups] = groups[:, None]
        else:
            return False
    except UnsupportedError:
        return False
    every = np.arange(line.device.size)
    places = every // line.low % line.count
    after = every + np.where(places == line.count - 1, 1 - line.count, 1) * line.low
    is_none = members < 0
    stay = is_none | (places[members] == places[:, None])
    return bool(stay.all() and (np.where(is_none, -1, after[members]) == members[after]).all())


def handed_on(op: Op, context: Context) -> Iterator[Passed]:
    """The components that are handed on in each iteration."""
    body = op.regions[1]
    producers = {result: inner for inner in body.ops for result in inner.results}
    users = {inner.operands[0]: inner for inner in body.ops if inner.name == "collective_permute"}
    for k, (argument, result) in enumerate(zip(body.arguments, body.results, strict=True)):
        inner = producers.get(_plain(result, producers))
        try:
            if inner is not None and inner.name == "collective_permute" and len(inner.operands) == 1:
                yield Passed(k, inner.operands[0], True, inner, sources_of(inner, context))
                continue
            sent = next((users[v] for v in users if _plain(v, producers) == argument), None)
            if sent is not None and result != argument:
                yield Passed(k, result, False, sent, sources_of(sent, context))
        except UnsupportedError:
            continue


def _plain(value: int, producers: Mapping[int, Op]) -> int:
    """The value that one has the elements of, in their order, but for dimensions of size 1."""
    while (op := producers.get(value)) is not None and len(op.results) == 1:
        if is_identity(op) or _is_flat(op, producers):
            value = op.operands[0]
        elif op.name == "scatter" and _is_whole(op, producers):
            value = op.operands[2]
        else:
            break
    return value


def _is_flat(op: Op, producers: Mapping[int, Op]) -> bool:
    """Whether an operation leaves out, or adds, no more than dimensions of size 1."""
    source = producers.get(op.operands[0]) if op.name == "reshape" else None
    if source is None:
        return False
    type_ = source.types[source.results.index(op.operands[0])]
    return _long(type_) == _long(op.types[0])


def _long(type_: TensorType) -> list[int]:
    return [size for size in type_.shape if size != 1]


def _is_whole(op: Op, producers: Mapping[int, Op]) -> bool:
    """Whether a scatter writes one window over all there was: a state that is kept in a list of one."""
    updates, region = producers.get(op.operands[2]), op.regions[0]
    if len(op.operands) != 3 or updates is None or region.results != region.arguments[1:]:
        return False
    start = producers.get(op.operands[1])
    count = prod(start.types[0].shape) if start is not None else 0
    while start is not None and start.name in ("broadcast_in_dim", "reshape"):
        start = producers.get(start.operands[0])
    if start is None or start.name != "constant" or np.any(start.attributes["value"]):
        return False
    type_ = updates.types[updates.results.index(op.operands[2])]
    numbers = op.attributes["scatter_dimension_numbers"]
    return count == len(numbers["scatter_dims_to_operand_dims"]) and _long(type_) == _long(op.types[0])


def as_type(value: Value, type_: TensorType) -> Value:
    """A value of another type, which has the same elements but for dimensions of size 1."""
    if value.shape == type_.shape:
        return value
    own = iter([p for p, size in zip(positions(type_.shape), type_.shape, strict=True) if size != 1])
    return Value(type_, value.at([expr.constant(0) if size == 1 else next(own) for size in value.shape]))


def lines_of(sources: Members, device: Var, count: int) -> Iterator[Line]:
    """The lines of so many devices along which is handed on; from the last to the first may be, too."""
    if count < 2 or device.size % count:
        return
    every = range(device.size)
    steps = {k - int(sources[k]) for k in every if sources[k] >= 0}
    for step in sorted(steps, key=abs):
        low = abs(step)
        if not low or device.size % (low * count):
            continue
        line = Line(device, low, count, step < 0)
        first = count - 1 if step < 0 else 0
        around = -step * (count - 1)
        if all(
            int(sources[k]) == k - step if k // low % count != first else int(sources[k]) in (-1, k - around)
            for k in every
        ):
            yield line


def guesses_at(j: int, whole: TensorType, part: TensorType, digits: Sequence[Index]) -> Iterator[Guess]:
    """The ways in which a component may be put together from microbatches, or from shards of these, of which a device
    has those that such digits of its number say."""
    if kind_of_numbers(whole) != kind_of_numbers(part) or 0 in part.shape:
        return
    if len(whole.shape) == len(part.shape) + 1:
        for q, size in enumerate(whole.shape):
            for blocks in _blocks((*whole.shape[:q], *whole.shape[q + 1 :]), part.shape, digits):
                yield Guess(j, q, size, blocks)
    elif len(whole.shape) == len(part.shape):
        for q, size in enumerate(whole.shape):
            left = (*whole.shape[:q], part.shape[q], *whole.shape[q + 1 :])
            if size % part.shape[q] == 0 and size > part.shape[q]:
                for blocks in _blocks(left, part.shape, digits):
                    yield Guess(j, q, size // part.shape[q], blocks)


def beside(terms: Iterable[Poly], line: Line) -> list[Index]:
    """The digits of a device's number that terms are made of, but for those that say where in its line it is; and the
    number of its line among all lines."""
    device, first, end = line.device, line.low, line.low * line.count
    every = (atom for term in terms if device in term.free for e in indices(term) for atom, _ in e.items)
    found = {atom for atom in every if isinstance(atom, Digit) and atom.var is device}
    others = sorted((atom.low, atom.radix) for atom in found if atom.low * atom.radix <= first or atom.low >= end)
    d = expr.of_var(device)
    digits = [expr.digit_of(d, low, radix) for low, radix in others]
    own = expr.add(expr.scale(expr.floor_div(d, end), first), expr.modulo(d, first))
    return digits if own in digits else [*digits, own]


def _blocks(whole: tuple[int, ...], part: tuple[int, ...], digits: Sequence[Index]) -> Iterator[tuple[Index, ...]]:
    """Which block of each dimension a device has: no digit says so of two dimensions."""
    if not whole:
        yield ()
        return
    for rest in _blocks(whole[:-1], part[:-1], digits):
        if whole[-1] == part[-1]:
            yield (*rest, expr.constant(0))
            continue
        own = (digit for digit in digits if (digit.hi + 1) * part[-1] == whole[-1])
        yield from ((*rest, digit) for digit in own if digit not in rest)
