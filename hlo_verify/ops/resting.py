"""Loops that go round while anything in them goes on, of which each device has a part.

    while any r. q(x[r]):    x[r] = q(x[r]) ? f(x[r]) : x[r]

`jax.vmap` makes this of a loop: what is done stays as it is until all is. A device that has some of the rows goes round
until these are done, and the whole program on. What the device's rows are then, they are in the end: where `q` holds of
none of them, a turn leaves them as they are, so that it holds of none ever after. Both loops may go on under more
conditions that they share, as that there were fewer turns than a limit: where one of these fails, both end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, permutations, product
from math import prod
from operator import mul
from typing import TYPE_CHECKING

from hlo_verify.equality import cases
from hlo_verify.equality.opening import opened
from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque, Var
from hlo_verify.limits import limit_of
from hlo_verify.ops.induction import Loop, book_of
from hlo_verify.ops.values import Context, position_var, positions
from hlo_verify.program.ir import Op
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.places import values_in_places
from hlo_verify.terms.term import ONE, ZERO, Apply, Atom, Guard, Ix, Poly, Read, Tensor

if TYPE_CHECKING:
    from hlo_verify.ops.matching import Relation


@dataclass(frozen=True, slots=True)
class _Test:
    """Whether a loop goes on: under some conditions, while something does so for any values of some variables."""

    beside: frozenset[Atom]
    bound: tuple[Var, ...]
    goes_on: Poly


def resting(op: Op, test: Poly, loop: Loop, relations: Mapping[int, Relation], context: Context) -> Collection[int]:
    """The components that a device's loop, which goes round while `test` holds, leaves as the logical loop does that it
    is related to, though it may end before; none where that is not shown."""
    related = {k: each for k, each in relations.items() if each.placement.inside is ONE and each.multiple == 1}
    whole = None if loop.test is None else _parted(loop.test)
    local = None if whole is None else _parted(test, whole.beside)
    if whole is None or local is None or not _is_part(op, local, whole, loop, related):
        return ()
    rests = {k for k, each in related.items() if _rests(op, k, each, local.goes_on, local.bound, loop, context)}
    shards = [_shard(op, k, each, loop) for k, each in related.items() if k in rests]
    return rests if _hangs_on(local.goes_on, loop.t, shards) else ()


# What goes on


def _parted(test: Poly, beside: frozenset[Atom] | None = None) -> _Test | None:
    """A test, under the conditions `beside` if these are known: `any(q)`, or `~all(p)`; None for other tests."""
    if not test.items or any(not atom.boolean or n != 1 for mono, _ in test.items for atom, n in mono):
        return None
    if beside is None:
        common = frozenset.intersection(*(frozenset(atom for atom, _ in mono) for mono, _ in test.items))
        beside = frozenset(atom for atom in common if not _is_extremum(atom, "max"))
    if any(not beside <= {atom for atom, _ in mono} for mono, _ in test.items):
        return None
    items = [(tuple(item for item in mono if item[0] not in beside), c) for mono, c in test.items]
    rest = algebra.build(dict(items))
    for of, kind in ((rest, "max"), (algebra.logical_not(rest), "min")):
        if isinstance(of.atom, Read) and _is_extremum(of.atom, kind):
            bound, (body,) = unfold(of.atom)
            return _Test(beside, tuple(bound), opened(body) if kind == "max" else algebra.logical_not(opened(body)))
    return _Test(beside, (), opened(rest))


def _is_extremum(atom: Atom, kind: str) -> bool:
    return isinstance(atom, Read) and atom.tensor.kind == kind and bool(atom.tensor.bodies)


def _is_part(op: Op, local: _Test, whole: _Test, loop: Loop, related: Mapping[int, Relation]) -> bool:
    """Whether something goes on in the whole loop wherever it does on a device: at the place of a shard's element."""
    for k, relation in related.items():
        shape, sizes = op.types[k].shape, loop.state[relation.component].type.shape
        at = relation.placement.indices
        wanted = {algebra.substitute(local.goes_on, there) for there in _places(local.bound, shape)}
        for there in _places(whole.bound, sizes, at):
            if algebra.substitute(whole.goes_on, there) in wanted:
                return True
    return False


