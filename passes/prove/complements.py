"""Arguments of which both modules compute no more than what they leave of 1, as of flags that say where something ends.

    (1 - done[0])*(1 - done[1])*…        is, with done = 1 - on,        on[0]*on[1]*…

Terms are sums of products: what is on the left has two to the power of how many flags there are, and what is on the
right one. A truth value or a real number is what another of its kind leaves of 1, and each is so for one of them alone:
what is shown for all of those is shown for all arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hlo_verify.program.attributes import elements_once
from hlo_verify.program.ir import Function, Module, Name, Op
from hlo_verify.program.op_families import FORWARDS, KEEPS_SPLATS, REGION, SLICES
from hlo_verify.program.preconditions import assumed

_REAL = frozenset({"f16", "bf16", "f32", "f64"})
_MOVES = FORWARDS | KEEPS_SPLATS | SLICES | {"reverse", "all_gather"}


@dataclass(slots=True)
class _Uses:
    """What a module makes of its arguments, by their positions."""

    of: dict[Name, int]
    """The arguments, and what they are where they are moved or converted."""
    splats: dict[Name, float] = field(default_factory=dict)
    complements: set[int] = field(default_factory=set)
    others: set[int] = field(default_factory=set)
    """Those that anything else is made of."""

    def look(self, function: Function, handed_on: frozenset[int] = frozenset()) -> None:
        """At a function or region, which may hand on the results at some positions."""
        for op in function.ops:
            self._look_at(op)
        self._other(name for k, name in enumerate(function.results) if k not in handed_on)

    def _other(self, names: Iterable[Name]) -> None:
        self.others.update(self.of[name] for name in names if name in self.of)

    def _look_at(self, op: Op) -> None:
        if op.name == "constant":
            elements = elements_once(op.attributes["value"])
            if elements.size == 1:
                self.splats[op.results[0]] = elements.item()
        elif op.name in KEEPS_SPLATS | {"convert"} and len(op.operands) == 1 and op.operands[0] in self.splats:
            self.splats[op.results[0]] = self.splats[op.operands[0]]
        elif op.name == "while":
            self._look_into_a_loop(op)
        elif op.name == REGION:
            self._enter(op.regions[0], op.operands)
            self.look(op.regions[0])
        elif (k := self._complement_of(op)) is not None:
            self.complements.add(k)
            self._other(op.operands[1:] if op.name == "select" else ())
        elif self._is_moved(op):
            self.of.update(dict.fromkeys(op.results, self.of[op.operands[0]]))
            self._other(op.operands[1:])
        else:
            self._other(op.operands)
            for region in op.regions:
                self.look(region)

    def _enter(self, region: Function, given: Sequence[Name | None]) -> None:
        pairs = [(name, of) for name, of in zip(region.arguments, given, strict=True) if of is not None]
        self.of.update((name, self.of[of]) for name, of in pairs if of in self.of)
        self.splats.update((name, self.splats[of]) for name, of in pairs if of in self.splats)

    def _look_into_a_loop(self, op: Op) -> None:
        """A loop may look at an argument in each turn, if it hands it on as it is."""
        condition, body = op.regions
        kept = frozenset(k for k, name in enumerate(body.results) if name == body.arguments[k])
        self._other(of for k, of in enumerate(op.operands) if k not in kept)
        for region in op.regions:
            self._enter(region, [of if k in kept else None for k, of in enumerate(op.operands)])
        self.of.update((op.results[k], self.of[op.operands[k]]) for k in kept if op.operands[k] in self.of)
        self.look(condition)
        self.look(body, kept)

    def _complement_of(self, op: Op) -> int | None:
        """The argument that an operation gives what is left of 1 of, or something where it does not hold."""
        if op.name == "not" and op.types[0].dtype == "i1":
            return self.of.get(op.operands[0])
        if op.name == "subtract" and op.types[0].dtype in _REAL and self.splats.get(op.operands[0]) == 1:
            return self.of.get(op.operands[1])
        if op.name == "select" and self.splats.get(op.operands[1]) == 0:
            return self.of.get(op.operands[0])
        return None

    def _is_moved(self, op: Op) -> bool:
        if not op.operands or op.operands[0] not in self.of:
            return False
        return op.types[0].dtype in _REAL if op.name == "convert" else op.name in _MOVES


def complements(logical: Module, partitioned: Module) -> frozenset[int]:
    """The arguments, by position, that are used so, and of whose values nothing is said."""
    each = zip(logical.main.argument_types, assumed(logical), strict=True)
    real = [k for k, (type_, said) in enumerate(each) if type_.dtype in {*_REAL, "i1"} and said is None]
    uses = [_Uses({module.main.arguments[k]: k for k in real}) for module in (logical, partitioned)]
    for of, module in zip(uses, (logical, partitioned), strict=True):
        of.look(module.main)
    one, other = (of.complements - of.others for of in uses)
    return frozenset(one & other)
