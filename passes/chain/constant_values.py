"""Numbers that a module computes from constants alone: as their element types hold them, and without rounding."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from hlo_verify.limits import allows
from hlo_verify.program.element_types import DTYPES, element_of, finfo
from hlo_verify.program.ir import Function, Name, Op, operations
from hlo_verify.program.op_families import KEEPS_SPLATS

Key = tuple[str, bytes]
"""An element type and the bits of an element."""


@dataclass(frozen=True, slots=True)
class Computed:
    """A number as its element type holds it, as it is without rounding, and the operation that computes it."""

    dtype: str
    rounded: Any
    exact: Fraction
    name: str = "constant"
    operands: tuple[Computed, ...] = ()
    beside: int = 0
    """So many roundings more than those of its operations it may be off by, as what it is made of is rounded too."""

    @property
    def key(self) -> Key:
        return self.dtype, self.rounded.tobytes()

    @property
    def is_rounded(self) -> bool:
        return Fraction(float(self.rounded)) != self.exact

    @property
    def roundings(self) -> int:
        """How many operations, each with a rounding, made it."""
        return int(bool(self.operands)) + self.beside + sum(x.roundings for x in self.operands)

    @property
    def near_zero(self) -> float:
        """What `Part` says of a table; a number is as far off as it is large."""
        return 0.0

    @property
    def is_as_computed(self) -> bool:
        """Whether floating point gives just this number wherever it is computed. Sums, products, quotients and square
        roots are rounded correctly; of other functions a neighbour may come, and `as_written` takes one of each."""
        if self.name == "sqrt":
            again = function_of(self.name, self.operands[0])
            return again is not None and again.key == self.key and self.operands[0].is_as_computed
        return self.name not in UNARY and not self.beside and all(x.is_as_computed for x in self.operands)

    @property
    def literals(self) -> int:
        """How many numbers that are written down it is made of, each of which may be rounded."""
        return sum(x.literals for x in self.operands) if self.operands else 1

    @property
    def rounded_literals(self) -> int:
        """How many of these look like roundings: no whole numbers, and no fractions of a few bits, as 0.75 is;
        and one of what an irrational function is taken of."""
        if self.operands:
            return max(int(self.name in UNARY), sum(x.rounded_literals for x in self.operands))
        return int(self.exact.denominator > 1 and self.exact.numerator.bit_length() > _FEW_BITS)

    @property
    def has_whole_numbers(self) -> bool:
        """Whether one of these is a whole number that counts: then it may be made of them by chance."""
        if self.operands:
            return any(x.has_whole_numbers for x in self.operands)
        return self.exact.denominator == 1 and abs(self.exact) > 1

    @property
    def meaning(self) -> str:
        """The number and what it is computed from, in words."""
        return f"{float(self.rounded):.9g} is {self}"

    def __str__(self) -> str:
        if not self.operands:
            return f"{float(self.rounded):.9g}"
        if len(self.operands) == 1:
            return f"{self.name}({self.operands[0]})"
        left, right = (f"({x})" if len(x.operands) > 1 else f"{x}" for x in self.operands)
        return f"{left} {_SIGNS[self.name]} {right}"


BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
}
UNARY: Mapping[str, tuple[Callable[[Any], Any], Callable[[Decimal], Decimal]]] = {
    "sqrt": (np.sqrt, Decimal.sqrt),
    "rsqrt": (lambda x: 1 / np.sqrt(x), lambda x: 1 / x.sqrt()),
    "log": (np.log, Decimal.ln),
    "exponential": (np.exp, Decimal.exp),
}
"""Functions of positive numbers, and exponentials: as an element type has them, and in as many digits as asked for."""

_FEW_BITS = 12

DIGITS = 60
"""So many digits of an irrational number stand for all: what is compared with it is a rounding to 53 bits at most."""

MOST_ROUNDINGS = 6
"""No number that is written down is farther off what it stands for: three units in its last place."""

_SIGNS = {"multiply": "*", "divide": "/", "add": "+", "subtract": "-"}


def is_within(found: Computed, roundings: int) -> bool:
    """Whether a number is its exact value but for so many roundings, of which few count: one way or other to compute it
    by many operations leads to any number close by."""
    unit = Fraction(float(finfo(found.dtype).eps))
    error = abs(Fraction(float(found.rounded)) - found.exact)
    return error <= min(roundings, MOST_ROUNDINGS) * unit / 2 * abs(found.exact)


def as_written(found: Computed, number: Key) -> Computed | None:
    """A number that may be what an irrational function of numbers is, where those are rounded as well: what people
    write for `sqrt(2 / pi)` is not the root of what they write for `2 / pi`, but the next number. None where it is
    farther off."""
    if found.name not in UNARY or found.dtype != number[0]:
        return None
    near = replace(found, rounded=element_of(*number))
    return near if is_within(near, found.roundings + found.literals) else None


def as_computed_at_once(found: Computed, number: Key) -> Computed | None:
    """A number that may be what was computed of others in more digits, and rounded once."""
    if not found.operands or found.dtype != number[0]:
        return None
    value = element_of(*number)
    if not abs(float(value) - float(found.exact)) <= _CLOSE * abs(float(found.exact)):
        return None
    near = replace(found, rounded=value, beside=found.rounded_literals)
    return near if near.beside and is_within(near, near.roundings) else None


def as_people_write(numbers: list[Computed], number: Key) -> list[Computed]:
    """What a number may be that a few operations make of some numbers, where those are rounded as well: of the fewest,
    and of each value one.

    A person who writes `0.9**3`, or `1 - 0.1 * 0.01`, has it computed in double precision from decimals, and rounded
    once: that is not what single precision makes of the decimals as it holds them, but within their roundings of it.
    """
    value, dtype, given = _given(numbers, number)
    there = {x.exact for x in given}
    given += _opposites(given)
    made = (x for x in _few_operations(given, value, dtype) if x.exact not in there and not _cancels(x))
    values: dict[Fraction, Computed] = {}
    for x in sorted(_near(made, number), key=lambda x: (x.literals, x.roundings)):
        values.setdefault(x.exact, x)
    fewest = min((x.literals for x in values.values()), default=0)
    return [x for x in values.values() if x.literals == fewest] or multiples(numbers, number)


def multiples(numbers: list[Computed], number: Key) -> list[Computed]:
    """What a number may be of small multiples of others or their opposites: what they leave of 1, or these."""
    value, dtype, given = _given(numbers, number)
    return list(_near(_multiples([*given, *_opposites(given)], value, dtype), number))


def _given(numbers: list[Computed], number: Key) -> tuple[float, str, list[Computed]]:
    """What a number is, and the numbers of its type that it may be made of: none where it is none, or they are many."""
    value = float(element_of(*number))
    given = [x for x in numbers if x.dtype == number[0] and x.exact not in (0, 1)]
    is_tried = np.isfinite(value) and allows("joined_by_people", len(given))
    return value, number[0], given if is_tried else []


def _opposites(numbers: list[Computed]) -> list[Computed]:
    zeros = filter(None, (number_of(x.dtype, _scalar(x.dtype)(0)) for x in numbers[:1]))
    return [x for zero in zeros for y in numbers for x in applied("subtract", (zero, y))]


def _near(made: Iterable[Computed], number: Key) -> Iterator[Computed]:
    """Numbers of which another one may be a rounding, as that one."""
    value = element_of(*number)
    near = (replace(x, rounded=value, beside=x.rounded_literals) for x in made)
    return (x for x in near if x.beside and is_within(x, x.roundings))


def _multiples(given: list[Computed], value: float, dtype: str) -> Iterator[Computed]:
    """The rests of 1 that small multiples of numbers leave, and these, close to a value that looks like a rounding."""
    one, whole = (number_of(dtype, _scalar(dtype)(x)) for x in (1, value))
    if whole is None or not whole.rounded_literals:
        return
    multiples = [number_of(dtype, _scalar(dtype)(n)) for n in MULTIPLES]
    pairs = product((n for n in multiples if n is not None), given)
    several = [made for pair in pairs for made in applied("multiply", pair)]
    rests = (rest for made in several if one is not None for rest in applied("subtract", (one, made)))
    yield from (x for x in (*rests, *several) if abs(float(x.exact) - value) <= _CLOSE * abs(value))


def rest_of_one(whole: Key, part: Key, counts: Collection[int] = ()) -> Computed | None:
    """A number that may be 1 less another one, within the roundings of both, as 0.9 is of 0.1, or less some count of
    times that (0.9 is, of 16 classes with 0.00625 each); or the opposite. None where it is that exactly, or is not."""
    dtype = part[0]
    held = [number_of(dtype, element_of(*each)) for each in (whole, part) if whole[0] == dtype]
    a, b = held or (None, None)
    if a is None or b is None or not 0 < b.exact < Fraction(1, 2) < abs(a.exact) < 1:
        return None
    count = round((1 - abs(a.exact)) / b.exact)
    one, several = (number_of(dtype, _scalar(dtype)(x)) for x in (1, count))
    if one is None or several is None or several.exact != count or count not in {1, *counts}:
        return None
    taken = b if count == 1 else next(applied("multiply", (several, b)), b)
    rests = applied("subtract", (one, taken) if a.exact > 0 else (taken, one))
    return next((x for x in _near(rests, whole) if x.is_rounded), None)


MULTIPLES = (2, 3, 4, 5, 6, 8)
"""So many neighbours share a factor, which people add up: `0.6*u + 0.1*(...)` of four."""
_GREATEST = Fraction(float(np.finfo(np.float64).max))
"""The greatest number that is a float: no constant is greater."""

_CLOSE = 1e-5
"""What is farther off than this part of a number is not looked at in exact numbers."""


def _few_operations(given: list[Computed], value: float, dtype: str) -> Iterator[Computed]:
    """What powers, products, quotients, the rest of 1 and a sum with it make of numbers, close to a value."""

    def is_close(x: float) -> bool:
        return abs(x - value) <= _CLOSE * abs(value)

    one = number_of(dtype, _scalar(dtype)(1))
    assert one is not None
    yield from (x for x in given if x.operands and is_close(float(x.exact)))
    yield from (rest for x in given if is_close(1 - float(x.exact)) for rest in applied("subtract", (one, x)))
    powers = [power for x in given for power in _powers(x)]
    pairs = [(x, y, name) for x in given for y in given for name in ("multiply", "divide")]
    for x in powers:
        if is_close(float(x.exact)):
            yield x
        if is_close(1 - float(x.exact)):
            yield from applied("subtract", (one, x))
    for x, y, name in pairs:
        exact = BINARY[name](x.exact, y.exact)
        if abs(exact) > _GREATEST:  # of the greatest float and of 1/2
            continue
        both = float(exact)
        if is_close(both):
            yield from applied(name, (x, y))
        if is_close(1 - both):
            yield from (rest for made in applied(name, (x, y)) for rest in applied("subtract", (one, made)))
        for z, again in product(given, ("multiply", "divide")):
            if is_close(BINARY[again](both, float(z.exact))):
                yield from (last for made in applied(name, (x, y)) for last in applied(again, (made, z)))


def _cancels(x: Computed) -> bool:
    """Whether a number is divided by itself somewhere, which nobody writes: `c / c / c` is off by the rounding of c
    once, not three times."""
    above, below = _factors(x)
    return bool(above & below) or any(map(_cancels, x.operands))


def _factors(x: Computed) -> tuple[frozenset[Fraction], frozenset[Fraction]]:
    """The numbers that a product multiplies, and those that it divides by."""
    if x.name not in ("multiply", "divide"):
        return frozenset({abs(x.exact)}), frozenset()
    (above, below), (more, less) = map(_factors, x.operands)
    return (above | more, below | less) if x.name == "multiply" else (above | less, below | more)


def _powers(x: Computed) -> Iterator[Computed]:
    """Powers of a number, as they are multiplied out."""
    power = x
    while True:
        made = next(applied("multiply", (power, x)), None)
        if made is None:
            return
        yield (power := made)


def literal(op: Op) -> Computed | None:
    """The number that a constant holds everywhere; None for integers, infinities and arrays."""
    if op.name != "constant" or not op.types[0].dtype.startswith(("f", "bf")):
        return None
    array, type_ = op.attributes["value"], op.types[0]
    if not array.size or array.dtype != DTYPES[type_.dtype]:
        return None
    is_one = not any(array.strides) or array.size == 1 or (array == array.flat[0]).all()
    return number_of(type_.dtype, array.flat[0]) if is_one else None


def number_of(dtype: str, value: Any) -> Computed | None:
    return Computed(dtype, value, Fraction(float(value))) if np.isfinite(float(value)) else None


def _scalar(dtype: str) -> Any:
    return np.dtype(DTYPES[dtype]).type


def computed(function: Function) -> list[Computed]:
    """What a module computes from constants alone, the constants themselves too."""
    return _each_once(known_numbers(function).values())


def logarithms(function: Function) -> list[Computed]:
    """The logarithms of numbers of which a module takes unknown powers: `10000**x` is `exp(log(10000) * x)`."""
    known = known_numbers(function)
    bases = [known[op.operands[0]] for op in operations(function) if op.name == "power" and op.operands[0] in known]
    return _each_once(found for base in bases if (found := function_of("log", base)) is not None)


def known_numbers(function: Function) -> dict[Name, Computed]:
    """The values that are one number everywhere, computed from constants alone."""
    known: dict[Name, Computed] = {}
    for op in operations(function):
        found = _of(op, known)
        if found is not None:
            known[op.results[0]] = found
    return known


def _each_once(numbers: Iterable[Computed]) -> list[Computed]:
    return list({(x.key, x.exact): x for x in numbers}.values())


def joined(numbers: list[Computed]) -> Iterator[Computed]:
    """What comes of these by turning a division into a product, as the rest of a whole (`1 - 0.1`) or beside one
    (`x + 0.1*x`), or by joining two operations with constants."""
    for x in numbers:
        yield from (*inverses(x), *_of_one("subtract", x), *_of_one("add", x))
    if allows("joined_constants", len(numbers)):
        for name, (x, y) in product(BINARY, product(numbers, numbers)):
            yield from applied(name, (x, y)) if x.dtype == y.dtype else ()


def inverses(x: Computed) -> Iterator[Computed]:
    """What a division by a number is turned into a product with; none where it is 0."""
    return _of_one("divide", x)


def _of_one(name: str, x: Computed) -> Iterator[Computed]:
    one = number_of(x.dtype, _scalar(x.dtype)(1))
    yield from applied(name, (one, x)) if one is not None else ()


def _of(op: Op, known: Mapping[Name, Computed]) -> Computed | None:
    if not op.operands:
        return literal(op)
    given = tuple(known[v] for v in op.operands if v in known)
    if len(op.results) != 1 or len(given) < len(op.operands):
        return None
    is_same = op.name == "convert" and op.types[0].dtype == given[0].dtype
    if is_same or (op.name in KEEPS_SPLATS and len(given) == 1):
        return given[0]
    if op.name == "convert" and op.types[0].dtype in DTYPES and op.types[0].dtype.startswith(("f", "bf")):
        rounded = given[0].rounded.astype(DTYPES[op.types[0].dtype])
        return Computed(op.types[0].dtype, rounded, given[0].exact, "convert", given)
    if op.name in UNARY:
        return function_of(op.name, given[0])
    if op.name == "negate":
        return next(iter(_opposites([*given])), None)
    name, given = ("multiply", given * 2) if op.name == "chlo.square" else (op.name, given)
    return next(applied(name, given), None)


def function_of(name: str, operand: Computed) -> Computed | None:
    """A function of a positive number, or the exponential of any; None where its type does not hold that."""
    is_defined = operand.exact > 0 or (operand.exact < 0 and name == "exponential")
    if not is_defined or not allows("folded_roundings", operand.roundings + 1):
        return None
    compute, exactly = UNARY[name]
    with localcontext(prec=DIGITS), np.errstate(all="ignore"):
        rounded = _scalar(operand.dtype)(compute(operand.rounded))
        if not (finfo(operand.dtype).tiny if operand.exact < 0 else -np.inf) <= rounded < np.inf:
            return None
        exact = exactly(Decimal(operand.exact.numerator) / Decimal(operand.exact.denominator))
    return Computed(operand.dtype, rounded, Fraction(exact), name, (operand,))


def applied(name: str, operands: tuple[Computed, ...]) -> Iterator[Computed]:
    """An operation on two numbers, where it has a result."""
    compute = BINARY.get(name)
    if compute is None or len(operands) != 2 or (name == "divide" and not operands[1].exact):
        return
    if not allows("folded_roundings", sum(x.roundings for x in operands) + 1):
        return
    x, y = operands
    with np.errstate(all="ignore"):
        rounded = _scalar(x.dtype)(compute(x.rounded, y.rounded))
    if np.isfinite(float(rounded)):
        yield Computed(x.dtype, rounded, compute(x.exact, y.exact), name, operands)
