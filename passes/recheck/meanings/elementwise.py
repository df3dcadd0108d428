"""The meaning of operations element by element, and of constants."""

from __future__ import annotations

from collections.abc import Callable

from hlo_verify.passes.recheck.meanings.site import Meaning, Site, UnwrittenError
from hlo_verify.passes.recheck.plain import (
    GREATER,
    ONE,
    ZERO,
    Affine,
    Call,
    Choose,
    Entry,
    Expr,
    Gate,
    Integer,
    Num,
    OfIndex,
    add,
    as_affine,
    digit,
    minus,
    row_major,
    sum_of,
    times,
)
from hlo_verify.program.element_types import exponent_bits, integer_bits
from hlo_verify.program.op_families import plain_name
from hlo_verify.terms.functions import (
    EQUAL,
    EXPONENTIAL,
    INVERSE,
    IS_FINITE,
    IS_ZERO,
    LESS_OR_EQUAL,
    LOG,
    MAXIMUM,
    MINIMUM,
    MULTIPLY,
    SQRT,
    Function,
    truncate,
    typed,
)


def is_integral(dtype: str) -> bool:
    """Whether elements are integers or truth values."""
    return dtype.startswith(("i", "ui"))


def is_real(dtype: str) -> bool:
    """Whether elements are floating-point numbers."""
    return dtype.startswith(("f", "bf"))


def _iota(site: Site) -> Expr:
    return OfIndex(site.where[site.attribute("iota_dimension")])


def _constant(site: Site) -> Expr:
    array = site.attribute("value")
    if array.size == 0:
        return ZERO
    if all(stride == 0 or size == 1 for stride, size in zip(array.strides, array.shape, strict=True)):
        return Entry(array.reshape(-1)[:1].copy(), Affine(0))
    return Entry(array, row_major(site.type.shape, site.where))


def _at(site: Site, n: int) -> Expr:
    """The operand's element at the same place; of a scalar, it itself."""
    return site.read(n, site.where if site.operands[n].shape else [])


def _either(a: Expr, b: Expr) -> Expr:
    return add(a, b, times(Num(-1), a, b))


def _add(site: Site) -> Expr:
    a, b = _at(site, 0), _at(site, 1)
    return _either(a, b) if site.type.dtype == "i1" else add(a, b)


def _subtract(site: Site) -> Expr:
    return minus(_at(site, 0), _at(site, 1))


def _multiply(site: Site) -> Expr:
    return product_of(site.type.dtype, _at(site, 0), _at(site, 1))


def product_of(dtype: str, *factors: Expr) -> Expr:
    """The product of values: also a truth value that was converted to a number selects nothing."""
    return Call(MULTIPLY, factors) if is_real(dtype) else times(*factors)


def _negate(site: Site) -> Expr:
    return times(Num(-1), _at(site, 0))


def _absolute(site: Site) -> Expr:
    x = _at(site, 0)
    if not is_integral(site.type.dtype):
        return free_function(site)
    return Choose(Gate(as_affine(x), None, -1), times(Num(-1), x), x)


def _divide(site: Site) -> Expr:
    if not is_integral(site.type.dtype):
        return product_of(site.type.dtype, _at(site, 0), Call(INVERSE, (_at(site, 1),)))
    top, bottom = as_affine(_at(site, 0)), as_affine(_at(site, 1))
    if bottom.items or bottom.const <= 0 or any(isinstance(part.base, Integer) for part, _ in top.items):
        raise UnwrittenError("division of integers that are no index, or by what is no positive constant")
    back = times(Num(-1), OfIndex(digit(sum_of((top, -1)), bottom.const)))
    return Choose(Gate(top, 0, None), OfIndex(digit(top, bottom.const)), back)


def _remainder(site: Site) -> Expr:
    if not is_integral(site.type.dtype):
        return free_function(site)
    top, bottom = as_affine(_at(site, 0)), as_affine(_at(site, 1))
    if bottom.items or bottom.const <= 0 or any(isinstance(part.base, Integer) for part, _ in top.items):
        raise UnwrittenError("remainder of integers that are no index, or by what is no positive constant")
    back = times(Num(-1), OfIndex(digit(sum_of((top, -1)), 1, bottom.const)))
    return Choose(Gate(top, 0, None), OfIndex(digit(top, 1, bottom.const)), back)


def _square(site: Site) -> Expr:
    return times(_at(site, 0), _at(site, 0))


def _sign(site: Site) -> Expr:
    if not is_integral(site.type.dtype):
        return free_function(site)
    e = as_affine(_at(site, 0))
    return minus(Gate(e, 1, None), Gate(e, None, -1))


def free_function(site: Site) -> Expr:
    """A function known by its name, attributes and types."""
    name = plain_name(site.op.name)
    real = all(is_real(type_.dtype) for type_ in site.operands) and name != "next_after"
    source = ("real",) if real else tuple(type_.dtype for type_ in site.operands)
    target = "real" if is_real(site.type.dtype) and name != "next_after" else site.type.dtype
    extra = {k: site.op.attributes[k] for k in ("exponent_bits", "mantissa_bits") if k in site.op.attributes}
    if name == "reduce_precision" and extra["exponent_bits"] < exponent_bits(site.type.dtype):
        extra["narrows"] = 1  # to infinities
    return Call(typed(name, source, target, extra), tuple(_at(site, n) for n in range(len(site.operands))))


def _bits_set(site: Site) -> Expr:
    """How many of an index's bits are 1; of other integers nothing is said but that it is a function of them."""
    e = _index(site)
    if e is None:
        return free_function(site)
    return add(*(OfIndex(digit(e, 1 << bit, 2)) for bit in range(integer_bits(site.type.dtype))))


