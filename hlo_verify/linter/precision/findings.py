"""Casts that lose what is needed later: warnings all. What one line of the source does in many layers is said once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from hlo_verify.diagnostics import Severity
from hlo_verify.hlo.meetings import Meetings
from hlo_verify.hlo.shapes import leaves
from hlo_verify.linter.dataflow import Dataflow
from hlo_verify.linter.finding import Finding
from hlo_verify.linter.precision.digits import FULL, QUANTIZED, digits_of
from hlo_verify.linter.precision.scales import Scales
from hlo_verify.linter.precision.sums import Sums


def check(meetings: Meetings) -> Iterator[Finding]:
    """What is lost to few digits in a module."""
    module = meetings.module
    types = {shape.dtype: shape for i in module.instructions() for _, shape in leaves(i.shape)}
    found: list[tuple[int, Finding]] = []
    if any(digits_of(shape) < FULL for shape in types.values()):
        sums = Sums(meetings)
        root = module.entry.root or module.entry.instructions[-1]
        sums.results(Dataflow(module, sums).run(), [shape for _, shape in leaves(root.shape)])
        found += sums.found
    if any(digits_of(shape) < FULL or shape.dtype in QUANTIZED for shape in types.values()):
        scales = Scales()
        Dataflow(module, scales).run()
        scales.finish()
        found += [(0, one) for one in scales.found]
    yield from _grouped(found)


def _grouped(found: Iterable[tuple[int, Finding]]) -> Iterator[Finding]:
    """One finding for all that are of one code at one line of the source, or at one instruction: the one with the most
    terms."""
    groups: dict[tuple[str, str], dict[str, tuple[int, Finding]]] = {}
    for terms, one in found:
        groups.setdefault((one.code, one.location or one.instruction), {}).setdefault(one.instruction, (terms, one))
    for group in groups.values():
        _, worst = max(group.values(), key=lambda pair: pair[0])
        more = f"; so it is {len(group) - 1} times more at this line" if len(group) > 1 else ""
        yield replace(worst, message=worst.message + more, severity=Severity.WARNING)
