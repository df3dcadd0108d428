"""Stages: recognise partitioned values as shards of logical tensors, operation by operation.

Most values are recognised by construction: equal functions have one definition, so a partitioned value
is a read of the very tensor that the logical module defined. Where it is not (halo exchanges, padding,
masks), the logical operation of the same origin says what is expected, its sharding where, and
`solver.cases` decides. Either way the value becomes a cut point: later terms read the logical tensor.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.ir import Location, Op
from hlo_verify.ops.values import Value, positions
from hlo_verify.passes.lineage import Lineage, lineage
from hlo_verify.sharding import Sharding, parse_sharding
from hlo_verify.solver import cases, opening
from hlo_verify.solver.integers import Effort
from hlo_verify.terms import algebra, padding
from hlo_verify.terms.term import ONE, ZERO, Guard, Poly, Read, Tensor, reads

ATTEMPTS = 12
"""The most candidates that one partitioned value is compared with."""

FAILURES = 16
"""After so many comparisons in a row without success, the module is taken to be wrong from there on."""

FEW, WASTED = 4, 500
"""For a module that is known to be wrong somewhere, so many are enough if they took so many steps together."""

EFFORT = 8000
"""The most steps of case distinction for all of a module's values and results together."""

ENDS = frozenset("all_reduce all_gather all_to_all dynamic_slice select slice reshape add concatenate".split())
"""Operations that may be the last of what the partitioner made of one logical operation of another kind."""


@dataclass(frozen=True, slots=True)
class Step:
    """One operation that was interpreted, with the values of its results."""

    op: Op
    values: tuple[Value, ...]


