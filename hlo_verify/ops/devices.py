"""How terms depend on a device's number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Var
from hlo_verify.terms import algebra
from hlo_verify.terms.term import Apply, Guard, Ix, Poly, Read


def depends_only_on(terms: Iterable[Poly], device: Var, part: Index) -> bool:
    """Whether terms are the same on a device and on the one whose number is that part of it."""
    return all(algebra.substitute(term, {device: part}) is term for term in terms)


def projection(terms: Iterable[Poly], device: Var) -> Index:
    """The device's number with every digit that does not occur in the terms set to 0; all of it where they depend on it
    otherwise than through digits. A guess that `depends_only_on` checks."""
    spans: list[tuple[int, int]] = []
    for e in {e for term in terms if device in term.free for e in indices(term)}:
        for atom, _ in e.items:
            if device not in atom.free:
                continue
            if not isinstance(atom, Digit):
                return expr.of_var(device)
            spans.append((atom.low, min(atom.low * atom.radix, device.size)))
    part = expr.constant(0)
    for low, high in _joined(spans):
        if device.size % low or high % low:
            return expr.of_var(device)
        part = expr.add(part, expr.scale(expr.digit_of(expr.of_var(device), low, high // low), low))
    return part


def ascends(term: Poly) -> bool:
    """Whether the indices in a reduction's body are digits of its variables, and never fall as one of them grows."""
    for mono, _ in term.items:
        for read, _ in mono:
            if isinstance(read, Read) and read.tensor.bound:
                bound = frozenset(read.tensor.bound)
                for body in read.tensor.bodies:
                    atoms = [(atom, c) for e in indices(body) for atom, c in e.items if atom.free & bound]
                    if not all(isinstance(atom, Digit) and c > 0 for atom, c in atoms):
                        return False
    return True


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return joined


def indices(term: Poly) -> Iterator[Index]:
    """Every index expression in a term."""
    todo = [term]
    while todo:
        for mono, _ in todo.pop().items:
            for atom, n in mono:
                if isinstance(atom, Read):
                    yield from atom.indices
                elif isinstance(atom, Apply):
                    todo.extend(atom.args)
                elif isinstance(atom, Ix):
                    yield atom.index
                elif isinstance(atom, Guard):
                    yield atom.form
                if isinstance(n, Poly):
                    todo.append(n)
