"""What is known of a module's parameters, and where its results should be equal, by their shardings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hlo_verify.hlo.module import HloModule, Instruction
from hlo_verify.hlo.shapes import Array, Shape, Tuple, leaves
from hlo_verify.hlo.shardings import coordinates, of_leaves
from hlo_verify.linter.placement.devices import Devices
from hlo_verify.linter.placement.values import NOTHING, Tree, Value, unknown


def arguments(module: HloModule, shardings: Sequence[str] | None, devices: Devices) -> list[Tree]:
    """A value for each parameter. `shardings` are those of all their arrays; without them, what the text says."""
    given = iter(shardings or ())
    found: dict[int, Tree] = {}
    for number, parameter in sorted(module.entry.parameters.items()):
        texts = given if shardings is not None else iter(_said(parameter, module))
        found[number] = _argument(parameter.shape, texts, devices)
    return [found.get(number, ()) for number in range(max(found, default=-1) + 1)]


def _said(parameter: Instruction, module: HloModule) -> list[str]:
    """What the text says of a parameter's arrays: of each replica for itself, so that of several nothing is known."""
    if module.replicas > 1:
        return []
    return of_leaves(parameter.attributes.get("sharding", ""), len(list(leaves(parameter.shape))))


def _argument(shape: Shape, texts: Iterator[str], devices: Devices) -> Tree:
    if isinstance(shape, Tuple):
        return tuple(_argument(part, texts, devices) for part in shape.parts)
    return _parameter(shape, next(texts, ""), devices)


def _parameter(shape: Array, text: str, devices: Devices) -> Value:
    places = coordinates(text, devices.count)
    if places is None or any(place and len(place) != len(shape.sizes) for place in places):
        return unknown(devices, len(shape.sizes))
    label = devices.label(places)
    spread = [devices.label(along) for along in zip(*places, strict=True)] or [devices.one] * len(shape.sizes)
    labels = frozenset((devices.one, label))
    dimensions = tuple(NOTHING if along == devices.one else frozenset((along,)) for along in spread)
    return Value(labels, labels, devices.one, label, dimensions)


def held(text: str, devices: Devices) -> int | None:
    """The label of devices that hold the same shard of a result; None where the text does not say it."""
    places = coordinates(text, devices.count)
    return None if places is None else devices.label(places)
