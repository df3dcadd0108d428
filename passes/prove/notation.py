"""Terms as people write them: `sum a<512. x[i,a] * w[512*(d mod 4) + a,j]`.

Positions are i, j, k, ..., the device is d, variables of sums are a, b, c, ...; what the logical module
computes is called by its operation and source line, other definitions are written out as far as there is room.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import itemgetter
from pathlib import PurePath

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque, Var
from hlo_verify.passes.prove.stages import Step
from hlo_verify.program.ir import Location, Op
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.functions import INVERSE
from hlo_verify.terms.term import (
    Apply,
    Atom,
    Guard,
    Ix,
    Monomial,
    Number,
    Poly,
    Read,
    Tensor,
    decimal,
    make_poly,
    value_of,
)

POSITIONS = "ijklmnuv"
BOUND = "abcefgh"
AROUND = "rstwxyz"

ROOM = 300
"""A term longer than this is shown with an ellipsis."""

SUMMANDS = 6, 3
"""The most summands that are written out, and where that is too long."""

_FUNCTIONS = {"inverse": "1/", "exponential": "exp"}


def short(location: Location) -> str:
    """`train.py:57`, without folders; the operation's name where there is no line."""
    return PurePath(str(location)).name if location.frames else location.name


@dataclass(frozen=True, slots=True)
class _Origin:
    """The first logical operation that computes a tensor: its result's shape, and the result as a read of it."""

    op: Op
    shape: tuple[int, ...]
    read: Read


