"""Stages: recognise partitioned values as shards of logical tensors, operation by operation.

Most values are recognised by construction: equal functions have one definition, so a partitioned value is a read of
the very tensor that the logical module defined. Where it is not (halo exchanges, padding, masks), the logical
operation of the same origin says what is expected, its sharding where, and `equality.cases` decides. Either way the
value becomes a cut point: later terms read the logical tensor.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from hlo_verify.equality import cases, opening
from hlo_verify.equality.briefly import equal_briefly
from hlo_verify.equality.effort import Effort
from hlo_verify.equality.networks import same_network
from hlo_verify.equality.presence import same_by_presence
from hlo_verify.equality.summands import Steps
from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.index.interned import made
from hlo_verify.limits import allows
from hlo_verify.meter import TERM
from hlo_verify.ops.lines import Piped
from hlo_verify.ops.turns_before import TurnsBefore
from hlo_verify.ops.values import Value, positions
from hlo_verify.passes.prove.along_lines import equal_along
from hlo_verify.passes.prove.cut_points import CutPoints, Guesses, on_all_devices
from hlo_verify.passes.prove.frontier import Frontier
from hlo_verify.passes.prove.lineage import Lineage, lineage, shardings_of
from hlo_verify.passes.prove.parts_of_values import Parts
from hlo_verify.passes.prove.points import agree_at_points
from hlo_verify.passes.prove.stand_ins import StandIns
from hlo_verify.passes.prove.windows_seen import windows
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.program.ir import Location, Name, Op
from hlo_verify.program.sharding import Sharding
from hlo_verify.session import Session
from hlo_verify.terms import algebra, padding
from hlo_verify.terms.term import ONE, Guard, Poly, Read, Tensor, reads

SHARE_COMPARISONS, SHARE_STEPS, SHARE_NETWORK = 4, 2, 8
"""In a module that is known to be wrong, recognising is given up sooner: after a fourth of the comparisons in vain that
others may have, or half of the steps; so is comparing results as sums of products, after an eighth."""

SHARE_LEFT = 2
"""Comparing a result as sums of products takes half of what is left of all work: other readings may still prove it."""

ENDS = frozenset("all_reduce all_gather all_to_all dynamic_slice select slice reshape add concatenate".split())
"""Operations that may be the last of what the partitioner made of one logical operation of another name."""


@dataclass(frozen=True, slots=True)
class Step:
    """One operation that was interpreted, with the values of its results."""

    op: Op
    values: tuple[Value, ...]
    position: int = 0
    """Its number among the operations of its module that were interpreted."""


@dataclass(slots=True)
class Stages:
    """What both modules computed, in order, and the cut points found by case distinction."""

    device: Var
    decide: bool = True
    """Whether values that are not recognised by construction are compared case by case."""
    progress: Callable[[int], None] | None = None
    known_wrong: bool = False
    """Whether a result is known to differ."""
    answered: Callable[[bool], object] = bool
    """Told of each comparison whether it had success; may end the walk with `EnoughError`."""
    session: Session = field(default_factory=Session)
    effort: Effort = field(init=False)
    """The steps that comparisons may take together, but for those that led to a cut point: a deep module has many."""
    network: Steps = field(init=False)
    """The steps that comparing results as sums of products may take together, but for those that are equal."""
    arguments: list[Value] = field(default_factory=list)
    """The logical module's arguments."""
    placements: list[Sharding] = field(default_factory=list)
    """How arguments and results are sharded."""
    piped: list[Piped] = field(default_factory=list)
    """Components of the logical module's loops that lines of devices make."""
    parts: Parts = field(default_factory=Parts)
    """The values of either module that are no shards, as devices combine them next."""
    logical: list[Step] = field(default_factory=list)
    partitioned: list[Step] = field(default_factory=list)
    cuts: set[int] = field(default_factory=set)
    """The uids of terms that were found to be shards by case distinction."""
    guesses: Guesses = field(default_factory=dict)
    _guessed: CutPoints = field(init=False)
    _known: dict[Tensor, int] = field(default_factory=dict)
    """The tensors that the logical module computes with, each with the operation where it comes up first."""
    _frontier: Frontier = field(default_factory=Frontier)
    _positions: dict[Tensor, int] = field(default_factory=dict)
    _lost: dict[int, bool] = field(default_factory=dict)
    _by_location: dict[Location, list[Step]] = field(default_factory=dict)
    _expected: dict[tuple[int, int], tuple[Poly, Lineage] | None] = field(default_factory=dict)
    _shapes: set[int] = field(default_factory=set)
    _wholes: dict[Name, Value] = field(default_factory=dict)
    _failures: int = 0
    """Comparisons without success since the last one with, that took steps; and how many steps."""
    _wasted: int = 0
    _refusals: int = 0
    """All comparisons without success since then."""
    _refused: set[tuple[int, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.effort = Effort(self.session.limits.total_steps, session=self.session)
        self.network = Steps(self.session.limits.network_steps)
        self._guessed = on_all_devices(self.guesses, self.device, self.effort)

    def afresh(self) -> Stages:
        """The same record, none of it compared case by case yet, with all the effort of a walk that begins."""
        return replace(
            self, decide=False, guesses={}, _frontier=Frontier(), _failures=0, _wasted=0, _refusals=0, _refused=set()
        )

    @property
    def stand_ins(self) -> StandIns:
        """What stands for values of the logical module."""
        return self._guessed.stand_ins

    def record_logical(self, op: Op, values: list[Value]) -> list[Value]:
        """Note an operation of the logical module; what is to be computed with."""
        values = self._guessed.note_all(op.results, values)
        self._wholes.update(zip(op.results, values, strict=True))
        self.logical.append(step := Step(op, tuple(values), len(self.logical)))
        self._advance()
        self._by_location.setdefault(op.location, []).append(step)
        for value in values:
            for read in reads(value.term):
                self._known.setdefault(read.tensor, step.position)
            self._shapes.add(value.term.skey)
        return values

    def known(self, value: Value) -> bool:
        """Whether a value is a function of logical tensors that the logical module computes somewhere too.

        Integers, constants and masks count as known: they are how offsets are computed, not what is lost.
        """
        term = value.term
        is_plain = value.type.dtype in INTEGER_RANGES or term.constant is not None
        return is_plain or (not self.lost(term) and term.skey in self._shapes)

    def record_partitioned(self, op: Op, values: list[Value]) -> list[Value]:
        """Note an operation of the partitioned module; its values, recognised where they need to be."""
        values = self._recognised(op, values) if self.decide else values
        self.partitioned.append(Step(op, tuple(values), len(self.partitioned)))
        self._advance()
        return values

    def recognises_more(self, guesses: Guesses) -> bool:
        """Whether a value is recognised case by case, or as guessed, after a walk in which none was compared."""
        self.decide = True
        self._guessed = on_all_devices(guesses, self.device, self.effort)
        for step in self.logical:
            self._guessed.note_all(step.op.results, list(step.values))
        for step in self.partitioned:
            if any(a is not b for a, b in zip(step.values, self._recognised(step.op, list(step.values)), strict=True)):
                return True
        return False

    def _recognised(self, op: Op, values: list[Value]) -> list[Value]:
        """The values of an operation, those that need to be compared case by case as shards of logical ones."""
        values = [self._recognise(op, value) if self.needs_match(value.term) else value for value in values]
        values = self._guessed.replaced_all(op.results, values)
        for value in values:
            tensors = {read.tensor for read in reads(value.term)}
            self._frontier.pass_by(tensor for tensor in tensors if tensor.bodies and tensor in self._known)
        return values

    def _advance(self) -> None:
        done = len(self.logical) + len(self.partitioned)
        if self.progress is not None and done % 64 == 0:
            self.progress(done)

    def cut_points(self) -> Iterator[tuple[Op, Read, bool]]:
        """The cut points, in order: the operation of the partitioned module, the element of a logical tensor that it
        computes, and whether an earlier cut point computes a shard of the same tensor."""
        seen: set[Tensor] = set()
        for step in self.partitioned:
            for value in step.values:
                atom = value.term.atom
                if isinstance(atom, Read) and atom.tensor.bodies and atom.tensor in self._known:
                    yield step.op, atom, atom.tensor in seen
                    seen.add(atom.tensor)

    def lost(self, p: Poly) -> bool:
        """Whether a term reads something that the logical module does not define."""
        if p.uid not in self._lost:
            self._lost[p.uid] = any(
                read.tensor not in self._known and (read.tensor.bodies or read.tensor.kind in ("opaque", padding.KIND))
                for read in reads(p)
            )
        return self._lost[p.uid]

    def needs_match(self, p: Poly) -> bool:
        """Whether a term is not obviously a function of logical values: it is lost, or guarded by the device."""
        guards = (a for mono, _ in p.items for a, _ in mono if isinstance(a, Guard))
        return self.lost(p) or (self.device in p.free and any(self.device in a.free for a in guards))

    def expected(self, step: Step, n: int) -> tuple[Poly, Lineage] | None:
        """A device's shard of a logical result by the operation's own sharding, if it has one."""
        key = (id(step), n)
        if key not in self._expected:
            self._expected[key] = self._shard(step, n)
        return self._expected[key]

    def _shard(self, step: Step, n: int) -> tuple[Poly, Lineage] | None:
        text = step.op.attributes.get("sharding")
        if not isinstance(text, str):
            return None
        sharding = shardings_of(text, tuple(v.type.rank for v in step.values), self.device.size)[n]
        if sharding is None or not sharding.is_plain:
            return None
        where = lineage(step.values[n].shape, sharding, self.device)
        return step.values[n].at(where.indices), where

    def counterparts(self, op: Op, *, of_any_name: bool = False) -> list[Step]:
        """Logical operations of the same origin, and of the same name if not of any."""
        return [s for s in self._by_location.get(op.location, []) if of_any_name or s.op.name == op.name]

    def _recognise(self, op: Op, value: Value) -> Value:
        tried = 0
        for step in self._candidates(op, value):
            for n, whole in enumerate(step.values):
                if len(whole.shape) != len(value.shape) or whole.type.dtype != value.type.dtype:
                    continue
                shard = self.expected(step, n)
                if shard is None or shard[1].shape != value.shape or (value.term.uid, shard[0].uid) in self._refused:
                    continue
                expected, where = shard
                if value.term is expected:
                    return value
                views = self._views(value.term, expected)
                tried += bool(views)
                if views and not self._may_try(tried):
                    return value
                if self._is_shard(views, where):
                    return self._cut(op, value, expected, where)
                self._refused.add((value.term.uid, expected.uid))
        return self._as_window(op, value)

    def _as_window(self, op: Op, value: Value) -> Value:
        """The value as a window over what a logical operation of the same origin slides over, if it is one."""
        steps = self.counterparts(op, of_any_name=True) if op.name == "select" else []
        slid = [name for step in steps if "window_strides" in step.op.attributes for name in step.op.operands]
        for tried, expected in enumerate(windows(value, [self._wholes[n] for n in slid if n in self._wholes])):
            key = value.term.uid, expected.uid
            if value.term is expected or key in self._refused or not self._may_try(tried):
                return value
            if self._is_shard([(value.term, expected)], Lineage((), ONE, value.shape)):
                return Value(value.type, expected)
            self._refused.add(key)
        return value

    def _candidates(self, op: Op, value: Value) -> Iterator[Step]:
        """Logical operations of the same origin that it may be: of its name, then any for what ends a resharding.

        The nearest first: what a value is made of is computed before it, in one layer of many from the same line.
        """
        found = [self.counterparts(op)]
        if op.name in ENDS:
            found.append([step for step in self.counterparts(op, of_any_name=True) if step.op.name != op.name])
        for steps in found:
            steps = [step for step in steps if not self.parts.are_apart(step.op, op)]
            after = bisect_left(steps, self._position(value.term), key=lambda step: step.position)
            yield from (*steps[after:], *reversed(steps[:after]))

    def _position(self, p: Poly) -> int:
        """The last of the logical module's operations where a tensor comes up that a term is made of."""
        found = -1
        for source in {read.tensor for read in reads(p)}:
            here = self._known.get(source, self._positions.get(source))
            if here is None:
                here = self._positions[source] = max(map(self._position, source.bodies), default=-1)
            found = max(found, here)
        return found

    def _views(self, found: Poly, expected: Poly) -> list[tuple[Poly, Poly]]:
        """Both terms as the questions to ask, where they are about the same tensors: first of what is between them and
        the last tensors that devices were seen to hold, then of all of it."""
        views = [(self._frontier.view(found), self._frontier.view(expected))]
        if views[0] != (found, expected):
            views.append((found, expected))
        return [(a, b) for a, b in views if opening.arguments(a) == opening.arguments(b)]

    def _is_shard(self, views: list[tuple[Poly, Poly]], where: Lineage) -> bool:
        """Whether two terms, in one view or another, are found to be equal where an element exists."""
        left, before = self.effort.left, made()
        is_equal = any(
            agree_at_points(*view, where.inside, self._differ) and self._are_equal(*view, where.inside)
            for view in views
        )
        if views:
            self.answered(is_equal)
        if is_equal:
            self.effort.left = left
            self._failures = self._wasted = self._refusals = 0
            return True
        self._refusals += 1
        self.session.meter.charge_terms(made() - before)
        self._failures += self.effort.left < left
        self._wasted += left - self.effort.left
        return False

    def is_result(self, found: Poly, expected: Poly, inside: Poly, *, briefly: bool = False) -> bool:
        """Whether what a result is and what it should be are found to be equal where an element exists; `briefly`, in
        a few steps."""
        if not self.session.affords():
            return False
        if briefly:
            return equal_briefly(found, expected, inside, self.session)
        left, before = self.effort.left, made()
        answer = any(self._is_result(*view, inside) for view in self.stand_ins.views(found, expected))
        if not answer:
            self._wasted += left - self.effort.left
            self.session.meter.charge_terms(made() - before)
        return answer

    def _is_result(self, found: Poly, expected: Poly, inside: Poly) -> bool:
        answer = self.is_piped(found, expected, inside, self.effort) or self._are_equal(found, expected, inside)
        return answer or self._is_network(found, expected, inside) or self._is_by_presence(found, expected, inside)

    def spare(self) -> None:
        """Compare the results of a module that is known to be wrong with less effort."""
        limits = self.session.limits
        self.effort.left = min(self.effort.left, limits.known_wrong_steps)
        self.network.left = min(self.network.left, limits.network_steps // SHARE_NETWORK)

    def is_piped(self, found: Poly, expected: Poly, inside: Poly, effort: Effort | None = None) -> bool:
        """Whether two results are equal by what pipelines, and those of a gradient, made turn by turn; case by case too
        with some effort."""
        known = {(each.line, each.way.rounds): each.way for each in self.piped if each.is_gradient}
        before = TurnsBefore.of(self.piped)
        return any(equal_along(way, before, (found, expected), inside, effort) for way in known.values())

    def _is_network(self, found: Poly, expected: Poly, inside: Poly) -> bool:
        """Whether two results are equal as sums of products; what that took counts where they are not."""
        meter, left = self.session.meter, self.network.left
        most = left if meter.left == math.inf else min(left, int(meter.left / (SHARE_LEFT * TERM)))
        if most <= 0:
            return False
        steps = Steps(most)
        is_same = same_network(found, expected, self.session, inside, steps)
        self.network.left = left if is_same else left - (most - steps.left)
        return is_same

    def _is_by_presence(self, found: Poly, expected: Poly, inside: Poly) -> bool:
        """Whether two results are equal where a mask holds somewhere, and where it holds nowhere."""
        told_apart = partial(same_by_presence, found, expected, partial(self._are_equal, inside=inside))
        return self.effort.within(self.session.limits.brief_steps, told_apart, "brief_steps")

    def _are_equal(self, found: Poly, expected: Poly, inside: Poly) -> bool:
        most = self.allowance()
        limit = "comparison_steps" if most == self.session.limits.comparison_steps else "vain_steps"
        return cases.equal(found, expected, inside, self.effort, most, limit)

    def allowance(self) -> int:
        """The steps that the next comparison may take: what is made of a wrong value is wrong, and not worth many."""
        limits = self.session.limits
        if self._wasted < limits.brief_steps:
            return limits.comparison_steps
        return min(limits.comparison_steps, max(limits.brief_steps, (limits.vain_steps - self._wasted) // 2))

    def _may_try(self, candidate: int) -> bool:
        """Whether a value may be compared with so many candidates."""
        limits = self.session.limits
        few, less = (SHARE_COMPARISONS, SHARE_STEPS) if self.known_wrong else (1, 1)
        if not allows("candidates", candidate):
            return False
        if self._failures > limits.vain_comparisons // few and self._wasted > limits.vain_steps // less:
            self.session.reached("vain_comparisons")
            return False
        if not allows("refusals", self._refusals) or not self.session.affords():
            return False
        self.session.candidates += 1
        return True

    def _differ(self, p: Poly) -> bool:
        """Whether a difference that did not cancel never will: the logical module's tensors are taken to differ."""
        return all(not read.tensor.bodies or read.tensor in self._known for read in reads(p))

    def _cut(self, op: Op, value: Value, expected: Poly, where: Lineage) -> Value:
        if where.inside is ONE:
            return Value(value.type, expected)
        past = padding.padding(op.name, value.type.dtype, value.shape, op.location)
        arbitrary = algebra.read(past, (expr.of_var(self.device), *positions(value.shape)))
        term = algebra.multiply(where.inside, expected)
        term = algebra.add(term, algebra.multiply(algebra.logical_not(where.inside), arbitrary))
        self.cuts.add(term.uid)
        return Value(value.type, term)
