"""Who communicates with whom: groups of devices and pairs of senders and receivers, in each way that HLO spells them.

Source: xla/hlo/ir/collective_device_list.cc (lists, `[groups,size]<=[dims]T(order)`), replica_group.cc (meshes and
their axes), docs/operation_semantics.md (what the numbers mean).
"""

from __future__ import annotations

import enum
import re
from itertools import pairwise
from math import prod

import numpy as np
import numpy.typing as npt

from hlo_verify.hlo.module import HloModule, Instruction
from hlo_verify.hlo.shapes import integers

Groups = tuple[tuple[int, ...], ...]

_IOTA = re.compile(r"\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_MESH = re.compile(r"(?:mesh)?\[([^\]]*)\](?:\s*,?\s*device_ids=\(((?:[^()]|\([^)]*\))*)\))?\s*\{([^}]*)\}")
_AXIS = re.compile(r"'([^']+)'=(\d+)")
_NAMED = re.compile(r"'([^']+)'(?::\((\d+)\)(\d+))?")

GROUPED = frozenset(
    (
        "all-gather all-reduce reduce-scatter all-to-all ragged-all-to-all collective-broadcast"
        " all-gather-start all-reduce-start"
    ).split()
)
PERMUTES = frozenset(("collective-permute", "collective-permute-start"))
COLLECTIVES = GROUPED | PERMUTES


class Numbers(enum.StrEnum):
    """What the numbers in groups count: XLA's CollectiveOpGroupMode."""

    REPLICAS = "replica"
    PARTITIONS = "partition"
    REPLICAS_OF_ALL_PARTITIONS = "replica, on all partitions"
    DEVICES = "device"


def kind(instruction: Instruction) -> str:
    """The collective that an instruction is or starts."""
    return instruction.opcode.removesuffix("-start")


def numbers(instruction: Instruction) -> Numbers:
    """What the groups of a collective are made of, by its channel and use_global_device_ids."""
    is_global = instruction.attributes.get("use_global_device_ids") == "true"
    if instruction.channel is None:
        return Numbers.REPLICAS
    if is_global:
        return Numbers.DEVICES
    if kind(instruction) in ("all-reduce", "all-gather", "reduce-scatter"):
        return Numbers.REPLICAS_OF_ALL_PARTITIONS
    return Numbers.PARTITIONS


def size_of_space(instruction: Instruction, module: HloModule) -> int:
    """How many numbers there are for a collective's groups."""
    match numbers(instruction):
        case Numbers.PARTITIONS:
            return module.partitions
        case Numbers.DEVICES:
            return module.replicas * module.partitions
        case _:
            return module.replicas


def parse_groups(text: str) -> Groups | None:
    """Groups as they are spelled; None for a spelling that is not known."""
    text = text.strip()
    if (iota := _IOTA.fullmatch(text)) is not None:
        shape, devices = integers(iota[1]), listed(iota[2], iota[3])
        if devices is None or devices.size != prod(shape) or len(shape) != 2:
            return None
        return tuple(map(tuple, devices.reshape(shape).tolist()))
    if (mesh := _MESH.fullmatch(text)) is not None:
        return _of_mesh(mesh[1], mesh[2], mesh[3])
    return parse_lists(text)


def parse_lists(text: str) -> Groups | None:
    """`{{0,1},{2,3}}`; `{}` is no group, `{0,1}` one."""
    text = text.strip().strip('"')
    if not re.fullmatch(r"\{[\d,\s{}]*\}", text):
        return None
    found = tuple(integers(inner) for inner in re.findall(r"\{([\d,\s]*)\}", text))
    return tuple(group for group in found if group)


def listed(sizes_text: str, order_text: str | None) -> npt.NDArray[np.int64] | None:
    """The numbers from 0 as `[sizes]T(order)` lists them; None for an order that is none."""
    sizes, order = integers(sizes_text), integers(order_text)
    if order_text and sorted(order) != list(range(len(sizes))):
        return None
    return np.arange(prod(sizes)).reshape(sizes).transpose(order or None).ravel()


def _of_mesh(axes_text: str, ids: str | None, wanted_text: str) -> Groups | None:
    """Groups along some axes of a mesh; a part of an axis is `'x':(before)size`."""
    axes = {name: int(size) for name, size in _AXIS.findall(axes_text)}
    devices = np.arange(prod(axes.values()))
    if ids is not None:
        named = _ids_of_mesh(ids)
        if named is None or len(named) != devices.size:
            return None
        devices = named
    wanted = [(name, int(before or 1), int(size or 0)) for name, before, size in _NAMED.findall(wanted_text)]
    if any(name not in axes for name, _, _ in wanted):
        return None
    sizes: list[int] = []
    digits: dict[tuple[str, int], tuple[int, int]] = {}
    for name, size in axes.items():
        mine = [(low, low * part) for axis, low, part in wanted if axis == name and part]
        for low, high in pairwise(sorted({1, size, *(end for pair in mine for end in pair)})):
            if high % low:
                return None
            digits[name, low] = (len(sizes), high)
            sizes.append(high // low)
    chosen: list[int] = []
    for name, before, size in wanted:
        low, end = before, before * size if size else axes[name]
        while low < end:
            number, low = digits[name, low]
            chosen.append(number)
    others = [number for number in range(len(sizes)) if number not in chosen]
    group = prod(sizes[number] for number in chosen)
    table = devices.reshape(sizes or [1]).transpose([*others, *chosen] or [0]).reshape(-1, group)
    return tuple(map(tuple, table.tolist()))


def _ids_of_mesh(text: str) -> npt.NDArray[np.int64] | None:
    """The device of each place of a mesh: a list, or `[sizes]T(order)`."""
    if (iota := re.fullmatch(r"(?:\[[\d,]*\]<=)?\[([\d,]+)\](?:T\(([\d,]+)\))?", text)) is not None:
        return listed(iota[1], iota[2])
    return np.array(integers(text)) if re.fullmatch(r"[\d,\s]+", text) else None


def groups_of(instruction: Instruction) -> Groups | None:
    """The groups that a collective names, none where it names none; None if their spelling is not known."""
    text = instruction.attributes.get("replica_groups")
    return () if text is None else parse_groups(text)


def pairs_of(instruction: Instruction) -> Groups | None:
    """The (source, target) pairs of a permute; None if their spelling is not known."""
    return parse_lists(instruction.attributes.get("source_target_pairs", "{}"))
