"""Why a result is not proved: the first operation whose value was lost, and what it should have been.

A partitioned value is known if it reads nothing that the logical module does not define and is a term of a
shape that occurs there, wherever it is evaluated. From the result back through values that are not known, the
earliest operation is where the meaning was lost: a partial sum that is never completed, a factor that is
missing. Its logical counterpart, the operation of the same origin, says what was expected.
"""

from __future__ import annotations

from collections.abc import Iterable

from hlo_verify.ir import Op
from hlo_verify.ir import Value as Name
from hlo_verify.passes.stages import Stages, Step
from hlo_verify.report import Finding
from hlo_verify.terms import algebra
from hlo_verify.terms.term import Poly, Read, monomial_skey

SHOWN = 400
"""The most characters of a term that a report prints."""


def diagnose(stages: Stages, logical: Name, partitioned: Name, found: Poly, expected: Poly) -> Finding:
    """The finding for one result, a value of either module, that is not proved."""
    step = _first_lost(stages, partitioned)
    missing = _first_missing(stages, logical, partitioned)
    if missing is not None and (step is None or not _is_apart(stages)):
        return _explain(stages, missing, step, found, expected)
    if step is None:
        return Finding("the result is an argument", "", shown(found), shown(expected), nearest(found, expected))
    value = step.values[0]
    wanted = _wanted(stages, step)
    if wanted is None:
        return Finding(
            statement(step.op), str(step.op.location), shown(value.term), shown(expected), nearest(found, expected)
        )
    return Finding(
        statement(step.op), str(step.op.location), shown(value.term), shown(wanted), nearest(value.term, wanted)
    )


def _is_apart(stages: Stages) -> bool:
    """Whether the modules are two programs, of which the partitioned one's lines are what its author reads."""
    return any(step.op.name == "sdy.manual_computation" for step in stages.partitioned)


def _first_missing(stages: Stages, logical: Name, partitioned: Name) -> Step | None:
    """The first logical operation on the way to the result whose value no device ever holds a part of."""
    held = {value.term.skey for step in _cone(stages.partitioned, [partitioned]) for value in step.values}
    steps = _cone(stages.logical, [logical])
    for step in [step for step in steps if step.op.location.frames] or steps:
        for value in step.values:
            term = value.term
            if term.constant is None and value.type.dtype not in algebra.INTEGER_RANGES and term.skey not in held:
                return step
    return None


def _explain(stages: Stages, missing: Step, lost: Step | None, found: Poly, expected: Poly) -> Finding:
    """The finding for a logical operation whose value is missing, beside what was computed instead."""
    wanted = missing.values[0].term
    shard = stages.expected(missing, 0)
    if shard is not None:
        wanted = shard[0]
    if lost is None:
        return Finding(statement(missing.op), str(missing.op.location), shown(found), shown(wanted))
    value = lost.values[0].term
    return Finding(
        statement(lost.op),
        str(missing.op.location),
        shown(value),
        shown(wanted),
        nearest(value, wanted) or f"the value of {missing.op.name} ({missing.op.location}) is computed on no device",
    )


def _wanted(stages: Stages, step: Step) -> Poly | None:
    """What the logical operation of the same kind and origin computes for such a shard."""
    for candidate in stages.candidates(step.op):
        shard = stages.expected(candidate, 0)
        if shard is not None and shard[1].shape == step.values[0].shape and shard[0] is not step.values[0].term:
            return shard[0]
    return None


def _cone(steps: list[Step], results: Iterable[Name]) -> list[Step]:
    """The operations that some values depend on, in order."""
    needed = set(results)
    cone = []
    for step in reversed(steps):
        if needed.isdisjoint(step.op.results):
            continue
        cone.append(step)
        needed.update(step.op.operands)
        for region in step.op.regions:
            needed.update(region.results)
            needed.update(operand for op in region.ops for operand in op.operands)
    return cone[::-1]


def _first_lost(stages: Stages, partitioned: Name) -> Step | None:
    """The start of the chain of values that are not known and end in the result; the result's own if it is known."""
    cone = _cone(stages.partitioned, [partitioned])
    producers = {result: step for step in cone for result in step.op.results}
    last = producers.get(partitioned)
    if last is None:
        return None
    order = {id(step): n for n, step in enumerate(cone)}
    first, todo, seen = last, [last], {id(last)}
    while todo:
        step = todo.pop()
        earlier = order[id(step)] < order[id(first)]
        if (earlier and step.op.location.frames) or not first.op.location.frames:
            first = step
        for operand in (*step.op.operands, *(name for region in step.op.regions for name in region.results)):
            source = producers.get(operand)
            if source is not None and id(source) not in seen and not any(stages.known(v) for v in source.values):
                seen.add(id(source))
                todo.append(source)
    return first


def statement(op: Op) -> str:
    """The operation's StableHLO line."""
    if op.source is None:
        return op.name
    text = str(op.source).strip().split("\n", 1)[0]
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def shown(p: Poly) -> str:
    """A term for people, cut where it is long."""
    text = repr(p)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def nearest(found: Poly, expected: Poly) -> str:
    """What differs between two terms that nearly agree."""
    if len(found.items) == len(expected.items) == 1:
        (mono, c), (other, k) = found.items[0], expected.items[0]
        if mono == other and c != k:
            return f"the factor is {c} where {k} is expected"
        a = [atom for atom, _ in mono if (atom, 1) not in other]
        b = [atom for atom, _ in other if (atom, 1) not in mono]
        if len(a) == len(b) == 1 and isinstance(a[0], Read) and isinstance(b[0], Read):
            return _nearest_read(a[0], b[0])
    missing = [
        mono for mono, _ in expected.items if monomial_skey(mono) not in {monomial_skey(m) for m, _ in found.items}
    ]
    if missing and len(expected.items) > 1:
        return f"{len(missing)} of {len(expected.items)} summands have no counterpart"
    return ""


def _nearest_read(a: Read, b: Read) -> str:
    if a.tensor is b.tensor:
        differences = [
            f"index {n} is {x!r} where {y!r} is expected"
            for n, (x, y) in enumerate(zip(a.indices, b.indices, strict=True))
            if x is not y
        ]
        return f"{a.tensor.name}: " + "; ".join(differences)
    if a.tensor.kind == b.tensor.kind and a.tensor.bound and b.tensor.bound:
        mine, theirs = _count(a), _count(b)
        if mine < theirs and theirs % mine == 0:
            digits = sorted({repr(atom) for e in a.indices for atom, _ in e.items if "d" in repr(atom)[:1]})
            over = f" over {', '.join(digits)}" if digits else ""
            return (
                f"a {a.tensor.kind} of {mine} terms where one of {theirs} is expected: "
                f"{theirs // mine} parts of it{over} are not joined"
            )
        if mine > theirs:
            return f"a {a.tensor.kind} of {mine} terms where one of {theirs} is expected"
    return f"{a.tensor.name} where {b.tensor.name} is expected"


def _count(read: Read) -> int:
    total = 1
    for v in read.tensor.bound:
        total *= v.size
    return total
