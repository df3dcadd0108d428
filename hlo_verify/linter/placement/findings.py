"""Addends that are never added up, or over the wrong devices, or twice; results that differ where they should be equal.

An error needs more than an addend: which local sum is one, and which a value of its device (a head, an expert), is
a matter of what is meant. It is one where a result, of which the shardings say that devices hold the same, surely
differs between them; where equal sums are added up; and where an all-reduce that completes a sum has other groups than
the summed dimension is split over. Another function of an addend, added up later, is a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from hlo_verify.diagnostics import Code, Placement, Severity
from hlo_verify.hlo.groups import kind
from hlo_verify.hlo.meetings import Meetings
from hlo_verify.hlo.module import Computation, Instruction
from hlo_verify.hlo.shardings import Shardings
from hlo_verify.linter.finding import Finding, at
from hlo_verify.linter.placement import opcodes
from hlo_verify.linter.placement.communication import groups, reduces, undone
from hlo_verify.linter.placement.devices import Devices
from hlo_verify.linter.placement.elementwise import Place
from hlo_verify.linter.placement.gradients import BACKWARD, MANUAL, Gradients
from hlo_verify.linter.placement.parameters import arguments, held
from hlo_verify.linter.placement.statistics import Statistics
from hlo_verify.linter.placement.values import FREE, Partial, Reduced, Stage, Tree, Value
from hlo_verify.linter.placement.walk import Walk
from hlo_verify.linter.reducers import reducer_of

PRODUCTS = ("dot_general", "conv_general_dilated")
"""In names of the source program: sums of products, which are partitioned into one reduction each."""


def check(meetings: Meetings, shardings: Shardings | None = None) -> Iterator[Finding]:
    """What is wrong with where the values of a module lie."""
    module = meetings.module
    if meetings.devices < 2 or _enters_itself(module.entry, set(), set()):
        return
    devices = Devices(meetings.devices)
    look = _Look(meetings, devices)
    walk = Walk(meetings, devices, look.see)
    given = arguments(module, None if shardings is None else shardings.arguments, devices)
    results = list(_leaves(walk.run(module.entry, given)))
    errors = [*look.misplaced(), *look.doubled()]
    if shardings is not None and len(shardings.results) == len(results):
        errors += _of_results(look, results, shardings.results)
    look.alone(results)
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
    """What is seen on the way: `named` are the instructions that findings name; `wrong` what is said of addends, by
    origin and label, and `completed` those that are added up later; `repeated` the sums that are added up again, by the
    two reductions, with all factors that they get; of those in `scaled` another value may make up for the factor; and
    `compiled` are reductions that the compiler made."""

    meetings: Meetings
    devices: Devices
    wrong: dict[tuple[str, int], list[Finding]] = field(default_factory=dict)
    completed: set[tuple[str, int]] = field(default_factory=set)
    suspicious: list[Finding] = field(default_factory=list)
    named: dict[str, Instruction] = field(default_factory=dict)
    repeated: dict[tuple[str, str], set[Reduced]] = field(default_factory=dict)
    scaled: set[tuple[str, str]] = field(default_factory=set)
    compiled: set[str] = field(default_factory=set)
    statistics: Statistics = field(init=False)
    gradients: Gradients = field(init=False)

    def __post_init__(self) -> None:
        self.statistics = Statistics(self.devices)
        self.gradients = Gradients(self.devices)

    def see(self, instruction: Instruction, given: Sequence[Tree], found: Tree, place: Place) -> None:
        if instruction.name == place.name:
            self.named[place.name] = instruction
        if reduces(instruction):
            if instruction.op_name and MANUAL not in instruction.op_name:
                self.compiled.add(place.name)
            for value in given:
                if isinstance(value, Value):
                    self._reduction(instruction, value, place)
        for value in _leaves(found):
            for one in value.sums:
                if one.again:
                    self.repeated.setdefault((one.by, one.again), set()).add(one)
        self.scaled |= self._scaled(instruction, given)
        if opcodes.is_collective(instruction.opcode):
            among = groups(instruction, self.devices, self.meetings)
            self.gradients.exchanged(instruction, given, among)
            for value in given:
                if isinstance(value, Value):
                    self.statistics.exchanged(value, among)
        else:
            self.statistics.see(instruction, given, place)
            self.gradients.added(instruction, given, place)

    def _scaled(self, instruction: Instruction, given: Sequence[Tree]) -> set[tuple[str, str]]:
        """The repeated sums whose factor an instruction may make up for, or not ask for: a comparison or the place of
        the largest says the same of a multiple, a quotient may have the factor on both sides."""
        again = [{(s.by, s.again) for v in _leaves(one) for s in v.sums if s.again} for one in given]
        if not any(again):
            return set()
        opcode = instruction.opcode
        if opcode == "multiply":
            pairs = zip(again, reversed(again), reversed(given), strict=True)
            return set().union(*(one for one, other, by in pairs if other or _is_any_factor(by)))
        divisor = given[-1]
        if opcode == "divide" and isinstance(divisor, Value) and divisor.number is not None:
            return set()
        is_extreme = opcode == "reduce" and reducer_of(instruction) != "add"
        return set().union(*again) if is_extreme or opcode in _MAY_SCALE else set()

    def _reduction(self, instruction: Instruction, value: Value, place: Place) -> None:
        among = groups(instruction, self.devices, self.meetings)
        if among is None or not value.partials or max(map(len, among)) == 1:
            return
        adds = reducer_of(instruction) == "add"
        for one in undone(value, among, self.devices):
            self.completed.add((one.origin, one.label))
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
                said = self._wrong(replace(one, wrong=place.name))
                self.wrong.setdefault((one.origin, one.label), []).append(said)

    def alone(self, results: Sequence[Value]) -> None:
        """Add what is said of statistics and of gradients. Of a statistic nothing else is said."""
        self.statistics.together |= {one.origin for value in results for one in value.statistics}
        found = list(self.statistics.findings(self.named))
        origins = {one.instruction for one in found}
        self.suspicious = [one for one in self.suspicious if not origins & {one.instruction, *one.related}]
        self.suspicious += [*found, *self.gradients.findings(self.completed, self.named)]

    def misplaced(self) -> Iterator[Finding]:
        """Addends that are added up over other devices. One that is added up over its own later may be a sum in two
        steps, the other one over a dimension of a broadcast, of which a device has one element: that is not seen."""
        for key, found in self.wrong.items():
            if key not in self.completed:
                yield from found
            else:
                self.suspicious += [replace(one, severity=Severity.WARNING) for one in found]

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
        if BACKWARD in last.called and not last.at:
            reaches += ". The gradient of what devices hold the same of is the sum over them"
        return replace(
            found, message=found.message + reaches, related=tuple(dict.fromkeys((*found.related, *origins, end)))
        )

    def _separates(self, label: int, pair: tuple[int, int]) -> bool:
        table = self.devices.table(label)
        return table[pair[0]] != table[pair[1]]

    def _are_of_one_product(self, by: str, again: str) -> bool:
        """Whether a reduction has nothing but what another one gives, and both are of one product at one line of the
        source: it is added up once. Of a sum there, as people sum up a broadcast, the second may be another one."""
        first, second = self.named.get(by), self.named.get(again)
        if first is None or second is None or not first.location:
            return False
        called, line = first.op_name.rpartition("/")[2], first.location
        same = (second.op_name, second.location) == (first.op_name, line)
        return same and called in PRODUCTS and [one.name for one in second.operands] == [first.name]

    def doubled(self) -> Iterator[Finding]:
        """Sums that are added up again."""
        for (by, again), found in self.repeated.items():
            times = min(one.times for one in found)
            made_up = (by, again) in self.scaled or any(_makes_up(one.factor, times) for one in found)
            message = (
                f"{again} adds up what {by} has made equal on its {times} devices: it comes out {times} times too large"
            )
            if made_up:
                message += ", unless a factor makes up for it"
            elif again in self.compiled and not self._are_of_one_product(by, again):
                message += ", unless it is summed over a broadcast that is spread over them"
            finding = self.at(again, Placement.DOUBLE_REDUCTION, message, by)
            is_sure = not made_up and (again not in self.compiled or self._are_of_one_product(by, again))
            yield replace(finding, severity=Severity.ERROR if is_sure else Severity.WARNING)


_MAY_SCALE = frozenset(
    "and cbrt clamp compare divide log minimum or power remainder rsqrt shift-left shift-right-arithmetic "
    "shift-right-logical sign sort sqrt xor".split()
)
"""Operations behind which a factor of a repeated sum is not known, and may not matter."""


def _is_any_factor(tree: Tree) -> bool:
    """Whether a value is one number in all its elements, which the text does not say."""
    return isinstance(tree, Value) and tree.number is None and all(one == FREE for one in tree.dimensions)


def _makes_up(factor: Fraction, times: int) -> bool:
    """Whether a factor may be there to take a mean over so many devices, maybe times another. Short decimal fractions,
    as people write them (0.001), are taken for what they are, unless they are rounder with the devices in them: 0.0125
    over 8 is 0.1, 12.5 is 100."""
    if factor in (0, 1):
        return False
    if abs(factor) < 1 and factor.denominator & (factor.denominator - 1) == 0:
        return True
    before, after = _digits(factor), _digits(factor * times)
    return before is None or (after is not None and after < before)


def _digits(factor: Fraction) -> int | None:
    """The digits of a short decimal fraction as a number, without zeros at either end; none for another one."""
    digits = abs(factor)
    while digits < 100:
        digits *= 10
    if digits.denominator != 1:
        return None
    return int(str(digits.numerator).rstrip("0"))


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
