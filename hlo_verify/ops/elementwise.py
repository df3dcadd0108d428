"""Elementwise arithmetic and selections.

Integers wrap, so a sum or product of integers is a polynomial whose value counts modulo 2^n; an
operation that looks inside an integer (division, comparison, conversion to a float) does so only where
its range shows that nothing wrapped, and is an uninterpreted function of the machine value elsewhere.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial, reduce
from typing import Any

from hlo_verify.diagnostics import Unsupported
from hlo_verify.equality import opening
from hlo_verify.equality.where_numbers import where_number
from hlo_verify.index import expr
from hlo_verify.limits import allows, limit_of
from hlo_verify.ops import counted_bits, masked_elements
from hlo_verify.ops.division import quotient, rest
from hlo_verify.ops.integer_sizes import size_of
from hlo_verify.ops.values import (
    Context,
    Rule,
    UnsupportedError,
    Value,
    as_index,
    exact_integer,
    factor,
    integer_range,
    require_arithmetic,
    result,
)
from hlo_verify.program.element_types import is_float, is_integer
from hlo_verify.program.ir import NARROWED, Op
from hlo_verify.program.op_families import is_one_expression, plain_name
from hlo_verify.terms import algebra, guards, no_number, rotations
from hlo_verify.terms.at_bounds import chosen_at_bound
from hlo_verify.terms.comparing import chosen, chosen_count, chosen_of_integers, chosen_total
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.functions import (
    EXPONENTIAL,
    FINITE_PART,
    IS_FINITE,
    LOG,
    MAXIMUM,
    MINIMUM,
    SQRT,
    Function,
    typed,
)
from hlo_verify.terms.half_lines import soft_threshold
from hlo_verify.terms.in_line import in_line
from hlo_verify.terms.laws import apply, divide
from hlo_verify.terms.losses import is_one_product
from hlo_verify.terms.term import ONE, ZERO, Apply, Poly
from hlo_verify.terms.wrapping import wrapped


def product(a: Poly, b: Poly, dtype: str) -> Poly:
    """`a * b`, with the factors named where the expansion would be long.

    A complex number of which one part is none makes both parts of a product none, of a product with 2 and with 1 too:
    such a product is a function of its factors.
    """
    if dtype.startswith("complex") and (a.doubt | b.doubt):
        return apply(typed("multiply", (dtype, dtype), dtype), (a, b))
    part = (_positive_part(a, b) or soft_threshold(a, b)) if is_float(dtype) else None
    if part is not None:
        return part
    is_square = a is b and is_float(dtype) and not is_one_product(a)  # not negative, which is seen while it is one
    if len(a.items) * len(b.items) > limit_of("multiplied_terms") or is_square:
        a, b = factor(a, dtype), factor(b, dtype)
    return algebra.times(a, b)


def _positive_part(a: Poly, b: Poly) -> Poly | None:
    """The product of a number and of whether it is positive."""
    for sign, p in ((a, b), (b, a)):
        if sign.atom is not None and sign.atom.boolean and len(p.items) > 1:
            return chosen(sign, p, ZERO)
    return None


def disjunction(a: Poly, b: Poly) -> Poly:
    """`a or b` of truth values."""
    return algebra.add(a, product(algebra.logical_not(a), b, "i1"))


def _add(op: Op, args: list[Value], context: Context) -> list[Value]:
    require_arithmetic(op.types[0].dtype)
    a, b = (v.term for v in args)
    if op.types[0].dtype == "i1":
        return result(op, disjunction(a, b))
    from hlo_verify.ops.at_best import at_best  # reducers are made of these operations
    from hlo_verify.ops.ranks import as_rank

    total = rotations.joined(algebra.add(a, b))
    return result(op, wrapped(at_best(as_rank(total))) if is_integer(op.types[0].dtype) else total)


def _subtract(op: Op, args: list[Value], context: Context) -> list[Value]:
    _require_numbers(op)
    difference = algebra.subtract(args[0].term, args[1].term)
    from hlo_verify.ops.ranks import as_rank  # which orders elements, as comparators say that are made of these

    return result(op, wrapped(as_rank(difference)) if is_integer(op.types[0].dtype) else difference)


def _require_numbers(op: Op) -> None:
    dtype = op.types[0].dtype
    require_arithmetic(dtype)
    if dtype == "i1":
        raise UnsupportedError(f"{op.name} of truth values", Unsupported.ELEMENT_TYPE)


def _multiply(op: Op, args: list[Value], context: Context) -> list[Value]:
    require_arithmetic(op.types[0].dtype)
    return result(op, product(args[0].term, args[1].term, op.types[0].dtype))


def _negate(op: Op, args: list[Value], context: Context) -> list[Value]:
    _require_numbers(op)
    return result(op, no_number.once(algebra.scale(args[0].term, -1)))


def _divide(op: Op, args: list[Value], context: Context) -> list[Value]:
    _require_numbers(op)
    (a, b), dtype = args, op.types[0].dtype
    if dtype.startswith("complex") and (a.term.doubt | b.term.doubt):
        return uninterpreted(op, args)  # see `product`
    if not is_integer(dtype):
        light = b.term.constant is not None or b.term.weight <= 24
        return result(op, divide(a.term, b.term if light else factor(b.term, dtype)))
    divisor = as_index(b)
    return uninterpreted(op, args) if divisor.items or not divisor.const else result(op, quotient(a, divisor.const))


def _remainder(op: Op, args: list[Value], context: Context) -> list[Value]:
    _require_numbers(op)
    if is_integer(op.types[0].dtype):
        divisor = as_index(args[1])
        if not divisor.items and divisor.const:
            return result(op, rest(args[0], divisor.const))
    return uninterpreted(op, args)


def _absolute(op: Op, args: list[Value], context: Context) -> list[Value]:
    """Of an integer by its sign: of the least one, which has no opposite, that again."""
    if args[0].type.dtype.startswith("complex") and not args[0].term.doubt:
        from hlo_verify.ops.complex_numbers import modulus  # made of products

        return result(op, modulus(args[0].term))
    if not is_integer(op.types[0].dtype) or args[0].shape != op.types[0].shape:
        return _elementwise_function(op, args, context)
    return result(op, size_of(args[0]))


def _sign(op: Op, args: list[Value], context: Context) -> list[Value]:
    """-1, 0 or 1 of an integer."""
    if not is_integer(args[0].type.dtype) or args[0].shape != op.types[0].shape:
        return _elementwise_function(op, args, context)
    e = as_index(args[0])
    return result(op, algebra.subtract(guards.interval(e, 1, None), guards.interval(e, None, -1)))


DEPENDS_ON_FORMAT = frozenset({"chlo.next_after"})
"""Functions of real numbers that depend on the floating-point format that holds them."""


def uninterpreted(op: Op, args: list[Value], **attributes: Any) -> list[Value]:
    """The operation as a function of its name, attributes and machine types.

    Real functions have one for every format.
    """
    name, types = plain_name(op.name), tuple(v.type.dtype for v in args)
    require_arithmetic(op.types[0].dtype, *types)
    by_format = op.name in DEPENDS_ON_FORMAT
    taken = ("real",) if all(map(is_float, types)) and not by_format else types
    given = "real" if is_float(op.types[0].dtype) and not by_format else op.types[0].dtype
    return result(op, apply(typed(name, taken, given, attributes), tuple(v.term for v in args)))


def _exponential(op: Op, args: list[Value], context: Context) -> list[Value]:
    """Of what infinities mask this is 0 where they do: a factor only where it is a number's exponential."""
    if not is_float(op.types[0].dtype):
        from hlo_verify.ops.complex_numbers import exponential  # made of products

        return uninterpreted(op, args) if args[0].term.doubt else result(op, exponential(args[0].term))
    term = opening.with_infinities(args[0].term)
    if term is None:
        raise UnsupportedError("exponential of infinities in many terms", Unsupported.OPERATION)
    return result(op, apply(EXPONENTIAL, (term,)))


