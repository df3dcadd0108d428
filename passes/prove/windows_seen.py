"""Windows over a tensor that a value of the partitioned module may be, as what both read says.

Where windows overlap shards, XLA puts together what a device has of them, and masks what lies past the tensor:

    select(6*d + i < 13, pieces[i], -inf)       where the pieces are x[6] of the device before, x[6*d + i] and
                                                x[7 + i] of the one behind

No logical operation gives that, and the one of the same origin reads the tensor that it is a window over. So it is
compared with the tensor's elements at each place that the value reads, and with what the value holds of no tensor past
its ends. Nothing is taken for granted: whoever asks has to show that the two are equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hlo_verify.equality.opening import opened
from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.ops.movement import guarded_select
from hlo_verify.ops.values import Value, position, position_var
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.term import ONE, ZERO, Guard, Poly, Read, Tensor, make_poly, reads

Slot = tuple[Tensor, int, int, int]
"""A tensor, which of its indices counts along a dimension, and `scale` and `shift` by which it does."""


def windows(found: Value, wholes: Sequence[Value]) -> Iterator[Poly]:
    """What a value would be as a window over one of some tensors, of those with as many dimensions."""
    plain = opened(found.term)
    for whole in dict.fromkeys(wholes):
        if whole.type.dtype != found.type.dtype or len(whole.shape) != len(found.shape):
            continue
        for places in _places(plain, whole):
            inside = ONE
            for e, n in zip(places, whole.shape, strict=True):
                inside = algebra.multiply(inside, guards.interval(e, 0, n - 1))
            for fill in [ZERO] if inside is ONE else _fills(plain):
                yield guarded_select(inside, whole.at(places), fill)


def _slots(made_of: set[Read], k: int, size: int) -> list[Slot]:
    """Where the tensors that a tensor is made of are read at its index along a dimension of that size."""
    if size == 1:
        return []
    own, found = position_var(k, size), []
    for read in sorted(made_of, key=lambda each: each.uid):
        for n, e in enumerate(read.indices):
            if e.free == {own} and len(e.items) == 1:
                scale = e.items[0][1]
                if scale > 0 and expr.subtract(e, expr.scale(position(k, size), scale)).items == ():
                    found.append((read.tensor, n, scale, e.const))
    return found


def _places(found: Poly, whole: Value) -> list[tuple[Index, ...]]:
    """The places of a tensor that a term reads, if it says so of all dimensions."""
    made_of = reads(opened(whole.term))
    slots = [_slots(made_of, k, size) for k, size in enumerate(whole.shape)]
    seen: dict[tuple[Index, ...], None] = {}
    for read in sorted(reads(found), key=lambda each: each.uid):
        places = [_place(read, slots[k], size) for k, size in enumerate(whole.shape)]
        known = tuple(e for e in places if e is not None)
        if len(known) == len(places) and any(e.free for e in known):
            seen[known] = None
    return sorted(seen, key=lambda each: -sum(len(e.free) for e in each))[:3]  # all others are special cases of these


def _place(read: Read, slots: list[Slot], size: int) -> Index | None:
    """Where along a dimension a tensor is read, by one of what it is made of."""
    if size == 1:
        return expr.constant(0)
    for tensor, n, scale, shift in slots:
        if tensor is read.tensor:
            e, rest = expr.floor_divmod(expr.shift(read.indices[n], -shift), scale)
            if rest is expr.constant(0):
                return e
    return None


def _fills(p: Poly) -> list[Poly]:
    """What a value holds of no tensor, first of all, and nothing."""
    seen: dict[Poly, None] = {}
    for mono, c in p.items:
        if not any(isinstance(atom, Read) for atom, _ in mono):
            left = tuple((atom, n) for atom, n in mono if not isinstance(atom, Guard))
            seen[make_poly(((left, c),))] = None
    return [*list(seen)[:1], ZERO]
