"""Repairs: small edits of the partitioned module at the operation at fault, one of which may make it right.

    a value        all_reduce it over mesh axes; multiply it by the size of some, or its inverse; move it on by a shard
    a collective   leave it out; let it work over other axes
    a choice       take the same value on all devices
    an offset      start at the device's own shard of an axis

A repair is only ever suggested where the edited module was proved; evaluation at a witness's inputs says which are
worth trying.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations, pairwise
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from hlo_verify.diagnostics import Mismatch
from hlo_verify.index import expr, tables
from hlo_verify.index.expr import Digit
from hlo_verify.ir import Function, Module, Op, TensorType
from hlo_verify.ir import Value as Name
from hlo_verify.ops.values import is_float
from hlo_verify.passes.pair import Pair
from hlo_verify.sharding import Sharding

COLLECTIVES = frozenset({"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute"})
"""Operations that communicate."""

LARGE = 64
"""A factor of at least 1 has no larger denominator."""

AXES = 4
"""The most axes of which every combination is tried."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Devices that differ in one digit of their number only; `low` is the digit's weight."""

    name: str
    low: int
    size: int


@dataclass(frozen=True, slots=True)
class Repair:
    """`text` says what the repaired module has; `code` is the code of what is wrong without it, `DIFFERS` where that is
    not known."""

    text: str
    code: Mismatch
    module: Module = field(repr=False)


Insert = Callable[["Editor", Name], tuple[list[Op], Name]]
"""Operations after a value, and what then stands in its place."""


@dataclass(slots=True)
class Editor:
    """Makes new values of a module."""

    module: Module
    next: Name = field(init=False)

    def __post_init__(self) -> None:
        self.next = 1 + max(_values(self.module.main), default=0)

    def new(self) -> Name:
        self.next += 1
        return self.next - 1


def repairs(pair: Pair, name: Name, factor: float | None = None) -> Iterator[Repair]:
    """Edits at the operation of the partitioned module that computes the value `name`.

    `factor` is what a value that is lost, or a result, is off by in some element, as a hint.
    """
    op = find(pair.partitioned.main, name)
    if op is None:
        return
    kind = op.types[op.results.index(name)]
    groups = list(_groups(axes_of(pair), pair.devices))
    what = f"{op.name} at {op.location}"
    if op.name in COLLECTIVES:
        yield from _other_communication(pair, op, what, groups)
    if op.name == "select":
        yield from _either(pair, op)
    if is_float(kind.dtype):
        for axes, members in groups:
            yield Repair(
                f"an all_reduce over {axes} after {what}",
                Mismatch.NEVER_REDUCED,
                _after(pair.partitioned, name, _all_reduce(members, kind, "add")),
            )
        for by, said in _factors(groups, factor):
            yield Repair(
                f"{'dividing' if by < 1 else 'multiplying'} {what} by {said}",
                Mismatch.WRONG_FACTOR,
                _after(pair.partitioned, name, _times(by, kind)),
            )
        for reducer in ("maximum", "minimum"):
            for axes, members in groups:
                yield Repair(
                    f"an all_reduce ({reducer}) over {axes} after {what}",
                    Mismatch.NEVER_REDUCED,
                    _after(pair.partitioned, name, _all_reduce(members, kind, reducer)),
                )
    for axis in axes_of(pair):
        for step in (1, -1):
            pairs = _rotation(axis, pair.devices, step)
            towards = "next" if step == 1 else "previous"
            yield Repair(
                f"sending the value of {what} to the {towards} device of {axis.name}",
                Mismatch.WRONG_PLACE,
                _after(pair.partitioned, name, _permute(pairs, kind)),
            )
    if op.name == "dynamic_slice":
        yield from _other_starts(pair, op, what)


def _either(pair: Pair, op: Op) -> Iterator[Repair]:
    """One of the two values that are chosen from, everywhere."""
    for which, operand in zip(("first", "second"), op.operands[1:], strict=True):

        def edit(_: Editor, operand: Name = operand) -> tuple[list[Op], dict[Name, Name]]:
            return [], {op.results[0]: operand}

        text = f"always taking the {which} of the values that {op.name} at {op.location} chooses from"
        yield Repair(text, Mismatch.DIFFERS, _rewritten(pair.partitioned, op, edit))


