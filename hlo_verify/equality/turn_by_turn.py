"""A sum over turns against what each turn adds, written down apart: a gradient of microbatches, and of the whole batch.

    f(0) + f(1) + f(2)  =  sum v<3. sum w. g(v, w)        where each f(v) is sum w. g(v, w)

Each addend is compared with that of the turn that reads the same parts of the arguments.
"""

from __future__ import annotations

from collections import defaultdict

from hlo_verify.equality import cases
from hlo_verify.equality.effort import Effort
from hlo_verify.equality.opening import is_open_sum
from hlo_verify.equality.without_names import without_names
from hlo_verify.index import expr
from hlo_verify.limits import allows
from hlo_verify.memory import once_a_session
from hlo_verify.terms import algebra
from hlo_verify.terms.at_constants import at_constants
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Poly, Read, Tensor, make_poly, reads

Parts = frozenset[tuple[Tensor, tuple[int | None, ...]]]
"""What is read of tensors that are no definitions: at which constants."""


def same_turn_by_turn(found: Poly, expected: Poly, inside: Poly, effort: Effort) -> bool:
    """Whether one of two terms, with constants in definitions (`at_constants`), is what the other adds up."""
    for turns, whole in ((found, expected), (expected, found)):
        if len(turns.items) > 1 and allows("turns_apart", len(turns.items)):
            for apart in _apart(whole, len(turns.items)):
                if _same_addends(turns, apart, inside, effort):
                    return True
    return False


def _apart(whole: Poly, count: int) -> list[Poly]:
    """A sum as so many addends, one for each value of a variable."""
    ((mono, c),) = whole.items if len(whole.items) == 1 else (((), 0),)
    if len(mono) != 1 or mono[0][1] != 1 or not is_open_sum(mono[0][0]):
        return []
    bound, (body,) = unfold(mono[0][0])
    found = []
    for v in (v for v in bound if v.size == count):
        others = [w for w in bound if w is not v]
        turns = (at_constants(algebra.substitute(body, {v: expr.constant(n)})) for n in range(count))
        found.append(algebra.add(*(algebra.scale(reduce_sum(others, turn), c) for turn in turns)))
    return found


def _same_addends(found: Poly, expected: Poly, inside: Poly, effort: Effort) -> bool:
    """Whether addends are equal one by one, each to the one that reads the same parts."""
    if found is expected:
        return True
    own, other = ([make_poly((item,)) for item in p.items if item not in q.items] for p, q in _both(found, expected))
    by_parts: dict[Parts, list[Poly]] = defaultdict(list)
    for p in other:
        by_parts[_parts(p)].append(p)
    pairs = [(p, by_parts[parts].pop()) for p in own if by_parts.get(parts := _parts(p))]
    if len(pairs) < len(own) or len(own) != len(other):
        return False
    return all(without_names(p) is without_names(q) or cases.equal(p, q, inside, effort) for p, q in pairs)


def _both(p: Poly, q: Poly) -> tuple[tuple[Poly, Poly], tuple[Poly, Poly]]:
    return (p, q), (q, p)


def _parts(p: Poly) -> Parts:
    return frozenset[tuple[Tensor, tuple[int | None, ...]]]().union(*map(_parts_of, reads(p)))


@once_a_session
def _parts_of(atom: Read) -> Parts:
    if atom.tensor.bodies:
        return frozenset[tuple[Tensor, tuple[int | None, ...]]]().union(*map(_parts, atom.tensor.bodies))
    return frozenset({(atom.tensor, tuple(None if e.items else e.const for e in atom.indices))})
