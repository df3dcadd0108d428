"""Affine index expressions over digits, in canonical form.

A digit `v[low, radix]` of a variable v is `(v div low) mod radix`; it ranges over `[0, radix)`.
An `Index` is an integer constant plus integer multiples of digits and of a few opaque integers
(remainders and quotients that do not split, clamped values, exact tables, values of terms).

Canonical form. All digits of one variable are refined to their common cuts and then merged
maximally (adjacent digits whose coefficients fit become one). Over a rectangular variable the
coefficients on the finest cuts are determined by the function that the expression denotes, so
two expressions over digits are equal as functions exactly when their canonical forms are
identical. Objects are interned: identical means `is`. Where cuts do not divide one another,
digits are left as they are: the form is then sound, and merely not unique.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from math import gcd
from typing import Any

UNBOUNDED = 1 << 100
"""Stands for an infinite bound of a range; a variable of this size takes negative values too."""

_NO_VARS: frozenset[Var] = frozenset()


class Var:
    """An index variable with values `0 <= v < size`. Interned by `var`."""

    __slots__ = ("key", "kind", "size", "uid")
    kind: str
    key: Any
    size: int
    uid: int

    def __repr__(self) -> str:
        return f"{self.kind}{self.key}"


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


class Opaque:
    """An integer that is not affine in digits: `kind` of `exprs` (and of a term), between `lo` and `hi`."""

    __slots__ = ("args", "exprs", "free", "hi", "kind", "lo", "term", "uid")
    kind: str
    args: tuple[Any, ...]
    exprs: tuple[Index, ...]
    term: Any
    lo: int
    hi: int
    free: frozenset[Var]
    uid: int

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.exprs)) if self.term is None else repr(self.term)
        if self.kind == "value":
            return f"<{inner}>"
        if self.kind == "table":
            return f"table{self.uid}[{inner}]"
        return f"{self.kind}({inner}, {', '.join(map(str, self.args))})"


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


_vars: dict[tuple[str, Any, int], Var] = {}
_digits: dict[tuple[int, int, int], Digit] = {}
_opaques: dict[tuple[Any, ...], Opaque] = {}
_indices: dict[tuple[Any, ...], Index] = {}
TABLES: tuple[dict[Any, Any], ...] = (_vars, _digits, _opaques, _indices)
"""Everything interned here; see `terms.memory`."""

_counter = 0


def next_uid() -> int:
    """A number never given before in this process; it orders interned objects."""
    global _counter
    _counter += 1
    return _counter


def var(kind: str, key: Any, size: int) -> Var:
    """The variable of that kind and key."""
    found = _vars.get((kind, key, size))
    if found is None:
        found = Var()
        found.kind, found.key, found.size, found.uid = kind, key, size, next_uid()
        _vars[kind, key, size] = found
    return found


def fresh(kind: str, size: int) -> Var:
    """A variable that occurs nowhere yet."""
    return var(kind, next_uid(), size)


def _digit(variable: Var, low: int, radix: int) -> Digit:
    key = (variable.uid, low, radix)
    found = _digits.get(key)
    if found is None:
        found = Digit()
        found.var, found.low, found.radix, found.lo = variable, low, radix, 0
        found.hi = min(radix - 1, (variable.size - 1) // low)
        if variable.size == UNBOUNDED and found.top:
            found.lo, found.hi = -UNBOUNDED, UNBOUNDED
        found.free, found.uid = frozenset((variable,)), next_uid()
        _digits[key] = found
    return found


def opaque(kind: str, exprs: tuple[Index, ...], args: tuple[Any, ...], lo: int, hi: int, term: Any = None) -> Opaque:
    """The interned opaque integer; equal arguments give the same object."""
    key = (kind, exprs, args, term, lo, hi)
    found = _opaques.get(key)
    if found is None:
        found = Opaque()
        found.kind, found.exprs, found.args, found.term, found.lo, found.hi = kind, exprs, args, term, lo, hi
        free = term.free if term is not None else _NO_VARS
        for e in exprs:
            free = free | e.free
        found.free, found.uid = free, next_uid()
        _opaques[key] = found
    return found


def _intern(const: int, items: tuple[tuple[Atom, int], ...]) -> Index:
    key = (const, items)
    found = _indices.get(key)
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
        _indices[key] = found
    return found


def constant(value: int) -> Index:
    """The constant expression."""
    return _intern(int(value), ())


def of_var(variable: Var) -> Index:
    """The variable itself; a variable of size 1 is 0."""
    if variable.size == 1:
        return constant(0)
    return _intern(0, ((_digit(variable, 1, variable.size), 1),))


def of_atom(atom: Atom) -> Index:
    """One atom as an expression."""
    return _intern(0, ((atom, 1),))


def build(const: int, items: Iterable[tuple[Atom, int]]) -> Index:
    """The canonical expression with that constant and those multiples (in any order, with repetitions)."""
    sums: dict[Atom, int] = {}
    for atom, c in items:
        sums[atom] = sums.get(atom, 0) + c
    live = [(a, c) for a, c in sums.items() if c]
    if len(live) > 1:
        live = _merge(live)
        if any(isinstance(a, Opaque) and a.kind == "mod" for a, _ in live):
            joined = _join_quotients(const, live)
            if joined is not None:
                return joined
    live.sort(key=lambda item: item[0].uid)
    return _intern(const, tuple(live))


def _merge(live: list[tuple[Atom, int]]) -> list[tuple[Atom, int]]:
    """Refine each variable's digits to their common cuts, then merge them maximally."""
    by_var: dict[Var, list[tuple[Digit, int]]] = {}
    rest: list[tuple[Atom, int]] = []
    for atom, c in live:
        if isinstance(atom, Digit):
            by_var.setdefault(atom.var, []).append((atom, c))
        else:
            rest.append((atom, c))
    for variable, digits in by_var.items():
        rest.extend(_merge_digits(variable, digits) if len(digits) > 1 else digits)
    return rest


