"""Opaque integers that are sums under conditions: `k + 16*[k < 0]`, a place that may be counted from the end."""

from __future__ import annotations

from dataclasses import dataclass

from hlo_verify.index.expr import Index, Opaque
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms.machine import as_index, is_sum
from hlo_verify.terms.term import Guard, Ix, Monomial, Read, make_poly, value_of


@dataclass(frozen=True, slots=True)
class Summand:
    """An integer, how often it is added, and the conditions where it is."""

    times: int
    value: Index
    conditions: tuple[Guard, ...]


def summed_under_conditions(atom: Opaque) -> list[Summand] | None:
    """What an opaque integer is the machine value of, where that is a sum of integers of its type under conditions."""
    if not is_sum(atom) or (atom.lo, atom.hi) not in INTEGER_RANGES.values():
        return None
    parts = []
    for mono, c in value_of(atom).items:
        conditions = tuple(a for a, _ in mono if isinstance(a, Guard))
        rest = tuple((a, n) for a, n in mono if not isinstance(a, Guard))
        if not isinstance(c, int) or not _is_integer(rest):
            return None
        value = as_index(make_poly(((rest, 1),)), atom.lo, atom.hi)
        parts.append(Summand(c, value, conditions))
    return parts if any(part.conditions for part in parts) else None


def _is_integer(mono: Monomial) -> bool:
    """Whether a product is 1, a place, or an element that is an integer."""
    if not mono:
        return True
    ((atom, n), *others) = mono
    is_whole = isinstance(atom, Ix) or (isinstance(atom, Read) and atom.tensor.dtype in INTEGER_RANGES)
    return is_whole and n == 1 and not others
