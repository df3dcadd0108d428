"""One layer of a pair as a pair of its own: the first that does not compute a shard of what it should.

Its arguments are what lies before it: the weights that it uses, and values between layers, placed as the devices hold
them. Names are those of the whole modules. What is found of it says where the whole goes wrong; it decides nothing, as
a layer that is wrong for some values between layers may be right for those that there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from hlo_verify.index import expr, tables
from hlo_verify.index.expr import Var
from hlo_verify.ops.values import position
from hlo_verify.passes.prove.layer_sharing import Sharing
from hlo_verify.passes.prove.lineage import lineage
from hlo_verify.program.ir import Function, Module, Name, Op, TensorType, fresh_in, used, value_types
from hlo_verify.program.sharding import Sharding
from hlo_verify.terms.term import Tensor

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class LostLayer:
    """A layer as a pair of modules, each with one result."""

    logical: Module
    partitioned: Module

    def reaches(self, module: Module, results: Sequence[int]) -> set[int]:
        """Which of those results of the whole partitioned module are made of what the layer's devices compute."""
        (lost,) = self.partitioned.main.results
        after = {lost}
        for op in module.main.ops:
            if not after.isdisjoint(used(op)):
                after.update(op.results)
        return {n for n in results if module.main.results[n] in after}


def lost_layer(logical: Module, partitioned: Module, once: Sharing, device: Var) -> LostLayer | None:
    """The first layer that the partitioned module gets wrong, as far as `once` knows what lies before it and what
    should come of it."""
    if logical.unplaced or partitioned.unplaced:
        return None
    wholes, shards = once.between_layers("logical"), once.between_layers("partitioned")
    placed = {}
    for leaf, name in shards.items():
        whole = wholes.get(leaf)
        sharding = None if whole is None else _sharding(once, whole, name, device)
        if sharding is not None:
            placed[name] = leaf, sharding
    found = _first_unlike(wholes, partitioned.main, once)
    if found is None:
        return None
    lost, wanted = found
    types = {side: value_types(module.main) for side, module in (("logical", logical), ("partitioned", partitioned))}
    alike = types["logical"][wanted], types["partitioned"][lost]
    results = (
        sharding
        for name, (leaf, sharding) in placed.items()
        if (types["logical"][wholes[leaf]], types["partitioned"][name]) == alike
    )
    result = next(results, None) or _as_mentioned(logical, alike[0].shape, alike[1].shape, device)
    if result is None:
        return None
    ends = {name: leaf for leaf, name in wholes.items() if name != wanted}
    slices = _slice(logical.main, wanted, ends), _slice(partitioned.main, lost, placed)
    cut = dict.fromkeys([*(ends[name] for name in slices[0].ends), *(placed[name][0] for name in slices[1].ends)])
    arguments = sorted(slices[0].arguments | slices[1].arguments)
    fresh = fresh_in(logical.main), fresh_in(partitioned.main)
    given: list[tuple[Name, TensorType, Name, TensorType, Sharding]] = []
    for leaf in cut:
        whole, part = wholes.get(leaf), shards.get(leaf)
        if whole is None:
            return None
        type_ = types["logical"][whole]
        if part in placed:
            given.append((whole, type_, part, types["partitioned"][part], placed[part][1]))
        else:
            given.append((whole, type_, fresh[1].one(), type_, _everywhere(type_.shape, device.size)))
    shardings = tuple(sharding for *_, sharding in given)
    names = tuple(f"between layers #{n}" for n in range(len(given)))
    return LostLayer(
        _module(logical, slices[0], arguments, [(a, b) for a, b, *_ in given], names, shardings, wanted, result),
        _module(
            partitioned,
            slices[1],
            arguments,
            [(c, d) for _, _, c, d, _ in given],
            names,
            (None,) * len(given),
            lost,
            None,
        ),
    )


def _first_unlike(wholes: Mapping[Tensor, Name], function: Function, once: Sharing) -> tuple[Name, Name] | None:
    """The first value between the partitioned module's layers that is no shard of the logical value which is made of
    the same leaves, where nothing is; else of one that is recomputed. It is computed as shards between other layers
    are, or lies between layers as the module repeats itself. With it, that logical value."""
    at = {op.results[0]: op for op in function.ops if op.results}
    lines = Counter(op.location for op in function.ops)  # a line of one operation says nothing

    def place(op: Op) -> object:
        return once.keys.of(op), op.location if lines[op.location] > 1 else None

    read = [(leaf, name) for leaf, name in once.reads_between("partitioned") if once.is_recognised(name)]
    known = {leaf for leaf, _ in read}
    places = {place(at[name]) for _, name in read if name in at}
    made = {leaf: frozenset(once.made_of(leaf)) for leaf in wholes}
    open_ = {made[leaf]: name for leaf, name in wholes.items() if leaf not in known}
    again = {made[leaf]: name for leaf, name in wholes.items() if leaf in known}
    recomputed: tuple[Name, Name] | None = None
    for name, op in at.items():
        is_placed = place(op) in places
        if (is_placed or name in once.between) and not once.is_recognised(name):
            needs = frozenset(once.needs(name))
            if needs in open_:
                return name, open_[needs]
            if is_placed and recomputed is None and needs in again:
                recomputed = name, again[needs]
    return recomputed


