"""Roots and logarithms in numbers that people wrote: 0.707106769, 1.12837923 and 2.50662827 are `1/sqrt(2)`,
`2/sqrt(pi)` and `sqrt(2*pi)`, rounded, as a normal distribution and functions of it (an exact GELU) have them;
0.693147182 and 0.918938518 are `log(2)` and `1/2*log(2*pi)`, as entropies and likelihoods have them, and 5.51363134 is
`3*log(2*pi)`, as a density of three dimensions has it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from math import log2

import numpy as np

from hlo_verify.passes.chain.constant_values import (
    MOST_ROUNDINGS,
    Computed,
    Key,
    applied,
    function_of,
    is_within,
    number_of,
)
from hlo_verify.program.element_types import DTYPES, element_of

POWERS = range(-3, 4)
"""The powers of two, of which the roots are multiples."""

OF_LOGARITHMS = 2 * np.pi, np.pi, *range(2, 17), 32, 64, 100, 128, 256, 512, 1000, 1024, 10_000
"""Numbers whose logarithms people write down."""

OF_DENSITIES = 2 * np.pi, np.pi, 2
"""Numbers whose logarithms densities have once a dimension, or half of it: normal ones, and squashed by a tanh."""

HALVES = range(1, 1025)
"""The halves of such a logarithm that people write as one number: a picture of 28 by 28 has 784."""

_CLOSE = 1e-3
"""What is farther off than this part of a number is not looked at in exact numbers; bfloat16 has eight bits."""


def irrationals(numbers: Collection[Key]) -> dict[Key, Computed]:
    """What some numbers are read as. None is a logarithm that another number is near, too: who writes another number
    means another. (Roots in few digits are other numbers, and still these: 0.7978846 for `sqrt(2/pi)`.)"""
    found = {number: read for number in numbers if (read := irrational(number)) is not None}
    return {n: read for n, read in found.items() if not _is_logarithm(read) or sum(_near(read, numbers)) == 1}


def _is_logarithm(read: Computed) -> bool:
    return any(operand.name == "log" for operand in read.operands)


def _near(read: Computed, numbers: Iterable[Key]) -> Iterator[bool]:
    """Which numbers may be what one is read as, but for roundings."""
    for number in numbers:
        value = element_of(*number) if number[0] == read.dtype else np.inf
        yield bool(np.isfinite(value)) and is_within(replace(read, rounded=value), MOST_ROUNDINGS)


def irrational(number: Key) -> Computed | None:
    """A number as a multiple, by a power of two, of roots of 2 and of pi, of their inverses, or of a logarithm, or by
    dimensions of the logarithm of a density; None if it is none."""
    dtype, value = number[0], element_of(*number)
    if not np.isfinite(float(value)):
        return None
    for found in chain(_multiples(dtype, float(value)), _of_logarithms(dtype, float(value))):
        near = replace(found, rounded=value, beside=found.literals)
        if near.is_rounded and is_within(near, near.roundings):
            return near
    return None


def _multiples(dtype: str, value: float) -> Iterator[Computed]:
    scalar = np.dtype(DTYPES[dtype]).type
    two, pi = (number_of(dtype, scalar(x)) for x in (2, np.pi))
    roots = [function_of("sqrt", x) for x in (two, pi) if x is not None]
    if len(roots) < 2 or None in roots:
        return
    of_two, of_pi = (root for root in roots if root is not None)
    both = next(applied("multiply", (of_two, of_pi)))
    for base, below in ((of_two, None), (both, None), (None, of_pi), (None, both), (of_two, of_pi), (None, of_two)):
        for power in POWERS:
            factor = number_of(dtype, scalar(np.copysign(2.0**power, value)))
            if factor is None:
                continue
            above = factor if base is None else next(applied("multiply", (factor, base)), None)
            made = above if below is None or above is None else next(applied("divide", (above, below)), None)
            if made is not None and abs(float(made.exact) - value) <= _CLOSE * abs(value):
                yield made


def _of_logarithms(dtype: str, value: float) -> Iterator[Computed]:
    """Multiples of logarithms, of numbers with enough digits to tell these apart."""
    if np.dtype(DTYPES[dtype]).itemsize < 4 or not value:
        return
    scalar = np.dtype(DTYPES[dtype]).type
    for x in OF_LOGARITHMS:
        times = _times(x, abs(value))
        if abs(times * np.log(x) - abs(value)) > _CLOSE * abs(value):
            continue
        factor, of = number_of(dtype, scalar(np.copysign(times, value))), number_of(dtype, scalar(x))
        base = None if of is None else function_of("log", of)
        for found in applied("multiply", (factor, base)) if factor is not None and base is not None else ():
            if is_within(replace(found, rounded=scalar(value)), 2):  # people write the next number, or one beside it
                yield found


def _times(number: float, value: float) -> float:
    """The multiple of a number's logarithm, of those that people write, that is closest to a value; 0 if none is."""
    power = round(log2(value) - log2(np.log(number)))
    halves = round(min(2 * value / np.log(number), HALVES.stop)) if number in OF_DENSITIES else 0
    if halves in HALVES:
        return halves / 2
    return 2.0**power if power in POWERS else 0.0
