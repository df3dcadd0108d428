"""Pairs: a program, and what each device of a mesh runs, as random as a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tools.fuzz.programs import by_device, poles, text
from tools.fuzz.programs.calls import outline
from tools.fuzz.programs.elementwise import Array
from tools.fuzz.programs.families import FAMILIES
from tools.fuzz.programs.logical import make
from tools.fuzz.programs.mutation import mutate
from tools.fuzz.programs.partition import partition, random_layout, random_mesh
from tools.fuzz.programs.placing import Layout, Mesh, annotation, cut, whole
from tools.fuzz.programs.program import Block, Builder, Function, Kind, prune
from tools.fuzz.programs.replicas import as_replicas, choices
from tools.fuzz.programs.rewriting import rewrite, rewrite_some

MANUAL = 0.15
"""How often the devices' program is a manual region of a global one."""
REPLICAS = 0.15
"""How often devices are replicas, or some of them."""
MUTATED = 0.6
"""How often the second program is edited."""
LARGEST = 80
"""Programs of more operations are left out: they take long, and say no more."""


@dataclass(frozen=True, slots=True)
class Pair:
    """`done` says how the second one was made."""

    family: str
    seed: int
    number: int
    mesh: Mesh
    takes: tuple[Layout, ...]
    gives: tuple[Layout, ...]
    logical: Function
    partitioned: Function
    is_manual: bool = False
    replicas: int = 1
    """Of so many, if that can be written."""
    done: tuple[str, ...] = field(default=())

    @property
    def is_mutated(self) -> bool:
        return any(each.startswith("mutated ") for each in self.done)

    def texts(self) -> tuple[str, str]:
        takes, gives = ([annotation(layout, self.mesh) for layout in layouts] for layouts in (self.takes, self.gives))
        logical = text.module(self.logical, self.mesh.devices, takes, gives)
        if not self.is_manual:
            none = [""] * len(takes), [""] * len(gives)
            count, rng = self.replicas, random.Random(self.number)
            found = as_replicas(self.partitioned, count, self.mesh.devices, rng) if count > 1 else None
            if found is None:
                return logical, text.module(self.partitioned, self.mesh.devices, *none)
            return logical, text.module(found, self.mesh.devices, *none, replicas=count)
        return logical, text.module(self.region(), self.mesh.devices, takes, gives, self._mesh())

    def _mesh(self) -> str:
        axes = ", ".join(f'"{name}"={size}' for name, size in zip(self.mesh.names, self.mesh.sizes, strict=True))
        devices = list(self.mesh.order)
        order = "" if devices == sorted(devices) else f", device_ids={devices}"
        return f"  sdy.mesh @mesh = <[{axes}]{order}>\n"

    def region(self) -> Function:
        """The devices' program as the manual region of a global one."""
        inner = self.partitioned.copy()
        function = Function(inner.kinds)
        body = inner.body
        first, rest = self._nest()
        if rest:
            kinds = self._kinds(first)
            outer = Builder(function, function.body).region(kinds[0])
            outer.block.results = self._manual(outer, outer.block.arguments, kinds[1], body, rest)
            body = outer.block
        kinds = self._kinds(())
        builder = Builder(function, function.body)
        arguments = [builder.argument(kind) for kind in kinds[0]]
        function.body.results = self._manual(builder, arguments, kinds[1], body, first)
        return function

    def _nest(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The axes of the region, and of one inside of it: where both split a dimension, the outer one's come first."""
        names = self.mesh.names
        for at in range(1, len(names)) if self.number % 2 else ():
            first, rest = names[:at], names[at:]
            dims = [axes for layout in (*self.takes, *self.gives) for axes in layout.dims]
            if all([*axes] == sorted(axes, key=lambda axis: axis in rest) for axes in dims):
                return first, rest
        return names, ()

    def _kinds(self, axes: Sequence[str]) -> tuple[list[Kind], list[Kind]]:
        """The types of arguments and results that are split over some of the axes."""
        logical = self.logical
        takes, gives = (
            [only(layout, axes).local(self.mesh, logical.kinds[v]) for v, layout in zip(values, layouts, strict=True)]
            for values, layouts in ((logical.body.arguments, self.takes), (logical.body.results, self.gives))
        )
        return takes, gives

    def _manual(
        self, builder: Builder, arguments: Sequence[int], kinds: Sequence[Kind], body: Block, axes: Sequence[str]
    ) -> tuple[int, ...]:
        takes, gives = ([_sdy(only(layout, axes)) for layout in each] for each in (self.takes, self.gives))
        return builder.many("manual", arguments, kinds, [body], axes=tuple(axes), takes=takes, gives=gives)


def only(layout: Layout, axes: Sequence[str]) -> Layout:
    """The layout over some of its axes."""
    return Layout(tuple(tuple(axis for axis in each if axis in axes) for each in layout.dims))


def _sdy(layout: Layout) -> str:
    dims = ", ".join("{" + ", ".join(f'"{axis}"' for axis in axes) + "}" for axes in layout.dims)
    return f"<@mesh, [{dims}]>"


def make_pair(family: str, seed: int, number: int) -> Pair | None:
    """Pair `number` of a seed, always the same one; None where it comes out too large."""
    rng = random.Random(f"{family} {seed} {number}")
    logical = make(FAMILIES[family], rng)
    mesh = random_mesh(rng)
    kinds = [logical.kinds[v] for v in logical.body.arguments]
    results = [logical.kinds[v] for v in logical.body.results]
    is_manual = rng.random() < MANUAL
    uneven = 0.0 if is_manual else 0.1
    split = 0.0 if family == "scalars" and rng.random() < 0.6 else 1.0
    takes, gives = (
        [random_layout(kind, mesh, rng, uneven) if split else whole(len(kind.shape)) for kind in each]
        for each in (kinds, results)
    )
    done: list[str] = []
    parts = partition(logical, mesh, takes, gives, rng)
    if rng.random() < 0.7:
        done += rewrite(parts, rng, rng.randrange(1, 5))
    if rng.random() < 0.3:
        done += [f"logical {each}" for each in rewrite(logical, rng, rng.randrange(1, 3))]
    if rng.random() < FAMILIES[family].by_device:
        done += rewrite_some(parts, rng, rng.randrange(1, 4), by_device.rewrites(mesh))
    if FAMILIES[family].beside_poles:
        done += rewrite_some(parts, rng, rng.randrange(1, 3), poles.WAYS)
    for function in (logical, parts):
        if rng.random() < FAMILIES[family].called:
            done += [each for each in (outline(function, rng), outline(function, rng)) if each]
    if rng.random() < MUTATED:
        done += [f"mutated {each}" for each in (mutate(parts, rng),) if each]
        if rng.random() < 0.1:
            done += [f"mutated {each}" for each in (mutate(parts, rng),) if each]
    prune(logical)
    prune(parts)
    if max(parts.size, logical.size) > LARGEST:
        return None
    count = rng.choice(choices(mesh.devices)) if rng.random() < REPLICAS else 1
    how = is_manual, count, tuple(done)
    return Pair(family, seed, number, mesh, tuple(takes), tuple(gives), logical, parts, *how)


def with_result(pair: Pair, k: int) -> Pair:
    """The pair with one of its results alone."""
    functions = []
    for function in (pair.logical.copy(), pair.partitioned.copy()):
        function.body.results = (function.body.results[k],)
        prune(function)
        functions.append(function)
    return replace(pair, gives=(pair.gives[k],), logical=functions[0], partitioned=functions[1])


def shards(pair: Pair, arguments: Sequence[Array], generator: np.random.Generator) -> list[Array]:
    return [cut(a, layout, pair.mesh, generator) for a, layout in zip(arguments, pair.takes, strict=True)]
