"""The laws of functions, one a line; `apply` builds a function of terms by them. What has no law is uninterpreted.

`patterns` says how they are written. A law with `by` is found and replaced by that function; where several laws have
the same one, it also asks for the condition, and notes which of them it used. tests/terms/test_law_table.py asks each
law, and each condition, of random numbers.
"""

from __future__ import annotations

from hlo_verify.limits import allows
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms import no_number, whole
from hlo_verify.terms.clipping_laws import (
    AT_ROOT,
    BEYOND_ROOT,
    LEAST_INVERSE,
    POSITIVE_ROOT,
    WITHIN_ROOT,
    ZERO_ROOT,
    by_squares,
    sign_of_root,
)
from hlo_verify.terms.compared_counts import asked_of_reals
from hlo_verify.terms.counts import asked_of_counts, truncated
from hlo_verify.terms.exponential_laws import (
    by_cases,
    infinity_is_not_zero,
    inverse_of_common,
    inverse_of_product,
    inverse_of_quotients,
    inverse_of_sums,
    is_factor,
    is_plain,
    known_by_name,
    may_be_none,
    may_be_subtracted,
    of_logarithms,
    of_minus_infinity,
    power_of_exponentials,
    product_of_exponentials,
    vanishes,
)
from hlo_verify.terms.extremum_laws import (
    CLAMPED,
    EXCEEDED,
    INFINITE,
    INTEGER,
    NESTED,
    NEUTRAL,
    NO_NUMBER,
    NUMBERS,
    OPPOSITE,
    REPEATED,
    extremum,
)
from hlo_verify.terms.functions import (
    EQUAL,
    EXPONENTIAL,
    FINITE_PART,
    INFINITE_EXPONENTIAL,
    INVERSE,
    IS_FINITE,
    IS_ZERO,
    LESS_OR_EQUAL,
    LOG,
    MAXIMUM,
    MINIMUM,
    MULTIPLY,
    POSITIVE,
    POWER,
    PROPERTIES,
    SQRT,
    ZERO_TIMES,
    Function,
    real,
    wrap,
)
from hlo_verify.terms.losses import zero_times
from hlo_verify.terms.machine import FITS, WRAPPED, machine_integer
from hlo_verify.terms.patterns import Arguments, Language, Law, Predicate
from hlo_verify.terms.products import add, distributes, multiply, subtract, times
from hlo_verify.terms.restriction import where
from hlo_verify.terms.root_laws import (
    LOG_OF_EXPONENTIAL,
    LOG_OF_INVERSE,
    LOG_OF_MULTIPLE,
    LOG_OF_PRODUCT,
    LOG_OF_SQUARE,
    ROOT_OF_MAXIMUM,
    ROOT_OF_MINIMUM,
    ROOT_OF_PRODUCT,
    ROOT_OF_SQUARE,
    is_of_roots,
    logarithm_of_number,
    logarithm_of_product,
    negative_power,
    power_by_inverse,
    power_of_literal,
    root_as_power,
    root_of_extremum,
    root_of_number,
    root_of_product,
    whole_power,
)
from hlo_verify.terms.rounding_laws import (
    OF_LESS_MAXIMUM,
    OF_LESS_MINIMUM,
    OF_MAXIMUM,
    OF_MINIMUM,
    ROUNDED,
    is_coarse,
    rounded_extremum,
    rounded_number,
)
from hlo_verify.terms.sign_laws import (
    ABSOLUTE_CHOICE,
    POSITIVE_CHOICE,
    POSITIVE_COMMON,
    POSITIVE_MAXIMUM,
    POSITIVE_MINIMUM,
    POSITIVE_QUOTIENTS,
    ZERO_CHOICE,
    ZERO_COMMON,
    ZERO_QUOTIENTS,
    absolute_of_choice,
    absolute_of_product,
    decided,
    is_decided,
    is_told,
    never_negative,
    of_truths,
    positive_of_absolute,
    positive_of_common,
    positive_of_extremum,
    positive_of_product,
    positive_of_quotients,
    told,
    zero_of_absolute,
    zero_of_product,
)
from hlo_verify.terms.steps import Piece, forms, pieces
from hlo_verify.terms.structure import REWRITINGS, in_words
from hlo_verify.terms.term import Apply, Poly, make_apply, of_atom
from hlo_verify.terms.used import used


