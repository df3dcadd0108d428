"""Where arguments and results lie, in pairs that do not say it: by position and shape, as the proof goes through.

Arguments and results correspond by position. A dimension that is shorter on a device is split; what has the same shape
is whole on every device. Where that leaves a choice, each is tried, and the one is kept with which most of the
partitioned module computes what the logical one does:

    devices that communicate hold different shards, or neighbours do, or those far apart
    an argument that is only added before an all_reduce is whole on every device, or the sum of what they hold: a bias
    that all devices add would count many times
    an argument whose parts are taken apart again is split as a whole, or in each part (`segments`)

What was chosen is an assumption on arguments, named in the verdict's own line, and a demand on results: a bias that is
said to be a sum would be added many times if every device held all of it. A result is never taken for a sum of what
devices hold: that is what a forgotten all_reduce looks like. Where it is one, the report says how to ask for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from hlo_verify.diagnostics import Annotation, Input
from hlo_verify.errors import InputError
from hlo_verify.ir import Module, TensorType
from hlo_verify.op_families import REDUCTIONS, RESHAPES
from hlo_verify.ops.values import ARITHMETIC
from hlo_verify.passes.allowed import Guessed
from hlo_verify.passes.inferred import Inferred, said, under
from hlo_verify.passes.pair import check_placed, device_count, is_global, other_count
from hlo_verify.passes.placements import groups_of, placements, sums, with_addends
from hlo_verify.passes.prove import Glance, Ways, glance
from hlo_verify.passes.segments import segments, taken_apart
from hlo_verify.sharding import Sharding, unreduced

ORDERS = 6
"""The most orders of devices that are tried."""


@dataclass(frozen=True, slots=True, eq=False)
class _Attempt:
    """Both modules with some choice, what there is to see then, and which argument each argument is (a part of)."""

    logical: Module
    partitioned: Module
    origins: tuple[int, ...]
    ways: Ways
    seen: Glance

    def better(self, logical: Module, partitioned: Module, origins: tuple[int, ...]) -> _Attempt:
        """That attempt, if more is as it should be; else this one."""
        seen = glance(logical, partitioned, self.ways)
        return _Attempt(logical, partitioned, origins, self.ways, seen) if seen.score > self.seen.score else self


def infer(logical: Module, partitioned: Module) -> Inferred:
    """The shardings that neither module has. Raises `InputError` where shapes do not go together, or an annotation says
    something else than where elements are."""
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
    arguments = _choices("argument", logical, partitioned, devices)
    results = _choices("result", logical, partitioned, devices)
    if not arguments and not results:
        return Inferred(logical, partitioned)
    best: _Attempt | None = None
    ways = _ways(logical, partitioned, results)
    for order in range(max((1, *map(len, arguments.values())))):
        first = {n: choices[min(order, len(choices) - 1)] for n, choices in arguments.items()}
        last = {n: choices[0] for n, choices in results.items()}
        whole = _placed(logical, first, last)
        origins = tuple(range(len(logical.argument_names)))
        found = _Attempt(whole, partitioned, origins, ways, glance(whole, partitioned, ways))
        found = _in_parts(_summed(found, arguments), arguments)
        if best is None or found.seen.score > best.seen.score:
            best = found
        if found.seen.is_all:
            break
    assert best is not None
    return _settled(best, Guessed(logical, partitioned, frozenset(arguments), frozenset(results)))


def _settled(best: _Attempt, guessed: Guessed) -> Inferred:
    """What is inferred in the end: results lie where they are equal by concatenation, but are no sums of addends."""
    otherwise = best.seen.otherwise
    logical = _placed(best.logical, {}, {n: way for n, way in otherwise.items() if way.addends is None})
    unreduced = {n: way for n, way in otherwise.items() if way.addends is not None}
    those = [n for n, origin in enumerate(best.origins) if origin in guessed.arguments]
    results = sorted(guessed.results)
    lines, line = said(logical, those, results), under(logical, those, results)
    return Inferred(logical, best.partitioned, lines, line, unreduced, guessed, best.origins)


def _ways(logical: Module, partitioned: Module, results: Mapping[int, Sequence[Sharding]]) -> Ways:
    """For each result that is inferred, how else it may lie: in another order of devices, or as a sum of addends."""
    groups = groups_of(partitioned) if results else []
    given = [each for each in partitioned.argument_shardings + logical.argument_shardings if each is not None]
    ways = {}
    for n, (first, *others) in results.items():
        partial = [*sums(first, groups), *(_gathered(each, first) for each in given if each.addends is not None)]
        is_summable = _is_summable(logical.result_types[n])
        ways[n] = [*others, *(way for way in partial if is_summable and way.addend_count > 1)]
    return ways


def _gathered(sharding: Sharding, like: Sharding) -> Sharding:
    """The shards of `like`, as addends on the devices that hold addends by that sharding."""
    return with_addends(like, sharding.spread(like.devices).numbers)


def _summed(best: _Attempt, inferred: Collection[int]) -> _Attempt:
    """With those arguments unreduced for which that explains more."""
    for n in _added_up(best.partitioned):
        if best.seen.is_all:
            break
        sharding, kind = best.logical.argument_shardings[n], best.logical.main.argument_types[n]
        if n in inferred and sharding is not None and _is_number(sharding, kind):
            other = _placed(best.logical, {n: unreduced(kind.rank, sharding.devices)}, {})
            best = best.better(other, best.partitioned, best.origins)
    return best


def _is_number(sharding: Sharding, kind: TensorType) -> bool:
    """Whether a tensor is whole on every device and could be a sum."""
    return prod(sharding.tiles) == 1 and _is_summable(kind)


def _is_summable(kind: TensorType) -> bool:
    """Whether elements have a sum."""
    return kind.dtype != "i1" and bool(ARITHMETIC.fullmatch(kind.dtype))


def _in_parts(best: _Attempt, inferred: Collection[int]) -> _Attempt:
    """With those arguments split in each of their parts for which that explains more."""
    for n in sorted(inferred, reverse=True):  # the numbers before stay what they are
        sharding = best.logical.argument_shardings[n]
        if sharding is None:
            continue
        for k, tiles in enumerate(sharding.tiles):
            for sizes in segments(best.logical, best.partitioned, n, k) if tiles > 1 else ():
                if best.seen.is_all or best.origins.count(n) > 1 or any(size % tiles for size in sizes):
                    break
                logical = taken_apart(best.logical, n, k, sizes)
                partitioned = taken_apart(best.partitioned, n, k, [size // tiles for size in sizes])
                logical = _placed(logical, {n + i: sharding for i in range(len(sizes))}, {})
                origins = (*best.origins[:n], *[n] * len(sizes), *best.origins[n + 1 :])
                best = best.better(logical, partitioned, origins)
    return best


def _placed(logical: Module, arguments: Mapping[int, Sharding], results: Mapping[int, Sharding]) -> Module:
    """The module with these shardings of some arguments and results."""

    def fill(own: Sequence[Sharding | None], given: Mapping[int, Sharding]) -> tuple[Sharding | None, ...]:
        return tuple(given.get(n, sharding) for n, sharding in enumerate(own))

    return replace(
        logical,
        argument_shardings=fill(logical.argument_shardings, arguments),
        result_shardings=fill(logical.result_shardings, results),
    )


def _choices(what: str, logical: Module, partitioned: Module, devices: int) -> dict[int, list[Sharding]]:
    """For each argument or result without a sharding, those that its shapes allow."""
    if what == "argument":
        names, wholes, parts = logical.argument_names, logical.main.argument_types, partitioned.main.argument_types
        known = zip(logical.argument_shardings, partitioned.argument_shardings, strict=True)
    else:
        names, wholes, parts = logical.result_names, logical.result_types, partitioned.result_types
        known = zip(logical.result_shardings, partitioned.result_shardings, strict=True)
    missing = [n for n, each in enumerate(known) if each == (None, None)]
    groups = groups_of(partitioned) if missing else []
    choices = {n: list(placements(wholes[n].shape, parts[n].shape, devices, groups))[:ORDERS] for n in missing}
    for n in missing:
        if not choices[n]:
            raise _no_shard(f"{what} {names[n]}", wholes[n], parts[n], devices)
    return choices


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


def _added_up(partitioned: Module) -> list[int]:
    """The arguments that are only added to others before an all_reduce or reduce_scatter, in order of use."""
    made = {result: op for op in partitioned.main.ops for result in op.results}
    number = {argument: n for n, argument in enumerate(partitioned.main.arguments)}
    found: dict[int, None] = {}
    for op in partitioned.main.ops:
        if op.name in REDUCTIONS:
            todo = list(op.operands)
            while todo:
                at = todo.pop()
                if at in number:
                    found[number[at]] = None
                elif at in made and made[at].name in RESHAPES | {"add", "subtract"}:
                    todo.extend(made[at].operands)
    return list(found)
