"""What the constants of two modules enclose: some are rounded numbers, and nothing says of which.

A program that divides by 3 may be compiled to one that multiplies by 0.333333343. That a constant stands for any number
that it may be rounded from is the one tolerance that a refutation leaves, and it is named among its assumptions. What
few bits say (0.5, 768, -inf) is meant as it is written, unless only one module says it and one of them computes with
constants alone: 1.0 is what tanh(6) is folded to in a narrow type, 0 what is too small for a type and infinity what is
too large. A constant that both modules hold was rounded once, when it was written; one that only one of them holds may
be what several operations were folded to.

That every use of a constant may stand for another number is more than is needed: in a deep module it leaves little to
be told. So a constant that both hold is also taken for one and the same number (`is_strict`), and what differs then is
a difference if it is far more than a rounding (`CLEARLY`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np

from hlo_verify.evaluate.intervals import INTERVALS, hull, interval, is_point
from hlo_verify.evaluate.maps import Array
from hlo_verify.evaluate.numbers import bounds, is_complex, is_float, is_integer
from hlo_verify.evaluate.state import Instead
from hlo_verify.evaluate.undefined import apply
from hlo_verify.evaluate.unknown import UnknownError
from hlo_verify.passes.refute.folding import CONSTANTS, computed_of_constants, folded, moves
from hlo_verify.program.attributes import elements_once
from hlo_verify.program.element_types import finfo
from hlo_verify.program.ir import Module, Name, Op, TensorType, operations
from hlo_verify.program.op_families import ELEMENTWISE

FOLDED = 256
"""How many roundings a constant may be off by that only one module holds: 1.5e-5 of it in single precision. Tables of
sines that were folded are off by that, and nobody tells two constants apart by so little."""

FOLDED_NARROW = 2
"""The same for types of fewer than `WIDE` bits, in which as many roundings would leave nothing of a number."""

WIDE = 24

CLEARLY = 1e-4
"""What values must differ by, as a fraction of the larger one, where constants of both modules are the same numbers."""

ASSUMPTION = (
    "constants of floating point stand for any number that they may be rounded from, those that only one module has "
    f"for any within {FOLDED} roundings ({FOLDED_NARROW} in types with fewer than {WIDE} bits)"
)


@dataclass(slots=True)
class Literals:
    """What the constants of a pair of modules enclose."""

    shared: frozenset[float]
    """The constants that both modules hold."""
    may_be_folded: bool = False
    """Whether a module computes with constants alone, so that the other may hold what comes of it."""
    may_be_too_large: bool = False
    """Whether some of that may be too large for its type, so that the other may hold an infinity."""
    is_strict: bool = False
    """Whether constants that both modules hold are meant as they are written."""
    is_used: bool = False
    """Whether some constant was taken for a rounded one."""

    def __call__(self, array: Array, dtype: str) -> Array:
        """How far off the elements of a constant may be; of complex ones, both parts."""
        if is_complex(dtype):
            wide, part = np.asarray(array).astype(complex), dtype.removeprefix("complex<").removesuffix(">")
            return np.asarray(self._off(wide.real, part) + 1j * self._off(wide.imag, part))
        return self._off(np.asarray(array).astype(float), dtype)

    def _off(self, values: Array, dtype: str) -> Array:
        bits = precision(dtype)
        is_shared = np.isin(values, list(self.shared))
        is_meant = ~np.isfinite(values) & (not self.may_be_too_large)
        plain = is_meant_as_written(values, bits) & (is_shared | is_meant | (not self.may_be_folded))
        self.is_used = self.is_used or not plain.all()
        roundings = np.where(is_shared, not self.is_strict, FOLDED if bits >= WIDE else FOLDED_NARROW)
        off = roundings * np.abs(values) * 2.0**-bits
        return np.where(plain | np.isnan(values), 0.0, np.where(values == 0, smallest(dtype), off))

    def folded(self, module: Module) -> dict[Name, Instead]:
        """What a compiler may fold values of a module to, in place of these."""
        return {name: partial(self._folded, dtype=dtype) for name, dtype in computed_of_constants(module.main).items()}

    def _folded(self, values: Array, dtype: str) -> Array:
        found = folded(values, dtype)
        self.is_used = self.is_used or not np.array_equal(found, values)
        return found


def precision(dtype: str) -> int:
    """The bits of the significand of a floating-point type."""
    return int(finfo(dtype).nmant) + 1


def smallest(dtype: str) -> float:
    """The least positive number that a floating-point type holds with all of its bits."""
    return float(finfo(dtype).smallest_normal)


def is_plain(values: Array, bits: int) -> Array:
    """Whether half of a significand's bits are enough for numbers, or they are none."""
    significand = np.frexp(np.where(np.isfinite(values), values, 0.0))[0]
    return np.asarray(np.ldexp(significand, bits // 2) % 1 == 0)


def is_meant_as_written(values: Array, bits: int) -> Array:
    """Whether numbers of a constant are plain, and not by chance: among numbers that are not, one in 2^12 of single
    precision is, and a cosine of nearly 1. Of these none says more than that it is rounded, but for 0."""
    plain = is_plain(values, bits)
    counted = np.isfinite(values) & (values != 0)
    is_by_chance = 2 * int((plain & counted).sum()) < int(counted.sum())
    return plain & ~counted if is_by_chance else plain


def literals_of(logical: Module, partitioned: Module) -> Literals:
    """The literals of a pair."""
    shared = frozenset(_constants(logical)) & frozenset(_constants(partitioned))
    modules = logical, partitioned
    return Literals(shared, any(map(computes_with_constants, modules)), any(map(may_be_too_large, modules)))


def computes_with_constants(module: Module) -> bool:
    """Whether some number is computed of constants alone, by more than moving them, and may be rounded: `0.5 * (3 - 1)`
    is 1 in any type, however it is folded."""
    known: dict[Name, Repeated] = {}
    for op in operations(module.main):
        if op.name not in CONSTANTS and not (op.operands and known.keys() >= set(op.operands)):
            continue
        operands = [known[name] for name in op.operands]
        # JAX converts what has the type already, too
        is_converted = op.name == "convert" and op.types[0].dtype == operands[0][0]
        is_moved = op.name in CONSTANTS or moves(op) or is_converted
        found = operands[0][1] if is_converted else _repeated(op, [values for _, values in operands])
        known.update((name, (type_.dtype, found)) for name, type_ in zip(op.results, op.types, strict=True))
        if found is None and not is_moved and any(is_float(t.dtype) or is_complex(t.dtype) for t in op.types):
            return True
    return False


Repeated = tuple[str, Array | None]
"""A type, and the plain number that all elements are; None where no such is known."""


def _repeated(op: Op, operands: Sequence[Array | None]) -> Array | None:
    """The plain number that all elements of a result are, computed of plain numbers without any rounding; None of one
    that is not known to be such."""
    dtype = op.types[0].dtype
    if op.name == "constant":
        return _plain(elements_once(op.attributes["value"]), dtype)
    given = [values for values in operands if values is not None]
    if len(given) < len(operands) or len(op.types) != 1 or op.regions or op.name in ("iota", "bitcast_convert"):
        return None
    if moves(op):
        return given[0] if len(given) == 1 else None
    if op.name not in ELEMENTWISE or not is_float(dtype):
        return None
    try:
        found = apply(op, [dtype] * len(given), given, lambda _: None, INTERVALS)
    except (UnknownError, KeyError):
        return None
    is_known = found.dtype == INTERVALS and bool(is_point(found).all())
    return _plain(found["low"], dtype) if is_known else None


def _plain(values: Array, dtype: str) -> Array | None:
    """A plain floating-point number as an interval; None of anything else."""
    if not is_float(dtype) or values.size != 1:
        return None
    wide = values.reshape(-1).astype(float)
    is_number = bool(np.isfinite(wide).all()) and bool((np.abs(wide) <= float(finfo(dtype).max)).all())
    is_known = is_number and bool(is_plain(wide, precision(dtype)).all())
    return interval(wide, wide) if is_known and not _is_tiny(wide, dtype) else None


def _is_tiny(values: Array, dtype: str) -> bool:
    return bool(((values != 0) & (np.abs(values) < smallest(dtype))).any())


def may_be_too_large(module: Module) -> bool:
    """Whether some number that is computed of constants alone may be too large for its type, or none: from what the
    least and the greatest elements of the operands are."""
    known: dict[Name, Range] = {}
    for op in operations(module.main):
        if op.name not in CONSTANTS and (not op.operands or not known.keys() >= set(op.operands)):
            continue
        operands = [known[name] for name in op.operands]
        for name, type_ in zip(op.results, op.types, strict=True):
            found = None if is_complex(type_.dtype) else _range(op, type_, operands)
            if found is None:
                return True
            is_computed = op.name not in (*CONSTANTS, "select") and not moves(op)
            is_of_infinity = _is_infinity(found) and any(_is_infinity(values) for _, values in operands)
            if is_computed and not is_of_infinity and is_float(type_.dtype) and not _fits(found, type_.dtype):
                return True
            known[name] = type_.dtype, found
    return False


Range = tuple[str, Array]
"""A type, and an interval that holds some elements of it."""


def _fits(values: Array, dtype: str) -> bool:
    most = float(finfo(dtype).max) / 2
    return bool((values["low"] >= -most) & (values["high"] <= most))


def _is_infinity(values: Array) -> bool:
    """Whether all elements are one infinity: what is made of it, and is one, was not too large."""
    return bool(np.isinf(values["low"]) & (values["low"] == values["high"]))


def _range(op: Op, type_: TensorType, operands: Sequence[Range]) -> Array | None:
    """An interval that holds all elements of a result; None where none is known."""
    if op.name == "constant":
        array = elements_once(op.attributes["value"]).astype(float)
        array = array[~np.isnan(array)]  # what is computed of one that is none is none, or a choice among others
        return interval(array.min(), array.max()) if array.size else interval(0.0, 0.0)
    if op.name == "iota":
        return interval(0.0, float(max(type_.shape, default=1)))
    if moves(op) or op.name == "select":
        given = [values for dtype, values in operands if dtype == type_.dtype]
        return reduce(hull, given) if given else None
    if op.name == "convert":
        return operands[0][1]
    if type_.dtype == "i1" or is_integer(type_.dtype):
        return interval(*map(float, (0, 1) if type_.dtype == "i1" else bounds(type_.dtype)))
    if any(is_integer(dtype) for dtype, _ in operands):
        return None  # the bits of an integer
    try:
        dtypes, values = zip(*operands, strict=True)
        with np.errstate(all="ignore"):
            return apply(op, list(dtypes), list(values), lambda _: None, INTERVALS)
    except (UnknownError, KeyError):
        return None


def _constants(module: Module) -> Iterator[float]:
    """The numbers that a module writes, each once for a constant."""
    for op in operations(module.main):
        if op.name != "constant" or not (is_float(op.types[0].dtype) or is_complex(op.types[0].dtype)):
            continue
        array = elements_once(op.attributes["value"])
        wide = array.astype(complex if is_complex(op.types[0].dtype) else float).reshape(-1)
        parts = (wide.real, wide.imag) if wide.dtype.kind == "c" else (wide,)
        for part in parts:
            yield from np.unique(part).tolist()