class Notation:
    """Names for the tensors that logical operations compute, and writing with them."""

    def __init__(self, logical: Iterable[Step]) -> None:
        self._origins: dict[Tensor, _Origin] = {}
        self._opened: dict[Var, str] = {}
        for step in logical:
            for value in step.values:
                atom = value.term.atom
                if isinstance(atom, Read) and atom.tensor.bodies:
                    self.learn(step.op, value.shape, atom)

    def learn(self, op: Op, shape: Sequence[int], value: Read) -> None:
        """Call the tensor that a logical operation's value reads by that operation, unless it has a name already."""
        self._origins.setdefault(value.tensor, _Origin(op, tuple(shape), value))

    def term(self, p: Poly, depth: int = 1) -> str:
        """The term, on one line, with definitions written out `depth` deep."""
        text = ""
        for deep in range(depth, -1, -1):
            for most in SUMMANDS:
                text = self._poly(p, {}, deep, most)
                if isinstance(p.atom, Read) and text.startswith("("):
                    text = text[1:-1]
                if len(text) <= ROOM:
                    return text
        return text if len(text) <= 2 * ROOM else text[: 2 * ROOM] + " …"

    def atom(self, a: Atom, power: Number = 1) -> str:
        """One factor."""
        return self.term(make_poly(((((a, power),), 1),)))

    def index(self, e: Index) -> str:
        """An index expression."""
        return self._index(e, {})

    def lineage(self, a: Read) -> str:
        """Which elements of which logical tensor a read is, never written out."""
        return self._read(a, {}, 0)

    def tensor(self, source: Tensor) -> str:
        """The name of a tensor: an argument's, or the operation that computes it and its line."""
        origin = self._origins.get(source)
        if origin is not None:
            return f"{origin.op.name}@{short(origin.op.location)}"
        return source.name if not source.bodies else f"a {source.kind}"

    # Polynomials

    def _poly(self, p: Poly, names: dict[Var, str], depth: int, most: int = SUMMANDS[-1]) -> str:
        if not p.items:
            return "0"
        products = sorted((not mono, self._monomial(mono, names, depth), c) for mono, c in p.items)
        text = " + ".join(_scaled(text, c) for _, text, c in products[:most]).replace("+ -", "- ")
        return text if len(products) <= most else f"{text} + … ({len(products)} summands)"

    def _monomial(self, mono: Monomial, names: dict[Var, str], depth: int) -> str:
        """Conditions come after what is computed, divisors last; else in the order of the alphabet."""
        above, below = [], []
        for a, n in mono:
            if isinstance(a, Apply) and a.function == INVERSE:
                inner = f"({self._poly(a.args[0], names, depth)})"
                below.append(inner if n == 1 else f"{inner}^{number(n)}")
            else:
                above.append((isinstance(a, Guard), self._factor(a, n, names, depth)))
        text = "*".join(factor for _, factor in sorted(above))
        return "/".join([text or "1" if below else text, *sorted(below)])

    def _factor(self, a: Atom, power: Number, names: dict[Var, str], depth: int) -> str:
        if isinstance(a, Read):
            text = self._read(a, names, depth)
        elif isinstance(a, Apply):
            function = _FUNCTIONS.get(a.function.name, a.function.name)
            text = f"{function}({', '.join(self._poly(arg, names, depth) for arg in a.args)})"
        elif isinstance(a, Ix):
            text = self._index(a.index, names)
            text = f"({text})" if len(a.index.items) > 1 else text
        else:
            text = f"[{self._condition(a, names)}]"
        return text if power == 1 else f"{text}^{number(power)}"

    def _read(self, a: Read, names: dict[Var, str], depth: int) -> str:
        source = a.tensor
        origin = self._origins.get(source)
        if origin is not None and (depth < 1 or source.kind == "term"):
            where = self._through(origin, a.indices, names)
            return f"{self.tensor(source)}[{where}]"
        if not source.bodies:
            return f"{source.name}[{','.join(self._index(e, names) for e in a.indices)}]"
        if depth < 1:
            return "(…)" if source.kind == "term" else f"{source.kind}(…)"
        bound, bodies = unfold(a)
        inner = dict(names)
        taken = set(names.values())
        for v in bound:
            inner[v] = next((x for x in BOUND if x not in taken), f"a{v.uid}")
            taken.add(inner[v])
        body = ", ".join(self._poly(b, inner, depth - 1) for b in bodies)
        if source.kind == "term":
            return f"({body})"
        ranges = ",".join(f"{inner[v]}<{v.size}" for v in bound)
        text = f"{source.kind} {ranges}. {body}" if ranges else f"{source.kind}({body})"
        return f"({text})"

    def _through(self, origin: _Origin, indices: Sequence[Index], names: dict[Var, str]) -> str:
        """The position at which a logical value is read; `…` along dimensions that its tensor does not tell apart."""
        digits: dict[int, dict[int, tuple[int, Index]]] = {}
        for mine, theirs in zip(origin.read.indices, indices, strict=True):
            for digit, value in _solved(mine, theirs):
                if digit.var.prefix == "p":
                    known = digits.setdefault(digit.var.key, {})
                    known[digit.low] = max(known.get(digit.low, (0, value)), (digit.radix, value), key=itemgetter(0))
        where = [_position(size, digits.get(k, {})) for k, size in enumerate(origin.shape)]
        return ",".join("…" if e is None else self._index(e, names) for e in where)

    # Index expressions

    def _index(self, e: Index, names: dict[Var, str]) -> str:
        parts = []
        for atom, c in sorted(e.items, key=lambda item: -abs(item[1])):
            text = self._part(atom, names)
            parts.append(text if c == 1 else f"-{text}" if c == -1 else f"{c}*{text}")
        if e.const or not parts:
            parts.append(str(e.const))
        return " + ".join(parts).replace("+ -", "- ")

    def _part(self, atom: Digit | Opaque, names: dict[Var, str]) -> str:
        if isinstance(atom, Digit):
            name = names.get(atom.var) or self._variable(atom.var)
            text = name if atom.low == 1 else f"({name} div {atom.low})"
            return text if atom.top else f"({text} mod {atom.radix})"
        if atom.operator == "value":
            return self._poly(value_of(atom), names, 0)
        inner = self._index(atom.exprs[0], names)
        if atom.operator == "table":
            values = atom.args[0]
            listed = ",".join(map(str, values[:8])) + (",…" if len(values) > 8 else "")
            return f"{{{listed}}}[{inner}]"
        if atom.operator in ("mod", "div"):
            return f"(({inner}) {atom.operator} {atom.args[0]})"
        return f"clamp({inner}, {atom.args[0]}, {atom.args[1]})"

    def _variable(self, v: Var) -> str:
        """A variable that is not bound in what is shown: those of sums around it are r, s, ..."""
        if v.prefix not in "fb":
            return variable(v)
        return self._opened.setdefault(v, AROUND[len(self._opened) % len(AROUND)])

    def _condition(self, a: Guard, names: dict[Var, str]) -> str:
        """`i + 3 <= j`: what is added on the left, what is subtracted on the right."""
        left = [(atom, c) for atom, c in a.form.items if c > 0]
        right = [(atom, -c) for atom, c in a.form.items if c < 0]
        lo, hi = a.lo, a.hi
        if not left:
            left, right = right, left
            lo, hi = (None if hi is None else -hi), (None if lo is None else -lo)
        one, other = self._side(left, names), self._side(right, names)
        if lo is not None and hi is not None and lo != hi:
            return f"{lo} <= {one} - ({other}) <= {hi}" if right else f"{lo} <= {one} <= {hi}"
        bound, sign = (lo, ">=") if hi is None else (hi, "<=")
        if lo == hi:
            bound, sign = lo, "="
        assert bound is not None
        if not right:
            return f"{one} {sign} {bound}"
        if bound == 1 and sign == ">=":
            return f"{one} > {other}"
        if bound == -1 and sign == "<=":
            return f"{one} < {other}"
        tail = "" if bound == 0 else f" + {bound}" if bound > 0 else f" - {-bound}"
        return f"{one} {sign} {other}{tail}"

    def _side(self, items: list[tuple[Digit | Opaque, int]], names: dict[Var, str]) -> str:
        texts = [self._part(atom, names) for atom, _ in items]
        return " + ".join(t if c == 1 else f"{c}*{t}" for t, (_, c) in zip(texts, items, strict=True))


