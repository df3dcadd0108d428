"""Changes of the element type: convert, bitcast_convert, reduce_precision, and complex numbers and their parts.

Conversions to floating-point types are the identity (a named assumption). A bitcast is not: it is a
function of the bits, so its name says the formats.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from hlo_verify.diagnostics import Unsupported
from hlo_verify.index import expr
from hlo_verify.ops.comparison import made_by
from hlo_verify.ops.complex_numbers import imaginary_part, is_complex, make_complex, real_part
from hlo_verify.ops.elementwise import uninterpreted
from hlo_verify.ops.values import (
    Context,
    Rule,
    UnsupportedError,
    Value,
    as_index,
    exact_integer,
    integer_range,
    position,
    positions,
    require_arithmetic,
    result,
)
from hlo_verify.program.element_types import DTYPES, exponent_bits, is_integer, mantissa_bits
from hlo_verify.program.ir import Op
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.functions import IS_ZERO, truncate, typed
from hlo_verify.terms.laws import apply
from hlo_verify.terms.roundings import is_near_whole
from hlo_verify.terms.term import ZERO, Number, Poly, number


def _convert(op: Op, args: list[Value], context: Context) -> list[Value]:
    (source,) = args
    old, new = source.type.dtype, op.types[0].dtype
    require_arithmetic(old, new)
    if is_complex(old) and not is_complex(new):
        if new == "i1":
            raise UnsupportedError("a truth value of a complex number", Unsupported.ELEMENT_TYPE)
        source, old = Value(source.type, real_part(source.term)), "f64"
    if old == new or old == "i1" or (not is_integer(old) and not is_integer(new) and new != "i1"):
        return result(op, source.term)
    if is_integer(old):
        if new == "i1":
            return result(op, algebra.logical_not(guards.interval(as_index(source), 0, 0)))
        return result(op, exact_integer(source))
    if new == "i1":
        return result(op, algebra.logical_not(apply(IS_ZERO, (source.term,))))
    c = source.term.constant
    if c is not None and integer_range(new)[0] <= c <= integer_range(new)[1] and not is_near_whole(c):
        return result(op, number(math.trunc(c)))
    return result(op, apply(truncate(new), (source.term,)))


def bit_width(dtype: str) -> int:
    """The number of bits of an element."""
    if is_complex(dtype):
        return 2 * bit_width(dtype[8:-1])
    digits = re.match(r"[a-z]*(\d+)", dtype)
    if digits is None:
        raise UnsupportedError(f"the bits of {dtype}", Unsupported.ELEMENT_TYPE)
    return 8 if dtype == "i1" else int(digits[1])


def _bitcast_convert(op: Op, args: list[Value], context: Context) -> list[Value]:
    """A function of the bits of one element, of a group of narrow ones, or the n-th part of a wide one."""
    (type_,) = op.types
    (source,) = args
    old, new = source.type.dtype, type_.dtype
    require_arithmetic(old, new)
    wide, narrow = bit_width(old), bit_width(new)
    if old == new:
        return result(op, source.term)
    if "i1" in (old, new) or is_complex(old) or is_complex(new):
        raise UnsupportedError(f"bitcast_convert of {old} to {new}", Unsupported.ELEMENT_TYPE)
    made = {} if is_integer(old) else made_by(op)
    if wide == narrow:
        known = None if made else _number_of_bits(source.term.constant, old, new)
        return result(op, _of_bits(old, new, [source.term], made) if known is None else number(known))
    rank = min(type_.rank, len(source.shape))
    outer = list(positions(type_.shape[:rank]))
    if wide < narrow:
        parts = [source.at([*outer, expr.constant(n)]) for n in range(source.shape[-1])]
        return result(op, _of_bits(old, new, parts, made))
    which = position(rank, type_.shape[-1])
    chosen = [
        algebra.multiply(
            guards.interval(expr.shift(which, -n), 0, 0), _of_bits(old, new, [source.at(outer)], {**made, "part": n})
        )
        for n in range(type_.shape[-1])
    ]
    return result(op, algebra.add(*chosen))


def _number_of_bits(source: Number | None, old: str, new: str) -> Number | None:
    """What a number's bits are in another type. None where its format does not hold it, or what they are is no number,
    or it is zero, whose sign is not known."""
    if source is None or is_integer(old) == is_integer(new):
        return None
    if is_integer(old):
        lo, hi = integer_range(old)
        made = np.array((source - lo) % (hi - lo + 1) + lo, DTYPES[old]).view(DTYPES[new])
        exact = float(made)
        return Fraction(exact) if math.isfinite(exact) and exact else None
    there = np.array(float(source), DTYPES[old])
    if not source or Fraction(float(source)) != source or float(there) != float(source):
        return None
    return int(there.view(DTYPES[new]))


def _of_bits(old: str, new: str, parts: list[Poly], which: Mapping[str, str | int]) -> Poly:
    """Integers of one width are congruent modulo 2^n, so their bits are equal."""
    if is_integer(old) and is_integer(new) and not which and len(parts) == 1:
        return parts[0]
    return apply(typed("bitcast_convert", (old,) * len(parts), new, which), tuple(parts))


def _reduce_precision(op: Op, args: list[Value], context: Context) -> list[Value]:
    """The same for every format, but that fewer bits of the exponent make infinities of large numbers."""
    attributes = {k: op.attributes[k] for k in ("exponent_bits", "mantissa_bits")}
    dtype = op.types[0].dtype
    if dtype not in DTYPES:
        raise UnsupportedError(f"reduce_precision of {dtype}", Unsupported.ELEMENT_TYPE)
    if attributes["exponent_bits"] >= exponent_bits(dtype) and attributes["mantissa_bits"] >= mantissa_bits(dtype):
        return result(op, args[0].term)
    if attributes["exponent_bits"] < exponent_bits(dtype):
        attributes["narrows"] = 1
    return uninterpreted(op, args, **attributes)


# Complex numbers


def _complex(op: Op, args: list[Value], context: Context) -> list[Value]:
    return result(op, make_complex(args[0].term, args[1].term))


def _part(which: int) -> Rule:
    def rule(op: Op, args: list[Value], context: Context) -> list[Value]:
        (source,) = args
        if not is_complex(source.type.dtype):
            return result(op, (source.term, ZERO)[which])
        return result(op, (real_part, imaginary_part)[which](source.term))

    return rule


RULES: dict[str, Rule] = {
    "convert": _convert,
    "bitcast_convert": _bitcast_convert,
    "reduce_precision": _reduce_precision,
    "complex": _complex,
    "real": _part(0),
    "imag": _part(1),
}
