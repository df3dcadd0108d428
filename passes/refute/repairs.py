"""Repairs: small edits of the partitioned module at the operation at fault, one of which may make it right.

    a value        all_reduce it over mesh axes; multiply it by the size of some, or its inverse; move it on by a shard
    a collective   leave it out; let it work over other axes; take the mean in place of a sum, or the sum
    a choice       take the same value on all devices
    an offset      start at the device's own shard of an axis

A repair is only ever suggested where the edited module was proved; evaluation at a witness's inputs says which are
worth trying.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from hlo_verify.diagnostics import Mismatch
from hlo_verify.evaluate.numbers import is_float
from hlo_verify.limits import allows
from hlo_verify.passes.refute import mean_repairs
from hlo_verify.passes.refute.edits import Edit, Editable, Insert, editable
from hlo_verify.passes.refute.mesh_axes import Axis, Groups, axes_of, groups_along
from hlo_verify.program.ir import Fresh, Function, Module, Name, Op, TensorType
from hlo_verify.program.op_families import COLLECTIVES
from hlo_verify.program.pair import Pair

ROUNDING = 1e-6
"""What a factor of two values is off by, at the most, where both were rounded."""


@dataclass(frozen=True, slots=True)
class Repair:
    """`text` says what the repaired module has; `code` is the code of what is wrong without it, `DIFFERS` where that is
    not known."""

    text: str
    code: Mismatch
    module: Module = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Repairs:
    """The repairs of one pair of modules."""

    devices: int
    partitioned: Editable
    axes: list[Axis]
    groups: Groups

    def near(self, name: Name, factor: float | None, results: Collection[int] = ()) -> Iterator[Repair]:
        """Edits at the operation that computes a value of the partitioned module, then at those its operands come from,
        then of those results.

        `factor` is what the value, or a result, is off by in some element, as a hint.
        """
        hint = _hinted(factor)
        if hint is not None:
            for found in mean_repairs.exchanged(self.partitioned, self.groups, name, hint, _times):
                yield Repair(*found)
        yield from self.at(name, factor)
        op = self.partitioned.ops.get(name)
        for operand in op.operands if op is not None else ():
            yield from self.at(operand)
        yield from self._returned(sorted(results), name)

    def _returned(self, results: list[int], name: Name) -> Iterator[Repair]:
        """All of those results reduced before they are returned."""
        names = mean_repairs.returned(self.partitioned, results)
        types = [self.partitioned.types[each] for each in names]
        if not names or names == [name] or not all(is_float(type_.dtype) for type_ in types):
            return
        op = self.partitioned.ops[names[0]]
        what = "the values that are returned" if len(names) > 1 else f"{op.name} at {op.location}"
        for axes, members in self.groups:
            sums = [_all_reduce(members, type_, "add") for type_ in types]
            means = [_mean(members, type_) for type_ in types]
            for text, inserts in ((_SUM, sums), (_MEAN, means)):
                module = mean_repairs.joined(self.partitioned, names, inserts)
                yield Repair(text.format(axes=axes, what=what), Mismatch.NEVER_REDUCED, module)

    def at(self, name: Name, factor: float | None = None) -> Iterator[Repair]:
        """Edits at the operation that computes a value; none of an argument."""
        op = self.partitioned.ops.get(name)
        if op is None:
            return
        type_ = self.partitioned.types[name]
        what = f"{op.name} at {op.location}"
        if op.name in COLLECTIVES and len(op.results) == 1:
            yield from self._other_communication(op, what)
        if op.name == "select":
            yield from self._either(op)
        if is_float(type_.dtype):
            yield from self._reduced(name, type_, what, ("add", ""))
            for axes, members in self.groups if op.name not in COLLECTIVES else ():
                text = _MEAN.format(axes=axes, what=what)
                yield self._after(name, text, Mismatch.NEVER_REDUCED, _mean(members, type_))
            for by, said in _factors(self.groups, factor):
                text = f"{'dividing' if by < 1 else 'multiplying'} {what} by {said}"
                yield self._after(name, text, Mismatch.WRONG_FACTOR, _times(by, type_))
            yield from self._reduced(name, type_, what, ("maximum", " (maximum)"), ("minimum", " (minimum)"))
        for axis, step, towards in self._turns():
            text = f"sending the value of {what} to the {towards} device of {axis.name}"
            yield self._after(name, text, Mismatch.WRONG_PLACE, _permute(axis.rotation(self.devices, step), type_))
        if op.name == "dynamic_slice":
            yield from self._other_starts(op, what)

    def _reduced(self, name: Name, type_: TensorType, what: str, *reducers: tuple[str, str]) -> Iterator[Repair]:
        for reducer, said in reducers:
            for axes, members in self.groups:
                text = _SUM.replace("all_reduce", f"all_reduce{said}").format(axes=axes, what=what)
                yield self._after(name, text, Mismatch.NEVER_REDUCED, _all_reduce(members, type_, reducer))

    def _turns(self) -> Iterator[tuple[Axis, int, str]]:
        """A step along every axis, either way, and what it leads to."""
        for axis in self.axes:
            yield axis, 1, "next"
            yield axis, -1, "previous"

    def _either(self, op: Op) -> Iterator[Repair]:
        """One of the two values that are chosen from, everywhere."""
        for which, operand in zip(("first", "second"), op.operands[1:], strict=True):
            text = f"always taking the {which} of the values that {op.name} at {op.location} chooses from"
            yield Repair(text, Mismatch.DIFFERS, self.partitioned.instead(op, _left_out(op, operand)))

    def _other_communication(self, op: Op, what: str) -> Iterator[Repair]:
        if op.name == "collective_permute":
            back = np.asarray(op.attributes["source_target_pairs"])[:, ::-1]
            yield self._changed(op, f"{op.name} the other way round at {op.location}", source_target_pairs=back)
            for axis, step, towards in self._turns():
                text = f"sending to the {towards} device of {axis.name} in {what}"
                yield self._changed(op, text, source_target_pairs=axis.rotation(self.devices, step))
            return
        for axes, members in self.groups:
            if members.shape[1] == _width(op) or op.name == "all_reduce":
                changed = self._changed(op, f"{axes} as the axes of {what}", replica_groups=members, **_FLAT)
                more = any(_adds_axes(op, fewer, members) for _, fewer in self.groups)
                yield replace(changed, code=Mismatch.NEVER_REDUCED) if more else changed
        if self.partitioned.types[op.operands[0]] == op.types[0]:
            dropped = self.partitioned.instead(op, _left_out(op, op.operands[0]))
            yield Repair(f"leaving out {what}", Mismatch.REDUCED_TWICE, dropped)

    def _other_starts(self, op: Op, what: str) -> Iterator[Repair]:
        """A slice of a tensor that starts where the device's own shard does, along one of its dimensions."""
        types = self.partitioned.types
        whole = types[op.operands[0]]
        for k, (size, local) in enumerate(zip(whole.shape, op.types[0].shape, strict=True)):
            for axis in self.axes:
                if size != local * axis.size:
                    continue
                starts = (np.arange(self.devices) // axis.low % axis.size * local).astype(np.int64)
                edit = _with_start(op, k, starts, types[op.operands[1 + k]])
                text = f"slicing the device's own shard of {axis.name} in {what}"
                yield Repair(text, Mismatch.WRONG_PLACE, self.partitioned.instead(op, edit))

    def _changed(self, op: Op, text: str, **attributes: Any) -> Repair:
        new = replace(op, attributes={**op.attributes, **attributes}, source=None)
        return Repair(text, Mismatch.WRONG_DEVICES, self.partitioned.instead(op, lambda _: ([new], {})))

    def _after(self, name: Name, text: str, code: Mismatch, insert: Insert) -> Repair:
        return Repair(text, code, self.partitioned.after(name, insert))


_SUM = "an all_reduce over {axes} after {what}"
_MEAN = "a mean (pmean) over {axes} after {what}"


def repairs(pair: Pair) -> Repairs:
    """The repairs of a pair."""
    axes = axes_of(pair)
    return Repairs(pair.devices, editable(pair.partitioned), axes, groups_along(axes, pair.devices))


def _left_out(op: Op, operand: Name) -> Edit:
    """An operand in place of an operation's one result."""
    return lambda _: ([], {op.results[0]: operand})


_FLAT = {"use_global_device_ids": True, "channel_id": 1}
"""Replica groups of device numbers."""


def _adds_axes(op: Op, fewer: npt.NDArray[np.int64], more: npt.NDArray[np.int64]) -> bool:
    """Whether a collective works over whole axes, `fewer`, which are some of those of the groups `more`."""
    own = {frozenset(row) - {-1} for row in np.asarray(op.attributes["replica_groups"]).tolist()}
    wide = {frozenset(row) for row in more.tolist()}
    whole = own == {frozenset(row) for row in fewer.tolist()} and own != wide
    return whole and min(map(len, own)) > 1 and all(any(row <= other for other in wide) for row in own)


def _width(op: Op) -> int:
    return int(np.asarray(op.attributes["replica_groups"]).shape[1])


def _with_start(op: Op, k: int, starts: npt.NDArray[np.int64], index: TensorType) -> Edit:
    def edit(fresh: Fresh) -> tuple[list[Op], dict[Name, Name]]:
        table, number, at, taken, start = fresh.some(5)
        whole = TensorType((len(starts),), index.dtype)
        ui32, one = TensorType((), "ui32"), TensorType((1,), index.dtype)
        operands = (*op.operands[: 1 + k], start, *op.operands[2 + k :])
        return [
            Op("constant", (), (table,), (whole,), {"value": starts}),
            Op("partition_id", (), (number,), (ui32,)),
            Op("convert", (number,), (at,), (index,)),
            Op("dynamic_slice", (table, at), (taken,), (one,), {"slice_sizes": (1,)}),
            Op("reshape", (taken,), (start,), (index,)),
            replace(op, operands=operands, source=None),
        ], {}

    return edit


def _factors(groups: Groups, hint: float | None) -> Iterator[tuple[Fraction, str]]:
    """Factors, with the number that they multiply or divide by in words: the hint, and the sizes of axes."""
    sizes: dict[int, str] = {}
    for axes, members in groups:
        size = int(members.shape[1])
        if size > 1:
            sizes.setdefault(size, f"{size} (the size of {axes})")
    found = [Fraction(size) for size in sizes]
    hinted = _hinted(hint)
    near = None if hinted is None else max(hinted, 1 / hinted)
    if near is not None and near != 1:
        found = [near, *found]
    for number in dict.fromkeys(found):
        said = sizes.get(int(number), str(number)) if number.denominator == 1 else str(number)
        yield from ((1 / number, said), (number, said))


def _hinted(hint: float | None) -> Fraction | None:
    """The number that a measured factor is, or one over it."""
    if hint is None or not np.isfinite(hint) or hint <= 0:
        return None
    near = simplest(max(hint, 1 / hint))
    return None if near is None else near if hint >= 1 else 1 / near


def simplest(hint: float) -> Fraction | None:
    """The fraction of the least denominator that a measured factor is, but for its rounding; None of an odd number."""
    below = 1
    while allows("repair_denominator", below):
        near = Fraction(round(hint * below), below)
        if abs(float(near) - hint) <= ROUNDING * hint:
            return near
        below += 1
    return None


# Operations to insert


def _all_reduce(members: npt.NDArray[np.int64], type_: TensorType, reducer: str) -> Insert:
    def insert(fresh: Fresh, value: Name) -> tuple[list[Op], Name]:
        a, b, together, result = fresh.some(4)
        one = TensorType((), type_.dtype)
        body = Function((a, b), (one, one), (Op(reducer, (a, b), (together,), (one,)),), (together,))
        attributes = {"replica_groups": members, **_FLAT}
        return [Op("all_reduce", (value,), (result,), (type_,), attributes, (body,))], result

    return insert


def _mean(members: npt.NDArray[np.int64], type_: TensorType) -> Insert:
    sum_ = _all_reduce(members, type_, "add")
    return mean_repairs.both(sum_, _times(Fraction(1, int(members.shape[1])), type_))


def _times(factor: Fraction, type_: TensorType) -> Insert:
    def insert(fresh: Fresh, value: Name) -> tuple[list[Op], Name]:
        constant, result = fresh.some(2)
        number = np.broadcast_to(np.float64(factor), type_.shape)
        return [
            Op("constant", (), (constant,), (type_,), {"value": number}),
            Op("multiply", (value, constant), (result,), (type_,)),
        ], result

    return insert


def _permute(pairs: npt.NDArray[np.int64], type_: TensorType) -> Insert:
    def insert(fresh: Fresh, value: Name) -> tuple[list[Op], Name]:
        result = fresh.one()
        attributes = {"source_target_pairs": pairs, "channel_id": 1}
        return [Op("collective_permute", (value,), (result,), (type_,), attributes)], result

    return insert
