"""Why a result is not proved: the operation at which the meaning is lost, and what it should have computed.

A value of the partitioned module keeps its meaning if it is a shard of a logical value (`shards`). Going back
from a result through values that are not, the operations whose operands are all shards, and whose own value
is not, are where something goes wrong. Three things are no fault by themselves and are looked past:

    a partial sum            what is wrong is the collective that follows, or that none does
    a value out of place     the offset that put it there, where that is no start of a shard
    a result out of place    the operation that brought the wrong index in

An operation that the partitioner put in without a source line has that of the value it moves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.ir import Location, Op
from hlo_verify.ir import Value as Name
from hlo_verify.ops.values import Value
from hlo_verify.passes.differences import Difference, difference
from hlo_verify.passes.notation import Notation, number, variable
from hlo_verify.passes.shards import Match, Shards, indices
from hlo_verify.passes.stages import Stages, Step
from hlo_verify.report import Finding
from hlo_verify.terms import algebra
from hlo_verify.terms.term import Poly

REDUCTIONS = frozenset({"all_reduce", "reduce_scatter"})
"""Collectives that complete a partial value."""

LINE = 200
"""The most characters of an operation's line that a report shows."""

NEAREST = 24
"""The most logical terms that a lost one is compared with."""


def diagnose(stages: Stages, logical: Name, partitioned: Name, found: Poly, expected: Poly) -> Finding:
    """The finding for one result, a value of the partitioned module, that is not proved."""
    if stages.diagnosis is None:
        stages.diagnosis = Diagnosis(stages)
    known: Diagnosis = stages.diagnosis
    return known.finding(partitioned, found, expected)


@dataclass(frozen=True, slots=True)
class _Fault:
    """A value at fault; `partial` is what it is a part of, `offset` the index that is no start of a shard."""

    name: Name
    location: Location
    partial: Match | None = None
    offset: Index | None = None


