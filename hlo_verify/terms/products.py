"""Products and powers of terms: guards intersect, and make clamps and remainders beside them idle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import comb
from typing import Any

from hlo_verify.index.expr import Index
from hlo_verify.limits import allows, limit_of
from hlo_verify.memory import once_a_session
from hlo_verify.program.element_types import INTEGER_RANGES, is_float
from hlo_verify.terms import averages, guards, half_lines, no_number
from hlo_verify.terms import powers as powers_of
from hlo_verify.terms.addition import build, either, longest, plain, scale
from hlo_verify.terms.conditions import by_numbers, numbers_of
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.functions import EXPONENTIAL, MULTIPLY, POWER, SQRT
from hlo_verify.terms.idle import is_limited, needless, unlimited
from hlo_verify.terms.losses import checked, is_one_product
from hlo_verify.terms.steps import steps
from hlo_verify.terms.term import (
    ONE,
    ZERO,
    Apply,
    Atom,
    Guard,
    Monomial,
    Number,
    Poly,
    Read,
    Tensor,
    make_apply,
    make_poly,
    make_read,
    number,
    of_atom,
)
from hlo_verify.terms.used import used


def multiply(a: Poly, b: Poly) -> Poly:
    """The product, expanded: callers keep it small by naming factors (`definitions.named`).

    A number, and a factor that is made of conditions alone, selects: where it is 0, the other one is not computed.
    """
    return expanded(a, b) if not (a.doubt or b.doubt) or is_condition(a) or is_condition(b) else times(a, b)


def times(a: Poly, b: Poly) -> Poly:
    """The product of two numbers that a program multiplies: 0 times what may be no number is not 0.

    An infinity times a sum is not the sum of the products, and is known by its factors alone.
    """
    if not (a.doubt or b.doubt):
        return expanded(a, b)
    without = no_number.multiplied(a, b, times) if (a.doubt | b.doubt) & INFINITE else None
    if without is not None:
        return without
    if (a.doubt | b.doubt) & INFINITE and not distributes(a, b):
        from hlo_verify.terms.laws import apply  # the laws themselves use this module

        return apply(MULTIPLY, (a, b))
    return no_number.once(checked(expanded(a, b), a, b))


def distributes(a: Poly, b: Poly) -> bool:
    """Whether what may be infinite is multiplied by one product at a time."""
    return (not a.doubt & INFINITE or is_one_product(b)) and (not b.doubt & INFINITE or is_one_product(a))


def product_with(mono: Monomial, image: Callable[[Any], Poly | None]) -> Poly:
    """A product with some of its atoms replaced (None stays): its conditions select what its other factors are."""
    conditions = _image(mono, image, True)
    if conditions is ZERO:
        return ZERO
    return expanded(conditions, _image(mono, image, False))


def _image(mono: Monomial, image: Callable[[Any], Poly | None], conditions: bool) -> Poly:
    kept: list[tuple[Atom, Number]] = []
    result = ONE
    for atom, n in mono:
        if atom.boolean is not conditions:
            continue
        new = image(atom)
        if new is None:
            kept.append((atom, n))
        elif conditions:
            result = expanded(result, new)
            if result is ZERO:
                return ZERO
        else:
            new = power_of(new, n)
            result = new if result is ONE else times(result, new)
    if not kept:
        return result
    own = make_poly(((tuple(kept), 1),))
    return own if result is ONE else expanded(own, result) if conditions else times(own, result)


def mapped(p: Poly, image: Callable[[Monomial], Poly]) -> Poly:
    """A term with its products replaced, each given as its conditions and as its numbers.

    What its conditions leave of a number is one selection, before and after: `x - c*x`, which is `[not c]*x`, is not
    the sum of two terms that both compute x. Only numbers that become the same are added up.
    """
    parts = []
    for numbers, held_by in by_numbers(p).items():
        where = add(*(scale(image(held), c) for held, c in held_by.items()))
        if where.items:
            parts.append(expanded(where, image(numbers)))
    return total(*parts) if no_number.occurs_in(p) else add(*parts)


def with_atoms(p: Poly, image: Callable[[Any], Poly | None]) -> Poly:
    """A term with some of its atoms replaced (None stays)."""
    return mapped(p, lambda mono: product_with(mono, image))


def is_condition(p: Poly) -> bool:
    """Whether a term is made of nothing but guards and truth values."""
    return not p.doubt and all(atom.boolean for mono, _ in p.items for atom, _ in mono)


def expanded(a: Poly, b: Poly) -> Poly:
    """The product of two polynomials, whatever vanishes in it; of two with numbers that are too long, by its name."""
    if a is ONE or b is ONE:
        return b if a is ONE else a
    if not _are_short(a, b):
        return of_atom(make_apply(MULTIPLY, (a, b) if a.uid < b.uid else (b, a)))
    ka, kb = a.constant, b.constant
    if ka is not None:
        return scale(b, ka)
    if kb is not None:
        return scale(a, kb)
    cancelled = _cancelled(a, b) or _cancelled(b, a)
    if cancelled is not None:
        return cancelled
    terms: dict[Monomial, Number] = {}
    for ma, ca in a.items:
        for mb, cb in b.items:
            found = multiply_monomials(ma, mb)
            if found is None:
                continue
            product, factor = found
            squared = powers_of.squared_roots(product)
            if squared is None:
                terms[product] = terms.get(product, 0) + ca * cb * factor
                continue
            rest, base, n = squared
            for mono, c in expanded(make_poly(((rest, 1),)), power_of(base, n)).items:
                terms[mono] = terms.get(mono, 0) + ca * cb * c * factor
    return build(terms)


def _are_short(a: Poly, b: Poly) -> bool:
    """Whether one of two factors has numbers of a length that may be multiplied."""
    return longest(a) <= limit_of("number_bits") or allows("number_bits", longest(b))


def _cancelled(a: Poly, b: Poly) -> Poly | None:
    """The product where a divides by a root, or all, of a positive sum that b is a multiple of; None where it does not:
    `c * inverse(x*x + 1)` times `2*x*x + 2` is `2*c`."""
    if len(b.items) < 2:
        return None
    for atom, n in a.items[0][0]:
        if not isinstance(atom, Apply) or atom.power is None or atom.power[1] > 0 or n != 1:
            continue
        base, exponent = atom.power
        if len(base.items) != len(b.items) or any((atom, 1) not in mono for mono, _ in a.items):
            continue
        beside = powers_of.multiple(b, base)
        if beside is not None:
            used("powers of a positive base")
            rest = make_poly(tuple((tuple(item for item in mono if item[0] is not atom), c) for mono, c in a.items))
            root = of_atom(make_apply(SQRT, (base,))) if exponent == -powers_of.HALF else ONE
            return expanded(expanded(rest, beside), root)
    return None


def add(*polys: Poly) -> Poly:
    """The sum of numbers that a program adds."""
    return total(*(no_number.beside(polys) if any(p.doubt & INFINITE for p in polys) else polys))


def total(*polys: Poly) -> Poly:
    """The sum of what is computed."""
    live = [p for p in polys if p.items]
    if len(live) <= 1:
        return live[0] if live else ZERO
    result = either(*live)
    return no_number.once(checked(result, *live, added=True) if _may_cancel(live) else result)


def _may_cancel(polys: Sequence[Poly]) -> bool:
    """Whether two terms have a product in common that may be no number, under whatever conditions."""
    seen: set[Monomial] = set()
    for p in polys:
        if p.doubt:
            own = {numbers_of(mono) for mono, _ in p.items}
            if any(atom.doubt for mono in own & seen for atom, _ in mono):
                return True
            seen |= own
    return False


def subtract(a: Poly, b: Poly) -> Poly:
    """`a - b`."""
    return add(a, scale(b, -1)) if a is not b or a.doubt else ZERO


def _is_multiplied_out(p: Poly, n: int) -> bool:
    """Whether `p**n` is written as a sum of products."""
    if n < 0:
        return False
    count = len(p.items)
    return count <= 1 or (allows("expanded_power", n) and allows("expanded_products", comb(n + count - 1, n)))


def power(p: Poly, n: int) -> Poly:
    """`p**n` for n >= 0."""
    result, square = ONE, p
    while n:
        if n % 2:
            result = multiply(result, square)
        n //= 2
        square = multiply(square, square) if n else square
    return result


def multiply_monomials(a: Monomial, b: Monomial) -> tuple[Monomial, Number] | None:
    """The product of two normalised monomials, and the number that it is multiplied by; None if it is 0."""
    if not a or not b:
        return a or b, 1
    powers: dict[Atom, Number] = dict(a)
    pending: list[Guard] = []
    for atom, p in b:
        if isinstance(atom, Guard):
            pending.append(atom)
        elif atom.boolean:
            powers[atom] = 1
        else:
            powers[atom] = plain(powers.get(atom, 0) + p)
            if not powers[atom]:
                del powers[atom]
    if pending and not _add_guards(powers, pending):
        return None
    related = [a for a in powers if a.__class__ is Apply and (a.power is not None or a.half is not None)]
    factor: Number = 1
    if related:
        factor = powers_of.joined(powers, related)
        half_lines.joined(powers, related)
        averages.joined(powers, related)
    mono = simplify_under_guards(tuple(sorted(powers.items(), key=lambda item: item[0].uid)))
    return None if mono is None else (mono, factor)


def _add_guards(powers: dict[Atom, Number], pending: list[Guard]) -> bool:
    by_form = {guards.about(atom): atom for atom in powers if isinstance(atom, Guard)}
    while pending:
        g = pending.pop()
        form = guards.about(g)
        old = by_form.pop(form, None)
        if old is not None:
            del powers[old]
            used("conditions on one expression")
            joined = guards.intersect(old, g)
            if joined is False:
                return False
            if joined is True:
                continue
            if guards.about(joined) is not form:
                pending.append(joined)
                continue
            g = joined
        by_form[form] = g
        powers[g] = 1
    return True


def _times_guard(mono: Monomial, guard: Guard | bool) -> Monomial | None:
    if isinstance(guard, bool):
        return simplify_under_guards(mono) if guard else None
    found = multiply_monomials(mono, ((guard, 1),))
    return None if found is None else found[0]  # no power is joined with a condition


def simplify_under_guards(mono: Monomial) -> Monomial | None:
    """Remove clamps and remainders that the monomial's own guards make idle."""
    forms = {atom.form: atom for atom, _ in mono if isinstance(atom, Guard)}
    if not forms:
        return mono
    if len(forms) > 1:
        idle = needless(list(forms.values()))
        if idle is not None:
            used("implied condition")
        if idle is False:
            return None
        if idle is not None:
            return simplify_under_guards(guards.without(mono, idle))
    result: dict[Atom, Number] = {}
    changed = False
    for atom, p in mono:
        new = atom
        if isinstance(atom, Read) and any(is_limited(e) for e in atom.indices):
            new = make_read(atom.tensor, tuple(unlimited(e, forms) for e in atom.indices))
            changed = changed or new is not atom
        elif isinstance(atom, Apply) and _is_of_limited(atom):
            held = frozenset(forms.values())
            freed = power_of(_uncut(atom, held), p)
            is_new = len(freed.items) == 1 and freed.items[0] != (((atom, p),), 1) and freed.items[0][1] == 1
            # Building a function anew may order its arguments otherwise, and so for ever: the guards must matter.
            if is_new and freed is not power_of(_uncut(atom, frozenset()), p):
                rest = tuple(item for item in mono if item[0] is not atom)
                found = multiply_monomials(rest, freed.items[0][0])
                if found is None or found[1] == 1:
                    used("idle clamp")
                    return None if found is None else found[0]
        elif isinstance(atom, Guard) and is_limited(atom.form) and len(forms) > 1:
            form = unlimited(atom.form, {f: g for f, g in forms.items() if g is not atom})
            if form is not atom.form and form is not unlimited(atom.form, {}):  # likewise: the other guards must matter
                rest = tuple(item for item in mono if item[0] is not atom)
                used("idle clamp")
                return _times_guard(rest, guards.interval_atom(form, atom.lo, atom.hi))
        result[new] = result.get(new, 0) + p
    if not changed:
        return mono
    used("idle clamp")
    return tuple(sorted(result.items(), key=lambda item: item[0].uid))


