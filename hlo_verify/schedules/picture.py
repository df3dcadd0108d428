"""A schedule as an SVG: a row a rank, a box a computation from when it begins to when it ends, transfers left out.

Boxes are coloured by what they do and labelled by stage and microbatch; the text timeline of `draw` says the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.render.pictures.sheet import FONT, NAMED, SMALL, Sheet, width_of
from hlo_verify.schedules.schedule import Kind, Schedule
from hlo_verify.schedules.timeline import TIMES, Timeline, run

_COLOURS = {
    Kind.FORWARD: NAMED[0],
    Kind.BACKWARD: NAMED[4],
    Kind.BACKWARD_INPUT: NAMED[1],
    Kind.BACKWARD_WEIGHT: NAMED[2],
    Kind.UPDATE: NAMED[3],
}
_NAMES = {
    Kind.FORWARD: "forward",
    Kind.BACKWARD: "backward",
    Kind.BACKWARD_INPUT: "backward for inputs",
    Kind.BACKWARD_WEIGHT: "backward for weights",
    Kind.UPDATE: "update",
}
_WIDTH, _HEIGHT, _LEFT, _GAP, _MARGIN = 40, 26, 74, 4, 12
_TOP = _MARGIN + FONT + 12


def svg(schedule: Schedule, times: Mapping[Kind, int] = TIMES, *, style: bool = True) -> str:
    """The picture. Without `style` it is for a page that has `render.pictures.STYLE`. Raises InputError for a schedule
    that never ends, of which there is none."""
    timeline = run(schedule, times)
    if timeline is None:
        raise InputError("a rank waits forever, so that there is no picture of the schedule", Input.USAGE)
    sheet = Sheet(f"{len(timeline.ranks)} ranks over {timeline.length} units of time", _said(timeline))
    sheet.text(_MARGIN, _MARGIN + FONT, sheet.title, "strong")
    kinds: dict[Kind, None] = {}
    widest = max((width_of(str(action)) + 6 for row in timeline.ranks for _, action in row), default=0)
    unit = max(_WIDTH, widest)
    for rank, row in enumerate(timeline.ranks):
        top = _TOP + rank * (_HEIGHT + _GAP)
        sheet.text(_MARGIN, top + 17, f"rank {rank}", "soft")
        for begin, action in row:
            kinds[action.kind] = None
            left, width = _MARGIN + _LEFT + begin * unit, times[action.kind] * unit - 1
            what = f"{_NAMES[action.kind]} of microbatch {action.microbatch} on stage {action.stage}, at {begin}"
            sheet.parts.append("<g>")
            sheet.box(left, top, width, _HEIGHT, "cell", fill=_COLOURS[action.kind], stroke=0, told=what)
            sheet.text(left + 4, top + 17, str(action), "on")
            sheet.parts.append("</g>")
    bottom = _TOP + len(timeline.ranks) * (_HEIGHT + _GAP) + 8
    right = float(_MARGIN + _LEFT)
    for kind in kinds:
        sheet.box(right, bottom, 11, 11, "cell", fill=_COLOURS[kind])
        sheet.text(right + 16, bottom + 9.5, _NAMES[kind], "soft small")
        right += width_of(_NAMES[kind], SMALL) + 34
    width = max(_MARGIN + _LEFT + timeline.length * unit, right, width_of(sheet.title) + _MARGIN) + _MARGIN
    return sheet.finished(width, bottom + 11 + _MARGIN, style=style)


def _said(timeline: Timeline) -> str:
    """The picture in words: how long each rank waits."""
    waits = ", ".join(f"rank {rank} waits {idle}" for rank, idle in enumerate(timeline.idle[:16]))
    return f"{waits} of {timeline.length} units of time" + (", …" if len(timeline.idle) > 16 else ".")
