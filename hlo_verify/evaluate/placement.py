"""Arguments and results of a pair: what each device holds of a whole tensor, and where it differs from that."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hlo_verify.diagnostics import Annotation
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.evaluate.balls import (
    BALLS,
    INFINITE,
    NAN,
    UNDEFINED,
    Special,
    is_real,
    is_unknown,
    number,
)
from hlo_verify.evaluate.blocks import Blocks, aligned, replaced, scalar
from hlo_verify.evaluate.border import shard, tiling_of
from hlo_verify.evaluate.collectives import reduced_over
from hlo_verify.evaluate.groups import grouped
from hlo_verify.evaluate.intervals import INTERVALS, middle
from hlo_verify.evaluate.maps import Array, ClassMap, Maps, in_pieces, unique_rows
from hlo_verify.evaluate.numbers import exact, held
from hlo_verify.evaluate.state import Limits, Run
from hlo_verify.evaluate.totals import difference as less
from hlo_verify.evaluate.totals import is_enclosure, rounded, scaled, total
from hlo_verify.evaluate.unknown import UnknownError
from hlo_verify.program.sharding import Sharding

COLOURS = 3
"""How many different addends of an unreduced argument are drawn, besides the one that makes up for them."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A place where a device's shard of a result is not what the logical result says."""

    device: int
    element: tuple[int, ...]
    """In the whole tensor."""
    local_element: tuple[int, ...]
    expected: Any
    found: Any
    size: float
    """|expected - found|; infinite where one of them is."""
    scale: float
    """The largest |expected| that is finite."""
    nan: bool = False
    """Whether the device has NaN where the logical result has a number."""
    beside: int | None = None
    """The device that has `expected`, where it is two devices that differ in what both hold."""
    as_written: bool = False
    """Whether it was seen of rounded constants as they are written, and not of all numbers that they may stand for."""

    @property
    def relative(self) -> float:
        return self.size / self.scale if self.scale else math.inf


def _new_run(limits: Limits | None, devices: int, *like: Array, maps: Maps | None = None) -> Run:
    """A run in the arithmetic of some values."""

    def refuse(*_: object) -> Any:
        raise AssertionError("no region is run here")

    dtypes = [values.dtype for values in like if is_enclosure(values)]
    real = INTERVALS if INTERVALS in dtypes else BALLS if dtypes else np.dtype(np.float64)
    return Run(refuse, real, limits or Limits(), devices, maps or Maps())


def _plain(a: Blocks, run: Run) -> Blocks:
    maps = (
        run.maps.constant(len(c)) if n == 1 else run.maps.intern(c)
        for c, n in zip(a.classes, a.values.shape, strict=True)
    )
    return Blocks(tuple(maps), a.values)


def shards(
    whole: Blocks,
    sharding: Sharding,
    devices: int,
    generator: np.random.Generator,
    *,
    limits: Limits | None = None,
    maps: Maps | None = None,
) -> Blocks:
    """What each device holds of a logical argument, which is for 1 device.

    Shards are `ceil(size / tiles)` long; elements past the end of the tensor are drawn at random. The addends of an
    unreduced argument are drawn so that they add up to it. What other devices have of a tensor that lies on one alone
    is drawn too. `maps` are those of arguments that are split before, if any. Raises `UnknownError` past the limits.
    """
    sharding = sharding.spread(devices)
    run = _new_run(limits, devices, whole.values, maps=maps)
    a = _plain(whole, run)
    fillers = [scalar(_drawn(a.values, generator), (), a.values.dtype, devices, run.maps) for _ in a.shape]
    if sharding.addend_count > 1:
        a = _addends(a, sharding, generator, run)
    elif sharding.only is not None:
        drawn = _drawn(a.values, generator)
        other = np.full_like(a.values, exact(drawn, a.values.dtype)[()] if is_enclosure(a.values) else drawn)
        a = replaced(a, 0, run.maps.intern(np.arange(devices) != sharding.only), np.concatenate([a.values, other]))
    return shard(a, tiling_of(sharding), fillers, run)