def _places(
    bound: Sequence[Var], shape: Sequence[int], at: Sequence[Index] | None = None
) -> Iterator[dict[Var, Index]]:
    """The ways to put dimensions of a shape in place of variables of their sizes, or the digits of one in place of all
    of them: by positions, or at other indices."""
    where = positions(shape) if at is None else at
    for chosen in permutations(range(len(shape)), len(bound)):
        if all(shape[n] == v.size for n, v in zip(chosen, bound, strict=True)):
            yield {v: where[n] for n, v in zip(chosen, bound, strict=True)}
    for e, size in zip(where, shape, strict=True):
        for order in permutations(bound) if len(bound) > 1 and size == prod(v.size for v in bound) else ():
            lows = accumulate((v.size for v in order), mul, initial=1)
            yield {v: expr.digit_of(e, low, v.size) for v, low in zip(order, lows, strict=False)}


# What rests


def _rests(
    op: Op, k: int, relation: Relation, goes_on: Poly, bound: Sequence[Var], loop: Loop, context: Context
) -> bool:
    """Whether a turn leaves each element of a component as it is where nothing goes on at its place."""
    at, j = relation.placement.indices, relation.component
    after, before = opened(loop.after[j].at(at)), loop.state[j].at(at)
    return any(
        _is_still(after, before, algebra.substitute(goes_on, there), context)
        for there in _places(bound, op.types[k].shape)
    )


def _is_still(after: Poly, before: Poly, goes_on: Poly, context: Context) -> bool:
    """Whether two terms are equal in all cases in which something is 0 that is made of conditions."""
    atoms = dict.fromkeys(atom for mono, _ in goes_on.items for atom, _ in mono)
    if 1 << len(atoms) > limit_of("sign_cases"):
        return False
    for truths in product((ZERO, ONE), repeat=len(atoms)):
        case = dict(zip(atoms, truths, strict=True))
        if algebra.with_atoms(goes_on, case.get) is ZERO:
            one, other = (algebra.with_atoms(p, case.get) for p in (after, before))
            if not cases.equal(one, other, total=book_of(context).effort):
                return False
    return True


@dataclass(frozen=True, slots=True)
class _Shard:
    """The elements that a device has of what the logical loop carries."""

    tensor: Tensor | None
    first: tuple[Index, ...]
    sizes: tuple[int, ...]

    def has(self, read: Read, t: Var) -> bool:
        """Whether an element at the start of turn `t` is among them."""
        outside = len(read.indices) - len(self.sizes)
        if read.tensor is not self.tensor or outside < 1 or read.indices[outside - 1] is not expr.of_var(t):
            return False
        if any(t in e.free for n, e in enumerate(read.indices) if n != outside - 1):
            return False
        apart = [expr.subtract(e, first) for e, first in zip(read.indices[outside:], self.first, strict=True)]
        return all(e.lo >= 0 and e.hi < size for e, size in zip(apart, self.sizes, strict=True))


def _shard(op: Op, k: int, relation: Relation, loop: Loop) -> _Shard:
    atom, sizes = loop.state[relation.component].term.atom, op.types[k].shape
    start = {position_var(n, size): expr.constant(0) for n, size in enumerate(sizes)}
    first = tuple(expr.substitute(e, start) for e in relation.placement.indices)
    return _Shard(atom.tensor if isinstance(atom, Read) else None, first, sizes)


def _hangs_on(p: Poly, t: Var, shards: Collection[_Shard]) -> bool:
    """Whether a term hangs on the turn by nothing but elements of some shards."""
    return all(_of_shards(atom, t, shards) for mono, _ in p.items for atom, _ in mono)


def _of_shards(atom: Atom, t: Var, shards: Collection[_Shard]) -> bool:
    if t not in atom.free:
        return True
    inside = tuple(values_in_places(atom))
    if isinstance(atom, Apply):
        inside += atom.args
    elif isinstance(atom, Guard | Ix):
        form = atom.form if isinstance(atom, Guard) else atom.index
        if any(t in part.free and not (isinstance(part, Opaque) and part.term is not None) for part, _ in form.items):
            return False
    elif atom.tensor.bodies:
        inside += tuple(unfold(atom)[1])
    elif not any(shard.has(atom, t) for shard in shards):
        return False
    return all(_hangs_on(part, t, shards) for part in inside)
