"""The meaning of operations that move elements."""

from __future__ import annotations

from collections.abc import Sequence

from hlo_verify.passes.recheck.meanings.site import Meaning, Site, UnwrittenError
from hlo_verify.passes.recheck.plain import (
    ONE,
    Affine,
    Choose,
    Expr,
    Gate,
    add,
    as_affine,
    clamp,
    digit,
    plus,
    row_major,
    sum_of,
    times,
)
from hlo_verify.program.op_families import IDENTITIES


def _broadcast_in_dim(site: Site) -> Expr:
    dims, (source, *_) = site.attribute("broadcast_dimensions"), site.operands
    return site.read(0, [Affine(0) if n == 1 else site.where[k] for n, k in zip(source.shape, dims, strict=True)])


def _transpose(site: Site) -> Expr:
    permutation = list(site.attribute("permutation"))
    return site.read(0, [site.where[permutation.index(k)] for k in range(len(permutation))])


def _reshape(site: Site) -> Expr:
    """Elements keep their place in row-major order.

    Dimensions that both shapes share at an end stand for themselves; of the others the place is taken apart.
    """
    return site.read(0, rearranged(site.operands[0].shape, site.type.shape, site.where))


def rearranged(source: Sequence[int], result: Sequence[int], where: Sequence[Affine]) -> list[Affine]:
    """The index in `source` of the element at `where` of a reshape."""
    if 0 in source:
        return [Affine(0)] * len(source)
    groups: list[tuple[list[int], list[int]]] = []
    a, b = list(range(len(source))), list(range(len(result)))
    while a or b:
        left: list[int] = []
        right: list[int] = []
        m = n = 1
        while not (left or right) or m != n:
            if (m <= n and a) or not b:
                left.append(a.pop(0))
                m *= source[left[-1]]
            else:
                right.append(b.pop(0))
                n *= result[right[-1]]
        groups.append((left, right))
    found = [Affine(0)] * len(source)
    for left, right in groups:
        place = row_major([result[k] for k in right], [where[k] for k in right])
        stride = 1
        for k in reversed(left):
            top = k == left[0]
            found[k] = Affine(0) if source[k] == 1 else digit(place, stride, None if top else source[k])
            stride *= source[k]
    return found


def _slice(site: Site) -> Expr:
    starts, strides = site.attribute("start_indices"), site.attribute("strides")
    return site.read(0, [sum_of((e, s), const=b) for e, b, s in zip(site.where, starts, strides, strict=True)])


def _reverse(site: Site) -> Expr:
    dims = site.attribute("dimensions")
    return site.read(
        0,
        [
            sum_of((e, -1), const=n - 1) if k in dims else e
            for k, (e, n) in enumerate(zip(site.where, site.type.shape, strict=True))
        ],
    )


def _concatenate(site: Site) -> Expr:
    k = site.attribute("dimension")
    pieces, start = [], 0
    for n, operand in enumerate(site.operands):
        size = operand.shape[k]
        if size:
            here = list(site.where)
            here[k] = plus(here[k], -start) if size > 1 else Affine(0)
            pieces.append(times(Gate(site.where[k], start, start + size - 1), site.read(n, here)))
        start += size
    return add(*pieces)


def _pad(site: Site) -> Expr:
    source = site.operands[0]
    low, interior = site.attribute("edge_padding_low"), site.attribute("interior_padding")
    if 0 in source.shape:
        return site.read(1, [])
    tests: list[Expr] = []
    where = []
    for k, size in enumerate(source.shape):
        e = plus(site.where[k], -low[k])
        step = interior[k] + 1
        if step > 1:
            tests.append(Gate(digit(e, 1, step), 0, 0))
        tests.append(Gate(e, 0, (size - 1) * step))
        where.append(digit(e, step))
    return Choose(times(*tests), site.read(0, where), site.read(1, []))


def _start(site: Site, n: int, where: Sequence[Affine], size: int, width: int) -> Affine:
    return clamp(as_affine(site.read(n, where)), 0, size - width)


def _dynamic_slice(site: Site) -> Expr:
    shape = site.operands[0].shape
    return site.read(
        0,
        [sum_of((_start(site, 1 + k, [], n, site.type.shape[k]), 1), (site.where[k], 1)) for k, n in enumerate(shape)],
    )


def _dynamic_update_slice(site: Site) -> Expr:
    shape, update = site.operands[0].shape, site.operands[1].shape
    if 0 in update:
        return site.read(0, site.where)
    tests: list[Expr] = []
    where = []
    for k, n in enumerate(shape):
        e = sum_of((site.where[k], 1), (_start(site, 2 + k, [], n, update[k]), -1))
        tests.append(Gate(e, 0, update[k] - 1))
        where.append(e if update[k] > 1 else Affine(0))
    return Choose(times(*tests) if tests else ONE, site.read(1, where), site.read(0, site.where))


def _identity(site: Site) -> Expr:
    return site.read(site.result, site.where)


def _custom_call(site: Site) -> Expr:
    target = str(site.attribute("call_target_name"))
    if target not in CUSTOM_CALLS:
        raise UnwrittenError(f"custom_call to {target}")
    return CUSTOM_CALLS[target](site)


def _gather(site: Site) -> Expr:
    operand, indices = site.operands
    numbers, sizes = site.attribute("dimension_numbers"), site.attribute("slice_sizes")
    offsets, vector = numbers["offset_dims"], numbers["index_vector_dim"]
    batch = [e for k, e in enumerate(site.where) if k not in offsets]
    fixed = {*numbers["collapsed_slice_dims"], *numbers["operand_batching_dims"]}
    free = [k for k in range(operand.rank) if k not in fixed]
    parts: list[list[tuple[Affine, int]]] = [[] for _ in operand.shape]
    for k, dim in zip(free, offsets, strict=True):
        parts[k].append((site.where[dim], 1))
    for n, k in enumerate(numbers["start_index_map"]):
        at = [*batch[:vector], Affine(n), *batch[vector:]] if vector < indices.rank else batch
        parts[k].append((_start(site, 1, at, operand.shape[k], sizes[k]), 1))
    for k, b in zip(numbers["operand_batching_dims"], numbers["start_indices_batching_dims"], strict=True):
        parts[k].append((batch[b if b < vector else b - 1], 1))
    return site.read(0, [sum_of(*p) for p in parts])


CUSTOM_CALLS: dict[str, Meaning] = dict.fromkeys(IDENTITIES, _identity)
"""By target."""

MEANINGS: dict[str, Meaning] = {
    "broadcast_in_dim": _broadcast_in_dim,
    "transpose": _transpose,
    "reshape": _reshape,
    "slice": _slice,
    "reverse": _reverse,
    "concatenate": _concatenate,
    "pad": _pad,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "optimization_barrier": _identity,
    "sdy.sharding_constraint": _identity,
    "sdy.reshard": _identity,
    "custom_call": _custom_call,
    "gather": _gather,
}
"""Meanings by operation name."""
