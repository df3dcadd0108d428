"""Which operations of a partitioned module compute shards of which values of the logical one, by the prover's walk."""

from __future__ import annotations

from dataclasses import dataclass

from hlo_verify.passes.prove.notation import Notation
from hlo_verify.passes.prove.prove import Outcome, walk, walk_deciding
from hlo_verify.passes.prove.stages import Stages
from hlo_verify.program.ir import Module, Op
from hlo_verify.session import Session, TimeUpError
from hlo_verify.terms.term import Read, Tensor


@dataclass(frozen=True, slots=True)
class Lineages:
    """By the identity of an operation of the partitioned module: `said` is of which logical value it is which shard,
    `lost` has those that are no function of logical values. `matched` are pairs of a logical and a partitioned
    operation: the second computes a shard of what the first does, or both are the only ones of their modules whose
    terms have one form, which proves nothing and is a help for reading. `terms` are what operations of both modules
    compute, in index notation."""

    said: dict[int, str]
    lost: frozenset[int]
    matched: tuple[tuple[Op, Op], ...]
    terms: dict[int, str]


NONE = Lineages({}, frozenset(), (), {})
"""Where nothing is known."""

MOST_TERMS = 5000
"""Operations of both modules whose terms are told: of more nobody reads them."""


def lineages(logical: Module, partitioned: Module, session: Session, *, is_wrong: bool = False) -> Lineages:
    """The lineage of each operation, as far as it is found until the session's time is up. Where the modules differ
    (`is_wrong`), less is done to find it. Raises `InputError` where the modules do not say how they are a pair."""
    with session.on():
        first: Outcome | None = None
        try:
            first = walk(logical, partitioned, False, None, session=session)
            found = walk_deciding(logical, partitioned, first, None, known_wrong=is_wrong, session=session)
        except TimeUpError:
            if first is None:
                return NONE
            found = first
        return _told(found)


def _told(outcome: Outcome) -> Lineages:
    stages = outcome.stages
    origins: dict[Tensor, Op] = {}
    for step in stages.logical:
        for value in step.values:
            atom = value.term.atom
            if isinstance(atom, Read) and atom.tensor.bodies:
                origins.setdefault(atom.tensor, step.op)
    notation = Notation(stages.logical)
    said: dict[int, str] = {}
    matched = []
    for op, read, _ in stages.cut_points():
        if id(op) not in said:
            said[id(op)] = notation.lineage(read)
            if read.tensor in origins:
                matched.append((origins[read.tensor], op))
    lost = {id(step.op) for step in stages.partitioned if any(stages.lost(value.term) for value in step.values)}
    seen = {id(op) for pair in matched for op in pair}
    matched += [(a, b) for a, b in _alike(stages) if id(a) not in seen and id(b) not in seen]
    terms: dict[int, str] = {}
    if len(stages.logical) + len(stages.partitioned) <= MOST_TERMS:
        for step in (*stages.logical, *stages.partitioned):
            if id(step.op) not in terms and step.values:
                terms[id(step.op)] = "; ".join(notation.term(value.term) for value in step.values)
    return Lineages(said, frozenset(lost - said.keys()), tuple(matched), terms)


def _alike(stages: Stages) -> list[tuple[Op, Op]]:
    """Operations of one name and one form of term, where each module has but one such."""
    both: list[dict[tuple[str, int], list[Op]]] = [{}, {}]
    for found, steps in zip(both, (stages.logical, stages.partitioned), strict=True):
        for step in steps:
            if len(step.values) == 1 and step.values[0].term.constant is None:
                found.setdefault((step.op.name, step.values[0].term.skey), []).append(step.op)
    return [(ops[0], both[1][key][0]) for key, ops in both[0].items() if len(ops) == 1 == len(both[1].get(key, ()))]
