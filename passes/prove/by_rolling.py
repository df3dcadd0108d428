"""Programs that a person wrote out turn by turn, proved as the loops that they are (`rolling`)."""

from __future__ import annotations

from dataclasses import replace

from hlo_verify.index.interned import made
from hlo_verify.memory import Memory
from hlo_verify.passes.prove.each_device.compare import is_by_hand
from hlo_verify.passes.prove.prove import OtherReadings, by_walking, open_obligations
from hlo_verify.passes.prove.reports import may_hang
from hlo_verify.passes.prove.rolling import rolled
from hlo_verify.program.ir import Module, operations
from hlo_verify.program.pair import device_count, result_placements
from hlo_verify.report import Report, Result, Verdict
from hlo_verify.session import EnoughError, Session


def is_long(module: Module, session: Session) -> bool:
    """Whether loops are looked for before anything else: walking over all that is written out takes longer."""
    return sum(1 for _ in operations(module.main)) > session.limits.reading_operations


def in_loops(logical: Module, partitioned: Module) -> tuple[Module, Module] | None:
    """What a person distributed, where what is written out turn by turn is a loop, in either module; None where nothing
    is."""
    if not is_by_hand(partitioned):
        return None
    loops = rolled(logical), rolled(partitioned)
    return None if loops == (None, None) else (loops[0] or logical, loops[1] or partitioned)


def as_loops(logical: Module, partitioned: Module, session: Session, decide: bool) -> Report | None:
    """The proof of what a person distributed where what is written out turn by turn is a loop, in either module; None
    where nothing is, or that does not prove it all; with `decide`, values are compared case by case too, which takes
    long where they differ. Terms of the two modules with loops are not kept."""
    pair = in_loops(logical, partitioned)
    if pair is None:
        return None
    with Memory().on():
        try:
            with session.at_most(session.limits.small_terms_apart, made), session.interruptible():
                return _proof(*pair, session, decide)
        except EnoughError:
            return None


def _proof(logical: Module, partitioned: Module, session: Session, decide: bool) -> Report | None:
    report, outcome = by_walking(logical, partitioned, None, session)
    if report.verdict is Verdict.PROVED:
        return report
    if outcome is None or may_hang(outcome.unsupported) is not None:
        return None
    placed = result_placements(logical, partitioned, device_count(logical, partitioned))
    readings = OtherReadings(logical, partitioned, placed, session, first=outcome)
    results = []
    for result in report.results:
        n, name = result.index, result.name
        if result.verdict is not Verdict.PROVED:
            is_open = open_obligations(n, name, outcome, placed[n], decide=decide)
            if is_open and not readings.prove(n, decide):
                return None
        results.append(Result(n, name, Verdict.PROVED))
    return replace(report, results=tuple(results))
