"""The ways in which an argument or result may lie that no module places, by its shapes on both sides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hlo_verify.diagnostics import Annotation, Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.passes.load.front import Taken, Writer, as_they_are, put_in_front
from hlo_verify.passes.place.placements import Groups, Padding, lies, paddings, placed, placements, sums
from hlo_verify.program.element_types import ARITHMETIC
from hlo_verify.program.ir import Module, TensorType
from hlo_verify.program.sharding import Sharding, replicated
from hlo_verify.session import Session


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One way in which an argument may lie: by a sharding; or, with `padding`, as shards beside zeros, and then the
    partitioned module is made to take the whole argument and to hold that of it (`padded`)."""

    sharding: Sharding
    padding: Padding | None = None

    @property
    def is_sum(self) -> bool:
        return self.sharding.addends is not None

    @property
    def is_padded_end(self) -> bool:
        """Whether every device holds a shard, and only what lies past the end is zeros instead of anything."""
        return self.padding is not None and len(self.padding.holders) == len(self.padding.positions)

    def lies(self, shape: tuple[int, ...]) -> str:
        """The same in words, for a line of its own."""
        if self.padding is None:
            return lies(self.sharding, shape)
        if self.is_padded_end:
            return f"dimension {self.padding.dimension} in {self.padding.count}, the last padded with zeros"
        held = ", ".join(map(str, self.padding.holders))
        return f"dimension {self.padding.dimension} in {self.padding.count}, on devices {held}, zeros beside them"

    def placed(self, shape: tuple[int, ...]) -> str:
        """The same in words, for a verdict's first line."""
        if self.padding is None:
            return placed(self.sharding, shape)
        if self.is_padded_end:
            devices = len(self.padding.positions)
            return f"split along dimension {self.padding.dimension} over {devices} devices, the last padded with zeros"
        held = ", ".join(map(str, self.padding.holders))
        return f"split along dimension {self.padding.dimension} over devices {held}, zeros beside them"


def choices_of(
    what: str, logical: Module, partitioned: Module, devices: int, groups: Sequence[Groups], session: Session
) -> Choices:
    """For each argument or result without a sharding, those that its shapes allow: at first by shards of the whole."""
    most = session.limits.placement_orders
    if what == "argument":
        names, wholes, parts = logical.argument_names, logical.main.argument_types, partitioned.main.argument_types
        known = zip(logical.argument_shardings, partitioned.argument_shardings, strict=True)
    else:
        names, wholes, parts = logical.result_names, logical.result_types, partitioned.result_types
        known = zip(logical.result_shardings, partitioned.result_shardings, strict=True)
    choices = {}
    for n, each in enumerate(known):
        if each == (None, None):
            shapes = wholes[n].shape, parts[n].shape
            orders = list(placements(*shapes, devices, groups))
            if len(orders) > most:
                session.reached("placement_orders")
            found = [Choice(sharding) for sharding in orders[:most]]
            if what == "argument":
                found += _others(found, wholes[n], parts[n], devices, groups)
            if not found:
                raise _no_shard(f"{what} {names[n]}", wholes[n], parts[n], devices)
            choices[n] = found
    return choices


Choices = dict[int, list[Choice]]


def _others(
    shards: Sequence[Choice], whole: TensorType, part: TensorType, devices: int, groups: Sequence[Groups]
) -> Iterator[Choice]:
    """Addends in place of what devices hold copies of, and zeros beside shards."""
    if is_summable(whole):
        for each in shards[:1]:
            yield from map(Choice, sums(each.sharding, groups))
    for padding in paddings(whole.shape, part.shape, devices, groups):
        yield Choice(replicated(whole.rank, devices), padding)


def is_summable(type_: TensorType) -> bool:
    """Whether elements have a sum."""
    return type_.dtype != "i1" and bool(ARITHMETIC.fullmatch(type_.dtype))


def _no_shard(what: str, whole: TensorType, part: TensorType, devices: int) -> InputError:
    larger = part.rank == whole.rank and any(p > w for p, w in zip(part.shape, whole.shape, strict=True))
    if part.rank != whole.rank or larger:
        return InputError(
            f"{what} is {whole} in the logical module and {part} in the partitioned one, which is no part of it: "
            "they are not a pair",
            Input.NOT_A_PAIR,
        )
    return InputError(
        f"{what} has no sharding in either module, and {devices} devices cannot hold {whole} as {part} each; "
        "give its sharding with --shardings",
        Annotation.NO_SHARDING,
    )


def padded(partitioned: Module, wholes: Sequence[TensorType], chosen: dict[int, Padding]) -> Module:
    """The module that takes some arguments whole, and holds shards of them on some devices, zeros on the others."""
    if not chosen:
        return partitioned
    parts = partitioned.main.argument_types
    takes = [
        Taken(each.origin, each.name, wholes[each.origin].shape) if each.origin in chosen else each
        for each in as_they_are(partitioned)
    ]

    def enter(writer: Writer, given: list[Any]) -> list[Any]:
        values = list(given)
        for n, padding in chosen.items():
            size = parts[n].shape[padding.dimension]
            starts = [int(position) * size for position in padding.positions]
            filled = writer.padded(given[n], padding.dimension, max(starts) + size)
            values[n] = writer.held(filled, padding.dimension, starts, size)
        return values

    return put_in_front(partitioned, takes, enter)
