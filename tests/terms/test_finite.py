"""Which terms are no infinity, or none but minus infinity."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hlo_verify.index import expr
from hlo_verify.ops.in_order import values
from hlo_verify.terms import algebra, extrema, guards, sums
from hlo_verify.terms.definitions import named
from hlo_verify.terms.finite import if_unknown_may_be
from hlo_verify.terms.functions import INFINITE_EXPONENTIAL, INFINITY, INVERSE, MAXIMUM
from hlo_verify.terms.laws import apply, greater
from hlo_verify.terms.term import Poly, number, tensor

SIZE = 4
QUERY = expr.of_var(expr.var("x", 0, SIZE))
PLACE = expr.var("p", 0, expr.UNBOUNDED)


def score(key: int) -> Poly:
    return algebra.read(tensor("argument", "s", "f32", (SIZE,)), (expr.constant(key),))


def infinity(sign: int) -> Poly:
    return algebra.scale(apply(INFINITY, ()), sign)


def greatest(first: int | None, last: int | None, masked: Poly) -> Poly:
    """Of a query's scores with the keys that are so far away at least and at most, and of `masked` for the others."""
    key = expr.fresh("y", SIZE)
    at = expr.of_var(key)
    seen = guards.interval(expr.subtract(QUERY, at), first, last)
    read = algebra.read(tensor("argument", "s", "f32", (SIZE,)), (at,))
    others = algebra.multiply(algebra.subtract(algebra.ONE, seen), masked)
    return extrema.reduce_extremum("max", [key], algebra.add(algebra.multiply(seen, read), others))


def at_least(place: int, other: int = 0, *, strictly: bool = False) -> Poly:
    """The greatest of the scores that are at least the one at a place in order, of scores times some that another
    variable reads."""
    key, ranked = expr.fresh("y", SIZE), expr.fresh("z", SIZE)
    scores = tensor("argument", "s", "f32", (2, SIZE))
    read = algebra.read(scores, (expr.constant(0), expr.of_var(key)))
    source = algebra.read(scores, (expr.constant(other), expr.of_var(ranked)))
    bound = values(ranked, source, expr.constant(place), "f32")
    seen = greater(read, bound) if strictly else algebra.subtract(algebra.ONE, greater(bound, read))
    masked = algebra.multiply(algebra.subtract(algebra.ONE, seen), infinity(-1))
    return extrema.reduce_extremum("max", [key], algebra.add(algebra.multiply(seen, read), masked))


def of_its_kind(place: expr.Index, masked: Poly) -> Poly:
    """The greatest of the scores of those that are of the kind of one at a place."""
    key, kinds = expr.fresh("y", SIZE), tensor("argument", "e", "i8", (SIZE,))
    own, wanted = (algebra.as_index(algebra.read(kinds, (at,)), -128, 127) for at in (expr.of_var(key), place))
    seen = guards.interval(expr.subtract(own, wanted), 0, 0)
    read = algebra.read(tensor("argument", "s", "f32", (SIZE,)), (expr.of_var(key),))
    others = algebra.multiply(algebra.subtract(algebra.ONE, seen), masked)
    return extrema.reduce_extremum("max", [key], algebra.add(algebra.multiply(seen, read), others))


def added(places: int, keys: int) -> Poly:
    """The greatest scores of some keys from each of so many places on, of which those from SIZE on are masked, added
    up: a sum of what is a number where a window begins at a key."""

    def from_on(place: expr.Index) -> Poly:
        key = expr.fresh("y", keys)
        at = expr.add(place, expr.of_var(key))
        seen = guards.interval(at, None, SIZE - 1)
        others = algebra.multiply(algebra.subtract(algebra.ONE, seen), infinity(-1))
        read = algebra.read(tensor("argument", "s", "f32", (SIZE,)), (at,))
        return extrema.reduce_extremum("max", [key], algebra.add(algebra.multiply(seen, read), others))

    start = expr.fresh("w", 2)
    last = expr.var("q", 0, places)
    shifted = expr.add(expr.of_var(last), expr.of_var(start))
    total = sums.reduce_sum([start], algebra.multiply(named_at(from_on, shifted), score(0)))
    return algebra.substitute(total, {last: expr.of_var(expr.var("r", 0, places))})


