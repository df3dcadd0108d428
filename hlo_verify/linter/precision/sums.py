"""Sums in few digits. What a loop carries, and the arguments of the module, are followed through casts and additions: a
running sum is what a loop carries with something added to it, an updated weight what an argument is with something of
the gradients added to it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

from hlo_verify.diagnostics import Precision
from hlo_verify.hlo.groups import kind
from hlo_verify.hlo.meetings import Meetings
from hlo_verify.hlo.module import Instruction
from hlo_verify.hlo.shapes import Array
from hlo_verify.linter.dataflow import turns
from hlo_verify.linter.finding import Finding, at
from hlo_verify.linter.placement.contractions import numbers
from hlo_verify.linter.precision.digits import DIGITS, FULL, digits_of, fewest, stands_still
from hlo_verify.linter.reducers import reducer_of

BACKWARD = "transpose("
"""In names of the source program: what `jax.grad` made."""
DIFFERENTIATED = ("transpose(", "jvp(")

KEEPS = frozenset("convert copy bitcast reshape transpose reduce-precision".split())
"""Operations that give the same elements, maybe in fewer digits."""
MOST_TRACES = 4
MOST_NAMED = 6
"""Casts and additions that a finding names."""

_ALGORITHM = re.compile(r"\balgorithm=dot_(\w+?)_(\w+?)_(\w+)")
_WINDOW = re.compile(r"\bsize=([\dx]+)")


@dataclass(frozen=True, slots=True)
class Trace:
    """An array that consists of another one and of what was added to it. `root` is that other one: the name of the loop
    that carries it (nothing for the module's arguments) and its number. `digits` are the fewest on the way, `casts` and
    `adds` name the way, and `terms` is how often one of them is done, as loops repeat it: what is added in several
    places, as layers add to a residual, are no equal terms. `of_gradient`: something of a gradient was added."""

    root: tuple[str, int]
    digits: int
    casts: tuple[str, ...] = ()
    adds: tuple[Instruction, ...] = ()
    terms: int = 0
    of_gradient: bool = False


@dataclass(frozen=True, slots=True)
class Addend:
    """What is known of an array. `is_sparse`: it is zero but where two indices are equal, as a product with a one-hot
    matrix is; `is_mask`: it is true there alone."""

    traces: tuple[Trace, ...] = ()
    is_gradient: bool = False
    is_sparse: bool = False
    is_mask: bool = False


@dataclass
class Sums:
    """The facts about sums, and what is found on the way, each with a number of terms."""

    meetings: Meetings
    settled: bool = True
    found: list[tuple[int, Finding]] = field(default_factory=list)
    arguments: list[tuple[Instruction, Array]] = field(default_factory=list)

    def unknown(self) -> Addend:
        return Addend()

    def argument(self, number: int, parameter: Instruction, shape: Array) -> Addend:
        self.arguments.append((parameter, shape))
        if shape.dtype not in DIGITS:
            return Addend()
        return Addend((Trace(("", number), digits_of(shape)),))

    def carried(self, loop: Instruction, part: int, start: Addend) -> Addend:
        return replace(start, traces=(Trace((loop.name, part), DIGITS["f64"]),))

    def either(self, where: Instruction, part: int, one: Addend, other: Addend) -> Addend:
        if where.opcode == "while":  # the trace of what a turn begins with is its own
            return replace(
                one, is_gradient=one.is_gradient or other.is_gradient, is_sparse=one.is_sparse and other.is_sparse
            )
        return _either(one, other)

    def left(self, loop: Instruction, part: int, start: Addend, after: Addend) -> Addend:
        mine = [one for one in after.traces if one.root == (loop.name, part)]
        count = turns(loop)
        if not mine:
            return replace(after, traces=())
        trace = replace(mine[0], terms=mine[0].terms * (count or 1))
        if self.settled and count is not None and stands_still(trace.terms, trace.digits):
            self._running(loop, trace, count)
        return replace(after, traces=tuple(_onward(one, trace) for one in start.traces))

    def computed(self, i: Instruction, given: Sequence[Addend], shape: Array, part: int) -> Addend:
        if self.settled and part == 0:
            self._look(i, given)
        is_gradient = any(one.is_gradient for one in given) or BACKWARD in i.op_name
        if i.opcode in KEEPS and len(given) == 1:
            return replace(given[0], traces=_kept(i, given[0].traces, shape), is_gradient=is_gradient)
        if i.opcode in ("add", "subtract") and len(given) == 2:
            one, other = given
            traces = _added(i, one, other, shape)
            if i.opcode == "add":
                traces += _added(i, other, one, shape)
            return Addend(traces[:MOST_TRACES], is_gradient, all(one.is_sparse for one in given))
        if i.opcode == "select" and len(given) == 3:
            chosen = _either(given[1], given[2])
            return replace(chosen, is_gradient=is_gradient, is_sparse=given[0].is_mask or chosen.is_sparse)
        return Addend((), is_gradient, _is_sparse(i, given), _is_mask(i, given))

    def _look(self, i: Instruction, given: Sequence[Addend]) -> None:
        """Whether an operation adds up too much in too few digits."""
        digits, terms = fewest(i), self._terms(i)
        if i.opcode == "dot":
            digits = _accumulated(i)
        if terms and stands_still(terms, digits) and not (given and given[0].is_sparse):
            message = (
                f"{i} adds up {terms:,} terms in {_dtype(i, digits)}, of {digits} binary digits: "
                f"from {1 << digits} on, a sum of equal terms stands still"
            )
            casts = (one.name for one in i.sources if one.opcode == "convert")
            self.found.append((terms, at(i, Precision.LOW_PRECISION_SUM, message, *casts)))

    def _terms(self, i: Instruction) -> int:
        """How many numbers an operation adds up for each that it gives; 0 if it is no sum."""
        if i.opcode == "dot":
            shape = next(iter(i.given_shapes), None)
            over = numbers(i, "lhs_contracting_dims")
            return prod(shape.sizes[k] for k in over) if isinstance(shape, Array) else 0
        if i.opcode not in ("reduce", "reduce-window") and kind(i) not in ("all-reduce", "reduce-scatter"):
            return 0
        if reducer_of(i) != "add":
            return 0
        if i.opcode == "reduce-window":
            window = _WINDOW.search(i.attributes.get("window", ""))
            return prod(map(int, window[1].split("x"))) if window else 0
        if i.opcode == "reduce":
            shape = next(iter(i.given_shapes), None)
            return prod(shape.sizes[k] for k in numbers(i, "dimensions")) if isinstance(shape, Array) else 0
        groups = self.meetings.groups(i)
        return max(map(len, groups), default=0) if groups else 0

    def _running(self, loop: Instruction, trace: Trace, count: int) -> None:
        last = trace.adds[-1]
        digits = fewest(last)
        way = _way(trace)
        if digits <= trace.digits:
            message = (
                f"{last} adds to what {loop} carries, in each of {count:,} turns, in {_dtype(last, digits)}: from "
                f"{1 << digits} equal terms on, the sum stands still{way}"
            )
            self.found.append((trace.terms, at(last, Precision.LOW_PRECISION_SUM, message, loop)))
        else:
            message = (
                f"{last} adds to what {loop} carries, in each of {count:,} turns, and between two turns the sum is "
                f"rounded to {trace.digits} binary digits: it stands still all the same{way}"
            )
            self.found.append((trace.terms, at(last, Precision.ROUNDED_ACCUMULATOR, message, loop)))

    def results(self, results: Sequence[Addend], shapes: Sequence[Array]) -> None:
        """Weights that are updated in few digits: arguments to which something of the gradients is added."""
        for number, (value, shape) in enumerate(zip(results, shapes, strict=True)):
            for trace in value.traces:
                _, argument = self.arguments[trace.root[1]]
                is_update = trace.terms and trace.of_gradient and argument.sizes == shape.sizes
                if is_update and trace.digits < FULL and not _is_backward(trace.adds[-1]):
                    self._updated(number, trace, argument, shape)
                    break

    def _updated(self, number: int, trace: Trace, argument: Array, shape: Array) -> None:
        parameter, _ = self.arguments[trace.root[1]]
        last = trace.adds[-1]
        called = parameter.op_name or f"argument {trace.root[1]}"
        if digits_of(argument) >= FULL:
            message = (
                f"{last} adds an update to {called}, an {argument.dtype} that was rounded to {trace.digits} binary "
                f"digits on the way: what earlier steps added below that is lost{_way(trace)}"
            )
        else:
            others = [one for one, other in self.arguments if other.sizes == shape.sizes and digits_of(other) >= FULL]
            has = f"; arguments in f32 of this shape ({others[0].op_name or others[0]}) are there" if others else ""
            message = (
                f"{last} adds an update to {called}, which is kept in {argument.dtype}: what is less than 1/"
                f"{1 << trace.digits} of a weight is lost{_way(trace)}{has}"
            )
        found = at(last, Precision.LOW_PRECISION_UPDATE, f"{message} (result {number})", parameter)
        self.found.append((shape.count, found))


def _is_backward(add: Instruction) -> bool:
    return any(word in add.op_name for word in DIFFERENTIATED)


def _either(one: Addend, other: Addend) -> Addend:
    both = tuple(dict.fromkeys((*one.traces, *other.traces)))[:MOST_TRACES]
    return Addend(both, one.is_gradient or other.is_gradient, one.is_sparse and other.is_sparse)


def _kept(i: Instruction, traces: Sequence[Trace], shape: Array) -> tuple[Trace, ...]:
    if i.opcode != "convert":
        return tuple(traces)
    digits = digits_of(shape)
    casts = (f"{i} to {shape.dtype}",)
    return tuple(
        replace(one, digits=min(one.digits, digits), casts=(*one.casts, *casts)[-MOST_NAMED:]) for one in traces
    )


def _added(i: Instruction, base: Addend, addend: Addend, shape: Array) -> tuple[Trace, ...]:
    """The traces of the first of two, to which the second is added."""
    return tuple(
        replace(
            one,
            digits=min(one.digits, digits_of(shape)),
            adds=(*one.adds, i)[-MOST_NAMED:],
            terms=max(one.terms, 1),
            of_gradient=one.of_gradient or addend.is_gradient,
        )
        for one in base.traces
    )


def _onward(start: Trace, trace: Trace) -> Trace:
    """A trace into a loop, and the trace through it."""
    return Trace(
        start.root,
        min(start.digits, trace.digits),
        (*start.casts, *trace.casts)[-MOST_NAMED:],
        (*start.adds, *trace.adds)[-MOST_NAMED:],
        max(start.terms, trace.terms),
        start.of_gradient or trace.of_gradient,
    )


def _is_mask(i: Instruction, given: Sequence[Addend]) -> bool:
    """Whether an array is true only where two numbers are equal, one of them an index."""
    if i.opcode == "compare":
        sources = list(i.sources)
        return i.attributes.get("direction") == "EQ" and any(_is_index(one) for one in sources)
    return i.opcode in ("broadcast", "and", *KEEPS) and any(one.is_mask for one in given)


def _is_index(one: Instruction) -> bool:
    while one.opcode in ("broadcast", *KEEPS):
        source = next(one.sources, None)
        if source is None:
            return False
        one = source
    return one.opcode == "iota"


def _is_sparse(i: Instruction, given: Sequence[Addend]) -> bool:
    if i.opcode in ("multiply", "and"):
        return any(one.is_sparse or one.is_mask for one in given)
    return i.opcode in ("broadcast", "negate", "slice", *KEEPS) and any(one.is_sparse or one.is_mask for one in given)


def _accumulated(i: Instruction) -> int:
    """The digits in which a contraction adds up: in f32 at least, where the text does not ask for less."""
    found = _ALGORITHM.search(i.rest)
    return DIGITS.get(found[3], DIGITS["f64"]) if found else DIGITS["f64"]


def _dtype(i: Instruction, digits: int) -> str:
    shape = i.shape
    if isinstance(shape, Array) and digits_of(shape) == digits:
        return shape.dtype
    return next(dtype for dtype, has in DIGITS.items() if has == digits)


def _way(trace: Trace) -> str:
    casts = f"; casts: {', '.join(trace.casts)}" if trace.casts else ""
    return casts
