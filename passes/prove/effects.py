"""What programs do beside giving results: what they hand to the world outside of the module, or take from it.

No result shows a print, an outfeed or a failed assertion. Of two programs they are the same where the same operations
do them, on the same values, in the same order, in the same turns and under the same conditions; that is seen of
programs for one device, or of two that are global, since what several devices do is nobody's one effect.
"""

from __future__ import annotations

from dataclasses import replace

from hlo_verify.diagnostics import Unsupported
from hlo_verify.passes.prove.same_program import Programs
from hlo_verify.program.ir import Module, Op, operations
from hlo_verify.program.op_families import has_effect
from hlo_verify.program.pair import is_global
from hlo_verify.report import Report, Result, Verdict


def unless_effects_differ(report: Report, logical: Module, partitioned: Module) -> Report:
    """The report of a pair, in which nothing is proved where the modules may do other things beside their results."""
    effects = [op for module in (logical, partitioned) for op in operations(module.main) if has_effect(op)]
    if not effects or _are_same(logical, partitioned, report.devices):
        return report
    return replace(report, results=tuple(_unproved(result, effects[0]) for result in report.results))


def _are_same(logical: Module, partitioned: Module, devices: int) -> bool:
    if devices > 1 and not is_global(partitioned):
        return False
    programs = Programs()
    return programs.effects_of(logical) == programs.effects_of(partitioned)


def _unproved(result: Result, effect: Op) -> Result:
    if result.verdict is not Verdict.PROVED:
        return result
    what = effect.attributes.get("call_target_name", effect.name)
    reason = (
        f"the result is the same, but what the modules hand to the world outside, or take from it, may differ ({what})"
    )
    return Result(
        result.index,
        result.name,
        Verdict.UNKNOWN,
        reason,
        str(effect.location),
        code=Unsupported.OUTSIDE_WORLD,
    )
