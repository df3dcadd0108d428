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

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from math import prod

from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.ir import Location, Op
from hlo_verify.ir import Value as Name
from hlo_verify.ops.values import Value
from hlo_verify.passes.differences import Difference, difference
from hlo_verify.passes.flow import Flow
from hlo_verify.passes.notation import Notation, number, variable
from hlo_verify.passes.shards import Match, Shards, indices, reads
from hlo_verify.passes.stages import Stages, Step
from hlo_verify.report import Finding
from hlo_verify.terms import algebra
from hlo_verify.terms.term import Poly

REDUCTIONS = frozenset({"all_reduce", "reduce_scatter"})
"""Collectives that complete a partial value."""

MOVES = frozenset({"reshape", "broadcast_in_dim", "transpose", "convert"})
"""Operations that the partitioner puts in between."""

LINE = 200
"""The most characters of an operation's line that a report shows."""

FAR = 200
"""The most logical values between two that are looked at."""

NEAREST = 24
"""The most logical terms that a lost one is compared with."""


def diagnose(stages: Stages, logical: Name, partitioned: Name, found: Poly, expected: Poly) -> Finding:
    """The finding for one result, a value of the partitioned module, that is not proved."""
    if stages.diagnosis is None:
        stages.diagnosis = Diagnosis(stages)
    known: Diagnosis = stages.diagnosis
    return known.finding(logical, partitioned, found, expected)


@dataclass(frozen=True, slots=True)
class _Fault:
    """A value at fault: `partial` is what it is a part of, `offset` the index that is no start of a shard, `missing`
    the logical operation that was left out before it."""

    name: Name
    location: Location
    partial: Match | None = None
    elsewhere: bool = False
    """Whether what is partial was summed, but over other devices."""
    offset: Index | None = None
    missing: Step | None = None


