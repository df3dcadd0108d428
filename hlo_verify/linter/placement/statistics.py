"""Statistics of a device's own part that are used as if they were of all: the maximum in a softmax, the mean in a
normalisation, over a dimension that is split.

    m = jnp.max(x, axis=-1, keepdims=True)     # of this device's columns
    p = jnp.exp(x - m)                         # meets all of these columns: nothing brings the maxima together

A model may mean it (batch statistics of each device), and so it is a warning. It is none where the statistic, or what
is computed from it element by element, is exchanged over the devices anywhere: online softmax uses the maximum of a
part, and brings the parts together later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from hlo_verify.diagnostics import Placement, Severity
from hlo_verify.hlo.groups import Groups
from hlo_verify.hlo.module import Instruction
from hlo_verify.hlo.shapes import Array
from hlo_verify.linter.finding import Finding, at
from hlo_verify.linter.placement import opcodes
from hlo_verify.linter.placement.communication import left_over
from hlo_verify.linter.placement.devices import Devices
from hlo_verify.linter.placement.elementwise import Place
from hlo_verify.linter.placement.values import FREE, Local, Tree, Value

JOINS = frozenset(("maximum", "minimum", "add"))


@dataclass
class Statistics:
    """What is seen of statistics on the way: `met` are those that meet data of their dimension, and where first, and
    `together` those that are brought together, or may be."""

    devices: Devices
    met: dict[str, tuple[Local, Place]] = field(default_factory=dict)
    together: set[str] = field(default_factory=set)

    def see(self, i: Instruction, given: Sequence[Tree], place: Place) -> None:
        """Look at an operation."""
        arrays = [value for value in given if isinstance(value, Value)]
        if i.opcode in ("while", "conditional"):
            self.together |= {one.origin for value in _flat(given) for one in value.statistics}
        elif len(arrays) == len(given) > 1 and opcodes.is_elementwise(i.opcode):
            for value in arrays:
                if value.statistics:
                    self._combined(i, value, [other for other in arrays if other is not value], place)

    def exchanged(self, value: Value, among: Groups | None) -> None:
        """Look at an exchange in groups; None of unknown ones."""
        for one in value.statistics:
            if among is None or left_over(one.label, among, self.devices) is not None:
                self.together.add(one.origin)

    def _combined(self, i: Instruction, value: Value, others: Sequence[Value], place: Place) -> None:
        shape = i.shape
        if not isinstance(shape, Array):
            return
        for other in others:
            ranks = {len(shape.sizes), len(value.dimensions), len(other.dimensions)}
            if len(ranks) > 1 or other.number is not None:
                continue
            sizes = zip(shape.sizes, value.dimensions, other.dimensions, strict=True)
            broadcast = [(size, b) for size, a, b in sizes if a == FREE and size > 1]
            for one in value.statistics:
                if any(size == one.size and b and one.label in b for size, b in broadcast):
                    self.met.setdefault(one.origin, (one, place))
                elif i.opcode in JOINS and not broadcast and not (other.is_constant or one in other.statistics):
                    self.together.add(one.origin)  # one statistic with another one, as in a running maximum

    def findings(self, named: dict[str, Instruction]) -> Iterator[Finding]:
        """What is said of statistics that nothing brings together, once a line of the source."""
        said: set[str] = set()
        for origin, (one, place) in self.met.items():
            made = named.get(origin)
            if origin in self.together or made is None or (made.location or origin) in said:
                continue
            said.add(made.location or origin)
            table = self.devices.table(one.label)
            message = (
                f"{origin} is taken over a dimension that is split, on device 0 of its own {one.size} elements and on "
                f"device {table.index(1)} of others; {place.name} uses it for all of them, and nothing brings them "
                "together"
            )
            found = at(made, Placement.LOCAL_STATISTIC, message, *(() if place.name == origin else (place.name,)))
            yield replace(found, severity=Severity.WARNING)


def _flat(trees: Sequence[Tree]) -> Iterator[Value]:
    for tree in trees:
        if isinstance(tree, Value):
            yield tree
        else:
            yield from _flat(tree)
