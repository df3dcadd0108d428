"""The terms whose values index expressions take: the rows of a lookup, what is rounded to a place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque
from hlo_verify.terms.machine import as_index
from hlo_verify.terms.term import Atom, Poly, atoms, indices, value_of


def values_in_places(atom: Atom) -> Iterator[Poly]:
    """The terms whose values an atom's own index expressions take, those of integers within integers too."""
    pending = list(indices(atom))
    while pending:
        for part, _ in pending.pop().items:
            if isinstance(part, Opaque):
                pending += part.exprs
                if part.term is not None:
                    yield value_of(part)


def within_places(p: Poly) -> Iterator[Poly]:
    """A term and the terms whose values its places take, and so on; each once, to which there may be many paths: turns
    that look up what the turn before chose are places within places."""
    seen, todo = {p}, [p]
    for q in todo:
        yield q
        inner = (value for atom in atoms(q) for value in values_in_places(atom))
        fresh = dict.fromkeys(value for value in inner if value not in seen)
        seen.update(fresh)
        todo += fresh


def index_expressions(p: Poly) -> Iterator[Index]:
    """The index expressions of a term, of others' parts and of the terms whose values these take too; each once, to
    which there may be many paths: the rounds of a hash use what the round before gave, twice."""
    return _of_term(p, {p})


def _of_term(p: Poly, seen: set[Poly | Index]) -> Iterator[Index]:
    for atom in atoms(p):
        for e in indices(atom):
            yield from _and_inner(e, seen)


def _and_inner(e: Index, seen: set[Poly | Index]) -> Iterator[Index]:
    if e in seen:
        return
    seen.add(e)
    yield e
    for part, _ in e.items:
        if isinstance(part, Opaque):
            for inner in part.exprs:
                yield from _and_inner(inner, seen)
            if part.term is not None and value_of(part) not in seen:
                seen.add(value_of(part))
                yield from _of_term(value_of(part), seen)


def with_values(e: Index, image: Callable[[Poly], Poly]) -> Index:
    """An index expression with the images of the terms whose values it takes; the same object where these are."""
    parts: list[Index] = []
    rest: list[tuple[expr.Atom, int]] = []
    for atom, c in e.items:
        if isinstance(atom, Digit):
            rest.append((atom, c))
        else:
            parts.append(expr.scale(_with_value(atom, image), c))
    return expr.add(expr.build(e.const, rest), *parts) if parts else e


def _with_value(atom: Opaque, image: Callable[[Poly], Poly]) -> Index:
    if atom.operator == "value":
        found = image(value_of(atom))
        return expr.of_atom(atom) if found is atom.term else as_index(found, atom.lo, atom.hi)
    inner = with_values(atom.exprs[0], image)
    return expr.of_atom(atom) if inner is atom.exprs[0] else expr.again(atom, inner)


def spread_values(es: Sequence[Index], spread: Callable[[tuple[Poly, ...]], Poly]) -> Sequence[Index]:
    """Index expressions with values of terms that are one term at places side by side: with the value of that term in
    all of them, where they differ in nothing else but constants; the same expressions where they do."""
    if len({len(e.items) for e in es}) > 1:
        return es
    made = list(es)
    for beside in zip(*(e.items for e in es), strict=True):
        values = [(part, c) for part, c in beside if isinstance(part, Opaque) and part.operator == "value"]
        kinds = {(part.lo, part.hi, c) for part, c in values}
        if len(values) == len(es) and len(kinds) == 1 and len({part for part, _ in values}) > 1:
            ((lo, hi, c),) = kinds
            whole = expr.scale(as_index(spread(tuple(value_of(part) for part, _ in values)), lo, hi), c)
            own = [expr.scale(expr.of_atom(part), c) for part, _ in values]
            made = [expr.add(expr.subtract(e, part), whole) for e, part in zip(made, own, strict=True)]
    return made
