"""A schedule as an SVG: a row a rank, a box a computation from when it begins to when it ends, transfers left out.

Boxes are coloured by what they do and labelled by stage and microbatch; the text timeline of `draw` says the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.schedules.schedule import Kind, Schedule
from hlo_verify.schedules.timeline import TIMES, run

_COLOURS = {
    Kind.FORWARD: "#8ecae6",
    Kind.BACKWARD: "#ffb703",
    Kind.BACKWARD_INPUT: "#ffd166",
    Kind.BACKWARD_WEIGHT: "#a7c957",
    Kind.UPDATE: "#cdb4db",
}
_NAMES = {
    Kind.FORWARD: "forward",
    Kind.BACKWARD: "backward",
    Kind.BACKWARD_INPUT: "backward for inputs",
    Kind.BACKWARD_WEIGHT: "backward for weights",
    Kind.UPDATE: "update",
}
_WIDTH, _HEIGHT, _LEFT, _GAP = 40, 26, 62, 4


def svg(schedule: Schedule, times: Mapping[Kind, int] = TIMES) -> str:
    """The picture. Raises InputError for a schedule that never ends, of which there is none."""
    timeline = run(schedule, times)
    if timeline is None:
        raise InputError("a rank waits forever, so that there is no picture of the schedule", Input.USAGE)
    boxes: list[str] = []
    kinds: dict[Kind, None] = {}
    for rank, row in enumerate(timeline.ranks):
        top = rank * (_HEIGHT + _GAP)
        boxes.append(f'<text x="2" y="{top + 17}">rank {rank}</text>')
        for begin, action in row:
            kinds[action.kind] = None
            left, width = _LEFT + begin * _WIDTH, times[action.kind] * _WIDTH - 1
            what = f"{_NAMES[action.kind]} of microbatch {action.microbatch} on stage {action.stage}, at {begin}"
            boxes.append(
                f'<g><title>{what}</title><rect x="{left}" y="{top}" width="{max(width, 1)}" '
                f'height="{_HEIGHT}" fill="{_COLOURS[action.kind]}"/>'
                f'<text x="{left + 3}" y="{top + 17}">{action}</text></g>'
            )
    bottom = len(timeline.ranks) * (_HEIGHT + _GAP) + 16
    legend = [
        f'<rect x="{_LEFT + n * 160}" y="{bottom - 10}" width="12" height="12" fill="{_COLOURS[kind]}"/>'
        f'<text x="{_LEFT + n * 160 + 16}" y="{bottom}">{_NAMES[kind]}</text>'
        for n, kind in enumerate(kinds)
    ]
    width = _LEFT + max(timeline.length * _WIDTH, 160 * len(kinds)) + 4
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{bottom + 12}" font-size="11"'
    return "\n".join([f'{head} font-family="monospace">', *boxes, *legend, "</svg>"]) + "\n"
