"""Whether a result is wrong wherever the shapes allow its arguments to lie, and not only where they were inferred to.

Inputs of one kind look alike under most placements. What is constant along a dimension that devices split is the same
in whatever order they hold the shards; what is whole on every device is `k` times that if it is the sum of `k` addends;
zeros are zeros as copies, as addends and where the rest is padding. So a few pairs of modules that take such inputs
stand for all placements, and a result that differs in each of them is wrong under every one:

    argument                    the logical module takes      a device takes
    split over all devices      c everywhere                  c everywhere
    whole                       x; k x; the sum of addends    x; x; an addend
    split, and copied or padded zeros                         zeros

    result                      what is compared
    whole                       each device's; the sum over devices, and the logical result as often as it was copied
    split over all devices      the sum over devices, and the sum of the logical shards
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import product
from math import prod
from typing import Any

from hlo_verify.diagnostics.errors import InputError
from hlo_verify.passes.load.front import Writer, as_they_are, is_plain, put_in_front
from hlo_verify.passes.place.choices import is_summable
from hlo_verify.program.ir import Module, TensorType, used
from hlo_verify.program.pair import device_count, pair_of
from hlo_verify.program.preconditions import assumed
from hlo_verify.program.sharding import Sharding, replicated, unreduced
from hlo_verify.session import Session


@dataclass(frozen=True, slots=True, eq=False)
class Guessed:
    """Both modules as they are stated, and which arguments and results none of them places."""

    logical: Module
    partitioned: Module
    arguments: frozenset[int]
    results: frozenset[int]

    def bears_on(self, result: int) -> bool:
        """Whether a result depends on something that is not stated."""
        return result in self.results or bool(self.arguments & self._reaching([result]))

    def _reaching(self, results: Collection[int]) -> frozenset[int]:
        return _reaching(self.logical, results) | _reaching(self.partitioned, results)

    def tried(self, results: Collection[int], zeros: Collection[int], budget: Budget) -> Tried:
        """What becomes of the results under all placements that the shapes allow; `zeros` are arguments that may be
        zero everywhere."""
        if any(assumed(self.logical)[n] is not None for n in self.arguments):
            return Tried()  # inputs that stand for all placements may be others than the user allows
        devices = device_count(self.logical, self.partitioned)
        ends = {n: ends for n in results if (ends := self._ends(n, devices))}
        ways = self._ways_in(ends, zeros, devices)
        some = {n: each for n, each in ways.items() if each}
        count = max(map(len, ends.values()), default=0)
        is_plain_pair = is_plain(self.logical) and is_plain(self.partitioned)
        if not is_plain_pair or not budget.allows(prod(map(len, some.values())) * count):
            return Tried()
        left, sums = set(ends), set()
        for at in range(count):
            for k, chosen in enumerate(product(*some.values())):
                if not left:
                    break
                budget.left -= 1
                last = {n: ends[n][min(at, len(ends[n]) - 1)] for n in sorted(left)}
                found = self._differing(
                    dict(zip(some, chosen, strict=True)), ways.keys() - some.keys(), last, budget.session
                )
                sums |= {n for n in left - found if at and not k and last[n].is_sum}
                left &= found
        return Tried(frozenset(left), frozenset(sums))

    def _ways_in(self, results: Collection[int], zeros: Collection[int], devices: int) -> dict[int, list[_Way]]:
        """For each argument that is not stated, the ways in which its inputs may lie; none where it is zero."""
        reaching = self._reaching(results) - set(zeros)
        types = zip(self.logical.main.argument_types, self.partitioned.main.argument_types, strict=True)
        return {
            n: _ways(*each, devices) if n in reaching else [] for n, each in enumerate(types) if n in self.arguments
        }

    def _ends(self, n: int, devices: int) -> list[_End]:
        """The ways in which a result is compared; none for one that no few ways stand for."""
        whole, part = self.logical.result_types[n], self.partitioned.result_types[n]
        if n not in self.results:
            stated = self.logical.result_shardings[n] or self.partitioned.result_shardings[n]
            return [] if stated is None else [_End(stated)]
        return _ends(whole, part, devices)

    def _differing(
        self, ways: Mapping[int, _Way], zeros: Collection[int], ends: Mapping[int, _End], session: Session
    ) -> set[int]:
        from hlo_verify.passes.refute.search import Search

        try:
            pair = [self._one(*each, ways, zeros, ends) for each in ((self.logical, True), (self.partitioned, False))]
            session.meter.begin(session.meter.allowed)  # with other placements it is another question
            search = Search(pair_of(*pair), session)
            found = search.find(range(len(ends)), draws=session.limits.placement_inputs)
        except InputError:  # what was put in front does not go with the rest
            return set()
        return {n for k, n in enumerate(ends) if k in found}

    def _one(
        self, module: Module, whole: bool, ways: Mapping[int, _Way], zeros: Collection[int], ends: Mapping[int, _End]
    ) -> Module:
        """One of the modules for such inputs."""
        types = module.main.argument_types
        takes = [
            replace(each, shape=ways[n].core, sharding=ways[n].sharding) if (n := each.origin) in ways else each
            for each in as_they_are(module)
            if each.origin not in zeros
        ]

        def enter(writer: Writer, given: list[Any]) -> list[Any]:
            values: dict[int, Any] = {}
            for take, value in zip(takes, given, strict=True):
                way = ways.get(take.origin)
                if way is not None:
                    value = writer.spread(value, types[take.origin].shape) if way.is_spread else value
                    value = writer.scaled(value, way.factor) if whole else value
                values[take.origin] = value
            return [values[n] if n in values else writer.zeros(n) for n in range(len(types))]

        def leave(writer: Writer, given: list[Any]) -> list[Any]:
            return [end.seen(writer, given[n], whole) for n, end in ends.items()]

        gives = [(module.result_names[n], end.sharding) for n, end in ends.items()]
        return put_in_front(module, takes, enter, leave, gives)


@dataclass(frozen=True, slots=True)
class Tried:
    """Results that differ under every placement; and those that do as they are placed, but do not as sums of what all
    devices hold, as far as inputs were tried."""

    wrong: frozenset[int] = frozenset()
    sums: frozenset[int] = frozenset()
    late: Session | None = None
    """Where the time was up before the others were looked at: whose."""


@dataclass(slots=True)
class Budget:
    """How many pairs of modules may still be looked at."""

    session: Session
    left: int = field(init=False)

    def __post_init__(self) -> None:
        self.left = self.session.limits.placement_pairs

    def allows(self, pairs: int) -> bool:
        """Whether there may be so many more."""
        if pairs > self.left:
            self.session.reached("placement_pairs")
        return pairs <= self.left


@dataclass(frozen=True, slots=True, eq=False)
class _Way:
    """Inputs of one kind: an argument of that shape, spread out on both sides; the logical one is `factor` times it."""

    core: tuple[int, ...]
    sharding: Sharding
    factor: int = 1
    is_spread: bool = False


def _ways(whole: TensorType, part: TensorType, devices: int) -> list[_Way]:
    """Kinds of inputs that stand for all placements of an argument; none where only zeros do."""
    plain = replicated(whole.rank, devices)
    if whole.shape == part.shape:
        if not is_summable(whole) or devices == 1:
            return [_Way(whole.shape, plain)]
        sums = _Way(whole.shape, unreduced(whole.rank, devices))
        return [_Way(whole.shape, plain), sums, *(_Way(whole.shape, plain, k) for k in _divisors(devices))]
    if not _is_split_over_all(whole, part, devices) or any(w % p for w, p in zip(whole.shape, part.shape, strict=True)):
        return []
    core = tuple(w if w == p else 1 for w, p in zip(whole.shape, part.shape, strict=True))
    return [_Way(core, plain, is_spread=True)]


@dataclass(frozen=True, slots=True, eq=False)
class _End:
    """How a result is compared: by that sharding; or the sum over devices with `factor` times the sum of the logical
    result's shards of that shape."""

    sharding: Sharding
    factor: int = 0
    shard: tuple[int, ...] = ()
    common: tuple[int, ...] = ()
    """The part of a shard that all shards have."""
    is_whole: bool = False

    @property
    def is_sum(self) -> bool:
        """Whether every device is taken to hold an addend of the whole."""
        return self.factor == 1 and self.is_whole

    def seen(self, writer: Writer, value: Any, whole: bool) -> Any:
        """The result of one of the modules, as it is compared."""
        if not self.factor:
            return value
        if not whole:
            return writer.summed(_sliced(writer, value, (0,) * len(self.common), self.common), self.sharding.devices)
        counts = [-(-size // local) for size, local in zip(value.type.shape, self.shard, strict=True)]
        parts = [
            _sliced(writer, value, [k * local for k, local in zip(at, self.shard, strict=True)], self.common)
            for at in product(*map(range, counts))
        ]
        return writer.scaled(reduce(writer.added, parts), self.factor)


def _sliced(writer: Writer, value: Any, starts: Sequence[int], sizes: Sequence[int]) -> Any:
    for k, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        value = value if size == value.type.shape[k] else writer.sliced(value, k, start, size)
    return value


def _ends(whole: TensorType, part: TensorType, devices: int) -> list[_End]:
    plain = replicated(whole.rank, devices)
    is_whole = whole.shape == part.shape
    if not is_summable(whole) or devices == 1:
        return [_End(plain)] if is_whole else []
    if is_whole:
        sums = [_End(plain, devices // k, whole.shape, whole.shape, True) for k in (devices, *_divisors(devices))]
        return [_End(plain), *sums]
    if not _is_split_over_all(whole, part, devices):
        return []
    tiles = [-(-w // p) for w, p in zip(whole.shape, part.shape, strict=True)]
    common = tuple(w - (t - 1) * p for w, t, p in zip(whole.shape, tiles, part.shape, strict=True))
    return [_End(plain, 1, part.shape, common)]


def _is_split_over_all(whole: TensorType, part: TensorType, devices: int) -> bool:
    """Whether there are as many shards as devices, so that none is a copy, or padding alone."""
    if 0 in part.shape:
        return False
    return prod(-(-w // p) for w, p in zip(whole.shape, part.shape, strict=True)) == devices


def _divisors(devices: int) -> list[int]:
    """The numbers of addends of which there are copies."""
    return [k for k in range(2, devices) if devices % k == 0]


def _reaching(module: Module, results: Collection[int]) -> frozenset[int]:
    """The arguments that those results depend on."""
    wanted = {module.main.results[n] for n in results}
    for op in reversed(module.main.ops):
        if not wanted.isdisjoint(op.results):
            wanted |= used(op)
    return frozenset(n for n, argument in enumerate(module.main.arguments) if argument in wanted)