def _function(law: Function) -> Rule:
    """A real function with laws of its own; uninterpreted on other types."""

    def rule(op: Op, args: list[Value], context: Context) -> list[Value]:
        if not is_float(op.types[0].dtype):
            return uninterpreted(op, args)
        return result(op, apply(law, tuple(v.term for v in args)))

    return rule


def _extremum(law: Function) -> Rule:
    def rule(op: Op, args: list[Value], context: Context) -> list[Value]:
        dtype = op.types[0].dtype
        a, b = (v.term for v in args)
        if dtype == "i1":
            return result(op, product(a, b, dtype) if law == MINIMUM else disjunction(a, b))
        if is_float(dtype):
            return result(op, apply(law, (a, b)))
        lo, hi = integer_range(dtype)
        if lo < 0 and a is algebra.scale(b, -1):
            return result(op, algebra.scale(size_of(args[0]), 1 if law == MAXIMUM else -1))
        x, y = as_index(args[0]), as_index(args[1])
        bounds = [(known, e) for bound, e in ((args[0], y), (args[1], x)) if (known := _integers_by_place(bound))]
        if bounds:
            known, e = min(bounds, key=lambda each: len(each[0]))  # one constant, rather than a place of few
            clamped = [(on, (n, hi) if law == MAXIMUM else (lo, n)) for on, (n,) in known]
            parts = (algebra.multiply(on, algebra.of_index(expr.clamp(e, *ends))) for on, ends in clamped)
            return result(op, algebra.add(*parts))
        return result(op, apply(law, (exact_integer(args[0]), exact_integer(args[1]))))

    return rule