def _other_communication(
    pair: Pair, op: Op, what: str, groups: list[tuple[str, npt.NDArray[np.int64]]]
) -> Iterator[Repair]:
    if op.name == "collective_permute":
        pairs = np.asarray(op.attributes["source_target_pairs"])
        yield _changed(pair, op, f"{op.name} the other way round at {op.location}", source_target_pairs=pairs[:, ::-1])
        for axis in axes_of(pair):
            for step in (1, -1):
                turned = _rotation(axis, pair.devices, step)
                towards = "next" if step == 1 else "previous"
                text = f"sending to the {towards} device of {axis.name} in {what}"
                yield _changed(pair, op, text, source_target_pairs=turned)
        return
    for axes, members in groups:
        if members.shape[1] == _width(op) or op.name == "all_reduce":
            changed = _changed(pair, op, f"{axes} as the axes of {what}", replica_groups=members, **_FLAT)
            more = any(_adds_axes(op, fewer, members) for _, fewer in groups)
            yield replace(changed, code=Mismatch.NEVER_REDUCED) if more else changed
    if _type_of(pair.partitioned, op.operands[0]) == op.types[0]:
        dropped = _rewritten(pair.partitioned, op, lambda _: ([], {op.results[0]: op.operands[0]}))
        yield Repair(f"leaving out {what}", Mismatch.REDUCED_TWICE, dropped)


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


def _changed(pair: Pair, op: Op, text: str, **attributes: Any) -> Repair:
    new = replace(op, attributes={**op.attributes, **attributes}, source=None)
    return Repair(text, Mismatch.WRONG_DEVICES, _rewritten(pair.partitioned, op, lambda _: ([new], {})))


