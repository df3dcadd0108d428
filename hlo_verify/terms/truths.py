"""Truth values in numbers: counts of them, and the greatest or least of them.

    [sum v. p(v) >= 1]  is  max v. p(v)          for p that is 1 or 0, as `any` is written with sums
    [sum v. p(v) = n]   is  min v. p(v)          for n values of v, as `all` is
    max v. (1 - p(v))   is  1 - min v. p(v)
    max v. [f(v) > 0]   is  [max v. f(v) > 0]
    [maximum(a, b) <= n]  is  [a <= n] [b <= n]   of integers, as flags of what began anew are joined
    minimum(p, q)       is  p q                   for p and q that are 1 or 0, as flags of several arrays are stacked
    min v. p(v) q(v)    is  (min v. p(v)) (min v. q(v))
    [m + n <= 0]        is  [m <= 0] [n <= 0]     for counts m and n, and so where each is as many as there are

Where p has conditions on places, n is the number of places where they hold, and the others are as if p were 1 there:
`cumsum(x <= 0) == 0` is a running `and`, as `cumprod(x > 0)` is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import reduce
from math import ceil, floor, lcm, prod

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque, Var
from hlo_verify.limits import allows
from hlo_verify.memory import once_a_session
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms import guards
from hlo_verify.terms.addition import build, of_index, scale
from hlo_verify.terms.functions import IS_ZERO, MAXIMUM, MINIMUM, POSITIVE, Function
from hlo_verify.terms.machine import as_index
from hlo_verify.terms.products import add, multiply, subtract
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
    asked,
    make_poly,
    number,
    of_atom,
    value_of,
)
from hlo_verify.terms.used import used

Arguments = tuple[Poly, ...]
Bound = int | None


@once_a_session
def is_truth(p: Poly) -> bool:
    """Whether a term is surely 1 or 0, in each case of the conditions that it is made of."""
    if not all(atom.boolean for mono, _ in p.items for atom, _ in mono):
        return False
    from hlo_verify.terms.conditions import Conditions  # which is built on guards

    conditions = Conditions.of(mono for mono, _ in p.items)
    if not allows("sign_cases", conditions.count):
        return False
    return all(sum(case.coefficients(p.items).values()) in (0, 1) for case in conditions.cases())


def opposite(p: Poly) -> Poly | None:
    """The product of truth values that a term is 1 less; None if it is no such difference."""
    if len(p.items) != 2 or dict(p.items).get(()) != 1:
        return None
    ((mono, c),) = (item for item in p.items if item[0])
    return make_poly(((mono, 1),)) if c == -1 and all(atom.boolean for atom, _ in mono) else None


def sign_of(p: Poly) -> Poly | None:
    """What a term asks the sign of, if that is a number; None if it asks anything else."""
    atom = p.atom
    if isinstance(atom, Apply) and atom.function == POSITIVE and not atom.args[0].doubt:
        return atom.args[0]
    return None


def is_count(atom: Atom) -> bool:
    """Whether a sum counts truth values, wherever it is read."""
    return (
        isinstance(atom, Read)
        and atom.tensor.kind == "sum"
        and atom.tensor.seal is None
        and _is_product(atom.tensor.bodies[0])
    )


@once_a_session
def what_is_counted(atom: Atom) -> tuple[tuple[Var, ...], Poly] | None:
    """What a sum counts: variables, which are always the same for a sum, and conditions on them."""
    return _of_truths(atom, "sum")


@once_a_session
def what_is_asked(atom: Atom) -> tuple[tuple[Var, ...], Poly] | None:
    """Of what conditions a maximum says whether any holds, or the sign of one, and the variables that these hang on."""
    from hlo_verify.terms.definitions import unfold  # which is built on guards
    from hlo_verify.terms.laws import apply

    greatest = atom.args[0].atom if isinstance(atom, Apply) and atom.function == POSITIVE else None
    if not isinstance(greatest, Read):
        return _of_truths(atom, "max")
    if greatest.tensor.kind != "max" or greatest.tensor.seal is not None or greatest.doubt:
        return None
    bound, (body,) = unfold(greatest)
    held = apply(POSITIVE, (body,))
    return (bound, held) if _is_product(held) else None


def _of_truths(atom: Atom, kind: str) -> tuple[tuple[Var, ...], Poly] | None:
    from hlo_verify.terms.definitions import unfold  # which is built on guards

    if not isinstance(atom, Read) or atom.tensor.kind != kind or atom.tensor.seal is not None:
        return None
    if not _is_product(atom.tensor.bodies[0]):
        return None
    bound, (body,) = unfold(atom)
    return (bound, body) if _is_product(body) else None  # at its place, conditions may be decided


def _is_product(p: Poly) -> bool:
    """Whether a term is a product of truth values."""
    return len(p.items) == 1 and all(c == 1 and mono and all(atom.boolean for atom, _ in mono) for mono, c in p.items)


def joined(function: Function, terms: list[Poly]) -> list[Poly]:
    """The terms of an extremum with one in place of all that are truth values: whether all hold, or any does."""
    flags = [p for p in terms if is_truth(p)]
    if len(flags) < 2:
        return terms
    if function == MAXIMUM:
        flags = [subtract(ONE, p) for p in flags]
    if any(len(p.items) > 1 for p in flags) and not allows("multiplied_terms", prod(len(p.items) for p in flags)):
        return terms
    used("extremum of truth values")
    both = reduce(multiply, flags)
    return [*(p for p in terms if not is_truth(p)), subtract(ONE, both) if function == MAXIMUM else both]


def each_of(reducer: str, p: Poly) -> list[Poly]:
    """The truth values of which all hold where a term is 1, of a least one; those of which any does, of a greatest.
    There are none but the term itself where it is no such product."""
    if reducer == "min":
        return [of_atom(atom) for atom, _ in p.items[0][0]] if _is_product(p) else [p]
    atoms = {atom for mono, _ in p.items for atom, _ in mono}
    if len(atoms) < 2 or not is_truth(p) or not allows("multiplied_terms", 1 << len(atoms)):
        return [p]
    none = reduce(multiply, (subtract(ONE, of_atom(atom)) for atom in sorted(atoms, key=lambda a: a.uid)))
    return [of_atom(atom) for atom in atoms] if add(p, none) is ONE else [p]


@once_a_session
def _count_of_all(count: Read) -> Poly:
    """For how many values of its variables the conditions hold that a count has on places and integers."""
    from hlo_verify.terms.definitions import at_places  # which is built on guards
    from hlo_verify.terms.sums import reduce_sum  # which asks for truth values

    source = count.tensor
    where = _where(source.bodies[0])
    if where is source.bodies[0] and _is_looked_up(where):
        return of_atom(count)  # there is nothing else
    bound, there = at_places(source, count.indices[: len(source.params)])
    return reduce_sum(bound, there.poly(where))


def _is_looked_up(p: Poly) -> bool:
    """Whether conditions ask for integers that are values of terms."""
    return any(isinstance(atom, Guard) and asked(atom.form) for mono, _ in p.items for atom, _ in mono)


def _where(p: Poly) -> Poly:
    """The conditions on places of a product."""
    return make_poly(((tuple(item for item in p.items[0][0] if isinstance(item[0], Guard)), 1),))


def _is_at_least(count: Read, least: Poly) -> Poly | None:
    """`[sum v. p >= least]` as 1, 0, or as whether any or all of those counted hold; None if it is none of these."""
    from hlo_verify.terms.extrema import reduce_extremum  # which asks for truth values

    wanted = least.constant
    if wanted is not None and wanted <= 0:
        return ONE
    is_any = wanted is not None and wanted <= 1
    more = 0 if is_any else subtract(least, _count_of_all(count)).constant
    if more is None or more < 0:
        return None
    if more > 0:
        return ZERO
    counted = what_is_counted(count)
    if counted is None:
        return None
    bound, p = counted
    return reduce_extremum("max", bound, p) if is_any else reduce_extremum("min", bound, add(_not_where(p), p))


def _not_where(p: Poly) -> Poly:
    return add(ONE, scale(_where(p), -1))


def asked_of_integers(form: Index, lo: Bound, hi: Bound) -> Poly | None:
    """`[lo <= form <= hi]` where a count of truth values that does not wrap is compared with something."""
    for atom, k in form.items:
        if not isinstance(atom, Opaque) or atom.operator != "value" or not _lies_in(value_of(atom), atom.lo, atom.hi):
            continue
        beside = of_index(expr.subtract(form, expr.scale(expr.of_atom(atom), k)))
        for mono, c in value_of(atom).items:
            counted = _counting(mono)
            if counted is None or abs(c * k) != 1:
                continue
            rest = add(beside, scale(subtract(value_of(atom), make_poly(((mono, c),))), k))
            least, most = (lo, hi) if c * k == 1 else (None if hi is None else -hi, None if lo is None else -lo)
            found = _between(counted, least, most, scale(rest, -c * k))
            if found is not None:
                return found
    return _all_at_an_end(_total(form), lo, hi)


def _total(form: Index) -> Poly:
    """What an index expression adds up, with values in it written out that surely are no others in the machine."""
    values = [(atom, k) for atom, k in form.items if isinstance(atom, Opaque) and atom.operator == "value"]
    written = [(atom, k) for atom, k in values if _lies_in(value_of(atom), atom.lo, atom.hi)]
    rest = reduce(lambda e, part: expr.subtract(e, expr.scale(expr.of_atom(part[0]), part[1])), written, form)
    return add(of_index(rest), *(scale(value_of(atom), k) for atom, k in written))


def _all_at_an_end(total: Poly, lo: Bound, hi: Bound) -> Poly | None:
    """`[lo <= total <= hi]` of counts that are added up, with whole coefficients, where all of them have to be as great
    as they may be, or all as small; or where not all may be so."""
    from hlo_verify.terms.counts import are_of_one  # which is built on this

    parts = {mono: c for mono, c in total.items if mono}
    counts = [count for mono in parts if (count := _counting(mono)) is not None]
    if len(counts) < max(len(parts), 2) or are_of_one(counts):
        return None
    low = _are_at_least(total, parts, lo)
    beyond = ZERO if hi is None else _are_at_least(total, parts, hi + 1)
    if low is None or beyond is None:
        return None
    used("as many as there are of each")
    return multiply(low, subtract(ONE, beyond))


def _are_at_least(total: Poly, parts: Mapping[Monomial, Number], bound: Bound) -> Poly | None:
    """`[total >= bound]` where one of the counts more or less decides it."""
    ends = _ends(total)
    if ends is None:
        return None
    low, high = ends
    step = min(abs(Fraction(c)) for c in parts.values())
    if bound is None or bound <= low:
        return ONE
    if bound > high:
        return ZERO
    is_all = bound > high - step  # else one that is not at its greatest is enough
    if not is_all and bound > low + step:
        return None
    found = [_at_end(mono, (c > 0) == is_all) for mono, c in parts.items()]
    if any(each is None for each in found):
        return None
    all_of_them = reduce(multiply, (each for each in found if each is not None))
    return all_of_them if is_all else subtract(ONE, all_of_them)


def _at_end(mono: Monomial, greatest: bool) -> Poly | None:
    """Whether a count is as great as it may be, or 0."""
    counted, ends = _counting(mono), _range(mono)
    if counted is None or ends is None:
        return None
    found = _is_at_least(counted, number(ends[1] if greatest else 1))
    return found if greatest or found is None else subtract(ONE, found)


def asked_of_extremum(form: Index, lo: Bound, hi: Bound) -> Poly | None:
    """`[lo <= maximum(a, b) <= hi]` of integers, by what is asked of each: whether both are at most `hi`, less whether
    both are below `lo`. The form may have other parts beside that."""
    for atom, c in form.items:
        extremum = value_of(atom).atom if isinstance(atom, Opaque) and atom.operator == "value" else None
        if not isinstance(extremum, Apply) or extremum.function not in (MAXIMUM, MINIMUM):
            continue
        parts = [_integer(p) for p in extremum.args]
        if None in parts:
            continue
        rest = expr.subtract(form, expr.scale(expr.of_atom(atom), c))
        forms = [expr.add(rest, expr.scale(e, c)) for e in parts if e is not None]
        if (extremum.function == MAXIMUM) == (c > 0):
            within, beyond = _all_within(forms, None, hi), ZERO if lo is None else _all_within(forms, None, lo - 1)
        else:
            within, beyond = _all_within(forms, lo, None), ZERO if hi is None else _all_within(forms, hi + 1, None)
        if within is not None and beyond is not None:
            used("each of those that an extremum is of")
            return subtract(within, beyond)
    return None


def _all_within(forms: Sequence[Index], lo: Bound, hi: Bound) -> Poly | None:
    """Whether all lie in an interval, as one product. None if that is a sum of products: of extrema of extrema there
    are too many."""
    found = [guards.interval(e, lo, hi) for e in forms]
    return reduce(multiply, found) if all(len(each.items) < 2 for each in found) else None


def _integer(p: Poly) -> Index | None:
    """An integer that is one element, a place or a number, as an index expression."""
    atom, n = p.atom, p.constant
    if isinstance(n, int):
        return expr.constant(n)
    if isinstance(atom, Ix):
        return atom.index
    ends = INTEGER_RANGES.get(atom.tensor.dtype) if isinstance(atom, Read) and not atom.tensor.bodies else None
    return None if ends is None else as_index(p, *ends)


def _counting(mono: Monomial) -> Read | None:
    """The count that a product is, if it is one."""
    atom, n = mono[0] if len(mono) == 1 else (None, 0)
    return atom if isinstance(atom, Read) and n == 1 and is_count(atom) else None


def _lies_in(p: Poly, lo: int, hi: int) -> bool:
    """Whether a term of counts and places surely has values of that range alone, so that its machine value is it."""
    ends = _ends(p)
    return ends is not None and ends[0] >= lo and ends[1] <= hi


def _ends(p: Poly) -> tuple[Number, Number] | None:
    """The least and the greatest that a term of counts and places may be; None where one of its parts is none."""
    ranges = [(c, _range(mono)) for mono, c in p.items]
    reached = [sorted(c * end for end in ends) for c, ends in ranges if ends is not None]
    return (sum(low for low, _ in reached), sum(high for _, high in reached)) if len(reached) == len(ranges) else None


def _range(mono: Monomial) -> tuple[int, int] | None:
    if not mono:
        return 1, 1
    atom, n = mono[0]
    if len(mono) > 1 or n != 1:
        return None
    if isinstance(atom, Ix):
        return atom.index.lo, atom.index.hi
    return (0, prod(v.size for v in atom.tensor.bound)) if isinstance(atom, Read) and is_count(atom) else None


def _between(counted: Read, least: Bound, most: Bound, beside: Poly) -> Poly | None:
    """`[beside + least <= count <= beside + most]`."""
    low = ONE if least is None else _is_at_least(counted, add(beside, number(least)))
    high = ZERO if most is None else _is_at_least(counted, add(beside, number(most + 1)))
    if low is None or high is None:
        return None
    used("as many as there are")
    return multiply(low, subtract(ONE, high))


def asked_of_reals(function: Function, args: Arguments) -> Poly | None:
    """`[c*count + rest > 0]`, or whether it is 0, where the count is compared with a number or with how many are
    counted: with an integer and a fraction."""
    if args[0].doubt:
        return None
    for mono, c in args[0].items:
        counted = _counting(mono)
        if counted is None:
            continue
        beside = scale(build({m: k for m, k in args[0].items if m != mono}), Fraction(-1) / c)
        whole, part = _parts(beside)
        if not _is_integral(whole):
            continue
        if function == IS_ZERO:
            found = ZERO if part else _between(counted, 0, 0, whole)
        elif c > 0:  # the count is more than what is beside it
            found = _between(counted, floor(part) + 1, None, whole)
        else:
            found = _between(counted, None, ceil(part) - 1, whole)
        if found is not None:
            return found
    total = scale(args[0], lcm(*(Fraction(c).denominator for _, c in args[0].items)))
    return _all_at_an_end(total, *((0, 0) if function == IS_ZERO else (1, None)))


def _is_integral(p: Poly) -> bool:
    """Whether a term is surely an integer: a sum of multiples of places, conditions and counts."""
    atoms = (atom for mono, _ in p.items for atom, _ in mono)
    return all(Fraction(c).denominator == 1 for _, c in p.items) and all(
        atom.boolean or isinstance(atom, Ix) or is_count(atom) for atom in atoms
    )


def _parts(p: Poly) -> tuple[Poly, Number]:
    """A term without the fraction of its constant, and that fraction, of at least 0 and less than 1."""
    const = dict(p.items).get((), 0)
    part = const - floor(const)
    return subtract(p, number(part)), part
