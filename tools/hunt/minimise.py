"""Make a case smaller as long as it shows the same: fewer operations, devices, splits and elements, smaller numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from tools.hunt.case import AXES, Argument, Case, Spec, Step, pruned
from tools.hunt.maker import NoProgram, is_program, shapes

RUNS = 150
"""Cases that are run for one, at most."""


def minimise(case: Case, shows: Callable[[Case], bool], runs: int = RUNS) -> Case:
    """The smallest case that still shows it, found greedily. `shows` is asked of programs alone."""
    keys = {repr(case)}
    while True:
        for smaller in _smaller(case):
            if repr(smaller) in keys or smaller.size() >= case.size() or not is_program(smaller):
                continue
            keys.add(repr(smaller))
            if runs <= 0:
                return case
            runs -= 1
            if shows(smaller):
                case = smaller
                break
        else:
            return case


def _smaller(case: Case) -> Iterator[Case]:
    try:
        types = shapes(case)
    except NoProgram:
        return
    yield from map(pruned, _fewer_operations(case, types))
    for ways in (_fewer_devices, _fewer_splits, _smaller_shapes, _simpler):
        yield from map(pruned, ways(case))


def _fewer_operations(case: Case, types: list[Any]) -> Iterator[Case]:
    first = len(case.arguments)
    if case.pulled is not None:
        yield replace(case, pulled=None, result=_of_rank(case.result, len(types[case.value][1])))
    for k, step in enumerate(case.steps):
        value = first + k
        for operand in step.inputs:  # an operand in its place, of the same type or as what is returned
            if types[operand] == types[value]:
                yield _instead(case, value, operand)
            elif value == case.value:
                yield replace(case, value=operand, result=_result(case, types, operand))
    for k, step in enumerate(case.steps):
        value = first + k
        dtype, shape = types[value]
        if value == case.value or first > 6:
            continue
        for spec in dict.fromkeys((*_likely(step.spec, len(shape)), *_splits(shape, case))):  # an argument in its place
            yield _with_argument(case, value, Argument(dtype, shape, spec))


def _likely(spec: Spec | None, rank: int) -> Iterator[Spec]:
    if spec is not None:
        yield spec
    yield ((),) * rank


def _splits(shape: tuple[int, ...], case: Case) -> Iterator[Spec]:
    """One dimension over one axis, as XLA may have done by itself."""
    for name, size in case.axes().items():
        for d in range(len(shape)):
            if shape[d] % size == 0:
                yield tuple((name,) if k == d else () for k in range(len(shape)))


def _result(case: Case, types: list[Any], value: int) -> Spec | None:
    return case.result if case.pulled is not None else _of_rank(case.result, len(types[value][1]))


def _of_rank(spec: Spec | None, rank: int) -> Spec | None:
    return None if spec is None else (*spec[:rank], *((),) * (rank - len(spec)))


def _instead(case: Case, value: int, other: int) -> Case:
    steps = tuple(replace(s, inputs=tuple(other if v == value else v for v in s.inputs)) for s in case.steps)
    return replace(case, steps=steps, value=other if case.value == value else case.value)


def _with_argument(case: Case, value: int, argument: Argument) -> Case:
    """The argument comes behind the others, so that all steps' numbers move by one."""
    first = len(case.arguments)

    def number(v: int) -> int:
        return first if v == value else v + (v >= first)

    steps = tuple(replace(s, inputs=tuple(map(number, s.inputs))) for s in case.steps)
    return replace(case, arguments=(*case.arguments, argument), steps=steps, value=number(case.value))


