"""Where in a function the numbers get that mask scores: through what moves them, choices, loops and branches."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np

from hlo_verify.passes.chain.constant_values import Computed
from hlo_verify.passes.chain.masked import (
    ABOVE,
    FAR,
    HALF_WAY,
    LEAST,
    Masked,
    ReachesMoreError,
    is_far_below,
    is_moved,
    of_all,
    shifted,
)
from hlo_verify.passes.chain.reached import depending, large_values
from hlo_verify.program import op_families
from hlo_verify.program.attributes import elements_once
from hlo_verify.program.element_types import is_float
from hlo_verify.program.ir import Function, Module, Name, Op, operations, used
from hlo_verify.program.op_families import BRANCHES, FILLS, KEEPS_SPLATS, LOOKUPS, MOVES, PARTS, RESHAPES, SLICES, live
from hlo_verify.program.pair import is_global

MOVED = KEEPS_SPLATS | MOVES | RESHAPES | SLICES | PARTS | FILLS | LOOKUPS

SATURATED = frozenset({"exponential", "logistic", "tanh"})
"""Functions that are the same of all numbers that are far below."""

GREATER = BRANCHES | {"maximum", "while"}
"""Operations that give the greater of what is masked and scores, or may have taken it inside."""


def _meeting(op: Op) -> Sequence[Name]:
    """What an operation computes something of together, but for what a comparison is with, and places."""
    return () if op.name == "compare" else op.operands[:1] if op.name in LOOKUPS else op.operands


def devices_of(module: Module) -> int:
    """On how many devices a module is to be evaluated: a global one has its own mesh."""
    return 1 if is_global(module) else (module.partitions or 1) * module.replicas


@dataclass(slots=True)
class MaskWalk:
    """Follows what is masked through a function."""

    numbers: Mapping[Name, Computed]
    masked: dict[Name, Masked] = field(default_factory=dict)
    infinite: set[Name] = field(default_factory=set)
    """What is minus infinity everywhere."""
    largest: set[Name] = field(default_factory=set)
    """What is the largest of elements some of which are masked."""
    scores: set[Name] = field(default_factory=set)
    """What is made of these by moving them: scores, that are far above what masks."""
    is_taken_inside: bool = False
    """Whether some of these are taken in loops or branches."""
    conditions: set[Name] = field(default_factory=set)
    """What says which are."""
    has_numbers: bool = False
    """Whether numbers mask that get into an exponential (or the like), and not minus infinity alone."""
    depends: frozenset[Name] = frozenset()
    """What depends on an argument, where `always` is known."""
    may_keep: bool = False
    """Whether an operation that makes more of what is masked is one that takes it as it stands, and ends nothing."""
    kept: set[Name] = field(default_factory=set)
    """What such operations give."""
    is_read: bool = False
    """Whether something is computed of what is masked that is the same in either reading."""
    meets: list[Op] = field(default_factory=list)
    """What is computed of something that is masked, and of others."""
    always: Container[Name] | None = None
    """What is a number in each turn of each loop, where that is known and asked for: the largest of scores is one
    there alone, and else is masked itself."""

    def is_score(self, value: Name) -> bool:
        """Whether it has scores, or is below all of them in either reading."""
        return value in self.infinite or (value in self.masked and not self.masked[value].is_all)

    def is_harmless(self, module: Module) -> bool:
        """Whether what is masked gets nowhere where its value matters, and meets nothing as large as it is."""
        return self.is_followed(module.main) and self.is_far_from_others(module)

    def is_followed(self, function: Function) -> bool:
        """Whether what is masked gets nowhere where its value matters, far below all else as it is."""
        if self.always is not None:
            self.depends = depending(function)
        try:
            self._through(function)
        except ReachesMoreError:
            return False
        return self.is_read if self.may_keep else self.masked.keys().isdisjoint(function.results)

    def is_far_from_others(self, module: Module) -> bool:
        """Whether what is masked meets nothing as large as it is, of which scores could be below it."""
        met = {v for op in self.meets for v in _meeting(op) if v not in self.masked}
        return not met or met.isdisjoint(large_values(module, devices_of(module), -ABOVE, self.masked))

    def conditions_of_largest(self, function: Function) -> set[Name]:
        """What says which of the scores are masked that the largest is taken of."""
        if not self.may_keep:
            return self.conditions
        found = set(self.largest)
        for op in reversed(function.ops):
            if not found.isdisjoint(op.results):
                found.update(used(op))
        return self.conditions & found

    def _through(self, function: Function) -> None:
        for op in live(function):
            if op.name in ("while", op_families.REGION) or op.name in BRANCHES:
                self._inside(op)
                continue
            found = self._constant(op) if is_mask(op) else self._made_of(op)
            if found is not None:
                self._keep(op, dict.fromkeys(op.results, found))
            if op.name in KEEPS_SPLATS and op.operands[0] in self.infinite:
                self.infinite.update(op.results)

    def _keep(self, op: Op, found: Mapping[Name, Masked]) -> None:
        """What is masked of an operation's results, but for what is always a number where the greater is taken, and
        after it."""
        always = () if self.always is None or op.name not in GREATER else self.always
        self.masked.update({value: masked for value, masked in found.items() if value not in always})
        self.scores.update(value for value in found if value in always)

    def _constant(self, op: Op) -> Masked:
        """What is masked of a constant: beside other numbers, what masks is one that does."""
        numbers = numbers_in(op)
        if (numbers == -inf).all():
            self.infinite.update(op.results)
        masks = numbers <= FAR
        if not (masks | (np.abs(numbers) <= -ABOVE)).all():
            raise ReachesMoreError
        is_one_kind = bool(np.isfinite(numbers).all() or (numbers == -inf).all())
        return Masked(
            is_all=is_one_kind and bool(masks.all()),
            is_added=bool((masks | (numbers == 0)).all()),
            is_infinite=bool((numbers[masks] == -inf).all()),
        )

    def _inside(self, op: Op) -> None:
        """Follows what is masked into the regions of an operation that runs them. There it is read as a whole."""
        if self.may_keep and (self._has_inside(op) or not self.masked.keys().isdisjoint(op.operands)):
            raise ReachesMoreError
        if op.name == "while":
            self._loop(op)
        elif op.name in BRANCHES:
            self._branches(op)
        else:
            self._manual(op)

    def _has_inside(self, op: Op) -> bool:
        """Whether something masks, or is masked, in an operation's regions."""
        inner = [each for region in op.regions for each in operations(region)]
        inside = {v for each in inner for v in each.operands} | {v for r in op.regions for v in r.results}
        return not self.masked.keys().isdisjoint(inside) or any(map(is_mask, inner))

    def _made_of(self, op: Op) -> Masked | None:
        """What is masked of an operation's results, if it does not take what is masked as it stands."""
        try:
            found = self._of(op)
        except ReachesMoreError:
            if not self.may_keep or self._has_inside(op):
                raise
            self.kept.update(op.results)
            return None
        self.is_read |= found is None and any(v in self.masked and not self.masked[v].is_all for v in op.operands)
        return found

    def _of(self, op: Op) -> Masked | None:
        """What is masked of an operation's results; None where nothing is."""
        if self._has_inside(op):
            raise ReachesMoreError
        given = [self.masked.get(v) for v in op.operands]
        if op.name in ("reduce", "reduce_window"):
            given = given[: len(given) // 2]  # what they start from is no mask
        some = [each for each in given if each is not None]
        if not some:
            if op.name in MOVED and op.operands and self.scores >= {*op.operands}:
                self.scores.update(op.results)
            return None
        self.meets.append(op)
        if op.name == "reduce" and _is_the_largest(op):
            if self.always is not None and op.results[0] not in self.always:
                return of_all(some)
            self.largest.add(op.results[0])
            self.scores.add(op.results[0])
            return None
        if op.name == "convert" and not is_float(op.types[0].dtype):
            raise ReachesMoreError
        if op.name in MOVED:
            if op.name in LOOKUPS:
                self.conditions.update(op.operands[1:])
            if len(given) == 1 or op.name in LOOKUPS:
                return some[0].moved
            return replace(of_all(some), is_all=False)
        if op.name == "select":
            return self._selected(op)
        if op.name == "maximum":
            if len(some) == len(given):
                return of_all(some)
            if any(v in self.depends for v in op.operands if v not in self.masked and v not in self.scores):
                raise ReachesMoreError  # what an argument gives may be below what masks
            return None
        if any(each.is_all for each in some) and op.name != "exponential":
            raise ReachesMoreError
        if op.name == "compare" and self._is_above(op, given):
            return None
        if op.name in SATURATED and len(some) == 1:
            self.has_numbers |= not some[0].is_infinite
            return None
        if op.name == "minimum":
            return replace(of_all(some), is_added=self._is_added(op.operands))
        if op.name == "add":
            return self._added(op, given)
        if op.name == "subtract" and given[1] is None:
            return given[0] and shifted(given[0])
        if op.name in ("multiply", "divide"):
            return self._scaled(op, given)
        raise ReachesMoreError

    def _is_above(self, op: Op, given: list[Masked | None]) -> bool:
        """Whether what scores are compared with is surely above those that are masked: the largest of them, or a number
        that is far from what masks."""
        (masked, other), *others = [(m, v) for m, v in zip(given, reversed(op.operands), strict=True) if m is not None]
        number = self.numbers.get(other)
        is_far = number is not None and number.exact > HALF_WAY * FAR * masked.scale
        return not others and (is_far or other in self.scores)

    def _added(self, op: Op, given: list[Masked | None]) -> Masked:
        """What is masked of a sum: all that one of both masks."""
        some = [each for each in given if each is not None]
        if len(some) == 1:
            return shifted(some[0])
        return replace(of_all(some), is_added=all(each.is_added for each in some))

    def _selected(self, op: Op) -> Masked | None:
        condition, *chosen = op.operands
        if condition in self.masked:
            raise ReachesMoreError
        self.conditions.add(condition)
        left: list[Masked] = []
        for value, chosen_if in zip(chosen, (True, False), strict=True):
            masked = self.masked.get(value)
            if masked is not None and (condition, not chosen_if) not in masked.under:
                left.append(replace(masked, under=masked.under | {(condition, chosen_if)}, is_all=False))
        if not left:
            return None
        return replace(left[0] if len(left) == 1 else of_all(left), is_added=self._is_added(chosen))

    def _is_added(self, values: Iterable[Name]) -> bool:
        """Whether all that is not masked of some values is 0."""
        return all(masked.is_added if (masked := self.masked.get(v)) else self.is_zero(v) for v in values)

    def is_zero(self, value: Name) -> bool:
        """Whether a value is 0 everywhere."""
        number = self.numbers.get(value)
        return number is not None and number.exact == 0

    def _scaled(self, op: Op, given: list[Masked | None]) -> Masked:
        """What is masked, multiplied or divided by a number that leaves it far below."""
        for value, other, masked in zip(op.operands, reversed(op.operands), given, strict=True):
            number = self.numbers.get(other)
            is_scaled = op.name == "multiply" or value == op.operands[0]
            if masked is None or number is None or not is_scaled or number.exact <= 0:
                continue
            factor = float(number.exact if op.name == "multiply" else 1 / number.exact)
            scale = min(masked.scale, factor * masked.scale)
            if scale >= LEAST and is_far_below(masked.shifts, scale):
                return replace(masked, scale=scale)
        raise ReachesMoreError

    def _manual(self, op: Op) -> None:
        """What is masked inside of a manual region: devices have parts of it."""
        (region,) = op.regions
        for inner, outer in zip(region.arguments, op.operands, strict=True):
            if outer in self.masked:
                self.masked[inner] = self.masked[outer].moved
            if outer in self.infinite:
                self.infinite.add(inner)
        self._through(region)
        for result, inner in zip(op.results, region.results, strict=True):
            if inner in self.masked:
                self.masked[result] = self.masked[inner].moved

    def _branches(self, op: Op) -> None:
        """What is masked in one of some branches is."""
        if op.operands[0] in self.masked:
            raise ReachesMoreError
        taken = set(self.largest)
        for region in op.regions:
            self._through(region)
        self.is_taken_inside |= self.largest != taken
        is_masked = not self.masked.keys().isdisjoint(v for region in op.regions for v in region.results)
        if is_masked or self._decides(op):
            self.conditions.add(op.operands[0])
        for n, result in enumerate(op.results):
            some = [self.masked[region.results[n]] for region in op.regions if region.results[n] in self.masked]
            if some:
                self._keep(op, {result: replace(of_all(some), is_all=False)})

    def _loop(self, op: Op) -> None:
        """What a loop carries is masked if it is at the start or after a turn."""
        condition, body = op.regions
        carried = [self._carried(v) for v in op.operands]
        taken = set(self.largest)
        while True:
            for region in (condition, body):
                for argument, masked in zip(region.arguments, carried, strict=True):
                    if masked is not None:
                        self.masked[argument] = masked
            self._through(condition)
            if not self.masked.keys().isdisjoint(condition.results):
                raise ReachesMoreError
            self._through(body)
            after = [self._carried(v) or was for v, was in zip(body.results, carried, strict=True)]
            if any(was and now and is_moved(was, now) for was, now in zip(carried, after, strict=True)):
                raise ReachesMoreError  # a little more in each turn
            if [x is None for x in after] == [x is None for x in carried]:
                break
            carried = after
        self.is_taken_inside |= self.largest != taken
        if any(carried) or self._decides(op):
            self.conditions.update(_deciding(op))
        self._keep(op, {v: x for v, x in zip(op.results, carried, strict=True) if x is not None})

    def _decides(self, op: Op) -> bool:
        """Whether what is always a number hangs on the branch that is taken, or on the turns of a loop: something is
        masked inside."""
        inside = (v for region in op.regions for inner in operations(region) for v in (*inner.operands, *inner.results))
        return self.always is not None and not self.masked.keys().isdisjoint(inside)

    def _carried(self, value: Name) -> Masked | None:
        masked = self.masked.get(value)
        return masked and Masked(scale=masked.scale, is_infinite=masked.is_infinite, shifts=masked.shifts)


def _deciding(op: Op) -> set[Name]:
    """The values outside of a loop that decide how often it goes round."""
    condition, body = op.regions
    places = {argument: k for region in (condition, body) for k, argument in enumerate(region.arguments)}
    found, left = set[Name](), list(condition.results)
    made = {v: inner for region in (condition, body) for inner in operations(region) for v in inner.results}
    seen = set[Name]()
    while left:
        value = left.pop()
        if value in seen:
            continue
        seen.add(value)
        if value in places:
            found.add(op.operands[places[value]])
            left.append(body.results[places[value]])
        elif value in made:
            left.extend(used(made[value]))
        else:
            found.add(value)
    return found


def _is_the_largest(op: Op) -> bool:
    """Whether a reduction takes the greatest element, or finds where it is."""
    (region,) = op.regions
    if len(op.results) == 1:
        return [inner.name for inner in region.ops] == ["maximum"]
    values = region.arguments[0], region.arguments[len(op.results)]
    orders = [
        inner.attributes["comparison_direction"]
        for inner in region.ops
        if inner.name == "compare" and {*inner.operands} == {*values}
    ]
    greater = any(
        inner.attributes["comparison_direction"] == "GT" and inner.operands == values
        for inner in region.ops
        if inner.name == "compare"
    )
    return greater and "LT" not in orders


def is_mask(op: Op) -> bool:
    """Whether an operation gives numbers of which some mask."""
    if op.name != "constant" or not op.types[0].dtype.startswith(("f", "bf")):
        return False
    return bool((numbers_in(op) <= FAR).any())


def numbers_in(op: Op) -> Any:
    """The numbers of a constant, those of a splat once."""
    return elements_once(op.attributes["value"]).astype(float).reshape(-1)
