"""Values put end to end that are one function of the place: rows with those of the devices beside them.

    concatenate(x[7] of the device before, x, x[0] of the one behind)     is [0 <= 8*d + i - 1 < 32] x[8*d + i - 1]

A device at the border receives zeros, as nobody sends to it, so that what the pieces are together is what the tensor
holds where it has an element, and 0 elsewhere. That is how a window over the whole tensor is written, with padding by
zeros, and so nothing has to be compared piece by piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Var
from hlo_verify.ops.values import Value, position, position_var
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.substitution import Substitution
from hlo_verify.terms.term import Guard, Poly, make_poly, reads


def one_function(parts: Sequence[tuple[Value, int]], k: int, where: Index) -> Poly | None:
    """The element at the place `where` of values put end to end along dimension k, as one function of it: the longest
    part's, beyond its ends too, of what there is of each tensor. None where that is not each of the parts."""
    starts = [sum(size for _, size in parts[:n]) for n in range(len(parts))]
    longest = max(range(len(parts)), key=lambda n: parts[n][1])
    term, size = parts[longest][0].term, parts[longest][1]
    along = position_var(k, size)
    if len(parts) == 1 or size == 1 or along not in term.free:
        return None
    summands = [(p, _bounds(p, along)) for p in (make_poly((item,)) for item in term.items)]

    def at(place: Index) -> Poly:
        moved = Substitution({along: expr.shift(place, -starts[longest])})
        return algebra.add(
            *(
                reduce(algebra.multiply, (guards.interval(moved.index(e), *ends) for e, *ends in bounds), moved.poly(p))
                for p, bounds in summands
            )
        )

    for (part, length), start in zip(parts, starts, strict=True):
        own = position(k, length) if length > 1 else expr.constant(0)
        if length and not _are_same(at(expr.shift(own, start)), part.term):
            return None
    return at(where)


def _bounds(product: Poly, v: Var) -> set[tuple[Index, int, int]]:
    """The indices by which a product reads at v, with the first and the last that there is: of a tensor its own, of a
    definition, which says nothing of it, those that are asked for."""
    return {
        (e, 0, read.tensor.shape[n] - 1) if len(read.tensor.shape) == len(read.indices) else (e, e.lo, e.hi)
        for read in reads(product)
        for n, e in enumerate(read.indices)
        if v in e.free
    }


def _are_same(a: Poly, b: Poly) -> bool:
    """Whether two terms are one, or are at both values of a digit that a condition asks for.

    Of two devices one alone has a device before it: what it receives is read at a place that says nothing of it.
    """
    if a is b:
        return True
    asked = (atom.form.items for mono, _ in (*a.items, *b.items) for atom, _ in mono if isinstance(atom, Guard))
    digit = next((d for ((d, _), *more) in asked if not more and isinstance(d, Digit) and d.radix == 2), None)
    if digit is None or digit.var.size % (2 * digit.low):
        return False
    below, above = expr.fresh("low", digit.low), expr.fresh("high", digit.var.size // (2 * digit.low))
    rest = expr.add(expr.of_var(below), expr.scale(expr.of_var(above), 2 * digit.low))
    moved = (Substitution({digit.var: expr.shift(rest, digit.low * value)}) for value in (0, 1))
    return all(_are_same(there.poly(a), there.poly(b)) for there in moved)
