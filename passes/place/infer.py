"""Where arguments and results lie, in pairs that do not say it: by position and shape, as the proof goes through.

Arguments and results correspond by position. A dimension that is shorter on a device is split; what has the same shape
is whole on every device. Where that leaves a choice, each is tried, and the one is kept with which most of the
partitioned module computes what the logical one does:

    devices that communicate hold different shards, or neighbours do, or those far apart
    an argument that is whole on every device is the same there, or the sum of what they hold: a bias that all devices
    add before an all_reduce would count many times
    fewer shards than devices are copied, or are addends, or lie beside zeros (`choices`)
    an argument whose parts are taken apart again is split as a whole, or in each part (`fused_arguments`)

Arguments of one role lie alike (`roles`): the biases of all layers are sums, or none is.

What was chosen is an assumption on arguments, named in the verdict's own line, and a demand on results: a bias that is
said to be a sum would be added many times if every device held all of it. A result is never taken for a sum of what
devices hold: that is what a forgotten all_reduce looks like. Where it is one, the report says how to ask for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations

from hlo_verify.passes.diagnose.examine import prove
from hlo_verify.passes.load.front import is_plain
from hlo_verify.passes.place.allowed import Guessed
from hlo_verify.passes.place.choices import Choice, Choices, choices_of, is_summable, padded
from hlo_verify.passes.place.fused_arguments import segments, taken_apart
from hlo_verify.passes.place.inferred import Inferred, Told, said, under
from hlo_verify.passes.place.placements import groups_of, sums, with_addends
from hlo_verify.passes.place.roles import added_up, roles
from hlo_verify.passes.prove.prove import Glance, Ways, glance
from hlo_verify.program.ir import Module
from hlo_verify.program.pair import check_placed, device_count, is_global, other_count
from hlo_verify.program.sharding import Sharding
from hlo_verify.report import Verdict
from hlo_verify.session import Session

Chosen = Mapping[int, int]
"""For each argument that is inferred, which of its choices."""


@dataclass(frozen=True, slots=True, eq=False)
class _Attempt:
    """Both modules with some choice, what there is to see then, and which argument each argument is (a part of)."""

    chosen: Chosen
    logical: Module
    partitioned: Module
    origins: tuple[int, ...]
    seen: Glance


def infer(logical: Module, partitioned: Module, session: Session | None = None) -> Inferred:
    """The shardings that neither module has. Raises `InputError` where shapes do not go together, or an annotation says
    something else than where elements are, and `TimeUpError` where the session's time is up."""
    session = session or Session()
    session.phase = "placements were inferred that no module states"
    check_placed(logical, partitioned)
    if is_global(partitioned):
        return Inferred(logical, partitioned)
    for what, one, other in (
        ("argument", logical.argument_names, partitioned.argument_names),
        ("result", logical.result_names, partitioned.result_names),
    ):
        if len(one) != len(other):
            raise other_count(what, len(one), len(other))
    devices = device_count(logical, partitioned)
    groups = groups_of(partitioned)
    arguments = choices_of("argument", logical, partitioned, devices, groups, session)
    results = choices_of("result", logical, partitioned, devices, groups, session)
    if not arguments and not results:
        return Inferred(logical, partitioned)
    found = _Inference(logical, partitioned, arguments, results, session).run()
    return found if devices > 1 else replace(found, said=(), under="", guessed=None)  # one device has all there is


