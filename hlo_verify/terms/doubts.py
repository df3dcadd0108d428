"""What may keep a term from being a number.

A value is *undefined* where it is, or is made of, a function of something outside of its domain: `log(x)` for an x that
is not positive, `x/y` where y is 0. What nothing is known of (padding, results of operations that are not understood)
may be undefined too. A value is *infinite* where an infinity or NaN takes part that the program writes itself, or that
it makes of constants and places (`1/0`, `1/iota`): these are values to compute with (`finite` says where they do not
reach).

Arguments, integers and truth values are neither.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from hlo_verify.index.expr import Index, Opaque
from hlo_verify.memory import once_a_session
from hlo_verify.program.ir import AS_FLOATS, FINITE
from hlo_verify.terms import signs, values
from hlo_verify.terms.functions import FINITE_PART, Function
from hlo_verify.terms.signs import NEGATIVE, ZERO

if TYPE_CHECKING:
    from hlo_verify.terms.term import Apply, Poly, Read, Tensor

UNDEFINED = 1
INFINITE = 2

TOTAL = frozenset(
    """
    abs asinh atan atan2 bessel_i1e cbrt ceil ceil_in_floats complex cosh cosine element erf erfc exponential
    exponential_minus_one floor floor_in_floats imag logistic maximum minimum multiply real reduce_precision
    round_nearest_afz round_nearest_afz_in_floats round_nearest_even round_nearest_even_in_floats sign sign_in_floats
    sine sinh tanh zero_times
    """.split()
)
"""Functions of real numbers that have a value for all of them, but for `reduce_precision` to a narrower exponent."""

ENTIRE = frozenset(
    """
    abs complex cosh cosine exponential exponential_minus_one imag multiply real sign sine sinh sqrt zero_times
    """.split()
)
"""Those of complex numbers."""

INTEGRAL = re.compile(r"u?i\d+")
"""The types of integers and of truth values."""

NUMBER = "number"
"""The kind of a tensor of which nothing is known but that it holds finite numbers."""

FINITE_IN_FLOATS = "finite_in_floats"
"""The kind of what floats give of many numbers (`ops.in_floats`), where all of it is known to be finite."""

WHOLES = frozenset(
    {"term", "sum", "max", "min", "product", "sort", "top_k", "fft", "argmax", "argmin", FINITE_IN_FLOATS}
)
"""Definitions that are numbers if what they are of are."""


def of_tensor(source: Tensor) -> int:
    """What may keep an element of a tensor from being a number."""
    if source.doubt is None:
        source.doubt = _found(source)
    return source.doubt


def _found(source: Tensor) -> int:
    if source.kind in ("argument", NUMBER) or INTEGRAL.fullmatch(source.dtype):
        return 0
    if source.kind == "constant":
        is_known = source.values is None or source.values.dtype.kind != "c" or np.isfinite(source.values).all()
        return 0 if is_known else UNDEFINED | INFINITE
    if source.kind not in WHOLES:
        return UNDEFINED
    doubt = 0
    for body in source.bodies:
        doubt |= body.doubt
    return doubt


def of_function(function: Function, args: tuple[Poly, ...]) -> int:
    """What may keep a function of terms from being a number."""
    inherited = 0
    for arg in args:
        inherited |= arg.doubt
    domain = _domain(function)
    if domain is _integral:
        return 0
    if domain is _everywhere or domain(args, signs.of):
        return inherited
    if not all(map(is_of_constants, args)):
        from hlo_verify.terms.certain_poles import is_outside_somewhere  # made of terms

        return inherited | UNDEFINED | (INFINITE if is_outside_somewhere(function, args) else 0)
    return inherited if not inherited and has_value_of_numbers(function, args) else inherited | INFINITE


def has_value_of_numbers(function: Function, args: tuple[Poly, ...]) -> bool:
    """Whether balls of terms that are made of numbers alone show that a function has a value for them."""
    return _domain(function)(args, values.signs_of_numbers)


@once_a_session
def is_of_constants(p: Poly) -> bool:
    """Whether no argument takes part in a term, but places and constants alone: what comes of it is the program's."""
    from hlo_verify.terms.term import Apply, Read, indices

    for atom in (atom for mono, _ in p.items for atom, _ in mono):
        parts = atom.args if isinstance(atom, Apply) else atom.tensor.bodies if isinstance(atom, Read) else ()
        if isinstance(atom, Read) and not parts and atom.tensor.kind != "constant":
            return False
        if not all(map(is_of_constants, parts)) or not all(map(_is_of_places, indices(atom))):
            return False
    return True


def _is_of_places(e: Index) -> bool:
    from hlo_verify.terms.term import value_of

    opaque = [atom for atom, _ in e.items if isinstance(atom, Opaque)]
    known = all(is_of_constants(value_of(atom)) for atom in opaque if atom.term is not None)
    return known and all(_is_of_places(inner) for atom in opaque for inner in atom.exprs)


