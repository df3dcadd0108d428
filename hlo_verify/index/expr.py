"""Affine index expressions over digits, in canonical form.

A digit `v[low, radix]` of a variable v is `(v div low) mod radix`; it ranges over `[0, radix)`.
An `Index` is an integer constant plus integer multiples of digits and of a few opaque integers
(remainders and quotients that do not split, clamped values, exact tables, values of terms).

Canonical form. All digits of one variable are refined to their common breakpoints and then merged
maximally (adjacent digits whose coefficients fit become one): `4*(v div 4) + v mod 4` is `v`. The function that an
expression denotes determines the coefficients at the finest breakpoints. So two expressions over digits are equal as
functions exactly when their canonical forms are identical. Objects are interned (`interned`): identical means `is`.
Breakpoints that do not divide one another (`v div 4` beside `v div 6`) are left as they are: the form is then still
right, but not the only one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from math import gcd
from typing import Any

from hlo_verify.index.interned import (
    UNBOUNDED,
    Atom,
    Digit,
    Index,
    Opaque,
    Var,
    digit,
    fresh,
    intern,
    next_uid,
    opaque,
    var,
)

__all__ = [
    "UNBOUNDED",
    "Atom",
    "Digit",
    "Index",
    "Opaque",
    "Var",
    "add",
    "again",
    "balanced",
    "build",
    "clamp",
    "constant",
    "digit_of",
    "floor_div",
    "floor_divmod",
    "fresh",
    "high_and_low",
    "lookup",
    "modulo",
    "next_uid",
    "of_atom",
    "of_var",
    "opaque",
    "scale",
    "shift",
    "spliced",
    "substitute",
    "subtract",
    "table",
    "unwound",
    "var",
]


def constant(value: int) -> Index:
    """The constant expression."""
    return intern(int(value), ())


def of_var(variable: Var) -> Index:
    """The variable itself; a variable of size 1 is 0."""
    if variable.size == 1:
        return constant(0)
    return intern(0, ((digit(variable, 1, variable.size), 1),))


def of_atom(atom: Atom) -> Index:
    """One atom as an expression."""
    return intern(0, ((atom, 1),))


def build(const: int, items: Iterable[tuple[Atom, int]]) -> Index:
    """The canonical expression with that constant and those multiples (in any order, with repetitions)."""
    sums: dict[Atom, int] = {}
    for atom, c in items:
        sums[atom] = sums.get(atom, 0) + c
    live = [(a, c) for a, c in sums.items() if c]
    if len(live) > 1:
        live = _merge(live)
        if any(isinstance(a, Opaque) and a.operator in ("mod", "div") for a, _ in live):
            joined = _join_quotients(const, live) or _remainder(const, live)
            if joined is not None:
                return joined
    live.sort(key=lambda item: item[0].uid)
    return intern(const, tuple(live))


def _merge(live: list[tuple[Atom, int]]) -> list[tuple[Atom, int]]:
    """Refine each variable's digits to their common breakpoints, then merge them maximally."""
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
    breakpoints = sorted({d.low for d, _ in digits} | {variable.size if d.top else d.low * d.radix for d, _ in digits})
    if any(b % a for a, b in pairwise(breakpoints) if b != variable.size):
        return list(digits)
    fine: dict[int, int] = {}
    for d, c in digits:
        end = variable.size if d.top else d.low * d.radix
        for start in breakpoints:
            if d.low <= start < end:
                fine[start] = fine.get(start, 0) + c * (start // d.low)
    merged: list[tuple[int, int, int]] = []  # (low, end, coefficient)
    for low, end in pairwise(breakpoints):
        c = fine.get(low, 0)
        if not c:
            continue
        if merged and merged[-1][1] == low and c == merged[-1][2] * (low // merged[-1][0]):
            merged[-1] = (merged[-1][0], end, merged[-1][2])
        else:
            merged.append((low, end, c))
    return [(digit(variable, low, -(-end // low)), c) for low, end, c in merged]


def _join_quotients(const: int, live: list[tuple[Atom, int]]) -> Index | None:
    """`m*div(e,m) + mod(e,m)` is `e`, and `m*mod(div(e,m),k) + mod(e,m)` is `mod(e,m*k)`."""
    remainders = {atom.uid: c for atom, c in live if isinstance(atom, Opaque) and atom.operator == "mod"}
    if not remainders:
        return None
    for atom, c in live:
        quotient = _sole(atom.exprs[0]) if isinstance(atom, Opaque) and atom.operator == "mod" else atom
        if isinstance(atom, Opaque) and isinstance(quotient, Opaque) and quotient.operator == "div":
            (m,), (e,) = quotient.args, quotient.exprs
            left = _sole(modulo(e, m))
            if left is not None and remainders.get(left.uid, 0) * m == c:
                whole = e if atom is quotient else modulo(e, m * atom.args[0])
                kept = [(a, k) for a, k in live if a is not atom and a is not left]
                kept.extend((a, k * (c // m)) for a, k in whole.items)
                return build(const + c // m * whole.const, kept)
    return None


def _sole(e: Index) -> Atom | None:
    """The atom that an expression is, if it is one."""
    return e.items[0][0] if len(e.items) == 1 and e is of_atom(e.items[0][0]) else None


def _remainder(const: int, live: list[tuple[Atom, int]]) -> Index | None:
    """`e - m*div(e,m)` is `mod(e,m)`, where that is shorter."""
    for atom, c in live:
        if isinstance(atom, Opaque) and atom.operator == "div" and c % atom.args[0] == 0:
            (m,), (e,) = atom.args, atom.exprs
            rest = dict(live)
            del rest[atom]
            for a, k in e.items:
                rest[a] = rest.get(a, 0) + k * (c // m)
            if sum(1 for k in rest.values() if k) < len(live) - 1:
                return add(build(const + c // m * e.const, rest.items()), scale(modulo(e, m), -(c // m)))
    return None


def add(*terms: Index) -> Index:
    """The sum."""
    if len(terms) == 2:
        a, b = terms
        if not a.items:
            return intern(a.const + b.const, b.items)
        if not b.items:
            return intern(a.const + b.const, a.items)
    return build(sum(t.const for t in terms), [item for t in terms for item in t.items])


def scale(e: Index, factor: int) -> Index:
    """`factor * e`."""
    if factor == 1:
        return e
    if factor == 0:
        return constant(0)
    return intern(e.const * factor, tuple((a, c * factor) for a, c in e.items))


def shift(e: Index, offset: int) -> Index:
    """`e + offset`."""
    return intern(e.const + offset, e.items) if offset else e


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
                high.append((digit(atom.var, atom.low * s, radix), 1))
            atom = digit(atom.var, atom.low, s)
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
    for above, rest in ((high, r), balanced(high, r, m), balanced(high, r, m, halves=True)):
        k = rest.lo // m
        if k == rest.hi // m:
            return shift(above, k), shift(rest, -k * m)
    quotient = _quotient_of_multiples(e, m)
    g = gcd(m, *(c for _, c in r.items))
    if g > 1:
        small, low = divmod(r.const, g)
        above, rem = floor_divmod(intern(small, tuple((a, c // g) for a, c in r.items)), m // g)
        return add(high, above) if quotient is None else quotient, shift(scale(rem, g), low)
    turned = spliced(unwound(r, m), m)
    remainder = modulo(turned, m) if turned is not e else of_atom(opaque("mod", (r,), (m,), 0, m - 1))
    if quotient is not None:
        return quotient, remainder
    inner = _sole(e)
    if isinstance(inner, Opaque) and inner.operator == "div":
        return floor_div(inner.exprs[0], inner.args[0] * m), remainder
    q, c = divmod(e.const, m)
    whole = intern(c, e.items)  # the quotient does not split digits: it could not take all of them out
    div = opaque("div", (whole,), (m,), whole.lo // m, whole.hi // m)
    return build(q, [(div, 1)]), remainder


def _quotient_of_multiples(e: Index, m: int) -> Index | None:
    """`e div m`, where what stands beside multiples of m lies between two of them; None elsewhere.

    64*h + a - 32*b + 32 of a below 32 and b below 2 has h in 64, which a + 32*b + 32, without negative coefficients,
    does not show.
    """
    rest = build(e.const, [(a, c) for a, c in e.items if c % m])
    k = rest.lo // m
    return build(k, [(a, c // m) for a, c in e.items if not c % m]) if k == rest.hi // m else None


def balanced(high: Index, low: Index, m: int, halves: bool = False) -> tuple[Index, Index]:
    """`m*high + low` with coefficients of the low part between -m/2 and m/2, in place of the nonnegative ones.

    With `halves` -m/2 takes the place of m/2: `(1 - a) mod 2` is `1 - a` for a digit of two values.
    """
    least = m // 2 if halves and m % 2 == 0 else m // 2 + 1
    large = [(a, c) for a, c in low.items if c >= least]
    if not large:
        return high, low
    small = [(a, c - m if c >= least else c) for a, c in low.items]
    return add(high, build(0, [(a, 1) for a, _ in large])), build(low.const, small)


def unwound(e: Index, m: int) -> Index:
    """An expression equal to e modulo m: `c*(x mod n)` is `c*x` there, if m divides `c*n` (rotations of rotations)."""
    items: list[tuple[Atom, int]] = []
    const, changed = e.const, False
    for atom, c in e.items:
        if isinstance(atom, Opaque) and atom.operator == "mod" and c * atom.args[0] % m == 0:
            inner = atom.exprs[0]
            const += c * inner.const
            items.extend((a, k * c) for a, k in inner.items)
            changed = True
        else:
            items.append((atom, c))
    return build(const, items) if changed else e


def spliced(e: Index, m: int) -> Index:
    """An expression equal to e modulo m, with fewer digits: a digit whose coefficient is, modulo m, what it takes to
    continue the digit below.

    64*(v div 192) + v mod 192 is v modulo 128, as 64 and 192 are the same there.
    """
    parts = {(atom.var, atom.low): (atom, c) for atom, c in e.items if isinstance(atom, Digit)}
    for atom, c in e.items:
        if isinstance(atom, Digit) and not atom.top and atom.low * atom.radix < atom.var.size:
            above, k = parts.get((atom.var, atom.low * atom.radix), (None, 0))
            if above is not None and k != c * atom.radix and (k - c * atom.radix) % m == 0:
                kept = [(a, n) for a, n in e.items if a is not above]
                return spliced(build(e.const, [*kept, (above, c * atom.radix)]), m)
    return e


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
    """`max(lo, min(e, hi))`; e itself where its range shows that it lies between them anyway."""
    if e.lo >= lo and e.hi <= hi:
        return e
    if lo >= hi or e.hi <= lo:
        return constant(lo)
    if e.lo >= hi:
        return constant(hi)
    lo, hi = max(lo, e.lo), min(hi, e.hi)
    if len(e.items) == 1 and e.items[0][1] == 1 and e.const == 0:
        inner = e.items[0][0]
        if isinstance(inner, Opaque) and inner.operator == "clamp":
            return clamp(inner.exprs[0], lo, hi)
    return of_atom(opaque("clamp", (e,), (lo, hi), lo, hi))


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
    if atom.operator == "value":
        result: Index = on_term(atom)
        return result
    return again(atom, substitute(atom.exprs[0], mapping, on_term))


def again(atom: Opaque, e: Index) -> Index:
    """What an opaque integer is of its one expression (a remainder, a quotient, a clamp, an entry of a table), of e."""
    if atom.operator == "mod":
        return modulo(e, atom.args[0])
    if atom.operator == "div":
        return floor_div(e, atom.args[0])
    if atom.operator == "clamp":
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
