"""What is known of a value on all devices.

The question is which results surely differ between devices that should hold the same. Parameters say which of their
shards each device holds: a label. What devices compute of other shards by *one* function is another value for almost
all inputs. So of each value it is known by which labels its elements differ (each of them, or some), and which devices
are known to compute it by one function: where the number of the device entered, or where data was sent from one device
to another, those that are treated alike. Nothing is said of others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum
from fractions import Fraction

from hlo_verify.linter.placement.devices import Devices

Labels = frozenset[int]
Numbers = tuple[Fraction, ...]
NOTHING: Labels = frozenset()

Dimension = Labels | None
"""By which labels the elements along a dimension are spread over devices; none of them: each device has all. None if
that is not known."""

FREE: Dimension = frozenset((-1,))
"""Along which all elements are equal, so that they may be taken for spread in any way."""

MOST_TERMS = 12
"""Terms that a sum is written as; one of more is a value of its own."""

MOST_STATISTICS = 4
"""Statistics that are remembered of one value."""

MOST_PARTIALS = 6
"""Addends that are remembered of one value: the first ones are the causes of those that follow."""


class Stage(IntEnum):
    """What has been done to an addend since it was made."""

    LINEAR = 0
    NONLINEAR = 1
    PRODUCT = 2


@dataclass(frozen=True, slots=True)
class Partial:
    """One addend of a sum: by `label`, devices with another number hold another addend. `origin` is the instruction
    that made it and `order` its place, `at` where something was done to it that a sum does not allow, and `wrong` a
    reduction that it went through and that added up something else. `doubted`: it may be a value of its own. `called`
    is the origin's name in the source program."""

    label: int
    order: int
    origin: str
    stage: Stage = Stage.LINEAR
    at: str = ""
    wrong: str = ""
    doubted: bool = False
    called: str = ""


@dataclass(frozen=True, slots=True)
class Local:
    """A sum or an extreme over a dimension of which each device has `size` elements of its own, by `label`, made by
    instruction `origin`: a statistic of a device's own part."""

    label: int
    size: int
    origin: str


@dataclass(frozen=True, slots=True)
class Reduced:
    """A value is a sum over groups of devices, times `factor`: `by` which instruction, and over which groups (a label).
    `again`: the instruction that added up equal ones of those, and how many."""

    by: str
    groups: int
    factor: Fraction = Fraction(1)
    again: str = ""
    times: int = 1


@dataclass(frozen=True, slots=True)
class Term:
    """A multiple of a value that an operation made, with the labels that the value has. `roots` are the values that it
    is made of by moving, adding and scaling: what is added of the same may cancel, in all or in some elements."""

    name: str
    times: Fraction
    whole: Labels
    some: Labels
    roots: frozenset[str]


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of an array.

    `whole` are labels by which devices hold different things in each element, `some` in one element at least: both for
    devices that `method` labels alike, which compute it by one function. `Devices.one` is among them where elements
    depend on inputs at all. `alike` labels devices that surely hold the same. `number` is what all elements are, by
    device, where that follows from the text, and `elements` are those of a constant vector. `is_constant`: it depends
    on no input and on no device, and is not zero everywhere. `lost` are labels of dimensions of which one element was
    taken. `hidden`: it may be an addend in a way that `partials` does not say. `terms` are what it is the sum of, so
    that what is added and taken away again is seen. `statistics` are those that it is computed from, with no exchange
    over their devices in between.
    """

    whole: Labels
    some: Labels
    method: int
    alike: int
    dimensions: tuple[Dimension, ...] = ()
    number: Numbers | None = None
    elements: Numbers | None = None
    is_constant: bool = False
    partials: tuple[Partial, ...] = ()
    sums: frozenset[Reduced] = frozenset()
    lost: Labels = frozenset()
    hidden: bool = False
    terms: tuple[Term, ...] = ()
    statistics: frozenset[Local] = frozenset()

    def with_dimensions(self, dimensions: Iterable[Dimension]) -> Value:
        return replace(self, dimensions=tuple(dimensions))


Tree = Value | tuple["Tree", ...]
"""A value for each array of a shape."""


def unknown(devices: Devices, rank: int = 0) -> Value:
    """Of which nothing is known."""
    return Value(NOTHING, NOTHING, devices.each, devices.each, (None,) * rank, hidden=True)


def is_dense(value: Value) -> bool:
    """Whether no element is zero for all inputs."""
    return bool(value.whole) or (value.number is not None and all(value.number))


def is_nonzero(value: Value) -> bool:
    """Whether some element is not zero for all inputs."""
    return value.is_constant or bool(value.some) or is_dense(value)


def merged(one: Dimension, other: Dimension) -> Dimension:
    """How a dimension is spread that two values share."""
    if one is None or other is None:
        return None
    if FREE in (one, other):
        return other if one == FREE else one
    return one if one == other else None


def join(one: Tree, other: Tree, devices: Devices) -> Tree:
    """What is known of a value that is one of two."""
    if one == other:
        return one
    if isinstance(one, tuple) or isinstance(other, tuple):
        if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
            return tuple(join(a, b, devices) for a, b in zip(one, other, strict=True))
        return unknown(devices)
    return Value(
        one.whole & other.whole,
        one.some & other.some,
        devices.finer(one.method, other.method),
        devices.finer(one.alike, other.alike),
        _joined(one, other),
        one.number if one.number == other.number else None,
        one.elements if one.elements == other.elements else None,
        one.is_constant and other.is_constant,
        together(one.partials, other.partials),
        one.sums & other.sums,
        one.lost & other.lost,
        one.hidden or other.hidden,
        one.terms if one.terms == other.terms else (),
        statistics=one.statistics & other.statistics,
    )


def _joined(one: Value, other: Value) -> tuple[Dimension, ...]:
    if len(one.dimensions) != len(other.dimensions):
        return ()
    if one.number is not None:
        return other.dimensions
    if other.number is not None:
        return one.dimensions
    return tuple(map(merged, one.dimensions, other.dimensions))


def together(*all_of: tuple[Partial, ...]) -> tuple[Partial, ...]:
    """Addends of several values in one: the furthest stage of each counts, and the earliest are kept."""
    found: dict[tuple[int, str], Partial] = {}
    for partials in all_of:
        for one in partials:
            key = (one.label, one.origin)
            old = found.get(key)
            if old is None or (one.stage, one.wrong, one.at) > (old.stage, old.wrong, old.at):
                found[key] = one
    return tuple(sorted(found.values(), key=lambda one: (one.order, one.label))[:MOST_PARTIALS])
