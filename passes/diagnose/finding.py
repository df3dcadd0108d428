"""The finding about a result that is not proved: the operation at fault, and what it should have computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
import numpy.typing as npt

from hlo_verify.diagnostics import Mismatch
from hlo_verify.index import expr, tables
from hlo_verify.ops.values import Value
from hlo_verify.passes.diagnose import mismatches
from hlo_verify.passes.diagnose.blame import Blame
from hlo_verify.passes.diagnose.differences import difference
from hlo_verify.passes.diagnose.fault import Fault
from hlo_verify.passes.diagnose.lost_values import Values
from hlo_verify.passes.diagnose.manual_programs import ByHand
from hlo_verify.passes.diagnose.shard_match import Match
from hlo_verify.passes.diagnose.term_contents import indices, tensors
from hlo_verify.passes.prove.notation import number, variable
from hlo_verify.passes.prove.stages import Stages, Step
from hlo_verify.program.ir import Location, Name, Op
from hlo_verify.report import Finding
from hlo_verify.terms.term import Poly

LINE = 200
"""The most characters of an operation's line that a report shows."""


@dataclass(frozen=True, slots=True, eq=False)
class Lead:
    """What a finding is about: a value of the partitioned module.

    Also the logical value that it should be a shard of, where that is known, and the index at which each device's
    shard starts, as an array (devices, rank).
    """

    name: Name
    logical: Name | None = None
    starts: npt.NDArray[np.int64] | None = None
    mismatch: Mismatch = Mismatch.DIFFERS