def _solved(mine: Index, theirs: Index) -> Iterator[tuple[Digit, Index]]:
    """The digits of one index expression, where it is equal to another; as many as that determines."""
    parts = sorted(((a, c) for a, c in mine.items if isinstance(a, Digit)), key=itemgetter(1))
    if len(parts) < len(mine.items) or not parts or parts[0][1] < 0:
        return
    unit = parts[0][1]
    rest = expr.floor_div(expr.shift(theirs, -mine.const), unit)
    for digit, c in parts:
        if c != unit:
            return
        yield digit, rest if digit is parts[-1][0] else expr.modulo(rest, digit.radix)
        unit, rest = unit * digit.radix, expr.floor_div(rest, digit.radix)


def _position(size: int, digits: dict[int, tuple[int, Index]]) -> Index | None:
    """A position along a dimension from its digits, by their lowest values; None if one is missing."""
    found, low = expr.constant(0), 1
    while low < size:
        if low not in digits:
            return None
        radix, value = digits[low]
        found, low = expr.add(found, expr.scale(value, low)), low * radix
    return found


def _scaled(text: str, c: Number) -> str:
    if not text:
        return number(c)
    return text if c == 1 else f"-{text}" if c == -1 else f"{number(c)}*{text}"


def variable(v: Var) -> str:
    """i, j, k for positions; d for the device; t for the iteration of a loop."""
    if v.prefix == "p":
        return POSITIONS[v.key] if v.key < len(POSITIONS) else f"p{v.key}"
    return v.prefix if v.prefix in ("d", "t") else f"{v.prefix}{v.key}"


def number(c: Number) -> str:
    """An integer, a fraction such as a mean's or of small numbers, or else a decimal."""
    if isinstance(c, Fraction):
        smaller, larger = sorted((abs(c.numerator), c.denominator))
        return str(c) if smaller <= 1000 and larger <= 1 << 24 else decimal(c)
    return str(c) if abs(c) <= 1 << 64 else decimal(c)


def apart(a: Number, b: Number) -> tuple[str, str]:
    """Two different numbers, with as many digits as show it."""
    if decimal(a) != decimal(b):
        return number(a), number(b)
    for digits in (9, 17, 50):
        shown = decimal(a, digits), decimal(b, digits)
        if shown[0] != shown[1]:
            return shown
    return str(a), str(b)
