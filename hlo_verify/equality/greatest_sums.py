"""Greatest values of sums, compared as sums of products: a sum in the place of the maximum, a product in that of a sum.

    max j. (a[i,j] + max k. (b[j,k] + c[k]))        is        max j,k. (a[i,j] + b[j,k] + c[k])

because   sum j. A[i,j] * (sum k. B[j,k] * C[k])    is        sum j,k. A[i,j] * B[j,k] * C[k].

So are best paths, step by step or in parts of a way (Viterbi), and shortest ones, with minima. Let what is added up be
any numbers, and A = exp(t*a), and so on. If the sums of products are equal for all positive A, B, C, their logarithms
divided by t are, and these come as near to the greatest values as one likes, the larger t is (Maslov's dequantization).
How often each product is there does not matter to these; it has to be the same, though, for the sums to be equal.

What is added up is taken for a number of its own, of which nothing else is known, with its factor: no constant, nothing
infinite and no integer, whose sums wrap. The other kind of extremum is such a number, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hlo_verify.equality.networks import same_network
from hlo_verify.equality.opening import opened
from hlo_verify.equality.summands import SpentError, Steps
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import named, unfold
from hlo_verify.terms.functions import EXTREMA
from hlo_verify.terms.steps import steps as pieces
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ONE, Apply, Atom, Number, Poly, Read, Tensor, atoms, of_atom, tensor

_FLOATING = re.compile(r"b?f\d+\w*")
"""The types of real numbers."""


class _OtherError(Exception):
    """A term is no greatest value of sums of numbers."""


@dataclass(slots=True)
class _Products:
    """Terms with sums in the place of one kind of extremum."""

    kind: str
    steps: Steps
    numbers: dict[tuple[Tensor, Number], Tensor] = field(default_factory=dict)

    def of(self, p: Poly) -> Poly:
        """The product for a sum, in each case of its conditions. Raises `_OtherError`, and `SpentError`."""
        self.steps.take(len(p.items))
        p = opened(p)
        if p.doubt or p.constant is not None:
            raise _OtherError
        cases = pieces(p)
        if cases:
            return algebra.add(*(algebra.multiply(on, self.of(there)) for on, there in cases))
        product = ONE
        for mono, c in p.items:
            ((atom, power), *others) = mono or ((None, 0),)
            if others or power != 1 or atom is None or atom.boolean:
                raise _OtherError
            product = algebra.multiply(product, self._of(atom, c))
        return product

    def _of(self, atom: Atom, c: Number) -> Poly:
        if isinstance(atom, Apply) and atom.function == EXTREMA[self.kind] and c == 1:
            return algebra.add(*map(self.of, atom.args))
        if isinstance(atom, Read) and atom.tensor.kind == self.kind and c == 1:
            bound, (body,) = unfold(atom)
            return reduce_sum(bound, self.of(body))
        return self._number(atom, c)

    def _number(self, atom: Atom, c: Number) -> Poly:
        """A number of its own for each element, and each multiple of it."""
        if isinstance(atom, Apply) and atom.function.gives == "real":
            atom = _named(atom)
        if not isinstance(atom, Read) or not _FLOATING.fullmatch(atom.tensor.dtype):
            raise _OtherError
        source = atom.tensor
        key = source, c
        if key not in self.numbers:
            self.numbers[key] = tensor("argument", f"{c} * {source.name}", "f32", source.shape)
        return algebra.read(self.numbers[key], atom.indices)


def _named(atom: Atom) -> Atom:
    name = named(of_atom(atom), "f32").atom
    assert name is not None
    return name


def same_greatest_sum(
    found: Poly, expected: Poly, session: Session, inside: Poly = ONE, most: int | None = None
) -> bool:
    """Whether two terms are greatest (or least) values of sums of the same, wherever `inside` holds."""
    for kind in EXTREMA:
        if not (_is_deep(found, kind) or _is_deep(expected, kind)):
            continue
        steps = Steps(session.limits.network_steps)
        products = _Products(kind, steps)
        try:
            one, other = products.of(found), products.of(expected)
        except (_OtherError, SpentError):
            continue
        if one is other or same_network(one, other, session, inside, steps):
            return True
    return False


def _is_deep(p: Poly, kind: str) -> bool:
    """Whether an extremum is of sums with another one in them."""
    return any(
        len(inside.items) > 1 and any(isinstance(a, Read) and a.tensor.kind == kind for a in atoms(inside))
        for outer in atoms(opened(p))
        if isinstance(outer, Read) and outer.tensor.kind == kind
        for inside in map(opened, outer.tensor.bodies)
    )