def apply(function: Function, args: Arguments) -> Poly:
    """`function(args)`, simplified by its laws if it has any.

    A function of a step function is the step function of its values: `f([c]*a + [not c]*b)` is
    `[c]*f(a) + [not c]*f(b)`.
    """
    for n, arg in enumerate(args):
        split = pieces(arg) if len(args) < 3 or allows("step_forms", len(forms(*args))) else []
        if split:
            used("function of a choice")
            return add(*(multiply(piece.on, apply(function, _where(args, n, piece))) for piece in split))
    for n, arg in enumerate(args):
        cases = no_number.cases(arg)
        if cases:
            used("function of a choice")
            return add(*(multiply(on, apply(function, (*args[:n], p, *args[n + 1 :]))) for on, p in cases))
        if no_number.occurs_in(arg) and not no_number.is_nan(arg):
            return of_atom(make_apply(function, args))  # where it is NaN is not told
    if function.properties.commutative:  # its arguments come in one order: of age here, of structure in definitions
        given, args = args, tuple(sorted(args, key=lambda p: p.uid))
        if given != args:
            used("operands in any order")
    for rule in LAWS.get(function, ()):
        result = rule(args)
        if result is not None:
            return result
    if function in (POSITIVE, IS_ZERO):
        counted = asked_of_reals(function, args)
        counted = asked_of_counts(function, args) if counted is None else counted
        if counted is not None:
            return counted
    return truncated(function, args) or whole.truncated(function, args) or of_atom(make_apply(function, args))


def _where(args: Arguments, n: int, piece: Piece) -> Arguments:
    """Arguments where a piece of the n-th one is: the conditions that hold there are none of the others' either.

    No argument has guards on more forms than before, so that taking pieces of pieces ends.
    """
    there = [piece.term if k == n else where(p, piece.form, piece.lo, piece.hi) for k, p in enumerate(args)]
    return tuple(now if len(forms(now)) <= len(forms(p)) else p for now, p in zip(there, args, strict=True))


def _zero_times(function: Function, args: Arguments) -> Poly | None:
    atom = args[0].atom
    is_left = args[0].doubt and atom is not None and not (isinstance(atom, Apply) and atom.function == ZERO_TIMES)
    return None if is_left else zero_times(args[0])


REAL = "abs ceil cosine erf erfc exponential_minus_one floor log_plus_one logistic power rsqrt sine tan".split()
FUNCTIONS = {
    "exp": EXPONENTIAL,
    "exp_by_name": INFINITE_EXPONENTIAL,
    "multiply": MULTIPLY,
    "equal_by_name": EQUAL,
    "less_or_equal_by_name": LESS_OR_EQUAL,
    "power_by_name": POWER,
    **{name: real(name) for name in REAL},
}
"""What functions are called in terms, where it is not as in the table."""

CONDITIONS: dict[str, Predicate] = {
    "distributes": distributes,
    "is_factor": is_factor,
    "vanishes": vanishes,
    "is_plain": is_plain,
    "may_be_none": may_be_none,
    "never_negative": never_negative,
    "is_decided": is_decided,
    "is_told": is_told,
    "is_of_roots": is_of_roots,
    "is_coarse": is_coarse,
    "is_number": lambda p: not p.doubt,
    "are_numbers": lambda p, q: not (p.doubt or q.doubt),
    "may_be_subtracted": may_be_subtracted,
}

REAL_EVEN = tuple(real(name) for name, of in PROPERTIES.items() if of.even)
REAL_ODD = tuple(real(name) for name, of in PROPERTIES.items() if of.odd)
EITHER = (MAXIMUM, MINIMUM)
BY_NAME = {"log": LOG, "sqrt": SQRT}
OF_NONE = tuple(BY_NAME.get(name) or real(name) for name, of in PROPERTIES.items() if of.none_of_none)
OF_NONE += (EXPONENTIAL, INVERSE, ZERO_TIMES)
ASKED = (POSITIVE, IS_ZERO, IS_FINITE, FINITE_PART)
COMPARED = (EQUAL, LESS_OR_EQUAL)
ROUNDING = tuple(real(name) for name in ROUNDED if name != "ceil")  # which is written with floor
MACHINE = tuple(map(wrap, INTEGER_RANGES))

