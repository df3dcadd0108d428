"""Loops of the logical module.

Such a loop, with a counter and a fixed number of iterations, gives every carried tensor a name: its value at the start
of iteration t, and its value at the end. Loops of the partitioned module are matched with those (`ops.matching`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from hlo_verify.equality.effort import Effort
from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.index.interned import made
from hlo_verify.ops import devices
from hlo_verify.ops.counting import Shape, counter_at, goes_on, iterate
from hlo_verify.ops.peeled import Peeled, peeled
from hlo_verify.ops.running import Closing
from hlo_verify.ops.running_maxima import RunningMaximum, Total
from hlo_verify.ops.values import ARBITRARY, Context, Value, positions
from hlo_verify.program.element_types import is_float
from hlo_verify.program.ir import Op, TensorType, captured, operations
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.renaming import Leaves, Renaming
from hlo_verify.terms.term import Poly, Read, Tensor, tensor

if TYPE_CHECKING:
    from hlo_verify.ops.lines import Piped


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop of the logical module: `state[j]` at the start of iteration `t`, `after[j]` one later,
    `final[j]` at the end.

    If data decide how often it goes round, `final` is what it carries when `test` holds no more."""

    op: Op
    t: Var
    initial: tuple[Value, ...]
    state: tuple[Value, ...]
    after: tuple[Value, ...]
    final: tuple[Value, ...]
    test: Poly | None = None
    """Whether iteration `t` takes place, where data decide that; the size of `t` then means nothing."""
    one_by_one: Callable[[], Peeled] = Peeled
    """What it carries after its first turns and its last ones, where somebody asks."""
    between: tuple[tuple[tuple[Value, ...], tuple[Value, ...]], ...] = ()
    """What some turns leave, and the names of that."""
    first: Callable[[], Sequence[Value]] = tuple
    """What it carries after the first turn, from the initial values, where somebody asks."""
    outside: int = 0
    """How many of the first dimensions of all that count turns of loops around it."""
    everywhere: Loop | None = None
    """The same loop in all turns of the one around it at once, which are one more dimension."""


Place = Callable[[Op, Op, int, TensorType, TensorType], "list[Placement]"]


@dataclass(frozen=True, slots=True)
class Placement:
    """A guess at how a carried tensor is sharded: logical indices of a device's element, and whether it exists."""

    indices: tuple[Index, ...]
    inside: Poly


class Reading(Enum):
    """What a walk makes of loops."""

    NAMED = "what a loop of the logical module leaves is a tensor of its own"
    SUMMED = "what such a loop adds up, or writes window by window, is a sum over its turns"
    WRITTEN_OUT = "likewise, and short loops of both modules are written out"


@dataclass(slots=True)
class LoopBook:
    """The logical module's loops, for the partitioned module's loops to be matched with.

    `place` gives the candidate placements of one carried tensor, most likely first.
    """

    place: Place
    session: Session = field(default_factory=Session)
    reading: Reading = Reading.NAMED
    hands_on: bool = False
    """Whether devices hand something on in a loop of the partitioned module."""
    by_hand: bool = False
    """Whether a person says what each device does, who may compute something anew, or differently, in a loop. A
    compiler's loops follow the logical module's, and no more is asked of them than that."""
    named: dict[tuple[str, Poly], Poly] = field(default_factory=dict)
    """Values of devices that the logical module's loops have names for, each with its kind of numbers: a term of
    integers stands for what they are in their own type."""
    written_out: int = 0
    """Operations that turns of loops were written out as."""
    has_short: bool = False
    """Whether some loop was short enough to be written out."""
    tried: int = 0
    """Terms that were made where loops were gone through in vain."""
    loops: list[Loop] = field(default_factory=list)
    piped: list[Piped] = field(default_factory=list)
    """Components of them that lines of devices make turn by turn."""
    maxima: dict[Tensor, RunningMaximum] = field(default_factory=dict)
    """Running maxima of devices' loops by name."""
    totals: dict[Tensor, Total] = field(default_factory=dict)
    """Running sums in units of these."""
    effort: Effort = field(init=False)
    """What comparisons of what loops carry may take, all together."""
    piping: Effort = field(init=False)
    """What those may take that ask whether a loop is a pipeline: none is left of the other where a pipeline has almost
    as many turns as the logical loop, and is compared with views of it in vain before."""

    def __post_init__(self) -> None:
        steps = self.session.limits.loop_steps
        self.effort, self.piping = (Effort(steps, session=self.session) for _ in range(2))

    def __len__(self) -> int:
        return len(self.loops)

    @contextmanager
    def trying(self, is_in_vain: Callable[[], bool]) -> Iterator[None]:
        """What is made meanwhile was made in vain if so: for a guess at what a loop carries, or a way of reading it."""
        tried, since = self.tried, made()
        yield
        if is_in_vain():
            self.tried = max(self.tried, tried + made() - since)  # loops inside have noted a part of it

    @property
    def may_try(self) -> bool:
        """Whether a loop may be gone through once more."""
        is_left = self.tried <= self.session.limits.vain_loops
        if not is_left:
            self.session.reached("vain_loops")
        return is_left

    def by_name(self, values: list[Value]) -> list[Value]:
        """As `values.Loops.by_name`."""
        if not self.named:
            return values
        return [Value(v.type, self.named.get((kind_of_numbers(v.type), v.term), v.term)) for v in values]

    def forget(self, known: int) -> None:
        """As `values.Loops.forget`."""
        del self.loops[known:]
        left = [each for loop in self.loops for each in (loop, loop.everywhere)]
        self.piped[:] = [each for each in self.piped if any(each.loop is loop for loop in left)]


