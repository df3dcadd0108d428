"""Quick reasons why two terms will not be found equal, before they are compared case by case."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Hashable

from hlo_verify.equality.opening import leaves
from hlo_verify.equality.sides import together
from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Var
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import INFINITY, Function
from hlo_verify.terms.term import ZERO, Guard, Number, Poly, Read, Tensor, atoms, indices, monomial_skey

POINTS = 6
"""At so many points a term is looked at before it is decided case by case."""


def differs_somewhere(p: Poly) -> bool:
    """Whether a term is plainly not 0 at one of a few points: a quick way to refuse."""
    generator = random.Random(0)
    variables = sorted((v for v in p.free if v.size < expr.UNBOUNDED), key=lambda v: v.uid)
    for _ in range(POINTS):
        here = together(algebra.substitute(p, {v: expr.constant(generator.randrange(v.size)) for v in variables}))
        if here is not ZERO and not is_open(here) and (_is_plain(here) or _is_balanced(here)):
            return True
    return False


def _is_plain(p: Poly) -> bool:
    """Whether a term reads no definitions."""
    return not any(isinstance(a, Read) and a.tensor.bodies for a in atoms(p))


def _is_balanced(p: Poly) -> bool:
    """Whether a term's monomials differ only in where they read: what does not cancel then differs."""
    totals: dict[int, Number] = defaultdict(int)
    for mono, c in p.items:
        totals[monomial_skey(mono)] += c
    return not any(totals.values())


def is_open(p: Poly) -> bool:
    """Whether cases could make a difference: normal forms without guards and opaque integers are final."""
    for atom in atoms(p):
        if isinstance(atom, Guard):
            return True
        if any(not isinstance(part, Digit) for e in indices(atom) for part, _ in e.items):
            return True
    sources = {a.tensor for a in atoms(p) if isinstance(a, Read) and a.tensor.bodies}
    return any(comparable(a, b) for a in sources for b in sources if a.uid < b.uid)


def comparable(x: Tensor, y: Tensor, told: frozenset[Tensor | Function] = frozenset()) -> bool:
    """Whether two definitions could be equal: of one kind and type, over equal ranges, of the same things.

    An infinity may stand where none is read: of a window's padding that the case at hand rules out. So may what the
    integers are `told` from that the case gives a value: `w[e[i], j]` is `w[k, j]` where `e[i] = k`.
    """
    if (x.kind, x.attributes, x.dtype) != (y.kind, y.attributes, y.dtype):
        return False
    if (leaves(x) ^ leaves(y)) - {INFINITY} - told:
        return False
    return [v.size for v in x.bound] == [v.size for v in y.bound]


def pattern(indices: list[Index]) -> Hashable:
    """Index expressions but for the names of their variables, which are new ones at every depth of a comparison."""
    numbers: dict[Var, int] = {}
    return tuple(
        (
            e.const,
            *(
                (numbers.setdefault(a.var, len(numbers)), a.var.size, a.low, a.radix, c)
                if isinstance(a, Digit)
                else (a.uid, c)
                for a, c in e.items
            ),
        )
        for e in indices
    )
