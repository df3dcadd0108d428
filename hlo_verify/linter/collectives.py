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

DIVIDING = frozenset(("all-gather", "reduce-scatter"))
"""Collectives whose results are as many times as large, or small, as their groups."""


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
        said = instruction.attributes["replica_groups"]
        yield at(instruction, Collective.GROUPS_ILLEGAL, f"{said} says no groups of devices")
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
    operands, results = instruction.given_shapes, _results(instruction)
    dimension = instruction.attributes.get("dimensions", "").strip("{}")
    is_known = what != "ragged-all-to-all" and len(operands) == len(instruction.operands)
    if not is_known or (what in DIVIDING and not dimension.isdigit()):
        return
    of = f"groups of {group} devices, and "
    if what == "all-to-all" and not dimension and len(operands) != group:
        yield at(
            instruction, Collective.GROUP_SIZE_SHAPE_MISMATCH, f"{of}{len(operands)} operands, of which each gets one"
        )
        return
    if len(operands) != len(results):
        if results and not instruction.opcode.endswith("-start"):
            count = f"{len(operands)} of what is sent and {len(results)} of what arrives"
            yield at(instruction, Collective.GROUP_SIZE_SHAPE_MISMATCH, f"{of}{count}")
        return
    for operand, result in zip(operands, results, strict=True):
        if not isinstance(operand, Array) or not isinstance(result, Array):
            return
        wrong = _misfit(what, group, int(dimension) if dimension.isdigit() else None, operand, result)
        if wrong:
            yield at(instruction, Collective.GROUP_SIZE_SHAPE_MISMATCH, f"{of}{wrong}")
            return


def _misfit(what: str, group: int, dimension: int | None, operand: Array, result: Array) -> str:
    """Why one operand of a collective cannot become such a result; empty where it can."""
    becomes = f"{operand} becomes {result}"
    if what not in DIVIDING:
        if what == "all-to-all" and dimension is not None:
            if dimension >= len(operand.sizes):
                return f"{operand} has no dimension {dimension}"
            if operand.sizes[dimension] % group:
                return f"{operand} is not split into as many parts along dimension {dimension}"
        is_same = operand.sizes == result.sizes and _alike(operand, result)
        return "" if is_same else f"{becomes}, where it keeps its shape"
    if dimension is None or dimension >= min(len(operand.sizes), len(result.sizes)):
        return f"{becomes} along dimension {dimension}, which there is not"
    small, large = (operand, result) if what == "all-gather" else (result, operand)
    if small.sizes[dimension] * group != large.sizes[dimension]:
        times = _times(large.sizes[dimension], small.sizes[dimension])
        return f"the shapes are of {times}: {becomes} along dimension {dimension}"
    rest = [each.sizes[:dimension] + each.sizes[dimension + 1 :] for each in (operand, result)]
    is_same = rest[0] == rest[1] and _alike(operand, result)
    return "" if is_same else f"{becomes}, which is more than dimension {dimension}"


def _alike(a: Array, b: Array) -> bool:
    """Whether elements are of one type, or both of floating point: compilers mix precisions on their way."""
    return a.dtype == b.dtype or all(each.dtype.removeprefix("b").startswith("f") for each in (a, b))


def _times(large: int, small: int) -> str:
    return str(large // small) if small and large % small == 0 else f"{large} over {small}"


def _results(instruction: Instruction) -> tuple[Shape, ...]:
    if not instruction.opcode.endswith("-start") or kind(instruction) == "all-reduce":
        return parts(instruction.shape)
    pieces = parts(instruction.shape)
    return parts(pieces[1]) if len(pieces) > 1 else ()


def _permute(instruction: Instruction, module: HloModule) -> Iterator[Finding]:
    yield from _permuted_shapes(instruction)
    pairs = pairs_of(instruction)
    if pairs is None or any(len(pair) != 2 for pair in pairs):
        said = instruction.attributes["source_target_pairs"]
        yield at(instruction, Collective.PERMUTE_ILLEGAL, f"{said} says no pairs of a source and a target")
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
