"""Arithmetic of terms: every function here gives a normalised polynomial.

Real arithmetic is assumed. Booleans are 0 and 1, so their powers are idempotent. `exp` turns sums
into products; what cannot be expressed stays an uninterpreted function (`functions`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import gcd, lcm
from typing import Any

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque, Var
from hlo_verify.terms import guards
from hlo_verify.terms.term import (
    ONE,
    ZERO,
    Apply,
    Atom,
    Guard,
    Ix,
    Monomial,
    Number,
    Poly,
    Read,
    Tensor,
    make_apply,
    make_ix,
    make_poly,
    make_read,
    number,
    of_atom,
)

INTEGER_RANGES = {
    "i1": (0, 1),
    **{f"i{n}": (-(1 << n - 1), (1 << n - 1) - 1) for n in (2, 4, 8, 16, 32, 64)},
    **{f"ui{n}": (0, (1 << n) - 1) for n in (2, 4, 8, 16, 32, 64)},
}
"""Least and greatest value of every integer element type."""


def _plain(value: Number) -> Number:
    return value.numerator if isinstance(value, Fraction) and value.denominator == 1 else value


def build(terms: dict[Monomial, Number]) -> Poly:
    """The polynomial of those monomials (normalised on their own), with like terms joined."""
    live = {mono: _plain(c) for mono, c in terms.items() if c}
    if len(live) > 1:
        if sum(1 for mono in live if len(mono) == 1 and isinstance(mono[0][0], Ix) and mono[0][1] == 1) > 1:
            live = _join_indices(live)
        live = guards.merge_steps(live)
    return make_poly(tuple(live.items()))


def _join_indices(terms: dict[Monomial, Number]) -> dict[Monomial, Number]:
    """Linear index values are one index value: `Ix(a) + 2*Ix(b)` is `Ix(a + 2b)`."""
    linear = [
        (mono[0][0], c)
        for mono, c in terms.items()
        if len(mono) == 1 and isinstance(mono[0][0], Ix) and mono[0][1] == 1
    ]
    rest = {m: c for m, c in terms.items() if not (len(m) == 1 and isinstance(m[0][0], Ix) and m[0][1] == 1)}
    denominator = lcm(*(Fraction(c).denominator for _, c in linear))
    parts = [expr.scale(a.index, int(c * denominator)) for a, c in linear if isinstance(a, Ix)]
    joined = _index_monomials(expr.add(*parts), Fraction(1, denominator))
    for mono, c in joined.items():
        rest[mono] = _plain(rest.get(mono, 0) + c)
        if not rest[mono]:
            del rest[mono]
    return rest


def _index_monomials(e: Index, factor: Number) -> dict[Monomial, Number]:
    """`factor * e` as monomials: a constant, terms of `value` items, and one index value."""
    terms: dict[Monomial, Number] = {}
    if e.const:
        terms[()] = _plain(e.const * factor)
    items = []
    for atom, c in e.items:
        if isinstance(atom, Opaque) and atom.kind == "value":
            for mono, k in atom.term.items:
                terms[mono] = _plain(terms.get(mono, 0) + k * c * factor)
        else:
            items.append((atom, c))
    if items:
        g = gcd(*(c for _, c in items)) * (1 if items[0][1] > 0 else -1)
        mono = ((make_ix(expr.build(0, [(a, c // g) for a, c in items])), 1),)
        terms[mono] = _plain(g * factor)
    return {mono: c for mono, c in terms.items() if c}


def of_index(e: Index) -> Poly:
    """An index expression as a number."""
    return build(_index_monomials(e, 1))


def add(*polys: Poly) -> Poly:
    """The sum."""
    live = [p for p in polys if p.items]
    if len(live) <= 1:
        return live[0] if live else ZERO
    terms: dict[Monomial, Number] = {}
    for p in live:
        for mono, c in p.items:
            terms[mono] = terms.get(mono, 0) + c
    return build(terms)


def scale(p: Poly, factor: Number) -> Poly:
    """`factor * p`."""
    if factor == 1:
        return p
    if factor == 0:
        return ZERO
    return make_poly(tuple((mono, _plain(c * factor)) for mono, c in p.items))


def content(p: Poly) -> Number:
    """The greatest positive number that leaves whole coefficients when they are divided by it; p is not zero."""
    parts = [Fraction(c) for _, c in p.items]
    return _plain(Fraction(gcd(*(c.numerator for c in parts)), lcm(*(c.denominator for c in parts))))


def subtract(a: Poly, b: Poly) -> Poly:
    """`a - b`."""
    return add(a, scale(b, -1)) if a is not b else ZERO


def multiply(a: Poly, b: Poly) -> Poly:
    """The product, expanded: callers keep it small by naming factors (`definitions.named`)."""
    ka, kb = a.constant, b.constant
    if ka is not None:
        return scale(b, ka)
    if kb is not None:
        return scale(a, kb)
    terms: dict[Monomial, Number] = {}
    for ma, ca in a.items:
        for mb, cb in b.items:
            product = multiply_monomials(ma, mb)
            if product is not None:
                terms[product] = terms.get(product, 0) + ca * cb
    return build(terms)


def power(p: Poly, n: int) -> Poly:
    """`p**n` for n >= 0."""
    result = ONE
    for _ in range(n):
        result = multiply(result, p)
    return result


def multiply_monomials(a: Monomial, b: Monomial) -> Monomial | None:
    """The product of two normalised monomials; None if it is 0."""
    if not a or not b:
        return a or b
    powers: dict[Atom, Number] = dict(a)
    pending: list[Guard] = []
    for atom, p in b:
        if isinstance(atom, Guard):
            pending.append(atom)
        elif atom.boolean:
            powers[atom] = 1
        else:
            powers[atom] = _plain(powers.get(atom, 0) + p)
            if not powers[atom]:
                del powers[atom]
    if pending and not _add_guards(powers, pending):
        return None
    mono = tuple(sorted(powers.items(), key=lambda item: item[0].uid))
    return simplify_under_guards(mono)


def _add_guards(powers: dict[Atom, Number], pending: list[Guard]) -> bool:
    by_form = {atom.form: atom for atom in powers if isinstance(atom, Guard)}
    while pending:
        g = pending.pop()
        old = by_form.pop(g.form, None)
        if old is not None:
            del powers[old]
            joined = guards.intersect(old, g)
            if joined is False:
                return False
            if joined is True:
                continue
            if joined.form is not g.form:
                pending.append(joined)
                continue
            g = joined
        by_form[g.form] = g
        powers[g] = 1
    return True


def simplify_under_guards(mono: Monomial) -> Monomial | None:
    """Remove clamps and remainders that the monomial's own guards make idle."""
    forms = {atom.form: atom for atom, _ in mono if isinstance(atom, Guard)}
    if not forms:
        return mono
    if len(forms) > 1:
        implied = _implied_guard(list(forms.values()))
        if implied is not None:
            return simplify_under_guards(tuple(item for item in mono if item[0] is not implied))
    result: dict[Atom, Number] = {}
    changed = False
    for atom, p in mono:
        new = atom
        if isinstance(atom, Read) and any(_is_cut(e) for e in atom.indices):
            new = make_read(atom.tensor, tuple(_uncut(e, forms) for e in atom.indices))
            changed = changed or new is not atom
        elif isinstance(atom, Apply) and _has_cut(atom):
            uncut = power_of(_uncut_atom(atom, forms), p)
            if len(uncut.items) == 1 and uncut.items[0] != (((atom, p),), 1) and uncut.items[0][1] == 1:
                rest = tuple(item for item in mono if item[0] is not atom)
                return multiply_monomials(rest, uncut.items[0][0])
        elif isinstance(atom, Guard) and _is_cut(atom.form) and len(forms) > 1:
            form = _uncut(atom.form, {f: g for f, g in forms.items() if g is not atom})
            if form is not atom.form:
                rest = tuple(item for item in mono if item[0] is not atom)
                return _times_guard(rest, guards.interval_atom(form, atom.lo, atom.hi))
        result[new] = result.get(new, 0) + p
    return tuple(sorted(result.items(), key=lambda item: item[0].uid)) if changed else mono