def kind_of_numbers(type_: TensorType) -> str:
    """The element type; floats of all types are numbers of one kind, and equal integers wrap differently in others."""
    return "float" if is_float(type_.dtype) else type_.dtype


def book_of(context: Context) -> LoopBook:
    """The loops that operations in a context are among."""
    assert isinstance(context.loops, LoopBook)
    return context.loops


def logical_loop(op: Op, args: list[Value], context: Context, shape: Shape) -> list[Value]:
    """What is carried in a manual region depends on the device; and outside of one, of what a region left different on
    each device. Where the initial values and an iteration depend on some digits of its number alone, so does that, by
    induction."""
    place, device = len(book_of(context)), context.device or context.mesh
    if device is None:
        return _shared(place, _named_loop(op, args, context, shape, expr.constant(0), ()), context)
    whole = expr.of_var(device)
    initial = [value.term for value in args]
    varying = set(range(len(args))) if context.device is not None else _varying(initial, device)
    part = devices.projection(initial, device)
    while True:
        results = _named_loop(op, args, context, shape, part, varying)
        loop = book_of(context).loops[place]
        terms = [*initial, *(value.term for value in loop.after)]
        more = _varying(terms[len(args) :], device) - varying
        if loop.test is not None:
            terms.append(loop.test)
            more |= set(range(len(args))) - varying if device in loop.test.free else set()
        if not more and (part is whole or devices.depends_only_on(terms, device, part)):
            return _shared(place, results, context)
        book_of(context).forget(place)
        varying |= more
        wider = devices.projection(terms, device)
        part = whole if wider is part and not more else wider


def _varying(terms: Sequence[Poly], device: Var) -> set[int]:
    return {k for k, term in enumerate(terms) if device in term.free}