TABLE = (
    Law("function of no number", "f(nan)", "nan", functions=OF_NONE),
    Law("power of no number", "power(nan, k)", "nan", "k != 0"),
    Law("power by name of no number", "power_by_name(nan, k)", "nan", "k != 0"),
    Law("what is asked of no number", "f(nan)", "0", functions=ASKED),
    Law("no number compared", "f(nan, a)", "0", functions=COMPARED, by=no_number.compared),
    Law("equality known by name", "equal_by_name(a, b)", "zero(a + -b)", "may_be_subtracted(a, b)"),
    Law("order known by name", "less_or_equal_by_name(a, b)", "1 + -positive(a + -b)", "are_numbers(a, b)"),
    Law("exponential of 0", "exp(0)", "1"),
    Law("exponential of minus infinity", "exp(a - infinity)", "0*a", "vanishes(a - infinity)", by=of_minus_infinity),
    Law("exponential of a logarithm", "exp(a + log(b))", "exp(a) * b", "b > 0", by=of_logarithms),
    Law("exponential of a sum", "exp(a + k*b)", "exp(a) * exp(b)**k", "is_factor(a + k*b)", by=product_of_exponentials),
    Law("exponential of a choice", "exp(p*a + b)", "p*exp(a + b) + (1-p)*exp(b)", "may_be_none(p*a + b)", by=by_cases),
    Law("exponential known by name", "exp(a)", "exp_by_name(a)", "may_be_none(a)", by=known_by_name),
    Law("exponential no more known by name", "exp_by_name(a)", "exp(a)", "is_plain(a)"),
    Law("power no more known by name", "power_by_name(exp(a), k)", "exp(k*a)", by=power_of_exponentials),
    Law("inverse of a number", "inverse(k)", "1/k", "k != 0"),
    Law("inverse of a product", "inverse(k*a*exp(b))", "1/k * inverse(a) * exp(-b)", by=inverse_of_product),
    Law("inverse of a common factor", "inverse(a*exp(c) + b*exp(c))", "inverse(a + b) * exp(-c)", by=inverse_of_common),
    Law(
        "inverse of a sum of quotients",
        "inverse(a + b*inverse(c))",
        "c * inverse(a*c + b)",
        "c > 0",
        by=inverse_of_quotients,
    ),
    Law(
        "inverse of a product of sums",
        "inverse(a*b + a*c + k*b + k*c)",
        "inverse(a + k) * inverse(b + c)",
        by=inverse_of_sums,
    ),
    Law("inverse of a multiple", "inverse(k*a)", "1/k * inverse(a)"),
    Law("logarithm of 1", "log(1)", "0"),
    Law("logarithm of a number", "log(k)", "-log(1/k)", by=logarithm_of_number),
    Law(LOG_OF_EXPONENTIAL, "log(exp(a) * b)", "a + log(b)", by=logarithm_of_product),
    Law(LOG_OF_PRODUCT, "log(a * b)", "log(a) + log(b)", "a > 0", by=logarithm_of_product),
    Law(LOG_OF_MULTIPLE, "log(k * a)", "log(k) + log(a)", "k > 0", by=logarithm_of_product),
    Law(LOG_OF_SQUARE, "log(a * a)", "2 * log(abs(a))", by=logarithm_of_product),
    Law(LOG_OF_INVERSE, "log(inverse(a))", "-log(a)", "a > 0", by=logarithm_of_product),
    Law("square root of a number", "sqrt(k)", "k**(1/2)", by=root_of_number),
    Law(ROOT_OF_PRODUCT, "sqrt(k * a * b)", "sqrt(k) * sqrt(a) * sqrt(b)", "a > 0", by=root_of_product),
    Law(ROOT_OF_SQUARE, "sqrt(a * a)", "abs(a)", by=root_of_product),
    Law(ROOT_OF_MAXIMUM, "sqrt(maximum(a, b))", "maximum(sqrt(a), sqrt(b))", "a >= 0", by=root_of_extremum),
    Law(ROOT_OF_MINIMUM, "sqrt(minimum(a, b))", "minimum(sqrt(a), sqrt(b))", by=root_of_extremum),
    Law("logarithm of one more", "log_plus_one(a)", "log(1 + a)"),
    Law("exponential less one", "exponential_minus_one(a)", "exp(a) + -1"),
    Law("logistic function", "logistic(a)", "inverse(1 + exp(-a))"),
    Law("complementary error function", "erfc(a)", "1 + -erf(a)"),
    Law("inverse square root", "rsqrt(a)", "inverse(sqrt(a))"),
    Law("power by roots", "power(a, k)", "sqrt(a)**(2*k)", "is_of_roots(k)", by=root_as_power),
    Law("whole power", "power(a, n)", "a**n", "n >= 0", by=whole_power),
    Law("negative power", "power(a, n)", "inverse(a)**(-n)", "n < 0", by=negative_power),
    Law("power by an inverse", "power(a, k)", "inverse(power(a, -k))", "k < 0", by=power_by_inverse),
    Law("power of a number", "power(k, a)", "exp(log(k) * a)", "k > 0", by=power_of_literal),
    Law("a number is positive", "positive(k)", "k > 0"),
    Law("a multiple is positive", "positive(k*a)", "positive(a)", "k > 0"),
    Law("a number is zero", "zero(k)", "k == 0"),
    Law("a multiple is zero", "zero(k*a)", "zero(a)", "k != 0"),
    Law("absolute value of a number", "abs(k)", "abs(k)"),
    Law("absolute value of what is not negative", "abs(a)", "a", "never_negative(a)"),
    Law("absolute value of a product", "abs(k * a * b)", "abs(k) * abs(a) * abs(b)", by=absolute_of_product),
    Law(ABSOLUTE_CHOICE, "abs(p*a + -((1 + -p)*b))", "p*a + (1-p)*b", "a >= 0 and b >= 0", by=absolute_of_choice),
    Law("sign of what has one", "positive(a)", "1", "is_decided(a)", by=decided),
    Law("zero of what is one, or none", "zero(a)", "0", "is_told(a)", by=told),
    Law("an infinity is not zero", "zero(a - infinity)", "0", by=infinity_is_not_zero),
    Law("positive factor of what is positive", "positive(a * b)", "positive(b)", "a > 0", by=positive_of_product),
    Law("positive factor of what is zero", "zero(a * b)", "zero(b)", "a > 0", by=zero_of_product),
    Law(POSITIVE_COMMON, "positive(a*b + a*c)", "positive(b + c)", "a > 0", by=positive_of_common),
    Law(ZERO_COMMON, "zero(a*b + a*c)", "zero(b + c)", "a > 0", by=positive_of_common),
    Law(POSITIVE_CHOICE, "positive(k*p + m)", "p*positive(k + m) + (1-p)*positive(m)", by=of_truths),
    Law(ZERO_CHOICE, "zero(k*p + m)", "p*zero(k + m) + (1-p)*zero(m)", by=of_truths),
    Law(POSITIVE_QUOTIENTS, "positive(a + b*inverse(c))", "positive(a*c + b)", "c > 0", by=positive_of_quotients),
    Law(ZERO_QUOTIENTS, "zero(a + b*inverse(c))", "zero(a*c + b)", "c > 0", by=positive_of_quotients),
    Law(
        POSITIVE_MAXIMUM,
        "positive(maximum(a, b))",
        "1 + -((1 + -positive(a)) * (1 + -positive(b)))",
        by=positive_of_extremum,
    ),
    Law(POSITIVE_MINIMUM, "positive(minimum(a, b))", "positive(a) * positive(b)", by=positive_of_extremum),
    Law(POSITIVE_ROOT, "positive(sqrt(a))", "positive(a)", by=sign_of_root),
    Law(ZERO_ROOT, "zero(sqrt(a))", "zero(a)", by=sign_of_root),
    Law(BEYOND_ROOT, "positive(sqrt(a) - k)", "positive(a - k*k)", "a >= 0 and k > 0", by=by_squares),
    Law(WITHIN_ROOT, "positive(k - sqrt(a))", "positive(k*k - a)", "a >= 0 and k > 0", by=by_squares),
    Law(AT_ROOT, "zero(sqrt(a) - k)", "zero(a - k*k)", "a >= 0 and k > 0", by=by_squares),
    Law("an absolute value is positive", "positive(abs(a))", "1 + -zero(a)", by=positive_of_absolute),
    Law("an absolute value is zero", "zero(abs(a))", "zero(a)", by=zero_of_absolute),
    Law("tangent", "tan(a)", "sine(a) * inverse(cosine(a))"),
    Law("even function", "f(-a)", "f(a)", functions=REAL_EVEN),
    Law("odd function of 0", "f(0)", "0", functions=REAL_ODD),
    Law("odd function", "f(-a)", "-f(a)", functions=REAL_ODD),
    Law("rounding up", "ceil(a)", "-floor(-a)"),
    Law("rounding of a number", "f(k)", "f(k)", "is_coarse(k)", functions=ROUNDING, by=rounded_number),
    Law(
        OF_MAXIMUM,
        "f(maximum(a, b))",
        "maximum(f(a), f(b))",
        functions=ROUNDING,
        by=rounded_extremum,
    ),
    Law(
        OF_MINIMUM,
        "f(minimum(a, b))",
        "minimum(f(a), f(b))",
        functions=ROUNDING,
        by=rounded_extremum,
    ),
    Law(
        OF_LESS_MAXIMUM,
        "f(-maximum(a, b))",
        "minimum(f(-a), f(-b))",
        functions=(real("floor"),),
        by=rounded_extremum,
    ),
    Law(
        OF_LESS_MINIMUM,
        "f(-minimum(a, b))",
        "maximum(f(-a), f(-b))",
        functions=(real("floor"),),
        by=rounded_extremum,
    ),
    Law("even power", "power(-a, n)", "power(a, n)", "n % 2 == 0"),
    Law("odd power", "power(-a, n)", "-power(a, n)", "n % 2 == 1"),
    Law("multiplication known by name", "multiply(a, b)", "a * b", "distributes(a, b)"),
    Law("finite part of a number", "finite_part(a)", "a", "is_number(a)"),
    Law("0 times a number", "zero_times(a)", "0*a", by=_zero_times),
    Law(NO_NUMBER, "f(nan, a)", "nan", functions=EITHER, by=extremum),
    Law(NESTED, "f(a, f(b, c))", "f(a, b, c)", functions=EITHER, by=extremum),
    Law(REPEATED, "f(a, a)", "a", functions=EITHER, by=extremum),
    Law(NUMBERS, "f(k, m, a)", "f(f(k, m), a)", functions=EITHER, by=extremum),
    Law(
        INTEGER,
        "f(n, m)",
        "clamp(n, m)",
        "is_integer(n) and is_constant(m)",
        functions=EITHER,
        by=extremum,
    ),
    Law(EXCEEDED, "f(n, m)", "n", "is_beyond(n, m)", functions=EITHER, by=extremum),
    Law(INFINITE, "f(a, best(f))", "best(f) + 0*a", "is_finite(a)", functions=EITHER, by=extremum),
    Law(NEUTRAL, "f(a, -best(f))", "a", functions=EITHER, by=extremum),
    Law(CLAMPED, "maximum(k, minimum(m, a))", "minimum(m, maximum(k, a))", "k <= m", by=extremum),
    Law(LEAST_INVERSE, "minimum(k, inverse(a))", "inverse(maximum(inverse(k), a))", "a >= 0 and k > 0", by=extremum),
    Law(OPPOSITE, "f(a, -a)", "f(1, -1) * abs(a)", functions=EITHER, by=extremum),
    Law(WRAPPED, "f(k)", "k % size(f)", functions=MACHINE, by=machine_integer),
    Law(FITS, "f(n)", "n", "lies_in(n, f)", functions=MACHINE, by=machine_integer),
)

LAWS = Language(FUNCTIONS, CONDITIONS, apply).rules(TABLE)


SAID = {law.name: in_words(law.left, law.right, law.when) for law in (*TABLE, *REWRITINGS)}
"""What each law says, by its name."""


def divide(a: Poly, b: Poly) -> Poly:
    """`a / b`."""
    return times(a, apply(INVERSE, (b,)))


def greater(a: Poly, b: Poly) -> Poly:
    """`[a > b]` over the reals."""
    return apply(POSITIVE, (subtract(a, b),))