_cut_applications: dict[int, bool] = {}

TABLES: tuple[dict[Any, Any], ...] = (_cut_applications,)
"""Everything remembered here; see `memory`."""


def _has_cut(atom: Apply) -> bool:
    """Whether a function's arguments read at clamped or divided indices."""
    found = _cut_applications.get(atom.uid)
    if found is None:
        inner = [a for arg in atom.args for mono, _ in arg.items for a, _ in mono]
        found = any(
            (isinstance(a, Read) and any(_is_cut(e) for e in a.indices)) or (isinstance(a, Apply) and _has_cut(a))
            for a in inner
        )
        _cut_applications[atom.uid] = found
    return found


def _uncut_atom(atom: Atom, forms: Mapping[Index, Guard]) -> Poly:
    """The atom with every clamp or remainder removed that the guards make idle, in arguments too."""
    from hlo_verify.terms.functions import apply  # the laws themselves use this module

    if isinstance(atom, Read):
        return read(atom.tensor, [_uncut(e, forms) for e in atom.indices])
    if not isinstance(atom, Apply) or not _has_cut(atom):
        return of_atom(atom)
    args = []
    for arg in atom.args:
        total = ZERO
        for mono, c in arg.items:
            product: Poly = number(c)
            for a, n in mono:
                product = multiply(product, power_of(_uncut_atom(a, forms), n))
            total = add(total, product)
        args.append(total)
    return apply(atom.function, tuple(args))


