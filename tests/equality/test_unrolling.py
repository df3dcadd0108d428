"""A sum that is taken apart is the sum that it was."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.equality.unrolling import unrolled, written_out
from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import define
from hlo_verify.terms.functions import real
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Poly, Read, of_atom, tensor
from tests.support.expressions import Space, data, evaluated, many, poly, space


def sum_of(bound: list[Var], body: Poly) -> Read:
    atom = define("sum", bound, (body,)).atom
    assert isinstance(atom, Read)
    return atom


def shorter(size: int) -> Read:
    """Another sum, over so many values."""
    v = expr.var("z", 0, size)
    return sum_of([v], algebra.read(tensor("argument", "a", "f32", (size,)), [expr.of_var(v)]))


@many
@given(draws=st.data())
def test_values_stay(draws: st.DataObject) -> None:
    draw = draws.draw
    rest = space(draw, 1)
    sizes, turns = draw(st.sampled_from((((12,), 3), ((12,), 2), ((4, 6), 2), ((3, 2), 3), ((8,), 4))))
    bound = [expr.var("y", n, size) for n, size in enumerate(sizes)]
    known = data(draw)
    body = poly(draw, Space((*rest.variables, *bound)), known)
    long = sum_of(bound, apply(real("tanh"), (body.it,)))
    ways = list(unrolled([long, *(shorter(int(np.prod(sizes)) // turns) for _ in range(turns))], Session()))
    assert ways
    wanted = np.tanh(body.values.astype(float)).sum(axis=tuple(range(1, 1 + len(bound))))
    for way in ways:
        assert list(way) == [long]
        assert np.allclose(evaluated(way[long], rest, known.evaluator).astype(float), wanted)


def test_only_what_may_be_turns() -> None:
    """There are two numbers of values, one a multiple of the other, and a shorter sum for every turn."""
    six, four, *two = (shorter(size) for size in (6, 4, 2, 2, 2, 2))
    assert list(unrolled([six, *two[:3]], Session()))
    assert not list(unrolled([six, *two], Session()))
    assert not list(unrolled([six, *two[:2]], Session()))
    assert not list(unrolled(two, Session()))
    assert not list(unrolled([six, four], Session()))
    assert not list(unrolled([six, shorter(3), *two[:2]], Session()))
    session = Session()
    assert not list(unrolled([shorter(64), *(shorter(2) for _ in range(32))], session))
    assert session.spent().limits == ("turns_apart",)


@many
@given(draws=st.data())
def test_additions_instead_of_a_sum(draws: st.DataObject) -> None:
    draw = draws.draw
    rest = space(draw, 1)
    bound = [expr.var("y", n, size) for n, size in enumerate(draw(st.sampled_from(((3,), (2, 3), (3, 12)))))]
    known = data(draw)
    body = poly(draw, Space((*rest.variables, *bound)), known)
    total = of_atom(sum_of(bound, apply(real("tanh"), (body.it,))))
    added_up = written_out(total, Session())
    assert added_up is not None
    wanted = np.tanh(body.values.astype(float)).sum(axis=tuple(range(1, 1 + len(bound))))
    assert np.allclose(evaluated(added_up, rest, known.evaluator).astype(float), wanted)


def test_only_a_few_additions() -> None:
    assert written_out(of_atom(shorter(8)), Session()) is not None
    assert written_out(of_atom(shorter(9)), Session()) is None
    sums = [of_atom(shorter(n)) for n in range(2, 9)]  # 35 additions
    assert written_out(algebra.add(*sums), Session()) is not None
    other = sum_of([expr.var("z", k, 4) for k in range(2)], apply(real("tanh"), (sums[0],)))
    session = Session()
    assert written_out(algebra.add(*sums, of_atom(other)), session) is None
    assert session.spent().limits == ("written_out_terms",)
