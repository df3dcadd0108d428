"""Which kind of unknown a result is that was not proved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hlo_verify.diagnostics import Code, Diagnostic, Solver
from hlo_verify.equality.backend import Limit, Unknown
from hlo_verify.terms.places import values_in_places
from hlo_verify.terms.term import Apply, Poly, Read, Tensor


def code_of(terms: Sequence[Poly], unsupported: Iterable[Diagnostic]) -> Code:
    """The code of the first operation that was not understood among those that the terms depend on, if there is one.

    `unsupported` are those of both modules, in order.
    """
    unknown = {(tensor.name.partition(".")[2], str(tensor.location)) for tensor in _opaque_tensors(terms)}
    found = (said.code for said in unsupported if (said.operation, said.location) in unknown)
    return next(found, Solver.NO_PROOF)


def budget(unanswered: Iterable[Unknown]) -> Code:
    """The code of a comparison that was not proved, in which some questions to the solver had no answer."""
    limits = {answer.limit for answer in unanswered}
    if Limit.MEMORY in limits:
        return Solver.MEMORY_LIMIT
    return Solver.TIME_LIMIT if Limit.TIME in limits else Solver.NO_PROOF


def _opaque_tensors(terms: Iterable[Poly]) -> Iterator[Tensor]:
    """The results of operations that were not understood, in the terms and in what they are defined by."""
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
                elif isinstance(atom, Read) and atom.tensor not in seen:
                    seen.add(atom.tensor)
                    todo.extend(atom.tensor.bodies)
                    if atom.tensor.kind == "opaque":
                        yield atom.tensor
                todo.extend(values_in_places(atom))