def _implied_guard(held: list[Guard]) -> Guard | None:
    """A guard that another one implies."""
    for other in held:
        for guard in held:
            if guard is other or guard.free.isdisjoint(other.free):
                continue
            for sign in (1, -1):  # guard.form = sign * other.form + rest
                rest = expr.add(guard.form, expr.scale(other.form, -sign))
                least, most = (other.lo, other.hi) if sign == 1 else (other.hi, other.lo)
                above = guard.lo is None or (least is not None and rest.lo + sign * least >= guard.lo)
                if above and (guard.hi is None or (most is not None and rest.hi + sign * most <= guard.hi)):
                    return guard
    return None


def _times_guard(mono: Monomial, guard: Guard | bool) -> Monomial | None:
    if isinstance(guard, bool):
        return simplify_under_guards(mono) if guard else None
    return multiply_monomials(mono, ((guard, 1),))


def _is_cut(e: Index) -> bool:
    return any(isinstance(a, Opaque) and (a.kind in ("clamp", "mod", "div") or _is_sum(a)) for a, _ in e.items)


def _is_sum(atom: Opaque) -> bool:
    return atom.kind == "value" and len(atom.term.items) > 1


def split_affine(p: Poly) -> tuple[Index, Poly]:
    """The affine part of an integer term, and the rest."""
    affine: dict[Monomial, Number] = {}
    other: dict[Monomial, Number] = {}
    for mono, c in p.items:
        plain = not mono or (len(mono) == 1 and isinstance(mono[0][0], Ix) and mono[0][1] == 1)
        (affine if plain and isinstance(c, int) else other)[mono] = c
    return as_index(build(affine), -expr.UNBOUNDED, expr.UNBOUNDED), build(other)


def split_value(atom: Opaque) -> tuple[Index, Index] | None:
    """The machine value of `t + e` as t and the affine e; None where the term has no such parts."""
    if not _is_sum(atom):
        return None
    e, rest = split_affine(atom.term)
    if rest is atom.term or not rest.items:
        return None
    return as_index(rest, atom.lo, atom.hi), e


