"""Integer tables over one variable (device tables, replica groups, permutes), fitted as index expressions.

Nothing here approximates: a table that is no affine combination of digits and no rotation of one
stays an exact table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque, Var
from hlo_verify.limits import allows
from hlo_verify.memory import once_a_session, per_session

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


LARGE = 1 << 62
"""Integers at least this large are not fitted: their differences may not fit into 64 bits."""


_fitted: Callable[[], dict[tuple[bytes, Var, bytes], Index]] = per_session("fitted tables", dict)
"""Every table is fitted once."""


def fit(values: Ints, variable: Var, known: Bools | None = None) -> Index:
    """An expression equal to `values[v]` for every value v of the variable (where `known`, if given)."""
    values = np.asarray(values, dtype=np.int64)
    key = (values.tobytes(), variable, b"" if known is None else known.tobytes())
    fitted = _fitted()
    found = fitted.get(key)
    if found is None:
        found = fitted[key] = _fit(values, variable, known)
    return found


def _fit(values: Ints, variable: Var, known: Bools | None) -> Index:
    if not values.size:  # the variable has no values: it counts what a tensor without elements has
        return expr.constant(0)
    if values.min() <= -LARGE or values.max() >= LARGE:
        return expr.table(tuple(int(v) for v in values), expr.of_var(variable))
    if known is not None and not known.any():
        return expr.constant(0)
    first = int(values[known][0]) if known is not None else int(values[0])
    if (values == first).all() if known is None else (values[known] == first).all():
        return expr.constant(first)
    if known is None or known.all():
        found = _affine(values, variable, 1)
        if found is not None:
            return expr.build(int(values[0]), found)
        known = None
    rotation = _rotation(values, variable, known)
    if rotation is not None:
        return rotation
    if known is None:
        along_two = ring(values, variable)
        if along_two is not None:
            return along_two.turned(expr.constant(1))
        of_digit = _of_one_digit(values, variable)
        if of_digit is not None:
            return of_digit
    else:
        part_of_digit = _partly_of_one_digit(values, variable, known)
        if part_of_digit is not None:
            return part_of_digit
    return _as_table(values if known is None else np.where(known, values, first), variable)


def _as_table(values: Ints, variable: Var) -> Index:
    """The entry of a table at the variable, or at the smallest digit of it that the values hang on."""
    for low, radix in _small_first(variable.size):
        rows = values.reshape(-1, radix, low)
        if (rows == rows[:1, :, :1]).all():
            entry = expr.digit_of(expr.of_var(variable), low, radix)
            return expr.table(tuple(int(v) for v in rows[0, :, 0]), entry)
    return expr.table(tuple(int(v) for v in values), expr.of_var(variable))


@once_a_session
def fit_lookup(values: tuple[int, ...], e: Index) -> Index:
    """`values[e]`, as arithmetic where e depends on one variable or all the values can be fitted, else a table.

    Where e lies outside of the table it is any number. A table at the entry of another is one table: the order of
    devices in an irregular mesh often cancels out that way.
    """
    while (inner := _table_of(e)) is not None:
        numbers, e = inner
        values = tuple(values[min(max(n, 0), len(values) - 1)] for n in numbers)
    if not all(-LARGE < v < LARGE for v in values):
        return expr.table(values, e)
    if len(e.free) == 1:
        (variable,) = e.free
        if allows("fitted_values", variable.size):
            positions = evaluate(e, variable)
            if positions is not None:
                inside = (positions >= 0) & (positions < len(values))
                chosen = np.asarray(values, dtype=np.int64)[np.clip(positions, 0, len(values) - 1)]
                return fit(chosen, variable, inside)
    if e.lo >= 0 and e.hi < len(values) and allows("fitted_values", len(values)):
        position = expr.var("entry", 0, len(values))
        fitted = fit(np.asarray(values, dtype=np.int64), position)
        if all(isinstance(atom, Digit) for atom, _ in fitted.items):
            return expr.substitute(fitted, {position: e})
    return expr.table(values, e)


def _table_of(e: Index) -> tuple[tuple[int, ...], Index] | None:
    """The values and the position of an expression that is an entry of a table, and may be any of them."""
    if e.const or len(e.items) != 1:
        return None
    atom, c = e.items[0]
    if c != 1 or not isinstance(atom, Opaque) or atom.operator != "table":
        return None
    return atom.args[0], atom.exprs[0]


def places_between(atom: Opaque, lo: int | None, hi: int | None) -> tuple[Index, int, int] | None:
    """The place of a table's entry, and from where to where the entries lie between two bounds: 0 <= {0,1,1,2}[e] <= 1
    where 0 <= e <= 2. None where these are not in one piece, or a place may lie outside of the table."""
    (values,), (place,) = atom.args, atom.exprs
    if place.lo < 0 or place.hi >= len(values):
        return None
    chosen = [n for n, v in enumerate(values) if (lo is None or lo <= v) and (hi is None or v <= hi)]
    first, last = (chosen[0], chosen[-1]) if chosen else (len(values), len(values))
    return (place, first, last) if len(chosen) in (0, last - first + 1) else None


def _primes(n: int) -> list[int]:
    found = []
    p = 2
    while p * p <= n:
        if n % p == 0:
            found.append(p)
            while n % p == 0:
                n //= p
        p += 1
    return [*found, n] if n > 1 else found


def _affine(values: Ints, variable: Var, low: int) -> list[tuple[expr.Atom, int]] | None:
    """Multiples of digits from `low` up that sum to `values - values[0]`, trying every order of radices."""
    n = len(values)
    if n == 1:
        return []
    for p in _primes(n):
        rows = values.reshape(n // p, p)
        step = int(rows[0, 1] - rows[0, 0])
        if not (rows - rows[:, :1] == step * np.arange(p)).all():
            continue
        above = _affine(rows[:, 0], variable, low * p)
        if above is None:
            continue
        here = expr.digit_of(expr.of_var(variable), low, p)
        return above + [(atom, step * c) for atom, c in here.items]
    return None


def _spans(n: int) -> list[tuple[int, int]]:
    """The `(low, radix)` of every digit of a variable of n values, low ones first: low * radix divides n."""
    divisors = [k for k in range(1, n + 1) if n % k == 0]
    return [(low, radix) for low in divisors for radix in divisors if radix > 1 and n % (low * radix) == 0]


def digits(variable: Var) -> list[Index]:
    """Every digit `v[low, radix]` of the variable with low * radix dividing its size, small radices first."""
    return [expr.digit_of(expr.of_var(variable), low, radix) for low, radix in _small_first(variable.size)]


def _small_first(n: int) -> list[tuple[int, int]]:
    return sorted(_spans(n), key=lambda span: (span[1], span[0]))


def _rotation(values: Ints, variable: Var, known: Bools | None) -> Index | None:
    """`v` with one digit g replaced by `(g + c) mod radix`; no remainder where none is needed.

    A step within a digit that has others above it is one of that digit, though `v + c` may be the same where it is
    known: the digits above stay as they are.
    """
    v = np.arange(len(values), dtype=np.int64)
    delta = values - v
    where = np.ones(len(values), dtype=bool) if known is None else known
    spans = _small_first(variable.size)
    if (delta[where] == delta[where][0]).all():
        turned = (_turned(values, variable, where, low, radix) for low, radix in spans if low * radix < variable.size)
        shifted = expr.shift(expr.of_var(variable), int(delta[where][0]))
    else:
        turned = (_turned(values, variable, where, low, radix) for low, radix in spans)
        shifted = None
    return next((found.turned(expr.constant(1)) for found in turned if found is not None), shifted)


def _turned(values: Ints, variable: Var, where: Bools, low: int, radix: int) -> Ring | None:
    """The rotation of that digit by as much as at the first place that is known, if that fits all of them."""
    v = np.arange(len(values), dtype=np.int64)
    digit = v // low % radix
    at = int(np.flatnonzero(where)[0])
    step = int(values[at] // low - at // low) % radix
    moved = v + low * ((digit + step) % radix - digit)
    return Ring(variable, ((low, radix),), step) if np.array_equal(values[where], moved[where]) else None


def _of_one_digit(values: Ints, variable: Var) -> Index | None:
    """What the smallest digit gives that the values hang on, where that is no table: the places of a mesh axis that is
    turned, `0 1 2 0 1 2` as `1 2 0 1 2 0`."""
    for low, radix in _small_first(variable.size):
        rows = values.reshape(-1, radix, low)
        own = rows[0, :, 0]
        if radix == variable.size or not (rows == own[:, None]).all():
            continue
        entry = expr.var("entry", 0, radix)
        found = fit(own, entry)
        if asks_table(found):
            return None
        return expr.substitute(found, {entry: expr.digit_of(expr.of_var(variable), low, radix)})
    return None


def _partly_of_one_digit(values: Ints, variable: Var, known: Bools) -> Index | None:
    """`v` with one digit g replaced by `first + step * h`, h a digit of g, where that is so wherever it is known.

    So come the halves of a dimension to its devices, where each holds half as many elements as before: device k of 8
    receives from `k // 2`, but from itself where that is k, and not in one permute from the odd and the even ones.
    """
    v = np.flatnonzero(known)
    for low, radix in _small_first(variable.size):
        digit = v // low % radix
        into = (values[v] - v) // low + digit
        if not np.array_equal(values[v], v + low * (into - digit)) or into.min() < 0 or into.max() >= radix:
            continue
        for below, of in _spans(radix):
            part = digit // below % of
            one, other = int(part.argmin()), int(part.argmax())
            rise, apart = int(into[other] - into[one]), int(part[other] - part[one])
            if not apart or rise % apart:
                continue
            step = rise // apart
            first = int(into[one]) - step * int(part[one])
            ends = first, first + step * (of - 1)
            if min(ends) >= 0 and max(ends) < radix and np.array_equal(into, first + step * part):
                own = expr.digit_of(expr.of_var(variable), low, radix)
                new = expr.shift(expr.scale(expr.digit_of(expr.of_var(variable), low * below, of), step), first)
                return expr.add(expr.of_var(variable), expr.scale(expr.subtract(new, own), low))
    return None


@dataclass(frozen=True, slots=True)
class Ring:
    """A rotation by `step` of the places that digits of a variable count, the lowest first: `(low, radix)` of each.

    Two digits that are no neighbours in the variable count the places where a ring goes along two mesh axes.
    """

    variable: Var
    digits: tuple[tuple[int, int], ...]
    step: int

    @property
    def size(self) -> int:
        """The number of places."""
        return prod(radix for _, radix in self.digits)

    @property
    def place(self) -> Index:
        """The place that the variable's value is at."""
        parts, unit = [], 1
        for low, radix in self.digits:
            parts.append(expr.scale(expr.digit_of(expr.of_var(self.variable), low, radix), unit))
            unit *= radix
        return expr.add(*parts)

    def at(self, place: Index) -> Index:
        """The variable's value if it were at another place."""
        moved, unit = expr.of_var(self.variable), 1
        for low, radix in self.digits:
            there = expr.modulo(place, radix) if unit == 1 else expr.digit_of(place, unit, radix)
            apart = expr.subtract(there, expr.digit_of(expr.of_var(self.variable), low, radix))
            moved = expr.add(moved, expr.scale(apart, low))
            unit *= radix
        return moved

    def turned(self, turns: Index) -> Index:
        """The variable's value after some rotations."""
        return self.at(expr.modulo(expr.add(self.place, expr.scale(turns, self.step)), self.size))