@dataclass(slots=True)
class Diagnosis:
    """What is known of both modules' values, for the findings about all results."""

    stages: Stages
    shards: Shards = field(init=False)
    notation: Notation = field(init=False)
    flow: Flow = field(init=False)
    logical: Flow = field(init=False)
    _lost: dict[Name, bool] = field(default_factory=dict)
    _faults: dict[Name, _Fault] = field(default_factory=dict)
    _findings: dict[Name, Finding] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.shards = Shards(self.stages)
        self.notation = Notation(self.stages.logical)
        self.flow = Flow(self.stages.partitioned)
        self.logical = Flow(self.stages.logical)

    def _is_lost(self, name: Name) -> bool:
        if name not in self._lost:
            self._lost[name] = self._compute_lost(name)
        return self._lost[name]

    def _compute_lost(self, name: Name) -> bool:
        """A piece of a logical value is not lost yet; nor are integers and masks with no counterpart, which serve
        to compute offsets."""
        value, op = self.flow.value(name), self.flow.op(name)
        term, dtype = value.term, value.type.dtype
        if term.constant is not None or dtype == "token" or term.uid in self.stages.cuts or self.shards.is_shard(value):
            return False
        if self.stages.lost(term) or self.shards.odd_offset(term) is not None:
            return True
        if dtype not in algebra.INTEGER_RANGES:
            return not self.shards.is_elsewhere(value)
        k = self.flow.result(name)
        return bool(op.location.frames) and any(
            len(other.values) > k and other.values[k].type.rank == value.type.rank
            for other in self.stages.counterparts(op)
        )

    def _lost_before(self, name: Name) -> list[Name]:
        """The lost values that a value follows from through lost values alone, itself included, in order."""
        if name not in self.flow:
            return []
        return sorted(filter(self._is_lost, self.flow.back(name, self._is_lost)), key=self.flow.order)

    # Blame

    def finding(self, logical: Name, partitioned: Name, found: Poly, expected: Poly) -> Finding:
        """The finding for one result, a value of the partitioned module, that is not proved."""
        start = self.flow.origin(partitioned)
        lost = self._lost_before(start)
        if lost:
            fault = self._blame(lost)
            if fault.name not in self._findings:
                self._findings[fault.name] = self._explain(fault, found, expected)
            return self._findings[fault.name]
        return self._misplaced(start, logical, found, expected)

    def _blame(self, lost: list[Name]) -> _Fault:
        inside = set(lost)
        first = [name for name in lost if inside.isdisjoint(self.flow.sources(name))] or lost[:1]
        name = min(first, key=self._rank)
        if name not in self._faults:
            self._faults[name] = self._fault(name, lost)
        return self._faults[name]

    def _fault(self, name: Name, lost: list[Name]) -> _Fault:
        offset = self.shards.odd_offset(self.flow.value(name).term)
        if offset is not None:
            return _Fault(name, self.flow.line(name), offset=offset)
        partial = self.shards.open_sum(self.flow.value(name))
        if partial is not None:
            return self._unfinished(name, partial, lost)
        left_out = self._left_out(name)
        missing = left_out[0] if left_out is not None else None
        if left_out is not None:
            instead = self._computed(*left_out)
            if instead is not None:
                before = [at for source in self.flow.sources(instead) for at in self._lost_before(source)]
                return self._blame(before) if before else _Fault(instead, self.flow.line(instead))
        if missing is not None and missing.op.location.frames and not self._is_written_by_hand():
            return _Fault(name, missing.op.location, missing=missing)
        location = self.flow.line(name)
        while next(self._candidates(name, self.flow.value(name)), None) is None:
            users = [user for user in lost if name in self.flow.sources(user)]
            if not users or self.flow.op(users[0]).location.frames not in ((), location.frames):
                break
            name = users[0]  # a piece of what the logical operation of that line computes
        return _Fault(name, location, missing=missing)

    def _computed(self, step: Step, name: Name) -> Name | None:
        """The value of the operation that seems left out before a value, where it is there after all."""
        while self.flow.op(name).name in MOVES and self.flow.sources(name):
            name = self.flow.sources(name)[0]
        op = self.flow.op(name)
        return name if (op.name, op.location) == (step.op.name, step.op.location) else None

    def _left_out(self, name: Name) -> tuple[Step, Name] | None:
        """The logical operation between what a lost value is made from and what its counterpart is made from, and which
        operand should have been its."""
        op = self.flow.op(name)
        value = self.flow.value(name)
        near = [
            (difference(value.term, term, self.notation).size, n, other)
            for n, (other, term) in enumerate(islice(self._counterparts(op, value), NEAREST))
            if other is not None and other.op.name == op.name
        ]
        if not near:
            return None
        other = min(near, key=lambda item: item[:2])[2]
        theirs = [name for name in other.op.operands if name in self.logical]
        used = {self.logical.value(name).term for name in theirs}
        for n, mine in enumerate(map(self.flow.origin, op.operands)):
            if mine not in self.flow or n >= len(other.op.operands) or other.op.operands[n] not in self.logical:
                continue
            match = self._kept(mine)
            if match is not None and match.whole.term not in used:
                found = self._between(match, other.op.operands[n])
                if found is not None:
                    return found, mine
        return None

    def _kept(self, name: Name) -> Match | None:
        """The logical value that a value is a shard of; where it is a piece of one, the one that it is made from."""

        def is_piece(at: Name) -> bool:
            return not self.shards.is_shard(self.flow.value(at)) and not self._is_lost(at)

        for at in islice(self.flow.back(name, is_piece), FAR):
            match = self.shards.match(self.flow.value(at))
            if match is not None and match.factor == 1 and match.term.constant is None:
                return match
        return None

    def _between(self, match: Match, theirs: Name) -> Step | None:
        """The first logical operation on the way from the logical value that was matched to the one called `theirs`."""
        flow, term = self.logical, match.whole.term

        def differs(at: Name) -> bool:
            return flow.value(at).term is not term

        for at in islice(flow.back(theirs, differs), FAR):
            if not differs(at):
                continue
            if any(not differs(source) for source in flow.sources(at)):
                return flow.step(at)
            from_argument = match.step is None and any(operand not in flow for operand in flow.op(at).operands)
            if from_argument and reads(term) & reads(flow.value(at).term):
                return flow.step(at)
        return None

    def _rank(self, name: Name) -> tuple[int, int]:
        """Wrong offsets first, then what is computed nowhere else, then what is only somewhere else."""
        value = self.flow.value(name)
        if self.shards.odd_offset(value.term) is not None:
            return 0, self.flow.order(name)
        return 1 if self.shards.match(value) or not self.stages.known(value) else 2, self.flow.order(name)

    def _unfinished(self, name: Name, partial: Match, lost: list[Name]) -> _Fault:
        """A partial sum: the collective that should have completed it, or the sum where there is none."""
        at, still = name, partial
        users = [user for user in lost if at in self.flow.sources(user)]
        while users:
            user = users[0]
            if self.flow.op(user).name in REDUCTIONS:
                still_open = self.shards.open_sum(self.flow.value(user))
                if still_open is None and self.shards.match(self.flow.value(user)) is None:
                    return _Fault(user, self.flow.line(user), still, elsewhere=True)
                return _Fault(user, self.flow.line(user), still_open)
            more = self.shards.open_sum(self.flow.value(user))
            if more is None:
                return _Fault(name, self._call(name, user), partial)
            at, still = user, more
            users = [user for user in lost if at in self.flow.sources(user)]
        return _Fault(at, self.flow.line(at), still)

    def _call(self, name: Name, user: Name) -> Location:
        """Where a value that is never completed is computed.

        In a program that its author wrote for each device, the collective belongs into the function that uses the
        value: the line is the one there. XLA's collectives have the line of the sum that they complete.
        """
        location = self.flow.line(name)
        if not self._is_written_by_hand():
            return location
        frames, others = location.frames, self.flow.line(user).frames
        common = 0
        while common < min(len(frames), len(others)) - 1 and frames[-1 - common] == others[-1 - common]:
            common += 1
        return Location(location.name, frames[len(frames) - 1 - common :]) if frames else location

    def _is_written_by_hand(self) -> bool:
        return any(step.op.name == "sdy.manual_computation" for step in self.stages.partitioned)

    def _misplaced(self, start: Name, logical: Name, found: Poly, expected: Poly) -> Finding:
        """The shard of another value, or another shard: what was left out, or where the wrong index comes in."""
        said = difference(found, expected, self.notation)
        if start not in self.flow:
            return Finding("the result is an argument", "", self._show(found), self._show(expected), said.text)
        match = self.shards.match(self.flow.value(start))
        if match is not None and logical in self.logical:
            missing = self._between(match, logical)
            if missing is not None:
                where = self.flow.line(start) if self._is_written_by_hand() else missing.op.location
                text = f"{missing.op.name} ({missing.op.location}) is missing"
                shown = self._show(found), self._show(expected)
                return Finding(statement(self.flow.op(start)), str(where), *shown, f"{text}; {said.text}".rstrip("; "))
        wrong = _device_parts(found) - _device_parts(expected)
        at = start
        while wrong:
            before = [s for s in self.flow.sources(at) if _device_parts(self.flow.value(s).term) & wrong]
            if not before:
                break
            at = before[0]
        return Finding(
            statement(self.flow.op(at)), str(self.flow.line(at)), self._show(found), self._show(expected), said.text
        )

    # Words

    def _explain(self, fault: _Fault, found: Poly, expected: Poly) -> Finding:
        value = self.flow.value(fault.name)
        op = self.flow.op(fault.name)
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
            return fault.partial.term, self._partial(fault.partial, fault.elsewhere)
        left_out = ""
        if fault.missing is not None:
            left_out = f"{fault.missing.op.name} ({fault.missing.op.location}) is missing"
        best = self._best(self._counterparts(self.flow.op(fault.name), value), value)
        match = self.shards.match(value)
        if (best is None or best[2].size > 1) and match is not None and match.factor != 1:
            best = match.term, match.step, difference(value.term, match.term, self.notation)
        if best is None:
            best = self._best(self._candidates(fault.name, value), value)
        if best is None:
            return None, left_out or "no logical tensor is like it"
        expected, step, said = best
        text = f"{self._whole(step)}{said.text or 'another term is expected'}"
        return expected, f"{left_out}; {said.text or text}" if left_out else text

    def _best(
        self, candidates: Iterator[tuple[Step | None, Poly]], value: Value
    ) -> tuple[Poly, Step | None, Difference] | None:
        """The candidate that differs least."""
        best: tuple[Poly, Step | None, Difference] | None = None
        for step, expected in islice(candidates, NEAREST):
            said = difference(value.term, expected, self.notation)
            if best is None or said.size < best[2].size:
                best = expected, step, said
        return best

    def _candidates(self, name: Name, value: Value) -> Iterator[tuple[Step | None, Poly]]:
        """Shards of what the logical operation of the same kind and origin computes, of terms of the same form, and of
        what the value is made from."""
        yield from self._counterparts(self.flow.op(name), value)
        wholes = list(self.shards.alike(value))
        for source in self.flow.sources(name):
            match = self.shards.match(self.flow.value(source))
            if match is not None and match.term.constant is None and match.factor == 1:
                wholes.append((match.step, match.whole))
        read = reads(value.term)
        wholes += [(None, argument) for argument in self.stages.arguments if reads(argument.term) <= read]
        for step, whole in wholes:
            for term in self.shards.shards(whole, value.shape):
                yield step, term

    def _counterparts(self, op: Op, value: Value) -> Iterator[tuple[Step | None, Poly]]:
        same = self.stages.counterparts(op) or self.stages.counterparts(op, of_any_kind=bool(op.location.frames))
        for step in same:
            for whole in step.values:
                for term in self.shards.shards(whole, value.shape):
                    yield step, term

    def _partial(self, partial: Match, elsewhere: bool) -> str:
        together = expr.build(0, [(digit, digit.low) for digit in partial.summed])
        digits = [self.notation.index(expr.of_atom(atom)) for atom, _ in together.items]
        count = prod(digit.radix for digit in partial.summed)
        over = f"{' and '.join(digit.removeprefix('(').removesuffix(')') for digit in digits)} ({count} devices)"
        kind = {"max": "maximum", "min": "minimum"}.get(partial.kind, partial.kind)
        text = f"{self._whole(partial.step)}the {kind} over {over} is missing"
        if elsewhere:
            text += f"; the {kind} is over other devices"
        if partial.factor == 1:
            return text
        return f"{text}, and the factor is {number(partial.factor)} where 1 is expected"

    def _whole(self, step: Step | None) -> str:
        return f"{step.op.name} ({step.op.location}): " if step is not None else ""

    def _show(self, p: Poly) -> str:
        return self.notation.term(p)


def _device_parts(term: Poly) -> set[tuple[expr.Atom, int]]:
    """The multiples of device digits that occur in a term's index expressions."""
    return {(atom, abs(c)) for e in indices(term) for atom, c in e.items if any(variable(v) == "d" for v in atom.free)}


def statement(op: Op) -> str:
    """The operation's StableHLO line."""
    if op.source is None:
        return op.name
    text = str(op.source).strip().split("\n", 1)[0]
    return text if len(text) <= LINE else text[: LINE - 1] + "…"
