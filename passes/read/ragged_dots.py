"""What `ragged_dot` computes (`jax.lax.ragged_dot_general`), as a function of JAX arrays.

Group j of a dimension of the left operand has the elements that follow those of groups 0 to j - 1, as many as its size
says. If the dimension is not contracted, each element is multiplied by the right operand of its group:

    r[m, n] = sum k. x[m, k] * w[group of m, k, n]

If it is, each group gives a result: `r[j, m, n] = sum k in group j. x[m, k] * w[k, n]`. Elements that are in no group
give zeros. Groups of a batching dimension have no meaning here, as nobody says what they change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

NAMES = frozenset({"chlo.ragged_dot", "mhlo.ragged_dot"})

SAID = "ragged_dot is a sum of products in groups, as jax.lax.ragged_dot_general says; what is in no group gives zeros"

_FIELDS = (
    "lhs_batching_dimensions rhs_batching_dimensions lhs_contracting_dimensions rhs_contracting_dimensions "
    "lhs_ragged_dimensions rhs_group_dimensions"
).split()

_SIZES = ("i32", "i64", "ui32", "ui64")
"""Types in which no place of a tensor overflows."""


def numbers_of(operation: Any) -> tuple[tuple[int, ...], ...] | None:
    """The dimensions that an operation names, in the order of `_FIELDS`. None where it says anything else."""
    text = str(operation.attributes["ragged_dot_dimension_numbers"])
    found = re.findall(r"(\w+) = \[([\d, ]*)\]", text)
    fields = {name: tuple(int(each) for each in given.split(",") if each.strip()) for name, given in found}
    if len(fields) != len(found) or not fields.keys() <= set(_FIELDS):
        return None
    return tuple(fields.get(name, ()) for name in _FIELDS)


def meaning(operation: Any, dtype: str | None) -> Callable[..., Any] | None:
    """What an operation computes of its operands, in a type of elements. None where that is not known."""
    numbers = numbers_of(operation)
    if numbers is None or dtype is None or str(operation.operands[2].type.element_type) not in _SIZES:
        return None
    left_batch, _, left_contracted, _, ragged, grouped = numbers
    if len(ragged) != 1 or ragged[0] in left_batch or len(grouped) != (ragged[0] not in left_contracted):
        return None
    return lambda *arrays: _ragged_dot(numbers, dtype, *arrays)


def _ragged_dot(numbers: tuple[tuple[int, ...], ...], dtype: str, x: Any, w: Any, sizes: Any) -> Any:
    from jax import lax

    left_batch, right_batch, left_contracted, right_contracted, (ragged,), grouped = numbers
    contracted = [1 + k for k in left_contracted], [1 + k for k in right_contracted]
    if grouped:
        taken = {*left_batch, *left_contracted}
        before = (*left_batch, *(k for k in range(ragged) if k not in taken))
        parts = _apart(x, sizes, ragged, before)
        pairs = ([*contracted[0], 0], [*right_contracted, *grouped])
        return lax.dot_general(
            parts, w, (pairs, ([1 + k for k in left_batch], right_batch)), preferred_element_type=dtype
        )
    n = left_contracted.index(ragged)
    left = _apart(x, sizes, ragged, (*left_batch, *left_contracted[:n]))
    right = _apart(w, sizes, right_contracted[n], (*right_batch, *right_contracted[:n]))
    batch = [0, *(1 + k for k in left_batch)], [0, *(1 + k for k in right_batch)]
    return lax.dot_general(left, right, (contracted, batch), preferred_element_type=dtype)


def _apart(x: Any, sizes: Any, ragged: int, before: Sequence[int]) -> Any:
    """The elements of each group in their places, along a new dimension 0, with zeros in the others' places. Each of
    the dimensions `before` may have sizes of its own."""
    import jax.numpy as jnp
    from jax import lax

    groups, own = sizes.shape[-1], sizes.ndim > 1
    if own and sizes.shape[:-1] != tuple(x.shape[k] for k in before):
        raise TypeError("sizes of groups for other dimensions")
    window, padding = [1] * sizes.ndim, [(0, 0)] * sizes.ndim
    window[-1], padding[-1] = groups, (groups - 1, 0)
    ends = lax.reduce_window(sizes, sizes.dtype.type(0), lax.add, window, [1] * sizes.ndim, padding)[..., None]
    place = lax.broadcasted_iota(sizes.dtype, (*sizes.shape, x.shape[ragged]), sizes.ndim)
    inside = (ends - sizes[..., None] <= place) & (place < ends)
    where = [*(1 + k for k in before if own), 0, 1 + ragged]
    inside = lax.transpose(inside, sorted(range(len(where)), key=where.__getitem__))
    shape = (groups, *x.shape)
    inside = lax.broadcast_in_dim(inside, shape, sorted(where))
    return lax.select(inside, lax.broadcast_in_dim(x, shape, range(1, x.ndim + 1)), jnp.zeros(shape, x.dtype))
