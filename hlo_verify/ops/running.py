"""Loops in closed form: what a loop carries as a function of its counter, where that is a running sum.

A component that every iteration adds something to, where what it adds is made of nothing that the loop carries but
counters and what never changes, ends as `initial + sum over t. added(t)`. The sum then closes like any other: gradients
accumulated over microbatches are the gradient over the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.ir import TensorType
from hlo_verify.ops.values import Value, is_integer, lighten, positions
from hlo_verify.solver import cases
from hlo_verify.terms import algebra, sums
from hlo_verify.terms.term import Poly, tensor

TERMS = 64
"""The most integers that are added up one by one."""

Iterate = Callable[[list[Value]], list[Value]]


def running_sums(
    t: Var,
    initial: Sequence[Value],
    known: Mapping[int, Value],
    outer: tuple[Index, ...],
    iterate: Iterate,
) -> dict[int, Value] | None:
    """The last values of the components that are not `known` at iteration `t`; None if some is no running sum.

    `iterate` gives the values after an iteration from those before it; `outer` is what they may depend on beside the
    iteration: the device. An iteration is run once, from arbitrary values that are told by a variable of their own
    (`before`), so that what is free of it depends on none of them.
    """
    before = expr.fresh("before", 2)
    now = (expr.of_var(before), *outer, expr.of_var(t))
    state = [known[k] if k in known else _arbitrary(k, value.type, now) for k, value in enumerate(initial)]
    after = iterate(state)
    ends = {}
    for k, value in enumerate(initial):
        if k in known:
            continue
        added = algebra.subtract(cases.opened(after[k].term), state[k].term)
        if before in added.free or value.type.dtype == "i1":
            return None
        total = algebra.add(value.term, _summed(t, added, value.type.dtype))
        ends[k] = Value(value.type, lighten(total, value.type.dtype))
    return ends


def _summed(t: Var, added: Poly, dtype: str) -> Poly:
    """The sum over iterations; of integers one by one, so that a number stays a number."""
    if is_integer(dtype) and t.size <= TERMS:
        return algebra.add(*(algebra.substitute(added, {t: expr.constant(n)}) for n in range(t.size)))
    return sums.reduce_sum([t], added)


def _arbitrary(k: int, kind: TensorType, at: tuple[Index, ...]) -> Value:
    source = tensor("opaque", f"carried {k}", kind.dtype, kind.shape)
    return Value(kind, algebra.read(source, (*at, *positions(kind.shape))))