def _fewer_devices(case: Case) -> Iterator[Case]:
    for axis in range(len(case.mesh)):
        if len(case.mesh) > 1:
            yield _renamed(replace(case, mesh=(*case.mesh[:axis], *case.mesh[axis + 1 :])), AXES[axis])
        old = case.mesh[axis]
        for size in sorted({2, old // 2, old - 1}):
            if 1 < size < old:
                fewer = replace(case, mesh=(*case.mesh[:axis], size, *case.mesh[axis + 1 :]))
                yield fewer
                yield _with_arguments(fewer, {k: _scaled(a, old, size) for k, a in enumerate(case.arguments)})


def _scaled(argument: Argument, old: int, new: int) -> Argument:
    """With the same shards on another number of devices."""
    return _resized(argument, lambda n, _: n * new // old if n % old == 0 else n)


def _renamed(case: Case, gone: str) -> Case:
    """Without an axis: those behind it move up by a letter."""
    names = dict(zip((name for name in AXES if name != gone), AXES, strict=False))
    return _with_specs(case, lambda spec: tuple(tuple(names[n] for n in axes if n != gone) for axes in spec))


def _with_specs(case: Case, change: Callable[[Spec], Spec]) -> Case:
    arguments = tuple(replace(each, spec=change(each.spec)) for each in case.arguments)
    steps = tuple(replace(s, spec=None if s.spec is None else change(s.spec)) for s in case.steps)
    return replace(case, arguments=arguments, steps=steps, result=None if case.result is None else change(case.result))


def _fewer_splits(case: Case) -> Iterator[Case]:
    for k, step in enumerate(case.steps):
        if step.spec is not None:
            yield _with_step(case, k, replace(step, spec=None))
            for spec in _without_axes(step.spec):
                yield _with_step(case, k, replace(step, spec=spec))
    for k, argument in enumerate(case.arguments):
        for spec in _without_axes(argument.spec):
            yield _with_arguments(case, {k: replace(argument, spec=spec)})
    if case.result is not None:
        for spec in _without_axes(case.result):
            yield replace(case, result=spec)


def _without_axes(spec: Spec) -> Iterator[Spec]:
    if any(spec):
        yield ((),) * len(spec)
    for d, axes in enumerate(spec):
        for name in axes:
            yield (*spec[:d], tuple(n for n in axes if n != name), *spec[d + 1 :])


def _with_step(case: Case, k: int, step: Step) -> Case:
    return replace(case, steps=(*case.steps[:k], step, *case.steps[k + 1 :]))


def _with_arguments(case: Case, new: Mapping[int, Argument]) -> Case:
    return replace(case, arguments=tuple(new.get(k, each) for k, each in enumerate(case.arguments)))


def _smaller_shapes(case: Case) -> Iterator[Case]:
    """One size, wherever it is, then dimension by dimension; also together with the numbers that it bounds."""
    sizes = sorted({size for each in case.arguments for size in each.shape}, reverse=True)
    for size in sizes:
        for less in _less(size):
            everywhere = _with_arguments(case, {k: _exchanged(a, size, less) for k, a in enumerate(case.arguments)})
            yield everywhere
            yield _with_numbers(everywhere, size, less)
    for k, argument in enumerate(case.arguments):
        for d, size in enumerate(argument.shape):
            for less in _less(size):
                new = {k: _resized(argument, lambda n, at, d=d, less=less: less if at == d else n)}
                yield _with_arguments(case, new)
                yield _with_numbers(_with_arguments(case, new), size, less)


def _less(size: int) -> list[int]:
    return [n for n in dict.fromkeys((1, 2, size // 2, size - 2, size - 1)) if 0 < n < size]


def _exchanged(argument: Argument, old: int, new: int) -> Argument:
    return _resized(argument, lambda n, _: new if n == old else n)


def _resized(argument: Argument, size: Callable[[int, int], int]) -> Argument:
    return replace(argument, shape=tuple(size(n, d) for d, n in enumerate(argument.shape)))


def _with_numbers(case: Case, size: int, less: int) -> Case:
    """Numbers of operations that are a size become that size too, as groups of features do."""
    steps = tuple(
        replace(s, attributes={name: less if value == size else value for name, value in s.attributes.items()})
        for s in case.steps
    )
    return replace(case, steps=steps)


def _simpler(case: Case) -> Iterator[Case]:
    if case.pulled is not None and case.pulled[1] != "ones":
        yield replace(case, pulled=(case.pulled[0], "ones"))
    for k, step in enumerate(case.steps):
        for attributes in _with_smaller_number(dict(step.attributes)):
            yield _with_step(case, k, replace(step, attributes=attributes))
    for k, argument in enumerate(case.arguments):
        if argument.dtype in ("int8", "uint8", "int16"):
            yield _with_arguments(case, {k: replace(argument, dtype="int32")})


def _with_smaller_number(data: Any) -> Iterator[Any]:
    """Data in which one number is nearer to 0, or an edge whose ends cancel is gone."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield from ({**data, name: new} for new in _with_smaller_number(value))
    elif isinstance(data, list | tuple):
        for k, value in enumerate(data):
            yield from ([*data[:k], new, *data[k + 1 :]] for new in _with_smaller_number(value))
        if all(isinstance(each, int) for each in data) and len(data) > 1:
            yield [0] * len(data)
            yield [each - (each > 0) + (each < 0) for each in data]
    elif isinstance(data, int) and not isinstance(data, bool):
        sign = -1 if data < 0 else 1
        yield from (sign * n for n in dict.fromkeys((0, 1, abs(data) // 2, abs(data) - 1)) if n < abs(data))
