"""Definitions read at constants, made anew where the constants decide a guard in them.

A program that tells its devices apart (`stage == 0 ? x : received`) has guards inside its definitions. Where such a
definition is read for one device, most of it is gone: with `s[i,d] = sum k. ([d = 0]*a[i,k] + [d > 0]*b[i,k]) * w[k]`,
`s[i,0]` is `sum k. a[i,k] * w[k]`. The new definition says so, and is made of what is left only.

One that reads such a definition at a constant inside, as the loss of the last device, `sum i. log(s[i,3])`, does, is
left as it is: a comparison opens it, if the other side is not made of the same, and finds `s[i,3]` then. To make all
anew that is made of a class token's row, the whole loss and its gradients, took all the steps of a comparison.
"""

from __future__ import annotations

from collections.abc import Iterator

from hlo_verify.equality.effort import Effort
from hlo_verify.index.expr import Var
from hlo_verify.limits import allows
from hlo_verify.memory import once_a_session
from hlo_verify.terms import algebra
from hlo_verify.terms.at_constants import remade
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Apply, Atom, Guard, Poly, Read, Tensor, atoms, of_atom

KINDS = frozenset({"sum", "max", "min", "term"})
"""The definitions that are made anew."""

COST = 4
"""What a definition made anew takes of the effort there is."""


def settled(p: Poly, effort: Effort) -> Poly:
    """The same term, which reads no definition at a constant that decides a guard in it, however deep.

    Past the effort, what is left is left as it is.
    """
    if not any(_may_settle(atom) for mono, _ in p.items for atom, _ in mono):
        return p
    return algebra.with_atoms(p, lambda atom: _settled_atom(atom, effort))


@once_a_session
def _may_settle(atom: Atom) -> bool:
    if isinstance(atom, Apply):
        return any(map(_may_settle, _inside(atom)))
    return isinstance(atom, Read) and _decides(atom.tensor, _fixed(atom, frozenset()))


def _inside(atom: Apply) -> Iterator[Atom]:
    return (inner for arg in atom.args for mono, _ in arg.items for inner, _ in mono)


def _fixed(read: Read, known: frozenset[Var]) -> frozenset[Var]:
    """The parameters of a definition that a read gives a constant, if some variables have one. A place that only data
    say is none."""
    places = zip(read.tensor.params, read.indices, strict=False)
    return frozenset(v for v, e in places if e.free <= known and (e.free or not e.items))


@once_a_session
def _decides(source: Tensor, fixed: frozenset[Var]) -> bool:
    """Whether a definition, or one that it is made of, has a guard that constants for those parameters decide."""
    if source.kind not in KINDS or not fixed:
        return False
    return any(
        _decides(atom.tensor, _fixed(atom, fixed))
        if isinstance(atom, Read)
        else isinstance(atom, Guard) and bool(atom.free) and atom.free <= fixed
        for atom in atoms(source.bodies[0])
    )


def _settled_atom(atom: Atom, effort: Effort) -> Poly:
    if not _may_settle(atom):
        return of_atom(atom)
    found = effort.anew.get(atom)
    if found is None and effort.left > 0:
        if isinstance(atom, Apply):
            found = apply(atom.function, tuple(_argument(arg, effort) for arg in atom.args))
        else:
            assert isinstance(atom, Read)
            effort.left -= COST
            found = _made_anew(atom, effort)
        effort.anew[atom] = found
    return of_atom(atom) if found is None else found


def _argument(arg: Poly, effort: Effort) -> Poly:
    """A function's argument. What had a name because it was heavy has none where what is left of it is light, as laws
    look at sums: `exp(h)`, h the name of `z - m`, is `exp(z) * exp(-m)`."""
    left = settled(arg, effort)
    name = left.atom
    if left is arg or not isinstance(name, Read) or name.tensor.kind != "term" or name.tensor.seal is not None:
        return left
    _, (whole, *_) = unfold(name)
    return whole if allows("named_weight", whole.weight) else left


def _made_anew(read: Read, effort: Effort) -> Poly:
    bound, (body, *_) = unfold(read)
    return remade(read.tensor, bound, (settled(body, effort),), ())
