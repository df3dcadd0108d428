"""Constants and iota."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from hlo_verify.diagnostics import Unsupported
from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index
from hlo_verify.limits import allows, limit_of
from hlo_verify.memory import per_session
from hlo_verify.ops.complex_numbers import is_complex, make_complex
from hlo_verify.ops.movement import linear_index
from hlo_verify.ops.values import Context, Rule, UnsupportedError, Value, position, positions, require_arithmetic
from hlo_verify.program.element_types import INTEGER_RANGES, is_float
from hlo_verify.program.ir import Op
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import NAN
from hlo_verify.terms.laws import apply
from hlo_verify.terms.no_number import infinity
from hlo_verify.terms.term import Poly, Tensor, mix, next_uid, number


def _iota(op: Op, args: list[Value], context: Context) -> list[Value]:
    (type_,) = op.types
    require_arithmetic(type_.dtype)
    if type_.dtype == "i1":
        raise UnsupportedError("iota of truth values", Unsupported.ELEMENT_TYPE)
    k = op.attributes["iota_dimension"]
    return [Value(type_, algebra.of_index(position(k, type_.shape[k])))]


TABLE_BOUND = 1 << 62
"""Integers at least this large are in no such table, whose differences are computed in 64 bits."""

FLOAT_BOUND = 1 << 53
"""Integers up to this size are floats of 64 bits, each of them."""

_constants: Callable[[], dict[tuple[Any, ...], Tensor]] = per_session("constants", dict)


def _constant(op: Op, args: list[Value], context: Context) -> list[Value]:
    (type_,) = op.types
    return [Value(type_, constant_term(op.attributes["value"], type_.dtype, type_.shape))]


def constant_term(array: Any, dtype: str, shape: tuple[int, ...]) -> Poly:
    """The element of a constant at its position: `[8]` and `[8, 1]` of the same numbers are one tensor."""
    require_arithmetic(dtype)
    if array.size == 0:
        return number(0)
    splat = all(stride == 0 or size == 1 for stride, size in zip(array.strides, array.shape, strict=True))
    if splat or (array.size <= limit_of("table_elements") and (array == array.flat[0]).all()):
        return literal(array.flat[0], dtype)
    if is_float(dtype) and not np.isfinite(array).all():
        return _with_symbols(array, dtype, shape)
    if dtype in INTEGER_RANGES and allows("table_elements", array.size):
        values = tuple(int(v) for v in array.flat)
        if all(abs(v) < TABLE_BOUND for v in values):
            return algebra.of_index(expr.lookup(values, linear_index(shape, positions(shape))))
    if is_float(dtype) and array.size <= limit_of("table_elements"):
        counted = _counted(array, shape)
        if counted is not None:
            return algebra.of_index(counted)
    places = [e for e, size in zip(positions(shape), shape, strict=True) if size > 1]
    shape = tuple(size for size in shape if size > 1)
    data = np.ascontiguousarray(array).reshape(shape)
    key = (dtype, shape, data.tobytes())
    known = _constants()
    found = known.get(key)
    if found is None:
        skey = mix("constant", dtype, zlib.crc32(key[2]))
        found = Tensor("constant", f"constant{len(known)}", dtype, shape, next_uid(), skey, values=data)
        known[key] = found
    return algebra.read(found, places)


def _counted(array: Any, shape: tuple[int, ...]) -> Index | None:
    """The position that floats count, as `[0, 16, 32, 48]` do: where the shard of an iota begins on each device. None
    of others, which stay tensors."""
    numbers = array.astype(np.float64)
    if (np.abs(numbers) > FLOAT_BOUND).any() or (numbers != np.rint(numbers)).any():
        return None
    found = expr.lookup(tuple(int(v) for v in numbers.flat), linear_index(shape, positions(shape)))
    return found if all(isinstance(atom, Digit) for atom, _ in found.items) else None


def _with_symbols(array: Any, dtype: str, shape: tuple[int, ...]) -> Poly:
    """A constant of which some elements are no numbers: symbols, in their places."""
    numbers = np.where(np.isfinite(array), array, array.dtype.type(0))
    places = ((np.isnan(array), math.nan), (array == math.inf, math.inf), (array == -math.inf, -math.inf))
    symbols = (
        algebra.multiply(constant_term(where, "i1", shape), literal(symbol, dtype))
        for where, symbol in places
        if where.any()
    )
    return algebra.add(constant_term(numbers, dtype, shape), *symbols)


def literal(value: Any, dtype: str) -> Poly:
    """The exact value of a literal; infinities and NaN are symbols."""
    if is_complex(dtype):
        real, imaginary = literal(value.real, "f64"), literal(value.imag, "f64")
        return make_complex(real, imaginary) if imaginary.items else real
    if dtype in INTEGER_RANGES:
        return number(int(value))
    x = float(value)
    if math.isinf(x):
        return infinity(1 if x > 0 else -1)
    if math.isnan(x):
        return apply(NAN, ())
    return number(Fraction(x))


RULES: dict[str, Rule] = {"iota": _iota, "constant": _constant}
