"""What a user says of how an argument's elements stand to each other along its last dimension, as a proof uses it.

[x(i, a) = x(i, b)]     is  [a = b]         for x distinct there
x(i, a) - x(i, b)       is  at most 0       for x sorted there, and a at most b
values v. x(i, v) at r  is  x(i, r)         for x sorted there; and r, for a permutation
"""

from __future__ import annotations

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque, Var
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms.term import Atom, Number, Poly, Read, value_of

Bound = int | None


def is_distinct_along(atom: Atom | None, v: Var) -> bool:
    """Whether an atom is another number for each value of a variable, all else being the same."""
    return (
        _is_along(atom, v)
        and isinstance(atom, Read)
        and atom.tensor.assumed is not None
        and atom.tensor.assumed.distinct
    )


def is_permutation_along(atom: Atom | None, v: Var) -> bool:
    """Whether an atom takes each of the values of a variable once: as many different integers, from 0 on."""
    if not is_distinct_along(atom, v) or not isinstance(atom, Read) or atom.tensor.assumed is None:
        return False
    source = atom.tensor.assumed
    return atom.tensor.shape[-1] == v.size and isinstance(source.least, int) and source.integers == (0, v.size - 1)


def is_ascending_along(atom: Atom | None, v: Var) -> bool:
    """Whether an atom is no less for a value of a variable than for those before, all else being the same."""
    return (
        _is_along(atom, v)
        and isinstance(atom, Read)
        and atom.tensor.assumed is not None
        and atom.tensor.assumed.ascending
    )


def _is_along(atom: Atom | None, v: Var) -> bool:
    """Whether an atom is an argument's element whose last index is a variable, the only one that depends on it."""
    if not isinstance(atom, Read) or not atom.indices or len(atom.indices) != len(atom.tensor.shape):
        return False
    *others, last = atom.indices
    return last is expr.of_var(v) and not any(v in e.free for e in others)


def compared(form: Index, lo: Bound, hi: Bound) -> tuple[Index, Bound, Bound] | bool | None:
    """Whether a difference of two elements of an argument lies between two bounds, as a question about their indices,
    or as the answer; None where nothing is known of it."""
    if len(form.items) != 2 or form.const or {c for _, c in form.items} != {1, -1}:
        return None
    (one, sign), (other, _) = form.items
    first, second = (_element(part) for part in ((one, other) if sign > 0 else (other, one)))
    if first is None or second is None or first[1] != second[1]:
        return None
    a, b = first[0], second[0]
    known = a.tensor.assumed
    if a.tensor is not b.tensor or a.indices[:-1] != b.indices[:-1] or known is None:
        return None
    apart = expr.subtract(a.indices[-1], b.indices[-1])
    if known.distinct and lo == hi == 0:
        return apart, 0, 0
    if known.ascending:
        least, greatest = (0 if apart.lo >= 0 else None), (0 if apart.hi <= 0 else None)
        if (least is not None and hi is not None and hi < least) or (
            greatest is not None and lo is not None and lo > greatest
        ):
            return False
        if (lo is None or (least is not None and lo <= least)) and (
            hi is None or (greatest is not None and hi >= greatest)
        ):
            return True
    return None


def _element(part: expr.Atom) -> tuple[Read, Number] | None:
    """The element of an argument of which an opaque integer is a positive multiple, with the factor: where no element
    that is allowed wraps in that type."""
    if not isinstance(part, Opaque) or part.operator != "value":
        return None
    p: Poly = value_of(part)
    if len(p.items) != 1:
        return None
    ((mono, c),) = p.items
    if len(mono) != 1 or mono[0][1] != 1 or not isinstance(mono[0][0], Read):
        return None
    atom = mono[0][0]
    known = atom.tensor.assumed
    if known is None or atom.tensor.dtype not in INTEGER_RANGES or len(atom.indices) != len(atom.tensor.shape):
        return None
    least, greatest = known.integers
    fits = c > 0 and part.lo <= c * least and c * greatest <= part.hi and c * known.multiple == int(c * known.multiple)
    return (atom, c) if fits and atom.indices else None