@dataclass(slots=True)
class Stages:
    """What both modules computed, in order, and the cut points found by case distinction."""

    device: Var
    decide: bool = True
    """Whether values that are not recognised by construction are compared case by case."""
    progress: Callable[[int], None] | None = None
    known_wrong: bool = False
    """Whether a result is known to differ."""
    effort: Effort = field(default_factory=lambda: Effort(EFFORT))
    arguments: list[Value] = field(default_factory=list)
    """The logical module's arguments."""
    placements: list[Sharding] = field(default_factory=list)
    """How arguments and results are sharded."""
    logical: list[Step] = field(default_factory=list)
    partitioned: list[Step] = field(default_factory=list)
    cuts: set[int] = field(default_factory=set)
    """The uids of terms that were found to be shards by case distinction."""
    diagnosis: Any = None
    """What `diagnose` has worked out, for the findings about all results."""
    _known: set[Tensor] = field(default_factory=set)
    _lost: dict[int, bool] = field(default_factory=dict)
    _by_location: dict[Location, list[Step]] = field(default_factory=dict)
    _expected: dict[tuple[int, int], tuple[Poly, Lineage] | None] = field(default_factory=dict)
    _shapes: set[int] = field(default_factory=set)
    _failures: int = 0
    """Comparisons without success since the last one with; and the steps that they took."""
    _wasted: int = 0
    _refused: set[tuple[int, int]] = field(default_factory=set)

    def record_logical(self, op: Op, values: list[Value]) -> list[Value]:
        """Note an operation of the logical module."""
        step = Step(op, tuple(values))
        self.logical.append(step)
        self._advance()
        self._by_location.setdefault(op.location, []).append(step)
        for value in values:
            self._learn(value.term)
            self._shapes.add(value.term.skey)
        return values

    def known(self, value: Value) -> bool:
        """Whether a value is a function of logical tensors that the logical module computes somewhere too.

        Integers, constants and masks count as known: they are how offsets are computed, not what is lost.
        """
        term = value.term
        if value.type.dtype in algebra.INTEGER_RANGES or term.constant is not None:
            return True
        return not self.lost(term) and term.skey in self._shapes

    def _learn(self, p: Poly) -> None:
        for read in reads(p):
            self._known.add(read.tensor)

    def record_partitioned(self, op: Op, values: list[Value]) -> list[Value]:
        """Note an operation of the partitioned module; its values, recognised where they need to be."""
        if self.decide:
            values = [self._recognise(op, value) if self.needs_match(value.term) else value for value in values]
        self.partitioned.append(Step(op, tuple(values)))
        self._advance()
        return values

    def _advance(self) -> None:
        done = len(self.logical) + len(self.partitioned)
        if self.progress is not None and done % 64 == 0:
            self.progress(done)

    def cut_points(self) -> Iterator[tuple[Op, Read, bool]]:
        """The partitioned module's operations that compute shards of logical tensors, in order: of which elements, and
        whether of a tensor that an earlier one computes a shard of too."""
        seen: set[Tensor] = set()
        for step in self.partitioned:
            for value in step.values:
                atom = value.term.atom
                if isinstance(atom, Read) and atom.tensor.bodies and atom.tensor in self._known:
                    yield step.op, atom, atom.tensor in seen
                    seen.add(atom.tensor)

    def lost(self, p: Poly) -> bool:
        """Whether a term reads something that the logical module does not define."""
        found = self._lost.get(p.uid)
        if found is None:
            found = self._lost[p.uid] = any(
                read.tensor not in self._known and (read.tensor.bodies or read.tensor.kind in ("opaque", padding.KIND))
                for read in reads(p)
            )
        return found

    def needs_match(self, p: Poly) -> bool:
        """Whether a term is not obviously a function of logical values: it is lost, or guarded by the device."""
        if self.lost(p):
            return True
        return self.device in p.free and any(
            isinstance(a, Guard) and self.device in a.free for mono, _ in p.items for a, _ in mono
        )

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
        shardings = parse_sharding(text, [v.type.rank for v in step.values], self.device.size)
        sharding = shardings[n]
        if sharding is None or not sharding.is_plain:
            return None
        where = lineage(step.values[n].shape, sharding, self.device)
        return step.values[n].at(where.indices), where

    def candidates(self, op: Op) -> list[Step]:
        """Logical operations of the same origin: of the same kind, or any for what ends a resharding."""
        same = self.counterparts(op)
        if op.name not in ENDS:
            return same
        others = reversed(self.counterparts(op, of_any_kind=True))
        return [*same, *(step for step in others if step.op.name != op.name)]

    def counterparts(self, op: Op, *, of_any_kind: bool = False) -> list[Step]:
        """Logical operations of the same origin, and of the same kind if not of any."""
        steps = self._by_location.get(op.location, [])
        return [step for step in steps if of_any_kind or step.op.name == op.name]

    def _recognise(self, op: Op, value: Value) -> Value:
        tried = 0
        for step in self.candidates(op):
            for n, whole in enumerate(step.values):
                if len(whole.shape) != len(value.shape) or whole.type.dtype != value.type.dtype:
                    continue
                shard = self.expected(step, n)
                if shard is None or shard[1].shape != value.shape or (value.term.uid, shard[0].uid) in self._refused:
                    continue
                expected, where = shard
                tried += 1
                if tried > ATTEMPTS:
                    return value
                if value.term is expected:
                    return value
                if self._has_given_up() or not self._plausible(value, expected, where):
                    continue
                left = self.effort.left
                if cases.equal(value.term, expected, where.inside, self.effort):
                    self._failures = self._wasted = 0
                    return self._cut(op, value, expected, where)
                self._failures += 1
                self._wasted += left - self.effort.left
                self._refused.add((value.term.uid, expected.uid))
        return value

    def _has_given_up(self) -> bool:
        if self._failures > FAILURES:
            return True
        return self.known_wrong and self._failures > FEW and self._wasted > WASTED

    def _plausible(self, value: Value, expected: Poly, where: Lineage) -> bool:
        """Whether the two are about the same arguments and agree at a few points: a quick way to refuse."""
        if opening.arguments(value.term) != opening.arguments(expected):
            return False
        generator = random.Random(0)
        difference = algebra.multiply(where.inside, algebra.subtract(value.term, expected))
        if len(difference.items) > opening.TERMS:
            return False
        for _ in range(3):
            point: dict[Var, Index] = {
                v: expr.constant(generator.randrange(v.size)) for v in difference.free if v.size < expr.UNBOUNDED
            }
            here = opening.opened(algebra.substitute(difference, point))
            decided = not any(isinstance(a, Guard) for mono, _ in here.items for a, _ in mono)
            if here is not ZERO and decided and self._differ(here):
                return False
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
