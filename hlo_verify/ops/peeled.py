"""Single turns of a logical loop, made one by one, for loops that leave some of them out at either end (`turns`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.limits import limit_of
from hlo_verify.ops.counting import iterate
from hlo_verify.ops.values import Context, Value
from hlo_verify.program.ir import Op
from hlo_verify.terms import algebra


@dataclass(frozen=True, slots=True)
class Peeled:
    """What a loop carries after single turns of it; nothing where these were not made."""

    early: tuple[tuple[Value, ...], ...] = ()
    """After the first turn, the second, ..., from the initial values."""
    late: tuple[tuple[Value, ...], ...] = ()
    """After the last turns but so many, ..., after the last one, each from the names of what it carries before."""


def peeled(op: Op, args: Sequence[Value], pure: Context, trips: int, state: Sequence[Value], t: Var) -> Peeled:
    """The first and the last turns of a loop of so many, which carries `state` at the start of turn `t`. None of them
    where an operation is not understood: it may give another value each time."""
    values, count = list(args), limit_of("peeled_turns")
    early: list[tuple[Value, ...]] = []
    for n in range(min(trips - 1, count)):
        values = iterate(op, values, pure, expr.constant(n))
        early.append(tuple(values))
    late: list[tuple[Value, ...]] = []
    for n in range(max(0, trips - count), trips):
        turn = expr.constant(n)
        before = [Value(value.type, algebra.substitute(value.term, {t: turn})) for value in state]
        late.append(tuple(iterate(op, before, pure, turn)))
    return Peeled() if pure.unsupported else Peeled(tuple(early), tuple(late))
