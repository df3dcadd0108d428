"""Groups of collectives and pairs of permutes: each device once, all of them, none that there is not, and as the shapes
say.

Source: XLA's hlo_verifier.cc and docs/operation_semantics.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from hlo_verify.diagnostics import Collective
from hlo_verify.hlo.groups import (
    GROUPED,
    PERMUTES,
    Groups,
    Numbers,
    groups_of,
    kind,
    numbers,
    pairs_of,
    size_of_space,
)
from hlo_verify.hlo.module import HloModule, Instruction, parts
from hlo_verify.hlo.shapes import Array, Shape, same
from hlo_verify.linter.finding import Finding, at

UNEQUAL = frozenset(("all-reduce", "collective-broadcast"))
"""Collectives whose groups may have different sizes: their results have the shapes of their operands."""


def check(module: HloModule) -> Iterator[Finding]:
    """What is wrong with the collectives of a module, in the order of the text."""
    for instruction in module.instructions():
        if instruction.opcode in GROUPED:
            yield from _grouped(instruction, module)
        elif instruction.opcode in PERMUTES:
            yield from _permute(instruction, module)


def _grouped(instruction: Instruction, module: HloModule) -> Iterator[Finding]:
    mode = numbers(instruction)
    if instruction.attributes.get("use_global_device_ids") == "true" and instruction.channel is None:
        yield at(
            instruction,
            Collective.CHANNEL_ILLEGAL,
            "use_global_device_ids=true without a channel_id, which it needs",
        )
        return
    groups = groups_of(instruction)
    if groups is None:
        return
    if not groups:
        if mode is Numbers.DEVICES and instruction.opcode != "ragged-all-to-all":
            yield at(
                instruction,
                Collective.GROUPS_ILLEGAL,
                "use_global_device_ids=true, and the groups are not written out",
            )
        return
    devices = size_of_space(instruction, module)
    faults = list(_members(instruction, groups, devices, says=module.says_devices))
    yield from faults
    if faults:
        return
    sizes = {len(group) for group in groups}
    if len(sizes) > 1 and kind(instruction) not in UNEQUAL:
        yield at(
            instruction,
            Collective.GROUPS_UNEQUAL,
            f"groups of {' and '.join(map(str, sorted(sizes)))} devices in one {kind(instruction)}, "
            "whose results would have different shapes",
        )
    elif len(sizes) == 1:
        yield from _sizes(instruction, min(sizes))


def _members(instruction: Instruction, groups: Groups, devices: int, *, says: bool) -> Iterator[Finding]:
    """Every device in one group. How many there are is asked where the module says it."""
    count = Counter(device for group in groups for device in group)
    if twice := [device for device, times in count.items() if times > 1]:
        yield at(instruction, Collective.GROUPS_OVERLAP, f"{_some('device', twice)} in more than one group")
    total = devices if says else max(count) + 1
    if beyond := [device for device in count if device >= total]:
        yield at(
            instruction,
            Collective.GROUPS_ID_OUT_OF_RANGE,
            f"{_some(str(numbers(instruction)), beyond)} in a group, and there are {total} (0 to {total - 1})",
        )
    if missing := [device for device in range(total) if device not in count]:
        yield at(instruction, Collective.GROUPS_NOT_COVERING, f"{_some('device', missing)} in no group")


def _some(what: str, numbers_of: Sequence[int]) -> str:
    """`device 3 is`, `devices 4, 5 and 6 more are`."""
    shown = sorted(numbers_of)
    if len(shown) == 1:
        return f"{what} {shown[0]} is"
    if len(shown) <= 4:
        return f"{what}s {', '.join(map(str, shown[:-1]))} and {shown[-1]} are"
    return f"{what}s {', '.join(map(str, shown[:3]))} and {len(shown) - 3} more are"


def _sizes(instruction: Instruction, group: int) -> Iterator[Finding]:
    """Whether operand and result are as large as groups of this size make them."""
    what = kind(instruction)
    if what not in ("all-gather", "reduce-scatter"):
        return
    dimension = instruction.attributes.get("dimensions", "").strip("{}")
    operands = instruction.given_shapes
    results = _results(instruction)
    if not dimension.isdigit() or len(operands) != len(results) or len(operands) != len(instruction.operands):
        return
    for operand, result in zip(operands, results, strict=True):
        if not isinstance(operand, Array) or not isinstance(result, Array):
            return
        if int(dimension) >= min(len(operand.sizes), len(result.sizes)):
            return
        small, large = operand.sizes[int(dimension)], result.sizes[int(dimension)]
        if what == "reduce-scatter":
            small, large = large, small
        if small * group != large:
            yield at(
                instruction,
                Collective.GROUP_SIZE_SHAPE_MISMATCH,
                f"groups of {group} devices, and the shapes are of {_times(large, small)}: "
                f"{operand} becomes {result} along dimension {dimension}",
            )
            return


def _times(large: int, small: int) -> str:
    return str(large // small) if small and large % small == 0 else f"{large} over {small}"


def _results(instruction: Instruction) -> tuple[Shape, ...]:
    if not instruction.opcode.endswith("-start"):
        return parts(instruction.shape)
    pieces = parts(instruction.shape)
    return parts(pieces[1]) if len(pieces) > 1 else ()


def _permute(instruction: Instruction, module: HloModule) -> Iterator[Finding]:
    yield from _permuted_shapes(instruction)
    pairs = pairs_of(instruction)
    if not pairs or any(len(pair) != 2 for pair in pairs):
        return
    copies = max(1, (len(instruction.operands) - 2) // 2) if _is_in_place(instruction) else 1
    ends = (
        ("sends", "source", 0, Collective.PERMUTE_DUPLICATE_SOURCE),
        ("receives", "target", 1, Collective.PERMUTE_DUPLICATE_TARGET),
    )
    total = size_of_space(instruction, module)
    for does, end, place, code in ends:
        count = Counter(pair[place] for pair in pairs)
        if copies == 1 and (twice := [device for device, times in count.items() if times > 1]):
            yield at(instruction, code, f"device {min(twice)} {does} {count[min(twice)]} times, where once is allowed")
        beyond = [device for device in count if device >= total]
        if module.says_devices and beyond:
            yield at(
                instruction,
                Collective.PERMUTE_ID_OUT_OF_RANGE,
                f"{end} {min(beyond)}, and the {numbers(instruction)}s are 0 to {total - 1}",
            )


def _is_in_place(instruction: Instruction) -> bool:
    """Whether it writes slices into buffers that are given: input, output, and the offsets of both."""
    return "slice_sizes" in instruction.attributes


def _permuted_shapes(instruction: Instruction) -> Iterator[Finding]:
    if _is_in_place(instruction) or not instruction.operands:
        return
    operands = instruction.given_shapes
    if len(operands) != len(instruction.operands):
        return
    if instruction.opcode == "collective-permute":
        results = parts(instruction.shape) if len(operands) > 1 else (instruction.shape,)
    else:
        pieces = parts(instruction.shape)
        results = () if len(pieces) < 2 else parts(pieces[1]) if len(operands) > 1 else (pieces[1],)
    if len(results) != len(operands) or not all(map(same, operands, results)):
        yield at(
            instruction,
            Collective.PERMUTE_ILLEGAL,
            f"what is sent is {', '.join(map(str, operands))}, and what arrives is {instruction.shape}",
        )