def _integers_by_place(*values: Value) -> list[tuple[Poly, tuple[int, ...]]]:
    """Integers that are the same but for where they are (a concatenation of constants), as conditions that exclude one
    another with the integers there; empty if they are not known."""
    found: list[tuple[Poly, tuple[int, ...]]] = [(ONE, ())]
    for value in values:
        e = as_index(value)
        where = [v for v in e.free if v.size <= limit_of("clamped_places")]
        numbers = [(ONE, e)]
        if len(where) == 1:
            numbers = [
                (guards.interval(expr.of_var(v), n, n), algebra.Substitution({v: expr.constant(n)}).index(e))
                for v in where
                for n in range(v.size)
            ]
        if any(e.items for _, e in numbers):
            return []
        found = [
            (both, (*known, e.const))
            for on, known in found
            for here, e in numbers
            if (both := algebra.multiply(on, here)) is not ZERO
        ]
    return found


def _clamp(op: Op, args: list[Value], context: Context) -> list[Value]:
    """`minimum(maximum(x, low), high)`: the upper bound wins where the bounds cross. A scalar is its own broadcast."""
    (low, x, high), dtype = args, op.types[0].dtype
    if dtype == "i1":
        return result(op, product(disjunction(x.term, low.term), high.term, dtype))
    if is_integer(dtype):
        e, bounds = as_index(x), _integers_by_place(low, high)
        if bounds:
            clamped = ((on, algebra.of_index(expr.clamp(e, min(lo, hi), hi))) for on, (lo, hi) in bounds)
            return result(op, algebra.add(*(algebra.multiply(on, p) for on, p in clamped)))
        low, x, high = (Value(v.type, exact_integer(v)) for v in (low, x, high))
    elif not is_float(dtype):
        raise UnsupportedError(f"clamp of {dtype}", Unsupported.ELEMENT_TYPE)
    return result(op, apply(MINIMUM, (apply(MAXIMUM, (x.term, low.term)), high.term)))


def _select(op: Op, args: list[Value], context: Context) -> list[Value]:
    condition, a, b = (v.term for v in args)
    return result(op, choice(condition, a, b, op.types[0].dtype, context))


def choice(condition: Poly, a: Poly, b: Poly, dtype: str, context: Context) -> Poly:
    """`condition ? a : b`, of elements of one type."""
    if is_integer(dtype):
        found = chosen_of_integers(condition, *(algebra.as_index(p, *integer_range(dtype)) for p in (a, b)))
        if found is not None:
            return found
    extremum = _chosen_number(condition, a, b) if is_float(dtype) else None
    if extremum is not None:
        return extremum
    c = condition if len(condition.items) <= 4 else factor(condition, "i1")
    most = limit_of("multiplied_terms")
    terms = [p if len(p.items) * max(1, len(c.items)) <= most else factor(p, dtype) for p in (a, b)]
    chosen_one = algebra.select(c, terms[0], terms[1])
    if context.compilers_device is not None:
        chosen_one = in_line(chosen_one, context.compilers_device)  # before it gets a name
    return wrapped(chosen_one) if is_integer(dtype) else chosen_one


