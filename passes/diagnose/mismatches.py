"""Which mismatch a finding is about."""

from __future__ import annotations

from hlo_verify.diagnostics import Mismatch
from hlo_verify.passes.diagnose.differences import Difference
from hlo_verify.passes.diagnose.fault import Fault
from hlo_verify.passes.diagnose.lost_values import Values
from hlo_verify.passes.diagnose.shard_match import Match
from hlo_verify.passes.diagnose.term_contents import indices, tensors
from hlo_verify.passes.prove.stages import Step
from hlo_verify.program.ir import Op
from hlo_verify.program.op_families import FORWARDS, MOVES, REDUCTIONS, SCALES
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.term import Guard, Monomial, Poly, Read

_REDUCERS = {"add": "sum", "maximum": "max", "minimum": "min"}


def of_partial(values: Values, fault: Fault, partial: Match) -> Mismatch:
    """The mismatch where a value is a part of a logical one.

    A collective that reduced it over some devices is right as far as it goes if what is missing are whole mesh axes;
    one whose groups have one device each reduces nothing.
    """
    op, value = values.flow.op(fault.name), values.flow.value(fault.name)
    reduced = op.name in REDUCTIONS
    if reduced and partial.reducer not in {_REDUCERS.get(inner.name) for inner in op.regions[0].ops}:
        return Mismatch.DIFFERS
    idle = reduced and any(values.flow.value(s).term is value.term for s in values.flow.sources(fault.name))
    wrong = fault.elsewhere or idle or (reduced and not values.shards.are_axes(partial.summed))
    return Mismatch.WRONG_DEVICES if wrong else Mismatch.NEVER_REDUCED


def of_value(values: Values, fault: Fault, expected: Poly, step: Step | None, said: Difference) -> Mismatch:
    """The mismatch where a value differs from the one that was expected."""
    name = fault.name
    op, value = values.flow.op(name), values.flow.value(name)
    match = values.shards.match(value)
    if op.name in REDUCTIONS and match is not None and match.term is expected and match.factor > 1:
        complete = (values.shards.is_shard(values.flow.value(source)) for source in values.flow.sources(fault.name))
        return Mismatch.REDUCED_TWICE if any(complete) else Mismatch.WRONG_FACTOR
    if op.name in REDUCTIONS and all(values.shards.is_shard(values.flow.value(s)) for s in values.flow.sources(name)):
        return Mismatch.REDUCED_TWICE
    if fault.missing is not None:
        return without(fault.missing, said)
    if op.name in MOVES and step is not None and _is_made_of(values, fault, step):
        return Mismatch.WRONG_PLACE
    found = at(op, value.term, expected, said)
    return Mismatch.NEVER_REDUCED if found is Mismatch.DIFFERS and _is_part(values, value.term) else found


def _is_part(values: Values, term: Poly) -> bool:
    """Whether a term is a sum over the part of a dimension that the device holds, and no more."""
    atom = term.atom if term.atom is not None else term.items[0][0][0][0] if term.items and term.items[0][0] else None
    if not isinstance(atom, Read) or atom.tensor.kind != "sum" or not atom.tensor.bodies:
        return False
    bound, bodies = unfold(atom)
    for e in (e for body in bodies for e in indices(body)):
        parts = {abs(c) for part, c in e.items if values.stages.device in part.free}
        if any(c == 1 and v.size in parts for part, c in e.items for v in bound if v in part.free):
            return True
    return False


def _is_made_of(values: Values, fault: Fault, step: Step) -> bool:
    """Whether the operands of a value are all shards of what a logical operation computes."""
    matches = [values.shards.match(values.flow.value(source)) for source in values.flow.sources(fault.name)]
    return bool(matches) and all(m is not None and m.whole.term is step.values[0].term for m in matches)


def without(missing: Step, said: Difference) -> Mismatch:
    """The mismatch where a logical operation is left out."""
    scaled = missing.op.name in SCALES and said.mismatch is Mismatch.WRONG_FACTOR
    return Mismatch.WRONG_FACTOR if scaled else Mismatch.WRONG_VALUE


def at(op: Op, found: Poly, expected: Poly, said: Difference) -> Mismatch:
    """The mismatch where an operation's value differs, and nothing is left out before it."""
    mismatch = said.mismatch
    if mismatch is Mismatch.DIFFERS and _is_moved(found, expected):
        mismatch = Mismatch.WRONG_PLACE
    return elsewhere(op) if mismatch is Mismatch.WRONG_PLACE else mismatch


def elsewhere(op: Op) -> Mismatch:
    """The mismatch where an operation's value consists of the right elements, but not of those that belong there."""
    return Mismatch.WRONG_DEVICES if op.name in FORWARDS else Mismatch.WRONG_PLACE


def _is_moved(found: Poly, expected: Poly) -> bool:
    """Whether a value consists of elements of what was expected, and nothing else."""

    def is_element(mono: Monomial) -> bool:
        rest = [(atom, power) for atom, power in mono if not isinstance(atom, Guard)]
        return len(rest) == 1 and isinstance(rest[0][0], Read) and rest[0][1] == 1

    elements = all(c == 1 and is_element(mono) for mono, c in (*found.items, *expected.items))
    return elements and tensors(found) == tensors(expected)
