"""The functions that terms apply to terms: a name, and what tells a function from others of that name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Properties:
    """What is true of a function for all arguments for which it has a value."""

    commutative: bool = False
    """f(a, b) = f(b, a)."""
    even: bool = False
    """f(-x) = f(x), of real numbers."""
    odd: bool = False
    """f(-x) = -f(x), of real numbers; so f(0) = 0."""
    truth: bool = False
    """Its value is 0 or 1."""
    keeps_sign: bool = False
    """Of real numbers: positive of positive ones, 0 of 0, negative of negative ones."""
    positive: bool = False
    """Positive, of real numbers."""
    none_of_none: bool = False
    """One of one real number; of NaN it is NaN."""
    increasing: bool = False
    """Of two real numbers for which it has a value, greater of the greater one."""


PROPERTIES: Mapping[str, Properties] = {
    "abs": Properties(even=True, none_of_none=True),
    "acos": Properties(none_of_none=True),
    "acosh": Properties(none_of_none=True),
    "add_in_floats": Properties(commutative=True),
    "and": Properties(commutative=True),
    "asin": Properties(odd=True, keeps_sign=True, increasing=True, none_of_none=True),
    "asinh": Properties(odd=True, keeps_sign=True, increasing=True, none_of_none=True),
    "atan": Properties(odd=True, keeps_sign=True, increasing=True, none_of_none=True),
    "atanh": Properties(odd=True, keeps_sign=True, increasing=True, none_of_none=True),
    "bessel_i1e": Properties(odd=True, keeps_sign=True),
    "cbrt": Properties(odd=True, keeps_sign=True, increasing=True, none_of_none=True),
    "ceil": Properties(none_of_none=True),
    "cosh": Properties(even=True, positive=True, none_of_none=True),
    "cosine": Properties(even=True, none_of_none=True),
    "digamma": Properties(none_of_none=True),
    "equal": Properties(commutative=True, truth=True),
    "equal_in_floats": Properties(truth=True),
    "erf": Properties(odd=True, keeps_sign=True, increasing=True, none_of_none=True),
    "erf_inv": Properties(odd=True, keeps_sign=True, increasing=True, none_of_none=True),
    "erfc": Properties(positive=True, none_of_none=True),
    "exponential": Properties(positive=True, increasing=True, none_of_none=True),
    "exponential_minus_one": Properties(keeps_sign=True, increasing=True, none_of_none=True),
    "floor": Properties(none_of_none=True),
    "greater_in_floats": Properties(truth=True),
    "is_finite": Properties(truth=True),
    "less": Properties(truth=True),
    "less_or_equal": Properties(truth=True),
    "lgamma": Properties(none_of_none=True),
    "log": Properties(increasing=True, none_of_none=True),
    "log_plus_one": Properties(keeps_sign=True, increasing=True, none_of_none=True),
    "logistic": Properties(positive=True, increasing=True, none_of_none=True),
    "maximum": Properties(commutative=True),
    "minimum": Properties(commutative=True),
    "multiply": Properties(commutative=True),
    "multiply_in_floats": Properties(commutative=True),
    "or": Properties(commutative=True),
    "positive": Properties(truth=True),
    "round_nearest_afz": Properties(odd=True, none_of_none=True),
    "round_nearest_even": Properties(odd=True, none_of_none=True),
    "rsqrt": Properties(positive=True, none_of_none=True),
    "sign": Properties(odd=True, keeps_sign=True, none_of_none=True),
    "sine": Properties(odd=True, none_of_none=True),
    "sinh": Properties(odd=True, keeps_sign=True, increasing=True, none_of_none=True),
    "sqrt": Properties(increasing=True, none_of_none=True),
    "tan": Properties(odd=True, none_of_none=True),
    "tanh": Properties(odd=True, keeps_sign=True, increasing=True, none_of_none=True),
    "xor": Properties(commutative=True),
    "zero": Properties(truth=True),
}
"""By the name of the function, whatever its types are. `tests/terms/test_functions.py` asks numbers."""

_UNKNOWN = Properties()


@dataclass(frozen=True, slots=True)
class Function:
    """A function that is known by its name and types: of equal arguments it gives equal results.

    One of all real numbers is `tanh:real->real`, one of what a machine holds `popcnt:ui8->ui8`. What has laws of its
    own has no types (`exponential`), or only the type of what it gives (`wrap:ui8`).
    """

    name: str = field(compare=False)
    takes: tuple[str, ...] = field(default=(), compare=False)
    """The types of its arguments: `real` for all floating-point formats."""
    gives: str = field(default="", compare=False)
    """The type of its value; empty where the name says it."""
    attributes: tuple[tuple[str, int | str], ...] = field(default=(), compare=False)
    """What else it depends on, by name: `mantissa_bits`."""
    variant: str = field(default="", compare=False)
    """Which of several functions of that name, where no types tell them apart: `less:total`."""
    properties: Properties = field(init=False, compare=False)
    _text: str = field(init=False)
    """The whole of it, which alone is compared."""

    def __post_init__(self) -> None:
        assert ":" not in self.name, f"{self.name} is more than a name"
        text = self.name
        if self.takes:
            text += f":{','.join(self.takes)}->{self.gives}"
        elif self.variant or self.gives:
            text += f":{self.variant or self.gives}"
        object.__setattr__(self, "properties", PROPERTIES.get(self.name, _UNKNOWN))
        object.__setattr__(self, "_text", text + "".join(f",{k}={v}" for k, v in self.attributes))

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text

    @property
    def is_name(self) -> bool:
        """Whether it is known by its name alone, as those are that have laws."""
        return self._text == self.name

    @property
    def is_real(self) -> bool:
        """Whether it is a function of one real number, and gives one."""
        return self.takes == ("real",) and self.gives == "real"


def real(name: str, count: int = 1) -> Function:
    """A function of so many real numbers that gives one, of which more than the name is not known."""
    return Function(name, ("real",) * count, "real")


def typed(name: str, takes: tuple[str, ...], gives: str, attributes: Mapping[str, int | str] | None = None) -> Function:
    """A function of values of those types."""
    return Function(name, takes, gives, tuple(sorted((attributes or {}).items())))


INFINITY = Function("infinity")
NAN = Function("nan")
EXPONENTIAL = Function("exponential")
INFINITE_EXPONENTIAL = real("exponential")
"""Of what may be infinite: no factor, which its inverse would cancel."""
LOG = Function("log")
SQRT = Function("sqrt")
INVERSE = Function("inverse")
POWER = Function("power")
MULTIPLY = real("multiply", 2)
"""A product that is not multiplied out."""
ABS = real("abs")
ZERO_TIMES = Function("zero_times")
MAXIMUM = Function("maximum")
MINIMUM = Function("minimum")
POSITIVE = Function("positive")
IS_ZERO = Function("zero")
IS_FINITE = Function("is_finite")
FINITE_PART = Function("finite_part")
"""A number, or 0 for what is none, whatever that is."""
EQUAL = Function("equal", ("real", "real"), "i1")
LESS_OR_EQUAL = Function("less_or_equal", ("real", "real"), "i1")
EQUAL_IN_FLOATS = Function("equal_in_floats", ("real", "real"), "i1")
GREATER_IN_FLOATS = Function("greater_in_floats", ("real", "real"), "i1")
"""Where floats may say otherwise than real numbers (`roundings`): of them nothing is known."""
EQUAL_COMPLEX = Function("equal", variant="complex")
EQUAL_IN_TOTAL = Function("equal", variant="total")
LESS_IN_TOTAL = Function("less", variant="total")
"""In the total order of floating-point numbers."""
WINDOWS_LAND = Function("positive", variant="partial_windows_land")
"""Whether an implementation writes the part of an update that lies inside of the operand."""
COMPLEX = Function("complex")
ELEMENT = Function("element")
"""A function of which nothing is known but that it is one (`equality.multisets`)."""
EXTREMA: Mapping[str, Function] = {"max": MAXIMUM, "min": MINIMUM}
"""By the kinds of definitions that are of the greatest or the least of many."""


def wrap(dtype: str) -> Function:
    """The value that an integer type holds of an integer."""
    return Function("wrap", gives=dtype)


def truncate(dtype: str) -> Function:
    """The integer that a real number is converted to."""
    return Function("truncate", gives=dtype)