@dataclass(slots=True)
class Diagnosis:
    """The findings about all results of a pair: those that fail for one reason share one."""

    values: Values
    blame: Blame = field(init=False)
    leads: dict[Finding, Lead] = field(default_factory=dict)
    by_hand: ByHand | None = field(init=False)
    _findings: dict[tuple[Name, Location], Finding] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.blame = Blame(self.values)
        self.by_hand = ByHand(self.values) if self.values.by_hand else None

    def finding(self, logical: Name, partitioned: Name, found: Poly, expected: Poly) -> Finding:
        """The finding for one result."""
        start = self.values.flow.origin(partitioned)
        lost = self.values.lost_before(start)
        fault = self.blame.fault(lost) if lost else None
        if fault is None and found.constant is not None and start in self.values.flow:
            fault = self.blame.vanished([start])
        if fault is None:
            return self._misplaced(start, self.values.logical.origin(logical), found, expected)
        if self.by_hand is not None:
            fault = self.by_hand.aim(fault, lost or [start], logical)
        key = fault.name, fault.location
        if key not in self._findings:
            self._findings[key] = self._explain(fault)
        return self._findings[key]

    def _misplaced(self, start: Name, logical: Name, found: Poly, expected: Poly) -> Finding:
        """The shard of another value, or another shard: what was left out, or where the wrong index comes in."""
        values, flow = self.values, self.values.flow
        shown = self._show(found), self._show(expected)
        said = difference(found, expected, values.notation)
        here = statement(flow.op(start)) if start in flow else "the result is an argument"
        missing = self._skipped(start, logical, found)
        at = start
        while at in flow and flow.op(at).name == "sdy.manual_computation" and flow.sources(at):
            at = flow.sources(at)[0]  # what calls a program is no part of it
        if missing is not None:
            where = flow.line(at) if values.by_hand and start in flow else missing.op.location
            text = "; ".join(part for part in (_missing(missing), said.text) if part)
            finding = _at(where, Finding(here, str(where), *shown, text, mismatches.without(missing, said)))
            if start in flow:
                self.leads[finding] = Lead(start)
            return finding
        wrong = _device_parts(found) - _device_parts(expected) if start in flow else set()
        while wrong:
            before = [s for s in flow.sources(at) if _device_parts(flow.value(s).term) & wrong]
            if not before:
                break
            at = before[0]
        if at not in flow:
            return Finding(here, "", *shown, said.text, said.mismatch)
        if logical in values.logical:
            at = self.blame.operands.at_fault(at, values.logical.step(logical))
        code = mismatches.at(flow.op(at), found, expected, said)
        line = flow.line(at)
        finding = _at(line, Finding(statement(flow.op(at)), str(line), *shown, said.text, code))
        self.leads[finding] = Lead(at)
        return finding

    def _skipped(self, start: Name, logical: Name, found: Poly) -> Step | None:
        """The first logical operation that is left out after the value that is returned."""
        if logical not in self.values.logical:
            return None
        if start in self.values.flow:
            match = self.values.shards.match(self.values.flow.value(start))
            return self.blame.omissions.between(match, logical) if match is not None else None
        for argument in self.values.stages.arguments:
            if tensors(argument.term) == tensors(found):
                return self.blame.omissions.between(Match(None, argument, argument.term), logical)
        return None

    def _explain(self, fault: Fault) -> Finding:
        value = self.values.flow.value(fault.name)
        op = self.values.flow.op(fault.name)
        wanted, step, said, code = self._nearest(fault, value)
        if fault.why:
            wanted, step, said = None, None, fault.why
        code = fault.mismatch or code
        shown = self._show(value.term), "" if wanted is None else self._show(wanted)
        finding = _at(fault.location, Finding(statement(op), str(fault.location), *shown, said, code))
        self.leads[finding] = replace(self._lead(fault.name, value, step, wanted), mismatch=code)
        return finding

    def _lead(self, name: Name, value: Value, step: Step | None, wanted: Poly | None) -> Lead:
        """Which logical value a value should be a shard of, and where the shards start."""
        device = self.values.stages.device
        for k, whole in enumerate(step.values if step is not None else ()):
            for starts, term in self.values.shards.placed(whole, value.shape):
                if term is wanted and step is not None:
                    numbers = [tables.evaluate(start, device) for start in starts]
                    known = [each for each in numbers if each is not None]
                    if len(known) == len(starts):
                        together = np.stack(known, axis=1) if known else np.zeros((device.size, 0), np.int64)
                        return Lead(name, step.op.results[k], together)
        return Lead(name)

    def _nearest(self, fault: Fault, value: Value) -> tuple[Poly | None, Step | None, str, Mismatch]:
        """The term that was expected, the logical operation, how its value differs from what was found, and the kind of
        mismatch that this is."""
        if fault.offset is not None:
            start = self.values.shards.start_like(fault.offset)
            shown = self.values.notation.index(fault.offset)
            text = f"no shard starts at offset {shown}"
            if start is not None:
                text = f"offset {shown} where {self.values.notation.index(start)} is expected"
            return None, None, text, mismatches.elsewhere(self.values.flow.op(fault.name))
        if fault.partial is not None:
            text = self._partial(fault.partial, fault.elsewhere)
            code = mismatches.of_partial(self.values, fault, fault.partial)
            return fault.partial.term, fault.partial.step, text, code
        left_out = ""
        if fault.missing is not None:
            left_out = _missing(fault.missing)
        meant = self.values.counterparts(self.values.flow.op(fault.name), value)
        best = self.values.nearest((m for m in meant if fault.meant is None or m[0] is fault.meant), value)
        match = self.values.shards.match(value)
        if (best is None or best[2].size > 1) and match is not None and match.factor != 1:
            best = match.term, match.step, difference(value.term, match.term, self.values.notation)
        if best is None:
            best = self.values.nearest(self.values.candidates(fault.name, value), value)
        if best is None:
            if not left_out:
                return None, None, "no logical tensor is like it", Mismatch.DIFFERS
            return None, None, left_out, Mismatch.WRONG_VALUE
        expected, step, said = best
        code = mismatches.of_value(self.values, fault, expected, step, said)
        text = f"{self._whole(step)}{said.text or 'another term is expected'}"
        return expected, step, f"{left_out}; {said.text or text}" if left_out else text, code

    def _partial(self, partial: Match, elsewhere: bool) -> str:
        together = expr.build(0, [(digit, digit.low) for digit in partial.summed])
        digits = [self.values.notation.index(expr.of_atom(atom)) for atom, _ in together.items]
        count = prod(digit.radix for digit in partial.summed)
        over = f"{' and '.join(digit.removeprefix('(').removesuffix(')') for digit in digits)} ({count} devices)"
        extremum = {"max": "maximum", "min": "minimum"}.get(partial.reducer, partial.reducer)
        text = f"{self._whole(partial.step)}the {extremum} over {over} is missing"
        if elsewhere:
            text += f"; the {extremum} is over other devices"
        if partial.factor == 1:
            return text
        return f"{text}, and the factor is {number(partial.factor)} where 1 is expected"

    def _whole(self, step: Step | None) -> str:
        return f"{step.op.name} ({step.op.location}): " if step is not None else ""

    def _show(self, p: Poly) -> str:
        return self.values.notation.term(p)


@dataclass(slots=True)
class Findings:
    """The findings about what one walk did not prove. Nothing is worked out before one is asked for."""

    stages: Stages
    _diagnosis: Diagnosis | None = None

    @property
    def leads(self) -> Mapping[Finding, Lead]:
        """What the findings so far are about."""
        return {} if self._diagnosis is None else self._diagnosis.leads

    def about(self, logical: Name, partitioned: Name, found: Poly, expected: Poly) -> Finding:
        """The finding for one result, a value of either module."""
        if self._diagnosis is None:
            self._diagnosis = Diagnosis(Values(self.stages))
        return self._diagnosis.finding(logical, partitioned, found, expected)


def _missing(step: Step) -> str:
    return f"{step.op.name} ({step.op.location}) is missing"


def _device_parts(term: Poly) -> set[tuple[expr.Atom, int]]:
    """The multiples of device digits that occur in a term's index expressions."""
    return {(atom, abs(c)) for e in indices(term) for atom, c in e.items if any(variable(v) == "d" for v in atom.free)}


def statement(op: Op) -> str:
    """The operation's StableHLO line."""
    if op.source is None:
        return op.name
    text = str(op.source).strip().split("\n", 1)[0]
    return text if len(text) <= LINE else text[: LINE - 1] + "…"


def _at(location: Location, finding: Finding) -> Finding:
    """A finding with all that is known of where it is from."""
    return replace(finding, module=location.module, frames=location.stack)
