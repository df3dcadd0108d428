"""Why a result is not proved: the first operation whose value was lost, and what it should have been.

Logical operations carry the sharding that their result was to have. The first of them, on the way to the
result, of which no partitioned operation of the same origin computed that shard is where the meaning was
lost. Without such annotations, it is the first partitioned operation on the way to the result whose value
is no function of logical tensors and was never recognised again.
"""

from __future__ import annotations

from collections.abc import Iterable

from hlo_verify.ir import Location, Op
from hlo_verify.ir import Value as Name
from hlo_verify.ops.values import Value
from hlo_verify.passes.stages import Stages, Step
from hlo_verify.report import Finding
from hlo_verify.terms.term import Poly, Read, monomial_skey

SHOWN = 400
"""The most characters of a term that a report prints."""


def diagnose(stages: Stages, logical_result: Name, partitioned_result: Name, found: Poly, expected: Poly) -> Finding:
    """The finding for one result that is not proved."""
    step, wanted = _first_lost_logical(stages, logical_result, partitioned_result)
    if step is None:
        step = _first_lost(stages, partitioned_result)
    if step is None:
        cone = _cone(stages.partitioned, [partitioned_result])
        step = cone[-1] if cone else None
    if step is None:
        return Finding("the result is an argument", "", shown(found), shown(expected), nearest(found, expected))
    value = step.values[0].term
    return Finding(
        statement(step.op),
        str(step.op.location),
        shown(value),
        shown(wanted if wanted is not None else expected),
        nearest(value, wanted) if wanted is not None else nearest(found, expected),
    )


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


def _first_lost_logical(stages: Stages, logical: Name, partitioned: Name) -> tuple[Step | None, Poly | None]:
    computed: dict[Location, list[Step]] = {}
    cone = _cone(stages.partitioned, [partitioned])
    for step in cone:
        computed.setdefault(step.op.location, []).append(step)
    terms = {value.term for step in cone for value in step.values}
    for step in _cone(stages.logical, [logical]):
        here = computed.get(step.op.location)
        if here is None or step.op.name in ("constant", "iota", "broadcast_in_dim", "while"):
            continue
        shard = stages.expected(step, 0)
        if shard is None or shard[0] in terms:
            continue
        same_shape = [s for s in here if s.values[0].shape == shard[1].shape]
        if not same_shape or any(_agrees(s.values[0], shard[0], stages) for s in same_shape):
            continue
        blamed = [s for s in same_shape if s.op.name == step.op.name] or same_shape
        return blamed[-1], shard[0]
    return None, None


def _agrees(value: Value, expected: Poly, stages: Stages) -> bool:
    """Whether a value could be the expected one: it has the term, up to what lies outside of the tensor."""
    return value.term is expected or any(
        atom.tensor.kind == "opaque" and atom.tensor.name.startswith("padding")
        for mono, _ in value.term.items
        for atom, _ in mono
        if isinstance(atom, Read)
    )


def _first_lost(stages: Stages, partitioned: Name) -> Step | None:
    """The start of the chain of lost values that ends in the result."""
    cone = _cone(stages.partitioned, [partitioned])
    producers = {result: step for step in cone for result in step.op.results}
    last = producers.get(partitioned)
    if last is None or not any(stages.lost(value.term) for value in last.values):
        return None
    first, todo, seen = last, [last], {id(last)}
    order = {id(step): n for n, step in enumerate(cone)}
    while todo:
        step = todo.pop()
        if order[id(step)] < order[id(first)]:
            first = step
        for operand in step.op.operands:
            source = producers.get(operand)
            if source is not None and id(source) not in seen and any(stages.lost(v.term) for v in source.values):
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
            return f"a {a.tensor.kind} of {mine} terms where one of {theirs} is expected: the rest, {theirs // mine}-fold{over}, is missing"
        if mine > theirs:
            return f"a {a.tensor.kind} of {mine} terms where one of {theirs} is expected"
    return f"{a.tensor.name} where {b.tensor.name} is expected"


def _count(read: Read) -> int:
    total = 1
    for v in read.tensor.bound:
        total *= v.size
    return total
