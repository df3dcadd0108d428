"""Which logical tensors the values of a program that a person distributed seem to be shards of.

Such a program says nowhere what a value in it is. Both modules are evaluated for inputs of which no two elements are
alike: where each device holds a block of a logical tensor, that can be seen.

    logical: s = [[1.3, 0.7], [0.2, 2.9]]        m on device 0: [[1.3, 0.7]], on device 1: [[0.2, 2.9]]

so m on device d is s[d, :]. A loss is often the opposite of what its reference calls one: opposites are seen as well.

Nothing follows from it: what is guessed has to be proved (`passes.prove.cut_points`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, permutations

import numpy as np
import numpy.typing as npt

from hlo_verify.evaluate import (
    Blocks,
    Limits,
    default_scale,
    dense,
    evaluate,
    index_limits,
    positive_arguments,
    random_argument,
)
from hlo_verify.passes.prove.cut_points import Guess, Guesses, Made, Order
from hlo_verify.program.ir import Module, Name, operations
from hlo_verify.program.preconditions import assumed
from hlo_verify.session import Session

Array = npt.NDArray[np.float64]
Index = tuple[int, ...]

SEEDS = 24, 25
"""Of two draws: the greatest of some elements is that of others by chance, in one."""

INTEGERS = 40
"""Integers that nothing is indexed by are below this."""

CLOSE = 1e-9
"""How far apart numbers may be that are taken to be equal, as a fraction of the larger: what is computed in another
order in double precision is off by less."""

HUGE = 1e8
"""Larger numbers mask others."""

GRAIN = 64
"""Multiples of one over this are numbers that many tensors have: counts, halves, what a program begins with."""

BLOCKS = 1 << 13
"""So many blocks are looked for, those of each device: a second."""

CANDIDATES = 4
"""Of so many logical tensors is one value guessed to be a shard: more are the same in another shape."""


@dataclass(slots=True)
class _Seen:
    """What the values of a module are, by name, as often as each was made."""

    elements: int
    """How many more are kept."""
    made: dict[Made, Sequence[Array]] = field(default_factory=dict)
    """What each device holds of a value; of one that is the same on all devices, once."""
    _count: Counter[Name] = field(default_factory=Counter)

    def observe(self, name: Name, value: Blocks | None) -> None:
        """Keep a value, if it is one of floats that can be told from others."""
        made = name, self._count[name]
        self._count[name] += 1
        if value is None or value.values.dtype.kind != "f":
            return
        which, first = np.unique(value.classes[0], return_index=True)
        self.elements -= len(which) * math.prod(value.shape)
        if self.elements < 0:
            return
        held = [dense(value, int(device)) for device in first]
        if all(_probe(each) is not None for each in held):
            self.made[made] = [held[k] for k in np.searchsorted(which, value.classes[0])] if len(held) > 1 else held


def _probe(values: Array) -> Index | None:
    """Where the element is by which a tensor is looked up; None of a tensor without one."""
    flat = values.reshape(-1) * GRAIN
    if not np.isfinite(flat).all():
        return None
    odd = np.flatnonzero(np.abs(flat - np.round(flat)) > CLOSE * np.abs(flat))
    return _place(int(odd[len(odd) // 2]), values.shape) if len(odd) else None


def _place(flat: int, shape: Sequence[int]) -> Index:
    return tuple(int(i) for i in np.unravel_index(flat, shape))


@dataclass(frozen=True)
class _Block:
    """What a device holds of a value: finite numbers. Those of most devices are never asked for."""

    values: Array

    @cached_property
    def index(self) -> Index:
        """Where the element is by which it is looked up."""
        index = _probe(self.values)
        assert index is not None
        return index

    @cached_property
    def off(self) -> float:
        """How far from its own numbers those may be that it is compared with, beside what these are large."""
        return CLOSE * _scale(self.values)

    def is_like(self, others: Array) -> bool:
        """Whether numbers are these, but for another order of operations."""
        last = (-1,) * others.ndim
        if abs(self.values[last] - others[last]) > self.off + CLOSE * abs(others[last]):
            return False  # as most are: the others need not be looked at
        return bool((np.abs(self.values - others) <= self.off + CLOSE * np.abs(others)).all())


@dataclass(frozen=True, slots=True)
class _Elements:
    """The elements of the logical tensors, in order of their values."""

    tensors: Sequence[tuple[Made, Array]]
    values: Array
    owners: npt.NDArray[np.int64]
    """Of which tensor each of them is."""
    places: npt.NDArray[np.int64]
    """Where in it, all dimensions as one."""

    @classmethod
    def of(cls, seen: _Seen) -> _Elements:
        """Those of the tensors that are seen."""
        tensors = [(made, held[0]) for made, held in seen.made.items() if len(held) == 1]
        sizes = [values.size for _, values in tensors]
        values = np.concatenate([np.zeros(0), *(values.reshape(-1) for _, values in tensors)])
        places = np.concatenate([np.zeros(0, np.int64), *map(np.arange, sizes)])
        order = np.argsort(values, kind="stable")
        return cls(tensors, values[order], np.repeat(np.arange(len(sizes)), sizes)[order], places[order])

    def near(self, value: float) -> Iterator[tuple[int, Index]]:
        """The elements of about that value, by the number of the tensor and where in it."""
        off = CLOSE * abs(value)
        first, last = np.searchsorted(self.values, [value - off, value + off])
        found = zip(self.owners[first:last].tolist(), self.places[first:last].tolist(), strict=True)
        for owner, place in sorted(found):
            yield owner, _place(place, self.tensors[owner][1].shape)

    def shards(self, held: Sequence[Array]) -> Iterator[Guess]:
        """The tensors of which each device holds a block; if there is none, those of which it holds an opposite."""
        blocks = self._blocks([_Block(each) for each in held])
        first = next(blocks, None)
        if first is not None:
            yield first
            yield from blocks
            return
        for guess in self._blocks([_Block(-each) for each in held]):
            yield replace(guess, is_opposite=True)

    def _blocks(self, held: Sequence[_Block]) -> Iterator[Guess]:
        done = set[int]()
        for owner, place in self.near(float(held[0].values[held[0].index])):
            guess = None if owner in done else self._shard(held, owner, place)
            if guess is not None:
                done.add(owner)
                yield guess

    def _shard(self, held: Sequence[_Block], owner: int, place: Index) -> Guess | None:
        made, whole = self.tensors[owner]
        for order in _orders(held[0].values.shape, whole.shape):
            start = _start(held[0].index, place, order)
            if not _is_at(held[0], whole, order, start):
                continue
            starts = [start, *(self._found(each, owner, order, start) for each in held[1:])]
            if all(each is not None for each in starts):
                return Guess(made, order, tuple(each for each in starts if each is not None))
        return None

    def _found(self, held: _Block, owner: int, order: Order, first: Index) -> Index | None:
        """Where another device's block begins: where the first one's does, or elsewhere."""
        whole = self.tensors[owner][1]
        if _is_at(held, whole, order, first):
            return first
        places = (place for number, place in self.near(float(held.values[held.index])) if number == owner)
        starts = (_start(held.index, place, order) for place in places)
        return next((start for start in starts if _is_at(held, whole, order, start)), None)


def _orders(local: Sequence[int], whole: Sequence[int]) -> Iterator[Order]:
    """The ways in which dimensions of a block may lie in a tensor."""
    long = [k for k, size in enumerate(local) if size > 1]
    for chosen in permutations(range(len(whole)), len(long)):
        if all(whole[i] >= local[k] for i, k in zip(chosen, long, strict=True)):
            order: list[int | None] = [None] * len(whole)
            for i, k in zip(chosen, long, strict=True):
                order[i] = k
            yield tuple(order)


def _start(index: Index, place: Index, order: Order) -> Index:
    """Where a block begins of which the element at `index` is at a place."""
    return tuple(at - (0 if k is None else index[k]) for at, k in zip(place, order, strict=True))


def _is_at(held: _Block, whole: Array, order: Order, start: Index) -> bool:
    """Whether a block of a tensor is what a device holds."""
    sizes = [1 if k is None else held.values.shape[k] for k in order]
    if any(at < 0 or at + size > full for at, size, full in zip(start, sizes, whole.shape, strict=True)):
        return False
    block = whole[tuple(slice(at, at + size) for at, size in zip(start, sizes, strict=True))]
    axes = sorted(range(len(order)), key=lambda i: len(order) if order[i] is None else order[i] or 0)
    return held.is_like(block.transpose(axes).reshape(held.values.shape))


def _scale(held: Array) -> float:
    """The largest of some numbers but for those that mask others, beside which these are all alike."""
    sizes = np.abs(held)
    return float(sizes.max(initial=0.0, where=sizes < HUGE))


def _inputs(logical: Module, seed: int, elements: int) -> list[Blocks | None]:
    """Values of the arguments of which no two are alike, as far as there are so many; None of those that have more
    elements than that."""
    generator = np.random.default_rng(seed)
    below, positive, allowed = index_limits(logical, with_updates=False), positive_arguments(logical), assumed(logical)
    return [
        random_argument(
            type_.shape,
            type_.dtype,
            generator,
            scale=default_scale(type_.shape),
            integers=below[n] or INTEGERS,
            detail=type_.shape,
            positive=n in positive,
            assumed=allowed[n],
        )
        if math.prod(type_.shape) <= elements
        else None
        for n, type_ in enumerate(logical.main.argument_types)
    ]


def _seen(module: Module, inputs: Sequence[Blocks | None], session: Session) -> _Seen:
    seen = _Seen(session.limits.guessed_elements)
    limits = Limits(session.limits.guessed_elements, session.limits.guessing_work, heed=session.check)
    evaluate(module, inputs, 1, limits=limits, observe=seen.observe)
    return seen


def _looked_at(local: _Seen, devices: int) -> dict[Made, Sequence[Array]]:
    """The values that are looked at: where there are too many, none that is made in each turn of a loop."""
    if len(local.made) * devices <= BLOCKS:
        return local.made
    turns = Counter(name for name, _ in local.made)
    once = {made: held for made, held in local.made.items() if turns[made[0]] == 1}
    return dict(islice(once.items(), BLOCKS // devices))


def shards(logical: Module, partitioned: Module, devices: int, session: Session) -> Guesses:
    """For values of a partitioned module that is given whole arguments, the logical tensors of which each of so many
    devices seems to hold a block, those of the same operation first: what a library makes symmetric once more is what
    the other program's library makes so. Of what is too large to be evaluated element by element, nothing is
    guessed."""
    found: dict[Made, list[Guess]] | None = None
    regions = (op for op in operations(partitioned.main) if op.name == "sdy.manual_computation")
    assembled = {name for op in regions for name in op.results}
    kinds, ours = ({v: op.name for op in operations(each.main) for v in op.results} for each in (logical, partitioned))
    for seed in SEEDS:
        inputs = _inputs(logical, seed, session.limits.guessed_elements)
        elements = _Elements.of(_seen(logical, inputs, session))
        local = _seen(partitioned, inputs, session)
        here = {}
        for made, held in _looked_at(local, devices).items():
            if made[0] in assembled:  # of what devices hold, which was looked at
                continue
            everywhere = list(held) * (devices if len(held) == 1 else 1)
            likely = (guess for guess in elements.shards(everywhere) if found is None or guess in found.get(made, ()))
            kind = ours.get(made[0])
            here[made] = sorted(islice(likely, CANDIDATES), key=lambda guess: kinds.get(guess.whole[0]) != kind)
        found = {made: guesses for made, guesses in here.items() if guesses}
    return found or {}
