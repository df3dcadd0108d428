"""Values that devices exchange."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from hlo_verify.hlo.groups import Groups, kind
from hlo_verify.hlo.meetings import Meetings
from hlo_verify.hlo.module import Instruction
from hlo_verify.linter.placement.devices import Devices
from hlo_verify.linter.placement.elementwise import Place, bent
from hlo_verify.linter.placement.values import NOTHING, Dimension, Labels, Partial, Reduced, Value, together, unknown

REDUCES = frozenset(("all-reduce", "reduce-scatter"))


def reduces(instruction: Instruction) -> bool:
    """Whether an instruction is a reduction over devices, or starts one."""
    return kind(instruction) in REDUCES


def groups(instruction: Instruction, devices: Devices, meetings: Meetings) -> Groups | None:
    """The groups of a collective; None where a device stands in none, or in two, or groups have different sizes."""
    found = meetings.groups(instruction)
    if found is None or len({len(group) for group in found}) != 1:
        return None
    try:
        devices.group(found)
    except ValueError:
        return None
    return found


def exchange(
    instruction: Instruction, value: Value, devices: Devices, meetings: Meetings, place: Place, reducer: str
) -> Value:
    """What a collective makes of one of its operands."""
    what = kind(instruction)
    if what == "collective-permute":
        return _permuted(instruction, value, devices, meetings)
    among = groups(instruction, devices, meetings)
    if among is None or what not in ("all-reduce", "reduce-scatter", "all-gather", "all-to-all"):
        return unknown(devices, len(value.dimensions))
    if max(map(len, among)) == 1:
        return value
    position = devices.positions(among)

    def together_of(label: int) -> int:
        return devices.over_groups("together", among, label, lambda marks: [tuple(sorted(marks))] * len(marks))

    def in_order(label: int) -> int:
        return devices.over_groups("in order", among, label, lambda marks: [marks] * len(marks))

    alike = in_order(value.alike) if what in ("all-gather", "all-to-all") else together_of(value.alike)
    method = in_order(value.method)
    if what in ("reduce-scatter", "all-to-all"):
        alike, method = devices.finer(alike, position), devices.finer(method, position)
    some = frozenset(map(together_of, value.some))
    if what in REDUCES:
        whole = frozenset(map(together_of, value.whole))
    else:  # each element is of one member: it differs where those of all members do
        each = (_of_each_member(label, among, devices) for label in value.whole)
        whole = frozenset(label for label in each if label is not None)
    return Value(
        whole,
        some,
        method,
        alike,
        _spread(instruction, what, value, among, devices),
        partials=_closed(value, what, reducer, among, devices, place),
        sums=_summed(value, what, reducer, among, devices, place),
        hidden=value.hidden or what == "all-to-all",
    )


def _of_each_member(label: int, among: Groups, devices: Devices) -> int | None:
    """What a label is of each member of the groups; None where that is not one label for all of them."""
    first = _of_member(label, 0, among, devices)
    if label == first:
        return label
    others = (_of_member(label, place, among, devices) for place in range(1, len(among[0])))
    return first if all(other == first for other in others) else None


def _of_member(label: int, member: int, among: Groups, devices: Devices) -> int:
    """What a label is of the members at one place of their groups, for all who are in them."""
    return devices.over_groups(f"of {member}", among, label, lambda marks: [marks[member]] * len(marks))


def handed_out(
    instruction: Instruction, given: Sequence[Value], devices: Devices, meetings: Meetings
) -> tuple[Value, ...] | None:
    """The results of an all-to-all of several operands: of each member of the group the operand at one's own place."""
    among = groups(instruction, devices, meetings)
    if among is None or {len(group) for group in among} != {len(given)}:
        return None
    whole = frozenset.intersection(*(value.whole for value in given))
    some = frozenset.intersection(*(value.some for value in given))
    position = devices.positions(among)
    method, alike = devices.finer(*(v.method for v in given)), devices.finer(*(v.alike for v in given))
    return tuple(
        Value(
            frozenset(_of_member(label, k, among, devices) for label in whole),
            frozenset(_of_member(label, k, among, devices) for label in some),
            devices.finer(_of_member(method, k, among, devices), position),
            devices.finer(_of_member(alike, k, among, devices), position),
            (None,) * len(given[k].dimensions),
            partials=together(*(value.partials for value in given)),
            hidden=True,
        )
        for k in range(len(given))
    )


def left_over(label: int, among: Groups, devices: Devices) -> int | None:
    """The label of what is still apart after groups took together what a label keeps apart; None where that is only
    part of it in each group, or some of it twice."""

    def take(marks: tuple[int, ...]) -> Sequence[Hashable]:
        distinct = sorted(set(marks))
        if len(marks) % len(distinct) or any(marks.count(mark) * len(distinct) != len(marks) for mark in distinct):
            return [("uneven", *marks)] * len(marks)
        return [tuple(distinct)] * len(marks)

    after = devices.over_groups("taken together", among, label, take)
    return None if after == label else after