@once_a_session
def _is_of_limited(atom: Apply) -> bool:
    """Whether a function's arguments read at clamped or divided indices."""
    inner = (a for arg in atom.args for mono, _ in arg.items for a, _ in mono)
    return any(
        (isinstance(a, Read) and any(is_limited(e) for e in a.indices)) or (isinstance(a, Apply) and _is_of_limited(a))
        for a in inner
    )


def _uncut_atom(atom: Atom, held: frozenset[Guard]) -> Poly:
    """The atom with every clamp or remainder removed that the guards make idle, in arguments too."""
    if isinstance(atom, Read):
        forms = {guard.form: guard for guard in held}
        return read(atom.tensor, [unlimited(e, forms) for e in atom.indices])
    return _uncut(atom, held) if isinstance(atom, Apply) and _is_of_limited(atom) else of_atom(atom)


@once_a_session
def _uncut(atom: Apply, held: frozenset[Guard]) -> Poly:
    """That of a function, which many products under the same guards have, and functions within one another share."""
    from hlo_verify.terms.laws import apply  # the laws themselves use this module

    args = (with_atoms(arg, lambda a: _uncut_atom(a, held)) for arg in atom.args)
    return apply(atom.function, tuple(args))


def read(source: Tensor, indices: Sequence[Index]) -> Poly:
    """`source[indices]`; a read of a constant at numbers is the number there."""
    if source.values is not None and not any(e.items for e in indices):
        known = _element(source, tuple(e.const for e in indices))
        if known is not None:
            return known
    return of_atom(make_read(source, tuple(indices)))


