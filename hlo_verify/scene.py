"""What is around a fault, as plain data for pictures: source lines, devices, what each holds, and the dataflow."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a source file around the line `at`; the first of them has the number `first`."""

    file: str
    first: int
    at: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Held:
    """Which part of a logical tensor each device holds: of dimension k the elements from `starts[device][k]` on,
    `shard[k]` of them, as far as the tensor goes. `starts[device]` is None for a device that has nothing of it.
    `addends[device]` numbers what the device holds of a sum that is still to be taken; empty where there is none.
    """

    tensor: str
    shape: tuple[int, ...]
    shard: tuple[int, ...]
    starts: tuple[tuple[int, ...] | None, ...]
    addends: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Meeting:
    """Which devices a collective brings together: groups, or pairs of a source and a target."""

    operation: str
    groups: tuple[tuple[int, ...], ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """An operation or argument near a fault. `name` tells it from others of its module, `lineage` says which logical
    value it is a shard of, where that is known."""

    name: str
    operation: str
    type: str
    location: str = ""
    lineage: str = ""
    at_fault: bool = False


@dataclass(frozen=True, slots=True)
class Around:
    """The operations around a fault in one module. `edges` go from the name of an operand to that of its user;
    `left_out` counts operations that are near and not told."""

    parts: tuple[Part, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Scene:
    """What is around a fault. `axes` are those of the mesh, outermost first, as far as a module names them, and
    `device_ids` the device at each position, empty where that is the position. `held` is where the tensors at the fault
    lie or have to lie, `matches` are pairs of names of `logical` and `partitioned`."""

    excerpt: Excerpt | None = None
    axes: tuple[tuple[str, int], ...] = ()
    device_ids: tuple[int, ...] = ()
    held: tuple[Held, ...] = ()
    meeting: Meeting | None = None
    logical: Around = Around()
    partitioned: Around = Around()
    matches: tuple[tuple[str, str], ...] = ()
