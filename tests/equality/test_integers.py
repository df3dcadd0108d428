"""Index expressions and guards as Z3 sees them are what they are in numbers."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict, limits
from hlo_verify.equality.backend import Backend, Different, Equal, Limit, Limits, Unknown
from hlo_verify.equality.effort import Effort
from hlo_verify.equality.integers import Integers, Together
from hlo_verify.index import expr
from hlo_verify.index.expr import Opaque
from hlo_verify.memory import Memory
from hlo_verify.session import Session
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.summed_values import summed_under_conditions
from hlo_verify.terms.term import ONE, Atom, Guard, Ix, number, tensor
from tests.support.expressions import evaluated, index, many, space
from tests.support.lowering import Placed


@many
@given(data=st.data())
def test_what_occurs_is_possible(data: st.DataObject) -> None:
    """All values of two expressions at one point, and only possible guards."""
    where = space(data.draw, 2)
    a, b = index(data.draw, where), index(data.draw, where)
    lo = data.draw(st.integers(-6, 12))
    guard = guards.interval_atom(a.it, lo, lo + data.draw(st.integers(0, 6)))
    guarded = [guard.form] if isinstance(guard, Guard) else []
    integers = Integers([a.it, b.it, *guarded], Effort(100))
    x, y = integers.of(a.it), integers.of(b.it)
    occurring = sorted(set(zip(a.values.flat, b.values.flat, strict=True)))
    for p, q in occurring[:6]:
        assert integers.possible(x == int(p), y == int(q)), (a.it, b.it, p, q)
    if isinstance(guard, Guard):
        holds = {bool(v) for v in evaluated(guards.interval(guard.form, guard.lo, guard.hi), where).flat}
        for value in holds:
            condition = integers.holds(guard)
            assert integers.possible(condition if value else z3.Not(condition)), guard


@many
@given(data=st.data())
def test_what_does_not_occur_is_refused(data: st.DataObject) -> None:
    """Everything but the values of tables, of which only the range is known."""
    where = space(data.draw, 2)
    e = index(data.draw, where)
    if "table" in repr(e.it):
        return
    integers = Integers([e.it], Effort(100))
    values = {int(x) for x in e.values.flat}
    for k in range(min(values) - 2, max(values) + 3):
        if k not in values:
            assert not integers.possible(integers.of(e.it) == k), (e.it, k)
            return


def test_unbounded_parameters_take_all_values() -> None:
    e = expr.of_var(expr.var("s", "integers", expr.UNBOUNDED))
    integers = Integers([e], Effort(10))
    for k in (-5, 0, 1 << 40):
        assert integers.possible(integers.of(e) == k)


def test_without_effort_everything_is_possible() -> None:
    effort = Effort(1)
    integers = Integers([], effort)
    never = integers.number(0) == 1
    assert not integers.possible(never)
    assert effort.left == 0
    assert integers.possible(never)


def test_a_question_past_its_limits_is_possible_and_remembered() -> None:
    a, b, c = (expr.of_var(expr.fresh("f", 1000)) for _ in range(3))
    effort = Effort(10, session=Session(limits.Limits(solver_steps=1)))
    integers = Integers([a, b, c], effort)
    x, y, z = map(integers.of, (a, b, c))
    never, sometimes = (6 * x + 10 * y == 14 * z + 1,), (6 * x + 10 * y == 14 * z + 2,)
    assert integers.possible(*never)
    (unknown,) = effort.unanswered
    assert unknown.limit is Limit.TIME and "1 steps" in unknown.reason
    backend: Backend[Together] = integers
    assert backend.decide(Together(never), Limits(20_000)) == Equal()
    assert isinstance(backend.decide(Together(sometimes), Limits(20_000)), Different)
    assert isinstance(backend.decide(Together(sometimes), Limits(20_000, steps=1)), Unknown)
    full = backend.decide(Together(sometimes), Limits(20_000, megabytes=1))
    assert isinstance(full, Unknown) and full.limit is Limit.MEMORY


TYPES = (-128, 127), (0, 255)


@pytest.mark.parametrize("seed", range(40))
def test_a_sum_under_conditions_is_what_the_machine_holds(seed: int) -> None:
    """Of every element, with every sum that wraps, in types of eight bits."""
    draw = random.Random(seed)
    with Memory().on():
        lo, hi = TYPES[seed % 2]
        i = expr.of_var(expr.var("i", "i", 3))
        k = algebra.read(tensor("argument", "k", ("i8", "ui8")[seed % 2], (3,)), [i])
        element = algebra.as_index(k, lo, hi)
        p = algebra.scale(algebra.of_index(i), draw.randint(-2, 2))
        p = algebra.add(p, algebra.scale(k, draw.randint(-2, 2)), number(draw.choice((0, draw.randint(-300, 300)))))
        for _ in range(draw.randint(1, 2)):
            end = draw.randint(lo, hi - 1)
            holds = guards.interval(element, None, end) if draw.random() < 0.7 else guards.interval(i, None, end % 2)
            part = algebra.multiply(holds, draw.choice((k, ONE)))
            p = algebra.add(p, algebra.scale(part, draw.randint(-300, 300)))
        value = algebra.as_index(p, lo, hi)
        integers = Integers([value, element, i], Effort(200))
        parts = [summed_under_conditions(a) for a, _ in value.items if isinstance(a, Opaque)]
        for _ in range(4):
            n, m = draw.randint(lo, hi), draw.randint(0, 2)
            total = sum(int(c) * prod(_held(a, n, m) for a, _ in mono) for mono, c in p.items)
            held = (total - lo) % (hi - lo + 1) + lo
            here = (integers.of(element) == n, integers.of(i) == m)
            assert integers.possible(*here, integers.of(value) == held), (p, n, m, held)
            if len(value.items) == 1 and parts and parts[0] is not None and not value.const:
                assert not integers.possible(*here, integers.of(value) != held), (p, n, m, held)


def _held(atom: Atom, n: int, m: int) -> int:
    """An atom where the element is n, and its place m."""
    if isinstance(atom, Guard):
        is_element = any(isinstance(part, Opaque) for part, _ in atom.form.items)
        value = (n if is_element else m) + atom.form.const
        return int((atom.lo is None or atom.lo <= value) and (atom.hi is None or value <= atom.hi))
    return m if isinstance(atom, Ix) else n


def from_the_end(off: int = 16, end: int = 0) -> Callable[..., Any]:
    """Look up at places that may be counted from the end, on the device that has them."""

    def local(x: Any, k: Any) -> Any:
        mine, where = 4 * lax.axis_index("x") + jnp.arange(4), jnp.where(k < end, k + off, k)
        return lax.psum(jnp.where(mine == where[:, None], x, 0).sum(1), "x")

    return local


@pytest.mark.parametrize(
    ("local", "expected"),
    [
        (from_the_end(), Verdict.PROVED),
        (from_the_end(off=15), Verdict.UNKNOWN),
        (from_the_end(end=1), Verdict.UNKNOWN),
        (from_the_end(end=-1), Verdict.UNKNOWN),
        (from_the_end(off=2**31 - 1), Verdict.UNKNOWN),
    ],
    ids=["right", "one before", "0 from the end", "-1 from the begin", "wraps"],
)
def test_places_from_the_end(local: Callable[..., Any], expected: Verdict) -> None:
    mesh = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))
    shapes = [jax.ShapeDtypeStruct((16,), "float32"), jax.ShapeDtypeStruct((4,), "int32")]
    pair = Placed(mesh, (P("x"), P()), P(), shapes).pair(lambda x, k: x.at[k].get(mode="fill", fill_value=0.0), local)
    assert hlo_verify.verify(*pair, refute=False).verdict is expected
