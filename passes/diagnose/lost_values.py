"""Both modules' values, and which of the partitioned one's have lost their meaning.

A value keeps its meaning if it is a shard of a logical value, or a piece of one on its way to become a shard.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from hlo_verify.ops.values import Value
from hlo_verify.passes.diagnose.dataflow import Flow
from hlo_verify.passes.diagnose.differences import Difference, difference
from hlo_verify.passes.diagnose.shard_match import Shards
from hlo_verify.passes.diagnose.term_contents import tensors
from hlo_verify.passes.prove.notation import Notation
from hlo_verify.passes.prove.stages import Stages, Step
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.program.ir import Name, Op
from hlo_verify.terms.term import Poly

NEAREST = 24
"""The most logical terms that a lost one is compared with."""

Nearest = tuple[Poly, Step | None, Difference]
"""A term that was expected, the logical operation that computes it, and how a lost one differs."""


@dataclass(slots=True)
class Values:
    """What is known of both modules' values. `flow` is the partitioned module's, `logical` the other's."""

    stages: Stages
    shards: Shards = field(init=False)
    notation: Notation = field(init=False)
    flow: Flow = field(init=False)
    logical: Flow = field(init=False)
    by_hand: bool = field(init=False)
    """Whether the partitioned module was written for each device, its collectives included."""
    _lost: dict[Name, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.shards = Shards(self.stages)
        self.notation = Notation(self.stages.logical)
        self.flow = Flow(self.stages.partitioned)
        self.logical = Flow(self.stages.logical)
        self.by_hand = any(step.op.name == "sdy.manual_computation" for step in self.stages.partitioned)

    def is_lost(self, name: Name) -> bool:
        """Whether a computed value of the partitioned module has lost its meaning."""
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
        if dtype not in INTEGER_RANGES:
            return not self.shards.is_elsewhere(value)
        k = self.flow.result(name)
        return bool(op.location.frames) and any(
            len(other.values) > k and other.values[k].type.rank == value.type.rank
            for other in self.stages.counterparts(op)
        )

    def lost_before(self, name: Name) -> list[Name]:
        """The lost values that a value follows from through lost values alone, itself included, in order."""
        if name not in self.flow:
            return []
        return sorted(filter(self.is_lost, self.flow.back(name, self.is_lost)), key=self.flow.order)

    # What should have been

    def nearest(self, candidates: Iterator[tuple[Step | None, Poly]], value: Value) -> Nearest | None:
        """The candidate that differs least."""
        best: Nearest | None = None
        for step, expected in islice(candidates, NEAREST):
            said = difference(value.term, expected, self.notation)
            if best is None or said.size < best[2].size:
                best = expected, step, said
        return best

    def candidates(self, name: Name, value: Value) -> Iterator[tuple[Step | None, Poly]]:
        """Shards of what the logical operation of the same kind and origin computes, of terms of the same form, and of
        what the value is made from."""
        yield from self.counterparts(self.flow.op(name), value)
        wholes = list(self.shards.alike(value))
        for source in self.flow.sources(name):
            match = self.shards.match(self.flow.value(source))
            if match is not None and match.term.constant is None and match.factor == 1:
                wholes.append((match.step, match.whole))
        wholes += [(None, argument) for argument in self.arguments_in(value)]
        for step, whole in wholes:
            for term in self.shards.shards(whole, value.shape):
                yield step, term

    def arguments_in(self, value: Value) -> list[Value]:
        """The logical module's arguments that a value's term reads."""
        read = tensors(value.term)
        return [argument for argument in self.stages.arguments if tensors(argument.term) <= read]

    def counterparts(self, op: Op, value: Value) -> Iterator[tuple[Step | None, Poly]]:
        """Shards of what the logical operation of the same kind and origin computes, else of what others there do."""
        same = self.stages.counterparts(op) or self.stages.counterparts(op, of_any_name=bool(op.location.frames))
        for step in same:
            for whole in step.values:
                for term in self.shards.shards(whole, value.shape):
                    yield step, term
