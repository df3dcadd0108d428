"""Where a term is no infinity, though the program writes some: the greatest of scores that minus infinity masks.

Arguments are no infinities, nor is what is computed of finite numbers (an assumption that reports name). What a loop
carries, or an operation gives that is not understood, may be one.
"""

from __future__ import annotations

from itertools import islice, product

import numpy as np

from hlo_verify.index import expr
from hlo_verify.solver.opening import ingredients
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.term import Apply, Monomial, Number, Poly, Read, Tensor, of_atom

WITNESSES = 16
"""At so many elements a maximum is looked at."""


def surely_finite(p: Poly) -> bool:
    """Whether a term is no infinity, whatever the arguments and its variables are.

    A maximum is none if no element is plus infinity and one of them (the first or last along each dimension) is finite.
    """
    if _has_no_infinity(p):
        return True
    atom = p.atom
    if isinstance(atom, Apply) and atom.function == "maximum":
        return all(map(never_above, atom.args)) and any(map(surely_finite, atom.args))
    if not isinstance(atom, Read) or atom.tensor.kind not in ("term", "max"):
        return False
    bound, (body,) = unfold(atom)
    ends = islice(product(*((0, v.size - 1) for v in bound)), WITNESSES)
    elements = (
        algebra.substitute(body, {v: expr.constant(n) for v, n in zip(bound, where, strict=True)}) for where in ends
    )
    return never_above(body) and any(map(surely_finite, elements))


def never_above(p: Poly) -> bool:
    """Whether a term is a finite number or minus infinity, whatever the arguments and its variables are."""
    return all(_is_never_above(mono, c) for mono, c in p.items)


def _is_never_above(mono: Monomial, c: Number) -> bool:
    """Likewise of a product: finite numbers, or one that is never above them, where some conditions hold."""
    numbers = [(atom, n) for atom, n in mono if not atom.boolean]
    if all(_has_no_infinity(of_atom(atom)) for atom, _ in numbers):
        return True
    (atom, n), *others = numbers
    if others or n != 1:
        return False
    if isinstance(atom, Apply) and atom.function == "infinity":
        return c < 0
    if c < 0:
        return False
    if isinstance(atom, Apply) and atom.function == "maximum":
        return all(map(never_above, atom.args))
    return isinstance(atom, Read) and atom.tensor.kind in ("term", "max") and never_above(unfold(atom)[1][0])


def _has_no_infinity(p: Poly) -> bool:
    return all(
        source != "infinity" if isinstance(source, str) else _holds_no_infinity(source) for source in ingredients(p)
    )


def _holds_no_infinity(source: Tensor) -> bool:
    if source.kind == "constant" and source.values is not None:
        return source.values.dtype.kind in "biu" or bool(np.isfinite(source.values).all())
    return source.kind == "argument"
