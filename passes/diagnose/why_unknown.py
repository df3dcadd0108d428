"""Which kind of unknown a result is that was not proved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hlo_verify.diagnostics import Code, Diagnostic, Solver
from hlo_verify.equality.backend import Limit, Unknown
from hlo_verify.ops.in_floats import is_of_floats
from hlo_verify.terms.places import values_in_places
from hlo_verify.terms.term import Apply, Atom, Poly, Read, Tensor


def code_of(terms: Sequence[Poly], unsupported: Iterable[Diagnostic]) -> Code:
    """The code of the first operation that was not understood among those that the terms depend on, if there is one;
    else of what floats decide, if they depend on that.

    `unsupported` are those of both modules, in order.
    """
    atoms = list(_atoms(terms))
    unknown = {
        (atom.tensor.name.partition(".")[2], str(atom.tensor.location))
        for atom in atoms
        if isinstance(atom, Read) and atom.tensor.kind == "opaque"
    }
    found = (said.code for said in unsupported if (said.operation, said.location) in unknown)
    return next(found, Solver.FLOATS_DECIDE if any(map(is_of_floats, atoms)) else Solver.NO_PROOF)


def budget(unanswered: Iterable[Unknown]) -> Code:
    """The code of a comparison that was not proved, in which some questions to the solver had no answer."""
    limits = {answer.limit for answer in unanswered}
    if Limit.MEMORY in limits:
        return Solver.MEMORY_LIMIT
    return Solver.TIME_LIMIT if Limit.TIME in limits else Solver.NO_PROOF


def _atoms(terms: Iterable[Poly]) -> Iterator[Atom]:
    """What terms are made of, and what that is defined by, each once."""
    todo = list(terms)
    seen_terms: set[Poly] = set()
    seen: set[Tensor] = set()
    while todo:
        term = todo.pop()
        if term in seen_terms:
            continue
        seen_terms.add(term)
        for mono, _ in term.items:
            for atom, _ in mono:
                if isinstance(atom, Apply):
                    todo.extend(atom.args)
                elif isinstance(atom, Read):
                    if atom.tensor not in seen:
                        todo.extend(atom.tensor.bodies)
                    seen.add(atom.tensor)
                yield atom
                todo.extend(values_in_places(atom))