def _named_loop(
    op: Op, args: list[Value], context: Context, shape: Shape, device: Index, varying: Collection[int]
) -> list[Value]:
    """The loop's results, with names for what it carries: tensors indexed by the counters around, and by `device` for
    those that vary with it. What depends on whatever a loop around may have carried says so by another index."""
    t = expr.fresh("t", shape.trips)
    now = expr.of_var(t)
    around = {name: context.environment[name] for name in captured(op)}
    given = tuple(map(expr.of_var, _arbitrary([*args, *around.values()])))
    numbers = _numbers(op, args, context, shape, now)
    state, final = [], []
    for k, (type_, value) in enumerate(zip(op.types, args, strict=True)):
        if k in shape.invariant:
            state.append(Value(type_, value.term))
            final.append(Value(type_, value.term))
        elif k in shape.counters:
            state.append(counter_at(shape, k, now, type_))
            final.append(counter_at(shape, k, expr.constant(shape.trips), type_))
        else:
            name = f"loop{len(book_of(context))}"
            outer = (*given, *((device,) if k in varying else ()), *context.iterations)
            carried = tensor("loop", f"{name}.carry{k}", type_.dtype, type_.shape, location=op.location)
            result = tensor("loop", f"{name}.result{k}", type_.dtype, type_.shape, location=op.location)
            carried.doubt = result.doubt = 0 if k in numbers else None
            state.append(Value(type_, algebra.read(carried, (*outer, now, *positions(type_.shape)))))
            final.append(Value(type_, algebra.read(result, (*outer, *positions(type_.shape)))))
    place, closed = len(book_of(context)), _closed(op, args, context, shape, state, t)
    after = iterate(op, state, context, now)
    final = [closed.get(k, value) for k, value in enumerate(final)]
    test = goes_on(op, state, context, now) if shape.unbounded else None

    def there() -> Context:
        return replace(context, observe=None, unsupported={}, environment=dict(around), kept=None)

    def first() -> list[Value]:
        return iterate(op, args, there(), expr.constant(0))

    is_named = book_of(context).reading is Reading.NAMED or shape.unbounded is not None or is_around(op)
    made = [Peeled()] if is_named else []

    def one_by_one() -> Peeled:
        if not made:
            made.append(peeled(op, args, there(), shape.trips, state, t))
        return made[0]

    loop = Loop(op, t, tuple(args), tuple(state), tuple(after), tuple(final), test, one_by_one, first=first)
    if book_of(context).hands_on:
        loop = replace(loop, everywhere=in_all_turns(loop, context.iterations))
    book_of(context).loops.insert(place, loop)
    return final


def _arbitrary(values: Sequence[Value]) -> list[Var]:
    """The variables that stand for whatever loops may have carried, of which values are made."""
    found = {v for value in values for v in value.term.free if v.prefix == ARBITRARY}
    return sorted(found, key=lambda v: v.uid)


def in_all_turns(loop: Loop, around: Sequence[Index]) -> Loop | None:
    """A loop in all turns of the one loop around it, which are the first dimension of all that it carries.

    `carried[b, t, i]` in turn b of the one around is the element `[b, i]` of what is carried in turn t: that is so
    whatever either is made of, as all of it holds for every b.
    """
    if len(around) != 1 or loop.test is not None:
        return None
    variables = [v for e in around for v in e.free]
    if len(variables) != 1 or around[0] is not expr.of_var(variables[0]):
        return None
    (b,) = variables

    def every(values: Sequence[Value]) -> tuple[Value, ...]:
        found = []
        for value in values:
            type_ = replace(value.type, shape=(b.size, *value.shape))
            at = positions(type_.shape)
            found.append(Value(type_, algebra.substitute(value.at(at[1:]), {b: at[0]})))
        return tuple(found)

    initial, state, after, final = map(every, (loop.initial, loop.state, loop.after, loop.final))
    return Loop(loop.op, loop.t, initial, state, after, final, first=lambda: every(loop.first()), outside=1)


def _numbers(op: Op, args: list[Value], context: Context, shape: Shape, now: Index) -> Collection[int]:
    """The components that are numbers in every turn, by induction: they start from numbers, and an iteration makes
    numbers of numbers. What is not known of one is not taken for one by the others. 0 times a number is 0: in the turns
    in which devices work on nothing, and where a quotient's derivative asks whether a root is one."""
    book = book_of(context)
    is_asked = book.by_hand or (book.hands_on and book.reading is not Reading.NAMED)
    if not is_asked or shape.unbounded is not None or is_around(op):
        return ()
    numbers = [
        k
        for k, value in enumerate(args)
        if k not in shape.invariant and k not in shape.counters and not value.term.doubt
    ]
    while numbers:
        state = []
        for k, (type_, value) in enumerate(zip(op.types, args, strict=True)):
            if k in shape.invariant:
                state.append(value)
            elif k in shape.counters:
                state.append(counter_at(shape, k, now, type_))
            else:
                unknown = tensor("opaque", f"carried {k}", type_.dtype, type_.shape, location=op.location)
                unknown.doubt = 0 if k in numbers else unknown.doubt
                state.append(Value(type_, algebra.read(unknown, positions(type_.shape))))
        after = iterate(op, state, replace(context, observe=None, unsupported={}), now)
        doubted = {k for k in numbers if after[k].term.doubt}
        if not doubted:
            break
        numbers = [k for k in numbers if k not in doubted]
    return numbers