def _drawn(values: Array, generator: np.random.Generator) -> Any:
    """An arbitrary element, like those that there are."""
    values = rounded(values)
    if values.dtype == bool:
        return bool(generator.integers(2))
    if values.dtype.kind in "iu":
        least, most = min(0, int(values.min())), max(0, int(values.max()))
        return int(generator.integers(least, most + 2)) if least > -(1 << 60) and most < 1 << 60 else 0
    return float(generator.uniform(1, 2) * (float(np.abs(values).max()) or 1.0))


def _addends(a: Blocks, sharding: Sharding, generator: np.random.Generator, run: Run) -> Blocks:
    """Random addends, the last of which makes up for the others."""
    if a.values.dtype == bool:
        raise InputError("an unreduced argument of truth values", Annotation.NO_SUM)
    count = sharding.addend_count
    colours = generator.integers(0, COLOURS, count)
    if a.values.dtype.kind in "iu":
        drawn = generator.integers(0, 8, (COLOURS, *a.values.shape[1:])).astype(a.values.dtype)
    else:
        size = float(np.abs(rounded(a.values)).max()) or 1.0
        drawn = held(generator.uniform(-size, size, (COLOURS, *a.values.shape[1:])), "f64", run.real)
    times = np.bincount(colours[:-1], minlength=COLOURS).reshape((-1,) + (1,) * (drawn.ndim - 1))
    last = less(a.values, total(scaled(drawn, times), 0))
    which = np.append(colours[:-1], COLOURS)
    used, number = np.unique(which[sharding.numbers], return_inverse=True)
    return replaced(a, 0, run.maps.intern(number.reshape(-1)), np.concatenate([drawn, last])[used])


def difference(whole: Blocks, local: Blocks, sharding: Sharding, *, limits: Limits | None = None) -> Difference | None:
    """Where what the devices have of a result differs most from the logical result; None where it is the same, bit by
    bit, on every device.

    A local value that is itself global (as large as the whole) is split first. Elements outside of the tensor, and
    where the logical result is NaN, do not count. A NaN on a device alone comes before any other difference. Enclosures
    differ where they are disjoint, or where the device surely has NaN or an infinity and the logical result a finite
    number.

    What a manual region of the logical module says of a result may be another number for each device, where it should
    be one. There, devices that hold the same elements are compared with one another.
    Raises `UnknownError` past the limits, and `InputError` for shapes that do not fit.
    """
    sharding, run = _spread(whole, local, sharding, limits)
    laid = _laid(whole, local, sharding, run)
    if laid is None:
        return None
    apart = _largest(laid, sharding)
    beside = _beside(laid, sharding, run) if whole.values.shape[0] > 1 else None
    if beside is None or (apart is not None and apart.size >= beside.size):
        return apart
    return beside


def numbers_alone(whole: Blocks, local: Blocks, sharding: Sharding) -> Array:
    """Where a device surely has a number, and the logical module none or an infinity: truth values, by device and place
    in its shard; of floats, or of enclosures. Raises as `difference` does."""
    sharding, run = _spread(whole, local, sharding, None)
    laid = _laid(whole, local, sharding, run)
    if laid is None:
        return np.zeros((sharding.devices, 0), np.bool_)
    are_alone = np.asarray(laid.inside & _are_finite(laid.found) & ~_are_finite(laid.expected))
    each = (c if n > 1 else np.zeros_like(c) for c, n in zip(laid.classes, are_alone.shape, strict=True))
    return np.asarray(are_alone[np.ix_(*each)])


def _spread(whole: Blocks, local: Blocks, sharding: Sharding, limits: Limits | None) -> tuple[Sharding, Run]:
    """The sharding over all devices that there are, and a run for what is compared."""
    devices = max(sharding.devices, local.devices)
    return sharding.spread(devices), _new_run(limits, devices, whole.values, local.values)


def _beside(laid: _Laid, sharding: Sharding, run: Run) -> Difference | None:
    """Where a device differs most from the first of those that hold the same, of what the logical result differs in."""
    if sharding.only is not None or laid.found.shape[0] == 1:
        return None
    first, which = unique_rows(sharding.coordinates)
    other = first[which]
    pairs, which = np.unique(np.stack([laid.classes[0], laid.classes[0][other]]), axis=1, return_inverse=True)
    if np.array_equal(*pairs):
        return None

    def at(values: Array, classes: Array) -> Array:
        return values if values.shape[0] == 1 else values[classes]

    expected, others = (at(laid.expected, each) for each in pairs)
    run.spend(math.prod(np.broadcast_shapes(expected.shape, laid.inside.shape, laid.found.shape)))
    inside = at(laid.inside, pairs[0]) & _are_finite(expected) & (_apart(expected, others)[0] > 0)
    held = _Laid((which.reshape(-1), *laid.classes[1:]), at(laid.found, pairs[1]), at(laid.found, pairs[0]), inside)
    apart = _largest(held, sharding)
    return None if apart is None else replace(apart, beside=int(other[apart.device]))


