"""Integer terms as index expressions: the value that a machine holds, which wraps."""

from __future__ import annotations

from fractions import Fraction

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms import ranges
from hlo_verify.terms.addition import build, difference, of_index
from hlo_verify.terms.functions import Function
from hlo_verify.terms.term import (
    Apply,
    Atom,
    Ix,
    Monomial,
    Number,
    Poly,
    Read,
    Tensor,
    make_apply,
    make_poly,
    of_atom,
    value_of,
)
from hlo_verify.terms.used import used

WRAPPED = "machine integer of a number"
FITS = "machine integer that does not wrap"


def machine_integer(function: Function, args: tuple[Poly, ...]) -> Poly | None:
    """The machine value of an index that surely lies in the type's range is the index."""
    lo, hi = INTEGER_RANGES[function.gives]
    e = as_index(args[0], lo, hi)
    if any(isinstance(a, Opaque) and a.operator == "value" for a, _ in e.items):
        least = least_multiples(args[0], lo, hi)
        return None if least is args[0] else of_atom(make_apply(function, (least,)))
    used(FITS if e.items else WRAPPED)
    return of_index(e)


def as_index(p: Poly, lo: int, hi: int) -> Index:
    """The integer term p as an index expression, given that its machine value lies in `[lo, hi]`.

    Exact where p's range as an integer expression lies in that interval too (nothing wraps);
    otherwise the whole term is one opaque value of that interval.
    """
    whole = p.constant
    if isinstance(whole, int):
        return expr.constant((whole - lo) % (hi - lo + 1) + lo)
    e = _unwrapped(p, lo, hi)
    if e is not None and lo <= e.lo and e.hi <= hi:
        return e
    least = least_multiples(p, lo, hi)
    return expr.of_atom(expr.opaque("value", (), (), lo, hi, p)) if least is p else as_index(least, lo, hi)


def least_multiples(p: Poly, lo: int, hi: int) -> Poly:
    """The polynomial with the smallest factors that differ from its own by multiples of the number of a type's values,
    which are none of its machine value's: `x + 200` of eight bits is `x - 56`, and `255*x` is `-x`.

    A factor counts so only beside what is an integer itself.
    """
    count = hi - lo + 1
    half = count // 2
    if count == 2 or all(-half <= c < half for _, c in p.items):
        return p  # truth values are what they say, and not modulo 2
    if not _is_of_integers(p):
        return p
    return build({mono: (int(c) + half) % count - half for mono, c in p.items})


def _is_of_integers(p: Poly) -> bool:
    return all(isinstance(c, int) and all(_is_whole(a, n) for a, n in mono) for mono, c in p.items)


def _is_whole(atom: Atom, n: Number) -> bool:
    """Whether a power of an atom is surely an integer."""
    if not isinstance(n, int) or n < 1:
        return False
    if isinstance(atom, Apply):
        return atom.boolean or atom.function.gives in INTEGER_RANGES
    return atom.boolean or isinstance(atom, Ix) or (isinstance(atom, Read) and atom.tensor.dtype in INTEGER_RANGES)


def are_congruent(p: Poly, q: Poly, lo: int, hi: int) -> bool:
    """Whether two integer terms have one machine value, in a type of that range."""
    if hi - lo == 1 or not (_is_of_integers(p) and _is_of_integers(q)):
        return p is q
    if not least_multiples(difference(p, q), lo, hi).items:
        return True
    a, b = (_unwrapped(each, *INTEGER_RANGES["i64"]) for each in (p, q))  # elements of wider types as they are
    count = hi - lo + 1
    return a is not None and b is not None and expr.modulo(a, count) is expr.modulo(b, count)


def remainder(p: Poly, m: int, lo: int, hi: int) -> Index:
    """The remainder, rounding down, of a machine value: where m divides the number of the type's values, that of the
    integer itself, which may wrap."""
    e = _unwrapped(p, lo, hi) if (hi - lo + 1) % m == 0 else None
    return expr.modulo(as_index(p, lo, hi) if e is None else e, m)


def zero_together(p: Poly, lo: int, hi: int) -> Index | None:
    """An index expression that is 0 where, and only where, the machine value of p is, in a type of that range; None if
    it is not seen.

    It differs from p by a multiple of the number of the type's values, and its size is less than that number: `x - 3`
    may wrap, but where it comes out as 5, x is 8.
    """
    e = _unwrapped(p, lo, hi)
    count = hi - lo + 1
    return e if e is not None and -count < e.lo and e.hi < count else None


