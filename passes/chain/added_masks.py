"""Scores that are masked by a number that is added to them, in the place of which masks choose.

`softmax(s + where(keep, 0, -1e9))` and `softmax(where(keep, s, -1e9))` are one number to people, though not over the
reals: of what is masked, the one has the exponential of `s - 1e9`, the other of `-1e9`. So the first is read as the
second, and so is `s + (1 - keep)*-1e9`, if what is masked gets nowhere but into functions that are as good as constant
so far below (`masked_scores`). Where the largest of scores is taken, some score is not masked: that is shown of masks
that hang on no argument, on each device. Of others it is a named assumption where the reference makes NaN of a row that
is masked as a whole, and then the largest is subtracted from scores, and nothing else is done with it. What is only
shifted by a number, or is multiplied by another one than 0 and 1, is no mask.

In loops and branches, numbers that mask are read as minus infinity, whether they are added or chosen: there the largest
so far must be a number in each turn on each device, with minus infinity in their place (`always_numbers`). Of rows of
which a turn leaves nothing before one that leaves something, the number would leave a value that only vanishes later.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np

from hlo_verify.passes.chain.always_numbers import always_numbers
from hlo_verify.passes.chain.closed_values import closed_values
from hlo_verify.passes.chain.constant_values import known_numbers
from hlo_verify.passes.chain.masked import FAR, Masked
from hlo_verify.passes.chain.masked_scores import MaskWalk, devices_of, is_mask, numbers_in
from hlo_verify.passes.chain.masking_numbers import BELOW, are_finite_at_zero, is_only_subtracted, masks_of, read_as
from hlo_verify.passes.chain.reached import depending
from hlo_verify.program.attributes import elements_once, is_splat
from hlo_verify.program.element_types import DTYPES, is_float
from hlo_verify.program.ir import Fresh, Function, Module, Name, Op, TensorType, fresh_in, operations, value_types
from hlo_verify.program.op_families import KEEPS_SPLATS, LOOKUPS, MOVES, SLICES

MOVED = (KEEPS_SPLATS | MOVES | SLICES | LOOKUPS) - {"pad", "concatenate"}
"""Operations that give elements of their first operand, and no others."""

SAID = f"what masks by being added to scores is read as their place: {BELOW}"
INSIDE = f"what masks scores in loops or branches is read as minus infinity: {BELOW}"
LEFT = "; where the largest of scores is taken, not all of them are masked"


def both_chosen(given: Module, partitioned: Module) -> tuple[Module | None, Module | None]:
    """Both modules with such masks as `with_chosen_masks` gives, None where it gives none of a module. Of scores that
    are all masked, a softmax of their own is left where a number is added, a mean where it is chosen, and nothing where
    the given module masks by minus infinity alone: only then it may be assumed that there are none such."""
    return with_chosen_masks(given), with_chosen_masks(partitioned, may_assume=masks_of(given) == {-inf})


def with_chosen_masks(module: Module, *, may_assume: bool = False) -> Module | None:
    """A module with masks that choose in the place of those that are added, or with minus infinity in the place of
    numbers in loops; None where there are none of them, or the two may not be the same. `may_assume` says whether it
    may be assumed that some score is not masked."""
    if not any(is_mask(op) and np.isfinite(numbers_in(op)).all() for op in operations(module.main)):
        return None
    walk = _walk(module)
    is_inside = not walk.is_followed(module.main) or walk.is_taken_inside
    if is_inside:  # what is a number there is found with these masks read
        walk = _walk(module, walk.types)
        if not walk.is_followed(module.main):
            return None
    if not (walk.added or (is_inside and walk.has_numbers)) or not walk.is_far_from_others(module):
        return None
    devices = devices_of(module)
    read = replace(module, main=_Choices(walk, fresh_in(module.main)).made(module.main))
    infinite, said = read_as(read, -inf, walk), SAID
    if is_inside:
        is_left, read, said = _are_numbers_inside(module, infinite, devices), infinite, INSIDE
    elif walk.conditions <= closed_values(module.main).keys():
        is_left = are_finite_at_zero(infinite, walk.largest, devices)
    else:
        is_left, said = may_assume and is_only_subtracted(module.main, walk), SAID + LEFT
    return replace(read, notes=(*module.notes, said)) if is_left else None


def _are_numbers_inside(module: Module, infinite: Module, devices: int) -> bool:
    """Whether, in loops and branches, nothing but what is far below is ever subtracted from what is: in a turn that
    leaves nothing of a row, the largest is minus infinity, and no number is left of it. The module with minus infinity
    in its place shows what is a number there, if no argument has a say in what masks, or in turns and branches."""
    walk = _walk(module, always_numbers(infinite, devices))
    return walk.is_harmless(module) and walk.conditions.isdisjoint(depending(module.main))


@dataclass(slots=True)
class _AddedWalk(MaskWalk):
    """Follows what is masked, and finds the sums that mask."""

    types: Mapping[Name, TensorType] = field(default_factory=dict)
    truths: set[Name] = field(default_factory=set)
    """The floats that are 0 or 1."""
    added: dict[Name, tuple[Name, Name]] = field(default_factory=dict)
    """The sums that mask, each with what masks and what is masked."""
    products: dict[Name, tuple[Name, Name]] = field(default_factory=dict)
    """The products of a truth and a number that masks, each with these."""

    def _of(self, op: Op) -> Masked | None:
        if self._is_truth(op):
            self.truths.update(op.results)
        if op.name == "multiply":
            for truth, number in (op.operands, op.operands[::-1]):
                masked = self.masked.get(number)
                if truth in self.truths and masked is not None and masked.is_all and number not in self.infinite:
                    self.products[op.results[0]] = truth, number
                    self.conditions.add(truth)
                    return replace(masked, is_all=False, is_added=True)
        return MaskWalk._of(self, op)

    def _added(self, op: Op, given: list[Masked | None]) -> Masked:
        for masks, scores in ((0, 1), (1, 0)):
            mask, other = given[masks], given[scores]
            if mask is not None and mask.is_added and not (other is not None and other.is_added):
                self.added[op.results[0]] = op.operands[masks], op.operands[scores]
        return MaskWalk._added(self, op, given)

    def _is_truth(self, op: Op) -> bool:
        """Whether an operation gives floats that are 0 or 1."""
        if len(op.results) != 1 or not is_float(op.types[0].dtype):
            return False
        if op.name == "convert":
            (given,) = op.operands
            return given in self.truths or self.types[given].dtype == "i1"
        if op.name == "subtract":
            one = self.numbers.get(op.operands[0])
            return one is not None and one.exact == 1 and op.operands[1] in self.truths
        return op.name in MOVED and op.operands[0] in self.truths


def _walk(module: Module, always: Container[Name] | None = None) -> _AddedWalk:
    return _AddedWalk(known_numbers(module.main), types=value_types(module.main), always=always)


@dataclass(slots=True)
class _Choices:
    """Writes a function with a choice for each sum that masks, and for each product of a truth."""

    walk: _AddedWalk
    fresh: Fresh
    marks: dict[Name, Name] = field(default_factory=dict)
    """Where values mask that are 0 elsewhere, as truth values."""

    def made(self, function: Function) -> Function:
        return replace(function, ops=tuple(each for op in function.ops for each in self._of(op)))

    def _of(self, op: Op) -> Iterator[Op]:
        name = op.results[0] if op.results else None
        masked = self.walk.masked.get(name) if name is not None else None
        if name in self.walk.added:
            mask, scores = self.walk.added[name]
            if mask not in self.marks:
                yield from self._compared(mask, "LT", op)
            yield replace(op, name="select", operands=(self.marks[mask], mask, scores), attributes={})
        elif name in self.walk.products:
            truth, number = self.walk.products[name]
            yield from self._compared(truth, "NE", op)
            self.marks[name] = self.marks.pop(truth)
            zero = self._constant(np.zeros((), DTYPES[op.types[0].dtype]), op)
            yield zero
            operands = self.marks[name], number, zero.results[0]
            yield replace(op, name="select", operands=operands, attributes={})
        else:
            yield replace(op, regions=tuple(map(self.made, op.regions)))
            if masked is not None and masked.is_added and len(op.results) == 1:
                yield from self._marked(op)

    def _compared(self, value: Name, direction: str, op: Op) -> Iterator[Op]:
        """Where a value of an operation's type is less than 0, or is not 0."""
        zero = self._constant(np.zeros((), DTYPES[op.types[0].dtype]), op)
        how = {"comparison_direction": direction, "compare_type": "FLOAT"}
        yield zero
        yield self._mark(replace(op, name="compare", operands=(value, *zero.results), attributes=how), value)

    def _marked(self, op: Op) -> Iterator[Op]:
        """Where the result of an operation masks; nothing where that takes more than these make of it."""
        (name,) = op.results
        marks = [self.marks.get(v) for v in op.operands]
        if op.name == "constant":
            value = op.attributes["value"]
            marked = elements_once(value).astype(float) <= FAR
            marked = np.broadcast_to(marked.reshape(-1)[0], value.shape) if is_splat(value) else marked
            yield self._mark(replace(op, attributes={**op.attributes, "value": marked}), name)
        elif op.name == "convert" and marks[0] is not None:
            self.marks[name] = marks[0]
        elif op.name in MOVED and marks[0] is not None:
            yield self._mark(replace(op, operands=(marks[0], *op.operands[1:])), name)
        elif op.name == "select" and all(m is not None or self.walk.is_zero(v) for m, v in _chosen(op, marks)):
            nowhere = self._constant(np.zeros((), bool), op)
            yield nowhere
            chosen = (nowhere.results[0] if mark is None else mark for mark, _ in _chosen(op, marks))
            yield self._mark(replace(op, operands=(op.operands[0], *chosen)), name)
        elif op.name == "minimum" and (found := [mark for mark in marks if mark is not None]):
            yield self._mark(replace(op, name="or", operands=(found[0], found[-1])), name)

    def _mark(self, op: Op, value: Name) -> Op:
        """The operation with a truth value of its own as its result, which says where a value masks."""
        self.marks[value] = self.fresh.one()
        return replace(op, results=(self.marks[value],), types=(replace(op.types[0], dtype="i1"),))

    def _constant(self, value: Any, op: Op) -> Op:
        """A number everywhere, as large as an operation's result."""
        dtype = "i1" if value.dtype == bool else op.types[0].dtype
        type_ = replace(op.types[0], dtype=dtype)
        array = np.broadcast_to(value, type_.shape)
        return Op("constant", (), (self.fresh.one(),), (type_,), {"value": array}, location=op.location)


def _chosen(op: Op, marks: Sequence[Name | None]) -> list[tuple[Name | None, Name]]:
    return list(zip(marks, op.operands, strict=True))[1:]
