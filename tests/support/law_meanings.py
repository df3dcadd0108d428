"""What laws say, in numbers: their texts evaluated by Z3 and by balls, and terms by balls, without the prover's rules.

A text is one side of a law of `terms.laws.TABLE`. Letters stand for numbers that are given. `Reals` has them as unknown
real numbers of Z3, each with whether it is defined: what divides by 0 is not. `Balls` has them as enclosures, with
infinities and NaN, by the functions of `evaluate`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import z3
from flint import arb

from hlo_verify.evaluate import enclosures
from hlo_verify.evaluate.balls import INFINITY, MINUS_INFINITY, NAN, UNDEFINED, ZERO, Special
from hlo_verify.index.expr import Digit, Index, Opaque, Var
from hlo_verify.terms.term import Atom, Guard, Ix, Poly, Read, Tensor
from tests.support.functions import bounds, wrap


def evaluated(text: str, letters: Mapping[str, Any], domain: Any, function: str) -> Any:
    """The value of one side of a law."""
    return _Text(letters, domain, function).value(ast.parse(text, mode="eval").body)


@dataclass(frozen=True)
class _Text:
    letters: Mapping[str, Any]
    domain: Any
    function: str

    def value(self, node: ast.expr) -> Any:
        domain = self.domain
        if isinstance(node, ast.Constant):
            return domain.number(node.value)
        if isinstance(node, ast.Name):
            return domain.call(node.id, []) if node.id in ("infinity", "nan") else self.letters[node.id]
        if isinstance(node, ast.UnaryOp):
            return domain.call("negate", [self.value(node.operand)])
        if isinstance(node, ast.Compare):
            sides = [self.value(node.left), self.value(node.comparators[0])]
            return domain.call(type(node.ops[0]).__name__, sides)
        if isinstance(node, ast.BinOp):
            parts = [self.value(node.left), self.value(node.right)]
            is_selection = isinstance(node.op, ast.Mult) and _letters(node.left) == {"p"}
            return domain.call("Select" if is_selection else type(node.op).__name__, parts)
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name), ast.dump(node)
        name = node.func.id
        if name in ("best", "size"):
            return domain.call(name, [self.function])
        arguments = [self.value(argument) for argument in node.args]
        return domain.call(self.function if name == "f" else name, arguments, self.function)


def _letters(node: ast.expr) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


class Reals:
    """Pairs of a real number of Z3 and whether it is defined."""

    def number(self, value: int) -> Any:
        return z3.RealVal(value), z3.BoolVal(True)

    def call(self, name: str, args: list[Any], function: str = "") -> Any:
        if name.startswith("power"):
            (base, is_base), n = args
            power = z3.Product([base] * abs(n)) if n else z3.RealVal(1)
            return (power, is_base) if n >= 0 else (1 / power, z3.And(is_base, base != 0))
        values = [value for value, _ in args]
        defined = z3.And(*(held for _, held in args))
        if name in ("inverse", "Div"):
            defined = z3.And(defined, values[-1] != 0)
        return _REALS[name.partition(":")[0]](*values), defined


def _fold(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def folded(first: Any, *others: Any) -> Any:
        for other in others:
            first = function(first, other)
        return first

    return folded


def _truth(condition: Any) -> Any:
    return z3.If(condition, z3.RealVal(1), z3.RealVal(0))


_REALS: dict[str, Callable[..., Any]] = {
    "negate": lambda x: -x,
    "Add": lambda x, y: x + y,
    "Sub": lambda x, y: x - y,
    "Mult": lambda x, y: x * y,
    "Div": lambda x, y: x / y,
    "inverse": lambda x: 1 / x,
    "abs": lambda x: z3.If(x < 0, -x, x),
    "positive": lambda x: _truth(x > 0),
    "zero": lambda x: _truth(x == 0),
    "Gt": lambda x, y: _truth(x > y),
    "Eq": lambda x, y: _truth(x == y),
    "NotEq": lambda x, y: _truth(x != y),
    "maximum": _fold(lambda x, y: z3.If(x > y, x, y)),
    "minimum": _fold(lambda x, y: z3.If(x < y, x, y)),
}


class Balls:
    """Enclosures of numbers, infinities and `NAN`, by the evaluator that confirms refutations."""

    def number(self, value: Any) -> Any:
        return ball(value)

    def call(self, name: str, args: list[Any], function: str = "") -> Any:
        if name in _BALLS:
            return _BALLS[name](*args)
        plain = name.partition(":")[0]
        if plain == "wrap":
            return ball(wrap(name.partition(":")[2], whole(args[0])))
        return _OWN[plain](*args) if plain in _OWN else _applied(plain, *args)


def ball(value: Any) -> Any:
    """A number as a ball; one already is."""
    if isinstance(value, int | Fraction):
        return arb(value.numerator) / arb(value.denominator)
    return value


def _applied(name: str, *args: Any) -> Any:
    arrays = [np.array([x], object) for x in args]
    return enclosures.REAL[name](*arrays)[0]


def _compared(direction: str) -> Callable[[Any, Any], Any]:
    compare = enclosures.compared(direction, False)

    def compared(x: Any, y: Any) -> Any:
        found = compare(x, y)
        return found if found is UNDEFINED else ball(int(found))

    return compared


def _select(condition: Any, x: Any) -> Any:
    """What a condition selects: 0 where it does not hold, whatever it would be."""
    return ZERO if condition.is_zero() else _applied("multiply", condition, x)


def _zero_times(x: Any) -> Any:
    return ZERO if x.is_finite() else NAN


def _odd_bessel(x: Any) -> Any:
    return x.bessel_i(1) * (-abs(x)).exp() if x.is_finite() else NAN


def _raised(x: Any, n: Any) -> Any:
    return _applied("power", x, ball(n))


_BALLS: dict[str, Callable[..., Any]] = {
    "infinity": lambda: INFINITY,
    "nan": lambda: NAN,
    "best": lambda function: INFINITY if function == "maximum" else MINUS_INFINITY,
    "negate": lambda x: _applied("negate", x),
    "Add": lambda x, y: _applied("add", x, y),
    "Sub": lambda x, y: _applied("subtract", x, y),
    "Mult": lambda x, y: _applied("multiply", x, y),
    "Div": lambda x, y: _applied("divide", x, y),
    "Pow": _raised,
    "Select": _select,
    "Gt": _compared("GT"),
    "Eq": _compared("EQ"),
    "positive": lambda x: _compared("GT")(x, ZERO),
    "zero": lambda x: _compared("EQ")(x, ZERO),
    "equal_by_name": _compared("EQ"),
    "less_or_equal_by_name": _compared("LE"),
    "zero_times": _zero_times,
    "finite_part": lambda x: x if x.is_finite() else ZERO,
    "inverse": lambda x: _applied("divide", ball(1), x),
    "exp": lambda x: _applied("exponential", x),
    "exp_by_name": lambda x: _applied("exponential", x),
    "power_by_name": lambda x, y: _applied("power", x, y),
    "maximum": _fold(lambda x, y: _applied("maximum", x, y)),
    "minimum": _fold(lambda x, y: _applied("minimum", x, y)),
}

_OWN: dict[str, Callable[..., Any]] = {
    "bessel_i1e": _odd_bessel,
    "equal": _compared("EQ"),
    "less_or_equal": _compared("LE"),
    "is_finite": lambda x: ball(int(x.is_finite())),
}


def agree(x: Any, y: Any) -> bool:
    """Whether two values may be equal: both are no number, or the same infinity, or balls that overlap."""
    if x is UNDEFINED or y is UNDEFINED:
        return True
    nowhere = [isinstance(value, Special) or not (value.is_finite() or value.is_exact()) for value in (x, y)]
    if any(nowhere):
        return all(nowhere)
    return bool(x.overlaps(y)) if x.is_finite() and y.is_finite() else bool(x == y)


@dataclass(frozen=True)
class Terms:
    """Terms by balls: the elements that tensors of no dimension have, and the values of variables."""

    elements: Mapping[Tensor, Any]
    variables: Mapping[Var, int]

    def poly(self, p: Poly) -> Any:
        total = ball(0)
        for mono, c in p.items:
            product = ball(c)
            for atom, n in sorted(mono, key=lambda item: not item[0].boolean):
                if atom.boolean and self.atom(atom).is_zero():
                    product = ZERO
                    break
                factor = self.atom(atom)
                product = _applied("multiply", product, factor if n == 1 else _raised(factor, n))
            total = _applied("add", total, product)
        return total

    def atom(self, atom: Atom) -> Any:
        if isinstance(atom, Read):
            return ball(self.elements[atom.tensor])
        if isinstance(atom, Ix):
            return ball(self.index(atom.index))
        if isinstance(atom, Guard):
            x = self.index(atom.form)
            return ball(int((atom.lo is None or atom.lo <= x) and (atom.hi is None or x <= atom.hi)))
        args = [self.poly(arg) for arg in atom.args]
        return Balls().call(str(atom.function), args)

    def index(self, e: Index) -> int:
        return e.const + sum(c * self._part(part) for part, c in e.items)

    def _part(self, part: Digit | Opaque) -> int:
        if isinstance(part, Digit):
            return self.variables[part.var] // part.low % (part.var.size if part.top else part.radix)
        if part.operator == "value":
            value = whole(self.poly(part.term))
            return (value - part.lo) % (part.hi - part.lo + 1) + part.lo
        inner = self.index(part.exprs[0])
        assert part.operator == "clamp", part.operator
        return max(part.args[0], min(inner, part.args[1]))


def whole(x: Any) -> int:
    """The integer that a ball is."""
    found = x.unique_fmpz()
    assert found is not None, x
    return int(found)


def machine(dtype: str) -> Callable[[Any], Any]:
    """The value that a type of so many bits holds of an integer of Z3: by its bits alone."""
    lo, hi = bounds(dtype)
    bits = (hi - lo).bit_length()

    def held(x: Any) -> Any:
        low = z3.BV2Int(z3.Int2BV(x, bits), is_signed=False)
        return z3.If(low > hi, low - (hi - lo + 1), low)

    return held