def _spread(
    instruction: Instruction, what: str, value: Value, among: Groups, devices: Devices
) -> tuple[Dimension, ...]:
    """How dimensions are spread. One whose parts come together in another dimension, or in a sum, is not spread any
    more, nor is all of it here."""

    def joined(dimension: Labels) -> bool:
        return any(label >= 0 and left_over(label, among, devices) is not None for label in dimension)

    along = instruction.attributes.get("dimensions", "").strip("{}")
    found = [
        None if dimension is not None and (what != "all-gather" or str(k) != along) and joined(dimension) else dimension
        for k, dimension in enumerate(value.dimensions)
    ]
    if not along.isdigit() or int(along) >= len(found):
        return tuple(found) if what == "all-reduce" else (None,) * len(found)
    k = int(along)
    dimension = found[k]
    if what == "all-gather" and dimension is not None:
        after = {left_over(label, among, devices) if label >= 0 else label for label in dimension}
        found[k] = None if None in after else frozenset(label for label in after if label and label != devices.one)
    elif what == "reduce-scatter":
        found[k] = None if dimension is None else (dimension | {devices.positions(among)}) - {-1}
    else:
        found = [None] * len(found)
    return tuple(found)


def _closed(
    value: Value, what: str, reducer: str, among: Groups, devices: Devices, place: Place
) -> tuple[Partial, ...]:
    """Addends after an exchange: those that were added up are gone, others went through it."""
    if what not in REDUCES:  # the addends of others are here now: what a sum is made of, nobody knows
        return tuple(
            one if _of_member(one.label, 0, among, devices) == one.label else replace(one, doubted=True)
            for one in value.partials
        )
    if reducer != "add":
        return bent(value.partials, place)
    found = []
    any_closed = False
    for one in value.partials:
        after = left_over(one.label, among, devices)
        if after is None:
            found.append(one)
            continue
        any_closed = True
        if after != devices.one:
            found.append(replace(one, label=after))
    if any_closed or value.hidden or value.lost:
        return tuple(found)
    return tuple(one if one.wrong else replace(one, wrong=place.name) for one in found)


def undone(value: Value, among: Groups, devices: Devices) -> tuple[Partial, ...]:
    """The addends that an exchange in groups brings together."""
    return tuple(one for one in value.partials if not one.doubted and left_over(one.label, among, devices) is not None)


def _summed(value: Value, what: str, reducer: str, among: Groups, devices: Devices, place: Place) -> frozenset[Reduced]:
    """Sums that a result is a multiple of: this one, and those before of which it adds up equal ones."""
    if what not in REDUCES or reducer != "add" or not value.some:
        return frozenset()
    size = len(among[0])
    members = devices.in_groups(among)
    new = Reduced(place.name, members)
    if not devices.covers(value.alike, members):
        return frozenset((new,))
    repeated = {
        replace(one, factor=one.factor, again=place.name, times=size)
        for one in value.sums
        if not one.again and devices.finer(one.groups, members) != devices.each
    }
    return frozenset((new, *repeated, *(one for one in value.sums if one.again)))


def _permuted(instruction: Instruction, value: Value, devices: Devices, meetings: Meetings) -> Value:
    """A permute: each device has what its source had, or zeros. Devices at one place of chains that data is sent along
    compute by one function with one another; along a chain, what is sent may make up for what differs."""
    pairs = meetings.groups(instruction)
    if pairs is None or any(len(pair) != 2 for pair in pairs) or len({pair[1] for pair in pairs}) < len(pairs):
        return unknown(devices, len(value.dimensions))
    source = {target: origin for origin, target in pairs}
    has_all = len(source) == devices.count
    chained = devices.label(_places_in_chains(source, devices.count))

    def sent(label: int) -> int:
        table = devices.table(label)
        return devices.label(table[source[d]] if d in source else -1 for d in range(devices.count))

    method = devices.finer(sent(value.method), chained)

    def stays(label: int) -> bool:
        table = devices.table(label) if label >= 0 else ()
        return label < 0 or all(table[target] == table[origin] for target, origin in source.items())

    dimensions = tuple(
        dimension if dimension is None or all(map(stays, dimension)) else None for dimension in value.dimensions
    )
    return Value(
        frozenset(map(sent, value.whole)) if has_all else NOTHING,
        frozenset(map(sent, value.some)) if has_all else NOTHING,
        method,
        sent(value.alike),
        dimensions,
        partials=tuple(one if stays(one.label) else replace(one, doubted=True) for one in value.partials),
        hidden=value.hidden,
    )


def _places_in_chains(source: dict[int, int], count: int) -> list[tuple[int, int]]:
    """By device, where it stands in its chain or ring (in which the smallest number is first), and how long that is."""
    target = {origin: device for device, origin in source.items()}
    found: list[tuple[int, int]] = [(0, 0)] * count
    seen: set[int] = set()
    starts = [d for d in range(count) if d not in source] + list(range(count))
    for start in starts:
        chain: list[int] = []
        device: int | None = start
        while device is not None and device not in seen:
            seen.add(device)
            chain.append(device)
            device = target.get(device)
        for place, member in enumerate(chain):
            found[member] = (place, len(chain))
    return found
