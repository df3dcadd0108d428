"""Functions of terms: the laws that hold over the reals, one small function each, in one table.

What has no law is uninterpreted. `apply` is the only way to build an application, so a law always holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque, Var
from hlo_verify.limits import allows, limit_of
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms.addition import build, of_index, plain, scale
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.guards import interval, order
from hlo_verify.terms.losses import ZERO_TIMES, checked, zero_times
from hlo_verify.terms.machine import as_index
from hlo_verify.terms.parity import EVEN, ODD, direction
from hlo_verify.terms.products import MULTIPLY, add, distributes, expanded, multiply, subtract, times
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
    commutes,
    make_apply,
    make_poly,
    number,
    of_atom,
    value_of,
)

Law = Callable[[tuple[Poly, ...]], Poly | None]


def apply(function: str, args: tuple[Poly, ...]) -> Poly:
    """`function(args)`, simplified by its law if it has one.

    A function of a step function is the step function of its values: `f([c]*a + [not c]*b)` is
    `[c]*f(a) + [not c]*f(b)`.
    """
    for n, arg in enumerate(args):
        pieces = steps(arg)
        if pieces:
            return add(*(multiply(on, apply(function, (*args[:n], p, *args[n + 1 :]))) for on, p in pieces))
    if commutes(function):
        args = tuple(sorted(args, key=lambda p: p.uid))
    law = LAWS.get(function)
    if law is not None:
        result = law(args)
        if result is not None:
            return result
    return of_atom(make_apply(function, args))


def steps(p: Poly, bound: Sequence[Var] = ()) -> list[tuple[Poly, Poly]]:
    """A guarded term as disjoint, exhaustive guards on one form, each with the term where it holds.

    The form is free of the bound variables; empty if no guard has such a form. Every piece has guards on fewer forms
    than the term, so that taking pieces of pieces ends: merging what is left of a sum can bring back a form.
    """
    held = (a for mono, _ in p.items for a, _ in mono if isinstance(a, Guard))
    guard = min((g for g in held if g.free.isdisjoint(bound)), key=order, default=None)
    count = len(_forms(p))
    if guard is None or not allows("step_forms", count) or len(p.items) > 3 * limit_of("step_pieces"):
        return []
    form = guard.form
    cuts: set[int] = set()
    parts: list[tuple[int | None, int | None, Monomial, Number]] = []
    for mono, c in p.items:
        own = next((a for a, _ in mono if isinstance(a, Guard) and a.form is form), None)
        lo, hi = (own.lo, own.hi) if own is not None else (None, None)
        cuts.update(x for x in (lo, None if hi is None else hi + 1) if x is not None)
        parts.append((lo, hi, tuple(item for item in mono if item[0] is not own), c))
    if not allows("step_pieces", len(cuts) + 1):
        return []
    edges = [None, *sorted(cuts), None]
    pieces = []
    for start, end in pairwise(edges):
        last = None if end is None else end - 1
        here: dict[Monomial, Number] = {}
        for lo, hi, mono, c in parts:
            if _covers(lo, hi, start, last):
                here[mono] = here.get(mono, 0) + c
        pieces.append((interval(form, start, last), build(here)))
    if any(len(_forms(term)) >= count for _, term in pieces):
        return []
    return [(on, term) for on, term in pieces if on.items]


def _forms(p: Poly) -> set[Index]:
    return {a.form for mono, _ in p.items for a, _ in mono if isinstance(a, Guard)}


def _covers(lo: int | None, hi: int | None, start: int | None, last: int | None) -> bool:
    """Whether an interval holds all of a piece between two neighbouring cuts."""
    above = lo is None or (start is not None and start >= lo)
    return above and (hi is None or (last is not None and last <= hi))


def _infinite(p: Poly) -> Number:
    """The coefficient of infinity where it is one of the addends and occurs in no other; else 0.

    As a factor, exp of it would cancel against its inverse: `exp(x + inf) / exp(y + inf)` is no number.
    """
    found = [(mono, c) for mono, c in p.items if any(_is_infinity(atom) for atom, _ in mono)]
    return found[0][1] if len(found) == 1 and len(found[0][0]) == 1 and found[0][0][0][1] == 1 else 0


def _is_infinity(atom: Atom) -> bool:
    return isinstance(atom, Apply) and atom.function == "infinity"


def _exponential(args: tuple[Poly, ...]) -> Poly | None:
    # exp(a + c*b) = exp(a) * exp(b)**c; exp(a - infinity) = 0
    p = args[0]
    if not p.items:
        return ONE
    if _infinite(p) < 0:
        return zero_times(build({mono: c for mono, c in p.items if not any(_is_infinity(atom) for atom, _ in mono)}))
    if p.doubt & INFINITE or _is_selected(p):
        return _exponential_where(p) or of_atom(make_apply(INFINITE_EXPONENTIAL, args))
    if not allows("expanded_terms", len(p.items)):
        return None
    factors: dict[Apply, Number] = {}
    for mono, c in p.items:
        atom = make_apply("exponential", (make_poly(((mono, 1),)),))
        factors[atom] = c
    mono_out: Monomial = tuple(sorted(factors.items(), key=lambda item: item[0].uid))
    return make_poly(((mono_out, 1),))


def _is_selected(p: Poly) -> bool:
    """Whether what may be no number is selected by conditions: its exponential is, but would be no more as a factor."""
    return any(any(a.doubt for a, _ in mono) and any(a.boolean for a, _ in mono) for mono, _ in p.items)


INFINITE_EXPONENTIAL = "exponential:real->real"
"""Of what may be infinite: no factor, which its inverse would cancel."""


def _infinite_exponential(args: tuple[Poly, ...]) -> Poly | None:
    # infinities may have gone when a variable became a number
    p = args[0]
    return None if _infinite(p) >= 0 and (p.doubt & INFINITE or _is_selected(p)) else apply("exponential", args)


def _exponential_where(p: Poly) -> Poly | None:
    """The exponential where a truth value holds that selects what may be no number, and where it does not."""
    truths = {a for mono, _ in p.items if any(atom.doubt for atom, _ in mono) for a, _ in mono if a.boolean}
    if not (truths and allows("step_pieces", len(truths)) and allows("expanded_terms", len(p.items))):
        return None
    truth = min(truths, key=lambda a: a.uid)
    on = of_atom(truth)
    off = build({mono: c for mono, c in p.items if (truth, 1) not in mono})
    holding: dict[Monomial, Number] = {}
    for mono, c in p.items:
        rest = tuple(item for item in mono if item[0] is not truth)
        holding[rest] = holding.get(rest, 0) + c
    return add(
        multiply(on, apply("exponential", (build(holding),))),
        multiply(subtract(ONE, on), apply("exponential", (off,))),
    )


def _inverse(args: tuple[Poly, ...]) -> Poly | None:
    # 1/(c*a*exp(b)) = (1/c) * (1/a) * exp(-b); 1/a stays a function, so 0/0 never cancels
    p = args[0]
    if p.constant is not None:
        return number(Fraction(1) / Fraction(p.constant)) if p.constant else None
    if len(p.items) == 1:
        mono, c = p.items[0]
        product = number(Fraction(1) / Fraction(c))
        for atom, n in mono:
            if isinstance(atom, Apply) and atom.function == "exponential":
                factor: Atom = atom
                n = plain(-Fraction(n))
            else:
                factor = make_apply("inverse", (of_atom(atom),))
            product = multiply(product, make_poly(((((factor, n),), 1),)))
        return product
    common = _common_exponentials(p)
    if common:
        rest = expanded(p, _exp_monomial(common, -1))
        return times(apply("inverse", (rest,)), _exp_monomial(common, -1))
    lead = _leading(p)
    if lead != 1:
        k = Fraction(1) / Fraction(lead)
        return scale(of_atom(make_apply("inverse", (scale(p, k),))), k)
    return None


def _leading(p: Poly) -> Number:
    """The coefficient of the structurally first monomial."""
    from hlo_verify.terms.term import monomial_skey

    return min(p.items, key=lambda item: (monomial_skey(item[0]), tuple(a.uid for a, _ in item[0])))[1]


def _common_exponentials(p: Poly) -> dict[Apply, Number]:
    """Exponentials, with powers, that divide every monomial."""
    common: dict[Apply, Number] | None = None
    for mono, _ in p.items:
        here = {a: n for a, n in mono if isinstance(a, Apply) and a.function == "exponential"}
        common = here if common is None else {a: n for a, n in common.items() if here.get(a) == n}
        if not common:
            return {}
    return common or {}


def _exp_monomial(factors: dict[Apply, Number], sign: int) -> Poly:
    mono = tuple(sorted(((a, plain(n * sign)) for a, n in factors.items()), key=lambda item: item[0].uid))
    return make_poly(((mono, 1),))


def _logarithm(args: tuple[Poly, ...]) -> Poly | None:
    # log(exp(a) * b) = a + log(b)
    p = args[0]
    if p is ONE:
        return ZERO
    if len(p.items) == 1:
        mono, _ = p.items[0]
        common: dict[Apply, Number] = {a: n for a, n in mono if isinstance(a, Apply) and a.function == "exponential"}
    else:
        common = _common_exponentials(p)
    if not common:
        return None
    out = add(*(scale(a.args[0], n) for a, n in common.items()))
    rest = expanded(p, _exp_monomial(common, -1))
    return add(out, apply("log", (rest,)))


def _extremum(function: str) -> Law:
    # associative, commutative, idempotent; constants fold, and bound integers; what never is beyond another is dropped
    def law(args: tuple[Poly, ...]) -> Poly | None:
        flat: dict[int, Poly] = {}
        constants: list[Number] = []
        todo = list(args)
        while todo:
            p = todo.pop()
            atom = p.atom
            if isinstance(atom, Apply) and atom.function == function:
                todo.extend(atom.args)
            elif p.constant is not None:
                constants.append(p.constant)
            elif (parts := _unbounded(function, p)) is not None:
                todo.extend(parts)
            else:
                flat[p.uid] = p
        if constants:
            k = max(constants) if function == "maximum" else min(constants)
            bounded = {p: _bounded(function, p, k) for p in flat.values()}
            terms = [p if integer is None else integer for p, integer in bounded.items()]
            if all(integer is None for integer in bounded.values()):
                terms.append(number(k))
            flat = {p.uid: p for p in terms}
        flat = {p.uid: p for p in _not_exceeded(function, list(flat.values()))}
        neutral = make_apply("infinity", ())
        for p in list(flat.values()):
            if p.items and p.items[0][0] == ((neutral, 1),) and len(p.items) == 1:
                c = p.items[0][1]
                if (c > 0) == (function == "maximum"):
                    return checked(p, *args)
                if len(flat) > 1 and (c < 0) == (function == "maximum"):
                    del flat[p.uid]
        ordered = tuple(sorted(flat.values(), key=lambda p: p.uid))
        return ordered[0] if len(ordered) == 1 else of_atom(make_apply(function, ordered))

    return law


def _not_exceeded(function: str, terms: list[Poly]) -> list[Poly]:
    """The terms without integers that are never beyond another one, whatever their values are."""
    ranges = {p: e for p in terms if (e := _integer(p)) is not None}
    kept = list(terms)
    for p, e in ranges.items():
        others = [ranges[q] for q in kept if q is not p and q in ranges]
        if any(other.lo >= e.hi if function == "maximum" else other.hi <= e.lo for other in others):
            kept.remove(p)
    return kept


def _bounded(function: str, p: Poly, k: Number) -> Poly | None:
    """The extremum of an integer term and a constant; None where p is another term."""
    e = _integer(p)
    if e is None or not isinstance(k, int):
        return None
    return of_index(expr.clamp(e, k, max(k, e.hi)) if function == "maximum" else expr.clamp(e, min(k, e.lo), k))


def _unbounded(function: str, p: Poly) -> tuple[Poly, Poly] | None:
    """What `_bounded` made p of: the constant, and the integer term. Not of a value that may have wrapped: outside of
    an index expression it is a polynomial, which equals it modulo 2^n alone."""
    atom = e.items[0][0] if (e := _integer(p)) is not None and len(e.items) == 1 else None
    if e is None or not isinstance(atom, Opaque) or atom.kind != "clamp" or e is not expr.of_atom(atom):
        return None
    (inner,), (lo, hi) = atom.exprs, atom.args
    if not all(_is_whole(each) for each in _values(inner)):
        return None
    if function == "maximum":
        return (number(lo), of_index(inner)) if hi == inner.hi else None
    return (number(hi), of_index(inner)) if lo == inner.lo else None


def _values(e: Index) -> list[Atom | None]:
    """The integers that an index expression adds up, None for those that are no atom."""
    return [value_of(part).atom for part, _ in e.items if isinstance(part, Opaque) and part.kind == "value"]


def _integer(p: Poly) -> Index | None:
    """A term that is made of whole numbers, as an index expression."""
    plain_ones = all(
        isinstance(c, int) and all(n == 1 and _is_whole(a) for a, n in mono) and not mono[1:] for mono, c in p.items
    )
    return as_index(p, -expr.UNBOUNDED, expr.UNBOUNDED) if plain_ones else None


def _is_whole(atom: Atom | None) -> bool:
    """Whether it is an integer of known range."""
    if isinstance(atom, Read):
        return atom.tensor.dtype in INTEGER_RANGES and not atom.tensor.bodies
    return isinstance(atom, Ix)


def _positive(args: tuple[Poly, ...]) -> Poly | None:
    # [c*a > 0] = [a > 0] for c > 0
    p = args[0]
    if p.constant is not None:
        return ONE if p.constant > 0 else ZERO
    lead = abs(Fraction(_leading(p)))
    return None if lead == 1 else of_atom(make_apply("positive", (scale(p, Fraction(1) / Fraction(lead)),)))


def _zero(args: tuple[Poly, ...]) -> Poly | None:
    # [c*a = 0] = [a = 0]
    p = args[0]
    if p.constant is not None:
        return ONE if p.constant == 0 else ZERO
    lead = _leading(p)
    return None if lead == 1 else of_atom(make_apply("zero", (scale(p, Fraction(1) / Fraction(lead)),)))


def _abs(args: tuple[Poly, ...]) -> Poly | None:
    c = args[0].constant
    return _even("abs:real->real")(args) if c is None else number(abs(Fraction(c)))


def _even(function: str) -> Law:
    # f(-x) = f(x)
    def law(args: tuple[Poly, ...]) -> Poly | None:
        return of_atom(make_apply(function, (scale(args[0], -1),))) if direction(args[0]) < 0 else None

    return law


def _odd(function: str) -> Law:
    # f(-x) = -f(x)
    def law(args: tuple[Poly, ...]) -> Poly | None:
        if args[0] is ZERO:
            return ZERO
        return scale(of_atom(make_apply(function, (scale(args[0], -1),))), -1) if direction(args[0]) < 0 else None

    return law


def _power(args: tuple[Poly, ...]) -> Poly | None:
    # (-x)**n = x**n for even n, -x**n for odd ones
    base, exponent = args[0], args[1].constant
    if not isinstance(exponent, int) or direction(base) >= 0:
        return None
    return scale(of_atom(make_apply("power:real->real", (scale(base, -1), args[1]))), -1 if exponent % 2 else 1)


def _equal(args: tuple[Poly, ...]) -> Poly | None:
    # symmetric; equal terms are equal
    a, b = args
    if a is b:
        return ONE
    if a.constant is not None and b.constant is not None:
        return ZERO
    if a.uid > b.uid:
        return of_atom(make_apply("equal", (b, a)))
    return None


def _less(args: tuple[Poly, ...]) -> Poly | None:
    # a < a is false; constants decide
    a, b = args
    if a is b:
        return ZERO
    if a.constant is not None and b.constant is not None:
        return ONE if a.constant < b.constant else ZERO
    return None


def _square_root(args: tuple[Poly, ...]) -> Poly | None:
    c = args[0].constant
    return number(c) if c in (0, 1) else None


def _wrap(dtype: str) -> Law:
    # the machine value of an index that surely lies in the type's range is the index
    lo, hi = INTEGER_RANGES[dtype]

    def law(args: tuple[Poly, ...]) -> Poly | None:
        e = as_index(args[0], lo, hi)
        return None if any(isinstance(a, Opaque) and a.kind == "value" for a, _ in e.items) else of_index(e)

    return law


LAWS: dict[str, Law] = {
    "exponential": _exponential,
    INFINITE_EXPONENTIAL: _infinite_exponential,
    "inverse": _inverse,
    "log": _logarithm,
    "maximum": _extremum("maximum"),
    "minimum": _extremum("minimum"),
    "positive": _positive,
    "zero": _zero,
    "equal": _equal,
    "less": _less,
    "sqrt": _square_root,
    MULTIPLY: lambda args: times(*args) if distributes(*args) else None,
    ZERO_TIMES: lambda args: zero_times(args[0]),
    **{f"{name}:real->real": _even(f"{name}:real->real") for name in EVEN},
    **{f"{name}:real->real": _odd(f"{name}:real->real") for name in ODD},
    "abs:real->real": _abs,
    "power:real->real": _power,
    **{f"wrap:{dtype}": _wrap(dtype) for dtype in INTEGER_RANGES},
}


def divide(a: Poly, b: Poly) -> Poly:
    """`a / b`."""
    return times(a, apply("inverse", (b,)))


def greater(a: Poly, b: Poly) -> Poly:
    """`[a > b]` over the reals."""
    return apply("positive", (subtract(a, b),))
