"""The loop over a module's operations."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hlo_verify.evaluate import (
    collectives,
    contraction,
    control,
    convolution,
    dynamic,
    elementwise,
    fourier,
    linear_algebra,
    manual,
    movement,
    ordering,
    reductions,
    scatter,
    selection,
    windows,
)
from hlo_verify.evaluate.blocks import Blocks, compact, replaced, scalar
from hlo_verify.evaluate.intervals import INTERVALS
from hlo_verify.evaluate.maps import Maps
from hlo_verify.evaluate.needed import part
from hlo_verify.evaluate.numbers import held, is_complex, storage
from hlo_verify.evaluate.state import OPERATION, Instead, Limits, Literals, Observer, Place, Rule, Run, as_written
from hlo_verify.evaluate.unknown import ArgumentsError, FollowsError, TooLargeError, UnknownError
from hlo_verify.evaluate.uses import fixed, independent
from hlo_verify.evaluate.vanishing import Known, known_of, without_vanishing
from hlo_verify.program.ir import IN_FLOATS, VANISHED, Function, Module, Name, Op, TensorType, used
from hlo_verify.program.op_families import BORDERS, DECIDED, plain_name

RULES: dict[str, Rule] = {
    **elementwise.RULES,
    **movement.RULES,
    **contraction.RULES,
    **reductions.RULES,
    **selection.RULES,
    **scatter.RULES,
    **windows.RULES,
    **convolution.RULES,
    **fourier.RULES,
    **linear_algebra.RULES,
    **ordering.RULES,
    **dynamic.RULES,
    **collectives.RULES,
    **manual.RULES,
}

KEEPS_CLASSES = frozenset(
    "broadcast_in_dim transpose reshape iota constant negate exponential tanh logistic log sqrt rsqrt convert "
    "optimization_barrier".split()
)
"""Operations after which no more slices are equal than before, or hardly ever."""
ARITHMETIC = frozenset("add subtract multiply divide maximum minimum power dot_general".split())
"""Operations after which some may be, by chance or by zeros: large results are not looked through for it, nor are those
of a select by as large a mask, whose slices differ as the mask's do."""
LARGE = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """What a module's results are, or why they are not known."""

    results: tuple[Blocks | None, ...]
    watched: Mapping[Name, Blocks | None]
    unknown: tuple[str, ...]
    """Operations that could not be evaluated, with location and why."""
    work: float
    largest: int
    """Elements of the values of the largest tensor."""
    exceeded: int = 0
    """The most values that an operation needs which was not evaluated for its size; 0 if there is none."""
    refused: frozenset[Name] = frozenset()
    """The results of such operations."""
    undefined: tuple[str, ...] = ()
    """What has no defined value for these arguments, with locations; found in evaluations of enclosures alone."""
    costs: Mapping[Name, float] = field(default_factory=dict)
    """The work of each operation, its regions included, by its first result."""
    lacks_meanings: bool = False
    """Whether operations could not be evaluated for another reason than their size, or these arguments."""
    vectors: int = 0
    """How many vectors were made whose signs could as well be others (`signs`)."""
    hangs_on_arguments: bool = False
    """Whether operations could not be evaluated for these arguments, and may be for others."""


