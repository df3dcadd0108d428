"""Small instances keep what tells terms apart, and make what does not as small as it goes."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.passes.recheck.answer import Outcome, Task, answer, differs_at_full_size
from hlo_verify.passes.recheck.plain import (
    Affine,
    Choose,
    Element,
    Expr,
    Gate,
    Num,
    OfIndex,
    Reduce,
    Symbol,
    add,
    as_affine,
    digit,
    plus,
    sum_of,
    table,
    times,
    whole,
)
from hlo_verify.passes.recheck.shape_reduction import reduce, requirements
from tests.support.optimizer import assert_smallest

X, A = Symbol("x", "argument", "f32"), Symbol("a", "argument", "f32")
N = 4096


def variable(size: int = N) -> Var:
    return expr.fresh("f", size)


def x(*where: Affine) -> Expr:
    return Element(X, where)


def a(*where: Affine) -> Expr:
    return Element(A, where)


def outcome(first: Expr, second: Expr) -> Outcome:
    return answer(Task((first, second), True, 5000)).outcome


ROW, COLUMN = variable(), variable()
i, j = whole(ROW), whole(COLUMN)
D, K = variable(8), variable(512)
d, k = whole(D), whole(K)


def _sum(body: Callable[[Affine], Expr], size: int = N) -> Expr:
    v = variable(size)
    return Reduce("sum", (v,), body(whole(v)))


def _blocks(shared: bool) -> Expr:
    """X . A of which every device contracts all blocks of x with its own block of a, or each with its own."""
    g, v = variable(8), variable(512)
    block = d if shared else whole(g)
    body = times(x(i, sum_of((whole(g), 512), (whole(v), 1))), a(sum_of((block, 512), (whole(v), 1)), j))
    return Reduce("sum", (g, v), body)


def _window(at: Affine, offset: int = 1, first: int = 0, inside: bool = True) -> Expr:
    """Three neighbours of a position, times something that is read at its halves: the window ends between marks."""
    tap = variable(3)
    e = sum_of((at, 1), (whole(tap), 1), const=-offset)
    tests = [Gate(whole(tap), first, None), *([Gate(e, 0, N - 1)] if inside else [])]
    here = x(e) if inside else x(digit(e, 1, N))
    return Reduce("sum", (tap,), times(*tests, here, a(digit(i, 1, 2), digit(i, 2))))


HALVES = sum_of((digit(i, 2), 2), (digit(i, 1, 2), 1))

ALIKE: dict[str, tuple[Expr, Expr]] = {
    "windows off by one": (_window(i), _window(HALVES, offset=2)),
    "a window, all of it but one": (_window(i), _window(HALVES, first=1)),
    "a window over a ring": (_window(i), _window(HALVES, inside=False)),
    "identity, transpose": (x(i, j), x(j, i)),
    "identity, reverse": (x(i), x(sum_of((i, -1), const=N - 1))),
    "identity, roll": (x(i), x(digit(plus(i, 1), 1, N))),
    "reverse, roll": (x(sum_of((i, -1), const=N - 1)), x(digit(plus(i, 1), 1, N))),
    "slices off by one": (x(plus(whole(K), 512)), x(plus(whole(K), 513))),
    "half of a sum, mean": (
        times(_sum(lambda v: x(v)), Num(Fraction(1, 2))),
        times(_sum(lambda v: x(v)), Num(Fraction(1, N))),
    ),
    "a sum with two of b, with one each": (
        _sum(lambda v: add(x(v), a())),
        add(_sum(lambda v: x(v)), times(Num(2), a())),
    ),
    "block-diagonal, whole": (_blocks(True), _blocks(False)),
    "interior pad, none": (
        Choose(times(Gate(digit(i, 1, 2), 0, 0), Gate(i, 0, N - 2)), x(digit(i, 2)), Num(0)),
        Choose(Gate(i, 0, N // 2 - 1), x(i), Num(0)),
    ),
    "interior pad, repeated": (
        Choose(Gate(digit(i, 1, 2), 0, 0), x(digit(i, 2)), Num(0)),
        x(digit(i, 2)),
    ),
    "device, position": (x(sum_of((d, 512), (k, 1))), x(sum_of((k, 8), (d, 1)))),
    "all of a sum, all but the first": (_sum(lambda v: x(v)), _sum(lambda v: times(Gate(v, 1, None), x(v)))),
}


@pytest.mark.parametrize("name", ALIKE)
def test_tells_apart(name: str) -> None:
    assert outcome(*ALIKE[name]) is Outcome.DIFFERENT


def _split() -> Expr:
    g, v = variable(8), variable(512)
    return Reduce("sum", (g, v), x(sum_of((whole(g), 512), (whole(v), 1))))


EQUAL: dict[str, tuple[Expr, Expr]] = {
    "a window at halves": (_window(i), _window(HALVES)),
    "a sum in parts": (_split(), _sum(lambda v: x(v))),
    "a count": (_sum(lambda v: add(x(v), a())), add(_sum(lambda v: x(v)), times(Num(N), a()))),
    "a count of all but three": (
        _sum(lambda v: times(Gate(v, 3, None), add(x(v), a()))),
        add(_sum(lambda v: times(Gate(v, 3, None), x(v))), times(Num(N - 3), a())),
    ),
    "digits of a digit": (x(digit(digit(i, 1, 512), 8)), x(digit(i, 8, 64))),
    "a rotation there and back": (x(digit(plus(digit(plus(i, 1), 1, N), N - 1), 1, N)), x(i)),
}


@pytest.mark.parametrize("name", EQUAL)
def test_keeps_what_is_equal(name: str) -> None:
    assert outcome(*EQUAL[name]) in (Outcome.SAME, Outcome.EQUAL)


def test_sizes_are_least() -> None:
    g, v, u = variable(8), variable(512), variable()
    parts = Reduce("sum", (g, v), x(sum_of((whole(g), 512), (whole(v), 1))))
    instance = reduce((parts, Reduce("sum", (u,), x(whole(u)))))
    assert (instance.size(g), instance.size(v), instance.size(u)) == (2, 2, 4)
    assert instance.pieces(u) == [(1, 2, 512), (2, 2, 8)]
    assert instance.kept == ()


@pytest.mark.parametrize("name", [*ALIKE, *EQUAL])
def test_no_instance_is_smaller(name: str) -> None:
    assert_smallest(requirements((ALIKE | EQUAL)[name]))


def test_an_offset_keeps_its_value_and_makes_room() -> None:
    shifted = x(plus(i, 3))
    instance = reduce((shifted, Gate(i, 3, None)))
    assert instance.size(ROW) == 2 + 2 * 3
    assert reduce((x(sum_of((i, -1), const=N - 1)),)).size(ROW) == 4


def test_a_window_that_ends_between_marks_makes_room() -> None:
    instance = reduce((_window(i), _window(HALVES)))
    assert (instance.size(ROW), instance.kept) == (2 * (2 + 2 * (2 + 2)), (3,))  # two windows of two halves


def test_a_constant_next_to_an_end_is_no_mark() -> None:
    v = variable()
    chosen = Reduce("sum", (v,), Gate(sum_of((whole(v), 1), (as_affine(COUNT), -1), const=1), 0, 0))
    within = Gate(as_affine(COUNT), 1, N)
    assert reduce((chosen, within)).size(v) == 4
    assert outcome(chosen, within) in (Outcome.SAME, Outcome.EQUAL)
    assert outcome(chosen, Gate(as_affine(COUNT), 1, N - 1)) is Outcome.DIFFERENT
    assert outcome(chosen, Gate(as_affine(COUNT), 0, N)) is Outcome.DIFFERENT


COUNT = Element(Symbol("count", "argument", "i32"), ())


@pytest.mark.parametrize("scale", [1, 2, 3])
def test_integers_in_two_scales_of_one_ruler_are_told_apart(scale: int) -> None:
    """Both entries are measured by one ruler: a mark that went along both scales would go on for ever."""
    counts = Symbol("counts", "argument", "i32")

    def weighed(factor: int) -> Expr:
        one, other = (as_affine(Element(counts, (at,))) for at in (i, plus(i, 1)))
        return Gate(sum_of((one, 4), (other, 4 * factor), (d, 12)), 0, 96)

    assert outcome(weighed(scale), weighed(scale)) is Outcome.SAME
    assert outcome(weighed(scale), weighed(scale + 1)) is Outcome.DIFFERENT


def test_what_cannot_be_made_smaller_is_kept_and_said() -> None:
    instance = reduce((OfIndex(i), x(i)))
    assert (instance.size(ROW), instance.kept) == (N, (N,))
    instance = reduce((x(table([3, 1, 2, 0, 7, 5, 6, 4], d)),))
    assert (instance.size(D), instance.kept) == (8, (8,))
    uneven = variable(1000)
    assert reduce((x(digit(whole(uneven), 16)), x(digit(whole(uneven), 1, 16)))).kept == (1000,)


def test_a_question_at_full_size() -> None:
    assert differs_at_full_size((x(i), x(plus(i, 0)))) is False
    assert differs_at_full_size((x(i), x(plus(i, 1)))) is True
    assert differs_at_full_size((_split(), _sum(lambda v: x(v)))) is False
    assert differs_at_full_size((_sum(lambda v: _sum(lambda w: x(v, w))), Num(0))) is None
