"""A sum over blocks against what each block adds, written down apart: what goes round a ring of devices, and the whole.

    (sum w<2. f(w)) + (sum w<3. g(w))  =  sum v<5. h(v)        where f(w) is h(w), and g(w) is h(2 + w)

Where the addends read an argument says where the sum is to be cut. Whether each block is what its addends are is
another question (`passes.prove.each_device.comparison`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from hlo_verify.equality.opening import is_open_sum
from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.limits import allows
from hlo_verify.memory import once_a_session
from hlo_verify.terms import algebra
from hlo_verify.terms.at_constants import at_constants
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.in_ranges import in_ranges
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ZERO, Poly, Read, Tensor, make_poly, reads

Range = tuple[int, int]
"""The least and the greatest index."""

Ranges = Mapping[tuple[Tensor, int], Range]
"""Where elements of tensors that are no definitions are read, along each dimension, as far as that is bounded."""

Pairs = list[tuple[Poly, Poly]]


def in_blocks(found: Poly, expected: Poly) -> Pairs:
    """Pairs of terms: two terms, with constants in definitions (`at_constants`), are equal if the two of each pair are.

    None where neither is one sum that is cut where the other's addends are.
    """
    pairs = _cut(found, expected)
    return pairs if pairs else [(p, q) for q, p in _cut(expected, found)]


def _cut(added_up: Poly, whole: Poly) -> Pairs:
    addends = [make_poly((item,)) for item in added_up.items]
    for bound, body, times in _sums(whole):
        for is_direct in (True, False):
            ranges = [_ranges(in_ranges(addend), is_direct=is_direct) for addend in addends]
            for key, (least, most) in _read(body, is_direct=is_direct).items():
                by_range: dict[Range | None, list[Poly]] = defaultdict(list)
                for addend, each in zip(addends, ranges, strict=True):
                    by_range[each.get(key)].append(addend)
                beside = [(p, ZERO) for p in by_range.pop(None, [])]
                groups = {(r[0] - least, r[1] - least + 1): algebra.add(*p) for r, p in by_range.items() if r}
                for v in (v for v in bound if v.size == most - least + 1 and (beside or set(groups) != {(0, v.size)})):
                    pairs = _pairs(groups, [w for w in bound if w is not v], v, body)
                    if pairs:
                        return [*((p, algebra.multiply(times, q)) for p, q in pairs), *beside]
    return []


def _sums(whole: Poly) -> Iterator[tuple[tuple[Var, ...], Poly, Poly]]:
    """The sums in a term that is one product: their variables, what they add up, and what that is multiplied with. It
    is a number: an infinity times a sum is not the sum of the products."""
    ((mono, c),) = whole.items if len(whole.items) == 1 else (((), 0),)
    for atom, n in mono:
        if n == 1 and is_open_sum(atom):
            times = make_poly(((tuple(item for item in mono if item[0] is not atom), c),))
            bound, (body,) = unfold(atom)
            if not times.doubt:
                yield bound, body, times


def _pairs(groups: Mapping[Range, Poly], others: Sequence[Var], v: Var, body: Poly) -> Pairs:
    """What is added in blocks of a variable's values, and the sum over each block; none where blocks overlap, or more
    than nothing is between them."""
    pairs, last = list[tuple[Poly, Poly]](), 0
    if not groups or not allows("turns_apart", len(groups)):
        return []
    for (start, stop), addend in [*sorted(groups.items(), key=lambda group: group[0]), ((v.size, v.size), ZERO)]:
        if start < last or (start > last and in_ranges(_block(others, v, body, last, start)) is not ZERO):
            return []
        if start < stop:
            pairs.append((addend, _block(others, v, body, start, stop)))
        last = stop
    return pairs


def _block(others: Sequence[Var], v: Var, body: Poly, start: int, stop: int) -> Poly:
    inner = expr.fresh("f", stop - start)
    here = expr.constant(start) if stop == start + 1 else expr.shift(expr.of_var(inner), start)
    bound = [*others, inner] if stop > start + 1 else others
    return at_constants(reduce_sum(bound, algebra.substitute(body, {v: here})))


def _ranges(p: Poly, *, is_direct: bool) -> Ranges:
    """Of what the sums in a term read, in their bodies alone where that is enough."""
    own = [body for atom in _sorted_reads(p) if atom.tensor.kind == "sum" for body in atom.tensor.bodies]
    return _joined([_read(each, is_direct=is_direct) for each in ([p, *own] if is_direct else [p])])


def _read(p: Poly, *, is_direct: bool) -> Ranges:
    return _joined([_at(atom) for atom in _sorted_reads(p)]) if is_direct else _deeply(p)


@once_a_session
def _deeply(p: Poly) -> Ranges:
    parts = ([_at(atom), *map(_deeply, atom.tensor.bodies)] for atom in _sorted_reads(p))
    return _joined([each for part in parts for each in part])


def _at(atom: Read) -> Ranges:
    if atom.tensor.bodies:
        return {}
    bounded = ((n, e) for n, e in enumerate(atom.indices) if e.lo > -expr.UNBOUNDED and e.hi < expr.UNBOUNDED)
    return {(atom.tensor, n): (e.lo, e.hi) for n, e in bounded}


def _sorted_reads(p: Poly) -> list[Read]:
    return sorted(reads(p), key=lambda atom: atom.uid)


def _joined(all_ranges: Sequence[Ranges]) -> Ranges:
    found: dict[tuple[Tensor, int], Range] = {}
    for ranges in all_ranges:
        for key, (least, most) in ranges.items():
            before = found.get(key, (least, most))
            found[key] = min(least, before[0]), max(most, before[1])
    return found
