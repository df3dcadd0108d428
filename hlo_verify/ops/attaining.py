"""The least or greatest index of those that attain the best value: how programs spell argmax, within or across devices.

    min v. (i(v) where x(v) = max w. x(w), else c)      is the index of the best x, for a number c that no i is above
    max v. (i(v) where x(v) = max w. x(w), else c)      is less the index by -i, for a number c that no i is below:
                                                        the last of equal ones

Instead of `=` a program may ask `>=`, of the least values `<=`. Of integers, the least is less the greatest of what is
less each of them: `-pmax(-i)` is a `pmin`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hlo_verify.equality import opening
from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.ops.best import OPPOSITE, Types, index_of_best, is_finite, is_from_the_worst, one_index
from hlo_verify.ops.regions import combine, neutral, reduce_terms
from hlo_verify.ops.values import integer_range
from hlo_verify.program.element_types import is_float, is_integer
from hlo_verify.terms import algebra
from hlo_verify.terms.bounds import within
from hlo_verify.terms.certain_poles import has_infinite
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.doubts import INFINITE, is_partial
from hlo_verify.terms.functions import EQUAL, INFINITY, IS_ZERO, LESS_OR_EQUAL, MAXIMUM, MINIMUM, POSITIVE
from hlo_verify.terms.steps import pieces
from hlo_verify.terms.term import ZERO, Apply, Atom, Monomial, Number, Poly, Read, Tensor, make_poly, number, of_atom

COMPARISONS = (IS_ZERO, EQUAL, POSITIVE, LESS_OR_EQUAL)


class _Choice(NamedTuple):
    """A term that is one thing where a comparison holds, and a number elsewhere."""

    there: Poly
    elsewhere: int
    left: Poly
    right: Poly
    """What is compared; zero, where only the difference is known."""
    or_more: bool
    """Whether it holds where the left side is greater, too."""


def end_of_best(reducer: str, bound: Sequence[Var], term: Poly, dtype: str) -> Poly | None:
    """The least or greatest of some indices over variables, where it is that of the best of some values; None
    otherwise."""
    if not is_integer(dtype) or reducer not in OPPOSITE:
        return None
    if reducer == "min":
        return _least_index_of_best(bound, term, dtype)
    least = _least_index_of_best(bound, algebra.scale(term, -1), dtype)
    return None if least is None else algebra.scale(least, -1)


def _least_index_of_best(bound: Sequence[Var], term: Poly, dtype: str) -> Poly | None:
    more, body, most = _least_of(term)
    bound = [*bound, *more]
    choice = _choice(opening.opened(body))
    if choice is None or choice.elsewhere > most:
        return None
    if not within(choice.there, integer_range(dtype)[0], choice.elsewhere):
        return None
    for extremum, own, rest in _attaining(bound, choice):
        inner = one_index(choice.there)
        dtypes = inner.tensor.attributes if inner is not None else (_type(own), dtype)
        if _is_known(own, dtypes[0]) and _is_best(extremum, bound, own, rest, dtypes[0]):
            return _index(extremum, bound, own, choice.there, dtypes)
    return None


def _least_of(term: Poly) -> tuple[tuple[Var, ...], Poly, Number]:
    """What a term is the least of, over which variables; a number among it apart. It may be less a greatest."""
    atom, sign = _signed(term)
    most: Number = expr.UNBOUNDED
    if isinstance(atom, Apply) and atom.function == (MINIMUM if sign > 0 else MAXIMUM):
        others = [arg for arg in atom.args if arg.constant is None]
        if len(others) == 1:
            most = min(arg.constant * sign for arg in atom.args if arg.constant is not None)
            term = algebra.scale(others[0], sign)
    ahead = dict(term.items).get((), 0)  # the least of indices that a number is added to is that number more
    atom, sign = _signed(algebra.subtract(term, number(ahead)))
    if not isinstance(atom, Read) or atom.tensor.kind != ("min" if sign > 0 else "max"):
        return (), term, most
    more, (body,) = unfold(atom)
    return more, algebra.add(algebra.scale(body, sign), number(ahead)), most


def _signed(term: Poly) -> tuple[Atom | None, int]:
    """The atom that a term is, or is less; None of another term."""
    less = algebra.scale(term, -1).atom
    return (term.atom, 1) if less is None else (less, -1)


def _is_known(value: Poly, dtype: str) -> bool:
    """Whether a term is what a machine holds of that type, and NaN for no reason but its arguments: what is greater or
    equal to the greatest of several is none of them where one is NaN, whose index an argmax gives."""
    if is_float(dtype):
        return _is_infinite_as_written(value)
    return is_integer(dtype) and within(value, *integer_range(dtype))


def _is_infinite_as_written(value: Poly) -> bool:
    """Whether what is infinite in a term is what the program writes, with no function in between that is not defined
    everywhere: what that is at some place whatever the arguments are (0/0, 1/0) may be NaN."""
    left, seen = [value], set[Atom]()
    while left:
        for atom in {a for mono, _ in left.pop().items for a, _ in mono if a.doubt & INFINITE} - seen:
            seen.add(atom)
            if isinstance(atom, Apply) and atom.function == INFINITY:
                continue
            parts = atom.tensor.bodies if isinstance(atom, Read) else atom.args if isinstance(atom, Apply) else ()
            if isinstance(atom, Apply) and is_partial(atom.function):
                return False
            if not any(map(has_infinite, parts)):
                return False
            left.extend(parts)
    return True


def _is_best(extremum: str, bound: Sequence[Var], own: Poly, rest: Poly, dtype: str) -> bool:
    best = reduce_terms(extremum, bound, own)
    return rest in (best, combine(extremum, best, neutral(extremum, dtype), dtype))


def _index(extremum: str, bound: Sequence[Var], own: Poly, index: Poly, dtypes: Types) -> Poly | None:
    """The index of the best over variables, as a reduction that begins with the worst value and index 0: no value is
    that, or where all are, the least index is 0."""
    first = neutral(extremum, dtypes[0]), ZERO
    inner = one_index(index)
    if inner is not None:
        _, (_, i, *initial) = unfold(inner)
        kind = inner.tensor.kind.removeprefix("arg")
        is_ordered = kind == extremum or is_float(dtypes[0])
        if not is_ordered or not is_from_the_worst(kind, (initial[0], initial[1]), dtypes):
            return None
        ahead = algebra.subtract(index, of_atom(inner))
    else:
        i, ahead = ZERO, index
    hi = integer_range(dtypes[1])[1]
    for corner in (dict.fromkeys(bound, 0), {v: v.size - 1 for v in bound}):
        start = algebra.substitute(ahead, {v: expr.constant(at) for v, at in corner.items()})
        if start.constant is None or not within(i, 0, hi) or not within(algebra.subtract(ahead, start), 0, hi):
            continue
        from_zero = (own, algebra.subtract(index, start))
        return algebra.add(start, index_of_best(extremum, bound, from_zero, first, dtypes))
    if not is_float(dtypes[0]) or not is_finite(own):
        return None
    return index_of_best(extremum, bound, (own, index), first, dtypes)


def _type(value: Poly) -> str:
    """The element type of what is compared, as far as its arguments tell; it is no part of what an index means."""
    tensors = [part for part in opening.ingredients(value) if isinstance(part, Tensor) and part.kind == "argument"]
    types = {tensor.dtype for tensor in tensors}
    return types.pop() if len(types) == 1 else "f32"


def _choice(term: Poly) -> _Choice | None:
    tests = {a for mono, _ in term.items for a, _ in mono if isinstance(a, Apply) and a.function in COMPARISONS}
    if not tests:
        return _choice_by_integer(term)
    test, *others = tests
    if others:
        return None
    fails = algebra.build({mono: c for mono, c in term.items if not _has(mono, test)})
    holds = algebra.add(fails, *(_without(mono, c, test) for mono, c in term.items if _has(mono, test)))
    if test.function == POSITIVE:
        holds, fails = fails, holds
    least = fails.constant
    if not isinstance(least, int):
        return None
    if test.function == EQUAL:
        return _Choice(holds, least, test.args[0], test.args[1], or_more=False)
    if test.function == LESS_OR_EQUAL:
        left, right = test.args[1], test.args[0]
        if left is ZERO:
            left, right = algebra.scale(right, -1), ZERO
        return _Choice(holds, least, left, right, or_more=True)
    if test.function == POSITIVE:
        return _Choice(holds, least, algebra.scale(test.args[0], -1), ZERO, or_more=True)
    return _Choice(holds, least, test.args[0], ZERO, or_more=False)


def _choice_by_integer(term: Poly) -> _Choice | None:
    """Likewise, where the values are integers: a choice by where an integer lies."""
    found = pieces(term)
    chosen = [piece for piece in found if piece.term.constant is None]
    numbers = {piece.term.constant for piece in found} - {None}
    least = next(iter(numbers), None)
    if len(chosen) != 1 or len(numbers) != 1 or not isinstance(least, int):
        return None
    form, lo, hi = chosen[0].form, chosen[0].lo, chosen[0].hi
    if (lo, hi) not in ((0, 0), (0, None), (None, 0)):
        return None
    difference = algebra.of_index(form if lo == 0 else expr.scale(form, -1))
    return _Choice(chosen[0].term, least, difference, ZERO, or_more=lo != hi)


def _attaining(bound: Sequence[Var], choice: _Choice) -> Iterator[tuple[str, Poly, Poly]]:
    """What each element may be compared with the best of, and what with: they are equal where the comparison holds, or
    the element is beyond it."""
    sides = [(choice.left, choice.right)]
    if not choice.or_more:
        sides.append((choice.right, choice.left))
    if choice.right is ZERO:
        difference = choice.left
        own = algebra.build({m: c for m, c in difference.items if any(a.free & set(bound) for a, _ in m)})
        rest = algebra.subtract(own, difference)
        if rest.doubt & INFINITE and not is_finite(own):  # infinities may be equal, but their difference is no number
            return
        sides = [(own, rest)]
    found = [
        (extremum, algebra.scale(a, sign), algebra.scale(b, sign))
        for extremum, beyond in (("max", 1), ("min", -1))
        for sign in (1, -1)
        if sign == beyond or not choice.or_more
        for a, b in sides
    ]  # the greatest of what is negated is less the least: what is not negated comes first, as references have it
    yield from sorted(found, key=lambda each: all(c < 0 for _, c in each[1].items))


def _has(mono: Monomial, atom: Apply) -> bool:
    return any(a is atom for a, _ in mono)


def _without(mono: Monomial, c: Number, atom: Apply) -> Poly:
    return make_poly(((tuple(item for item in mono if item[0] is not atom), c),))
