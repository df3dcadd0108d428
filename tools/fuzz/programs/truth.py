"""Whether the two programs of a pair compute the same, by evaluating both for many inputs."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tools.fuzz.programs.elementwise import DTYPES, REAL_NUMBERS, Array, Meaningless
from tools.fuzz.programs.machine import Machine
from tools.fuzz.programs.pair import Pair, shards
from tools.fuzz.programs.placing import expected, held
from tools.fuzz.programs.program import Kind

INPUTS = 48
"""Draws of all arguments, evaluated at once."""
LEAST = 4
"""So many of them have to be defined for both to be called equal."""
ROUNDING = 1e-12
"""Of real numbers, what is no difference, relative to the largest number met on the way."""


OFTEN = 0.2
"""The share of inputs from which on what makes no number in one program alone is no pole at a few places."""


class Truth(enum.StrEnum):
    """NAN: often one is finite where the other is none, or makes of that something else. POLE: at a few inputs.
    UNCLEAR: no input says anything."""

    EQUAL = "equal"
    DIFFERS = "differs"
    NAN = "nan"
    POLE = "pole"
    UNCLEAR = "unclear"
    MEANINGLESS = "meaningless"


@dataclass(frozen=True, slots=True)
class Outcome:
    truth: Truth
    why: str = ""


def draw(kind: Kind, generator: np.random.Generator, inputs: int = INPUTS) -> Array:
    """Arguments of many kinds: small numbers, limits of the type, anything, all alike."""
    shape = (inputs, 1, *kind.shape)
    if kind.dtype == "i1":
        found = generator.integers(0, 2, shape).astype(bool)
    elif kind.is_integer:
        dtype = DTYPES[kind.dtype]
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        found = generator.integers(low, high, shape, dtype=dtype, endpoint=True)
        small = generator.integers(max(low, -3), 5, shape).astype(dtype)
        medium = generator.integers(max(low, -20), 21, shape).astype(dtype)
        edges = np.array([low, low + 1, high, high - 1, high // 2, high // 2 + 1, 0, 1, max(low, -1)]).astype(dtype)
        limits = edges[generator.integers(0, len(edges), shape)]
        which = np.arange(inputs).reshape(-1, *[1] * (len(shape) - 1)) % 4
        found = np.select([which == 0, which == 1, which == 2], [small, medium, limits], found)
    else:
        which = np.arange(inputs).reshape(-1, *[1] * (len(shape) - 1)) % 4
        small = generator.integers(-3, 4, shape).astype(float)
        fine = generator.integers(-16, 17, shape) / 4
        found = np.select([which == 0, which == 1], [small, fine], generator.uniform(-3, 3, shape)).astype(REAL_NUMBERS)
    if found.size:  # of some inputs, all elements are alike
        alike = found[inputs // 2 :: 8]
        alike[...] = alike.reshape(len(alike), -1)[:, 0].reshape(-1, *[1] * (len(shape) - 1))
    return found


def arguments(pair: Pair, generator: np.random.Generator) -> list[Array]:
    return [draw(pair.logical.kinds[v], generator) for v in pair.logical.body.arguments]


def compare(pair: Pair, given: Sequence[Array], generator: np.random.Generator, least: int = LEAST) -> Outcome:
    """Both programs on such arguments: of each (inputs, 1, *shape)."""
    inputs = len(given[0]) if given else INPUTS
    one = Machine(pair.logical, inputs, 1, generator)
    many = Machine(pair.partitioned, inputs, pair.mesh.devices, generator)
    try:
        wanted = one.run(list(given))
        found = many.run(shards(pair, given, generator))
    except Meaningless as error:
        return Outcome(Truth.MEANINGLESS, str(error))
    defined = one.defined & many.defined
    scale = np.maximum(one.greatest, many.greatest)
    worst, why = Truth.EQUAL, ""
    poles, one_sided = one.poles | many.poles, one.poles ^ many.poles
    odd_everywhere: str = ""
    for number, (a, b, layout) in enumerate(zip(wanted, found, pair.gives, strict=True)):
        for device, (x, y) in enumerate(
            zip(expected(a, layout, pair.mesh), held(b, layout, pair.mesh, a.shape[2:]), strict=True)
        ):
            here = f"result {number} on device {device}"
            if x.dtype != REAL_NUMBERS:
                different = (x != y).reshape(inputs, -1)
                odd = np.zeros_like(different)
            else:
                finite = np.isfinite(x) & np.isfinite(y)
                with np.errstate(invalid="ignore"):
                    size = scale.reshape(-1, *[1] * (x.ndim - 1))
                    different = (finite & (np.abs(x - y) > ROUNDING * size)).reshape(inputs, -1)
                odd = (~finite & (x != y) & ~(np.isnan(x) & np.isnan(y))).reshape(inputs, -1)
            sure = different.any(1) & defined & ~poles
            odd |= different & poles[:, None]
            if sure.any():
                row = int(np.argmax(sure))
                return Outcome(Truth.DIFFERS, f"{here}, input {row}: {x[row].tolist()} and {y[row].tolist()}")
            often = odd[defined & one_sided].sum(0) > OFTEN * defined.sum() if odd.size else np.zeros(1, bool)
            if defined.any() and odd[defined].size and (odd[defined].all(0) | often).any():
                worst, odd_everywhere = Truth.NAN, here
            elif (odd.any(1) & defined).any() and worst is Truth.EQUAL:
                worst, why = Truth.POLE, here
    if worst is Truth.EQUAL and defined.sum() < least:
        return Outcome(Truth.UNCLEAR, f"{int(defined.sum())} of {inputs} inputs are defined")
    return Outcome(worst, odd_everywhere or why)


def judge(pair: Pair, generator: np.random.Generator) -> Outcome:
    return compare(pair, arguments(pair, generator), generator)
