"""A place on a ring that a condition wraps, as a remainder.

    e + n*[e <= -1]     = e mod n        where -n <= e < n
    e - n*[e >= n]      = e mod n        where 0 <= e < 2*n
    e + 1 - n*[e = n-1] = (e + 1) mod n  where 0 <= e < n
    n*[e >= 1] - e      = -e mod n       where 0 <= e < n

`where(d == n - 1, 0, d + 1)`, `jnp.remainder(d - 3, n)` (which corrects the sign of a remainder that rounds towards
zero) and the tables of a permutation then give the same places.
"""

from __future__ import annotations

from fractions import Fraction

from hlo_verify.index import expr
from hlo_verify.terms import addition, guards
from hlo_verify.terms.term import Guard, Ix, Number, Poly
from hlo_verify.terms.used import used


def wrapped(p: Poly) -> Poly:
    """The integer p, where it is a wrapped index value, as a multiple of a remainder; else p itself.

    p is c*(e + a) up to some value of e, and c*(e + a - n) above it. That is c*((e + a) mod n) if e + a lies between 0
    and 2*n - 1, and the condition parts it at n.

    >>> d = expr.of_var(expr.var("d", "", 4))
    >>> next_one = addition.difference(addition.of_index(expr.shift(d, 1)), addition.scale(guards.interval(d, 3, 3), 4))
    >>> wrapped(next_one) is addition.of_index(expr.modulo(expr.shift(d, 1), 4))
    True
    """
    if len(p.items) < 2:
        return p
    linear: list[tuple[Ix, Number]] = []
    pieces: list[tuple[Guard, Number]] = []
    constant: Number = 0
    for mono, c in p.items:
        atom = mono[0][0] if len(mono) == 1 and mono[0][1] == 1 else None
        if isinstance(atom, Ix):
            linear.append((atom, c))
        elif isinstance(atom, Guard):
            pieces.append((atom, c))
        elif mono:
            return p
        else:
            constant = c
    if len(linear) != 1 or not pieces:
        return p
    ix, factor = linear[0]
    e = ix.index
    steps = _steps(e, pieces)
    if steps is None:
        return p
    mirrored = [(None if hi is None else -hi, None if lo is None else -lo, c) for lo, hi, c in reversed(steps)]
    for form, by, those in ((e, factor, steps), (expr.scale(e, -1), -factor, mirrored)):
        found = _remainder(form, by, constant, those)
        if found is not None:
            used("wrapped by a condition")
            return addition.scale(addition.of_index(found), by)
    return p


def wrapped_choice(condition: Poly, a: expr.Index, b: expr.Index) -> expr.Index | None:
    """`condition ? a : b` of integers as a remainder, where one of them is what the condition asks about and something,
    and the other that less or more n: `x = 7 ? 0 : x + 1` is `(x + 1) mod 8` where x lies between 0 and 7."""
    guard = condition.atom
    if not isinstance(guard, Guard):
        return None
    form, lo, hi = guard.form, guard.lo, guard.hi
    if (lo is None or lo <= form.lo) and hi is not None:
        below, above, last = a, b, hi
    elif (hi is None or hi >= form.hi) and lo is not None:
        below, above, last = b, a, lo - 1
    else:
        return None
    for own, ends, other, at, sign in ((below, last, above, form.hi, 1), (above, last + 1, below, form.lo, -1)):
        start = expr.subtract(own, form)
        if start.items:
            continue
        one_value = last == form.hi - 1 if sign > 0 else last == form.lo
        beyond = expr.subtract(own, other)
        if beyond.items and not other.items and one_value:  # there, its own value is known
            beyond = expr.constant(at + start.const - other.const)
        n = sign * beyond.const
        place = own if sign > 0 else expr.shift(own, n)
        if (
            beyond.items
            or n <= 0
            or place.lo < 0
            or place.hi >= 2 * n
            or ends + start.const != (n - 1 if sign > 0 else 0)
        ):
            continue
        used("wrapped by a condition")
        return expr.modulo(place, n)
    return None


Steps = list[tuple[int | None, int | None, Number]]


def _remainder(e: expr.Index, factor: Number, constant: Number, steps: Steps) -> expr.Index | None:
    """`factor*e + constant` and those steps, as what remainder it is `factor` times."""
    below, above, last = _two_levels(steps)
    if last is None:
        return None
    start, n = Fraction(constant + below) / factor, Fraction(below - above) / factor
    if start.denominator != 1 or n.denominator != 1 or n <= 0:
        return None
    place, size = expr.shift(e, int(start)), int(n)
    if place.lo < 0 or place.hi >= 2 * size or last + start != size - 1:
        return None
    return expr.modulo(place, size)


def _steps(e: expr.Index, pieces: list[tuple[Guard, Number]]) -> Steps | None:
    """What conditions on e add, by its intervals; None where one is about something else."""
    found: Steps = []
    for guard, c in pieces:
        form, lo, hi = (guard.form, guard.lo, guard.hi) if guard.form is e else guards.on_whole_variable(guard)
        if form is not e:
            return None
        found.append((lo, hi, c))
    return guards.steps_of(found)


def _two_levels(steps: Steps) -> tuple[Number, Number, int | None]:
    """What is added up to some value, what is added above it, and that value; None for it if there are more levels."""
    if not 1 <= len(steps) <= 2:
        return 0, 0, None
    if len(steps) == 1:
        lo, hi, c = steps[0]
        if lo is None and hi is not None:
            return c, 0, hi
        return (0, c, lo - 1) if hi is None and lo is not None else (0, 0, None)
    (first, last, below), (start, end, above) = steps
    if first is not None or end is not None or last is None or start != last + 1:
        return 0, 0, None
    return below, above, last