@dataclass(slots=True)
class Diagnosis:
    """What is known of both modules' values, for the findings about all results."""

    stages: Stages
    shards: Shards = field(init=False)
    notation: Notation = field(init=False)
    _made: dict[Name, tuple[Step, int]] = field(default_factory=dict)
    _order: dict[Name, int] = field(default_factory=dict)
    _passed: dict[Name, Name] = field(default_factory=dict)
    _lost: dict[Name, bool] = field(default_factory=dict)
    _findings: dict[Name, Finding] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.shards = Shards(self.stages)
        self.notation = Notation(self.stages.logical)
        for n, step in enumerate(self.stages.partitioned):
            op = step.op
            if op.results and op.results[0] in self._made:
                continue  # a loop's body is walked again after a guess about what it carries was dropped
            for k, result in enumerate(op.results):
                self._made[result] = step, k
                self._order[result] = n
            for region, passed in _entries(op):
                self._passed.update(zip(region, passed, strict=False))

    # The graph of values

    def _value(self, name: Name) -> Value:
        step, k = self._made[name]
        return step.values[k]

    def _op(self, name: Name) -> Op:
        return self._made[name][0].op

    def _sources(self, name: Name) -> list[Name]:
        """The computed values that a value follows from; inside a loop, those that it starts from."""
        step, k = self._made[name]
        op = step.op
        found: Iterable[Name] = op.operands
        if op.name == "while":
            found = (*op.operands, *op.regions[1].results)
        elif op.name in ("case", "if"):
            found = (op.operands[0], *(region.results[k] for region in op.regions))
        elif op.name == "sdy.manual_computation":
            found = (op.regions[0].results[k],)
        return [source for source in dict.fromkeys(map(self._through, found)) if source in self._made]

    def _through(self, name: Name) -> Name:
        while name in self._passed:
            name = self._passed[name]
        return name

    def _is_lost(self, name: Name) -> bool:
        if name not in self._lost:
            self._lost[name] = self._compute_lost(name)
        return self._lost[name]

    def _compute_lost(self, name: Name) -> bool:
        """Integers and masks are how offsets are computed: they need no counterpart if they have none."""
        step, k = self._made[name]
        value = step.values[k]
        term, dtype = value.term, value.type.dtype
        if term.constant is not None or dtype == "token" or term.uid in self.stages.cuts or self.shards.is_shard(value):
            return False
        if dtype not in algebra.INTEGER_RANGES or self.stages.lost(term) or self.shards.odd_offset(term) is not None:
            return True
        return bool(step.op.location.frames) and any(
            len(other.values) > k and other.values[k].type.rank == value.type.rank
            for other in self.stages.counterparts(step.op)
        )

    def _lost_before(self, name: Name) -> list[Name]:
        """The lost values that a value follows from through lost values alone, itself included, in order."""
        found, todo, seen = [], [name], {name}
        while todo:
            at = todo.pop()
            if at not in self._made or not self._is_lost(at):
                continue
            found.append(at)
            new = [source for source in self._sources(at) if source not in seen]
            seen.update(new)
            todo += new
        return sorted(found, key=self._order.__getitem__)

    # Blame

    def finding(self, partitioned: Name, found: Poly, expected: Poly) -> Finding:
        """The finding for one result, a value of the partitioned module, that is not proved."""
        start = self._through(partitioned)
        lost = self._lost_before(start)
        if lost:
            fault = self._blame(lost)
            if fault.name not in self._findings:
                self._findings[fault.name] = self._explain(fault, found, expected)
            return self._findings[fault.name]
        return self._misplaced(start, found, expected)

    def _blame(self, lost: list[Name]) -> _Fault:
        inside = set(lost)
        first = [name for name in lost if inside.isdisjoint(self._sources(name))] or lost[:1]
        name = min(first, key=self._rank)
        offset = self.shards.odd_offset(self._value(name).term)
        if offset is not None:
            return _Fault(name, self._line(name), offset=offset)
        partial = self.shards.open_sum(self._value(name))
        if partial is None:
            return _Fault(name, self._line(name))
        return self._unfinished(name, partial, lost)

    def _rank(self, name: Name) -> tuple[int, int]:
        """Wrong offsets first, then what is computed nowhere else, then what is only somewhere else."""
        value = self._value(name)
        if self.shards.odd_offset(value.term) is not None:
            return 0, self._order[name]
        return 1 if self.shards.match(value) or not self.stages.known(value) else 2, self._order[name]

    def _unfinished(self, name: Name, partial: Match, lost: list[Name]) -> _Fault:
        """A partial sum: the collective that should have completed it, or the sum where there is none."""
        at, still = name, partial
        users = [user for user in lost if at in self._sources(user)]
        while users:
            user = users[0]
            if self._op(user).name in REDUCTIONS:
                return _Fault(user, self._line(user), self.shards.open_sum(self._value(user)))
            more = self.shards.open_sum(self._value(user))
            if more is None:
                return _Fault(name, self._call(name, user), partial)
            at, still = user, more
            users = [user for user in lost if at in self._sources(user)]
        return _Fault(at, self._line(at), still)

    def _line(self, name: Name) -> Location:
        """The source line of a value: its own, else that of the value it is made from, else of what is made from it."""
        seen = {name}
        todo = [name]
        for at in todo:
            if self._op(at).location.frames:
                return self._op(at).location
            new = [source for source in self._sources(at) if source not in seen]
            seen.update(new)
            todo += new
        return self._op(name).location

    def _call(self, name: Name, user: Name) -> Location:
        """Where a value that is never completed is computed.

        In a program that its author wrote for each device, the collective belongs into the function that uses the
        value: the line is the one there. XLA's collectives have the line of the sum that they complete.
        """
        location = self._line(name)
        if not self._is_written_by_hand():
            return location
        frames, others = location.frames, self._line(user).frames
        common = 0
        while common < min(len(frames), len(others)) - 1 and frames[-1 - common] == others[-1 - common]:
            common += 1
        return Location(location.name, frames[len(frames) - 1 - common :]) if frames else location

    def _is_written_by_hand(self) -> bool:
        return any(step.op.name == "sdy.manual_computation" for step in self.stages.partitioned)

    def _misplaced(self, start: Name, found: Poly, expected: Poly) -> Finding:
        """A shard of the right value, but not the one that was asked for: where the wrong index comes in."""
        said = difference(found, expected, self.notation)
        if start not in self._made:
            return Finding("the result is an argument", "", self._show(found), self._show(expected), said.text)
        wrong = _device_parts(found) - _device_parts(expected)
        at = start
        while wrong:
            before = [s for s in self._sources(at) if _device_parts(self._value(s).term) & wrong]
            if not before:
                break
            at = before[0]
        return Finding(statement(self._op(at)), str(self._line(at)), self._show(found), self._show(expected), said.text)

    # Words

    def _explain(self, fault: _Fault, found: Poly, expected: Poly) -> Finding:
        value = self._value(fault.name)
        op = self._op(fault.name)
        wanted, said = self._nearest(fault, value)
        if wanted is None:
            return Finding(statement(op), str(fault.location), self._show(value.term), "", said)
        return Finding(statement(op), str(fault.location), self._show(value.term), self._show(wanted), said)

    def _nearest(self, fault: _Fault, value: Value) -> tuple[Poly | None, str]:
        """The term that was expected, and how the nearest logical value differs from what was found."""
        if fault.offset is not None:
            start = self.shards.start_like(fault.offset)
            shown = self.notation.index(fault.offset)
            if start is not None:
                return None, f"offset {shown} where {self.notation.index(start)} is expected"
            return None, f"no shard starts at offset {shown}"
        if fault.partial is not None:
            return fault.partial.term, self._partial(fault.partial)
        match = self.shards.match(value)
        if match is not None and match.factor != 1:
            ratio = difference(value.term, match.term, self.notation)
            return match.term, f"{self._whole(match.step)}{ratio.text}"
        best: tuple[int, Poly, Step, Difference] | None = None
        for step, expected in islice(self._candidates(fault.name, value), NEAREST):
            said = difference(value.term, expected, self.notation)
            if best is None or said.size < best[0]:
                best = said.size, expected, step, said
        if best is None:
            return None, "no logical tensor is like it"
        _, expected, step, said = best
        return expected, f"{self._whole(step)}{said.text or 'another term is expected'}"

    def _candidates(self, name: Name, value: Value) -> Iterable[tuple[Step, Poly]]:
        """Shards of what the logical operation of the same kind and origin computes, then of terms of the same form."""
        op = self._op(name)
        for step in self.stages.counterparts(op):
            for whole in step.values:
                for term in self.shards.shards(whole, value.shape):
                    yield step, term
        for step, whole in self.shards.alike(value):
            for term in self.shards.shards(whole, value.shape):
                yield step, term

    def _partial(self, partial: Match) -> str:
        digits = [self.notation.index(expr.of_atom(digit)) for digit in partial.summed]
        count = 1
        for digit in partial.summed:
            count *= digit.radix
        over = " and ".join(digits)
        kind = {"max": "maximum", "min": "minimum"}.get(partial.kind, partial.kind)
        text = f"{self._whole(partial.step)}the {kind} over {over} ({count} devices) is missing"
        if partial.factor == 1:
            return text
        return f"{text}, and the factor is {number(partial.factor)} where 1 is expected"

    def _whole(self, step: Step | None) -> str:
        return f"{step.op.name} ({step.op.location}): " if step is not None else ""

    def _show(self, p: Poly) -> str:
        return self.notation.term(p)


def _entries(op: Op) -> Iterable[tuple[tuple[Name, ...], tuple[Name, ...]]]:
    """The arguments of an operation's regions, and the operands that they are at first."""
    if op.name in ("while", "sdy.manual_computation"):
        yield from ((region.arguments, op.operands) for region in op.regions)
    elif op.name in ("case", "if"):
        yield from ((region.arguments, op.operands[1:]) for region in op.regions)


def _device_parts(term: Poly) -> set[tuple[expr.Atom, int]]:
    """The multiples of device digits that occur in a term's index expressions."""
    return {(atom, abs(c)) for e in indices(term) for atom, c in e.items if any(variable(v) == "d" for v in atom.free)}


def statement(op: Op) -> str:
    """The operation's StableHLO line."""
    if op.source is None:
        return op.name
    text = str(op.source).strip().split("\n", 1)[0]
    return text if len(text) <= LINE else text[: LINE - 1] + "…"