def _are_finite(values: Array) -> Array:
    """Which elements surely are finite numbers."""
    if values.dtype == INTERVALS:
        return np.asarray(np.isfinite(values["low"]) & np.isfinite(values["high"]))
    if values.dtype == object:
        return np.asarray(np.frompyfunc(_is_finite, 1, 1)(values), np.bool_)
    return np.asarray(np.isfinite(values))


def _is_finite(value: Any) -> bool:
    if not is_real(value):
        return value is not UNDEFINED
    return not isinstance(value, Special) and bool(value.is_finite())


@dataclass(frozen=True, slots=True)
class _Laid:
    """A result beside what the devices have of it, on common classes, and which elements are inside of the tensor."""

    classes: tuple[ClassMap, ...]
    expected: Array
    found: Array
    inside: Array


def _laid(whole: Blocks, local: Blocks, sharding: Sharding, run: Run) -> _Laid | None:
    devices = sharding.devices
    expected, found = (_expanded(_plain(a, run), devices, run) for a in (whole, local))
    if 0 in whole.shape:
        return None
    if sharding.addend_count > 1:
        groups = grouped(sharding.addend_groups(), devices)
        if found.values.dtype == object and not is_real(found.values.reshape(-1)[0]):
            raise UnknownError("a sum of integers that are not all known")
        if found.values.dtype.kind in "fOV":
            found = reduced_over(found, groups, None, "f64", run)
        if found.values.dtype.kind in "iu":
            dtype = f"{'ui' if found.values.dtype.kind == 'u' else 'i'}{8 * found.values.dtype.itemsize}"
            found = reduced_over(found, groups, None, dtype, run)
    zero = scalar(0, (), expected.values.dtype, devices, run.maps)
    tiling = tiling_of(sharding)
    if found.shape == whole.shape and math.prod(sharding.tiles) > 1:
        found = shard(found, tiling, [zero] * len(whole.shape), run)
    inside = scalar(True, whole.shape, np.bool_, devices, run.maps)
    no = scalar(False, (), np.bool_, devices, run.maps)
    inside = shard(inside, tiling, [no] * len(whole.shape), run)
    if sharding.only is not None:
        here = np.arange(devices) == sharding.only
        kept = inside.values & np.array([False, True]).reshape((-1,) + (1,) * len(whole.shape))
        inside = replaced(inside, 0, run.maps.intern(here), kept)
    expected = shard(expected, tiling, [zero] * len(whole.shape), run)
    if expected.shape != found.shape:
        said = f"a device has {found.shape} of a result where {expected.shape} is its shard of {whole.shape}"
        raise InputError(said, Annotation.WRONG_SHARD)
    classes, (a, b, mask) = aligned([expected, found, inside], run.maps, run.fits)
    run.spend(math.prod(np.broadcast_shapes(a.shape, b.shape, mask.shape)))
    return _Laid(classes, a, b, mask)


def _expanded(a: Blocks, devices: int, run: Run) -> Blocks:
    return replaced(a, 0, run.maps.constant(devices), a.values) if a.devices == 1 else a


def _apart(a: Array, b: Array) -> tuple[Array, Array]:
    """How far apart elements are, and where the second is NaN and the first a number."""
    if a.dtype == INTERVALS:
        return _disjoint(a, b), np.zeros((1,) * a.ndim, np.bool_)
    if a.dtype == object or b.dtype == object:
        each = np.broadcast_arrays(*np.frompyfunc(_certainly_apart, 2, 2)(a, b))
        return each[0].astype(np.float64), each[1].astype(np.bool_)
    never = np.zeros((1,) * a.ndim, np.bool_)
    if a.dtype.kind in "iu":  # exact for what occurs: differences of wide integers are only ranked by their size
        return np.where(a == b, 0.0, np.maximum(np.abs(a.astype(np.float64) - b.astype(np.float64)), 1.0)), never
    if a.dtype == bool:
        return (a != b).astype(np.float64), never
    with np.errstate(all="ignore"):
        far = np.where((a == b) | np.isnan(a), 0.0, np.abs(a - b))
    return np.where(np.isnan(far), np.inf, far), np.isnan(b) & ~np.isnan(a)


