"""Elements past the end of a logical tensor: they are arbitrary, and a term keeps them apart from what is defined.

A device's shard of a tensor that its devices do not divide evenly is `[inside]*x + [outside]*padding`. Where such a
term gets a name, each of its parts does, so that the part inside is a read of what the logical module defines.
"""

from __future__ import annotations

from hlo_verify.limits import allows
from hlo_verify.terms import guards
from hlo_verify.terms.restriction import where
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
    return [(guards.interval(guard.form, lo, hi), where(p, guard.form, lo, hi)) for lo, hi in pieces]


def _is_padded(mono: Monomial) -> bool:
    return any(isinstance(a, Read) and a.tensor.kind == KIND for a, _ in mono)
