"""The signs that a term may have, where it is a number: some of negative, zero, positive, and none on the real line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from itertools import product
from operator import or_
from typing import TYPE_CHECKING, Any

import numpy as np

from hlo_verify.limits import allows
from hlo_verify.memory import per_session
from hlo_verify.terms import assumed_bounds

if TYPE_CHECKING:
    from hlo_verify.index.expr import Var
    from hlo_verify.program.allowed_values import Values
    from hlo_verify.terms.term import Apply, Atom, Monomial, Number, Poly, Read, Tensor

NEGATIVE = 1
ZERO = 2
POSITIVE = 4
REAL = 7
"""Any sign of a real number."""
BEYOND = 8
"""Of a complex number that is no real one."""
ANY = 15

_SINGLE = (NEGATIVE, ZERO, POSITIVE, BEYOND)


def _sum(a: int, b: int) -> int:
    if ZERO in (a, b):
        return a | b if a == b else (a | b) & ~ZERO
    if BEYOND in (a, b):
        return ANY if a == b else BEYOND
    return a if a == b else REAL


def _times(a: int, b: int) -> int:
    if ZERO in (a, b):
        return ZERO
    if BEYOND in (a, b):
        return ANY & ~ZERO if a == b else BEYOND
    return POSITIVE if a == b else NEGATIVE


def _table(rule: Any) -> tuple[tuple[int, ...], ...]:
    def both(a: int, b: int) -> int:
        found = 0
        for x, y in product(_SINGLE, _SINGLE):
            if a & x and b & y:
                found |= rule(x, y)
        return found

    return tuple(tuple(both(a, b) for b in range(ANY + 1)) for a in range(ANY + 1))


ADDED = _table(_sum)
MULTIPLIED = _table(_times)

_signs: Callable[[], dict[Poly, int]] = per_session("signs of terms", dict)
_elements: Callable[[], dict[Tensor, int]] = per_session("signs of elements", dict)
_somewhere: Callable[[], dict[Read, bool]] = per_session("sums that are positive somewhere", dict)

opened: Callable[[], dict[Read, tuple[tuple[Var, ...], Poly]]] = per_session("opened sums", dict)
"""Of `shared_sums`, which is imported where it is asked for: what a session keeps is known when one starts."""


def of(p: Poly) -> int:
    """The signs that a term may have."""
    known = _signs()
    found = known.get(p)
    if found is None:
        found = ANY if _is_infinite(p) else _found(p)
        if len(p.items) > 1 and found & (found - 1) and not found & BEYOND:
            from hlo_verify.terms.quotient_signs import narrowed  # made of terms, as is all that it looks at

            known[p] = found  # what is looked at may ask for this again
            found = narrowed(p, found)
        if len(p.items) > 1 and found & NEGATIVE and found & POSITIVE and not found & BEYOND:
            from hlo_verify.terms.shared_sums import signs_together  # likewise

            known[p] = found
            found &= signs_together(p)
        if found == ZERO | POSITIVE:
            from hlo_verify.terms.attained import counts_the_best  # made of terms, as is all that it looks at
            from hlo_verify.terms.shared_sums import is_positive_together

            known[p] = found  # what is looked at may ask for this again
            found = POSITIVE if counts_the_best(p) or is_positive_together(p) else found
        known[p] = found
    return found


def _is_infinite(p: Poly | Read) -> bool:
    from hlo_verify.terms.doubts import INFINITE

    return bool(p.doubt & INFINITE)


def _found(p: Poly) -> int:
    """Case by case where there are conditions, so that of `c*a + (1-c)*b` it is the signs of a and of b."""
    known = assumed_bounds.of_sum(p)
    if known is not None:
        return _of_values(known)
    if len(p.items) > 1 and any(atom.boolean for mono, _ in p.items for atom, _ in mono):
        from hlo_verify.terms.conditions import Conditions, split  # made of terms

        conditions = Conditions.of([item for item in mono if item[0].boolean] for mono, _ in p.items)
        if allows("sign_cases", conditions.count):
            products = split(p.items)
            return reduce(or_, (_of_sum(case.computed(products).items()) for case in conditions.cases()), 0)
    return _of_sum(p.items)


def _of_sum(products: Iterable[tuple[Monomial, Number]]) -> int:
    found = ZERO
    for mono, c in products:
        found = ADDED[found][_scaled(of_product(mono), c)]
    return found


def _scaled(found: int, c: Number) -> int:
    return MULTIPLIED[found][NEGATIVE if c < 0 else POSITIVE if c > 0 else ZERO]


def of_product(mono: Monomial) -> int:
    """The signs that a product may have."""
    return reduce(lambda a, b: MULTIPLIED[a][b], (_of_power(atom, n) for atom, n in mono), POSITIVE)


def _of_power(atom: Atom, n: Number) -> int:
    found = of_atom(atom)
    return _even(found) if isinstance(n, int) and n % 2 == 0 else found


def _even(found: int) -> int:
    """Of an even power, or of another function that is not negative, and 0 at 0."""
    return (ANY & ~ZERO if found & BEYOND else POSITIVE) | (found & ZERO)


def of_atom(atom: Atom) -> int:
    """The signs that an atom may have."""
    from hlo_verify.terms.term import Apply, Ix, Read

    if atom.boolean:
        return ZERO | POSITIVE
    if isinstance(atom, Ix):
        return _between(atom.index.lo, atom.index.hi)
    if isinstance(atom, Apply):
        return _of_function(atom)
    return _of_read(atom) if isinstance(atom, Read) else ANY


def _between(lo: int, hi: int) -> int:
    return (NEGATIVE if lo < 0 else 0) | (ZERO if lo <= 0 <= hi else 0) | (POSITIVE if hi > 0 else 0)


def _of_function(atom: Apply) -> int:
    function, name = atom.function, atom.function.name
    if name == "complex" or function.gives.startswith("complex"):
        return ANY
    if name == "bitcast_convert":
        from hlo_verify.terms.float_bits import sign_of  # made of terms

        return sign_of(function, atom.args)
    if not (function.is_name or function.is_real):
        return REAL
    parts = [of(arg) for arg in atom.args]
    if name == "zero_times":
        return ZERO
    if name == "inverse":
        return parts[0] & ~ZERO if not _is_infinite(atom.args[0]) else ANY
    if name == "finite_part":
        return parts[0] & REAL | ZERO
    if any(part & BEYOND for part in parts):
        return ANY
    if function.properties.positive:
        return POSITIVE
    if name in ("maximum", "minimum"):
        return _of_extremum(name, parts)
    if function.properties.keeps_sign:
        return parts[0]
    if name in ("abs", "sqrt"):
        return _even(parts[0])
    if name == "log" and (k := atom.args[0].constant) is not None and k > 0:
        return POSITIVE if k > 1 else NEGATIVE if k < 1 else ZERO
    if name == "power":
        return POSITIVE if parts[0] == POSITIVE else REAL
    return REAL


def _of_extremum(name: str, parts: list[int]) -> int:
    """A maximum is negative only if all are, and positive if one is."""
    order = _SINGLE[:3] if name == "maximum" else _SINGLE[2::-1]
    found = 0
    for n, sign in enumerate(order):
        upto = sum(order[: n + 1])
        if any(part & sign for part in parts) and all(part & upto for part in parts):
            found |= sign
    return found


def _of_read(atom: Read) -> int:
    source = atom.tensor
    known = _elements()
    found = known.get(source)
    if found is None:
        found = known[source] = _of_elements(source)
    if source.kind in ("max", "min") and not _is_infinite(atom):
        found &= REAL  # of what some infinities mask
    if found == ZERO | POSITIVE and source.kind == "sum":
        return POSITIVE if _is_positive_somewhere(atom) else found
    return found


def _is_positive_somewhere(atom: Read) -> bool:
    """Whether a sum is positive, which is asked once for all places that it is read at."""
    from hlo_verify.terms.somewhere import at_own_places, has_conditions, is_positive_somewhere  # made of terms

    known = _somewhere()
    if atom not in known:
        asked = at_own_places(atom) if has_conditions(atom) else None
        if asked is not None and asked not in known:
            known[asked] = is_positive_somewhere(asked)
        known[atom] = asked is not None and known[asked]
    return known[atom]


def _of_elements(source: Tensor) -> int:
    if source.assumed is not None:
        return _of_values(source.assumed)
    if source.dtype.startswith("ui"):
        return ZERO | POSITIVE
    if source.dtype.startswith("complex") or any(of(body) & BEYOND for body in source.bodies):
        return ANY
    if source.kind == "constant" and source.values is not None and source.values.dtype.kind in "biuf":
        return _between_numbers(source.values)
    if source.kind in ("term", "max", "min"):
        return of(source.bodies[0])
    if source.kind in ("sum", "product"):
        each = of(source.bodies[0])
        rule = ADDED if source.kind == "sum" else MULTIPLIED
        while (both := each | rule[each][each]) != each:
            each = both
        return each
    return REAL


def _of_values(values: Values) -> int:
    """The signs of numbers that some values may be."""
    least, greatest = values.least, values.greatest
    found = NEGATIVE if least is None or least < 0 else 0
    found |= POSITIVE if greatest is None or greatest > 0 else 0
    return found | (ZERO if values.admits(0, 0) else 0)


def _between_numbers(values: Any) -> int:
    found = (NEGATIVE if bool(np.any(values < 0)) else 0) | (ZERO if bool(np.any(values == 0)) else 0)
    return found | (POSITIVE if bool(np.any(values > 0)) else 0)
