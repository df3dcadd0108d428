"""Elementwise operations, conversions and constants.

Integers wrap, so a sum or product of integers is a polynomial whose value counts modulo 2^n; an
operation that looks inside an integer (division, comparison, conversion to a float) does so only where
its range shows that nothing wrapped, and is an uninterpreted function of the machine value elsewhere.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from hlo_verify.index import expr
from hlo_verify.ir import Op
from hlo_verify.ops.movement import linear_index
from hlo_verify.ops.values import (
    Context,
    Rule,
    UnsupportedError,
    Value,
    as_index,
    factor,
    integer_range,
    is_float,
    is_integer,
    lighten,
    position,
    positions,
)
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.functions import apply, divide, greater
from hlo_verify.terms.term import ONE, Apply, Poly, Read, Tensor, mix, next_uid, number

PRODUCT_LIMIT = 12
"""The most monomials that multiplying two values out may give; past that the factors are named."""


def product(a: Poly, b: Poly, dtype: str) -> Poly:
    """`a * b`, with the factors named where the expansion would be long."""
    if len(a.items) * len(b.items) > PRODUCT_LIMIT:
        a, b = factor(a, dtype), factor(b, dtype)
    return algebra.multiply(a, b)


def exact_integer(value: Value) -> Poly:
    """A polynomial whose value is the machine value itself, not merely equal to it modulo 2^n."""
    dtype = value.type.dtype
    e = algebra.as_index(value.term, *integer_range(dtype))
    terms = [atom.term for atom, _ in e.items if isinstance(atom, expr.Opaque) and atom.kind == "value"]
    if all(_is_machine_value(term) for term in terms):
        return algebra.of_index(e)
    return apply(f"wrap:{dtype}", (value.term,))


def _is_machine_value(term: Poly) -> bool:
    """Whether a term is what the machine holds: not a polynomial, or a definition of one, that may wrap."""
    atom = term.atom
    if atom is None:
        return len(term.items) == 1 and all(a.boolean for a, _ in term.items[0][0])
    if isinstance(atom, Read):
        return atom.boolean or atom.tensor.kind not in ("sum", "product", "term")
    return not (isinstance(atom, Apply) and atom.function == "power")


def _add(op: Op, args: list[Value], context: Context) -> list[Value]:
    if op.types[0].dtype == "i1":
        a, b = (v.term for v in args)
        return _result(op, algebra.subtract(algebra.add(a, b), algebra.multiply(a, b)))
    return _result(op, algebra.add(args[0].term, args[1].term))


def _subtract(op: Op, args: list[Value], context: Context) -> list[Value]:
    return _result(op, algebra.subtract(args[0].term, args[1].term))


def _multiply(op: Op, args: list[Value], context: Context) -> list[Value]:
    return _result(op, product(args[0].term, args[1].term, op.types[0].dtype))


def _negate(op: Op, args: list[Value], context: Context) -> list[Value]:
    return _result(op, algebra.scale(args[0].term, -1))


def _result(op: Op, term: Poly) -> list[Value]:
    return [Value(op.types[0], lighten(term, op.types[0].dtype))]


def _divide(op: Op, args: list[Value], context: Context) -> list[Value]:
    dtype = op.types[0].dtype
    if not is_integer(dtype):
        a, b = args
        bottom = b.term if b.term.constant is not None else factor_divisor(b.term, dtype)
        return _result(op, divide(a.term, bottom))
    a_index, b_index = as_index(args[0]), as_index(args[1])
    if not b_index.items and b_index.const > 0 and a_index.lo >= 0:
        return _result(op, algebra.of_index(expr.floor_div(a_index, b_index.const)))
    return _uninterpreted(op, args)


def factor_divisor(term: Poly, dtype: str) -> Poly:
    """A divisor light enough to be taken apart by the laws of division."""
    return factor(term, dtype) if term.weight > 24 else term


def _remainder(op: Op, args: list[Value], context: Context) -> list[Value]:
    if is_integer(op.types[0].dtype):
        a, b = as_index(args[0]), as_index(args[1])
        if not b.items and b.const > 0 and a.lo >= 0:
            return _result(op, algebra.of_index(expr.modulo(a, b.const)))
    return _uninterpreted(op, args)


def _uninterpreted(op: Op, args: list[Value], **attributes: Any) -> list[Value]:
    """The operation as a function of its name, attributes and machine types."""
    kinds = ",".join(v.type.dtype for v in args) if not all(is_float(v.type.dtype) for v in args) else "real"
    name = op.name if op.name not in ("chlo.erf", "mhlo.erf") else "erf"
    extra = "".join(f",{k}={v}" for k, v in sorted(attributes.items()))
    result = op.types[0].dtype if not is_float(op.types[0].dtype) else "real"
    return _result(op, apply(f"{name}:{kinds}->{result}{extra}", tuple(v.term for v in args)))


def _function(law: str) -> Rule:
    """A real function with laws of its own; uninterpreted on other types."""

    def rule(op: Op, args: list[Value], context: Context) -> list[Value]:
        if not is_float(op.types[0].dtype):
            return _uninterpreted(op, args)
        return _result(op, apply(law, tuple(v.term for v in args)))

    return rule


def _extremum(law: str) -> Rule:
    def rule(op: Op, args: list[Value], context: Context) -> list[Value]:
        dtype = op.types[0].dtype
        a, b = (v.term for v in args)
        if dtype == "i1":
            both = algebra.multiply(a, b)
            return _result(op, both if law == "minimum" else algebra.subtract(algebra.add(a, b), both))
        if is_float(dtype):
            return _result(op, apply(law, (a, b)))
        x, y = as_index(args[0]), as_index(args[1])
        if x.items and not y.items:
            x, y = y, x
        if not x.items:
            lo, hi = integer_range(dtype)
            cut = expr.clamp(y, x.const, hi) if law == "maximum" else expr.clamp(y, lo, x.const)
            return _result(op, algebra.of_index(cut))
        return _result(op, apply(law, (exact_integer(args[0]), exact_integer(args[1]))))

    return rule


def _clamp(op: Op, args: list[Value], context: Context) -> list[Value]:
    low, x, high = (_broadcast(v, args[1]) for v in args)
    if is_integer(op.types[0].dtype):
        lo, e, hi = as_index(low), as_index(x), as_index(high)
        if not lo.items and not hi.items:
            return _result(op, algebra.of_index(expr.clamp(e, lo.const, hi.const)))
        low, x, high = (Value(v.type, exact_integer(v)) for v in (low, x, high))
    return _result(op, apply("minimum", (apply("maximum", (x.term, low.term)), high.term)))


def _broadcast(value: Value, like: Value) -> Value:
    return value  # a scalar's term mentions no position, so it is its own broadcast


def _select(op: Op, args: list[Value], context: Context) -> list[Value]:
    condition, a, b = args
    dtype = op.types[0].dtype
    c = condition.term if len(condition.term.items) <= 4 else factor(condition.term, "i1")
    terms = [
        v.term if len(v.term.items) * max(1, len(c.items)) <= PRODUCT_LIMIT else factor(v.term, dtype) for v in (a, b)
    ]
    return _result(op, algebra.select(c, terms[0], terms[1]))


def _compare(op: Op, args: list[Value], context: Context) -> list[Value]:
    direction = op.attributes["comparison_direction"]
    a, b = args
    dtype = a.type.dtype
    if direction in ("LT", "GE"):
        a, b, direction = b, a, {"LT": "GT", "GE": "LE"}[direction]
    if is_float(dtype):
        if op.attributes.get("compare_type") == "TOTALORDER":
            return _uninterpreted(op, args, direction=op.attributes["comparison_direction"])
        test = (
            greater(a.term, b.term) if direction in ("GT", "LE") else apply("zero", (algebra.subtract(a.term, b.term),))
        )
    elif dtype in algebra.INTEGER_RANGES:
        test = _compare_integers(a, b, direction)
    else:
        return _uninterpreted(op, args, direction=op.attributes["comparison_direction"])
    return _result(op, algebra.logical_not(test) if direction in ("LE", "NE") else test)


def _compare_integers(a: Value, b: Value, direction: str) -> Poly:
    """`[a > b]` (for GT and LE) or `[a = b]`: a guard on the difference where neither side wraps."""
    x, y = as_index(a), as_index(b)
    difference = expr.subtract(x, y)
    if a.type.dtype == "i1" and direction in ("EQ", "NE"):
        p, q = a.term, b.term  # p = q as truth values: pq + (1-p)(1-q)
        both = algebra.multiply(p, q)
        return algebra.add(algebra.scale(both, 2), ONE, algebra.scale(p, -1), algebra.scale(q, -1))
    if direction in ("GT", "LE"):
        return guards.interval(difference, 1, None)
    return guards.interval(difference, 0, 0)


def _and(op: Op, args: list[Value], context: Context) -> list[Value]:
    if op.types[0].dtype == "i1":
        return _result(op, product(args[0].term, args[1].term, "i1"))
    for value, mask in (args, args[::-1]):
        e, m = as_index(value), as_index(mask)
        if not m.items and m.const >= 0 and e.lo >= 0 and m.const & (m.const + 1) == 0:
            return _result(op, algebra.of_index(expr.modulo(e, m.const + 1)))
    return _uninterpreted(op, sorted(args, key=lambda v: v.term.uid))


def _or(op: Op, args: list[Value], context: Context) -> list[Value]:
    if op.types[0].dtype == "i1":
        a, b = (v.term for v in args)
        return _result(op, algebra.add(a, product(algebra.logical_not(a), b, "i1")))
    return _uninterpreted(op, sorted(args, key=lambda v: v.term.uid))


def _xor(op: Op, args: list[Value], context: Context) -> list[Value]:
    if op.types[0].dtype == "i1":
        a, b = (v.term for v in args)
        return _result(op, algebra.add(a, b, algebra.scale(product(a, b, "i1"), -2)))
    return _uninterpreted(op, sorted(args, key=lambda v: v.term.uid))


def _not(op: Op, args: list[Value], context: Context) -> list[Value]:
    if op.types[0].dtype == "i1":
        return _result(op, algebra.logical_not(args[0].term))
    if op.types[0].dtype.startswith("u"):
        return _uninterpreted(op, args)
    return _result(op, algebra.subtract(number(-1), args[0].term))


def _shift_right(op: Op, args: list[Value], context: Context) -> list[Value]:
    e, by = as_index(args[0]), as_index(args[1])
    bits = integer_range(op.types[0].dtype)[1].bit_length()
    if not by.items and 0 <= by.const < bits and e.lo >= 0:
        return _result(op, algebra.of_index(expr.floor_div(e, 1 << by.const)))
    return _uninterpreted(op, args)


def _shift_left(op: Op, args: list[Value], context: Context) -> list[Value]:
    by = as_index(args[1])
    bits = integer_range(op.types[0].dtype)[1].bit_length()
    if not by.items and 0 <= by.const < bits:
        return _result(op, algebra.scale(args[0].term, 1 << by.const))
    return _uninterpreted(op, args)


def _power(op: Op, args: list[Value], context: Context) -> list[Value]:
    exponent = args[1].term.constant
    if isinstance(exponent, int) and 0 <= exponent <= 4 and len(args[0].term.items) <= 2:
        return _result(op, algebra.power(args[0].term, exponent))
    return _uninterpreted(op, args)


def _convert(op: Op, args: list[Value], context: Context) -> list[Value]:
    (source,) = args
    (result,) = op.types
    old, new = source.type.dtype, result.dtype
    if old == new or (is_float(old) and is_float(new)) or old == "i1":
        return _result(op, source.term)
    if new == "i1" and is_integer(old):
        zero = guards.interval(as_index(source), 0, 0)
        return _result(op, algebra.logical_not(zero))
    if new == "i1" and is_float(old):
        return _result(op, algebra.logical_not(apply("zero", (source.term,))))
    if is_integer(old) and (is_integer(new) or is_float(new)):
        return _result(op, exact_integer(source))
    if is_float(old) and is_integer(new):
        c = source.term.constant
        if c is not None and integer_range(new)[0] <= c <= integer_range(new)[1]:
            return _result(op, number(math.trunc(c)))
        return _result(op, apply(f"truncate:{new}", (source.term,)))
    return _uninterpreted(op, args)


def _iota(op: Op, args: list[Value], context: Context) -> list[Value]:
    (result,) = op.types
    k = op.attributes["iota_dimension"]
    return [Value(result, algebra.of_index(position(k, result.shape[k])))]


TABLE_LIMIT = 1 << 16
"""The most elements of an integer constant that are treated as a table of indices."""

_constants: dict[tuple[Any, ...], Tensor] = {}


def _constant(op: Op, args: list[Value], context: Context) -> list[Value]:
    (result,) = op.types
    return [Value(result, constant_term(op.attributes["value"], result.dtype, result.shape))]


def constant_term(array: Any, dtype: str, shape: tuple[int, ...]) -> Poly:
    """The element of a constant at its position."""
    if array.size == 0:
        return number(0)
    splat = all(stride == 0 or size == 1 for stride, size in zip(array.strides, array.shape, strict=True))
    if splat or (array.size <= TABLE_LIMIT and (array == array.flat[0]).all()):
        return literal(array.flat[0], dtype)
    if dtype in algebra.INTEGER_RANGES and array.size <= TABLE_LIMIT:
        values = tuple(int(v) for v in array.flat)
        return algebra.of_index(expr.lookup(values, linear_index(shape, positions(shape))))
    if dtype not in algebra.INTEGER_RANGES and not is_float(dtype):
        raise UnsupportedError(f"a constant of type {dtype}")
    data = np.ascontiguousarray(array)
    key = (dtype, shape, data.tobytes())
    found = _constants.get(key)
    if found is None:
        skey = mix("constant", dtype, str(hash(key[2])))
        found = Tensor("constant", f"constant{len(_constants)}", dtype, shape, next_uid(), skey, values=data)
        _constants[key] = found
    return algebra.read(found, positions(shape))


def literal(value: Any, dtype: str) -> Poly:
    """The exact value of a literal; infinities and NaN are symbols."""
    if dtype.startswith("complex"):
        raise UnsupportedError("complex constants")
    if dtype in algebra.INTEGER_RANGES:
        return number(int(value))
    x = float(value)
    if math.isinf(x):
        return algebra.scale(apply("infinity", ()), 1 if x > 0 else -1)
    if math.isnan(x):
        return apply("nan", ())
    return number(Fraction(x))


def _is_finite(op: Op, args: list[Value], context: Context) -> list[Value]:
    return _result(op, apply("is_finite", (args[0].term,)))


UNINTERPRETED = (
    "abs atan2 cbrt ceil complex cosine count_leading_zeros exponential_minus_one floor imag log_plus_one logistic "
    "popcnt real round_nearest_afz round_nearest_even rsqrt sign sine tan tanh reduce_precision bitcast_convert "
    "shift_right_arithmetic chlo.erf mhlo.erf chlo.erf_inv chlo.lgamma chlo.digamma chlo.square chlo.tan chlo.next_after "
    "mhlo.tan mhlo.log1p chlo.asin chlo.acos chlo.atan chlo.sinh chlo.cosh chlo.asinh chlo.acosh chlo.atanh chlo.erfc "
    "mhlo.sinh mhlo.cosh mhlo.asin mhlo.acos mhlo.acosh mhlo.asinh mhlo.atanh"
).split()


def _elementwise_function(op: Op, args: list[Value], context: Context) -> list[Value]:
    if any(v.shape != op.types[0].shape for v in args):
        raise UnsupportedError(f"{op.name} that changes the shape")
    return _uninterpreted(
        op, args, **{k: v for k, v in op.attributes.items() if k in ("exponent_bits", "mantissa_bits")}
    )


RULES: dict[str, Rule] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "negate": _negate,
    "divide": _divide,
    "remainder": _remainder,
    "exponential": _function("exponential"),
    "log": _function("log"),
    "sqrt": _function("sqrt"),
    "maximum": _extremum("maximum"),
    "minimum": _extremum("minimum"),
    "clamp": _clamp,
    "select": _select,
    "compare": _compare,
    "and": _and,
    "or": _or,
    "xor": _xor,
    "not": _not,
    "shift_right_logical": _shift_right,
    "shift_left": _shift_left,
    "power": _power,
    "convert": _convert,
    "iota": _iota,
    "constant": _constant,
    "is_finite": _is_finite,
    **dict.fromkeys(UNINTERPRETED, _elementwise_function),
}