def _merge_digits(variable: Var, digits: list[tuple[Digit, int]]) -> list[tuple[Atom, int]]:
    cuts = sorted({d.low for d, _ in digits} | {variable.size if d.top else d.low * d.radix for d, _ in digits})
    if any(b % a for a, b in pairwise(cuts) if b != variable.size):
        return list(digits)
    fine: dict[int, int] = {}
    for d, c in digits:
        end = variable.size if d.top else d.low * d.radix
        for cut in cuts:
            if d.low <= cut < end:
                fine[cut] = fine.get(cut, 0) + c * (cut // d.low)
    merged: list[tuple[int, int, int]] = []  # (low, end, coefficient)
    for low, end in pairwise(cuts):
        c = fine.get(low, 0)
        if not c:
            continue
        if merged and merged[-1][1] == low and c == merged[-1][2] * (low // merged[-1][0]):
            merged[-1] = (merged[-1][0], end, merged[-1][2])
        else:
            merged.append((low, end, c))
    return [(_digit(variable, low, -(-end // low)), c) for low, end, c in merged]


def _join_quotients(const: int, live: list[tuple[Atom, int]]) -> Index | None:
    """`m*div(e,m) + mod(e,m)` is `e`."""
    remainders = {atom.uid: c for atom, c in live if isinstance(atom, Opaque) and atom.kind == "mod"}
    if not remainders:
        return None
    for atom, c in live:
        if isinstance(atom, Opaque) and atom.kind == "div":
            (m,), (e,) = atom.args, atom.exprs
            remainder = modulo(e, m)
            left = remainder.items[0][0] if len(remainder.items) == 1 and not remainder.const else None
            if left is not None and remainder is of_atom(left) and remainders.get(left.uid, 0) * m == c:
                kept = [(a, k) for a, k in live if a is not atom and a is not left]
                kept.extend((a, k * (c // m)) for a, k in e.items)
                return build(const + c // m * e.const, kept)
    return None


def add(*terms: Index) -> Index:
    """The sum."""
    if len(terms) == 2:
        a, b = terms
        if not a.items:
            return _intern(a.const + b.const, b.items)
        if not b.items:
            return _intern(a.const + b.const, a.items)
    return build(sum(t.const for t in terms), [item for t in terms for item in t.items])


def scale(e: Index, factor: int) -> Index:
    """`factor * e`."""
    if factor == 1:
        return e
    if factor == 0:
        return constant(0)
    return _intern(e.const * factor, tuple((a, c * factor) for a, c in e.items))


def shift(e: Index, offset: int) -> Index:
    """`e + offset`."""
    return _intern(e.const + offset, e.items) if offset else e


def subtract(a: Index, b: Index) -> Index:
    """`a - b`."""
    return add(a, scale(b, -1))


def high_and_low(e: Index, m: int) -> tuple[Index, Index]:
    """Expressions with `e = m*high + low`: everything that is a multiple of m, high digits too, is in the high one."""
    high: list[tuple[Atom, int]] = []
    low: list[tuple[Atom, int]] = []
    for atom, c in e.items:
        above, c = divmod(c, m)
        if above:
            high.append((atom, above))
        if not c:
            continue
        s = m // c
        if isinstance(atom, Digit) and m % c == 0 and atom.radix > s and (atom.top or atom.radix % s == 0):
            radix = -(-atom.radix // s)
            if radix > 1:
                high.append((_digit(atom.var, atom.low * s, radix), 1))
            atom = _digit(atom.var, atom.low, s)
        low.append((atom, c))
    q, r = divmod(e.const, m)
    return build(q, high), build(r, low)


def floor_divmod(e: Index, m: int) -> tuple[Index, Index]:
    """`(e div m, e mod m)` for m >= 1, rounding down; opaque where digits cannot say it exactly."""
    if m == 1:
        return e, constant(0)
    if e.lo // m == e.hi // m:
        q = e.lo // m
        return constant(q), shift(e, -q * m)
    high, r = high_and_low(e, m)
    for above, rest in ((high, r), _balanced(high, r, m)):
        k = rest.lo // m
        if k == rest.hi // m:
            return shift(above, k), shift(rest, -k * m)
    g = gcd(m, *(c for _, c in r.items))
    if g > 1:
        small, low = divmod(r.const, g)
        above, rem = floor_divmod(_intern(small, tuple((a, c // g) for a, c in r.items)), m // g)
        return add(high, above), shift(scale(rem, g), low)
    unwound = _without_remainders(r, m)
    remainder = modulo(unwound, m) if unwound is not r else of_atom(opaque("mod", (r,), (m,), 0, m - 1))
    q, c = divmod(e.const, m)
    whole = _intern(c, e.items)  # the quotient does not split digits: it could not take all of them out
    div = opaque("div", (whole,), (m,), whole.lo // m, whole.hi // m)
    return build(q, [(div, 1)]), remainder


def _balanced(high: Index, low: Index, m: int) -> tuple[Index, Index]:
    """`m*high + low` with coefficients of the low part between -m/2 and m/2."""
    large = [(a, c) for a, c in low.items if 2 * c > m]
    if not large:
        return high, low
    small = [(a, c - m if 2 * c > m else c) for a, c in low.items]
    return add(high, build(0, [(a, 1) for a, _ in large])), build(low.const, small)


def _without_remainders(e: Index, m: int) -> Index:
    """An expression equal to e modulo m: `c*(x mod n)` is `c*x` there, if m divides `c*n` (rotations of rotations)."""
    items: list[tuple[Atom, int]] = []
    const, changed = e.const, False
    for atom, c in e.items:
        if isinstance(atom, Opaque) and atom.kind == "mod" and c * atom.args[0] % m == 0:
            inner = atom.exprs[0]
            const += c * inner.const
            items.extend((a, k * c) for a, k in inner.items)
            changed = True
        else:
            items.append((atom, c))
    return build(const, items) if changed else e


def floor_div(e: Index, m: int) -> Index:
    """`e div m`, rounding down."""
    return floor_divmod(e, m)[0]


def modulo(e: Index, m: int) -> Index:
    """`e mod m`, in `[0, m)`."""
    return floor_divmod(e, m)[1]


def digit_of(e: Index, low: int, radix: int) -> Index:
    """`(e div low) mod radix`."""
    return modulo(floor_div(e, low), radix)


def clamp(e: Index, lo: int, hi: int) -> Index:
    """`max(lo, min(e, hi))`; e itself where its range shows that nothing is cut."""
    if e.lo >= lo and e.hi <= hi:
        return e
    if lo >= hi or e.hi <= lo:
        return constant(lo)
    if e.lo >= hi:
        return constant(hi)
    if len(e.items) == 1 and e.items[0][1] == 1 and e.const == 0:
        inner = e.items[0][0]
        if isinstance(inner, Opaque) and inner.kind == "clamp" and inner.args[0] <= lo and inner.args[1] >= hi:
            return clamp(inner.exprs[0], lo, hi)
    return of_atom(opaque("clamp", (e,), (lo, hi), max(lo, e.lo), min(hi, e.hi)))


def substitute(e: Index, mapping: Mapping[Var, Index], on_term: Any = None) -> Index:
    """e with variables replaced. `on_term` substitutes in the term of a `value` and gives back an Index."""
    untouched = mapping.keys().isdisjoint
    if untouched(e.free):
        return e
    const = e.const
    items: list[tuple[Atom, int]] = []
    for atom, c in e.items:
        if untouched(atom.free):
            items.append((atom, c))
            continue
        if isinstance(atom, Digit):
            new = mapping[atom.var]
            if not (atom.low == 1 and atom.top):
                new = floor_div(new, atom.low) if atom.top else digit_of(new, atom.low, atom.radix)
        else:
            new = _substitute_opaque(atom, mapping, on_term)
        const += c * new.const
        items.extend((a, k * c) for a, k in new.items)
    return build(const, items)


def _substitute_opaque(atom: Opaque, mapping: Mapping[Var, Index], on_term: Any) -> Index:
    if atom.kind == "value":
        result: Index = on_term(atom)
        return result
    return again(atom, substitute(atom.exprs[0], mapping, on_term))


def again(atom: Opaque, e: Index) -> Index:
    """What an opaque integer is of its one expression (a remainder, a quotient, a clamp, an entry of a table), of e."""
    if atom.kind == "mod":
        return modulo(e, atom.args[0])
    if atom.kind == "div":
        return floor_div(e, atom.args[0])
    if atom.kind == "clamp":
        return clamp(e, *atom.args)
    return lookup(atom.args[0], e)


def table(values: tuple[int, ...], e: Index) -> Index:
    """`values[e]` as an opaque integer, exactly."""
    return of_atom(opaque("table", (e,), (values,), min(values), max(values)))


def lookup(values: tuple[int, ...], e: Index) -> Index:
    """`values[e]`: a number where e is constant, arithmetic where the values can be fitted, else a table.

    Outside of the table it is any number: such reads are guarded.
    """
    from hlo_verify.index.tables import fit_lookup  # fitting is arithmetic on expressions itself

    return fit_lookup(values, e) if e.items else constant(values[min(max(e.const, 0), len(values) - 1)])