def _other_starts(pair: Pair, op: Op, what: str) -> Iterator[Repair]:
    """A slice of a tensor that starts where the device's own shard does, along one of its dimensions."""
    whole = _type_of(pair.partitioned, op.operands[0])
    if whole is None:
        return
    for k, (size, local) in enumerate(zip(whole.shape, op.types[0].shape, strict=True)):
        for axis in axes_of(pair):
            if size != local * axis.size:
                continue
            starts = (np.arange(pair.devices) // axis.low % axis.size * local).astype(np.int64)
            index = _type_of(pair.partitioned, op.operands[1 + k])
            if index is None:
                continue
            yield Repair(
                f"slicing the device's own shard of {axis.name} in {what}",
                Mismatch.WRONG_PLACE,
                _rewritten(pair.partitioned, op, _with_start(op, k, starts, index)),
            )


def _with_start(op: Op, k: int, starts: npt.NDArray[np.int64], index: TensorType) -> _Edit:
    def edit(editor: Editor) -> tuple[list[Op], dict[Name, Name]]:
        table, number, at, taken, start = (editor.new() for _ in range(5))
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


def _factors(groups: list[tuple[str, npt.NDArray[np.int64]]], hint: float | None) -> Iterator[tuple[Fraction, str]]:
    """Factors, with the number that they multiply or divide by in words: the hint, and the sizes of axes."""
    sizes: dict[int, str] = {}
    for axes, members in groups:
        size = int(members.shape[1])
        if size > 1:
            sizes.setdefault(size, f"{size} (the size of {axes})")
    found = [Fraction(size) for size in sizes]
    if hint is not None and np.isfinite(hint) and hint > 0:
        near = Fraction(max(hint, 1 / hint)).limit_denominator(LARGE)
        found = [near, *found] if near != 1 else found
    for number in dict.fromkeys(found):
        said = sizes.get(int(number), str(number)) if number.denominator == 1 else str(number)
        yield from ((1 / number, said), (number, said))


# Operations to insert


def _all_reduce(members: npt.NDArray[np.int64], kind: TensorType, reducer: str) -> Insert:
    def insert(editor: Editor, value: Name) -> tuple[list[Op], Name]:
        a, b, together, result = (editor.new() for _ in range(4))
        one = TensorType((), kind.dtype)
        body = Function((a, b), (one, one), (Op(reducer, (a, b), (together,), (one,)),), (together,))
        attributes = {"replica_groups": members, **_FLAT}
        return [Op("all_reduce", (value,), (result,), (kind,), attributes, (body,))], result

    return insert


def _times(factor: Fraction, kind: TensorType) -> Insert:
    def insert(editor: Editor, value: Name) -> tuple[list[Op], Name]:
        constant, result = editor.new(), editor.new()
        number = np.broadcast_to(np.float64(factor), kind.shape)
        return [
            Op("constant", (), (constant,), (kind,), {"value": number}),
            Op("multiply", (value, constant), (result,), (kind,)),
        ], result

    return insert


def _permute(pairs: npt.NDArray[np.int64], kind: TensorType) -> Insert:
    def insert(editor: Editor, value: Name) -> tuple[list[Op], Name]:
        result = editor.new()
        attributes = {"source_target_pairs": pairs, "channel_id": 1}
        return [Op("collective_permute", (value,), (result,), (kind,), attributes)], result

    return insert


def _rotation(axis: Axis, devices: int, step: int) -> npt.NDArray[np.int64]:
    """Source and target of a turn along an axis."""
    numbers = np.arange(devices)
    digit = numbers // axis.low % axis.size
    return np.stack((numbers, numbers + ((digit + step) % axis.size - digit) * axis.low), axis=1)


# Axes


def axes_of(pair: Pair) -> list[Axis]:
    """The axes of the mesh, innermost first: as the module names them, else as its shardings cut the device number."""
    named = next((axes for axes in map(_named_axes, _all_ops(pair.partitioned.main)) if axes), None)
    if named is not None and prod(axis.size for axis in named) == pair.devices:
        return named
    device = expr.var("d", "", pair.devices)
    cuts = {1, pair.devices}
    for sharding in (*(pair.arguments or ()), *pair.results):
        for digit in _digits(sharding.spread(pair.devices), device):
            cuts.update((digit.low, digit.low * digit.radix))
    chain = [cut for cut in sorted(cuts) if pair.devices % cut == 0]
    parts = [(low, high // low) for low, high in pairwise(chain) if high % low == 0]
    return [Axis(_apart(low, size, pair.devices), low, size) for low, size in parts]


def _apart(low: int, size: int, devices: int) -> str:
    """A name for an axis without one."""
    if size == devices:
        return f"all {size} devices"
    return f"groups of {size} neighbouring devices" if low == 1 else f"groups of {size} devices {low} apart"


def _named_axes(op: Op) -> list[Axis]:
    mesh = op.attributes.get("mesh") if op.name == "sdy.manual_computation" else None
    if mesh is None or mesh.device_ids or mesh.only is not None:
        return []
    axes, low = [], 1
    for name, size in reversed(mesh.axes):
        axes.append(Axis(f"'{name}'", low, size))
        low *= size
    return axes


def _digits(sharding: Sharding, device: expr.Var) -> Iterator[Digit]:
    for k in range(len(sharding.tiles)):
        for atom, _ in tables.fit(sharding.coordinates[:, k], device).items:
            if isinstance(atom, Digit):
                yield atom


def _groups(axes: list[Axis], devices: int) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
    """For every set of axes, its name and the groups of devices along them; single axes first."""
    numbers = np.arange(devices)
    for count in range(1, min(len(axes), AXES) + 1):
        for chosen in combinations(axes, count):
            along = np.zeros(devices, np.int64)
            for axis in chosen:
                along += numbers // axis.low % axis.size * axis.low
            rows = np.lexsort((numbers, numbers - along))
            yield " and ".join(axis.name for axis in chosen), rows.reshape(-1, prod(axis.size for axis in chosen))


# Editing

_Edit = Callable[[Editor], tuple[list[Op], dict[Name, Name]]]
"""What stands in place of an operation, and which values in place of others after it."""


def _after(module: Module, name: Name, insert: Insert) -> Module:
    op = find(module.main, name)
    assert op is not None

    def edit(editor: Editor) -> tuple[list[Op], dict[Name, Name]]:
        more, new = insert(editor, name)
        return [op, *more], {name: new}

    return _rewritten(module, op, edit)


def _rewritten(module: Module, op: Op, edit: _Edit) -> Module:
    editor = Editor(module)
    return replace(module, main=_function(module.main, op, edit, editor, {}))


def _function(function: Function, op: Op, edit: _Edit, editor: Editor, names: dict[Name, Name]) -> Function:
    names = dict(names)
    ops: list[Op] = []
    for each in function.ops:
        if each is op:
            new, renamed = edit(editor)
            ops += new
            names.update(renamed)
            continue
        operands = tuple(names.get(name, name) for name in each.operands)
        regions = tuple(_function(region, op, edit, editor, names) for region in each.regions)
        changed = operands != each.operands or any(a is not b for a, b in zip(regions, each.regions, strict=True))
        ops.append(replace(each, operands=operands, regions=regions) if changed else each)
    results = tuple(names.get(name, name) for name in function.results)
    same = results == function.results and len(ops) == len(function.ops)
    if same and all(a is b for a, b in zip(ops, function.ops, strict=True)):
        return function
    return replace(function, ops=tuple(ops), results=results)


def _all_ops(function: Function) -> Iterator[Op]:
    for op in function.ops:
        yield op
        for region in op.regions:
            yield from _all_ops(region)


def find(function: Function, name: Name) -> Op | None:
    """The operation that computes a value, in a region too."""
    return next((op for op in _all_ops(function) if name in op.results), None)


def _values(function: Function) -> Iterator[Name]:
    yield from function.arguments
    for op in function.ops:
        yield from op.results
        for region in op.regions:
            yield from _values(region)


def _type_of(module: Module, name: Name) -> TensorType | None:
    op = find(module.main, name)
    if op is not None:
        return op.types[op.results.index(name)]
    functions = [module.main, *(region for op in _all_ops(module.main) for region in op.regions)]
    for function in functions:
        if name in function.arguments:
            return function.argument_types[function.arguments.index(name)]
    return None
