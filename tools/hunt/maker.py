"""A program as it is drawn, operation by operation; whether it is one, JAX says."""

from __future__ import annotations

import functools
import random
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import jax

from tools.hunt.case import Argument, Case, Spec, Step
from tools.hunt.operations import expression
from tools.hunt.placing import divides, draw_spec
from tools.hunt.source import HEAD, NAMES, every_value, run

ELEMENTS = 2048
"""Of the largest value."""

Type = tuple[str, tuple[int, ...]]


class NoProgram(Exception):
    """What was drawn is none."""


class Maker:
    """A program as it grows."""

    def __init__(self, rng: random.Random, mesh: tuple[int, ...]) -> None:
        self.rng = rng
        self.mesh = mesh
        self.axes = dict(zip("xyz", mesh, strict=False))
        self.arguments: list[Argument] = []
        self.steps: list[Step] = []
        self.types: dict[int, Type] = {}
        """Of arguments, whose numbers count down from -1, and steps, from 0, until `case` numbers them anew."""

    def size(self, least: int = 1) -> int:
        """Of a dimension: more often than not one that the mesh divides."""
        some = [each for each in (*self.mesh, prod(self.mesh)) if each > 1]
        if self.rng.random() < 0.65:
            return max(least, self.rng.choice(some) * self.rng.choice((1, 1, 2, 2, 3)))
        return max(least, self.rng.choice((1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12)))

    def argument(self, shape: Sequence[int], dtype: str = "float32", below: int = 0, distinct: bool = False) -> int:
        shape = tuple(shape)
        if prod(shape) > ELEMENTS or len(self.arguments) > 4 or 0 in shape:
            raise NoProgram
        spec = draw_spec(shape, self.axes, self.rng, often=0.55)
        self.arguments.append(Argument(dtype, shape, spec, below, distinct))
        self.types[-len(self.arguments)] = dtype, shape
        return -len(self.arguments)

    def value(self, ranks: Sequence[int] = (1, 2, 3), dtypes: Sequence[str] = ("float32",)) -> int:
        """One that was made before, the last one if it fits, or an argument."""
        fits = [v for v, (dtype, shape) in self.types.items() if len(shape) in ranks and dtype in dtypes]
        last = len(self.steps) - 1
        if last in fits and self.rng.random() < 0.9:
            return last
        if fits and self.rng.random() < 0.5:
            return self.rng.choice(fits)
        rank = self.rng.choice(ranks)
        return self.argument([self.size() for _ in range(rank)], self.rng.choice(dtypes))

    def shape(self, value: int) -> tuple[int, ...]:
        return self.types[value][1]

    def like(self, value: int) -> int:
        """Another value of its type, or once in a while the same."""
        fits = [v for v, each in self.types.items() if each == self.types[value]]
        if self.rng.random() < 0.4:
            return self.rng.choice(fits)
        return self.argument(self.shape(value), self.types[value][0])

    def step(self, op: str, inputs: Sequence[int], attributes: Mapping[str, Any], spec: Spec | None = None) -> int:
        """Raises `NoProgram` where JAX knows no such operation on these."""
        type_ = _type_of(op, [self.types[v] for v in inputs], attributes)
        if prod(type_[1]) > ELEMENTS or 0 in type_[1]:
            raise NoProgram
        if spec is None and type_[1] and self.rng.random() < 0.3:
            even = self.rng.random() < 0.6
            spec = draw_spec(type_[1], self.axes, self.rng, even=even, often=0.8)
        self.steps.append(Step(op, tuple(inputs), attributes, spec))
        self.types[len(self.steps) - 1] = type_
        return len(self.steps) - 1

    def case(self, value: int, result: Spec | None, pulled: tuple[int, str] | None, explicit: bool = False) -> Case:
        def number(v: int) -> int:
            return -v - 1 if v < 0 else v + len(self.arguments)

        steps = tuple(Step(s.op, tuple(map(number, s.inputs)), s.attributes, s.spec) for s in self.steps)
        given = None if pulled is None else (number(pulled[0]), pulled[1])
        return Case(self.mesh, tuple(self.arguments), steps, number(value), result, given, explicit)


def _type_of(op: str, types: Sequence[Type], attributes: Mapping[str, Any]) -> Type:
    names = NAMES[: len(types)]
    text = f"{HEAD}def f({', '.join(names)}):\n    return {expression(op, names, attributes, placed=False)}\n"
    return _evaluated(text, tuple(types))


@functools.lru_cache(maxsize=256)
def _evaluated(text: str, types: tuple[Type, ...]) -> Type:
    shapes = [jax.ShapeDtypeStruct(shape, dtype) for dtype, shape in types]
    try:
        found = jax.eval_shape(run(text)["f"], *shapes)
    except Exception as error:
        raise NoProgram from error
    return str(found.dtype), tuple(found.shape)


def shapes(case: Case) -> list[Type]:
    """Of every value. Raises `NoProgram` where the case is none."""
    given = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in case.arguments]
    try:
        return [(str(each.dtype), tuple(each.shape)) for each in jax.eval_shape(every_value(case), *given)]
    except Exception as error:
        raise NoProgram from error


def is_program(case: Case) -> bool:
    """Whether JAX takes it: shapes fit, and what has to be split evenly is."""
    try:
        types = shapes(case)
    except NoProgram:
        return False
    axes = case.axes()
    value = types[case.value if case.pulled is None else case.pulled[0]]
    if any(0 in shape for _, shape in types) or (case.pulled and types[case.value][0] != "float32"):
        return False
    even = [(each.shape, each.spec) for each in case.arguments]
    even += [] if case.result is None else [(value[1], case.result)]
    made = types[len(case.arguments) :]
    any_ = [(t[1], s.spec) for s, t in zip(case.steps, made, strict=True) if s.spec is not None]
    if not all(len(shape) == len(spec) for shape, spec in (*even, *any_)):
        return False
    return all(divides(size, names, axes) for shape, spec in even for size, names in zip(shape, spec, strict=True))


def kinds(case: Case) -> list[tuple[str, tuple[int, ...], int, bool]]:
    return [(each.dtype, each.shape, each.below, each.distinct) for each in case.arguments]