LEAST = 5e-324
"""Stands for a distance that is less than any float."""


def _disjoint(a: Array, b: Array) -> Array:
    """How far apart the middles of intervals are that have nothing in common; 0 where one is not known."""
    apart = (a["low"] > b["high"]) | (a["high"] < b["low"])
    return np.where(apart & np.isfinite(a["low"]), np.maximum(np.abs(middle(a) - middle(b)), LEAST), 0.0)


def _certainly_apart(a: Any, b: Any) -> tuple[float, bool]:
    """How far apart two elements surely are, and whether the second alone is surely no number."""
    if not is_real(a):
        is_apart = a is not UNDEFINED and b is not UNDEFINED and a != b
        return float(is_apart and max(abs(int(a) - int(b)), 1)), False
    if is_unknown(a) or is_unknown(b) or a is NAN or a is INFINITE:
        return 0.0, False
    if isinstance(b, Special):
        return (math.inf, b is NAN) if a.is_finite() else (0.0, False)
    if not (a.is_finite() and b.is_finite()):
        return (0.0 if a == b else math.inf), False
    if a.overlaps(b):
        return 0.0, False
    return max(float(abs(a - b)), LEAST), False


def _largest(laid: _Laid, sharding: Sharding) -> Difference | None:
    classes, a, b = laid.classes, laid.expected, laid.found
    worst = _worst(laid)
    if worst is None:
        return None
    shape = np.broadcast_shapes(a.shape, b.shape, laid.inside.shape)
    at = [int(np.argmax(c == w)) if n > 1 else 0 for c, w, n in zip(classes, worst.where, shape, strict=True)]
    if sharding.only is not None and shape[0] == 1:
        at[0] = sharding.only
    device, local = at[0], tuple(at[1:])
    start = sharding.coordinates[device] * [len(c) for c in classes[1:]] if local else []
    element = tuple(int(s) + i for s, i in zip(start, local, strict=True))
    return Difference(
        device,
        element,
        local,
        _as_number(np.broadcast_to(a, shape)[worst.where]),
        _as_number(np.broadcast_to(b, shape)[worst.where]),
        math.inf if worst.is_nan else worst.far,
        max(_size(part) for _, (part,) in in_pieces(a)),
        worst.is_nan,
    )


@dataclass(frozen=True, slots=True)
class _Worst:
    """Where values differ most, in classes, and by how much."""

    where: tuple[int, ...]
    far: float
    is_nan: bool


def _worst(laid: _Laid) -> _Worst | None:
    """The first element that is NaN on a device alone, else the first of those that are furthest apart."""
    most: _Worst | None = None
    for start, (a, b, mask) in in_pieces(laid.expected, laid.found, laid.inside):
        far, lost = _apart(a, b)
        lost, far = np.broadcast_arrays(lost & mask, np.where(mask, far, 0.0))
        nan = bool(lost.any())
        number = int(np.argmax(lost if nan else far))
        where = tuple(int(s) + int(k) for s, k in zip(start, np.unravel_index(number, far.shape), strict=True))
        found = _Worst(where, float(far.reshape(-1)[number]), nan)
        if nan:
            return found
        if found.far > (0.0 if most is None else most.far):
            most = found
    return most


def _size(values: Array) -> float:
    """The size of the largest element that is finite."""
    plain = rounded(values)
    finite = np.abs(np.where(np.isfinite(plain), plain, 0)) if plain.dtype.kind in "fc" else np.abs(plain.astype(float))
    return float(finite.max())


def _as_number(x: Any) -> Any:
    """An element as numpy's scalar."""
    if isinstance(x, np.void):
        return middle(np.asarray(x))[()]
    return x if isinstance(x, np.generic) else np.asarray(number(x))[()]