def ring(values: Ints, variable: Var, likely: Iterable[tuple[int, int]] = ()) -> Ring | None:
    """The rotation that takes every value v of a variable to `values[v]`, of a likely digit if it is one of those."""
    n = len(values)
    v = np.arange(n, dtype=np.int64)
    if n != variable.size or (values == v).all() or not np.array_equal(np.sort(values), v):
        return None
    spans, everywhere = _spans(n), np.ones(n, dtype=bool)
    for low, radix in (*likely, *spans):
        found = _turned(values, variable, everywhere, low, radix)
        if found is not None:
            return found
    for low, radix in spans:
        digit, reached = v // low % radix, values // low % radix
        if not np.array_equal(reached, (digit + reached[0]) % radix):
            continue
        for low_above, above in spans:
            if low_above < low * radix and low < low_above * above:
                continue
            upper = v // low_above % above
            place = digit + radix * upper
            step = int(reached[0] + radix * (values[0] // low_above % above))
            moved = (place + step) % (radix * above)
            if np.array_equal(values, v + low * (moved % radix - digit) + low_above * (moved // radix - upper)):
                return Ring(variable, ((low, radix), (low_above, above)), step)
    return None


def evaluate(e: Index, variable: Var) -> Ints | None:
    """The values of e for every value of its one variable; None where e depends on anything else, or is large."""
    return evaluate_all(e, (variable,))


def evaluate_all(e: Index, variables: Sequence[Var]) -> Ints | None:
    """The values of e for all values of several variables, a dimension for each; None where e depends on anything else,
    or is large."""
    if not e.free <= set(variables) or e.lo <= -LARGE or e.hi >= LARGE:
        return None
    shape = tuple(v.size for v in variables)
    axes = dict(zip(variables, np.ogrid[tuple(map(slice, shape))], strict=True))
    values = _evaluated(e, axes)
    return None if values is None else np.broadcast_to(values, shape)


def _evaluated(e: Index, axes: Mapping[Var, Ints]) -> Ints | None:
    total = np.asarray(e.const, dtype=np.int64)
    for atom, c in e.items:
        if isinstance(atom, Digit):
            v = axes[atom.var]
            total = total + c * (v // atom.low % atom.radix if not atom.top else v // atom.low)
            continue
        inner = _evaluated(atom.exprs[0], axes) if atom.exprs else None
        if inner is None:
            return None
        if atom.operator == "mod":
            total = total + c * (inner % atom.args[0])
        elif atom.operator == "div":
            total = total + c * (inner // atom.args[0])
        elif atom.operator == "clamp":
            total = total + c * np.clip(inner, atom.args[0], atom.args[1])
        else:
            values = np.asarray(atom.args[0], dtype=np.int64)
            total = total + c * values[np.clip(inner, 0, len(values) - 1)]
    return total


def fit_set(members: Bools, variable: Var) -> tuple[tuple[Index, int, int], ...]:
    """Intervals `(form, lo, hi)` whose conjunction holds exactly for the members of a set of values."""
    n = len(members)
    for index in digits(variable):
        atom = index.items[0][0]
        assert isinstance(atom, Digit)
        cube = members.reshape(n // (atom.low * atom.radix), atom.radix, atom.low)
        column = cube[0, :, 0]
        if not (cube == column[None, :, None]).all():
            continue
        where = np.flatnonzero(column)
        if len(where) and where[-1] - where[0] + 1 == len(where):
            return ((index, int(where[0]), int(where[-1])),)
    return ((_as_table(members.astype(np.int64), variable), 1, 1),)


@once_a_session
def asks_table(e: Index) -> bool:
    """Whether an expression has an entry of a table at a place in it."""
    several = (part for part, _ in e.items if isinstance(part, Opaque))
    return any(part.operator == "table" or any(map(asks_table, part.exprs)) for part in several)


@once_a_session
def turns(part: Opaque, v: Var) -> frozenset[int]:
    """Where the values of an opaque integer go on in another way: of 0, 1, 6, 7, 2, 3 those of 6 and of 2."""
    values = evaluate(expr.of_atom(part), v) if allows("fitted_values", v.size) else None
    if values is None:
        return frozenset()
    found, step = [0], None
    for n in range(1, v.size):
        now = int(values[n] - values[n - 1])
        if step is not None and now != step:
            found.append(n)
            step = None
        else:
            step = now
    return frozenset(found) if allows("enumerated_values", len(found)) else frozenset()