def evaluate(
    module: Module,
    arguments: Sequence[Blocks | None],
    devices: int,
    *,
    watch: Collection[Name] = (),
    only: Collection[int] | None = None,
    real: type | np.dtype[Any] = np.float64,
    limits: Limits | None = None,
    literals: Literals = as_written,
    instead: Mapping[Name, Instead] | None = None,
    has_domains: bool = False,
    decides: bool = False,
    signs: int = 0,
    maps: Maps | None = None,
    observe: Observer | None = None,
) -> Evaluation:
    """The results of a module for block-constant arguments, on all devices at once.

    `devices` is the number of devices that run the module; 1 for a logical one. A module with manual regions is
    global: it is given arguments for 1 device, and its results are for each device of the mesh where they differ.
    Real arithmetic is in the numpy type `real`; with `balls.BALLS`, on enclosures at the precision that is set, with
    `intervals.INTERVALS` on those of floats, and there `literals` says how far off a constant may be; `instead` gives
    other elements to values, by their names, as soon as they are there. What cannot be evaluated exactly, or within the
    limits, is None, and so is what depends on it; nothing is raised for it. `watch` names values that are reported too
    (inside of a loop, those of its last turn). With `only`, nothing is evaluated but what those results and the watched
    values need; the other results are None. What floats may decide otherwise is not known, unless it `decides` that by
    the numbers in the middle of enclosures. With `has_domains`, the value of a function outside of its domain (`1/x`
    where x is 0) is not known, but where no argument takes part. `signs` says which of their signs eigenvectors
    have. `maps` are those that the arguments were made with, if these are known. `observe` sees the results of
    every operation, in each turn of the loops around it.
    """
    main, mesh = module.main, mesh_devices(module.main)
    count = mesh if devices == 1 and mesh is not None else devices
    spmd = devices > 1 or (mesh is None and (module.partitions or 1) * module.replicas == 1)
    place = Place(count, devices // module.replicas, module.replicas) if spmd else Place(count)
    run = Run(
        _run,
        np.dtype(real),
        limits or Limits(),
        count,
        maps or Maps(),
        literals=literals,
        decides=decides,
        signs=signs,
        instead=instead or {},
        fixed=fixed(main),
        observe=observe,
    )
    if has_domains:
        run.has_domains, run.independent = True, independent(main)
    run.watched = dict[Name, Blocks | None].fromkeys(watch)
    given = [_adopted(a, type_, count, run) for a, type_ in zip(arguments, main.argument_types, strict=True)]
    known = list(map(known_of, given))
    if any(each & Known.ZERO == Known.ZERO for each in known):
        main = without_vanishing(main, known, run.literals)[0]
    if only is not None:
        main = part(main, {main.results[n] for n in only} | set(watch))
    with np.errstate(all="ignore"):
        found = dict(zip(main.results, _run(run, main, given, place), strict=True))
    results = tuple(found.get(value) for value in module.main.results)
    return Evaluation(
        tuple(map(_single, results)) if devices == 1 else results,
        run.watched,
        tuple(run.unknown),
        run.work,
        run.largest,
        run.exceeded,
        frozenset(run.refused),
        tuple(run.undefined),
        run.costs,
        not all(run.unknown.values()),
        run.vectors,
        run.hangs_on_arguments,
    )


def mesh_devices(function: Function) -> int | None:
    """The number of devices of the mesh that manual regions are over; None where there are none."""
    for op in function.ops:
        if op.name == "sdy.manual_computation" and op.attributes["mesh"] is not None:
            return int(op.attributes["mesh"].size)
        if op.name == "custom_call" and str(op.attributes.get("call_target_name")) in BORDERS:
            return manual.annotated_devices(op)
        for region in op.regions:
            found = mesh_devices(region)
            if found is not None:
                return found
    return None


def _adopted(a: Blocks | None, type_: TensorType, devices: int, run: Run) -> Blocks | None:
    """An argument whose maps are interned, on all devices, its reals in the type that all others are held in; None
    where it is not known, or there is no such type."""
    if a is None or (run.real == INTERVALS and is_complex(type_.dtype)):
        return None
    maps = tuple(
        run.maps.constant(len(c)) if n == 1 else run.maps.intern(c)
        for c, n in zip(a.classes, a.values.shape, strict=True)
    )
    a = Blocks(maps, held(a.values, type_.dtype, run.real))
    return replaced(a, 0, run.maps.constant(devices), a.values) if a.devices == 1 and devices > 1 else a


def _single(a: Blocks | None) -> Blocks | None:
    """A value that is the same on all devices, as one on 1 device."""
    if a is None or a.values.shape[0] > 1:
        return a
    return replaced(a, 0, np.zeros(1, np.int64), a.values)


def _run(run: Run, function: Function, arguments: Sequence[Blocks | None], place: Place) -> list[Blocks | None]:
    """The results of a function or region; values that no later operation uses are forgotten."""
    own = set(function.arguments).union(*(op.results for op in function.ops))
    for value, type_, given in zip(function.arguments, function.argument_types, arguments, strict=True):
        run.set(value, type_, given)
        if value in run.watched:
            run.watched[value] = given
    last = _last_uses(function, run)
    for n, op in enumerate(function.ops):
        before = run.work
        results = _apply(op, run, place)
        if op.results:
            run.costs[op.results[0]] = run.costs.get(op.results[0], 0.0) + run.work - before
        for value, type_, made in zip(op.results, op.types, results, strict=True):
            result = made
            if made is not None and value in run.instead:
                result = replace(made, values=run.instead[value](made.values))
            run.set(value, type_, result)
            if value in run.watched:
                run.watched[value] = result
            if run.observe is not None:
                run.observe(value, result)
        for value in last.get(n, ()):
            if value in own:
                run.forget(value)
    results = [run.environment[value] for value in function.results]
    for value in own.intersection(run.environment):
        run.forget(value)
    return results


def _last_uses(function: Function, run: Run) -> dict[int, list[Name]]:
    """For each operation, the values that are used there for the last time, or made there and never used."""
    kept = run.last_uses.get(id(function))
    if kept is not None:
        return kept[1]
    last: dict[Name, int] = {}
    for n, op in enumerate(function.ops):
        for value in (*op.results, *used(op)):
            last[value] = n
    for value in function.results:
        last.pop(value, None)
    found: dict[int, list[Name]] = {}
    for value, n in last.items():
        found.setdefault(n, []).append(value)
    run.last_uses[id(function)] = (function, found)
    return found


def _compacted(name: str, result: Blocks, args: Sequence[Blocks], run: Run) -> Blocks:
    is_masked = name == "select" and args[0].values.size == result.values.size
    if name in KEEPS_CLASSES or ((name in ARITHMETIC or is_masked) and result.values.size > LARGE):
        return result
    return compact(result, run.maps)


def _apply(op: Op, run: Run, place: Place) -> list[Blocks | None]:
    args = [run.environment[v] for v in op.operands]
    if run.limits.heed is not None:
        run.limits.heed()
    try:
        run.toil(OPERATION / run.weight)
        if op.name in control.RULES:  # of which what is not known need not be all
            return control.RULES[op.name](op, args, run, place)
        if VANISHED in op.attributes or (op.types and all(0 in type_.shape for type_ in op.types)):
            return [
                scalar(0, type_.shape, storage(type_.dtype, run.real), place.devices, run.maps) for type_ in op.types
            ]
        if op.name in manual.REGIONS:
            return manual.REGIONS[op.name](op, args, run, place)
        known = [a for a in args if a is not None]
        if len(known) < len(args):
            return [None] * len(op.results)
        if IN_FLOATS in op.attributes and op.name in DECIDED:
            raise UnknownError("hangs on how floats order numbers, or round them")
        rule = RULES.get(op.name) or RULES.get(plain_name(op.name))
        if rule is None:
            raise UnknownError("is not supported")
        results = rule(op, known, run, manual.place_of(op, run, place))
        for result in results:
            run.largest = max(run.largest, result.values.size)
        return [_compacted(op.name, result, known, run) for result in results]
    except UnknownError as error:
        if isinstance(error, TooLargeError):
            run.refused.update(dict.fromkeys(op.results))
        run.hangs_on_arguments |= isinstance(error, ArgumentsError)
        return _unknown(op, str(error), run, has_meaning=isinstance(error, _OF_OTHERS))
    except Exception as error:  # attributes that no rule foresaw: what it would give is not known either
        return _unknown(op, f"{type(error).__name__}: {error}", run)


_OF_OTHERS = TooLargeError | FollowsError | ArgumentsError
"""Why an operation is unknown that is known of less, or of other arguments."""


def _unknown(op: Op, why: str, run: Run, *, has_meaning: bool = False) -> list[Blocks | None]:
    target = op.attributes.get("call_target_name")
    name = f"{op.name} to {target}" if target else op.name
    run.unknown[f"{name} at {op.location}: {why}"] = has_meaning
    return [None] * len(op.results)