@pytest.mark.parametrize(
    ("make", "finite", "not_above"),
    [
        (lambda: score(0), True, True),
        (lambda: infinity(-1), False, True),
        (lambda: infinity(1), False, False),
        (lambda: algebra.add(score(0), infinity(-1)), False, True),
        (lambda: algebra.multiply(score(0), infinity(-1)), False, False),
        (lambda: apply(INFINITE_EXPONENTIAL, (algebra.multiply(score(0), infinity(1)),)), False, False),
        (lambda: greatest(0, None, infinity(-1)), True, True),  # key 0 is never later
        (lambda: greatest(None, 0, infinity(-1)), True, True),  # nor is the last one ever earlier
        (lambda: greatest(1, None, infinity(-1)), False, True),  # query 0 has no earlier key
        (lambda: greatest(None, -1, infinity(-1)), False, True),
        (lambda: greatest(0, 1, infinity(-1)), True, True),  # one is its own key
        (lambda: greatest(1, 2, infinity(-1)), False, True),  # query 0 has none before it
        (lambda: greatest(-1, 1, infinity(1)), False, False),
        (lambda: greatest(0, None, infinity(1)), False, False),
        (lambda: greatest(0, None, score(1)), True, True),
        *((lambda place=place: at_least(place), True, True) for place in range(SIZE)),
        (lambda: at_least(1, strictly=True), False, False),  # there may be ties
        (lambda: at_least(SIZE - 1, strictly=True), False, False),
        (lambda: at_least(1, other=1), False, True),  # of other scores
        (lambda: at_least(0, other=1), False, True),
        (lambda: of_its_kind(QUERY, infinity(-1)), True, True),  # it is of its own kind
        (lambda: of_its_kind(QUERY, infinity(1)), False, False),
        (lambda: of_its_kind(expr.shift(QUERY, 1), infinity(-1)), False, True),  # the last one has none after it
        (lambda: added(SIZE - 1, 3), True, True),  # windows that begin at 0 to SIZE - 1
        (lambda: added(SIZE, 3), False, False),  # one begins where all are masked
        (lambda: apply(MAXIMUM, (greatest(1, None, infinity(-1)), score(0))), True, True),
    ],
)
def test_what_is_known_of_a_term(make: Callable[[], Poly], finite: bool, not_above: bool) -> None:
    term = make()
    assert if_unknown_may_be().surely(term) is finite
    assert if_unknown_may_be().never_above(term) is not_above


def named_at(body: Callable[[expr.Index], Poly], place: expr.Index) -> Poly:
    """What a definition that is made of a place is there; it takes any place."""
    return algebra.substitute(named(body(expr.of_var(PLACE))), {PLACE: place})


def score_above(body: Callable[[expr.Index], Poly]) -> Callable[[expr.Index], Poly]:
    """The same in a definition of another one, beside an argument."""
    return lambda place: named(algebra.add(named_at(body, place), score(1)))


def timescale(place: expr.Index) -> Poly:
    """A value made of constants and places, which is 0 at no place, though nothing shows that."""
    return named(algebra.subtract(algebra.of_index(expr.scale(place, 2)), number(7)))


INFINITE_ONES: dict[str, tuple[Callable[[expr.Index], Poly], dict[int, bool], bool]] = {
    # at some numbers, and at places of some variable
    "everywhere": (lambda x: algebra.add(infinity(1), algebra.of_index(x)), {0: False, 3: False}, False),
    "under a condition": (
        lambda x: algebra.add(algebra.multiply(guards.interval(x, 2, None), infinity(1)), algebra.of_index(x)),
        {0: True, 3: False},
        False,
    ),
    "where it is divided by places": (
        lambda x: algebra.add(apply(INVERSE, (algebra.of_index(x),)), score(0)),
        {0: False, 3: True},
        False,
    ),
    "where it is divided by places behind 0": (
        lambda x: algebra.add(apply(INVERSE, (algebra.of_index(expr.shift(x, 1)),)), score(0)),
        {0: True, 3: True},
        True,
    ),
    "where it is divided by a name": (
        lambda x: algebra.add(apply(INVERSE, (timescale(x),)), score(0)),
        {0: False, 3: False},
        False,
    ),
    "as a mask": (lambda x: apply(MAXIMUM, (infinity(-1), algebra.of_index(x))), {0: True, 3: True}, True),
}


@pytest.mark.parametrize("deeper", [lambda body: body, score_above, lambda body: score_above(score_above(body))])
@pytest.mark.parametrize("infinite", INFINITE_ONES)
def test_an_element_of_a_definition_is_a_number_where_its_place_spares_it_the_infinity(
    infinite: str, deeper: Callable[[Callable[[expr.Index], Poly]], Callable[[expr.Index], Poly]]
) -> None:
    body, at_numbers, at_any = INFINITE_ONES[infinite]
    for place, is_one in at_numbers.items():
        assert if_unknown_may_be().surely(named_at(deeper(body), expr.constant(place))) == is_one, place
    assert if_unknown_may_be().surely(named_at(deeper(body), QUERY)) == at_any
