"""Whether some results are proved, where nobody asks why others are not."""

from __future__ import annotations

from collections.abc import Collection

from hlo_verify.index.interned import made
from hlo_verify.passes.prove.prove import by_layers, by_walking, open_obligations, walk_deciding
from hlo_verify.program.ir import Module
from hlo_verify.program.pair import device_count, result_placements
from hlo_verify.report import Verdict
from hlo_verify.session import Session, TimeUpError


def are_proved(logical: Module, partitioned: Module, results: Collection[int], session: Session) -> bool:
    """Whether all of those results are proved, of modules that may well be wrong: the first that is not ends it, and
    nobody asks why. Raises `InputError` where the modules are no pair."""
    with session.on():
        placed = result_placements(logical, partitioned, device_count(logical, partitioned))
        try:
            layered = by_layers(logical, partitioned, session)
            if layered is not None:
                left = [n for n in results if layered.report.results[n].verdict is not Verdict.PROVED]
                if not left or (layered.lost is not None and layered.lost.reaches(partitioned, left)):
                    return not left
            report, first = by_walking(logical, partitioned, None, session)
            left = [n for n in results if report.results[n].verdict is not Verdict.PROVED]
            if not left or not session.limits.total_steps:
                return not left
            outcome = walk_deciding(logical, partitioned, first, None, session=session)
            names = logical.result_names
            return not any(open_obligations(n, names[n], outcome, placed[n], decide=True) for n in left)
        except TimeUpError:
            return False
        finally:
            session.meter.charge_terms(made())
