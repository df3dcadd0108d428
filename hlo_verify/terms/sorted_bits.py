"""The last bits of integers that are sorted: they are those of some element.

    [256 <= (65535 ^ sort(key)[i]) mod 65536]   =   0    for key[j] = (b[j] | 65535) ^ j  with  j < 256

So are keys packed whose last bits say where an element comes from, as JAX finds the largest scores in bf16 on TPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, reduce

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque
from hlo_verify.memory import once_a_session
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms.functions import EXTREMA
from hlo_verify.terms.term import ONE, ZERO, Apply, Ix, Poly, Read, Tensor, value_of
from hlo_verify.terms.used import used

Bound = int | None
Range = tuple[int, int]


def asked_of_bits(form: Index, lo: Bound, hi: Bound) -> Poly | None:
    """`[lo <= c*(x mod 2^n) <= hi]`, where the last n bits of an integer decide it; None where they do not."""
    ((atom, c), *others) = form.items
    if others or not isinstance(atom, Opaque) or atom.operator != "mod" or atom.args[0] & (atom.args[0] - 1):
        return None
    found = _of_value(atom.exprs[0], atom.args[0])
    if found is None:
        return None
    least, greatest = sorted(c * n + form.const for n in found)
    if (lo is not None and greatest < lo) or (hi is not None and least > hi):
        used("last bits of what is sorted")
        return ZERO
    if (lo is None or lo <= least) and (hi is None or greatest <= hi):
        used("last bits of what is sorted")
        return ONE
    return None


def _of_value(e: Index, size: int) -> Range | None:
    """Between which numbers `e mod size` lies, for a power of two; None where nothing is known."""
    ((part, c), *others) = e.items
    if others or c != 1 or e.const or not isinstance(part, Opaque) or part.operator != "value":
        return None
    return _of_term(value_of(part), size)


@once_a_session
def _of_term(p: Poly, size: int) -> Range | None:
    """Likewise of an integer as it is in its type; None too where that has fewer values than the size."""
    atom, n = p.atom, p.constant
    if isinstance(n, int):
        return n % size, n % size
    if isinstance(atom, Ix):
        rest = expr.modulo(atom.index, size)
        return rest.lo, rest.hi
    if isinstance(atom, Read):
        return _of_elements(atom.tensor, size)
    if not isinstance(atom, Apply) or not _holds(atom.function.gives, size):
        return None
    if atom.function in EXTREMA.values():
        parts = [_of_term(arg, size) for arg in atom.args]
        known = [part for part in parts if part is not None]
        return reduce(_hull, known) if len(known) == len(parts) else None
    join = _JOINED.get(atom.function.name)
    if join is None:
        return None
    return reduce(partial(join, size), [_of_term(arg, size) or (0, size - 1) for arg in atom.args])


def _of_elements(source: Tensor, size: int) -> Range | None:
    """What is sorted is the elements that it is made of, in another order; the greatest is one of them."""
    if not _holds(source.dtype, size) or not all(v.size for v in source.bound):
        return None
    if source.kind == "sort":
        return _of_term(source.bodies[source.attributes[2]], size)
    return _of_term(source.bodies[0], size) if source.kind in EXTREMA else None


def _holds(dtype: str, size: int) -> bool:
    """Whether a type has so many integers, so that what wraps in it keeps its last bits."""
    lo, hi = INTEGER_RANGES.get(dtype, (0, 0))
    return hi - lo + 1 >= size


def _hull(a: Range, b: Range) -> Range:
    return min(a[0], b[0]), max(a[1], b[1])


def _and(size: int, a: Range, b: Range) -> Range:
    ones = size - 1, size - 1
    return b if a == ones else a if b == ones else (0, min(a[1], b[1]))


def _or(size: int, a: Range, b: Range) -> Range:
    ones = size - 1, size - 1
    return ones if ones in (a, b) else (max(a[0], b[0]), _all_ones(a, b))


def _xor(size: int, a: Range, b: Range) -> Range:
    for known, other in ((a, b), (b, a)):
        if known == (0, 0):
            return other
        if known == (size - 1, size - 1):
            return size - 1 - other[1], size - 1 - other[0]
    return 0, _all_ones(a, b)


def _all_ones(a: Range, b: Range) -> int:
    """The greatest number of as many bits as the longer one has."""
    return (1 << max(a[1], b[1]).bit_length()) - 1


_JOINED: Mapping[str, Callable[[int, Range, Range], Range]] = {"and": _and, "or": _or, "xor": _xor}
