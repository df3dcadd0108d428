"""Where terms are undefined: a term is where one of its parts is, down to functions outside of their domains.

The parts of a definition are so for each value of its bound variables: as definitions over those variables they are
equal where they say the same, and each of their values is known with them. A condition on a part is a factor of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.limits import limit_of
from hlo_verify.memory import once_a_session
from hlo_verify.terms.attained import counts_the_best, indicated
from hlo_verify.terms.doubts import is_partial
from hlo_verify.terms.functions import INVERSE
from hlo_verify.terms.term import Apply, Atom, Poly, Read, Tensor, indices, make_apply, of_atom, reads

POLE = "pole"

WRITTEN_OUT = frozenset({"sum", "max", "min", "product", "term", "sort", "top_k"})
"""Definitions that are undefined where one of the elements is that they are made of."""


def are_implied(undefined: Atom, others: Iterable[Atom]) -> bool:
    """Whether an atom is undefined only where another one is."""
    known = frozenset[Poly]().union(*map(_all_parts, others))
    return bool(known) and _is_known(of_atom(_divided_by(undefined)), known, [limit_of("undefined_parts")])


def _is_known(part: Poly, known: frozenset[Poly], left: list[int]) -> bool:
    if part in known:
        return True
    left[0] -= 1
    inner = _of(part) if left[0] > 0 else ()
    return (bool(inner) and all(_is_known(other, known, left) for other in inner)) or _is_one_of(part, known)


def _is_one_of(part: Poly, known: frozenset[Poly]) -> bool:
    """Whether a part is what a known one is for some values of its bound variables, or all that it is are."""
    while (own := part.atom) is not None and _is_pole(own):
        _, part = _opened(own)  # type: ignore[arg-type]
    head = _head(part)
    wholes = (atom for atom in (other.atom for other in known) if atom is not None and _is_pole(atom))
    alike = (atom for atom in wholes if head is not None and _head(atom.tensor.bodies[0]) == head)  # type: ignore[union-attr]
    return any(_is_an_element(part, *_opened(atom)) for atom in sorted(alike, key=lambda atom: atom.uid))  # type: ignore[arg-type]


def _is_pole(atom: Atom) -> bool:
    return isinstance(atom, Read) and atom.tensor.kind == POLE


@once_a_session
def _opened(atom: Read) -> tuple[tuple[Var, ...], Poly]:
    from hlo_verify.terms.definitions import unfold  # definitions ask for what is found here

    bound, (body,) = unfold(atom)
    return bound, body


def _head(part: Poly) -> object:
    """The function or tensor that a part is of."""
    atom = _numbers(part)
    return atom.function if isinstance(atom, Apply) else atom.tensor if isinstance(atom, Read) else None


def _is_an_element(part: Poly, bound: Sequence[Var], body: Poly) -> bool:
    from hlo_verify.terms.substitution import substitute

    found = islice(product(*(_places(v, body, part) for v in bound)), limit_of("undefined_parts"))
    return any(substitute(body, dict(zip(bound, places, strict=True))) is part for places in found)


def _places(v: Var, body: Poly, part: Poly) -> Iterator[Index]:
    """Values of a variable at which a tensor is read that the body reads at the variable."""
    place = expr.of_var(v)
    read_at = {(atom.tensor, k) for atom in reads(body) for k, e in enumerate(indices(atom)) if e is place}
    ours = sorted(reads(part), key=lambda atom: atom.uid)
    found = dict.fromkeys(e for atom in ours for k, e in enumerate(indices(atom)) if (atom.tensor, k) in read_at)
    return (e for e in found if e.lo >= 0 and e.hi < v.size)


@once_a_session
def _all_parts(atom: Atom) -> frozenset[Poly]:
    """The parts of an atom, itself and parts of parts among them."""
    seen = {of_atom(_divided_by(atom))}
    todo = [of_atom(_divided_by(atom))]
    most = limit_of("undefined_parts")
    while todo and len(seen) < most:
        for part in _inside(todo.pop(0)):
            if part not in seen:
                seen.add(part)
                todo.append(part)
    return frozenset(seen)


def _of(part: Poly) -> tuple[Poly, ...]:
    """Parts that a part is undefined only together with one of; none where it may be undefined by itself."""
    return () if _by_itself(_numbers(part)) else _inside(part)


def _by_itself(atom: Atom | None) -> bool:
    """Whether an atom may be undefined though all that it is made of is defined."""
    if isinstance(atom, Read):
        if atom.tensor.kind == POLE:
            return _by_itself(_numbers(atom.tensor.bodies[0]))
        return atom.tensor.kind not in WRITTEN_OUT
    return not isinstance(atom, Apply) or (is_partial(atom.function) and not _counts_the_best(atom))


@once_a_session
def _counts_the_best(atom: Apply) -> bool:
    """Whether an atom divides by how often something is the greatest: once at least, of numbers."""
    return atom.function == INVERSE and counts_the_best(atom.args[0], of_numbers=True)


def _numbers(part: Poly) -> Atom | None:
    """The one factor of a part that is no condition."""
    return next((atom for mono, _ in part.items for atom, _ in mono if not atom.boolean), None)


@once_a_session
def _inside(part: Poly) -> tuple[Poly, ...]:
    """Parts such that a part is undefined where one of them is."""
    atom = _numbers(part)
    return () if atom is None else tuple(_under(part, atom, inner) for inner in _inside_atom(atom))


def _under(part: Poly, atom: Atom, inner: Poly) -> Poly:
    from hlo_verify.terms.products import product_with  # products ask for what is found here

    (mono, _) = part.items[0]
    return product_with(mono, {atom: inner}.get) if len(mono) > 1 else inner


@once_a_session
def _inside_atom(atom: Atom) -> tuple[Poly, ...]:
    if isinstance(atom, Apply):
        counted = _of_counted(atom) if _counts_the_best(atom) else ()
        return tuple(dict.fromkeys([*(part for arg in atom.args for part in _of_term(arg)), *counted]))
    if not isinstance(atom, Read) or (atom.tensor.kind not in WRITTEN_OUT and atom.tensor.kind != POLE):
        return ()
    from hlo_verify.terms.substitution import at_own_places

    there = at_own_places(atom)
    return tuple(there.poly(part) for part in _of_definition(atom.tensor))


def _of_counted(atom: Apply) -> Iterator[Poly]:
    """The parts of what is counted, of which the indicators show nothing."""
    for bound, asked in filter(None, (indicated(a) for mono, _ in atom.args[0].items for a, _ in mono)):
        for part in _of_term(asked):
            yield _for_all(bound, part)


def _for_all(bound: Sequence[Var], part: Poly) -> Poly:
    from hlo_verify.terms.definitions import define

    over = [v for v in bound if v in part.free]
    return define(POLE, over, (part,)) if over else part


def _of_term(p: Poly) -> list[Poly]:
    from hlo_verify.terms.term import make_poly

    found = []
    for mono, _ in p.items:
        held = tuple(item for item in mono if item[0].boolean)
        for atom, _ in mono:
            if atom.doubt:
                part = sorted((*held, (_divided_by(atom), 1)), key=lambda item: item[0].uid)
                found.append(make_poly(((tuple(part), 1),)))
    return found


def _divided_by(atom: Atom) -> Atom:
    """The inverse of what an atom divides by some root of: `1/sqrt(S)` is undefined where `1/S` is."""
    power = atom.power if isinstance(atom, Apply) else None
    return atom if power is None or power[1] >= 0 else make_apply(INVERSE, (power[0],))


@once_a_session
def _of_definition(source: Tensor) -> tuple[Poly, ...]:
    """The parts of a definition at its parameters."""
    parts = (part for body in source.bodies for part in _of_term(body))
    inner = (inner for part in parts for inner in (_inside(part) if source.kind == POLE else (part,)))
    return tuple(dict.fromkeys(_for_all(source.bound, part) for part in inner))
