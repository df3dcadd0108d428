"""What index expressions are made of, each one object: variables, digits, opaque integers and the expressions.

`expr` makes expressions; `intern` here keeps those that it has brought to canonical form.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Protocol

from hlo_verify.memory import per_session

UNBOUNDED = 1 << 100
"""Stands for an infinite bound of a range; a variable of this size takes negative values too."""

_NO_VARS: frozenset[Var] = frozenset()


class Var:
    """An index variable with values `0 <= v < size`. Interned by `var`."""

    __slots__ = ("key", "prefix", "size", "uid")
    prefix: str
    key: Any
    size: int
    uid: int

    def __repr__(self) -> str:
        return f"{self.prefix}{self.key}"


class Digit:
    """`(var div low) mod radix`, between 0 and `hi`."""

    __slots__ = ("free", "hi", "lo", "low", "radix", "uid", "var")
    var: Var
    low: int
    radix: int
    lo: int
    hi: int
    free: frozenset[Var]
    uid: int

    @property
    def top(self) -> bool:
        """Whether no digit of the variable lies above this one."""
        return self.low * self.radix >= self.var.size

    def __repr__(self) -> str:
        if self.low == 1 and self.top:
            return repr(self.var)
        return f"{self.var!r}[{self.low}:{self.low * self.radix}]"


class Term(Protocol):
    """What an integer is the value of: a polynomial of `terms.term`, of which index expressions know no more."""

    @property
    def free(self) -> frozenset[Var]: ...


class Opaque:
    """An integer that is not affine in digits: `operator` of `exprs` (and of a term), between `lo` and `hi`."""

    __slots__ = ("args", "exprs", "free", "hi", "lo", "operator", "term", "uid")
    operator: str
    args: tuple[Any, ...]
    exprs: tuple[Index, ...]
    term: Term | None
    lo: int
    hi: int
    free: frozenset[Var]
    uid: int

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.exprs)) if self.term is None else repr(self.term)
        if self.operator == "value":
            return f"<{inner}>"
        if self.operator == "table":
            return f"table{self.uid}[{inner}]"
        return f"{self.operator}({inner}, {', '.join(map(str, self.args))})"


Atom = Digit | Opaque


class Index:
    """`const + sum of coefficient * atom`, canonical and interned; its values lie in `[lo, hi]`."""

    __slots__ = ("const", "free", "hi", "items", "lo", "uid")
    const: int
    items: tuple[tuple[Atom, int], ...]
    lo: int
    hi: int
    free: frozenset[Var]
    uid: int

    def __repr__(self) -> str:
        parts = [f"{c}*{a!r}" if c not in (1, -1) else ("-" if c < 0 else "") + repr(a) for a, c in self.items]
        if self.const or not parts:
            parts.append(str(self.const))
        return "+".join(parts).replace("+-", "-")


_vars: Callable[[], dict[tuple[str, Any, int], Var]] = per_session("variables", dict)
_digits: Callable[[], dict[tuple[int, int, int], Digit]] = per_session("digits", dict)
_opaques: Callable[[], dict[tuple[Any, ...], Opaque]] = per_session("opaque integers", dict)
_indices: Callable[[], dict[tuple[Any, ...], Index]] = per_session("index expressions", dict)

_OUTSIDE = 1 << 40
"""Where numbers begin that are given without a session."""


def numbering(name: str, first: int) -> Callable[[], Callable[[], int]]:
    """What gives a session's next number, from `first` on.

    Without a session they lie far above: what is made so may be brought into one, and has a number of its own there.
    """
    return per_session(name, lambda: count(first).__next__, lambda: count(_OUTSIDE).__next__)


_numbers = numbering("numbers of objects", 1)


def next_uid() -> int:
    """A number never given before in this session; it orders interned objects."""
    return _numbers()()


def made() -> int:
    """About how many objects were made so far in this session: a measure of work that is the same on every machine."""
    return next_uid()


def var(prefix: str, key: Any, size: int) -> Var:
    """The variable of that prefix and key."""
    known = _vars()
    found = known.get((prefix, key, size))
    if found is None:
        found = Var()
        found.prefix, found.key, found.size, found.uid = prefix, key, size, next_uid()
        known[prefix, key, size] = found
    return found


def fresh(prefix: str, size: int) -> Var:
    """A variable that occurs nowhere yet."""
    return var(prefix, next_uid(), size)


def digit(variable: Var, low: int, radix: int) -> Digit:
    """The digit `v[low, radix]` of a variable."""
    key = (variable.uid, low, radix)
    known = _digits()
    found = known.get(key)
    if found is None:
        found = Digit()
        found.var, found.low, found.radix, found.lo = variable, low, radix, 0
        found.hi = min(radix - 1, (variable.size - 1) // low)
        if variable.size == UNBOUNDED and found.top:
            found.lo, found.hi = -UNBOUNDED, UNBOUNDED
        found.free, found.uid = frozenset((variable,)), next_uid()
        known[key] = found
    return found


def opaque(
    operator: str, exprs: tuple[Index, ...], args: tuple[Any, ...], lo: int, hi: int, term: Term | None = None
) -> Opaque:
    """The interned opaque integer; equal arguments give the same object."""
    key = (operator, exprs, args, term, lo, hi)
    known = _opaques()
    found = known.get(key)
    if found is None:
        found = Opaque()
        found.operator, found.exprs, found.args, found.term, found.lo, found.hi = operator, exprs, args, term, lo, hi
        free = term.free if term is not None else _NO_VARS
        for e in exprs:
            free = free | e.free
        found.free, found.uid = free, next_uid()
        known[key] = found
    return found


def intern(const: int, items: tuple[tuple[Atom, int], ...]) -> Index:
    """The one expression with that constant and those items, which are in canonical form."""
    key = (const, items)
    known = _indices()
    found = known.get(key)
    if found is None:
        found = Index()
        found.const, found.items = const, items
        lo = hi = const
        free = _NO_VARS
        for atom, c in items:
            if c > 0:
                lo += c * atom.lo
                hi += c * atom.hi
            else:
                lo += c * atom.hi
                hi += c * atom.lo
            free = free | atom.free if free else atom.free
        found.lo, found.hi, found.free, found.uid = lo, hi, free, next_uid()
        known[key] = found
    return found
