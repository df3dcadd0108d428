"""Which bound variables of one sum may be those of another."""

from __future__ import annotations

from functools import reduce
from itertools import permutations

import pytest

from hlo_verify.equality.alignment import alignments, frame_of
from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import define
from hlo_verify.terms.term import ONE, Poly, Read, tensor

X = tensor("argument", "x", "f32", (64, 64))


def variables(*sizes: int) -> list[Var]:
    return [expr.var("v", n, size) for n, size in enumerate(sizes)]


def element(*indices: Index) -> Poly:
    return algebra.read(X, indices)


def joined(low: Var, high: Var) -> Index:
    """The two as digits of one number."""
    return expr.add(expr.of_var(low), expr.scale(expr.of_var(high), low.size))


def summed(bound: list[Var], body: Poly) -> Read:
    atom = define("sum", bound, (body,)).atom
    assert isinstance(atom, Read)
    return atom


def test_links_are_variables_that_go_on_from_each_other() -> None:
    a, b, c = variables(4, 8, 16)
    body = element(joined(a, b), expr.of_var(c))
    assert frame_of(body, [a, b, c]).following == {a: [b], b: [], c: []}


def test_links_are_found_inside_functions_and_quotients() -> None:
    a, b = variables(4, 8)
    body = element(expr.floor_div(expr.shift(joined(a, b), 1), 5), expr.constant(0))
    assert frame_of(body, [a, b]).following[a] == [b]


def test_sums_of_equal_sizes_are_aligned_in_every_order() -> None:
    a, b = variables(6, 6)
    read = summed([a, b], algebra.multiply(element(*map(expr.of_var, (a, b))), element(*map(expr.of_var, (a, a)))))
    c, d = (expr.var("w", n, 6) for n in range(2))
    found = set(alignments(read, frame_of(ONE, [c, d])))
    one, other = (
        algebra.multiply(element(expr.of_var(x), expr.of_var(y)), element(expr.of_var(x), expr.of_var(x)))
        for x, y in ((c, d), (d, c))
    )
    assert found == {one, other}


def test_a_variable_is_aligned_with_several_that_go_on_from_each_other() -> None:
    (whole,), zero = variables(32), expr.constant(0)
    low, high = expr.var("w", 0, 4), expr.var("w", 1, 8)
    read = summed([whole], element(expr.of_var(whole), zero))
    whole_term = element(joined(low, high), zero)
    assert list(alignments(read, frame_of(whole_term, [low, high]))) == [whole_term]
    apart = element(expr.of_var(low), expr.of_var(high))
    assert not list(alignments(read, frame_of(apart, [low, high])))


def test_every_common_variable_has_to_be_used() -> None:
    (whole,), zero = variables(32), expr.constant(0)
    same, more = expr.var("w", 0, 32), expr.var("w", 1, 2)
    read = summed([whole], element(expr.of_var(whole), zero))
    assert not list(alignments(read, frame_of(ONE, [same, more])))


@pytest.mark.parametrize("places", list(permutations(range(4))))
def test_variables_that_are_used_alike_are_aligned_first(places: tuple[int, ...]) -> None:
    """Whatever the order of the variables, of which 24 alignments fit."""
    tensors = [tensor("argument", f"t{n}", "f32", (8,)) for n in range(4)]

    def body(variables: list[Var]) -> Poly:
        factors = (algebra.read(t, (expr.of_var(v),)) for t, v in zip(tensors, variables, strict=True))
        return reduce(algebra.multiply, factors)

    ours, theirs = ([expr.var(kind, n, 8) for n in range(4)] for kind in "vw")
    read = summed(ours, body(ours))
    frame = frame_of(body(theirs), [theirs[n] for n in places])
    assert next(alignments(read, frame)) is body(theirs)
