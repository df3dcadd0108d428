"""Where values that go round a ring of devices come from."""

from __future__ import annotations

from collections.abc import Callable

from hlo_verify.index import tables
from hlo_verify.index.expr import Digit, Index, Opaque, Var


def rotation(source: Index, device: Var) -> Callable[[Index], Index] | None:
    """Where a value comes from after some turns, if it comes from `source` after one: the same shift of the devices'
    places on rings. None if it is no such shift.

    Steps of several places may be rotations of more than one digit; a mesh axis is what the source is written with.
    """
    if source.free - {device}:
        return None
    found = tables.evaluate(source, device)
    written = [
        (digit.low, atom.args[0])
        for atom, _ in source.items
        if isinstance(atom, Opaque) and atom.operator == "mod"
        for digit, _ in atom.exprs[0].items
        if isinstance(digit, Digit)
    ]
    ring = None if found is None else tables.ring(found, device, written)
    return None if ring is None else ring.turned