def _chosen_number(condition: Poly, a: Poly, b: Poly) -> Poly | None:
    """A choice of real numbers as an extremum or another function; None where it is none."""
    for law in (chosen, chosen_at_bound, chosen_count, chosen_total, masked_elements.chosen_number, _finite_part):
        found = law(condition, a, b)
        if found is not None:
            return found
    return None


def _finite_part(condition: Poly, a: Poly, b: Poly) -> Poly | None:
    """`is_finite(a) ? a : 0`, which is a number whatever a is, where the program makes no infinities itself."""
    asked = condition.atom
    is_asked = isinstance(asked, Apply) and asked.function == IS_FINITE and asked.args[0] is a
    return apply(FINITE_PART, (a,)) if is_asked and b is ZERO and not a.doubt & INFINITE else None


def _power(op: Op, args: list[Value], context: Context) -> list[Value]:
    _require_numbers(op)
    base, exponent, dtype = args[0].term, args[1].term.constant, op.types[0].dtype
    short = is_float(dtype) or (len(base.items) <= 2 and exponent in range(5))
    if isinstance(exponent, int) and exponent >= 0 and short and allows("multiplied_powers", exponent):
        factors = [base] * exponent
        return result(op, reduce(lambda a, b: product(a, b, dtype), factors, ONE))
    return uninterpreted(op, args)


def _square(op: Op, args: list[Value], context: Context) -> list[Value]:
    return _multiply(op, [args[0], args[0]], context)


def _is_finite(op: Op, args: list[Value], context: Context) -> list[Value]:
    require_arithmetic(args[0].type.dtype)
    least = op.attributes.get(NARROWED, args[0].type.dtype)
    masked = where_number(args[0].term, partial(masked_elements.is_of_argument, dtype=least))
    return result(op, apply(IS_FINITE, (args[0].term,)) if masked is None else masked[0])


UNINTERPRETED = (
    "abs atan2 cbrt ceil cosine count_leading_zeros exponential_minus_one floor log_plus_one logistic "
    "popcnt round_nearest_afz round_nearest_even rsqrt sine tan tanh chlo.acos chlo.acosh chlo.asin chlo.asinh "
    "chlo.atan chlo.atanh chlo.bessel_i1e chlo.cosh chlo.digamma chlo.erf chlo.erf_inv chlo.erfc chlo.lgamma "
    "chlo.mulhi chlo.next_after chlo.polygamma chlo.sinh chlo.tan chlo.zeta mhlo.acos mhlo.acosh mhlo.asin mhlo.asinh "
    "mhlo.atanh mhlo.cosh mhlo.erf mhlo.sinh mhlo.tan"
).split()


def _elementwise_function(op: Op, args: list[Value], context: Context) -> list[Value]:
    if any(v.shape != op.types[0].shape for v in args):
        raise UnsupportedError(f"{op.name} that changes the shape")
    count = counted_bits.counted(op.name, args[0])
    return uninterpreted(op, args) if count is None else result(op, count)


def _map(op: Op, args: list[Value], context: Context) -> list[Value]:
    """The region on the elements at each position."""
    region = op.regions[0]
    if any(type_.shape for inner in region.ops for type_ in inner.types):
        raise UnsupportedError("map of a region that makes tensors", Unsupported.REGION)
    if not is_one_expression(region):
        raise UnsupportedError(
            "map of a region with loops, communication or values that are new each time", Unsupported.REGION
        )
    scalars = [Value(type_, v.term) for type_, v in zip(region.argument_types, args, strict=True)]
    inner = replace(context, unsupported={})
    (value,) = context.run(region, scalars, inner)
    for unknown in inner.unsupported.values():
        raise UnsupportedError(f"map of a region that is not understood ({unknown.message})", Unsupported.REGION)
    return result(op, value.term)


RULES: dict[str, Rule] = {
    "map": _map,
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "negate": _negate,
    "divide": _divide,
    "remainder": _remainder,
    "exponential": _exponential,
    "log": _function(LOG),
    "sqrt": _function(SQRT),
    "maximum": _extremum(MAXIMUM),
    "minimum": _extremum(MINIMUM),
    "clamp": _clamp,
    "select": _select,
    "power": _power,
    "sign": _sign,
    "chlo.square": _square,
    "is_finite": _is_finite,
    **dict.fromkeys(UNINTERPRETED, _elementwise_function),
    "abs": _absolute,
}
