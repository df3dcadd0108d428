"""Elements past the end of a logical tensor: they are arbitrary, and a term keeps them apart from what is defined.

A device's shard of a tensor that its devices do not divide evenly is `[inside]*x + [outside]*padding`. Where such a
term gets a name, each of its parts does, so that the part inside is a read of what the logical module defines.
"""

from __future__ import annotations

from hlo_verify.limits import allows
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.term import Guard, Monomial, Poly, Read, Tensor, tensor

KIND = "padding"


def padding(name: str, dtype: str, shape: tuple[int, ...], location: object = None) -> Tensor:
    """Arbitrary elements, equal to nothing else."""
    return tensor(KIND, f"padding of {name}", dtype, shape, location=location)


def parts(p: Poly) -> list[tuple[Poly, Poly]]:
    """A term with padding as conditions that exclude one another, each with the term where it holds; else nothing."""
    held = [g for mono, _ in p.items if _is_padded(mono) for g, _ in mono if isinstance(g, Guard)]
    if not held or not allows("padding_forms", len({g.form for g in held})):
        return []
    guard = held[0]
    pieces = [(guard.lo, guard.hi), *guards.complement(guard)]
    return [(guards.interval(guard.form, lo, hi), _where(p, guard, lo, hi)) for lo, hi in pieces]


def _is_padded(mono: Monomial) -> bool:
    return any(isinstance(a, Read) and a.tensor.kind == KIND for a, _ in mono)


def _where(p: Poly, guard: Guard, lo: int | None, hi: int | None) -> Poly:
    """The term where a form lies in an interval, without the conditions on it that then hold."""
    result = []
    for mono, c in p.items:
        own = next((g for g, _ in mono if isinstance(g, Guard) and g.form is guard.form), None)
        if own is None:
            result.append(algebra.build({mono: c}))
            continue
        # a bound that the interval does not reach is idle, and is left out
        low = own.lo if own.lo is not None and (lo is None or own.lo > lo) else None
        high = own.hi if own.hi is not None and (hi is None or own.hi < hi) else None
        if (low is not None and hi is not None and low > hi) or (high is not None and lo is not None and high < lo):
            continue
        rest = algebra.build({tuple(item for item in mono if item[0] is not own): c})
        result.append(algebra.multiply(guards.interval(guard.form, low, high), rest))
    return algebra.add(*result)