def _sharding(once: Sharing, whole: Name, part: Name, device: Var) -> Sharding | None:
    """How a device's value lies in the logical value that is the leaf which it reads; None if it is no shard of it."""
    reads = once.read("logical", whole), once.read("partitioned", part)
    value, shard = once.value("logical", whole), once.value("partitioned", part)
    shape, local = value.shape, shard.shape
    if reads[0] is None or reads[1] is None or len(local) != len(shape) or 0 in local:
        return None
    rows = np.zeros((device.size, len(shape)), np.int64)
    for of_whole, of_part in zip(reads[0].indices, reads[1].indices, strict=True):
        for k, size in enumerate(shape):
            if of_whole is position(k, size) and size > 1:
                start = expr.subtract(of_part, position(k, local[k]))
                numbers = tables.evaluate(start, device) if start.free <= {device} else None
                if numbers is None:
                    return None
                rows[:, k] = numbers
    sizes = np.array(local, np.int64)
    if np.any(rows % sizes) or np.any(rows < 0) or np.any(rows >= np.array(shape, np.int64)):
        return None
    tiles = tuple(-(-size // each) for size, each in zip(shape, local, strict=True))
    sharding = _numbered(tiles, rows // sizes)
    where = lineage(shape, sharding, device)
    return sharding if where.shape == local and value.at(where.indices) is shard.term else None


def _as_mentioned(logical: Module, whole: tuple[int, ...], local: tuple[int, ...], device: Var) -> Sharding | None:
    """A placement that cuts a tensor into shards of that shape: all of it everywhere, or one of the arguments' or
    results'."""
    if whole == local:
        return _everywhere(whole, device.size)
    for sharding in (*logical.argument_shardings, *logical.result_shardings):
        if sharding is not None and sharding.is_plain and len(sharding.tiles) == len(whole):
            spread = sharding.spread(device.size)
            if lineage(whole, spread, device).shape == local:
                return spread
    return None


def _everywhere(shape: tuple[int, ...], devices: int) -> Sharding:
    """All of a tensor on every device."""
    return _numbered((1,) * len(shape), np.zeros((devices, len(shape)), np.int64))


def _numbered(tiles: tuple[int, ...], coordinates: npt.NDArray[np.int64]) -> Sharding:
    """The sharding, with devices that hold the same shard numbered."""
    others = np.zeros(len(coordinates), np.int64)
    if len(coordinates):
        _, which = np.unique(coordinates, axis=0, return_inverse=True)
        order = np.argsort(which.reshape(-1), kind="stable")
        ordered = which.reshape(-1)[order]
        first = np.r_[0, np.flatnonzero(np.diff(ordered)) + 1]
        others[order] = np.arange(len(order)) - np.repeat(first, np.diff(np.r_[first, len(order)]))
    return Sharding(tiles, coordinates, others)


@dataclass(frozen=True, slots=True)
class _Slice:
    """What a value needs of a function, up to some others."""

    ops: tuple[Op, ...]
    ends: tuple[Name, ...]
    arguments: frozenset[int]


def _slice(function: Function, value: Name, ends: Collection[Name]) -> _Slice:
    needed, kept, found = {value}, [], dict[Name, None]()
    for op in reversed(function.ops):
        if needed.isdisjoint(op.results):
            continue
        if any(name in ends and name != value for name in op.results):
            found.update(dict.fromkeys(name for name in op.results if name in needed))
            continue
        kept.append(op)
        needed |= used(op)
    arguments = frozenset(n for n, name in enumerate(function.arguments) if name in needed)
    return _Slice(tuple(reversed(kept)), tuple(found), arguments)


def _module(
    module: Module,
    part: _Slice,
    arguments: Sequence[int],
    given: Sequence[tuple[Name, TensorType]],
    names: tuple[str, ...],
    shardings: tuple[Sharding | None, ...],
    result: Name,
    placed: Sharding | None,
) -> Module:
    """A module of some operations, with some of its arguments and what is given beside."""
    main, (type_,) = (
        module.main,
        [t for op in part.ops for r, t in zip(op.results, op.types, strict=True) if r == result],
    )

    def some(of: Sequence[T]) -> tuple[T, ...]:
        return tuple(of[n] for n in arguments)

    function = replace(
        main,
        arguments=(*some(main.arguments), *(name for name, _ in given)),
        argument_types=(*some(main.argument_types), *(t for _, t in given)),
        ops=part.ops,
        results=(result,),
    )
    return replace(
        module,
        main=function,
        argument_names=(*some(module.argument_names), *names),
        result_names=("",),
        result_types=(type_,),
        argument_shardings=(*some(module.argument_shardings), *shardings),
        result_shardings=(placed,),
        assumed=(*some(module.assumed), *(None for _ in given)) if module.assumed else (),
        declared=len(given),
    )