def is_around(op: Op) -> bool:
    """Whether a loop has a loop inside of it."""
    return any(inner.name == "while" for inner in operations(op.regions[1]))


def _closed(op: Op, args: list[Value], context: Context, shape: Shape, state: list[Value], t: Var) -> dict[int, Value]:
    """The last values of components that have a closed form, if that is how loops are read; `state` takes the running
    sums that such forms are made of.

    Those that depend on what they were themselves have none. They keep their names, and the others may depend on them.
    What an inner loop makes of whatever this one carried has names that say so; these loops are of no use later.
    """
    book, turn, device = book_of(context), expr.of_var(t), context.device or context.mesh
    if book.reading is Reading.NAMED or shape.unbounded:
        return {}
    place = len(book)
    pure = replace(context, observe=None, unsupported={})
    named = {k: value for k, value in enumerate(state) if k in shape.invariant or k in shape.counters}

    def iterated(values: list[Value]) -> list[Value]:
        return iterate(op, values, pure, turn)

    ends = Closing(t, device, args, named, iterated, alone=True).closed()
    known = {k: value for k, value in enumerate(state) if k in named or k not in ends}
    closing = Closing(t, device, args, known, iterated)
    ends = closing.closed()
    book.loops[place:] = [loop for loop in book.loops[place:] if not _arbitrary((*loop.initial, *loop.after))]
    if pure.unsupported:
        return {}
    for k, value in closing.now.items():
        state[k] = value
    return ends


def _shared(place: int, results: list[Value], context: Context) -> list[Value]:
    """The results of the loop noted at that place, or of an earlier one that computes the same."""
    loop = book_of(context).loops[place]
    for earlier in book_of(context).loops[:place]:
        if _is_same(loop, earlier, context):
            del book_of(context).loops[place]
            return list(earlier.final)
    return results


def _is_same(loop: Loop, earlier: Loop, context: Context) -> bool:
    """Whether a loop computes what an earlier one does, by induction: equal values become equal ones in each iteration.

    Programs call one function several times, and XLA computes it once.
    """
    if loop.t.size != earlier.t.size or (loop.test is None) != (earlier.test is None):
        return False
    if [v.term for v in loop.initial] != [v.term for v in earlier.initial]:
        return False
    mapping: dict[Tensor, Tensor] = {}
    for mine, other in zip(loop.state, earlier.state, strict=True):
        own, its = mine.term.atom, other.term.atom
        if isinstance(own, Read) and own.tensor.kind == "loop" and isinstance(its, Read) and its.tensor.kind == "loop":
            mapping[own.tensor] = its.tensor
    renaming = Renaming(mapping, Leaves())

    def there(p: Poly) -> Poly:
        return renaming.poly(algebra.substitute(p, {loop.t: expr.of_var(earlier.t)}))

    if loop.test is not None and there(loop.test) is not earlier.test:
        return False
    pairs = list(zip(loop.state, earlier.state, strict=True))
    if not all(mine.type == other.type and there(mine.term) is other.term for mine, other in pairs):
        return False
    if all(there(mine.term) is other.term for mine, other in zip(loop.after, earlier.after, strict=True)):
        return True
    return _steps(loop.op) == _steps(earlier.op) and _leaves_the_same(loop, earlier, context)


def _steps(op: Op) -> list[tuple[str, tuple[TensorType, ...]]]:
    """What a turn consists of."""
    return [(inner.name, tuple(inner.types)) for inner in operations(op.regions[1])]


def _leaves_the_same(loop: Loop, earlier: Loop, context: Context) -> bool:
    """Whether a turn of a loop, of what an earlier one carries, leaves what that leaves. Definitions of the one,
    renamed, may differ from those of the other in the order of what they depend on, which names have a part in."""
    if is_around(loop.op):
        return False
    around = {name: context.environment[name] for name in captured(loop.op)}
    pure = replace(context, observe=None, unsupported={}, environment=around, kept=None)
    after = iterate(loop.op, list(earlier.state), pure, expr.of_var(earlier.t))
    return not pure.unsupported and [v.term for v in after] == [v.term for v in earlier.after]