def of_read(read: Read) -> int:
    """The doubts of an element, of which its tensor has some: that it is none of the numbers for any argument is seen
    only where it is."""
    from hlo_verify.terms.certain_poles import has_some  # made of terms

    if read.doubt == UNDEFINED and read.tensor.bodies and has_some(read):
        read.doubt |= INFINITE
    return reaching(read) if read.doubt & INFINITE else read.doubt


def reaching(atom: Apply | Read) -> int:
    """The doubts of an atom that infinities are a part of, less that it is infinite where none reaches it."""
    from hlo_verify.terms.finite import as_shown  # which looks at atoms

    return atom.doubt & ~INFINITE if as_shown().is_number(atom) else atom.doubt


@once_a_session
def is_defined(p: Poly) -> bool:
    """Whether all that a term computes is defined, and all that it asks about, whichever conditions hold: `[1/x > 2]`
    has no doubt itself."""
    from hlo_verify.terms.places import values_in_places  # made of terms
    from hlo_verify.terms.term import Read, atoms

    for atom in atoms(p):
        bodies = atom.tensor.bodies if isinstance(atom, Read) else ()
        if atom.doubt & UNDEFINED or not all(map(is_defined, (*bodies, *values_in_places(atom)))):
            return False
    return True


@once_a_session
def is_defined_there(p: Poly) -> bool:
    """The same at the places where definitions are read: what these divide by may be 0 at others, where no element
    is."""
    from hlo_verify.terms.definitions import unfold  # made of terms
    from hlo_verify.terms.places import values_in_places
    from hlo_verify.terms.term import Read, atoms, of_atom

    for atom in atoms(p):
        if is_defined(of_atom(atom)):
            continue
        if not isinstance(atom, Read) or not atom.tensor.bodies or atom.tensor.kind not in WHOLES:
            return False
        if not all(map(is_defined_there, (*unfold(atom)[1], *values_in_places(atom)))):
            return False
    return True


Signs = Callable[["Poly"], int]
"""Which signs a term may have: by its form, or by the ball of a term of numbers alone."""

Domain = Callable[[tuple["Poly", ...], Signs], bool]
"""Whether a function has a value for all numbers that some terms may be, by the signs that these may have."""


@lru_cache(1 << 12)
def _domain(function: Function) -> Domain:
    name = function.name
    if function.properties.truth or function == FINITE_PART or INTEGRAL.fullmatch(function.gives):
        return _integral
    if (AS_FLOATS, FINITE) in function.attributes:
        return _integral
    if any(dtype.startswith("complex") for dtype in (*function.takes, function.gives)):
        return _everywhere if name in ENTIRE else _nowhere
    if name == "bitcast_convert":
        return lambda args, _: _is_number_of_bits(function, args)
    if name in TOTAL and ("narrows", 1) not in function.attributes:
        return _everywhere
    return DOMAINS.get(name, _nowhere)


def _is_number_of_bits(function: Function, args: tuple[Poly, ...]) -> bool:
    from hlo_verify.terms import float_bits  # which asks for bounds of terms

    return float_bits.is_number(function, args)


def is_partial(function: Function) -> bool:
    """Whether a function may be undefined for numbers."""
    domain = _domain(function)
    return domain is not _everywhere and domain is not _integral


def is_defined_of_positive(atom: Apply) -> bool:
    """Whether a function of numbers has a value where these are positive."""
    return _domain(atom.function)(atom.args, lambda _: signs.POSITIVE)


def _integral(args: tuple[Poly, ...], signs_of: Signs) -> bool:
    return True


def _everywhere(args: tuple[Poly, ...], signs_of: Signs) -> bool:
    return True


def _nowhere(args: tuple[Poly, ...], signs_of: Signs) -> bool:
    return False


def _positive(args: tuple[Poly, ...], signs_of: Signs) -> bool:
    return not signs_of(args[-1]) & (NEGATIVE | ZERO)


def _not_negative(args: tuple[Poly, ...], signs_of: Signs) -> bool:
    return not signs_of(args[0]) & NEGATIVE


def _not_zero(args: tuple[Poly, ...], signs_of: Signs) -> bool:
    return not signs_of(args[-1]) & ZERO


def _power(args: tuple[Poly, ...], signs_of: Signs) -> bool:
    exponent = args[1].constant
    return (isinstance(exponent, int) and exponent >= 0) or not signs_of(args[0]) & (NEGATIVE | ZERO)


DOMAINS: dict[str, Domain] = {
    "inverse": _not_zero,
    "divide": _not_zero,
    "remainder": _not_zero,
    "log": _positive,
    "log_plus_one": _not_negative,
    "rsqrt": _positive,
    "sqrt": _not_negative,
    "lgamma": _positive,
    "digamma": _positive,
    "power": _power,
}
"""Of functions whose arguments' signs show that they have a value; all other functions may have none."""