def _unwrapped(p: Poly, lo: int, hi: int) -> Index | None:
    """An index expression that differs from p by a multiple of the number of values in `[lo, hi]`."""
    const = 0
    items: list[tuple[expr.Atom, int]] = []
    for mono, c in p.items:
        multiple = _multiple(mono, c, lo, hi)
        if multiple is not None:
            items.append(multiple)
            continue
        if not isinstance(c, int):
            return None
        if not mono:
            const += c
        elif len(mono) == 1 and isinstance(mono[0][0], Ix) and mono[0][1] == 1:
            index = mono[0][0].index
            items.extend((a, k * c) for a, k in index.items)
        else:
            items.append((_value(make_poly(((mono, 1),)), lo, hi), c))
    return expr.build(const, items)


def _multiple(mono: Monomial, c: Number, lo: int, hi: int) -> tuple[Opaque, int] | None:
    """A multiple of an element that is itself one of some integer, as a multiple of the quotient."""
    if len(mono) != 1 or mono[0][1] != 1 or not isinstance(mono[0][0], Read):
        return None
    source = mono[0][0].tensor
    if source.assumed is None or source.assumed.multiple == 1 or source.dtype not in INTEGER_RANGES:
        return None
    m, (least, greatest) = source.assumed.multiple, ranges.of_elements(source) or (lo, hi)
    whole = c * m
    if not lo <= least <= greatest <= hi or whole != int(whole):
        return None
    quotient = make_poly(((mono, Fraction(1, m)),))
    return expr.opaque("value", (), (), -(-least // m), greatest // m, quotient), int(whole)


def _value(p: Poly, lo: int, hi: int) -> Opaque:
    atom = p.atom
    if p.items and all(a.boolean for a, _ in p.items[0][0]):
        lo, hi = 0, 1
    elif isinstance(atom, Read) and atom.tensor.dtype in INTEGER_RANGES:
        least, greatest = _range(atom.tensor)
        lo, hi = (least, greatest) if least >= lo and greatest <= hi else (lo, hi)
    elif isinstance(atom, Read) and atom.tensor.kind == "sum":
        from hlo_verify.terms.counts import of_elements, range_of_count  # which are built on machine integers

        p = of_elements(atom)
        found = range_of_count(atom)
        lo, hi = found if found is not None and lo <= found[0] and found[1] <= hi else (lo, hi)
    elif isinstance(atom, Apply):
        from hlo_verify.terms.whole import range_of_whole

        found = range_of_whole(atom)
        lo, hi = found if found is not None and lo <= found[0] and found[1] <= hi else (lo, hi)
    return expr.opaque("value", (), (), lo, hi, p)


def own_value(part: expr.Atom | None) -> Read | None:
    """The element that an opaque integer is the value of, where nothing wraps: of a type that holds all it may be."""
    atom = value_of(part).atom if isinstance(part, Opaque) and part.operator == "value" else None
    if not isinstance(part, Opaque) or not isinstance(atom, Read) or atom.tensor.dtype not in INTEGER_RANGES:
        return None
    least, greatest = _range(atom.tensor)
    return atom if part.lo <= least and greatest <= part.hi else None


def _range(source: Tensor) -> tuple[int, int]:
    """The least and the greatest integer that an element may be: of the index of a best element, one of those that are
    chosen from, and of what is sorted one of these."""
    lo, hi = INTEGER_RANGES[source.dtype]
    if source.kind == "sort":
        element = as_index(source.bodies[source.attributes[2]], lo, hi)
        return element.lo, element.hi
    if source.kind not in ("argmax", "argmin"):
        return ranges.of_elements(source) or (lo, hi)
    _, index, _, initial = (as_index(body, lo, hi) for body in source.bodies)
    return min(index.lo, initial.lo), max(index.hi, initial.hi)


def split_affine(p: Poly) -> tuple[Index, Poly]:
    """The affine part of an integer term, and the rest."""
    affine: dict[Monomial, Number] = {}
    other: dict[Monomial, Number] = {}
    for mono, c in p.items:
        plain = not mono or (len(mono) == 1 and isinstance(mono[0][0], Ix) and mono[0][1] == 1)
        (affine if plain and isinstance(c, int) else other)[mono] = c
    return as_index(build(affine), -expr.UNBOUNDED, expr.UNBOUNDED), build(other)


def is_sum(atom: Opaque) -> bool:
    """Whether an opaque integer is the machine value of a sum."""
    return atom.operator == "value" and len(value_of(atom).items) > 1


def split_value(atom: Opaque) -> tuple[Index, Index] | None:
    """The machine value of `t + e` as t and the affine e; None where the term has no such parts."""
    if not is_sum(atom):
        return None
    e, rest = split_affine(value_of(atom))
    if rest is atom.term or not rest.items:
        return None
    return as_index(rest, atom.lo, atom.hi), e