def _element(source: Tensor, at: tuple[int, ...]) -> Poly | None:
    """An element of a constant; None of a complex one, and outside of the constant."""
    is_integer = source.dtype == "i1" or source.dtype in INTEGER_RANGES
    if not (is_integer or is_float(source.dtype)) or any(
        n not in range(k) for n, k in zip(at, source.shape, strict=True)
    ):
        return None
    value = source.values[at]
    return number(int(value)) if is_integer else number(Fraction(float(value)))


def power_of(p: Poly, n: Number) -> Poly:
    """`p**n`; for n that is no natural number, of a product of exponentials and a number (piece by piece, if p is a
    step function): `(exp(a) / 10**8)**(-1/4)` is `100 * exp(a)**(-1/4)`.

    Of anything else such a power is known by its name alone: `1/exp(-infinity)` is no number, and equal to nothing.
    """
    if isinstance(n, int) and _is_multiplied_out(p, n):
        return power(p, n)
    if isinstance(n, int) and p.constant and allows("expanded_power", abs(n)):
        return number(Fraction(p.constant) ** n)
    if len(p.items) == 1 and all(isinstance(a, Apply) and a.function == EXPONENTIAL for a, _ in p.items[0][0]):
        ((mono, c),) = p.items
        factor = powers_of.of_number(c, n)
        if factor is not None:
            return make_poly(((tuple((a, plain(k * n)) for a, k in mono), plain(factor)),))
    pieces = steps(p)
    if pieces:
        return add(*(multiply(on, power_of(piece, n)) for on, piece in pieces))
    return of_atom(make_apply(POWER, (p, number(n))))
