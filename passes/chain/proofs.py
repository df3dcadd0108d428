"""Proofs of two modules by construction, in whichever form and with whichever reading of constants has one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from hlo_verify.passes.chain.amplified import Amplified, amplified
from hlo_verify.passes.chain.folded_constants import Folded
from hlo_verify.passes.chain.pair_programs import pair_of_programs
from hlo_verify.passes.chain.rejoin_all_to_all import rejoined
from hlo_verify.passes.chain.trim_loops import has_loops, slim
from hlo_verify.passes.prove.account import Account
from hlo_verify.passes.prove.each_device.apart import Apart
from hlo_verify.passes.prove.each_device.compare import is_by_hand
from hlo_verify.passes.prove.effects import unless_effects_differ
from hlo_verify.passes.prove.prove import Progress, prove_at_once
from hlo_verify.passes.prove.reports import nothing
from hlo_verify.program.ir import Module
from hlo_verify.program.pair import device_count
from hlo_verify.report import Report, Verdict
from hlo_verify.session import EnoughError, Session

Modules = tuple[Module, Module]


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """The proof by construction of two modules, and the form that it is about."""

    report: Report
    pair: Modules


Prove = Callable[[Module, Module, Account], Proof | None]
"""A proof of two modules, if one is found."""


def first_proof(
    logical: Module, partitioned: Module, account: Account, progress: Progress | None = None
) -> Proof | None:
    """The proof of two modules in whichever form has one; None where none has, or there is not enough for it."""
    for pair in forms(logical, partitioned):
        if not account.terms:
            return None
        try:
            report = prove_at_once(*pair, progress=progress, session=account.session, most=account.terms)
        except EnoughError:
            continue
        if report.verdict is Verdict.PROVED:
            return Proof(report, pair)
    return None


def proof_of_a_reading(
    first: Module,
    second: Module,
    paired: Callable[[Module, Module], Modules],
    alone: Callable[[Module], Modules],
    account: Account,
    by_people: Prove | None = None,
) -> tuple[Proof | None, Amplified | None]:
    """A proof where constants of the second module are what the first computes them from, but for a rounding that
    stays one; or where it does not. `paired` makes a pair of the two, `alone` one in which the second is looked at;
    `by_people` is how it is proved if no compiler made it of the first."""
    far: Amplified | None = None
    for reading in Folded(by_people=by_people is not None).readings(first, second):
        if not reading.meant:
            continue
        if by_people is not None:
            proof = by_people(*paired(first, reading.module), account)
        else:
            pairs = forms(first, reading.module)
            proof = next(filter(None, (first_proof(*paired(*pair), account) for pair in pairs)), None)
            proof = proof or proof_on_each_device(*paired(first, reading.module), account.session)
        if proof is None:
            continue
        found = amplified(*alone(reading.module), reading.meant, account.session)
        if found is None:
            said = (*proof.report.assumptions, *reading.said)
            return replace(proof, report=replace(proof.report, assumptions=said)), None
        far = far or found
    return None, far


def proof_on_each_device(logical: Module, partitioned: Module, session: Session) -> Proof | None:
    """The proof of what a person distributed, for each device by itself."""
    if not is_by_hand(partitioned):
        return None
    with session.on():
        apart = Apart(logical, partitioned, session, range(len(logical.result_names)))
        if not all(map(apart.proves, apart.left)):
            return None
        report = nothing(logical, device_count(logical, partitioned))
        results = (replace(result, verdict=Verdict.PROVED, by_device=True) for result in report.results)
        report = unless_effects_differ(replace(report, results=tuple(results)), logical, partitioned)
    return Proof(report, (logical, partitioned)) if report.verdict is Verdict.PROVED else None


def as_they_are(first: Module, second: Module) -> Modules:
    return first, second


def as_programs(module: Module) -> Modules:
    """What devices run, as the logical module of a pair."""
    return pair_of_programs(module, module, module.partitions or 1)


def forms(first: Module, second: Module) -> Iterator[Modules]:
    """Two modules in forms that are easier to compare, the easiest first; and as they are."""
    wholes = rejoined(first), rejoined(second)
    if has_loops(first) and has_loops(second):
        yield slim(wholes[0]), slim(wholes[1])
    yield wholes
    if wholes[0] is not first or wholes[1] is not second:
        yield first, second