@dataclass(slots=True)
class _Inference:
    """The search for placements under which most is as it should be."""

    logical: Module
    partitioned: Module
    arguments: Choices
    results: Choices
    session: Session
    ways: Ways = field(init=False)
    left: int = field(init=False)
    """How often both modules may still be walked over."""
    with_ends: bool = False
    """Whether what lies past the end of an argument may be zeros."""
    _tried: set[frozenset[tuple[int, int]]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.left = self.session.limits.placement_walks
        self.ways = _ways(self.logical, self.partitioned, self.results)

    def run(self) -> Inferred:
        best = self._searched()
        ends = [n for n, choices in self.arguments.items() if any(choice.is_padded_end for choice in choices)]
        if ends and not best.seen.is_all:
            self.with_ends = True
            found = self._changed(best)
            # What lies past the end may be anything where the proof goes through by distinguishing cases.
            if found.seen.score > best.seen.score and not self._is_proved(best):
                best = found
        return self._settled(best)

    def _searched(self) -> _Attempt:
        best: _Attempt | None = None
        for order in range(max((1, *(self._plain(n) for n in self.arguments)))):
            if best is not None and self._is_enough(best):
                break
            chosen = {n: min(order, max(self._plain(n) - 1, 0)) for n in self.arguments}
            found = self._in_parts(self._changed(self._attempt(chosen)))
            if best is None or found.seen.score > best.seen.score:
                best = found
        assert best is not None
        return best

    def _is_enough(self, best: _Attempt) -> bool:
        """Whether nothing else is tried: all is as it should be, or enough was tried."""
        if self.left <= 0 and not best.seen.is_all:
            self.session.reached("placement_walks")
        return best.seen.is_all or self.left <= 0

    def _is_proved(self, best: _Attempt) -> bool:
        """Whether all results are, with all effort."""
        report = prove(best.logical, best.partitioned, session=self.session)
        return all(result.verdict is Verdict.PROVED or result.index in best.seen.otherwise for result in report.results)

    def _plain(self, n: int) -> int:
        """How many choices of an argument are plain shards."""
        return sum(not choice.is_sum and choice.padding is None for choice in self.arguments[n])

    def _attempt(self, chosen: Chosen) -> _Attempt:
        self._tried.add(frozenset(chosen.items()))
        choices = {n: self.arguments[n][k] for n, k in chosen.items()}
        last = {n: each[0].sharding for n, each in self.results.items()}
        whole = _placed(self.logical, {n: choice.sharding for n, choice in choices.items()}, last)
        zeros = {n: choice.padding for n, choice in choices.items() if choice.padding is not None}
        part = padded(self.partitioned, self.logical.main.argument_types, zeros)
        return self._seen(chosen, whole, part, tuple(range(len(self.logical.argument_names))))

    def _seen(self, chosen: Chosen, whole: Module, part: Module, origins: tuple[int, ...]) -> _Attempt:
        self.left -= 1
        return _Attempt(chosen, whole, part, origins, glance(whole, part, self.ways, session=self.session))

    def _changed(self, best: _Attempt) -> _Attempt:
        """The attempt with other choices for some roles, as far as that explains more."""
        is_better = True
        while is_better:
            is_better = False
            for change in self._changes(best.chosen):
                if self._is_enough(best):
                    return best
                chosen = {**best.chosen, **change}
                if frozenset(chosen.items()) in self._tried:
                    continue
                found = self._attempt(chosen)
                if found.seen.score > best.seen.score:
                    best, is_better = found, True
                    break
        return best

    def _changes(self, chosen: Chosen) -> Iterator[Chosen]:
        """Other choices for some arguments: the likeliest changes first, of which each is one role's, or two roles'."""
        order = {n: k for k, n in enumerate(added_up(self.partitioned))}
        together = roles(self.logical, self.partitioned, self.arguments)
        together.sort(key=lambda role: min(order.get(n, len(order)) for n in role))
        singles = [
            dict.fromkeys(role, k)
            for role in together
            for k, choice in enumerate(self.arguments[role[0]])
            if k != chosen[role[0]] and (choice.padding is None or self._can_pad(choice))
        ]
        likely = [each for each in singles if self._is_sum(each) and min(each) in order]
        zeros = [each for each in singles if self._padding(each) is not None]
        yield from likely
        yield from self._all_padded(zeros)
        yield from zeros
        for pair in combinations(likely, 2):
            yield dict(chain.from_iterable(each.items() for each in pair))
        if len(likely) > 2:
            yield dict(chain.from_iterable(each.items() for each in likely))
        yield from (each for each in singles if each not in likely and each not in zeros)

    def _is_sum(self, change: Chosen) -> bool:
        return all(self.arguments[n][k].is_sum for n, k in change.items())

    def _padding(self, change: Chosen) -> bytes | None:
        """Which devices hold what beside zeros, where a change is to that."""
        n, k = next(iter(change.items()))
        padding = self.arguments[n][k].padding
        return None if padding is None else padding.positions.tobytes()

    def _all_padded(self, zeros: Sequence[Chosen]) -> Iterator[Chosen]:
        """The same devices hold something beside zeros of all arguments of which that may be."""
        together: dict[bytes | None, dict[int, int]] = {}
        for change in zeros:
            together.setdefault(self._padding(change), {}).update(change)
        yield from together.values()

    def _can_pad(self, choice: Choice) -> bool:
        """Whether a device's number is one number, and the module can be made to take other arguments."""
        if choice.is_padded_end and not self.with_ends:
            return False
        return 1 in (self.partitioned.replicas, self.partitioned.partitions or 1) and is_plain(self.partitioned)

    def _in_parts(self, best: _Attempt) -> _Attempt:
        """The attempt with those arguments split in each of their parts for which that explains more."""
        if self.logical.declared:  # MLIR, which is taken apart, has not all arguments
            return best
        for n in sorted(self.arguments, reverse=True):  # the numbers before stay what they are
            sharding = best.logical.argument_shardings[n]
            for k, tiles in enumerate(() if sharding is None else sharding.tiles):
                for sizes in segments(best.logical, best.partitioned, n, k) if tiles > 1 else ():
                    if best.seen.is_all or best.origins.count(n) > 1 or any(size % tiles for size in sizes):
                        break
                    logical = taken_apart(best.logical, n, k, sizes)
                    partitioned = taken_apart(best.partitioned, n, k, [size // tiles for size in sizes])
                    assert sharding is not None
                    logical = _placed(logical, {n + i: sharding for i in range(len(sizes))}, {})
                    origins = (*best.origins[:n], *[n] * len(sizes), *best.origins[n + 1 :])
                    found = self._seen(best.chosen, logical, partitioned, origins)
                    best = found if found.seen.score > best.seen.score else best
        return best

    def _settled(self, best: _Attempt) -> Inferred:
        """What is inferred in the end: results lie where they are equal by concatenation, but are no sums."""
        otherwise = best.seen.otherwise
        logical = _placed(best.logical, {}, {n: way for n, way in otherwise.items() if way.addends is None})
        unreduced = {n: way for n, way in otherwise.items() if way.addends is not None}
        told = Told(logical, self._told(best), sorted(self.results))
        guessed = Guessed(self.logical, self.partitioned, frozenset(self.arguments), frozenset(self.results))
        return Inferred(logical, best.partitioned, said(told), under(told), unreduced, guessed, best.origins)

    def _told(self, best: _Attempt) -> dict[int, Choice]:
        """How the arguments lie that were inferred, or parts of them."""
        found = {}
        for n, origin in enumerate(best.origins):
            sharding = best.logical.argument_shardings[n]
            if origin in best.chosen and sharding is not None:
                choice = self.arguments[origin][best.chosen[origin]]
                found[n] = choice if choice.padding is not None else Choice(sharding)
        return found


def _ways(logical: Module, partitioned: Module, results: Choices) -> Ways:
    """For each result that is inferred, how else it may lie: in another order of devices, or as a sum of addends."""
    groups = groups_of(partitioned) if results else []
    given = [each for each in partitioned.argument_shardings + logical.argument_shardings if each is not None]
    ways = {}
    for n, choices in results.items():
        first, *others = (choice.sharding for choice in choices)
        partial = [*sums(first, groups), *(_gathered(each, first) for each in given if each.addends is not None)]
        summable = is_summable(logical.result_types[n])
        ways[n] = [*others, *(way for way in partial if summable and way.addend_count > 1)]
    return ways


def _gathered(sharding: Sharding, like: Sharding) -> Sharding:
    """The shards of `like`, as addends on the devices that hold addends by that sharding."""
    return with_addends(like, sharding.spread(like.devices).numbers)


def _placed(logical: Module, arguments: Mapping[int, Sharding], results: Mapping[int, Sharding]) -> Module:
    """The module with these shardings of some arguments and results."""

    def fill(own: Sequence[Sharding | None], given: Mapping[int, Sharding]) -> tuple[Sharding | None, ...]:
        return tuple(given.get(n, sharding) for n, sharding in enumerate(own))

    return replace(
        logical,
        argument_shardings=fill(logical.argument_shardings, arguments),
        result_shardings=fill(logical.result_shardings, results),
    )
