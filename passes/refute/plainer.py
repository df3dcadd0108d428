"""Simpler values for arguments, for inputs that a reader can take in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from hlo_verify.evaluate import Blocks, allows, nearest
from hlo_verify.evaluate.arguments import one_class
from hlo_verify.evaluate.in_types import is_unsigned
from hlo_verify.evaluate.numbers import is_float
from hlo_verify.passes.refute.trial import Counterexample, Inputs
from hlo_verify.program.allowed_values import Values
from hlo_verify.program.ir import TensorType
from hlo_verify.session import EnoughError, TimeUpError

TRIES, OPERATIONS = 2, 50_000
"""How often plainer inputs are tried, at the least; and as often more as makes so many operations."""


def plainest(
    found: Counterexample,
    types: Sequence[TensorType],
    allowed: Sequence[Values | None],
    size: int,
    simpler: Callable[[Counterexample, Inputs], Counterexample | None],
) -> Counterexample:
    """A counterexample with arguments as plain as can be: many at a time, and fewer where that is too many. `simpler`
    is what it is with other inputs, None where it is no longer one; it may raise `EnoughError` or `TimeUpError`. Of a
    large module, one of `size` operations, only so many inputs are tried."""
    tries = TRIES + OPERATIONS // max(1, size)
    todo = [sorted(range(len(found.trial.inputs)), key=lambda n: -found.trial.inputs[n].values.size)]
    while todo:
        some = todo.pop()
        for inputs in _with_plainer(found.trial.inputs, some, types, allowed):
            if tries <= 0:
                return found
            tries -= 1
            try:
                made = simpler(found, inputs)
            except (EnoughError, TimeUpError):
                return found
            if made is not None:
                found = made
                break
        else:
            half = len(some) // 2
            todo += [each for each in (some[half:], some[:half]) if half]
    return found


def _with_plainer(
    given: Inputs, some: Sequence[int], types: Sequence[TensorType], allowed: Sequence[Values | None]
) -> Iterator[Inputs]:
    """Inputs with some of them plainer: several as plain as can be, or one in all ways, the plainest first."""
    if len(some) == 1:
        (n,) = some
        for plain in plainer(given[n], types[n], allowed[n]):
            yield (*given[:n], plain, *given[n + 1 :])
        return
    plainest = {n: next(plainer(given[n], types[n], allowed[n]), given[n]) for n in some}
    yield tuple(plainest.get(n, each) for n, each in enumerate(given))


def plainer(blocks: Blocks, type_: TensorType, allowed: Values | None) -> Iterator[Blocks]:
    """Simpler values for an argument that the user allows, the simplest first."""
    return (plain for plain in _plainer(blocks, type_) if allows(allowed, plain))


def _plainer(blocks: Blocks, type_: TensorType) -> Iterator[Blocks]:
    if type_.dtype == "i1" or blocks.values.size == 0:
        return
    for value in (0, 1):
        yield _filled(blocks, value)
    if is_float(type_.dtype):
        for step in (1.0, 0.5, 0.125):
            rounded = np.round(blocks.values / step) * step
            if not np.array_equal(rounded, blocks.values) and np.any(rounded):
                yield replace(blocks, values=rounded)


def filled(blocks: Blocks, value: int, type_: TensorType, allowed: Values | None) -> Blocks:
    """An argument of one number everywhere: that one, or one that its type holds and the user allows."""
    if is_float(type_.dtype) and is_unsigned(type_.dtype):
        value = abs(value) or 1
    if allowed is None or (allowed.admits(value, value) and value % allowed.multiple == 0):
        return _filled(blocks, value)
    if is_float(type_.dtype):
        return _filled(blocks, nearest(allowed, float(value), type_.dtype))
    least, greatest = allowed.integers
    return _filled(blocks, greatest // allowed.multiple * allowed.multiple if value > greatest else least)


def _filled(blocks: Blocks, value: float) -> Blocks:
    classes = tuple(one_class(len(each)) for each in blocks.classes)
    return replace(blocks, classes=classes, values=np.full((1,) * blocks.values.ndim, value, blocks.values.dtype))