def _zeros_before(site: Site) -> Expr:
    """How many powers of two an index does not reach, all of its bits read as a natural number."""
    e, width = _index(site), integer_bits(site.type.dtype)
    if e is None:
        return free_function(site)
    natural = digit(e, 1, 1 << width)
    return add(*(Gate(natural, None, (1 << bit) - 1) for bit in range(width)))


def _index(site: Site) -> Affine | None:
    e = as_affine(_at(site, 0))
    return None if any(isinstance(part.base, Integer) for part, _ in e.items) else e


def _named(function: Function) -> Meaning:
    def meaning(site: Site) -> Expr:
        if not is_real(site.type.dtype):
            return free_function(site)
        return Call(function, tuple(_at(site, n) for n in range(len(site.operands))))

    return meaning


def _maximum(site: Site) -> Expr:
    a, b = _at(site, 0), _at(site, 1)
    return _either(a, b) if site.type.dtype == "i1" else Call(MAXIMUM, (a, b))


def _minimum(site: Site) -> Expr:
    a, b = _at(site, 0), _at(site, 1)
    return times(a, b) if site.type.dtype == "i1" else Call(MINIMUM, (a, b))


def _clamp(site: Site) -> Expr:
    low, x, high = (_at(site, n) for n in range(3))
    return Call(MINIMUM, (Call(MAXIMUM, (x, low)), high))


def _select(site: Site) -> Expr:
    return Choose(*(_at(site, n) for n in range(3)))


ORDERS = {"EQ": EQUAL, "NE": EQUAL, "LT": GREATER, "LE": LESS_OR_EQUAL, "GT": GREATER, "GE": LESS_OR_EQUAL}
"""What comparisons of floating-point numbers ask, of operands in the one order or the other."""


def _compare(site: Site) -> Expr:
    direction, dtype = site.attribute("comparison_direction"), site.operands[0].dtype
    a, b = _at(site, 0), _at(site, 1)
    if is_integral(dtype) and not (dtype == "i1" and direction in ("EQ", "NE")):
        bounds = {"EQ": (0, 0), "NE": (0, 0), "LT": (None, -1), "LE": (None, 0), "GT": (1, None), "GE": (0, None)}
        test: Expr = Gate(sum_of((as_affine(a), 1), (as_affine(b), -1)), *bounds[direction])
    elif dtype == "i1":
        test = add(ONE, times(Num(-1), a), times(Num(-1), b), times(Num(2), a, b))
    elif is_real(dtype) and site.op.attributes.get("compare_type") != "TOTALORDER":
        if direction in ("LT", "GE"):
            a, b = b, a
        test = Call(ORDERS[direction], (a, b))
    else:
        raise UnwrittenError(f"compare of {dtype} in total order")
    return minus(ONE, test) if direction == "NE" else test


def _convert(site: Site) -> Expr:
    old, new, x = site.operands[0].dtype, site.type.dtype, _at(site, 0)
    if "complex" in old + new:
        raise UnwrittenError("convert of complex numbers")
    if new == "i1" and old != "i1":
        return minus(ONE, Gate(as_affine(x), 0, 0) if is_integral(old) else Call(IS_ZERO, (x,)))
    if is_integral(new) and not is_integral(old):
        return Call(truncate(new), (x,))
    return x


def _power(site: Site) -> Expr:
    if not is_real(site.type.dtype):
        raise UnwrittenError("power of integers")
    return free_function(site)


def _is_finite(site: Site) -> Expr:
    return Call(IS_FINITE, (_at(site, 0),))


def _truth(meaning: Callable[..., Expr]) -> Meaning:
    def checked(site: Site) -> Expr:
        if site.type.dtype != "i1":
            raise UnwrittenError(f"{site.op.name} of the bits of integers")
        return meaning(*(_at(site, n) for n in range(len(site.operands))))

    return checked


def _ceil(site: Site) -> Expr:
    """The opposite of what the opposite is rounded down to."""
    below = Call(typed("floor", ("real",), "real", {}), (minus(ZERO, _at(site, 0)),))
    return minus(ZERO, below)


FUNCTIONS = (
    "atan2 cbrt cosine exponential_minus_one floor log_plus_one logistic round_nearest_afz round_nearest_even rsqrt "
    "sine tan tanh reduce_precision chlo.erf chlo.erf_inv chlo.erfc chlo.lgamma chlo.mulhi mhlo.erf mhlo.tan chlo.tan"
).split()

MEANINGS: dict[str, Meaning] = {
    "iota": _iota,
    "constant": _constant,
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "abs": _absolute,
    "negate": _negate,
    "ceil": _ceil,
    "divide": _divide,
    "remainder": _remainder,
    "sign": _sign,
    "popcnt": _bits_set,
    "count_leading_zeros": _zeros_before,
    "chlo.square": _square,
    "exponential": _named(EXPONENTIAL),
    "log": _named(LOG),
    "sqrt": _named(SQRT),
    "maximum": _maximum,
    "minimum": _minimum,
    "clamp": _clamp,
    "select": _select,
    "compare": _compare,
    "convert": _convert,
    "power": _power,
    "is_finite": _is_finite,
    "and": _truth(times),
    "or": _truth(_either),
    "xor": _truth(lambda a, b: add(a, b, times(Num(-2), a, b))),
    "not": _truth(lambda a: minus(ONE, a)),
    **dict.fromkeys(FUNCTIONS, free_function),
}
"""Meanings by operation name."""