def _uncut(e: Index, forms: Mapping[Index, Guard]) -> Index:
    """e with every clamp or remainder replaced by its argument where a guard's interval allows it."""
    parts = [expr.constant(e.const)]
    for atom, c in e.items:
        new = expr.of_atom(atom)
        if isinstance(atom, Opaque) and _is_sum(atom):
            parts_of = split_value(atom)
            if parts_of is not None:
                exact = expr.add(*parts_of)
                lo, hi = _range_under(exact, forms)
                new = exact if atom.lo <= lo and hi <= atom.hi else new
        elif isinstance(atom, Opaque) and atom.kind in ("clamp", "mod", "div"):
            inner = _uncut(atom.exprs[0], forms)
            if atom.kind == "clamp":
                lo, hi = _range_under(inner, forms)
                fits = lo >= atom.args[0] and hi <= atom.args[1]
                new = inner if fits else expr.clamp(inner, *atom.args)
            else:
                m = atom.args[0]
                high, low = expr.high_and_low(inner, m)
                lo, hi = _range_under(low, forms)
                if lo // m == hi // m:
                    q = lo // m
                    new = expr.shift(high, q) if atom.kind == "div" else expr.shift(low, -q * m)
        parts.append(expr.scale(new, c))
    return expr.add(*parts)


def _range_under(e: Index, forms: Mapping[Index, Guard]) -> tuple[int, int]:
    lo, hi = e.lo, e.hi
    base = expr.shift(e, -e.const)
    for sign, form in ((1, base), (-1, expr.scale(base, -1))):
        g = forms.get(form)
        if g is not None:
            glo, ghi = (g.lo, g.hi) if sign == 1 else (_negate(g.hi), _negate(g.lo))
            lo = max(lo, glo + e.const) if glo is not None else lo
            hi = min(hi, ghi + e.const) if ghi is not None else hi
    return lo, hi


def _negate(x: int | None) -> int | None:
    return None if x is None else -x


def logical_not(p: Poly) -> Poly:
    """`1 - p` for a boolean; the complement of a guard is a sum of guards."""
    if len(p.items) == 1 and p.items[0][1] == 1 and all(isinstance(a, Guard) for a, _ in p.items[0][0]):
        # not (a and b) = not a, or a and not b
        result, held = ZERO, ONE
        for atom, _ in p.items[0][0]:
            assert isinstance(atom, Guard)
            outside = add(*(guards.interval(atom.form, lo, hi) for lo, hi in guards.complement(atom)))
            result = add(result, multiply(held, outside))
            held = multiply(held, of_atom(atom))
        return result
    return subtract(ONE, p)


def select(condition: Poly, a: Poly, b: Poly) -> Poly:
    """`condition ? a : b`."""
    if a is b or condition is ONE:
        return a
    if condition is ZERO:
        return b
    return add(multiply(condition, a), multiply(logical_not(condition), b))


def as_index(p: Poly, lo: int, hi: int) -> Index:
    """The integer term p as an index expression, given that its machine value lies in `[lo, hi]`.

    Exact where p's range as an integer expression lies in that interval too (nothing wraps);
    otherwise the whole term is one opaque value of that interval.
    """
    whole = p.constant
    if isinstance(whole, int):
        return expr.constant((whole - lo) % (hi - lo + 1) + lo)
    const = 0
    items: list[tuple[expr.Atom, int]] = []
    exact = True
    for mono, c in p.items:
        if not isinstance(c, int):
            exact = False
            break
        if not mono:
            const += c
        elif len(mono) == 1 and isinstance(mono[0][0], Ix) and mono[0][1] == 1:
            index = mono[0][0].index
            items.extend((a, k * c) for a, k in index.items)
        else:
            items.append((_value(make_poly(((mono, 1),)), lo, hi), c))
    if exact:
        e = expr.build(const, items)
        if lo <= e.lo and e.hi <= hi:
            return e
    return expr.of_atom(expr.opaque("value", (), (), lo, hi, p))


def _value(p: Poly, lo: int, hi: int) -> Opaque:
    atom = p.atom
    if p.items and all(a.boolean for a, _ in p.items[0][0]):
        lo, hi = 0, 1
    elif isinstance(atom, Read) and atom.tensor.dtype in INTEGER_RANGES:
        least, greatest = INTEGER_RANGES[atom.tensor.dtype]
        lo, hi = (least, greatest) if least >= lo and greatest <= hi else (lo, hi)
    return expr.opaque("value", (), (), lo, hi, p)


