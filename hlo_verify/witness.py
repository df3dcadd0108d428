"""Witnesses: inputs for which a result differs, and where it does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """An element of a logical value, the device that has another value there, and both values.

    `local_element` is its index in the device's shard. Where two devices hold the element and disagree, whatever the
    logical module says, `beside` is the other one, and `logical` what that has.
    """

    device: int
    element: tuple[int, ...]
    local_element: tuple[int, ...]
    logical: float
    partitioned: float
    beside: int | None = None

    def __str__(self) -> str:
        where = f"element {list(self.element)}" if self.element else "the value"
        local = f" ({list(self.local_element)} of its shard)" if self.local_element != self.element else ""
        found = f"{where} is {self.partitioned:.6g} on device {self.device}{local}"
        if self.beside is not None:
            return f"{found}, and {self.logical:.6g} on device {self.beside}, which should hold the same"
        return f"{found}, and should be {self.logical:.6g}"


@dataclass(frozen=True, slots=True)
class Witness:
    """Inputs for which a result differs, and where it does.

    `inputs` are the arguments' names with what they hold, in words; `replayed` says by what the difference was
    confirmed. `lost` is where the value of the finding's operation differs, if it has a logical counterpart.
    """

    point: Point
    inputs: tuple[tuple[str, str], ...]
    replayed: str
    lost: Point | None = None
