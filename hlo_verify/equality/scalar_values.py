"""A look at terms of real numbers in floats: what is far from 0 there is not worked out. It proves nothing."""

from __future__ import annotations

import math
from collections.abc import Callable

from hlo_verify.index import expr
from hlo_verify.terms import signs
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.functions import Function
from hlo_verify.terms.term import Apply, Atom, Guard, Ix, Poly, Read, mix

POINTS = (0.7, -1.3, 0.2)
"""About these a term is looked at in floats, before it is worked out."""

FAR = 1e-5
"""What is so much further from 0 than its addends is not worked out."""


def is_far(p: Poly) -> bool:
    """Whether a term is far from 0 somewhere."""
    return any(_is_far_about(p, point) for point in POINTS)


def _is_far_about(p: Poly, point: float) -> bool:
    """Whether a term is far from 0 where its atoms are numbers about that point; False where that is not told."""
    known: dict[Atom, float] = {}
    try:
        parts = [float(c) * math.prod(_value(a, point, known) ** float(n) for a, n in mono) for mono, c in p.items]
    except (ArithmeticError, ValueError, TypeError):
        return False
    return abs(math.fsum(parts)) > FAR * (1 + max(map(abs, parts), default=0))


def _value(atom: Atom, point: float, known: dict[Atom, float]) -> float:
    if atom not in known:
        known[atom] = _worked_out(atom, point, known)
    return known[atom]


def _worked_out(atom: Atom, point: float, known: dict[Atom, float]) -> float:
    function = _FLOATS.get(atom.function.name) if isinstance(atom, Apply) else None
    if isinstance(atom, Guard):
        raise ValueError("a condition is 0 or 1")
    if isinstance(atom, Ix):
        places = ((expr.of_atom(part).uid, c) for part, c in atom.index.items)
        return atom.index.const + math.fsum(c * abs(point + math.sin(uid)) for uid, c in places)
    if isinstance(atom, Read) and atom.tensor.kind == "term" and atom.tensor.seal is None:
        return _total(unfold(atom)[1][0], point, known)
    if not isinstance(atom, Apply) or not atom.args:
        found = point + math.sin(atom.uid)
        return found if signs.of_atom(atom) & signs.NEGATIVE else abs(found)
    args = [_total(arg, point, known) for arg in atom.args]
    return float(function(*args)) if function is not None else _of_unknown(atom.function, _mixed(atom.function, args))


def _total(p: Poly, point: float, known: dict[Atom, float]) -> float:
    products = (float(c) * math.prod(_value(a, point, known) ** float(n) for a, n in mono) for mono, c in p.items)
    return math.fsum(products)


def _mixed(function: Function, args: list[float]) -> float:
    """One number for all arguments of an unknown function, whatever they are spelled like."""
    return math.fsum(arg if function.properties.commutative else (1 + 0.3 * n) * arg for n, arg in enumerate(args))


def _of_unknown(function: Function, x: float) -> float:
    """Some function of a number, that is odd, even, or has a sign where the one that is asked for does."""
    properties = function.properties
    symmetric = properties.odd or properties.even
    found = math.sin(3 * (abs(x) if symmetric else x) + mix(str(function)) % 97)
    if properties.positive or properties.keeps_sign:
        found = 1.1 + found
    if properties.truth:
        return float(found > 0)
    return math.copysign(found, x * found) if properties.odd or properties.keeps_sign else found


_FLOATS: dict[str, Callable[..., float]] = {
    "abs": abs,
    "cbrt": math.cbrt,
    "cosh": math.cosh,
    "cosine": math.cos,
    "erf": math.erf,
    "exponential": math.exp,
    "inverse": lambda x: 1 / x,
    "log": math.log,
    "maximum": max,
    "minimum": min,
    "positive": lambda x: x > 0,
    "power": math.pow,
    "sign": lambda x: (x > 0) - (x < 0),
    "sine": math.sin,
    "sinh": math.sinh,
    "sqrt": math.sqrt,
    "tanh": math.tanh,
    "zero": lambda x: x == 0,
}
