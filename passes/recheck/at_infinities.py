"""Functions of extended reals: what they are at infinities, and that of no number they are none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, nan

from hlo_verify.passes.recheck.extended import Arithmetic, Extended, Value
from hlo_verify.passes.recheck.graph import Node
from hlo_verify.passes.recheck.plain import GREATER
from hlo_verify.terms.functions import (
    EQUAL,
    EXPONENTIAL,
    EXTREMA,
    FINITE_PART,
    INFINITE_EXPONENTIAL,
    INFINITY,
    INVERSE,
    IS_FINITE,
    IS_ZERO,
    LESS_OR_EQUAL,
    LOG,
    MULTIPLY,
    NAN,
    POSITIVE,
    SQRT,
    ZERO_TIMES,
    Function,
)
from hlo_verify.terms.term import Number

ENDS: dict[str, tuple[float, float]] = {
    str(EXPONENTIAL): (0, inf),
    str(LOG): (nan, inf),
    str(SQRT): (nan, inf),
    str(INVERSE): (0, 0),
    str(POSITIVE): (0, 1),
    str(IS_ZERO): (0, 0),
    "abs": (inf, inf),
    "asinh": (-inf, inf),
    "cbrt": (-inf, inf),
    "ceil": (-inf, inf),
    "cosh": (inf, inf),
    "cosine": (nan, nan),
    "erf": (-1, 1),
    "erfc": (2, 0),
    "exponential": (0, inf),
    "exponential_minus_one": (-1, inf),
    "floor": (-inf, inf),
    "log_plus_one": (nan, inf),
    "logistic": (0, 1),
    "round_nearest_afz": (-inf, inf),
    "round_nearest_even": (-inf, inf),
    "rsqrt": (nan, 0),
    "sign": (-1, 1),
    "sine": (nan, nan),
    "sinh": (-inf, inf),
    "tan": (nan, nan),
    "tanh": (-1, 1),
}
"""By name, what a function of one real number is at minus and at plus infinity: whole numbers, infinities or none."""


def call(arithmetic: Arithmetic, function: Function, args: Sequence[Value]) -> Value:
    """A function of values."""
    graph = arithmetic.graph
    if function == INFINITY:
        return arithmetic.infinity()
    if function == NAN:
        return arithmetic.nothing()
    if function in EXACT:
        return EXACT[function](arithmetic, args)
    for reducer, extremum in EXTREMA.items():
        if function == extremum:
            return arithmetic.extremum(reducer, args)
    if not any(isinstance(value, Extended) for value in args):
        return graph.call(function, [value for value in args if not isinstance(value, Extended)])
    if function.attributes or not (function.is_real or function.is_name):
        return _of_some(arithmetic, function, args)
    if function.name in ENDS:
        return _at_ends(arithmetic, function, args, ENDS[function.name])
    exponent = args[1] if function.name == "power" and function.is_real else None
    constant = None if exponent is None or isinstance(exponent, Extended) else graph.value(exponent)
    if constant == 0:
        return graph.one
    is_never_minus = arithmetic.extended(args[0]).minus == graph.zero
    if constant is not None and (constant.denominator == 1 or is_never_minus):
        return _at_ends(arithmetic, function, args, ends_of_power(constant))
    return _of_some(arithmetic, function, args)


def ends_of_power(exponent: Number) -> tuple[float, float]:
    """What a power, but that of 0, which is 1 of anything, is at minus and at plus infinity. Half a power of minus
    infinity is one thing as a root, and another as a power."""
    if exponent.denominator > 1:
        return nan, 0 if exponent < 0 else inf
    if exponent < 0:
        return 0, 0
    return (-inf if exponent.numerator % 2 else inf), inf


def _at_ends(arithmetic: Arithmetic, function: Function, args: Sequence[Value], ends: tuple[float, float]) -> Value:
    """A function of one value, and of numbers, that is known at infinities of that one."""
    graph, value = arithmetic.graph, arithmetic.extended(args[0])
    at_minus, at_plus = ends
    inside = graph.call(function, [value.number, *(n for n in args[1:] if not isinstance(n, Extended))])
    if function.properties.truth:  # of what is no number it is 0
        of_number = arithmetic.both(arithmetic.is_finite(value), inside)
        return arithmetic.either(of_number, *([value.plus] * int(at_plus)), *([value.minus] * int(at_minus)))
    number = graph.multiply([arithmetic.is_finite(value), inside])
    plus, minus, none = [graph.zero], [graph.zero], [value.none]
    for end, where in ((at_minus, value.minus), (at_plus, value.plus)):
        if end in (inf, -inf):
            (plus if end > 0 else minus).append(where)
        elif end != end:
            none.append(where)
        else:
            number = graph.add([(number, 1), (where, int(end))])
    return arithmetic.made(number, arithmetic.either(*plus), arithmetic.either(*minus), arithmetic.either(*none))


def _of_some(arithmetic: Arithmetic, function: Function, args: Sequence[Value]) -> Value:
    """A function of which nothing is known where an argument is no number, but that it is one."""
    graph = arithmetic.graph
    number = graph.call(function, [arithmetic.extended(value).number for value in args])
    finite = arithmetic.both(*map(arithmetic.is_finite, args))
    given = [arithmetic.grounded(value) for value in args]
    elsewhere = graph.row(f"{function} of extended", given)
    found = graph.choose(finite, number, elsewhere)
    if function.properties.truth or function.gives not in ("real", ""):
        return found
    ends = [graph.call(Function("positive", variant=f"{function} {end}"), given) for end in ("plus", "minus", "none")]
    plus, minus, none = (arithmetic.both(arithmetic.otherwise(finite), end) for end in ends)
    return arithmetic.made(found, plus, arithmetic.both(minus, arithmetic.otherwise(plus)), none)


def _equal(arithmetic: Arithmetic, args: Sequence[Value]) -> Value:
    a, b = args
    difference = arithmetic.graph.is_zero(_difference(arithmetic, a, b))
    if not isinstance(a, Extended) and not isinstance(b, Extended):
        return difference
    one, other = arithmetic.extended(a), arithmetic.extended(b)
    finite = arithmetic.both(arithmetic.is_finite(a), arithmetic.is_finite(b), difference)
    return arithmetic.either(finite, arithmetic.both(one.plus, other.plus), arithmetic.both(one.minus, other.minus))


def _greater(arithmetic: Arithmetic, args: Sequence[Value]) -> Value:
    a, b = args
    above = arithmetic.graph.positive(_difference(arithmetic, a, b))
    if not isinstance(a, Extended) and not isinstance(b, Extended):
        return above
    one, other = arithmetic.extended(a), arithmetic.extended(b)
    none = arithmetic.either(one.none, other.none)
    return arithmetic.either(
        arithmetic.both(arithmetic.is_finite(a), arithmetic.is_finite(b), above),
        arithmetic.both(one.plus, arithmetic.otherwise(arithmetic.either(other.plus, none))),
        arithmetic.both(other.minus, arithmetic.otherwise(arithmetic.either(one.minus, none))),
    )


def _less_or_equal(arithmetic: Arithmetic, args: Sequence[Value]) -> Value:
    a, b = args
    is_number = [arithmetic.otherwise(arithmetic.extended(value).none) for value in args]
    above = _greater(arithmetic, (a, b))
    assert not isinstance(above, Extended)
    return arithmetic.both(arithmetic.otherwise(above), *is_number)


def _difference(arithmetic: Arithmetic, a: Value, b: Value) -> Node:
    return arithmetic.graph.add([(arithmetic.extended(a).number, 1), (arithmetic.extended(b).number, -1)])


def _finite_part(arithmetic: Arithmetic, args: Sequence[Value]) -> Value:
    graph = arithmetic.graph
    return graph.choose(arithmetic.is_finite(args[0]), arithmetic.extended(args[0]).number, graph.zero)


EXACT: dict[Function, Callable[[Arithmetic, Sequence[Value]], Value]] = {
    MULTIPLY: lambda arithmetic, args: arithmetic.multiply(args),
    ZERO_TIMES: lambda arithmetic, args: arithmetic.zero_times(args[0]),
    IS_FINITE: lambda arithmetic, args: arithmetic.is_finite(args[0]),
    FINITE_PART: _finite_part,
    INFINITE_EXPONENTIAL: lambda arithmetic, args: call(arithmetic, EXPONENTIAL, args),
    EQUAL: _equal,
    GREATER: _greater,
    LESS_OR_EQUAL: _less_or_equal,
}
"""Functions that ask what their arguments are."""
