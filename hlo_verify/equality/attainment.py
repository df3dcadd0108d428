"""Terms that are 0 whatever truth values they have as factors: gradients through maxima that say nothing in the end.

The gradient of a maximum goes to the elements that attain it: `[x[k] = max x] / count * g`. An online softmax does not
hang on the maxima that it is rescaled by, so that each g is 0, though neither side of a comparison shows it:

    [a = max(a, b)] * (s*t - t*s) + [b = max(a, b)] * (u - (v + w))        where u = v + w, each by itself

Terms that tell numbers apart are taken for any numbers here. What stands beside each product of them has to vanish, in
a sum at each of its elements.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from hlo_verify.equality.networks import same_network
from hlo_verify.equality.opening import ingredients, is_open_sum, opened
from hlo_verify.equality.summands import Steps
from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.memory import once_a_session
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.functions import IS_ZERO, POSITIVE
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ZERO, Atom, Monomial, Number, Poly, make_poly, of_atom

Bound = tuple[Var, ...]


def same_beside_truths(found: Poly, expected: Poly, inside: Poly, session: Session, steps: Steps) -> bool:
    """Whether two terms are equal because what stands beside each product of truth values of numbers is; False where
    there are none such."""
    if found.doubt or expected.doubt:
        return False
    difference = opened(algebra.expanded(inside, algebra.subtract(found, expected)))
    if not any(_tells(atom) for mono, _ in difference.items for atom, _ in mono):
        return False
    beside: dict[tuple[Bound, Monomial], list[Poly]] = defaultdict(list)
    for mono, c in difference.items:
        for bound, truths, rest in _apart(mono):
            beside[bound, truths].append(algebra.scale(rest, c))
    parts = dict.fromkeys(algebra.add(*rests) for rests in beside.values())
    if any(part.doubt for part in parts):
        return False
    return all(same_network(part, ZERO, session, steps=steps) for part in sorted(parts, key=lambda p: p.weight))


def _apart(mono: Monomial) -> Iterator[tuple[Bound, Monomial, Poly]]:
    """A product as sums over variables of truth values, and what stands beside them, of which each part is one."""
    telling = [atom for atom, _ in mono if _tells(atom)]
    if len(telling) != 1 or not is_open_sum(telling[0]) or (telling[0], 1) not in mono:
        yield (), *_split(mono)
        return
    atom = telling[0]
    variables, (body,) = unfold(atom)
    # sums over as many values are over the same variables, so that what they have in common is seen
    bound = tuple(expr.var("t", n, v.size) for n, v in enumerate(variables))
    body = algebra.substitute(body, {v: expr.of_var(w) for v, w in zip(variables, bound, strict=True)})
    rest = make_poly(((tuple(item for item in mono if item[0] is not atom), 1),))
    for inner, c in opened(algebra.expanded(rest, body)).items:
        truths, beside = _split(inner)
        shared = tuple(v for v in bound if any(v in truth.free for truth, _ in truths))
        own = [v for v in bound if v not in shared]
        yield shared, truths, reduce_sum(own, algebra.scale(beside, c))


def _split(mono: Monomial) -> tuple[Monomial, Poly]:
    truths = tuple(item for item in mono if _tells(item[0]))
    beside: dict[Monomial, Number] = {tuple(item for item in mono if item not in truths): 1}
    return truths, algebra.build(beside)


@once_a_session
def _tells(atom: Atom) -> bool:
    """Whether an atom is made of what tells numbers apart."""
    return not {IS_ZERO, POSITIVE}.isdisjoint(ingredients(of_atom(atom)))
