"""Addends that are never added up, or over the wrong devices, or twice; results that differ where they should be equal.

An error needs more than an addend: which local sum is one, and which a value of its device (a head, an expert), is
a matter of what is meant. It is one where a result, of which the shardings say that devices hold the same, surely
differs between them; where equal sums are added up; and where an all-reduce that completes a sum has other groups than
the summed dimension is split over. Another function of an addend, added up later, is a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from hlo_verify.diagnostics import Code, Placement, Severity
from hlo_verify.hlo.groups import kind
from hlo_verify.hlo.meetings import Meetings
from hlo_verify.hlo.module import Computation, HloModule, Instruction
from hlo_verify.hlo.shardings import Shardings
from hlo_verify.linter.finding import Finding, at
from hlo_verify.linter.placement.communication import groups, reduces, undone
from hlo_verify.linter.placement.devices import Devices
from hlo_verify.linter.placement.elementwise import Place
from hlo_verify.linter.placement.parameters import arguments, held
from hlo_verify.linter.placement.values import Partial, Reduced, Stage, Tree, Value
from hlo_verify.linter.placement.walk import Walk

MANUAL = "shard_map"
"""In names of the source program: code that each device runs for itself."""


def check(module: HloModule, shardings: Shardings | None = None) -> Iterator[Finding]:
    """What is wrong with where the values of a module lie."""
    meetings = Meetings(module)
    if meetings.devices < 2 or _enters_itself(module.entry, set(), set()):
        return
    devices = Devices(meetings.devices)
    look = _Look(meetings, devices)
    walk = Walk(meetings, devices, look.see)
    look.reducer = walk.reducer
    given = arguments(module, None if shardings is None else shardings.arguments, devices)
    results = list(_leaves(walk.run(module.entry, given)))
    errors = [*look.wrong, *look.doubled()]
    if shardings is not None and len(shardings.results) == len(results):
        errors += _of_results(look, results, shardings.results)
    yield from dict.fromkeys(errors)
    named = {name for one in errors for name in (one.instruction, *one.related)}
    yield from (one for one in dict.fromkeys(look.suspicious) if not named & {one.instruction, *one.related})


def _enters_itself(computation: Computation, within: set[str], done: set[str]) -> bool:
    """Whether a computation calls itself, or one does that it calls: no HLO."""
    if computation.name in within:
        return True
    if computation.name in done:
        return False
    within.add(computation.name)
    computations = computation.module.computations
    called = [computations[name] for i in computation.instructions for name in i.called if name in computations]
    found = any(_enters_itself(one, within, done) for one in called)
    within.discard(computation.name)
    done.add(computation.name)
    return found


def _leaves(tree: Tree) -> Iterator[Value]:
    if isinstance(tree, Value):
        yield tree
        return
    for part in tree:
        yield from _leaves(part)


@dataclass
class _Look:
    """What is seen on the way: `named` are the instructions that findings name, `repeated` the sums that are added up
    again, by the two reductions, with all factors that they get."""

    meetings: Meetings
    devices: Devices
    wrong: list[Finding] = field(default_factory=list)
    suspicious: list[Finding] = field(default_factory=list)
    named: dict[str, Instruction] = field(default_factory=dict)
    repeated: dict[tuple[str, str], set[Reduced]] = field(default_factory=dict)
    divided: set[tuple[str, str]] = field(default_factory=set)
    reducer: Callable[[Instruction], str] = lambda _: ""

    def see(self, instruction: Instruction, given: Sequence[Tree], found: Tree, place: Place) -> None:
        if instruction.name == place.name:
            self.named[place.name] = instruction
        if reduces(instruction):
            for value in given:
                if isinstance(value, Value):
                    self._reduction(instruction, value, place)
        for value in _leaves(found):
            for one in value.sums:
                if one.again:
                    self.repeated.setdefault((one.by, one.again), set()).add(one)
        if instruction.opcode in ("divide", "multiply") and len(given) == 2:
            again = [{(s.by, s.again) for v in _leaves(one) for s in v.sums if s.again} for one in given]
            if all(again):  # what is too large by one factor, over what is too large by it
                self.divided |= again[0] | again[1]

    def _reduction(self, instruction: Instruction, value: Value, place: Place) -> None:
        among = groups(instruction, self.devices, self.meetings)
        if among is None or not value.partials or max(map(len, among)) == 1:
            return
        adds = self.reducer(instruction) == "add"
        for one in undone(value, among, self.devices):
            if MANUAL not in one.called:
                continue
            if one.stage is not Stage.LINEAR:
                self.suspicious.append(self._bent(one, place, Severity.WARNING))
            elif not adds and kind(instruction) == "all-reduce":
                bent = replace(one, stage=Stage.NONLINEAR, at=place.name)
                self.suspicious.append(self._bent(bent, None, Severity.WARNING))
        called = instruction.op_name
        if value.hidden or value.lost or not called or MANUAL in called or undone(value, among, self.devices):
            return
        for one in value.partials:
            if one.stage is Stage.LINEAR and not one.doubted and one.called == called and one.origin != place.name:
                self.wrong.append(self._wrong(replace(one, wrong=place.name)))

    def at(self, name: str, code: Code, message: str, *related: str) -> Finding:
        """A finding at the instruction of a name."""
        instruction = self.named.get(name)
        if instruction is None:
            return Finding(code, message, name, related=related)
        return at(instruction, code, message, *(one for one in related if one and one != name))

    def _devices(self, label: int) -> str:
        """Two devices that a label keeps apart."""
        table = self.devices.table(label)
        return f"devices {table.index(0)} and {table.index(1)}" if 1 in table else "devices"

    def _addend(self, one: Partial) -> str:
        return f"{one.origin} gives each of {self._devices(one.label)} its own addend of a sum"

    def _wrong(self, one: Partial) -> Finding:
        message = f"{self._addend(one)}, and {one.wrong} adds up over other devices"
        return self.at(one.wrong, Placement.WRONG_AXIS_REDUCTION, message, one.origin)

    def _bent(self, one: Partial, then: Place | None, severity: Severity) -> Finding:
        code = Placement.PARTIAL_TIMES_PARTIAL if one.stage is Stage.PRODUCT else Placement.PARTIAL_INTO_NONLINEAR
        how = "is multiplied with another addend" if one.stage is Stage.PRODUCT else "goes into a nonlinear function"
        message = (
            f"{self._addend(one)}, which {how} in {one.at}"
            f"{f' before {then.name} adds up what comes of it' if then else ''}"
        )
        found = self.at(one.at, code, message, one.origin, *((then.name,) if then else ()))
        return replace(found, severity=severity)

    def differs(self, number: int, value: Value, pair: tuple[int, int]) -> Finding:
        """The finding of a result that differs between two devices: at what made it so, as far as that is known."""
        root = self.meetings.module.entry.root or self.meetings.module.entry.instructions[-1]
        ends = [operand.name for operand in root.operands] if root.opcode == "tuple" else [root.name]
        end = ends[number] if number < len(ends) else root.name
        reaches = f"; result {number} comes of it, which devices {pair[0]} and {pair[1]} should hold the same of"
        apart = [one for one in value.partials if self._separates(one.label, pair) and not one.doubted]
        if not apart:
            message = (
                f"result {number} should be the same on devices {pair[0]} and {pair[1]}, and each computes it of its "
                "own shards of the parameters"
            )
            return self.at(end, Placement.UNEQUAL_REPLICATED_RESULT, message)
        first = apart[0]
        alike = [one for one in apart if (one.stage, one.at, one.wrong) == (first.stage, first.at, first.wrong)]
        last = alike[-1]
        origins = [one.origin for one in alike[:-1]]
        if first.wrong:
            found = self._wrong(first)
        elif MANUAL not in last.called:
            message = self._addend(last) + ", and nothing adds them up"
            found = self.at(last.origin, Placement.MISSING_REDUCTION, message, last.at)
        elif first.stage is not Stage.LINEAR:
            found = self._bent(first, None, Severity.ERROR)
        else:
            message = self._addend(last) + ", and nothing adds them up"
            found = self.at(last.origin, Placement.PARTIAL_INTO_REPLICATED_RESULT, message)
        return replace(
            found, message=found.message + reaches, related=tuple(dict.fromkeys((*found.related, *origins, end)))
        )

    def _separates(self, label: int, pair: tuple[int, int]) -> bool:
        table = self.devices.table(label)
        return table[pair[0]] != table[pair[1]]

    def doubled(self) -> Iterator[Finding]:
        """Sums that are added up again."""
        for (by, again), found in self.repeated.items():
            times = min(one.times for one in found)
            made_up = (by, again) in self.divided or any(_makes_up(one.factor) for one in found)
            message = (
                f"{again} adds up what {by} has made equal on its {times} devices: it comes out {times} times too large"
            )
            if made_up:
                message += ", unless a factor makes up for it"
            finding = self.at(again, Placement.DOUBLE_REDUCTION, message, by)
            yield replace(finding, severity=Severity.WARNING if made_up else Severity.ERROR)


def _makes_up(factor: Fraction) -> bool:
    """Whether a factor may be there to take a mean: one over a number of devices, maybe times another. Short decimal
    fractions, as people write them (0.001), are taken for what they are."""
    if factor == 1 or factor >= 1 or factor == 0:
        return False
    if factor.denominator & (factor.denominator - 1) == 0:
        return True
    digits = abs(factor)
    while digits < 100:
        digits *= 10
    return digits.denominator != 1


def _of_results(look: _Look, results: Sequence[Value], texts: Sequence[str]) -> Iterator[Finding]:
    """Results that surely differ between devices that should hold the same."""
    seen: set[tuple[str, str]] = set()
    for number, (value, text) in enumerate(zip(results, texts, strict=True)):
        label = held(text, look.devices)
        pair = None if label is None else _unequal(value, label, look.devices)
        if pair is None:
            continue
        finding = look.differs(number, value, pair)
        if (finding.code, finding.instruction) not in seen:
            seen.add((finding.code, finding.instruction))
            yield finding


def _unequal(value: Value, label: int, devices: Devices) -> tuple[int, int] | None:
    """Two devices that should hold the same of a value, and surely do not."""
    same = devices.table(devices.finer(label, value.method))
    first: dict[int, int] = {}
    for device, group in enumerate(same):
        other = first.setdefault(group, device)
        if any(devices.table(one)[other] != devices.table(one)[device] for one in value.some):
            return other, device
    return None
