"""Index expressions and guards as Z3 sees them are what they are in numbers."""

from __future__ import annotations

import z3
from hypothesis import given
from hypothesis import strategies as st

from hlo_verify import limits
from hlo_verify.equality.backend import Backend, Different, Equal, Limit, Limits, Unknown
from hlo_verify.equality.effort import Effort
from hlo_verify.equality.integers import Integers, Together
from hlo_verify.index import expr
from hlo_verify.session import Session
from hlo_verify.terms import guards
from hlo_verify.terms.term import Guard
from tests.support.expressions import evaluated, index, many, space


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
