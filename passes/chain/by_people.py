"""Proofs of two modules that people wrote, where one is read with numbers of the other: what they computed beforehand,
tables, and what masks scores. Each reading is a named assumption."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain

from hlo_verify.passes.chain.added_masks import both_chosen
from hlo_verify.passes.chain.amplified import Amplified, amplified
from hlo_verify.passes.chain.constant_values import Computed
from hlo_verify.passes.chain.folded_constants import (
    Reading,
    with_decimals,
    with_irrationals,
    with_quotients,
    with_rests,
)
from hlo_verify.passes.chain.lookups_last import with_lookups_last
from hlo_verify.passes.chain.masking_numbers import both_infinite, mask_otherwise, masked_alike
from hlo_verify.passes.chain.proofs import (
    Modules,
    Proof,
    as_programs,
    as_they_are,
    first_proof,
    proof_of_a_reading,
    proof_on_each_device,
)
from hlo_verify.passes.chain.rounded_tables import Part, parts, with_tables
from hlo_verify.passes.chain.seen_apart import are_alike, are_seen_apart, are_seen_to_differ
from hlo_verify.passes.diagnose.examine import examine
from hlo_verify.passes.prove.account import Account
from hlo_verify.passes.prove.each_device.compare import is_by_hand
from hlo_verify.program.ir import Module, Name
from hlo_verify.program.pair import is_global
from hlo_verify.report import Verdict
from hlo_verify.session import Session

Alone = Callable[[Module], Modules]
"""Makes a pair of a reading, in which it is looked at by itself."""

Answer = tuple[Proof | None, Amplified | None]
"""A proof of some reading; and where a reading that was given up amplifies roundings."""


def are_apart(given: Module, partitioned: Module, session: Session) -> bool:
    """Whether numbers show that what a person distributed is not what the given module computes, as they stand."""
    return is_by_hand(partitioned) and are_alike(given, partitioned, session) is False


def mask_by_others(given: Module, partitioned: Module, session: Session) -> bool:
    """Whether what a person distributed masks by other numbers than the given module, which may be read as those."""
    if not is_by_hand(partitioned):
        return False
    if mask_otherwise(given, partitioned) and any(True for _ in masked_alike(given, partitioned, session)):
        return True
    if both_infinite(given, partitioned) is not None:
        return True
    return _adds_alone(*both_chosen(given, partitioned))


def _adds_alone(first: Module | None, second: Module | None) -> bool:
    """Whether one of two modules adds what masks, of those that are read with masks that choose."""
    return (first is None) != (second is None)


def proof_by_people(given: Module, partitioned: Module, account: Account) -> Answer:
    """A proof of some reading of the modules; or, if none is found, where a reading amplifies roundings. Of what a
    person distributed, any reading by construction comes before all else that may be tried of the first."""
    rounds = (True, False) if is_by_hand(partitioned) else (None,)
    return _first_of(_proof_of_masks(given, partitioned, replace(account, by_construction=each)) for each in rounds)


def _proof_of_masks(given: Module, partitioned: Module, account: Account) -> Answer:
    """The same, with masks that choose, or that add a number, or minus infinity."""
    infinite = both_infinite(given, partitioned)
    proof = infinite and _proof_at_infinity(*infinite, account)
    if infinite and proof is not None and not are_seen_apart(given, partitioned, account.session):
        return _also_said(proof, *(module.notes for module in infinite)), None
    chosen = both_chosen(given, partitioned)
    proof, far = (None, None) if _adds_alone(*chosen) else _proof_as_masked(given, partitioned, account)
    if proof is None and any(chosen):
        first, second = chosen[0] or given, chosen[1] or partitioned
        infinite = both_infinite(first, second)  # gradients by what is masked are 0 there, and not by a number's
        proof = infinite and _proof_at_infinity(*infinite, account)
        first, second = infinite if infinite and proof else (first, second)
        farther = None
        if proof is None:
            proof, farther = _proof_as_masked(first, second, account)
        if proof is None:
            proof = proof_if_alike(first, second, account)
        if proof is not None and are_seen_apart(given, partitioned, account.session):
            proof = None
        proof, far = proof and _also_said(proof, first.notes, second.notes), far or farther
    return proof, far


def _proof_at_infinity(first: Module, second: Module, account: Account) -> Proof | None:
    """A proof of modules that are masked by minus infinity, with numbers of one read as those of the other too."""
    proof = proof_if_alike(first, second, account)
    if proof is None and is_global(second):
        proof, _ = _proof_of_numbers(first, second, _as_a_pair, account)
    return proof


def _proof_as_masked(given: Module, partitioned: Module, account: Account) -> Answer:
    """The same of readings with numbers of one in the place of those of the other."""
    alone = _as_a_pair if is_global(partitioned) else as_programs
    masked = list(masked_alike(given, partitioned, account.session))
    far: Amplified | None = None
    for reading in [*masked, given] if mask_otherwise(given, partitioned) else [given, *masked]:
        proof = None if reading is given else proof_if_alike(reading, partitioned, account)
        if proof is None:
            proof, farther = _proof_of_numbers(reading, partitioned, alone, account)
            far = far or farther
        differ = are_seen_to_differ if reading is given else are_seen_apart
        if proof is not None and not differ(given, partitioned, account.session):
            return (proof if reading is given else _also_said(proof, reading.notes)), None
    return None, far


def proof_if_alike(first: Module, second: Module, account: Account) -> Proof | None:
    """The proof of two modules in one reading: whatever it takes, if numbers show that they are one in it, and nothing
    but the walk for all devices if these show that they are not."""
    proof = None if account.by_construction is False else first_proof(first, second, account)
    if proof is not None or account.by_construction or not is_by_hand(second):
        return proof
    is_alike = are_alike(first, second, account.session)
    if is_alike is None:
        return proof_on_each_device(first, second, account.session)
    if not is_alike:
        return None
    session = account.session.fresh()
    report = examine(first, second, session=session).report
    if report.verdict is Verdict.PROVED:
        return Proof(report, (first, second))
    account.session.meter.charge(session.meter.spent)
    return None


def _also_said(proof: Proof, *notes: Iterable[str]) -> Proof:
    """A proof that says what its readings take for granted, too."""
    said = dict.fromkeys((*proof.report.assumptions, *chain.from_iterable(notes)))
    return replace(proof, report=replace(proof.report, assumptions=tuple(said)))


def _first_of(answers: Iterable[Answer]) -> Answer:
    """The first proof, of answers that are asked for in turn; and where the readings before it amplify roundings."""
    proof: Proof | None = None
    far: Amplified | None = None
    for proof, farther in answers:
        far = far or farther
        if proof is not None:
            break
    return proof, far


def _proof_of_numbers(given: Module, partitioned: Module, alone: Alone, account: Account) -> Answer:
    """A proof where numbers or tables of one module are what the other computes."""
    return _first_of(way(given, partitioned, alone, account) for way in (_proof_of_readings, _proof_with_tables))


def _proof_of_readings(given: Module, partitioned: Module, alone: Alone, account: Account) -> Answer:
    """A proof where numbers of either module are what the other one computes them from, but for roundings."""

    def answers() -> Iterator[Answer]:
        yield proof_of_a_reading(given, partitioned, as_they_are, alone, account, proof_if_alike)
        yield proof_of_a_reading(
            partitioned, given, _turned, lambda module: (module, partitioned), account, proof_if_alike
        )
        yield _proof_with_rests(given, partitioned, alone, account)
        for read in (with_quotients, with_irrationals):
            yield _proof_of_both(read(given, partitioned), given, partitioned, alone, account)
        if not are_alike(given, partitioned, account.session):  # else no rounding of a number is in the way
            yield _proof_of_both(with_decimals(given, partitioned), given, partitioned, alone, account)

    return _first_of(answers())


def _proof_of_both(
    readings: tuple[Reading, Reading] | None,
    given: Module,
    partitioned: Module,
    alone: Alone,
    account: Account,
) -> Answer:
    """A proof where numbers of both modules are read otherwise: multiples of roots of 2 and of pi, or quotients."""
    if readings is None:
        return None, None
    first, second = (reading.module for reading in readings)
    proof, far = _proof_read_on(first, second, partitioned, alone, account)
    if proof is None:
        return None, far
    far = _amplified_in_either(readings, partitioned, alone, account)
    if far is not None:
        return None, far
    return _also_said(proof, *(reading.said for reading in readings)), None


def _amplified_in_either(
    readings: tuple[Reading, Reading], partitioned: Module, alone: Alone, account: Account
) -> Amplified | None:
    """What makes a rounding of one of two readings more than that."""
    first, second = readings
    pairs = ((first.module, partitioned), first.meant), (alone(second.module), second.meant)
    return _first_amplified(pairs, account)


def _first_amplified(
    pairs: Iterable[tuple[Modules, Mapping[Name, Computed | Part]]], account: Account
) -> Amplified | None:
    """What makes a rounding of what stands for a constant more than that, in one of some pairs."""
    return next(filter(None, (amplified(*pair, meant, account.session) for pair, meant in pairs)), None)


def _proof_read_on(first: Module, second: Module, partitioned: Module, alone: Alone, account: Account) -> Answer:
    """A proof of two readings, as they are or with other numbers of one read as what the other computes."""

    def answers() -> Iterator[Answer]:
        yield proof_if_alike(first, second, account), None
        yield proof_of_a_reading(first, second, as_they_are, alone, account, proof_if_alike)
        yield proof_of_a_reading(second, first, _turned, lambda module: (module, partitioned), account, proof_if_alike)

    return _first_of(answers())


def _proof_with_rests(given: Module, partitioned: Module, alone: Alone, account: Account) -> Answer:
    """A proof where numbers of both modules are what others of theirs leave of 1, but for those whose roundings do not
    stay roundings: a sign hangs on 0.9 and 0.1, and next to it 0.99 is beside 0.01. These are read where something is
    multiplied by them first: `1 - 0.999**t` moves by much more than a rounding, `0.999*v + 0.001*g*g` does not."""
    but: list[str] = []
    weights: list[str] = []
    amplifies: Amplified | None = None
    while (rests := with_rests(given, partitioned, but, weights)) is not None:
        first, second = (reading.module for reading in rests)
        proof, far = _proof_read_on(first, second, partitioned, alone, account)
        if proof is None:
            return None, amplifies or far
        far = _amplified_in_either(rests, partitioned, alone, account)
        if far is None:
            return _also_said(proof, *(rest.said for rest in rests)), None
        amplifies = amplifies or far
        if set(far.constants) <= set(but):
            break
        again = [number for number in far.constants if number in weights]
        but += again
        weights += [number for number in far.constants if number not in again]
    return None, amplifies


def _proof_with_tables(given: Module, partitioned: Module, alone: Alone, account: Account) -> Answer:
    """A proof where what one module computes of constants alone is a table of the other, but for roundings: as the
    modules are, or with functions of tables in the place of functions of what is looked up there."""

    def answers() -> Iterator[Answer]:
        yield _proof_with_parts(given, partitioned, alone, account)
        first, second = with_lookups_last(given), with_lookups_last(partitioned)
        if first is not given or second is not partitioned:
            yield _proof_with_parts(first, second, alone, account)

    return _first_of(answers())


def _proof_with_parts(given: Module, partitioned: Module, alone: Alone, account: Account) -> Answer:
    count = 1 if is_global(partitioned) else partitioned.partitions or 1
    here = parts(given, partitioned, (1, count), account.session)
    there = parts(with_tables(partitioned, here), given, (count, 1), account.session)
    found = [(there, here)]
    if here and there:
        there = parts(partitioned, given, (count, 1), account.session)
        found.insert(0, (there, parts(with_tables(given, there), partitioned, (1, count), account.session)))
    amplifies: Amplified | None = None
    for both in found if here or there else ():
        read = with_tables(given, both[0]), with_tables(partitioned, both[1])
        proof, far = proof_if_alike(*read, account), None
        if proof is None:
            proof, far = _proof_of_readings(*read, alone, account)
        if proof is not None and not are_seen_apart(given, partitioned, account.session):
            far = _amplified_by_tables((given, partitioned), read, both, alone, account)
            if far is None:
                return _also_said(proof, *(module.notes for module in read)), None
        amplifies = amplifies or far
    return None, amplifies


def _amplified_by_tables(
    pair: Modules,
    read: Modules,
    found: tuple[Mapping[Name, Part], Mapping[Name, Part]],
    alone: Alone,
    account: Account,
) -> Amplified | None:
    """What makes a rounding of tables more than that, in the modules with what they compute or with tables."""
    there, here = found
    looked_at = [(alone(each), here) for each in (pair[1], read[1]) if here]
    looked_at += [((each, pair[1]), there) for each in (pair[0], read[0]) if there]
    return _first_amplified(looked_at, account)


def _turned(partitioned: Module, given: Module) -> Modules:
    return given, partitioned


def _as_a_pair(module: Module) -> Modules:
    return module, module
