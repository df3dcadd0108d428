"""What a program of the hunt is: plain data, which JSON keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from math import prod
from typing import Any

AXES = ("x", "y", "z")

Spec = tuple[tuple[str, ...], ...]
"""For each dimension, the axes of the mesh that split it."""


@dataclass(frozen=True, slots=True)
class Argument:
    """`below` bounds the integers that are drawn for one that indexes; of a `distinct` one no two elements agree."""

    dtype: str
    shape: tuple[int, ...]
    spec: Spec
    below: int = 0
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """An operation on values: the arguments, then what steps give, are numbered from 0. `spec` is a sharding constraint
    on what comes out."""

    op: str
    inputs: tuple[int, ...]
    attributes: Mapping[str, Any]
    spec: Spec | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One value is the result, placed by `result` (left to XLA where that is None). With `pulled`, the result is the
    gradient by that argument instead, of the sum of the value (`ones`) or of its squares (`value`).

    An `explicit` mesh has explicit axes: arguments lie as they say, and steps as they say or as JAX infers.
    """

    mesh: tuple[int, ...]
    arguments: tuple[Argument, ...]
    steps: tuple[Step, ...]
    value: int
    result: Spec | None
    pulled: tuple[int, str] | None = None
    explicit: bool = False

    @property
    def devices(self) -> int:
        return prod(self.mesh)

    def axes(self) -> dict[str, int]:
        return dict(zip(AXES, self.mesh, strict=False))

    def size(self) -> tuple[int, ...]:
        """What the minimiser makes smaller: operations, constraints, devices, arguments' dimensions, numbers."""
        numbers = sum(_weight(step.attributes) for step in self.steps)
        specs = [each.spec for each in self.arguments] + [step.spec for step in self.steps] + [self.result]
        splits = sum(len(axes) for spec in specs if spec for axes in spec)
        elements = sum(sum(each.shape) for each in self.arguments)
        constraints = sum(step.spec is not None for step in self.steps)
        pulled = 0 if self.pulled is None else 1 + (self.pulled[1] != "ones")
        return (
            len(self.steps),
            pulled,
            constraints,
            len(self.mesh),
            self.devices,
            splits,
            len(self.arguments),
            elements + numbers,
        )


def _weight(attributes: Any) -> int:
    """How large the numbers of attributes are, together."""
    if isinstance(attributes, Mapping):
        return sum(map(_weight, attributes.values()))
    if isinstance(attributes, list | tuple):
        return sum(map(_weight, attributes))
    return abs(attributes) if isinstance(attributes, int) else 0


def to_data(case: Case) -> dict[str, Any]:
    """As JSON has it."""
    return asdict(case)


def _tuples(data: Any) -> Any:
    return tuple(map(_tuples, data)) if isinstance(data, list | tuple) else data


def from_data(data: Mapping[str, Any]) -> Case:
    arguments = tuple(Argument(**{name: _tuples(value) for name, value in each.items()}) for each in data["arguments"])
    steps = tuple(
        Step(each["op"], tuple(each["inputs"]), each["attributes"], _tuples(each["spec"])) for each in data["steps"]
    )
    return Case(
        tuple(data["mesh"]), arguments, steps, data["value"],
        _tuples(data["result"]), _tuples(data["pulled"]), data["explicit"],
    )  # fmt: skip


def live(case: Case) -> set[int]:
    """The values that the result depends on."""
    found = {case.value}
    for number in range(len(case.arguments) + len(case.steps) - 1, len(case.arguments) - 1, -1):
        if number in found:
            found.update(case.steps[number - len(case.arguments)].inputs)
    return found


def pruned(case: Case) -> Case:
    """Without what the result does not depend on."""
    kept = sorted(live(case) | ({case.pulled[0]} if case.pulled else set()))
    number = {old: new for new, old in enumerate(kept)}
    count = len(case.arguments)
    steps = tuple(
        replace(step, inputs=tuple(number[v] for v in step.inputs))
        for k, step in enumerate(case.steps, count)
        if k in number
    )
    arguments = tuple(each for k, each in enumerate(case.arguments) if k in number)
    pulled = None if case.pulled is None else (number[case.pulled[0]], case.pulled[1])
    return replace(case, arguments=arguments, steps=steps, value=number[case.value], pulled=pulled)