def read(source: Tensor, indices: Sequence[Index]) -> Poly:
    """`source[indices]`; a read of a constant table at constant indices is its value."""
    return of_atom(make_read(source, tuple(indices)))


def linear(p: Poly) -> tuple[Number, list[tuple[Atom, Number]]] | None:
    """The constant and the coefficients of a polynomial of degree one, else None."""
    const: Number = 0
    items = []
    for mono, c in p.items:
        if not mono:
            const = c
        elif len(mono) == 1 and mono[0][1] == 1:
            items.append((mono[0][0], c))
        else:
            return None
    return const, items


class Substitution:
    """Replaces variables by index expressions, each shared subterm once."""

    def __init__(self, mapping: Mapping[Var, Index]) -> None:
        self.mapping = mapping
        self._untouched = mapping.keys().isdisjoint
        self._memo: dict[int, Poly] = {}

    def index(self, e: Index) -> Index:
        """The expression with variables replaced."""
        return expr.substitute(e, self.mapping, self._value)

    def _value(self, atom: Opaque) -> Index:
        return as_index(self.poly(atom.term), atom.lo, atom.hi)

    def poly(self, p: Poly) -> Poly:
        """The polynomial with variables replaced, normalised again."""
        if self._untouched(p.free):
            return p
        found = self._memo.get(p.uid)
        if found is not None:
            return found
        terms: dict[Monomial, Number] = {}
        for mono, c in p.items:
            product = self._monomial(mono)
            for new, k in product.items:
                terms[new] = terms.get(new, 0) + k * c
        result = build(terms)
        self._memo[p.uid] = result
        return result

    def _monomial(self, mono: Monomial) -> Poly:
        kept: list[tuple[Atom, Number]] = []
        product = ONE
        for atom, n in mono:
            if self._untouched(atom.free):
                kept.append((atom, n))
                continue
            product = multiply(product, power_of(self.atom(atom), n))
            if product is ZERO:
                return ZERO
        if kept:
            product = multiply(make_poly(((tuple(kept), 1),)), product)
        return product

    def atom(self, atom: Atom) -> Poly:
        """The atom with variables replaced, as a polynomial."""
        found = self._memo.get(atom.uid)
        if found is None:
            if isinstance(atom, Read):
                found = read(atom.tensor, [self.index(e) for e in atom.indices])
            elif isinstance(atom, Ix):
                found = of_index(self.index(atom.index))
            elif isinstance(atom, Guard):
                form, lo, hi = guards.on_whole_variable(atom)
                found = guards.interval(self.index(form), lo, hi)
            else:
                found = self._apply(atom)
            self._memo[atom.uid] = found
        return found

    def _apply(self, atom: Apply) -> Poly:
        from hlo_verify.terms.functions import apply  # the laws themselves use this module

        return apply(atom.function, tuple(self.poly(a) for a in atom.args))


def power_of(p: Poly, n: Number) -> Poly:
    """`p**n`; for n that is no natural number, of a product of exponentials (piece by piece, if p is a step function).

    Of anything else such a power is known by its name alone: `1/exp(-infinity)` is no number, and equal to nothing.
    """
    from hlo_verify.terms.functions import steps  # the laws themselves use this module

    if isinstance(n, int) and n >= 0:
        return power(p, n)
    if len(p.items) == 1 and p.items[0][1] == 1:
        mono = p.items[0][0]
        if all(isinstance(a, Apply) and a.function == "exponential" for a, _ in mono):
            return make_poly(((tuple((a, _plain(k * n)) for a, k in mono), 1),))
    pieces = steps(p)
    if pieces:
        return add(*(multiply(on, power_of(piece, n)) for on, piece in pieces))
    return of_atom(make_apply("power", (p, number(n))))


def substitute(p: Poly, mapping: Mapping[Var, Index]) -> Poly:
    """p with variables replaced."""
    return Substitution(mapping).poly(p)
